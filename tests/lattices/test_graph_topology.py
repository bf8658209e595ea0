"""Graphs: bonds belong to their larger site, parallel bonds and self-loops are kept."""

import numpy as np
import pytest
from helpers import traced_peak

from percolab.lattices.graph import graph_topology


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
    assert topology.num_classes == 1
    assert topology.bonds().shape == (0, 3)


def test_terminals_are_one_axis_and_both_are_needed():
    assert graph_topology(5, [], source=[3, 1, 3]).num_axes == 0
    ((first, last),) = graph_topology(5, [], source=[3, 1, 3], target=[4]).end_layers
    assert (first.tolist(), last.tolist()) == ([1, 3], [4])
    assert (first.dtype, last.dtype) == (np.int32, np.int32)


def test_explicit_form_of_a_graph_is_the_graph():
    topology = graph_topology(4, [(3, 0), (3, 1), (3, 3)])
    np.testing.assert_array_equal(topology.explicit().neighbours, topology.neighbours)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.uint32, np.uint64])
def test_bonds_of_an_array_are_those_of_pairs(dtype):
    pairs = np.random.default_rng(2).integers(0, 50, (300, 2))
    of_pairs = graph_topology(50, map(tuple, pairs.tolist()), source=[3], target=[4, 5])
    of_array = graph_topology(50, pairs.astype(dtype), source=np.array([3]), target=[4, 5])
    np.testing.assert_array_equal(of_array.bonds(), of_pairs.bonds())
    np.testing.assert_array_equal(of_array.exists, of_pairs.exists)
    assert of_array.end_layers[0][1].tolist() == [4, 5]


def star(num_sites, hub):
    leaves = np.delete(np.arange(num_sites, dtype=np.int32), hub)
    return np.column_stack([np.full_like(leaves, hub), leaves])


def test_memory_is_a_few_times_that_of_the_bonds():
    bonds = star(10**6, 0)
    assert graph_topology(10**6, bonds).num_classes == 1
    assert traced_peak(lambda: graph_topology(10**6, bonds)) < 7 * bonds.nbytes


def test_hub_with_too_many_smaller_neighbours_is_refused_before_its_list_is_made():
    bonds = star(10**6, 10**6 - 1)

    def refused():
        with pytest.raises(ValueError, match=r"site 999999 has 999999 smaller.* most bonds first"):
            graph_topology(10**6, bonds)

    assert traced_peak(refused) < 4 * bonds.nbytes


def test_largest_list_of_neighbours_is_allowed(monkeypatch):
    monkeypatch.setattr("percolab.lattices.graph.MOST_NEIGHBOURS", 90)
    assert graph_topology(10, star(10, 9)).num_classes == 9
    with pytest.raises(ValueError, match="site 9 has 10 smaller neighbours"):
        graph_topology(10, np.concatenate([star(10, 9), star(10, 9)[:1]]))


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
        (9, np.zeros((2, 3), int), {}, "two sites"),
        (9, np.zeros((2, 2)), {}, "integer"),
        (3, np.array([[0, 2**64 - 1]], np.uint64), {}, "bond names site 18446744073709551615"),
    ],
)
def test_bad_graph_is_refused(sites, bonds, terminals, message):
    with pytest.raises(ValueError, match=message):
        graph_topology(sites, bonds, **terminals)
