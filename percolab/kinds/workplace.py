"""What samplers of all kinds have in common: where a task is measured, in pieces that can stop."""

import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from percolab.bonds.words import GENERATORS
from percolab.kernels.device import Device
from percolab.kernels.memory import entries_that_fit
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.tallies import compute_row_width
from percolab.tasks.groups import number_array
from percolab.tasks.kind import BlockSampler, SamplerSpec
from percolab.tasks.study import Task

#: Sites in one CUDA launch, where memory allows: a GPU is at work for some ten ms.
SITES_PER_LAUNCH = 2**30
#: A CPU call measures about this many sites before it looks whether it should stop.
SITES_PER_CALL = 2**22
#: Rows of one call, in host memory.
_ROWS_PER_CALL = 2**22
#: Site labelings of a call on a CPU, some milliseconds, where its blocks are smaller.
_LABELINGS_PER_CPU_CALL = 2**19

# What several kinds refuse, in the words of Kind.refusals.
OPENS_IN_ORDER = "method {method} needs whole samples, whose bonds it opens in order; give p"
NO_FUNCTIONS = "functions of labels are measured by method grid, not by method {method}"

_T = TypeVar("_T")
IsStopped = Callable[[], bool]


class Stopped(Exception):
    """Sampling was to stop before the blocks were finished."""


class Workplace:
    """A task on a device: its topology, and the objects that measure it.

    On the CPU every thread has its own measuring object; on a GPU all threads share one, which the
    thread that drives the device uses.  share: the part of a CUDA device's free memory to take.
    """

    def __init__(self, task: Task, device: Device, share: float) -> None:
        self.task, self.device, self.share = task, device, share
        self._topology: Topology | None = None
        self._building = threading.Lock()
        self._local, self._shared = threading.local(), SimpleNamespace()

    @property
    def topology(self) -> Topology:
        with self._building:
            if self._topology is None:
                topology = self.task.structure.topology(self.task.shape, self.task.boundary)
                if not self.device.is_shared:
                    # Threads on the CPU share all bonds and lists, which are made once.
                    _ = topology.exists, topology.periodic_bonds
                self._topology = topology
            return self._topology

    def own(self, make: Callable[[], _T]) -> _T:
        """Return what measures the task for this thread, or for all threads, made at first use."""
        at: Any = self._shared if self.device.is_shared else self._local
        if not hasattr(at, "measuring"):
            at.measuring = make()
        return at.measuring  # type: ignore[no-any-return]

    def capacity(self, algorithm: str, sites_per_launch: int = SITES_PER_LAUNCH) -> int:
        """Return how many entries a batch should have: one on the CPU."""
        if not self.device.is_shared:
            return 1
        task, extent = self.task, Extent.of_topology(self.topology)
        self.device.open()
        fitting = entries_that_fit(
            lambda entries: task.kind.memory(task, algorithm, self.device.kind, extent, entries),
            int(self.share * self.device.free_memory()),
        )
        return max(min(fitting, sites_per_launch // self.topology.num_points), 1)

    def pieces(self, samples: np.ndarray, stopped: IsStopped | None) -> Iterator[np.ndarray]:
        """Cut samples into the pieces between which sampling can be stopped."""
        step = len(samples)
        if not self.device.is_shared:
            step = SITES_PER_CALL // (self.task.num_points * max(len(self.task.p), 1))
        for part in steps(len(samples), step, stopped):
            yield samples[part]


def steps(total: int, step: int, stopped: IsStopped | None) -> Iterator[slice]:
    """Cut ``total`` things into steps; Stopped if ``stopped`` returns True before one of them."""
    step = max(step, 1)
    for first in range(0, total, step):
        if stopped is not None and stopped():
            raise Stopped
        yield slice(first, min(first + step, total))


class TaskSampler(BlockSampler):
    """Makes blocks of a task; every kind has one.

    labeler: the name of a labeler or a tree method, None for the fastest.  share: the part of a
    CUDA device's free memory that may be taken.
    """

    def __init__(
        self, task: Task, *, device: Device, labeler: str | None = None, share: float = 0.9
    ) -> None:
        self.task, self.device, self._labeler = task, device, labeler
        self._place = Workplace(task, device, share)
        self._key = GENERATORS[task.rng], task.stream_seed

    @property
    def blocks_per_call(self) -> int:
        task = self.task
        rows = task.block_size * max(len(task.p), 1)
        if not self.device.is_shared:
            return max(_LABELINGS_PER_CPU_CALL // (task.num_points * rows), 1)
        # At most as many as the host has memory for their rows.
        by_rows = _ROWS_PER_CALL * ROW_WIDTH // (row_width(task) * rows)
        return max(min(self._blocks_that_fill, by_rows), 1)

    @property
    def calls_per_job(self) -> int:
        if self.device.is_shared:
            return 1
        task = self.task
        blocks = task.num_points * task.block_size * max(len(task.p), 1) * self.blocks_per_call
        return max(SITES_PER_CALL // blocks, 1)

    @property
    def _blocks_that_fill(self) -> int:
        return SITES_PER_LAUNCH // (self.task.num_points * self.task.block_size)

    def spec(self) -> SamplerSpec:
        own = type(self)
        place = f"{own.__module__.removeprefix('percolab.')}:{own.__name__}"
        return SamplerSpec(place, self.task, self._arguments())

    def _arguments(self) -> dict[str, Any]:
        return {"labeler": self._labeler, "share": self._place.share}


def number_samples(numbers: Sequence[int], block_size: int) -> np.ndarray:
    """Return the numbers of the samples of blocks, uint64 (blocks * block_size,)."""
    starts = number_array(numbers).astype(np.uint64)[:, None] * np.uint64(block_size)
    return (starts + np.arange(block_size, dtype=np.uint64)).ravel()


def row_width(task: Task) -> int:
    return compute_row_width(task.num_points) if task.has_tally else ROW_WIDTH
