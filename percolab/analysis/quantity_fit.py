"""Generalised least squares of the scaling of dimensionless quantities, and its result.

The residuals are whitened by the covariance of each task, so that their sum of squares is chi^2.
Errors are those of its curvature, corrected for the noise of the covariances, which come of a
finite number of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.special import chdtrc

from percolab.analysis.likelihood import ChiSquare
from percolab.analysis.quantities import Floats
from percolab.analysis.quantity_model import CORRECTIONS, JointModel, ModelChoice
from percolab.analysis.record import plain
from percolab.errors import AnalysisError

NAN = float("nan")

# A parameter that the data do not determine shows in the singular values of the scaled Jacobian.
_UNDETERMINED = 1e-9


@dataclass(frozen=True)
class Amplitudes:
    """What a fit says of one quantity, with one-sigma errors; NaN where a term was not fitted.

    critical: Q_c.  slopes: a_1 ... a_d.  correction, mixed, second: b_1, c and b_2.  omega: of b_1.
    """

    name: str
    critical: float
    critical_error: float
    slopes: tuple[float, ...]
    slope_errors: tuple[float, ...]
    omega: float
    omega_error: float
    correction: float = NAN
    correction_error: float = NAN
    mixed: float = NAN
    mixed_error: float = NAN
    second: float = NAN
    second_error: float = NAN


@dataclass(frozen=True)
class QuantityFit:
    """One joint fit: p_c and y_t with errors (0 where y_t was held), and every quantity's numbers.

    sizes: linear sizes that entered, ascending.  choice: the terms.  points: independent residuals.
    """

    threshold: float
    threshold_error: float
    y_t: float
    y_t_error: float
    amplitudes: tuple[Amplitudes, ...]
    chi_square: ChiSquare
    sizes: tuple[int, ...]
    points: int
    choice: ModelChoice
    outer: tuple[float, ...]

    @property
    def min_size(self) -> int:
        """L_min."""
        return self.sizes[0]

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        return {
            "min_size": self.min_size,
            "sizes": list(self.sizes),
            "degree": self.choice.degree,
            "corrections": self.choice.corrections,
            "omega_free": self.choice.free_omega,
            "y_t_free": self.choice.y_t is None,
            "threshold": self.threshold,
            "threshold_error": self.threshold_error,
            "y_t": self.y_t,
            "y_t_error": self.y_t_error,
            "points": self.points,
            "chi_square": plain(self.chi_square),
            "quantities": [plain(item) for item in self.amplitudes],
        }


def fit_model(model: JointModel, start: Floats, names: Sequence[str]) -> QuantityFit:
    """Minimise chi^2 from a start: delta, [y_t], [omegas].  names: of the quantities.

    AnalysisError: the data do not determine a parameter, or there are fewer data than parameters.
    """
    freedom = model.target.size - model.parameters
    if freedom < 0:
        raise AnalysisError(
            f"{model.target.size} values are too few for a fit with {model.parameters} parameters"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        found = least_squares(
            model.residuals,
            model.linear_fit(start),
            jac=model.jacobian,
            method="lm",
            x_scale="jac",
            max_nfev=200,
        )
        jacobian = model.jacobian(found.x)
    covariance = _covariance(model, jacobian)
    if not found.success:
        raise AnalysisError("the fit did not converge: fewer terms or more data are needed")
    _, y_t, omegas, _ = model.split(found.x)
    errors = np.sqrt(np.diag(covariance))[model.outer - omegas.size : model.outer]
    unknown = model.choice.free_omega and np.any(errors > omegas)
    if y_t <= 0 or np.any(omegas <= 0) or unknown:
        raise AnalysisError("the data do not determine the exponents of the fit")
    chi2 = float(2 * found.cost)
    p_value = float(chdtrc(freedom, chi2)) if freedom else NAN
    return _result(model, found.x, covariance, ChiSquare(chi2, freedom, p_value), names)


def _covariance(model: JointModel, jacobian: Floats) -> Floats:
    """Return the covariance of the parameters, float64 (k, k).

    Were the covariances of the data exact it would be the inverse of H = J^T J.  A task whose d
    residuals are whitened by a covariance of n degrees of freedom, and which determines k
    parameters (the trace of its part of the hat matrix), adds to it by a factor that is exact for
    one task: (n - 1) (n - d - 1) / ((n - 1 - d + k) (n - d + k)), above 1 for k << d, and below
    where k = d, as then the data are only copied.  It follows from the theory of growth curves, C.
    R. Rao, Proc. 5th Berkeley Symp. 1, 355 (1967).
    """
    scale = np.linalg.norm(jacobian, axis=0)
    if not (np.all(np.isfinite(scale)) and np.all(scale > 0)):
        raise AnalysisError("the data do not determine all parameters of the fit")
    left, singular, right = np.linalg.svd(jacobian / scale, full_matrices=False)
    if singular[-1] < _UNDETERMINED * singular[0]:
        raise AnalysisError("the data do not determine all parameters of the fit")
    # Rows of `left` are the residuals in an orthonormal basis of the parameters.
    total, row = np.zeros((singular.size, singular.size)), 0
    for item in model.observations:
        own = left[row : row + item.dimension]
        row += item.dimension
        n, d, k = item.degrees, item.dimension, float(np.sum(own**2))
        factor = (n - 1) * (n - d - 1) / ((n - 1 - d + k) * (n - d + k))
        total += factor * own.T @ own
    back = right.T / singular / scale[:, None]
    return np.asarray(back @ total @ back.T, np.float64)


def _result(
    model: JointModel,
    theta: Floats,
    covariance: Floats,
    quality: ChiSquare,
    names: Sequence[str],
) -> QuantityFit:
    errors = np.sqrt(np.diag(covariance))
    delta, y_t, _, _ = model.split(theta)
    sizes = sorted({item.L for item in model.observations})
    return QuantityFit(
        threshold=model.scales.p_0 + model.scales.width * delta,
        threshold_error=float(model.scales.width * errors[0]),
        y_t=y_t,
        y_t_error=float(errors[1]) if model.choice.y_t is None else 0.0,
        amplitudes=tuple(
            _amplitudes(model, theta, covariance, name, index) for index, name in enumerate(names)
        ),
        chi_square=quality,
        sizes=tuple(sizes),
        points=model.target.size,
        choice=model.choice,
        outer=tuple(float(value) for value in theta[: model.outer]),
    )


def _amplitudes(
    model: JointModel, theta: Floats, covariance: Floats, name: str, index: int
) -> Amplitudes:
    """Return one quantity's numbers in units of p and L."""
    choice, scales = model.choice, model.scales
    _, y_t, omegas, values = model.split(theta)
    group = model.groups.index(choice.omegas[index])
    omega, at_y_t = float(omegas[group]), 1 if choice.y_t is None else None
    at_omega = 1 + (choice.y_t is None) + group if choice.free_omega else None
    # An amplitude is its own parameter times width^-k L_0^(-k y_t + m omega + ...): the logarithmic
    # derivatives after y_t and omega enter its error too.
    powers = [(k, 0.0, 0.0) for k in range(choice.degree + 1)]
    kinds = [(0, 1.0, 0.0), (1, 1.0, 0.0), (0, 0.0, 1.0)]
    powers += [kind for kind, used in zip(kinds, CORRECTIONS[choice.corrections]) if used]
    log_L, numbers = np.log(scales.L_0), []
    for term, (k, m, second) in enumerate(powers):
        grown = -k * y_t + m * omega + second * model.omega_2
        factor = scales.width**-k * np.exp(grown * log_L)
        value = values[index, term] * factor
        gradient = np.zeros(theta.size)
        gradient[model.outer + index * choice.terms + term] = factor
        if at_y_t is not None:
            gradient[at_y_t] = -k * log_L * value
        if at_omega is not None:
            gradient[at_omega] = m * log_L * value
        numbers.append((float(value), float(np.sqrt(gradient @ covariance @ gradient))))
    rest = iter(numbers[choice.degree + 1 :])
    found = [next(rest) if used else (NAN, NAN) for used in CORRECTIONS[choice.corrections]]
    (b, b_error), (c, c_error), (b_2, b_2_error) = found
    return Amplitudes(
        name=name,
        critical=numbers[0][0],
        critical_error=numbers[0][1],
        slopes=tuple(value for value, _ in numbers[1 : choice.degree + 1]),
        slope_errors=tuple(error for _, error in numbers[1 : choice.degree + 1]),
        omega=omega,
        omega_error=float(np.sqrt(covariance[at_omega, at_omega])) if at_omega else 0.0,
        correction=b,
        correction_error=b_error,
        mixed=c,
        mixed_error=c_error,
        second=b_2,
        second_error=b_2_error,
    )
