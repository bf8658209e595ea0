"""Guo's Prim on the CPU: its trees are those of a plain judge, bond for bond."""

import numpy as np
import pytest
from helpers import assert_simulated
from prim_support import judged_words, random_graph, sample_keys, tied_keys, topologies

from percolab.lattices.extent import Extent
from percolab.papers.guo2011.prim import compressed_adjacency
from percolab.trees import new_trees

CASES = dict(topologies())


@pytest.mark.parametrize("name", CASES)
def test_trees_are_those_of_the_judge(name):
    topology = CASES[name]
    trees = new_trees("prim", "cpu", topology)
    rng = np.random.default_rng(3)
    for kinds in (1, 2, 5, 1000):
        keys = tied_keys(topology, rng, kinds)
        assert trees.build_given(keys) == 1
        np.testing.assert_array_equal(trees.words(1), judged_words(topology, keys))
    for generator in (0, 1):
        trees.build(generator, 2**63 + 5, np.array([7], np.uint64))
        wanted = judged_words(topology, sample_keys(topology, generator, 2**63 + 5, 7))
        np.testing.assert_array_equal(trees.words(1), wanted)


def test_random_graphs_with_few_and_many_ties():
    rng = np.random.default_rng(4)
    for sites, bonds, kinds in rng.integers([1, 0, 1], [30, 90, 12], (200, 3)):
        topology = random_graph(rng, int(sites), int(bonds))
        keys = tied_keys(topology, rng, int(kinds))
        trees = new_trees("prim", "cpu", topology)
        trees.build_given(keys)
        np.testing.assert_array_equal(trees.words(1), judged_words(topology, keys))


def test_adjacency_lists_every_bond_at_both_its_ends():
    topology = CASES["parallel"]
    graph = compressed_adjacency(topology)
    k, owner, other = topology.bonds().T
    numbers = 32 * topology.num_words * k + owner
    wanted = {(n, a, b) for n, a, b in zip(numbers, owner, other) if a != b}
    wanted |= {(n, b, a) for n, a, b in wanted}
    sites = np.repeat(np.arange(topology.num_points), np.diff(graph.starts.astype(int)))
    assert set(zip(graph.numbers[graph.ranks], sites, graph.ends)) == wanted
    assert graph.halves == len(wanted)


@pytest.mark.parametrize(
    "part", ["minima", pytest.param("rounds", marks=pytest.mark.slow), "persistent"]
)
def test_kernels_in_the_simulator_equal_the_reference(part):
    assert_simulated("papers/guo2011/simulated_prim.py", part)


def test_memory_counts_the_arrays():
    topology = random_graph(np.random.default_rng(5), 1000, 4000)
    trees = new_trees("prim", "cpu", topology)
    held = sum(part.nbytes for part in (*trees._graph, trees._keys, trees._where, trees._r3))
    memory = type(trees).memory(Extent.of_topology(topology))
    assert held <= memory.host
    assert memory.device == 0
