"""Which threshold fit to believe: the table of fits against L_min, degree and corrections.

Corrections beyond the one that is fitted, and powers of p - p_c beyond the cubic, show once the
errors are small. The rule: for each cut-off L_min, smallest first, models are tried from the
simplest on until chi^2 does not reject one; the first accepted fit is taken. So a term is added
before a size is dropped, chi^2 alone decides, never where the threshold lands, and enough sizes
are left to tell a correction from a shift. How fits are shown: J. Wang et al., Phys. Rev. E 87,
052107 (2013), tables of fits by cut-off and corrections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from percolab.analysis.curves import SpanningCurve, linear_sizes
from percolab.analysis.fit_quality import cutoffs_of, first_accepted, fit_each, is_poor
from percolab.analysis.json_values import plain
from percolab.analysis.threshold import ThresholdFit, fit_threshold
from percolab.errors import AnalysisError

#: Degrees of the polynomial that are tried.
DEGREES = (3, 4, 5)


@dataclass(frozen=True)
class Trial:
    """A row of the table of fits: a smallest size, and one model fitted to all sizes from there.

    degree: that was asked for; few points may have lowered that of the fit.
    """

    min_size: int
    degree: int
    fit: ThresholdFit

    @property
    def accepted(self) -> bool:
        """Whether chi^2 does not reject the fit."""
        return not is_poor(self.fit.chi_square)

    @property
    def model(self) -> dict[str, Any]:
        """The options of :func:`fit_threshold` that give this fit again."""
        return {"min_size": self.min_size, "degree": self.degree, "mixed": self.fit.with_mixed}

    def to_dict(self) -> dict[str, object]:
        """Return the row of the table of fits as plain JSON values; errors are of the curvature."""
        return {
            "min_size": self.min_size,
            "degree": self.fit.degree,
            "corrections": self.fit.corrections,
            "threshold": self.fit.threshold,
            "fisher_error": self.fit.fisher_error,
            "y_t": self.fit.y_t,
            "y_t_fisher_error": self.fit.y_t_fisher_error,
            "chi_square": plain(self.fit.chi_square),
            "accepted": self.accepted,
        }


def models_of(*, degree: int | None, mixed: bool | None) -> list[tuple[int, bool]]:
    """Return the models to try as (degree, mixed), simplest first: by parameters, then by degree.

    What is given is fixed, what is None is varied.

    >>> models_of(degree=None, mixed=None)
    [(3, False), (3, True), (4, False), (4, True), (5, False), (5, True)]
    """
    degrees = DEGREES if degree is None else (degree,)
    kinds = (False, True) if mixed is None else (mixed,)
    found = [(power, kind) for power in degrees for kind in kinds]
    return sorted(found, key=lambda model: (sum(model), model))


def try_fits(
    curves: Sequence[SpanningCurve],
    *,
    degree: int | None = None,
    mixed: bool | None = None,
    correction: bool = True,
    every: bool = False,
    cutoffs: Sequence[int] | None = None,
    **options: Any,
) -> tuple[Trial, ...]:
    """Fit with every cut-off of :func:`percolab.analysis.fit_quality.cutoffs_of`.

    For a cut-off the models of :func:`models_of` are tried until chi^2 accepts one, or with
    `every` all of them. What the data cannot tell apart, because they have too few points or
    sizes, is tried once. cutoffs: smallest sizes to try instead. options: as for `fit_threshold`;
    without a bootstrap, which changes no threshold and no chi^2. Raises AnalysisError when nothing
    can be fitted.
    """
    models = models_of(degree=degree, mixed=mixed if correction else False)
    sizes = cutoffs_of(linear_sizes(curves)) if cutoffs is None else cutoffs
    fixed = options | {"correction": correction, "bootstrap": 0}
    found: list[Trial] = []
    failure: AnalysisError | None = None
    for size in sizes:
        own, problem = fit_each(
            models,
            partial(_trial, curves, fixed, size),
            until=lambda trial: trial.accepted and not every,
        )
        found += _distinct(own)
        failure = failure or problem
    if not found:
        raise failure or AnalysisError("need at least two sizes to find a threshold, got none")
    return tuple(found)


def _trial(
    curves: Sequence[SpanningCurve], fixed: dict[str, Any], size: int, model: tuple[int, bool]
) -> Trial:
    degree, mixed = model
    own = {"min_size": size, "degree": degree, "mixed": mixed}
    return Trial(size, degree, fit_threshold(curves, **fixed | own))


def _distinct(trials: Sequence[Trial]) -> list[Trial]:
    """Return the first trial of every model: few points may have made two degrees one."""
    first: dict[tuple[int, bool], Trial] = {}
    for trial in trials:
        first.setdefault((trial.fit.degree, trial.fit.with_mixed), trial)
    return list(first.values())


def choose_fit(trials: Sequence[Trial]) -> Trial:
    """Return the first accepted fit, or the last if chi^2 rejects them all."""
    return first_accepted(trials)


def best_by_size(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return for each cut-off its first accepted fit, or its last if chi^2 rejects them all."""
    sizes = sorted({trial.min_size for trial in trials})
    return tuple(choose_fit([item for item in trials if item.min_size == size]) for size in sizes)
