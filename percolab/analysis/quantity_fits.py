"""p_c of several dimensionless quantities: each alone, their mean, and all in one joint fit.

The table of fits.  For each cut-off L_min, smallest first, every model is fitted, and the best is
that with the least chi^2 + 2 k for k parameters (H. Akaike, IEEE Trans. Autom. Control 19, 716
(1974)).  The first best one that is accepted is taken.  A fit is accepted when chi^2 does not
reject it, and when leaving out its smallest size, with the same model, does not lower chi^2 by more
than chance would: small sizes carry the misfit, which the chi^2 of everything dilutes.  So chi^2
alone decides, never where p_c lands.  Beside the best model of each cut-off stand fits without a
correction, with omega free and with 1/nu held: these rows are the table.

The systematic error is the spread of p_c among the accepted fits of the table of the joint fit: the
root mean square distance from the chosen one, weighted by 1 / error^2.  Chance is in it as well
where fits leave out much of the data.

The mean of the quantities, each fitted alone from its own L_min on.  Quantities of the same samples
are strongly correlated.  Fitted together, what they have in common cancels, and the small
differences that are left show corrections at sizes where none of them shows any alone, so that a
joint fit must leave much of the data out.  The mean needs each quantity's own fit, no more.
Its weights are those of the least variance among all that are not negative: with negative ones p_c
would again be read off small differences.  Where the best linear unbiased estimate (L. Lyons, D.
Gibaut and P. Clifford, Nucl. Instrum. Methods A 270, 110 (1988)) has no negative weight, it is this
mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan

import numpy as np
from scipy.optimize import nnls

from percolab.analysis.fit_quality import (
    POOR_FIT,
    chi_square_p_value,
    cutoffs_of,
    first_accepted,
    fit_each,
    is_poor,
)
from percolab.analysis.json_values import plain
from percolab.analysis.quantities import (
    MIN_SIZES,
    BlockMoments,
    Observations,
    Quantity,
    observe,
    what_lacks,
)
from percolab.analysis.quantity_model import (
    JointModel,
    ModelChoice,
    QuantityFit,
    Scales,
    Start,
    fit_model,
    near_threshold,
    scales_of,
)
from percolab.analysis.statistics import Floats, format_with_error, geometric_mean, unit_diagonal
from percolab.analysis.theory.known_exponents import Known
from percolab.errors import AnalysisError
from percolab.lattices.shown import Shown, few

#: Degrees that are tried, and corrections.
DEGREES, KINDS = (2, 3, 4), ("b", "bc", "b2", "bc2")


@dataclass(frozen=True)
class QuantityTrial:
    """A row of the table of fits.

    drop: the p-value of how much chi^2 drops when the smallest size is left out, NaN if unknown.
    best: of its cut-off.  shown: best, or beside the best.
    """

    fit: QuantityFit
    drop: float
    best: bool = False
    shown: bool = False

    @property
    def criterion(self) -> float:
        """chi^2 + 2 k, which is least for the best model."""
        quality = self.fit.chi_square
        return quality.value + 2 * (self.fit.points - quality.dof)

    @property
    def accepted(self) -> bool:
        """Whether chi^2 rejects neither the fit nor its smallest size."""
        return not (is_poor(self.fit.chi_square) or self.drop < POOR_FIT)

    def to_dict(self) -> dict[str, object]:
        """Return the row as plain JSON values."""
        drop = self.drop if np.isfinite(self.drop) else None
        return self.fit.to_dict() | {
            "drop_p_value": drop,
            "accepted": self.accepted,
            "best": self.best,
            "shown": self.shown,
        }


@dataclass
class Fitter:
    """Fits of one set of observations, each made once."""

    observations: list[Observations]
    names: list[str]
    omega_2: float
    start: Start
    scales: Scales
    made: dict[tuple[int, ModelChoice], QuantityFit | AnalysisError] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        near: Sequence[BlockMoments],
        quantities: Sequence[Quantity],
        start: Start,
        omega_2: float,
    ) -> Fitter:
        """Return the fitter of moments near p_c; AnalysisError as observe."""
        observations = [observe(item, quantities) for item in near]
        sizes = sorted({item.L for item in near})
        width = 1.0 / start.steepest / geometric_mean(sizes) ** start.y_t
        scales = scales_of(observations, start.threshold, width)
        return cls(observations, [item.name for item in quantities], omega_2, start, scales)

    @property
    def sizes(self) -> list[int]:
        """The sizes that are there, ascending."""
        return sorted({item.L for item in self.observations})

    def only(self, index: int) -> Fitter:
        """Return a fitter of one quantity."""
        parts = [item.only(index) for item in self.observations if np.any(item.quantity == index)]
        return replace(self, observations=parts, names=[self.names[index]], made={})

    def fit(self, min_size: int, choice: ModelChoice) -> QuantityFit:
        """Return a fit from a smallest size on; AnalysisError as fit_model."""
        key = (min_size, choice)
        if key not in self.made:
            try:
                self.made[key] = self._make(min_size, choice)
            except AnalysisError as error:
                self.made[key] = error
        found = self.made[key]
        if isinstance(found, AnalysisError):
            raise found
        return found

    def model(self, min_size: int, choice: ModelChoice) -> JointModel:
        """Return the model of a fit from a smallest size on."""
        used = tuple(item for item in self.observations if min_size <= item.L)
        return JointModel(used, choice, self.omega_2, self.scales)

    def _make(self, min_size: int, choice: ModelChoice) -> QuantityFit:
        model = self.model(min_size, choice)
        first = [(self.start.threshold - self.scales.p_0) / self.scales.width, self.start.y_t]
        outer = [*first[: 1 + (choice.y_t is None)], *(model.groups if choice.free_omega else ())]
        return fit_model(model, np.array(outer), self.names)

    def trial(self, min_size: int, choice: ModelChoice) -> QuantityTrial:
        """Return a fit with what leaving out its smallest size does to chi^2."""
        fit = self.fit(min_size, choice)
        larger = [size for size in self.sizes if size > min_size]
        try:
            after = self.fit(larger[0], choice).chi_square if larger else None
        except AnalysisError:
            after = None
        dof = fit.chi_square.dof - after.dof if after else 0
        if after is None or dof <= 0:
            return QuantityTrial(fit, nan)
        fall = max(fit.chi_square.value - after.value, 0.0)
        return QuantityTrial(fit, chi_square_p_value(fall, dof))


def models_to_try(
    degree: int | None,
    corrections: str | None,
    omegas: Sequence[Sequence[float]],
    near: Sequence[BlockMoments],
) -> list[ModelChoice]:
    """Return the models to try; a size with so many different p bears a degree of one less."""
    sizes = {item.L for item in near}
    own = ({p for item in near if size == item.L for p in item.p.tolist()} for size in sizes)
    points = max(len(each) for each in own)
    most = max(points - 1, 1)
    degrees = sorted({min(power, most) for power in (DEGREES if degree is None else (degree,))})
    kinds = KINDS if corrections is None else (corrections,)
    return [
        ModelChoice(power, tuple(each), kind)
        for power in degrees
        for kind in kinds
        for each in omegas
    ]


def table_of_fits(
    fitter: Fitter, models: Sequence[ModelChoice], y_t: float | None
) -> list[QuantityTrial]:
    """Return the rows of the table and the other models; AnalysisError if there is none."""
    found: list[QuantityTrial] = []
    failure: AnalysisError | None = None
    for size in cutoffs_of(fitter.sizes):
        own, problem = fit_each(models, partial(fitter.trial, size))
        failure = failure or problem
        if own:
            found += _with_rows(fitter, size, own, y_t)
    if not found:
        raise failure or AnalysisError("no model can be fitted")
    return found


def _with_rows(
    fitter: Fitter, size: int, own: Sequence[QuantityTrial], y_t: float | None
) -> list[QuantityTrial]:
    """Return the rows of one cut-off, the best of its models first, and the other models."""
    best = min(own, key=lambda item: item.criterion)
    beside, _ = fit_each(_variants(best.fit.choice, y_t), partial(fitter.trial, size))
    rows = [replace(best, best=True), *beside]
    shown = [item.fit.choice for item in rows]
    others = [item for item in own if item.fit.choice not in shown]
    return [replace(item, shown=True) for item in rows] + others


def _variants(best: ModelChoice, y_t: float | None) -> list[ModelChoice]:
    """Return what is shown beside the best model of a cut-off."""
    found = [replace(best, corrections="none"), replace(best, corrections="b", free_omega=True)]
    if y_t is not None:
        found.append(replace(best, y_t=y_t))
    return [item for item in found if item != best]


def choose_trial(trials: Sequence[QuantityTrial]) -> QuantityTrial:
    """Return the first best trial that is accepted, or the last best one."""
    return first_accepted(item for item in trials if item.best)


@dataclass(frozen=True)
class QuantityMean:
    """A weighted mean of p_c and its statistical error, one sigma.

    weights: of each quantity, at least 0, their sum 1.  spread: of the quantities' p_c about the
    mean, root mean square with weights 1 / error^2; chance is in it, too.  correlations: of the
    quantities' p_c.  Of quantities whose fit is not accepted, weights and correlations are 0.
    """

    threshold: float
    error: float
    spread: float
    weights: tuple[float, ...]
    correlations: tuple[tuple[float, ...], ...]


def mean_threshold(fitter: Fitter, alone: Sequence[QuantityFit | None]) -> QuantityMean | None:
    """Return the mean of the fits of single quantities, None where a fit does not count.

    fitter: that of all quantities together.  None if fewer than two fits count.
    """
    used = [index for index, fit in enumerate(alone) if fit is not None]
    fits = [fit for fit in alone if fit is not None]
    if len(fits) < 2:
        return None
    p_c = np.array([fit.threshold for fit in fits])
    errors = np.array([fit.threshold_error for fit in fits])
    correlation = _correlation(fitter, used, fits)
    covariance = correlation * np.outer(errors, errors)
    weights = least_variance(covariance)
    threshold = float(weights @ p_c)
    squares = (p_c - threshold) ** 2
    every = np.zeros(len(alone))
    every[used] = weights
    correlations = np.zeros((len(alone), len(alone)))
    correlations[np.ix_(used, used)] = correlation
    return QuantityMean(
        threshold=threshold,
        error=float(np.sqrt(weights @ covariance @ weights)),
        spread=float(np.sqrt(np.average(squares, weights=errors**-2))),
        weights=tuple(every.tolist()),
        correlations=tuple(tuple(row) for row in correlations.tolist()),
    )


def least_variance(covariance: Floats) -> Floats:
    """Return the weights >= 0 of sum 1 with the least variance; covariance: float64 (k, k).

    Of all weights with a given sum those of the least variance are the same but for a factor; so a
    sum that is only drawn towards 1 does not change them, once they are divided by it.
    """
    scale = float(np.mean(np.diag(covariance)))
    root = np.linalg.cholesky(covariance / scale)
    target = np.append(np.zeros(len(root)), 1.0)
    weights, _ = nnls(np.vstack([root.T, np.ones(len(root))]), target)
    return np.asarray(weights / weights.sum(), np.float64)


def _correlation(fitter: Fitter, used: Sequence[int], fits: Sequence[QuantityFit]) -> Floats:
    """Return the correlations of p_c from quantities that are fitted alone, float64 (k, k).

    To first order the p_c of a fit is a linear function of its values, and the values of all
    quantities have one covariance.
    """
    parts = [_derivatives(fitter, index, fit) for index, fit in zip(used, fits, strict=True)]
    covariance = np.zeros((len(used), len(used)))
    for number, item in enumerate(fitter.observations):
        of_values = np.zeros((len(used), item.values.size))
        for row, (index, own) in enumerate(zip(used, parts, strict=True)):
            if number in own:
                of_values[row, item.quantity == index] = own[number]
        of_combined = of_values @ np.linalg.pinv(item.combine)
        covariance += of_combined @ item.covariance @ of_combined.T
    return unit_diagonal(covariance)[0]


def _derivatives(fitter: Fitter, index: int, fit: QuantityFit) -> dict[int, Floats]:
    """Return what p_c of a quantity alone changes with each of its values, by observation."""
    model = fitter.only(index).model(fit.min_size, fit.choice)
    theta = model.linear_fit(np.array(fit.outer))
    of_residuals = np.linalg.pinv(model.jacobian(theta))[0]
    numbers = [
        number
        for number, item in enumerate(fitter.observations)
        if fit.min_size <= item.L and np.any(item.quantity == index)
    ]
    ends = np.cumsum([item.dimension for item in model.observations])[:-1]
    pieces = np.split(of_residuals, ends)
    return {
        number: piece @ item.whiten
        for number, piece, item in zip(numbers, pieces, model.observations, strict=True)
    }


@dataclass(frozen=True, repr=False)
class QuantityAnalysis(Shown):
    """The chosen joint fit, all that were tried, and the chosen fit of each quantity alone.

    systematic_error: see the module; NaN if no other fit is accepted.
    compared: how many fits it is the spread of.  alone: by quantity, from its own smallest L on;
    None where there is no fit.  mean: of these; None if fewer than two are accepted.
    quantities: what was fitted.  omega_2: of the correction b_2.  samples: by size.  notes: one
    line each.  known: the exact value of each quantity at p_c, to print beside.
    """

    chosen: QuantityTrial
    trials: tuple[QuantityTrial, ...]
    alone: tuple[QuantityTrial | None, ...]
    mean: QuantityMean | None
    systematic_error: float
    compared: int
    quantities: tuple[Quantity, ...]
    omega_2: float
    samples: dict[int, int]
    notes: tuple[str, ...]
    known: tuple[Known | None, ...] = ()

    def _facts(self) -> dict[str, object]:
        return {
            "p_c": format_with_error(self.threshold, self.threshold_error),
            "systematic error": f"{self.systematic_error:.2g}",
            "quantities": ", ".join(item.name for item in self.quantities),
            "L": few(sorted(self.samples)),
            **{f"note {n}": note for n, note in enumerate(self.notes, 1)},
        }

    @property
    def threshold(self) -> float:
        """The threshold p_c."""
        return self.chosen.fit.threshold

    @property
    def threshold_error(self) -> float:
        """Its statistical error, one sigma."""
        return self.chosen.fit.threshold_error

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        return {
            "threshold": self.threshold,
            "threshold_error": self.threshold_error,
            "systematic_error": plain(self.systematic_error),
            "compared": self.compared,
            "omega_2": self.omega_2,
            "samples": plain(self.samples),
            "definitions": [
                {key: getattr(item, key) for key in ("name", "symbol", "meaning", "source")}
                for item in self.quantities
            ],
            "known": plain(self.known),
            "chosen": self.chosen.to_dict(),
            "alone": [trial and trial.to_dict() for trial in self.alone],
            "mean": plain(self.mean),
            "fits": [trial.to_dict() for trial in self.trials],
            "notes": list(self.notes),
        }


def analyse_quantities(
    moments: Sequence[BlockMoments],
    quantities: Sequence[Quantity],
    *,
    omegas: Sequence[Sequence[float]],
    omega_2: float,
    y_t: float | None = None,
    min_size: int | None = None,
    degree: int | None = None,
    corrections: str | None = None,
) -> QuantityAnalysis:
    """Fit several quantities together, with every cut-off of :func:`cutoffs_of`.

    omegas: exponents of the leading correction, of each quantity; several of them are tried all.
    omega_2: that of b_2.  y_t: known value of 1/nu, for the fits in which it is held; None leaves
    these out.  min_size: smallest L to use at all.  degree, corrections: fixed if given, else
    chosen.

    Raises AnalysisError (one line) when the data cannot give a threshold.
    """
    moments = [item for item in moments if min_size is None or min_size <= item.L]
    start, near = _near_threshold(moments, quantities)
    fitter = Fitter.of(near, quantities, start, omega_2)
    models = models_to_try(degree, corrections, omegas, near)
    trials = table_of_fits(fitter, models, y_t)
    chosen = choose_trial(trials)
    alone: list[QuantityTrial | None] = [chosen]
    if len(quantities) > 1:
        alone = [alone_of(fitter, index, models, y_t) for index in range(len(quantities))]
    systematic, compared = _systematic(chosen, trials)
    return QuantityAnalysis(
        chosen=chosen,
        trials=tuple(trials),
        alone=tuple(alone),
        mean=mean_of(fitter, alone),
        systematic_error=systematic,
        compared=compared,
        quantities=tuple(quantities),
        omega_2=omega_2,
        samples={
            size: sum(item.samples for item in fitter.observations if size == item.L)
            for size in fitter.sizes
        },
        notes=(*_dropped(moments, near), *_rejected(chosen, quantities, alone)),
    )


def _near_threshold(
    moments: Sequence[BlockMoments], quantities: Sequence[Quantity]
) -> tuple[Start, list[BlockMoments]]:
    """Return the start of a fit, and the moments near p_c; AnalysisError: there are too few."""
    sizes = _sizes(moments)
    if len(sizes) < MIN_SIZES:
        shown = ", ".join(f"L = {size}" for size in sizes) or "none"
        raise AnalysisError(f"need at least three sizes for a joint fit, got {shown}")
    _check(quantities, moments)
    start, near = near_threshold(moments, quantities)
    _check(quantities, near, f"near p_c = {start.threshold:.4g}, ", "use a finer p grid there")
    return start, near


def _check(
    quantities: Sequence[Quantity],
    moments: Sequence[BlockMoments],
    where: str = "",
    advice: str = "leave it out",
) -> None:
    """Raise AnalysisError for a quantity that cannot be fitted."""
    for item in quantities:
        if lack := what_lacks(item, moments):
            raise AnalysisError(f"{where}{lack}: {advice}")


def _sizes(moments: Sequence[BlockMoments]) -> list[int]:
    return sorted({item.L for item in moments})


def _dropped(moments: Sequence[BlockMoments], near: Sequence[BlockMoments]) -> list[str]:
    """Return notes on the p that were left out."""
    lost = [size for size in _sizes(moments) if size not in _sizes(near)]
    notes = [f"L = {size} not used: none of its p is near p_c" for size in lost]
    before, after = (sum(item.p.size for item in items) for items in (moments, near))
    if after < before:
        notes.append(
            f"{before - after} of {before} p (of all sizes) are too far from p_c to be used"
        )
    return notes


def _rejected(
    chosen: QuantityTrial,
    quantities: Sequence[Quantity],
    alone: Sequence[QuantityTrial | None],
) -> list[str]:
    """Return notes on fits that chi^2 rejects; alone: of each quantity, of one that of all."""
    notes = []
    if not chosen.accepted:
        notes.append("no fit is accepted: the last one tried is taken, its error means little")
    if len(quantities) > 1:
        notes += [
            f"{item.name} alone: no fit is accepted"
            for item, trial in zip(quantities, alone, strict=True)
            if trial is None or not trial.accepted
        ]
    return notes


def _systematic(chosen: QuantityTrial, trials: Sequence[QuantityTrial]) -> tuple[float, int]:
    """Return the spread of p_c, NaN without other fits, and of how many of them it is."""
    others = [t.fit for t in trials if t is not chosen and t.shown and t.accepted]
    if not others:
        return nan, 0
    weights = [fit.threshold_error**-2 for fit in others]
    squares = [(fit.threshold - chosen.fit.threshold) ** 2 for fit in others]
    return float(np.sqrt(np.average(squares, weights=weights))), len(others)


def alone_of(
    fitter: Fitter, index: int, models: Sequence[ModelChoice], y_t: float | None
) -> QuantityTrial | None:
    """Return the chosen fit of one quantity alone, None if it has none."""
    choices = dict.fromkeys(replace(item, omegas=(item.omegas[index],)) for item in models)
    try:
        return choose_trial(table_of_fits(fitter.only(index), list(choices), y_t))
    except AnalysisError:
        return None


def mean_of(fitter: Fitter, alone: Sequence[QuantityTrial | None]) -> QuantityMean | None:
    """Return the mean of the quantities whose fit alone is accepted; None of fewer than two."""
    fits = [trial.fit if trial and trial.accepted else None for trial in alone]
    return mean_threshold(fitter, fits)
