"""How the blocks of a kind of study are read, and which theory its fits take.

A new kind has a line in :data:`ANALYSES`.
"""

from collections.abc import Sequence
from math import ceil, log10

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.statistics import Floats, mean_of_blocks, standard_error
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.theory.potts import spin_correction
from percolab.bonds.words import NEVER, TOP, p_to_threshold
from percolab.lattices.removal import RANDOM
from percolab.measure.columns import open_axes, spanning_names
from percolab.measure.openings import (
    LARGEST_SQUARES,
    bin_counts,
    bin_middles,
    bin_width,
    convolve,
    interpolate,
)
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study, Task

#: Number of p over a transition, and the fraction of it that is outside on either side.
POINTS, _TAIL = 25, 0.01
_GOLDEN = (5**0.5 - 1) / 2
#: A mean is near its maximum where it exceeds this fraction of it.
_NEAR = 0.3
_LARGEST_SQUARED = "largest*largest"

#: Means and standard errors by observable, float64 (m,) each; NaN where there is none.
Means = dict[str, tuple[Floats, Floats]]


class KindAnalysis:
    """The analysis of a kind of study whose blocks contain sums of columns at every p.

    no_curve: why it has no spanning curve of samples that are the same at all p, "" if it has one.
    """

    no_curve = ""

    def means(self, result: TaskResult, p: Sequence[float] | None) -> tuple[Floats, Means]:
        """Return p (m,) and the mean of every observable with its error.

        p: for kinds that are known at any p, by default over the transition.  Errors are those of
        independent samples where sums of squares are stored, else from the scatter of blocks.
        """
        names, count = [column.name for column in result.observables], result.num_samples
        means = result.sums().sum(axis=0, dtype=np.float64) / count
        if not result.task.has_independent_samples:
            errors = standard_error(result.sums() / result.samples[:, None, None], result.samples)
        else:
            squares = np.stack([result.squares(name).sum(axis=0) for name in names], axis=-1)
            variance = np.maximum(squares / count - means**2, 0.0)
            errors = np.sqrt(variance / (count - 1)) if count > 1 else np.full_like(means, np.nan)
        return np.array(result.task.p), dict(zip(names, zip(means.T, errors.T), strict=True))

    def correction(self, study: Study, quantity: str) -> Known | None:
        """Return the exponent of a quantity's leading correction, None for that of percolation."""
        return None

    def probability_names(self, results: StoredResults) -> list[str]:
        """Return the names of the probabilities that rise with p, and that all tasks have."""
        items = results.measured
        return [
            column.name
            for column in results.study.observables
            if column.rises_with_p and all(result.has(column.name) for result in items)
        ]

    def curve(self, result: TaskResult, name: str) -> SpanningCurve:
        """Return the curve of a probability at the p of its grid."""
        p = self.grid(result, name)
        sums = self.moment_sums(result, name, p).astype(np.int64)
        return SpanningCurve(result.task.size, p, result.samples, sums, result.task.id)

    def moment_names(self, result: TaskResult) -> set[str]:
        """Return the names of the moments of a task: observables, squares, and higher moments."""
        names = [observable.name for observable in result.observables]
        squares = {f"{name}*{name}" for name in names}
        moments = {*names, *squares, *(("s^4",) if result.has("sum_fourths") else ())}
        return moments | ({"m^2", "m^4"} if "state_squares" in names else set())

    def grid(self, result: TaskResult, name: str) -> Floats:
        """Return the p at which a moment of this name is known, float64 (m,)."""
        return np.array(result.task.p)

    def moment_sums(self, result: TaskResult, name: str, p: Floats) -> Floats:
        """Return the block sums of a moment at the p of the grid, float64 (n_blocks, m)."""
        if name == "s^4":
            return np.asarray(result.extra("powers")[..., 1], np.float64)
        if name in ("m^2", "m^4"):
            # m^2 = (q sum N_a^2 / N^2 - 1) / (q - 1), and its square.
            q, sites = int(result.task.draw.states), float(result.task.num_sites) ** 2
            squares = result.column("state_squares").astype(float) / sites
            if name == "m^2":
                return (q * squares - result.samples[:, None]) / (q - 1)
            products = self.moment_sums(result, "state_squares*state_squares", p) / sites**2
            both = q**2 * products - 2 * q * squares + result.samples[:, None]
            return np.asarray(both / (q - 1) ** 2)
        if "*" not in name:
            return result.column(name).astype(float)
        return result.squares(name.partition("*")[0])


class ThresholdAnalysis(KindAnalysis):
    """The analysis of blocks with the exact thresholds of samples, which are counted at any p."""

    def probability_names(self, results: StoredResults) -> list[str]:
        return spanning_names(results.study.boundary)

    def moment_names(self, result: TaskResult) -> set[str]:
        return set(spanning_names(result.task.boundary))

    def grid(self, result: TaskResult, name: str) -> Floats:
        return transition_grid(result.thresholds(name))

    def moment_sums(self, result: TaskResult, name: str, p: Floats) -> Floats:
        return spanning_counts(result.thresholds(name), p).astype(float)

    def means(self, result: TaskResult, p: Sequence[float] | None) -> tuple[Floats, Means]:
        names, count = spanning_names(result.task.boundary), result.num_samples
        thresholds = {name: result.thresholds(name) for name in names}
        grid = transition_grid(np.stack(list(thresholds.values()))) if p is None else np.array(p)
        means: Means = {}
        for name, T in thresholds.items():
            mean = spanning_counts(T, grid).sum(axis=0) / count
            # One sample does not determine its own scatter.
            variance = mean * (1 - mean) / (count - 1) if count > 1 else np.full(grid.size, np.nan)
            means[name] = mean, np.sqrt(variance)
        return grid, means


class MicrocanonicalAnalysis(KindAnalysis):
    """The analysis of sums by the number of openings, which are convolved to any p."""

    def probability_names(self, results: StoredResults) -> list[str]:
        return [column.name for column in results.study.observables if column.rises_with_p]

    def curve(self, result: TaskResult, name: str) -> SpanningCurve:
        """Return the curve of a probability over the transition, in whole samples.

        All sums of one block are rounded with the same offset, so that they rise with p.  The
        offsets are equally spaced over the blocks, so that rounding leaves their total unbiased.
        """
        p, samples = self.grid(result, name), result.samples
        parts = (np.arange(samples.size) * _GOLDEN + 0.5) % 1.0
        # Sums that are whole but for their last digits must not be rounded to another number.
        sums = np.floor(self.moment_sums(result, name, p) + parts[:, None] * (1 - 1e-6) + 1e-7)
        counts = np.maximum.accumulate(sums, axis=1).astype(np.int64)
        return SpanningCurve(result.task.size, p, samples, counts, result.task.id)

    def moment_names(self, result: TaskResult) -> set[str]:
        return {*(column.name for column in result.observables), _LARGEST_SQUARED}

    def grid(self, result: TaskResult, name: str) -> Floats:
        """Return POINTS values of p where a probability rises; for a given order, every bin.

        The probability is `name`, or, for other observables of a lattice, the first of the task.
        Without any, the p are those where the second largest cluster is near its maximum.
        """
        openings = result.task.num_openings
        if result.task.order != RANDOM:
            return bin_middles(openings) / max(openings, 1)
        rising = [column.name for column in result.observables if column.rises_with_p]
        if name not in rising and not result.task.structure.is_scalable:
            rising = []
        sums = result.stacked(name if name in rising else next(iter(rising), "second_largest"))
        means = sums.sum(axis=0) / bin_counts(openings)
        low, high = (_TAIL, 1 - _TAIL) if rising else (_NEAR, np.inf)
        of = means[-1] if rising else means.max()
        inside = np.flatnonzero((means > low * of) & (means < high * of))
        places = inside * bin_width(openings) / max(openings, 1)
        return round_grid(*(places[[0, -1]] if places.size > 1 else (0.0, 1.0)))

    def moment_sums(self, result: TaskResult, name: str, p: Floats) -> Floats:
        stored = result.stacked(LARGEST_SQUARES if name == _LARGEST_SQUARED else name)
        if result.task.order != RANDOM:
            samples = result.samples
            return interpolate(stored, samples, result.task.num_openings, p) * samples[:, None]
        return convolve(stored, result.task.num_openings, p)

    def means(self, result: TaskResult, p: Sequence[float] | None) -> tuple[Floats, Means]:
        grid = self.grid(result, "") if p is None else np.array(p)
        means: Means = {}
        samples, openings = result.samples, result.task.num_openings
        for column in result.observables:
            sums = result.stacked(column.name)
            if result.task.order == RANDOM:
                blocks = convolve(sums, openings, grid) / samples[:, None]
                pair = mean_of_blocks(blocks, samples), standard_error(blocks, samples)
            else:
                pair = block_mean_and_error(interpolate(sums, samples, openings, grid), samples)
            means[column.name] = pair
        return grid, means


class SpinAnalysis(KindAnalysis):
    """The analysis of chains, whose corrections are those of their universality class."""

    no_curve = (
        "chains have no spanning curve of coupled samples: at different p they are independent; "
        "percolab fit finds their transition"
    )

    def correction(self, study: Study, quantity: str) -> Known | None:
        periodic, spans = not open_axes(study.boundary), quantity.startswith("spanning")
        dimension = len(study.boundary)
        return spin_correction(dimension, study.states, periodic=periodic, spans=spans)


class TreeAnalysis(KindAnalysis):
    """The analysis of trees, which have means and no p."""

    no_curve = "trees have no spanning curve; percolab fit shows their means"


#: By the name of the kind.
ANALYSES = {
    "grid": KindAnalysis(),
    "threshold": ThresholdAnalysis(),
    "microcanonical": MicrocanonicalAnalysis(),
    "trees": TreeAnalysis(),
    "chains": SpinAnalysis(),
    "clusters": SpinAnalysis(),
}


def find_analysis(result: Task | Study) -> KindAnalysis:
    return ANALYSES[result.kind.name]


def spanning_counts(
    thresholds: NDArray[np.uint64], p: Sequence[float] | Floats
) -> NDArray[np.int64]:
    """Return the samples with T, uint64 (n_blocks, n), up to each p: int64 (n_blocks, m)."""
    limits = np.array([p_to_threshold(float(value)) for value in p], np.uint64)
    return np.asarray((thresholds[:, :, None] <= limits).sum(axis=1), np.int64)


def transition_grid(thresholds: NDArray[np.uint64], points: int = POINTS) -> Floats:
    """Return equally spaced p over all but the outermost 2 % of the thresholds.

    They are rounded to a tenth of their spacing, so that they do not depend on single samples.
    """
    finite = thresholds[thresholds != np.uint64(NEVER)] / TOP
    low, high = np.quantile(finite, (_TAIL, 1 - _TAIL)) if finite.size else (1.0, 1.0)
    return round_grid(low, high, points)


def round_grid(low: float, high: float, points: int = POINTS) -> Floats:
    """Return equally spaced p from low to high, rounded to a tenth of their spacing."""
    if not high > low:
        return np.array([low])
    digits = ceil(-log10((high - low) / (points - 1))) + 1
    return np.unique(np.round(np.linspace(low, high, points), digits)).clip(0.0, 1.0)


def block_mean_and_error(blocks: Floats, samples: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the mean of blocks' means (n_blocks, m) and its standard error, 0 where all agree."""
    mean, error = mean_of_blocks(blocks, samples), standard_error(blocks, samples)
    same = np.ptp(blocks, axis=0) == 0
    return np.where(same, blocks[0], mean), np.where(same & (len(blocks) > 1), 0.0, error)
