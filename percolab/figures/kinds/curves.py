"""R_L(p) with its threshold, an inset with a close-up of its crossings, and their drift."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import fill
from typing import Any

import numpy as np

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.json_values import plain
from percolab.analysis.likelihood import fit_size
from percolab.analysis.maxima import Estimate
from percolab.analysis.threshold import ThresholdFit, cut
from percolab.analysis.value import format_with_error
from percolab.errors import AnalysisError
from percolab.figures import elements, style
from percolab.figures.sheet import NEW_FIGURE, Sheet, Target
from percolab.figures.study_view import (
    Drawn,
    FigureKind,
    Numbers,
    StudyView,
    goes_from,
    sizes_and_range,
)
from percolab.lattices.shown import counted

#: Possible places of the close-up: below the curves on the right, or above them on the left.
_INSET_PLACES = (
    (0.655, 0.125, 0.325, 0.36),
    (0.655, 0.125, 0.325, 0.22),
    (0.12, 0.4, 0.28, 0.26),
    (0.12, 0.27, 0.28, 0.22),
    (0.12, 0.4, 0.28, 0.22),
)
#: Height of a line, and of the margins, of the legend of sizes in the upper left corner.
_LEGEND_LINE, _LEGEND_MARGINS = 0.055, 0.035

_INTERVALS = "68 % Wilson intervals"


def draw_spanning(
    figures: StudyView,
    into: Target = NEW_FIGURE,
    *,
    sizes: Sequence[int] | None = None,
    with_drift: bool = True,
) -> Drawn:
    """Draw R_L(p) with its threshold, a close-up of the crossings, and the drift of the crossings.

    Without crossings there is no panel of their drift.  Without a threshold only curves are drawn,
    against L if there are several at a single p.  sizes: of the fitted curves to draw, all unless
    given.  with_drift: draw the drift next to the curves, on the width of a page; otherwise only
    the curves, on the width of a column.
    """
    fit = None if isinstance(figures.fit_or_problem, str) else figures.fit_or_problem
    if fit is not None and sizes is not None:
        fit = replace(fit, curves=tuple(curve for curve in fit.curves if curve.L in sizes))
    curves, exact, median = fit.curves if fit else figures.curves, figures.exact, figures.median
    at = elements.only_p(curves)
    two = with_drift and fit is not None and any(each.found for each in fit.by_size.crossings)
    size = (style.PAGE_WIDTH, 4.5) if two else (4.8, 4.3)
    if not with_drift:
        size = (style.COLUMN_WIDTH, 3.6)
    drift = None
    with into.sheet(*size, style=style.STYLE if with_drift else style.COLUMN_STYLE) as sheet:
        panels: Any = sheet.subplots(1, 1 + two, width_ratios=[1.9, 1] if two else None)
        main, side = panels if two else (panels, None)
        # Narrow figures show N only if there is no L in addition to it.
        sites = figures.num_sites
        if not with_drift and any(L != N for L, N in sites.items()):
            sites = {}
        lines = _draw_curves(main, curves, fit, sites)
        what = figures.name.partition("_")[0]
        main.set(xlabel=r"$p$", ylabel=f"{what} probability ${figures.symbol}(p)$")
        sheet.set_title(elements.title_with_p(figures.title, at))
        low = min(float(curve.interval()[0].min()) for curve in curves)
        high = max(float(curve.interval()[1].max()) for curve in curves)
        margin = 0.08 * (high - low)
        # The axis is from 0 to 1, or the range of the curves if they rise only a little.
        little = 0 < high - low < 0.5
        main.set_ylim(*((low - margin, high + margin) if little else (-0.03, 1.03)))
        if at is None:
            main.set_xlim(*_symmetric_range(curves, fit))
        else:
            elements.place_sizes(main, sorted({curve.L for curve in curves}))
        elements.few_ticks(main, number=6)
        if fit:
            draw_estimate(main, fit)
            known = fit.known_probability
            if known is not None and main.get_ylim()[0] < known.value < main.get_ylim()[1]:
                label = f"{known.value:.4g} at $p_c$, {known.expression.partition(',')[0]}"
                main.axhline(known.value, label=label, zorder=0, **style.DOTTED_LINE)
            draw_close_up(main, fit)
        if fit and side is not None:
            drift = draw_drift(side, fit)
            draw_estimate(side, fit, across=True, labelled=False)
            elements.draw_exact(side, exact, across=True, labelled=False, zorder=1)
            elements.letter_panels(panels)
        if at is None:
            elements.draw_exact(main, exact, zorder=1)
            elements.keep_to_probabilities(main)
        if median is not None:
            _draw_median(main, median)
        _add_legends(sheet, main, columns=2 if with_drift else 1)
    numbers = {
        "curves": [curve.to_dict() for curve in curves],
        "lines": lines,
        "fit": fit.to_dict() if fit else None,
        "drift": drift,
    }
    numbers |= {"median": plain(median)} if median is not None else {}
    return sheet.figure, numbers | {"observable": figures.name}


def _draw_median(axes: style.Axes, median: Estimate) -> None:
    """Draw the p where half of the samples span, for a graph with a source and a target."""
    label = f"$R = 1/2$ at $p = {format_with_error(median.p, median.error)}$"
    if np.isfinite(median.error):
        elements.draw_band(axes, median.p, median.error)
    axes.axvline(median.p, color=style.COLOURS[1], linestyle=(0, (1, 1.5)), label=label, zorder=1)
    axes.axhline(0.5, zorder=0, **style.DOTTED_LINE)


def _draw_curves(
    axes: style.Axes,
    curves: Sequence[SpanningCurve],
    fit: ThresholdFit | None,
    num_sites: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Draw points with Wilson bars and a fitted line for each size; return the lines."""
    lines = []
    against_size = elements.only_p(curves) is not None
    for curve, look, new in style.choose_looks(curves):
        x, bars = [curve.L] if against_size else curve.p, elements.interval_bars(curve)
        bar_style = {"capsize": 1.5, "zorder": 3}
        label = elements.size_label(curve.L, num_sites) if new else None
        elements.draw_bars(axes, x, curve.probability, bars, look, **bar_style, label=label)
        line = _fitted_line([own for own in curves if own.L == curve.L], fit) if new else None
        if line is not None:
            axes.plot(*line, color=look["color"], zorder=2)
            lines.append({"L": curve.L, "p": line[0].tolist(), "probability": line[1].tolist()})
    return lines


def _fitted_line(
    curves: Sequence[SpanningCurve], fit: ThresholdFit | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the simultaneous fit, or without one the size's own fit, over the fitted p."""
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
    """Return the range of p where any R_L rises, centred so that corners stay free."""
    p = np.concatenate([curve.p for curve in curves])
    probability = np.concatenate([curve.probability for curve in curves])
    centre = fit.threshold if fit else float(p[np.argmin(np.abs(probability - 0.5))])
    rising = p[(probability > 0.001) & (probability < 0.999)]
    p = rising if rising.size else p
    if not p.min() < centre < p.max():
        centre = float(p.min() + p.max()) / 2
    reach = 1.06 * float(np.abs(p - centre).max()) or 0.05
    return centre - reach, centre + reach


def _add_legends(sheet: Sheet, main: style.Axes, *, columns: int) -> None:
    """Add sizes in the upper left corner if it is free, and everything else below the panels."""
    entries = elements.legend_entries(*sheet.panels)
    sizes = [(handle, label) for handle, label in entries if elements.is_size(label)]
    rest = [entry for entry in entries if entry not in sizes]
    sheet.add_legend(rest, ncols=columns)
    for ncols in (1, 2):
        elements.add_legend(
            main, sizes, loc="upper left", title=_INTERVALS, alignment="left", ncols=ncols,
            handlelength=1.2, columnspacing=1.2,
        )  # fmt: skip
        if not _hides_a_line(main):
            return
        main.get_legend().remove()  # type: ignore[union-attr]
    sheet.remove_legends()
    sheet.add_legend(entries, ncols=columns + 1, title=_INTERVALS)


def _hides_a_line(axes: style.Axes) -> bool:
    figure: Any = axes.figure.canvas.figure
    layout = figure.get_layout_engine()
    # Find the places of axes and legend; a user's figure may have no layout engine.
    if layout is not None:
        layout.execute(figure)
    legend: Any = axes.get_legend()
    box = legend.get_window_extent().padded(3)
    lines = [line.get_path().transformed(line.get_transform()) for line in axes.lines]
    return any(path.intersects_bbox(box, filled=False) for path in lines)


def _describe_curves(numbers: Numbers) -> list[str]:
    curves, fit = numbers["curves"], numbers["fit"]
    sentences = [sizes_and_range(curves), goes_from("The probability", curves[-1])]
    if fit:
        p_c = format_with_error(fit["threshold"], fit["threshold_error"] or 0.0)
        sentences.append(f"The curves become steeper with L and cross near p = {p_c}.")
    if numbers.get("median"):
        sentences.append(f"It is 1/2 at p = {numbers['median']['p']:.4g}.")
    return sentences


def draw_close_up(main: style.Axes, fit: ThresholdFit) -> None:
    """Draw an inset where curves cross, with the separate fits of the sizes drawn."""
    from matplotlib import ticker

    sizes = sorted({curve.L for curve in fit.curves})
    own_fits = [own for own in fit.by_size.fits if own.L in sizes]
    crossings = fit.by_size.crossings
    points = [
        (c.p, c.probability, c.p_error, c.probability_error)
        for c in crossings
        if c.found and c.L1 in sizes and c.L2 in sizes
    ]
    place = _free_place(main, fit.curves)
    if not points or place is None:
        return
    p, r, p_error, r_error = np.nan_to_num(np.array(points).T)
    inset = main.inset_axes(place)
    steepest = max(float(own.probit.deriv()(p.mean())) for own in own_fits)
    p_range = _padded(p, p_error, least=0.02 / steepest)
    for own in own_fits:
        number = sizes.index(own.L)
        grid = np.linspace(*p_range, 100)
        grid = grid[(grid >= own.p_low) & (grid <= own.p_high)]
        # Markers distinguish the lines in grey; they are at different p, since lines cross.
        inset.plot(
            grid, own.probability(grid), **style.size_look(number), linewidth=0.9, markersize=2.6,
            markevery=(6 + 7 * number % 24, 30),
        )  # fmt: skip
    look: dict[str, Any] = {"color": "black", "marker": "o", "markerfacecolor": "white"}
    look |= {"markersize": 3, "zorder": 4, "xerr": p_error}
    elements.draw_bars(inset, p, r, r_error, look)
    inset.set(xlim=p_range, ylim=_padded(r, r_error, least=0.02))
    # Labels at the ends of the axes would extend beyond the panel.
    for axis in (inset.xaxis, inset.yaxis):
        axis.set_major_locator(ticker.MaxNLocator(3, prune="both"))
        axis.set_major_formatter(ticker.ScalarFormatter(useOffset=False))
    inset.tick_params(labelsize=6.5, length=2)
    elements.few_ticks(inset, number=3, width=place[2] * elements.estimate_width(main))


def _free_place(axes: style.Axes, curves: Sequence[SpanningCurve]) -> Any:
    """Return a place for an inset (left, bottom, width, height in axes fractions) that is free."""
    lines = 1 + len({curve.L for curve in curves})
    legend = 1.0 - _LEGEND_MARGINS - _LEGEND_LINE * lines
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    grid = np.linspace(0.0, 1.0, 400)
    for left, base, width, height in _INSET_PLACES:
        # The tick labels of the inset are outside its left and lower edge.
        near = (grid > left - 0.1) & (grid < left + width + 0.02)
        p = low + grid[near] * (high - low)
        hidden = left < 0.5 and base + height > legend
        for curve in curves:
            inside = p[(p >= curve.p[0]) & (p <= curve.p[-1])]
            y = (np.interp(inside, curve.p, curve.probability) - bottom) / (top - bottom)
            hidden |= bool(np.any((y > base - 0.08) & (y < base + height + 0.04)))
        if not hidden:
            return left, base, width, height
    return None


def _padded(values: np.ndarray, errors: np.ndarray, *, least: float) -> tuple[float, float]:
    low, high = float(np.min(values - errors)), float(np.max(values + errors))
    margin = max(0.35 * (high - low), least)
    return low - margin, high + margin


def plot_drift(figures: StudyView, into: Target = NEW_FIGURE) -> Drawn:
    """Draw the crossings of neighbouring sizes, at least one, against L, and their limit."""
    fit = figures.fit
    with into.column(3.2) as (sheet, axes):
        drift = draw_drift(axes, fit)
        draw_estimate(axes, fit, across=True)
        sheet.set_title(figures.title)
        elements.draw_exact(axes, figures.exact, across=True, zorder=1)
        sheet.add_legend(elements.legend_entries(axes))
    return sheet.figure, {
        "drift": drift,
        "threshold": fit.threshold,
        "threshold_error": fit.threshold_error,
        "crossings": [crossing.to_dict() for crossing in fit.by_size.crossings],
        "observable": figures.name,
    }


def draw_estimate(
    axes: style.Axes, fit: ThresholdFit, *, across: bool = False, labelled: bool = True
) -> None:
    """Draw p_c as a band of one error on either side, with its value in the legend.

    Without a p_c nothing is drawn, and the legend gives the reason.
    """
    if fit.problem is not None:
        reason = elements.rejection_label(fit.chi_square) or fit.problem.partition(";")[0]
        text = fill(reason, 40).replace("p_c", "$p_c$")
        axes.plot([], [], " ", label=text if labelled else None)
        return
    p_c = fit.threshold, fit.threshold_error
    label = rf"$p_c = {format_with_error(*p_c)}$, finite-size scaling" if labelled else None
    elements.draw_band(axes, *p_c, across=across, label=label)
    line = axes.axhline if across else axes.axvline
    line(fit.threshold, color="0.5", linewidth=0.6, zorder=0)


def draw_drift(axes: style.Axes, fit: ThresholdFit) -> dict[str, Any]:
    """Draw crossings against Lbar^-(omega + y_t), with the extrapolation; return the numbers."""
    exponent = fit.omega + fit.y_t
    crossings = [crossing for crossing in fit.by_size.crossings if crossing.found]
    x = np.array([crossing.mean_size**-exponent for crossing in crossings])
    p = np.array([crossing.p for crossing in crossings])
    errors = np.nan_to_num([crossing.p_error for crossing in crossings])
    look: dict[str, Any] = {"color": "black", "marker": "o", "markerfacecolor": "white"}
    label = "crossings of neighbouring sizes"
    elements.draw_bars(axes, x, p, errors, look, capsize=1.5, label=label)
    drift = fit.by_size.drift
    if drift is not None:
        # The line is for sizes whose ratio is the mean ratio of those that cross.
        factor = np.exp(np.mean([np.log(each.L2 / each.L1) for each in crossings]))
        end = np.linspace(0.01, 1.04, 60) * x.max()
        small = end ** (-1 / exponent) / factor**0.5
        label = rf"$p_c$ = {drift.result}, drift of crossings"
        axes.plot(
            end, drift.at(small, factor * small), color=style.COLOURS[1], zorder=1, label=label
        )
        if not drift.result.rejected:
            look = {"color": style.COLOURS[1], "marker": "D", "elinewidth": 1.0, "capsize": 2.5}
            elements.draw_bars(axes, 0.0, drift.threshold, drift.threshold_error, look)
    right = 1.1 * float(x.max()) if x.size else 1.0
    axes.set_xlim(-0.08 * right, right)
    axes.set(xlabel=r"$\bar{L}^{\,-(\omega + 1/\nu)}$", ylabel=r"$p^*(L_1, L_2)$")
    elements.few_ticks(axes, number=5)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useOffset=True)
    return {
        "exponent": exponent,
        "x": x.tolist(),
        "p": p.tolist(),
        "p_error": errors.tolist(),
        "line": drift.to_dict() if drift is not None else None,
    }


def _no_crossing(figures: StudyView) -> str | None:
    crosses = any(crossing.found for crossing in figures.fit.by_size.crossings)
    return None if crosses else "the curves of neighbouring sizes do not cross"


def _describe_drift(numbers: Numbers) -> list[str]:
    p = numbers["drift"]["p"]
    line = numbers["drift"]["line"]
    end = f" A curve through them ends at p = {line['threshold']:.6g}." if line else ""
    where = f"at p = {p[0]:.6g}" if len(p) == 1 else f"from p = {p[0]:.6g} to p = {p[-1]:.6g}"
    return [f"{counted(len(p), 'crossing')} of neighbouring sizes, {where}.{end}"]


DRIFT = FigureKind(
    help="crossings of successive sizes against L",
    meaning=(
        "Crossings p* of neighbouring sizes against a power of their mean size, extrapolated to "
        "infinite size."
    ),
    errors=(
        "Error bars are one-sigma errors; the band is p_c of the fit of all sizes with its error."
    ),
    problems=(StudyView.no_fit, _no_crossing),
    draw=plot_drift,
    alt=_describe_drift,
)
CURVES = FigureKind(
    help="R_L(p), with a close-up of the crossings",
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
    alt=_describe_curves,
)
