"""The spanning probability of one linear size as a smooth curve, without finite-size scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike
from scipy.special import ndtr

from percolab.analysis.curves import SpanningCurve, probit_points
from percolab.analysis.json_values import Record
from percolab.analysis.likelihood import ThresholdCells, chi_square, maximise
from percolab.analysis.statistics import Floats
from percolab.analysis.value import ChiSquare
from percolab.errors import AnalysisError


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

    @cached_property
    def probit(self) -> Polynomial:
        """The fitted polynomial as a function of p."""
        domain = [self.p_mid - self.scale, self.p_mid + self.scale]
        return Polynomial(self.coefficients, domain=domain, window=[-1.0, 1.0])

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
        """Derivative dR/dp at `p`."""
        return self.density(p) * float(self.probit.deriv()(p))


@dataclass(frozen=True)
class PolynomialModel:
    """probit R as a polynomial; `design` is float64 (points, degree + 1)."""

    design: Floats

    @classmethod
    def of_points(cls, p: Floats, middle: float, scale: float, degree: int) -> PolynomialModel:
        """Return the polynomial of a degree in (p - middle) / scale."""
        return cls(np.vander((p - middle) / scale, degree + 1, increasing=True))

    def __call__(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the probit (points,) and its derivatives (points, degree + 1)."""
        return self.design @ theta, self.design


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
    model = PolynomialModel.of_points(cells.p, middle, scale, min(degree, distinct - 1))
    estimate = maximise(model, cells, _straight_line(cells, model))
    return SizeFit(
        L=curves[0].L,
        p_mid=middle,
        scale=scale,
        coefficients=tuple(float(c) for c in estimate.theta),
        p_low=low,
        p_high=high,
        points=cells.p.size,
        samples=sum(curve.total_samples for curve in curves),
        chi_square=chi_square(cells, estimate),
        covariance=tuple(map(tuple, estimate.covariance.tolist())),
    )


def refit(fit: SizeFit, cells: ThresholdCells, counts: Floats) -> SizeFit:
    """Return `fit` with the coefficients of `counts`, a replica of those of its `cells`."""
    degree = len(fit.coefficients) - 1
    model = PolynomialModel.of_points(cells.p, fit.p_mid, fit.scale, degree)
    estimate = maximise(model, replace(cells, counts=counts), np.array(fit.coefficients))
    return replace(fit, coefficients=tuple(float(c) for c in estimate.theta))


def _straight_line(cells: ThresholdCells, model: PolynomialModel) -> Floats:
    _, probit = probit_points(cells.curves)
    line, *_ = np.linalg.lstsq(model.design[:, :2], probit, rcond=None)
    if not line[1] > 0:
        size = cells.curves[0].L
        raise AnalysisError(f"the spanning probability of L = {size} does not rise with p")
    return np.concatenate([line, np.zeros(model.design.shape[1] - 2)])
