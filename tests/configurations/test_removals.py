"""What is left without each single site or bond, against networkx, which removes them."""

import json

import networkx
import numpy as np
import pytest
from cli_support import answer, refusal

import percolab

GRAPHS = {
    "karate": networkx.karate_club_graph(),
    "davis": networkx.davis_southern_women_graph(),
    "florentine": networkx.florentine_families_graph(),
    "les miserables": networkx.les_miserables_graph(),
    "tree": networkx.balanced_tree(2, 4),
    "path": networkx.path_graph(7),
    "barbell": networkx.barbell_graph(4, 2),
    "two of equal size": networkx.disjoint_union(networkx.path_graph(4), networkx.star_graph(3)),
    "two": networkx.disjoint_union(networkx.cycle_graph(9), networkx.path_graph(6)),
    "no bonds": networkx.empty_graph(3),
    "one site": networkx.empty_graph(1),
} | {f"random {n}": networkx.gnp_random_graph(60, 0.03, seed=n) for n in range(6)}


def left(graph) -> tuple[int, int]:
    sizes = list(map(len, networkx.connected_components(graph)))
    return max(sizes, default=0), len(sizes)


@pytest.mark.parametrize("name", GRAPHS)
def test_each_removal_is_that_of_networkx(name):
    graph = networkx.convert_node_labels_to_integers(GRAPHS[name])
    found = percolab.remove_each(graph)
    assert found.intact == left(graph)
    for site in graph:
        without = graph.copy()
        without.remove_node(site)
        assert (found.largest[site], found.clusters[site]) == left(without), site
    bonds = percolab.remove_each(graph, model="bond")
    for n, (i, j) in enumerate(bonds.graph.bonds.pairs.tolist()):
        without = graph.copy()
        without.remove_edge(i, j)
        assert (bonds.largest[n], bonds.clusters[n]) == left(without), (i, j)


def test_a_parallel_bond_is_no_bridge():
    pairs = [(0, 1), (1, 0), (1, 2)]
    assert percolab.remove_each(pairs, model="bond", multi=True).clusters.tolist() == [1, 1, 2]
    assert percolab.remove_each(pairs, model="bond").clusters.tolist() == [2, 2]


def test_a_long_path_needs_no_deep_recursion():
    count = 100_000
    pairs = np.column_stack([np.arange(count - 1), np.arange(1, count)])
    found = percolab.remove_each(pairs)
    assert found.largest[count // 2] == count // 2
    assert found.order[0] == (count - 1) // 2


def test_the_command_lists_what_matters_most_and_writes_all(tmp_path):
    path = tmp_path / "novel.csv"
    networkx.to_pandas_edgelist(GRAPHS["les miserables"]).to_csv(path, index=False)
    table = tmp_path / "removals.csv"
    found = answer("removals", path, "--out", table)
    lines = found.splitlines()
    assert lines[0].endswith("77 sites, 254 bonds, 1 cluster; the largest has 77 sites")
    assert lines[3].split() == ["Valjean", "61", "7"]
    assert len(table.read_text().splitlines()) == 78
    record = json.loads(answer("removals", path, "--model", "bond", "--json"))
    assert record["removals"][0].keys() == {"without", "to", "largest", "clusters"}
    assert len(record["removals"]) == 254
    assert "cannot write removals as '.txt'; use .csv" in refusal(
        "removals", path, "--out", tmp_path / "x.txt"
    )
    assert "model" in refusal("removals", path, "--model", "ising")


@pytest.mark.parametrize("model", ["site", "bond"])
def test_removals_are_a_table_of_pandas(model):
    found = percolab.remove_each([("a", "b"), ("b", "c"), ("b", "d")], model=model)
    frame = found.to_pandas()
    names = frame.columns[:-2].tolist()
    assert names == (["without"] if model == "site" else ["without", "to"])
    told = [tuple(row) if model == "bond" else row[0] for row in frame[names].to_numpy().tolist()]
    rows = zip(told, frame["largest"].tolist(), frame["clusters"].tolist(), strict=True)
    assert list(rows) == found.to_rows()
    assert frame["largest"].dtype == frame["clusters"].dtype == "int64"
