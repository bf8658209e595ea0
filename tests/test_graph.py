"""Graphs: bonds belong to their larger site, parallel bonds and self-loops are kept."""

import numpy as np
import pytest
from helpers import EXACT_GRAPHS, exact

from percolab.graph import graph_topology


def test_bonds_belong_to_the_larger_site_in_the_order_given():
    topology = graph_topology(4, [(3, 0), (0, 1), (1, 3), (2, 3)])
    assert topology.bonds().tolist() == [[0, 1, 0], [0, 3, 0], [1, 3, 1], [2, 3, 2]]


def test_many_bonds_of_a_site_keep_their_order():
    pairs = np.random.default_rng(1).integers(0, 20, (500, 2)).tolist()
    bonds = graph_topology(20, pairs).bonds()
    for site in range(20):
        expected = [min(pair) for pair in pairs if max(pair) == site]
        assert bonds[bonds[:, 1] == site, 2].tolist() == expected


def test_parallel_bonds_and_self_loops_are_kept():
    topology = graph_topology(3, [(0, 1), (1, 0), (2, 2), (0, 1)])
    assert topology.bonds().tolist() == [[0, 1, 0], [0, 2, 2], [1, 1, 0], [2, 1, 0]]
    assert (topology.num_sites, topology.num_bonds, topology.num_classes) == (3, 4, 3)


def test_graph_without_bonds_has_sites():
    topology = graph_topology(40, [])
    assert (topology.num_sites, topology.num_bonds, topology.num_words) == (40, 0, 2)
    assert topology.bonds().shape == (0, 3)


def test_terminals_are_one_axis_and_both_are_needed():
    assert graph_topology(5, [], source=[3, 1, 3]).num_axes == 0
    ((first, last),) = graph_topology(5, [], source=[3, 1, 3], target=[4]).end_layers
    assert (first.tolist(), last.tolist()) == ([1, 3], [4])
    assert (first.dtype, last.dtype) == (np.int32, np.int32)


def test_explicit_form_of_a_graph_is_the_graph():
    topology = graph_topology(4, [(3, 0), (3, 1), (3, 3)])
    np.testing.assert_array_equal(topology.explicit().neighbours, topology.neighbours)


@pytest.mark.parametrize("name", EXACT_GRAPHS)
def test_graph_keeps_all_bonds(name):
    known = exact(name)
    pairs = [tuple(edge[:2]) for edge in known["edges"]]
    found = graph_topology(known["V"], pairs).bonds()[:, 1:].tolist()
    assert sorted(map(sorted, found)) == sorted(map(sorted, pairs))


@pytest.mark.parametrize(
    ("sites", "bonds", "terminals", "message"),
    [
        (0, [], {}, "a graph has 1 to"),
        (2**31, [], {}, "a graph has 1 to"),
        (3, [(0, 3)], {}, "bond names site 3; sites are 0 to 2"),
        (3, [(-1, 0)], {}, "bond names site -1"),
        (3, [], {"source": [3], "target": [0]}, "source names site 3"),
        (3, [], {"source": [0], "target": [-1]}, "target names site -1"),
        (3, [], {"source": [2**40], "target": [0]}, "source names site 1099511627776"),
        (9, [(0, 1, 2), (3, 4, 5)], {}, "two sites"),
        (9, [(0.5, 1)], {}, "integer"),
    ],
)
def test_bad_graph_is_refused(sites, bonds, terminals, message):
    with pytest.raises(ValueError, match=message):
        graph_topology(sites, bonds, **terminals)
