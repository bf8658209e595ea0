"""Sites and bonds removed in a given order: against networkx, removal by removal."""

import json
from dataclasses import replace

import networkx
import numpy as np
import pytest
from cli_support import answer, changed, refusal
from helpers import assert_z, record_program

import percolab
from percolab.analysis.maxima import measure_robustness, network_bounds
from percolab.api import sweep
from percolab.bonds.words import GENERATORS
from percolab.coupled.adaptive import order_by_score
from percolab.coupled.one_by_one import ADAPTIVE_RANKS, list_openings
from percolab.lattices.graph import Graph, make_graph
from percolab.measure import openings as bins
from percolab.store.results import read_results
from percolab.tasks.study import Study

by_hand = record_program("robustness/robustness.py")
NETWORKS = {
    "karate": networkx.karate_club_graph(),
    "davis": networkx.davis_southern_women_graph(),
    "les miserables": networkx.les_miserables_graph(),
    "Erdos-Renyi": networkx.gnp_random_graph(60, 0.05, seed=1),
    "last hub": networkx.Graph(),
    "grid": networkx.grid_2d_graph(5, 6),
}
OPTIONS = {"method": "microcanonical", "device": "cpu", "seed": 4, "workers": 1}
#: Enough for all facts; the others are marked slow.
FEW = ("karate", "davis", "last hub")
NETWORKS["last hub"].add_nodes_from(range(41))
NETWORKS["last hub"].add_edges_from([(40, n) for n in range(40)] + [(0, 1)])
#: What removes the sites of a small graph, with ties.
EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (4, 5), (2, 5)]


def networks():
    return [pytest.param(n, marks=[] if n in FEW else pytest.mark.slow) for n in NETWORKS]


def numbered(name):
    """Return a network with nodes 0, 1, ... in the order that percolab gives them."""
    return networkx.convert_node_labels_to_integers(NETWORKS[name])


def test_the_hub_of_the_last_network_is_renumbered():
    assert make_graph(NETWORKS["last hub"]).inner_numbers is not None


@pytest.mark.parametrize(("order", "model"), [
    ("random", "site"), ("degree", "site"), ("degree:ascending", "site"), ("betweenness", "site"),
    ("degree:adaptive", "site"), ("betweenness:adaptive", "site"), ("influence:adaptive", "site"),
    ("random", "bond"), ("degree", "bond"), ("betweenness", "bond"),
    ("degree:adaptive", "bond"), ("betweenness:adaptive", "bond"),
])  # fmt: skip
@pytest.mark.parametrize("name", networks())
def test_removal_is_that_of_networkx_by_hand(name, order, model):
    """Row for row, with R and the largest second cluster; ties of an adaptive order are free."""
    by_hand.compare(numbered(name), NETWORKS[name], order, model)


@pytest.mark.parametrize("model", ["site", "bond"])
def test_weights_say_what_is_removed(model):
    graph = NETWORKS["les miserables"]
    numbers = networkx.convert_node_labels_to_integers(graph)
    strength = dict(numbers.degree(weight="weight"))
    weights = networkx.get_edge_attributes(numbers, "weight")
    for order, sign in (("weight", 1), ("weight:ascending", -1)):
        results = sweep(graph=graph, model=model, order=order, samples=1, **OPTIONS)
        found, item = by_hand.stored_rows(results)
        draw = by_hand.site_numbers if model == "site" else by_hand.bond_numbers
        values = strength if model == "site" else weights
        scores = {key: sign * value for key, value in values.items()}
        removed = by_hand.by_score(scores, draw(item.task, 0))
        expected = by_hand.removed_one_by_one(numbers, removed)
        np.testing.assert_array_equal(found, expected)


def test_a_file_a_list_and_a_mapping_are_one_order_which_is_exact(tmp_path):
    graph = NETWORKS["les miserables"]
    nodes = list(graph)
    # No two are equal, but for what the sum of floats makes of them.
    rank = {
        node: value + 1e-6 * n for n, (node, value) in enumerate(networkx.pagerank(graph).items())
    }
    listed = sorted(nodes, key=lambda node: -rank[node])
    (tmp_path / "list.txt").write_text("# who leaves first\n" + "\n".join(listed) + "\n")
    (tmp_path / "scores.csv").write_text("".join(f"{n},{rank[n]!r}\n" for n in nodes))
    given = [listed, tmp_path / "list.txt", str(tmp_path / "scores.csv"), rank]
    left, expected = graph.copy(), [by_hand.cluster_row(graph)]
    for node in listed:
        left.remove_node(node)
        expected.append(by_hand.cluster_row(left))
    ids = set()
    for order in given:
        results = sweep(graph=graph, model="site", order=order, samples=40, **OPTIONS)
        (item,) = results.tasks.values()
        ids.add(item.task.id)
        own = item.stacked("largest").sum(axis=0)[::-1]
        assert own.tolist() == [40 * row[1] for row in expected]
        found = measure_robustness(item)
        assert found.error == 0
        assert "(" not in str(found)
        _, mean, error = results.means("largest", p=[0.25, 1.0])
        assert error.tolist() == [0, 0]
        assert mean[1] == 77
        # p N = 19.25 sites are left.
        low, high = expected[77 - 19][1], expected[77 - 20][1]
        assert mean[0] == pytest.approx(0.75 * low + 0.25 * high)
    assert len(ids) == 1


@pytest.mark.parametrize("samples", [1, 5])
def test_a_complete_order_is_exact_however_few_samples_it_has(samples, tmp_path):
    ways = {"graph": NETWORKS["karate"], "model": "site", "samples": samples, **OPTIONS}
    listed = list(NETWORKS["karate"])
    (found,) = sweep(order=listed, out=tmp_path / "a.h5", **ways).estimates()
    assert found.notes == ()
    assert {own.error for own in (*found.estimates, found.robustness)} == {0.0}
    (stored,) = percolab.open_results(tmp_path / "a.h5").estimates()
    assert "unless the order has no ties, and the values are exact" in stored.notes[0]
    for order in ("degree", "degree:adaptive", listed[:30]):
        (found,) = sweep(order=order, **ways).estimates()
        assert "too few for an error" in found.notes[0]


def test_names_with_commas_are_quoted_in_a_file(tmp_path):
    """As those of coauthors are; by sites and by bonds."""
    names = {0: "Newman, M", 1: "Watts, D", 2: "A B", 3: "C"}
    graph = networkx.relabel_nodes(networkx.path_graph(4), names)
    (tmp_path / "sites.csv").write_text('"Watts, D"\nA B\n')
    (tmp_path / "bonds.csv").write_text('"A B","C"\n"Newman, M", "Watts, D"\n')
    for model, order in (
        ("site", ["Watts, D", "A B"]),
        ("bond", [("A B", "C"), tuple(names.values())[:2]]),
    ):
        given = {"graph": graph, "model": model, "samples": 10, **OPTIONS}
        (file,) = sweep(**given, order=tmp_path / f"{model}s.csv").tasks.values()
        (listed,) = sweep(**given, order=order).tasks.values()
        assert file.task.id == listed.task.id


def test_a_source_and_a_target_are_connected_from_the_level_of_their_weights_on():
    edges = [(0, 1, 0.5), (1, 2, 0.9), (2, 3, 0.4), (3, 0, 0.7), (1, 3, 0.8), (0, 4, 0.1)]
    given = {"graph": edges, "source": 0, "target": 2}
    (size,) = sweep(**given, order="weight", samples=20, **OPTIONS).estimates()
    share = percolab.threshold(**given, weights="file").axes["source-target"].share
    assert size.estimates[-1].name == "median"
    assert size.estimates[-1].p == share == 4 / 6


def test_a_source_and_a_target_that_nothing_connects_are_noted():
    apart = {"graph": [(0, 1), (2, 3)], "source": 0, "target": 3, "order": "degree"}
    (size,) = percolab.sweep(**apart, samples=20, device="cpu").estimates()
    assert size.notes == ("source and target are not connected, even where nothing is removed",)


def test_what_a_list_leaves_out_is_removed_last_and_at_random():
    graph = networkx.path_graph(6)
    results = sweep(graph=graph, model="site", order=[2], samples=4000, **OPTIONS)
    (item,) = results.tasks.values()
    assert item.stacked("largest").sum(axis=0)[-2:].tolist() == [4000 * 3, 4000 * 6]
    # Of 0-1 and 3-4-5 one of five is removed next, and only without 0 or 1 are three left.
    expected = np.mean([3, 3, 2, 2, 2])
    values = item.stacked("largest")[:, 4] / item.samples
    assert_z(values.mean(), expected, values.std() / np.sqrt(values.size))


@pytest.mark.parametrize("order", ["degree", "degree:adaptive"])
def test_sampled_means_are_those_of_all_orders_that_a_rule_allows(order):
    reference = mean_largest(networkx.Graph(EDGES), adaptive=order != "degree")
    found = sweep(graph=EDGES, model="site", order=order, samples=20_000, **OPTIONS)
    (item,) = found.tasks.values()
    blocks = item.stacked("largest") / item.samples[:, None]
    for n, expected in enumerate(reference[::-1]):
        spread = blocks[:, n].std() / np.sqrt(len(blocks) - 1)
        if spread:
            assert_z(blocks[:, n].mean(), expected, spread)
        else:
            assert blocks[0, n] == pytest.approx(expected)


def test_adaptive_removal_of_equal_scores_takes_each_as_often():
    """A ring: every bond may be first, and then the middle of the path that is left."""
    ring = [(n, (n + 1) % 6) for n in range(6)]
    task = Study(
        structure=Graph.of_bonds(6, ring), sizes=(6,), boundary=(), method="microcanonical",
        order="betweenness:adaptive",
    ).tasks[6]  # fmt: skip
    openings = list_openings(task.structure.topology((6,)), sites=False)
    openings = openings._replace(ranks=ADAPTIVE_RANKS[task.order])
    bonds = np.argsort(task.structure.bond_numbers())
    counts, order = np.zeros((6, 6)), np.empty(6, np.uint32)
    for sample in range(3000):
        key = GENERATORS[task.rng], np.uint64(task.stream_seed), np.uint64(sample)
        order_by_score(*key, openings, 6, order)
        first, second = bonds[order[5]], bonds[order[4]]
        counts[first, second] += 1
    for first in range(6):
        assert_z(counts[first].sum(), 500, np.sqrt(500 * 5 / 6))
        # Of a path of six sites the middle bond carries the most.
        assert counts[first, (first + 3) % 6] == counts[first].sum()


def mean_largest(graph, *, adaptive):
    """Return the mean largest cluster after every removal, all ties being equally likely."""
    degrees = dict(graph.degree)

    def after(left):
        sizes = np.array([by_hand.cluster_row(left)[1]] + [0] * len(left), float)
        if not len(left):
            return sizes
        scores = dict(left.degree) if adaptive else degrees
        most = max(scores[node] for node in left)
        tied = [node for node in left if scores[node] == most]
        for node in tied:
            rest = left.copy()
            rest.remove_node(node)
            sizes[1:] += after(rest) / len(tied)
        return sizes

    return after(graph)


def test_robustness_in_bins_is_that_of_all_openings(monkeypatch):
    graph = networkx.barabasi_albert_graph(100, 2, seed=1)
    given = {"graph": graph, "model": "site", "order": "degree", "samples": 20, **OPTIONS}
    (whole,) = sweep(**given).tasks.values()
    expected = measure_robustness(whole).value
    monkeypatch.setattr(bins, "MOST_BINS", 60)
    results = sweep(**given)
    (binned,) = results.tasks.values()
    assert binned.stacked("largest").shape[1] == 51
    # The last bin has the intact graph alone.
    assert measure_robustness(binned).value == pytest.approx(expected)
    p, _, _ = results.means("largest")
    assert p[[0, -1]].tolist() == [0.005, 1.0]


@pytest.mark.parametrize("name", networks())
def test_the_bound_is_that_of_the_matrix_of_non_backtracking_steps(name):
    graph = numbered(name)
    steps = [(i, j) for i, j in graph.edges] + [(j, i) for i, j in graph.edges]
    matrix = np.array([[float(b == c and a != d) for c, d in steps] for a, b in steps])
    expected = max(np.linalg.eigvals(matrix).real.max(), 1.0)
    found = network_bounds(make_graph(NETWORKS[name]))
    assert found.bound == pytest.approx(1 / expected, rel=1e-6)
    degrees = np.array([degree for _, degree in graph.degree], float)
    mean = degrees.mean()
    assert found.mean_degree == mean
    assert found.mean_field == pytest.approx(mean / ((degrees**2).mean() - mean))


def test_bounds_of_large_forests_rings_and_regular_graphs():
    regular = networkx.random_regular_graph(4, 400, seed=1)
    assert network_bounds(make_graph(regular)).bound == pytest.approx(1 / 3, rel=1e-9)
    assert network_bounds(make_graph(networkx.random_labeled_tree(50, seed=1))).bound == 1
    assert network_bounds(make_graph(networkx.cycle_graph(300))).bound == 1
    assert np.isnan(network_bounds(make_graph([(0, 1)])).bound)


def test_the_command_line_sweeps_fits_exports_and_continues(tmp_path):
    networkx.write_edgelist(NETWORKS["karate"], "karate.txt", data=False)
    study = ("sweep", "--graph", "karate.txt", "--model", "site", "--order", "degree",
             "--device", "cpu", "--quiet", "--out", "k.h5")  # fmt: skip
    text = answer(*study, "--samples", 20)
    assert "34 sites, 20 samples, removed by degree" in text
    assert "lower bound" in text
    text = answer("fit", "k.h5")
    assert "robustness: s_1/N" in text
    assert "removed: maximum of the second largest cluster" in text
    assert "lower bound" not in text  # whose bonds are not in the file
    (record,) = json.loads(answer("fit", "k.h5", "--json"))
    assert record["order"] == "degree"
    assert 0.1 < record["robustness"]["value"] < 0.2
    assert "removed by degree" in answer("status", "k.h5")
    assert answer("export", "k.h5").count("\n") == 36
    answer("report", "k.h5", "--out", "k.html")
    assert "one at a time, removed by degree. Uniform" in (tmp_path / "k.html").read_text()
    answer(*study, "--samples", 60)
    (item,) = read_results("k.h5").tasks.values()
    assert item.num_samples == 60
    # Ids and samples do not change from now on.
    assert (item.task.id, int(item.stacked("largest").sum())) == PINNED
    others = (*study[:6], "betweenness", *study[7:])
    assert "other sites, bonds, source or target" in refusal(*others, "--samples", 20)
    (tmp_path / "study.toml").write_text('graph = "karate.txt"\nmodel = "site"\norder = "o.txt"\n')
    (tmp_path / "o.txt").write_text("33\n0\n")
    assert "removed in a given order" in answer(
        "sweep", "study.toml", "--samples", 20, "--device", "cpu", "--quiet", "--out", "o.h5"
    )


PINNED = ("3b1af8a733a9cd60", 12031)


def test_a_stored_study_says_its_order():
    study = sweep(graph=EDGES, model="site", order="degree", samples=5, **OPTIONS).study
    stored = json.loads(json.dumps(study.description()))
    assert stored["order"] == "degree"
    assert Study.from_description(stored, study.structure) == study
    assert replace(study, order="random").tasks[6].id != study.tasks[6].id
    assert percolab.sweep(graph=EDGES, order="random", p=[0.5], samples=5, device="cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--order", "degre"), "order = degre: no such file, and none of random, degree"),
        (
            ("--order", "betweenness:adaptive", "--multi", "--graph", "parallel.txt"),
            "order betweenness:adaptive allows no parallel bonds: leave out --multi",
        ),
        (("--order", "degree", "--method", "grid", "-p", "0.5"), "only with --method micro"),
        (("--order", "weight"), "weight"),
        (
            ("--order", "degree", "--model", "bond-rate", "--graph", "weights.txt"),
            "order = degree needs model bond or site, not bond-rate",
        ),
        (("--order", "influence:adaptive"), "influence:adaptive removes sites: give --model site"),
        (("--order", "one.txt"), "one.txt: line 1: 1 columns, but each line has the two sites"),
        (("--order", "twice.txt"), "twice.txt: line 2: bond 1 0 is given twice"),
        (("--order", "gone.txt", "--model", "site"), "gone.txt: line 2: Room 9 is no site of path"),
        (("--order", "none.txt"), "none.txt: line 1: 0 5 is no bond of path.txt"),
        (
            ("--order", "score.txt"),
            "score.txt: line 1: score 'nan', but it must be a finite number",
        ),
    ],
)
def test_orders_that_cannot_be_used_are_refused_in_a_line(options, message, tmp_path):
    networkx.write_edgelist(networkx.path_graph(6), "path.txt", data=False)
    files = {"one": "3\n", "twice": "0 1\n1 0\n", "none": "0 5\n", "score": "0 1 nan\n"}
    files |= {"weights": "0 1 2\n1 2 3\n", "parallel": "0 1\n1 0\n1 2\n", "gone": "3\nRoom 9\n"}
    for name, text in files.items():
        (tmp_path / f"{name}.txt").write_text(text)
    command = ("sweep", "--graph", "path.txt", "--samples", 5, "--device", "cpu", "--out", "x.h5")
    assert message in refusal(*changed(command, *options))
    assert not (tmp_path / "x.h5").exists()
