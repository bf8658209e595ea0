"""Studies of random graphs: a graph a block, means and errors over graphs."""

import re
from math import comb, exp
from pathlib import Path

import networkx
import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import assert_z, slow

import percolab
from percolab import Ensemble, InputError
from percolab.kernels.device import Device
from percolab.lattices.bethe import reach_probability
from percolab.store.results import read_results
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task

CPU = {"device": "cpu", "workers": 1}


def mean_squares(n: int, q: float) -> float:
    """Return <sum s^2>/n of G(n, q): the mean size of the cluster of a site.

    The probability that k sites are connected is 1 less that the cluster of the first of them is
    smaller (E. N. Gilbert's recursion).
    """
    connected = [0.0, 1.0]
    for k in range(2, n + 1):
        smaller = (
            comb(k - 1, j - 1) * connected[j] * (1 - q) ** (j * (k - j)) for j in range(1, k)
        )
        connected.append(1 - sum(smaller))
    return sum(
        k * comb(n - 1, k - 1) * connected[k] * (1 - q) ** (k * (n - k)) for k in range(1, n + 1)
    )


@pytest.mark.slow
def test_open_bonds_of_a_random_graph_are_a_random_graph():
    """G(n, q), bonds open with probability p, is G(n, pq): exact, with errors over graphs."""
    n, p = 30, [0.25, 0.5, 1.0]
    results = percolab.sweep("er:k=2", L=n, p=p, samples=8000, seed=3, **CPU)
    _, mean, error = results.means("sum_squares")
    for k, chance in enumerate(p):
        assert_z(mean[k] / n, mean_squares(n, chance * 2 / (n - 1)), error[k] / n)


@pytest.mark.slow
def test_sites_above_the_threshold_belong_to_the_giant_component():
    """s_1/N of infinite graphs: 1 - exp(-pkS) by bonds, p times that by sites; of config:k=3."""
    share = 0.0
    for _ in range(200):
        share = 1 - exp(-2 * share) if share else 0.5
    options = {"L": 20_000, "p": 0.5, "samples": 100, **CPU}
    for model, expected in (("bond", share), ("site", share / 2)):
        results = percolab.sweep("gnm:k=4", model=model, **options)
        _, mean, error = results.means("largest")
        assert_z(mean[0] / 20_000, expected, error[0] / 20_000)
    # A bond leads nowhere, or is closed, with u = 1 - p + p u^2 = 1/3 at p = 3/4.
    results = percolab.sweep("config:k=3", **options | {"p": 0.75})
    _, mean, error = results.means("largest")
    assert_z(mean[0] / 20_000, 1 - 1 / 27, error[0] / 20_000)


@pytest.mark.slow
def test_errors_are_over_graphs():
    """At p = 1 all samples of a graph are equal, so that only graphs differ."""
    results = percolab.sweep("er:k=1", L=40, p=1, samples=4000, seed=2, **CPU)
    (item,) = results.tasks.values()
    assert item.task.block_size == 10
    _, mean, error = results.means("clusters")
    graphs = [Ensemble("er:k=1").graph(40, seed=9, number=n) for n in range(400)]
    counts = [networkx.number_connected_components(as_network(g)) for g in graphs]
    assert error[0] == pytest.approx(np.std(counts) / 20, rel=0.15)
    assert_z(mean[0], np.mean(counts), np.hypot(error[0], np.std(counts) / 20))


@pytest.mark.parametrize("order", ["degree", "degree:adaptive"])
def test_removal_on_each_graph_is_that_of_the_graph_alone(order):
    """A strict order has no chance in it: every step is compared with networkx."""
    ensemble = Ensemble("config", degrees=(1, 1, 2, 2, 3, 3, 4, 6))
    given = {"order": order, "method": "microcanonical", "model": "site", "block_size": 400}
    task = Task(structure=ensemble, size=8, boundary=(), p=(), **given)
    sampler = make_sampler(task, device=Device("cpu"))
    blocks = sampler.sample([0, 3])
    assert sampler.sample([3])[0].sums["largest"].tolist() == blocks[1].sums["largest"].tolist()
    for block in blocks:
        graph = ensemble.graph(8, seed=task.stream_seed, number=block.number)
        network = as_network(graph)
        # The last row is the whole network, and the one before without one of its hubs.
        sizes = largest_after_hubs(network)
        assert block.sums["largest"][-1] == 400 * largest(network)
        assert min(sizes) * 400 <= block.sums["largest"][-2] <= max(sizes) * 400


def as_network(graph) -> networkx.Graph:
    found = networkx.empty_graph(graph.num_sites)
    found.add_edges_from(graph.bonds.pairs.tolist())
    return found


def largest(network) -> int:
    return max(map(len, networkx.connected_components(network)), default=0)


def largest_after_hubs(network) -> list[int]:
    most = max(k for _, k in network.degree)
    hubs = [n for n, k in network.degree if k == most]
    return [largest(network.subgraph(set(network) - {hub})) for hub in hubs]


@pytest.mark.slow
def test_the_pilot_places_p_about_the_threshold():
    results = percolab.sweep("gnm:k=4", L=[1000, 4000], samples=200, **CPU)
    for size in results.estimates():
        (chi,) = [each for each in size.estimates if each.name == "chi"]
        assert 0.24 < chi.p < 0.31
        assert chi.error < 0.02


def test_the_command_line_gives_robustness_and_the_published_threshold(tmp_path):
    path = str(tmp_path / "er.h5")
    study = ("sweep", "--lattice", "gnm:k=4", "-L", "300", "--samples", "200", "--device", "cpu")
    found = answer(*study, "--method", "microcanonical", "--out", path)
    assert re.search(r"^R = 0\.\d+\(\d+\) ", found, re.MULTILINE)
    assert "published 0.25  1/4" in found
    assert "of infinitely many sites" in found
    # The file is all that a continued study needs of the ensemble.
    assert read_results(path).study.structure == Ensemble("gnm:k=4")
    assert "another study (lattice is gnm:k=4 there, gnm:k=5 here)" in refusal(
        *study[:2], "gnm:k=5", *study[3:], "--method", "microcanonical", "--out", path
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "microcanonical"}, r"different numbers of bonds; use .*model site"),
        ({"method": "tree"}, "method tree is of one graph"),
        ({"model": "ising"}, "the spins of ising are on one graph"),
        ({"order": "weight"}, "allows only degree or betweenness"),
        ({"order": [1, 2]}, "allows only degree or betweenness"),
        ({"method": "threshold"}, "needs a source and a target"),
        ({"boundary": "periodic"}, "boundary = periodic, but er:k=4 has none"),
        ({"slabs": 2}, "no layers"),
        ({"source": [1]}, "source and target need a graph"),
        ({"measure": "conductance"}, "needs two terminals"),
        ({"L": 4}, "needs more than 4 sites"),
    ],
)
def test_what_an_ensemble_has_not_is_rejected(given, message):
    with pytest.raises(InputError, match=message):
        percolab.sweep("er:k=4", **{"L": 100, "samples": 10, "device": "cpu"} | given)


def test_every_size_names_its_order_and_random_thresholds_are_left_out():
    graphs = {"model": "site", "method": "microcanonical", "L": [20, 40], "samples": 20, **CPU}
    results = percolab.sweep("er:k=4", order="degree", out="degree.h5", **graphs)
    assert [each.order for each in results.estimates()] == ["degree", "degree"]
    told = answer("fit", "degree.h5")
    assert told.count("removed by degree") == 2
    assert "published" not in told
    answer("report", "degree.h5")
    assert "Threshold of the infinite lattice" not in Path("degree.html").read_text()
    assert results.plot().numbers["exact"] is None
    percolab.sweep("er:k=4", out="random.h5", **graphs)
    assert "published 0.25" in answer("fit", "random.h5")
    answer("report", "random.h5")
    assert "Threshold of the infinite lattice" in Path("random.html").read_text()


@pytest.mark.parametrize(("name", "z"), [("bethe", 3), slow("bethe:4", 4), ("bethe:3:random", 3)])
def test_clusters_and_reach_have_their_exact_means(name, z):
    p = (0.3, 0.5, 0.8)
    answer("sweep", "--lattice", name, "-L", "3,6", "-p", "0.3,0.5,0.8", "--samples", 6000,
           "--quiet")  # fmt: skip
    results = read_results("results.h5")
    for item in results.tasks.values():
        samples, bonds = item.num_samples, item.task.num_points - 1
        reached = item.column("spanning").sum(axis=0) / samples
        clusters = item.column("clusters").sum(axis=0) / samples
        for n, x in enumerate(p):
            exact = reach_probability(x, item.task.size, coordination_number=z)
            assert_z(reached[n], exact, np.sqrt(exact * (1 - exact) / samples))
            expected, error = bonds + 1 - x * bonds, np.sqrt(x * (1 - x) * bonds / samples)
            assert_z(clusters[n], expected, error)
    assert {item.task.num_points for item in results.tasks.values()} == {
        1 + z * ((z - 1) ** k - 1) // (z - 2) for k in (3, 6)
    }


def test_thresholds_of_samples_are_distributed_as_the_recursion_says():
    results = percolab.sweep("bethe", L=[5], samples=5000, method="threshold", device="cpu")
    (item,) = results.tasks.values()
    found = item.thresholds("spanning") / 2.0**63
    for p in (0.35, 0.5, 0.7):
        exact = reach_probability(p, 5)
        assert_z((found <= p).mean(), exact, np.sqrt(exact * (1 - exact) / found.size))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lattice", "bethe:2"), "coordination number 2: a Bethe lattice needs at least 3"),
        (("--lattice", "bethe:x"), "a Bethe lattice is bethe, bethe:z or bethe:z:random"),
        (("--lattice", "bethe:3:odd"), "unknown numbering 'odd'"),
        (("--lattice", "bethe", "-L", "40"), "40 shells with coordination number 3: more than"),
        (("--lattice", "bethe", "--boundary", "open"), "boundary = open, but bethe:3 has none"),
        (("--lattice", "bethe", "--target-error", "0.1"), "give the number of samples"),
    ],
)
def test_a_bethe_lattice_that_is_none_is_refused(options, message):
    assert message in refusal("sweep", *options)
    assert list(Path().iterdir()) == []
