"""Weights in graph files: what is written is read back, bond by bond; bad ones in one line."""

from collections import defaultdict
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from graph_file_support import (
    random_graph,
    refusal,
    write_mtx,
    write_networkx,
    write_npz,
    write_text,
    written,
)

from percolab.errors import InputError
from percolab.lattices.graph import Graph, load_graph, read_any_graph
from percolab.lattices.graph_files import read_graph

SEEDS = range(6)
BEYOND = 2**53 + 1


def weighted_edges(seed, *, integers):
    """Return (num_sites, rows (u, v, weight)) with loops, parallel edges, zeros and signs."""
    num_sites, edges = random_graph(seed)
    rng = np.random.default_rng(1000 + seed)
    if integers:
        drawn = rng.integers(-3, 4, len(edges)) * rng.choice([1, BEYOND], len(edges))
        return num_sites, [(u, v, int(w)) for (u, v), w in zip(edges, drawn)]
    drawn = rng.normal(size=len(edges)) * rng.choice([0.0, 1.0, 1e-300, 1e200], len(edges))
    drawn[rng.random(len(edges)) < 0.1] = np.inf
    return num_sites, [(u, v, float(w)) for (u, v), w in zip(edges, drawn)]


def weights_by_pair(bonds, weights):
    """Return the weights, ascending, of every pair of sites."""
    found = defaultdict(list)
    for (u, v), weight in zip(np.asarray(bonds).tolist(), np.asarray(weights).tolist()):
        found[min(u, v), max(u, v)].append(weight)
    return {pair: sorted(values) for pair, values in found.items()}


def expected(rows, *, multi):
    kept = [row for row in rows if row[0] != row[1]]
    found = weights_by_pair([row[:2] for row in kept], [row[2] for row in kept])
    return found if multi else {pair: values[:1] for pair, values in found.items()}


FILES = {
    "a.csv": partial(write_text, header="To,x,weight,From", row='{1},a,"{2!r}",{0}'),
    "a.txt.gz": partial(write_text, header="# u v w", row="{} {}\t{!r} more", newline="\r\n"),
    "half.mtx": partial(write_mtx, halves="lower", kind="{} symmetric"),
    "both.mtx": partial(write_mtx, halves="both", kind="{} general"),
    "half.npz": partial(write_npz, halves="lower"),
    "both.npz": write_npz,
    "a.graphml": write_networkx,
    "a.gml": write_networkx,
}


@pytest.mark.parametrize("integers", [True, False], ids=["integers", "floats"])
@pytest.mark.parametrize("name", FILES)
def test_random_weights_are_read_back(name, integers, tmp_path):
    text = not name.endswith(("mtx", "npz", "ml"))
    for seed in SEEDS:
        num_sites, rows = weighted_edges(seed, integers=integers)
        FILES[name](tmp_path / name, num_sites, rows)
        options = {"num_sites": num_sites} if text else {}
        for multi in (False, True):
            found = read_graph(tmp_path / name, multi=multi, weights=True, **options)
            assert weights_by_pair(found.bonds, found.weights) == expected(rows, multi=multi), seed
            assert found.weights.dtype == (np.int64 if integers or not rows else np.float64)
            plain = read_graph(tmp_path / name, multi=multi, **options)
            assert plain.weights is None
            np.testing.assert_array_equal(found.bonds, plain.bonds)


def test_the_graph_of_a_file_is_the_same_with_its_weights(tmp_path):
    path = written(tmp_path / "a.csv", "0,1,5\n1,2,-7\n0,1,3\n2,2,1\n")
    graph, data = read_any_graph(path, "0", "2", weights=True)
    assert graph.digest == load_graph(path, source="0", target="2").digest
    assert data.weights.tolist() == [3, -7]
    assert data.notes[1].endswith("one bond for each pair of sites with the least weight")
    assert load_graph(path).notes[1].endswith("one bond for each pair of sites")


def test_infinite_weights_are_for_trees_and_invasions_alone(tmp_path):
    path = written(tmp_path / "a.csv", "0,1,inf\n1,2,+Infinity\n0,2,3\n")
    graph, data = read_any_graph(path, weights=True)
    assert data.weights.tolist() == [np.inf, np.inf, 3.0]
    with pytest.raises(
        InputError, match=r"a\.csv: weight inf, but the weights of a study are finite"
    ):
        graph.with_weights(data.weights)


def test_explicit_zeros_are_weights_and_minus_zero_is_zero(tmp_path):
    path = written(tmp_path / "a.csv", "0,1,-0.0\n1,2,-0\n2,3,+.0e5\n3,4,1d-400\n")
    found = read_graph(path, weights=True).weights
    assert found.tolist() == [0.0] * 4
    assert not np.signbit(found).any()
    stored = scipy.sparse.csr_array(([0.0, -0.0], [1, 2], [0, 1, 2, 2]), shape=(3, 3))
    scipy.sparse.save_npz(tmp_path / "a.npz", stored)
    found = read_graph(tmp_path / "a.npz", weights=True)
    assert found.bonds.tolist() == [[0, 1], [1, 2]]
    assert not np.signbit(found.weights).any()
    header = "%%MatrixMarket matrix coordinate real general"
    path = written(tmp_path / "a.mtx", f"{header}\n3 3 2\n1 2 0.0\n2 1 -0.0\n")
    assert read_graph(path, weights=True).weights.tolist() == [0.0]


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
def test_integers_stay_exact_to_the_last_digit(value, tmp_path):
    for name in ("a.csv", "a.mtx", "a.npz", "a.gml", "a.graphml"):
        rows = [(0, 1, value), (1, 2, value - np.sign(value).item())]
        {**FILES, "a.mtx": FILES["half.mtx"], "a.npz": FILES["half.npz"]}[name](
            tmp_path / name, 3, rows
        )
        found = read_graph(tmp_path / name, weights=True)
        assert found.weights.tolist() == [row[2] for row in rows], name


MTX = "%%MatrixMarket matrix coordinate"
GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="w" for="edge" attr.name="weight" attr.type="{}"/><graph edgedefault="{}">
<node id="a"/><node id="b"/><edge source="a" target="b">{}</edge></graph></graphml>"""


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "0,1,2\n1,2,nan\n", "line 2: weight 'nan', but a weight is a number"),
        ("a.csv", "0,1,2\n\n1,2,-inf\n", "line 3: weight '-inf', but a weight is a finite number"),
        ("a.csv", "0,1,1e999\n", "line 1: weight '1e999', but a weight is a finite number"),
        ("a.csv", "0,1,2\n1,2,\n", "line 2: '1,2,', but there is no weight in column 3"),
        ("a.txt", "0 1\n1 2 3\n", "line 1: '0 1', but there is no weight in column 3"),
        ("a.csv", "0,1,far\n", "line 1: weight 'far', but a weight is a finite number"),
        ("a.csv", "0,1,1_0\n", "line 1: weight '1_0', but a weight is a finite number"),
        ("a.csv", "0,1,.\n", "line 1: weight '.', but a weight is a finite number"),
        ("a.csv", "0,1,1e\n", "line 1: weight '1e', but a weight is a finite number"),
        ("a.csv", "0,1,0x10\n", "line 1: weight '0x10', but a weight is a finite number"),
        ("a.csv", "2,2,far\n", "line 1: weight 'far', but a weight is a finite number"),
        (
            "a.csv",
            "from,to,w\n0,1,2\n",
            "line 1: 'from,to,w', but a header names a column 'weight'",
        ),
        ("a.csv", f"0,1,{2**63}\n", "line 1: weight '9223372036854775808', but integers are"),
        ("a.csv", f"0,1,{-(2**63) - 1}\n", "line 1: weight '-9223372036854775809', but integers"),
        ("a.csv", f"0,1,{10**30}\n", "line 1: weight '1000000000000000000000000000000', but int"),
        ("a.csv", f"0,1,1\n1,2,{BEYOND}\n0,2,.5\n", f"line 2: weight {BEYOND}, but next to"),
        ("a.csv", "# none\n", "names no sites"),
        ("a.csv", "", "is empty"),
        ("a.mtx", f"{MTX} pattern general\n2 2 1\n1 2\n", "line 1: is a pattern, whose bonds"),
        ("a.mtx", f"{MTX} real general\n2 2 1\n1 2 -inf\n", "line 3: weight '-inf', but a weight"),
        ("a.mtx", f"{MTX} real general\n2 2 1\n1 2 +-1\n", "line 3: weight .* a finite number"),
        (
            "a.mtx",
            f"{MTX} real general\n3 3 3\n1 2 1\n2 3 4.5\n3 2 4\n",
            r"is not symmetric: entry \(2, 3\) is 4.5, entry \(3, 2\) is 4.0, but a bond has one",
        ),
        ("a.graphml", GRAPHML.format("double", "undirected", ""), "edge a - b: there is no weight"),
        (
            "a.graphml",
            GRAPHML.format("double", "directed", '<data key="w">1</data>'),
            "is directed, but weights are of bonds",
        ),
        (
            "a.graphml",
            GRAPHML.format("string", "undirected", '<data key="w">far</data>'),
            "edge a - b: weight 'far', but a weight is a finite number",
        ),
        (
            "a.graphml",
            GRAPHML.format("double", "undirected", '<data key="w">-INF</data>'),
            "edge a - b: weight -inf, but a weight is a finite number",
        ),
        (
            "a.graphml",
            GRAPHML.format("boolean", "undirected", '<data key="w">true</data>'),
            "edge a - b: weight 'True', but a weight is a finite number",
        ),
        (
            "a.graphml",
            GRAPHML.format("long", "undirected", f'<data key="w">{2**63}</data>'),
            "edge a - b: weight 9223372036854775808, but integers are",
        ),
        ("a.gml", "graph [ directed 1 node [ id 0 ] node [ id 1 ] ]", "is directed"),
    ],
)
def test_bad_weights_are_refused_in_one_line(name, text, message, tmp_path):
    if name.endswith("ml"):
        pytest.importorskip("networkx")
    refusal(written(tmp_path / name, text), message, weights=True)


def test_bad_weights_in_npz_are_refused_in_one_line(tmp_path):
    path = tmp_path / "a.npz"
    for values, message in (
        ([1.0, -np.inf], r"entry \(1, 2\): weight -inf, but a weight is a finite number"),
        ([1.0, np.nan], "a value is NaN, but a weight is a number"),
        (np.array([1, 2**63], np.uint64), "weight 9223372036854775808, but integers are"),
        (
            np.array([1, 2], np.longdouble),
            "values are float128, but they must be",
        ),
    ):
        scipy.sparse.save_npz(path, scipy.sparse.coo_array((values, ([0, 1], [1, 2])), (3, 3)))
        refusal(path, ".*" + message, weights=True)
    both = scipy.sparse.coo_array(([1, 2], ([0, 1], [1, 0])), (2, 2))
    scipy.sparse.save_npz(path, both)
    refusal(path, r"is not symmetric: entry \(0, 1\) is 1, entry \(1, 0\) is 2", weights=True)
    read_graph(path)


def test_entries_of_a_matrix_repeat_each_other_in_any_order(tmp_path):
    rows = ["1 2 5", "2 1 5", "1 2 7", "2 1 7", "2 1 1"]
    path = written(tmp_path / "a.mtx", f"{MTX} integer general\n2 2 5\n" + "\n".join(rows) + "\n")
    assert read_graph(path, weights=True, multi=True).weights.tolist() == [5, 7, 1]
    assert read_graph(path, weights=True).weights.tolist() == [1]
    rows[:2] = rows[1::-1]
    rows[2:4] = rows[3:1:-1]
    written(path, f"{MTX} integer general\n2 2 5\n" + "\n".join(rows) + "\n")
    assert sorted(read_graph(path, weights=True, multi=True).weights.tolist()) == [1, 5, 7]
    rows = ["1 2 5", "1 2 7", "2 1 7", "2 1 5"]
    written(path, f"{MTX} integer general\n2 2 4\n" + "\n".join(rows) + "\n")
    assert read_graph(path, weights=True, multi=True).weights.tolist() == [5, 7]
    rows = ["1 2 5", "1 2 7", "2 1 8", "2 1 5", "2 1 1"]
    written(path, f"{MTX} integer general\n2 2 5\n" + "\n".join(rows) + "\n")
    refusal(
        path, r"is not symmetric: entry \(1, 2\) is 5, 7, entry \(2, 1\) is 8, 5, 1", weights=True
    )


@pytest.mark.parametrize("seed", [2, 4, 5, 13])
@pytest.mark.parametrize("hub", [False, True])
def test_bond_numbers_lead_to_the_sites_of_every_bond(seed, hub):
    num_sites, edges = random_graph(seed)
    pairs = [edge for edge in edges if edge[0] != edge[1]]
    if hub:
        num_sites += 60
        pairs += [[k, num_sites - 1] for k in range(num_sites - 1)]
    graph = Graph.of_bonds(num_sites, np.array(pairs, int).reshape(-1, 2))
    assert (graph.inner_numbers is not None) == hub
    topology = graph.topology((num_sites,))
    inner = graph.inner_numbers if hub else np.arange(num_sites)
    outer = np.argsort(inner)
    numbers = graph.bond_numbers()
    assert np.unique(numbers).size == len(pairs) == topology.num_bonds
    klass, owner = np.divmod(numbers, 32 * topology.num_words)
    other = topology.neighbours[klass, owner]
    found = np.sort(np.column_stack([outer[owner], outer[other]]), axis=1)
    np.testing.assert_array_equal(found, np.sort(np.array(pairs).reshape(-1, 2), axis=1))


def test_a_graph_without_bonds_has_no_bond_numbers():
    assert Graph.of_bonds(3, []).bond_numbers().tolist() == []
