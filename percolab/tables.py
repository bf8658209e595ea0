"""Stored results as flat tables: means and standard errors of every observable, and single T."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from percolab.kernels.open_bonds import NEVER, TOP
from percolab.observables import axis_names, observables_of, spanning_names
from percolab.spanning import spanning_counts, transition_grid
from percolab.storage import Results
from percolab.stored_tasks import TaskResult
from percolab.toml_input import InputError


def mean_table(
    results: Results, p: Sequence[float] | None = None
) -> tuple[list[str], Iterable[list[Any]]]:
    """Return (header, rows): one row a task and p, mean and standard error an observable.

    The error is that of the mean of independent samples, from the stored sums of squares.  Tasks
    with method "threshold" have R alone, at ``p`` or over the transition; others are empty there.
    InputError: ``p`` is given, and a task has no thresholds.
    """
    observables = observables_of(results.study.boundary)
    names = [name for item in observables for name in (item.name, f"{item.name}_error")]
    header = ["lattice", "L", "sites", "seed", "p", "samples", *names]
    rows = []
    for item in _ordered(results):
        task, count = item.task, item.num_samples
        if p is not None and task.method != "threshold":
            raise InputError("-p: only a study of method threshold is known at every p")
        lead = [task.lattice.name, task.size, task.num_points, task.seed]
        values = _spanning_means(item, p) if task.method == "threshold" else _grid_means(item)
        rows += [[*lead, x, count, *columns] for x, columns in values]
    return header, rows


def threshold_table(results: Results) -> tuple[list[str], Iterable[list[Any]]]:
    """Return (header, rows): one row a sample with T along every open axis, empty for never.

    InputError: nothing was sampled by method "threshold".
    """
    letters = axis_names(results.study.boundary)
    items = [item for item in _ordered(results) if item.task.method == "threshold"]
    if not items:
        raise InputError("no thresholds of single samples here: sweep with --method threshold")
    return ["lattice", "L", "seed", "sample", *(f"T_{x}" for x in letters)], _single_rows(items)


def _single_rows(items: list[TaskResult]) -> Iterator[list[Any]]:
    for item in items:
        task = item.task
        for number in sorted(item.blocks):
            for n, found in enumerate(item.blocks[number].thresholds):  # type: ignore[union-attr]
                values = ["" if t == np.uint64(NEVER) else float(t) / TOP for t in found]
                sample = number * task.block_size + n
                yield [task.lattice.name, task.size, task.seed, sample, *values]


def _ordered(results: Results) -> list[TaskResult]:
    """Return the tasks that have blocks, small sizes first."""
    found = [item for item in results.tasks.values() if item.blocks]
    return sorted(found, key=lambda item: (item.task.size, item.task.id))


def _spanning_means(
    item: TaskResult, p: Sequence[float] | None
) -> Iterator[tuple[float, list[Any]]]:
    """Yield (p, mean and error of every observable), empty for those that T does not give."""
    names, count = spanning_names(item.task.boundary), item.num_samples
    found = {name: item.thresholds(name) for name in names}
    grid = transition_grid(np.stack(list(found.values()))) if p is None else np.array(p)
    means = {name: spanning_counts(found[name], grid).sum(axis=0) / count for name in names}
    for n, x in enumerate(grid.tolist()):
        values: list[Any] = []
        for observable in observables_of(item.task.boundary):
            if observable.name in means:
                mean = float(means[observable.name][n])
                values += [mean, (mean * (1 - mean) / max(count - 1, 1)) ** 0.5]
            else:
                values += ["", ""]
        yield x, values


def _grid_means(item: TaskResult) -> Iterator[tuple[float, list[float]]]:
    """Yield (p, mean and standard error of every observable)."""
    blocks: list[Any] = [item.blocks[number] for number in sorted(item.blocks)]
    count = item.num_samples
    total = np.array([block.sums for block in blocks]).sum(axis=0, dtype=np.float64)
    first, second = np.triu_indices(total.shape[-1])
    squares = np.array([block.products[..., first == second] for block in blocks]).sum(axis=0)
    means = total / count
    errors = np.sqrt(np.maximum(squares / count - means**2, 0.0) / max(count - 1, 1))
    for p, mean, error in zip(item.task.p, means, errors, strict=True):
        yield p, np.column_stack([mean, error]).ravel().tolist()
