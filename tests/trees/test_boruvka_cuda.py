"""Trees on CUDA equal those of a plain reference, bit for bit: in the simulator and on a GPU."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import LATTICES, lattice, needs_cuda
from kernel_report_support import load_report
from tree_support import assert_equal_sums, keys_of_sample, tree_words

from percolab.bonds.words import GENERATORS
from percolab.lattices.bethe import bethe_topology
from percolab.lattices.extent import Extent
from percolab.lattices.graph import graph_topology
from percolab.trees.weights import values_to_keys

#: By dimension: across tiles and words, whole tiles, narrower than a tile, and smaller than one.
SHAPES = {
    1: ((2100,), (5,)),
    2: ((131, 68), (64, 64), (34, 2), (2, 130), (2, 2)),
    3: ((33, 9, 17), (16, 8, 8), (2, 40, 3)),
    4: ((7, 5, 6, 8),),
}


def reference_tree(topology, generator, seed, samples):
    keys = [keys_of_sample(generator, seed, sample, topology) for sample in samples]
    return np.array([tree_words(topology, each) for each in keys])


def assert_equal_trees(topology, generator, *, count=3, **options):
    """Assert that trees of three batches, the last by a captured graph, are the reference's."""
    from percolab.trees.boruvka_cuda import BoruvkaCuda
    from percolab.trees.readings_cuda import ReadingsBatch

    trees = BoruvkaCuda(topology, count, **options)
    readings = ReadingsBatch(trees)
    for first in (5, 50, 500):
        samples = np.arange(first, first + count, dtype=np.uint64)
        assert trees.build(generator, 2**63 + 1, samples) == count
        np.testing.assert_array_equal(
            trees.words(count), reference_tree(topology, generator, 2**63 + 1, samples)
        )
        assert_equal_sums(readings.read(count), trees, generator, 2**63 + 1, samples)


@pytest.mark.gpu
@pytest.mark.parametrize("boundary", ["open", "periodic"])
@pytest.mark.parametrize("name", LATTICES)
def test_trees_of_lattices_equal_the_reference(name, boundary):
    item = lattice(name)
    for number, shape in enumerate(SHAPES[item.dimension]):
        # A shape holds whole cells.
        shape = tuple(-(-n // cell) * cell for n, cell in zip(shape, item.cell, strict=True))
        topology = item.topology(shape, (boundary,) * item.dimension)
        assert_equal_trees(topology, list(GENERATORS.values())[number % 2])
        assert_equal_trees(topology, GENERATORS["xorwow"], tiled=False)


def graphs():
    rng = np.random.default_rng(1)
    yield graph_topology(3000, rng.integers(0, 3000, (20000, 2)))
    yield graph_topology(3000, rng.integers(0, 3000, (2000, 2)))
    yield graph_topology(5, [(0, 0), (1, 2), (2, 1), (2, 1)])
    yield graph_topology(1, [(0, 0)])
    yield bethe_topology(9)


@pytest.mark.gpu
@pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)
def test_trees_of_graphs_equal_the_reference(generator):
    for topology in graphs():
        assert_equal_trees(topology, generator)


def given_keys(size, rng):
    """Yield keys that tie in all digits, in their first ones, and hardly ever; and sorted ones."""
    few = rng.integers(0, 3, size).astype(np.uint64)
    yield few
    yield few << np.uint64(50) | rng.integers(0, 3, size).astype(np.uint64)
    yield values_to_keys(rng.integers(1, 1001, size))
    yield values_to_keys(rng.standard_normal(size))
    yield np.zeros(size, np.uint64)
    yield np.arange(size, dtype=np.uint64)[::-1].copy()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["square", "cubic"])
def test_lists_without_room_are_made_anew(name, monkeypatch):
    from percolab.trees import boruvka_cuda

    monkeypatch.setattr(boruvka_cuda, "estimate_undecided_bonds", lambda points: 0)
    item = lattice(name)
    topology = item.topology((70, 40, 20)[: item.dimension], ("open",) * item.dimension)
    assert_equal_trees(topology, GENERATORS["xorwow"])


@pytest.mark.gpu
def test_trees_of_given_keys_equal_the_reference():
    from percolab.trees.boruvka_cuda import BoruvkaCuda

    rng = np.random.default_rng(2)
    topologies = [
        lattice("square").topology((67, 130), ("periodic", "open")),
        lattice("cubic").topology((20, 17, 9), ("periodic",) * 3),
        *graphs(),
    ]
    for topology in topologies:
        trees = BoruvkaCuda(topology, 2)
        for keys in given_keys(32 * topology.exists.size, rng):
            assert trees.build_given(keys) == 1
            np.testing.assert_array_equal(trees.words(1)[0], tree_words(topology, keys))
        # Samples and given keys take turns.
        samples = np.array([1, 2], np.uint64)
        trees.build(0, 3, samples)
        np.testing.assert_array_equal(trees.words(2), reference_tree(topology, 0, 3, samples))
        trees.build_given(keys)
        np.testing.assert_array_equal(trees.words(1)[0], tree_words(topology, keys))


@needs_cuda
@pytest.mark.parametrize(
    ("name", "threshold"), [("square", 0.5), ("honeycomb", 0.6527), ("cubic", 0.2488)]
)
def test_light_bonds_are_more_than_the_threshold(name, threshold):
    from percolab.trees.boruvka_cuda import largest_light_prefix

    item = lattice(name)
    topology = item.topology((12,) * item.dimension, ("periodic",) * item.dimension)
    assert 1.1 < largest_light_prefix(topology) / 2**32 / threshold < 1.25


@needs_cuda
def test_all_bonds_of_a_chain_or_of_few_are_light():
    from percolab.trees.boruvka_cuda import largest_light_prefix

    chain = replace(graph_topology(3, [(0, 1), (1, 2)]), shape=(3,))
    for topology in (chain, graph_topology(3, [(0, 1)]), graph_topology(2, [])):
        assert largest_light_prefix(topology) == 2**32 - 1


@needs_cuda
@pytest.mark.parametrize("name", ["square", "cubic", "graph"])
def test_memory_is_what_is_allocated(name):
    report = load_report()
    topology = (
        next(graphs())
        if name == "graph"
        else lattice(name).topology({"square": (130, 70), "cubic": (20, 17, 9)}[name], None)
    )
    made = []
    with report.on_host([], "memory", lambda array: made.append(array.nbytes)):
        from percolab.trees.boruvka_cuda import BoruvkaCuda

        trees = BoruvkaCuda(topology, 3)
        trees.build_given(np.zeros(32 * topology.exists.size, np.uint64))
    said = BoruvkaCuda.memory(Extent.of_topology(topology), 3, given=True).device
    # Of a graph all places of its list of neighbours are counted.
    assert (0.4 if name == "graph" else 0.8) * said <= sum(made) <= said + 100
