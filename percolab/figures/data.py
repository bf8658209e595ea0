"""Stored tasks as what figures draw: means of clusters, and T of single samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from percolab.analysis.stored_data import cluster_curves_of
from percolab.bonds.words import NEVER, TOP
from percolab.figures.cluster_sizes import ClusterMeans
from percolab.figures.thresholds import ThresholdSample
from percolab.store.results import Results
from percolab.store.stored_tasks import TaskResult
from percolab.tasks.study import Study


def cluster_means(study: Study, item: TaskResult) -> ClusterMeans:
    """Return the means of a task, with the errors of a jackknife over blocks."""
    (curve,) = cluster_curves_of(Results(study, {item.task.id: item}))
    sites = item.task.num_sites
    means, errors = curve.means(), curve.errors()
    counts = item.column("clusters") / item.task.block_size / sites
    blocks = len(counts)
    spread = counts.std(axis=0, ddof=1) if blocks > 1 else np.full(curve.p.size, np.nan)
    return ClusterMeans(
        L=curve.L,
        num_sites=sites,
        samples=item.num_samples,
        p=curve.p,
        means={
            "percolation_strength": means["largest"] / sites,
            "mean_cluster_size": means["chi"],
            "second_largest": means["second"] / sites,
            "cluster_density": counts.mean(axis=0),
        },
        errors={
            "percolation_strength": errors["largest"] / sites,
            "mean_cluster_size": errors["chi"],
            "second_largest": errors["second"] / sites,
            "cluster_density": spread / blocks**0.5,
        },
    )


def threshold_sample(items: Sequence[TaskResult], name: str) -> ThresholdSample:
    """Return T of all samples of one size, of whatever seeds."""
    found = np.concatenate([item.thresholds(name).ravel() for item in items])
    spanning = found[found != np.uint64(NEVER)]
    task = items[0].task
    never = int(found.size - spanning.size)
    return ThresholdSample(task.size, task.num_sites, np.sort(spanning / TOP), never)
