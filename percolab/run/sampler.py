"""Sampler: a task made ready for a device; give it block numbers and it returns their sums."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import psutil

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.coupled import Coupling, memory_of, new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, Needs, items_that_fit
from percolab.labelers import DEFAULT_LABELER, labeler_class, new_labeler, serving_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry, geometry_of
from percolab.lattices.graph import Graph
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.clusters import Clusters
from percolab.measure.columns import RADII, TALLY, is_gathered_from
from percolab.measure.radii import sums_of_radii
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.spins import MOST_AXES, SPIN_ROW_WIDTH, structure_factors
from percolab.measure.tallies import row_width_of
from percolab.spins import chains as spin_chains
from percolab.spins.chains import Chains
from percolab.spins.update import Rule, Update
from percolab.tasks.blocks import (
    AnyBlock,
    Block,
    ChainEnd,
    ThresholdBlock,
    blocks_of,
    blocks_of_chains,
    blocks_of_trees,
)
from percolab.tasks.study import Task
from percolab.trees import DEFAULT_TREE_METHOD, new_trees, readings_class, tree_class
from percolab.trees.rows import read_rows, rows_of_sums
from percolab.trees.tree import Trees

#: Sites in one CUDA launch, where memory allows: a GPU is at work for some ten ms.
_SITES_PER_LAUNCH = 2**30
#: Spins of the chains that are swept together; more than fill a GPU.
_SPINS_PER_LAUNCH = 2**27
# Rows of one call, which the host holds.
_ROWS_PER_CALL = 2**22
# A CPU call measures about this many sites before it looks whether it should stop.
_SITES_PER_CALL = 2**22


class Stopped(Exception):
    """Sampling was asked to stop before the blocks were finished."""


def needs_of(task: Task, steps: int) -> Needs:
    """Return what memory a task's measurements depend on, with so many steps of a grid."""
    axes = 0
    if "gyration" in task.measure:
        axes = geometry_of(task.structure, (1,) * max(task.structure.dimension, 1)).places.shape[0]
    return Needs("sizes" in task.measure, steps, task.method == "threshold", axes)


def memory_of_task(task: Task, labeler: str | None, kind: str, workers: int = 1) -> Memory:
    """Return the memory that measuring a task takes at its peak, one item in a batch."""
    extent = Extent.of_structure(task.structure, task.shape, task.boundary)
    defaults = DEFAULT_TREE_METHOD if task.has_trees else DEFAULT_LABELER
    name = labeler or defaults[kind]
    needs = needs_of(task, max(len(task.p), 1))
    one = _memory_of(task, name, kind, extent, needs)
    # Kernels of a device have the bonds there; trees are read on the host, too.
    is_short = kind == "cuda" and not task.has_trees
    tables = extent.base_bytes if is_short else extent.topology_bytes
    # While the topology is made there is no labeler yet.
    host = max(extent.building_bytes, workers * one.host) + tables
    return Memory(host, one.device)


def _memory_of(
    task: Task, name: str, kind: str, extent: Extent, needs: Needs, items: int = 1
) -> Memory:
    """Return the memory of what measures a task, its batch of so many items included."""
    if task.has_spins:
        return spin_chains.memory_of(name, kind, extent, task.draw.states, needs, items)
    if task.has_trees:
        found: Memory = tree_class(name, kind).memory(extent, items)
        reads = readings_class(name, kind, extent, task.boundary)
        if reads is not None:
            found = found.plus(reads.memory(2 * extent.num_classes + 1, items))
        return found
    return memory_of(name, kind, extent, task.draw, needs, items)


def required_memory(task: Task, labeler: str | None, device: Device, workers: int) -> int:
    """Return the bytes of host memory that measuring a task takes at its peak."""
    return memory_of_task(task, labeler, device.kind, workers).host


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

    held: host memory that all else takes, as tasks of other sizes, other processes, or labels.
    share: as for :class:`Sampler`.
    """
    needed = memory_of_task(task, labeler, device.kind, workers)
    available = psutil.virtual_memory().available
    if held + needed.host > available:
        beside = f" beside {held / 1e9:.1f} GB for all else" if held > 1e8 else ""
        raise InputError(
            f"L = {task.size} needs {needed.host / 1e9:.1f} GB of memory{beside}; "
            f"{available / 1e9:.1f} GB are free"
        )
    if needed.device:
        _check_device_memory(task, labeler, device, needed.device, share)


def _check_device_memory(
    task: Task, labeler: str | None, device: Device, needed: int, share: float
) -> None:
    axes = len(task.boundary)
    if not task.has_trees and task.num_points > labeler_class(labeler, device.kind).most_points(
        axes
    ):
        raise InputError(
            f"L = {task.size}: {task.num_points} sites do not fit beside the marks of {axes} axes "
            f"in 32 bits on {device}; use --device cpu"
        )
    free = share * device.free_memory()
    if needed > free:
        raise InputError(
            f"L = {task.size} needs {needed / 1e9:.1f} GB on {device}; "
            f"{free / 1e9:.1f} GB are its share of what is free"
        )


def _by_block(parts: list[np.ndarray], blocks: int) -> np.ndarray:
    """Return what was found of samples, (samples, ...) in parts, as (blocks, samples, ...)."""
    found = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return found.reshape(blocks, -1, *found.shape[1:])


class Sampler:
    """Measures blocks of one task on one device; safe to call from several threads on the CPU.

    ``share`` is the part of a CUDA device's free memory this sampler may take.  ``window`` holds
    two p between which the thresholds of a task with that method are looked for first; it changes
    how long that takes, not what is found.

    One long chain (``chains`` 1) is made block after block, by one thread at a time, from ``end``
    on, where it was before, or from its start.
    """

    def __init__(
        self,
        task: Task,
        *,
        labeler: str | None = None,
        device: Device,
        share: float = 0.9,
        window: tuple[float, float] = (0.0, 1.0),
        end: ChainEnd | None = None,
    ) -> None:
        self.task, self.device = task, device
        self._end = end
        self.labeler, self.share, self.window = labeler, share, window
        low, high = map(threshold_of, window)
        self._window = low, max(high, low + 1)
        self._topology: Topology | None = None
        self._building = threading.Lock()
        self._local = threading.local()
        self._shared: Any = None
        # What reads the trees of a device where they lie.
        self._tree_readings: Any = None
        self._thresholds = np.array([threshold_of(p) for p in task.p], np.uint64)
        self._observables = task.observables
        columns = task.columns
        self._tallied = is_gathered_from(TALLY, columns)
        self._geometry: Geometry | None = None
        if is_gathered_from(RADII, columns):
            self._geometry = geometry_of(task.structure, task.shape)

    @property
    def end(self) -> ChainEnd | None:
        """Where one long chain is; None at its start."""
        return self._end

    def continue_from(self, end: ChainEnd | None) -> None:
        """Go on with one long chain from where another sampler has brought it."""
        self._end = end

    @property
    def topology(self) -> Topology:
        """The sites and bonds of the task, built at first use."""
        with self._building:
            if self._topology is None:
                found = self.task.structure.topology(self.task.shape, self.task.boundary)
                if not self.device.is_shared:
                    # Threads on the CPU share all bonds and lists, which are made once.
                    _ = found.exists, found.seam_bonds
                self._topology = found
            return self._topology

    @property
    def coupling(self) -> Coupling:
        """This thread's labeler and coupling; or that of all threads, for the one that drives."""
        coupling: Coupling = self._own()
        return coupling

    @property
    def chains(self) -> Chains:
        """This thread's chains of spins; or those of all threads, for the one that drives."""
        chains: Chains = self._own()
        return chains

    @property
    def trees(self) -> Trees:
        """What finds this thread's trees; or those of all threads, for the one that drives."""
        trees: Trees = self._own()
        return trees

    def _own(self) -> Any:
        """Return what measures this task for this thread, made when first asked for."""
        if self.device.is_shared:
            if self._shared is None:
                self._shared = self._new()
            return self._shared
        if not hasattr(self._local, "measuring"):
            self._local.measuring = self._new()
        return self._local.measuring

    def _new(self) -> Coupling | Chains | Trees:
        task, topology, kind = self.task, self.topology, self.device.kind
        if task.has_trees:
            name = self.labeler or DEFAULT_TREE_METHOD[kind]
        else:
            name = serving_labeler(self.labeler, kind, topology)
        extent, needs = Extent.of_topology(topology), needs_of(task, max(len(task.p), 1))

        def memory(items: int) -> Memory:
            return _memory_of(task, name, kind, extent, needs, items)

        capacity = 1
        if self.device.is_shared:
            self.device.open()
            fitting = items_that_fit(memory, int(self.share * self.device.free_memory()))
            sites = _SPINS_PER_LAUNCH if task.has_spins else _SITES_PER_LAUNCH
            wanted = max(sites // topology.num_points, 1)
            capacity = max(min(fitting, wanted), 1)
        tally = self._tallied
        if task.has_trees:
            trees = new_trees(name, kind, topology, capacity=capacity)
            reads = readings_class(name, kind, extent, task.boundary)
            self._tree_readings = None if reads is None else reads(trees)
            return trees
        if task.has_spins:
            return spin_chains.new_chains(
                name, kind, topology, self.rule, capacity=capacity, tally=tally
            )
        return new_coupling(name, kind, topology, task.draw, capacity=capacity, tally=tally)

    @property
    def rule(self) -> Rule:
        """Which clusters of spins a sweep changes."""
        return Update.parse(self.task.update).rule(self.task.draw.states)

    @property
    def blocks_per_call(self) -> int:
        """Blocks that one call should be given to keep the device at work."""
        if not self.device.is_shared or self.task.chains:
            return 1
        task = self.task
        rows = task.block_size * max(len(task.p), 1)
        width = row_width_of(task.num_points) if self._tallied else ROW_WIDTH
        by_rows = _ROWS_PER_CALL * ROW_WIDTH // (width * rows)
        if task.has_spins:
            # All chains of a call are swept together.
            side_by_side = _SPINS_PER_LAUNCH // (task.num_points * len(task.p))
            return max(min(side_by_side, by_rows), 1)
        return max(min(_SITES_PER_LAUNCH // (task.num_points * task.block_size), by_rows), 1)

    def rows(self, samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the rows of items (sample, threshold), uint64 (n,) each, int64 (n, row width)."""
        generator = GENERATORS[self.task.rng]
        return self.coupling.rows(generator, self.task.stream_seed, samples, thresholds)

    def grid_rows(self, samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the rows of samples at ascending thresholds, int64 (n, m, row width)."""
        generator = GENERATORS[self.task.rng]
        found = self.coupling.grid_rows(generator, self.task.stream_seed, samples, thresholds)
        return found.reshape(len(samples), len(thresholds), -1)

    def spanning_thresholds(self, samples: np.ndarray) -> np.ndarray:
        """Return T of samples, uint64 (n,), along every open axis: uint64 (n, open axes)."""
        generator = GENERATORS[self.task.rng]
        return find_thresholds(
            self.coupling, generator, self.task.stream_seed, samples, self._window
        )

    def sample(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        """Return the blocks with these numbers; Stopped if ``stopped`` returns True on the way."""
        return self._blocks(numbers, stopped)

    def call_first(self, *, with_pilot: bool) -> None:
        """Call once what a sweep calls, and what its pilot calls, so that it is compiled."""
        if self.task.has_spins:
            self.chains.begin(GENERATORS[self.task.rng], [self.task.chain(0, 0.5)], [True])
            self.chains.rows_at(np.array([threshold_of(0.5)], np.uint64))
            self.chains.skip(1)
            self.chains.resume(self.chains.planes_of(), 1)
        elif with_pilot and not self.task.has_trees:
            self.rows(np.zeros(1, np.uint64), np.array([threshold_of(0.5)], np.uint64))
        self._blocks([0])

    def _blocks(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        if self.task.chains:
            return [self._next_block(number, stopped) for number in numbers]
        if self.task.has_spins:
            return list(self._chain_blocks(numbers, stopped))
        size = self.task.block_size
        samples = np.concatenate(
            [np.arange(number * size, (number + 1) * size, dtype=np.uint64) for number in numbers]
        )
        if self.task.has_trees:
            return list(self._tree_blocks(numbers, samples, stopped))
        if self.task.method == "threshold":
            with self.device.driven():
                parts = [self.spanning_thresholds(part) for part in self._parts(samples, stopped)]
            thresholds = np.concatenate(parts).reshape(len(numbers), size, -1)
            return [ThresholdBlock(*block) for block in zip(numbers, thresholds, strict=True)]
        key = GENERATORS[self.task.rng], self.task.stream_seed
        rows, reaches = [], []
        with self.device.driven():
            for part in self._parts(samples, stopped):
                rows.append(self.coupling.grid_rows(*key, part, self._thresholds))
                if self._geometry is not None:
                    places = self._thresholds, self._geometry
                    reaches.append(self.coupling.radii_rows(*key, part, *places))
        extras = {}
        if self._geometry is not None:
            spread = _by_block(reaches, len(numbers))
            extras = sums_of_radii(spread, self._geometry.unit)
        if self.task.functions:
            extras |= self._function_sums(len(numbers), samples, stopped)
        measured = _by_block(rows, len(numbers))
        return list(blocks_of(numbers, measured, self._observables, extras))

    def _function_sums(
        self, blocks: int, samples: np.ndarray, stopped: Callable[[], bool] | None
    ) -> dict[str, np.ndarray]:
        """Return the sums of a user's functions by name, float64 (blocks, m, 1): on the CPU."""
        task, key = self.task, (GENERATORS[self.task.rng], self.task.stream_seed)
        found = {item.name: np.zeros((blocks, len(task.p), 1)) for item in task.functions}
        if not hasattr(self._local, "labeler"):
            name = serving_labeler(None, "cpu", self.topology)
            self._local.labeler = new_labeler(name, "cpu", self.topology, task.draw)
        for n, sample in enumerate(samples):
            if stopped is not None and stopped():
                raise Stopped
            for k, threshold in enumerate(self._thresholds):
                labels = self._labels_of(self._local.labeler, key, sample, threshold)
                for item in task.functions:
                    place = n // task.block_size, k, 0
                    total = float(found[item.name][place]) + item.value_of(labels.copy())
                    if not math.isfinite(total):
                        raise InputError(
                            f"observable {item}: its sum over a block is {total}, but sums "
                            "are finite"
                        )
                    found[item.name][place] = total
        return found

    def _labels_of(
        self, labeler: Any, key: tuple[int, int], sample: np.uint64, threshold: np.uint64
    ) -> np.ndarray:
        """Return the labels of a sample at one threshold, int32, as percolab.label has them."""
        one = np.array([sample], np.uint64), np.array([threshold], np.uint64)
        items = labeler.batch.fill(*key, *one)
        labels = labeler.join(items, Reading.LABELS).labels()[0].copy()
        points = self.topology.num_points
        labels[~unpack_bits(self.topology.occupied, points)] = -1
        if self.task.draw.draws_sites:
            labels[~unpack_bits(labeler.batch.occupied_of(items)[0], points)] = -1
        structure = self.task.structure
        if isinstance(structure, Graph) and structure.inner_numbers is not None:
            labels = Clusters.of_any_labels(labels[structure.inner_numbers], self.topology).labels
        return np.asarray(labels).reshape(self.topology.shape[::-1] or (points,))

    def _next_block(self, number: int, stopped: Callable[[], bool] | None) -> Block:
        """Return the next block of one long chain, which must be that of this number."""
        task, end = self.task, self._end
        if (task.burn_in if end is None else end.sweeps) != task.sweeps_after(number):
            raise ValueError(f"block {number} of one chain is not the one that comes next")
        planes: list[np.ndarray] = []
        (block,) = self._chain_blocks([number], stopped, planes)
        self._end = ChainEnd(task.sweeps_after(number + 1), np.concatenate(planes))
        return replace(block, end=self._end)

    def _tree_blocks(
        self,
        numbers: Sequence[int],
        samples: np.ndarray,
        stopped: Callable[[], bool] | None,
    ) -> list[Block]:
        """Return the blocks of trees: they are found on the device, and read on the host."""
        task, generator = self.task, GENERATORS[self.task.rng]
        found: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        with self.device.driven():
            capacity = self.trees.capacity
        for first in range(0, len(samples), capacity):
            if stopped is not None and stopped():
                raise Stopped
            part = samples[first : first + capacity]
            with self.device.driven():
                trees = self.trees
                count = trees.build(generator, task.stream_seed, part)
                if self._tree_readings is not None:
                    found += rows_of_sums(self.topology, self._tree_readings.read(count))
                    continue
                words = trees.words(count)
            for sample, tree in zip(part, words, strict=True):
                key = generator, task.stream_seed, sample
                found.append(read_rows(self.topology, *key, tree))
        rows = np.array([row for row, _ in found], np.int64)[:, None]
        return blocks_of_trees(numbers, rows, [sums for _, sums in found], self._observables)

    def _chain_blocks(
        self,
        numbers: Sequence[int],
        stopped: Callable[[], bool] | None,
        planes: list[np.ndarray] | None = None,
    ) -> list[Block]:
        """Return the blocks of chains: those of even number start ordered, the others at random.

        planes: of one long chain, gets its spins at the end of the block; it begins as chain 0.
        """
        task, width = self.task, row_width_of(self.task.num_points) if self._tallied else ROW_WIDTH
        shape = len(numbers) * len(task.p), task.block_size
        rows = np.empty((*shape, width), np.int64)
        factors = np.zeros((shape[0], MOST_AXES))
        spins = np.empty((*shape, SPIN_ROW_WIDTH), np.int64)
        items = [(0 if task.chains else number, p) for number in numbers for p in task.p]
        with self.device.driven():
            chains = self.chains
            for first in range(0, len(items), chains.capacity):
                part = items[first : first + chains.capacity]
                own = slice(first, first + len(part))
                keys = [task.chain(number, p) for number, p in part]
                random = [number % 2 == 1 for number, _ in part]
                chains.begin(GENERATORS[task.rng], keys, random)
                if self._end is None:
                    for step in self._steps(task.burn_in, len(part), stopped):
                        chains.skip(step)
                else:
                    chains.resume(self._end.planes[own], self._end.sweeps)
                done = 0
                for found in self._sweeps(task.block_size, len(part), stopped, factors[own]):
                    at = slice(done, done + found[0].shape[1])
                    rows[own, at], spins[own, at] = found
                    done = at.stop
                if planes is not None:
                    planes.append(chains.planes_of())

        def of_blocks(found: np.ndarray) -> np.ndarray:
            parts = found.reshape(len(numbers), len(task.p), task.block_size, -1)
            return np.moveaxis(parts, 1, 2)

        beside = {}
        if "correlation" in task.measure:
            beside["structure_factor"] = factors.reshape(len(numbers), len(task.p), MOST_AXES)
        measured = of_blocks(rows), of_blocks(spins)
        return blocks_of_chains(numbers, *measured, self._observables, task.measure, beside)

    def _steps(
        self,
        sweeps: int,
        chains: int,
        stopped: Callable[[], bool] | None,
        *,
        one_by_one: bool = False,
    ) -> Iterator[int]:
        """Cut sweeps of so many chains into pieces between which sampling can be stopped."""
        sites = _SITES_PER_LAUNCH if self.device.is_shared else _SITES_PER_CALL
        step = 1 if one_by_one else max(sites // (self.task.num_points * chains), 1)
        for first in range(0, sweeps, step):
            if stopped is not None and stopped():
                raise Stopped
            yield min(step, sweeps - first)

    def _sweeps(
        self,
        sweeps: int,
        chains: int,
        stopped: Callable[[], bool] | None,
        factors: np.ndarray,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Do so many sweeps that are measured, and those between; yield pieces of what is measured.

        factors: get the structure factors of every configuration added, if they are asked for: one
        sweep at a time, with the spins brought to the host.
        """
        task = self.task
        is_counted = "correlation" in task.measure
        periodic = [kind == "periodic" for kind in task.boundary]
        for step in self._steps(sweeps, chains, stopped, one_by_one=is_counted or task.every > 1):
            if is_counted:
                planes = self.chains.planes_of()
                factors += structure_factors(planes, task.draw.states, task.shape, periodic)
            yield self.chains.advance(step)
            if task.every > 1:
                self.chains.skip(task.every - 1)

    def _parts(
        self, samples: np.ndarray, stopped: Callable[[], bool] | None
    ) -> Iterator[np.ndarray]:
        """Cut samples into the pieces between which sampling can be stopped."""
        step, grid_size = len(samples), len(self.task.p)
        if not self.device.is_shared:
            step = max(_SITES_PER_CALL // (self.task.num_points * max(grid_size, 1)), 1)
        for first in range(0, len(samples), step):
            if stopped is not None and stopped():
                raise Stopped
            yield samples[first : first + step]
