"""Stored results as flat tables: means and standard errors of every observable, and single T.

A number that there is not is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from percolab.analysis.stored_data import spanning_counts, transition_grid
from percolab.bonds.words import NEVER, TOP
from percolab.errors import InputError
from percolab.measure.extras import POWERS, ExtraQuantity
from percolab.measure.observables import axis_names, observables_of, spanning_names
from percolab.store.joined import joined
from percolab.store.results import Results
from percolab.store.stored_tasks import TaskResult
from percolab.tables.sizes import power_means

Table = tuple[list[str], list[list[Any]]]

#: Mean and standard error.
Pair = tuple[float | None, float | None]

#: Columns of :func:`long_table`.
LONG_HEADER = (
    "lattice", "model", "boundary", "L", "sites", "seed", "p", "samples",
    "observable", "unit", "mean", "error",
)  # fmt: skip


def task_means(
    results: Results, p: Sequence[float] | None = None
) -> Iterator[tuple[TaskResult, float, list[Pair]]]:
    """Yield (task's result, p, (mean, standard error) of every observable), small sizes first.

    p: for tasks with method "threshold", which give R alone, None for the rest; over the transition
    unless given.  InputError: ``p`` is given, and a task has no thresholds.
    """
    for item in _ordered(results):
        if p is not None and item.task.method != "threshold":
            raise InputError("-p: only a study of method threshold is known at every p")
        found = _spanning_means(item, p) if item.task.method == "threshold" else _grid_means(item)
        yield from ((item, x, columns) for x, columns in found)


def mean_table(results: Results, p: Sequence[float] | None = None) -> Table:
    """Return (header, rows): one row a task and p, mean and standard error an observable.

    The error is that of the mean of independent samples, from the stored sums of squares.  Tasks
    with method "threshold" have R alone, at ``p`` or over the transition; others are None there.
    InputError: ``p`` is given, and a task has no thresholds.
    """
    observables = observables_of(results.study.boundary)
    names = [name for item in observables for name in (item.name, f"{item.name}_error")]
    header = ["lattice", "L", "sites", "seed", "p", "samples", *names]
    rows = []
    for item, x, columns in task_means(results, p):
        task = item.task
        lead = [task.lattice.name, task.size, task.num_sites, task.seed, x, item.num_samples]
        rows.append([*lead, *(number for pair in columns for number in pair)])
    return header, rows


def long_table(results: Results, p: Sequence[float] | None = None) -> Table:
    """Return (LONG_HEADER, rows): one row an observable, task and p; the numbers of mean_table.

    Powers of sizes follow where they were measured, with errors from the scatter of blocks, None
    for a single one.  What T does not give is left out.  The unit is that of the mean.  InputError
    as there.
    """
    rows = []
    for item, x, columns in task_means(results, p):
        task = item.task
        lead = [task.lattice.name, task.model, ",".join(task.boundary), task.size]
        lead += [task.num_sites, task.seed, x, item.num_samples]
        for observable, pair in zip(observables_of(task.boundary), columns, strict=True):
            if pair[0] is not None:
                rows.append([*lead, observable.name, observable.unit, *pair])
        for quantity, pair in _powers(item, x):
            rows.append([*lead, quantity.name, quantity.unit, *pair])
    return list(LONG_HEADER), rows


def _powers(item: TaskResult, p: float) -> Iterator[tuple[ExtraQuantity, Pair]]:
    """Yield the powers of sizes at a p of the grid where they were measured."""
    for quantity, (_, mean, error) in zip(POWERS, power_means(item)):
        at = item.task.p.index(p)
        yield quantity, (float(mean[at]), float(error[at]) if np.isfinite(error[at]) else None)


def threshold_table(results: Results) -> Table:
    """Return (header, rows): one row a sample with T along every open axis, None for never.

    InputError: nothing was sampled by method "threshold".
    """
    letters = axis_names(results.study.boundary)
    items = [item for item in _ordered(results) if item.task.method == "threshold"]
    if not items:
        raise InputError("no thresholds of single samples here: sweep with --method threshold")
    return ["lattice", "L", "seed", "sample", *(f"T_{x}" for x in letters)], list(
        _single_rows(items)
    )


def _single_rows(items: list[TaskResult]) -> Iterator[list[Any]]:
    for item in items:
        task = item.task
        for number in sorted(item.blocks):
            for n, found in enumerate(item.blocks[number].thresholds):  # type: ignore[union-attr]
                values = [None if t == np.uint64(NEVER) else float(t) / TOP for t in found]
                sample = number * task.block_size + n
                yield [task.lattice.name, task.size, task.seed, sample, *values]


def _ordered(results: Results) -> list[TaskResult]:
    """Return the tasks that have blocks, small sizes first."""
    found = [item for item in joined(results).tasks.values() if item.blocks]
    return sorted(found, key=lambda item: (item.task.size, item.task.id))


def _spanning_means(
    item: TaskResult, p: Sequence[float] | None
) -> Iterator[tuple[float, list[Pair]]]:
    """Yield (p, mean and error of every observable), None for those that T does not give."""
    names, count = spanning_names(item.task.boundary), item.num_samples
    found = {name: item.thresholds(name) for name in names}
    grid = transition_grid(np.stack(list(found.values()))) if p is None else np.array(p)
    means = {name: spanning_counts(found[name], grid).sum(axis=0) / count for name in names}
    for n, x in enumerate(grid.tolist()):
        values: list[Pair] = []
        for observable in observables_of(item.task.boundary):
            if observable.name in means:
                mean = float(means[observable.name][n])
                values.append((mean, (mean * (1 - mean) / max(count - 1, 1)) ** 0.5))
            else:
                values.append((None, None))
        yield x, values


def _grid_means(item: TaskResult) -> Iterator[tuple[float, list[Pair]]]:
    """Yield (p, mean and standard error of every observable)."""
    blocks: list[Any] = [item.blocks[number] for number in sorted(item.blocks)]
    count = item.num_samples
    total = np.array([block.sums for block in blocks]).sum(axis=0, dtype=np.float64)
    first, second = np.triu_indices(total.shape[-1])
    squares = np.array([block.products[..., first == second] for block in blocks]).sum(axis=0)
    means = total / count
    errors = np.sqrt(np.maximum(squares / count - means**2, 0.0) / max(count - 1, 1))
    for p, mean, error in zip(item.task.p, means, errors, strict=True):
        yield p, list(zip(mean.tolist(), error.tolist()))
