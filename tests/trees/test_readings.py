"""What is read off a tree: weights, degrees, the path between two sides, and T on it."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import PLANE, cpu_labeler, lattice
from tree_support import bethe_lattices, bonds_in, numbers_of, small_lattices

from percolab.bonds.words import GENERATORS, NEVER, PHILOX, TOP, XORWOW
from percolab.coupled.thresholds import find_thresholds
from percolab.lattices.graph import graph_topology
from percolab.lattices.topology import unpack_bits
from percolab.trees.kruskal import Kruskal
from percolab.trees.readings import TreePath, find_trunk, read_tree
from percolab.trees.weights import compute_key, given_weights, make_sample_weights

SEED = 11


def tree_of(topology, generator, number):
    kruskal = Kruskal(topology)
    kruskal.build(generator, SEED, np.array([number], np.uint64))
    return make_sample_weights(generator, SEED, number), kruskal.words(1)[0]


def ends_of(topology):
    """Return the two ends of every bond by its number."""
    return dict(zip(numbers_of(topology).tolist(), topology.bonds()[:, 1:].tolist()))


def key(weights, bond):
    return int(compute_key(weights, np.uint32(bond)))


def plain_trunk(topology, weights, axis):
    """Return the path of the tree with both sides contracted, from all bonds, by plain Python."""
    first, last = (set(layer.tolist()) for layer in topology.end_layers[axis])
    ends = {
        bond: ["first" if i in first else "last" if i in last else i for i in pair]
        for bond, pair in ends_of(topology).items()
    }
    clusters, paths = {}, {}
    for bond in sorted(ends, key=lambda bond: (key(weights, bond), bond)):
        i, j = ends[bond]
        one, other = clusters.setdefault(i, {i}), clusters.setdefault(j, {j})
        if one is other:
            continue
        # How to come from each site to every other one of its cluster.
        for a in one:
            for b in other:
                way = paths.get((a, i), ()) + (bond,) + paths.get((j, b), ())
                paths[a, b] = paths[b, a] = way
                paths[b, a] = way[::-1]
        one |= other
        for site in other:
            clusters[site] = one
    return paths.get(("first", "last"))


@pytest.mark.parametrize("name", [*PLANE, "kagome", "cubic"])
def test_readings_are_what_plain_python_counts(name):
    for case, topology in small_lattices(name):
        for generator in GENERATORS.values():
            weights, words = tree_of(topology, generator, 3)
            bonds, ends = bonds_in(words), ends_of(topology)
            keys = [key(weights, bond) for bond in bonds]
            found = read_tree(topology, weights, words)
            assert found.bonds == len(bonds) == topology.num_sites - 1, case
            assert found.weight == sum((k + 2**30) // 2**31 for k in keys), case
            assert (
                found.weights.tolist()
                == np.bincount([k >> 57 for k in keys], minlength=64).tolist()
            )
            degrees = np.bincount(
                [site for bond in bonds for site in ends[bond]], minlength=topology.num_points
            )
            degrees = degrees[unpack_bits(topology.occupied, topology.num_points)]
            assert found.degrees.tolist() == np.bincount(degrees).tolist(), case
            assert tuple(found.paths) == topology.open_axes


@pytest.mark.parametrize("name", ["square", "kagome"])
def test_the_trunk_is_the_path_of_the_tree_with_both_sides_contracted(name):
    topology = lattice(name).topology((8, 6), ("open", "periodic"))
    for number in range(4):
        weights, words = tree_of(topology, XORWOW, number)
        expected = sorted(plain_trunk(topology, weights, 0))
        trunk = find_trunk(topology, weights, words, 0)
        assert trunk.tolist() == expected
        assert set(expected) <= set(bonds_in(words))
        path = read_tree(topology, weights, words).paths[0]
        largest = max(expected, key=lambda bond: key(weights, bond))
        assert path == TreePath(key(weights, largest) + 1, len(expected), largest)


def test_the_largest_weight_of_the_trunk_is_the_spanning_threshold():
    topologies = [case for name in (*PLANE, "kagome", "cubic") for case in small_lattices(name)]
    for number, (case, topology) in enumerate([*topologies, *bethe_lattices()]):
        generator, samples = number % 2, np.arange(2, dtype=np.uint64)
        labeler = cpu_labeler("raster", topology)
        expected = find_thresholds(labeler, generator, SEED, samples, (0, TOP))
        for sample in samples.tolist():
            paths = read_tree(topology, *tree_of(topology, generator, sample)).paths
            found = [path.threshold for path in paths.values()]
            assert found == expected[sample].tolist(), case


def test_sides_that_are_not_connected_have_no_path_and_those_that_meet_an_empty_one():
    apart = graph_topology(6, [(0, 1), (1, 2), (3, 4), (4, 5)], source=[0], target=[5])
    weights, words = tree_of(apart, PHILOX, 1)
    found = read_tree(apart, weights, words)
    assert (found.bonds, found.paths) == (4, {0: None})
    assert find_trunk(apart, weights, words, 0).size == 0
    thresholds = find_thresholds(
        cpu_labeler("raster", apart), PHILOX, SEED, np.array([1], np.uint64), (0, TOP)
    )
    assert thresholds.tolist() == [[NEVER]]
    thin = lattice("square").topology((1, 6))
    paths = read_tree(thin, *tree_of(thin, XORWOW, 1)).paths
    assert paths[0] == TreePath(0, 0, -1)
    assert paths[1].length == 5


def test_a_tree_of_given_keys_has_a_path_and_no_weights():
    # Two ways around a ring of ten: the one with the smaller largest key, though it is longer.
    bonds = [*pairwise(range(10)), (9, 0)]
    topology = graph_topology(10, bonds, source=[0], target=[3])
    keys = np.zeros(32 * topology.exists.size, np.uint64)
    by_ends = {frozenset(pair): bond for bond, pair in ends_of(topology).items()}
    for value, pair in enumerate(bonds):
        keys[by_ends[frozenset(pair)]] = value
    keys[by_ends[frozenset((1, 2))]] = 2**63 + 7
    kruskal = Kruskal(topology)
    kruskal.build_given(keys)
    found = read_tree(topology, given_weights(keys), kruskal.words(1)[0])
    assert (found.bonds, found.weight, found.weights.any()) == (9, 0, False)
    assert found.paths == {0: TreePath(10, 7, by_ends[frozenset((9, 0))])}


def test_a_graph_without_sides_has_no_paths():
    topology = graph_topology(4, [(0, 1), (1, 2), (2, 0)])
    found = read_tree(topology, *tree_of(topology, XORWOW, 0))
    assert (found.bonds, found.paths) == (2, {})
    assert found.degrees.tolist() == [1, 2, 1]
