"""Minimum spanning trees: one of every sample, whose bonds have the uniform numbers as weights."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from percolab.errors import InputError
from percolab.kernels.memory import Memory
from percolab.kinds.algorithms import TreeMethods
from percolab.kinds.workplace import NO_FUNCTIONS, IsStopped, TaskSampler, number_samples, steps
from percolab.lattices.extent import Extent
from percolab.measure.columns import MEASURES, Column, list_columns
from percolab.measure.trees import WEIGHT_BITS
from percolab.tasks.blocks import AnyBlock, make_tree_blocks
from percolab.tasks.kind import Kind
from percolab.tasks.study import Study, Task
from percolab.trees import DEFAULT_TREE_METHOD, Trees, new_trees, readings_class, tree_class
from percolab.trees.readings import read_rows, rows_from_sums

#: Trees are chosen from all bonds.
ALL_BONDS = (1.0,)


class SpanningTrees(Kind):
    """The minimum spanning tree of every sample."""

    name = "trees"
    fixed_p = ALL_BONDS
    refused_measures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        MEASURES, "method tree measures only trees"
    )
    refusals: ClassVar[Mapping[str, str]] = {
        "parts": "method tree needs the whole lattice at once",
        "functions": NO_FUNCTIONS,
        "target_error": "trees have no p_c, so no target error",
        "ensembles": "method tree is of one graph",
    }
    sums = "weights"
    tables_on_host = True
    algorithms = TreeMethods()
    sampler = "kinds.trees:TreeSampler"

    def check(self, sampling: Task | Study) -> None:
        if sampling.p not in (None, ALL_BONDS):
            raise InputError("method tree uses all bonds: leave out p")
        if sampling.model != "bond":
            raise InputError(
                f"method tree: only bonds have weights, so model must be bond, not {sampling.model}"
            )

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        return list_columns(boundary, measure, trees=True)

    def largest_sum(self, num_points: int) -> int:
        return num_points << WEIGHT_BITS

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        """Return the memory for finding the trees and, on a device, for reading them."""
        memory: Memory = tree_class(name, device).memory(extent, items)
        readings = readings_class(name, device, extent, task.boundary)
        if readings is not None:
            memory = memory.plus(readings.memory(2 * extent.num_classes + 1, items))
        return memory


class TreeSampler(TaskSampler):
    """Measures the trees of samples, found on the device and read there where that is possible."""

    def _own(self) -> tuple[Trees, Any]:
        """Return what finds trees for this thread, and what reads them on a device, or None."""
        return self._place.own(self._new)

    def _new(self) -> tuple[Trees, Any]:
        kind, topology = self.device.kind, self._place.topology
        name = self._labeler or DEFAULT_TREE_METHOD[kind]
        trees = new_trees(name, kind, topology, capacity=self._place.capacity(name))
        readings = readings_class(name, kind, Extent.of_topology(topology), self.task.boundary)
        return trees, None if readings is None else readings(trees)

    def sample(self, numbers: Sequence[int], stopped: IsStopped | None = None) -> list[AnyBlock]:
        samples = number_samples(numbers, self.task.block_size)
        parts: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        with self.device.driven():
            capacity = self._own()[0].capacity
        for part in steps(len(samples), capacity, stopped):
            parts += self._read(samples[part])
        rows, sums = zip(*parts, strict=True)
        rows_of_all = np.array(rows, np.int64)[:, None]
        return list(make_tree_blocks(numbers, rows_of_all, sums, self.task.observables))

    def _read(self, samples: np.ndarray) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Return the row and the sums of the tree of every sample."""
        key, topology = self._key, self._place.topology
        with self.device.driven():
            trees, readings = self._own()
            count = trees.build(*key, samples)
            if readings is not None:
                return list(rows_from_sums(topology, readings.read(count)))
            words = trees.words(count)
        pairs = zip(samples, words, strict=True)
        return [read_rows(topology, *key, sample, tree) for sample, tree in pairs]


KIND = SpanningTrees()
