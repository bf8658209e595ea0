"""Cluster sizes against p as a figure, with the estimators of the threshold marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.plots import (
    COLOURS,
    EXACT_LINE,
    STYLE,
    Exact,
    add_legend,
    exact_label,
    exact_record,
    legend_entries,
    look_of,
)
from percolab.plots_clusters import is_uneven

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from percolab.analysis import ClusterCurve, Estimate, SizeEstimates, SpanningCurve

#: A panel each, from the top: the mean drawn, its axis, and the estimators marked in it.
_PANELS = {
    "largest": (r"$\langle s_1 \rangle / N$", ("median",)),
    "second": (r"$\langle s_2 \rangle / N$", ("second",)),
    "chi": (r"$\chi$", ("chi",)),
    "ratio": (r"$\mathrm{var}(s_1) / \langle s_1 \rangle$", ("ratio",)),
}
_SYMBOLS = {
    "second": r"maximum of $\langle s_2 \rangle$",
    "chi": r"peak of $\chi = \langle \Sigma s^2 - s_1^2 \rangle / N$",
    "ratio": r"peak of $\mathrm{var}(s_1)/\langle s_1 \rangle$",
    "median": r"$R = 1/2$",
}
_LINES = {
    "second": (COLOURS[1], "-"),
    "chi": (COLOURS[5], (0, (6, 1.5))),
    "ratio": (COLOURS[2], (0, (5, 3))),
    "median": (COLOURS[3], (0, (1, 1.5))),
}


def plot_maxima(
    clusters: Sequence[ClusterCurve],
    spanning: Sequence[SpanningCurve],
    sizes: Sequence[SizeEstimates],
    *,
    title: str,
    exact: Exact | None = None,
) -> tuple[Figure, dict[str, Any]]:
    """Draw s_1/N, s_2/N, chi and var(s_1)/s_1 against p, a panel each, with the estimators of p_c.

    clusters: at least one.  spanning: R(p), drawn beside s_1/N; may be empty.  sizes: what is
    marked, as a line and a band one error wide on either side; of several sizes nothing is.
    exact: published threshold and what is said of it.  Returns the figure and all numbers drawn.
    """
    import matplotlib
    from matplotlib.figure import Figure

    order = sorted({curve.L for curve in clusters})
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 7.6), layout="constrained")
        panels: Any = figure.subplots(len(_PANELS), 1, sharex=True)
        for axes, (name, (label, marked)) in zip(panels, _PANELS.items()):
            for curve in clusters:
                index = order.index(curve.L)
                _draw_mean(axes, curve, name, look_of(index, index), len(order) > 1)
            if name == "largest":
                for part in spanning:
                    index = order.index(part.L)
                    look = look_of(index, index if len(order) > 1 else 1)
                    look |= {"markerfacecolor": "white"}
                    named = "$R$ (open symbols)" if part is spanning[0] else None
                    axes.plot(part.p, part.probability, **look, linewidth=0.7, label=named)
            axes.set_ylabel(f"{label}, $R$" if spanning and name == "largest" else label)
            axes.set_ylim(bottom=0.0)
            if exact:
                shown = exact_label(exact) if name == "largest" else None
                axes.axvline(exact[0], label=shown, zorder=0, **EXACT_LINE)
            for estimate in sizes[0].estimates if len(sizes) == 1 else ():
                if estimate.name in marked and np.isfinite(estimate.p):
                    _mark(axes, estimate)
        if is_uneven(np.unique(np.concatenate([curve.p for curve in clusters]))):
            panels[0].set_xscale("log")
        panels[0].set_title(title)
        panels[-1].set_xlabel("$p$")
        entries = [entry for axes in panels for entry in legend_entries(axes)]
        add_legend(figure, entries, loc="outside lower center", ncols=2)
    return figure, {
        "title": title,
        "exact": exact_record(exact),
        "curves": [_numbers_of(curve) for curve in clusters],
        "spanning": [curve.to_dict() for curve in spanning],
        "sizes": [size.to_dict() for size in sizes],
    }


def _draw_mean(
    axes: Axes, curve: ClusterCurve, name: str, look: dict[str, Any], labelled: bool
) -> None:
    """Draw one mean with its standard errors; sites of clusters as parts of N."""
    unit = float(curve.num_sites) if name in ("largest", "second") else 1.0
    values, errors = curve.means()[name] / unit, curve.errors()[name] / unit
    label = f"$L = {curve.L}$, $N = {curve.num_sites}$" if labelled and name == "largest" else None
    bars = errors if np.isfinite(errors).all() else None
    axes.errorbar(curve.p, values, bars, **look, linewidth=0.7, capsize=1.5, label=label)


def _mark(axes: Axes, estimate: Estimate) -> None:
    from percolab.analysis import format_with_error

    colour, style = _LINES[estimate.name]
    where = "end of the grid" if estimate.at_edge else format_with_error(estimate.p, estimate.error)
    label = f"{_SYMBOLS[estimate.name]}: {where}"
    axes.axvline(estimate.p, color=colour, linestyle=style, linewidth=1.0, label=label, zorder=0)
    if np.isfinite(estimate.error):
        low, high = estimate.p - estimate.error, estimate.p + estimate.error
        axes.axvspan(low, high, color=colour, alpha=0.25, linewidth=0, zorder=0)


def _numbers_of(curve: ClusterCurve) -> dict[str, Any]:
    from percolab.analysis.record import plain

    errors = {f"{name}_error": values for name, values in curve.errors().items()}
    head = {"L": curve.L, "num_sites": curve.num_sites, "samples": curve.samples.sum()}
    return plain(head | {"p": curve.p} | curve.means() | errors)
