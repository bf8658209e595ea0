"""Components of directed graphs, against networkx."""

import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse
from helpers import slow

import percolab
from percolab.configurations.directed import PARTS
from percolab.errors import InputError


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


def test_what_has_no_directions_is_refused_in_a_line(tmp_path):
    with pytest.raises(InputError, match="give it as a scipy"):
        percolab.components(tmp_path / "a.mtx")
    with pytest.raises(InputError, match="is not square"):
        percolab.components(scipy.sparse.csr_array((2, 3)))
    with pytest.raises(InputError, match="one of core, in, out, tubes, tendrils, others"):
        percolab.components([(0, 1)]).sites("middle")
    with pytest.raises(InputError, match="a graph is no int"):
        percolab.components(3)
