"""Stored results as cluster numbers n_s, where sizes were measured, and tau at a given p."""

from __future__ import annotations

import numpy as np

from percolab.analysis.cluster_numbers import SizeCounts
from percolab.analysis.fisher import FisherFit, fit_fisher
from percolab.analysis.gyration import GyrationSums
from percolab.errors import AnalysisError
from percolab.measure.tallies import bin_edges
from percolab.store.joined import joined
from percolab.store.results import Results
from percolab.store.task_result import TaskResult


def has_sizes(item: TaskResult) -> bool:
    """Return whether clusters of every size were counted in a task that has blocks."""
    return bool(item.blocks) and item.has("n_s", "largest")


def size_counts_of(results: Results) -> list[SizeCounts]:
    """Return the counted sizes of all tasks that have them, ascending in L; [] if none has."""
    items = [item for item in joined(results).tasks.values() if has_sizes(item)]
    ordered = sorted(items, key=lambda item: (item.task.size, item.task.seed, item.task.id))
    return [counts_of(item) for item in ordered]


def counts_of(item: TaskResult) -> SizeCounts:
    """Return the counted sizes of a task; InputError if they were not counted."""
    return SizeCounts(
        L=item.task.size,
        num_sites=item.task.num_sites,
        p=np.array(item.task.p),
        samples=np.full(len(item.blocks), item.task.block_size),
        edges=bin_edges(item.task.num_points),
        counts=item.extra("size_counts"),
        largest=item.column("largest").astype(float),
        label=item.task.id,
    )


def gyration_sums_of(results: Results) -> list[GyrationSums]:
    """Return the sums over radii of all tasks that have them, ascending in L; [] if none has."""
    tasks = joined(results).tasks.values()
    items = [item for item in tasks if item.blocks and item.has("bin_squares", "largest")]
    found = []
    for item in sorted(items, key=lambda item: (item.task.size, item.task.seed, item.task.id)):
        sums = item.extra("gyration")
        found.append(
            GyrationSums(
                L=item.task.size,
                num_sites=item.task.num_sites,
                samples=item.num_samples,
                p=np.array(item.task.p),
                edges=bin_edges(item.task.num_points),
                squares=sums[:, :, 0::2],
                spreads=sums[:, :, 1::2],
                largest=item.column("largest").sum(axis=0) / item.num_samples,
            )
        )
    return found


def fisher_at(results: Results, threshold: float) -> FisherFit:
    """Return tau from n_s at a given p, taken for p_c (:mod:`percolab.analysis.fisher`).

    At the p_c of a fit it is one of the exponents (:func:`percolab.analysis.fits.exponents_of`).
    AnalysisError: sizes were not counted, do not scale, or in too few blocks.
    """
    if not results.study.lattice.is_scalable:
        raise AnalysisError(f"{results.study.lattice.name} has no sizes that scale, and no tau")
    return fit_fisher(
        size_counts_of(results),
        threshold=threshold,
        dimension=results.study.lattice.dimension,
        is_open=set(results.study.boundary) != {"periodic"},
    )
