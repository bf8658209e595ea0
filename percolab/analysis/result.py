"""The result of a threshold fit: every number, and how it is written out."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from percolab.analysis.crossings import Crossing, Drift
from percolab.analysis.curve import SpanningCurve, linear_sizes
from percolab.analysis.known_exponents import Known
from percolab.analysis.likelihood import ChiSquare
from percolab.analysis.record import plain
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.size_fit import SizeFit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SizeAnalysis:
    """The second analysis: each size fitted alone, neighbours crossed, crossings extrapolated.

    drift is None with fewer than two crossings, or without a bootstrap.
    """

    fits: tuple[SizeFit, ...]
    crossings: tuple[Crossing, ...]
    drift: Drift | None


@dataclass(frozen=True)
class ThresholdFit:
    """The threshold with its one-sigma error, and everything the fit says about itself.

    threshold, threshold_error: p_c; the error is `error_method`'s.
    fisher_error, y_t_fisher_error: errors of p_c and 1/nu from the curvature of the likelihood,
    a cross-check.
    y_t, nu, critical_probability (R at p_c for large L), correction (b) and mixed (c), each with
    its error.
    coefficients: a_0 ... a_d with errors. chi_square: of the simultaneous fit.
    replicas, failed_replicas: bootstrap replicas asked for, and those without a fit.
    by_size: the second analysis, which does not use the scaling function.
    curves: the input; used: what was left of it inside the window. notes: one line each.
    known_probability: what theory says of R at p_c, to print beside; None where it says nothing.
    omega_source: why omega is what it is, in a few words.
    Numbers that the data do not give are NaN (None in `to_dict`).
    """

    scaling: ScalingFunction
    threshold_error: float
    fisher_error: float
    y_t_fisher_error: float
    error_method: str
    y_t_error: float
    nu_error: float
    critical_probability_error: float
    coefficient_errors: tuple[float, ...]
    correction_error: float
    with_correction: bool
    mixed_error: float
    with_mixed: bool
    chi_square: ChiSquare
    log_likelihood: float
    replicas: int
    failed_replicas: int
    by_size: SizeAnalysis
    curves: tuple[SpanningCurve, ...]
    used: tuple[SpanningCurve, ...]
    notes: tuple[str, ...]
    known_probability: Known | None = None
    omega_source: str = "given"

    @property
    def threshold(self) -> float:
        """The threshold p_c."""
        return self.scaling.threshold

    @property
    def y_t(self) -> float:
        """The thermal exponent 1/nu."""
        return self.scaling.y_t

    @property
    def nu(self) -> float:
        """The correlation-length exponent."""
        return 1.0 / self.scaling.y_t

    @property
    def critical_probability(self) -> float:
        """Spanning probability at p_c in the limit of large L."""
        return self.scaling.critical_probability

    @property
    def critical_probability_z(self) -> float:
        """Deviation of R at p_c from theory, in its errors; NaN without either of them."""
        if self.known_probability is None or not self.critical_probability_error > 0:
            return float("nan")
        away = self.critical_probability - self.known_probability.value
        return away / self.critical_probability_error

    @property
    def degree(self) -> int:
        """Degree of the scaling polynomial that was fitted."""
        return len(self.scaling.coefficients) - 1

    @property
    def corrections(self) -> str:
        """Which corrections to scaling were fitted: "none", "b" or "b, c"."""
        return "b, c" if self.with_mixed else "b" if self.with_correction else "none"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Linear sizes that entered the fit, ascending."""
        return linear_sizes(self.used)

    def probability(self, p: ArrayLike, L: ArrayLike) -> Floats:
        """Fitted spanning probability at `p` for size `L` (broadcast), float64."""
        return self.scaling.probability(p, L)

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        record = plain(
            {
                "threshold": self.threshold,
                "y_t": self.y_t,
                "nu": self.nu,
                "critical_probability": self.critical_probability,
                "critical_probability_z": self.critical_probability_z,
                "coefficients": self.scaling.coefficients,
                "correction": self.scaling.correction if self.with_correction else None,
                "mixed": self.scaling.mixed if self.with_mixed else None,
                "omega": self.scaling.omega,
                "degree": self.degree,
                "sizes": self.sizes,
            }
        )
        nested = {"scaling", "by_size", "curves", "used"}
        record |= {
            field.name: plain(getattr(self, field.name))
            for field in fields(self)
            if field.name not in nested
        }
        record["size_fits"] = [fit.to_dict() for fit in self.by_size.fits]
        record["crossings"] = [crossing.to_dict() for crossing in self.by_size.crossings]
        record["drift"] = plain(self.by_size.drift)
        record["curves"] = [curve.to_dict() for curve in self.curves]
        return record
