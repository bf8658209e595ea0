"""The finite-size scaling of a table from any source: sizes, x, and counts or means.

The model is that of :mod:`percolab.analysis.scaling`, with x in place of p: a temperature, an error
rate, a density.  Nothing is known beforehand, neither x_c nor 1/nu.  Rows are independent.

* Counts, k of n trials, have their binomial likelihood, and f is the probit of their probability.
* Means with errors are Gaussian, and f is the mean itself, as for Binder's ratio; or the mean is
  y = L^kappa f, where kappa is gamma/nu for a susceptibility and -beta/nu for a magnetization.

The priors are the natural ones.  Terms of f are in units of the quantity: 1 for a probit, else half
its range, for b and B its median where that is larger.  n and m of the scaling field are in units
of the scale of x: x_c (1 - x_c) where all x are between 0 and 1, else the larger of x_c and half
the range of x.  Only rows with f within a reach of f(x_c) are used.  Fits with degrees 3 to 5,
three exponents of the corrections, different smallest sizes and two reaches are averaged.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, xlogy

from percolab.analysis.averaging import (
    FittedThreshold,
    ThresholdAverage,
    ThresholdMember,
    assess_threshold,
    average_three_times,
)
from percolab.analysis.collapse import Collapse, Measured, collapse_curves
from percolab.analysis.crossings import cross_replicas
from percolab.analysis.json_values import Part
from percolab.analysis.likelihood import SizeFit, invert_curvature
from percolab.analysis.quantity_model import Start, search_start
from percolab.analysis.scaling import (
    COEFFICIENT_WIDTH,
    CORRECTION_WIDTHS,
    FIELD_WIDTH,
    FREE_EXPONENT,
    OUTER,
    ScalingFunction,
    ScalingModel,
    Units,
    fit_least_squares,
)
from percolab.analysis.statistics import Floats, geometric_mean
from percolab.analysis.threshold import DEGREES, SizeAnalysis
from percolab.analysis.value import ChiSquare, Value
from percolab.errors import AnalysisError
from percolab.lattices.shown import Shown, few
from percolab.tasks.values import take_flag

#: Exponents of the leading correction that are averaged over where none is given.  With a single,
#: wrong one, 1e7 samples gave errors of x_c that were up to five times too small.
OMEGAS = (0.75, 1.0, 1.5)

#: How far f may be from its value at x_c, in its units: of a probit, and of any other quantity.
REACHES = {True: (1.28, 0.64), False: (0.8, 0.4)}

# Errors in the search for a start are at least this, in units of the quantity.
_FLOOR = 0.02
# Deviance residuals below this are in the linear regime, where their slope is that of Pearson's.
_LINEAR = 1e-6
_LOG_ROOT_2PI, _ROOT_2_OVER_PI = 0.5 * float(np.log(2 * np.pi)), float(np.sqrt(2 / np.pi))


@dataclass(frozen=True, eq=False, repr=False)
class Series(Shown):
    """One quantity along x at several sizes; every row is independent of the others.

    name: of the series, "" where a table has one alone.  axis, quantity: what the table calls x and
    the quantity.  L: int64 (n,).  x, values, errors: float64 (n,).  trials: of counts, float64
    (n,), whose values are fractions; None of means.  units: of x and of the quantity, or "".
    """

    name: str
    axis: str
    quantity: str
    L: NDArray[np.int64]
    x: Floats
    values: Floats
    errors: Floats
    trials: Floats | None = None
    units: tuple[str, str] = ("", "")

    @classmethod
    def of_counts(
        cls, names: tuple[str, str, str], L: ArrayLike, x: ArrayLike, k: ArrayLike, n: ArrayLike
    ) -> Series:
        """Return the series of k of n trials; names: name, axis and quantity."""
        hits, trials = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float))
        share = (hits + 0.5) / (trials + 1.0)
        errors = np.sqrt(share * (1 - share) / trials)
        sizes = np.asarray(L, np.int64)
        return cls(*names, sizes, np.asarray(x, float), hits / trials, errors, trials)

    @property
    def is_probability(self) -> bool:
        return self.trials is not None

    @property
    def sizes(self) -> list[int]:
        return sorted(set(self.L.tolist()))

    @property
    def lines(self) -> list[int]:
        """The sizes that have at least two x, ascending."""
        return [size for size in self.sizes if np.unique(self.x[size == self.L]).size > 1]

    def at(self, keep: NDArray[Any]) -> Series:
        """Return some of its rows, by a mask or by their numbers."""
        trials = None if self.trials is None else self.trials[keep]
        rows = {name: getattr(self, name)[keep] for name in ("L", "x", "values", "errors")}
        return replace(self, **rows, trials=trials)

    def of_size(self, size: int) -> Series:
        return self.at(np.equal(self.L, size))

    @property
    def unit(self) -> float:
        """The unit of f: 1 of a probit, half the range of a mean."""
        return 1.0 if self.is_probability else 0.5 * float(np.ptp(self.values)) or 1.0

    @property
    def level(self) -> float:
        """The unit of corrections at x_c: that of f, or the median where it is larger."""
        median = 0.0 if self.is_probability else abs(float(np.median(self.values)))
        return max(median, self.unit)

    def linked(self) -> tuple[Floats, Floats]:
        """Return probits of probabilities or the means, and their errors, for a start."""
        if self.trials is None:
            return self.values, self.errors
        share = (self.values * self.trials + 0.5) / (self.trials + 1.0)
        probit = ndtri(share)
        density = np.exp(-0.5 * probit**2 - _LOG_ROOT_2PI)
        return probit, np.asarray(self.errors / density, np.float64)

    def residuals(self, f: Floats) -> tuple[Floats, Floats, Floats]:
        """Return residuals whose squares sum to the deviance, their slopes, and expected slopes."""
        if self.trials is None:
            root = 1.0 / self.errors
            return (f - self.values) * root, root, root
        log_p, log_q = log_ndtr(f), log_ndtr(-f)
        hits = self.trials * self.values
        misses = self.trials - hits
        deviance = xlogy(hits, self.values) + xlogy(misses, 1 - self.values)
        deviance = np.maximum(2 * (deviance - hits * log_p - misses * log_q), 0.0)
        # Density over probability, in a form that is finite however far a step of the fit goes.
        over_q, over_p = (_ROOT_2_OVER_PI / erfcx(side * f / np.sqrt(2)) for side in (1, -1))
        root = np.sqrt(self.trials * over_p * over_q)
        residual = np.where(ndtr(f) >= self.values, 1.0, -1.0) * np.sqrt(deviance)
        score = misses * over_q - hits * over_p
        far = np.abs(residual) > _LINEAR
        slope = np.where(far, score / np.where(far, residual, 1.0), root)
        return residual, slope, root

    def _facts(self) -> dict[str, Any]:
        what = {"series": self.name} if self.name else {}
        return what | {"L": few(self.sizes), self.axis: few(sorted(set(self.x.tolist())))}


class MeanFit(SizeFit):
    """The polynomial of one size, fitted to the quantity itself, which is not a probability."""

    def probability(self, p: ArrayLike) -> Floats:
        return np.asarray(self.probit(np.asarray(p, float)), np.float64)

    def density(self, p: float) -> float:
        """Return 1: the polynomial is that of the quantity."""
        return 1.0


@dataclass(frozen=True, eq=False)
class TableMember(ThresholdMember):
    """One of the averaged fits; function: in physical parameters."""

    function: ScalingFunction


@dataclass(frozen=True, repr=False, kw_only=True)
class TableFit(FittedThreshold):
    """x_c, 1/nu and the other results of fitting a series.

    threshold and its errors: x_c.  kappa: the power in y = L^kappa f, None if it was not fitted.
    critical: the quantity at x_c for large L, None with kappa.  omegas: exponents of the leading
    correction over which fits are averaged.  by_size: fits of single sizes, crossings of successive
    sizes and their drift; empty with kappa.  scaling: the scaling function of the fit with the
    largest weight, and its omega.  series: all rows.  used: bool (n,), rows near x_c.
    """

    renamed: ClassVar = dict.fromkeys(
        ("p_c", "exponent", "known_y_t", "by_size", "scaling", "series", "used"), ""
    )
    added: ClassVar[tuple[str, ...]] = (
        *FittedThreshold.added, "nu", "nu_error", "omega", "sizes", "name", "axis", "quantity",
        "points", "points_used", "crossings", "drift", "priors",
    )  # fmt: skip

    critical: Value | None
    kappa: Value | None
    scaling: ScalingFunction
    omegas: tuple[float, ...]
    by_size: SizeAnalysis
    series: Series
    used: NDArray[np.bool_]

    name, axis = Part[str]("series.name"), Part[str]("series.axis")
    quantity, omega = Part[str]("series.quantity"), Part[float]("scaling.omega")
    points, points_used = Part[int]("series.x.size"), property(lambda self: int(self.used.sum()))
    crossings, drift = Part[Any]("by_size.crossings"), Part[Any]("by_size.drift")

    @property
    def sizes(self) -> list[int]:
        return self.series.at(self.used).sizes

    @property
    def priors(self) -> list[str]:
        """The priors of all parameters, in words."""
        b, c, B, C = CORRECTION_WIDTHS
        symbol = f"{self.axis}_c"
        level, unit = self.series.level, self.series.unit
        units = "" if self.series.is_probability else f", in units of {level:.3g} and {unit:.3g}"
        within = bool(np.all((self.series.x > 0) & (self.series.x < 1)))
        scale = f"({symbol} (1 - {symbol}))" if within else f"|{symbol}| or half the range"
        mean, width = FREE_EXPONENT
        omegas = ", ".join(f"{omega:g}" for omega in self.omegas)
        return [
            f"1/nu = {mean:g} +- {width:g}; {symbol} has none",
            f"corrections of L^-w, w = {omegas}: b, c = 0 +- {b:g}, {c:g}; of L^-2w: "
            f"B, C = 0 +- {B:g}, {C:g}{units}",
            f"curvature: a_k = 0 +- {COEFFICIENT_WIDTH:g}; n = 0 +- {FIELD_WIDTH:g} / {scale}",
        ]

    def value_at(self, x: ArrayLike, L: ArrayLike) -> Floats:
        """Return the fitted quantity at `x` for size `L` (broadcast), float64."""
        if self.series.is_probability:
            return self.scaling.probability(x, L)
        power = self.kappa.value if self.kappa else 0.0
        return np.asarray(np.asarray(L, float) ** power * self.scaling(x, L), np.float64)

    def collapse(self, *, tuned: bool = True, bootstrap: int = 50) -> Collapse:
        """Return the data collapse near x_c; AnalysisError: too few rows overlap.

        tuned: use the x_c, 1/nu and kappa with the best collapse, which absorb corrections to
        scaling; otherwise use those of the fit, without their errors.
        """
        near, measured = self.series.at(self.used), []
        for size in near.sizes:
            own = near.of_size(size)
            own = own.at(np.unique(own.x, return_index=True)[1])
            blocks = own.values[None], np.ones(1, np.int64)
            numbers = own.x, own.values, np.diag(own.errors**2), *blocks
            measured.append(MeasuredRows(size, *numbers))
        return collapse_curves(
            measured,
            observable=self.quantity,
            start=(self.threshold, self.y_t, self.kappa.value if self.kappa else 0.0),
            fixed=(not tuned, not tuned, not tuned or self.kappa is None),
            bootstrap=bootstrap if tuned else 0,
        )


class MeasuredRows(Measured):
    """Rows of a table, whose bootstrap is that of independent Gaussian errors."""

    def resampled(self, rng: np.random.Generator, replicas: int) -> Floats:
        """Draw replicas of the values, float64 (replicas, m)."""
        errors = np.sqrt(np.diag(self.covariance))
        return np.asarray(rng.normal(self.values, errors, (replicas, self.p.size)), np.float64)


@dataclass(frozen=True, eq=False)
class _Model:
    """f of some rows; theta = (delta, y, n, m, amplitudes[, kappa]); level: unit of b and B."""

    rows: Series
    scaling: ScalingModel
    level: float
    has_power: bool
    wider: float

    @property
    def prior(self) -> tuple[Floats, Floats]:
        """Mean and 1 / sigma of the priors, float64 (k,) each; 0 where there is none."""
        prior, degree = self.scaling.prior(None, wider=self.wider), self.scaling.degree
        root = np.sqrt(prior.precision)
        root[[OUTER + degree + 1, OUTER + degree + 3]] /= self.level
        power = np.zeros(int(self.has_power))
        return np.append(prior.mean, power), np.append(root, power)

    def values(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return f (n,) and its derivatives (n, k)."""
        if not self.has_power:
            return self.scaling(theta)
        f, jacobian = self.scaling(theta[:-1])
        stretch = np.exp(theta[-1] * self.scaling.log_size)[:, None]
        f = stretch[:, 0] * f
        return f, np.hstack([stretch * jacobian, (self.scaling.log_size * f)[:, None]])

    def start(self, y_t: float, kappa: float) -> Floats:
        """Return theta at x_0, with the best amplitudes there."""
        theta, root = self.prior
        theta[1] = y_t
        if self.has_power:
            theta[-1] = kappa
        own = slice(OUTER, OUTER + self.scaling.degree + 5)
        values, errors = self.rows.linked()
        design = self.values(theta)[1][:, own] / errors[:, None]
        design = np.vstack([design, np.diag(root[own])])
        target = np.append(values / errors, np.zeros(self.scaling.degree + 5))
        theta[own] = np.linalg.lstsq(design, target, rcond=1e-12)[0]
        return theta

    def fit(self, y_t: float, kappa: float, left_out: int) -> TableMember:
        """Return the fit from here; AnalysisError: it does not converge."""
        mean, root = self.prior

        def residuals(theta: Floats) -> Floats:
            data = self.rows.residuals(self.values(theta)[0])[0]
            return np.concatenate([data, root * (theta - mean)])

        def jacobian(theta: Floats) -> Floats:
            f, slopes = self.values(theta)
            return np.vstack([self.rows.residuals(f)[1][:, None] * slopes, np.diag(root)])

        theta, cost = fit_least_squares(residuals, self.start(y_t, kappa), jacobian)
        f, slopes = self.values(theta)
        information = slopes * self.rows.residuals(f)[2][:, None]
        information = information.T @ information
        covariance = invert_curvature(information + np.diag(root**2))
        freedom = round(self.rows.x.size - float(np.sum(covariance * information)))
        return TableMember(
            min_size=int(self.rows.L.min()),
            degree=self.scaling.degree,
            p_0=self.scaling.units.p_0,
            width=self.scaling.units.width,
            theta=theta,
            covariance=covariance,
            statistical=covariance @ information @ covariance,
            chi_square=ChiSquare.of(cost, max(freedom, 0)),
            criterion=cost + 2 * theta.size + 2 * left_out,
            function=self.scaling.scaling_function(theta[:-1] if self.has_power else theta),
        )


def fit_series(
    series: Series,
    *,
    omega: float | None = None,
    kappa: bool = False,
    min_size: int | None = None,
    degree: int | None = None,
    priors: float = 1.0,
) -> TableFit:
    """Fit x_c and 1/nu to a series of at least two sizes.

    omega: exponent of the leading correction, in place of OMEGAS; the next one has 2 omega.
    kappa: whether a power L^kappa is fitted too, of means.  min_size: smallest L to use.  degree:
    in place of DEGREES.  priors: factor on the widths of all priors but that of 1/nu.

    AnalysisError (one line): the data cannot give x_c.
    """
    if take_flag("kappa", kappa) and (series.is_probability or not series.values.min() > 0):
        raise AnalysisError(
            "--kappa: y = L^kappa f needs means, not probabilities, that are all above 0"
        )
    allowed = (min_size or 1) <= series.L
    if len(series.at(allowed).lines) < 2:
        above = "" if min_size is None else f" of L >= {min_size}"
        raise AnalysisError(f"need at least two sizes{above} with two {series.axis} each")
    if not np.ptp(series.values[allowed]):
        same = f"{series.quantity} = {series.values[allowed][0]:g} in every row"
        raise AnalysisError(f"{same}: this shows no transition")
    unit, scaled = series.unit, series
    if not series.is_probability:
        scaled = replace(series, values=series.values / unit, errors=series.errors / unit)
    start, used = _near(scaled, allowed, kappa)
    # In these units f changes by one unit where X does.
    near, x = scaled.at(used), series.x[allowed]
    L_0, is_share = geometric_mean(near.sizes), np.all((x > 0) & (x < 1))
    width = 1.0 / max(start.slopes[0], 1e-12) / L_0**start.y_t
    scale = None if is_share else max(abs(start.threshold), 0.5 * float(np.ptp(x)))
    units = Units(start.threshold, width, L_0, scale)
    reaches = REACHES[series.is_probability]
    degrees, omegas = (degree,) if degree else DEGREES, (omega,) if omega else OMEGAS
    choices = list(product(reaches, degrees, omegas))

    def average(_: Any, wider: float) -> ThresholdAverage[TableMember]:
        def fit(smallest: int, choice: tuple[float, int, float]) -> TableMember:
            reach, powers, own = choice
            inside = (smallest <= near.L) & _within(start, near, reach)
            rows = near.at(inside)
            if len(rows.lines) < 2:
                raise AnalysisError("fewer than two sizes are near the transition")
            scaling = ScalingModel(*units.scaled(rows.x, rows.L), powers, own, units)
            model = _Model(rows, scaling, series.level / unit, kappa, wider)
            return model.fit(start.y_t, start.power, int(np.sum(~inside)))

        return ThresholdAverage.over(near.sizes, choices, fit)

    best, wide, _ = average_three_times(average, None, priors)
    power, function = best.value(-1) if kappa else None, best.best.function
    # In physical units f has the unit of the quantity, divided by L_0^kappa.
    grow = unit * (units.L_0**-(power.value) if power else 1.0)
    scaling = replace(
        function,
        coefficients=tuple(grow * a for a in function.coefficients),
        corrections=tuple(grow * a for a in function.corrections),  # type: ignore[arg-type]
    )
    a_0, critical = best.value(OUTER), None
    if series.is_probability:
        density = float(np.exp(-0.5 * a_0.value**2 - _LOG_ROOT_2PI))
        critical = a_0.scaled(float(ndtr(a_0.value)), density)
    elif not kappa:
        critical = a_0.scaled(unit * a_0.value, unit)
    lost = int(np.sum(~used))
    notes = [f"{lost} of {used.size} rows are too far from {series.axis}_c to be used"] * bool(lost)
    sampled = float(x.min()), float(x.max())
    by_size = SizeAnalysis((), (), None)
    if not kappa:
        slope = scaling.coefficients[1]
        fits, own = [], {"omega": scaling.omega, "y_t": scaling.y_t, "width": unit / abs(slope)}
        rows = series.at(used)
        for size in rows.lines:
            with suppress(AnalysisError):
                fits.append(_fit_size(rows.of_size(size)))
        by_size = SizeAnalysis.of(fits, cross_replicas(fits, rises=slope > 0), **own)
    apart = [f"{each.L1} and {each.L2}" for each in by_size.crossings if not each.found]
    if apart:
        why = (
            "" if series.is_probability else ": a mean that scales with a power of L needs --kappa"
        )
        notes.append(f"L = {few(apart)} do not cross at the sampled {series.axis}{why}")
    facts = assess_threshold(best.threshold, wide.threshold, sampled, notes, axis=series.axis)
    if apart and len(apart) == len(by_size.crossings):
        nowhere = f"no neighbouring sizes cross at the sampled {series.axis}"
        facts["problem"] = facts["problem"] or f"no {series.axis}_c: {nowhere}"
    return TableFit(
        **facts,
        exponent=best.y_t,
        known_y_t=None,
        members=best.members(),
        critical=critical,
        kappa=power,
        scaling=scaling,
        omegas=omegas,
        by_size=by_size,
        series=series,
        used=used,
    )


def _within(start: Start, rows: Series, reach: float) -> NDArray[np.bool_]:
    """Return which rows are within a reach of f(x_c), by the straight line through it."""
    away = start.slopes[0] * (rows.x - start.threshold) * rows.L**start.y_t
    return np.asarray(np.abs(away) <= reach)


def _near(
    series: Series, allowed: NDArray[np.bool_], kappa: bool
) -> tuple[Start, NDArray[np.bool_]]:
    """Return the start of a fit, and the rows near x_c; AnalysisError: too few are."""
    values, errors = series.linked()
    if kappa:
        values, errors = np.log(values), errors / values
    table = np.stack([series.L.astype(float), series.x, values, np.hypot(errors, _FLOOR)])
    used = allowed
    start = search_start([tuple(table[:, used])], power=kappa)
    for _ in range(3):
        near = allowed & _within(start, series, REACHES[series.is_probability][0])
        if len(series.at(near).lines) < 2:
            raise AnalysisError(
                f"fewer than two sizes have two {series.axis} near the crossing, which is at about "
                f"{start.threshold:.6g}: use a finer grid there"
            )
        if np.array_equal(near, used):
            break
        used, start = near, search_start([tuple(table[:, near])], power=kappa)
    return start, used


def _fit_size(rows: Series) -> SizeFit:
    """Fit a cubic to the rows of one size; AnalysisError: they do not determine it."""
    from scipy import optimize

    low, high = float(rows.x.min()), float(rows.x.max())
    middle, scale = 0.5 * (low + high), 0.5 * (high - low)
    degree = min(3, np.unique(rows.x).size - 1)
    design = np.vander((rows.x - middle) / scale, degree + 1, increasing=True)
    values, errors = rows.linked()
    start = np.linalg.lstsq(design / errors[:, None], values / errors, rcond=None)[0]
    best = optimize.least_squares(
        lambda c: rows.residuals(design @ c)[0],
        start,
        lambda c: rows.residuals(design @ c)[1][:, None] * design,
        method="lm",
        x_scale="jac",
    )
    weighted = design * rows.residuals(design @ best.x)[2][:, None]
    covariance = invert_curvature(weighted.T @ weighted)
    quality = ChiSquare.of(2 * float(best.cost), rows.x.size - degree - 1)
    samples = 0 if rows.trials is None else int(rows.trials.sum())
    kind = SizeFit if rows.is_probability else MeanFit
    return kind.of(int(rows.L[0]), rows.x, best.x, covariance, quality, samples)
