"""What the analysis of a kind of study is: how its blocks are read, and which theory its fits take.

A new kind has a line in :data:`ANALYSES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.statistics import Floats
from percolab.analysis.theory.potts import spin_correction
from percolab.bonds.words import NEVER, TOP, p_to_threshold
from percolab.measure.columns import open_axes, spanning_names
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study, Task

#: Values of p that exact thresholds are counted at, and the part of these that is left out below
#: the first and above the last.
POINTS, _TAIL = 25, 0.01


class Reading(Protocol):
    """How probabilities and moments are read off the blocks of a kind of study."""

    def probability_names(self, results: StoredResults) -> list[str]:
        """Return the names of the probabilities that rise with p."""

    def curve(self, item: TaskResult, name: str) -> SpanningCurve:
        """Return the curve of a probability."""

    def moment_names(self, item: TaskResult) -> set[str]:
        """Return the names of the moments that a task's blocks hold."""

    def grid(self, item: TaskResult, name: str) -> Floats:
        """Return the p at which a moment of this name is known, float64 (m,)."""

    def moment_sums(self, item: TaskResult, name: str, p: Floats) -> Floats:
        """Return the block sums of a moment, float64 (n_blocks, m)."""


class SumsReading:
    """Blocks with sums of columns at every p."""

    def probability_names(self, results: StoredResults) -> list[str]:
        """Return the names of the probabilities that rise with p, and that all tasks have.

        A file that was made before wrapping was measured has no wrapping probabilities.
        """
        items = [item for item in results.tasks.values() if item.blocks]
        return [
            column.name
            for column in results.study.observables
            if column.rises_with_p and all(item.has(column.name) for item in items)
        ]

    def curve(self, item: TaskResult, name: str) -> SpanningCurve:
        """Return the curve of a probability at the p of the task."""
        samples = np.full(len(item.blocks), item.task.block_size)
        p = np.array(item.task.p)
        return SpanningCurve(item.task.size, p, samples, item.column(name), item.task.id)

    def moment_names(self, item: TaskResult) -> set[str]:
        """Return the names of observables, of their products, and of higher moments."""
        names = [observable.name for observable in item.observables]
        products = {f"{a}*{b}" for a in names for b in names}
        found = {*names, *products, *(("s^4",) if item.has("sum_fourths") else ())}
        return found | ({"m^2", "m^4"} if "state_squares" in names else set())

    def grid(self, item: TaskResult, name: str) -> Floats:
        """Return the p of the task."""
        return np.array(item.task.p)

    def moment_sums(self, item: TaskResult, name: str, p: Floats) -> Floats:
        """Return the block sums of a moment at the p of the task."""
        if name == "s^4":
            return np.asarray(item.extra("powers")[..., 1], np.float64)
        if name in ("m^2", "m^4"):
            return self._order_parameter(item, squared=name == "m^4")
        if "*" not in name:
            return item.column(name).astype(float)
        names = [observable.name for observable in item.observables]
        pair = sorted(names.index(part) for part in name.split("*"))
        rows, columns = np.triu_indices(len(names))
        at = int(np.flatnonzero((rows == pair[0]) & (columns == pair[1]))[0])
        return item.products()[:, :, at]

    def _order_parameter(self, item: TaskResult, *, squared: bool) -> Floats:
        """Return the block sums of m^2 = (q sum N_a^2 / N^2 - 1) / (q - 1), or of its square."""
        states, sites = item.task.draw.states, float(item.task.num_sites) ** 2
        squares = item.column("state_squares").astype(float) / sites
        if not squared:
            return (states * squares - item.task.block_size) / (states - 1)
        p = np.array(item.task.p)
        products = self.moment_sums(item, "state_squares*state_squares", p) / sites**2
        both = states**2 * products - 2 * states * squares + item.task.block_size
        return np.asarray(both / (states - 1) ** 2)


class ThresholdReading:
    """Blocks with the exact thresholds of samples, which are counted at any p."""

    def probability_names(self, results: StoredResults) -> list[str]:
        """Return the names of the spanning probabilities."""
        return spanning_names(results.study.boundary)

    def curve(self, item: TaskResult, name: str) -> SpanningCurve:
        """Return the curve of a probability at POINTS p, equally spaced over the transition."""
        p, samples = self.grid(item, name), np.full(len(item.blocks), item.task.block_size)
        counts = spanning_counts(item.thresholds(name), p)
        return SpanningCurve(item.task.size, p, samples, counts, item.task.id)

    def moment_names(self, item: TaskResult) -> set[str]:
        """Return the names of the spanning probabilities."""
        return set(spanning_names(item.task.boundary))

    def grid(self, item: TaskResult, name: str) -> Floats:
        """Return POINTS values of p, equally spaced over the transition."""
        return transition_grid(item.thresholds(name))

    def moment_sums(self, item: TaskResult, name: str, p: Floats) -> Floats:
        """Return how many samples of every block span at each p."""
        return spanning_counts(item.thresholds(name), p).astype(float)


@dataclass(frozen=True)
class KindAnalysis:
    """How the results of a kind of study are analysed.

    reading:  of its blocks
    no_curve: why it has no spanning curve of samples that are the same at all p, "" if it has one
    """

    reading: Reading
    no_curve: str = ""

    def correction(self, study: Study) -> float | None:
        """Return the exponent of the leading correction of all quantities, None for one of each."""
        return None


class SpinAnalysis(KindAnalysis):
    """The analysis of spins, whose corrections are those of their universality class."""

    def correction(self, study: Study) -> float | None:
        """Return the exponent of the leading correction of all quantities."""
        periodic = not open_axes(study.boundary)
        return spin_correction(len(study.boundary), study.states, periodic=periodic).value


_SUMS = SumsReading()
#: By the name of the kind.
ANALYSES = {
    "grid": KindAnalysis(_SUMS),
    "threshold": KindAnalysis(ThresholdReading()),
    "trees": KindAnalysis(_SUMS),
    "chains": SpinAnalysis(
        _SUMS,
        "spins have no spanning curve of coupled samples, as chains at other p are others; "
        "percolab fit finds their transition",
    ),
}


def find_analysis(item: Task | Study) -> KindAnalysis:
    """Return how the results of a task or study of this kind are analysed."""
    return ANALYSES[item.kind.name]


def spanning_counts(
    thresholds: NDArray[np.uint64], p: Sequence[float] | Floats
) -> NDArray[np.int64]:
    """Return how many samples of every block span at each p, int64 (n_blocks, m).

    thresholds: T of the samples, uint64 (n_blocks, block_size).
    """
    limits = np.array([p_to_threshold(float(value)) for value in p], np.uint64)
    return np.asarray((thresholds[:, :, None] <= limits).sum(axis=1), np.int64)


def transition_grid(thresholds: NDArray[np.uint64], points: int = POINTS) -> Floats:
    """Return equally spaced p over all but the outermost 2 % of the thresholds.

    They are rounded to a tenth of their spacing, so that they do not depend on single samples.
    """
    found = thresholds[thresholds != np.uint64(NEVER)] / TOP
    low, high = np.quantile(found, (_TAIL, 1 - _TAIL)) if found.size else (1.0, 1.0)
    if not high > low:
        return np.array([low])
    digits = ceil(-log10((high - low) / (points - 1))) + 1
    return np.unique(np.round(np.linspace(low, high, points), digits)).clip(0.0, 1.0)
