"""Graphs as people have them: headers, names, further columns, and objects of Python."""

import json
from pathlib import Path

import h5py
import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse
from cli_support import answer, refusal, run
from helpers import slow

import percolab
from percolab.configurations.directed import PARTS
from percolab.errors import InputError
from percolab.lattices.graph import Graph, load_graph, make_graph
from percolab.lattices.graph_files import read_graph

#: The same graph, as the world writes it: a triangle and a tail, a - b - c - a and c - d.
NUMBERS = "0 1\n1 2\n0 2\n2 3\n"
WILD = {
    "snap.txt": "# Undirected graph (each edge is saved twice)\n# Nodes: 4 Edges: 4\n"
    "# FromNodeId\tToNodeId\n0\t1\n1\t0\n1\t2\n2\t1\n0\t2\n2\t3\n",
    "out.konect": "% sym unweighted\n% 4 4 4\n1 2 \n2 3 \n1 3 \n3 4 \n",
    "gephi.csv": "Source,Target,Type,Id,Label,timeset,Weight\n"
    "a,b,Undirected,0,,,1.0\nb,c,Undirected,1,,,2.0\na,c,Undirected,2,,,1.0\n"
    "c,d,Undirected,3,,,3.0\n",
    "frame.csv": ",from,to,weight\n0,a,b,1\n1,b,c,2\n2,a,c,1\n3,c,d,3\n",
    "frame.tsv": "\tfrom\tto\n0\ta\tb\n1\tb\tc\n2\ta\tc\n3\tc\td\n",
    "quoted.csv": '"node1";"node2"\n"a";"b"\n"b";"c"\n"a";"c"\n"c";"d"\n',
    "plain.txt": "a b\nb c\na c\nc d\n",
    "tabs.tsv": "Source\tTarget\nJon Snow\tArya Stark\nArya Stark\tSansa Stark\n"
    "Jon Snow\tSansa Stark\nSansa Stark\tBran\n",
    "graph.gml": "Creator \"by hand\"\ngraph [\n  directed 0\n"
    + "".join(f'  node [ id {n} label "{name}" ]\n' for n, name in enumerate("abcd"))
    + "".join("  edge [ source {} target {} value 1 ]\n".format(*line.split())
              for line in NUMBERS.splitlines())
    + "]\n",
    "graph.graphml": '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n<graph edgedefault="undirected">\n'
    + "".join(f'<node id="{name}"/>' for name in "abcd")
    + "".join(f'<edge source="{u}" target="{v}"/>' for u, v in ("ab", "bc", "ac", "cd"))
    + "</graph></graphml>\n",
}  # fmt: skip


def shape_of(graph):
    """Return what does not depend on names or numbers: the sorted degrees of connected sites."""
    degrees = np.bincount(graph.content.pairs.ravel(), minlength=graph.num_sites)
    return sorted(degrees[degrees > 0].tolist())


@pytest.mark.parametrize("name", WILD)
def test_files_from_the_wild_are_read(name):
    Path(name).write_text(WILD[name])
    graph = load_graph(name)
    assert graph.num_bonds == 4
    assert shape_of(graph) == [1, 2, 2, 3]
    expected = None if name in ("snap.txt", "out.konect") else ("a", "b", "c", "d")
    if name == "tabs.tsv":
        expected = ("Jon Snow", "Arya Stark", "Sansa Stark", "Bran")
    assert graph.names == expected
    notes = {"gephi.csv": ("columns not used: Type, Id, Label, timeset",), "plain.txt": ()}
    if name in notes:
        assert graph.notes == notes[name]


FLOWS = "from_node,to_node,flow\nA,B,5\nB,C,3\nC,D,1\n"
AS_HEADER = (
    "line 1 is read as a header: sites are in the columns from_node and to_node; columns "
    "not used: flow",
)


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        (FLOWS, AS_HEADER),
        (FLOWS.translate(str.maketrans("ABCD", "0123")), AS_HEADER),
        # No number tells, but the words stand nowhere else.
        ("from_node,to_node,flow\nA,B,x\nB,C,y\nC,D,x\n", AS_HEADER),
        ("id_a id_b\nA B\nB C\nC D\n",
         ("line 1 is read as a header: sites are in the columns id_a and id_b",)),
        # These first lines are bonds.
        ("A,B,?\nB,C,5\nC,D,1\n", ()),
        ("A,B,5\nB,C,3\nC,D,1\n", ()),
        ("E,F,5\nA,B,3\nB,A,1\n", ()),
        ("A,B\nC,B\nC,D\n", ()),
        ("A,B\nC,D\nE,F\n",
         ("line 1, 'A,B', is read as a bond; if it is a header, name the columns of the sites in "
          "it (--columns)",)),
        ("A,B\nC,D\nC,E\nA,A\n", ()),
        ("A,B\nC,C\nC,E\nD,E\n", ()),
    ],
)  # fmt: skip
def test_a_header_of_any_words_is_no_bond(text, notes):
    Path("a.csv").write_text(text)
    graph = load_graph("a.csv")
    assert graph.num_bonds == (2 if "B,A" in text else 3)
    found = tuple(note for note in graph.notes if "loop" not in note and "merged" not in note)
    assert found == notes
    assert not {"from_node", "id_a"} & set(graph.names or ())


@pytest.mark.parametrize(
    ("text", "names", "weights"),
    [
        ("Room 1\tRoom 2\t0.5\nRoom 2\tHall\t3\n", ("Room 1", "Room 2", "Hall"), [0.5, 3]),
        ("from room\tto room\tweight\nRoom 1\tRoom 2\t5\n", ("Room 1", "Room 2"), [5]),
        ("Hall\tRoom 1\t2\n", ("Hall", "Room 1"), [2]),
        ("0 1\t0.5\n1 2\t3\n", None, [0.5, 3]),
        ("0 1\t5 more\n", None, [5]),
        ("0\t1\t0.5\n", None, [0.5]),
    ],
)
def test_names_between_tabs_may_end_in_numbers(text, names, weights):
    Path("a.tsv").write_text(text)
    found = read_graph("a.tsv", weights=True)
    assert (found.names, found.weights.tolist()) == (names, weights)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("first", ["New York", "5 High Street"])
def test_names_of_several_words_need_no_header(first, mark):
    edges = (first, "Boston", "3"), ("Los Angeles", first, "4")
    Path("named.csv").write_text("".join(mark.join(edge) + "\n" for edge in edges))
    data = read_graph("named.csv", weights=True)
    assert data.names == (first, "Boston", "Los Angeles")
    assert data.bonds.tolist() == [[0, 1], [2, 0]]
    assert data.weights.tolist() == [3, 4]


def test_what_networkx_writes_of_edges_is_no_name():
    Path("edges.txt").write_text("a b {'weight': 4, 'x': 1}\nb c {'weight': 3, 'x': 1}\n")
    assert read_graph("edges.txt").names == ("a", "b", "c")


def test_what_is_read_as_a_header_is_always_told(caplog):
    Path("a.csv").write_text(FLOWS)
    line = f"a.csv: {AS_HEADER[0]}\n"
    options = ("--graph", "a.csv", "-p", 0.5, "--samples", 10, "--device", "cpu")
    assert run("sweep", *options, "--quiet").stderr == line
    assert run("label", "--graph", "a.csv").stderr == line
    caplog.clear()
    percolab.label(graph="a.csv")
    assert [(item.levelname, item.getMessage() + "\n") for item in caplog.records] == [
        ("WARNING", line)
    ]


def test_columns_of_an_edge_list_are_chosen_by_name():
    Path("a.csv").write_text("kind,km,b,a\nroad,3,y,x\nroad,4,z,y\n")
    graph = load_graph("a.csv", columns="a,b")
    assert (graph.names, graph.num_bonds) == (("x", "y", "z"), 2)
    output = answer("tree", "--graph", "a.csv", "--weights", "file", "--columns", "a,b,km")
    assert "weight 7\n" in output
    assert percolab.tree("a.csv", columns=["a", "b", "km"]).weight == 7
    Path("study.toml").write_text('graph = "a.csv"\ncolumns = ["a", "b"]\np = 0.5\nsamples = 10\n')
    assert "a.csv: 3 sites, 2 bonds" in answer("sweep", "study.toml")
    assert "3 sites" in answer("label", "--graph", "a.csv", "--columns", "b,a")
    options = ("--columns", "b,a", "--source", "x", "--stop", "all", "--json")
    record = json.loads(answer("invade", "--graph", "a.csv", *options))
    assert record["sizes"][0]["invaded"]["mean"] == 3


WEIGHTS = {"weights": True}
ABB = "a,b,b\nx,y,z\n"


def test_columns_belong_to_tables_of_edges():
    Path("m.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    requested = ("--columns", "a,b")
    assert "m.mtx: only edge lists have named columns" in refusal(
        "label", "--graph", "m.mtx", *requested
    )
    assert "belong to a graph" in refusal("sweep", "--lattice", "square", *requested)
    assert "only a graph" in refusal("label", "--lattice", "square", "-L", 4, "-p", 0.5, *requested)
    assert "only a graph" in refusal("invade", "--lattice", "square", "-L", 4, *requested)
    for graph in ([(0, 1)], networkx.path_graph(2), Graph.of_bonds(2, [(0, 1)])):
        with pytest.raises(InputError, match="columns"):
            make_graph(graph, columns="a,b")


def test_a_data_frame_is_a_graph():
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame({"km": [3, 4], "target": ["y", "z"], "Source": ["x", "y"]})
    graph = make_graph(named)
    assert (graph.names, graph.num_bonds) == (("x", "y", "z"), 2)
    assert make_graph(named, columns=["km", "target"]).names == ("3", "y", "4", "z")
    numbers = pandas.DataFrame({"a": [0, 1], "b": [1.0, 2.0], "weight": [0.5, 2.0]})
    assert make_graph(numbers).digest == Graph.of_bonds(3, [(0, 1), (1, 2)]).digest
    assert percolab.tree(numbers).weight == 2.5
    assert percolab.tree(named, columns=("Source", "target", "km")).weight == 7
    assert percolab.label(graph=numbers).tolist() == [0, 0, 0]
    assert percolab.invade(numbers, source=0, stop="all").num_invaded == 3
    wrong = pandas.DataFrame({"source": ["x", None], "target": ["y", "z"]})
    for frame, message in (
        (wrong, "row 1 of the data frame lacks a site"),
        (named[["km"]], "a data frame of edges has two columns of sites"),
        (numbers.replace(2.0, 2.5), "site 2.5, but sites are integers"),
    ):
        with pytest.raises(InputError, match=message):
            make_graph(frame)
    with pytest.raises(InputError, match="a data frame has a column 'weight'"):
        percolab.tree(named)


def test_a_directed_graph_is_told_to_lose_its_directions(caplog):
    directed = networkx.DiGraph([(0, 1), (1, 2)])
    assert percolab.label(graph=directed).tolist() == [0, 0, 0]
    networkx.write_graphml(directed, "d.graphml")
    assert "d.graphml: is directed" in run("label", "--graph", "d.graphml").stderr
    assert caplog.messages[0].startswith("graph: is directed, but a bond has no direction")
    caplog.clear()
    percolab.label(graph=networkx.path_graph(3))
    assert not caplog.messages


def test_names_change_nothing_but_what_sites_are_called():
    Path("named.csv").write_text("x y\ny z\nx z\nz w\n")
    Path("plain.csv").write_text(NUMBERS)
    named, plain = load_graph("named.csv"), load_graph("plain.csv")
    assert named.digest == plain.digest
    assert (named.names, plain.names) == (("x", "y", "z", "w"), None)
    options = {"samples": 200, "device": "cpu", "block_size": 20}
    one, other = (percolab.sweep(graph=graph, **options) for graph in (named, plain))
    assert one.tasks.keys() == other.tasks.keys()
    for key, item in one.tasks.items():
        np.testing.assert_array_equal(item.sums(), other.tasks[key].sums())


def test_weights_of_named_edges_are_read_as_those_of_numbers():
    Path("a.csv").write_text("Source,Target,w,Weight\nb,a,9,3\na,c,9,-2\nc,a,9,-5\na,a,9,1\n")
    found = read_graph("a.csv", weights=True)
    assert found.names == ("b", "a", "c")
    assert found.bonds.tolist() == [[0, 1], [1, 2]]
    assert found.weights.tolist() == [3, -5]
    assert (found.num_loops, found.num_merged) == (1, 1)
    Path("b.csv").write_text("a b 1.5\nb c 2d0\n")
    assert read_graph("b.csv", weights=True).weights.tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a b\nc\n", {}, "line 2: 'c', but a line names two sites"),
        ("a,b\n,c\n", {}, "line 2: ',c', but a line names two sites"),
        ("a b 1\nb c x\n", WEIGHTS, "line 2: weight 'x', but a weight is a finite number"),
        ("a b 1\nb c\n", WEIGHTS, "line 2: 'b c', but there is no weight in column 3"),
        ("a b 1\nb c -inf\n", WEIGHTS, "line 2: weight '-inf', but"),
        ("a " + 300 * "b" + "\n", {}, "line 1: site 'bbb"),
        ("a b\nb 5\x07\n", {}, "line 2: site '5\\x07', but a name is printable UTF-8 text"),
        (b"a b\nb \xff\n", {}, "line 2: site '\ufffd', but a name is printable UTF-8 text"),
        ("0 1\n1 Bran\n", {}, "line 2: site 'Bran', but sites are integers 0 to"),
        (
            ABB,
            {"columns": "a,c"},
            "line 1: columns: 'c': there is no such column; the columns are a, b, b",
        ),
        (ABB, {"columns": "a,b"}, "line 1: columns: 'b': two columns have this name"),
    ],
)
def test_bad_lines_and_columns_are_refused(text, options, message):
    Path("a.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as error:
        read_graph("a.txt", **options)
    assert str(error.value).startswith(f"a.txt: {message}")


def test_the_command_line_speaks_in_names():
    Path("got.csv").write_text("Source,Target\nJon,Arya\nArya,Sansa\nBran,Hodor\n")
    Path("comma.csv").write_text('Source,Target\n"Snow, Jon",Arya\n')
    assert 'largest cluster: "Snow, Jon", Arya\n' in answer("label", "--graph", "comma.csv")
    Path("ends.txt").write_text("# the north\nSansa\nBran\n")
    output = answer("label", "--graph", "got.csv", "--source", "Jon", "--target", "ends.txt")
    assert "largest cluster: Jon, Arya, Sansa" in output
    assert "cluster of Jon, 3 sites, connects source and target" in output
    record = json.loads(answer("label", "--graph", "got.csv", "--json"))
    assert record["largest_names"] == ["Jon", "Arya", "Sansa"]
    with h5py.File("labels.h5") as file:
        assert file["site_names"].asstr()[...].tolist() == ["Jon", "Arya", "Sansa", "Bran", "Hodor"]
    wrong = refusal("label", "--graph", "got.csv", "--source", "Jn", "--target", "Arya")
    assert wrong == "source: no site is named 'Jn'; did you mean 'Jon'?"
    Path("other.csv").write_text("Source,Target,Type,Label\nJon,Arya,Undirected,\n")
    assert run("label", "--graph", "other.csv").stderr == (
        "other.csv: columns not used: Type, Label\n"
    )


def test_names_are_kept_in_the_results_file():
    Path("a.csv").write_text("Zoë Jon\nJon Arya\n")
    options = {"source": "Zoë", "target": ["Arya"], "samples": 40, "device": "cpu", "p": [0.5]}
    percolab.sweep(graph="a.csv", out="a.h5", **options)
    stored = percolab.open_results("a.h5")
    assert stored.study.structure.names == ("Zoë", "Jon", "Arya")
    with h5py.File("a.h5") as file:
        assert file["site_names"].dtype == h5py.string_dtype("utf-8", 4)
    # Continued with the same graph in numbers, and refused with other names.
    more = options | {"samples": 80, "source": 0, "target": 2}
    percolab.sweep(graph=[(0, 1), (1, 2)], out="a.h5", **more)
    assert percolab.open_results("a.h5").study.structure.names == ("Zoë", "Jon", "Arya")
    Path("b.csv").write_text("Zoe Jon\nJon Arya\n")
    with pytest.raises(InputError, match=r"its site names differ from those of b.csv"):
        percolab.sweep(graph="b.csv", out="a.h5", **options | {"source": "Zoe"})
    percolab.sweep(graph="b.csv", out="b.h5", **options | {"source": "Zoe", "seed": 2})
    assert "site names differ" in refusal("merge", "a.h5", "b.h5", "--out", "c.h5")
    # One byte of a name is not what it was.
    data = bytearray(Path("b.h5").read_bytes())
    with h5py.File("b.h5", "r+") as file:
        names = file["site_names"][...]
        names[0] = b"Zoo"
        file["site_names"][...] = names
    assert data != Path("b.h5").read_bytes()
    assert "does not match its checksum" in refusal("status", "b.h5")


def test_names_of_a_study_file_are_found():
    Path("a.csv").write_text("Jon Snow\nSnow Arya\n")
    Path("ends.txt").write_text("Arya\n")
    for source, target in (('"Jon"', '"Arya"'), ('["Jon", "Snow"]', '"ends.txt"')):
        Path("study.toml").write_text(
            f'graph = "a.csv"\nsource = {source}\ntarget = {target}\np = [0.5]\nsamples = 10\n'
            'out = "a.h5"\n'
        )
        Path("a.h5").unlink(missing_ok=True)
        assert run("sweep", "study.toml", "--device", "cpu").exit_code == 0


def test_every_form_of_a_graph_in_python_is_the_same_graph():
    edges = np.array([[0, 1], [1, 2], [0, 2], [2, 3]])
    matrix = scipy.sparse.coo_array((np.ones(4), edges.T), (4, 4))
    forms = [
        edges, edges.tolist(), [tuple(row) for row in edges.tolist()],
        networkx.Graph(edges.tolist()), matrix, matrix.tocsr(), scipy.sparse.csr_matrix(matrix),
        Graph.of_bonds(4, edges),
        networkx.MultiDiGraph([*edges.tolist(), [1, 0]]),
    ]  # fmt: skip
    expected = percolab.label(graph=edges, p=0.5, seed=7).tolist()
    for form in forms:
        assert sorted(np.sort(make_graph(form).content.pairs, axis=1).tolist()) == sorted(
            edges.tolist()
        )
        assert percolab.label(graph=form).tolist() == [0, 0, 0, 0]
    for form in forms[:3]:
        assert make_graph(form).digest == make_graph(edges).digest
        assert percolab.label(graph=form, p=0.5, seed=7).tolist() == expected
    assert percolab.label(matrix).tolist() == [0, 0, 0, 0]
    assert make_graph(networkx.relabel_nodes(forms[3], {3: "d"})).names == ("0", "1", "2", "d")
    assert percolab.tree([("a", "b", 2.0), ("b", "c", 1.0)]).names == ("a", "b", "c")
    assert percolab.invade(edges, source=0, target=3).num_invaded == 4
    names = [("a", "b"), ("b", "c")]
    assert percolab.invade(names, source="c", target=["a"]).sites.tolist() == [2, 1, 0]
    with pytest.raises(InputError, match="source: no site is named 'd'"):
        percolab.invade(names, source="d")


def test_views_iterators_and_graphs_of_igraph_are_graphs():
    class Igraph:
        def to_networkx(self, vertex_attr_hashable):
            assert vertex_attr_hashable == "name"
            return networkx.Graph([("a", "b"), ("b", "c"), ("d", "e")])

    graph = networkx.Graph([(0, 1), (1, 2), (3, 4)])
    for form in (graph.edges, graph.edges(data="weight"), iter(graph.edges), Igraph()):
        assert percolab.label(graph=form).tolist() == [0, 0, 0, 3, 3]
    assert percolab.label(graph=Igraph()).site_names == ("a", "b", "c", "d", "e")
    grid = networkx.grid_2d_graph(2, 2)
    for tuples in (grid.edges, list(grid.edges), pandas.DataFrame(list(grid.edges))):
        found = percolab.label(graph=tuples, source=(0, 0), target=(1, 1))
        assert found.tolist() == [0, 0, 0, 0]
        assert set(found.site_names) == set(map(str, grid))


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (5, {}, "a graph is no int: give a file, networkx graph, sparse matrix, or"),
        (np.ones((3, 4)), {}, "a graph is no ndarray"),
        ([(0, 1, 2, 3)], {}, "a list has rows (site, site)"),
        (np.array([[0, 1], [1, 0]]), {}, "an array (2, 2) may be an adjacency matrix: give"),
        (np.ones((3, 3)) - np.eye(3), {}, "an array (3, 3) may be an adjacency matrix: give"),
        (np.eye(3, k=1, dtype=bool), {}, "an array (3, 3) may be an adjacency matrix: give"),
        (
            np.array([[0, 5, 2], [5, 0, 1], [2, 1, 0]]),
            {},
            "an array (3, 3) may be an adjacency matrix: give",
        ),
        ([[0, 1], [1, 0]], {}, "an array (2, 2) may be an adjacency matrix: give"),
        (
            networkx.to_pandas_adjacency(networkx.path_graph(4)),
            {},
            "an array (4, 4) may be an adjacency matrix: give",
        ),
        (np.arange(25).reshape(5, 5), {}, "an array (5, 5) may be an adjacency matrix: give"),
        ([([0, 0], [0, 1]), ([0, 1], [1, 1])], {}, "sites are integers or texts, no lists"),
        ([(0, 1), (1, -2)], {}, "a bond names site -2, but sites are 0 to"),
        (scipy.sparse.coo_array((2, 3)), {}, "a matrix of shape (2, 3), but an adjacency"),
        (networkx.Graph(), {}, "the graph: has 0 sites"),
        ([("a", "b")], {"source": "c", "target": "a"}, "source: no site is named 'c'"),
        ([("a", "b")], {"source": "a"}, "source is given without target: give both, or none"),
    ],
    ids=str,
)
def test_what_is_no_graph_is_refused_in_one_line(graph, options, message):
    with pytest.raises(InputError) as error:
        percolab.sweep(graph=graph, samples=10, device="cpu", **options)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("edges", "same"),
    [
        ([[0, 1], [1, 2]], [(0, 1), (1, 2)]),
        ([[0, 1, 9], [1, 2, 9], [2, 3, 9]], [(0, 1), (1, 2), (2, 3)]),
        ([[0, 1, 1], [1, 2, 1], [0, 2, 1]], [(0, 1), (1, 2), (0, 2)]),
    ],
)
def test_square_arrays_that_are_no_matrix_are_edges(edges, same):
    assert make_graph(np.array(edges)).digest == make_graph(edges).digest == make_graph(same).digest


def test_tuples_are_edges_whatever_their_numbers():
    assert make_graph([(0, 1), (1, 0)]).digest == make_graph([(0, 1)]).digest


def bow_tie(graph):
    """Return the part of every node, by what it reaches and what reaches it."""
    found = max(
        networkx.strongly_connected_components(graph), key=lambda own: (len(own), -min(own))
    )
    after = {node: networkx.descendants(graph, node) | {node} for node in graph}
    entrance = {node for node in graph if after[node] & found} - found
    outlet = {node for node in graph if any(node in after[own] for own in found)} - found
    parts = {}
    for node in graph:
        from_in = any(node in after[own] for own in entrance)
        to_out = bool(after[node] & outlet)
        parts[node] = (
            "core" if node in found
            else "in" if node in entrance
            else "out" if node in outlet
            else "tubes" if from_in and to_out
            else "tendrils" if from_in or to_out
            else "others"
        )  # fmt: skip
    return parts


@pytest.mark.slow
@pytest.mark.parametrize("count", [500, slow(10_000)])
def test_components_of_small_random_graphs_are_those_of_networkx(count):
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(count):
        sites = int(rng.integers(1, 9))
        matrix = rng.random((sites, sites)) < rng.uniform(0.05, 0.4)
        graph = networkx.from_numpy_array(matrix, create_using=networkx.DiGraph)
        found = percolab.components(scipy.sparse.csr_array(matrix))
        expected = bow_tie(graph)
        assert [PARTS[part] for part in found.parts] == [expected[n] for n in range(sites)]
        for own in networkx.strongly_connected_components(graph):
            assert {int(found.labels[node]) for node in own} == {min(own)}
        assert found.num_components == networkx.number_strongly_connected_components(graph)
        seen |= set(expected.values())
    assert seen == set(PARTS)


def test_directions_of_every_form_are_kept(tmp_path):
    edges = [(0, 1), (1, 2), (2, 1), (2, 3), (0, 4), (5, 3)]
    graph = networkx.DiGraph(edges)
    (tmp_path / "e.csv").write_text("source,target\n" + "".join(f"{i},{j}\n" for i, j in edges))
    frame = pandas.DataFrame(edges, columns=["source", "target"])
    matrix = networkx.to_scipy_sparse_array(graph, nodelist=range(6))
    for given in (edges, np.array(edges), graph, frame, matrix, tmp_path / "e.csv"):
        found = percolab.components(given)
        assert found.sizes == {
            "core": 2, "in": 1, "out": 1, "tubes": 0, "tendrils": 2, "others": 0
        }  # fmt: skip
        assert found.sites("tendrils") == [4, 5]
    named = networkx.relabel_nodes(graph, "abcdef".__getitem__)
    assert percolab.components(named).sites("core") == ["b", "c"]
    assert percolab.components(graph.to_undirected()).sizes["core"] == 6
    assert "core 2" in repr(found)
