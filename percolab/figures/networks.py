"""Clusters of structures without coordinates as a figure: a Bethe lattice, or a small graph.

Bethe lattices are drawn shell by shell around the centre, as in Figs 8 and 9 of Komura (2016): a
circle for every site, with its number if there is space, and open bonds and sites in the colour of
their cluster, which differs from neighbouring clusters.  A spring layout of networkx places the
sites of a graph.  matplotlib is imported when a figure is made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError, import_networkx
from percolab.figures import new_figure
from percolab.figures.colours import ClusterColours, choose_colours
from percolab.figures.configuration import draw_discs, draw_lines, make_map
from percolab.figures.elements import set_title
from percolab.figures.style import Axes, Figure
from percolab.lattices.bethe import BetheLattice, parents, site_numbers
from percolab.lattices.graph import Graph
from percolab.measure.clusters import Clusters

#: The largest numbers of sites that fit into the outermost shell's circle, and with site numbers.
MOST_SITES, MOST_NUMBERED = 1600, 200
#: The largest number of sites of a graph that can be distinguished.
MOST_GRAPH_SITES = 1000
_INCHES = 5.4
#: Fraction of the picture that all discs of a graph cover, and the largest diameter of a disc.
_COVERED, _WIDEST = 0.06, 0.06


@contextmanager
def _map(title: str, reach: float, colours: ClusterColours) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure and its axes, which extend by ``reach`` from the centre; add a legend."""
    with new_figure(_INCHES, _INCHES + 0.8) as figure:
        axes: Any = figure.subplots()
        make_map(axes)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
        set_title(figure, title)
        yield figure, axes
        colours.add_legend(figure, with_bonds=True)


def check_shells(lattice: BetheLattice, shells: int) -> None:
    (num_sites,) = lattice.shape(shells)
    if num_sites > MOST_SITES:
        raise InputError(f"{shells} shells: {num_sites} sites, but at most {MOST_SITES} are drawn")


def bethe_places(shells: int, coordination_number: int) -> np.ndarray:
    """Return the sites' places (num_sites, 2) in standard numbering: shell s has the radius s.

    The sites of a shell have equal angles between them, so a site is in the middle of its children.
    """
    places, in_shell = [np.zeros((1, 2))], coordination_number
    for shell in range(1, shells + 1):
        # The first site of the first shell's branch begins at the top.
        angle = 0.5 * np.pi + 2 * np.pi * (np.arange(in_shell) + 0.5) / in_shell
        angle -= np.pi / coordination_number
        places.append(shell * np.column_stack([np.cos(angle), np.sin(angle)]))
        in_shell *= coordination_number - 1
    return np.concatenate(places)


def plot_bethe(
    clusters: Clusters, lattice: BetheLattice, shells: int, *, title: str = ""
) -> tuple[Figure, dict[str, Any]]:
    """Draw the clusters of a Bethe lattice; return the figure and every number in it, for JSON.

    The JSON has the sites from the centre outwards, shell after shell: their ``site_numbers`` and
    ``site_labels``.  InputError: more sites than can be drawn.
    """
    check_shells(lattice, shells)
    coordination_number = lattice.coordination_number
    colours = choose_colours(clusters, grey_singles=False)
    places = bethe_places(shells, coordination_number)
    sites = site_numbers(len(places), lattice.numbering)
    with _map(title, shells + 0.5, colours) as (figure, axes):
        # Half of the available space.
        outermost = coordination_number * (coordination_number - 1) ** (shells - 1)
        radius = min(0.3, float(0.42 * 2 * np.pi * shells / outermost))
        inner = parents(len(places), coordination_number)
        lines = np.stack([places[inner], places[1:]], axis=1)
        opened = open_inwards(clusters, sites, inner)
        _draw_bonds(axes, lines, opened, colours.rgb(sites[1:]) / 255.0, radius)
        _draw_sites(axes, places, sites, colours, radius)
    written = {"site_numbers": sites.tolist(), "site_labels": clusters.labels[sites].tolist()}
    return figure, colours.to_dict(title, drawn="bonds") | written


def open_inwards(clusters: Clusters, sites: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Return for every site but the centre, in standard order, whether its bond inwards is open.

    On a tree two neighbours are in one cluster if and only if the bond between them is open.
    """
    return np.asarray(clusters.labels[sites[1:]] == clusters.labels[sites[inner]])


def _draw_bonds(
    axes: Axes, lines: np.ndarray, opened: np.ndarray, colours: np.ndarray, radius: float
) -> None:
    # Many closed bonds would hide the open ones.
    grey = "0.65" if len(lines) < MOST_NUMBERED else "0.85"
    draw_lines(axes, lines[~opened], colors=grey, linewidths=0.6, zorder=1)
    width = float(np.clip(0.5 * radius * _points_per_unit(lines), 0.8, 2.4))
    draw_lines(axes, lines[opened], colors=colours[opened], linewidths=width, zorder=2)


def _points_per_unit(places: np.ndarray) -> float:
    return float(72 * _INCHES / (2.0 * np.abs(places).max() + 1.0))


def _draw_sites(
    axes: Axes, places: np.ndarray, sites: np.ndarray, colours: ClusterColours, radius: float
) -> None:
    faces = colours.rgb(sites) / 255.0
    draw_discs(axes, places, 2 * radius, facecolors=faces)
    if len(places) > MOST_NUMBERED:
        return
    digits = len(str(len(places) - 1))
    size = min(8.0, 2 * radius * _points_per_unit(places) / (0.62 * digits + 0.3))
    for (x, y), number, face in zip(places, sites.tolist(), faces, strict=True):
        dark = face @ [0.299, 0.587, 0.114] < 0.55
        axes.text(
            x, y, str(number), ha="center", va="center_baseline", zorder=4, fontsize=size,
            color="white" if dark else "black",
        )  # fmt: skip


# Graphs


def check_network(graph: Graph) -> None:
    if graph.num_sites > MOST_GRAPH_SITES:
        most = f"but only graphs of at most {MOST_GRAPH_SITES} are drawn"
        raise InputError(f"{graph.name}: {graph.num_sites} sites, {most}")


def network_places(graph: Graph) -> NDArray[np.float64]:
    """Return places for the sites of a graph, float64 (num_sites, 2), in a square of side 2.

    InputError: networkx is not installed.
    """
    networkx = import_networkx("places of a graph's sites")
    simple = networkx.Graph()
    simple.add_nodes_from(range(graph.num_sites))
    simple.add_edges_from(graph.bonds.pairs.tolist())
    rows, corner, tall = np.zeros((graph.num_sites, 2)), np.zeros(2), 0.0
    # A single layout would put components far apart, so each has its own, in rows side by side.
    for part in map(sorted, sorted(networkx.connected_components(simple), key=len, reverse=True)):
        own = networkx.spring_layout(simple.subgraph(part), iterations=200, seed=1)
        side = len(part) ** 0.5
        if corner[0] and corner[0] + side > graph.num_sites**0.5:
            corner, tall = np.array([0.0, corner[1] - tall]), 0.0
        within = np.array([own[site] for site in part])
        rows[part] = corner + side * ([0.5, -0.5] + 0.45 * within)
        corner[0], tall = corner[0] + side, max(side, tall)
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
    check_network(graph)
    places, pairs = network_places(graph), graph.bonds.pairs
    colours = choose_colours(clusters)
    faces = colours.rgb() / 255.0
    size = min(2 * np.sqrt(_COVERED * 4 / (np.pi * graph.num_sites)), _WIDEST)
    with _map(title, 1 + size, colours) as (figure, axes):
        lines = places[pairs]
        draw_lines(axes, lines[~opened], colors="0.85", linewidths=0.5, zorder=1)
        own = faces[pairs[opened, 0]]
        draw_lines(axes, lines[opened], colors=own, linewidths=1.4, zorder=2)
        draw_discs(axes, places, size, facecolors=faces, edgecolors="0.35", linewidths=0.4)
    sites = {"site_labels": clusters.labels.tolist(), "site_places": places.round(6).tolist()}
    return figure, colours.to_dict(title, drawn="bonds") | sites
