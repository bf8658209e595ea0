"""The clusters of a small graph as a figure, where a spring layout of networkx puts its sites."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError, import_networkx
from percolab.figures import new_figure
from percolab.figures.axes import set_title
from percolab.figures.colours import choose_colours
from percolab.figures.configuration import draw_discs, make_map
from percolab.figures.legend import add_legend, legend_numbers
from percolab.figures.style import Figure
from percolab.lattices.graph import Graph
from percolab.measure.clusters import Clusters

#: More sites than this are one blot.
MOST_SITES = 1000
_INCHES = 5.4
#: Share of the picture that all discs cover, and the largest diameter of one.
_COVERED, _WIDEST = 0.06, 0.06


def check_network(graph: Graph) -> None:
    """Raise InputError if a graph cannot be drawn."""
    if graph.num_sites > MOST_SITES:
        raise InputError(
            f"{graph.name}: {graph.num_sites} sites, but of a graph at most {MOST_SITES} are drawn"
        )


def network_places(graph: Graph) -> NDArray[np.float64]:
    """Return places for the sites of a graph, float64 (num_sites, 2), in a square of side 2.

    InputError where networkx is not installed.
    """
    networkx = import_networkx("places of a graph's sites")
    found = networkx.Graph()
    found.add_nodes_from(range(graph.num_sites))
    found.add_edges_from(graph.bonds.pairs.tolist())
    places = networkx.spring_layout(found, iterations=200, seed=1)
    rows = np.array([places[site] for site in range(graph.num_sites)]).reshape(-1, 2)
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.asarray(2 * (rows - low) / np.maximum(high - low, 1e-9) - 1)


def plot_network(
    clusters: Clusters, graph: Graph, opened: NDArray[np.bool_], *, title: str = ""
) -> tuple[Figure, dict[str, Any]]:
    """Draw the clusters of a graph; return the figure and every number in it, for JSON.

    opened: of every bond, bool (num_bonds,).  Open bonds and sites have the colour of their
    cluster, closed bonds are thin and grey, vacant sites are rings.
    InputError: more sites than can be drawn, or networkx is not installed.
    """
    from matplotlib.collections import LineCollection

    check_network(graph)
    places, pairs = network_places(graph), graph.bonds.pairs
    colours = choose_colours(clusters)
    faces = colours.rgb() / 255.0
    size = min(2 * np.sqrt(_COVERED * 4 / (np.pi * graph.num_sites)), _WIDEST)
    with new_figure(_INCHES, _INCHES + 0.8) as figure:
        axes: Any = figure.subplots()
        make_map(axes)
        axes.set(xlim=(-1 - size, 1 + size), ylim=(-1 - size, 1 + size))
        set_title(figure, title)
        lines = places[pairs]
        axes.add_collection(LineCollection(lines[~opened], colors="0.85", linewidths=0.5, zorder=1))
        own = faces[pairs[opened, 0]]
        axes.add_collection(LineCollection(lines[opened], colors=own, linewidths=1.4, zorder=2))
        draw_discs(axes, places, size, facecolors=faces, edgecolors="0.35", linewidths=0.4)
        add_legend(figure, clusters, colours, with_bonds=True)
    numbers = legend_numbers(clusters, colours, title, drawn="bonds")
    sites = {"site_labels": clusters.labels.tolist(), "site_places": places.round(6).tolist()}
    return figure, numbers | sites
