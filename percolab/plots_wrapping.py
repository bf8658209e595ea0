"""The ways in which clusters wrap around periodic axes, against p, a panel each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from percolab.plots import (
    COLUMN_WIDTH,
    EXACT_LINE,
    STYLE,
    Exact,
    add_legend,
    exact_label,
    exact_record,
    few_ticks,
    legend_entries,
    look_of,
    size_label,
)
from percolab.statistics import wilson_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from percolab.analysis import Known

#: Theory's value at p_c, in every panel that has one.
_VALUE: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 0.9, "zorder": 1}


@dataclass(frozen=True, eq=False)
class WrappingCurve:
    """How many of `samples` samples of one task wrap, int64 (m,), at each p, float64 (m,)."""

    L: int
    samples: int
    p: NDArray[np.float64]
    counts: NDArray[np.int64]

    @property
    def probability(self) -> NDArray[np.float64]:
        """The part of the samples that wraps, float64 (m,)."""
        return self.counts / self.samples

    def interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the 68 % Wilson interval (low, high), float64 (m,) each."""
        return wilson_interval(self.counts, self.samples)


@dataclass(frozen=True, eq=False)
class WrappingPanel:
    """One way to wrap: name and meaning, the curve of every task, and the exact value at p_c."""

    name: str
    meaning: str
    curves: Sequence[WrappingCurve]
    known: Known | None = None

    @property
    def symbol(self) -> str:
        """What the vertical axis says, in matplotlib's mathematics."""
        index = self.name.removeprefix("wrapping_")
        return f"$W_{index}$" if len(index) == 1 else rf"$W_{{\mathrm{{{index}}}}}$"


def plot_wrapping(
    panels: Sequence[WrappingPanel],
    *,
    title: str,
    exact: Exact | None = None,
    num_sites: Mapping[int, int],
) -> tuple[Figure, dict[str, Any]]:
    """Draw the probability of every way to wrap against p, for all sizes, with theory's at p_c.

    panels: at least one, with curves of the same tasks.  exact: published threshold and what is
    said of it.  num_sites: N of each L.  Returns the figure and all numbers drawn.
    """
    import matplotlib
    from matplotlib.figure import Figure

    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    size = (7.2, 1.1 + 2.3 * rows) if columns > 1 else (COLUMN_WIDTH, 3.6)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        grid: Any = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for axes, panel in zip(grid.flat, panels):
            _draw_panel(axes, panel, num_sites)
            if exact:
                axes.axvline(exact[0], label=exact_label(exact), zorder=0, **EXACT_LINE)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for axes in grid[-1]:
            axes.set_xlabel("$p$")
        figure.suptitle(title, fontsize=STYLE["axes.titlesize"])
        add_legend(
            figure, _entries(grid.flat[0], panels), loc="outside lower center",
            ncols=3 if columns > 1 else 1, title="Error bars: 68 % Wilson intervals",
            title_fontsize=8,
        )  # fmt: skip
    return figure, {
        "title": title,
        "exact": exact_record(exact),
        "panels": [_numbers_of(panel) for panel in panels],
    }


def _draw_panel(axes: Axes, panel: WrappingPanel, num_sites: Mapping[int, int]) -> None:
    sizes = sorted({curve.L for curve in panel.curves})
    seen: set[int] = set()
    for curve in panel.curves:
        number = sizes.index(curve.L)
        low, high = curve.interval()
        bars = np.abs(np.stack([low, high]) - curve.probability)
        axes.errorbar(
            curve.p, curve.probability, bars, **look_of(number, number), markersize=2.8,
            linewidth=0.7, elinewidth=0.8, zorder=3,
            label=None if curve.L in seen else size_label(curve.L, num_sites),
        )  # fmt: skip
        seen.add(curve.L)
    axes.set_ylabel(panel.symbol)
    if panel.known is not None:
        axes.axhline(panel.known.value, **_VALUE)
        axes.set_title(f"theory at $p_c$: {panel.known.value:.5f}", fontsize=8)
    # What does not rise with p is small: it has an axis of its own.
    top = max(float(curve.interval()[1].max()) for curve in panel.curves)
    axes.set_ylim(-0.04 * top, 1.06 * top)
    few_ticks(axes, number=4)


def _entries(axes: Axes, panels: Sequence[WrappingPanel]) -> list[tuple[Any, str]]:
    """Return what the legend lists, with one entry for theory's lines in all panels."""
    from matplotlib.lines import Line2D

    entries = legend_entries(axes)
    named = [panel.known for panel in panels if panel.known is not None]
    if named:
        line = {key: value for key, value in _VALUE.items() if key != "zorder"}
        formula = named[0].expression.replace("tau", r"$\tau$")
        entries.append((Line2D([], [], **line), f"at $p_c$, {formula}"))
    return entries


def _numbers_of(panel: WrappingPanel) -> dict[str, Any]:
    from percolab.analysis.record import plain

    return {
        "observable": panel.name,
        "meaning": panel.meaning,
        "theory": plain(panel.known),
        "curves": [
            plain(curve) | plain({"probability": curve.probability, "low": low, "high": high})
            for curve in panel.curves
            for low, high in [curve.interval()]
        ],
    }
