"""Where the curves of neighbouring sizes cross, and where the crossings drift to.

A crossing p*(L1, L2) needs no model of how R_L scales. Its distance from p_c falls as
L^-(omega + y_t), so the drift, extrapolated to L = infinity, is a second estimate of p_c.
Source: K. Binder, Z. Phys. B 43, 119 (1981).

The moment ratio Q_1 = <s_1>^2 / <s_1^2> (:mod:`percolab.analysis.quantities`) is dimensionless as
R_L is: at p_c it approaches a constant, which depends on shape and boundary alone, and the larger
size rises more steeply through it. So its crossings tell p_c as well, and need no open axis. For
percolation: J. Wang et al., Phys. Rev. E 87, 052107 (2013). Each moment is the polynomial through
the grid points nearest to where the crossing is looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import nan

import numpy as np

from percolab.analysis.curves import ClusterCurve, nearest_nodes, node_weights
from percolab.analysis.fit_quality import ChiSquare
from percolab.analysis.json_values import plain
from percolab.analysis.quantities import Q_1
from percolab.analysis.size_fit import SizeFit
from percolab.analysis.statistics import (
    Floats,
    draw_blocks,
    half_width,
    least_squares,
    with_data_first,
)
from percolab.errors import AnalysisError

# Between so many p the crossing of two ratios is interpolated linearly.
_STEPS = 400


@dataclass(frozen=True)
class Crossing:
    """Crossing of the curves of sizes L1 < L2: p*, R at p*, and one-sigma errors.

    All numbers are NaN when the fitted curves do not cross inside the p that both sizes cover;
    errors are NaN when no bootstrap was made.
    """

    L1: int
    L2: int
    p: float
    probability: float
    p_error: float = nan
    probability_error: float = nan

    @property
    def found(self) -> bool:
        """Whether the two curves cross."""
        return bool(np.isfinite(self.p))

    @property
    def mean_size(self) -> float:
        """Geometric mean of the two sizes."""
        return float(np.sqrt(self.L1 * self.L2))

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values; an absent crossing has p = None."""
        return {**plain(self), "mean_size": self.mean_size, "found": self.found}


@dataclass(frozen=True)
class Drift:
    """p* = threshold + amplitude * Lbar^-exponent through the crossings, with chi^2."""

    threshold: float
    threshold_error: float
    amplitude: float
    amplitude_error: float
    exponent: float
    chi_square: ChiSquare

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        return plain(self)


def find_crossing(small: SizeFit, large: SizeFit) -> Crossing:
    """Intersect two curves, `small.L` < `large.L`.

    The crossing lies inside the p that both fits cover, the curve of the larger size rising
    through the other; of several, the one nearest the middle.
    """
    low, high = max(small.p_low, large.p_low), min(small.p_high, large.p_high)
    target = 0.5 * (low + high)
    difference = large.probit - small.probit.convert(
        domain=large.probit.domain, window=large.probit.window
    )
    roots = difference.roots()
    real = np.real(roots[np.abs(np.imag(roots)) < 1e-9 * (high - low + 1e-300)])
    inside = real[(real >= low) & (real <= high)]
    rising = inside[difference.deriv()(inside) > 0]
    if rising.size == 0:
        return Crossing(small.L, large.L, nan, nan)
    p = float(rising[np.argmin(np.abs(rising - target))])
    return Crossing(small.L, large.L, p, float(large.probability(p)))


def cross_sizes(fits: Sequence[SizeFit]) -> tuple[tuple[Crossing, ...], Floats]:
    """Cross each size with the next larger one, `fits` ascending in L.

    Returns the crossings and the covariance of their p, float64 (n, n), NaN where absent.
    Neighbouring crossings share a size, whose error moves them in opposite directions.
    """
    found = tuple(find_crossing(a, b) for a, b in pairwise(fits))
    covariance = np.zeros((len(found), len(found)))
    for i, (crossing, (small, large)) in enumerate(zip(found, pairwise(fits), strict=True)):
        p, apart = crossing.p, _slope_difference(crossing, small, large)
        covariance[i, i] = (small.covariance_at(p, p) + large.covariance_at(p, p)) / apart**2
        if i + 1 < len(found):
            shared = large.covariance_at(p, found[i + 1].p)
            other = _slope_difference(found[i + 1], large, fits[i + 2])
            covariance[i, i + 1] = covariance[i + 1, i] = -shared / (apart * other)
    crossings = tuple(
        _with_errors(crossing, *pair, variance)
        for crossing, pair, variance in zip(found, pairwise(fits), np.diag(covariance), strict=True)
    )
    return crossings, covariance


def _slope_difference(crossing: Crossing, small: SizeFit, large: SizeFit) -> float:
    """Return how much steeper the probit of the larger size is at a crossing."""
    return float(large.probit.deriv()(crossing.p) - small.probit.deriv()(crossing.p))


def _with_errors(
    crossing: Crossing, small: SizeFit, large: SizeFit, variance: float
) -> Crossing:
    """Return a crossing with the errors of its p, whose variance is given, and of R there."""
    if not crossing.found:
        return crossing
    p, apart = crossing.p, _slope_difference(crossing, small, large)
    # R moves as the probit of the larger size does, and along it with p.
    steep = float(large.probit.deriv()(p))
    own = (1 - steep / apart) ** 2 * large.covariance_at(p, p)
    probit_variance = own + (steep / apart) ** 2 * small.covariance_at(p, p)
    density = np.exp(-0.5 * large.probit(p) ** 2) / np.sqrt(2 * np.pi)
    return replace(
        crossing,
        p_error=float(np.sqrt(variance)),
        probability_error=float(density * np.sqrt(probit_variance)),
    )


def extrapolate(
    crossings: Sequence[Crossing], covariance: Floats, *, exponent: float
) -> Drift | None:
    """Extrapolate the found crossings to infinite size by generalised least squares.

    covariance: float64 (n, n), of their p.  Returns None with fewer than two crossings.
    """
    kept = [index for index, crossing in enumerate(crossings) if crossing.found]
    if len(kept) < 2:
        return None
    p = np.array([crossings[index].p for index in kept])
    size = np.array([crossings[index].mean_size for index in kept])
    design = np.stack([np.ones_like(size), (size / size[0]) ** -exponent], axis=1)
    try:
        theta, errors, quality = least_squares(design, p, covariance[np.ix_(kept, kept)])
    except AnalysisError:
        return None
    error = np.sqrt(np.diag(errors))
    unit = size[0] ** exponent
    return Drift(
        threshold=float(theta[0]),
        threshold_error=float(error[0]),
        amplitude=float(theta[1] * unit),
        amplitude_error=float(error[1] * unit),
        exponent=exponent,
        chi_square=quality,
    )


def _robust_covariance(samples: Floats) -> Floats:
    """Covariance whose diagonal agrees with `half_width`, far-out replicas pulled in."""
    middle = np.median(samples, axis=0)
    width = np.array([half_width(column) for column in samples.T])
    clipped = np.clip(samples, middle - 4.0 * width, middle + 4.0 * width)
    # Replicas that all agree have no correlation: it is NaN.
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.corrcoef(clipped, rowvar=False)
    return np.asarray(correlation * np.outer(width, width), np.float64)


@dataclass(frozen=True)
class RatioCrossings:
    """Crossings of Q_1, whose value is `Crossing.probability`; their drift, if there are two."""

    crossings: tuple[Crossing, ...]
    drift: Drift | None

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        found = [crossing.to_dict() for crossing in self.crossings]
        return {
            "crossings": [item | {"ratio": item.pop("probability")} for item in found],
            "drift": plain(self.drift),
        }


def ratio_crossings(
    clusters: Sequence[ClusterCurve],
    *,
    near: float,
    exponent: float,
    bootstrap: int = 200,
    seed: int = 0,
) -> RatioCrossings:
    """Cross each size with the next larger one.

    near: the p about which crossings are looked for. exponent: of the drift, omega + 1/nu.
    bootstrap: replicas, 0 for no errors and no drift. Raises AnalysisError with fewer than two
    sizes.
    """
    sizes = sorted({curve.L for curve in clusters})
    if len(sizes) < 2:
        raise AnalysisError("need at least two sizes with cluster sizes to cross their ratios")
    rng = np.random.default_rng(seed)
    weights = [
        with_data_first(draw_blocks(curve.samples.size, rng, bootstrap)) for curve in clusters
    ]
    own = {L: [(c, w) for c, w in zip(clusters, weights, strict=True) if c.L == L] for L in sizes}
    found, rows = [], []
    for L1, L2 in pairwise(sizes):
        (here, value), *again = _cross_ratios(own[L1], own[L2], near)
        found.append(Crossing(L1, L2, here, value))
        rows.append(again)
    if not bootstrap:
        return RatioCrossings(tuple(found), None)
    replicas = np.array(rows).swapaxes(0, 1)
    crossings = with_errors(found, replicas)
    return RatioCrossings(crossings, extrapolate(crossings, replicas[:, :, 0], exponent=exponent))


#: Cluster curves of one size, each with how often its blocks count: the data, then the replicas.
Weighted = Sequence[tuple[ClusterCurve, Floats]]


def _cross_ratios(small: Weighted, large: Weighted, near: float) -> list[tuple[float, float]]:
    """Return (p, Q_1) of the crossing of two sizes for every row of block weights."""
    nodes = [curve.p[nearest_nodes(curve.p, near)] for curve, _ in (*small, *large)]
    low, high = max(p[0] for p in nodes), min(p[-1] for p in nodes)
    p = np.linspace(low, high, _STEPS) if high > low else np.array([near])
    ratios = zip(_ratio(small, p, near), _ratio(large, p, near), strict=True)
    return [_cross(p, below, above, near) for below, above in ratios]


def _ratio(own: Weighted, p: Floats, near: float) -> Floats:
    """Return Q_1 at p of one size for every row of block weights, float64 (r, p); seeds add."""
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


def _cross(p: Floats, small: Floats, large: Floats, near: float) -> tuple[float, float]:
    """Return (p, Q_1) where the larger size rises through the smaller, nearest to near; or NaN."""
    difference = large - small
    rises = np.flatnonzero((difference[:-1] < 0) & (difference[1:] >= 0))
    if not rises.size:
        return nan, nan
    at = rises[np.argmin(np.abs(p[rises] - near))]
    part = difference[at] / (difference[at] - difference[at + 1])
    return (
        float(p[at] + part * (p[at + 1] - p[at])),
        float(large[at] + part * (large[at + 1] - large[at])),
    )
