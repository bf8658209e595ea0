"""Guo's Prim on the CPU: its trees are those of plainly sorted bonds, bond for bond."""

import numpy as np
import pytest
from prim_support import assert_given_trees, assert_sampled_trees, random_graph, topologies

from percolab.lattices.extent import Extent
from percolab.papers.guo2011.prim import compressed_adjacency
from percolab.trees import new_trees

CASES = dict(topologies())


@pytest.mark.parametrize("name", CASES)
def test_trees_are_those_of_sorted_bonds(name):
    topology = CASES[name]
    trees = new_trees("prim", "cpu", topology)
    assert_given_trees(trees, topology, np.random.default_rng(3), (1, 2, 5, 1000))
    assert_sampled_trees(trees, topology)


def test_random_graphs_with_few_and_many_ties():
    rng = np.random.default_rng(4)
    for sites, bonds, kinds in rng.integers([1, 0, 1], [30, 90, 12], (200, 3)):
        topology = random_graph(rng, int(sites), int(bonds))
        assert_given_trees(new_trees("prim", "cpu", topology), topology, rng, (kinds,))


def test_adjacency_lists_every_bond_at_both_its_ends():
    topology = CASES["parallel"]
    graph = compressed_adjacency(topology)
    k, owner, other = topology.bonds().T
    numbers = 32 * topology.num_words * k + owner
    expected = {(n, a, b) for n, a, b in zip(numbers, owner, other) if a != b}
    expected |= {(n, b, a) for n, a, b in expected}
    sites = np.repeat(np.arange(topology.num_points), np.diff(graph.starts.astype(int)))
    assert set(zip(graph.numbers[graph.ranks], sites, graph.ends)) == expected
    assert graph.halves == len(expected)


def test_memory_counts_the_arrays():
    topology = random_graph(np.random.default_rng(5), 1000, 4000)
    trees = new_trees("prim", "cpu", topology)
    stored = sum(part.nbytes for part in (*trees._graph, trees._keys, trees._where, trees._r3))
    memory = type(trees).memory(Extent.of_topology(topology))
    assert stored <= memory.host
    assert memory.device == 0
