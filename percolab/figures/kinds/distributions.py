"""Distributions of path lengths and currents between two terminals, for every size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats
from percolab.analysis.stored_data import list_tasks
from percolab.analysis.theory.known_exponents import known_exponents
from percolab.figures import elements
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import COLUMN_WIDTH, choose_looks
from percolab.lattices.shown import counted
from percolab.measure.tallies import current_edges, quarter_edges
from percolab.store.task_result import TaskResult

#: Bins with fewer samples, or bonds, are not drawn: their error bars would reach to zero.
_LEAST_COUNT = 10


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of the lengths of a task's paths, or of its currents, at one p.

    low, high: (bins,), shortest and longest length of each bin, int64, or the limits of its
    currents, float64.  count: int64 (bins,), the samples or bonds in it.  density, error:
    float64 (bins,), per length, or per ln i, relative to all counts.
    """

    L: int
    p: float
    low: Floats
    high: Floats
    count: Any
    density: Floats
    error: Floats

    @classmethod
    def of_task(cls, item: TaskResult, p: float, word: str) -> Distribution:
        """Return the distribution for a measurement's word, at the task's p nearest to ``p``."""
        at = int(np.argmin(np.abs(np.array(item.task.p) - p)))
        counts: Any = item.extra(word)[:, at]
        if word == "currents":
            # Leave out the last bin, of bonds whose current is too small or zero.
            counts, ends = counts[:, -2::-1], current_edges()[::-1]
            low, high, width = ends[:-1], ends[1:], np.diff(np.log(ends))
        else:
            edges = quarter_edges(item.task.num_points)
            # Some quarters of bins contain no integer.
            counts, edges = counts[:, np.diff(edges) > 0], np.unique(edges)
            low, high, width = edges[:-1], edges[1:] - 1, np.diff(edges)
        blocks, count, total = len(counts), counts.sum(axis=0), max(counts.sum(), 1)
        parts = count / total
        away = counts - parts * counts.sum(axis=1, keepdims=True)
        error = np.sqrt((away**2).sum(axis=0) * blocks / max(blocks - 1, 1)) / total
        own = item.task.size, item.task.p[at], low, high, count
        return cls(*own, parts / width, error / width)


def _draw(figures: StudyView, into: Target, word: str) -> Drawn:
    """Draw L^d_min P(l) against l / L^d_min, or without L^d_min if it is not known, or P(ln i)."""
    threshold, source = figures.find_threshold()
    structure, is_length = figures.study.structure, word == "path_lengths"
    is_known = is_length and structure.is_scalable
    known = known_exponents(structure.dimension).get("d_min") if is_known else None
    tasks = list_tasks(figures.results, word)
    curves = [Distribution.of_task(item, threshold, word) for item in tasks]
    with into.sheet(COLUMN_WIDTH, 3.6) as sheet:
        axes: Any = sheet.subplots()
        for curve, look, is_new in choose_looks(curves):
            shown, scale = curve.count >= _LEAST_COUNT, curve.L**known.value if known else 1.0
            middle = np.sqrt(curve.low * curve.high)[shown] / scale
            heights = curve.density[shown] * scale, curve.error[shown] * scale
            label = elements.size_label(curve.L, figures.num_sites) if is_new else None
            elements.draw_bars(axes, middle, *heights, look, label=label)
        texts = (r"$\ell$ (bonds)", r"$P(\ell)$") if is_length else ("$|i_b|$", r"$P(\ln |i_b|)$")
        axes.set(xscale="log", yscale="log", xlabel=texts[0], ylabel=texts[1])
        if known:
            scaled = r"L^{d_\mathrm{min}}"
            axes.set(xlabel=rf"$\ell / {scaled}$", ylabel=rf"${scaled} P(\ell)$")
            text = rf"$d_\mathrm{{min}} = {known.value:.6g}$, {elements.known_word(known)}"
            axes.annotate(text, (0.05, 0.05), None, "axes fraction", fontsize=9)
        elements.plain_ticks(axes)
        sheet.set_title(f"{figures.title}, $p = {threshold:.6g}$")
        sheet.add_legend(elements.legend_entries(axes), ncols=3, title=elements.ERROR_BARS)
    numbers = {"threshold": threshold, "threshold_source": source, "curves": plain(curves)}
    return sheet.figure, numbers | ({"d_min": known.value if known else None} if is_length else {})


def _problem(figures: StudyView, word: str, what: str) -> str | None:
    tasks = list_tasks(figures.results, word)
    if not tasks:
        return f"{what} were not counted: {figures.how_to_measure(word)}"
    if not any((item.extra(word).sum(axis=0) >= _LEAST_COUNT).any() for item in tasks):
        return f"no bin of {what} has a count of {_LEAST_COUNT}"
    return None


def _describe(numbers: Numbers, what: str) -> list[str]:
    scaled = ", each divided by L^d_min," if numbers.get("d_min") else ""
    sizes = counted(len({curve["L"] for curve in numbers["curves"]}), "size")
    return [f"{what} of {sizes}{scaled} have the distributions shown."]


def _kind(word: str, what: str, help: str, meaning: str) -> FigureKind:
    return FigureKind(
        help=f"distribution of {help}",
        meaning=f"Distribution of {meaning}",
        errors="Error bars are one standard error, from the scatter of blocks.",
        problems=(partial(_problem, word=word, what=what),),
        draw=partial(_draw, word=word),
        alt=partial(_describe, what=what.capitalize()),
    )


PATH_LENGTHS = _kind(
    "path_lengths",
    "lengths of shortest paths",
    "the length of the shortest path between two sides",
    "the length of the shortest path between two sides at the p nearest to p_c, over the samples "
    "that have one; where d_min is known, scaled with L^d_min, so that sizes fall on one curve.",
)
CURRENTS = _kind(
    "currents",
    "currents",
    "the bonds' shares of the current between two sides",
    "the bonds' shares of the current between two sides, on a logarithmic scale, at the p nearest "
    "to p_c; those below 2^-32, of balanced bonds above all, are left out.",
)
