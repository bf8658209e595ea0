"""Minimum spanning trees: one of every sample, whose bonds have the uniform numbers as weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from percolab.bonds.words import GENERATORS
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.kinds.algorithms import TreeMethods
from percolab.kinds.workplace import (
    SITES_PER_LAUNCH,
    Workplace,
    choose_blocks_per_call,
    number_samples,
    steps,
)
from percolab.lattices.extent import Extent
from percolab.measure.columns import MEASURES, Column, list_columns
from percolab.measure.trees import WEIGHT_BITS
from percolab.tasks.blocks import AnyBlock, ChainEnd, make_tree_blocks
from percolab.tasks.kind import Kind, SamplerSpec
from percolab.tasks.study import Study, Task
from percolab.trees import DEFAULT_TREE_METHOD, new_trees, readings_class, tree_class
from percolab.trees.rows import read_rows, rows_from_sums
from percolab.trees.tree import Trees

#: Trees are chosen from all bonds.
ALL_BONDS = (1.0,)


class SpanningTrees(Kind):
    """The minimum spanning tree of every sample."""

    name = "trees"
    fixed_p = ALL_BONDS
    refused_measures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        MEASURES, "method tree finds trees, nothing else"
    )
    refusals: ClassVar[Mapping[str, str]] = {
        "parts": "method tree chooses from the bonds of the whole lattice",
        "functions": "functions of labels are measured in percolation by method grid, not of "
        "method tree",
        "target_error": "trees have no p_c with a target error",
    }
    sums = "weights"
    tables_on_host = True
    algorithms = TreeMethods()

    def check(self, item: Task | Study) -> None:
        """Raise InputError for p, and for models that are not bond percolation."""
        if item.p not in (None, ALL_BONDS):
            raise InputError("method tree chooses from all bonds: leave out p")
        if item.model != "bond":
            raise InputError(
                f"method tree: bonds have the weights, so the model is bond, not {item.model}"
            )

    def identity(self, task: Task) -> dict[str, Any]:
        """Return the method; p is that of all trees."""
        return {"method": task.method}

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        """Return the columns of trees."""
        return list_columns(boundary, measure, trees=True)

    def largest_sum(self, num_points: int) -> int:
        """Return the largest weight of a tree."""
        return num_points << WEIGHT_BITS

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        """Return the memory of what finds the trees and, on a device, reads them."""
        found: Memory = tree_class(name, device).memory(extent, items)
        readings = readings_class(name, device, extent, task.boundary)
        if readings is not None:
            found = found.plus(readings.memory(2 * extent.num_classes + 1, items))
        return found

    def sampler(
        self,
        task: Task,
        *,
        device: Device,
        labeler: str | None = None,
        share: float = 0.9,
        **hints: Any,
    ) -> TreeSampler:
        """Return a task made ready for a device; labeler: the tree method."""
        return TreeSampler(task, device=device, method=labeler, share=share, **hints)


class TreeSampler:
    """Measures the trees of blocks of samples (:class:`percolab.tasks.kind.BlockSampler`).

    Trees are found on the device, and read there where that can be, otherwise on the host.
    """

    is_serial = False

    def __init__(
        self, task: Task, *, device: Device, method: str | None = None, share: float = 0.9
    ) -> None:
        self.task, self.device, self._method = task, device, method
        self._place = Workplace(task, device, share)

    def _own(self) -> tuple[Trees, Any]:
        """Return this thread's way to find trees, and what reads them on a device, or None."""
        return self._place.own(self._new)

    def _new(self) -> tuple[Trees, Any]:
        kind, topology = self.device.kind, self._place.topology
        name = self._method or DEFAULT_TREE_METHOD[kind]
        trees = new_trees(name, kind, topology, capacity=self._place.capacity(name))
        readings = readings_class(name, kind, Extent.of_topology(topology), self.task.boundary)
        return trees, None if readings is None else readings(trees)

    @property
    def blocks_per_call(self) -> int:
        """Blocks that one call should be given to keep the device at work."""
        if not self.device.is_shared:
            return 1
        sites = self.task.num_points * self.task.block_size
        return choose_blocks_per_call(self.task, SITES_PER_LAUNCH // sites)

    def sample(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        """Return the blocks with these numbers; Stopped if ``stopped`` returns True on the way."""
        task, numbers = self.task, list(numbers)
        samples = number_samples(numbers, task.block_size)
        found: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        with self.device.driven():
            capacity = self._own()[0].capacity
        for part in steps(len(samples), capacity, stopped):
            found += self._read(samples[part])
        rows = np.array([row for row, _ in found], np.int64)[:, None]
        return list(make_tree_blocks(numbers, rows, [sums for _, sums in found], task.observables))

    def _read(self, samples: np.ndarray) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Return the row and the sums of the tree of every sample."""
        key, topology = (GENERATORS[self.task.rng], self.task.stream_seed), self._place.topology
        with self.device.driven():
            trees, readings = self._own()
            count = trees.build(*key, samples)
            if readings is not None:
                return list(rows_from_sums(topology, readings.read(count)))
            words = trees.words(count)
        pairs = zip(samples, words, strict=True)
        return [read_rows(topology, *key, sample, tree) for sample, tree in pairs]

    def continue_from(self, end: ChainEnd | None) -> None:
        """Do nothing: samples are independent."""

    def warm_up(self, *, with_pilot: bool) -> None:
        """Call once what a sweep calls, so that it is compiled."""
        self.sample([0])

    def spec(self) -> SamplerSpec:
        """Return what a worker process makes the same sampler from."""
        given = {"method": self._method, "share": self._place.share}
        return SamplerSpec("kinds.trees:TreeSampler", self.task, given)


KIND = SpanningTrees()
