"""Stored results as flat tables: means and standard errors of every observable, and single T.

A number that there is not is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from percolab.analysis.statistics import standard_error
from percolab.analysis.stored_spins import list_thermal, name_couplings, read_thermal_means
from percolab.analysis.study_kinds import Mean, find_analysis
from percolab.analysis.thermodynamics import ThermalName
from percolab.bonds.model import Model
from percolab.bonds.words import NEVER, TOP
from percolab.errors import InputError
from percolab.measure.columns import FLOW, FUNCTION, Column, SumColumn, axis_names
from percolab.store.joined import joined_if_whole
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tables.sizes import single_means

Table = tuple[list[str], list[list[Any]]]

#: Mean and standard error.
Pair = tuple[float | None, float | None] | Mean

#: Beside the probabilities, what a table of thresholds alone has columns of, without numbers.
_EMPTY_OF_THRESHOLDS = ("clusters", "largest", "second_largest", "sum_squares")

#: Columns of :func:`long_table`.
LONG_HEADER = (
    "lattice", "model", "boundary", "L", "sites", "seed", "p", "samples",
    "observable", "unit", "mean", "error",
)  # fmt: skip


def task_means(
    results: StoredResults, p: Sequence[float] | None = None
) -> Iterator[tuple[TaskResult, float, dict[str, Pair]]]:
    """Yield (task's result, p, {observable: (mean, standard error)}), small sizes first.

    p: of tasks that are known at every p, None for the rest; over the transition unless given.
    Those of method "threshold" give R alone.  InputError: ``p`` is given, and a task is known at
    its own alone.
    """
    for item in _ordered(results):
        if p is not None and item.holds_columns:
            raise InputError(
                "-p: only studies of method threshold and microcanonical are known at every p"
            )
        if item.holds_columns:
            thermal = read_thermal_means(item)
            for n, (x, columns) in enumerate(_grid_means(item)):
                yield item, x, columns | (thermal[n] if thermal else {})
        else:
            for x, means in find_analysis(item.task).means(item, p):
                yield item, x, dict(means)


def mean_table(results: StoredResults, p: Sequence[float] | None = None) -> Table:
    """Return (header, rows): one row a task and p, mean and standard error an observable.

    The error is that of the mean of independent samples, from the stored sums of squares; of spins,
    whose sweeps are correlated, it is the scatter of chains, None for a single one.  Tasks with
    method "threshold" have R alone, at ``p`` or over the transition; others are None there.
    By method "microcanonical" errors are the scatter of blocks.
    Of spins their thermal means follow, with jackknife errors over chains, then T and K or beta.
    What flows and a user's functions of labels come last, with errors from the scatter of blocks.
    InputError: ``p`` is given, and a task is known at its own alone.
    """
    names = [column.name for column in tabulated(results)]
    own = [
        column.name
        for column in results.columns()
        if isinstance(column.gathered, SumColumn) and column.gathered.source in (FUNCTION, FLOW)
    ]
    names += own
    header = ["lattice", "L", "sites", "seed", "p", "samples"]
    header += [column for name in names for column in (name, f"{name}_error")]
    header += _coupling_names(results)
    rows = []
    for item, x, means in task_means(results, p):
        task = item.task
        lead = [task.structure.name, task.size, task.num_sites, task.seed, x, item.num_samples]
        if own:
            means = means | {column.name: pair for column, pair in _single_sums(item, x)}
        pairs = (means.get(name, (None, None)) for name in names)
        numbers = [number for pair in pairs for number in pair]
        rows.append([*lead, *numbers, *name_couplings(task.draw, x).values()])
    return header, rows


def _coupling_names(results: StoredResults) -> list[str]:
    """Return the names of the columns of T and of the coupling; [] without spins."""
    return list(name_couplings(Model.parse(results.study.model), 0.5))


def tabulated(results: StoredResults) -> list[Column | ThermalName]:
    """Return the observables and thermal means that a table of all tasks has, in their order.

    They are those that the file has of method "grid", or by method "microcanonical" all.
    """
    found = [column for column in results.columns() if column.is_observable]
    codec = results.study.kind.codec
    if not found and not codec.holds_columns and not codec.holds_thresholds:
        return [*results.study.observables, *list_thermal(results)]
    return [*found, *list_thermal(results)] or [
        column
        for column in results.study.observables
        if column.is_probability or column.name in _EMPTY_OF_THRESHOLDS
    ]


def long_table(results: StoredResults, p: Sequence[float] | None = None) -> Table:
    """Return (LONG_HEADER, rows): one row an observable, task and p; the numbers of mean_table.

    Powers of sizes follow where they were measured, with errors from the scatter of blocks, None
    for a single one.  What a method does not give is left out.  The unit is that of the mean.
    Of spins every row ends with T and K or beta.  InputError as there.
    """
    rows: list[list[Any]] = []
    observables = tabulated(results)
    for item, x, means in task_means(results, p):
        task = item.task
        lead = [task.structure.name, task.model, ",".join(task.boundary), task.size]
        lead += [task.num_sites, task.seed, x, item.num_samples]
        end = name_couplings(task.draw, x).values()
        own: list[tuple[Column | ThermalName, Pair]] = [
            (column, means[column.name]) for column in observables if column.name in means
        ]
        rows += [
            [*lead, column.name, column.unit, *pair, *end]
            for column, pair in (*own, *_single_sums(item, x))
        ]
    return [*LONG_HEADER, *_coupling_names(results)], rows


def _single_sums(item: TaskResult, p: float) -> Iterator[tuple[Column, Pair]]:
    """Yield what is one sum for each p in addition to the observables, at a p of the grid."""
    for column, mean, error in single_means(item):
        at = item.task.p.index(p)
        yield column, (float(mean[at]), float(error[at]) if np.isfinite(error[at]) else None)


def threshold_table(results: StoredResults) -> Table:
    """Return (header, rows): one row a sample with T along every open axis, None for never.

    InputError: nothing was sampled by method "threshold".
    """
    letters = axis_names(results.study.boundary)
    items = [item for item in _ordered(results) if item.holds_thresholds]
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
                yield [task.structure.name, task.size, task.seed, sample, *values]


def _ordered(results: StoredResults) -> list[TaskResult]:
    """Return the tasks that have blocks, small sizes first, then small p."""
    found = [item for item in joined_if_whole(results).tasks.values() if item.blocks]
    return sorted(
        found, key=lambda item: (item.task.size, item.task.seed, item.task.p[:1], item.task.id)
    )


def _grid_means(item: TaskResult) -> Iterator[tuple[float, dict[str, Pair]]]:
    """Yield (p, {observable: (mean, standard error)}) of every observable of a task."""
    names, count = [column.name for column in item.observables], item.num_samples
    total = item.sums().sum(axis=0, dtype=np.float64)
    squares = np.stack([item.squares(name).sum(axis=0) for name in names], axis=-1)
    means = total / count
    variance = np.maximum(squares / count - means**2, 0.0)
    errors = np.sqrt(variance / (count - 1)) if count > 1 else np.full_like(means, np.nan)
    if not item.task.kind.independent:
        errors = standard_error(item.sums() / item.samples[:, None, None], item.samples)
    for p, mean, error in zip(item.task.p, means, errors, strict=True):
        known = [float(each) if np.isfinite(each) else None for each in error]
        yield p, dict(zip(names, zip(mean.tolist(), known), strict=True))
