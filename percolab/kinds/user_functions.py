"""A user's own observables of labels or open bonds of samples, summed over blocks: on the CPU."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cached_property
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
    """The functions of a task, called with what they read of each sample at each p.

    thresholds: of the p of the task, uint64
    """

    def __init__(self, place: Workplace, thresholds: np.ndarray) -> None:
        self._place, self._task, self._thresholds = place, place.task, thresholds
        self._reads = {name for item in self._task.functions for name in item.reads}
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
                read = self._read(labeler, sample, threshold)
                for item in task.functions:
                    own = {name: read[name].copy() for name in item.reads}
                    total = float(found[item.name][block, k, 0]) + item.call_function(own)
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

    def _read(self, labeler: Any, sample: np.uint64, threshold: np.uint64) -> dict[str, np.ndarray]:
        """Return what is read of a sample at one threshold, by name."""
        one = np.array([sample], np.uint64), np.array([threshold], np.uint64)
        items = labeler.batch.fill(GENERATORS[self._task.rng], self._task.stream_seed, *one)
        found = {"bonds": self._bonds(labeler, items)} if "bonds" in self._reads else {}
        if "labels" in self._reads:
            found["labels"] = self._labels(labeler, items)
        return found

    def _bonds(self, labeler: Any, items: int) -> np.ndarray:
        """Return the sites of all open bonds, int64 (m, 2), as indices of flat labels."""
        topology = self._place.topology
        k, owner, _ = self._all_bonds.T
        words = labeler.batch.copy_open_words(items)[0]
        is_open = unpack_bits(words, 32 * words.size)[32 * topology.num_words * k + owner]
        ends: np.ndarray = self._all_bonds[is_open, 1:]
        numbers = self._inner_numbers
        return ends if numbers is None else np.argsort(numbers)[ends]

    @cached_property
    def _all_bonds(self) -> np.ndarray:
        return self._place.topology.bonds()

    @property
    def _inner_numbers(self) -> np.ndarray | None:
        """The number inside of every site of a graph, None where it is its own."""
        structure = self._task.structure
        return structure.inner_numbers if isinstance(structure, Graph) else None

    def _labels(self, labeler: Any, items: int) -> np.ndarray:
        """Return the labels of what was drawn, int32, as percolab.label has them."""
        task, topology = self._task, self._place.topology
        labels = labeler.join(items, Reading.LABELS).labels()[0].copy()
        points = topology.num_points
        labels[~unpack_bits(topology.occupied, points)] = -1
        if task.draw.draws_sites:
            labels[~unpack_bits(labeler.batch.copy_occupied(items)[0], points)] = -1
        if self._inner_numbers is not None:
            labels = Clusters.of_any_labels(labels[self._inner_numbers], topology).labels
        return np.asarray(labels).reshape(topology.shape[::-1] or (points,))
