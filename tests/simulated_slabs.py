"""Runs slabs in CUDA's simulator and compares their interfaces with the CPU's."""

from itertools import product

import numpy as np
from helpers import probabilities
from parts_support import MODELS, shape_of, structure
from slab_support import check_bonds_before, compare_interfaces, compare_rows

from percolab.bonds.words import p_to_threshold
from percolab.measure.rows import LARGEST, ROW_WIDTH, SECOND_LARGEST, SPANNING
from percolab.measure.rows_cuda import PARTIALS, finish_rows_kernel
from percolab.measure.sums import ADDED, NUMBERS
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey

#: Grid points of a layer, and the layers of slabs: within words, over words and over tiles.
SHAPES = {
    2: (((33,), (3, 5, 2)), ((10,), (4, 4, 7, 1)), ((32,), (9, 2)), ((66,), (6, 3))),
    3: (((5, 4), (2, 3, 1)), ((8, 4), (3, 4)), ((35, 2), (2, 4))),
    4: (((5, 3, 2), (2, 3)),),
}


def compare_lattice(name, part, parts):
    """Compare a part of all cases: interfaces and rows over boundaries, models and p."""
    check_many_partials()
    check_bonds_before()
    item, part, parts = structure(name), int(part), int(parts)
    cases = product(SHAPES[item.dimension], product(("open", "periodic"), repeat=item.dimension))
    for n, ((layer, layers), boundary) in enumerate(cases):
        if n % parts != part:
            continue
        layers = list(layers)
        shape = shape_of(name, boundary, (*layer, sum(layers)))
        layers[-1] += shape[-1] - sum(layers)
        model, tally = MODELS[(n + n // 5) % 5], n % 3 == 0
        whole = Whole(item, shape, boundary, model)
        middle = probabilities(name)[2] ** (0.6 if model.draws_sites else 1)
        ps = (middle, 0.9 * middle + 0.1, (0.0, 0.3, 1.0)[n % 3])
        draws = [SampleKey(n // 3 % 2, 5, 100 * n + k, p_to_threshold(p)) for k, p in enumerate(ps)]
        compare_rows(whole, draws, layers, tally=tally)


def check_many_partials():
    """Check rows of partial sums that are more than the threads that merge them."""
    random, blocks = np.random.default_rng(1), 3 * PARTIALS + 1
    partials = random.integers(0, 1000, (2, blocks, NUMBERS))
    two = [LARGEST, SECOND_LARGEST]
    partials[..., two] = np.sort(partials[..., two])[..., ::-1]
    rows = np.zeros(2 * ROW_WIDTH, np.int64)
    finish_rows_kernel[2, PARTIALS](partials, np.array([0, 5], np.uint32), rows, 0, 1)
    for own, row in zip(partials, rows.reshape(2, -1)):
        assert row[two].tolist() == np.sort(own[:, two].ravel())[::-1][:2].tolist()
        assert row[list(ADDED)].tolist() == own[:, ADDED].sum(axis=0).tolist()
    assert rows[SPANNING::ROW_WIDTH].tolist() == [0, 5]


def compare_far(name):
    """Compare interfaces of slabs so far inside that numbers of sites and words take 64 bits."""
    for n, word in enumerate((2**26, 2**31, 2**36, 2**49)):
        # The first slab has more words than a block makes where they are shifted together.
        width, slabs = ((33, (3, 4)), (67, (17, 2)))[n % 2]
        layer = 32 * word // width - 2
        shape, boundary = (width, 2**55 // width), ("periodic", "open")
        whole = Whole(structure(name), shape, boundary, MODELS[n])
        draws = [SampleKey(generator, 5, 1, p_to_threshold(0.7)) for generator in (0, 1)]
        compare_interfaces(whole, draws, slabs, layer)
