"""The finite-size scaling of a dimensionless quantity, with every known correction.

    f(p, L) = a_0 + a_1 X + ... + a_d X^d + (b + c X) L^-omega + (B + C X) L^-2omega,
    X = (t + n t^2 + m t^3) L^y,    t = p - p_c,    y = 1/nu

f is probit R_L(p) of a spanning or wrapping probability, or a quantity itself.  b and c are the
leading correction to scaling and its effect on the slope, B and C those of next order.  n and m are
the nonlinear scaling field: over a whole transition p - p_c enters with its square and cube (A.
Aharony and M. E. Fisher, Phys. Rev. B 27, 4394 (1983); K. Slevin and T. Ohtsuki, Phys. Rev. Lett.
82, 382 (1999)).

No term is left out.  All are fitted under natural Gaussian priors (constrained curve fitting: G. P.
Lepage et al., Nucl. Phys. B Proc. Suppl. 106, 12 (2002)): with L in lattice constants the
corrections are of order one, neither absent nor huge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from percolab.analysis.curves import SpanningCurve, linear_sizes, probit_points, select_curves
from percolab.analysis.likelihood import Prior, ThresholdCells
from percolab.analysis.statistics import Floats, geometric_mean
from percolab.analysis.theory.known_exponents import Known
from percolab.errors import AnalysisError

#: Powers (of X, of L^-omega) of the corrections b, c, B and C, and the widths of their priors.
CORRECTIONS = ((0, 1), (1, 1), (0, 2), (1, 2))
CORRECTION_WIDTHS = (3.0, 3.0, 9.0, 9.0)
#: Widths of the priors of a_2 ... a_d in units of a_1, and of n, and of the root of m, in units of
#: 1 / (p_c (1 - p_c)), the natural scale of a probability.  They matter where there are few p.
COEFFICIENT_WIDTH, FIELD_WIDTH = 1.0, 3.0

#: Mean and width of the prior of 1/nu where it is free; it matters with two sizes or few samples.
FREE_EXPONENT = (1.0, 1.0)

# An exponent that is known exactly has a prior of this width.
_EXACT = 1e-6
# A fit of few samples begins with 1/nu in this range.
_Y_T = (0.2, 3.0)
# Parameters before a_0: p_c, y, n and m.
OUTER = 4


@dataclass(frozen=True)
class ScalingFunction:
    """f(p, L) in physical parameters.

    threshold: p_c.  y_t: 1/nu.  coefficients: a_0 ... a_d.  field: n and m.  corrections: b, c, B
    and C.  omega: exponent of the leading correction.
    """

    threshold: float
    y_t: float
    coefficients: tuple[float, ...]
    field: tuple[float, float] = (0.0, 0.0)
    corrections: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    omega: float = 1.0

    def __call__(self, p: ArrayLike, L: ArrayLike) -> Floats:
        """Return f at `p` for size `L` (broadcast), float64."""
        size = np.asarray(L, float)
        x = self.scaled(p) * size**self.y_t
        value = np.polynomial.polynomial.polyval(x, self.coefficients)
        for amplitude, (of_x, of_size) in zip(self.corrections, CORRECTIONS, strict=True):
            value = value + amplitude * x**of_x * size ** (-self.omega * of_size)
        return np.asarray(value, np.float64)

    def scaled(self, p: ArrayLike) -> Floats:
        """Return the scaling field t + n t^2 + m t^3 at `p`, float64."""
        t = np.asarray(p, float) - self.threshold
        n, m = self.field
        return np.asarray(t + n * t**2 + m * t**3, np.float64)

    def probability(self, p: ArrayLike, L: ArrayLike) -> Floats:
        """Return R = Phi(f) at `p` for size `L` (broadcast), float64."""
        return np.asarray(ndtr(self(p, L)), np.float64)


@dataclass(frozen=True)
class Units:
    """Units in which every parameter is of order one: p = p_0 + width delta, L in units of L_0.

    scale: natural scale of the variable on the axis; None for that of a probability, p_0 (1 - p_0).
    """

    p_0: float
    width: float
    L_0: float
    scale: float | None = None

    def scaled(self, p: Floats, sizes: ArrayLike) -> tuple[Floats, Floats]:
        """Return p in units of the width and ln(L / L_0) of the same points."""
        return (p - self.p_0) / self.width, np.log(np.asarray(sizes, float) / self.L_0)


@dataclass(frozen=True, eq=False)
class ScalingTerms:
    """The factors of the amplitudes at some points, and the derivatives of X.

    columns: float64 (points, degree + 5), the powers of X and the four corrections.  decay: L^-...
    of the corrections, float64 (points, 4).  derivatives: of X by delta, y, n and m, float64
    (points, 4).
    """

    columns: Floats
    decay: Floats
    derivatives: Floats
    degree: int

    @classmethod
    def at(
        cls, p: Floats, log_size: Floats, outer: Floats, degree: int, omega: float | Floats
    ) -> ScalingTerms:
        """Return the terms at p and ln(L / L_0), (points,); outer: delta, y, n and m."""
        delta, y, n, m = outer
        t, stretch = p - delta, np.exp(y * log_size)
        X = (t + n * t**2 + m * t**3) * stretch
        decay = np.exp(
            -np.multiply.outer(omega * log_size, [of_size for _, of_size in CORRECTIONS])
        )
        powers = X[:, None] ** np.arange(degree + 1)
        corrections = decay * powers[:, [of_x for of_x, _ in CORRECTIONS]]
        slope = -(1 + 2 * n * t + 3 * m * t**2) * stretch
        derivatives = [slope, X * log_size, t**2 * stretch, t**3 * stretch]
        return cls(np.hstack([powers, corrections]), decay, np.stack(derivatives, axis=1), degree)

    def slope(self, amplitudes: Floats) -> Floats:
        """Return df / dX, float64 (points,); amplitudes: of all points, or of each."""
        degree, of_x = self.degree, np.array([power for power, _ in CORRECTIONS])
        slope = self.columns[:, :degree] * (
            amplitudes[..., 1 : degree + 1] * np.arange(1, degree + 1)
        )
        mixed = self.decay * of_x * amplitudes[..., degree + 1 :]
        return np.asarray(np.sum(slope, axis=1) + np.sum(mixed, axis=1), np.float64)


def amplitude_precision(units: Units, degree: int, omega: float, wider: float) -> Floats:
    """Return 1 / sigma^2 of the priors of all amplitudes, (d + 5,); wider: factor on widths."""
    coefficients = np.full(degree + 1, COEFFICIENT_WIDTH**-2)
    coefficients[:2] = 0.0
    scaled = [
        units.L_0 ** (omega * of_size) / width
        for width, (_, of_size) in zip(CORRECTION_WIDTHS, CORRECTIONS, strict=True)
    ]
    return np.concatenate([coefficients, np.square(scaled)]) / wider**2


def outer_prior(units: Units, known: Known | None, wider: float) -> tuple[Floats, Floats]:
    """Return mean and 1 / sigma^2 of the priors of delta, y, n and m, float64 (4,) each."""
    mean, precision = np.zeros(OUTER), np.zeros(OUTER)
    scale = units.p_0 * (1.0 - units.p_0) if units.scale is None else units.scale
    width = wider * (FIELD_WIDTH * units.width / scale)
    precision[2:] = width**-2, width**-4
    value, error = FREE_EXPONENT if known is None else (known.value, max(known.error, _EXACT))
    mean[1], precision[1] = value, error**-2
    return mean, precision


@dataclass(frozen=True, eq=False)
class ScalingModel:
    """probit R in variables of order one, so that the optimiser is well conditioned.

    theta = (delta, y, n, m, a_0 ... a_d, b, c, B, C), float64 (degree + 9,), in `units`.  p,
    log_size: float64 (points,), p in units of the width and ln(L / L_0).  y_t, a_0: where a fit
    begins.
    """

    p: Floats
    log_size: Floats
    degree: int
    omega: float
    units: Units
    y_t: float = 1.0
    a_0: float = 0.0

    @classmethod
    def of(cls, cells: ThresholdCells, *, degree: int, omega: float, like: Lines) -> ScalingModel:
        """Return the model of cells in the units of straight lines through each size."""
        units = like.units
        return cls(*units.scaled(cells.p, cells.sizes), degree, omega, units, like.y_t, like.a_0)

    @property
    def start(self) -> Floats:
        theta = np.zeros(OUTER + self.degree + 5)
        theta[1], theta[OUTER], theta[OUTER + 1] = self.y_t, self.a_0, 1.0
        return theta

    def __call__(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the probit (points,) and its derivatives (points, k)."""
        terms = ScalingTerms.at(self.p, self.log_size, theta[:OUTER], self.degree, self.omega)
        amplitudes = theta[OUTER:]
        outer = terms.slope(amplitudes)[:, None] * terms.derivatives
        return terms.columns @ amplitudes, np.hstack([outer, terms.columns])

    def prior(self, known: Known | None, *, wider: float = 1.0) -> Prior:
        """Return the natural priors; known: of 1/nu.  wider: factor on the widths of the others."""
        mean, precision = outer_prior(self.units, known, wider)
        amplitudes = amplitude_precision(self.units, self.degree, self.omega, wider)
        none = np.zeros(amplitudes.size)
        return Prior(np.concatenate([mean, none]), np.concatenate([precision, amplitudes]))

    def threshold(self, theta: Floats) -> float:
        return float(self.units.p_0 + self.units.width * theta[0])

    def scaling_function(self, theta: Floats) -> ScalingFunction:
        return physical(theta[:OUTER], theta[OUTER:], self.units, self.omega)


def physical(outer: Floats, amplitudes: Floats, units: Units, omega: float) -> ScalingFunction:
    """Return a scaling function in physical parameters from those in units of order one."""
    y_t, degree = float(outer[1]), amplitudes.size - 5
    grow = 1.0 / (units.width * units.L_0**y_t)
    coefficients = amplitudes[: degree + 1] * grow ** np.arange(degree + 1)
    b, c, B, C = (
        float(value * grow**of_x * units.L_0 ** (omega * of_size))
        for value, (of_x, of_size) in zip(amplitudes[degree + 1 :], CORRECTIONS, strict=True)
    )
    return ScalingFunction(
        threshold=float(units.p_0 + units.width * outer[0]),
        y_t=y_t,
        coefficients=tuple(coefficients.tolist()),
        field=(float(outer[2] / units.width), float(outer[3] / units.width**2)),
        corrections=(b, c, B, C),
        omega=omega,
    )


def fit_least_squares(
    residuals: Callable[[Floats], Floats], start: Floats, jacobian: Callable[[Floats], Floats]
) -> tuple[Floats, float]:
    """Return the (delta, y > 0, ...) that minimise chi^2, and the minimum, or AnalysisError."""
    from scipy import optimize

    options = {"method": "lm", "x_scale": "jac", "xtol": 1e-12, "ftol": 1e-12, "max_nfev": 500}
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            best = optimize.least_squares(residuals, start, jacobian, **options)
        except ValueError:
            best = None
    if best is None or not best.success:
        raise AnalysisError("the fit did not converge: more data are needed")
    if best.x[1] <= 0:
        raise AnalysisError("the data do not determine the exponents of the fit")
    return best.x, 2 * float(best.cost)


@dataclass(frozen=True)
class Lines:
    """Straight lines through probit R of each size, where a fit starts: units, 1/nu and a_0."""

    units: Units
    y_t: float
    a_0: float

    @classmethod
    def through(cls, curves: Sequence[SpanningCurve], known: Known | None = None) -> Lines:
        """Return lines through curves; known: 1/nu.  AnalysisError: a curve does not rise."""
        lines = []
        for size in linear_sizes(curves):
            p, probit = probit_points(select_curves(curves, size))
            rate, intercept = np.polyfit(p - p.mean(), probit, 1)
            if not rate > 0:
                raise AnalysisError(f"the spanning probability of L = {size} does not rise with p")
            lines.append((float(size), p.mean() - intercept / rate, rate))
        sizes, centre, slope = np.array(lines).T
        L_0 = geometric_mean(sizes)
        y_t, log_slope = np.polyfit(np.log(sizes / L_0), np.log(slope), 1)
        # slope_L (p - centre_L) = a_0 + slope_L (p - p_c), so centre_L = p_c - a_0 / slope_L.
        differ = np.ptp(slope) > 1e-9 * slope.max()
        p_0 = np.polyfit(1.0 / slope, centre, 1)[1] if differ else centre.mean()
        p = np.concatenate([curve.p for curve in curves])
        p_0 = float(np.clip(p_0, p.min(), p.max()))
        a_0 = float(np.mean(slope * (p_0 - centre)))
        y_t = np.clip(y_t, *_Y_T) if known is None else known.value
        return cls(Units(p_0, float(np.exp(-log_slope)), L_0), float(y_t), a_0)
