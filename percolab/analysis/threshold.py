"""The percolation threshold from the spanning curves of several sizes.

The headline is one simultaneous finite-size-scaling fit of all curves; the crossings of the
curves and their drift stand beside it as a check that does not depend on the scaling function.
No published threshold enters anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from percolab.analysis.bootstrap import Replicas, run_bootstrap
from percolab.analysis.crossings import extrapolate, find_crossings, with_errors
from percolab.analysis.curve import SpanningCurve, curves_of_size, linear_sizes
from percolab.analysis.likelihood import (
    MIN_BLOCKS,
    ChiSquare,
    Estimate,
    ThresholdCells,
    chi_square,
    maximise,
)
from percolab.analysis.result import SizeAnalysis, ThresholdFit
from percolab.analysis.scaling import ScalingModel
from percolab.analysis.selection import WINDOW, affordable_degree, describe, select
from percolab.analysis.size_fit import fit_size


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
    """Estimate the threshold from the spanning curves of at least two sizes.

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


def _analyse_sizes(
    cells: ThresholdCells,
    model: ScalingModel,
    estimate: Estimate,
    *,
    degree: int,
    bootstrap: int,
    seed: int,
) -> tuple[SizeAnalysis, Replicas]:
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
        exponent = model.omega + float(estimate.theta[1])
        drift = extrapolate(crossings, replicas.crossings[:, :, 0], exponent=exponent)
    return SizeAnalysis(fits, crossings, drift), replicas


def _assemble(
    model: ScalingModel,
    estimate: Estimate,
    quality: ChiSquare,
    sizes: SizeAnalysis,
    replicas: Replicas,
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
