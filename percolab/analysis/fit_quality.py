"""How well a fit describes its data, and when chi^2 rejects it."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from scipy.special import chdtrc

#: A fit whose chi^2 is less probable than this is rejected: it gives no value with an error.
REJECTED = 1e-3


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


def is_rejected(quality: ChiSquare) -> bool:
    """Return whether chi^2 contradicts a fit so clearly that its value is no answer."""
    return quality.p_value < REJECTED
