"""The exact likelihood of coupled spanning counts, its maximum under Gaussian priors, its chi^2.

R_L(p) is the distribution function of a sample's spanning threshold T, and all p of a task use the
same samples. The numbers of samples with T in each interval of the p grid are therefore one
multinomial, whose likelihood contains the correlation along p exactly.

A model is a function theta -> (f, df/dtheta) on the points (curve, p) with R = Phi(f), Phi the
normal distribution function (probit link).  One size alone is a polynomial, without finite-size
scaling (:func:`fit_size`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from percolab.analysis.curves import SpanningCurve, probit_points
from percolab.analysis.json_values import Record
from percolab.analysis.statistics import MIN_BLOCKS, Floats, draw_blocks, unit_diagonal
from percolab.analysis.value import ChiSquare
from percolab.errors import AnalysisError

ProbitModel = Callable[[Floats], tuple[Floats, Floats]]

_TINY_PROBABILITY = 1e-12
_MAX_ITERATIONS = 2000
# A maximum is reached when the log-likelihood is expected to gain less than the first, or when no
# step up to the second damping gains: the maximum lies on the boundary of monotone R.
_GAIN, _STALLED = 1e-9, 1e8
# After the last iteration this gain is accepted: a point 0.05 errors away from the maximum.
_NEAR = 1e-3
# Least number of samples that a merged cell of chi^2 is expected to contain.
_LEAST = 5.0
# An empty cell counts as this part of a sample, which keeps the maximum inside of monotone R.
_EMPTY = 0.1
# Least ratio of the eigenvalues of an information matrix that can be inverted.
_UNDETERMINED = 1e-12


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent Gaussian priors: mean, and precision 1 / sigma^2 or 0 for none, (k,) each."""

    mean: Floats
    precision: Floats

    @classmethod
    def none(cls, parameters: int) -> Prior:
        return cls(np.zeros(parameters), np.zeros(parameters))

    def penalty(self, theta: Floats) -> float:
        """Return the contribution of the priors to chi^2 at theta, float64 (k,)."""
        return float(self.precision @ (theta - self.mean) ** 2)


@dataclass(frozen=True, eq=False)
class ThresholdCells:
    """The cells (curve, interval of T) of several curves, laid end to end.

    sizes, p: float64 (points,), of every point.  lower, upper: int64 (cells,), the points at the
    ends of each cell; -2 stands for R = 0 and -1 for R = 1.  curve: int64 (cells,), index of its
    curve. counts: float64 (cells,), observed samples.
    """

    curves: tuple[SpanningCurve, ...]
    sizes: Floats
    p: Floats
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    curve: NDArray[np.int64]
    counts: Floats

    @classmethod
    def from_curves(cls, curves: Sequence[SpanningCurve]) -> ThresholdCells:
        """Lay the cells of `curves` end to end."""
        points = [curve.p.size for curve in curves]
        indices = np.split(np.arange(sum(points)), np.cumsum(points)[:-1])
        return cls(
            curves=tuple(curves),
            sizes=np.repeat([float(curve.L) for curve in curves], points),
            p=np.concatenate([curve.p for curve in curves]),
            lower=np.concatenate([np.append(-2, own) for own in indices]),
            upper=np.concatenate([np.append(own, -1) for own in indices]),
            curve=np.repeat(np.arange(len(curves)), np.array(points) + 1),
            counts=np.concatenate([c.threshold_counts.sum(axis=0) for c in curves]).astype(float),
        )

    @property
    def totals(self) -> Floats:
        """Number of samples of each cell's curve, float64 (cells,)."""
        return np.asarray(np.bincount(self.curve, weights=self.counts)[self.curve], float)

    def differences(self, values: Floats, *, last: float) -> Floats:
        """Return values (points, ...) at upper less lower ends: 0 at R = 0 and `last` at R = 1."""
        ends = np.zeros((2, *values.shape[1:]))
        ends[1] = last
        extended = np.concatenate([values, ends])
        return np.asarray(extended[self.upper] - extended[self.lower], float)


@dataclass(frozen=True, eq=False)
class LikelihoodMaximum:
    """Maximum of the likelihood times the priors.

    theta: float64 (k,).  information: float64 (k, k), Fisher information of the data alone.
    covariance: float64 (k, k), the inverse of the information with that of the priors.  slope:
    float64 (cells, k), derivative of the log of the cells' probabilities: a change of the counts
    moves theta by ``covariance @ slope.T @ change``.  probability: float64 (cells,).  deviance: -2
    times the log of the likelihood ratio to the observed frequencies.  penalty: of the priors.
    """

    theta: Floats
    information: Floats
    covariance: Floats
    slope: Floats
    probability: Floats
    deviance: float
    penalty: float


def maximise(
    model: ProbitModel, cells: ThresholdCells, start: Floats, prior: Prior | None = None
) -> LikelihoodMaximum:
    """Maximise the multinomial likelihood times the priors, by damped Fisher scoring.

    start: float64 (k,).  Stops when the expected gain is far below a statistical error, or when no
    step gains because the maximum lies on the boundary of monotone R.  AnalysisError: the data
    leave a parameter undetermined, or the iteration does not converge.
    """
    at = partial(_Point.at, model, cells, prior or Prior.none(len(start)))
    here, damping = at(np.array(start, float)), 0.0
    if here is None:
        raise AnalysisError("the fit starts from a spanning probability that falls as p rises")
    for _ in range(_MAX_ITERATIONS):
        curvature = here.information(cells.totals / here.probability)
        curvature += np.diag(here.prior.precision)
        step = _solve(curvature, here.score)
        if here.score @ step < _GAIN or damping > _STALLED:
            return here.maximum(cells)
        if damping:
            step = _solve(curvature + damping * np.diag(np.diag(curvature)), here.score)
        there = _best_along(at, here, step)
        if there is None:
            damping = max(10.0 * damping, 1e-3)
            continue
        expected = float(here.score @ step - 0.5 * step @ curvature @ step)
        gain, here = there.value - here.value, there
        if gain < 0.25 * expected:
            damping = max(4.0 * damping, 1e-3)
        elif gain > 0.5 * expected:
            damping = 0.1 * damping if damping > 1e-5 else 0.0
    if here.score @ step < _NEAR:
        return here.maximum(cells)
    raise AnalysisError("the fit did not converge; give more samples or a lower degree")


@dataclass(frozen=True, eq=False)
class _Point:
    """The logarithm of likelihood times priors at theta, and its derivative `score`."""

    prior: Prior
    theta: Floats
    probability: Floats
    slope: Floats
    value: float
    score: Floats

    @classmethod
    def at(
        cls, model: ProbitModel, cells: ThresholdCells, prior: Prior, theta: Floats
    ) -> _Point | None:
        """Return a point, None where R falls along p."""
        with np.errstate(over="ignore", invalid="ignore"):
            argument, jacobian = model(theta)
            density = np.exp(-0.5 * argument * argument) / np.sqrt(2.0 * np.pi)
            probability = cells.differences(ndtr(argument), last=1.0)
            slope = cells.differences(density[:, None] * jacobian, last=0.0)
        if not probability.min() >= -_TINY_PROBABILITY or not np.isfinite(slope).all():
            return None
        probability = np.maximum(probability, _TINY_PROBABILITY)
        # Relative to the observed frequencies the sum is small, and its changes are precise.
        counts = np.maximum(cells.counts, _EMPTY)
        value = float(counts @ np.log(cells.totals * probability / counts))
        score = slope.T @ (counts / probability) - prior.precision * (theta - prior.mean)
        return cls(prior, theta, probability, slope, value - 0.5 * prior.penalty(theta), score)

    def information(self, weights: Floats) -> Floats:
        return self.slope.T @ (self.slope * weights[:, None])

    def maximum(self, cells: ThresholdCells) -> LikelihoodMaximum:
        # A cell in which less than one sample is expected counts as one: on the boundary of
        # monotone R no probability is known better than that.
        least = np.maximum(self.probability, 1 / cells.totals)
        information = self.information(cells.totals / least)
        seen = cells.counts > 0
        ratio = cells.totals[seen] * self.probability[seen] / cells.counts[seen]
        return LikelihoodMaximum(
            theta=self.theta,
            information=information,
            covariance=invert_curvature(information + np.diag(self.prior.precision)),
            slope=self.slope / self.probability[:, None],
            probability=self.probability,
            deviance=-2.0 * float(cells.counts[seen] @ np.log(ratio)),
            penalty=self.prior.penalty(self.theta),
        )


def _best_along(at: Callable[[Floats], _Point | None], here: _Point, step: Floats) -> _Point | None:
    """Return the better of a step's end and the top of a parabola on it; None if both are lower."""
    # Where the likelihood bends more than its Fisher information, whole steps are too long.
    there, expected = at(here.theta + step), float(here.score @ step)
    gain = -np.inf if there is None else there.value - here.value
    if gain < 0.4 * expected and np.isfinite(gain):
        part = 0.5 * expected / (expected - gain)
        between = at(here.theta + part * step)
        if between is not None and between.value - here.value > gain:
            there, gain = between, between.value - here.value
    return there if gain >= -1e-14 * abs(here.value) else None


def chi_square(cells: ThresholdCells, maximum: LikelihoodMaximum) -> ChiSquare:
    """Return Pearson's chi^2 over the cells, neighbours merged until each expects 5 samples.

    It contains the priors' penalty; its freedom is the number of merged cells less the effective
    parameters.
    """
    expected = maximum.probability * cells.totals
    # The parameters that the data determine: the trace of covariance times information.
    value, freedom = maximum.penalty, -float(np.sum(maximum.covariance * maximum.information))
    for index in range(len(cells.curves)):
        own = cells.curve == index
        groups = _merged(expected[own])
        merged = np.bincount(groups, weights=expected[own])
        counts = np.bincount(groups, weights=cells.counts[own])
        value += float(np.sum((counts - merged) ** 2 / merged))
        freedom += merged.size - 1
    return ChiSquare.of(value, max(round(freedom), 0))


_NOT_DETERMINED = "the data do not determine all parameters of the fit"


def _solve(matrix: Floats, right: Floats) -> Floats:
    scaled, scale = unit_diagonal(matrix)
    try:
        return np.asarray(np.linalg.solve(scaled, right * scale) * scale, float)
    except np.linalg.LinAlgError:
        raise AnalysisError(_NOT_DETERMINED) from None


def invert_curvature(matrix: Floats) -> Floats:
    """Return the inverse of a curvature; AnalysisError where it is singular to rounding."""
    scaled, scale = unit_diagonal(matrix)
    values, vectors = np.linalg.eigh(scaled)
    if not values[0] > _UNDETERMINED * values[-1]:
        raise AnalysisError(_NOT_DETERMINED)
    half = vectors / np.sqrt(values) * scale[:, None]
    return np.asarray(half @ half.T, float)


def resample_curve(curve: SpanningCurve, rng: np.random.Generator, replicas: int) -> Floats:
    """Draw bootstrap replicas of one curve's counts, float64 (replicas, m + 1)."""
    counts = curve.threshold_counts
    if counts.shape[0] < MIN_BLOCKS:
        fractions = counts.sum(axis=0) / curve.total_samples
        return rng.multinomial(curve.total_samples, fractions, size=replicas).astype(float)
    return draw_blocks(counts.shape[0], rng, replicas) @ counts


def _merged(expected: Floats) -> NDArray[np.int64]:
    """Return the group of each cell: neighbours that together expect at least _LEAST samples."""
    groups = np.zeros(expected.size, dtype=np.int64)
    group, filled = 0, 0.0
    for index, value in enumerate(expected):
        if filled >= _LEAST:
            group, filled = group + 1, 0.0
        groups[index] = group
        filled += value
    if filled < _LEAST and group > 0:
        groups[groups == group] = group - 1
    return groups


@dataclass(frozen=True)
class SizeFit(Record):
    """probit R_L(p) = sum c_k ((p - p_mid) / scale)^k for one size L.

    p_low, p_high: range of the `points` fitted points.  samples: total over tasks.  covariance: of
    the coefficients, row by row.
    """

    renamed: ClassVar = {"covariance": ""}

    L: int
    p_mid: float
    scale: float
    coefficients: tuple[float, ...]
    p_low: float
    p_high: float
    points: int
    samples: int
    chi_square: ChiSquare
    covariance: tuple[tuple[float, ...], ...]

    @classmethod
    def of(
        cls, L: int, p: Floats, theta: Floats, covariance: Floats, quality: ChiSquare, samples: int
    ) -> SizeFit:
        """Return the fit with these coefficients, (k,), in units of the range of the points p."""
        low, high = float(p.min()), float(p.max())
        numbers = 0.5 * (low + high), 0.5 * (high - low), tuple(theta.tolist()), low, high, p.size
        return cls(L, *numbers, samples, quality, tuple(map(tuple, covariance.tolist())))

    @cached_property
    def probit(self) -> Polynomial:
        domain = [self.p_mid - self.scale, self.p_mid + self.scale]
        return Polynomial(self.coefficients, domain=domain, window=[-1.0, 1.0])

    def evaluate(self, p: Floats, coefficients: Floats) -> Floats:
        """Return the probit with other coefficients, (r, k), at p (m,), float64 (r, m)."""
        powers = np.vander((p - self.p_mid) / self.scale, coefficients.shape[1], increasing=True)
        return np.asarray(coefficients @ powers.T, np.float64)

    def probability(self, p: ArrayLike) -> Floats:
        """Spanning probability at `p`, float64 of the same shape."""
        return np.asarray(ndtr(self.probit(np.asarray(p, float))), np.float64)

    def covariance_at(self, p: float, other: float) -> float:
        """Return the covariance of the fitted probit at two p."""
        return float(self.powers(p)[0] @ np.array(self.covariance) @ self.powers(other)[0])

    def powers(self, p: float) -> tuple[Floats, Floats]:
        """Return the factors of the coefficients in the probit and in its slope, (k,) each."""
        x, order = (p - self.p_mid) / self.scale, np.arange(len(self.coefficients))
        slopes = np.append(0.0, order[1:] * x ** order[:-1]) / self.scale
        return np.asarray(x**order, np.float64), np.asarray(slopes, np.float64)

    def density(self, p: float) -> float:
        """Return dR / d probit at `p`."""
        return float(np.exp(-0.5 * self.probit(p) ** 2) / np.sqrt(2.0 * np.pi))

    def slope(self, p: float) -> float:
        return self.density(p) * float(self.probit.deriv()(p))


def _maximise_polynomial(
    cells: ThresholdCells, middle: float, scale: float, degree: int, start: Floats | None = None
) -> LikelihoodMaximum:
    """Return the best polynomial in (p - middle) / scale; start: by default a straight line."""
    design = np.vander((cells.p - middle) / scale, degree + 1, increasing=True)
    if start is None:
        _, probit = probit_points(cells.curves)
        line, *_ = np.linalg.lstsq(design[:, :2], probit, rcond=None)
        if not line[1] > 0:
            size = cells.curves[0].L
            raise AnalysisError(f"the spanning probability of L = {size} does not rise with p")
        start = np.concatenate([line, np.zeros(degree - 1)])
    return maximise(lambda theta: (design @ theta, design), cells, start)


def fit_size(curves: Sequence[SpanningCurve], *, degree: int = 3) -> SizeFit:
    """Fit all `curves` of one size by their exact likelihood.

    With fewer than degree + 1 distinct p the degree is lower.  Raises AnalysisError with fewer than
    two p, or where R does not rise between them; ValueError when the sizes differ.
    """
    if len({curve.L for curve in curves}) != 1:
        raise ValueError("fit_size needs curves of exactly one linear size")
    cells = ThresholdCells.from_curves(curves)
    low, high = float(cells.p.min()), float(cells.p.max())
    middle, scale = 0.5 * (low + high), 0.5 * (high - low)
    distinct = np.unique(cells.p).size
    if distinct < 2:
        raise AnalysisError(f"L = {curves[0].L} has fewer than two p to fit")
    estimate = _maximise_polynomial(cells, middle, scale, min(degree, distinct - 1))
    fitted, samples = (estimate.theta, estimate.covariance), sum(c.total_samples for c in curves)
    return SizeFit.of(curves[0].L, cells.p, *fitted, chi_square(cells, estimate), samples)


def refit(fit: SizeFit, cells: ThresholdCells, counts: Floats) -> SizeFit:
    """Return `fit` with coefficients fitted to `counts`, a replica of those of its `cells`."""
    drawn, start = replace(cells, counts=counts), np.array(fit.coefficients)
    estimate = _maximise_polynomial(drawn, fit.p_mid, fit.scale, start.size - 1, start)
    return replace(fit, coefficients=tuple(estimate.theta.tolist()))
