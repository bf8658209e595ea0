"""Sweeps of many chains in the memory of a CUDA device.

A sweep launches about ten kernels, and neither allocates nor waits: only the number of the sweep
changes, and this is on the device.  So the sweep is captured once as a graph and launched many
times, and the host waits only to fetch rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import CudaBatch
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import Launches, zero_kernel
from percolab.kernels.memory import Memory
from percolab.labelers.forest import Reading
from percolab.labelers.tiled.labeler import Tiled
from percolab.labelers.tiled.one_tile import TILE_WORDS
from percolab.lattices.extent import Extent
from percolab.lattices.topology import count_words
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.spins import SPIN_ROW_WIDTH
from percolab.spins import kernels_cuda as kernels
from percolab.spins.tiles_cuda import mark_tiles_kernel, paint_tiles_kernel, repaint_tiles_kernel
from percolab.spins.update import UpdateRule, count_planes
from percolab.spins.words import Chain

#: Rows that are stored on the device until the host fetches them; with tallies, tally entries.
_KEPT_ROWS, _KEPT_TALLIES = 2**18, 2**25
#: Sweeps of one captured graph, if at least this number is requested.
_SWEEPS_PER_CALL = 8


class Kept:
    """Results of many sweeps on the device, and the host memory that they are copied to."""

    def __init__(self, rows: int, width: int, kind: type) -> None:
        self._width = width
        self.on_device = cuda.device_array((rows, width), kind)
        self._flat = self.on_device.reshape(rows * width)
        self._pinned = cuda.pinned_array(rows * width, kind)

    def download(self, launches: Launches, entries: int, slots: int) -> NDArray[Any]:
        """Start the copy; return its target, (entries, slots, width), valid until next sweeps."""
        size = entries * slots * self._width
        launches.download(self._flat[:size], self._pinned[:size])
        return np.asarray(self._pinned[:size].reshape(entries, slots, self._width))

    def fetch(self, launches: Launches, entries: int, slots: int) -> NDArray[Any]:
        """Copy, wait, and return the results, (entries, slots, width), valid until next sweeps."""
        there = self.download(launches, entries, slots)
        launches.wait()
        return there


class CudaChains:
    """Up to ``capacity`` chains (:class:`percolab.spins.chains.Chains`).

    sweep: number of sweeps since the start.
    """

    def __init__(self, labeler: Any, rule: UpdateRule) -> None:
        self.labeler, self.rule = labeler, rule
        self.batch: CudaBatch = labeler.batch
        top, self.capacity = self.batch.topology, self.batch.capacity
        self._launches = self.batch.launches
        self._planes = int(rule.planes)
        self._num_words = top.num_words
        self.planes = cuda.device_array(self.capacity * self._planes * top.num_words, np.uint32)
        counts = np.zeros((self.capacity, kernels.COUNTS + int(rule.states)), np.uint64)
        self._counts = cuda.to_device(counts)
        self._clock = cuda.device_array(self.capacity, np.uint64)
        self._begin = cuda.device_array(1, np.uint64)
        self._chains = Chain(*(cuda.device_array(self.capacity, np.uint64) for _ in Chain._fields))
        words = self.capacity * top.num_words if rule.seeds else 1
        self._marks = cuda.to_device(np.zeros(words, np.uint32))
        #: Number of sweeps of all chains whose results fit until they are fetched.
        self.slots = 1
        self._make_kept()
        self._entries, self.sweep, self._generator = 0, 0, 0
        self._thresholds = np.zeros(0, np.uint64)

    def _make_kept(self) -> None:
        """Allocate memory for the results of sweeps."""
        width = int(self.labeler.read.tally_width)
        self._room = max(_KEPT_TALLIES // width if width else _KEPT_ROWS, self.capacity)
        wide = (self._room, width) if width else (1, 1)
        self._kept = Kept(self._room, ROW_WIDTH, np.int64)
        self._kept_numbers = Kept(self._room, SPIN_ROW_WIDTH - ROW_WIDTH, np.int64)
        self._kept_tallies = Kept(wide[0], wide[1], np.uint64)

    @staticmethod
    def memory(extent: Extent, states: int, entries: int = 1) -> Memory:
        """Return the memory in addition to that of batch and labeler, without stored tallies."""
        words = count_words(extent.num_points)
        of_entry = 4 * (count_planes(states) + 1) * words + 8 * (kernels.COUNTS + states + 5)
        kept = 8 * SPIN_ROW_WIDTH * max(_KEPT_ROWS, entries)
        return Memory(host=2 * kept, device=entries * of_entry + kept)

    def begin(self, generator: int, chains: list[Chain], random: list[bool]) -> None:
        self._launches.wait()
        self._entries, self.sweep, self._generator = len(chains), 0, generator
        self.slots = self._room // len(chains)
        for device, values in zip(self._chains, zip(*chains, strict=True), strict=True):
            device[: len(chains)].copy_to_device(np.array(values, np.uint64))
        self._thresholds = np.array([chain.threshold for chain in chains], np.uint64)
        self._clock.copy_to_device(np.zeros(self.capacity, np.uint64))
        self._begin.copy_to_device(np.zeros(1, np.uint64))
        self._counts.copy_to_device(np.zeros(self._counts.shape, np.uint64))
        starts = cuda.to_device(np.array(random, np.uint32))
        sites = self.batch.existing_sites
        begun = self._generator, self._chains, self.rule, self._planes, starts, sites, self.planes
        self._launches.one(kernels.begin_kernel, self._num_words, len(chains), *begun)
        self._launches.wait()

    def resume(self, planes: NDArray[np.uint32], sweep: int) -> None:
        self._launches.wait()
        self.planes[: planes.size].copy_to_device(np.ascontiguousarray(planes).ravel())
        self._clock.copy_to_device(np.full(self.capacity, sweep, np.uint64))
        self.sweep = sweep

    def copy_planes(self) -> NDArray[np.uint32]:
        self._launches.wait()
        size = self._entries * self._planes * self._num_words
        planes = np.asarray(self.planes[:size].copy_to_host())
        return planes.reshape(self._entries, self._planes, self._num_words)

    def advance(self, sweeps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = np.empty((self._entries, sweeps, self.labeler.row_width), np.int64)
        numbers = np.zeros((self._entries, sweeps, SPIN_ROW_WIDTH), np.int64)
        for first in range(0, sweeps, self.slots):
            count = min(self.slots, sweeps - first)
            self._sweep(count)
            own, kept = slice(first, first + count), (self._launches, self._entries, self.slots)
            rows[:, own, :ROW_WIDTH] = self._kept.fetch(*kept)[:, :count]
            numbers[:, own, ROW_WIDTH:] = self._kept_numbers.fetch(*kept)[:, :count]
            if rows.shape[2] > ROW_WIDTH:
                tallies = self._kept_tallies.fetch(*kept)[:, :count]
                rows[:, own, ROW_WIDTH:] = tallies.view(np.int64)
        return rows, numbers

    def skip(self, sweeps: int) -> None:
        self._sweep(sweeps)

    def _sweep(self, count: int) -> None:
        """Do ``count`` sweeps, and store their results from the first slot on."""
        self._launches.wait()
        self._begin.copy_to_device(np.array([self.sweep], np.uint64))
        left, kind = count, (self._generator, self._entries)
        while left:
            step = _SWEEPS_PER_CALL if left >= _SWEEPS_PER_CALL else 1

            def work(step: int = step) -> None:
                for _ in range(step):
                    self._enqueue()

            if self.labeler.is_capturable:
                self._launches.call(("sweeps", step, *kind), work)
            else:
                work()
            left -= step
        self.sweep += count

    def rows_at(self, thresholds: NDArray[np.uint64]) -> NDArray[np.int64]:
        self._set_thresholds(thresholds)
        self._open()
        rows = np.asarray(self.labeler.join(self._entries, Reading.ROWS).rows())
        self._counts.copy_to_device(np.zeros(self._counts.shape, np.uint64))
        self._set_thresholds(self._thresholds)
        return rows

    def advance_at(self, thresholds: NDArray[np.uint64]) -> None:
        self._set_thresholds(thresholds)
        self.advance(1)
        self._set_thresholds(self._thresholds)

    def _set_thresholds(self, thresholds: NDArray[np.uint64]) -> None:
        self._launches.wait()
        self._chains.threshold[: self._entries].copy_to_device(np.asarray(thresholds, np.uint64))

    def _open(self) -> None:
        batch, launch, entries, planes = self.batch, self._launches, self._entries, self._planes
        key = self._generator, self._chains, self._clock, self.rule, planes, self.planes
        bonds = batch.exists, batch.existing_sites, batch.adjacency, batch.opened, self._counts
        launch.one(kernels.open_satisfied_kernel, self._num_words, entries, *key, *bonds)
        ends = planes, self.planes, batch.adjacency, np.uint32(batch.exists.size)
        periodic = *ends, batch.opened, self._counts
        count = batch.topology.num_periodic_bonds
        launch.one(kernels.close_periodic_kernel, count, entries, *periodic)

    def _enqueue(self) -> None:
        self._open()
        if isinstance(self.labeler, Tiled):
            self._join_tiles()
        else:
            self._join_labels()
        self.keep()

    def keep(self) -> None:
        """Launch the kernels that store the rows and numbers of a sweep, and count the sweep."""
        launch, entries, read = self._launches, self._entries, self.labeler.read
        width, slots = int(read.tally_width), np.int64(self.slots)
        when = self._clock, self._begin
        if width:
            tallies = read.tallies, np.int64(width), *when, slots, self._kept_tallies.on_device
            launch.one(kernels.keep_tallies_kernel, width, entries, *tallies)
        counted = read.rows_on_device, self._counts, *when, np.int64(entries), slots
        kept = self._kept.on_device, self._kept_numbers.on_device
        launch.one(kernels.keep_kernel, entries, 1, *counted, *kept)

    def _join_tiles(self) -> None:
        """Launch the labeler's tiles, the rows, and the painting of runs."""
        labeler, launch, entries = self.labeler, self._launches, self._entries
        labeler.join_tiles(entries, labeler.kept)
        labeler.join_rows(entries, with_origins=True)
        key = self._generator, self._chains, self._clock, self.rule
        forest = labeler.nodes, labeler.kept
        if self.rule.seeds:
            points = np.uint32(self.batch.topology.num_points)
            tiles = labeler.tiling.tiles[0], labeler.tiling.num_tiles
            counted = np.uint32(tiles[0]), np.uint32(tiles[1])
            sites = self.batch.existing_sites, points, labeler.tiles, counted, self.batch.opened
            grid = int(self.rule.seeds), entries
            launch.blocks(mark_tiles_kernel, grid, TILE_WORDS, *key, *sites, *forest, self._marks)
        words = labeler.tiles, self.batch.opened, labeler.nodes, labeler.interior, labeler.kept
        has_planes = bool(self.rule.seeds or self.rule.by_word)
        shared = 4 * (int(labeler.nodes.room) + has_planes * self._planes * TILE_WORDS)
        kernel = repaint_tiles_kernel if self.rule.seeds else paint_tiles_kernel
        size = labeler.tile_launch_grid(entries), TILE_WORDS
        painted = *key, self._planes, *words, self._marks, self.planes
        launch.blocks(kernel, *size, *painted, shared=shared)
        self._clear_marks()

    def _join_labels(self) -> None:
        """Launch any labeler, the rows, and the painting of sites by their labels."""
        labeler, launch, entries = self.labeler, self._launches, self._entries
        labeler.join(entries, Reading.LABELS).enqueue_rows()
        key = self._generator, self._chains, self._clock, self.rule
        sites, points = self.batch.existing_sites, np.uint32(self.batch.topology.num_points)
        if self.rule.seeds:
            chosen = sites, points, labeler.labels, self._marks
            launch.one(kernels.mark_labels_kernel, int(self.rule.seeds), entries, *key, *chosen)
        words = self._planes, sites, points, labeler.labels, self._marks, self.planes
        launch.one(kernels.paint_labels_kernel, self._num_words, entries, *key, *words)
        self._clear_marks()

    def _clear_marks(self) -> None:
        if self.rule.seeds:
            size = self._marks.size
            self._launches.each(zero_kernel, size, 1, self._marks, np.uint32(size))
