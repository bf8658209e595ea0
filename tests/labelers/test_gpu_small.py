"""Small lattices on a GPU: rows and sums of blocks are those of the CPU, bit by bit."""

import numpy as np
import pytest
from helpers import assert_sums_equal, assert_windows_equal

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, TOP, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.coupled.small import is_small
from percolab.coupled.thresholds import find_thresholds
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import make_geometry
from percolab.lattices.lattice import load_lattice
from percolab.measure.radii import sum_gyration

pytestmark = pytest.mark.gpu

GRID = np.array([p_to_threshold(p) for p in (0.2, 0.5, 0.62, 0.9)], np.uint64)
#: By dimension: several samples a team, one, and one of as many words as there may be.
SIZES = {1: (100,), 2: (4, 8, 12, 16, 20, 30, 32, 48, 64), 3: (4, 8, 10, 16), 4: (2, 3, 4, 5, 6, 8)}
BLOCK = 1500


def couplings(name, size, boundary, model, capacity=64):
    item = load_lattice(name)
    topology = item.topology(item.shape(size), boundary)
    made = [
        new_coupling(
            labeler, device, topology, Model.parse(model), capacity=capacity, openings=True
        )
        for labeler, device in (("tiled", "cuda"), ("raster", "cpu"))
    ]
    return hasattr(made[0], "block_sums"), *made


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)
@pytest.mark.parametrize("model", ["bond", "site", "site-bond"])
@pytest.mark.parametrize(
    "name", ["square", "honeycomb", "triangular", "kagome", "cubic", "bcc", "fcc", "hypercubic-4d"]
)
def test_rows_and_sums_equal_those_of_the_cpu(name, model, generator):
    dimension = load_lattice(name).dimension
    small = 0
    for size in SIZES[dimension]:
        mixed = ("periodic", *("open",) * (dimension - 1))
        for boundary in (("open",) * dimension, ("periodic",) * dimension, mixed):
            is_small, device, host = couplings(name, size, boundary, model)
            if not is_small:
                continue
            small += 1
            key = generator, 7
            samples = np.arange(2 * BLOCK if size == 8 else 60, dtype=np.uint64)
            expected = host.grid_rows(*key, samples, GRID)
            np.testing.assert_array_equal(device.grid_rows(*key, samples, GRID), expected)
            blocks = SampleBlocks(samples[:: samples.size // 2], samples.size // 2)
            assert_sums_equal(device, expected, key, blocks, GRID)
    assert small >= 6


@pytest.mark.parametrize("model", ["bond", "site", "site-bond", "bond:x=0.6"])
@pytest.mark.parametrize("name", ["square", "triangular", "kagome", "cubic"])
def test_thresholds_equal_those_of_the_cpu(name, model):
    item, ends = load_lattice(name), [(0, TOP), (TOP // 2, TOP), (TOP // 5, TOP // 5 * 4)]
    own = Model.parse(model)
    chosen = own if model != "bond:x=0.6" or name == "square" else Model.parse("bond")
    compared = 0
    for size in {2: (4, 12, 20, 64), 3: (4, 10, 16)}[item.dimension]:
        samples = np.arange(100 if size < 16 else 24, dtype=np.uint64)
        for opened in range(1, item.dimension + 1):
            boundary = ("open",) * opened + ("periodic",) * (item.dimension - opened)
            topology = item.topology(item.shape(size), boundary)
            if not is_small(Extent.of_topology(topology)):
                continue
            device, host = (
                new_coupling(labeler, kind, topology, chosen, capacity=64)
                for labeler, kind in (("tiled", "cuda"), ("raster", "cpu"))
            )
            generator = size % 2
            assert_windows_equal(device, host, (generator, 7), samples, ends)
            expected = find_thresholds(host, generator, 3, samples, (TOP // 3, TOP // 2))
            found = find_thresholds(device, generator, 3, samples, (TOP // 3, TOP // 2))
            np.testing.assert_array_equal(found, expected, err_msg=f"{size}, {boundary}")
            compared += 1
    assert compared >= 6


def compare_sums(size, boundary, model, samples, p):
    """Compare the sums of one block on both devices; return the sums of squares."""
    _, device, host = couplings("square", size, boundary, model, capacity=samples)
    numbers, grid = np.arange(samples, dtype=np.uint64), np.array([p_to_threshold(p)], np.uint64)
    key = GENERATORS["xorwow"], 7
    rows = host.grid_rows(*key, numbers, grid)
    return assert_sums_equal(device, rows, key, SampleBlocks(numbers[:1], samples), grid)


def test_squares_beyond_53_bits_are_rounded_like_those_of_the_cpu():
    assert compare_sums(64, ("periodic",) * 2, "bond", 3000, 0.7).max() > 2.0**53


@pytest.mark.parametrize("size", [16, 24, 32, 48, 64])
@pytest.mark.parametrize(
    ("boundary", "model"), [("periodic", "bond"), ("periodic", "site"), ("open", "bond")]
)
def test_a_block_of_threads_measures_one_sample_after_the_other(size, boundary, model):
    # There are 2^14 blocks of threads, of which each has four samples of L = 16 at a time.
    samples = 2**17 + 1 if size < 24 else 2**15 + 1
    compare_sums(size, (boundary,) * 2, model, samples, 0.5 if model == "bond" else 0.5927)


@pytest.mark.parametrize("name", ["honeycomb", "cubic"])
def test_radii_of_long_blocks_are_summed_like_those_of_the_cpu(name):
    item = load_lattice(name)
    shape, boundary = item.shape(8), ("periodic",) * item.dimension
    topology, geometry = item.topology(shape, boundary), make_geometry(item, shape)
    # Pieces of 700 samples, which end within blocks.
    device = new_coupling("tiled", "cuda", topology, capacity=700)
    host = new_coupling("raster", "cpu", topology)
    key, blocks = (GENERATORS["xorwow"], 7), SampleBlocks(np.array([0, BLOCK], np.uint64), BLOCK)
    rows = host.radii_rows(*key, np.arange(2 * BLOCK, dtype=np.uint64), GRID[:2], geometry)
    expected = sum_gyration(rows.reshape(2, BLOCK, *rows.shape[1:]), geometry.unit)
    found = device.radii_sums(*key, blocks, GRID[:2], geometry)
    np.testing.assert_array_equal(found, expected)
