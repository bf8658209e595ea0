"""Cluster sizes against p as a figure, with the estimators of the threshold marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from percolab.analysis import ClusterCurve, Estimate, SizeEstimates, SpanningCurve
from percolab.analysis.json_values import plain
from percolab.analysis.stored_data import curves_of, read_cluster_curves
from percolab.analysis.stored_fits import read_estimates
from percolab.analysis.value import format_with_error
from percolab.figures.alt_text import Numbers, sizes_and_range
from percolab.figures.axes import (
    Exact,
    bars_if_known,
    draw_exact,
    exact_record,
    jackknife_title,
    keep_to_probabilities,
    legend_entries,
    letter_panels,
    plain_ticks,
    size_label,
)
from percolab.figures.kinds.clusters import is_uneven
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import COLOURS, Axes, Figure, choose_looks

#: A panel each: the mean drawn and its axis; an estimator of the same name is marked in it.
_PANELS = {
    "largest": r"$\langle s_1 \rangle / N$",
    "second": r"$\langle s_2 \rangle / N$",
    "chi": "$\\chi$ (sites)\n" r"$\langle \Sigma s^2 - s_1^2 \rangle / N$",
    "ratio": r"$\mathrm{var}(s_1) / \langle s_1 \rangle$" "\n(sites)",
}
_SYMBOLS = {
    "second": r"maximum of $\langle s_2 \rangle$",
    "chi": r"peak of $\chi$",
    "ratio": r"peak of $\mathrm{var}(s_1)/\langle s_1 \rangle$",
    "median": r"$R = 1/2$",
}
_LINES = {
    "second": (COLOURS[1], "-"),
    "chi": (COLOURS[6], (0, (6, 1.5))),
    "ratio": (COLOURS[2], (0, (5, 3))),
    "median": (COLOURS[4], (0, (1, 1.5))),
}
_BARS: dict[str, Any] = {"linewidth": 0.7, "capsize": 1.5}


def plot_maxima(
    clusters: Sequence[ClusterCurve],
    spanning: Sequence[SpanningCurve],
    sizes: Sequence[SizeEstimates],
    *,
    title: str,
    exact: Exact | None = None,
    into: Target = NEW_FIGURE,
) -> tuple[Figure, dict[str, Any]]:
    """Draw s_1/N, s_2/N, chi and var(s_1)/s_1 against p, a panel each, with the estimators of p_c.

    clusters: at least one.  spanning: R(p), which has a panel above them; may be empty.  sizes:
    what is marked, as a line and a band one error wide on either side; of several sizes nothing is.
    exact: published threshold and what is said of it.  Returns the figure and all numbers drawn.
    """
    estimates = {item.name: item for item in sizes[0].estimates} if len(sizes) == 1 else {}
    names = [*(["median"] if spanning else []), *_PANELS]
    with into.sheet(5.2, 1.7 + 1.5 * len(names)) as sheet:
        panels: Any = sheet.subplots(len(names), 1, sharex=True)
        for axes, name in zip(panels, names, strict=True):
            if name == "median":
                _draw_spanning(axes, spanning)
            else:
                _draw_means(axes, clusters, name, labelled=name == "largest")
            top = axes.get_ylim()[1]
            axes.set_ylim(-0.04 * top, top)
            draw_exact(axes, exact, labelled=name == "largest")
            if name in estimates and np.isfinite(estimates[name].p):
                _mark(axes, estimates[name])
        if is_uneven(np.unique(np.concatenate([curve.p for curve in clusters]))):
            panels[0].set_xscale("log")
            plain_ticks(panels[0])
        sheet.set_title(title)
        letter_panels(panels)
        keep_to_probabilities(*panels)
        panels[-1].set_xlabel("$p$")
        entries = [entry for axes in panels for entry in legend_entries(axes)]
        about = jackknife_title(each for curve in clusters for each in curve.errors().values())
        if spanning:
            about = f"{f'{about}; ' if about else ''}of $R$ 68 % Wilson intervals"
        sheet.add_legend(entries, ncols=2, title=about)
    return sheet.figure, {
        "title": title,
        "exact": exact_record(exact),
        "curves": [_numbers_of(curve) for curve in clusters],
        "spanning": [curve.to_dict() for curve in spanning],
        "sizes": [size.to_dict() for size in sizes],
    }


def _draw_spanning(axes: Axes, curves: Sequence[SpanningCurve]) -> None:
    """Draw R with its intervals, of the same sizes as the means."""
    for curve, look, _ in choose_looks(curves):
        low, high = curve.interval()
        bars = np.abs(np.stack([low, high]) - curve.probability)
        axes.errorbar(curve.p, curve.probability, bars, **look, **_BARS)
    axes.set_ylabel("$R$")


def _draw_means(axes: Axes, curves: Sequence[ClusterCurve], name: str, *, labelled: bool) -> None:
    """Draw one mean with its standard errors; sites of clusters as parts of N."""
    sites = {curve.L: curve.num_sites for curve in curves}
    for curve, look, new in choose_looks(curves):
        unit = float(curve.num_sites) if name in ("largest", "second") else 1.0
        values, errors = curve.means()[name] / unit, curve.errors()[name] / unit
        label = size_label(curve.L, sites) if labelled and new else None
        axes.errorbar(curve.p, values, bars_if_known(errors), **look, **_BARS, label=label)
    axes.set_ylabel(_PANELS[name])


def _mark(axes: Axes, estimate: Estimate) -> None:
    colour, style = _LINES[estimate.name]
    where = "end of the grid" if estimate.at_edge else format_with_error(estimate.p, estimate.error)
    label = f"{_SYMBOLS[estimate.name]}: {where}"
    axes.axvline(estimate.p, color=colour, linestyle=style, linewidth=1.0, label=label, zorder=0)
    if np.isfinite(estimate.error):
        low, high = estimate.p - estimate.error, estimate.p + estimate.error
        axes.axvspan(low, high, color=colour, alpha=0.25, linewidth=0, zorder=0)


def _numbers_of(curve: ClusterCurve) -> dict[str, Any]:
    errors = {f"{name}_error": values for name, values in curve.errors().items()}
    head = {"L": curve.L, "num_sites": curve.num_sites, "samples": curve.samples.sum()}
    numbers: dict[str, Any] = plain(head | {"p": curve.p} | curve.means() | errors)
    return numbers


def draw_maxima(figures: StudyView, into: Target = NEW_FIGURE) -> Drawn:
    results = figures.results
    return plot_maxima(
        read_cluster_curves(results),
        curves_of(results) if results.study.boundary else (),
        read_estimates(results, bootstrap=figures.bootstrap),
        **figures.head,
        into=into,
    )


def _no_maxima(figures: StudyView) -> str | None:
    if figures.study.structure.is_scalable:
        return "it is for graphs and Bethe lattices, whose sizes do not scale"
    return figures.no_grid()


def _describe(numbers: Numbers) -> list[str]:
    found = [sizes_and_range(numbers["curves"])]
    if len(numbers["sizes"]) == 1:
        located = [each for each in numbers["sizes"][0]["estimates"] if each["p"] is not None]
        found += [f"{each['meaning'].capitalize()}: p = {each['p']:.4g}." for each in located]
    return found


MAXIMA = FigureKind(
    help="where clusters of a graph or Bethe lattice are most critical",
    meaning="Largest clusters of a graph against p, with the thresholds of a single size.",
    errors=(
        "Error bars are one standard error, of a jackknife over blocks, those of R 68 % Wilson "
        "intervals; bands are the errors of the thresholds, of a bootstrap over blocks."
    ),
    problems=(_no_maxima,),
    draw=draw_maxima,
    alt=_describe,
)
