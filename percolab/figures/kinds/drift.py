"""The drift of the crossings of neighbouring sizes, and the band of an estimate."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.figures.axes import (
    Exact,
    add_legend,
    draw_exact,
    exact_record,
    few_ticks,
    legend_entries,
    rejection_label,
    set_title,
)
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import (
    BAND,
    COLOURS,
    COLUMN_STYLE,
    COLUMN_WIDTH,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from percolab.analysis import ThresholdFit


def plot_drift(
    fit: ThresholdFit, *, title: str, exact: Exact | None = None
) -> tuple[Figure, dict[str, Any]]:
    """Draw the crossings of neighbouring sizes against L, and where they drift to.

    fit: with at least one crossing found.  Returns the figure and all numbers drawn.
    """
    with new_figure(COLUMN_WIDTH, 3.2, style=COLUMN_STYLE) as figure:
        axes: Any = figure.subplots()
        drift = draw_drift(axes, fit)
        draw_estimate(axes, fit, across=True)
        set_title(figure, title)
        draw_exact(axes, exact, across=True, zorder=1)
        add_legend(figure, legend_entries(axes), loc="outside lower center")
    return figure, {
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
    from percolab.analysis import format_with_error

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


def _draw(figures: StudyView) -> Drawn:
    figure, numbers = plot_drift(figures.fit, **figures.head)
    return figure, numbers | {"observable": figures.name}


def _no_crossing(figures: StudyView) -> str | None:
    problem = figures.no_fit()
    if problem is None and not any(item.found for item in figures.fit.by_size.crossings):
        return "the curves of neighbouring sizes do not cross"
    return problem


KIND = FigureKind(
    place=2,
    meaning=(
        "Crossings p* of neighbouring sizes against a power of their mean size, extrapolated to "
        "infinite size."
    ),
    errors=(
        "Error bars are one-sigma errors; the band is p_c of the fit of all sizes with its error."
    ),
    problem=_no_crossing,
    draw=_draw,
)
