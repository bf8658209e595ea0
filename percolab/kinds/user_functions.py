"""A user's own observables of the labels of samples, summed over blocks: on the CPU."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from percolab.bonds.words import GENERATORS
from percolab.errors import InputError
from percolab.kinds.workplace import Workplace, steps
from percolab.labelers import new_labeler, serving_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.graph import Graph
from percolab.lattices.topology import unpack_bits
from percolab.measure.clusters import Clusters


class UserFunctions:
    """The functions of a task, called with the labels of each sample at each p.

    thresholds: of the p of the task, uint64
    """

    def __init__(self, place: Workplace, thresholds: np.ndarray) -> None:
        self._place, self._task, self._thresholds = place, place.task, thresholds
        self._local = threading.local()

    def sums(
        self, blocks: int, samples: np.ndarray, stopped: Callable[[], bool] | None
    ) -> dict[str, np.ndarray]:
        """Return the sums of the functions by name, float64 (blocks, m, 1)."""
        task = self._task
        found = {item.name: np.zeros((blocks, len(task.p), 1)) for item in task.functions}
        labeler = self._own_labeler()
        for part in steps(len(samples), 1, stopped):
            (sample,), block = samples[part], part.start // task.block_size
            for k, threshold in enumerate(self._thresholds):
                labels = self._labels(labeler, sample, threshold)
                for item in task.functions:
                    total = float(found[item.name][block, k, 0]) + item.value_of(labels.copy())
                    if not math.isfinite(total):
                        raise InputError(
                            f"observable {item}: its sum over a block is {total}, but sums "
                            "are finite"
                        )
                    found[item.name][block, k, 0] = total
        return found

    def _own_labeler(self) -> Any:
        """Return this thread's labeler."""
        if not hasattr(self._local, "labeler"):
            topology = self._place.topology
            name = serving_labeler(None, "cpu", topology)
            self._local.labeler = new_labeler(name, "cpu", topology, self._task.draw)
        return self._local.labeler

    def _labels(self, labeler: Any, sample: np.uint64, threshold: np.uint64) -> np.ndarray:
        """Return the labels of a sample at one threshold, int32, as percolab.label has them."""
        task, topology = self._task, self._place.topology
        one = np.array([sample], np.uint64), np.array([threshold], np.uint64)
        items = labeler.batch.fill(GENERATORS[task.rng], task.stream_seed, *one)
        labels = labeler.join(items, Reading.LABELS).labels()[0].copy()
        points = topology.num_points
        labels[~unpack_bits(topology.occupied, points)] = -1
        if task.draw.draws_sites:
            labels[~unpack_bits(labeler.batch.occupied_of(items)[0], points)] = -1
        structure = task.structure
        if isinstance(structure, Graph) and structure.inner_numbers is not None:
            labels = Clusters.of_any_labels(labels[structure.inner_numbers], topology).labels
        return np.asarray(labels).reshape(topology.shape[::-1] or (points,))
