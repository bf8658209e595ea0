"""How well a fit describes its data, and which of several fits is taken.

Several fits are made everywhere here: from several smallest sizes on, with more and fewer terms.
They are tried in a fixed order, and the first that chi^2 does not reject is taken.  So chi^2 alone
decides, never the number that a fit is made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Protocol, TypeVar

from scipy.special import chdtrc

from percolab.errors import AnalysisError

#: A fit whose chi^2 is less probable than this is called poor, and its cut-off L_min is refused.
POOR_FIT = 0.05

#: A fit whose chi^2 is less probable than this is rejected: it gives no value with an error.
REJECTED = 1e-3

#: Sizes that a cut-off leaves at least, where there are so many.
LEAST_SIZES = 4


@dataclass(frozen=True)
class ChiSquare:
    """Pearson's chi^2 of a fit, its degrees of freedom and p-value (NaN without freedom)."""

    value: float
    dof: int
    p_value: float

    @classmethod
    def of(cls, value: float, dof: int) -> ChiSquare:
        """Return a chi^2 with its p-value."""
        return cls(value, dof, chi_square_p_value(value, dof))


def chi_square_p_value(value: float, dof: int) -> float:
    """Return how probable a chi^2 of at least `value` is; NaN without degrees of freedom.

    >>> round(chi_square_p_value(1.0, 2), 6)
    0.606531
    """
    return float(chdtrc(dof, value)) if dof else nan


def is_poor(quality: ChiSquare) -> bool:
    """Return whether chi^2 rejects a fit; one without degrees of freedom cannot be rejected."""
    return quality.p_value < POOR_FIT


def is_rejected(quality: ChiSquare) -> bool:
    """Return whether chi^2 contradicts a fit so clearly that its value is no answer."""
    return quality.p_value < REJECTED


class Judged(Protocol):
    """A fit that is accepted, or rejected by its chi^2."""

    @property
    def accepted(self) -> bool:
        """Whether chi^2 does not reject the fit."""


Candidate = TypeVar("Candidate")
Fit = TypeVar("Fit")
JudgedFit = TypeVar("JudgedFit", bound=Judged)


def cutoffs_of(sizes: Sequence[int], least: int = LEAST_SIZES) -> Sequence[int]:
    """Return the smallest sizes to fit from: all that leave `least` sizes, or the first alone.

    sizes: ascending.

    >>> cutoffs_of([8, 16, 32, 64, 128]), cutoffs_of([8, 16])
    ([8, 16], [8])
    """
    return sizes[: max(len(sizes) - least + 1, 1)]


def fit_each(
    candidates: Iterable[Candidate],
    make: Callable[[Candidate], Fit],
    *,
    until: Callable[[Fit], bool] = lambda _: False,
) -> tuple[list[Fit], AnalysisError | None]:
    """Fit candidates in their order, up to the first fit for which `until` holds.

    Those for which `make` raises AnalysisError are left out; the first such error is returned
    beside the fits, or None.
    """
    found: list[Fit] = []
    failure: AnalysisError | None = None
    for candidate in candidates:
        try:
            fit = make(candidate)
        except AnalysisError as error:
            failure = failure or error
            continue
        found.append(fit)
        if until(fit):
            break
    return found, failure


def first_accepted(fits: Iterable[JudgedFit]) -> JudgedFit:
    """Return the first accepted of at least one fit, or the last if chi^2 rejects them all.

    Fits of an iterator are made as far as they are looked at.
    """
    for fit in fits:
        last = fit
        if fit.accepted:
            break
    return last
