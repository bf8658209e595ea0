"""Guo's Prim and its primitive on a real GPU, compared with sorted bonds and Prim on the CPU."""

import numpy as np
import pytest
from helpers import lattice
from prim_support import (
    assert_given_trees,
    assert_sampled_trees,
    random_graph,
    tied_keys,
    topologies,
)

from percolab.trees import new_trees

pytestmark = pytest.mark.gpu

CASES = dict(topologies())
WAYS = ("rounds", "plain", "shared", "memory")


def made(way, topology, capacity=1):
    """Return trees found in one of the ways."""
    from percolab.papers.guo2011.prim_cuda import PersistentPrim, PrimCuda

    if way in ("rounds", "plain"):
        return PrimCuda(topology, capacity, primitive=way == "rounds")
    return PersistentPrim(topology, capacity, most_shared=0 if way == "memory" else None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_trees_are_those_of_sorted_bonds(name, way):
    trees = made(way, CASES[name], 3)
    assert_given_trees(trees, CASES[name], np.random.default_rng(6), (1, 2, 5, 1000))
    assert_sampled_trees(trees, CASES[name])


@pytest.mark.parametrize("way", WAYS)
def test_random_graphs_with_few_and_many_ties(way):
    rng = np.random.default_rng(7)
    for sites, bonds, kinds in rng.integers([1, 0, 1], [700, 3000, 12], (20, 3)):
        topology = random_graph(rng, int(sites), int(bonds))
        assert_given_trees(made(way, topology), topology, rng, (kinds,) * 3)


#: One group and many, one group a lane and several; with candidates in shared memory, beyond what
#: is plainly allowed too, and in device memory.
@pytest.mark.parametrize("sites", [31, 1025, 5000, 16384, 18500, 40000])
def test_large_graphs_equal_the_cpu(sites):
    rng = np.random.default_rng(sites)
    topology = random_graph(rng, sites, 10 * sites)
    cpu = new_trees("prim", "cpu", topology)
    trees = new_trees("prim:persistent", "cuda", topology, capacity=3)
    one_by_one = new_trees("prim", "cuda", topology)
    keys = np.stack([tied_keys(topology, rng, 1000) for _ in range(3)])
    trees.build_each_given(keys)
    for own, words in zip(keys, trees.words(3), strict=True):
        cpu.build_given(own)
        np.testing.assert_array_equal(words[None], cpu.words(1))
    one_by_one.build_given(own)
    np.testing.assert_array_equal(one_by_one.words(1), cpu.words(1))


def test_a_lattice_of_several_blocks_equals_the_cpu():
    topology = lattice("kagome").topology((66, 34), ("periodic", "open"))
    samples = np.arange(5, dtype=np.uint64)
    cpu = new_trees("prim", "cpu", topology)
    trees = new_trees("prim:persistent", "cuda", topology, capacity=5)
    trees.build(0, 3, samples)
    for sample, words in zip(samples, trees.words(5), strict=True):
        cpu.build(0, 3, sample[None])
        np.testing.assert_array_equal(words[None], cpu.words(1))


def test_minima_of_any_length():
    from percolab.papers.guo2011.min_reduction import MinReduction, cuda

    rng, reduction = np.random.default_rng(8), MinReduction()
    for length in (1, 31, 33, 256, 257, 32767, 32769, 10**6 + 1):
        for kinds in (1, 3, 2**40):
            keys = 2**64 - 1 - rng.integers(0, kinds, length, np.uint64)
            numbers = 2**32 - 1 - rng.integers(0, min(kinds, 1000), length, np.uint32)
            place = np.lexsort((np.arange(length), numbers, keys))[0]
            found = reduction.of(cuda.to_device(keys), cuda.to_device(numbers))
            assert found == (keys[place], numbers[place], place)
