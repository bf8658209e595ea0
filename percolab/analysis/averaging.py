"""Averages over fits with different smallest sizes and degrees, instead of the choice of one fit.

To choose one fit is to claim that the terms it leaves out are zero.  Here every fit has the weight

    exp(-(chi^2 + 2 k + 2 n) / 2)

with k parameters and n points left out, and the spread of the fits is part of the error: W. I. Jay
and E. T. Neil, Phys. Rev. D 103, 114502 (2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import nan
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from percolab.analysis.json_values import Part, Record
from percolab.analysis.statistics import Floats
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import REJECTED, ChiSquare, Value, format_with_error
from percolab.errors import AnalysisError
from percolab.lattices.shown import Shown, few

#: Sizes that every fit contains, or all if there are fewer.
LEAST_SIZES = 3


def fit_weights(criteria: Sequence[float] | Floats) -> Floats:
    """Return the weights of fits, float64 (n,), of sum 1; criteria: chi^2 + 2 k + 2 n of each.

    >>> fit_weights([10.0, 10.0]).tolist()
    [0.5, 0.5]
    """
    criteria = np.asarray(criteria, float)
    weights = np.exp(-0.5 * (criteria - criteria.min()))
    return np.asarray(weights / weights.sum(), np.float64)


@dataclass(frozen=True)
class Member:
    """One of the averaged fits; its errors are whole, except for the spread of the fits."""

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

    p_0, width: p_c = p_0 + width theta_0; theta_1 is 1/nu.  theta: float64 (k,).  covariance:
    float64 (k, k), the whole one.  statistical: float64 (k, k), its part due to the samples alone.
    criterion: chi^2 + 2 k + 2 n.
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


Fit = TypeVar("Fit", bound=ThresholdMember)
Choice = TypeVar("Choice")
Average = TypeVar("Average")


@dataclass(frozen=True, eq=False)
class ThresholdAverage(Generic[Fit]):
    """The average over fits; weights: float64 (n,)."""

    fits: tuple[Fit, ...]
    weights: Floats

    @classmethod
    def over(
        cls, sizes: Sequence[int], choices: Sequence[Choice], fit: Callable[[int, Choice], Fit]
    ) -> ThresholdAverage[Fit]:
        """Average over the results of fit(smallest size, choice); sizes ascend.

        choices: degrees of the polynomial, with whatever else differs from fit to fit.

        Fits that raise AnalysisError are left out; if all do, the first such error is raised.
        """
        fits: list[Fit] = []
        failures: list[AnalysisError] = []
        for smallest, choice in product(sizes[: max(1, len(sizes) - LEAST_SIZES + 1)], choices):
            try:
                fits.append(fit(smallest, choice))
            except AnalysisError as error:
                failures.append(error)
        if not fits:
            raise failures[0]
        return cls(tuple(fits), fit_weights([own.criterion for own in fits]))

    @property
    def best(self) -> Fit:
        return self.fits[int(np.argmax(self.weights))]

    @property
    def threshold(self) -> Value:
        first = self.fits[0]
        value = self.value(0)
        return value.scaled(first.p_0 + first.width * value.value, first.width)

    @property
    def y_t(self) -> Value:
        return self.value(1)

    def value(self, index: int | Sequence[int]) -> Value:
        """Return a parameter in its units; index: in theta, one for all fits or one for each."""
        (mean,), ((whole,),), ((own,),) = self.values([index])
        errors = float(np.sqrt(whole)), float(np.sqrt(max(own, 0.0)))
        return Value(float(mean), *errors, self.best.chi_square, len(self.fits))

    def values(self, indices: Sequence[int | Sequence[int]]) -> tuple[Floats, Floats, Floats]:
        """Return n parameters in their units, (n,), their whole and statistical covariance, (n, n).

        indices: one for each parameter, as for :meth:`value`.
        """
        every = np.array([np.broadcast_to(index, len(self.fits)) for index in indices]).T
        each = [(np.ix_(at, at), at, fit) for at, fit in zip(every, self.fits, strict=True)]
        values = np.array([fit.theta[at] for _, at, fit in each])
        mean = self.weights @ values
        away = values - mean
        whole = np.tensordot(self.weights, [fit.covariance[at] for at, _, fit in each], 1)
        own = np.tensordot(self.weights, [fit.statistical[at] for at, _, fit in each], 1)
        return mean, whole + (self.weights * away.T) @ away, own

    def members(self) -> tuple[Member, ...]:
        """Return a summary of every fit, those of the largest weight first."""
        members = []
        for weight, fit in zip(self.weights.tolist(), self.fits, strict=True):
            p_c_error, y_t_error = np.sqrt(np.diag(fit.covariance)[:2]).tolist()
            p_c, y_t = fit.p_0 + fit.width * float(fit.theta[0]), float(fit.theta[1])
            numbers = (weight, p_c, fit.width * p_c_error, y_t, y_t_error)
            members.append(Member(fit.min_size, fit.degree, *numbers, fit.chi_square))
        return tuple(sorted(members, key=lambda member: -member.weight))


def average_three_times(
    average: Callable[[Known | None, float], Average], known: Known | None, priors: float
) -> tuple[Average, Average, Average | None]:
    """Return the averages for p_c, for its check and for 1/nu.

    All are average(known 1/nu, factor on the priors' widths): the first with `known` and `priors`,
    the second with priors twice as wide, the third with 1/nu free, or None if that fit fails.
    """
    best, wide = average(known, priors), average(known, 2 * priors)
    if known is None:
        return best, wide, best
    try:
        return best, wide, average(None, priors)
    except AnalysisError:
        return best, wide, None


class Quoted(Part[float]):
    """An error that is NaN where the fit has a problem."""

    def __get__(self, record: object, owner: object = None) -> float:
        return nan if getattr(record, "problem", None) else super().__get__(record)


@dataclass(frozen=True, repr=False, kw_only=True)
class FittedThreshold(Record, Shown):
    """A fitted p_c: the common part of fits of spanning curves and joint fits of quantities.

    p_c, exponent: p_c, and 1/nu of fits in which it is free.  problem: one line on why p_c cannot
    be used, or None; with a problem threshold_error, its two parts and y_t_error are NaN.
    known_y_t: the 1/nu of the universality class that is a prior of p_c, None if there is none.
    prior_shift: how far p_c moves if all priors are twice as wide.  members: the averaged fits of
    p_c. notes: warnings on p_c, one line each.  Numbers that the data do not give are NaN (None in
    ``to_dict``).
    """

    added: ClassVar[tuple[str, ...]] = (
        "threshold", "threshold_error", "statistical_error", "systematic_error", "y_t", "y_t_error",
        "chi_square",
    )  # fmt: skip

    p_c: Value
    exponent: Value
    problem: str | None
    known_y_t: Known | None
    prior_shift: float
    members: tuple[Member, ...]
    notes: tuple[str, ...]

    threshold, threshold_error = Part[float]("p_c.value"), Quoted("p_c.error")
    statistical_error = Quoted("p_c.statistical_error")
    systematic_error = Quoted("p_c.systematic_error")
    y_t, y_t_error = Part[float]("exponent.value"), Quoted("exponent.error")
    #: Chi^2 of the fit with the largest weight: ``value``, ``dof`` and ``p_value``.
    chi_square = Part[ChiSquare]("p_c.quality")

    @property
    def nu(self) -> float:
        """The correlation-length exponent."""
        return 1.0 / self.y_t

    @property
    def nu_error(self) -> float:
        """The one-sigma error of nu."""
        return self.y_t_error / self.y_t**2

    @property
    def sizes(self) -> Sequence[int]:
        """Linear sizes that entered the fits, ascending."""
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        quality, p_value = self.chi_square.cells
        return {
            **({"problem": self.problem} if self.problem else {}),
            "p_c": format_with_error(self.threshold, self.threshold_error),
            "statistical, systematic": f"{self.statistical_error:.2g}, {self.systematic_error:.2g}",
            "1/nu": format_with_error(self.y_t, self.y_t_error),
            "L": few(self.sizes),
            "chi^2/dof": quality,
            "p-value": p_value,
            **{f"note {n}": note for n, note in enumerate(self.notes, 1)},
        }


def assess_threshold(
    p_c: Value, wide: Value, sampled: tuple[float, float], notes: Sequence[str], *, axis: str = "p"
) -> dict[str, Any]:
    """Return p_c, problem and notes as arguments of :class:`FittedThreshold`."""
    problem, shift = find_problem(p_c, *sampled, axis=axis), wide.value - p_c.value
    moved = (
        f"{axis}_c moves by {shift:+.1e} if the priors are twice as wide, more than half its "
        "error: more samples or larger sizes are needed to be sure of it"
    )
    every = *notes, *([moved] if problem is None and abs(shift) > 0.5 * p_c.error else ())
    return {"p_c": p_c, "problem": problem, "prior_shift": shift, "notes": every}


def find_problem(p_c: Value, low: float, high: float, *, axis: str = "p") -> str | None:
    """Return one line on why a fitted p_c cannot be used, or None; low, high: the sampled p."""
    sampled, problem = f"the sampled {axis}, {low:.6g} to {high:.6g}", ""
    if p_c.rejected:
        problem = (
            f"the best fit is rejected (p-value {p_c.quality.p_value:.1e}, below {REJECTED:g}); "
            "leave out the smallest sizes (--min-size), or add larger ones"
        )
    elif not low <= p_c.value <= high:
        place = f"the fit has it at {p_c.value:.4g}, outside {sampled}"
        problem = f"{place}; sample {axis} on both sides of it"
    elif not p_c.error <= high - low:
        problem = f"its error, {p_c.error:.1g}, is wider than {sampled}; add samples or sizes"
    return f"no {axis}_c: {problem}" if problem else None
