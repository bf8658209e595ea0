"""Graph files and their weights: what is written is read back, in any format; bad weights."""

import gzip
import sys
from collections import Counter, defaultdict
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from graph_file_support import (
    EVERY_EDGE,
    MERGED,
    counted,
    expected,
    matrix_of,
    random_graph,
    refusal,
    write_mtx,
    write_networkx,
    write_npz,
    write_text,
    written,
)
from helpers import traced_peak

from percolab.errors import InputError
from percolab.lattices.graph import Graph, load_graph, read_any_graph
from percolab.lattices.graph_files import read_graph, read_sites
from percolab.lattices.graph_files.graph_data import Edges, find_edges

SEEDS = range(8)


@pytest.mark.parametrize("multi", [False, True], ids=["merged", "multi"])
@pytest.mark.parametrize("name", EVERY_EDGE)
def test_random_graphs_are_read_back(name, multi, tmp_path):
    write, knows_sites = EVERY_EDGE[name]
    for seed in SEEDS:
        num_sites, edges = random_graph(seed)
        write(tmp_path / name, num_sites, edges)
        requested = None if knows_sites else num_sites
        found = read_graph(tmp_path / name, num_sites=requested, multi=multi)
        bonds, loops, merged = expected(edges, multi=multi)
        assert (found.num_sites, found.num_loops, found.num_merged) == (num_sites, loops, merged)
        assert counted(found.bonds) == counted(bonds), seed
        assert found.names is None
        if not knows_sites:
            assert found.bonds.tolist() == bonds, "an edge list keeps order and direction"


@pytest.mark.parametrize("name", MERGED)
def test_random_graphs_without_parallel_edges_are_read_back(name, tmp_path):
    for seed in SEEDS:
        num_sites, edges = random_graph(seed)
        MERGED[name](tmp_path / name, num_sites, edges)
        found = read_graph(tmp_path / name)
        bonds, loops, _ = expected(edges, multi=False)
        assert (found.num_sites, found.num_loops) == (
            num_sites,
            len({u for u, v in edges if u == v}),
        )
        assert counted(found.bonds) == counted(bonds), (seed, loops)


def test_entries_that_repeat_an_edge_are_found_as_counting_says():
    for seed in SEEDS:
        _, edges = random_graph(seed)
        edges = [edge for edge in edges if edge[0] != edge[1]]
        array = np.array(edges, np.int32).reshape(-1, 2)
        pairs = np.sort(array, axis=1) @ [100, 1]
        for is_matrix in (False, True):
            seen, expected = Counter(), []
            for one, other in edges:
                seen[one, other] += 1
                expected.append(not is_matrix or seen[one, other] > seen[other, one])
            assert find_edges(Edges(30, array, is_matrix=is_matrix), pairs).tolist() == expected


def test_merged_edges_keep_the_place_of_the_first(tmp_path):
    path = written(tmp_path / "a.txt", "3 1\n0 2\n1 3\n2 2\n0 2\n0 1\n")
    found = read_graph(path)
    assert found.bonds.tolist() == [[3, 1], [0, 2], [0, 1]]
    assert (found.num_sites, found.num_loops, found.num_merged) == (4, 1, 2)
    assert found.notes[0] == "1 self-loop left out: a bond to its own site joins nothing"
    assert [note.split(" ")[0] for note in found.notes] == ["1", "2"]
    assert read_graph(path, multi=True).bonds.tolist() == [[3, 1], [0, 2], [1, 3], [0, 2], [0, 1]]


def test_a_matrix_states_an_edge_once_or_twice(tmp_path):
    text = "%%MatrixMarket matrix coordinate pattern general\n3 3 6\n1 2\n2 1\n1 2\n3 2\n2 2\n2 1\n"
    found = read_graph(written(tmp_path / "a.mtx", text))
    assert (found.bonds.tolist(), found.num_merged, found.num_loops) == ([[0, 1], [2, 1]], 1, 1)
    found = read_graph(tmp_path / "a.mtx", multi=True)
    assert (found.bonds.tolist(), found.num_merged) == ([[0, 1], [0, 1], [2, 1]], 0)


@pytest.mark.parametrize(
    ("entries", "is_told"),
    [("1 2\n3 2", True), ("1 2\n2 3", False), ("1 2\n2 1", False), ("2 1\n1 1", False)],
    ids=["both sides", "upper half", "symmetric", "diagonal"],
)
def test_a_matrix_that_is_not_symmetric_is_told_to_be(tmp_path, entries, is_told):
    lines = f"3 3 {entries.count(chr(10)) + 1}\n{entries}\n"
    path = written(tmp_path / "a.mtx", f"%%MatrixMarket matrix coordinate pattern general\n{lines}")
    note = "is not symmetric, but a bond has no direction: entry (i, j) alone is bond i - j"
    assert (note in read_graph(path).notes) == is_told


@pytest.mark.parametrize("mark", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
def test_a_table_of_gephi_says_that_its_edges_are_directed(tmp_path, mark):
    note = "is directed, but a bond has no direction: u to v and v to u are one bond, u - v"
    for kind, is_told in (("Directed", True), ("Undirected", False)):
        text = f"Source,Target,Type,Weight\nJon,Arya,{kind},1\nArya,Bran,{kind},2\n"
        path = written(tmp_path / "a.csv", text.replace(",", mark))
        assert (note in read_graph(path).notes) == is_told


def test_matrix_of_many_sites_without_bonds(tmp_path):
    path, header = tmp_path / "a.mtx", "%%MatrixMarket matrix coordinate pattern general"
    written(path, f"{header}\n2000000 2000000 3\n9 7\n7 9\n1 2000000\n")
    found = read_graph(path, num_sites=2 * 10**6)
    assert (found.num_sites, found.num_merged) == (2 * 10**6, 0)
    assert found.bonds.tolist() == [[8, 6], [0, 1999999]]


def test_zeros_are_edges_but_not_in_the_blocks_of_bsr(tmp_path):
    text = "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 0.0\n"
    assert read_graph(written(tmp_path / "a.mtx", text)).bonds.tolist() == [[0, 1]]
    matrix = scipy.sparse.csr_array(([0.0], [1], [0, 1, 1]), shape=(2, 2))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    assert read_graph(tmp_path / "a.npz").bonds.tolist() == [[0, 1]]
    scipy.sparse.save_npz(tmp_path / "b.npz", scipy.sparse.bsr_array(matrix_of(4, [[0, 2]])))
    assert read_graph(tmp_path / "b.npz").bonds.tolist() == [[0, 2]]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_marks_comments_quotes_and_line_ends_are_read(newline, ending, tmp_path):
    lines = ["\ufeff# Müller", "", "source,target,weight", "10,2,1", ' 3 , "14",inf', "%", "2,3,"]
    path = written(tmp_path / f"a.{ending}", newline.join(lines))
    assert read_graph(path).bonds.tolist() == [[10, 2], [3, 14], [2, 3]]


@pytest.mark.parametrize(
    ("text", "bonds"),
    [
        ("0 1 {'weight': 3, 'b': 4}\n", [[0, 1]]),
        ("007 1 nano\n", [[7, 1]]),
        ("0;1;nix\n2 ; 3\n", [[0, 1], [2, 3]]),
        ('"","from","to"\n"1",4,5\n', [[4, 5]]),
        ("Source Target\n0 1\n", [[0, 1]]),
        ('0,1,"a\n2,3,b"\n4,5\n', [[0, 1], [2, 3], [4, 5]]),
        ("u,v,a\n0,1,nan\n", [[0, 1]]),
        ("source,other\n5,6\n", [[5, 6]]),
        ("source,target,label\n0,1,nan\n", [[0, 1]]),
        ("0\t1\t\n1\t2", [[0, 1], [1, 2]]),
        ("\t0\t1\n\t1\t2\n", [[0, 1], [1, 2]]),
        ("\tfrom\tto\n0\t5\t6\n1\t6\t7\n", [[5, 6], [6, 7]]),
    ],
)
def test_columns_are_found(text, bonds, tmp_path):
    assert read_graph(written(tmp_path / "a.csv", text)).bonds.tolist() == bonds


def test_a_named_column_of_weights_that_is_not_read_has_a_note(tmp_path):
    path = written(tmp_path / "a.csv", "a,b,w\nx,y,1\ny,z,2\n")
    assert read_graph(path, columns="a,b,w").notes == ("columns not used: w",)
    assert read_graph(path, columns="a,b,w", weights=True).notes == ()


def test_sites_without_bonds_need_their_number(tmp_path):
    path = written(tmp_path / "a.txt", "# nothing\n")
    assert read_graph(path, num_sites=7).num_sites == 7
    assert read_graph(written(path, "5 5\n")).num_sites == 6
    assert "site 0" in read_graph(written(path, "1 2\n")).notes[0]
    assert read_graph(written(path, "0 1999999\n"), num_sites=2 * 10**6).num_sites == 2 * 10**6


@pytest.mark.parametrize(
    ("text", "may_be_lists"),
    [
        ("0 1 2\n1 2 3\n2 3 0\n3 4\n", True),
        ("a b c\nb c d\nd a\n", True),
        ("0 1 2\n0 2 1\n1 2 1\n", False),
        ("0 1 5\n1 2 5\n", False),
        ("a b 1\nb c 2\n", False),
        ("source target weight\n0 1 1\n1 2 1\n", False),
        ("0 1 1\n", False),
    ],
)
def test_what_may_be_lists_of_neighbours_is_read_with_a_note(text, may_be_lists, tmp_path):
    path = written(tmp_path / "a.txt", text)
    lines = text.splitlines()
    found = read_graph(path)
    assert len(found.bonds) == len(lines) - text.startswith("source")
    assert ("read_adjlist" in " ".join(found.notes)) == may_be_lists
    if not text[0].isalpha() and len({len(line.split()) for line in lines}) == 1:
        assert read_graph(path, weights=True).notes == ()


def test_names_are_kept_where_they_are_not_numbers(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("Ann", "Bo"), ("Bo", "7"), ("Ann", "Ann")])
    networkx.write_graphml(graph, tmp_path / "a.graphml")
    networkx.write_gml(graph, tmp_path / "a.gml")
    for name in ("a.graphml", "a.gml"):
        found = read_graph(tmp_path / name)
        assert found.names == ("Ann", "Bo", "7")
        assert (counted(found.bonds), found.num_loops) == (counted([[0, 1], [1, 2]]), 1)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("A1 7\nA2 7\n", ("A1", "7", "A2")),
        ("source target\n1 2\n2 Ann\n", ("1", "2", "Ann")),
        ("source,target\n1,A1\n2,A1\n", ("1", "A1", "2")),
    ],
)
def test_numbers_are_names_beside_names(tmp_path, text, names):
    found = read_graph(written(tmp_path / "a.txt", text))
    assert found.names == names
    if "2 Ann" in text:
        assert found.notes == (
            "sites are read as names: line 3: site 'Ann', but sites are integers 0 to 2147483583",
        )


def test_numbered_names_are_numbers_in_any_order(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([(2, 0), (0, 1)])
    networkx.write_gml(graph, tmp_path / "a.gml")
    found = read_graph(tmp_path / "a.gml")
    assert (found.names, counted(found.bonds)) == (None, counted([[0, 2], [0, 1]]))


def test_labels_that_do_not_tell_sites_apart_are_no_names(tmp_path):
    nodes = 'node [ id 3 label "x" ] node [ id 5 label "x" ]'
    path = written(tmp_path / "a.gml", f"graph [ {nodes} edge [ source 5 target 3 ] ]")
    assert read_graph(path).names == ("3", "5")


def test_parallel_edges_without_ids_are_counted(tmp_path):
    edges = "<edge source='a' target='b'/><edge source='b' target='a'/>"
    text = f"<graph edgedefault='undirected'><node id='a'/><node id='b'/>{edges}</graph>"
    namespace = "http://graphml.graphdrawing.org/xmlns"
    path = written(tmp_path / "a.graphml", f"<graphml xmlns='{namespace}'>{text}</graphml>")
    assert read_graph(path).num_merged == 1
    assert len(read_graph(path, multi=True).bonds) == 2


def test_missing_networkx_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ValueError, match=r"a\.gml: GML is read through networkx.*not installed"):
        read_graph(written(tmp_path / "a.gml", "graph []"))


@pytest.mark.slow
def test_memory_is_a_few_times_that_of_the_edges(tmp_path):
    rng = np.random.default_rng(6)
    path = tmp_path / "a.txt"
    np.savetxt(path, rng.integers(0, 10**5, (10**6, 2)), fmt="%d")
    assert read_graph(path, multi=True).bonds.nbytes > 7 * 10**6
    assert traced_peak(lambda: read_graph(path, multi=True)) < 56 * 10**6


def test_bonds_are_read_only(tmp_path):
    found = read_graph(written(tmp_path / "a.txt", "0 1\n"))
    assert found.bonds.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        found.bonds[0, 0] = 5


@pytest.mark.parametrize("text", ["0,5,17", " 17 5,0, 5 ", "0,\t5\n17"])
def test_sites_of_a_list(text):
    found = read_sites(text, 18)
    assert (found.tolist(), found.dtype) == ([0, 5, 17], np.int32)


def test_sites_of_a_file(tmp_path):
    path = written(tmp_path / "left.txt", b"\xef\xbb\xbf# left\r\n17\t\r\n  % x\r\n\r\n5, 0\r\n5")
    assert read_sites(path, 18).tolist() == read_sites(str(path), 18).tolist() == [0, 5, 17]
    path = written(tmp_path / "left.gz", "".join(f"{site}\n" for site in range(1000)))
    assert read_sites(path, 1000).tolist() == list(range(1000))
    assert gzip.decompress(path.read_bytes()).startswith(b"0\n1\n")


OF_WEIGHTS = range(6)
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
    found = defaultdict(list)
    for (u, v), weight in zip(np.asarray(bonds).tolist(), np.asarray(weights).tolist()):
        found[min(u, v), max(u, v)].append(weight)
    return {pair: sorted(values) for pair, values in found.items()}


def expected_weights(rows, *, multi):
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
    for seed in OF_WEIGHTS:
        num_sites, rows = weighted_edges(seed, integers=integers)
        FILES[name](tmp_path / name, num_sites, rows)
        options = {"num_sites": num_sites} if text else {}
        for multi in (False, True):
            found = read_graph(tmp_path / name, multi=multi, weights=True, **options)
            assert weights_by_pair(found.bonds, found.weights) == expected_weights(
                rows, multi=multi
            ), seed
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


def graphml(kind, value, edges="undirected"):
    return GRAPHML.format(kind, edges, f'<data key="w">{value}</data>')


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
            "line 1: 'from,to,w', but weights need a column 'weight'",
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
        ("a.graphml", graphml("double", 1, "directed"), "is directed, but weights are of bonds"),
        ("a.graphml", graphml("string", "far"), "edge a - b: weight 'far', but a weight is a fin"),
        ("a.graphml", graphml("double", "-INF"), "edge a - b: weight -inf, but a weight is a fin"),
        ("a.graphml", graphml("boolean", "true"), "edge a - b: weight 'True', but a weight is a"),
        ("a.graphml", graphml("long", 2**63), "edge a - b: weight 9223372036854775808, but integ"),
        ("a.gml", "graph [ directed 1 node [ id 0 ] node [ id 1 ] ]", "is directed"),
    ],
)
def test_bad_weights_are_refused_in_one_line(name, text, message, tmp_path):
    refusal(written(tmp_path / name, text), message, weights=True)


def test_bad_weights_in_npz_are_refused_in_one_line(tmp_path):
    path = tmp_path / "a.npz"
    for values, message in (
        ([1.0, -np.inf], r"entry \(1, 2\): weight -inf, but a weight is a finite number"),
        ([1.0, np.nan], "a value is NaN, but a weight is a number"),
        (np.array([1, 2**63], np.uint64), "weight 9223372036854775808, but integers are"),
        (np.array([1, 2], np.longdouble), "values are float128, but they must be"),
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
