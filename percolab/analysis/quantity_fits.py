"""p_c of several dimensionless quantities: each alone, their mean, and all in one joint fit.

:mod:`percolab.analysis.quantity_trials` makes the table of fits and chooses among them, for each
quantity alone and for all together.  The systematic error is the spread of p_c among the accepted
fits of the table of the joint fit: the root mean square distance from the chosen one, weighted by
1 / error^2.  It holds chance, too, where fits leave out much of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from percolab.analysis.known_exponents import Known
from percolab.analysis.observations import BlockMoments, what_lacks
from percolab.analysis.quantities import Quantity
from percolab.analysis.quantity_mean import QuantityMean, mean_threshold
from percolab.analysis.quantity_model import ModelChoice
from percolab.analysis.quantity_start import near_threshold
from percolab.analysis.quantity_trials import Fitter, QuantityTrial, chosen_of, ladder_of, trials_of
from percolab.analysis.record import plain
from percolab.errors import AnalysisError


@dataclass(frozen=True)
class QuantityAnalysis:
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
    """Fit several quantities together, with every cut-off that leaves LEAST_SIZES sizes.

    omegas: exponents of the leading correction, of each quantity; several of them are tried all.
    omega_2: that of b_2.  y_t: known value of 1/nu, for the fits in which it is held; None leaves
    these out.  min_size: smallest L to use at all.  degree, corrections: fixed if given, else
    chosen.

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
    fitter = Fitter.of(near, quantities, start, omega_2)
    names, observations = fitter.names, fitter.observations
    ladder = ladder_of(degree, corrections, omegas, near)
    trials = trials_of(fitter, ladder, y_t)
    chosen = chosen_of(trials)
    if not chosen.accepted:
        notes.append("no fit is accepted: the last one tried is taken, its error means little")
    alone: list[QuantityTrial | None] = [chosen]
    if len(names) > 1:
        alone = [alone_of(fitter, index, ladder, y_t) for index in range(len(names))]
        notes += [
            f"{name} alone: no fit is accepted"
            for name, trial in zip(names, alone, strict=True)
            if trial is None or not trial.accepted
        ]
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
            size: sum(o.samples for o in observations if size == o.L) for size in fitter.sizes
        },
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


def _systematic(chosen: QuantityTrial, trials: Sequence[QuantityTrial]) -> tuple[float, int]:
    """Return the spread of p_c, NaN without other fits, and of how many of them it is."""
    others = [t.fit for t in trials if t is not chosen and t.shown and t.accepted]
    if not others:
        return float("nan"), 0
    weights = [fit.threshold_error**-2 for fit in others]
    squares = [(fit.threshold - chosen.fit.threshold) ** 2 for fit in others]
    return float(np.sqrt(np.average(squares, weights=weights))), len(others)


def alone_of(
    fitter: Fitter, index: int, ladder: Sequence[ModelChoice], y_t: float | None
) -> QuantityTrial | None:
    """Return the chosen fit of one quantity alone, None if it has none."""
    choices = dict.fromkeys(replace(item, omegas=(item.omegas[index],)) for item in ladder)
    try:
        return chosen_of(trials_of(fitter.only(index), list(choices), y_t))
    except AnalysisError:
        return None


def mean_of(fitter: Fitter, alone: Sequence[QuantityTrial | None]) -> QuantityMean | None:
    """Return the mean of the quantities whose fit alone is accepted; None of fewer than two."""
    fits = [trial.fit if trial and trial.accepted else None for trial in alone]
    return mean_threshold(fitter, fits)
