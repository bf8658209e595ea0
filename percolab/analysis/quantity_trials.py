"""Fits of dimensionless quantities with every cut-off L_min and every model, and the choice of one.

For each cut-off, smallest first, every model is fitted, and the best is that with the least
chi^2 + 2 k for k parameters (H. Akaike, IEEE Trans. Autom. Control 19, 716 (1974)).  The first best
one that is accepted is taken.  A fit is accepted when chi^2 does not reject it, and when leaving
out its smallest size, with the same model, does not lower chi^2 by more than chance would: small
sizes carry the misfit, which the chi^2 of everything dilutes.  So chi^2 alone decides, never where
p_c lands.  Beside the best model of each cut-off stand fits without a correction, with omega free
and with 1/nu held: these rows are the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import chdtrc

from percolab.analysis.cutoff import LEAST_SIZES
from percolab.analysis.observations import BlockMoments, Observations, observe
from percolab.analysis.quantities import Quantity
from percolab.analysis.quantity_fit import QuantityFit, fit_model
from percolab.analysis.quantity_model import JointModel, ModelChoice, Scales, scales_of
from percolab.analysis.quantity_start import Start
from percolab.analysis.selection import POOR_FIT, is_poor
from percolab.errors import AnalysisError

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
        width = 1.0 / start.steepest / float(np.exp(np.mean(np.log(sizes)))) ** start.y_t
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
            return QuantityTrial(fit, float("nan"))
        return QuantityTrial(fit, float(chdtrc(dof, max(fit.chi_square.value - after.value, 0.0))))


def ladder_of(
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
    kinds = LADDER if corrections is None else (corrections,)
    return [
        ModelChoice(power, tuple(each), kind)
        for power in degrees
        for kind in kinds
        for each in omegas
    ]


def trials_of(
    fitter: Fitter, ladder: Sequence[ModelChoice], y_t: float | None
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


def chosen_of(trials: Sequence[QuantityTrial]) -> QuantityTrial:
    """Return the first best trial that is accepted, or the last best one."""
    best = [item for item in trials if item.best]
    return next((item for item in best if item.accepted), best[-1])
