"""Power laws with corrections to scaling: no model is chosen, and the error has two parts.

    y_L = A L^k exp(b L^-omega + B L^-2 omega)

Both corrections are fitted, under natural priors: with L in lattice constants b is 0 +- 3 and B
0 +- 9; they neither vanish nor are huge (constrained curve fitting: G. P. Lepage et al., Nucl.
Phys. B Proc. Suppl. 106, 12 (2002)).  The exponential differs from 1 + b L^-omega + ... by a term
that B absorbs, and makes ln y_L linear in all parameters, so that every fit is a solution of
linear equations.

Fits with different smallest sizes are averaged with weights exp(-(chi^2 + 2 k + 2 n) / 2), where n
is the number of data left out and k that of the parameters, the same in all fits (W. Jay and E.
Neil, Phys. Rev. D 103, 114502 (2021)).  chi^2 includes the priors.  To first order every parameter
is linear in the data, theta = G y, and so is the average:

    statistical^2 = g V g,  g = sum w_i G_i,     V the covariance of the data,
    error^2       = sum w_i (G_i V G_i + P_i + (theta_i - theta)^2),  P_i the part of the priors,

and the systematic error is the rest.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from percolab.analysis.averaging import fit_weights
from percolab.analysis.statistics import Floats, geometric_mean, jackknife_error, whitening
from percolab.analysis.value import ChiSquare, Value
from percolab.errors import AnalysisError

#: Widths of the priors about 0 of the amplitudes of the first, second and third correction.
PRIORS = (3.0, 9.0, 27.0)


@dataclass(frozen=True, eq=False)
class Member:
    """One of the averaged fits.

    theta: float64 (k,).  gain: float64 (k, n), G with theta = G y over all data, 0 for those left
    out.  prior: float64 (k,), the variance that the priors leave.  left_out: data left out.
    """

    theta: Floats
    gain: Floats
    prior: Floats
    chi_square: ChiSquare
    left_out: int


@dataclass(frozen=True, eq=False)
class Average:
    """The average over fits: theta, and its statistical and whole errors, float64 (k,) each."""

    theta: Floats
    statistical: Floats
    whole: Floats
    chi_square: ChiSquare
    members: int

    def value(self, index: int) -> Value:
        value, error, own = (float(x[index]) for x in (self.theta, self.whole, self.statistical))
        return Value(value, error, own, self.chi_square, self.members)


def fit_member(
    design: Floats,
    values: Floats,
    covariance: Floats,
    widths: ArrayLike,
    kept: NDArray[np.bool_] | None = None,
) -> Member:
    """Fit values = design @ theta by generalised least squares with priors.

    design: float64 (n, k).  values: float64 (n,).  covariance: float64 (n, n), or variances (n,).
    widths: of the priors about 0, float64 (k,); inf for none.  kept: bool (n,), the data to fit.
    AnalysisError where the data do not determine the fit.
    """
    kept = np.ones(values.size, bool) if kept is None else kept
    penalty = 1.0 / np.asarray(widths, float)
    left, count = design[kept], int(kept.sum())
    freedom, root = count - int(np.sum(penalty == 0)), None
    with suppress(np.linalg.LinAlgError):
        if covariance.ndim == 1:
            whiten = np.diag(covariance[kept] ** -0.5)
        else:
            whiten = whitening(covariance[np.ix_(kept, kept)])
        # Orthogonalising keeps the digits that products of nearly parallel columns would lose.
        _, triangle = np.linalg.qr(np.vstack([whiten @ left, np.diag(penalty)]))
        root = np.linalg.inv(triangle)
    if freedom < 0 or root is None:
        raise AnalysisError("the data and their errors do not determine the fit")
    spread = root @ root.T
    gain = np.zeros((left.shape[1], values.size))
    gain[:, kept] = spread @ (whiten @ left).T @ whiten
    theta = gain @ values
    away = np.concatenate([whiten @ (values[kept] - left @ theta), penalty * theta])
    return Member(
        theta=theta,
        gain=gain,
        prior=np.asarray(spread**2 @ penalty**2, np.float64),
        chi_square=ChiSquare.of(float(away @ away) if freedom else 0.0, freedom),
        left_out=values.size - count,
    )


def average(members: Sequence[Member], covariance: Floats) -> Average:
    """Average fits of one data set; its covariance, (n, n) or (n,), may differ from the weights."""
    criterion = np.array([own.chi_square.value + 2 * own.left_out for own in members])
    weights = fit_weights(criterion)
    theta = np.array([own.theta for own in members])
    gains, prior = np.array([own.gain for own in members]), np.array([own.prior for own in members])
    mean = weights @ theta
    matrix = np.diag(covariance) if covariance.ndim == 1 else covariance
    own = np.einsum("mkn,mkn->mk", gains @ matrix, gains)
    gain = np.einsum("m,mkn->kn", weights, gains)
    statistical = np.einsum("kn,kn->k", gain @ matrix, gain)
    return Average(
        theta=mean,
        statistical=np.sqrt(np.maximum(statistical, 0.0)),  # A sum of 0 may be rounded below it.
        whole=np.sqrt(weights @ (own + prior + (theta - mean) ** 2)),
        chi_square=members[int(np.argmin(criterion))].chi_square,
        members=len(members),
    )


def average_over_sizes(
    sizes: Sequence[int] | Floats,
    design: Floats,
    values: Floats,
    covariance: Floats,
    widths: Sequence[float],
) -> Average:
    """Fit values = design @ theta (:func:`fit_member`), averaged over smallest sizes.

    sizes: (n,), of each value.  Every fit contains three sizes, or all if there are fewer.
    """
    L = np.asarray(sizes, float)
    distinct = np.unique(L)
    starts: Iterable[float] = distinct[: max(1, distinct.size - 2)]
    members = [fit_member(design, values, covariance, widths, start <= L) for start in starts]
    return average(members, covariance)


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """A power law: its exponent k, omega, and the averages of ln A, k, b and B, float64 (4,).

    constant: what does not grow with L, 0 where it was not fitted.
    """

    exponent: Value
    omega: float
    theta: Floats
    constant: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return self.exponent.to_dict()

    def __call__(self, sizes: ArrayLike) -> Floats:
        """Return the fitted y at sizes L, float64 of the same shape."""
        L = np.asarray(sizes, float)
        terms = (np.ones_like(L), np.log(L), L**-self.omega, L ** (-2 * self.omega))
        power = np.asarray(np.exp(np.tensordot(self.theta, terms, axes=1)), np.float64)
        if not self.constant:
            return power
        from scipy.special import lambertw

        # The fit is ln y = ln power + constant / y.
        ratio = np.maximum(self.constant / power, -np.exp(-1.0))
        return np.asarray(self.constant / lambertw(ratio).real, np.float64)


def fit_power_law(
    sizes: Sequence[int] | Floats,
    values: ArrayLike,
    covariance: Floats,
    *,
    omega: float = 1.0,
    of_squares: bool = False,
    of_times: bool = False,
) -> PowerLaw:
    """Fit a power law with its corrections.

    sizes: (n,).  values: float64 (n,), y_L > 0.  covariance: float64 (n, n) or variances (n,), of
    ln y_L.  omega: of the leading correction.  of_squares: y is a mean of squared sizes per site,
    such as chi: the corrections of its logarithm and their priors are twice those of sizes, and
    small clusters add a constant 0 +- 3.  of_times: y is an autocorrelation time in sweeps, to
    which the same constant is added.  Raises AnalysisError with fewer than two sizes, values that
    are not positive, or a singular covariance.

    >>> law = fit_power_law([16, 32, 64], [3.0, 6.0, 12.0], np.full(3, 1e-4))
    >>> round(law.exponent.value, 9)
    1.0
    """
    L, y = np.array(sizes, float), np.asarray(values, np.float64)
    if np.unique(L).size < 2:
        raise AnalysisError(f"{np.unique(L).size} size is too few for a power law in L")
    variances = covariance if covariance.ndim == 1 else np.diag(covariance)
    if not (np.all(y > 0) and np.all(variances > 0)):
        raise AnalysisError("a power law needs positive values and errors")
    # About the middle size ln A and k are nearly independent.
    middle = np.log(geometric_mean(L))
    design = np.stack([np.ones_like(L), np.log(L) - middle, L**-omega, L ** (-2 * omega)], axis=1)
    widths = [np.inf, np.inf, *(width * (2 if of_squares else 1) for width in PRIORS[:2])]
    has_constant = of_squares or of_times
    if has_constant:
        design, widths = np.column_stack([design, 1 / y]), [*widths, PRIORS[0]]
    best = average_over_sizes(L, design, np.log(y), covariance, widths)
    theta = best.theta.copy()
    theta[0] -= theta[1] * middle
    return PowerLaw(best.value(1), omega, theta[:4], float(theta[4]) if has_constant else 0.0)


@dataclass(frozen=True, eq=False)
class LocalSlopes:
    """d ln y / d ln x between points, its error or NaN, and the mean x: float64 (m,) each."""

    x: Floats
    slope: Floats
    error: Floats


def local_slopes(x: Floats, y: Floats, without: Floats) -> LocalSlopes:
    """Return the slopes between points whose x differ by a factor of 2 or a little more.

    x: (n,), ascending and positive.  y: (n,); points that are not positive are left out.
    without: (blocks, n), y without one block each, for the jackknife; (0, n) for no errors.
    """
    kept = np.flatnonzero((y > 0) & (without > 0).all(axis=0))
    x, logarithms = x[kept], np.log(x[kept])
    ends = np.searchsorted(x, 2 * x * (1 - 1e-9))
    first = np.flatnonzero(ends < x.size)
    last = ends[first]
    steps = logarithms[last] - logarithms[first]

    def slopes(values: Floats) -> Floats:
        log_values = np.log(values[..., kept])
        return np.asarray((log_values[..., last] - log_values[..., first]) / steps)

    errors = jackknife_error(slopes(without))
    return LocalSlopes(np.sqrt(x[last] * x[first]), slopes(y), errors)
