"""Percolation on a grid of p: every sample is measured at all p at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from percolab.bonds.words import p_to_threshold
from percolab.coupled import Coupling, compute_memory, new_coupling, sums_blocks
from percolab.coupled.sample_blocks import SampleBlocks
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.kinds.algorithms import Labelers
from percolab.kinds.user_functions import UserFunctions
from percolab.kinds.workplace import IsStopped, TaskSampler, has_tally, number_samples
from percolab.labelers import serving_labeler
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.measure.measurements import list_measurements
from percolab.measure.rows import OPENINGS
from percolab.tasks.blocks import (
    AnyBlock,
    make_sample_blocks,
    make_summed_blocks,
    pick_observables,
    pick_squared,
)
from percolab.tasks.kind import Kind, PilotConditions
from percolab.tasks.study import Study, Task

#: Site labelings of a call whose rows stay on a GPU, which then works for some fifty ms, and its
#: blocks, at most: the host takes some ten microseconds for each.
_LABELINGS_PER_CALL, _BLOCKS_PER_CALL = 2**33, 2**15
_NO_CHAINS = "only chains of spins have one (--model ising)"


class Grid(Kind):
    """Percolation on a grid of p."""

    name = "grid"
    refused_measures: ClassVar[Mapping[str, str]] = {
        "series": _NO_CHAINS,
        "correlation": _NO_CHAINS,
    }
    algorithms = Labelers()

    def check(self, item: Task | Study) -> None:
        """Raise InputError where a measurement has no meaning."""
        for measurement in list_measurements(item.measure):
            measurement.reader_class.check(item.structure, item.boundary)

    def place_p(self, study: Study, pilot: PilotConditions) -> dict[int, tuple[float, ...]]:
        """Return p over the transition of every size, or over the maxima of what has no scale."""
        grids: dict[int, tuple[float, ...]] = load("kinds.pilots.percolation:place_p")(study, pilot)
        return grids

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        """Return the memory of a batch, its labeler and its coupling."""
        counted = OPENINGS in task.measure
        needs = Needs("sizes" in task.measure, max(len(task.p), 1), openings=counted)
        readers = [each.reader_class for each in list_measurements(task.measure)]
        for reader in readers:
            needs = reader.add_needs(task.structure, needs)
        found = compute_memory(name, device, extent, task.draw, needs, items)
        for reader in readers:
            own = reader.memory(extent)
            found = found.plus(own if device == "cuda" else Memory(own.host))
        return found

    def sampler_place(self, task: Task) -> str:
        """Return the place of what makes blocks on a grid of p."""
        return "kinds.grid:GridSampler"


class CoupledSampler(TaskSampler):
    """Measures samples by a labeler that serves all p of a sample."""

    @property
    def coupling(self) -> Coupling:
        """This thread's labeler and coupling; or that of all threads, for the one that drives."""
        return self._place.own(self._new_coupling)

    def _new_coupling(self) -> Coupling:
        """Return a new coupling, with the labeler that serves."""
        place, kind = self._place, self.device.kind
        name = serving_labeler(self._labeler, kind, place.topology)
        return new_coupling(
            name,
            kind,
            place.topology,
            self.task.draw,
            capacity=place.capacity(name),
            tally=has_tally(self.task),
            openings=OPENINGS in self.task.measure,
        )

    def rows(self, samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the rows of items (sample, threshold), uint64 (n,) each, int64 (n, row width)."""
        return self.coupling.rows(*self._key, samples, thresholds)

    def warm_up(self, *, with_pilot: bool) -> None:
        """Call once what a sweep calls, and what its pilot calls, so that it is compiled."""
        if with_pilot:
            self.rows(np.zeros(1, np.uint64), np.array([p_to_threshold(0.5)], np.uint64))
        self.sample([0])


class GridSampler(CoupledSampler):
    """Measures blocks of samples at all p."""

    def __init__(
        self, task: Task, *, device: Device, labeler: str | None = None, share: float = 0.9
    ) -> None:
        super().__init__(task, device=device, labeler=labeler, share=share)
        self._thresholds = np.array([p_to_threshold(p) for p in task.p], np.uint64)
        self._functions = UserFunctions(self._place, self._thresholds)
        self._readers = [
            each.reader_class(task.structure, task.shape)
            for each in list_measurements(task.measure)
        ]

    @property
    def topology(self) -> Topology:
        """The sites and bonds of the task."""
        return self._place.topology

    @property
    def blocks_per_call(self) -> int:
        """Blocks that one call should be given to keep the device at work."""
        if not self._sums_on_device:
            return super().blocks_per_call
        labelings = self.task.num_points * self.task.block_size * max(len(self.task.p), 1)
        return min(max(_LABELINGS_PER_CALL // labelings, 1), _BLOCKS_PER_CALL)

    @cached_property
    def _sums_on_device(self) -> bool:
        """Whether the sums of blocks are made where the rows are."""
        task, kind = self.task, self.device.kind
        if self._readers or task.functions or has_tally(task) or not self.device.is_shared:
            return False
        topology = self._place.topology
        name = serving_labeler(self._labeler, kind, topology)
        return sums_blocks(name, kind, task.draw, Extent.of_topology(topology))

    def grid_rows(self, samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the rows of samples at ascending thresholds, int64 (n, m, row width)."""
        found = self.coupling.grid_rows(*self._key, samples, thresholds)
        return found.reshape(len(samples), len(thresholds), -1)

    def sample(self, numbers: Sequence[int], stopped: IsStopped | None = None) -> list[AnyBlock]:
        """Return the blocks with these numbers; Stopped if ``stopped`` returns True on the way."""
        task = self.task
        if self._sums_on_device:
            return self._sum_on_device(numbers)
        samples = number_samples(numbers, task.block_size)
        rows: list[np.ndarray] = []
        read: list[list[np.ndarray]] = [[] for _ in self._readers]
        with self.device.driven():
            for part in self._place.pieces(samples, stopped):
                rows.append(self.coupling.grid_rows(*self._key, part, self._thresholds))
                for reader, found in zip(self._readers, read, strict=True):
                    items = part, self._thresholds
                    found.append(reader.rows(self.coupling, *self._key, *items))
        extras: dict[str, np.ndarray] = {}
        for reader, found in zip(self._readers, read, strict=True):
            extras |= reader.sums(_by_block(found, len(numbers)))
        if task.functions:
            extras |= self._functions.sums(len(numbers), samples, stopped)
        measured = _by_block(rows, len(numbers))
        counted = None
        if OPENINGS in task.measure:
            measured, counted = measured[..., :-1], measured[..., -1:]
        return list(make_sample_blocks(numbers, measured, task.observables, extras, counted))

    def _sum_on_device(self, numbers: Sequence[int]) -> list[AnyBlock]:
        """Return the blocks, whose rows never leave the device."""
        size = self.task.block_size
        blocks = SampleBlocks(np.array(numbers, np.uint64) * np.uint64(size), size)
        with self.device.driven():
            own = self.task.observables
            picks = pick_observables(own), pick_squared(own)
            coupling: Any = self.coupling
            summed = coupling.block_sums(*self._key, blocks, self._thresholds, *picks)
        return list(make_summed_blocks(numbers, *summed))


def _by_block(parts: list[np.ndarray], blocks: int) -> np.ndarray:
    """Return what was measured of samples, (samples, ...) in parts, as (blocks, samples, ...)."""
    found = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return found.reshape(blocks, -1, *found.shape[1:])


KIND = Grid()
