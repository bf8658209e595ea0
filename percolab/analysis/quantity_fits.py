"""The table of fits of dimensionless quantities, the choice among them, and the systematic error.

Each quantity is fitted alone first, and enters what follows from its own smallest L on, since some
show corrections that no model has at sizes where others do not.

For each cut-off L_min, smallest first, every model is fitted, and the best is that with the least
chi^2 + 2 k for k parameters (H. Akaike, IEEE Trans. Autom. Control 19, 716 (1974)).  The first best
one that is accepted is taken.  A fit is accepted when chi^2 does not reject it, and when leaving
out its smallest size, with the same model, does not lower chi^2 by more than chance would: small
sizes carry the misfit, which the chi^2 of everything dilutes.  So chi^2 alone decides, never where
p_c lands.  Beside the best model of each cut-off stand fits without a correction, with omega free
and with 1/nu held: these rows are the table.

The systematic error is the spread of p_c among the accepted fits of the table: the root mean square
distance from the chosen one, weighted by 1 / error^2.  It holds chance, too, where fits leave out
much of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import chdtrc

from percolab.analysis.curve import AnalysisError
from percolab.analysis.cutoff import LEAST_SIZES
from percolab.analysis.known_exponents import Known
from percolab.analysis.observations import BlockMoments, Observations, observe, what_lacks
from percolab.analysis.quantities import Quantity
from percolab.analysis.quantity_fit import QuantityFit, fit_model
from percolab.analysis.quantity_model import JointModel, ModelChoice, Scales, scales_of
from percolab.analysis.quantity_start import Start, near_threshold
from percolab.analysis.record import plain
from percolab.analysis.selection import POOR_FIT, is_poor

#: Degrees that are tried, and corrections.
DEGREES, LADDER = (2, 3, 4), ("b", "bc", "b2", "bc2")


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


@dataclass(frozen=True)
class QuantityAnalysis:
    """The chosen joint fit, all that were tried, and the chosen fit of each quantity alone.

    systematic_error: see the module; NaN if no other fit is accepted.
    compared: how many fits it is the spread of.  alone: by quantity, from its own smallest L on.
    quantities: what was fitted.  omega_2: of the correction b_2.  samples: by size.  notes: one
    line each.  known: the exact value of each quantity at p_c, to print beside.
    """

    chosen: QuantityTrial
    trials: tuple[QuantityTrial, ...]
    alone: tuple[QuantityFit, ...]
    systematic_error: float
    compared: int
    quantities: tuple[Quantity, ...]
    omega_2: float
    samples: dict[int, int]
    notes: tuple[str, ...]
    known: tuple[Known | None, ...] = ()

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
            "alone": [fit.to_dict() for fit in self.alone],
            "fits": [trial.to_dict() for trial in self.trials],
            "notes": list(self.notes),
        }


@dataclass
class _Fitter:
    """Fits of one set of observations, each made once."""

    observations: list[Observations]
    names: list[str]
    omega_2: float
    start: Start
    scales: Scales
    made: dict[tuple[int, ModelChoice], QuantityFit | AnalysisError] = field(default_factory=dict)

    @property
    def sizes(self) -> list[int]:
        """The sizes that are there, ascending."""
        return sorted({item.L for item in self.observations})

    def beginning(self, sizes: Sequence[int]) -> _Fitter:
        """Return a fitter in which each quantity begins at a size of its own."""
        parts = [
            item.keep([index for index, size in enumerate(sizes) if size <= item.L])
            for item in self.observations
        ]
        return replace(self, observations=[part for part in parts if part], made={})

    def only(self, index: int) -> _Fitter:
        """Return a fitter of one quantity."""
        parts = [item.only(index) for item in self.observations]
        return replace(
            self,
            observations=[part for part in parts if part],
            names=[self.names[index]],
            made={},
        )

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

    def _make(self, min_size: int, choice: ModelChoice) -> QuantityFit:
        used = tuple(item for item in self.observations if min_size <= item.L)
        model = JointModel(used, choice, self.omega_2, self.scales)
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
            return QuantityTrial(fit, float("nan"))
        return QuantityTrial(fit, float(chdtrc(dof, max(fit.chi_square.value - after.value, 0.0))))


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
    """Fit several quantities together, with every cut-off that leaves LEAST_SIZES sizes.

    omegas: exponents of the leading correction, of each quantity; several of them are tried all.
    omega_2: that of b_2.  y_t: known
    value of 1/nu, for the fits in which it is held; None leaves these out.  min_size: smallest L
    to use at all.  degree, corrections: fixed if given, else chosen.

    Raises AnalysisError (one line) when the data cannot give a threshold.
    """
    moments = [item for item in moments if min_size is None or min_size <= item.L]
    sizes = _sizes(moments)
    if len(sizes) < 3:
        shown = ", ".join(f"L = {size}" for size in sizes) or "none"
        raise AnalysisError(f"need at least three sizes for a joint fit, got {shown}")
    _check(quantities, moments)
    start, near = near_threshold(moments, quantities)
    notes = _dropped(moments, near)
    _check(quantities, near, f"near p_c = {start.threshold:.4g}, ", "use a finer p grid there")
    observations = [observe(item, quantities) for item in near]
    sizes = _sizes(near)
    width = 1.0 / start.steepest / float(np.exp(np.mean(np.log(sizes)))) ** start.y_t
    scales = scales_of(observations, start.threshold, width)
    names = [item.name for item in quantities]
    fitter = _Fitter(observations, names, omega_2, start, scales)
    ladder = _ladder(degree, corrections, omegas, _most_distinct(near))
    alone: tuple[QuantityFit, ...] = ()
    if len(quantities) > 1:
        alone = tuple(_alone(fitter, i, ladder, y_t) for i in range(len(quantities)))
        fitter = fitter.beginning([fit.min_size for fit in alone])
    trials = _trials(fitter, ladder, y_t)
    chosen = _chosen(trials)
    if not chosen.accepted:
        notes.append("no fit is accepted: the last one tried is taken, its error means little")
    systematic, compared = _systematic(chosen, trials)
    return QuantityAnalysis(
        chosen=chosen,
        trials=tuple(trials),
        alone=alone or (chosen.fit,),
        systematic_error=systematic,
        compared=compared,
        quantities=tuple(quantities),
        omega_2=omega_2,
        samples={size: sum(o.samples for o in observations if size == o.L) for size in sizes},
        notes=tuple(notes),
    )


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


def _most_distinct(near: Sequence[BlockMoments]) -> int:
    """Return the largest number of different p that a size has."""
    own = ({p for item in near if size == item.L for p in item.p.tolist()} for size in _sizes(near))
    return max(len(points) for points in own)


def _ladder(
    degree: int | None, corrections: str | None, omegas: Sequence[Sequence[float]], points: int
) -> list[ModelChoice]:
    """Return the models to try; a size with so many points bears a degree of one less."""
    most = max(points - 1, 1)
    degrees = sorted({min(power, most) for power in (DEGREES if degree is None else (degree,))})
    kinds = LADDER if corrections is None else (corrections,)
    return [
        ModelChoice(power, tuple(own), kind)
        for power in degrees
        for kind in kinds
        for own in omegas
    ]


def _trials(
    fitter: _Fitter, ladder: Sequence[ModelChoice], y_t: float | None
) -> list[QuantityTrial]:
    """Return the rows of the table and the other models; AnalysisError if there is none."""
    sizes = fitter.sizes
    rows: list[QuantityTrial] = []
    failure: AnalysisError | None = None
    for size in sizes[: max(len(sizes) - LEAST_SIZES + 1, 1)]:
        own: list[QuantityTrial] = []
        for choice in ladder:
            try:
                own.append(fitter.trial(size, choice))
            except AnalysisError as error:
                failure = failure or error
        if not own:
            continue
        best = min(own, key=lambda item: item.criterion)
        rows.append(replace(best, best=True, shown=True))
        for choice in _variants(best.fit.choice, y_t):
            try:
                rows.append(replace(fitter.trial(size, choice), shown=True))
            except AnalysisError:
                continue
        shown = [item.fit.choice for item in rows if item.fit.min_size == size]
        rows += [item for item in own if item.fit.choice not in shown]
    if not rows:
        raise failure or AnalysisError("no model can be fitted")
    return rows


def _variants(best: ModelChoice, y_t: float | None) -> list[ModelChoice]:
    """Return what is shown beside the best model of a cut-off."""
    found = [replace(best, corrections="none"), replace(best, corrections="b", free_omega=True)]
    if y_t is not None:
        found.append(replace(best, y_t=y_t))
    return [item for item in found if item != best]


def _systematic(chosen: QuantityTrial, trials: Sequence[QuantityTrial]) -> tuple[float, int]:
    """Return the spread of p_c, NaN without other fits, and of how many of them it is."""
    others = [t.fit for t in trials if t is not chosen and t.shown and t.accepted]
    if not others:
        return float("nan"), 0
    weights = [fit.threshold_error**-2 for fit in others]
    squares = [(fit.threshold - chosen.fit.threshold) ** 2 for fit in others]
    return float(np.sqrt(np.average(squares, weights=weights))), len(others)


def _chosen(trials: Sequence[QuantityTrial]) -> QuantityTrial:
    """Return the first best trial that is accepted, or the last best one."""
    best = [item for item in trials if item.best]
    return next((item for item in best if item.accepted), best[-1])


def _alone(
    fitter: _Fitter, index: int, ladder: Sequence[ModelChoice], y_t: float | None
) -> QuantityFit:
    """Return the chosen fit of one quantity alone; AnalysisError if it has none."""
    choices = [replace(item, omegas=(item.omegas[index],)) for item in ladder]
    try:
        return _chosen(_trials(fitter.only(index), list(dict.fromkeys(choices)), y_t)).fit
    except AnalysisError as error:
        raise AnalysisError(f"quantity {fitter.names[index]!r} alone: {error}") from None
