"""Minimum spanning trees: every way on the CPU finds those bonds that they must be; readings."""

import tracemalloc
from itertools import combinations, pairwise

import numpy as np
import pytest
from helpers import BUILT_IN, PLANE, assert_z, cpu_labeler, lattice, slow_but
from tree_support import (
    COMPARED,
    bethe_lattices,
    bonds_in,
    networkx_tree,
    numbers_of,
    random_graph,
    random_keys,
    scipy_tree,
    small_lattices,
    tree_of_keys,
)

from percolab.bonds.words import GENERATORS, NEVER, PHILOX, TOP, XORWOW
from percolab.coupled.thresholds import find_thresholds
from percolab.lattices.extent import Extent
from percolab.lattices.graph import graph_topology
from percolab.lattices.topology import unpack_bits
from percolab.papers.guo2011.plain import Boruvka, Heap
from percolab.trees import new_trees
from percolab.trees.kruskal import Kruskal
from percolab.trees.kruskal_tiles import most_crossing, new_tiles
from percolab.trees.ordered_joins import order_by_all_digits
from percolab.trees.readings import TreePath, find_trunk, read_tree
from percolab.trees.weights import compute_key, given_weights, make_sample_weights

SEED = 11


def sample(number):
    return np.array([number], np.uint64)


def built(trees, generator, number):
    assert trees.build(generator, SEED, sample(number)) == 1
    (words,) = trees.words(1)
    return words


def test_trees_of_random_graphs_are_those_of_scipy_and_networkx():
    random = np.random.default_rng(1)
    for number in range(300):
        topology = random_graph(random)
        keys = random_keys(random, topology)
        expected = scipy_tree(topology, keys)
        assert networkx_tree(topology, keys) == expected, number
        for name in COMPARED:
            assert tree_of_keys(name, topology, keys) == expected, (number, name)


@pytest.mark.parametrize("name", slow_but(BUILT_IN, "square", "kagome", "cubic", "hypercubic-4d"))
def test_every_way_finds_the_same_tree_of_a_sample(name):
    for case, topology in small_lattices(name):
        reference, others = Heap(topology), [Boruvka(topology), Kruskal(topology)]
        # Tiles of a few sites have more borders than they have inside.
        others += [Kruskal(topology, tile_bits=bits) for bits in (3, 6)]
        others += [Kruskal(topology.explicit())]
        for generator in GENERATORS.values():
            expected = built(reference, generator, 2)
            for number, other in enumerate(others):
                found = built(other, generator, 2)
                np.testing.assert_array_equal(found, expected, err_msg=f"{case} {number}")


def test_every_way_finds_the_same_tree_of_a_bethe_lattice_and_it_is_all_of_it():
    for case, topology in bethe_lattices():
        for name in COMPARED:
            words = built(new_trees(name, "cpu", topology), XORWOW, 1)
            np.testing.assert_array_equal(words, topology.exists.ravel(), err_msg=f"{case} {name}")


def test_a_tree_of_many_tiles_is_that_of_another_way():
    for name, shape in (("square", (300, 290)), ("cubic", (70, 40, 40))):
        topology = lattice(name).topology(shape, ("periodic", *["open"] * (len(shape) - 1)))
        expected = built(Boruvka(topology), XORWOW, 5)
        np.testing.assert_array_equal(built(Kruskal(topology), XORWOW, 5), expected)


@pytest.mark.parametrize("digits", [0, 4, 9])
def test_bonds_with_equal_first_digits_are_ordered_by_all_digits(digits):
    mask = np.uint32((2**32 - 1) ^ (2 ** (32 - digits) - 1))
    topology = lattice("triangular").topology((12, 10), ("periodic", "open"))
    for generator in GENERATORS.values():
        weights = make_sample_weights(generator, SEED, 4)
        expected = built(Heap(topology), generator, 4)
        for each in (Kruskal(topology, tile_bits=5), Kruskal(topology.explicit())):
            built(each, generator, 4)
            each.prefixes &= mask
            each.find(weights)
            np.testing.assert_array_equal(each.words(1)[0], expected)


def test_equal_keys_are_ordered_by_the_numbers_of_the_bonds():
    random = np.random.default_rng(3)
    keys = random.integers(0, 4, 64, np.uint64) << np.uint64(40) | np.uint64(5)
    bonds, order = random.permutation(64).astype(np.uint32), np.empty(64, np.int64)
    order_by_all_digits(given_weights(keys), bonds, 64, order)
    np.testing.assert_array_equal(order, np.lexsort([bonds, keys[bonds]]))


def test_mean_weight_on_complete_graphs_tends_to_zeta_of_three():
    # Frieze (1985); the next term and the variance: Cooper et al. (2016), Janson and Waestlund.
    sites, samples = 90, 150
    topology = graph_topology(sites, list(combinations(range(sites), 2)))
    kruskal, found = Kruskal(topology), []
    for number in range(samples):
        words = built(kruskal, XORWOW, number)
        found.append(read_tree(topology, make_sample_weights(XORWOW, SEED, number), words).weight)
    expected = 1.2020569 + 0.0384956 / sites
    assert_z(np.mean(found) / 2**32, expected, np.sqrt(1.6857 / sites / samples))


def test_of_a_site_and_of_no_bonds_there_is_no_tree():
    topologies = [graph_topology(1, []), graph_topology(5, []), graph_topology(2, [(1, 1), (0, 0)])]
    topologies += [lattice("square").topology((1, 1), (kind,) * 2) for kind in ("open", "periodic")]
    for topology in topologies:
        keys = np.zeros(32 * topology.exists.size, np.uint64)
        for name in COMPARED:
            trees = new_trees(name, "cpu", topology, capacity=3)
            assert trees.capacity == 1
            assert not built(trees, XORWOW, 0).any()
            assert tree_of_keys(name, topology, keys) == []


def test_bands_of_keys_are_of_use_whatever_the_keys():
    random = np.random.default_rng(5)
    pairs = random.integers(0, 400, (6000, 2))
    topology = graph_topology(400, pairs)
    size = 32 * topology.exists.size
    for keys in (
        random.integers(0, 2**63, size, np.uint64),
        random.integers(0, 30, size, np.uint64),
        np.sort(random.integers(0, 2**63, size, np.uint64))[::-1].copy(),
        np.where(random.random(size) < 0.9, np.uint64(2**64 - 1), np.uint64(0)),
    ):
        assert tree_of_keys("kruskal", topology, keys) == tree_of_keys("heap", topology, keys)


@pytest.mark.parametrize("name", [*PLANE, "kagome", "fcc", "hypercubic-5d"])
def test_no_more_bonds_cross_the_borders_of_tiles_than_memory_is_stated_for(name):
    for case, topology in small_lattices(name):
        for bits in (0, 4, 7, 14):
            crossing = new_tiles(topology, bits).ends.size // 2
            assert crossing <= most_crossing(Extent.of_topology(topology), bits), (case, bits)


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("case", ["square", "cubic", "graph"])
def test_memory_is_stated_and_not_exceeded(name, case):
    square = lattice("square").topology((256, 254), ("periodic", "open"))
    topology = {
        "square": square,
        "cubic": lattice("cubic").topology((40, 36, 44), ("open",) * 3),
        "graph": square.explicit(),
    }[case]
    extent, keys = Extent.of_topology(topology), np.arange(32 * topology.exists.size)
    trees = new_trees(name, "cpu", topology)
    # What is compiled, or loaded, does not count.
    built(trees, XORWOW, 0)
    trees.build_given(keys.astype(np.uint64))
    for given in (False, True):
        del trees
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        trees = new_trees(name, "cpu", topology)
        if given:
            trees.build_given(keys.astype(np.uint64))
        else:
            built(trees, XORWOW, 0)
        taken = tracemalloc.get_traced_memory()[1] - before - 8 * keys.size * given
        tracemalloc.stop()
        stated = trees.memory(extent, given=given)
        assert stated.device == 0
        assert taken <= stated.host <= 2.5 * taken, (given, taken, stated.host)


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
