"""Sampler: a task made ready for a device; give it block numbers and it returns their sums."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.coupled.thresholds import find_thresholds
from percolab.errors import InputError
from percolab.labelers import labeler_class
from percolab.lattices.geometry import Geometry, geometry_of
from percolab.lattices.topology import Topology, num_words_of
from percolab.measure.columns import RADII, TALLY, columns_of, is_gathered_from, observables_of
from percolab.measure.radii import sums_of_radii
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.tallies import row_width_of
from percolab.tasks.blocks import AnyBlock, ThresholdBlock, blocks_of
from percolab.tasks.study import Task

#: Sites in one CUDA launch, where memory allows: a GPU is at work for some ten ms.
_SITES_PER_LAUNCH = 2**30
# Rows of one call, which the host holds.
_ROWS_PER_CALL = 2**22
# A CPU call measures about this many sites before it looks whether it should stop.
_SITES_PER_CALL = 2**22

# GPUs are driven by one thread at a time, whatever tasks the threads are at, while others sum up
# what was measured: numba-cuda loads a kernel into the device without a lock of its own.
_DRIVING = threading.Lock()


class Stopped(Exception):
    """Sampling was asked to stop before the blocks were finished."""


@dataclass(frozen=True)
class Device:
    """Where samples are made: kind "cpu" or "cuda", and the number of a CUDA device.

    Kind "auto" leaves the choice to :meth:`resolve`, so that CUDA is looked for when it is needed.
    """

    kind: str
    number: int = 0

    @classmethod
    def parse(cls, text: str) -> Device:
        """Read "auto", "cpu", "cuda" or "cuda:n"; InputError otherwise, or if it is not there."""
        if text == "cpu":
            return cls("cpu")
        kind, _, number = text.partition(":")
        if text != "auto" and (kind != "cuda" or (":" in text and not number.isdecimal())):
            raise InputError(f"--device {text}: must be auto, cpu, cuda or cuda:n")
        if text == "auto":
            return cls("auto")
        from percolab.kernels.device import open_device

        open_device(text)
        return cls("cuda", int(number or 0))

    def resolve(self) -> Device:
        """Return the device that "auto" stands for here: CUDA where it works, else the CPU."""
        if self.kind != "auto":
            return self
        from percolab.kernels.device import cuda_problem

        return Device("cpu" if cuda_problem() else "cuda")

    def __str__(self) -> str:
        return f"cuda:{self.number}" if self.kind == "cuda" else "cpu"


def required_memory(task: Task, labeler: str | None, device: Device, workers: int) -> int:
    """Return the bytes of host memory that measuring a task takes at its peak."""
    points, classes = task.num_points, task.lattice.num_classes
    words = 4 * classes * num_words_of(points)
    building = 2 * classes * points + 16 * points
    topology = 3 * words
    if device.kind == "cuda":
        return building + topology
    scratch = labeler_class(labeler, "cpu").scratch_bytes(points, classes)
    if task.method == "threshold":
        scratch += 5 * classes * points
    return max(building, workers * (scratch + words)) + topology


def check_memory(
    task: Task,
    labeler: str | None,
    device: Device,
    workers: int,
    *,
    held: int = 0,
    share: float = 0.9,
) -> None:
    """Raise InputError if a task needs more memory than there is, before allocating any.

    held: host memory that other tasks of the study take.  share: as for :class:`Sampler`.
    """
    needed = required_memory(task, labeler, device, workers)
    available = psutil.virtual_memory().available
    if held + needed > available:
        beside = f" beside {held / 1e9:.1f} GB for the other sizes" if held > 1e8 else ""
        raise InputError(
            f"L = {task.size} needs {needed / 1e9:.1f} GB of memory{beside}; "
            f"{available / 1e9:.1f} GB are free"
        )
    if device.kind == "cuda":
        _check_cuda_memory(task, labeler, device, share)


def _check_cuda_memory(task: Task, labeler: str | None, device: Device, share: float) -> None:
    from percolab.kernels.device import free_memory, open_device

    axes = len(task.boundary)
    if task.num_points > labeler_class(labeler, "cuda").most_points(axes):
        raise InputError(
            f"L = {task.size}: {task.num_points} sites do not fit beside the marks of {axes} axes "
            f"in 32 bits on {device}; use --device cpu"
        )
    per_item = _cuda_bytes_per_item(task)
    free = share * free_memory(open_device(str(device)))
    if per_item > free:
        raise InputError(
            f"L = {task.size} needs {per_item / 1e9:.1f} GB on {device}; "
            f"{free / 1e9:.1f} GB are its share of what is free"
        )


def _cuda_bytes_per_item(task: Task) -> int:
    words = task.lattice.num_classes * num_words_of(task.num_points)
    return 8 * words + 16 * task.num_points + 16384


def _by_block(parts: list[np.ndarray], blocks: int) -> np.ndarray:
    """Return what was found of samples, (samples, ...) in parts, as (blocks, samples, ...)."""
    found = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return found.reshape(blocks, -1, *found.shape[1:])


class Sampler:
    """Measures blocks of one task on one device; safe to call from several threads on the CPU.

    ``share`` is the part of a CUDA device's free memory this sampler may take.  ``window`` holds
    two p between which the thresholds of a task with that method are looked for first; it changes
    how long that takes, not what is found.
    """

    def __init__(
        self,
        task: Task,
        *,
        labeler: str | None = None,
        device: Device,
        share: float = 0.9,
        window: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.task, self.device = task, device
        low, high = map(threshold_of, window)
        self._window = low, max(high, low + 1)
        self._labeler = labeler_class(labeler, device.kind)
        self._share = share
        self._topology: Topology | None = None
        self._building = threading.Lock()
        self._local = threading.local()
        self._driving = _DRIVING if device.kind == "cuda" else nullcontext()
        self._shared: Any = None
        self._thresholds = np.array([threshold_of(p) for p in task.p], np.uint64)
        self._observables = observables_of(task.boundary)
        columns = columns_of(task.boundary, task.measure)
        self._tallied = is_gathered_from(TALLY, columns)
        self._geometry: Geometry | None = None
        if is_gathered_from(RADII, columns):
            self._geometry = geometry_of(task.lattice, task.shape)

    @property
    def topology(self) -> Topology:
        """The sites and bonds of the task, built at first use."""
        with self._building:
            if self._topology is None:
                self._topology = self.task.lattice.topology(self.task.shape, self.task.boundary)
            return self._topology

    @property
    def labeler(self) -> Any:
        """This thread's labeler; on CUDA that of all threads, for the one that may drive."""
        if self.device.kind == "cuda":
            if self._shared is None:
                self._shared = self._new_labeler()
            return self._shared
        if not hasattr(self._local, "labeler"):
            self._local.labeler = self._new_labeler()
        return self._local.labeler

    def _new_labeler(self) -> Any:
        labeler = self._bare_labeler()
        if self._tallied:
            labeler.keep_tally()
        return labeler

    def _bare_labeler(self) -> Any:
        if self.device.kind == "cpu":
            return self._labeler(self.topology, self.task.draw)
        from percolab.kernels.device import free_memory, open_device

        cuda = open_device(str(self.device))
        per_item = self._labeler.bytes_per_item(self.topology)
        fitting = int(self._share * free_memory(cuda)) // per_item
        wanted = max(_SITES_PER_LAUNCH // self.topology.num_points, 1)
        capacity = max(min(fitting, wanted), 1)
        return self._labeler(self.topology, self.task.draw, capacity=capacity)

    @property
    def blocks_per_call(self) -> int:
        """Blocks that one call should be given to keep the device at work."""
        if self.device.kind == "cpu":
            return 1
        task = self.task
        rows = task.block_size * max(len(task.p), 1)
        width = row_width_of(task.num_points) if self._tallied else ROW_WIDTH
        by_rows = _ROWS_PER_CALL * ROW_WIDTH // (width * rows)
        return max(min(_SITES_PER_LAUNCH // (task.num_points * task.block_size), by_rows), 1)

    def rows(self, samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the rows of items (sample, threshold), uint64 (n,) each, int64 (n, row width)."""
        generator = GENERATORS[self.task.rng]
        return self.labeler.rows(generator, self.task.stream_seed, samples, thresholds)

    def grid_rows(self, samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the rows of samples at ascending thresholds, int64 (n, m, row width)."""
        generator = GENERATORS[self.task.rng]
        found = self.labeler.grid_rows(generator, self.task.stream_seed, samples, thresholds)
        return found.reshape(len(samples), len(thresholds), -1)

    def spanning_thresholds(self, samples: np.ndarray) -> np.ndarray:
        """Return T of samples, uint64 (n,), along every open axis: uint64 (n, open axes)."""
        generator = GENERATORS[self.task.rng]
        return find_thresholds(
            self.labeler, generator, self.task.stream_seed, samples, self._window
        )

    def sample(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        """Return the blocks with these numbers; Stopped if ``stopped`` returns True on the way."""
        return self._blocks(numbers, stopped)

    def call_first(self, *, with_pilot: bool) -> None:
        """Call once what a sweep calls, and what its pilot calls, so that it is compiled."""
        if with_pilot:
            self.rows(np.zeros(1, np.uint64), np.array([threshold_of(0.5)], np.uint64))
        self._blocks([0])

    def _blocks(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        size = self.task.block_size
        samples = np.concatenate(
            [np.arange(number * size, (number + 1) * size, dtype=np.uint64) for number in numbers]
        )
        if self.task.method == "threshold":
            with self._driving:
                parts = [self.spanning_thresholds(part) for part in self._parts(samples, stopped)]
            thresholds = np.concatenate(parts).reshape(len(numbers), size, -1)
            return [ThresholdBlock(*block) for block in zip(numbers, thresholds, strict=True)]
        key = GENERATORS[self.task.rng], self.task.stream_seed
        rows, reaches = [], []
        with self._driving:
            for part in self._parts(samples, stopped):
                rows.append(self.labeler.grid_rows(*key, part, self._thresholds))
                if self._geometry is not None:
                    places = self._thresholds, self._geometry
                    reaches.append(self.labeler.gyration_rows(*key, part, *places))
        extras = {}
        if self._geometry is not None:
            spread = _by_block(reaches, len(numbers))
            extras = sums_of_radii(spread, self._geometry.unit)
        measured = _by_block(rows, len(numbers))
        return list(blocks_of(numbers, measured, self._observables, extras))

    def _parts(
        self, samples: np.ndarray, stopped: Callable[[], bool] | None
    ) -> Iterator[np.ndarray]:
        """Cut samples into the pieces after each of which a wish to stop is heard."""
        step, grid_size = len(samples), len(self.task.p)
        if self.device.kind == "cpu":
            step = max(_SITES_PER_CALL // (self.task.num_points * max(grid_size, 1)), 1)
        for first in range(0, len(samples), step):
            if stopped is not None and stopped():
                raise Stopped
            yield samples[first : first + step]
