"""Stored results as a flat table: means and standard errors of every observable."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.observables import observables_of
from percolab.storage import Results


def mean_table(results: Results) -> tuple[list[str], list[list[Any]]]:
    """Return (header, rows): one row a task and p, mean and standard error an observable.

    The error is that of the mean of independent samples, from the stored sums of squares.
    """
    observables = observables_of(results.study.boundary)
    names = [name for item in observables for name in (item.name, f"{item.name}_error")]
    header = ["lattice", "L", "sites", "seed", "p", "samples", *names]
    rows = []
    for item in sorted(results.tasks.values(), key=lambda item: (item.task.size, item.task.id)):
        if not item.blocks:
            continue
        task, count = item.task, item.num_samples
        means, errors = _means([item.blocks[n] for n in sorted(item.blocks)], count)
        sites = task.num_points
        for n, p in enumerate(task.p):
            values = np.column_stack([means[n], errors[n]]).ravel().tolist()
            rows.append([task.lattice.name, task.size, sites, task.seed, p, count, *values])
    return header, rows


def _means(blocks: list, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard errors (m, C) of ``count`` samples in blocks."""
    total = np.array([block.sums for block in blocks]).sum(axis=0, dtype=np.float64)
    width = total.shape[-1]
    first, second = np.triu_indices(width)
    squares = np.array([block.products[..., first == second] for block in blocks]).sum(axis=0)
    mean = total / count
    variance = np.maximum(squares / count - mean**2, 0.0)
    return mean, np.sqrt(variance / max(count - 1, 1))
