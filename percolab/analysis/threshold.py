"""The fit of p_c: the percolation threshold from the spanning curves of several sizes.

The headline is one simultaneous finite-size-scaling fit of all curves; the crossings of the
curves and their drift stand beside it as a check that does not depend on the scaling function.
No published threshold enters anywhere.  Errors are those of a bootstrap in which the same
resampled counts feed every number: B. Efron, Ann. Stat. 7, 1 (1979).

In order: the result, the fit, which points enter it, and the bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from percolab.analysis.crossings import (
    Crossing,
    Drift,
    extrapolate,
    find_crossings,
    replica_crossings,
    transition_width,
    with_errors,
)
from percolab.analysis.curves import SpanningCurve, curves_of_size, linear_sizes
from percolab.analysis.fit_quality import POOR_FIT, ChiSquare, is_poor
from percolab.analysis.json_values import plain
from percolab.analysis.likelihood import LikelihoodMaximum, ThresholdCells, chi_square, maximise
from percolab.analysis.scaling import ScalingFunction, ScalingModel
from percolab.analysis.size_fit import SizeFit, fit_size, refit
from percolab.analysis.statistics import MIN_BLOCKS, Floats, format_with_error, half_width
from percolab.analysis.theory.known_exponents import Known
from percolab.errors import AnalysisError
from percolab.lattices.shown import Shown, few

#: The cubic probit describes R_L(p) in this range; points outside merge into the end intervals.
WINDOW = (0.02, 0.98)


@dataclass(frozen=True)
class SizeAnalysis:
    """The second analysis: each size fitted alone, neighbours crossed, crossings extrapolated.

    drift is None with fewer than two crossings, or without a bootstrap.
    """

    fits: tuple[SizeFit, ...]
    crossings: tuple[Crossing, ...]
    drift: Drift | None


@dataclass(frozen=True, repr=False)
class ThresholdFit(Shown):
    """The threshold with its one-sigma error, and everything the fit says about itself.

    threshold, threshold_error: p_c and its error, found by ``error_method``.
    fisher_error, y_t_fisher_error: errors of p_c and 1/nu from the curvature of the likelihood, to
        compare.
    y_t, y_t_error, nu, nu_error: 1/nu and nu.
    critical_probability, critical_probability_error: R at p_c for large L.
    correction, correction_error, mixed, mixed_error: b and c of the corrections to scaling.
    coefficient_errors: those of a_0 ... a_d, which are in ``scaling``.
    chi_square: of the fit of all sizes, with ``value``, ``dof`` and ``p_value``.
    replicas, failed_replicas: bootstrap replicas asked for, and those that could not be fitted.
    by_size: the second analysis, by crossings, which does not use the scaling function.
    curves, used: what was given, and what of it is inside the window.
    notes: what a reader of p_c must know, one line each.
    known_probability: what theory says of R at p_c; None where it says nothing.
    omega_source: why omega is what it is, in a few words.

    Numbers that the data do not give are NaN (None in ``to_dict``).
    """

    scaling: ScalingFunction
    threshold_error: float
    fisher_error: float
    y_t_fisher_error: float
    error_method: str
    y_t_error: float
    nu_error: float
    critical_probability_error: float
    coefficient_errors: tuple[float, ...]
    correction_error: float
    with_correction: bool
    mixed_error: float
    with_mixed: bool
    chi_square: ChiSquare
    log_likelihood: float
    replicas: int
    failed_replicas: int
    by_size: SizeAnalysis
    curves: tuple[SpanningCurve, ...]
    used: tuple[SpanningCurve, ...]
    notes: tuple[str, ...]
    known_probability: Known | None = None
    omega_source: str = "given"

    def _facts(self) -> dict[str, Any]:
        notes = {f"note {n}": note for n, note in enumerate(self.notes, 1)}
        return {
            "p_c": format_with_error(self.threshold, self.threshold_error),
            "1/nu": format_with_error(self.y_t, self.y_t_error),
            "L": few(self.sizes),
            "corrections": self.corrections,
            "chi^2/dof": f"{self.chi_square.value:.1f}/{self.chi_square.dof}",
            "p-value": f"{self.chi_square.p_value:.2g}",
            **notes,
        }

    @property
    def threshold(self) -> float:
        """The threshold p_c."""
        return self.scaling.threshold

    @property
    def y_t(self) -> float:
        """The thermal exponent 1/nu."""
        return self.scaling.y_t

    @property
    def omega(self) -> float:
        """The exponent of the leading correction."""
        return self.scaling.omega

    @property
    def systematic_error(self) -> float:
        """What the model adds to the statistical error of p_c: nothing is known of it."""
        return 0.0

    @property
    def influence(self) -> tuple[Floats, ...]:
        """d p_c / d count of every cell of every curve used, float64 (m + 1,) each."""
        cells = ThresholdCells.from_curves(self.used)
        model = ScalingModel.of(
            cells, degree=self.degree, with_correction=self.with_correction,
            with_mixed=self.with_mixed, omega=self.omega,
        )  # fmt: skip
        best = maximise(model, cells, cells.counts, model.start)
        argument, jacobian = model(best.theta)
        density = np.exp(-0.5 * argument**2) / np.sqrt(2 * np.pi)
        slope = cells.difference @ (density[:, None] * jacobian)
        probability = np.maximum(cells.difference @ ndtr(argument) + cells.offset, 1e-12)
        step = 1e-6 * np.eye(best.theta.size)
        by_theta = np.array([
            (model.scaling_function(best.theta + x).threshold
             - model.scaling_function(best.theta - x).threshold) / 2e-6 for x in step
        ])  # fmt: skip
        every = (slope / probability[:, None]) @ best.covariance @ by_theta
        return tuple(every[cells.curve == index] for index in range(len(self.used)))

    @property
    def nu(self) -> float:
        """The correlation-length exponent."""
        return 1.0 / self.scaling.y_t

    @property
    def critical_probability(self) -> float:
        """Spanning probability at p_c in the limit of large L."""
        return self.scaling.critical_probability

    @property
    def critical_probability_z(self) -> float:
        """Deviation of R at p_c from theory, in its errors; NaN without either of them."""
        if self.known_probability is None or not self.critical_probability_error > 0:
            return nan
        away = self.critical_probability - self.known_probability.value
        return away / self.critical_probability_error

    @property
    def degree(self) -> int:
        """Degree of the scaling polynomial that was fitted."""
        return len(self.scaling.coefficients) - 1

    @property
    def corrections(self) -> str:
        """Which corrections to scaling were fitted: "none", "b" or "b, c"."""
        return "b, c" if self.with_mixed else "b" if self.with_correction else "none"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Linear sizes that entered the fit, ascending."""
        return linear_sizes(self.used)

    def probability(self, p: ArrayLike, L: ArrayLike) -> Floats:
        """Fitted spanning probability at `p` for size `L` (broadcast), float64."""
        return self.scaling.probability(p, L)

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        record = plain(
            {
                "threshold": self.threshold,
                "y_t": self.y_t,
                "nu": self.nu,
                "critical_probability": self.critical_probability,
                "critical_probability_z": self.critical_probability_z,
                "coefficients": self.scaling.coefficients,
                "correction": self.scaling.correction if self.with_correction else None,
                "mixed": self.scaling.mixed if self.with_mixed else None,
                "omega": self.scaling.omega,
                "degree": self.degree,
                "sizes": self.sizes,
            }
        )
        nested = {"scaling", "by_size", "curves", "used"}
        record |= {
            field.name: plain(getattr(self, field.name))
            for field in fields(self)
            if field.name not in nested
        }
        record["size_fits"] = [fit.to_dict() for fit in self.by_size.fits]
        record["crossings"] = [crossing.to_dict() for crossing in self.by_size.crossings]
        record["drift"] = self.by_size.drift and self.by_size.drift.to_dict()
        record["curves"] = [curve.to_dict() for curve in self.curves]
        return record


def fit_threshold(
    curves: Sequence[SpanningCurve],
    *,
    omega: float = 1.0,
    degree: int = 3,
    min_size: int | None = None,
    correction: bool = True,
    mixed: bool = False,
    window: tuple[float, float] = WINDOW,
    bootstrap: int = 200,
    seed: int = 0,
) -> ThresholdFit:
    """Fit the threshold to the spanning curves of at least two sizes.

    omega: exponent of the leading correction to scaling (1: an open boundary).
    degree: largest degree of the polynomials; lowered when there are too few points.
    min_size: smallest L to use.
    correction: whether to fit b L^-omega; it is left out with fewer than three sizes.
    mixed: whether to fit c (p - p_c) L^(1/nu - omega) beside it.
    window: range of R_L(p) that is fitted; points outside merge into the end intervals of T.
    bootstrap: number of replicas, 0 for the curvature error alone. seed: of the bootstrap.

    Raises AnalysisError (one line) when the data cannot give a threshold, and ValueError when an
    option is out of range.
    """
    _check_options(omega=omega, degree=degree, window=window, bootstrap=bootstrap)
    used, notes = select(curves, min_size=min_size, window=window)
    cells, model = model_of(used, omega=omega, degree=degree, correction=correction, mixed=mixed)
    estimate = maximise(model, cells, cells.counts, model.start)
    quality = chi_square(model, cells, estimate)
    sizes, replicas = _analyse_sizes(
        cells, model, estimate, degree=degree, bootstrap=bootstrap, seed=seed
    )
    notes += describe(
        used,
        quality,
        sizes.crossings,
        with_correction=model.with_correction,
        lowered_to=model.degree if model.degree < degree else None,
    )
    notes += replicas.notes(sizes.crossings)
    return _assemble(model, estimate, quality, sizes, replicas, tuple(curves), used, tuple(notes))


def model_of(
    used: Sequence[SpanningCurve], *, omega: float, degree: int, correction: bool, mixed: bool
) -> tuple[ThresholdCells, ScalingModel]:
    """Return the cells of selected curves and the largest model asked for that they carry."""
    cells = ThresholdCells.from_curves(used)
    with_correction = correction and len(linear_sizes(used)) > 2
    with_mixed = mixed and with_correction
    own_degree = affordable_degree(used, degree=degree, corrections=with_correction + with_mixed)
    model = ScalingModel.of(
        cells,
        degree=own_degree,
        with_correction=with_correction,
        with_mixed=with_mixed,
        omega=omega,
    )
    return cells, model


def select(
    curves: Sequence[SpanningCurve], *, min_size: int | None, window: tuple[float, float]
) -> tuple[tuple[SpanningCurve, ...], list[str]]:
    """Return the usable curves, ascending in L, cut to the window, and notes on what was left out.

    A size is usable when R_L rises between at least two p inside the window. Raises AnalysisError
    with fewer than two usable sizes.
    """
    allowed = [curve for curve in curves if min_size is None or min_size <= curve.L]
    if len(linear_sizes(allowed)) < 2:
        above = "" if min_size is None else f" of L >= {min_size}"
        raise AnalysisError(
            f"need at least two sizes{above} to find a threshold, got {_listed(allowed) or 'none'}"
        )
    cut = [part for curve in allowed if (part := curve.within(*window)) is not None]
    used: list[SpanningCurve] = []
    notes: list[str] = []
    for size in linear_sizes(allowed):
        own = curves_of_size(cut, size)
        if _rises(own):
            used += own
        else:
            notes.append(
                f"L = {size} not used: fewer than two p with {window[0]:g} <= R <= {window[1]:g}"
            )
    if len(linear_sizes(used)) < 2:
        raise AnalysisError(
            f"need at least two sizes with two p inside {window[0]:g} <= R <= {window[1]:g}, "
            f"got {_listed(used) or 'none'}; use a finer p grid around the threshold"
        )
    return tuple(used), notes


def affordable_degree(curves: Sequence[SpanningCurve], *, degree: int, corrections: int) -> int:
    """Largest degree that leaves one point more than parameters and fits one size's own points.

    corrections: number of amplitudes of corrections to scaling that are fitted too.
    """
    points = sum(curve.p.size for curve in curves)
    own = max(
        np.unique(np.concatenate([curve.p for curve in curves_of_size(curves, size)])).size
        for size in linear_sizes(curves)
    )
    fixed = 3 + corrections
    return max(1, min(degree, own - 1, points - fixed - 1))


def describe(
    used: Sequence[SpanningCurve],
    quality: ChiSquare,
    crossings: Sequence[Crossing],
    *,
    with_correction: bool,
    lowered_to: int | None,
) -> list[str]:
    """Return one line for each thing that a reader of the threshold must know."""
    notes = []
    if not with_correction:
        notes.append(
            "no correction to scaling was fitted (it needs three sizes): "
            "the error leaves out the shift of p_c that a correction would make"
        )
    if lowered_to is not None:
        notes.append(f"too few p for the degree asked for: fitted with degree {lowered_to}")
    if any(curve.samples.size < MIN_BLOCKS for curve in used):
        notes.append(f"some tasks have fewer than {MIN_BLOCKS} blocks: resampled by sample instead")
    if is_poor(quality):
        notes.append(
            f"the fit is poor (p-value {quality.p_value:.1e}, below {POOR_FIT:g}): "
            "a higher degree, the mixed correction or fewer small sizes may help "
            "(--min-size auto tries them in turn)"
        )
    missing = [f"({c.L1}, {c.L2})" for c in crossings if not c.found]
    if missing:
        notes.append(f"no crossing inside the common p range for L = {', '.join(missing)}")
    return notes


def _rises(curves: Sequence[SpanningCurve]) -> bool:
    if not curves:
        return False
    p = np.concatenate([curve.p for curve in curves])
    probability = np.concatenate([curve.probability for curve in curves])
    return bool(np.unique(p).size > 1 and np.polyfit(p - p.mean(), probability, 1)[0] > 1e-9)


def _listed(curves: Sequence[SpanningCurve]) -> str:
    return ", ".join(f"L = {size}" for size in linear_sizes(curves))


def _analyse_sizes(
    cells: ThresholdCells,
    model: ScalingModel,
    estimate: LikelihoodMaximum,
    *,
    degree: int,
    bootstrap: int,
    seed: int,
) -> tuple[SizeAnalysis, ThresholdReplicas]:
    """Fit each size alone, cross neighbours, and bootstrap these together with the headline."""
    fits = tuple(
        fit_size(curves_of_size(cells.curves, size), degree=degree)
        for size in linear_sizes(cells.curves)
    )
    crossings = find_crossings(fits)
    replicas = run_bootstrap(
        cells, model, estimate.theta, fits, crossings,
        replicas=bootstrap, rng=np.random.default_rng(seed),
    )  # fmt: skip
    drift = None
    if bootstrap:
        crossings = with_errors(crossings, replicas.crossings)
        p_c, y_t = model.scaling_function(estimate.theta).threshold, float(estimate.theta[1])
        width = transition_width(fits, p_c, y_t)
        drawn = replicas.crossings[:, :, 0]
        drift = extrapolate(crossings, drawn, omega=model.omega, y_t=y_t, width=width)
    return SizeAnalysis(fits, crossings, drift), replicas


def _assemble(
    model: ScalingModel,
    estimate: LikelihoodMaximum,
    quality: ChiSquare,
    sizes: SizeAnalysis,
    replicas: ThresholdReplicas,
    curves: tuple[SpanningCurve, ...],
    used: tuple[SpanningCurve, ...],
    notes: tuple[str, ...],
) -> ThresholdFit:
    fisher_error = model.width * float(np.sqrt(estimate.covariance[0, 0]))
    bootstrap_error = replicas.error(lambda function: function.threshold)
    has_bootstrap = bool(np.isfinite(bootstrap_error))
    few_blocks = any(curve.samples.size < MIN_BLOCKS for curve in used)
    unit = "samples" if few_blocks else "blocks"
    return ThresholdFit(
        scaling=model.scaling_function(estimate.theta),
        threshold_error=bootstrap_error if has_bootstrap else fisher_error,
        fisher_error=fisher_error,
        y_t_fisher_error=float(np.sqrt(estimate.covariance[1, 1])),
        error_method=f"bootstrap over {unit}" if has_bootstrap else "curvature of the likelihood",
        y_t_error=replicas.error(lambda function: function.y_t),
        nu_error=replicas.error(lambda function: 1.0 / function.y_t),
        critical_probability_error=replicas.error(lambda f: f.critical_probability),
        coefficient_errors=replicas.coefficient_errors(),
        correction_error=replicas.error(lambda function: function.correction),
        with_correction=model.with_correction,
        mixed_error=replicas.error(lambda function: function.mixed),
        with_mixed=model.with_mixed,
        chi_square=quality,
        log_likelihood=estimate.log_likelihood,
        replicas=replicas.crossings.shape[0],
        failed_replicas=replicas.failed,
        by_size=sizes,
        curves=curves,
        used=used,
        notes=notes,
    )


def _check_options(
    *, omega: float, degree: int, window: tuple[float, float], bootstrap: int
) -> None:
    if not omega > 0:
        raise ValueError(f"omega must be positive, got {omega}")
    if degree < 1:
        raise ValueError(f"degree must be at least 1, got {degree}")
    if not 0 < window[0] < window[1] < 1:
        raise ValueError(f"window must satisfy 0 < low < high < 1, got {window}")
    if bootstrap < 0:
        raise ValueError(f"bootstrap must not be negative, got {bootstrap}")


@dataclass(frozen=True, eq=False)
class ThresholdReplicas:
    """What the replicas gave.

    functions: scaling functions of the replicas whose fit converged.
    crossings: float64 (replicas, crossings, 2), p* and R, NaN where absent.
    """

    functions: tuple[ScalingFunction, ...]
    crossings: Floats

    @property
    def failed(self) -> int:
        """Number of replicas without a fit."""
        return len(self.crossings) - len(self.functions)

    def error(self, quantity: Callable[[ScalingFunction], float]) -> float:
        """One-sigma error of a quantity derived from the scaling function; NaN without replicas."""
        return half_width(np.array([quantity(function) for function in self.functions]))

    def coefficient_errors(self) -> tuple[float, ...]:
        """One-sigma errors of a_0 ... a_d; empty without replicas."""
        columns = zip(*(function.coefficients for function in self.functions), strict=True)
        return tuple(half_width(np.array(column)) for column in columns)

    def notes(self, crossings: Sequence[Crossing]) -> list[str]:
        """Return one line for each kind of replica that an error bar leaves out.

        `crossings` are those of the data, in the order of the columns here.
        """
        total, notes = self.crossings.shape[0], []
        if self.failed:
            notes.append(
                f"{self.failed} of {total} bootstrap replicas could not be fitted: "
                "the errors leave them out"
            )
        absent = np.isnan(self.crossings[:, :, 0]).sum(axis=0) - self.failed
        missing = [
            f"({crossing.L1}, {crossing.L2}) in {count} of {total}"
            for crossing, count in zip(crossings, absent.tolist(), strict=True)
            if crossing.found and count
        ]
        if missing:
            notes.append(
                "crossings absent in bootstrap replicas, which their errors leave out: "
                f"L = {', '.join(missing)}"
            )
        return notes


def run_bootstrap(
    cells: ThresholdCells,
    model: ScalingModel,
    theta: Floats,
    size_fits: Sequence[SizeFit],
    crossings: Sequence[Crossing],
    *,
    replicas: int,
    rng: np.random.Generator,
) -> ThresholdReplicas:
    """Refit `replicas` resampled counts, each from the fit of the data.

    `theta` is the maximum of `model` on the data; `size_fits` and `crossings` ascend in L.
    """
    own_cells = [cells.of_size(fit.L) for fit in size_fits]
    functions: list[ScalingFunction] = []
    crossed = np.full((replicas, len(crossings), 2), np.nan)
    for index, counts in enumerate(cells.resample(rng, replicas)):
        try:
            estimate = maximise(model, cells, counts, theta)
        except AnalysisError:
            continue
        functions.append(model.scaling_function(estimate.theta))
        crossed[index] = _cross_replica(crossings, size_fits, own_cells, counts)
    return ThresholdReplicas(tuple(functions), crossed)


def _cross_replica(
    crossings: Sequence[Crossing],
    size_fits: Sequence[SizeFit],
    own_cells: Sequence[tuple[ThresholdCells, NDArray[np.bool_]]],
    counts: Floats,
) -> Floats:
    """(p*, R) of every crossing in one replica, NaN where a curve could not be fitted."""
    try:
        refits = [
            refit(fit, own, counts[mask])
            for fit, (own, mask) in zip(size_fits, own_cells, strict=True)
        ]
    except AnalysisError:
        return np.full((len(crossings), 2), np.nan)
    return replica_crossings(crossings, refits)
