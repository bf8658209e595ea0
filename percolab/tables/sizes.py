"""Stored cluster numbers and powers of sizes as flat tables, and as arrays over task and p."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.statistics import Floats, standard_error
from percolab.analysis.stored_data import has_sizes, load_counts
from percolab.errors import InputError
from percolab.measure.columns import Column
from percolab.store.joined import joined_if_whole
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

#: Columns of :func:`size_table`.
SIZE_HEADER = (
    "lattice", "model", "boundary", "L", "sites", "seed", "p", "samples",
    "s_low", "s_high", "count", "n_s", "error",
)  # fmt: skip


def size_table(results: StoredResults) -> tuple[list[str], list[list[Any]]]:
    """Return (SIZE_HEADER, rows): one row a size, p and bin of cluster sizes.

    A bin holds the sizes from s_low to s_high, both included; count is the number of clusters in
    all samples; n_s = count / (samples * sites * (s_high - s_low + 1)), with its standard error by
    a jackknife over blocks, None for a single block.  InputError: sizes were not counted.
    """
    rows: list[list[Any]] = []
    tasks = joined_if_whole(results).tasks
    sized = sorted(filter(has_sizes, tasks.values()), key=lambda item: item.task.size)
    for counts in map(load_counts, sized):
        task, samples = tasks[counts.label].task, tasks[counts.label].num_samples
        lead = [task.structure.name, task.model, ",".join(task.boundary), task.size]
        low, high = counts.edges[:-1].tolist(), (counts.edges[1:] - 1).tolist()
        total, errors = counts.counts.sum(axis=0), counts.errors()
        known = len(tasks[counts.label].blocks) > 1
        for n, p in enumerate(task.p):
            head = [*lead, task.num_sites, task.seed, p, samples]
            error = errors[n].tolist() if known else [None] * len(low)
            numbers = counts.numbers()[n].tolist()
            columns = zip(low, high, total[n].tolist(), numbers, error, strict=True)
            rows += [[*head, *row] for row in columns]
    if not rows:
        raise InputError("no cluster sizes were counted here: sweep with --measure sizes")
    return list(SIZE_HEADER), rows


def single_means(item: TaskResult) -> Iterator[tuple[Column, Floats, Floats]]:
    """Yield (column, mean, standard error) of what is one sum for each p, float64 (m,) each.

    These are the powers of sizes, where they were measured.  The error is the scatter of the
    blocks, NaN of one.
    """
    if not item.blocks:
        return
    for column in item.columns:
        if column.is_single_sum:
            sums, samples = item.single_sum(column), item.samples
            error = standard_error(sums / samples[:, None], samples)
            yield column, sums.sum(axis=0) / item.num_samples, error


def single_arrays(tasks: Sequence[TaskResult], name: str, points: int) -> tuple[Floats, Floats]:
    """Return mean and standard error of one sum for each p, float64 (task, point) each, or NaN."""
    numbers = np.full((2, len(tasks), points), np.nan)
    for n, item in enumerate(tasks):
        for column, mean, error in single_means(item):
            if column.name == name:
                numbers[:, n, : mean.size] = mean, error
    return numbers[0], numbers[1]


def size_arrays(tasks: Sequence[TaskResult], points: int) -> dict[str, NDArray[Any]]:
    """Return s_low, s_high: int64 (bins,), n_s and n_s_error: float64 (task, point, bins).

    Bins of small lattices are the first of those of large ones; what a task lacks is NaN.  {} where
    no task has them.
    """
    found = {item.task.id: load_counts(item) for item in tasks if has_sizes(item)}
    if not found:
        return {}
    edges = max((item.edges for item in found.values()), key=len)
    numbers = np.full((2, len(tasks), points, edges.size - 1), np.nan)
    for n, item in enumerate(tasks):
        own = found.get(item.task.id)
        if own is not None:
            here = (n, slice(own.p.size), slice(own.edges.size - 1))
            numbers[(0, *here)], numbers[(1, *here)] = own.numbers(), own.errors()
    return {
        "s_low": edges[:-1],
        "s_high": edges[1:] - 1,
        "n_s": numbers[0],
        "n_s_error": numbers[1],
    }
