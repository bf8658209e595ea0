"""The exact likelihood of coupled spanning counts, its maximum and its chi^2.

R_L(p) is the distribution function of a sample's spanning threshold T, and all p of a task use the
same samples. The numbers of samples with T in each interval of the p grid are therefore one
multinomial, and fitting these cells treats the correlation along p exactly: no covariance matrix
is estimated, empty cells and R = 0 or 1 need no special care.

A model is a function theta -> (f, df/dtheta) on the points (curve, p) with R = Phi(f), Phi the
normal distribution function (probit link). Nothing here depends on what f is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.fit_quality import ChiSquare
from percolab.analysis.statistics import MIN_BLOCKS, Floats, draw_blocks, unit_diagonal
from percolab.errors import AnalysisError

ProbitModel = Callable[[Floats], tuple[Floats, Floats]]

_TINY_PROBABILITY = 1e-12
_MAX_ITERATIONS = 100
_STALLED = 1e8


@dataclass(frozen=True, eq=False)
class ThresholdCells:
    """The cells (curve, interval of T) of several curves, laid end to end.

    sizes, p: float64 (points,), linear size and p of every point.
    difference: float64 (cells, points) and offset: float64 (cells,); the probability of the
    cells is `difference @ R + offset`.
    curve: int64 (cells,), which curve a cell belongs to.
    counts: float64 (cells,), samples observed in each cell.
    """

    curves: tuple[SpanningCurve, ...]
    sizes: Floats
    p: Floats
    difference: Floats
    offset: Floats
    curve: NDArray[np.int64]
    counts: Floats

    @classmethod
    def from_curves(cls, curves: Sequence[SpanningCurve]) -> ThresholdCells:
        """Lay the cells of `curves` end to end."""
        points = [curve.p.size for curve in curves]
        difference = np.zeros((sum(points) + len(curves), sum(points)))
        offset = np.zeros(difference.shape[0])
        row = column = 0
        for m in points:
            block = np.eye(m + 1, m) - np.eye(m + 1, m, k=-1)
            difference[row : row + m + 1, column : column + m] = block
            offset[row + m] = 1.0
            row, column = row + m + 1, column + m
        return cls(
            curves=tuple(curves),
            sizes=np.repeat([float(curve.L) for curve in curves], points),
            p=np.concatenate([curve.p for curve in curves]),
            difference=difference,
            offset=offset,
            curve=np.repeat(np.arange(len(curves)), np.array(points) + 1),
            counts=np.concatenate([c.threshold_counts.sum(axis=0) for c in curves]).astype(float),
        )

    def of_size(self, L: int) -> tuple[ThresholdCells, NDArray[np.bool_]]:
        """Return the cells of one size alone, and the mask (cells,) that picks them here."""
        chosen = [index for index, curve in enumerate(self.curves) if curve.L == L]
        own = ThresholdCells.from_curves([self.curves[index] for index in chosen])
        return own, np.isin(self.curve, chosen)

    def totals(self, counts: Floats) -> Floats:
        """Number of samples of each cell's curve, float64 (cells,)."""
        return np.asarray(np.bincount(self.curve, weights=counts)[self.curve], float)

    def resample(self, rng: np.random.Generator, replicas: int) -> Floats:
        """Draw bootstrap replicas of the counts, float64 (replicas, cells).

        Blocks are drawn with replacement within each task; a task with fewer than MIN_BLOCKS
        blocks has its samples drawn instead, which are independent by construction.
        """
        return np.hstack([resample_curve(curve, rng, replicas) for curve in self.curves])


@dataclass(frozen=True, eq=False)
class LikelihoodMaximum:
    """Maximum of the likelihood.

    theta: float64 (k,). covariance: float64 (k, k), the inverse Fisher information.
    """

    theta: Floats
    covariance: Floats
    log_likelihood: float


def maximise(
    model: ProbitModel, cells: ThresholdCells, counts: Floats, start: Floats
) -> LikelihoodMaximum:
    """Maximise the multinomial likelihood by Fisher scoring with Levenberg damping.

    `counts` is float64 (cells,), usually `cells.counts` or a bootstrap replica of it; `start` is
    float64 (k,). Stops when the expected gain is far below a statistical error, or when no step
    rises because the maximum lies on the edge of monotone R. Raises AnalysisError when the data
    leave a parameter undetermined or the iteration does not end.
    """
    theta, damping = np.array(start, float), 0.0
    totals = cells.totals(counts)
    probability, slope = _cell_probability(model, cells, theta)
    if probability is None:
        raise AnalysisError("the fit starts from a spanning probability that falls as p rises")
    value = float(counts @ np.log(probability))
    for _ in range(_MAX_ITERATIONS):
        score = slope.T @ (counts / probability)
        information = slope.T @ (slope * (totals / probability)[:, None])
        step = _solve(information, score)
        if score @ step < 1e-8 or damping > _STALLED:
            return LikelihoodMaximum(theta, _solve(information, np.eye(theta.size)), value)
        if damping:
            step = _solve(information + damping * np.diag(np.diag(information)), score)
        trial, trial_slope = _cell_probability(model, cells, theta + step)
        trial_value = -np.inf if trial is None else float(counts @ np.log(trial))
        if trial is not None and trial_value >= value - 1e-12 * abs(value):
            theta, probability, slope, value = theta + step, trial, trial_slope, trial_value
            damping = 0.1 * damping if damping > 1e-5 else 0.0
        else:
            damping = max(10.0 * damping, 1e-3)
    raise AnalysisError("the fit did not converge; give more samples or a lower degree")


def sample_information(model: ProbitModel, cells: ThresholdCells, theta: Floats) -> Floats:
    """Return the Fisher information that one sample of each curve holds, float64 (curves, k, k).

    That of a study is their sum, each times the number of its samples.
    """
    probability, slope = _cell_probability(model, cells, theta)
    assert probability is not None
    weighted = slope / probability[:, None]
    own = [cells.curve == index for index in range(len(cells.curves))]
    return np.array([slope[cell].T @ weighted[cell] for cell in own])


def chi_square(model: ProbitModel, cells: ThresholdCells, estimate: LikelihoodMaximum) -> ChiSquare:
    """Return Pearson's chi^2 over the cells, neighbours merged until each expects 5 samples."""
    probability, _ = _cell_probability(model, cells, estimate.theta)
    assert probability is not None
    expected = probability * cells.totals(cells.counts)
    value, freedom = 0.0, -estimate.theta.size
    for index in range(len(cells.curves)):
        of_curve = cells.curve == index
        groups = _merged(expected[of_curve])
        merged_expected = np.bincount(groups, weights=expected[of_curve])
        merged_counts = np.bincount(groups, weights=cells.counts[of_curve])
        value += float(np.sum((merged_counts - merged_expected) ** 2 / merged_expected))
        freedom += merged_expected.size - 1
    freedom = max(freedom, 0)
    return ChiSquare.of(value, freedom)


def _cell_probability(
    model: ProbitModel, cells: ThresholdCells, theta: Floats
) -> tuple[Floats | None, Floats]:
    """Probability (cells,) and derivative (cells, k), or (None, ...) where R falls along p."""
    argument, jacobian = model(theta)
    density = np.exp(-0.5 * argument * argument) / np.sqrt(2.0 * np.pi)
    probability = cells.difference @ ndtr(argument) + cells.offset
    slope = cells.difference @ (density[:, None] * jacobian)
    if not probability.min() >= -_TINY_PROBABILITY:
        return None, slope
    return np.maximum(probability, _TINY_PROBABILITY), slope


def _solve(matrix: Floats, right: Floats) -> Floats:
    scaled, scale = unit_diagonal(matrix)
    side = right * (scale if right.ndim == 1 else scale[:, None])
    try:
        solution = np.linalg.solve(scaled, side)
    except np.linalg.LinAlgError:
        raise AnalysisError("the data do not determine all parameters of the fit") from None
    return solution * (scale if right.ndim == 1 else scale[:, None])


def resample_curve(curve: SpanningCurve, rng: np.random.Generator, replicas: int) -> Floats:
    """Draw bootstrap replicas of one curve's counts, float64 (replicas, m + 1)."""
    counts = curve.threshold_counts
    if counts.shape[0] < MIN_BLOCKS:
        fractions = counts.sum(axis=0) / curve.total_samples
        return rng.multinomial(curve.total_samples, fractions, size=replicas).astype(float)
    return draw_blocks(counts.shape[0], rng, replicas) @ counts


def _merged(expected: Floats, *, least: float = 5.0) -> NDArray[np.int64]:
    """Group number of each cell such that every group of neighbours expects `least` samples."""
    groups = np.zeros(expected.size, dtype=np.int64)
    group, filled = 0, 0.0
    for index, value in enumerate(expected):
        if filled >= least:
            group, filled = group + 1, 0.0
        groups[index] = group
        filled += value
    if filled < least and group > 0:
        groups[groups == group] = group - 1
    return groups
