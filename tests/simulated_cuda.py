"""Runs the CUDA labelers in CUDA's simulator, compared with the reference.

The simulator's blocks are tiny, so that a few dozen sites meet the edges of blocks and words.
"""

from unittest.mock import patch

import numpy as np
from helpers import (
    CUDA_LABELERS,
    assert_cuda_equals_cpu,
    assert_gyration_equal,
    assert_openings_equal,
    assert_vacant_counts_equal,
    cpu_labeler,
    cuda_coupling,
    items_of,
    lattice,
    probabilities,
)

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS, NEVER, TOP
from percolab.coupled import tiled as tiled_cuda
from percolab.coupled.thresholds import find_thresholds
from percolab.labelers.forest import Reading
from percolab.labelers.tiled import labeler as tiled_labeler
from percolab.labelers.tiled.one_tile import TILE_NODES
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import SPANNING

#: One shape an open, a periodic and a mixed boundary each.
SHAPES = {
    2: ((47, 3), (10, 6), (2, 4)),
    3: ((3, 4, 5), (2, 2, 2), (2, 3, 7)),
    4: ((2, 1, 3, 5), (2, 2, 2, 1)),
}


def topologies(name):
    """Yield topologies: few and small shapes, computed and explicit."""
    if name == "graph":
        bonds = [(i, (7 * i + 3) % 50) for i in range(50)] + [(4, 4), (1, 2), (2, 1)]
        yield graph_topology(50, bonds, source=[0, 1], target=[49])
        return
    item = lattice(name)
    mixed = ("periodic", *("open",) * (item.dimension - 1))
    boundaries = (("open",) * item.dimension, ("periodic",) * item.dimension, mixed)
    for shape, boundary in zip(SHAPES[item.dimension], boundaries):
        topology = item.topology(shape, boundary)
        yield topology
        yield topology.explicit()
    if max(item.cell) == 1:
        # Of one site.
        yield item.topology((1,) * item.dimension, ("periodic",) * item.dimension)


def compare_bonds(name):
    """Compare words, rows, labels and T of bond percolation."""
    ps = (0.35, 0.6) if name == "graph" else probabilities(name)[2:4]
    generators = list(GENERATORS.values())
    cases = list(topologies(name))
    # Others have lists of neighbours as well.
    for number, topology in enumerate(cases[::2] if name == "square" else cases):
        for labeler in CUDA_LABELERS:
            assert_cuda_equals_cpu(
                labeler,
                topology,
                items_of(ps),
                reference="reference",
                generator=generators[number % len(generators)],
                capacity=min(topology.num_points, 2),
                tally=number % 2 == 0,
            )
    compare_tiles(name)
    if name == "square":
        compare_opening_periodic_bonds(name)
        # Sites are joined to the second along the row, too.
        topology = load_lattice("square:1-3").topology((9, 6), ("open", "periodic"))
        assert_cuda_equals_cpu("tiled", topology, items_of((0.2, 0.7)), capacity=2)


#: What is drawn in addition to bonds, in turn.
SITE_MODELS = (
    Model.parse("site"),
    Model.parse("site-bond"),
    Model.parse("site-bond:site=0.9"),
    Model.parse("site-bond:bond=0.8"),
)


def compare_models(name, models=SITE_MODELS):
    """Compare rows, labels and T where sites are drawn too, on a small shape and over tiles."""
    dimension = 0 if name == "graph" else lattice(name).dimension
    # An open one and a periodic one, whatever the number of models.
    small = list(topologies(name))[: 4 : 4 // len(models)]
    for number, model in enumerate(models):
        usual = items_of((0.5, 0.8), samples=2)
        cases = [(each, small[number % len(small)], usual) for each in CUDA_LABELERS]
        if dimension and number < 2:
            shape, kind = TILED_SHAPES[dimension][-1], ("open", "periodic")[number % 2]
            large = lattice(name).topology(shape, (kind,) * dimension)
            cases.append(("tiled", large, items_of((0.7, 0.704, 0.71))))
        for labeler, topology, items in cases:
            assert_cuda_equals_cpu(labeler, topology, items, generator=number % 2, model=model)
        if dimension and number == 0:
            compare_thresholds(name, shape, model)
        assert_vacant_counts_equal(small[number % len(small)], model, number % 2, steps=34)


def compare_two_models(name):
    """Compare half of these models."""
    compare_models(name, SITE_MODELS[::2])


#: Shapes of several tiles, in the simulator's size, not all of them whole.
#: In three dimensions and more, rows of the last are short: axes are joined to fill words.
TILED_SHAPES = {
    2: ((66, 6), (34, 4)),
    3: ((31, 3, 6), (34, 3, 6)),
    4: ((31, 2, 2, 5), (7, 5, 3, 4)),
}


def compare_tiles(name):
    """Compare the tiled labeler over a narrow grid of p, which one labeling serves."""
    dimension = 0 if name == "graph" else lattice(name).dimension
    shapes = TILED_SHAPES.get(dimension, ())
    # One lattice on all shapes is enough: the simulator is slow, and a GPU tries them all.
    for shape in shapes if name in ("square", "cubic", "hypercubic_4d") else shapes[-1:]:
        for kind in ("open", "periodic"):
            middle = probabilities(name)[2]
            topology = lattice(name).topology(shape, (kind,) * dimension)
            assert_cuda_equals_cpu(
                "tiled",
                topology,
                items_of((middle - 0.01, middle, middle + 0.015)),
                capacity=3,
                tally=kind == "open",
            )
        compare_thresholds(name, shape)


def compare_opening_periodic_bonds(name):
    """Compare what wraps where it begins to by periodic bonds that open along the grid.

    The narrower the torus, the more often that is so; a tile may have more openings than usual,
    so that one labeling serves the whole grid.
    """
    usual, tiled_cuda._MOST_OPENINGS = tiled_cuda._MOST_OPENINGS, TILE_NODES
    topology = lattice(name).topology((18, 3), ("periodic", "periodic"))
    device = cuda_coupling("tiled", topology, capacity=3)
    host = cpu_labeler("reference", topology)
    items = items_of((0.1, 0.3, 0.5), samples=3)
    found, expected = (each.rows(GENERATORS["xorwow"], 5, *items) for each in (device, host))
    np.testing.assert_array_equal(found, expected, err_msg="openings across periodic boundaries")
    assert len(set(expected[:, SPANNING].tolist())) > 1, "choose another seed"
    tiled_cuda._MOST_OPENINGS = usual


def compare_thresholds(name, shape, model=BOND):
    """Compare T with what the CPU finds, in narrow windows about the T of one sample each."""
    boundary = ("open", *("periodic",) * (len(shape) - 2), "open")
    topology = lattice(name).topology(shape, boundary)
    device = cuda_coupling("tiled", topology, model, capacity=2)
    generator, numbers = GENERATORS["xorwow"], np.arange(3, dtype=np.uint64)
    host = cpu_labeler("raster", topology, model)
    expected = find_thresholds(host, generator, 5, numbers, (0, TOP))
    spanning = [number for number in expected[:, 0].tolist() if number != NEVER]
    assert spanning, "choose another seed"
    for inside in spanning[: max(4 - len(shape), 1)]:
        low, high = inside - TOP // 400, inside + TOP // 1000
        assert high - low <= device.widest_window
        windows = (np.full(3, limit, np.uint64) for limit in (low, high))
        found = device.scan_windows(generator, 5, numbers, *windows)
        clipped = np.where(expected > high, NEVER, np.maximum(expected, low).astype(np.uint64))
        np.testing.assert_array_equal(found, clipped, err_msg=f"{shape}, {boundary}: T")


def compare_short_lists(name):
    """Compare where a list in a kernel is too short: it is filled again, or all is done p by p."""
    topology, samples = lattice(name).topology((66, 6)), np.arange(3, dtype=np.uint64)
    items = items_of((0.48, 0.5, 0.52), samples=3)
    host, generator = cpu_labeler("raster", topology), GENERATORS["philox"]
    expected = host.rows(generator, 5, *items)
    with patch.object(tiled_labeler, "_LISTED", 1):
        device = cuda_coupling("tiled", topology, capacity=2)
        np.testing.assert_array_equal(device.rows(generator, 5, *items), expected)
        compare_thresholds(name, topology.shape)
    with patch.object(tiled_cuda, "isqrt", lambda openings: -(openings + 14) // 8):
        device = cuda_coupling("tiled", topology, capacity=2)
        overflows = not device.enqueue_grid(generator, 5, samples[:2], items[1][:3])
        assert overflows, "choose another seed"
        np.testing.assert_array_equal(device.rows(generator, 5, *items), expected)
        compare_thresholds(name, topology.shape)


def compare_given(name):
    """Compare labels of given open bonds, and rows of samples at one p each, in whole batches."""
    topology = lattice(name).topology((34, 4), ("periodic", "open"))
    host, generator = cpu_labeler("raster", topology), GENERATORS["xorwow"]
    samples, thresholds = items_of((0.5,), samples=5)
    expected = host.rows(generator, 1, samples, thresholds)
    given = []
    for sample in samples[:2]:
        host.open_bonds(generator, 1, sample, thresholds[0])
        given.append((host.opened, host.label()))
    for labeler in CUDA_LABELERS:
        device = cuda_coupling(labeler, topology, capacity=2)
        count = device.labeler.batch.load(np.array([opened for opened, _ in given]))
        found = device.labeler.join(count, Reading.LABELS).labels()
        np.testing.assert_array_equal(found, [labels for _, labels in given])
        found = device.rows(generator, 1, samples, thresholds)
        np.testing.assert_array_equal(found, expected, err_msg=labeler)


def compare_many_blocks(name):
    """Compare where many blocks of threads add to the same numbers."""
    topology = lattice(name).topology((130, 14), ("open", "periodic"))
    for labeler in CUDA_LABELERS:
        for model, p in ((BOND, 0.5), (Model.parse("site"), 0.6)):
            assert_cuda_equals_cpu(
                labeler,
                topology,
                items_of((p,), samples=2),
                generator=GENERATORS["philox"],
                model=model,
                tally=model == BOND,
            )
    compare_thresholds(name, (130, 14))


def compare_batches(name):
    """Compare given bonds, lists that are too short, and many blocks of threads."""
    compare_given(name)
    compare_short_lists(name)
    compare_many_blocks(name)


def compare_gyration(name):
    """Compare how far clusters reach, on a torus, with an open axis, and where sites are drawn."""
    shape = {2: (12, 4), 3: (6, 4, 2), 4: (3, 4, 2, 3)}[load_lattice(name).dimension]
    mixed = ("periodic",) * (len(shape) - 1) + ("open",)
    torus, opened = ("periodic",) * len(shape), ("open",) * len(shape)
    assert_gyration_equal("tiled", name, shape, torus)
    assert_gyration_equal("four_step", name, shape, mixed, Model.parse("site"))
    assert_gyration_equal("label_equivalence", name, shape, opened)


def compare_openings(name):
    """Compare the openings of every labeler, of models in turn, and over tiles along a grid."""
    models = [BOND, *SITE_MODELS]
    small = list(topologies(name))[:4]
    for number, model in enumerate(models):
        labeler, topology = CUDA_LABELERS[number % len(CUDA_LABELERS)], small[number % len(small)]
        assert_openings_equal(labeler, topology, model, (0.5, 0.8), generator=number % 2)
    if name == "square":
        torus = lattice(name).topology((66, 4), ("periodic",) * 2)
        for number, text in enumerate(("bond", "bond:y=0.3")):
            ps = (0.6, 0.605, 0.61)
            assert_openings_equal("tiled", torus, Model.parse(text), ps, generator=number % 2)
