"""The roots of P(two directions) - P(none wraps) against L, and p_c with its error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.roots import RootFit, SizeRoot, fit_roots, read_differences
from percolab.analysis.statistics import Floats
from percolab.errors import AnalysisError
from percolab.figures import elements
from percolab.figures.alt_text import Numbers
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import COLUMN_STYLE, COLUMN_WIDTH, PAGE_WIDTH, size_look
from percolab.lattices.shown import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Greys of p_c plus and minus its whole error, and the statistical part of that.
_WHOLE: dict[str, Any] = {"color": "0.88", "linewidth": 0}
_STATISTICAL: dict[str, Any] = {"color": "0.72", "linewidth": 0}
_PRIOR: dict[str, Any] = {"color": "0.35", "linestyle": (0, (1, 2)), "linewidth": 0.8}
#: Of P(two directions) - P(none wraps) what is drawn.
_MOST = 0.5


def _draw(figures: StudyView, into: Target) -> Drawn:
    fit = fit_roots(figures.results)
    width = COLUMN_WIDTH if into.axes is not None else PAGE_WIDTH
    curves: list[dict[str, Any]] = []
    with into.sheet(width, 3.3, style=COLUMN_STYLE) as sheet:
        if into.axes is not None:
            axes: Any = sheet.subplots()
        else:
            left, axes = sheet.subplots(1, 2)
            curves = _draw_differences(left, figures, fit.roots)
        drift = _draw_roots(axes, fit)
        elements.draw_exact(axes, figures.head["exact"], across=True, zorder=1)
        sheet.set_title(figures.head["title"])
        entries = elements.legend_entries(axes)
        sheet.add_legend(entries, ncols=3)
    return sheet.figure, {
        "title": figures.head["title"],
        "exact": elements.exact_record(figures.head["exact"]),
        "differences": curves,
        "drift_of_prior": drift,
        **fit.to_dict(),
    }


def _draw_differences(
    axes: Axes, figures: StudyView, roots: Sequence[SizeRoot]
) -> list[dict[str, Any]]:
    """Draw D near its root and the tangent there, size by size; return the numbers."""
    numbers = []
    for n, root in enumerate(roots):
        look = size_look(n)
        p, mean, error = read_differences(
            item
            for item in figures.results.tasks.values()
            if item.blocks and item.task.size == root.size
        )
        near = np.abs(mean) <= _MOST
        p, mean, error = p[near], mean[near], error[near]
        # Of one p the tangent goes on to the root, and as far beyond as the error does.
        reach = 3 * root.value.error if p.size == 1 else 0.0
        every = [*p, root.value.value - reach, root.value.value + reach]
        ends = np.array([min(every), max(every)])
        axes.plot(ends, root.slope * (ends - root.value.value), color=look["color"], linewidth=0.9)
        axes.errorbar(p, mean, error, **look, linestyle="none", elinewidth=0.8, capsize=1.5)
        numbers.append(
            {"L": root.size, "p": plain(p), "difference": plain(mean), "error": plain(error)}
        )
    axes.axhline(0, color="0.5", linewidth=0.6, zorder=0)
    times = f"{figures.model.states} " if figures.model.has_spins else ""
    axes.set(xlabel="$p$", ylabel=rf"$D = P_\mathrm{{two}} - {times}P_\mathrm{{none}}$")
    elements.few_ticks(axes, number=5)
    return numbers


def _draw_roots(axes: Axes, fit: RootFit) -> dict[str, list[float]]:
    """Draw roots against L with p_c and its errors; return the width of the drift's prior."""
    value, roots = fit.threshold, fit.roots
    if fit.problem is None:
        for error, look, name in (
            (value.error, _WHOLE, rf"$p_c = {value}$, whole error"),
            (value.statistical_error, _STATISTICAL, "statistical part of it"),
        ):
            axes.axhspan(value.value - error, value.value + error, label=name, zorder=-2, **look)
        axes.axhline(value.value, color="0.4", linewidth=0.7, zorder=-1)
    else:
        axes.plot([], [], " ", label=elements.rejection_label(value.quality) or fit.problem)
    for n, root in enumerate(roots):
        axes.errorbar(
            root.size, root.value.value, root.value.error, **size_look(n), elinewidth=0.9,
            capsize=2.5, linestyle="none", label=f"root at {elements.size_label(root.size, {})}",
        )  # fmt: skip
    sizes = [root.size for root in roots]
    elements.place_sizes(axes, sizes)
    low, high = axes.get_xlim()
    grid: Floats = np.geomspace(low, high, 100)
    points = grid * roots[0].length / roots[0].size
    drift = np.array([fit.drift.of_length(length) for length in points])
    for sign, label in ((1, "drift of roots, width of prior"), (-1, None)):
        axes.plot(grid, value.value + sign * drift, label=label, zorder=0, **_PRIOR)
    axes.set_ylim(*_limits(fit))
    axes.set_ylabel(r"root of $D(p, L)$")
    elements.few_ticks(axes, number=5)
    return {"L": plain(grid), "width": plain(drift)}


def _limits(fit: RootFit) -> tuple[float, float]:
    """Return the range of p that shows every root with its error, and the band of p_c."""
    ends = [
        item.value + sign * item.error
        for item in (fit.threshold, *(root.value for root in fit.roots))
        for sign in (-1, 1)
    ]
    margin = 0.15 * (max(ends) - min(ends))
    return min(ends) - margin, max(ends) + margin


def _problem(figures: StudyView) -> str | None:
    """Return why there are no roots, or None."""
    try:
        fit_roots(figures.results)
    except AnalysisError as error:
        return str(error)
    return None


def _describe(numbers: Numbers) -> list[str]:
    """Return what is seen, in sentences."""
    roots = [f"{item['root']:.6g} at L = {item['L']}" for item in numbers["roots"]]
    found = numbers["p_c"]
    text = f"{counted(len(roots), 'root')} of D: {', '.join(roots)}."
    if found["rejected"]:
        return [text, "They contradict each other."]
    return [text, f"p_c is {found['value']:.6g} with an error of {found['error']:.1e}."]


ROOTS = FigureKind(
    help="roots of P(two directions) - P(none wraps) on tori, against L",
    meaning=(
        "Left: D, the probability that a cluster wraps in two independent directions less that "
        "none wraps, near its root. Right: the root of every size against L, and p_c."
    ),
    errors=(
        "Error bars are one sigma and statistical; the bands are p_c with its whole error and the "
        "statistical part of that. Dotted: how far a root of size L may be from p_c, one sigma of "
        "the prior."
    ),
    problems=(_problem,),
    draw=_draw,
    alt=_describe,
)
