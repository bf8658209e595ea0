"""Trees of given weights: the edge sets and totals of networkx, scipy and a plain reference."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

import percolab
from percolab import Graph, InputError, load_lattice
from percolab.configurations.tree_files import write_tree_file
from percolab.lattices.graph_files import read_graph
from percolab.lattices.topology import unpack_bits
from percolab.trees import TREE_METHODS

BEYOND = 2**53


def random_edges(seed, *, ties):
    """Return (num_sites, pairs, weights), with loops, parallel edges, and two parts or more."""
    rng = np.random.default_rng(seed)
    num_sites, count = int(rng.integers(1, 40)), int(rng.integers(0, 120))
    half = num_sites // 2 + 1
    pairs = rng.integers(0, half, (count, 2)) + rng.integers(0, 2, (count, 1)) * (num_sites - half)
    weights = rng.integers(BEYOND, BEYOND + 9, count) if ties else rng.normal(size=count)
    return num_sites, pairs, weights


def reference_tree(num_sites, pairs, weights):
    """Return the least tree's bonds by Kruskal's algorithm in plain Python, and its weight."""
    parent = list(range(num_sites))

    def root(site):
        while parent[site] != site:
            site = parent[site]
        return site

    chosen, total = [], Fraction(0)
    for weight, (u, v) in sorted(zip(weights.tolist(), map(tuple, pairs.tolist()))):
        if root(u) != root(v):
            parent[root(u)] = root(v)
            chosen.append((min(u, v), max(u, v)))
            total += Fraction(weight)
    return chosen, total


@pytest.mark.parametrize("multi", [False, True])
def test_trees_of_random_graphs_are_those_of_networkx_and_of_a_plain_reference(multi):
    networkx = pytest.importorskip("networkx")
    for seed in range(24):
        num_sites, pairs, weights = random_edges(seed, ties=False)
        found = percolab.tree((pairs, weights), num_sites=num_sites, multi=multi)
        chosen, total = reference_tree(num_sites, pairs, weights)
        assert list(map(tuple, found.bonds.tolist())) == chosen, "in ascending order"
        assert found.weight == float(total), "the nearest float to the exact sum"
        assert found.parts == num_sites - len(chosen)
        graph = networkx.MultiGraph()
        graph.add_nodes_from(range(num_sites))
        rows = zip(*pairs.T.tolist(), weights.tolist())
        graph.add_weighted_edges_from(rows)
        theirs = networkx.minimum_spanning_tree(graph)
        ours = found.to_networkx()
        assert set(map(frozenset, theirs.edges())) == set(map(frozenset, ours.edges()))
        assert set(theirs.nodes) == set(ours.nodes)
        again = percolab.tree(graph, multi=multi)
        np.testing.assert_array_equal(again.weights, found.weights)


def test_integers_are_compared_and_added_exactly():
    for seed in range(24):
        num_sites, pairs, weights = random_edges(seed, ties=True)
        found = percolab.tree((pairs, weights), num_sites=num_sites)
        _, total = reference_tree(num_sites, pairs, weights)
        assert type(found.weight) is int
        assert found.weight == total
        assert found.weights.dtype == np.int64
    rows = [(0, 1, BEYOND + 1), (1, 2, BEYOND), (0, 2, BEYOND + 2), (2, 3, 2**62), (3, 4, 2**62)]
    assert percolab.tree(rows).weight == 2 * 2**62 + 2 * BEYOND + 1


def test_trees_of_matrices_are_those_of_scipy():
    for seed in range(24):
        num_sites, pairs, weights = random_edges(seed, ties=False)
        coo = scipy.sparse.coo_array((weights, pairs.T), (num_sites, num_sites))
        # scipy adds what is stored twice, and takes the least of (i, j) and (j, i).
        upper = scipy.sparse.triu(coo + coo.T, 1).tocsr()
        theirs = minimum_spanning_tree(upper).tocoo()
        for given in (upper, (upper + upper.T).tocsc(), upper.tocoo()):
            found = percolab.tree(given)
            mine = found.to_sparse()
            assert set(zip(mine.row, mine.col, mine.data)) == set(
                zip(theirs.row, theirs.col, theirs.data)
            )


@pytest.mark.slow
def test_the_tree_of_a_million_edges_weighs_what_scipys_does():
    """So many keys that bands are cut by a part of them; most weights occur many times."""
    rng, sites = np.random.default_rng(5), 100_000
    pairs, weights = rng.integers(0, sites, (1_000_000, 2)), rng.integers(1, 1000, 1_000_000)
    low, high = np.sort(pairs, axis=1).T
    order = np.lexsort((weights, high, low))
    first = np.flatnonzero(np.r_[1, np.diff(low[order] * sites + high[order])])
    kept = order[first]
    matrix = scipy.sparse.coo_array((weights[kept], (low[kept], high[kept])), (sites, sites))
    theirs = minimum_spanning_tree(scipy.sparse.triu(matrix, 1).tocsr().astype(float))
    found = percolab.tree((pairs, weights), num_sites=sites)
    assert (len(found.bonds), found.weight) == (theirs.nnz, int(theirs.sum()))
    _, labels = connected_components(scipy.sparse.coo_array((weights, pairs.T), (sites, sites)))
    assert found.parts == labels.max() + 1


def test_equal_weights_are_ordered_by_bond_number():
    for seed in range(20):
        num_sites, pairs, weights = random_edges(seed, ties=True)
        pairs, weights = pairs[pairs[:, 0] != pairs[:, 1]], weights[pairs[:, 0] != pairs[:, 1]]
        graph = Graph.of_bonds(num_sites, pairs)
        order = np.argsort(graph.bond_numbers())
        # Sorting is stable where the reference's rows begin with (weight, place by number).
        ranks = np.lexsort((np.arange(len(order)), weights[order])).argsort()
        chosen, _ = reference_tree(num_sites, pairs[order], ranks)
        for method, entry in TREE_METHODS.items():
            if "cpu" in entry.classes:
                found = percolab.tree(graph, weights=weights, method=method)
                assert list(map(tuple, found.bonds.tolist())) == chosen, method
                assert found.method == method


def test_a_hub_with_the_largest_number_changes_no_site_of_the_tree():
    rng = np.random.default_rng(3)
    pairs = np.array([(k, 299) for k in range(299)] + [(k, k + 1) for k in range(200)])
    weights = rng.normal(size=len(pairs))
    found = percolab.tree((pairs, weights))
    assert found.structure.inner_numbers is not None
    assert list(map(tuple, found.bonds.tolist())) == reference_tree(300, pairs, weights)[0]


def lattice_reference(topology, values):
    """Return the weight and the bonds of the least tree of a lattice by the plain reference."""
    klass, owner, other = topology.bonds().T
    flat = values.reshape(topology.num_classes, -1)[klass, owner]
    pairs = np.column_stack([owner, other])
    inside = pairs[:, 0] != pairs[:, 1]
    return reference_tree(topology.num_points, pairs[inside], flat[inside])


@pytest.mark.parametrize(
    ("name", "shape", "boundary"),
    [
        ("square", (7, 5), "open"),
        ("square", (9, 4), "periodic"),
        ("kagome", (8, 12), "periodic,open"),
        ("cubic", (5, 4, 3), "open,periodic,periodic"),
    ],
)
def test_an_array_has_a_weight_for_each_class_and_site(name, shape, boundary):
    lattice = load_lattice(name)
    kinds = tuple(boundary.split(",")) * (1 if "," in boundary else lattice.dimension)
    topology = lattice.topology(shape, kinds)
    values = np.random.default_rng(5).normal(size=(topology.num_classes, *shape[::-1]))
    exists = np.stack([unpack_bits(words, topology.num_points) for words in topology.exists])
    values[~exists.reshape(values.shape)] = np.nan
    found = percolab.tree(name, weights=values, boundary=boundary)
    chosen, total = lattice_reference(topology, values)
    assert sorted(map(tuple, found.bonds.tolist())) == sorted(chosen)
    assert found.weight == float(total)
    assert found.parts == 1
    np.testing.assert_array_equal(found.weights, np.sort(found.weights))
    # Its words are those of its bonds, wherever these are listed.
    flags = unpack_bits(found.words.ravel(), 32 * found.words.size)
    np.testing.assert_array_equal(np.flatnonzero(flags), np.sort(found.numbers))
    values[0, 0, -1] = -np.inf
    with pytest.raises(InputError, match=r"weights\[0, 0, [\d, ]+\]: weight -inf"):
        percolab.tree(name, weights=values, boundary=boundary)


@pytest.mark.parametrize("method", [name for name in TREE_METHODS if name != "prim:persistent"])
def test_a_bond_of_infinite_weight_is_in_no_tree(method):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        num_sites, pairs, weights = random_edges(seed, ties=False)
        weights[rng.random(len(weights)) < 0.4] = np.inf
        finite = weights < np.inf
        found = percolab.tree((pairs, weights), num_sites=num_sites, method=method)
        chosen, total = reference_tree(num_sites, pairs[finite], weights[finite])
        assert list(map(tuple, found.bonds.tolist())) == chosen
        assert (found.weight, found.parts) == (float(total), num_sites - len(chosen))
        values = rng.normal(size=(2, 6, 7))
        values[rng.random(values.shape) < 0.5] = np.inf
        found = percolab.tree("square", weights=values, boundary="periodic,open", method=method)
        klass, owner, other = (
            load_lattice("square").topology((7, 6), ("periodic", "open")).bonds().T
        )
        flat = values.reshape(2, -1)[klass, owner]
        there = coo_least(42, owner, other, flat)
        theirs = minimum_spanning_tree(there).tocoo()
        assert sorted(map(tuple, found.bonds.tolist())) == sorted(zip(theirs.row, theirs.col))
        assert found.parts == connected_components(there)[0]
        assert np.bitwise_count(found.words).sum() == len(found.bonds)


def coo_least(num_sites, owner, other, weights):
    """Return the finite weights, of parallel bonds the least, at (smaller, larger site)."""
    least = {}
    for pair, weight in zip(np.sort(np.column_stack([owner, other])).tolist(), weights.tolist()):
        if weight < min(np.inf, least.get(tuple(pair), np.inf)):
            least[tuple(pair)] = weight
    ends = np.array(list(least)).T
    return scipy.sparse.coo_array((list(least.values()), ends), (num_sites, num_sites)).tocsr()


def test_solid_bonds_cut_the_trunk():
    values = np.random.default_rng(2).random((2, 6, 6))
    assert percolab.tree("square", weights=values).trunk(1).size
    values[1, 2] = np.inf
    found = percolab.tree("square", weights=values)
    assert (found.parts, found.trunk(1).size) == (2, 0)
    assert found.trunk(0).size


def test_the_tree_of_a_sample_is_cut_into_its_clusters():
    for name, size, boundary in (("square", 12, "open"), ("bethe:3", 5, None), ("cubic", 5, None)):
        found = percolab.tree(name, size, seed=4, sample=7, boundary=boundary)
        assert found.parts == 1
        for p in (0.2, 0.5):
            labels = percolab.label(name, size, p, seed=4, sample=7)
            clusters = np.unique(labels).size
            assert np.count_nonzero(found.weights < p) == found.num_sites - clusters


def test_names_of_nodes_are_kept():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_weighted_edges_from([("b", (1, 2), 0), ((1, 2), "a", -0.0), ("a", "b", 5)])
    graph.add_node("alone")
    found = percolab.tree(graph)
    assert (found.weight, found.parts) == (0.0, 2)
    assert math.copysign(1, found.weights.min()) == 1
    assert set(map(frozenset, found.to_networkx().edges)) == {
        frozenset(["b", (1, 2)]),
        frozenset([(1, 2), "a"]),
    }
    assert "alone" in found.to_networkx()


def test_a_zero_is_a_weight_in_and_out():
    stored = scipy.sparse.csr_array(([0, 3, 2], [1, 2, 2], [0, 2, 3, 3]), shape=(3, 3))
    found = percolab.tree(stored)
    assert (found.bonds.tolist(), found.weight) == ([[0, 1], [1, 2]], 2)
    assert found.to_sparse().tocsr().nnz == 2


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_written_tree_is_read_as_a_graph_with_itself_as_its_tree(suffix, tmp_path):
    for ties in (False, True):
        num_sites, pairs, weights = random_edges(8, ties=ties)
        found = percolab.tree((pairs, weights), num_sites=num_sites)
        path = tmp_path / f"{ties}{suffix}"
        write_tree_file(path, found)
        data = read_graph(path, weights=True, num_sites=num_sites)
        again = percolab.tree((data.bonds, data.weights), num_sites=num_sites)
        assert sorted(again.bonds.tolist()) == sorted(found.bonds.tolist())
        assert again.weight == found.weight
        assert again.weights.dtype == found.weights.dtype


SQUARE = np.zeros((2, 4, 4))


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ([(0, 1)], {}, "a list has rows (site, site, weight)"),
        ([(0, 1, "far")], {}, "weight 'far', but a weight is a finite number"),
        ([(0, 1, None)], {}, "there is no weight"),
        ([(0, 1, float("nan"))], {}, "weight nan, but a weight is a finite number"),
        ([(0, 1, 2**63)], {}, "weight 9223372036854775808, but integers are at least"),
        ([(0, 1, BEYOND + 1), (1, 2, 0.5)], {}, "weight 9007199254740993, but next to floats"),
        ([(0, -1, 2)], {}, "a bond names site -1"),
        ([(0, 9, 2)], {"num_sites": 5}, "a bond names site 9, but sites are 0 to 4"),
        ([], {}, "names no sites"),
        (([(0, 1)], [1, 2]), {}, "2 weights for 1 bond"),
        (([(0, 1, 2)], [1]), {}, "pairs of sites are an integer array (n, 2)"),
        (np.array([[0, 1.5, 2]]), {}, "site 1.5, but sites are integers"),
        (np.array([[0, 0.5, 2], [0.5, 0, 1], [2, 1, 0]]), {}, "an array (3, 3) may be an adj"),
        (np.array([[0, 1, -np.inf]]), {}, "weight -inf, but a weight is a finite number, or inf"),
        (np.array([["0", "1", "2"]]), {}, "weights are <U1, but they must be integers"),
        ({"0": 1}, {}, "a graph is no dict"),
        (scipy.sparse.coo_array((2, 3)), {}, "a matrix of shape (2, 3), but an adjacency"),
        (scipy.sparse.coo_array(([1, 2], ([0, 1], [1, 0]))), {}, "the matrix: is not symmetric"),
        (scipy.sparse.coo_array(([1j], ([0], [1])), (2, 2)), {}, "weights are complex128, but"),
        ("square", {"weights": SQUARE[:1]}, "weights have the shape (1, 4, 4), but those of"),
        ("square", {"weights": SQUARE, "L": 5}, "those of square at L = 5 have (2, 5, 5): cl"),
        ("square", {"weights": SQUARE.astype(complex)}, "weights are complex128, but they must"),
        ("square", {"weights": SQUARE, "boundary": "torn"}, "boundary"),
        ("square", {"weights": SQUARE, "source": [1]}, "source: only a graph has it"),
        ("kagome", {"weights": np.zeros((3, 3, 3)), "boundary": "periodic"}, "not a multiple of"),
        ("square", {"weights": np.full((2, 4, 4), 2**63, np.uint64)}, "weight 9223372036854775808"),
        ("square", {}, "L = None, but a sample of square needs an integer size L"),
        ("square", {"L": 4, "method": "prin"}, "unknown tree method 'prin'; did you mean"),
        ("square", {"L": 4, "method": "prim:persistent"}, "does not run on cpu"),
        ("nowhere.csv", {}, "nowhere.csv: no such file"),
        (
            Graph.of_bonds(3, [(0, 1)]),
            {"weights": [1, 2]},
            "2 weights in the shape (2,), but graph",
        ),
        (
            Graph.of_bonds(3, [(0, 1)]),
            {"weights": [np.nan]},
            "weight nan, but a weight is a finite",
        ),
    ],
)
def test_what_has_no_tree_is_refused_in_one_line(given, options, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        percolab.tree(given, **options)
    assert "\n" not in str(caught.value)


def test_a_sum_of_weights_that_is_no_float_is_refused():
    found = percolab.tree([(0, 1, 1e308), (1, 2, 1e308)])
    with pytest.raises(InputError, match="solid bonds have inf"):
        _ = found.weight


def test_too_little_memory_is_reported_before_it_is_taken(monkeypatch):
    monkeypatch.setattr("percolab.kernels.device.Device.free_memory", lambda device: 10**6)
    with pytest.raises(InputError, match="the tree of 1000000 sites needs"):
        percolab.tree("square", 1000)
