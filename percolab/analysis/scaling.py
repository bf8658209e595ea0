"""The finite-size-scaling function of the spanning probability, and the model that fits it.

    probit R_L(p) = a_0 + a_1 x + ... + a_d x^d + (b + c x) L^-omega,    x = (p - p_c) L^{y_t}

y_t = 1/nu is the thermal exponent, b L^-omega the leading correction to scaling and c x L^-omega
the mixed one, which is how it moves the slope. At an open boundary both come of one cause: L is
uncertain by a constant l, and (L + l)^{y_t} = L^{y_t} (1 + y_t l / L + ...). The polynomial is
a Taylor expansion about x = 0: it describes the crossing region, not the tails of R_L.
Sources of the ansatz: K. Binder and D. W. Heermann, Monte Carlo Simulation in Statistical Physics;
with the mixed term, J. Wang et al., Phys. Rev. E 87, 052107 (2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from percolab.analysis.curves import SpanningCurve, curves_of_size, linear_sizes
from percolab.analysis.likelihood import ThresholdCells
from percolab.analysis.statistics import Floats, geometric_mean
from percolab.errors import AnalysisError


@dataclass(frozen=True)
class ScalingFunction:
    """R_L(p) in physical parameters.

    threshold: p_c. y_t: 1/nu. coefficients: a_0 ... a_d of the powers of (p - p_c) L^y_t.
    correction, mixed: b and c, 0 when not fitted. omega: exponent of the corrections.
    """

    threshold: float
    y_t: float
    coefficients: tuple[float, ...]
    correction: float = 0.0
    omega: float = 1.0
    mixed: float = 0.0

    def probability(self, p: ArrayLike, L: ArrayLike) -> Floats:
        """Spanning probability at `p` for size `L` (broadcast), float64."""
        size = np.asarray(L, float)
        x = (np.asarray(p, float) - self.threshold) * size**self.y_t
        value = np.polynomial.polynomial.polyval(x, self.coefficients)
        probit = value + (self.correction + self.mixed * x) * size**-self.omega
        return np.asarray(ndtr(probit), np.float64)

    @property
    def critical_probability(self) -> float:
        """Spanning probability at p_c in the limit of large L."""
        return float(ndtr(self.coefficients[0]))


@dataclass(frozen=True)
class ScalingModel:
    """The scaling function in variables of order one, so that the optimiser is well conditioned.

    theta = (delta, y_t, A_0 ... A_d[, B[, C]]) with p_c = p_0 + width * delta,
    X = (p - p_c) / width * (L / L_0)^{y_t} and
    probit R = sum A_k X^k + (B + C X) (L / L_0)^-omega. There is no C without B.

    sizes, p: float64 (points,). start: float64 (k,), from straight lines through each size.
    """

    sizes: Floats
    p: Floats
    degree: int
    with_correction: bool
    with_mixed: bool
    omega: float
    p_0: float
    width: float
    L_0: float
    start: Floats

    @classmethod
    def of(
        cls,
        cells: ThresholdCells,
        *,
        degree: int,
        with_correction: bool,
        with_mixed: bool = False,
        omega: float,
    ) -> ScalingModel:
        """Choose scales and a starting point from the data."""
        lines = [_probit_line(cells.curves, size) for size in linear_sizes(cells.curves)]
        sizes = np.array(linear_sizes(cells.curves), float)
        centre, slope = (np.array(values) for values in zip(*lines, strict=True))
        L_0 = geometric_mean(sizes)
        y_t, log_slope = np.polyfit(np.log(sizes / L_0), np.log(slope), 1)
        width = float(np.exp(-log_slope))
        # slope_L (p - centre_L) = a_0 + slope_L (p - p_c), so centre_L = p_c - a_0 / slope_L.
        minus_a_0, p_0 = np.polyfit(1.0 / slope, centre, 1)
        p_0 = float(np.clip(p_0, cells.p.min(), cells.p.max()))
        with_mixed = with_mixed and with_correction
        higher = [0.0] * (degree - 1 + with_correction + with_mixed)
        start = np.array([0.0, y_t, -minus_a_0, 1.0, *higher])
        return cls(
            sizes=cells.sizes,
            p=cells.p,
            degree=degree,
            with_correction=with_correction,
            with_mixed=with_mixed,
            omega=omega,
            p_0=p_0,
            width=width,
            L_0=L_0,
            start=start,
        )

    def __call__(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the probit (points,) and its derivatives (points, k)."""
        delta, y_t = theta[:2]
        log_size = np.log(self.sizes / self.L_0)
        stretch = np.exp(y_t * log_size)
        x = ((self.p - self.p_0) / self.width - delta) * stretch
        powers = x[:, None] ** np.arange(self.degree + 1)
        coefficients = theta[2 : 3 + self.degree]
        slope = powers[:, :-1] @ (coefficients[1:] * np.arange(1, self.degree + 1))
        value = powers @ coefficients
        decay = np.exp(-self.omega * log_size)
        corrections = [decay] * self.with_correction + [x * decay] * self.with_mixed
        for amplitude, column in zip(theta[3 + self.degree :], corrections, strict=True):
            value = value + amplitude * column
        if self.with_mixed:
            slope = slope + theta[-1] * decay
        columns = [-slope * stretch, slope * x * log_size, *powers.T, *corrections]
        return value, np.stack(columns, axis=1)

    def scaling_function(self, theta: Floats) -> ScalingFunction:
        """Return the physical scaling function at `theta`."""
        unit = self.width * self.L_0 ** theta[1]
        amplitudes = theta[2 : 3 + self.degree]
        grown = self.L_0**self.omega
        correction = float(theta[3 + self.degree] * grown) if self.with_correction else 0.0
        return ScalingFunction(
            threshold=float(self.p_0 + self.width * theta[0]),
            y_t=float(theta[1]),
            coefficients=tuple(float(a / unit**k) for k, a in enumerate(amplitudes)),
            correction=correction,
            omega=self.omega,
            mixed=float(theta[-1] * grown / unit) if self.with_mixed else 0.0,
        )


def _probit_line(curves: Sequence[SpanningCurve], size: int) -> tuple[float, float]:
    """Centre and slope of a straight line through the probits of one size."""
    chosen = curves_of_size(curves, size)
    p = np.concatenate([curve.p for curve in chosen])
    probit = ndtri(np.concatenate([curve.probability for curve in chosen]))
    slope, intercept = np.polyfit(p - p.mean(), probit, 1)
    if not slope > 0:
        raise AnalysisError(f"the spanning probability of L = {size} does not rise with p")
    return float(p.mean() - intercept / slope), float(slope)
