"""The time per sample of labelers as a figure, like Fig 7 of Komura (2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.figures.axes import add_column_legend, legend_entries, plain_ticks
from percolab.figures.style import DASHES, look_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Diameter of the smallest marker in points, and by how much the next ones are larger.
_MARKER, _GROWTH = 3.4, 1.35


@dataclass(frozen=True)
class Timing:
    """Time per sample of one labeler on one lattice: `num_sites` sites, p = ratio * p_c.

    milliseconds: mean time per sample; error: its one-sigma error in ms, 0 when not known.
    """

    lattice: str
    labeler: str
    ratio: float
    num_sites: int
    milliseconds: float
    error: float = 0.0


def plot_timing(records: Sequence[Timing], *, title: str) -> tuple[Figure, dict[str, Any]]:
    """Draw the time per sample against N, doubly logarithmic, with a guide proportional to N.

    A series is one (lattice, labeler, p / p_c): colour and dashes tell lattice and labeler, the
    marker p.
    Markers are hollow, larger for a larger p, so that times that agree are seen to.  The legend
    has a column a lattice.
    Returns the figure and the numbers drawn. Raises ValueError without records.
    """
    if not records:
        raise ValueError("plot_timing needs at least one record")
    groups = list(dict.fromkeys((record.lattice, record.labeler) for record in records))
    ratios = sorted({record.ratio for record in records})
    series = []
    with new_figure(5.2, 4.6) as figure:
        axes = figure.subplots()
        for group, ratio in [(group, ratio) for group in groups for ratio in ratios]:
            own = [r for r in records if (r.lattice, r.labeler, r.ratio) == (*group, ratio)]
            if own:
                number = groups.index(group)
                look = look_of(number, ratios.index(ratio))
                look |= {"linestyle": DASHES[number % len(DASHES)]}
                look |= {"markerfacecolor": "none", "markeredgewidth": 0.9}
                look |= {"markersize": _MARKER * _GROWTH ** ratios.index(ratio)}
                series.append(_draw_series(axes, own, look))
        axes.set(xscale="log", yscale="log", title=title)
        axes.set(xlabel=r"number of sites $N$", ylabel="time per sample (ms)")
        guide = _draw_guide(axes, records)
        plain_ticks(axes)
        lattices = [one["lattice"] for one in series]
        entries = zip(lattices, legend_entries(axes), strict=True)
        add_column_legend(figure, entries, handlelength=3.2)
    return figure, {"title": title, "series": series, "guide": guide}


def _draw_series(axes: Axes, records: Sequence[Timing], look: dict[str, Any]) -> dict[str, Any]:
    ordered = sorted(records, key=lambda record: record.num_sites)
    sites = [record.num_sites for record in ordered]
    times = [record.milliseconds for record in ordered]
    errors = [record.error for record in ordered]
    first = ordered[0]
    times_p_c = "" if first.ratio == 1 else rf"{first.ratio:g}\,"
    label = rf"{first.lattice}, {first.labeler}, $p = {times_p_c}p_c$"
    # A bar of no length is drawn as a dash, as if the error were known to be small.
    bars = np.where(np.array(errors) > 0, errors, np.nan) if any(errors) else None
    axes.errorbar(sites, times, bars, **look, linewidth=0.7, capsize=1.5, label=label)
    return {
        "lattice": first.lattice,
        "labeler": first.labeler,
        "ratio": first.ratio,
        "num_sites": sites,
        "milliseconds": times,
        "error": errors,
    }


def _draw_guide(axes: Axes, records: Sequence[Timing]) -> dict[str, Any]:
    """A line proportional to N below all points."""
    sites = np.array([record.num_sites for record in records], float)
    times = np.array([record.milliseconds for record in records])
    rate = 0.5 * float((times / sites).min())
    ends = np.array([sites.min(), sites.max()])
    axes.plot(ends, rate * ends, color="0.4", linewidth=0.7)
    middle = np.sqrt(ends.prod())
    axes.annotate(
        r"$\propto N$", (middle, rate * middle), (4, -4), textcoords="offset points",
        color="0.4", ha="left", va="top",
    )  # fmt: skip
    return {"num_sites": ends.tolist(), "milliseconds": (rate * ends).tolist()}
