"""The input of the analysis from stored results: curves, cluster numbers, radii, moments."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.exponents import SPANNING
from percolab.analysis.json_values import Record
from percolab.analysis.quantities import BlockMoments, Quantity, list_quantities
from percolab.analysis.radii import GyrationSums
from percolab.analysis.statistics import Floats, standard_error
from percolab.analysis.study_kinds import find_analysis
from percolab.analysis.tau import SizeCounts
from percolab.bonds.words import NEVER, TOP
from percolab.errors import AnalysisError, InputError, nearest
from percolab.lattices.lattice import AXIS_NAMES
from percolab.measure.columns import CONNECTED, FLOW_WORDS, axis_observables
from percolab.measure.tallies import bin_edges
from percolab.store.joined import joined
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult


def list_tasks(results: StoredResults, *columns: str) -> list[TaskResult]:
    """Return the tasks with blocks that have these columns, ascending in L."""
    items = [each for each in joined(results).measured if each.has(*columns)]
    return sorted(items, key=lambda each: (each.task.size, each.task.seed, each.task.id))


def probability_names(results: StoredResults) -> list[str]:
    """Return the names of the probabilities that a fit can use: those that rise with p."""
    return find_analysis(results.study).probability_names(results)


def default_observable(results: StoredResults) -> str:
    """Return the probability to fit: of spanning, or on a torus wrapping, along the last axis."""
    boundary = results.study.boundary
    axes = axis_observables(boundary)
    if not axes and not boundary:
        raise InputError("this graph has no source and target, so nothing spans")
    return axes[-1] if axes else f"wrapping_{AXIS_NAMES[len(boundary) - 1]}"


def choose_observable(results: StoredResults, observable: str | None) -> str:
    """Return a probability, the default if None is named; InputError for another observable."""
    known = probability_names(results)
    name = default_observable(results) if observable is None else observable
    if name not in known:
        # Where there is none at all, this raises the reason.
        default_observable(results)
        raise InputError(f"--observable {name}: no spanning observable; {nearest(name, known)}")
    return name


def read_curves(results: StoredResults, observable: str | None = None) -> list[SpanningCurve]:
    """Return the spanning curves of all tasks that have blocks, ascending in L.

    Exact thresholds are counted at POINTS values of p, equally spaced over the transition.
    AnalysisError: chains of spins, whose samples differ from p to p.
    """
    if reason := find_analysis(results.study).no_curve:
        raise AnalysisError(reason)
    name = observable or default_observable(results)
    items = joined(results).measured
    curves = [find_analysis(result.task).curve(result, name) for result in items]
    return sorted(curves, key=lambda curve: curve.L)


def read_single_thresholds(
    results: StoredResults, observable: str, min_size: int | None
) -> tuple[list[tuple[int, Floats]], list[SpanningCurve]]:
    """Return (L, T or inf) of tasks of method "threshold", and their curves, ascending in L."""
    items = results.measured
    items = [result for result in items if min_size is None or min_size <= result.task.size]
    thresholds = [(result.task.size, result.thresholds(observable).ravel()) for result in items]
    curves = [find_analysis(result.task).curve(result, observable) for result in items]
    return (
        [(L, np.where(np.uint64(NEVER) == T, np.inf, T / TOP)) for L, T in thresholds],
        sorted(curves, key=lambda curve: curve.L),
    )


def read_cluster_curves(results: StoredResults) -> list[ClusterCurve]:
    """Return the cluster sizes of all tasks that have them, ascending in L."""
    items = joined(results).measured
    items = [result for result in items if not result.holds_thresholds and result.has_cluster_sizes]
    return [_read_clusters(result) for result in sorted(items, key=lambda result: result.task.size)]


def _read_clusters(result: TaskResult) -> ClusterCurve:
    task, names = result.task, ["largest", "second_largest", "sum_squares", "largest*largest"]
    p = find_analysis(task).grid(result, "largest")
    if result.holds_columns:
        names.remove("sum_squares")
    sums = {name: find_analysis(task).moment_sums(result, name, p) for name in names}
    return ClusterCurve(
        L=task.size,
        num_sites=task.num_sites,
        p=p,
        samples=result.samples,
        largest=sums["largest"],
        second_largest=sums["second_largest"],
        sum_squares=result.sum_squares() if result.holds_columns else sums["sum_squares"],
        largest_squares=sums["largest*largest"],
        label=task.id,
    )


@dataclass(frozen=True, eq=False)
class Outbreak(Record):
    """The mean number of sites of the source's clusters at every p (``sweep --measure source``).

    p, mean, error: float64 (m,); one standard error, from the scatter of blocks.
    """

    L: int
    num_sites: int
    samples: int
    p: Floats
    mean: Floats
    error: Floats


def read_outbreaks(results: StoredResults) -> list[Outbreak]:
    """Return the outbreaks of all tasks that counted them, ascending in L; [] if none has."""
    outbreaks = []
    for result in list_tasks(results, "source_sites"):
        (column,) = (each for each in result.columns if each.name == "source_sites")
        sums, p = result.single_sum(column), np.array(result.task.p)
        error = standard_error(sums / result.samples[:, None], result.samples)
        head = result.task.size, result.task.num_sites, result.num_samples
        outbreaks.append(Outbreak(*head, p, sums.sum(axis=0) / result.num_samples, error))
    return outbreaks


def has_sizes(result: TaskResult) -> bool:
    """Return whether clusters of every size were counted in a task that has blocks."""
    return bool(result.blocks) and result.has("n_s", "largest")


def read_size_counts(results: StoredResults) -> list[SizeCounts]:
    """Return the counted sizes of all tasks that have them, ascending in L; [] if none has."""
    return [load_counts(result) for result in list_tasks(results, "n_s", "largest")]


def load_counts(result: TaskResult) -> SizeCounts:
    return SizeCounts(
        L=result.task.size,
        num_sites=result.task.num_sites,
        p=np.array(result.task.p),
        samples=result.samples,
        edges=bin_edges(result.task.num_points),
        counts=result.extra("size_counts"),
        largest=result.column("largest").astype(float),
        label=result.task.id,
    )


def read_gyration_sums(results: StoredResults) -> list[GyrationSums]:
    """Return the sums over radii of all tasks that have them, ascending in L; [] if none has."""
    return [
        GyrationSums(
            L=result.task.size,
            num_sites=result.task.num_sites,
            samples=result.num_samples,
            p=np.array(result.task.p),
            edges=bin_edges(result.task.num_points),
            squares=sums[:, :, 0::2],
            spreads=sums[:, :, 1::2],
            largest=result.column("largest").sum(axis=0) / result.num_samples,
        )
        for result in list_tasks(results, "bin_squares", "largest")
        for sums in [result.extra("gyration")]
    ]


def read_flow_moments(results: StoredResults) -> list[BlockMoments]:
    """Return sums of flows, and of samples with connected sides, by name, ascending in L, or []."""
    names = axis_observables(results.study.boundary)
    flows = []
    for result in list_tasks(results, *names[-1:]):
        flowing = (column for column in result.columns if column.measure in FLOW_WORDS)
        columns = [column for column in flowing if column.is_single_sum]
        moments = {column.name: result.single_sum(column) for column in columns}
        if moments:
            if CONNECTED in moments:
                moments[SPANNING] = moments[CONNECTED]
            elif names:
                moments[SPANNING] = result.column(names[-1]).astype(float)
            p = np.array(result.task.p)
            flows.append(BlockMoments(result.task.size, p, result.samples, moments, result.task.id))
    return flows


def moment_names(result: TaskResult) -> set[str]:
    """Return the names of the moments that a task's blocks contain."""
    return find_analysis(result.task).moment_names(result)


def available_quantities(results: StoredResults) -> list[str]:
    """Return the names of the quantities that at least one task of a file has."""
    stored = [moment_names(result) for result in results.measured]
    known = list_quantities(results.study.boundary, spins=True)
    return [each.name for each in known if any(set(each.needs) <= names for names in stored)]


def pool_moments(results: StoredResults, quantities: Sequence[Quantity]) -> list[BlockMoments]:
    """Return the moments of all tasks that have blocks, ascending in L.

    Tasks with the same size, p, block size and moments differ in their seeds alone: they become one
    with more blocks.  AnalysisError: two tasks contain the same samples.
    """
    items = joined(results).measured
    _check_independent(items)
    alike: dict[tuple[int, bytes, int, tuple[str, ...]], list[BlockMoments]] = {}
    for result in sorted(items, key=lambda result: (result.task.size, result.task.id)):
        names = moment_names(result)
        needs = {name for each in quantities if set(each.needs) <= names for name in each.needs}
        if needs:
            own = read_moments(result, sorted(needs))
            key = (own.L, own.p.tobytes(), result.task.block_size, tuple(own.moments))
            alike.setdefault(key, []).append(own)
    pooled = []
    for parts in alike.values():
        samples = np.concatenate([part.samples for part in parts])
        sums = {name: np.concatenate([x.moments[name] for x in parts]) for name in parts[0].moments}
        pooled.append(replace(parts[0], samples=samples, moments=sums))
    return pooled


def read_moments(result: TaskResult, names: Sequence[str]) -> BlockMoments:
    """Return some moments of a task, at the p of the first of them."""
    analysis, task = find_analysis(result.task), result.task
    p = analysis.grid(result, names[0]) if names else np.array(task.p)
    sums = {name: analysis.moment_sums(result, name, p) for name in names}
    return BlockMoments(task.size, p, result.samples, sums, task.id)


def _check_independent(items: Sequence[TaskResult]) -> None:
    """Raise AnalysisError if two tasks contain samples of the same random numbers."""
    spans: dict[int, list[tuple[int, int, TaskResult]]] = {}
    for result in items:
        size = result.task.block_size
        for n, count in zip(result.numbers.tolist(), result.counts.tolist(), strict=True):
            span = n * size, (n + count) * size, result
            spans.setdefault(result.task.stream_seed, []).append(span)
    for ranges in spans.values():
        ranges.sort(key=lambda part: part[:2])
        for (_, end, first), (start, _, second) in pairwise(ranges):
            if start < end:
                raise AnalysisError(
                    f"L = {first.task.size}: tasks {first.task.id} and {second.task.id} hold the "
                    f"same samples of seed {first.task.seed}, so they are not independent: sweep "
                    "one of them with another seed"
                )
