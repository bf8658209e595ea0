"""Where the curves of neighbouring sizes cross, and where the crossings drift to.

A crossing p*(L1, L2) needs no model of how R_L scales. Its distance from p_c falls as
L^-(omega + y_t), so the drift, extrapolated to L = infinity, is a second estimate of p_c.
Source: K. Binder, Z. Phys. B 43, 119 (1981).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from percolab.analysis.likelihood import ChiSquare
from percolab.analysis.record import plain
from percolab.analysis.size_fit import SizeFit

Floats = NDArray[np.float64]
NAN = float("nan")

#: Central fraction that a one-sigma error bar covers.
ONE_SIGMA = 0.682689492137086


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
    p_error: float = NAN
    probability_error: float = NAN

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


def find_crossing(small: SizeFit, large: SizeFit, *, near: float | None = None) -> Crossing:
    """Intersect two curves, `small.L` < `large.L`.

    The crossing lies inside the p that both fits cover, the curve of the larger size rising
    through the other; of several, the one nearest the middle. With `near` given (the crossing of
    the data, for a bootstrap replica) it is the one nearest that point and may leave the common
    range by its width, so that the scatter is not cut off at the edge.
    """
    low, high = max(small.p_low, large.p_low), min(small.p_high, large.p_high)
    target = 0.5 * (low + high) if near is None else near
    margin = 0.0 if near is None else high - low
    difference = large.probit - small.probit.convert(
        domain=large.probit.domain, window=large.probit.window
    )
    roots = difference.roots()
    real = np.real(roots[np.abs(np.imag(roots)) < 1e-9 * (high - low + 1e-300)])
    inside = real[(real >= low - margin) & (real <= high + margin)]
    rising = inside[difference.deriv()(inside) > 0]
    if rising.size == 0:
        return Crossing(small.L, large.L, NAN, NAN)
    p = float(rising[np.argmin(np.abs(rising - target))])
    return Crossing(small.L, large.L, p, float(large.probability(p)))


def find_crossings(fits: Sequence[SizeFit]) -> tuple[Crossing, ...]:
    """Cross each size with the next larger one; `fits` ascend in L."""
    return tuple(find_crossing(a, b) for a, b in pairwise(fits))


def replica_crossings(crossings: Sequence[Crossing], fits: Sequence[SizeFit]) -> Floats:
    """(p*, R) of every crossing in one bootstrap replica, float64 (crossings, 2), NaN if absent."""
    pairs = zip(crossings, pairwise(fits), strict=True)
    found = [find_crossing(*pair, near=c.p) if c.found else c for c, pair in pairs]
    return np.array([(c.p, c.probability) for c in found]).reshape(len(found), 2)


def with_errors(crossings: Sequence[Crossing], replicas: Floats) -> tuple[Crossing, ...]:
    """Give each crossing its bootstrap errors; `replicas` is (replicas, crossings, 2)."""
    errors = [[half_width(values) for values in column.T] for column in replicas.swapaxes(0, 1)]
    return tuple(
        replace(crossing, p_error=p_error, probability_error=r_error)
        for crossing, (p_error, r_error) in zip(crossings, errors, strict=True)
    )


def extrapolate(
    crossings: Sequence[Crossing], replicas: Floats, *, exponent: float
) -> Drift | None:
    """Extrapolate the found crossings to infinite size by generalised least squares.

    `replicas` is float64 (replicas, crossings): p* in the bootstrap, whose covariance is used,
    because neighbouring crossings share a size. Returns None with fewer than two crossings, or
    when the bootstrap gives no covariance.
    """
    kept = [index for index, crossing in enumerate(crossings) if crossing.found]
    samples = replicas[:, kept]
    samples = samples[np.isfinite(samples).all(axis=1)]
    if len(kept) < 2 or samples.shape[0] < 10 * len(kept):
        return None
    p = np.array([crossings[index].p for index in kept])
    size = np.array([crossings[index].mean_size for index in kept])
    design = np.stack([np.ones_like(size), (size / size[0]) ** -exponent], axis=1)
    whiten = np.linalg.inv(np.linalg.cholesky(_robust_covariance(samples)))
    left, right = whiten @ design, whiten @ p
    covariance = np.linalg.inv(left.T @ left)
    theta = covariance @ left.T @ right
    error = np.sqrt(np.diag(covariance))
    unit = size[0] ** exponent
    dof = len(kept) - 2
    chi2 = float(np.sum((right - left @ theta) ** 2)) if dof else 0.0
    return Drift(
        threshold=float(theta[0]),
        threshold_error=float(error[0]),
        amplitude=float(theta[1] * unit),
        amplitude_error=float(error[1] * unit),
        exponent=exponent,
        chi_square=ChiSquare(chi2, dof, float(chdtrc(dof, chi2)) if dof else NAN),
    )


def half_width(values: Floats) -> float:
    """Half the width of the central 68.3 % of bootstrap `values`; NaN when most are absent.

    A crossing of nearly parallel curves has replicas far out, which would rule a standard
    deviation but are not what a one-sigma bar is asked for.
    """
    finite = values[np.isfinite(values)]
    if finite.size < max(2, values.size // 2):
        return NAN
    low, high = np.quantile(finite, [0.5 - 0.5 * ONE_SIGMA, 0.5 + 0.5 * ONE_SIGMA])
    return float(0.5 * (high - low))


def _robust_covariance(samples: Floats) -> Floats:
    """Covariance whose diagonal agrees with `half_width`, far-out replicas pulled in."""
    middle = np.median(samples, axis=0)
    width = np.array([half_width(column) for column in samples.T])
    clipped = np.clip(samples, middle - 4.0 * width, middle + 4.0 * width)
    return np.corrcoef(clipped, rowvar=False) * np.outer(width, width)
