"""The distribution of the length of the shortest path between two sides, size by size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats
from percolab.analysis.stored_data import list_tasks
from percolab.analysis.theory.known_exponents import known_exponents
from percolab.figures import elements
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import COLUMN_WIDTH, choose_looks
from percolab.lattices.shown import counted
from percolab.measure.tallies import quarter_edges
from percolab.store.task_result import TaskResult

#: Bins with fewer samples are not drawn: their error bars would reach to zero.
_LEAST_COUNT = 10


@dataclass(frozen=True, eq=False)
class LengthCurve:
    """The distribution of the lengths of a task's paths at one p.

    low, high: int64 (bins,), shortest and longest length of each bin.  count: int64 (bins,), the
    samples in it.  density, error: float64 (bins,), of one length, over the samples with a path.
    """

    L: int
    p: float
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    count: NDArray[np.int64]
    density: Floats
    error: Floats

    @classmethod
    def of_task(cls, item: TaskResult, p: float) -> LengthCurve:
        """Return the distribution at the p of a task that is nearest to one."""
        at = int(np.argmin(np.abs(np.array(item.task.p) - p)))
        counts, edges = item.extra("path_lengths")[:, at], quarter_edges(item.task.num_points)
        # Some quarters of bins are empty.
        counts, edges = counts[:, np.diff(edges) > 0], np.unique(edges)
        blocks, count, width = len(counts), counts.sum(axis=0), np.diff(edges)
        parts, total = count / max(count.sum(), 1), max(count.sum(), 1)
        away = counts - parts * counts.sum(axis=1, keepdims=True)
        error = np.sqrt((away**2).sum(axis=0) * blocks / max(blocks - 1, 1)) / total
        ends = edges[:-1], edges[1:] - 1
        return cls(item.task.size, item.task.p[at], *ends, count, parts / width, error / width)


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw L^d_min P(l) against l / L^d_min, or P(l) against l where d_min is not known."""
    threshold, source = figures.find_threshold()
    structure = figures.study.structure
    known = known_exponents(structure.dimension).get("d_min") if structure.is_scalable else None
    tasks = list_tasks(figures.results, "path_lengths")
    curves = [LengthCurve.of_task(item, threshold) for item in tasks]
    with into.sheet(COLUMN_WIDTH, 3.6) as sheet:
        axes: Any = sheet.subplots()
        for curve, look, is_new in choose_looks(curves):
            shown, scale = curve.count >= _LEAST_COUNT, curve.L**known.value if known else 1.0
            middle = np.sqrt(curve.low * curve.high)[shown] / scale
            heights = curve.density[shown] * scale, curve.error[shown] * scale
            label = elements.size_label(curve.L, figures.num_sites) if is_new else None
            elements.draw_bars(axes, middle, *heights, look, label=label)
        axes.set(xscale="log", yscale="log", xlabel=r"$\ell$ (bonds)", ylabel=r"$P(\ell)$")
        if known:
            scaled = r"L^{d_\mathrm{min}}"
            axes.set(xlabel=rf"$\ell / {scaled}$", ylabel=rf"${scaled} P(\ell)$")
            text = rf"$d_\mathrm{{min}} = {known.value:.6g}$"
            axes.annotate(text, (0.05, 0.05), None, "axes fraction", fontsize=9)
        elements.plain_ticks(axes)
        sheet.set_title(f"{figures.title}, $p = {threshold:.6g}$")
        sheet.add_legend(elements.legend_entries(axes), ncols=3)
    return sheet.figure, {
        "threshold": threshold,
        "threshold_source": source,
        "d_min": known.value if known else None,
        "curves": plain(curves),
    }


def _problem(figures: StudyView) -> str | None:
    tasks = list_tasks(figures.results, "path_lengths")
    if not tasks:
        how = figures.how_to_measure("path_lengths")
        return f"lengths of paths were not counted: {how}"
    if not any((item.extra("path_lengths").sum(axis=0) >= _LEAST_COUNT).any() for item in tasks):
        return f"no bin of lengths has {_LEAST_COUNT} samples"
    return None


def _describe(numbers: Numbers) -> list[str]:
    scaled = ", each divided by L^d_min," if numbers["d_min"] else ""
    sizes = counted(len({curve["L"] for curve in numbers["curves"]}), "size")
    return [f"Lengths of shortest paths of {sizes}{scaled} have the distributions shown."]


PATH_LENGTHS = FigureKind(
    help="distribution of the length of the shortest path between two sides",
    meaning=(
        "Distribution of the length of the shortest path between two sides at the p nearest to "
        "p_c, over the samples that have one; where d_min is known, scaled with L^d_min, so that "
        "sizes fall on one curve."
    ),
    errors="Error bars are one standard error, from the scatter of blocks.",
    problems=(_problem,),
    draw=_draw,
    alt=_describe,
)
