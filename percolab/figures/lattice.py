"""A lattice as a figure: its cell and the copies around it, at their places in real space.

In two dimensions it shows a square window of the infinite lattice; in three a block of whole
periods along the coordinate axes in perspective, with a paler far side.  Other dimensions are
refused.  matplotlib is imported when a figure is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.errors import InputError
from percolab.figures import COLOURS, new_figure
from percolab.figures.math_text import plain_text
from percolab.figures.style import Axes, Figure
from percolab.lattices.lattice import Lattice
from percolab.lattices.toml_table import spans_space
from percolab.lattices.topology import unpack_bits

if TYPE_CHECKING:
    from matplotlib.lines import Line2D

#: Colours of the cell's own sites and bonds, of their copies, of outlines, and of periods in space.
_OWN, _COPY, _OUTLINE, _PERIOD = COLOURS[0], "#8c8c8c", COLOURS[1], "#b0b0b0"
#: Margin around a cell in the plane, smallest window, smallest side of a block, in bond lengths.
_MARGIN, _LEAST_WINDOW, _LEAST_SIDE = 1.2, 6.4, 1.1
#: The longest period that is searched for along a coordinate axis, in bond lengths.
_LONGEST_PERIOD = 6.0
#: Direction of view in degrees around the third axis and above the plane; nearness of the eye.
_AZIMUTH, _ELEVATION, _NEARNESS = 19.0, 14.0, 0.16
_DASHES: dict[str, Any] = {"linestyle": (0, (4, 2.5)), "linewidth": 1.2}
_EPSILON = 1e-6
#: Fractions of a bond where it may pass over a site, and how far it is then bent, in bond lengths.
_BETWEEN, _BEND = (1 / 2, 1 / 3, 2 / 3, 1 / 4, 3 / 4), 0.12


@dataclass(frozen=True)
class _Patch:
    """Copies of a cell: places (n, dimension), bonds (m, 2) by index, which points are sites.

    A bond starts at its lower end, so the bonds of a site point along the axes.
    """

    places: np.ndarray
    bonds: np.ndarray
    sites: np.ndarray

    def inside(self, corner: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return the sites in the cell that starts at a corner: one copy of each."""
        cells = np.floor((self.places - corner) @ np.linalg.inv(steps) + _EPSILON)
        return np.asarray(self.sites & ~cells.any(axis=1))


def why_no_places(lattice: Lattice) -> str | None:
    """Return why the sites of a lattice have no coordinates in 2 or 3 dimensions, or None."""
    if lattice.dimension not in (2, 3):
        return f"{lattice.name} has dimension {lattice.dimension}; only 2 and 3 can be drawn"
    if not lattice.vectors or not spans_space(lattice.vectors):
        vectors = np.eye(lattice.dimension, dtype=int).tolist()
        if "unit_cell" in lattice.source:
            return (
                f"{lattice.name}: to draw it, [unit_cell] needs the cell's vectors, as "
                f"vectors = {vectors}, and the sites' positions in units of these, as "
                f"sites = [{[0] * lattice.dimension}, {[0.5] * lattice.dimension}]"
            )
        return (
            f"{lattice.name}: to draw it, [drawing] needs independent vectors, as in "
            f"drawing = {{ vectors = {vectors} }}"
        )
    if pair := _sites_at_one_place(lattice):
        return f"{lattice.name}: cannot be drawn: sites {pair} are at the same position"
    return None


def _sites_at_one_place(lattice: Lattice) -> str:
    """Return the names of two sites of the cell that have one place, copies included, or ""."""
    from scipy.spatial import cKDTree

    sites, shifts = sorted(lattice.sites), dict(lattice.shifts)
    nowhere = (0.0,) * lattice.dimension
    places = np.array(sites) @ lattice.vectors + [shifts.get(each, nowhere) for each in sites]
    parts = places @ np.linalg.inv(_steps(lattice))
    # 1 - 1e-17 is 1, which is a copy of 0.
    found = cKDTree(parts % 1.0 % 1.0, boxsize=1.0).query_pairs(_EPSILON)
    if not found:
        return ""
    first, second = (sites[n] for n in min(found))
    if "unit_cell" in lattice.source:
        return f"{first[0]} and {second[0]}"
    return f"{list(first)} and {list(second)}"


def check_places(lattice: Lattice) -> None:
    problem = why_no_places(lattice)
    if problem is not None:
        raise InputError(problem)


def plot_lattice(lattice: Lattice) -> Figure:
    """Draw the cell of a lattice and the copies around it.

    InputError: the dimension is not 2 or 3, or the file has no [drawing] vectors.
    """
    check_places(lattice)
    with new_figure(4.2, 4.7) as figure:
        figure.set_layout_engine("constrained", h_pad=0.1)
        axes: Any = figure.subplots()
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_title(f"{plain_text(lattice.title)},  $z = {lattice.coordination_number:.4g}$")
        drawn = (_draw_plane if lattice.dimension == 2 else _draw_space)(axes, lattice)
        figure.legend(handles=drawn, loc="outside lower center", ncols=3)
    return figure


def _look(colour: Any, width: float = 2.0, size: float = 6.0) -> dict[str, Any]:
    """Return matplotlib's keywords for sites and bonds of a colour."""
    dot = {"marker": "o", "markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.8}
    return dot | {"color": colour, "linewidth": width}


def _named(label: str, **look: Any) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **look)


def _steps(lattice: Lattice) -> np.ndarray:
    return np.asarray(np.array(lattice.vectors) * np.array(lattice.cell)[:, None])


def _patch(lattice: Lattice, low: np.ndarray, high: np.ndarray) -> _Patch:
    """Return the copies that cover a box; a cell's first grid point is at the origin."""
    corners = np.array(list(product(*zip(low, high, strict=True))))
    in_cells = corners @ np.linalg.inv(_steps(lattice))
    # Two more cells on every side, as shifts move sites out of their cell, and bonds leave it.
    before = np.maximum(np.ceil(-in_cells.min(axis=0)).astype(int), 0) + 2
    after = np.maximum(np.ceil(in_cells.max(axis=0)).astype(int), 0) + 2
    shape = tuple(int(n) for n in (before + after) * lattice.cell)
    topology = lattice.topology(shape)
    return _Patch(
        places=lattice.positions(shape) - before @ _steps(lattice),
        bonds=topology.bonds()[:, :0:-1],
        sites=unpack_bits(topology.occupied, topology.num_points),
    )


def _bond_length(lattice: Lattice) -> float:
    patch = _patch(lattice, *np.zeros((2, lattice.dimension)))
    start, end = patch.places[patch.bonds].swapaxes(0, 1)
    return float(np.linalg.norm(start - end, axis=1).mean())


def _of_unit_scale(lattice: Lattice) -> Lattice:
    """Return a lattice whose bonds are of length 1 to 2, as places are compared to _EPSILON."""
    scale = 2.0 ** -float(np.floor(np.log2(_bond_length(lattice))))
    vectors = tuple(tuple(scale * x for x in vector) for vector in lattice.vectors)
    shifts = tuple((at, tuple(scale * x for x in shift)) for at, shift in lattice.shifts)
    return replace(lattice, vectors=vectors, shifts=shifts)


def _draw_plane(axes: Axes, lattice: Lattice) -> list[Line2D]:
    """Draw a square window around the cell, clipped at its edges; return legend entries."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Polygon

    steps, length = _steps(lattice), _bond_length(lattice)
    corner = _find_corner(lattice, steps)
    outline = corner + np.array([0 * steps[0], steps[0], steps[0] + steps[1], steps[1]])
    half = max(0.5 * np.ptp(outline, axis=0).max() + _MARGIN * length, 0.5 * _LEAST_WINDOW * length)
    low, high = outline.mean(axis=0) - half, outline.mean(axis=0) + half
    patch = _patch(lattice, low, high)
    own = patch.inside(corner, steps)
    for is_own, colour, width in ((False, _COPY, 1.2), (True, _OWN, 2.2)):
        paths = _bond_paths(patch, patch.bonds[own[patch.bonds[:, 0]] == is_own])
        lines = LineCollection(paths, colors=colour, linewidths=width, capstyle="round", zorder=2)
        axes.add_collection(lines)
        places = patch.places[patch.sites & (own == is_own)]
        axes.plot(*places.T, **_look(colour) | {"linestyle": "none", "zorder": 3})
    axes.add_patch(Polygon(outline, fill=False, edgecolor=_OUTLINE, zorder=4, **_DASHES))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return [
        _named("cell", color=_OUTLINE, **_DASHES),
        _named("its sites and bonds", **_look(_OWN)),
        _named("copies", **_look(_COPY, 1.2)),
    ]


def _find_corner(lattice: Lattice, steps: np.ndarray) -> np.ndarray:
    """Return a corner of the cell such that its sites are far from the outline.

    Along each axis it is in the middle of the widest gap between sites, or the first of equal gaps.
    """
    patch = _patch(lattice, *np.zeros((2, lattice.dimension)))
    start = -0.5 * np.sum(lattice.vectors, axis=0)
    parts = np.sort((patch.places[patch.sites] - start) @ np.linalg.inv(steps) % 1, axis=0)
    gaps = np.diff(parts, axis=0, prepend=parts[-1:] - 1)
    axes = np.arange(lattice.dimension)
    widest = np.argmax(gaps > gaps.max(axis=0) - _EPSILON, axis=0)
    return np.asarray(start + (parts - 0.5 * gaps)[widest, axes] @ steps)


def _bond_paths(patch: _Patch, bonds: np.ndarray) -> list[np.ndarray]:
    """Return the paths of bonds: straight, or bent around a site between the bond's ends."""
    from scipy.spatial import cKDTree

    start, end = patch.places[bonds].swapaxes(0, 1)
    between = start + np.array(_BETWEEN)[:, None, None] * (end - start)
    away, _ = cKDTree(patch.places[patch.sites]).query(between)
    passes = (away < _EPSILON).any(axis=0)
    along = np.linspace(0, 1, 25)[:, None]
    sideways = (end - start)[:, ::-1] * [-_BEND, _BEND]
    return [
        first + along * (last - first) + 4 * along * (1 - along) * aside
        if bent
        else np.stack([first, last])
        for first, last, aside, bent in zip(start, end, sideways, passes, strict=True)
    ]


def _draw_space(axes: Axes, lattice: Lattice) -> list[Line2D]:
    """Draw a block of whole periods in perspective; return legend entries.

    The cell is marked if it fits into the block; oblique cells may not fit.
    """
    lattice = _of_unit_scale(lattice)
    low, high, fits = _block(lattice)
    patch, view = _patch(lattice, low, high), _View.of(low, high)
    # Including the surface of the box.
    inside = (patch.places > low - _EPSILON) & (patch.places < high + _EPSILON)
    shown = patch.sites & np.all(inside, axis=1)
    own = shown & (patch.inside(_first_site(lattice), _steps(lattice)) if fits else True)
    flat, far = view.seen(patch.places)
    for start, end in patch.bonds[shown[patch.bonds].all(axis=1)]:
        depth = 0.5 * (far[start] + far[end])
        colour = _faded(_OWN if fits and own[start] else _COPY, depth)
        ends = flat[[start, end]]
        # A wider white line, shorter than the bond, hides lines that pass behind it.
        middle = np.array([[0.85, 0.15], [0.15, 0.85]]) @ ends
        axes.plot(*middle.T, color="white", linewidth=4.5, solid_capstyle="butt", zorder=-depth)
        axes.plot(*ends.T, color=colour, linewidth=2.2 - 1.0 * depth, zorder=-depth)
    for site in np.flatnonzero(shown):
        look = _look(_faded(_OWN if own[site] else _COPY, far[site]), size=9.0 - 4.0 * far[site])
        axes.plot(*flat[site], **look, zorder=0.01 - far[site])
    _draw_edges(axes, view, _edges(low, np.diag(high - low)), _PERIOD, linewidth=0.6, zorder=-2)
    if not fits:
        return [_named("one period along each axis", color=_PERIOD, linewidth=0.6)]
    edges = _edges(_first_site(lattice), _steps(lattice))
    _draw_edges(axes, view, edges, _OUTLINE, linewidth=1.2, zorder=-1.5)
    _tint_faces(axes, view, _first_site(lattice), _steps(lattice))
    return [
        _named("cell", color=_OUTLINE, linewidth=7.0, alpha=0.25),
        _named("its sites and bonds", **_look(_OWN)),
        _named("copies", **_look(_COPY)),
    ]


def _draw_edges(axes: Axes, view: _View, edges: np.ndarray, colour: str, **look: Any) -> None:
    for ends in edges:
        flat, far = view.seen(ends)
        axes.plot(*flat.T, color=_faded(colour, far.mean()), **look)


def _tint_faces(axes: Axes, view: _View, corner: np.ndarray, steps: np.ndarray) -> None:
    from matplotlib.patches import Polygon

    for omitted, end in product(range(3), (0, 1)):
        first, second = np.delete(steps, omitted, axis=0)
        face = corner + end * steps[omitted] + [0 * first, first, first + second, second]
        flat, far = view.seen(face)
        axes.add_patch(Polygon(flat, color=_OUTLINE, alpha=0.07, linewidth=0, zorder=-far.mean()))


@dataclass(frozen=True)
class _View:
    """A perspective view of a box: its centre, half its diagonal, and the axes of the picture."""

    centre: np.ndarray
    radius: float
    axes: np.ndarray

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray) -> _View:
        around, above = np.radians([_AZIMUTH, _ELEVATION])
        right = np.array([np.cos(around), np.sin(around), 0.0])
        level = np.array([np.sin(around), -np.cos(around), 0.0])
        to_eye = np.cos(above) * level + np.array([0.0, 0.0, np.sin(above)])
        axes = np.stack([right, np.cross(to_eye, right), to_eye])
        return cls(0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low)), axes)

    def seen(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return picture coordinates (n, 2) and depths (n,), 0 in front and 1 at the back."""
        turned = (places - self.centre) @ self.axes.T / self.radius
        return turned[:, :2] / (1.0 - _NEARNESS * turned[:, 2:]), 0.5 * (1.0 - turned[:, 2])


def _faded(colour: str, depth: float) -> tuple[float, ...]:
    """Return a colour mixed with white, the more the deeper."""
    from matplotlib.colors import to_rgb

    share = 0.65 * float(np.clip(depth, 0.0, 1.0)) ** 1.5
    return tuple((1 - share) * part + share for part in to_rgb(colour))


def _edges(corner: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the twelve edges (12, 2, 3) of a parallelepiped."""
    corners = [np.array(numbers) for numbers in product((0, 1), repeat=3)]
    pairs = [(a, b) for a in corners for b in corners if min(b - a) == 0 and sum(b - a) == 1]
    return np.asarray(corner + np.array(pairs) @ steps)


def _first_site(lattice: Lattice) -> np.ndarray:
    patch = _patch(lattice, *np.zeros((2, lattice.dimension)))
    first = 0.5 * np.sum(lattice.vectors, axis=0)
    return np.asarray(patch.places[patch.inside(-first, _steps(lattice))][0])


def _block(lattice: Lattice) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the corners of a box of whole periods, and whether the cell fits into it."""
    origin, length = _first_site(lattice), _bond_length(lattice)
    periods = np.array([_period(lattice, axis, length) for axis in range(lattice.dimension)])
    cell: np.ndarray = (_edges(origin, _steps(lattice)).reshape(-1, 3) - origin) / periods
    first = np.floor(cell.min(axis=0) + _EPSILON)
    sides = np.ceil(_LEAST_SIDE * length / periods)
    fits = bool(np.all(first + sides > cell.max(axis=0) - _EPSILON))
    low = origin + (first if fits else 0.0) * periods
    return low, low + sides * periods, fits


def _period(lattice: Lattice, axis: int, length: float) -> float:
    """Return the shortest translation along a coordinate axis that maps sites to sites."""
    from scipy.spatial import cKDTree

    first, along = _first_site(lattice), np.eye(lattice.dimension)[axis]
    far = _LONGEST_PERIOD * length * along
    cell = _edges(first, _steps(lattice)).reshape(-1, 3)
    patch = _patch(lattice, cell.min(axis=0), cell.max(axis=0) + far)
    sites, own = patch.places[patch.sites], patch.places[patch.inside(first, _steps(lattice))]
    away = sites - first
    ahead = np.all(abs(away - away * along) < _EPSILON, axis=1) & (away @ along > _EPSILON)
    tree = cKDTree(sites)
    for distance in np.sort(away[ahead] @ along):
        if np.max(tree.query(own + distance * along)[0]) < _EPSILON:
            return float(distance)
    return 2.0 * length
