"""An invasion as a figure: the time at which sites were invaded, and curves of the weights taken.

The picture shows time by colour, from dark to light, at the sites' places in real space: bond by
bond if there are few, else with a cell for every grid point, or for the earliest of several points
in large invasions; in three dimensions layers.  Next to it are the acceptance profile, the sizes of
bursts and the capillary pressure curve.  matplotlib is imported when a figure is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.errors import InputError
from percolab.figures import configuration as maps
from percolab.figures.elements import letter_panels, set_title
from percolab.figures.lattice import why_no_places
from percolab.figures.style import COLOURS, EXACT_LINE, Axes, Figure, new_figure
from percolab.lattices.lattice import Lattice
from percolab.trees.invasion import Floats, Integers, Invasion

#: The largest number of grid points with which bonds are drawn, and of pixels along a side.
MOST_WITH_BONDS, MOST_PIXELS = 4096, 1000
_MAP, _NEVER = "viridis", "#e8e8e8"


@dataclass(frozen=True)
class Curves:
    """Curves from the weights of one invasion, or the sums over several.

    edges, tried, accepted: as from :meth:`Invasion.acceptance`
    bursts: int64, sizes; bursts_at: the p at which they begin, or None
    pressures, saturations: the capillary pressure curve of the first invasion
    """

    edges: Floats
    tried: Integers
    accepted: Integers
    bursts: Integers
    bursts_at: float | None
    pressures: Floats
    saturations: Floats

    @classmethod
    def of(cls, invasion: Invasion, p: float | None = None) -> Curves:
        return cls(*invasion.acceptance(), invasion.bursts(p), p, *invasion.pressure_curve())

    def plus(self, other: Curves) -> Curves:
        """Return the sum of both; the pressure curve is that of the first."""
        tried, accepted = self.tried + other.tried, self.accepted + other.accepted
        bursts = np.concatenate([self.bursts, other.bursts])
        return replace(self, tried=tried, accepted=accepted, bursts=bursts)

    @property
    def numbers(self) -> dict[str, Any]:
        sizes, counts = np.unique(self.bursts, return_counts=True)
        own = vars(self) | {"weights": 0.5 * (self.edges[1:] + self.edges[:-1])}
        del own["edges"], own["bursts"]
        numbers: dict[str, Any] = plain(own | {"burst_sizes": sizes, "burst_counts": counts})
        return numbers


def can_draw_places(structure: Any) -> bool:
    """Return whether the sites of a structure have places in a plane or in layers."""
    return isinstance(structure, Lattice) and why_no_places(structure) is None


def plot_invasion(
    invasion: Invasion,
    curves: Curves,
    structure: Any,
    *,
    title: str = "",
    threshold: float | None = None,
) -> tuple[Figure, dict[str, Any]]:
    """Draw an invasion; return the figure and every number in its curves, for JSON.

    structure: what was invaded; without places only curves are drawn.  threshold: the p_c of an
    infinite lattice, drawn if it is known.  InputError: nothing was invaded.
    """
    if invasion.num_invaded <= invasion.num_sources:
        raise InputError("nothing was invaded but the source, so there is nothing to draw")
    places = can_draw_places(structure)
    with new_figure(7.2, 7.4 if places else 2.7) as figure:
        set_title(figure, title)
        lower: Any = figure
        if places:
            both: Any = figure.subfigures(2, 1, height_ratios=[2.0, 1.0])
            upper, lower = both
            _draw_picture(upper, invasion, structure)
        panels = lower.subplots(1, 3)
        _draw_acceptance(panels[0], curves, threshold)
        _draw_bursts(panels[1], curves)
        _draw_pressure(panels[2], curves, invasion)
        letter_panels(panels)
    return figure, {"title": title, **curves.numbers}


# The picture


def _draw_picture(figure: Any, invasion: Invasion, lattice: Lattice) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    layers = maps.choose_layers(invasion.shape)
    rows = 2 if len(layers) == maps.MOST_LAYERS else 1
    panels: Any = figure.subplots(rows, len(layers) // rows, squeeze=False).ravel()
    # All sources are invaded at the beginning.
    begin = max(invasion.num_sources - 1, 0)
    norm = Normalize(begin, max(invasion.num_invaded - 1, begin + 1))
    few = lattice.dimension == 2 and prod(invasion.shape) <= MOST_WITH_BONDS
    for axes, layer in zip(panels, layers):
        maps.make_map(axes)
        if few:
            _draw_sites(axes, invasion, lattice, norm)
        else:
            _draw_cells(axes, invasion, lattice, layer, norm)
        if lattice.dimension == 3:
            axes.set_title(f"$z = {layer}$", fontsize=9)
    figure.colorbar(ScalarMappable(norm, _MAP), ax=panels, shrink=0.8, pad=0.02, label="step")


def _draw_sites(axes: Axes, invasion: Invasion, lattice: Lattice, norm: Any) -> None:
    places = lattice.positions(invasion.shape)
    steps = np.maximum(np.arange(invasion.num_invaded), norm.vmin)
    cell = np.stack(np.unravel_index(np.arange(len(places)), invasion.shape[::-1])[::-1], axis=1)
    is_site = np.ones(len(places), bool)
    for point in lattice.vacant:
        is_site &= ~np.all(cell % lattice.cell == point, axis=1)
    taken = np.flatnonzero(invasion.origins >= 0)
    ends = places[invasion.sites[taken]], places[invasion.origins[taken]]
    length = np.linalg.norm(ends[0] - ends[1], axis=1)
    unit = float(np.median(length)) if taken.size else 1.0
    # Lines of bonds across a periodic boundary would cross the picture.
    near = length < 1.8 * unit
    lines = np.stack(ends, axis=1)[near]
    extent = max(float(np.ptp(places, axis=0).max()), unit)
    width = float(np.clip(0.28 * unit / extent * 4.2 * 72, 0.5, 4.0))
    points = {"cmap": _MAP, "norm": norm, "array": steps[taken][near], "zorder": 2}
    maps.draw_lines(axes, lines, linewidths=width, **points)
    maps.draw_discs(axes, places[is_site], 0.16 * unit, facecolors="0.85", zorder=1)
    look = {"cmap": _MAP, "norm": norm, "array": steps}
    maps.draw_discs(axes, places[invasion.sites], 0.42 * unit, **look)
    low, high = places.min(axis=0) - 0.7 * unit, places.max(axis=0) + 0.7 * unit
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _draw_cells(axes: Axes, invasion: Invasion, lattice: Lattice, layer: int, norm: Any) -> None:
    """Draw the part of a layer that was invaded as an image, sheared to the lattice."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba

    columns, rows = invasion.shape[:2]
    sites = invasion.sites.astype(np.int64)
    x, y, z = sites % columns, sites // columns % rows, sites // (columns * rows)
    # All layers show the same window.
    low = np.array([x.min(), y.min()])
    size = np.array([x.max(), y.max()]) - low + 1
    if (size > 0.7 * np.array([columns, rows])).any():
        low, size = np.zeros(2, np.int64), np.array([columns, rows])
    coarse = -(-int(size.max()) // MOST_PIXELS)
    pixels = -(-size // coarse)
    first = np.full(int(pixels.prod()), invasion.num_invaded, np.int64)
    here = np.flatnonzero(z == layer)
    place = (y[here] - low[1]) // coarse * pixels[0] + (x[here] - low[0]) // coarse
    np.minimum.at(first, place, here)
    image = colormaps[_MAP](norm(np.maximum(first, norm.vmin)))
    image[first == invasion.num_invaded] = to_rgba(_NEVER)
    plane = maps.in_plane(lattice)
    left, bottom = low - 0.5
    right, top = low - 0.5 + coarse * pixels
    image = image.reshape(pixels[1], pixels[0], 4)
    maps.draw_cells(axes, image, (left, right, bottom, top), plane)
    corners = np.array([[left, bottom], [right, bottom], [left, top], [right, top]]) @ plane
    axes.set_xlim(corners[:, 0].min(), corners[:, 0].max())
    axes.set_ylim(corners[:, 1].min(), corners[:, 1].max())


# The curves


def _draw_acceptance(axes: Axes, curves: Curves, threshold: float | None) -> None:
    tried = np.maximum(curves.tried, 1)
    share = np.where(curves.tried > 0, curves.accepted / tried, np.nan)
    axes.stairs(share, curves.edges, color=COLOURS[0], linewidth=1.1, baseline=None)
    if threshold is not None:
        axes.axvline(threshold, label="$p_c$", **EXACT_LINE)
        axes.legend(loc="upper right")
    axes.set(xlabel="weight $r$", ylabel="accepted / tried", ylim=(-0.03, 1.06))
    axes.set_xlim(float(curves.edges[0]), float(curves.edges[-1]))


def _draw_bursts(axes: Axes, curves: Curves) -> None:
    from matplotlib.ticker import NullFormatter

    begin = "records" if curves.bursts_at is None else f"weights from $p_0 = {curves.bursts_at:g}$"
    axes.set(xlabel="burst size $s$", ylabel=r"density, bars $\sqrt{n}$")
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(f"bursts between {begin}", fontsize=8)
    if not curves.bursts.size:
        axes.text(0.5, 0.5, "none is complete", transform=axes.transAxes, ha="center", fontsize=8)
        return
    most = int(curves.bursts.max()).bit_length()
    edges = 2.0 ** np.arange(most + 1) - 0.5
    edges[0] = 0.5
    counts, _ = np.histogram(curves.bursts, edges)
    there = counts > 0
    density = counts / np.diff(edges) / curves.bursts.size
    centres = np.sqrt((edges[:-1] + 0.5) * (edges[1:] - 0.5))
    error = density / np.sqrt(np.maximum(counts, 1))
    # On a logarithmic axis a bar must end above 0.
    below = np.minimum(error, 0.9 * density)
    bars = np.array([below[there], error[there]])
    axes.errorbar(centres[there], density[there], bars, fmt="o", color=COLOURS[0])


def _draw_pressure(axes: Axes, curves: Curves, invasion: Invasion) -> None:
    """Draw pressure against saturation, as is customary, as far as it was measured."""
    begin = invasion.num_sources / invasion.num_sites
    pressures = np.append(curves.pressures[:1], curves.pressures)
    axes.step(np.append(begin, curves.saturations), pressures, where="pre", color=COLOURS[0])
    axes.set(xlabel="invaded fraction", ylabel="largest weight so far")
    axes.set_ylim(float(curves.edges[0]), float(curves.edges[-1]))
    axes.set_xlim(left=0.0)
    if invasion.breakthrough is not None:
        axes.axhline(invasion.threshold, **EXACT_LINE | {"color": COLOURS[1]})
        axes.set_title(f"breakthrough at weight {invasion.threshold:.4g}", fontsize=8)
