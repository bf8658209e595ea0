"""A number with its error, and how well the fit that gives it describes the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import erfc, hypot, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

from percolab.analysis.json_values import plain

if TYPE_CHECKING:
    from percolab.analysis.theory.known_exponents import Known

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
        if dof <= 1:
            return cls(value, dof, erfc(sqrt(max(value, 0.0) / 2)) if dof else nan)
        # Imported here, because the fit of two sizes in the plane works without scipy.
        from scipy.special import chdtrc

        return cls(value, dof, float(chdtrc(dof, value)))

    @property
    def cells(self) -> tuple[str, str]:
        """chi^2 over its degrees of freedom, and the p-value, "-" without freedom, as texts."""
        return (
            f"{self.value:.1f}/{self.dof}",
            f"{self.p_value:.2g}" if isfinite(self.p_value) else "-",
        )

    @property
    def rejects(self) -> bool:
        """Whether it contradicts the fit so clearly that its value has no meaning."""
        return self.p_value < REJECTED

    def __str__(self) -> str:
        return "chi2/dof {}, p-value {}".format(*self.cells)


#: A relative error this small is rounding in the arithmetic of equal numbers.
_ROUNDING = 1e-15


def format_with_error(value: float, error: float) -> str:
    """Write a value with its one-sigma error in units of the last digits, two digits of error.

    An error that is zero or not finite is left out.  So is one that is no more than rounding; then
    all 15 digits are written.  A value that is not finite is "-".

    >>> format_with_error(0.652706, 0.000131)
    '0.65271(13)'
    >>> format_with_error(12.34, 1.42)
    '12.3(1.4)'
    >>> format_with_error(3.0, 3e-17), format_with_error(0.524404999167448, 1e-17)
    ('3', '0.524404999167448')
    """
    if not isfinite(value):
        return "-"
    if not isfinite(error) or error <= 0:
        return f"{value:.6g}"
    if error <= _ROUNDING * abs(value):
        return f"{value:.15g}"
    # Two digits after rounding: 0.0996 is 0.10, not 0.100.
    exponent = int(f"{error:.1e}".split("e")[1])
    decimals = 1 - exponent
    if decimals < 0:
        return f"{round(value, decimals):.0f}({round(error, decimals):.0f})"
    shown = f"{error:.{decimals}f}" if exponent >= 0 else f"{error * 10**decimals:.0f}"
    return f"{value:.{decimals}f}({shown})"


def published_text(known: Known, value: Value | None = None) -> str:
    """Return a published number, its source, and a value's distance from it in combined errors."""
    number = format_with_error(known.value, known.error) if known.error else f"{known.value:.12g}"
    text = "  ".join(
        filter(None, (f"published {number}", known.expression, f"({known.reference})"))
    )
    deviation = nan if value is None else value.deviation(known)
    return f"{text}: {deviation:+.1f} sigma" if isfinite(deviation) else text


@dataclass(frozen=True)
class Value:
    """A mean or a fitted number with its error, one sigma.

    statistical_error: of a fit the part that other samples would change, NaN where it is unknown.
    chi_square: of the best fit, None of a mean.  members: number of averaged fits.
    """

    value: float
    error: float
    statistical_error: float = nan
    chi_square: ChiSquare | None = None
    members: int = 0

    @property
    def systematic_error(self) -> float:
        """The part of the error that priors and averaging add."""
        return sqrt(max(self.error**2 - self.statistical_error**2, 0.0))

    @property
    def quality(self) -> ChiSquare:
        assert self.chi_square is not None
        return self.chi_square

    @property
    def rejected(self) -> bool:
        """Whether chi^2 rejects the best fit; then the error has no meaning."""
        return self.chi_square is not None and self.chi_square.rejects

    def scaled(self, value: float, slope: float) -> Value:
        """Return a function of this value, which has this slope."""
        errors = abs(slope) * self.error, abs(slope) * self.statistical_error
        return Value(value, *errors, self.chi_square, self.members)

    def deviation(self, known: Known | None) -> float:
        """Return the distance from a known value in combined errors; NaN without one."""
        if known is None or self.rejected:
            return nan
        return (self.value - known.value) / (hypot(self.error, known.error) or nan)

    @property
    def cells(self) -> tuple[str, str, str]:
        """The value with its whole error, and both parts of the error, as texts."""
        parts = (self.statistical_error, self.systematic_error)
        if self.rejected or not all(map(isfinite, parts)):
            return str(self), "", ""
        return str(self), f"+- {parts[0]:.2g}", f"+- {parts[1]:.2g}"

    def __str__(self) -> str:
        """Return the value with its error, or that chi^2 rejects the fit."""
        if self.rejected:
            return f"rejected by chi^2, p-value {self.quality.p_value:.1g}"
        return format_with_error(self.value, self.error)

    def to_dict(self, name: str = "value", error: str = "error") -> dict[str, Any]:
        """Return plain JSON values, for a mean only two; name, error: the keys of these two."""
        record: dict[str, Any] = {name: self.value, error: self.error}
        if self.chi_square is not None:
            more = ("statistical_error", "chi_square", "members", "systematic_error")
            record = {"rejected": self.rejected, **record}
            record |= {key: getattr(self, key) for key in more}
        return {key: plain(number) for key, number in record.items()}


def list_rejections(
    values: Iterable[tuple[str, Value | None]], what: str = "its best fit"
) -> list[str]:
    """Return a line for each named value whose best fit (called `what`) chi^2 rejects."""
    return [
        f"{name}: chi^2 rejects even {what} (p-value {value.quality.p_value:.1e}), "
        "so it has no answer"
        for name, value in values
        if value is not None and value.rejected
    ]


#: The value of a parameter that the data do not determine.
NO_VALUE = Value(nan, nan, nan, ChiSquare(0.0, 0, nan))
