"""Pictures of graphs: the clusters that networkx finds, at places in the picture."""

import json

import networkx
import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import slow

import percolab
from percolab.configurations import picture
from percolab.lattices.graph import make_graph


def hub_last():
    graph = networkx.Graph()
    graph.add_nodes_from(range(41))
    graph.add_edges_from([(40, n) for n in range(40)] + [(0, 1), (2, 3)])
    return graph


KARATE, HUB = networkx.karate_club_graph(), hub_last()


@pytest.mark.parametrize(
    ("given", "model"),
    [(KARATE, "bond"), (HUB, "site"), (KARATE, "bond-weight")]
    + [slow(HUB, "bond"), slow(KARATE, "site"), slow(HUB, "bond-weight")],
    ids=str,
)
def test_drawn_bonds_and_colours_are_those_of_the_clusters(given, model, monkeypatch):
    graph, shown = make_graph(given), []
    if model == "bond-weight":
        graph = graph.with_weights(np.linspace(0.2, 1, graph.num_bonds))
    draw = picture.plot_network
    monkeypatch.setattr(
        picture, "plot_network", lambda *args, **keys: (shown.append(args), draw(*args, **keys))[1]
    )
    figure, numbers = picture.draw_sample_picture(graph, graph.num_sites, 0.4, model=model, seed=2)
    ((_, _, opened),) = shown
    labels = percolab.label(graph=graph, p=0.4, model=model, seed=2)
    assert numbers["site_labels"] == labels.tolist()
    left = networkx.Graph()
    left.add_nodes_from(np.flatnonzero(labels >= 0).tolist())
    left.add_edges_from(graph.bonds.pairs[opened].tolist())
    assert 0 < opened.sum() < graph.num_bonds
    for part in networkx.connected_components(left):
        assert {int(labels[site]) for site in part} == {min(part)}
    places = np.array(numbers["site_places"])
    assert places.shape == (graph.num_sites, 2)
    assert np.abs(places).max() == 1
    again = picture.draw_sample_picture(graph, graph.num_sites, 0.4, model=model, seed=2)[1]
    assert again == numbers
    assert len(figure.axes) == 1


def test_the_command_line_draws_a_graph_and_refuses_what_it_has_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    networkx.write_edgelist(networkx.path_graph(6), "p.txt", data=False)
    found = json.loads(answer("show", "--graph", "p.txt", "-p", 1, "--json"))
    assert found["site_labels"] == [0] * 6
    assert (tmp_path / "clusters.png").stat().st_size > 5000
    networkx.write_edgelist(networkx.path_graph(1001), "long.txt", data=False)
    show = ("show", "--graph", "p.txt", "-p", "0.5")
    for command, message in (
        (("show", "--graph", "long.txt", "-p", 0.5), "1001 sites, but of a graph at most 1000"),
        (("show", "--graph", "p.txt"), "a picture of a sample needs -p"),
        ((*show, "--tree"), "--tree: a graph is drawn with its clusters alone"),
        ((*show, "-L", 8), "-L: a graph is drawn with its clusters alone"),
        ((*show, "--model", "ising"), "a single sample is one of percolation"),
    ):
        assert message in refusal(*command)
