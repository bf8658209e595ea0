"""Figures of `percolab threshold`: roots of P(two directions) - P(none wraps), and crossings.

Crossings are those of the wrapping probabilities of neighbouring sizes.  Both are drawn against L,
with p_c and its error.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from percolab.analysis import wrapping_fit
from percolab.analysis.averaging import FittedThreshold
from percolab.analysis.json_values import plain
from percolab.analysis.roots import RootFit, SizeRoot, fit_roots, read_differences
from percolab.analysis.value import Value
from percolab.figures import elements
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import COLUMN_STYLE, COLUMN_WIDTH, PAGE_WIDTH, Axes, size_look
from percolab.lattices.shown import counted

#: Greys of the bands of p_c: with its whole error, and with the statistical part.
_WHOLE: dict[str, Any] = {"color": "0.88", "alpha": 1, "linewidth": 0, "zorder": -2}
_STATISTICAL = _WHOLE | {"color": "0.72"}
_PRIOR: dict[str, Any] = {"color": "0.35", "linestyle": (0, (1, 2)), "linewidth": 0.8}
#: The largest |P(two directions) - P(none wraps)| that is drawn.
_MOST = 0.5
#: Neighbouring quantities are shifted by this factor of L.
_APART = 1.03
_NAMES = {"wrapping_any": "any axis", "wrapping_axis": "one axis", "wrapping_all": "all axes"}


def draw_threshold(axes: Axes, value: Value, problem: str | None, symbol: str = "p") -> None:
    """Draw p_c with its whole error and the statistical part; symbol: of the quantity p."""
    if problem is not None:
        axes.plot([], [], " ", label=elements.rejection_label(value.quality) or problem)
        return
    for error, look, name in (
        (value.error, _WHOLE, rf"${symbol}_c = {value}$, whole error"),
        (value.statistical_error, _STATISTICAL, "statistical part of it"),
    ):
        elements.draw_band(axes, value.value, error, across=True, label=name, **look)
    axes.axhline(value.value, color="0.4", linewidth=0.7, zorder=-1)


def _show_all(axes: Axes, points: Iterable[tuple[float, float]], margin: float) -> None:
    """Let the vertical axis show all values with their errors, and a relative margin."""
    ends = [value + sign * error for value, error in points for sign in (-1, 1)]
    margin *= max(ends) - min(ends)
    axes.set_ylim(min(ends) - margin, max(ends) + margin)
    elements.few_ticks(axes, number=5)


# Roots


def _draw_root_figure(figures: StudyView, into: Target) -> Drawn:
    fit = fit_roots(figures.results)
    alone = into.axes is not None
    with into.sheet(COLUMN_WIDTH if alone else PAGE_WIDTH, 3.3, style=COLUMN_STYLE) as sheet:
        *left, axes = np.atleast_1d(sheet.subplots(1, 1 if alone else 2))
        curves = [each for own in left for each in _draw_differences(own, figures, fit.roots)]
        drift = _draw_roots(axes, fit)
        elements.draw_exact(axes, figures.exact, across=True, zorder=1)
        elements.letter_panels([*left, axes])
        sheet.set_title(figures.title)
        sheet.add_legend(elements.legend_entries(axes), ncols=3, title=elements.ERROR_BARS)
    return sheet.figure, {"differences": curves, "drift_of_prior": drift, **fit.to_dict()}


def _draw_differences(
    axes: Axes, figures: StudyView, roots: Sequence[SizeRoot]
) -> list[dict[str, Any]]:
    numbers = []
    for n, root in enumerate(roots):
        look, at = size_look(n), root.value.value
        tasks = figures.results.tasks.values()
        p, mean, error = read_differences(
            task for task in tasks if task.blocks and task.task.size == root.size
        )
        near = np.abs(mean) <= _MOST
        p, mean, error = p[near], mean[near], error[near]
        # With a single p, draw the tangent beyond the root by three errors.
        reach = 3 * root.value.error if p.size == 1 else 0.0
        every = [*p, at - reach, at + reach]
        ends = np.array([min(every), max(every)])
        axes.plot(ends, root.slope * (ends - at), color=look["color"], linewidth=0.9)
        elements.draw_bars(axes, p, mean, error, look, capsize=1.5)
        numbers.append(plain({"L": root.size, "p": p, "difference": mean, "error": error}))
    axes.axhline(0, color="0.5", linewidth=0.6, zorder=0)
    times = f"{figures.model.states:g} " if figures.model.chains else ""
    axes.set(xlabel="$p$", ylabel=rf"$D = P_\mathrm{{two}} - {times}P_\mathrm{{none}}$")
    elements.few_ticks(axes, number=5)
    return numbers


def _draw_roots(axes: Axes, fit: RootFit) -> dict[str, Any]:
    """Draw roots against L with p_c and its errors; return the width of the drift's prior."""
    value, roots = fit.threshold, fit.roots
    draw_threshold(axes, value, fit.problem)
    for n, root in enumerate(roots):
        look = size_look(n) | {"label": f"root at {elements.size_label(root.size, {})}"}
        point = root.size, root.value.value, root.value.error
        elements.draw_bars(axes, *point, look, elinewidth=0.9, capsize=2.5)
    elements.place_sizes(axes, [root.size for root in roots])
    grid = np.geomspace(*axes.get_xlim(), 100)
    points = grid * roots[0].length / roots[0].size
    drift = np.array([fit.drift.of_length(length) for length in points])
    for sign, name in ((1, "drift of roots, width of prior"), (-1, None)):
        axes.plot(grid, value.value + sign * drift, label=name, zorder=0, **_PRIOR)
    shown = (value, *(root.value for root in roots))
    _show_all(axes, [(each.value, each.error) for each in shown], 0.15)
    axes.set_ylabel(r"root of $D(p, L)$")
    numbers: dict[str, Any] = plain({"L": grid, "width": drift})
    return numbers


def _no_roots(figures: StudyView) -> None:
    fit_roots(figures.results)


def _describe_roots(numbers: Numbers) -> list[str]:
    roots = [f"{root['root']:.6g} at L = {root['L']}" for root in numbers["roots"]]
    p_c = numbers["p_c"]
    text = f"{counted(len(roots), 'root')} of D: {', '.join(roots)}."
    if p_c["rejected"]:
        return [text, "They contradict each other."]
    return [text, f"p_c is {p_c['value']:.6g} with an error of {p_c['error']:.1e}."]


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
    problems=(_no_roots,),
    draw=_draw_root_figure,
    alt=_describe_roots,
)


# Crossings


def _draw_crossings(figures: StudyView, into: Target) -> Drawn:
    fit: FittedThreshold = wrapping_fit.fit_wrapping(figures.results)
    crossings = wrapping_fit.find_crossings(figures.results)
    with into.column(3.3) as (sheet, axes):
        draw_threshold(axes, fit.p_c, fit.problem)
        for n, name in enumerate(wrapping_fit.QUANTITIES):
            own = [crossing for crossing in crossings if crossing.quantity == name]
            sizes = np.array([crossing.L2 for crossing in own]) * _APART ** (n - 1)
            p, errors = [crossing.p for crossing in own], [crossing.error for crossing in own]
            look = size_look(n) | {"label": _NAMES[name]}
            elements.draw_bars(axes, sizes, p, errors, look, elinewidth=0.9, capsize=2.0)
        elements.place_sizes(axes, sorted({crossing.L2 for crossing in crossings}))
        elements.draw_exact(axes, figures.exact, across=True, zorder=1)
        axes.set(ylabel="crossing with the next smaller size, $p$")
        # The crossings of the smallest sizes may be far away.
        near = [each for each in crossings if each.error < 20 * fit.p_c.error] or crossings
        _show_all(axes, [(crossing.p, crossing.error) for crossing in near], 0.1)
        sheet.set_title(figures.title)
        sheet.add_legend(elements.legend_entries(axes), ncols=2, title=elements.ERROR_BARS)
    return sheet.figure, {
        "p_c": fit.p_c.to_dict("value"),
        "problem": fit.problem,
        "crossings": [crossing.to_dict() for crossing in crossings],
        "sizes": plain(sorted(fit.sizes)),
    }


def _no_crossings(figures: StudyView) -> str | None:
    if not wrapping_fit.asks_for_wrapping(figures.results):
        return "these crossings are those of percolab threshold in three dimensions and more"
    wrapping_fit.find_crossings(figures.results)
    wrapping_fit.fit_wrapping(figures.results)
    return None


def _describe_crossings(numbers: Numbers) -> list[str]:
    value = numbers["p_c"]
    text = f"{counted(len(numbers['crossings']), 'crossing')} of wrapping probabilities against L."
    if numbers["problem"] is not None:
        return [text, f"There is {numbers['problem']}."]
    return [text, f"p_c is {value['value']:.6g} with an error of {value['error']:.1e}."]


CROSSINGS = FigureKind(
    help="crossings of wrapping probabilities of neighbouring sizes, against L",
    meaning=(
        "The p at which a wrapping probability is the same at L and at the next smaller size, and "
        "p_c, to which crossings go for large L."
    ),
    errors=(
        "Error bars are one sigma and statistical, from the samples at one p of each size; the "
        "bands are p_c with its whole error and the statistical part of that."
    ),
    problems=(_no_crossings,),
    draw=_draw_crossings,
    alt=_describe_crossings,
)
