"""The clusters of a Bethe lattice as a figure, shell after shell around the centre.

As Figs 8 and 9 of Komura (2016): a circle for every site with its number in it while there is room,
open bonds and sites in the colour of their cluster, which no neighbouring cluster has.  matplotlib
loads when a figure is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.figures import new_figure
from percolab.figures.colours import ClusterColours, choose_colours
from percolab.figures.configuration import draw_discs, make_map
from percolab.figures.elements import set_title
from percolab.figures.legend import add_legend, legend_numbers
from percolab.figures.style import Axes, Figure
from percolab.lattices.bethe import BetheLattice, parents, site_numbers
from percolab.measure.clusters import Clusters

#: More sites than this lie too close in the outermost shell, and in smaller ones there are numbers.
MOST_SITES, MOST_NUMBERED = 1600, 200
_INCHES = 5.4


def check_shells(lattice: BetheLattice, shells: int) -> None:
    """Raise InputError if there is no Bethe lattice of so many shells, or it cannot be drawn."""
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
    with new_figure(_INCHES, _INCHES + 0.8) as figure:
        axes: Any = figure.subplots()
        make_map(axes)
        axes.set(xlim=(-shells - 0.5, shells + 0.5), ylim=(-shells - 0.5, shells + 0.5))
        set_title(figure, title)
        radius = _radius(shells, coordination_number)
        inner = parents(len(places), coordination_number)
        lines = np.stack([places[inner], places[1:]], axis=1)
        opened = open_inwards(clusters, sites, inner)
        _draw_bonds(axes, lines, opened, colours.rgb(sites[1:]) / 255.0, radius)
        _draw_sites(axes, places, sites, colours, radius)
        add_legend(figure, clusters, colours, with_bonds=True, grey_singles=False)
    numbers = legend_numbers(clusters, colours, title, drawn="bonds")
    written = {"site_numbers": sites.tolist(), "site_labels": clusters.labels[sites].tolist()}
    return figure, numbers | written


def _radius(shells: int, coordination_number: int) -> float:
    """Return the radius of a site's circle: half of what there is room for."""
    outermost = coordination_number * (coordination_number - 1) ** (shells - 1)
    return min(0.3, float(0.42 * 2 * np.pi * shells / outermost))


def open_inwards(clusters: Clusters, sites: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Return for every site but the centre, in standard order, if the bond inwards is open.

    On a tree two neighbours are in one cluster if the bond between them is open, and only then.
    """
    same: np.ndarray = clusters.labels[sites[1:]] == clusters.labels[sites[inner]]
    return same


def _draw_bonds(
    axes: Axes, lines: np.ndarray, opened: np.ndarray, colours: np.ndarray, radius: float
) -> None:
    from matplotlib.collections import LineCollection

    # Many closed bonds would hide the open ones.
    grey = "0.65" if len(lines) < MOST_NUMBERED else "0.85"
    axes.add_collection(LineCollection(list(lines[~opened]), colors=grey, linewidths=0.6, zorder=1))
    width = float(np.clip(0.5 * radius * _points_per_unit(lines), 0.8, 2.4))
    axes.add_collection(
        LineCollection(list(lines[opened]), colors=colours[opened], linewidths=width, zorder=2)
    )


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
