"""Crossings of the curves of neighbouring sizes, and their drift.

A crossing p*(L1, L2) needs no model of how R_L scales. Its distance from p_c falls as
L^-(omega + y_t), so the drift, extrapolated to L = infinity, is a second estimate of p_c (K.
Binder, Z. Phys. B 43, 119 (1981)). Curves a_1 (p - p_c) L^y_t + b L^-omega + B L^-2 omega cross at

    p* = p_c + (b h_omega + B h_2omega) / a_1,    h_k = (L1^-k - L2^-k) / (L2^y_t - L1^y_t),

which is fitted with priors, b = 0 +- 3 and B = 0 +- 9, and averaged over smallest sizes
(:mod:`percolab.analysis.power_law`).

The moment ratio Q_1 = <s_1>^2 / <s_1^2> is dimensionless like R_L, so its crossings give p_c too,
even without an open axis: J. Wang et al., Phys. Rev. E 87, 052107 (2013). Between grid points each
moment is the polynomial through the grid points nearest to the expected crossing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import nan
from typing import ClassVar

import numpy as np

from percolab.analysis.curves import ClusterCurve, nearest_nodes, node_weights
from percolab.analysis.json_values import Part, Record
from percolab.analysis.likelihood import SizeFit
from percolab.analysis.power_law import PRIORS, average_over_sizes
from percolab.analysis.quantities import Q_1
from percolab.analysis.statistics import (
    Floats,
    draw_blocks,
    geometric_mean,
    half_width,
    with_data_first,
)
from percolab.analysis.value import ChiSquare, Value
from percolab.errors import AnalysisError

# Two ratios are computed at this number of p; their crossing is interpolated linearly between them.
_STEPS = 400


@dataclass(frozen=True)
class CurveCrossing(Record):
    """Crossing of the curves of sizes L1 < L2: p*, R at p*, and one-sigma errors.

    All numbers are NaN when the fitted curves do not cross inside the p that both sizes cover;
    errors are NaN without a bootstrap.
    """

    added: ClassVar = ("mean_size", "found")

    L1: int
    L2: int
    p: float
    probability: float
    p_error: float = nan
    probability_error: float = nan

    @property
    def found(self) -> bool:
        return bool(np.isfinite(self.p))

    @property
    def mean_size(self) -> float:
        return float(np.sqrt(self.L1 * self.L2))


@dataclass(frozen=True)
class Drift(Record):
    """p_c from the crossings: the limit, and b/a_1 and B/a_1 of the drift towards it."""

    renamed: ClassVar = {"omega": "", "y_t": ""}
    added: ClassVar = ("exponent",)
    result_keys: ClassVar = ("threshold", "threshold_error")

    result: Value
    amplitudes: tuple[float, float]
    omega: float
    y_t: float

    threshold, threshold_error = Part[float]("result.value"), Part[float]("result.error")
    chi_square = Part[ChiSquare]("result.quality")

    @property
    def exponent(self) -> float:
        """omega + 1/nu, with which crossings approach p_c."""
        return self.omega + self.y_t

    def at(self, L1: Floats, L2: Floats) -> Floats:
        """Return the fitted p* of sizes L1 and L2, float64 of their shape."""
        return self.threshold + _drift_columns(L1, L2, self.omega, self.y_t) @ self.amplitudes


def _drift_columns(L1: Floats, L2: Floats, omega: float, y_t: float) -> Floats:
    """Return h_omega and h_2omega of sizes (n,), float64 (n, 2)."""
    away = L2**y_t - L1**y_t
    return np.stack([(L1**-k - L2**-k) / away for k in (omega, 2 * omega)], axis=-1)


def find_crossing(small: SizeFit, large: SizeFit, *, rises: bool = True) -> CurveCrossing:
    """Return the crossing of two curves inside the p that both cover, `small.L` < `large.L`.

    There the curve of the larger size rises through the other one, or falls through it if ``rises``
    is False.  Of several crossings the one nearest to the middle is returned.
    """
    low, high = max(small.p_low, large.p_low), min(small.p_high, large.p_high)
    domain, window = large.probit.domain, large.probit.window
    difference = large.probit - small.probit.convert(domain=domain, window=window)
    roots = difference.roots()
    real = np.real(roots[np.abs(np.imag(roots)) < 1e-9 * (high - low + 1e-300)])
    inside = real[(real >= low) & (real <= high)]
    rising = inside[difference.deriv()(inside) * (1 if rises else -1) > 0]
    if not rising.size:
        return CurveCrossing(small.L, large.L, nan, nan)
    p = float(rising[np.argmin(np.abs(rising - 0.5 * (low + high)))])
    return CurveCrossing(small.L, large.L, p, float(large.probability(p)))


#: Crossings of neighbouring sizes, and the covariance of their p, float64 (n, n).
Crossed = tuple[tuple[CurveCrossing, ...], Floats]


def cross_sizes(fits: Sequence[SizeFit]) -> Crossed:
    """Return crossings of neighbouring sizes with first-order errors; fits: ascending in L."""
    pairs = list(pairwise(fits))
    crossings = [find_crossing(small, large) for small, large in pairs]
    covariance = np.zeros((len(crossings), len(crossings)))
    # How much steeper the probit of the larger size is at each crossing.
    steeper = [
        float(large.probit.deriv()(own.p) - small.probit.deriv()(own.p))
        for own, (small, large) in zip(crossings, pairs, strict=True)
    ]
    for i, (own, apart, (small, large)) in enumerate(zip(crossings, steeper, pairs, strict=True)):
        of_small, of_large = (fit.covariance_at(own.p, own.p) for fit in (small, large))
        covariance[i, i] = (of_small + of_large) / apart**2
        # Neighbouring crossings share a size, whose error moves them in opposite directions.
        if i + 1 < len(crossings):
            shared = large.covariance_at(own.p, crossings[i + 1].p)
            covariance[i, i + 1] = covariance[i + 1, i] = -shared / (apart * steeper[i + 1])
        if own.found:
            # R at the crossing changes with the probit of the larger size, directly and through p.
            part = float(large.probit.deriv()(own.p)) / apart
            error = np.sqrt((1 - part) ** 2 * of_large + part**2 * of_small)
            errors = float(np.sqrt(covariance[i, i])), float(large.density(own.p) * error)
            crossings[i] = replace(own, p_error=errors[0], probability_error=errors[1])
    return tuple(crossings), covariance


def cross_replicas(
    fits: Sequence[SizeFit], *, rises: bool = True, replicas: int = 200, seed: int = 0
) -> Crossed:
    """Return crossings of neighbouring sizes with errors that need not be small.

    fits: ascending in L.  Errors are root mean square distances from the crossings of curves that
    are drawn with the covariance of each fit.  Drawn curves that do not cross count as crossing at
    the end of the common range of p that is farther from the crossing.
    """
    rng, crossings, away = np.random.default_rng(seed), [], []
    drawn = []
    for fit in fits:
        noise = rng.standard_normal((replicas, len(fit.coefficients)))
        drawn.append(fit.coefficients + noise @ np.linalg.cholesky(np.array(fit.covariance)).T)
    for (small, below), (large, above) in pairwise(zip(fits, drawn, strict=True)):
        own = find_crossing(small, large, rises=rises)
        p = np.linspace(max(small.p_low, large.p_low), min(small.p_high, large.p_high), _STEPS)
        lines = small.evaluate(p, below), large.evaluate(p, above)
        far = -1 if own.p - p[0] < p[-1] - own.p else 0
        moved = np.array(_cross_lines(p, *lines, near=0.5 * (p[0] + p[-1]), rises=rises))
        ends = np.stack([np.full(replicas, p[far]), lines[1][:, far]], axis=1)
        moved = np.where(np.isfinite(moved), moved, ends) - (own.p, large.probit(own.p))
        error, of_probit = np.sqrt(np.mean(moved**2, axis=0)).tolist()
        away.append(moved[:, 0])
        if own.found:
            own = replace(own, p_error=error, probability_error=large.density(own.p) * of_probit)
        crossings.append(own)
    return tuple(crossings), np.atleast_2d(np.array(away) @ np.array(away).T / replicas)


def transition_width(fits: Sequence[SizeFit], p: float, y_t: float) -> float:
    """Return 1 / a_1: the width of the transition, at this p, in units of L^-y_t."""
    slopes = np.array([float(fit.probit.deriv()(p)) for fit in fits])
    widths = np.array([fit.L for fit in fits])[slopes > 0] ** y_t / slopes[slopes > 0]
    return geometric_mean(widths) if widths.size else nan


def extrapolate(
    crossings: Sequence[CurveCrossing],
    covariance: Floats,
    *,
    omega: float,
    y_t: float,
    width: float,
) -> Drift | None:
    """Extrapolate crossings with their covariance; width: 1 / a_1.  None with fewer than two."""
    kept = [index for index, crossing in enumerate(crossings) if crossing.found]
    own = covariance[np.ix_(kept, kept)]
    if len(kept) < 2 or not (np.isfinite(width) and np.isfinite(own).all()):
        return None
    p, L1, L2 = np.array([(x.p, x.L1, x.L2) for x in crossings if x.found]).T
    design = np.column_stack([np.ones_like(p), width * _drift_columns(L1, L2, omega, y_t)])
    try:
        best = average_over_sizes(L1, design, p, own, (np.inf, *PRIORS[:2]))
    except AnalysisError:
        return None
    b, B = (width * best.theta[1:]).tolist()
    return Drift(best.value(0), (b, B), omega, y_t)


def _robust_covariance(samples: Floats) -> Floats:
    """Return a covariance with the errors of `half_width`, in which outlying replicas are clipped.

    samples: float64 (replicas, n).  NaN where fewer than 10 n replicas have all n numbers.
    """
    samples = samples[np.isfinite(samples).all(axis=1)]
    count = samples.shape[1]
    if samples.shape[0] < 10 * count:
        return np.full((count, count), nan)
    middle = np.median(samples, axis=0)
    width = np.array([half_width(column) for column in samples.T])
    clipped = np.clip(samples, middle - 4.0 * width, middle + 4.0 * width)
    # Where all replicas agree, their correlation is NaN.
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.corrcoef(clipped, rowvar=False)
    return np.asarray(np.atleast_2d(correlation) * np.outer(width, width), np.float64)


@dataclass(frozen=True)
class RatioCrossing(CurveCrossing):
    """A crossing of Q_1 of two sizes; `probability` is the value of Q_1 there."""

    renamed: ClassVar = {"probability": "ratio"}


@dataclass(frozen=True)
class RatioCrossings(Record):
    """Crossings of Q_1, and their drift, if there are two."""

    crossings: tuple[RatioCrossing, ...]
    drift: Drift | None


def ratio_crossings(
    clusters: Sequence[ClusterCurve],
    *,
    near: float,
    omega: float,
    y_t: float,
    width: float,
    bootstrap: int = 200,
    seed: int = 0,
) -> RatioCrossings:
    """Cross Q_1 of each size with that of the next larger one.

    near: the expected p.  omega, y_t, width: of the drift (:func:`extrapolate`).  bootstrap:
    replicas, 0 for no errors and no drift.  Raises AnalysisError with fewer than two sizes.
    """
    sizes = sorted({curve.L for curve in clusters})
    if len(sizes) < 2:
        raise AnalysisError(
            "need cluster sizes of at least two L to find crossings of their ratios"
        )
    rng = np.random.default_rng(seed)
    weights = [
        with_data_first(draw_blocks(curve.samples.size, rng, bootstrap)) for curve in clusters
    ]
    own = {L: [(c, w) for c, w in zip(clusters, weights, strict=True) if c.L == L] for L in sizes}
    located, rows = [], []
    for L1, L2 in pairwise(sizes):
        (here, value), *again = _cross_ratios(own[L1], own[L2], near)
        located.append(RatioCrossing(L1, L2, here, value))
        rows.append(again)
    if not bootstrap:
        return RatioCrossings(tuple(located), None)
    replicas = np.array(rows)
    crossings = tuple(
        replace(each, p_error=half_width(drawn[:, 0]), probability_error=half_width(drawn[:, 1]))
        for each, drawn in zip(located, replicas, strict=True)
    )
    covariance = _robust_covariance(replicas[:, :, 0].T)
    drift = extrapolate(crossings, covariance, omega=omega, y_t=y_t, width=width)
    return RatioCrossings(crossings, drift)


#: Cluster curves of one size, each with the weights of its blocks: for the data, then replicas.
Weighted = Sequence[tuple[ClusterCurve, Floats]]


def _cross_ratios(small: Weighted, large: Weighted, near: float) -> list[tuple[float, float]]:
    """Return (p, Q_1) of the crossing nearest to `near` for every row of block weights, or NaN."""
    nodes = [curve.p[nearest_nodes(curve.p, near)] for curve, _ in (*small, *large)]
    low, high = max(p[0] for p in nodes), min(p[-1] for p in nodes)
    p = np.linspace(low, high, _STEPS) if high > low else np.array([near])
    return _cross_lines(p, _ratio(small, p, near), _ratio(large, p, near), near=near)


def _cross_lines(
    p: Floats, small: Floats, large: Floats, *, near: float, rises: bool = True
) -> list[tuple[float, float]]:
    """Return (p, value) of the crossing nearest to `near` for each pair of rows (r, m), or NaN."""
    crossings, sign = [], 1 if rises else -1
    for below, above in zip(small, large, strict=True):
        difference = sign * (above - below)
        passes = np.flatnonzero((difference[:-1] < 0) & (difference[1:] >= 0))
        if not passes.size:
            crossings.append((nan, nan))
            continue
        at = passes[np.argmin(np.abs(p[passes] - near))]
        part = difference[at] / (difference[at] - difference[at + 1])
        ends = slice(at, at + 2)
        here, value = (float(x[0] + part * (x[1] - x[0])) for x in (p[ends], above[ends]))
        crossings.append((here, value))
    return crossings


def _ratio(own: Weighted, p: Floats, near: float) -> Floats:
    """Return Q_1 of one size at p for every row of block weights, float64 (r, p); seeds add up."""
    first, second = np.zeros((2, len(own[0][1]), p.size))
    for curve, weights in own:
        nodes = nearest_nodes(curve.p, near)
        at_p = node_weights(curve.p[nodes], p).T
        s_1, _, _, squares = curve.moments(weights)
        samples = float(curve.samples.sum())
        first += samples * s_1[:, nodes] @ at_p
        second += samples * squares[:, nodes] @ at_p
    total = sum(float(curve.samples.sum()) for curve, _ in own)
    return Q_1.value({"largest": first / total, "largest*largest": second / total})
