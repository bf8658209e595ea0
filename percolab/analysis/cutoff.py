"""Which small sizes to leave out: the smallest cut-off L_min whose fit chi^2 does not reject.

Corrections beyond the one that is fitted show at small L once the errors are small. The cut-off is
chosen by chi^2 alone, never by where the threshold lands, and leaves enough sizes to tell a
correction from a shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from percolab.analysis.curve import AnalysisError, SpanningCurve, linear_sizes
from percolab.analysis.record import plain
from percolab.analysis.result import ThresholdFit
from percolab.analysis.selection import is_poor
from percolab.analysis.threshold import fit_threshold

#: Sizes that a cut-off leaves at least, where there are so many.
LEAST_SIZES = 4


@dataclass(frozen=True)
class Cutoff:
    """A smallest size and the fit of all sizes from there on."""

    min_size: int
    fit: ThresholdFit

    @property
    def accepted(self) -> bool:
        """Whether chi^2 does not reject the fit."""
        return not is_poor(self.fit.chi_square)

    def to_dict(self) -> dict[str, object]:
        """Return the row of the table of cut-offs as plain JSON values."""
        return {
            "min_size": self.min_size,
            "threshold": self.fit.threshold,
            "fisher_error": self.fit.fisher_error,
            "chi_square": plain(self.fit.chi_square),
            "accepted": self.accepted,
        }


def scan_cutoffs(curves: Sequence[SpanningCurve], **options: Any) -> tuple[Cutoff, ...]:
    """Fit with every cut-off that leaves at least LEAST_SIZES sizes (one, if there are fewer).

    options: as for `fit_threshold`; without a bootstrap, which changes no threshold and no chi^2.
    Raises AnalysisError when no cut-off can be fitted.
    """
    sizes = linear_sizes(curves)
    found: list[Cutoff] = []
    failure: AnalysisError | None = None
    for size in sizes[: max(len(sizes) - LEAST_SIZES + 1, 1)]:
        try:
            fit = fit_threshold(curves, **(options | {"min_size": size, "bootstrap": 0}))
        except AnalysisError as error:
            failure = failure or error
        else:
            found.append(Cutoff(size, fit))
    if not found:
        raise failure or AnalysisError("need at least two sizes to find a threshold, got none")
    return tuple(found)


def choose_cutoff(cutoffs: Sequence[Cutoff]) -> Cutoff:
    """Return the smallest accepted cut-off, or the largest if chi^2 rejects them all."""
    return next((cutoff for cutoff in cutoffs if cutoff.accepted), cutoffs[-1])
