"""p_c of several dimensionless quantities: all in one joint fit, and each alone.

The model of :mod:`percolab.analysis.quantity_model` is fitted with degrees 3 to 5 and from several
smallest sizes on, and the fits are averaged (:mod:`percolab.analysis.averaging`).  1/nu is a prior
of p_c where it is known, and is reported from fits in which it is free.  Fits of each quantity
alone show whether the quantities agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from percolab.analysis.averaging import (
    FittedThreshold,
    ThresholdAverage,
    assess_threshold,
    average_three_times,
)
from percolab.analysis.json_values import Part, Record
from percolab.analysis.quantities import (
    MIN_SIZES,
    BlockMoments,
    Observations,
    Quantity,
    RedundantQuantityError,
    find_lack,
    observe,
)
from percolab.analysis.quantity_model import (
    JointMaximum,
    JointModel,
    Start,
    fit_joint,
    near_threshold,
)
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import DEGREES
from percolab.analysis.value import NO_VALUE, Value
from percolab.errors import AnalysisError


@dataclass(frozen=True)
class QuantityValue(Record):
    """The results of the joint fit for one quantity.

    at_p_c: Q at p_c for large L, also critical and critical_error.  slope, correction, mixed: a_1,
    b and c of the fit of the largest weight.  omega: of b.  alone: p_c of this quantity alone, None
    if it has no fit.  known: the exact value at p_c.
    """

    renamed: ClassVar = {"at_p_c": ""}
    added: ClassVar = ("critical", "critical_error")

    name: str
    symbol: str
    meaning: str
    source: str
    at_p_c: Value
    slope: float
    correction: float
    mixed: float
    omega: float
    alone: Value | None
    known: Known | None = None

    critical, critical_error = Part[float]("at_p_c.value"), Part[float]("at_p_c.error")


@dataclass(frozen=True, repr=False, kw_only=True)
class QuantityAnalysis(FittedThreshold):
    """p_c of several quantities, and the results for each; samples: by size."""

    quantities: tuple[QuantityValue, ...]
    samples: dict[int, int]

    @property
    def sizes(self) -> list[int]:
        return sorted(self.samples)

    def _facts(self) -> dict[str, Any]:
        return super()._facts() | {"quantities": ", ".join(each.name for each in self.quantities)}


@dataclass(frozen=True, eq=False)
class JointInput:
    """The input of a joint fit of several quantities.

    omegas: exponents of the leading correction, of each quantity.  y_t: known 1/nu, a prior of p_c.
    critical: of each quantity its known value at p_c, a prior, or None; () for none at all.  notes:
    on what was left out.
    """

    moments: Sequence[BlockMoments]
    quantities: Sequence[Quantity]
    omegas: Sequence[float]
    y_t: Known | None = None
    critical: tuple[Known | None, ...] = ()
    notes: tuple[str, ...] = ()


def analyse_quantities(
    joint: JointInput,
    *,
    min_size: int | None = None,
    degree: int | tuple[int, ...] | None = None,
    priors: float = 1.0,
) -> QuantityAnalysis:
    """Fit several quantities together.

    min_size: smallest L to use at all.  degree: one or several, in place of DEGREES.  priors:
    factor on the widths of all priors but those that are known.

    Raises AnalysisError (one line) when the data cannot give a threshold.
    """
    degrees = (degree,) if isinstance(degree, int) else degree or DEGREES
    fitter, used, near = make_fitter(joint, min_size=min_size, degrees=degrees, priors=priors)
    y_t, quantities = joint.y_t, joint.quantities
    best, wide, free = average_three_times(
        lambda known, wider: replace(fitter, priors=wider).average(known), y_t, priors
    )
    sampled, notes = find_range(used), list_dropped(used, near)
    values = (_quantity_value(fitter, best, n, own, y_t) for n, own in enumerate(quantities))
    samples = dict.fromkeys(fitter.sizes, 0)
    for task in fitter.observations:
        samples[task.L] += task.samples
    return QuantityAnalysis(
        **assess_threshold(best.threshold, wide.threshold, sampled, notes),
        exponent=free.y_t if free else NO_VALUE,
        known_y_t=y_t,
        quantities=tuple(values),
        members=best.members(),
        samples=samples,
    )


@dataclass(frozen=True, eq=False)
class Fitter:
    """Fits of one set of observations; start: where they begin, with a slope for each quantity."""

    observations: tuple[Observations, ...]
    start: Start
    omegas: tuple[float, ...]
    degrees: tuple[int, ...]
    priors: float
    critical: tuple[Known | None, ...] = ()

    @property
    def sizes(self) -> list[int]:
        return sorted({one.L for one in self.observations})

    def only(self, index: int) -> Fitter:
        parts = [task.only(index) for task in self.observations if np.any(task.quantity == index)]
        start = replace(self.start, slopes=self.start.slopes[index : index + 1], spans=())
        omegas, critical = (self.omegas[index],), self.critical[index : index + 1]
        return replace(
            self, observations=tuple(parts), start=start, omegas=omegas, critical=critical
        )

    def average(self, known: Known | None) -> ThresholdAverage[JointMaximum]:
        """Return the average over degrees and smallest sizes; AnalysisError: no fit converges."""
        units, slopes = self.start.units(self.sizes)
        points = sum(one.dimension for one in self.observations)
        begin = self.start.y_t if known is None else known.value

        def fit(smallest: int, degree: int) -> JointMaximum:
            own = tuple(one for one in self.observations if smallest <= one.L)
            left_out = points - sum(one.dimension for one in own)
            priors = known, self.priors, self.critical
            model = JointModel(own, degree, self.omegas, slopes, units, *priors)
            return fit_joint(model, begin, left_out=left_out)

        return ThresholdAverage.over(self.sizes, self.degrees, fit)


def make_fitter(
    joint: JointInput,
    *,
    min_size: int | None = None,
    degrees: tuple[int, ...] = DEGREES,
    priors: float = 1.0,
) -> tuple[Fitter, list[BlockMoments], list[BlockMoments]]:
    """Return a fitter, and the moments of used sizes, all and near p_c; AnalysisError: too few."""
    quantities = joint.quantities
    used = [task for task in joint.moments if min_size is None or min_size <= task.L]
    sizes = sorted({task.L for task in used})
    if len(sizes) < MIN_SIZES:
        shown = ", ".join(f"L = {size}" for size in sizes) or "none"
        raise AnalysisError(f"need at least two sizes for a joint fit, got {shown}")
    if all(len({p for task in used if task.L == L for p in task.p.tolist()}) < 2 for L in sizes):
        raise AnalysisError(
            "each size has one p, so slopes are unknown: sample several p (T for spins) near the "
            "transition"
        )
    for quantity in quantities:
        if lack := find_lack(quantity, used):
            raise AnalysisError(f"{lack}: leave it out")
    start, near = near_threshold(used, quantities, joint.y_t)
    for quantity in quantities:
        if lack := find_lack(quantity, near):
            place = f"near p_c = {start.threshold:.4g}"
            raise AnalysisError(f"{place}, {lack}: use a finer p grid there")
    observations, near = observe_all(near, quantities)
    fitter = Fitter(observations, start, tuple(joint.omegas), degrees, priors, joint.critical)
    return fitter, used, near


def observe_all(
    near: Sequence[BlockMoments], quantities: Sequence[Quantity]
) -> tuple[tuple[Observations, ...], list[BlockMoments]]:
    """Return the observations of tasks, and the tasks, without those whose samples are too alike.

    With few samples next to p_c, all clusters that wrap may wrap along all axes.  AnalysisError:
    too few sizes are left.
    """
    kept: dict[int, Observations] = {}
    redundant: RedundantQuantityError | None = None
    for n, task in enumerate(near):
        try:
            kept[n] = observe(task, quantities)
        except RedundantQuantityError as error:
            redundant = error
    if redundant and len({near[n].L for n in kept}) < MIN_SIZES:
        raise redundant
    return tuple(kept.values()), [near[n] for n in kept]


def _quantity_value(
    fitter: Fitter,
    average: ThresholdAverage[JointMaximum],
    index: int,
    quantity: Quantity,
    y_t: Known | None,
) -> QuantityValue:
    function = average.best.functions[index]
    alone = average.threshold if len(fitter.omegas) == 1 else None
    if alone is None:
        with suppress(AnalysisError):
            alone = fitter.only(index).average(y_t).threshold
    return QuantityValue(
        name=quantity.name,
        symbol=quantity.symbol,
        meaning=quantity.meaning,
        source=quantity.source,
        at_p_c=average.value([fit.place_at_p_c(index) for fit in average.fits]),
        slope=function.coefficients[1],
        correction=function.corrections[0],
        mixed=function.corrections[1],
        omega=function.omega,
        alone=alone,
    )


def find_range(moments: Sequence[BlockMoments]) -> tuple[float, float]:
    """Return the smallest and the largest p of moments."""
    p = np.concatenate([task.p for task in moments])
    return float(p.min()), float(p.max())


def list_dropped(moments: Sequence[BlockMoments], near: Sequence[BlockMoments]) -> list[str]:
    """Return a line on each size, and on p, whose moments do not enter a fit."""
    lost = sorted({task.L for task in moments} - {task.L for task in near})
    notes = [f"L = {size} not used: none of its p is near p_c" for size in lost]
    before, after = (sum(task.p.size for task in tasks) for tasks in (moments, near))
    far = (
        f"{before - after} of {before} p (of all sizes) not used: too far from p_c, or too few data"
    )
    return [*notes, far] if after < before else notes
