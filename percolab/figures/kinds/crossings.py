"""Crossings of wrapping probabilities of neighbouring sizes against L, and p_c with its error."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.analysis.averaging import FittedThreshold
from percolab.analysis.json_values import plain
from percolab.analysis.value import Value
from percolab.analysis.wrapping_fit import (
    QUANTITIES,
    asks_for_wrapping,
    find_crossings,
    fit_wrapping,
)
from percolab.errors import AnalysisError
from percolab.figures import elements
from percolab.figures.alt_text import Numbers
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import COLUMN_STYLE, COLUMN_WIDTH, size_look
from percolab.lattices.shown import counted

#: Greys of p_c plus and minus its whole error, and the statistical part of that.
_WHOLE: dict[str, Any] = {"color": "0.88", "linewidth": 0}
_STATISTICAL: dict[str, Any] = {"color": "0.72", "linewidth": 0}
#: Neighbouring quantities are drawn so far apart, as a factor of L.
_APART = 1.03
_NAMES = {"wrapping_any": "any axis", "wrapping_axis": "one axis", "wrapping_all": "all axes"}


def _draw(figures: StudyView, into: Target) -> Drawn:
    fit, found = fit_wrapping(figures.results), find_crossings(figures.results)
    with into.sheet(COLUMN_WIDTH, 3.3, style=COLUMN_STYLE) as sheet:
        axes: Any = sheet.subplots()
        draw_threshold(axes, fit)
        for n, name in enumerate(QUANTITIES):
            own = [item for item in found if item.quantity == name]
            sizes = np.array([item.L2 for item in own]) * _APART ** (n - 1)
            p, errors = [item.p for item in own], [item.error for item in own]
            axes.errorbar(
                sizes, p, errors, **size_look(n), elinewidth=0.9, capsize=2.0, linestyle="none",
                label=_NAMES[name],
            )  # fmt: skip
        elements.place_sizes(axes, sorted({item.L2 for item in found}))
        elements.draw_exact(axes, figures.head["exact"], across=True, zorder=1)
        axes.set(ylabel="crossing with the next smaller size, $p$")
        # The smallest sizes may lie far away.
        near = [item for item in found if item.error < 20 * fit.p_c.error] or found
        ends = [item.p + sign * item.error for item in near for sign in (-1, 1)]
        margin = 0.1 * (max(ends) - min(ends))
        axes.set_ylim(min(ends) - margin, max(ends) + margin)
        elements.few_ticks(axes, number=5)
        sheet.set_title(figures.head["title"])
        sheet.add_legend(elements.legend_entries(axes), ncols=2)
    return sheet.figure, {
        "title": figures.head["title"],
        "exact": elements.exact_record(figures.head["exact"]),
        "p_c": fit.p_c.to_dict("value"),
        "problem": fit.problem,
        "crossings": [item.to_dict() for item in found],
        "sizes": plain(sorted(fit.sizes)),
    }


def draw_threshold(axes: Any, fit: FittedThreshold, symbol: str = "p") -> None:
    """Draw p_c with its whole error and the statistical part of that; symbol: of what p is."""
    value: Value = fit.p_c
    if fit.problem is not None:
        axes.plot([], [], " ", label=elements.rejection_label(value.quality) or fit.problem)
        return
    for error, look, name in (
        (value.error, _WHOLE, rf"${symbol}_c = {value}$, whole error"),
        (value.statistical_error, _STATISTICAL, "statistical part of it"),
    ):
        axes.axhspan(value.value - error, value.value + error, label=name, zorder=-2, **look)
    axes.axhline(value.value, color="0.4", linewidth=0.7, zorder=-1)


def _problem(figures: StudyView) -> str | None:
    """Return why there are no crossings, or None."""
    if not asks_for_wrapping(figures.results):
        return "these crossings are those of percolab threshold in three dimensions and more"
    try:
        find_crossings(figures.results)
        fit_wrapping(figures.results)
    except AnalysisError as error:
        return str(error)
    return None


def _describe(numbers: Numbers) -> list[str]:
    """Return what is seen, in sentences."""
    found, value = numbers["crossings"], numbers["p_c"]
    text = f"{counted(len(found), 'crossing')} of wrapping probabilities against L."
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
    problems=(_problem,),
    draw=_draw,
    alt=_describe,
)
