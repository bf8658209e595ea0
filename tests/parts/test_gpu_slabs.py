"""Interfaces of slabs on a real GPU: those of the CPU, on lattices too large for the simulator."""

from itertools import product

import numpy as np
import pytest
from helpers import probabilities
from slab_support import check_bonds_before, compare_interfaces, compare_rows

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import p_to_threshold
from percolab.coupled import new_coupling
from percolab.lattices.lattice import load_lattice
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs

pytestmark = pytest.mark.gpu

MODELS = (
    BOND,
    Model.parse("site"),
    Model.parse("site-bond:site=0.9"),
    Model.parse("site-bond:bond=0.8"),
)
#: Grid points of a layer, and the layers of slabs, in words and across them.
SHAPES = {2: (((1501,), (70, 31, 40)), ((1024,), (64, 64, 31))), 3: (((61, 47), (20, 3, 11)),)}


def draws_of(name, model, number):
    """Return draws of samples below the threshold, at it and above it, and at p = 1."""
    middle = probabilities(name)[2] ** (0.6 if model.draws_sites else 1)
    ps = (0.6 * middle, middle, 0.97 * middle + 0.03, 1.0)
    return [SampleKey(number % 2, 5, 10 * number + k, p_to_threshold(p)) for k, p in enumerate(ps)]


@pytest.mark.parametrize("name", ["square", "triangular", "kagome", "cubic", "bcc"])
def test_interfaces_and_rows_are_those_of_the_cpu(name):
    item = load_lattice(name)
    boundaries = product(("open", "periodic"), repeat=item.dimension)
    for n, ((layer, layers), boundary) in enumerate(product(SHAPES[item.dimension], boundaries)):
        axes = zip((*layer, sum(layers)), item.cell, boundary)
        shape = tuple(
            -(-size // cell) * cell if kind == "periodic" else size for size, cell, kind in axes
        )
        slabs = (*layers[:-1], layers[-1] + shape[-1] - sum(layers))
        model, tally = MODELS[(n + n // 4) % 4], n % 3 == 0
        whole = Whole(item, shape, boundary, model)
        compare_rows(whole, draws_of(name, model, n), slabs, tally=tally)


@pytest.mark.parametrize("bits", [31, 36, 41, 54])
@pytest.mark.parametrize("width", [3001, 2048])
def test_interfaces_far_inside_are_those_of_the_cpu(bits, width):
    shape, boundary = (width, 2**55 // width), ("periodic", "open")
    whole = Whole(load_lattice("square"), shape, boundary, MODELS[bits % 4])
    draws = [SampleKey(generator, 5, 1, p_to_threshold(0.7)) for generator in (0, 1)]
    compare_interfaces(whole, draws, (100, 50, 100), 2**bits // width - 120, tally=True)


def test_open_bonds_before_every_block_of_a_face_are_counted():
    check_bonds_before()


@pytest.mark.parametrize("boundary", ["open", "periodic"])
@pytest.mark.parametrize(("name", "width", "p"), [("square", 2**19, 0.5), ("cubic", 512, 0.2488)])
def test_rows_of_slabs_with_wide_faces_are_those_of_whole_lattices(name, width, p, boundary):
    item, depth = load_lattice(name), 210
    shape = (width,) * (item.dimension - 1) + (depth,)
    kinds = (boundary,) * item.dimension
    slabs = Slabs(Whole(item, shape, kinds), (32,) * 6 + (18,), kind="cuda")
    reference = new_coupling(None, "cuda", item.topology(shape, kinds))
    for generator in (0, 1):
        draw = SampleKey(generator, 7, 3, p_to_threshold(p))
        one = np.array([draw.sample], np.uint64), np.array([draw.threshold], np.uint64)
        expected = reference.rows(generator, draw.seed, *one)[0]
        np.testing.assert_array_equal(slabs.row(draw).numbers, expected)
