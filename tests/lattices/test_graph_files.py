"""Graph files: what is written is read back, whatever the format, size of chunks or line ends."""

import gzip
import sys
from collections import Counter

import numpy as np
import pytest
from graph_file_support import (
    EVERY_EDGE,
    MERGED,
    counted,
    expected,
    matrix_of,
    random_graph,
    written,
)
from helpers import traced_peak

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


def test_matrix_of_many_sites_without_bonds(tmp_path):
    path, header = tmp_path / "a.mtx", "%%MatrixMarket matrix coordinate pattern general"
    written(path, f"{header}\n2000000 2000000 3\n9 7\n7 9\n1 2000000\n")
    found = read_graph(path, num_sites=2 * 10**6)
    assert (found.num_sites, found.num_merged) == (2 * 10**6, 0)
    assert found.bonds.tolist() == [[8, 6], [0, 1999999]]


def test_zeros_are_edges_but_not_in_the_blocks_of_bsr(tmp_path):
    import scipy.sparse

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


def test_sites_without_bonds_need_their_number(tmp_path):
    path = written(tmp_path / "a.txt", "# nothing\n")
    assert read_graph(path, num_sites=7).num_sites == 7
    assert read_graph(written(path, "5 5\n")).num_sites == 6
    assert "site 0" in read_graph(written(path, "1 2\n")).notes[0]
    assert read_graph(written(path, "0 1999999\n"), num_sites=2 * 10**6).num_sites == 2 * 10**6


def test_names_are_kept_where_they_are_not_numbers(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("Ann", "Bo"), ("Bo", "7"), ("Ann", "Ann")])
    networkx.write_graphml(graph, tmp_path / "a.graphml")
    networkx.write_gml(graph, tmp_path / "a.gml")
    for name in ("a.graphml", "a.gml"):
        found = read_graph(tmp_path / name)
        assert found.names == ("Ann", "Bo", "7")
        assert (counted(found.bonds), found.num_loops) == (counted([[0, 1], [1, 2]]), 1)


def test_numbered_names_are_numbers_in_any_order(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([(2, 0), (0, 1)])
    networkx.write_gml(graph, tmp_path / "a.gml")
    found = read_graph(tmp_path / "a.gml")
    assert (found.names, counted(found.bonds)) == (None, counted([[0, 2], [0, 1]]))


def test_labels_that_do_not_tell_sites_apart_are_no_names(tmp_path):
    pytest.importorskip("networkx")
    nodes = 'node [ id 3 label "x" ] node [ id 5 label "x" ]'
    path = written(tmp_path / "a.gml", f"graph [ {nodes} edge [ source 5 target 3 ] ]")
    assert read_graph(path).names == ("3", "5")


def test_parallel_edges_without_ids_are_counted(tmp_path):
    pytest.importorskip("networkx")
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
