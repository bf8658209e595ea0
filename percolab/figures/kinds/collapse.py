"""The data collapse: curves of all sizes before and after they are scaled by the fit."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from percolab.analysis.collapse import POOR_COLLAPSE, Collapse
from percolab.analysis.json_values import plain
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.value import format_with_error
from percolab.figures import elements
from percolab.figures.sheet import Sheet, Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import PAGE_WIDTH, Axes, size_look
from percolab.lattices.shown import counted

#: For cluster sizes: axis labels before and after, the exponent kappa = sign * exponent, the sign.
_CLUSTERS: Mapping[str, tuple[str, str, str, int]] = {
    "largest": (r"$P_\infty$", r"$P_\infty\, L^{\beta/\nu}$", r"\beta/\nu", -1),
    "second_largest": (
        r"$\langle s_2 \rangle / N$", r"$(\langle s_2 \rangle / N)\, L^{\beta/\nu}$",
        r"\beta/\nu", -1,
    ),
    "chi": (r"$\chi$ (sites)", r"$\chi\, L^{-\gamma/\nu}$ (sites)", r"\gamma/\nu", 1),
}  # fmt: skip
#: A mean cluster size that grows by more than this has a logarithmic axis.
_WIDE = 20.0
LEGEND_TITLE = (
    "Error bars: one standard error.  $S$: quality, about 1 where all sizes agree within errors"
)


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw a row for every collapse: before, and after against (p - p_c) L^(1/nu).

    The row of a probability has the fit of the largest size without corrections, which fall as
    L^-omega: points of this size miss the line by the corrections and by their errors.
    """
    fit, exact = figures.fit, figures.exact
    collapses = figures.collapses
    axis_label = f"${figures.symbol}(p)$"
    sizes = sorted({int(size) for collapse, _ in collapses for size in collapse.L})
    line = None
    with into.sheet(PAGE_WIDTH, 2.2 + 2.6 * len(collapses)) as sheet:
        rows, beneath = _panels(sheet, [collapse for collapse, _ in collapses])
        for (before, after), (collapse, error) in zip(rows, collapses, strict=True):
            labels = (axis_label, axis_label, "", 0)
            first, second, exponent, sign = _CLUSTERS.get(collapse.observable, labels)
            draw_points(before, collapse.L, collapse.p, collapse.value, collapse.value_error, sizes)
            draw_points(after, collapse.L, collapse.x, collapse.y, collapse.dy, sizes)
            if collapse.observable not in _CLUSTERS:
                line = _draw_line(after, fit, collapse)
                _draw_misses(beneath, fit, collapse, sizes)
            elements.draw_exact(before, exact)
            before.set_ylabel(first)
            after.set_ylabel(second)
            quality = f"$S = {collapse.quality:.3g}$"
            used = f"${exponent} = {format_with_error(sign * collapse.exponent, error)}$, {quality}"
            if not exponent:
                p_c = format_with_error(fit.threshold, fit.threshold_error)
                y_t = format_with_error(fit.y_t, fit.y_t_error)
                lines = rf"$p_c = {p_c}$, $1/\nu = {y_t}$", elements.rejection_label(fit.chi_square)
                used = "\n".join([*filter(None, lines), quality])
            after.set_title(used, fontsize=9)
            least, most = collapse.value.min(), collapse.value.max()
            if collapse.observable == "chi" and 0 < _WIDE * least < most:
                before.set_yscale("log")
                elements.plain_ticks(before)
        panels = [axes for row in rows for axes in row]
        for axes in panels:
            elements.few_ticks(axes, number=5)
        elements.keep_to_probabilities(*(before for before, _ in rows))
        elements.letter_panels(panels)
        sheet.set_title(figures.title)
        rows[-1][0].set_xlabel("$p$")
        lowest = rows[-1][1] if len(rows) > 1 or beneath is None else beneath
        lowest.set_xlabel(r"$(p - p_c)\, L^{1/\nu}$")
        # The legends of both panels of a row contain the sizes.
        others = [
            entry for entry in elements.legend_entries(rows[0][0]) if not elements.is_size(entry[1])
        ]
        entries = [*elements.legend_entries(rows[0][1]), *others]
        sheet.add_legend(entries, ncols=4, title=LEGEND_TITLE)
    names = ("threshold", "threshold_error", "y_t", "y_t_error", "problem", "chi_square")
    return sheet.figure, {
        "fit": plain({name: getattr(fit, name) for name in names}),
        "collapses": [
            collapse.to_dict() | {"exponent_error": plain(error)} for collapse, error in collapses
        ],
        "line": line,
        "observable": figures.name,
    }


def _panels(sheet: Sheet, collapses: Sequence[Collapse]) -> tuple[list[tuple[Axes, Axes]], Any]:
    """Return the two panels of every collapse, and the one below the collapse of a probability."""
    of_probability = [collapse.observable not in _CLUSTERS for collapse in collapses]
    heights = [part for tall in of_probability for part in ([1, 0.4] if tall else [1])]
    places: Any = sheet.grid(len(heights), 2, height_ratios=heights)
    rows: list[tuple[Axes, Axes]] = []
    beneath, at = None, 0
    for tall in of_probability:
        first: Any = rows[0] if rows else (None, None)
        before = sheet.figure.add_subplot(places[at : at + 1 + tall, 0], sharex=first[0])
        after = sheet.figure.add_subplot(places[at, 1], sharex=first[1])
        rows.append((before, after))
        if tall:
            beneath = sheet.figure.add_subplot(places[at + 1, 1], sharex=rows[0][1])
        at += 1 + tall
    under = [] if beneath is None else [beneath]
    # Only the lowest panel of each column has labels.
    for column in ([before for before, _ in rows], [*(after for _, after in rows), *under]):
        lowest = max(column, key=lambda axes: axes.get_subplotspec().rowspan.stop)
        for axes in column:
            axes.tick_params(labelbottom=axes is lowest)
    return rows, beneath


def _draw_misses(axes: Axes, fit: ThresholdFit, collapse: Collapse, sizes: Sequence[int]) -> None:
    """Draw the fitted points minus the fit with its corrections, in standard errors."""
    series, fitted = [], _is_fitted(fit, collapse)
    for index, size in enumerate(sizes):
        own = np.equal(collapse.L, size) & fitted & (collapse.value_error > 0)
        away = collapse.value[own] - fit.probability(collapse.p[own], size)
        series.append((collapse.x[own], away / collapse.value_error[own], size_look(index)))
    elements.draw_residuals(axes, series, of="fit")


def _is_fitted(fit: ThresholdFit, collapse: Collapse) -> np.ndarray:
    """Return which points of a collapse the fit uses, bool (n,); it is not valid beyond them."""
    used = {(curve.L, float(p)) for curve in fit.used for p in curve.p}
    points = zip(collapse.L.tolist(), collapse.p.tolist(), strict=True)
    return np.array([point in used for point in points])


def draw_points(
    axes: Axes, L: np.ndarray, x: np.ndarray, y: np.ndarray, dy: np.ndarray, sizes: Sequence[int]
) -> None:
    """Draw points with their errors, all arrays (n,), in the style of their sizes."""
    for index, size in enumerate(sizes):
        own = np.equal(L, size)
        if own.any():
            style = {"capsize": 1.5, "markersize": 3.2, "zorder": 3, "label": f"$L = {size}$"}
            elements.draw_bars(axes, x[own], y[own], dy[own], size_look(index), **style)


def _draw_line(axes: Axes, fit: ThresholdFit, collapse: Collapse) -> dict[str, Any]:
    """Draw the fit of the largest L without its corrections; return the points of this line.

    The line covers the fitted points of all sizes.
    It belongs to one size, as the fit's 1/nu (with a prior) differs from that of the axis.
    """
    limit = replace(fit.scaling, corrections=(0.0, 0.0, 0.0, 0.0), field=(0.0, 0.0))
    fitted = collapse.x[_is_fitted(fit, collapse)]
    x, size = np.linspace(fitted.min(), fitted.max(), 200), int(collapse.L.max())
    probability = limit.probability(collapse.threshold + x / size**collapse.y_t, size)
    label = f"fit of $L = {size}$ without corrections"
    axes.plot(x, probability, color="black", linewidth=0.9, label=label, zorder=2)
    return {"x": x.tolist(), "probability": probability.tolist()}


def _describe(numbers: Numbers) -> list[str]:
    names = {"largest": "the largest cluster", "chi": "the mean cluster size"}
    sentences = []
    for collapse in numbers["collapses"]:
        sizes = sorted(set(collapse["L"]))
        name = names.get(collapse["observable"], "the probability")
        agrees = collapse["quality"] < POOR_COLLAPSE
        after = "on one curve within errors" if agrees else "together, but not within errors,"
        sentences.append(
            f"Curves of {name} at {counted(len(sizes), 'size')} up to L = {sizes[-1]} lie apart "
            f"before and {after} after, with quality S = {collapse['quality']:.3g}."
        )
    return sentences


COLLAPSE = FigureKind(
    help="the curves before and after scaling by the fit",
    meaning=(
        "Probability to span or to wrap, and cluster sizes, before and after they are scaled by "
        "the fitted p_c and exponents."
    ),
    errors=(
        "Error bars are one standard error of each point, without those of p_c and the exponents. "
        "S is the mean squared distance of a point from the other sizes in units of its error. "
        "Below the collapse are the fitted points less the fit with its corrections, in standard "
        "errors."
    ),
    problems=(StudyView.no_fit, lambda figures: None if figures.collapses else ""),
    draw=_draw,
    alt=_describe,
)
