"""Stored results as flat tables: means and standard errors, cluster sizes, and single T.

A number that is not known is None.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.statistics import Floats, standard_error
from percolab.analysis.stored_data import has_sizes, load_counts
from percolab.analysis.stored_spins import (
    ThermalName,
    finite,
    list_thermal,
    name_couplings,
    read_thermal_means,
)
from percolab.analysis.study_kinds import Means, find_analysis
from percolab.bonds.words import NEVER, TOP
from percolab.errors import InputError
from percolab.measure.columns import FLOW, FUNCTION, Column, SumColumn, axis_names
from percolab.store.joined import joined_if_whole
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

Table = tuple[list[str], list[list[Any]]]

#: Columns without numbers that a table of thresholds alone has in addition to the probabilities.
_EMPTY_OF_THRESHOLDS = ("clusters", "largest", "second_largest", "sum_squares")

_LEAD = ("lattice", "model", "boundary", "L", "sites", "seed", "p", "samples")
#: Columns of :func:`long_table` and of :func:`size_table`.
LONG_HEADER = (*_LEAD, "observable", "unit", "mean", "error")
SIZE_HEADER = (*_LEAD, "s_low", "s_high", "count", "n_s", "error")


def task_means(
    results: StoredResults, p: Sequence[float] | None = None
) -> Iterator[tuple[TaskResult, Floats, Means]]:
    """Yield tasks, their p (m,), and means with errors, small sizes first.

    p: for tasks that are known at every p, by default over the transition.  Tasks of method
    "threshold" give R alone.  InputError: ``p`` is given, but a task is known at its own p alone.
    """
    for result in _ordered(results):
        if p is not None and result.holds_columns:
            raise InputError("-p: only for method threshold or microcanonical; leave it out")
        grid, means = find_analysis(result.task).means(result, p)
        yield result, grid, means | read_thermal_means(result) | _mean_single_sums(result)


def _mean_single_sums(result: TaskResult) -> Means:
    """Return means of columns with one sum at each p (powers of sizes); errors: block scatter."""
    means = {}
    for column in result.columns:
        if column.is_single_sum:
            sums, samples = result.single_sum(column), result.samples
            error = standard_error(sums / samples[:, None], samples)
            means[column.name] = sums.sum(axis=0) / result.num_samples, error
    return means


def mean_table(results: StoredResults, p: Sequence[float] | None = None) -> Table:
    """Return (header, rows): one row for each task and p, with every observable's mean and error.

    The error is that of the mean of independent samples, from the stored sums of squares; for
    spins, whose sweeps are correlated, it is the scatter of chains, None for a single one.  Tasks
    with method "threshold" have R alone, at ``p`` or over the transition; others are None there.
    With method "microcanonical" errors are the scatter of blocks.
    For spins, thermal means follow, with jackknife errors over chains, then T and K or beta.
    Flows and a user's functions of labels come last, with errors from the scatter of blocks.
    InputError: ``p`` is given, but a task is known at its own p alone.
    """
    names = [column.name for column in tabulated(results)]
    names += [
        column.name
        for column in results.columns()
        if isinstance(column.gathered, SumColumn) and column.gathered.source in (FUNCTION, FLOW)
    ]
    header = [*_LEAD, *(column for name in names for column in (name, f"{name}_error"))]
    rows = []
    for result, grid, means in task_means(results, p):
        lead = _list_leading(result)
        columns = [array for name in names for array in means.get(name, (None, None))]
        columns += name_couplings(result.task.draw, grid).values()
        for n, x in enumerate(grid.tolist()):
            numbers = [None if array is None else finite(array[n]) for array in columns]
            rows.append([*lead, x, result.num_samples, *numbers])
    return [*header, *_coupling_names(results)], rows


def _list_leading(result: TaskResult) -> list[Any]:
    task = result.task
    boundary = ",".join(task.boundary)
    return [task.structure.name, task.model, boundary, task.size, task.num_sites, task.seed]


def _coupling_names(results: StoredResults) -> list[str]:
    """Return the names of the columns of T and of the coupling; [] without spins."""
    return list(name_couplings(results.study.draw, np.empty(0)))


def tabulated(results: StoredResults) -> list[Column | ThermalName]:
    """Return the observables and thermal means in a table; of microcanonical tasks all."""
    measured = [column for column in results.columns() if column.is_observable]
    codec = results.study.kind.codec
    if not measured and not codec.holds_columns and not codec.holds_thresholds:
        return [*results.study.observables, *list_thermal(results)]
    return [*measured, *list_thermal(results)] or [
        column
        for column in results.study.observables
        if column.is_probability or column.name in _EMPTY_OF_THRESHOLDS
    ]


def long_table(results: StoredResults, p: Sequence[float] | None = None) -> Table:
    """Return (LONG_HEADER, rows): one row for each observable, task and p, as in mean_table.

    Powers of sizes follow where they were measured, with errors from the scatter of blocks, None
    for a single one.  Observables that a method does not give are left out.  The unit is that of
    the mean.  For spins every row ends with T and K or beta.  InputError as for mean_table.
    """
    rows: list[list[Any]] = []
    observables = tabulated(results)
    for result, grid, means in task_means(results, p):
        lead, couplings = _list_leading(result), name_couplings(result.task.draw, grid).values()
        columns = [*observables, *(column for column in result.columns if column.is_single_sum)]
        columns = [column for column in columns if column.name in means]
        for n, x in enumerate(grid.tolist()):
            end = [finite(array[n]) for array in couplings]
            for column in columns:
                pair = [finite(array[n]) for array in means[column.name]]
                rows.append([*lead, x, result.num_samples, column.name, column.unit, *pair, *end])
    return [*LONG_HEADER, *_coupling_names(results)], rows


def threshold_table(results: StoredResults) -> Table:
    """Return (header, rows), a row for each sample, T or None; InputError without such samples."""
    letters = axis_names(results.study.boundary)
    items = [result for result in _ordered(results) if result.holds_thresholds]
    if not items:
        raise InputError("no thresholds of samples are stored: sweep with --method threshold")
    rows = []
    for result, number in ((item, n) for item in items for n in sorted(item.blocks)):
        lead, first = _list_leading(result), number * result.task.block_size
        for n, thresholds in enumerate(result.blocks[number].thresholds):  # type: ignore[union-attr]
            values = [None if t == np.uint64(NEVER) else float(t) / TOP for t in thresholds]
            rows.append([*lead, first + n, *values])
    return [*_LEAD[: _LEAD.index("p")], "sample", *(f"T_{x}" for x in letters)], rows


def _ordered(results: StoredResults) -> list[TaskResult]:
    """Return the tasks that have blocks, small sizes first, then small p."""
    return sorted(
        (result for result in joined_if_whole(results).measured),
        key=lambda result: (result.task.size, result.task.seed, result.task.p[:1], result.task.id),
    )


def size_table(results: StoredResults) -> Table:
    """Return (SIZE_HEADER, rows): one row for each size, p and bin of cluster sizes.

    A bin holds the sizes from s_low to s_high, both included; count is the number of clusters in
    all samples; n_s = count / (samples * sites * (s_high - s_low + 1)), with its standard error by
    a jackknife over blocks, None for a single block.  InputError: sizes were not counted.
    """
    rows: list[list[Any]] = []
    sized = filter(has_sizes, joined_if_whole(results).tasks.values())
    for result in sorted(sized, key=lambda result: result.task.size):
        counts, lead = load_counts(result), _list_leading(result)
        bins = counts.edges[:-1].tolist(), (counts.edges[1:] - 1).tolist()
        arrays = counts.counts.sum(axis=0), counts.numbers(), counts.errors()
        for n, p in enumerate(result.task.p):
            count, numbers, errors = (array[n].tolist() for array in arrays)
            columns = zip(*bins, count, numbers, map(finite, errors), strict=True)
            rows += [[*lead, p, result.num_samples, *row] for row in columns]
    if not rows:
        raise InputError("no cluster sizes are stored: sweep with --measure sizes")
    return list(SIZE_HEADER), rows


def size_arrays(tasks: Sequence[TaskResult], points: int) -> dict[str, NDArray[Any]]:
    """Return s_low, s_high: int64 (bins,), n_s and n_s_error: float64 (task, point, bins).

    Bins of small lattices are the first of those of large ones; bins that a task lacks are NaN.
    {} where no task has them.
    """
    counted = {n: load_counts(result) for n, result in enumerate(tasks) if has_sizes(result)}
    if not counted:
        return {}
    edges = max((own.edges for own in counted.values()), key=len)
    numbers = np.full((2, len(tasks), points, edges.size - 1), np.nan)
    for n, own in counted.items():
        numbers[:, n, : own.p.size, : own.edges.size - 1] = own.numbers(), own.errors()
    return dict(zip(("s_low", "s_high", "n_s", "n_s_error"), (edges[:-1], edges[1:] - 1, *numbers)))
