"""Averages over fits with different smallest sizes and degrees, in place of choosing one of them.

A fit that is chosen claims that what it leaves out is zero.  Here every fit counts with the weight

    exp(-(chi^2 + 2 k + 2 n) / 2)

of k parameters and n points left out, and how far they disagree is part of the error: W. I. Jay and
E. T. Neil, Phys. Rev. D 103, 114502 (2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

from percolab.analysis.fit_quality import REJECTED, ChiSquare, is_rejected
from percolab.analysis.statistics import Floats


@dataclass(frozen=True)
class Value:
    """A number with its whole one-sigma error and the statistical part of it; NaN: it has none."""

    value: float
    error: float = nan
    statistical_error: float = nan

    @property
    def systematic_error(self) -> float:
        """The other part: of the priors, and of the fits that are averaged."""
        return sqrt(max(self.error**2 - self.statistical_error**2, 0.0))


def fit_weights(criteria: Sequence[float] | Floats) -> Floats:
    """Return the weights of fits, float64 (n,), of sum 1.

    criteria: chi^2 + 2 k + 2 n of each.

    >>> fit_weights([10.0, 10.0]).tolist()
    [0.5, 0.5]
    """
    criteria = np.asarray(criteria, float)
    weights = np.exp(-0.5 * (criteria - criteria.min()))
    return np.asarray(weights / weights.sum(), np.float64)


def average(weights: Floats, values: Floats, errors: Floats, statistical: Floats) -> Value:
    """Return the mean of fits; float64 (n,) each: weights, values, whole and statistical errors."""
    mean = float(weights @ values)
    spread = weights @ (values - mean) ** 2
    return Value(mean, float(np.sqrt(weights @ errors**2 + spread)), float(np.sqrt(weights @ statistical**2)))


def what_contradicts(p_c: Value, quality: ChiSquare, low: float, high: float) -> str | None:
    """Return in one line why a fitted p_c is no answer, or None.

    quality: of the best fit.  low, high: the range of the fitted p.
    """
    if is_rejected(quality):
        return (
            f"no p_c: the best fit is rejected (p-value {quality.p_value:.1e}, below {REJECTED:g}); "
            "leave out the smallest sizes (--min-size), or add larger ones"
        )
    sampled = f"the fitted p, {low:.6g} to {high:.6g}"
    if not low <= p_c.value <= high:
        return (
            f"no p_c: the fit has it at {p_c.value:.4g}, outside {sampled}; "
            "sample p on both sides of it"
        )
    if not p_c.error <= high - low:
        return f"no p_c: its error, {p_c.error:.1g}, is wider than {sampled}; add samples or sizes"
    return None


def prior_note(shift: float) -> str:
    """Return the line that says that p_c depends on the priors."""
    return (
        f"p_c moves by {shift:+.1e} if the priors are twice as wide, more than half its error: "
        "more samples or larger sizes are needed to be sure of it"
    )
