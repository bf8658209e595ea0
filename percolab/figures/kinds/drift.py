"""The drift of the crossings of neighbouring sizes, and the band of an estimate."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from percolab.analysis import ThresholdFit
from percolab.analysis.value import format_with_error
from percolab.figures.alt_text import Numbers
from percolab.figures.axes import (
    Exact,
    draw_exact,
    exact_record,
    few_ticks,
    legend_entries,
    rejection_label,
)
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import (
    BAND,
    COLOURS,
    COLUMN_STYLE,
    COLUMN_WIDTH,
    Axes,
    Figure,
)
from percolab.lattices.shown import counted


def plot_drift(
    fit: ThresholdFit,
    *,
    title: str,
    exact: Exact | None = None,
    into: Target = NEW_FIGURE,
) -> tuple[Figure, dict[str, Any]]:
    """Draw the crossings of neighbouring sizes against L, and where they drift to.

    fit: with at least one crossing found.  Returns the figure and all numbers drawn.
    """
    with into.sheet(COLUMN_WIDTH, 3.2, style=COLUMN_STYLE) as sheet:
        axes: Any = sheet.subplots()
        drift = draw_drift(axes, fit)
        draw_estimate(axes, fit, across=True)
        sheet.set_title(title)
        draw_exact(axes, exact, across=True, zorder=1)
        sheet.add_legend(legend_entries(axes))
    return sheet.figure, {
        "title": title,
        "exact": exact_record(exact),
        "drift": drift,
        "threshold": fit.threshold,
        "threshold_error": fit.threshold_error,
        "crossings": [crossing.to_dict() for crossing in fit.by_size.crossings],
    }


def draw_estimate(
    axes: Axes, fit: ThresholdFit, *, across: bool = False, labelled: bool = True
) -> None:
    """Draw p_c as a band one error wide on either side, with its value in the legend.

    Where there is no answer, the legend says why, and nothing is drawn.
    """
    span, line = (axes.axhspan, axes.axhline) if across else (axes.axvspan, axes.axvline)
    if fit.problem is not None:
        reason = rejection_label(fit.chi_square) or fit.problem.partition(";")[0]
        axes.plot([], [], " ", label=fill(reason, 40) if labelled else None)
        return
    value = format_with_error(fit.threshold, fit.threshold_error)
    low, high = fit.threshold - fit.threshold_error, fit.threshold + fit.threshold_error
    label = rf"$p_c = {value}$, finite-size scaling"
    span(low, high, label=label if labelled else None, zorder=0, **BAND)
    line(fit.threshold, color="0.5", linewidth=0.6, zorder=0)


def draw_drift(axes: Axes, fit: ThresholdFit) -> dict[str, Any]:
    """Crossings against Lbar^-(omega + y_t), with the extrapolation; return what is drawn."""
    exponent = fit.omega + fit.y_t
    found = [crossing for crossing in fit.by_size.crossings if crossing.found]
    x = np.array([crossing.mean_size**-exponent for crossing in found])
    p = np.array([crossing.p for crossing in found])
    errors = np.nan_to_num([crossing.p_error for crossing in found])
    axes.errorbar(
        x, p, errors, color="black", marker="o", markerfacecolor="white", linestyle="none",
        elinewidth=0.8, capsize=1.5, label="crossings of neighbouring sizes",
    )  # fmt: skip
    drift = fit.by_size.drift
    if drift is not None:
        # Of sizes that differ by the mean factor of those that cross.
        factor = np.exp(np.mean([np.log(item.L2 / item.L1) for item in found]))
        end = np.linspace(0.01, 1.04, 60) * x.max()
        small = end ** (-1 / exponent) / factor**0.5
        label = rf"$p_c$ = {drift.result}, drift of crossings"
        axes.plot(end, drift.at(small, factor * small), color=COLOURS[1], zorder=1, label=label)
        if not drift.result.rejected:
            axes.errorbar(
                0.0, drift.threshold, drift.threshold_error, color=COLOURS[1], marker="D",
                elinewidth=1.0, capsize=2.5,
            )  # fmt: skip
    right = 1.1 * float(x.max()) if x.size else 1.0
    axes.set_xlim(-0.08 * right, right)
    axes.set(xlabel=r"$\bar{L}^{\,-(\omega + 1/\nu)}$", ylabel=r"$p^*(L_1, L_2)$")
    few_ticks(axes, number=5)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useOffset=True)
    return {
        "exponent": exponent,
        "x": x.tolist(),
        "p": p.tolist(),
        "p_error": errors.tolist(),
        "line": drift.to_dict() if drift is not None else None,
    }


def _draw(figures: StudyView, into: Target) -> Drawn:
    figure, numbers = plot_drift(figures.fit, **figures.head, into=into)
    return figure, numbers | {"observable": figures.name}


def _no_crossing(figures: StudyView) -> str | None:
    crosses = any(item.found for item in figures.fit.by_size.crossings)
    return None if crosses else "the curves of neighbouring sizes do not cross"


def _describe(numbers: Numbers) -> list[str]:
    p = numbers["drift"]["p"]
    line = numbers["drift"]["line"]
    end = f" A curve through them ends at p = {line['threshold']:.6g}." if line else ""
    where = f"at p = {p[0]:.6g}" if len(p) == 1 else f"from p = {p[0]:.6g} to p = {p[-1]:.6g}"
    return [f"{counted(len(p), 'crossing')} of neighbouring sizes, {where}.{end}"]


DRIFT = FigureKind(
    help="the crossings against L",
    meaning=(
        "Crossings p* of neighbouring sizes against a power of their mean size, extrapolated to "
        "infinite size."
    ),
    errors=(
        "Error bars are one-sigma errors; the band is p_c of the fit of all sizes with its error."
    ),
    problems=(StudyView.no_fit, _no_crossing),
    draw=_draw,
    alt=_describe,
)
