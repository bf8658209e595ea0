"""Stored results as curves, whichever method sampled them, and the thresholds read off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log10
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from percolab.analysis import (
    CLUSTER_QUANTITIES,
    POOR_COLLAPSE,
    AnalysisError,
    ClusterCurve,
    Collapse,
    ExponentFit,
    Measured,
    RatioCrossings,
    SampleThresholds,
    SizeEstimates,
    SpanningCurve,
    ThresholdFit,
    Trial,
    analyse_samples,
    choose_fit,
    collapse_curves,
    estimate_size,
    fit_exponents,
    fit_threshold,
    ratio_crossings,
    try_fits,
)
from percolab.analysis.curve import linear_sizes
from percolab.analysis.cutoff import DEGREES
from percolab.analysis.known_exponents import correction_exponent
from percolab.analysis.size_counts import size_counts_of
from percolab.analysis.theory.critical import critical_probability
from percolab.bonds.words import NEVER, TOP, threshold_of
from percolab.errors import InputError
from percolab.lattices.lattice import AXIS_NAMES
from percolab.measure.columns import axis_observables, observables_of, spanning_names
from percolab.store.joined import joined
from percolab.store.results import Results
from percolab.store.sample_versions import warning_of
from percolab.store.task_result import TaskResult

#: What a user asks for who leaves the choice to chi^2.
Auto = Literal["auto"]

#: Values of p that exact thresholds are counted at, and the part of them to either side.
POINTS, _TAIL = 25, 0.01


def default_observable(results: Results) -> str:
    """Return the probability that p_c is read off by default.

    That is spanning along the last open axis; on a torus, wrapping around the last axis.
    """
    boundary = results.study.boundary
    axes = axis_observables(boundary)
    if not axes and not boundary:
        raise InputError("this graph has no source and target, so nothing spans")
    if axes:
        return axes[-1]
    around = [f"wrapping_{AXIS_NAMES[axis]}" for axis in range(len(boundary))]
    if around[-1] not in probability_names(results):
        raise InputError(
            "this study has no open axis and was made before wrapping was measured, so no p_c can "
            "be read off"
        )
    return around[-1]


def probability_names(results: Results) -> list[str]:
    """Return the names of the probabilities that a fit can use: those that rise with p.

    A file that was made before wrapping was measured has no wrapping probabilities.
    """
    boundary = results.study.boundary
    if results.study.method == "threshold":
        return spanning_names(boundary)
    items = [item for item in results.tasks.values() if item.blocks]
    return [
        column.name
        for column in observables_of(boundary)
        if column.rises_with_p and all(item.has(column.name) for item in items)
    ]


def curves_of(results: Results, observable: str | None = None) -> list[SpanningCurve]:
    """Return the spanning curves of all tasks that have blocks, ascending in L.

    Exact thresholds are counted at POINTS values of p, equally spaced over the transition.
    """
    name = observable or default_observable(results)
    curves = [_curve_of(item, name) for item in joined(results).tasks.values() if item.blocks]
    return sorted(curves, key=lambda curve: curve.L)


def _curve_of(item: TaskResult, name: str) -> SpanningCurve:
    if item.task.method == "threshold":
        found = item.thresholds(name)
        p = transition_grid(found)
        spanning = spanning_counts(found, p)
    else:
        p, spanning = np.array(item.task.p), item.column(name)
    samples = np.full(len(item.blocks), item.task.block_size)
    return SpanningCurve(item.task.size, p, samples, spanning, item.task.id)


def spanning_counts(thresholds: NDArray[np.uint64], p: Sequence[float] | NDArray) -> NDArray:
    """Return how many samples of every block span at each p, int64 (n_blocks, m).

    thresholds: T of the samples, uint64 (n_blocks, block_size).
    """
    limits = np.array([threshold_of(float(value)) for value in p], np.uint64)
    return (thresholds[:, :, None] <= limits).sum(axis=1)


def transition_grid(thresholds: NDArray[np.uint64], points: int = POINTS) -> NDArray[np.float64]:
    """Return equally spaced p over all but the outermost 2 % of the thresholds.

    They are rounded to a tenth of their spacing, so that they do not hang on single samples.
    """
    found = thresholds[thresholds != np.uint64(NEVER)] / TOP
    low, high = np.quantile(found, (_TAIL, 1 - _TAIL)) if found.size else (1.0, 1.0)
    if not high > low:
        return np.array([low])
    digits = ceil(-log10((high - low) / (points - 1))) + 1
    return np.unique(np.round(np.linspace(low, high, points), digits)).clip(0.0, 1.0)


def fit_results(
    results: Results,
    observable: str | None = None,
    *,
    omega: float | None = None,
    min_size: int | Auto | None = None,
    degree: int | Auto | None = None,
    mixed: bool | Auto | None = None,
    **options: Any,
) -> ThresholdFit:
    """Fit p_c to stored results (see :func:`percolab.analysis.fit_threshold` for the options).

    omega: exponent of the leading correction; by default that of the study's dimension and boundary
    (:func:`percolab.analysis.known_exponents.correction_exponent`).

    ``min_size`` "auto" takes the first fit that chi^2 does not reject: it adds terms to the model,
    as far as ``degree`` and ``mixed`` are left open, before it leaves out a size
    (:mod:`percolab.analysis.cutoff`).  ``degree`` or ``mixed`` "auto" alone adds terms in the same
    way and leaves out no size.
    """
    _check_scalable(results)
    name = observable or default_observable(results)
    model: dict[str, Any] = {"min_size": min_size, "degree": degree, "mixed": mixed}
    options["omega"], source = _correction(results, omega)
    if "auto" in model.values():
        model = choose_fit(trials_of(results, name, **model, **options)).model
    given = {key: value for key, value in model.items() if value is not None}
    fit = fit_threshold(curves_of(results, name), **given, **options)
    study = results.study
    known = critical_probability(study.lattice, study.boundary, name)
    notes = (*notes_of(results), *fit.notes)
    return replace(fit, known_probability=known, omega_source=source, notes=notes)


def notes_of(results: Results) -> tuple[str, ...]:
    """Return what must be said of any p_c of these samples, whatever it is read off."""
    warning = warning_of(results)
    return () if warning is None else (warning,)


def _correction(results: Results, omega: float | None) -> tuple[float, str]:
    """Return the exponent of the corrections, and why it is this one, in a few words."""
    if omega is not None:
        return omega, "given"
    boundary = results.study.boundary
    known = correction_exponent(len(boundary), periodic=set(boundary) == {"periodic"})
    return known.value, f"{known.expression} ({known.reference})"


def omega_of(results: Results) -> float:
    """Return the exponent of the leading correction that a default fit of results takes."""
    return _correction(results, None)[0]


def trials_of(
    results: Results,
    observable: str | None = None,
    *,
    omega: float | None = None,
    min_size: int | Auto | None = "auto",
    degree: int | Auto | None = None,
    mixed: bool | Auto | None = None,
    every: bool = False,
    **options: Any,
) -> tuple[Trial, ...]:
    """Return the table of fits of stored results (:func:`percolab.analysis.try_fits`).

    omega, min_size, degree, mixed: as for :func:`fit_results`.
    """
    _check_scalable(results)
    options["omega"], _ = _correction(results, omega)
    curves = curves_of(results, observable)
    if min_size != "auto":
        # Sizes are held, and so is what is not asked to be chosen.
        curves = [curve for curve in curves if min_size is None or min_size <= curve.L]
        options["cutoffs"] = linear_sizes(curves)[:1]
        degree, mixed = degree or DEGREES[0], mixed or False
    # What is not given is tried.
    options["degree"] = None if degree == "auto" else degree
    options["mixed"] = None if mixed == "auto" else mixed
    return try_fits(curves, every=every, **options)


def _check_scalable(results: Results) -> None:
    structure = results.study.lattice
    if not structure.is_scalable:
        raise AnalysisError(
            f"{structure.name} has no sizes that scale: its thresholds are those of each size alone"
        )


def exponents_of(
    results: Results,
    fit: ThresholdFit | None = None,
    *,
    bootstrap: int = 200,
    seed: int = 0,
) -> ExponentFit:
    """Return the exponents read off at p_c (:mod:`percolab.analysis.exponents`).

    fit: of p_c; that of the default options unless given.
    """
    _check_scalable(results)
    return fit_exponents(
        fit_results(results) if fit is None else fit,
        cluster_curves_of(results),
        dimension=results.study.lattice.dimension,
        numbers=size_counts_of(results),
        is_open=set(results.study.boundary) != {"periodic"},
        bootstrap=bootstrap,
        seed=seed,
    )


def ratios_of(
    results: Results, fit: ThresholdFit, *, bootstrap: int = 200, seed: int = 0
) -> RatioCrossings | None:
    """Return the crossings of <s_1>^2/<s_1^2> (:mod:`percolab.analysis.ratio_crossings`).

    fit: of p_c, near which they are looked for.  None where no cluster sizes are stored.
    """
    clusters = [curve for curve in cluster_curves_of(results) if curve.L in fit.sizes]
    if len({curve.L for curve in clusters}) < 2:
        return None
    return ratio_crossings(
        clusters,
        near=fit.threshold,
        exponent=fit.scaling.omega + fit.y_t,
        bootstrap=bootstrap,
        seed=seed,
    )


def samples_of(
    results: Results,
    observable: str | None = None,
    *,
    omega: float | None = None,
    min_size: int | None = None,
    bootstrap: int = 200,
) -> SampleThresholds | None:
    """Return the thresholds from single T (:mod:`percolab.analysis.sample_thresholds`).

    None where the study is not of method "threshold".  omega: as for :func:`fit_results`.
    min_size: smallest L to use.
    """
    _check_scalable(results)
    if results.study.method != "threshold":
        return None
    name = observable or default_observable(results)
    items = [
        item
        for item in results.tasks.values()
        if item.blocks and (min_size is None or min_size <= item.task.size)
    ]
    found = [(item.task.size, item.thresholds(name).ravel()) for item in items]
    return analyse_samples(
        [(L, np.where(np.uint64(NEVER) == T, np.inf, T / TOP)) for L, T in found],
        sorted((_curve_of(item, name) for item in items), key=lambda curve: curve.L),
        omega=_correction(results, omega)[0],
        bootstrap=bootstrap,
    )


def collapse_of(
    results: Results,
    observable: str | None = None,
    *,
    threshold: float | None = None,
    y_t: float | None = None,
    exponent: float | None = None,
    min_size: int | Literal["auto"] | None = None,
    reach: float | None = None,
    bootstrap: int = 50,
    seed: int = 0,
) -> Collapse:
    """Return the data collapse of an observable (:mod:`percolab.analysis.collapse`).

    observable: a probability by its name, or "largest" (P_inf), "second_largest" or "chi".
    threshold, y_t, exponent: p_c, 1/nu and kappa of y = A L^-kappa; what is given is held, the rest
    is fitted, but for kappa = 0 of a probability. min_size: smallest L; "auto" leaves out small
    ones until S is below POOR_COLLAPSE or three are left. reach: largest |x|. bootstrap: replicas
    for the errors, 0 for none. InputError: no such observable. AnalysisError: too few sizes.
    """
    _check_scalable(results)
    name = observable or default_observable(results)
    if min_size == "auto":
        given = {"threshold": threshold, "y_t": y_t, "exponent": exponent, "reach": reach}
        min_size = _collapsing_size(results, name, **given)
    is_cluster = name in CLUSTER_QUANTITIES
    measured = _measured(results, name, min_size)
    if threshold is None or y_t is None:
        # Of a study without an open axis, what wraps tells where the threshold is.
        wraps = not axis_observables(results.study.boundary)
        read = next(iter(probability_names(results)), None) if wraps else None
        begin = fit_results(results, read if is_cluster else name, min_size=min_size, bootstrap=0)
        first = (begin.threshold, begin.y_t)
    else:
        first = (threshold, y_t)
    p_c = first[0] if threshold is None else threshold
    kappa = _log_slope(measured, p_c) if is_cluster and exponent is None else exponent or 0.0
    return collapse_curves(
        measured,
        observable=name,
        start=(p_c, first[1] if y_t is None else y_t, kappa),
        fixed=(threshold is not None, y_t is not None, exponent is not None or not is_cluster),
        reach=reach,
        bootstrap=bootstrap,
        seed=seed,
    )


def _collapsing_size(results: Results, name: str, **given: float | None) -> int | None:
    """Return the smallest L from which on an observable collapses, leaving three sizes."""
    sizes = sorted({item.task.size for item in results.tasks.values() if item.blocks})
    cuts = sizes[: max(len(sizes) - 2, 1)]
    for size in cuts[:-1]:
        options: dict[str, Any] = given | {"min_size": size}
        if collapse_of(results, name, bootstrap=0, **options).quality < POOR_COLLAPSE:
            return size
    return cuts[-1] if cuts else None


def _measured(results: Results, name: str, min_size: int | None) -> list[Measured]:
    """Return an observable of every size, ascending in L."""
    if name in CLUSTER_QUANTITIES:
        found = [Measured.of_clusters(curve, name) for curve in cluster_curves_of(results)]
    else:
        cut = [Measured.of_spanning(curve) for curve in curves_of(results, name)]
        found = [item for item in cut if item is not None]
    return [item for item in found if min_size is None or min_size <= item.L]


def _log_slope(measured: Sequence[Measured], p_c: float) -> float:
    """Return the slope of ln A(p_c) against ln L, where a search for kappa begins."""
    if len({item.L for item in measured}) < 2:
        return 0.0
    at_p_c = [np.interp(p_c, item.p, item.values) for item in measured]
    return float(np.polyfit(np.log([item.L for item in measured]), np.log(at_p_c), 1)[0])


def estimates_of(results: Results, *, bootstrap: int = 200) -> tuple[SizeEstimates, ...]:
    """Return the thresholds of every size alone that has blocks, ascending in L.

    bootstrap: replicas over blocks.  AnalysisError: there are no blocks.
    """
    clusters = cluster_curves_of(results)
    spanning = curves_of(results) if results.study.boundary else []
    items = [item for item in results.tasks.values() if item.blocks]
    sites = {item.task.size: item.task.num_sites for item in items}
    if not sites:
        raise AnalysisError("no samples yet")
    first, *others = (
        estimate_size(
            [curve for curve in clusters if size == curve.L],
            [curve for curve in spanning if size == curve.L],
            num_sites=num_sites,
            bootstrap=bootstrap,
        )
        for size, num_sites in sorted(sites.items())
    )
    return (replace(first, notes=(*notes_of(results), *first.notes)), *others)


def cluster_curves_of(results: Results) -> list[ClusterCurve]:
    """Return the cluster sizes of all tasks of method "grid" that have blocks, ascending in L.

    Those that lack a column which this takes are left out.
    """
    tasks = joined(results).tasks.values()
    needed = ("largest", "second_largest", "sum_squares")
    items = [
        item for item in tasks if item.blocks and item.task.method == "grid" and item.has(*needed)
    ]
    return [_clusters_of(item) for item in sorted(items, key=lambda item: item.task.size)]


def _clusters_of(item: TaskResult) -> ClusterCurve:
    task = item.task
    names = [observable.name for observable in item.observables]
    first, second = np.triu_indices(len(names))
    own = int(np.flatnonzero((first == second) & (first == names.index("largest")))[0])
    return ClusterCurve(
        L=task.size,
        num_sites=task.num_sites,
        p=np.array(task.p),
        samples=np.full(len(item.blocks), task.block_size),
        largest=item.column("largest").astype(float),
        second_largest=item.column("second_largest").astype(float),
        sum_squares=item.column("sum_squares").astype(float),
        largest_squares=item.products()[:, :, own],
        label=task.id,
    )
