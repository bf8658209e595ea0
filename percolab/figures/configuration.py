"""The clusters of one configuration as a figure, at their places in real space.

In two dimensions a small lattice is drawn bond by bond, a large one as an image with a cell for
every grid point; in three dimensions a few layers are drawn side by side.  matplotlib is imported
when a figure is made.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.figures import new_figure
from percolab.figures.colours import ClusterColours, choose_colours, spin_rgb
from percolab.figures.elements import set_title
from percolab.figures.lattice import check_places
from percolab.figures.style import Axes, Figure
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.clusters import Clusters

#: The largest numbers of grid points with which bonds are drawn, and with which anything is.
MOST_WITH_BONDS, MOST_POINTS = 4096, 2**24
MOST_LAYERS = 4
#: Width of a bond and of a site, in mean bond lengths.
_BOND, _SITE = 0.17, 0.36
_ARROW = "0.45"
#: Inches of a figure that its title and legend take.
_BELOW = 1.3


def plot_clusters(
    clusters: Clusters,
    lattice: Lattice,
    *,
    opened: np.ndarray | None = None,
    spins: np.ndarray | None = None,
    states: int = 2,
    title: str = "",
    first_row_on_top: bool = False,
    phases: Sequence[str] = (),
) -> tuple[Figure, dict[str, Any]]:
    """Draw clusters on their lattice; return the figure and every number in it, for JSON.

    opened: the open bonds, uint32 (num_classes, num_words), which are drawn if there are few; None
    draws only sites.  spins: uint8 (num_points,), below ``states``, drawn next to the clusters.
    title: may contain matplotlib's mathematics.  first_row_on_top: the second axis points down, as
    the rows of an image do.  phases: the name of every cluster's phase if an image has several.

    InputError: a dimension other than 2 or 3, more points than can be seen, or a lattice without
    coordinates.
    """
    topology = clusters.topology
    check_drawable(lattice, topology.num_points)
    colours = choose_colours(clusters, phases=phases)
    layers = choose_layers(topology.shape)
    places = lattice.positions(topology.shape) if lattice.dimension == 2 else None
    plane = in_plane(lattice)
    ends = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * topology.shape[:2] - 0.5
    corners = ends @ plane
    # Two panels side by side have half the width each.
    most = MOST_WITH_BONDS if spins is None else MOST_WITH_BONDS // 4
    if places is None or topology.num_points > most:
        opened = None
    elif opened is not None:
        corners = _around(places, corners)
    width, height = np.ptp(corners, axis=0)
    rows, columns = (1, 1) if spins is None else (1, 2) if len(layers) == 1 else (2, 1)
    columns *= len(layers)
    ratio, wide, tall = height / width, 7.2, 7.2 / columns * min(height / width, 2.0) + 1.5
    if columns == 1:
        wide = min(4.8, 5.6 / ratio)
        wide, tall = max(wide + 0.4, 3.6), wide * ratio + 1.3
    with new_figure(wide, tall + (rows - 1) * (tall - _BELOW)) as figure:
        grid = figure.subplots(rows, columns, squeeze=False)
        panels = grid.ravel()[-len(layers) :]
        set_title(figure, title)
        if opened is not None:
            drawn = "bonds"
            _draw_bonds(panels[0], clusters, colours, lattice, opened)
        else:
            drawn = "cells"
            for axes, layer in zip(panels, layers, strict=True):
                _draw_layer(axes, colours.rgb(), plane, topology.shape, layer)
                if lattice.dimension == 3:
                    what = "" if spins is None else "clusters, "
                    axes.set_title(f"{what}$z = {layer}$", fontsize=9)
        if spins is not None:
            there = clusters.labels >= 0
            rgb = spin_rgb(spins, there, states)
            for axes, layer in zip(grid.ravel()[: len(layers)], layers, strict=True):
                if drawn == "bonds" and places is not None:
                    diameter = _bond_length(lattice, topology, places)
                    draw_discs(axes, places[there], diameter, facecolors=rgb[there] / 255.0)
                else:
                    _draw_layer(axes, rgb, plane, topology.shape, layer)
                which = f", $z = {layer}$" if lattice.dimension == 3 else ""
                axes.set_title(f"spins{which}", fontsize=9)
            if lattice.dimension == 2:
                panels[0].set_title("clusters of open bonds", fontsize=9)
        for axes in grid.flat:
            _finish(axes, corners, first_row_on_top)
        _draw_directions(panels[0], plane)
        colours.add_legend(figure, with_bonds=drawn == "bonds")
    layer_numbers = layers if lattice.dimension == 3 else None
    return figure, colours.to_dict(title, drawn=drawn, layers=layer_numbers)


def _around(places: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return points (n, 2) that bound a picture of sites: the corners of its grid, moved to sites.

    Sites of a unit cell may be anywhere in it, so they may not be at their grid points.
    """
    moved = corners + places.mean(axis=0) - corners.mean(axis=0)
    return np.concatenate([moved, [places.min(axis=0), places.max(axis=0)]])


def check_drawable(lattice: Lattice, num_points: int) -> None:
    """Raise InputError unless a lattice with this number of grid points can be drawn."""
    check_places(lattice)
    if num_points > MOST_POINTS:
        raise InputError(f"{num_points} grid points, but at most {MOST_POINTS} can be drawn")


def choose_layers(shape: tuple[int, ...]) -> list[int]:
    """Return the layers to draw along the third axis, evenly spaced; [0] in two dimensions."""
    depth = prod(shape[2:])
    count = min(depth, MOST_LAYERS)
    return [round(n * (depth - 1) / max(count - 1, 1)) for n in range(count)]


def in_plane(lattice: Lattice) -> np.ndarray:
    """Return the steps along the first two axes as vectors (2, 2) of the plane they span."""
    first, second = np.array(lattice.vectors)[:2]
    if lattice.dimension == 2:
        return np.array([first, second])
    right = first / np.linalg.norm(first)
    along = second @ right
    return np.array([[np.linalg.norm(first), 0.0], [along, np.linalg.norm(second - along * right)]])


def _draw_layer(
    axes: Axes, rgb: np.ndarray, plane: np.ndarray, shape: tuple[int, ...], layer: int
) -> None:
    """Draw one layer of all points, in colours uint8 (num_points, 3), as an image."""
    columns, rows = shape[:2]
    points = slice(layer * columns * rows, (layer + 1) * columns * rows)
    extent = (-0.5, columns - 0.5, -0.5, rows - 0.5)
    draw_cells(axes, rgb[points].reshape(rows, columns, 3), extent, plane)


def draw_cells(
    axes: Axes, image: np.ndarray, extent: tuple[float, float, float, float], plane: np.ndarray
) -> None:
    """Draw an image, sheared to the lattice: a parallelogram for every grid point, and an outline.

    extent: left, right, bottom and top in grid points.  plane: as from :func:`in_plane`.
    """
    from matplotlib.patches import Polygon
    from matplotlib.transforms import Affine2D

    (a, b), (c, d) = plane
    sheared = Affine2D(np.array([[a, c, 0], [b, d, 0], [0, 0, 1]])) + axes.transData
    look: dict[str, Any] = {"origin": "lower", "interpolation": "nearest", "transform": sheared}
    axes.imshow(image, extent=extent, **look)
    left, right, bottom, top = extent
    corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
    axes.add_patch(Polygon(corners, fill=False, edgecolor=_ARROW, linewidth=0.5, transform=sheared))


def _draw_bonds(
    axes: Axes, clusters: Clusters, colours: ClusterColours, lattice: Lattice, opened: np.ndarray
) -> None:
    topology = clusters.topology
    places = lattice.positions(topology.shape)
    length = _bond_length(lattice, topology, places)
    lines, owners = bond_lines(lattice, topology, places, opened)
    # Points per unit of length in a figure 4.4 inches wide.
    per_length = 4.4 * 72 / max(np.ptp(places, axis=0).max(), length)
    width = float(np.clip(_BOND * length * per_length, 0.5, 3.0))
    # Where bonds cross, prominent clusters are on top.
    order = np.argsort(clusters.sizes[clusters.numbers[owners]], kind="stable")
    lines, owners = lines[order], owners[order]
    rgb = colours.rgb(owners) / 255.0
    draw_lines(axes, lines, colors=rgb, linewidths=width, capstyle="round", zorder=2)
    sites = np.flatnonzero(clusters.labels >= 0)
    draw_discs(axes, places[sites], _SITE * length, facecolors=colours.rgb(sites) / 255.0)


def _bond_length(lattice: Lattice, topology: Topology, places: np.ndarray) -> float:
    """Return the unit of discs and lines: the length of the longest bond inside."""
    every, _ = bond_lines(lattice, topology, places, topology.exists)
    return float(np.linalg.norm(every[:, 0] - every[:, 1], axis=1).max(initial=0.0)) or 1.0


def draw_lines(axes: Axes, lines: np.ndarray, **look: Any) -> Any:
    """Draw lines (n, 2, 2) and return them; look: of matplotlib's LineCollection."""
    from matplotlib.collections import LineCollection

    return axes.add_collection(LineCollection(list(lines), **look))


def draw_discs(axes: Axes, places: np.ndarray, size: float, **look: Any) -> None:
    """Draw sites as discs of this diameter; look: of matplotlib's EllipseCollection."""
    from matplotlib.collections import EllipseCollection

    across = np.full(len(places), size)
    usual: dict[str, Any] = {"units": "xy", "offset_transform": axes.transData}
    usual |= {"linewidths": 0, "zorder": 3, "offsets": places}
    axes.add_collection(EllipseCollection(across, across, 0 * across, **usual | look))


def bond_lines(
    lattice: Lattice, topology: Topology, places: np.ndarray, bonds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return bonds as lines (n, 2, 2) in real space, and a site of each line's cluster (n,).

    bonds: uint32 (num_classes, num_words).  A bond across a periodic boundary is two lines, each
    from a site to the middle of the bond, out of the picture.
    """
    shape = np.array(topology.shape)
    strides = np.cumprod([1, *topology.shape[:-1]])
    lines, sites = [], []
    for klass, offset in enumerate(topology.offsets):
        owner = np.flatnonzero(unpack_bits(bonds[klass], topology.num_points))
        end = owner[:, None] // strides % shape + offset
        around = end // shape
        other = (end - around * shape) @ strides
        start = places[owner]
        step = places[other] + (around * shape) @ np.array(lattice.vectors) - start
        inside = ~around.any(axis=1)
        reach = np.where(inside, 1.0, 0.5)[:, None] * step
        lines += [np.stack([start, start + reach], axis=1)]
        crossing = places[other[~inside]]
        lines += [np.stack([crossing, crossing - 0.5 * step[~inside]], axis=1)]
        sites += [owner, other[~inside]]
    return np.concatenate(lines), np.concatenate(sites)


def make_map(axes: Axes) -> None:
    """Make axes a map without ticks, of equal scale along x and y."""
    axes.set_aspect("equal")
    axes.set_axis_off()


def _finish(axes: Axes, corners: np.ndarray, first_row_on_top: bool) -> None:
    low, high = corners.min(axis=0), corners.max(axis=0)
    margin = 0.02 * (high - low).max()
    make_map(axes)
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    if first_row_on_top:
        axes.invert_yaxis()


def _draw_directions(axes: Axes, plane: np.ndarray) -> None:
    """Draw arrows along the lattice's axes below the lower left corner."""
    from matplotlib.transforms import offset_copy

    downwards = axes.yaxis_inverted()
    figure: Any = axes.figure
    corner = offset_copy(axes.transAxes, figure, 4, -6 if downwards else -28, units="points")
    look: dict[str, Any] = {"arrowstyle": "<|-", "color": _ARROW, "linewidth": 0.8}
    look |= {"mutation_scale": 7, "shrinkA": 1, "shrinkB": 0}
    for name, step in zip("xy", plane * [1, -1 if downwards else 1], strict=True):
        axes.annotate(
            f"${name}$", (0.0, 0.0), 24 * step / np.linalg.norm(step), xycoords=corner,
            textcoords="offset points", arrowprops=look, annotation_clip=False, color=_ARROW,
            fontsize=8, ha="center", va="center",
        )  # fmt: skip
