"""The p of graphs and Bethe lattices hold the maxima that their thresholds are read off at."""

import networkx
import numpy as np
import pytest
from helpers import slow

from percolab.api import estimates, sweep
from percolab.lattices.graph import Graph

GRAPHS = {
    "petersen": networkx.petersen_graph(),
    "random regular": networkx.random_regular_graph(3, 400, seed=1),
    "barabasi-albert": networkx.barabasi_albert_graph(500, 2, seed=1),
    "erdos-renyi": networkx.gnm_random_graph(500, 1000, seed=1),
    "small world": networkx.connected_watts_strogatz_graph(400, 4, 0.1, seed=1),
    "karate": networkx.karate_club_graph(),
    "path": networkx.path_graph(50),
    "complete": networkx.complete_graph(150),
    "large random": networkx.gnm_random_graph(3000, 6000, seed=1),
    "large barabasi-albert": networkx.barabasi_albert_graph(3000, 3, seed=1),
}


def graph_of(name, **ends):
    """Return one of these graphs."""
    graph = GRAPHS[name]
    bonds = np.array([pair[:2] for pair in graph.edges()])
    return Graph.of_bonds(graph.number_of_nodes(), bonds, name=name, **ends)


def assert_inside(**settings):
    """Assert that all thresholds lie inside the p that a pilot placed; return the results."""
    results = sweep(**settings, samples=500, device="cpu", workers=1)
    for size in estimates(results, bootstrap=0):
        assert {"second", "chi", "ratio"} <= {item.name for item in size.estimates}
        for item in size.estimates:
            assert np.isfinite(item.p), (size.L, item)
            assert not item.at_edge, (size.L, item)
    return results


@pytest.mark.parametrize(
    "name", [slow(name) if name.startswith("large") else name for name in GRAPHS]
)
def test_the_maxima_of_a_graph_are_inside(name):
    results = assert_inside(graph=graph_of(name))
    (item,) = results.tasks.values()
    assert 20 <= len(item.task.p) <= 25
    # Several of them are about each of <s_2> and chi.
    for estimate in estimates(results, bootstrap=0)[0].estimates[:2]:
        assert sum(abs(p / estimate.p - 1) < 0.5 for p in item.task.p) >= 6, estimate


def test_a_graph_with_ends_has_its_median_and_its_maxima_inside():
    assert_inside(graph=graph_of("random regular", source=[0], target=[200]))


@pytest.mark.parametrize(
    ("name", "shells"),
    [
        ("bethe:3", [2, 5, 7]),
        ("bethe:3:random", [6]),
        ("bethe:4", [3, 5]),
        ("bethe:4:random", [4]),
        ("bethe:5", [4]),
        ("bethe:6:random", [3]),
    ],
)
def test_the_maxima_of_a_bethe_lattice_and_its_median_are_inside(name, shells):
    assert_inside(lattice=name, L=shells)
