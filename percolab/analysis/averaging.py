"""Averages over fits with different smallest sizes and degrees, in place of choosing one of them.

A fit that is chosen claims that what it leaves out is zero.  Here every fit counts with the weight

    exp(-(chi^2 + 2 k + 2 n) / 2)

of k parameters and n points left out, and how far they disagree is part of the error: W. I. Jay and
E. T. Neil, Phys. Rev. D 103, 114502 (2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from percolab.analysis.fit_quality import REJECTED, ChiSquare, is_rejected
from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats, format_with_error


@dataclass(frozen=True)
class Value:
    """A number that was fitted: its error in two parts, and how well the best fit describes it.

    error: the whole one, one sigma.  statistical_error: NaN where it is not told apart.  members:
    how many fits were averaged.
    """

    value: float
    error: float
    statistical_error: float
    chi_square: ChiSquare
    members: int

    @property
    def systematic_error(self) -> float:
        """What priors and averaging add to the statistical error."""
        return float(np.sqrt(max(self.error**2 - self.statistical_error**2, 0.0)))

    @property
    def rejected(self) -> bool:
        """Whether chi^2 rejects the best fit, so that the value has no error to quote."""
        return is_rejected(self.chi_square)

    def scaled(self, value: float, slope: float) -> Value:
        """Return another value, a function of this one with this slope."""
        errors = abs(slope) * self.error, abs(slope) * self.statistical_error
        return Value(value, *errors, self.chi_square, self.members)

    def __str__(self) -> str:
        """Return the value with its error, or that chi^2 rejects the fit."""
        if self.rejected:
            return f"rejected by chi^2, p-value {self.chi_square.p_value:.1g}"
        return format_with_error(self.value, self.error)

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        record: dict[str, object] = {"rejected": self.rejected, **vars(self)}
        return plain(record | {"systematic_error": self.systematic_error})


def fit_weights(criteria: Sequence[float] | Floats) -> Floats:
    """Return the weights of fits, float64 (n,), of sum 1.

    criteria: chi^2 + 2 k + 2 n of each.

    >>> fit_weights([10.0, 10.0]).tolist()
    [0.5, 0.5]
    """
    criteria = np.asarray(criteria, float)
    weights = np.exp(-0.5 * (criteria - criteria.min()))
    return np.asarray(weights / weights.sum(), np.float64)


def average_values(
    weights: Floats, values: Floats, errors: Floats, statistical: Floats, best: ChiSquare
) -> Value:
    """Return the mean of fits; float64 (n,) each: weights, values, whole and statistical errors.

    best: chi^2 of the fit of the largest weight.
    """
    mean = float(weights @ values)
    whole = np.sqrt(weights @ errors**2 + weights @ (values - mean) ** 2)
    return Value(mean, float(whole), float(np.sqrt(weights @ statistical**2)), best, len(weights))


def what_contradicts(p_c: Value, low: float, high: float) -> str | None:
    """Return in one line why a fitted p_c is no answer, or None.

    low, high: the range of the fitted p.
    """
    quality = p_c.chi_square
    if p_c.rejected:
        return (
            f"no p_c: the best fit is rejected (p-value {quality.p_value:.1e}, below "
            f"{REJECTED:g}); leave out the smallest sizes (--min-size), or add larger ones"
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
