"""A power law in L through one number a size, with a correction to scaling and all correlations.

    ln y_L = ln A + k ln L + b L^-omega

fitted by generalised least squares, because numbers taken at one estimated p_c share its error.
b L^-omega is the first term of ln(1 + b L^-omega).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from percolab.analysis.likelihood import ChiSquare
from percolab.errors import AnalysisError

Floats = NDArray[np.float64]
NAN = float("nan")


@dataclass(frozen=True)
class PowerLaw:
    """A fitted power law: exponent k and amplitude A with one-sigma errors, from L_min on."""

    min_size: int
    with_correction: bool
    exponent: float
    error: float
    amplitude: float
    chi_square: ChiSquare


def fit_power_law(
    sizes: Sequence[int],
    values: Floats,
    covariance: Floats,
    *,
    with_correction: bool,
    omega: float,
) -> PowerLaw:
    """Fit ln y_L.

    sizes: ascending. values: float64 (n,), y_L > 0. covariance: float64 (n, n), of ln y_L.
    Raises AnalysisError with fewer sizes than parameters, or a covariance that is singular.
    """
    L = np.array(sizes, float)
    # In units of the geometric mean size the columns are nearly orthogonal.
    middle = np.exp(np.log(L).mean())
    columns = [np.ones_like(L), np.log(L / middle)]
    if with_correction:
        columns.append((L / middle) ** -omega)
    design = np.stack(columns, axis=1)
    if L.size < design.shape[1]:
        raise AnalysisError(f"{L.size} sizes are too few for a power law in L")
    theta, errors, quality = least_squares(design, np.log(values), covariance)
    return PowerLaw(
        min_size=int(sizes[0]),
        with_correction=with_correction,
        exponent=float(theta[1]),
        error=float(errors[1, 1] ** 0.5),
        amplitude=float(np.exp(theta[0]) * middle ** -theta[1]),
        chi_square=quality,
    )


def least_squares(
    design: Floats, values: Floats, covariance: Floats
) -> tuple[Floats, Floats, ChiSquare]:
    """Return (parameters, their covariance, chi^2) of a linear fit with correlated errors.

    design: float64 (n, k). values: float64 (n,). covariance: float64 (n, n). AnalysisError where
    the covariance or the normal equations are singular.
    """
    try:
        whiten = np.linalg.inv(np.linalg.cholesky(covariance))
        left, right = whiten @ design, whiten @ values
        errors: Floats = np.asarray(np.linalg.inv(left.T @ left), np.float64)
    except np.linalg.LinAlgError:
        raise AnalysisError("the errors of the sizes do not determine the fit") from None
    theta = errors @ left.T @ right
    dof = values.size - design.shape[1]
    chi2 = float(np.sum((right - left @ theta) ** 2)) if dof else 0.0
    return theta, errors, ChiSquare(chi2, dof, float(chdtrc(dof, chi2)) if dof else NAN)
