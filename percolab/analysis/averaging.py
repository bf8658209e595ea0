"""Averages over fits with different smallest sizes and degrees, in place of choosing one of them.

A fit that is chosen claims that what it leaves out is zero.  Here every fit counts with the weight

    exp(-(chi^2 + 2 k + 2 n) / 2)

of k parameters and n points left out, and how far they disagree is part of the error: W. I. Jay and
E. T. Neil, Phys. Rev. D 103, 114502 (2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from percolab.analysis.fit_quality import REJECTED, ChiSquare, is_rejected
from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats, format_with_error
from percolab.errors import AnalysisError

#: Sizes that every fit keeps, where there are so many.
LEAST_SIZES = 3


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


@dataclass(frozen=True)
class Member:
    """One of the fits that are averaged, with its weight; errors are whole, without the spread."""

    min_size: int
    degree: int
    weight: float
    threshold: float
    threshold_error: float
    y_t: float
    y_t_error: float
    chi_square: ChiSquare


@dataclass(frozen=True, eq=False)
class ThresholdMember:
    """A fit of p_c and 1/nu that is averaged with others.

    p_0, width: p_c = p_0 + width theta_0; theta_1 is 1/nu.  theta: float64 (k,).  covariance,
    statistical: float64 (k, k), the whole one, and what other samples would change.  criterion:
    chi^2 + 2 k + 2 n.
    """

    min_size: int
    degree: int
    p_0: float
    width: float
    theta: Floats
    covariance: Floats
    statistical: Floats
    chi_square: ChiSquare
    criterion: float


@dataclass(frozen=True, eq=False)
class ThresholdAverage:
    """The average over fits; weights: float64 (n,)."""

    fits: tuple[ThresholdMember, ...]
    weights: Floats

    @classmethod
    def over(
        cls,
        sizes: Sequence[int],
        degrees: Sequence[int],
        fit: Callable[[int, int], ThresholdMember],
    ) -> ThresholdAverage:
        """Average over the fits that fit(smallest size, degree) makes.

        Every fit keeps LEAST_SIZES of the sizes, ascending, where there are so many.  Fits that
        raise AnalysisError are left out; if all do, the first such error is raised.
        """
        found: list[ThresholdMember] = []
        failure: AnalysisError | None = None
        for smallest in sizes[: max(1, len(sizes) - LEAST_SIZES + 1)]:
            for degree in degrees:
                try:
                    found.append(fit(smallest, degree))
                except AnalysisError as error:
                    failure = failure or error
        if failure is not None and not found:
            raise failure
        return cls(tuple(found), fit_weights([item.criterion for item in found]))

    @property
    def best(self) -> int:
        """Index of the fit of the largest weight."""
        return int(np.argmax(self.weights))

    @property
    def threshold(self) -> Value:
        """p_c."""
        first = self.fits[0]
        value = self.value(0)
        return value.scaled(first.p_0 + first.width * value.value, first.width)

    @property
    def y_t(self) -> Value:
        """1/nu."""
        return self.value(1)

    def value(self, index: int | Sequence[int]) -> Value:
        """Return one of the parameters in its units; index: of theta, in every fit or in all."""
        at = list(zip(np.broadcast_to(index, len(self.fits)).tolist(), self.fits, strict=True))
        values = np.array([item.theta[k] for k, item in at])
        variances = np.array([item.covariance[k, k] for k, item in at])
        statistical = np.array([item.statistical[k, k] for k, item in at])
        mean = float(self.weights @ values)
        whole = self.weights @ (variances + (values - mean) ** 2)
        own = self.weights @ np.maximum(statistical, 0.0)
        errors = float(np.sqrt(whole)), float(np.sqrt(own))
        return Value(mean, *errors, self.fits[self.best].chi_square, len(self.fits))

    def members(self) -> tuple[Member, ...]:
        """Return every fit in short, those of the largest weight first."""
        found = []
        for weight, item in zip(self.weights.tolist(), self.fits, strict=True):
            p_c_error, y_t_error = np.sqrt(np.diag(item.covariance)[:2]).tolist()
            p_c, y_t = item.p_0 + item.width * float(item.theta[0]), float(item.theta[1])
            errors = item.width * p_c_error, y_t_error
            numbers = (weight, p_c, errors[0], y_t, errors[1])
            found.append(Member(item.min_size, item.degree, *numbers, item.chi_square))
        return tuple(sorted(found, key=lambda member: -member.weight))


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
