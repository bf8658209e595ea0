"""Data collapse: y = A L^-kappa against x = (p - p_c) L^(1/nu), and how well all sizes agree.

The quality is that of J. Houdayer and A. K. Hartmann, Phys. Rev. B 70, 014418 (2004): every point
is compared with a master curve that the other sizes make at its x,

    S = mean of (y - Y)^2 / (dy^2 + dY^2),

which is about 1 where the sizes agree within their errors. Two things differ from that paper. The
master curve is a polynomial of degree five, fitted to the twelve nearest points of all other sizes
with weights that fall with the distance (W. S. Cleveland, J. Am. Stat. Assoc. 74, 829 (1979)), and
not a line through two points of each size: stored grids are coarse, and there may be only one other
size. And dY takes into account that the points of one size share their samples.

S is minimised over those of p_c, 1/nu and kappa that are not given. Their errors have two parts.
The first comes from a bootstrap over blocks; the rule of that paper, S + 1, does not allow for
correlated points. A collapse has no corrections to scaling: they raise S and shift the fitted
numbers. So with three or more sizes the second part is the change of these numbers when all sizes
below L are left out, times L / (L - L_min), L_min being the smallest size: the whole shift, if it
falls as 1/L. It is the largest over all L that leave two sizes, each with six points of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.json_values import Record
from percolab.analysis.statistics import (
    Floats,
    draw_blocks,
    half_width,
    mean_of_blocks,
    weighted_deviations,
)
from percolab.errors import AnalysisError

#: A collapse with a larger S is reported as poor.
POOR_COLLAPSE = 2.0

# The least fraction of points that overlap.
_LEAST_OVERLAP = 0.5
#: The master curve at a point is fitted to at most this number of points of other sizes.
NEAREST = 12
# Distance at which their weight would be 0, over that of
# the farthest one; number of coefficients of the polynomial.
_WIDTH, _COEFFICIENTS = 1.1, 6

#: Quantities of cluster curves that can be collapsed, with their symbols.
CLUSTER_QUANTITIES = {
    "largest": "P_inf = <s_1>/N",
    "second_largest": "<s_2>/N",
    "chi": "chi = (<sum s^2> - <s_1^2>)/N",
}


#: Range of R_L that is collapsed.
WINDOW = (0.02, 0.98)


@dataclass(frozen=True, eq=False)
class Measured:
    """One quantity of one task along p.

    p, values: float64 (m,). covariance: float64 (m, m), of the values. block_means: float64
    (n_blocks, m), blocks of equal size, whose mean is `values`.
    """

    L: int
    p: Floats
    values: Floats
    covariance: Floats
    block_means: Floats
    samples: NDArray[np.int64]

    @classmethod
    def of_spanning(cls, curve: SpanningCurve) -> Measured | None:
        """Return R_L inside WINDOW with its exact covariance; None if no point is inside."""
        R = curve.probability
        inside = (WINDOW[0] <= R) & (WINDOW[1] >= R)
        if not inside.any():
            return None
        cut, R = curve.at(inside), R[inside]
        # Samples that span at p_i span at p_j > p_i.
        covariance = np.minimum.outer(R, R) * (1 - np.maximum.outer(R, R)) / cut.total_samples
        means = cut.spanning / cut.samples[:, None]
        return cls(cut.L, cut.p, R, covariance, means, cut.samples)

    @classmethod
    def of_clusters(cls, curve: ClusterCurve, name: str) -> Measured:
        """Return one of CLUSTER_QUANTITIES; AnalysisError with fewer than two blocks."""
        blocks = curve.samples.size
        if blocks < 2:
            raise AnalysisError(f"L = {curve.L} has one block, which gives no error: add samples")
        chi = curve.sum_squares - curve.largest_squares
        sums = chi if name == "chi" else getattr(curve, name)
        means, samples = sums / curve.samples[:, None] / curve.num_sites, curve.samples
        away = weighted_deviations(means, samples)
        return cls(curve.L, curve.p, mean_of_blocks(means, samples), away.T @ away, means, samples)

    def resampled(self, rng: np.random.Generator, replicas: int) -> Floats:
        """Draw bootstrap replicas of the values over blocks, float64 (replicas, m)."""
        drawn = draw_blocks(self.samples.size, rng, replicas) * self.samples
        return np.asarray(drawn @ self.block_means / drawn.sum(axis=1)[:, None], np.float64)

    def where(self, keep: NDArray[np.bool_]) -> Measured:
        return replace(
            self,
            p=self.p[keep],
            values=self.values[keep],
            covariance=self.covariance[np.ix_(keep, keep)],
            block_means=self.block_means[:, keep],
        )


@dataclass(frozen=True, eq=False)
class Collapse(Record):
    """Collapsed points and the exponents that make them collapse; P points in all.

    L: int64 (P,). p, value, value_error: float64 (P,), before the collapse. x, y, dy: float64 (P,),
    after it: x = (p - threshold) L^y_t, y = value L^-exponent. quality: S; points: number of points
    in S. threshold, y_t, exponent: p_c, 1/nu and kappa, with whole errors, 0 for given values and
    NaN without a bootstrap; statistical_errors: of the three, the part that the bootstrap gives.
    """

    observable: str
    L: NDArray[np.int64]
    p: Floats
    value: Floats
    value_error: Floats
    x: Floats
    y: Floats
    dy: Floats
    quality: float
    points: int
    threshold: float
    y_t: float
    exponent: float
    threshold_error: float = nan
    y_t_error: float = nan
    exponent_error: float = nan
    statistical_errors: tuple[float, ...] = (nan, nan, nan)

    @property
    def others(self) -> int:
        """The smallest number of points of other sizes that a master curve is made of."""
        return _count_others(self.L)


def _count_others(L: NDArray[Any]) -> int:
    return L.size - int(np.unique(L, return_counts=True)[1].max())


def collapse_curves(
    measured: Sequence[Measured],
    *,
    observable: str,
    start: tuple[float, float, float],
    fixed: tuple[bool, bool, bool],
    reach: float | None = None,
    bootstrap: int = 50,
    threshold_error: float = 0.0,
) -> Collapse:
    """Collapse the curves of at least two sizes.

    start: p_c, 1/nu and kappa at which the search begins; fixed: which of them are given. reach:
    largest |x|, by these values, that is used. bootstrap: replicas, 0 for no errors.
    threshold_error: of a given p_c, for the errors of the others; NaN gives no errors. Raises
    AnalysisError when fewer than two sizes have points, or the curves overlap too little.
    """
    if reach is not None:
        near = [np.abs(curve.p - start[0]) * curve.L ** start[1] <= reach for curve in measured]
        measured = [curve.where(keep) for curve, keep in zip(measured, near)]
    measured = [curve for curve in measured if curve.p.size > 1]
    if len({curve.L for curve in measured}) < 2:
        raise AnalysisError(
            f"need at least two sizes with two p each to collapse {observable}, "
            f"got {', '.join(f'L = {curve.L}' for curve in measured) or 'none'}"
        )
    master = _Master.of(measured)
    values = np.concatenate([curve.values for curve in measured])
    free = ~np.array(fixed)
    # Steps that change S: a tenth of the smallest width in p, 5 % of 1/nu, 0.05 of kappa.
    largest = max(curve.L for curve in measured)
    steps = np.array([0.1 * largest ** -start[1], 0.05 * start[1], 0.05])
    best = _minimised(master, values, np.array(start), free, steps)
    quality, points = master.quality(values, best)
    if not np.isfinite(quality):
        raise AnalysisError(f"the curves of {observable} overlap too little to be collapsed")
    errors = statistical = np.where(free, nan, [threshold_error, 0.0, 0.0])
    if bootstrap and not isnan(threshold_error):
        # S has small local minima where points leave the overlap.  A search that starts at that of
        # the data, or takes smaller steps, may stay in it, and errors would be too small, or 0.
        begin = best - 0.5 * steps * free
        rng = np.random.default_rng(0)
        drawn = np.hstack([curve.resampled(rng, bootstrap) for curve in measured])
        begins = np.tile(begin, (bootstrap, 1))
        begins[:, 0] += 0.0 if free[0] else threshold_error * rng.standard_normal(bootstrap)
        # The minimum of a replica is near that of the data; a tenth of the scatter is enough.
        pairs = zip(drawn, begins, strict=True)
        found = np.array([_minimised(master, *pair, free, steps, 0.02) for pair in pairs])
        scatter = np.array([half_width(column) for column in found.T])
        statistical = np.where(free, scatter, errors)
        errors = np.hypot(statistical, free * _shift(measured, best, begin, free, steps))
    (p_c, y_t, kappa), error = best.tolist(), np.sqrt(master.variance)
    scale = master.L**-kappa
    return Collapse(
        observable=observable,
        L=master.L.astype(np.int64),
        p=master.p,
        value=values,
        value_error=error,
        x=(master.p - p_c) * master.L**y_t,
        y=values * scale,
        dy=error * scale,
        quality=quality,
        points=points,
        threshold=p_c,
        y_t=y_t,
        exponent=kappa,
        threshold_error=float(errors[0]),
        y_t_error=float(errors[1]),
        exponent_error=float(errors[2]),
        statistical_errors=tuple(statistical.tolist()),
    )


def _shift(
    measured: Sequence[Measured],
    best: Floats,
    begin: Floats,
    free: NDArray[np.bool_],
    steps: Floats,
) -> Floats:
    """Return how far corrections may shift p_c, 1/nu and kappa, float64 (3,); 0 with two sizes."""
    smallest, *cuts = sorted({curve.L for curve in measured})
    shift = np.zeros(3)
    for cut in cuts[:-1]:
        master = _Master.of([curve for curve in measured if cut <= curve.L])
        if _count_others(master.L) < _COEFFICIENTS:
            break
        values = np.concatenate([curve.values for curve in measured if cut <= curve.L])
        without = _minimised(master, values, begin, free, steps)
        shift = np.maximum(shift, cut / (cut - smallest) * np.abs(without - best))
    return shift


def _minimised(
    master: _Master,
    values: Floats,
    start: Floats,
    free: NDArray[np.bool_],
    steps: Floats,
    tolerance: float = 1e-3,
) -> Floats:
    """Return the (p_c, 1/nu, kappa) that minimise S, by the simplex method; tolerance: in steps."""
    from scipy.optimize import minimize

    def move(by: Floats) -> Floats:
        theta = start.copy()
        theta[free] += by * steps[free]
        return theta

    count = int(free.sum())
    if not count:
        return start
    simplex = np.vstack([np.zeros(count), np.eye(count)])
    options = {"xatol": tolerance, "fatol": 0.1 * tolerance, "maxfev": 400}
    with np.errstate(invalid="ignore"):  # S is infinite where curves do not overlap.
        best = minimize(
            lambda by: master.quality(values, move(by))[0],
            simplex[0],
            method="Nelder-Mead",
            options={"initial_simplex": simplex, **options},
        )
    return move(best.x)


@dataclass(frozen=True, eq=False)
class _Master:
    """The points of all sizes, concatenated, and the master curve at each from the other sizes.

    L, p, variance: float64 (P,). covariance: float64 (P, P), 0 between tasks. tasks: their slices.
    """

    L: Floats
    p: Floats
    variance: Floats
    covariance: Floats
    tasks: tuple[slice, ...]

    @classmethod
    def of(cls, measured: Sequence[Measured]) -> _Master:
        from scipy.linalg import block_diag

        counts = [curve.p.size for curve in measured]
        ends = np.cumsum(counts)
        tasks = tuple(slice(int(end) - n, int(end)) for end, n in zip(ends, counts))
        covariance = block_diag(*(curve.covariance for curve in measured))
        variance = np.diag(covariance).copy()
        if not variance.min() > 0:
            raise AnalysisError("a point has no error: leave out the p where all samples agree")
        return cls(
            L=np.repeat([float(curve.L) for curve in measured], counts),
            p=np.concatenate([curve.p for curve in measured]),
            variance=variance,
            covariance=covariance,
            tasks=tasks,
        )

    def quality(self, values: Floats, theta: Floats) -> tuple[float, int]:
        """Return S and the number of points in it; S is infinite where too few overlap."""
        p_c, y_t, kappa = theta
        x = (self.p - p_c) * self.L**y_t
        scale = self.L**-kappa
        weights, counted = self._weights(x, scale**2 * self.variance)
        if counted.mean() < _LEAST_OVERLAP:
            return np.inf, 0
        y = values * scale
        covariance = self.covariance * np.outer(scale, scale)
        spread = np.diag(covariance) + np.sum((weights @ covariance) * weights, axis=1)
        deviation = (y - weights @ y) ** 2 / spread
        return float(deviation[counted].mean()), int(counted.sum())

    def _weights(self, x: Floats, variance: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return W (P, P), W y being the master curve, and a mask (P,): points that have one."""
        others = self.L[:, None] != self.L
        counted = (np.where(others, x, np.inf).min(axis=1) <= x) & (
            np.where(others, x, -np.inf).max(axis=1) >= x
        )
        distance = np.where(others, np.abs(x - x[:, None]), np.inf)
        nearest = min(NEAREST, int(others.sum(axis=1).min()))
        columns = np.argpartition(distance, nearest - 1, axis=1)[:, :nearest]
        width = _WIDTH * np.take_along_axis(distance, columns, axis=1).max(axis=1, keepdims=True)
        step = (x[columns] - x[:, None]) / np.where(width > 0, width, 1.0)
        used = (1 - np.abs(step) ** 3) ** 3 / variance[columns]
        # Most of the time of a search goes into these products; powers would be much slower.
        powers = [np.ones_like(step)]
        for _ in range(min(nearest, _COEFFICIENTS) - 1):
            powers.append(powers[-1] * step)
        design = np.stack(powers, axis=2)
        normal = (design * used[:, :, None]).transpose(0, 2, 1) @ design
        # The master curve at a point is the constant term of the polynomial about its x.
        first = np.eye(len(powers))[:, :1]
        constant = np.linalg.pinv(normal, hermitian=True) @ first
        weights = np.zeros((x.size, x.size))
        weights[np.arange(x.size)[:, None], columns] = used * (design @ constant)[:, :, 0]
        return weights, counted
