"""Stored results as curves, whichever method sampled them, and the thresholds read off them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from percolab.analysis import (
    AnalysisError,
    ClusterCurve,
    Cutoff,
    SizeEstimates,
    SpanningCurve,
    ThresholdFit,
    choose_cutoff,
    estimate_size,
    fit_threshold,
    scan_cutoffs,
)
from percolab.kernels.open_bonds import NEVER, TOP, threshold_of
from percolab.observables import axis_observables, observables_of
from percolab.storage import Results
from percolab.stored_tasks import TaskResult
from percolab.toml_input import InputError

#: Values of p that exact thresholds are counted at, and the part of them to either side.
POINTS, _TAIL = 25, 0.01


def default_observable(results: Results) -> str:
    """Return the spanning observable that p_c is read off by default: along the last open axis."""
    axes = axis_observables(results.study.boundary)
    if not axes and not results.study.boundary:
        raise InputError("this graph has no source and target, so nothing spans")
    if not axes:
        raise InputError("this study has no open axis, so nothing spans and no p_c can be read off")
    return axes[-1]


def curves_of(results: Results, observable: str | None = None) -> list[SpanningCurve]:
    """Return the spanning curves of all tasks that have blocks, ascending in L.

    Exact thresholds are counted at POINTS values of p, equally spaced over the transition.
    """
    name = observable or default_observable(results)
    curves = [_curve_of(item, name) for item in results.tasks.values() if item.blocks]
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
    min_size: int | Literal["auto"] | None = None,
    **options,
) -> ThresholdFit:
    """Fit p_c to stored results (see :func:`percolab.analysis.fit_threshold` for the options).

    ``min_size`` "auto" leaves out small sizes until chi^2 does not reject the fit.
    """
    _check_scalable(results)
    if min_size == "auto":
        min_size = choose_cutoff(cutoffs_of(results, observable, **options)).min_size
    return fit_threshold(curves_of(results, observable), min_size=min_size, **options)


def cutoffs_of(results: Results, observable: str | None = None, **options) -> tuple[Cutoff, ...]:
    """Return the fits of stored results against the smallest size used."""
    _check_scalable(results)
    return scan_cutoffs(curves_of(results, observable), **options)


def _check_scalable(results: Results) -> None:
    structure = results.study.lattice
    if not structure.is_scalable:
        raise AnalysisError(
            f"{structure.name} has no sizes that scale: its thresholds are those of each size alone"
        )


def estimates_of(results: Results, *, bootstrap: int = 200) -> tuple[SizeEstimates, ...]:
    """Return the thresholds of every size alone that has blocks, ascending in L.

    bootstrap: replicas over blocks.  AnalysisError: there are no blocks.
    """
    clusters = cluster_curves_of(results)
    spanning = curves_of(results) if results.study.boundary else []
    items = [item for item in results.tasks.values() if item.blocks]
    sites = {item.task.size: item.task.num_points for item in items}
    if not sites:
        raise AnalysisError("no samples yet")
    return tuple(
        estimate_size(
            [curve for curve in clusters if size == curve.L],
            [curve for curve in spanning if size == curve.L],
            num_sites=num_sites,
            bootstrap=bootstrap,
        )
        for size, num_sites in sorted(sites.items())
    )


def cluster_curves_of(results: Results) -> list[ClusterCurve]:
    """Return the cluster sizes of all tasks of method "grid" that have blocks, ascending in L."""
    items = [item for item in results.tasks.values() if item.blocks and item.task.method == "grid"]
    return [_clusters_of(item) for item in sorted(items, key=lambda item: item.task.size)]


def _clusters_of(item: TaskResult) -> ClusterCurve:
    task = item.task
    names = [observable.name for observable in observables_of(task.boundary)]
    first, second = np.triu_indices(len(names))
    own = int(np.flatnonzero((first == second) & (first == names.index("largest")))[0])
    return ClusterCurve(
        L=task.size,
        num_sites=task.num_points,
        p=np.array(task.p),
        samples=np.full(len(item.blocks), task.block_size),
        largest=item.column("largest").astype(float),
        second_largest=item.column("second_largest").astype(float),
        sum_squares=item.column("sum_squares").astype(float),
        largest_squares=item.products()[:, :, own],
    )
