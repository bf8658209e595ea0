"""R_L(p) with its threshold, its crossings close up, and their drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from percolab.analysis import AnalysisError, Estimate, SpanningCurve, ThresholdFit, fit_size
from percolab.analysis.json_values import plain
from percolab.analysis.stored_data import curves_of
from percolab.analysis.threshold import cut
from percolab.analysis.value import format_with_error
from percolab.figures.alt_text import Numbers, goes_from, sizes_and_range
from percolab.figures.axes import (
    Exact,
    add_legend,
    draw_exact,
    exact_record,
    few_ticks,
    interval_bars,
    is_size,
    keep_to_probabilities,
    legend_entries,
    letter_panels,
    only_p,
    place_sizes,
    size_label,
    title_with_p,
)
from percolab.figures.inset import draw_close_up
from percolab.figures.kinds.drift import draw_drift, draw_estimate
from percolab.figures.sheet import NEW_FIGURE, Sheet, Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import (
    BAND,
    COLOURS,
    COLUMN_STYLE,
    COLUMN_WIDTH,
    DOTTED_LINE,
    PAGE_WIDTH,
    STYLE,
    Axes,
    Figure,
    size_look,
)

_INTERVALS = "68 % Wilson intervals"


def plot_spanning(
    data: ThresholdFit | Sequence[SpanningCurve],
    *,
    title: str,
    axis_label: str,
    exact: Exact | None = None,
    num_sites: Mapping[int, int] | None = None,
    with_drift: bool = True,
    median: Estimate | None = None,
    into: Target = NEW_FIGURE,
) -> tuple[Figure, dict[str, Any]]:
    """Draw R_L(p) with its threshold, the crossings close up, and the drift of the crossings.

    data: a fit; or bare curves when no threshold can be had, drawn without an estimate, and if
    they are several at one p alone, against L.
    axis_label: what spans, for the vertical axis. exact: published threshold and what is said of
    it, as in "1 - 2 sin(pi/18) [Sykes and Essam 1964]".
    num_sites: sites N of each L, to label curves by N as well. with_drift: draw the drift beside
    the curves, on the width of a page; else the curves alone, on that of a column.  median: of a
    single size, the p where half of the samples span.
    Returns the figure and a JSON-serialisable dict of all numbers drawn.
    """
    fit = data if isinstance(data, ThresholdFit) else None
    curves = fit.curves if fit else tuple(data)  # type: ignore[arg-type]
    at = only_p(curves)
    two = with_drift and fit is not None
    size = (PAGE_WIDTH, 4.5) if two else (4.8, 4.3) if with_drift else (COLUMN_WIDTH, 3.6)
    drift = None
    with into.sheet(*size, style=STYLE if with_drift else COLUMN_STYLE) as sheet:
        panels: Any = sheet.subplots(1, 1 + two, width_ratios=[1.9, 1] if two else None)
        main, side = panels if two else (panels, None)
        # Narrow figures name N only where there is no L in addition to it.
        sites = num_sites or {}
        named = sites if with_drift or all(L == N for L, N in sites.items()) else {}
        lines = _draw_curves(main, curves, fit, named)
        main.set(xlabel=r"$p$", ylabel=axis_label)
        sheet.set_title(title_with_p(title, at))
        main.set_ylim(*_probability_range(curves))
        if at is None:
            main.set_xlim(*_symmetric_range(curves, fit))
        else:
            place_sizes(main, sorted({curve.L for curve in curves}))
        few_ticks(main, number=6)
        if fit:
            draw_estimate(main, fit)
            known = fit.known_probability
            if known is not None:
                label = f"{known.value:.4g} at $p_c$, {known.expression.partition(',')[0]}"
                main.axhline(known.value, label=label, zorder=0, **DOTTED_LINE)
            draw_close_up(main, fit)
        if fit and side is not None:
            drift = draw_drift(side, fit)
            draw_estimate(side, fit, across=True, labelled=False)
            draw_exact(side, exact, across=True, labelled=False, zorder=1)
            letter_panels(panels)
        if at is None:
            draw_exact(main, exact, zorder=1)
            keep_to_probabilities(main)
        if median is not None:
            _draw_median(main, median)
        _add_legends(sheet, main, columns=2 if with_drift else 1)
    numbers = {
        "title": title,
        "exact": exact_record(exact),
        "curves": [curve.to_dict() for curve in curves],
        "lines": lines,
        "fit": fit.to_dict() if fit else None,
        "drift": drift,
    }
    return sheet.figure, numbers | ({"median": plain(median)} if median is not None else {})


def _draw_median(axes: Axes, median: Estimate) -> None:
    """Draw where half of the samples span: what is found of a graph with a source and a target."""
    label = f"$R = 1/2$ at $p = {format_with_error(median.p, median.error)}$"
    if np.isfinite(median.error):
        axes.axvspan(median.p - median.error, median.p + median.error, zorder=0, **BAND)
    axes.axvline(median.p, color=COLOURS[1], linestyle=(0, (1, 1.5)), label=label, zorder=1)
    axes.axhline(0.5, zorder=0, **DOTTED_LINE)


def _draw_curves(
    axes: Axes,
    curves: Sequence[SpanningCurve],
    fit: ThresholdFit | None,
    num_sites: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Points with Wilson bars and a fitted line for each size; return the lines."""
    lines = []
    sizes = sorted({curve.L for curve in curves})
    for index, size in enumerate(sizes):
        own = [curve for curve in curves if size == curve.L]
        x = [size] if only_p(curves) is not None else None
        look = size_look(index)
        for number, curve in enumerate(own):
            axes.errorbar(
                x or curve.p, curve.probability, interval_bars(curve), **look, linestyle="none",
                capsize=1.5, elinewidth=0.8, zorder=3,
                label=size_label(size, num_sites) if number == 0 else None,
            )  # fmt: skip
        line = _fitted_line(own, fit)
        if line is not None:
            axes.plot(*line, color=look["color"], zorder=2)
            lines.append({"L": size, "p": line[0].tolist(), "probability": line[1].tolist()})
    return lines


def _fitted_line(
    curves: Sequence[SpanningCurve], fit: ThresholdFit | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """The simultaneous fit, or without one the size's own fit, over the p that were fitted."""
    size = curves[0].L
    if fit is not None:
        own = [curve.p for curve in fit.used if size == curve.L]
        if not own:
            return None
        p = np.linspace(np.concatenate(own).min(), np.concatenate(own).max(), 200)
        return p, fit.probability(p, size)
    try:
        parts = [part for curve in curves if (part := cut(curve)) is not None]
        alone = fit_size(parts)
    except (AnalysisError, ValueError):
        return None
    p = np.linspace(alone.p_low, alone.p_high, 200)
    return p, alone.probability(p)


def _symmetric_range(
    curves: Sequence[SpanningCurve], fit: ThresholdFit | None
) -> tuple[float, float]:
    """Range of p where any R_L rises, centred so that the corners beside the curves stay free."""
    p = np.concatenate([curve.p for curve in curves])
    probability = np.concatenate([curve.probability for curve in curves])
    centre = fit.threshold if fit else float(p[np.argmin(np.abs(probability - 0.5))])
    rising = p[(probability > 0.001) & (probability < 0.999)]
    p = rising if rising.size else p
    reach = 1.06 * float(np.abs(p - centre).max()) or 0.05
    return centre - reach, centre + reach


def _probability_range(curves: Sequence[SpanningCurve]) -> tuple[float, float]:
    """Range of the vertical axis: from 0 to 1, or of the curves if they rise but little."""
    low = min(float(curve.interval()[0].min()) for curve in curves)
    high = max(float(curve.interval()[1].max()) for curve in curves)
    margin = 0.08 * (high - low)
    return (low - margin, high + margin) if 0 < high - low < 0.5 else (-0.03, 1.03)


def _add_legends(sheet: Sheet, main: Axes, *, columns: int) -> None:
    """Sizes in the upper left corner where it is free, everything else below the panels."""
    entries = [pair for axes in sheet.panels for pair in legend_entries(axes)]
    sizes = [(handle, label) for handle, label in entries if is_size(label)]
    rest = [entry for entry in entries if entry not in sizes]
    sheet.add_legend(rest, ncols=columns)
    for ncols in (1, 2):
        add_legend(
            main, sizes, loc="upper left", title=_INTERVALS, alignment="left", ncols=ncols,
            handlelength=1.2, columnspacing=1.2,
        )  # fmt: skip
        if not _hides_a_line(main):
            return
        main.get_legend().remove()  # type: ignore[union-attr]
    sheet.remove_legends()
    sheet.add_legend(entries, ncols=columns + 1, title=_INTERVALS)


def _hides_a_line(axes: Axes) -> bool:
    """Return whether a line passes below the legend of axes."""
    figure: Any = axes.figure.canvas.figure
    layout = figure.get_layout_engine()
    # Where axes and legend come to lie; a figure of the user's may have no layout.
    if layout is not None:
        layout.execute(figure)
    legend: Any = axes.get_legend()
    box = legend.get_window_extent().padded(3)
    lines = [line.get_path().transformed(line.get_transform()) for line in axes.lines]
    return any(path.intersects_bbox(box, filled=False) for path in lines)


def draw_spanning(
    figures: StudyView,
    into: Target = NEW_FIGURE,
    *,
    sizes: Sequence[int] | None = None,
    with_drift: bool = True,
) -> Drawn:
    """Draw the curves of a study, those of these sizes alone if any are named."""
    drawn: Any = curves_of(figures.results, figures.name)
    if not isinstance(figures.fit_or_problem, str):
        fit = figures.fit
        shown = tuple(curve for curve in fit.curves if sizes is None or curve.L in sizes)
        drawn = replace(fit, curves=shown)
    figure, numbers = plot_spanning(
        drawn,
        axis_label=f"{figures.name.partition('_')[0]} probability ${figures.symbol}(p)$",
        num_sites={item.task.size: item.task.num_sites for item in figures.measured()},
        with_drift=with_drift,
        median=figures.median,
        **figures.head,
        into=into,
    )
    return figure, numbers | {"observable": figures.name}


def _describe(numbers: Numbers) -> list[str]:
    curves = numbers["curves"]
    found = [sizes_and_range(curves), goes_from("The probability", curves[-1])]
    fit = numbers.get("fit")
    if fit:
        p_c = format_with_error(fit["threshold"], fit["threshold_error"] or 0.0)
        found.append(f"The curves become steeper with L and cross near p = {p_c}.")
    if numbers.get("median"):
        found.append(f"It is 1/2 at p = {numbers['median']['p']:.4g}.")
    return found


CURVES = FigureKind(
    help="R_L(p), and the crossings close up",
    meaning=(
        "Probability to span or to wrap against p, of a single p against L; where sizes are fitted "
        "together, with p_c and, close up, their crossings."
    ),
    errors=(
        "Error bars are 68 % Wilson intervals; lines are the fit of all sizes, in the close-up and "
        "where there is no such fit of each size alone; the band is p_c with its error, a dotted "
        "line what theory says of the curves at p_c; of a graph where half of the samples span."
    ),
    problems=(StudyView.no_independent_samples,),
    draw=lambda figures, into: draw_spanning(figures, into, with_drift=False),
    alt=_describe,
)
