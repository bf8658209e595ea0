"""The fit of p_c: the percolation threshold from the spanning curves of several sizes.

One model with every known correction (:mod:`percolab.analysis.scaling`) is fitted by the exact
likelihood, under natural priors, with degrees 3 to 5 and from several smallest sizes on; the fits
are averaged (:mod:`percolab.analysis.averaging`).  No published threshold enters.  Where 1/nu of
the universality class is known it is a prior of p_c; 1/nu itself is reported from fits in which it
is free.  The error is the whole one: statistical (what other samples would change) and systematic
(the priors, and the spread of the fits).  Crossings of neighbouring sizes and their drift are a
check that does not depend on the scaling function.

The Fisher information of independent samples adds to that of the priors, so that one fit predicts
the error of p_c for any numbers of samples, and the part that more samples do not reduce.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import nan
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from percolab.analysis.averaging import (
    FittedThreshold,
    Member,
    Quoted,
    ThresholdAverage,
    ThresholdMember,
    assess_threshold,
    average_three_times,
)
from percolab.analysis.crossings import (
    Crossed,
    CurveCrossing,
    Drift,
    cross_sizes,
    extrapolate,
    transition_width,
)
from percolab.analysis.curves import SpanningCurve, linear_sizes, select_curves
from percolab.analysis.json_values import Part
from percolab.analysis.likelihood import (
    LikelihoodMaximum,
    SizeFit,
    ThresholdCells,
    chi_square,
    fit_size,
    maximise,
)
from percolab.analysis.scaling import OUTER, Lines, ScalingFunction, ScalingModel
from percolab.analysis.statistics import Floats, unit_diagonal
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import NO_VALUE, Value
from percolab.errors import AnalysisError, InputError

#: The polynomial describes R_L(p) in this range; points outside merge into the end intervals of T.
WINDOW = (0.1, 0.9)

#: Degrees of the polynomial that are averaged.
DEGREES = (3, 4, 5)


@dataclass(frozen=True)
class SizeAnalysis:
    """Each size fitted alone, crossings of neighbours, and their drift (None of fewer than two)."""

    fits: tuple[SizeFit, ...]
    crossings: tuple[CurveCrossing, ...]
    drift: Drift | None

    @classmethod
    def of(
        cls, fits: Sequence[SizeFit], crossed: Crossed, *, omega: float, y_t: float, width: float
    ) -> SizeAnalysis:
        """Return the analysis with these crossings; omega, y_t, width: of :func:`extrapolate`."""
        crossings, covariance = crossed
        drift = extrapolate(crossings, covariance, omega=omega, y_t=y_t, width=width)
        return cls(tuple(fits), crossings, drift)


@dataclass(frozen=True, repr=False, kw_only=True)
class ThresholdFit(FittedThreshold):
    """The threshold with its one-sigma error, and all other results of the fit.

    threshold, threshold_error: p_c and its total error; statistical_error and systematic_error are
    its parts, added in quadrature.  y_t, y_t_error, nu, nu_error: 1/nu and nu of fits with free nu.
    critical: R at p_c for large L, also critical_probability and critical_probability_error.
    scaling: the scaling function of the fit with the largest weight.  information: Fisher
    information of one sample of every task by that fit, None where it is not finite.
    free_members: all fits that are averaged for 1/nu.  by_size: fits of single sizes and crossings:
    size_fits, crossings and drift.  curves, used: the input, and its part inside the window.
    influence: for every curve of `used`, dp_c / dcounts of its intervals of T, float64 (m + 1,).
    known_probability: R at p_c by theory, None where unknown.  omega_source: the origin of omega.
    """

    renamed: ClassVar = dict.fromkeys(
        ("exponent", "critical", "by_size", "used", "influence", "information"), ""
    )
    added: ClassVar[tuple[str, ...]] = (
        *FittedThreshold.added, "critical_probability", "critical_probability_error",
        "critical_probability_z", "nu", "nu_error", "omega", "sizes", "size_fits", "crossings",
        "drift",
    )  # fmt: skip

    critical: Value
    scaling: ScalingFunction
    information: Information | None
    free_members: tuple[Member, ...]
    by_size: SizeAnalysis
    curves: tuple[SpanningCurve, ...]
    used: tuple[SpanningCurve, ...]
    influence: tuple[Floats, ...]
    known_probability: Known | None = None
    omega_source: str = "given"

    critical_probability = Part[float]("critical.value")
    critical_probability_error = Quoted("critical.error")
    omega = Part[float]("scaling.omega")
    size_fits = Part[tuple[SizeFit, ...]]("by_size.fits")
    crossings = Part[tuple[CurveCrossing, ...]]("by_size.crossings")
    drift = Part["Drift | None"]("by_size.drift")

    @property
    def critical_probability_z(self) -> float:
        """Deviation of R at p_c from theory, in its errors; NaN without either of them."""
        if self.known_probability is None or not self.critical_probability_error > 0:
            return nan
        away = self.critical_probability - self.known_probability.value
        return away / self.critical_probability_error

    @property
    def sizes(self) -> tuple[int, ...]:
        return linear_sizes(self.used)

    def probability(self, p: ArrayLike, L: ArrayLike) -> Floats:
        """Fitted spanning probability at `p` for size `L` (broadcast), float64."""
        return self.scaling.probability(p, L)


def fit_threshold(
    curves: Sequence[SpanningCurve],
    *,
    omega: float = 1.0,
    y_t: Known | None = None,
    degree: int | None = None,
    min_size: int | None = None,
    window: tuple[float, float] = WINDOW,
    priors: float = 1.0,
) -> ThresholdFit:
    """Fit the threshold to the spanning curves of at least two sizes.

    omega: exponent of the leading correction to scaling (1: an open boundary).  y_t: 1/nu of the
    universality class, used as a prior; None leaves it free.  degree: of the polynomial, in place
    of DEGREES.  min_size: smallest L to use.  window: range of R_L(p) that is fitted; points
    outside are merged into the outermost intervals of T.  priors: factor on the widths of all
    priors except that of 1/nu.

    Raises AnalysisError (one line) when the data cannot give a threshold, and InputError when an
    option is out of range.
    """
    for name, value, allowed, is_allowed in (
        ("omega", omega, "be positive", omega > 0),
        ("degree", degree, "be from 1 to 8", degree is None or 1 <= degree <= 8),
        ("window", window, "satisfy 0 < low < high < 1", 0 < window[0] < window[1] < 1),
        ("priors", priors, "be a positive factor", 0 < priors < float("inf")),
    ):
        if not is_allowed:
            raise InputError(f"{name} must {allowed}, got {value}")
    used, notes = select(curves, min_size=min_size, window=window)
    degrees, sizes = DEGREES if degree is None else (degree,), linear_sizes(used)

    def average(known: Known | None, wider: float) -> MemberFits:
        return MemberFits.of(used, omega=omega, y_t=known, degrees=degrees, wider=wider)

    best, wide, free = average_three_times(average, y_t, priors)
    exponent, free_members = (free.y_t, free.members()) if free else (NO_VALUE, ())
    own = [curve for curve in curves if curve.L in sizes]
    sampled = min(float(c.p[0]) for c in own), max(float(c.p[-1]) for c in own)
    p_c, y = best.threshold, exponent.value
    fits = [fit_size(select_curves(used, size)) for size in sizes]
    width = transition_width(fits, p_c.value, y)
    return ThresholdFit(
        **assess_threshold(p_c, wide.threshold, sampled, notes),
        exponent=exponent,
        known_y_t=y_t,
        critical=best.critical_probability,
        scaling=best.best.model.scaling_function(best.best.theta),
        information=best.best.information(y_t),
        members=best.members(),
        free_members=free_members,
        by_size=SizeAnalysis.of(fits, cross_sizes(fits), omega=omega, y_t=y, width=width),
        curves=tuple(curves),
        used=used,
        influence=best.influence,
    )


@dataclass(frozen=True, eq=False)
class MemberFit(ThresholdMember):
    """One fit with its cells, its model and the maximum of its likelihood."""

    cells: ThresholdCells
    model: ScalingModel
    maximum: LikelihoodMaximum

    def influence(self, mean: float) -> Floats:
        """Return d(average p_c) / dcounts over the weight of this fit, float64 (cells,).

        Counts change the p_c of this fit and, through its chi^2, its weight in the average.
        """
        maximum, seen = self.maximum, self.cells.counts > 0
        own = self.width * (maximum.slope @ maximum.covariance[0])
        away = self.model.threshold(maximum.theta) - mean
        ratio = self.cells.counts[seen] / (self.cells.totals * maximum.probability)[seen]
        own[seen] -= away * np.log(ratio)
        return np.asarray(own, np.float64)

    def information(self, y_t: Known | None) -> Information | None:
        """Return the information of its curves by label, with the priors; None: not finite."""
        slope, by_task = self.maximum.slope, {}
        with np.errstate(over="ignore", invalid="ignore"):
            weighted = slope * self.maximum.probability[:, None]
            for index, curve in enumerate(self.cells.curves):
                own = self.cells.curve == index
                by_task[curve.label] = slope[own].T @ weighted[own]
        if not np.all(np.isfinite(list(by_task.values()))):
            return None
        return Information(by_task, np.diag(self.model.prior(y_t).precision), self.width)


@dataclass(frozen=True, eq=False)
class MemberFits(ThresholdAverage[MemberFit]):
    """The average over fits of some curves."""

    used: tuple[SpanningCurve, ...]

    @classmethod
    def of(
        cls,
        used: tuple[SpanningCurve, ...],
        *,
        omega: float,
        y_t: Known | None = None,
        degrees: Sequence[int] = DEGREES,
        wider: float = 1.0,
    ) -> MemberFits:
        """Fit with every degree and smallest size; AnalysisError where no fit converges."""
        lines, points = Lines.through(used, y_t), sum(curve.p.size for curve in used)

        def fit(smallest: int, degree: int) -> MemberFit:
            cells = ThresholdCells.from_curves([c for c in used if smallest <= c.L])
            model = ScalingModel.of(cells, degree=degree, omega=omega, like=lines)
            maximum = maximise(model, cells, model.start, model.prior(y_t, wider=wider))
            data = maximum.deviance + maximum.penalty + 2 * (points - cells.p.size)
            return MemberFit(
                min_size=smallest,
                degree=degree,
                p_0=lines.units.p_0,
                width=lines.units.width,
                theta=maximum.theta,
                covariance=maximum.covariance,
                statistical=maximum.covariance @ maximum.information @ maximum.covariance,
                chi_square=chi_square(cells, maximum),
                criterion=data + 2 * maximum.theta.size,
                cells=cells,
                model=model,
                maximum=maximum,
            )

        average = ThresholdAverage.over(linear_sizes(used), degrees, fit)
        return cls(average.fits, average.weights, used)

    @property
    def threshold(self) -> Value:
        """p_c; its statistical error is that of the average, by its influence."""
        mean, p_0 = super().threshold, self.fits[0].p_0
        values = p_0 + self.fits[0].width * np.array([fit.theta[0] for fit in self.fits])
        # The statistical error does not contain what the priors add.
        spread = np.sqrt(self.weights @ (values - mean.value) ** 2)
        most = float(np.hypot(mean.statistical_error, spread))
        variance = 0.0
        for curve, influence in zip(self.used, self.influence, strict=True):
            share = np.diff([0.0, *curve.probability, 1.0])
            away = influence - share @ influence
            variance += curve.total_samples * float(share @ away**2)
        return replace(mean, statistical_error=min(float(np.sqrt(variance)), most))

    @property
    def critical_probability(self) -> Value:
        """R at p_c for large L, Phi(a_0)."""
        a_0 = self.value(OUTER)
        density = np.exp(-0.5 * a_0.value**2) / np.sqrt(2 * np.pi)
        return a_0.scaled(float(ndtr(a_0.value)), float(density))

    @property
    def influence(self) -> tuple[Floats, ...]:
        """dp_c / dcounts of every curve's cells, float64 (m + 1,) each."""
        influences = [np.zeros(curve.p.size + 1) for curve in self.used]
        mean = super().threshold.value
        for weight, fit in zip(self.weights, self.fits, strict=True):
            first, influence = len(self.used) - len(fit.cells.curves), fit.influence(mean)
            for index, own in enumerate(influences[first:]):
                own += weight * influence[fit.cells.curve == index]
        return tuple(influences)


def select(
    curves: Sequence[SpanningCurve], *, min_size: int | None, window: tuple[float, float] = WINDOW
) -> tuple[tuple[SpanningCurve, ...], list[str]]:
    """Return the usable curves, ascending in L, cut to the window, and notes on those left out.

    A size is usable when R_L rises between at least two p.  Raises AnalysisError with fewer than
    two usable sizes.
    """
    allowed = [curve for curve in curves if min_size is None or min_size <= curve.L]
    if len(linear_sizes(allowed)) < 2:
        above = "" if min_size is None else f" of L >= {min_size}"
        got = _listed(allowed)
        raise AnalysisError(f"need at least two sizes{above} to find a threshold, got {got}")
    is_within = any(0 < R < 1 for curve in allowed for R in curve.probability)
    if all(len(curve.p) == 1 for curve in allowed) and is_within:
        raise AnalysisError(
            "each size has one p, so R(p) has no slope; percolab fit --exponents finds exponents "
            "at this p"
        )
    used: list[SpanningCurve] = []
    notes: list[str] = []
    for size in linear_sizes(allowed):
        own = [part for c in select_curves(allowed, size) if (part := cut(c, window)) is not None]
        p, R = np.array([(p, R) for c in own for p, R in zip(c.p, c.probability)]).reshape(-1, 2).T
        if own and np.polyfit(p - p.mean(), R, 1)[0] > 1e-9:
            used += own
        else:
            notes.append(f"L = {size} not used: fewer than two p at which R is between 0 and 1")
    if len(linear_sizes(used)) < 2:
        raise AnalysisError(
            "need at least two sizes with two p at which R is between 0 and 1, "
            f"got {_listed(used)}; use a finer p grid around the threshold"
        )
    return tuple(used), notes


def cut(curve: SpanningCurve, window: tuple[float, float] = WINDOW) -> SpanningCurve | None:
    """Return a curve inside the window, or at the two p nearest to R = 1/2 with 0 < R < 1."""
    R = curve.probability
    inside = (window[0] < R) & (window[1] > R)
    if inside.sum() < 2:
        nearest = np.argsort(np.abs(R - 0.5), kind="stable")[:2]
        inside = np.isin(np.arange(R.size), nearest) & (R > 0) & (R < 1)
    return curve.at(inside) if inside.sum() > 1 else None


def _listed(curves: Sequence[SpanningCurve]) -> str:
    return ", ".join(f"L = {size}" for size in linear_sizes(curves)) or "none"


@dataclass(frozen=True, eq=False)
class Information:
    """Fisher information of one sample of every task at the fitted curve, and of the priors.

    by_task: by the curve's label, float64 (k, k); the first of the k parameters is p_c in units of
    `unit`.  prior: float64 (k, k).
    """

    by_task: Mapping[str, Floats]
    prior: Floats
    unit: float

    def of(self, label: str) -> Floats:
        """Return the information of one sample of a task, float64 (k, k); 0 if it is not used."""
        return self.by_task.get(label, np.zeros_like(self.prior))

    def total(self, samples: Mapping[str, float]) -> Floats:
        """Return the information of the priors and of these numbers of samples, float64 (k, k)."""
        return sum((n * self.of(label) for label, n in samples.items()), self.prior.copy())

    def error(self, samples: Mapping[str, float]) -> float:
        """Return the whole error of p_c with these numbers of samples of every task."""
        return float(np.hypot(*self.parts(samples)))

    def parts(self, samples: Mapping[str, float]) -> tuple[float, float]:
        """Return the statistical and the systematic error of p_c; infinite if undetermined."""
        scaled, scale = unit_diagonal(self.total(samples))
        row = np.zeros(1)
        with suppress(np.linalg.LinAlgError):
            row = np.linalg.inv(scaled)[0] * scale[0] * scale
        if not row[0] > 0:
            return float("inf"), float("inf")
        prior = row @ self.prior @ row
        statistical = np.sqrt(max(row[0] - prior, 0.0))
        return float(self.unit * statistical), float(self.unit * np.sqrt(prior))

    def remaining_systematic(self, samples: Mapping[str, float], target: float) -> float:
        """Return the systematic error once samples make the statistical one half a target."""
        factor = max(1.0, (2 * self.parts(samples)[0] / target) ** 2)
        return self.parts({key: factor * n for key, n in samples.items()})[1]


def compute_information(
    curves: Sequence[SpanningCurve], *, omega: float = 1.0, y_t: Known | None = None
) -> Information:
    """Return the information of the default fit of these curves, labelled by their tasks.

    omega: exponent of the leading correction.  y_t: known 1/nu.  AnalysisError: the curves do not
    give a threshold.
    """
    if len({curve.label for curve in curves}) != len(curves):
        raise ValueError("two curves have the same label")
    used, _ = select(curves, min_size=None)
    information = MemberFits.of(used, omega=omega, y_t=y_t).best.information(y_t)
    if information is None:
        raise AnalysisError("the fit gives no information")
    return information
