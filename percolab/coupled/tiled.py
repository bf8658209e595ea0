"""The GPU's fast path: tiles, and one labeling for everything between two values of p.

The bonds that open in between become openings between nodes
(:mod:`percolab.coupled.openings_cuda`).  Joined step by step, they give the rows of a grid of p;
bisection over them gives the spanning thresholds.
"""

from collections.abc import Iterator
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import ClosedCounts, KeysOfBatch
from percolab.bonds.model import Model
from percolab.bonds.words import TOP
from percolab.coupled import Rows, SampleBlocks, Samples
from percolab.coupled import openings_cuda as kernels
from percolab.coupled.block_sums import BlockSums, Measure
from percolab.coupled.points import CoupledBatches, measure_by_batches
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import Reading
from percolab.labelers.tiled.labeler import Tiled
from percolab.labelers.tiled.one_tile import LANES, TILE_NODES, TILE_WORDS
from percolab.labelers.tiled.records import Openings
from percolab.labelers.tiled.tallies import copy_tally_kernel
from percolab.labelers.tiled.tiling import tiling_bounds
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.measure.radii import PER_BIN, radii_row_width

# Openings that a tile may have on average; a window of p with more is divided.
_MOST_OPENINGS = TILE_NODES // 32
#: The most grid points of samples whose rows are summed on the device; larger samples are few.
_MOST_SUMMED = 2**18
#: The most steps of a grid whose thresholds are kept on the device.
_MOST_STEPS = 4096


def _room_for(openings: int, burst: int) -> int:
    """Return the room for a tile's openings, given their mean and up to ``burst`` at a time.

    The room exceeds the mean by eight standard deviations of a Poisson number of bursts.
    """
    return openings + 8 * isqrt(openings * burst) + 16 * burst


def _max_simultaneous_openings(num_classes: int, model: Model) -> int:
    """Return how many bonds may open together: all bonds of a site, or one."""
    return 2 * num_classes if model.site_varies else 1


def _count_nodes(border: int, room: int) -> int:
    """Return the most nodes of a tile with ``border`` sites at its border and ``room`` openings."""
    return min(border + 2 * room, TILE_NODES)


class TiledCoupling(BlockSums, CoupledBatches):
    """The coupling of a tiled batch (:class:`percolab.coupled.Coupling`)."""

    labeler: Tiled

    def __init__(self, labeler: Tiled, *, openings: bool = False) -> None:
        super().__init__(labeler, openings=openings)
        top, batch = labeler.batch.topology, labeler.batch
        self._tile_bonds = TILE_NODES * top.num_bonds / top.num_points
        self._openings: Openings | None = None
        self._search: kernels.BracketSearch | None = None
        self._upper_keys = KeysOfBatch(batch.model, batch.capacity, batch.launches)
        self._grid = cuda.device_array(_MOST_STEPS, np.uint64)
        self._pinned_grid = cuda.pinned_array(_MOST_STEPS, np.uint64)
        self._overflow = cuda.device_array(1, np.uint32)
        self._pinned_zero = cuda.pinned_array(1, np.uint32)
        self._pinned_zero[0] = 0
        self._pinned_overflow = cuda.pinned_array(1, np.uint32)

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, entries: int) -> Memory:
        """Return the largest memory of openings, and that of the search for thresholds."""
        keys = Memory(host=24 * entries, device=24 * entries)
        if needs.steps == 1 and not needs.thresholds:
            return keys
        bounds = tiling_bounds(extent, TILE_WORDS, LANES)
        burst = _max_simultaneous_openings(extent.num_classes, model)
        room = _room_for(_MOST_OPENINGS, burst)
        nodes = _count_nodes(bounds.room, room)
        if model.draws_sites or needs.openings:
            keys = keys.plus(ClosedCounts.memory(entries, needs.steps))
        forest = 24 if extent.periodic_bonds else 16
        tile = 4 + 16 * room + forest * (nodes - bounds.room)
        if needs.thresholds:
            axes = max(extent.num_axes, 1)
            tile += 8 * room + 8 * axes * nodes
            keys = keys.plus(Memory(device=entries * axes * (32 + 8 * kernels.LISTED)))
        return keys.plus(Memory(device=entries * (4 * extent.num_words + bounds.tiles * tile)))

    @staticmethod
    def sums_blocks(extent: Extent, model: Model, *, openings: bool) -> bool:
        """Return whether the device computes complete rows of samples."""
        return extent.num_points <= _MOST_SUMMED and not (model.draws_sites or openings)

    def most_samples(self, steps: int) -> int:
        return int(self.labeler.batch.capacity)

    def measure_blocks(
        self, generator: int, seed: int, blocks: SampleBlocks, grid: Samples
    ) -> Measure:
        def measure(part: slice, first: int, samples: int) -> Iterator[tuple[slice, Any]]:
            own = np.arange(first, first + samples, dtype=np.uint64)
            numbers = np.add.outer(blocks.starts[part], own).ravel()
            batch = self.labeler.batch
            if batch.closed or len(numbers) > batch.capacity:
                # The host completes the rows, or they belong to a large block.
                rows = self.grid_rows(generator, seed, numbers, grid)
                yield slice(grid.size), cuda.to_device(rows.ravel())
                return
            for steps in self._enqueue_parts(generator, seed, numbers, grid):
                yield steps, self.labeler.read.rows_on_device

        return measure

    def coupled(self, generator: int, seed: int, samples: Samples, grid: Samples) -> Rows:
        parts, entries = [], len(samples)
        for part in self._enqueue_parts(generator, seed, samples, grid):
            steps = part.stop - part.start
            rows = self.labeler.read.fetch(entries, steps)
            if steps == 1:
                parts.append(self.with_counts(rows, entries)[:, None])
            else:
                by_step = rows.reshape(entries, steps, self.labeler.row_width)
                parts.append(self.with_counts(by_step, entries, steps))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _enqueue_parts(
        self, generator: int, seed: int, samples: Samples, grid: Samples
    ) -> Iterator[slice]:
        """Measure samples at a grid, part by part; yield the slice of p that each part covers.

        When a part is yielded, the device is writing its rows.
        """
        begin = 0
        while begin < grid.size:
            end = self._find_part_end(grid, begin)
            if end - begin > 1 and self.enqueue_grid(generator, seed, samples, grid[begin:end]):
                yield slice(begin, end)
            else:
                # There is one threshold, or too many bonds open for one labeling.
                for step in range(begin, end):
                    limits = np.full(len(samples), grid[step], np.uint64)
                    self.enqueue_rows(generator, seed, samples, limits)
                    yield slice(step, step + 1)
            begin = end

    def _expected(self, low: int, high: int) -> int:
        """Return the bonds of a tile that open on average between two thresholds."""
        share = self.labeler.batch.model.open_share
        return int(self._tile_bonds * (share(int(high) / TOP) - share(int(low) / TOP)))

    @property
    def _burst(self) -> int:
        batch = self.labeler.batch
        return _max_simultaneous_openings(batch.topology.num_classes, batch.model)

    @property
    def _most_openings(self) -> int:
        """The most openings a tile may have on average; 0 if their bonds have no 32-bit names."""
        has_names = self.labeler.batch.topology.num_bond_words <= 2**27
        return _MOST_OPENINGS if has_names else 0

    def _find_part_end(self, grid: Samples, begin: int) -> int:
        """Return the end of the part of a grid that can be measured by one labeling."""
        end, most = begin + 1, self._most_openings
        last = min(grid.size, begin + _MOST_STEPS)
        while end < last and self._expected(grid[begin], grid[end]) <= most:
            end += 1
        return end

    def _make_room(self, expected: int, steps: int) -> Openings:
        """Return memory for the openings of tiles, and make room for nodes and rows."""
        labeler, room = self.labeler, _room_for(expected, self._burst)
        is_new = labeler.make_room(_count_nodes(labeler.tiling.room, room))
        is_new = labeler.read.make_room(steps) or is_new
        closed = labeler.batch.closed
        if closed:
            is_new = closed.make_room(labeler.batch.capacity, steps) or is_new
        if self._openings is None or self._openings.room < room:
            is_new = True
            upper = None if self._openings is None else self._openings.upper
            if upper is None:
                upper = cuda.device_array(labeler.batch.opened.size, np.uint32)
            # Free the old memory first, so that old and new need not fit together.
            self._openings = None
            lists = cuda.device_array((labeler.num_blocks, room, 4), np.uint32)
            counts = cuda.device_array(labeler.num_blocks, np.uint32)
            self._openings = Openings(upper, lists, counts, np.uint32(room), self._overflow)
        if is_new:
            labeler.batch.launches.forget()
        return self._openings

    def radii_sums(
        self, generator: int, seed: int, blocks: SampleBlocks, grid: Samples, geometry: Geometry
    ) -> NDArray[np.float64]:
        """Return the sums of radii of blocks at all p of a grid, (blocks, m, 2 * bins).

        They are those of :func:`percolab.measure.radii.sum_gyration`, summed on the device.
        """
        labeler, radii = self.labeler, self.labeler.radii_batch(geometry)
        width = 2 * radii_row_width(labeler.batch.topology.num_points) // PER_BIN
        # The blocks of each step are adjacent.
        sums = cuda.to_device(np.zeros((grid.size, len(blocks.starts), width)))
        own = np.arange(blocks.size, dtype=np.uint64)
        samples: Samples = np.add.outer(blocks.starts, own).ravel()
        for first in range(0, len(samples), radii.entries):
            part = samples[first : first + radii.entries]
            for step, threshold in enumerate(grid):
                limits = np.full(len(part), threshold, np.uint64)
                entries = labeler.batch.fill(generator, seed, part, limits)
                places = first, blocks.size, geometry.unit, sums[step]
                radii.add_to_blocks(labeler, entries, *places)
        labeler.batch.launches.wait()
        return np.ascontiguousarray(sums.copy_to_host().swapaxes(0, 1))

    def enqueue_grid(self, generator: int, seed: int, samples: Samples, grid: Samples) -> bool:
        """Measure samples at all p of a grid by one labeling at the lowest p.

        Return whether there was room for the openings of every tile, which nearly always holds.
        """
        entries, steps = len(samples), len(grid)
        expected = self._expected(grid[0], grid[-1])
        if expected > self._most_openings:
            return False
        openings, labeler = self._make_room(expected, steps), self.labeler
        batch, launches = labeler.batch, labeler.batch.launches
        ends = (np.full(entries, limit, np.uint64) for limit in (grid[0], grid[-1]))
        self._write_keys(seed, samples, *ends)
        self._pinned_grid[:steps] = grid

        def work() -> None:
            launches.upload(self._grid[:steps], self._pinned_grid[:steps])
            with_sizes = self.reading is not Reading.WRAPPING
            self._join(generator, entries, openings, over_periods=True, with_sizes=with_sizes)
            self._rows_from_step_to_step(generator, entries, steps, openings)
            if batch.closed:
                keys = batch.keys.on_device.samples, entries, self._grid[:steps]
                batch.closed.count_along(generator, *keys)
            labeler.read.download(entries, steps)
            launches.download(self._overflow, self._pinned_overflow)

        launches.call(("grid", self.reading, generator, entries, steps), work)
        launches.wait()
        return not self._pinned_overflow[0]

    def _write_keys(self, seed: int, samples: Samples, low: Samples, high: Samples) -> None:
        self.labeler.batch.keys.write(seed, samples, low)
        self._upper_keys.write(seed, samples, high)

    def _join(self, generator: int, entries: int, openings: Openings, **joined: bool) -> None:
        """Join the drawn samples at their lower thresholds, and find the openings up to the upper.

        joined: as for :meth:`percolab.labelers.tiled.labeler.Tiled.join_tiles`.  Afterwards
        ``openings.overflow`` is set if a tile had more openings than there is room for.
        """
        labeler, batch = self.labeler, self.labeler.batch
        batch.launches.upload(self._overflow, self._pinned_zero)
        batch.draw(generator, self._upper_keys, entries, openings.upper)
        batch.draw(generator, batch.keys, entries, batch.opened)
        labeler.join_tiles(entries, openings=openings, **joined)
        if labeler.listed.room:
            tiles, nodes = labeler.tiles, labeler.nodes
            words = labeler.labels, tiles.points, batch.opened, tiles.words_per_entry
            bonds = nodes.room, labeler.crossing, labeler.listed, openings
            grid = labeler.listed_launch_grid(entries)
            batch.launches.blocks(kernels.cross_openings_kernel, grid, THREADS, *words, *bonds)

    def _rows_from_step_to_step(
        self, generator: int, entries: int, steps: int, openings: Openings
    ) -> None:
        """Measure the entries at every step of the grid on the device."""
        labeler, batch = self.labeler, self.labeler.batch
        blocks, tiles = labeler.count_blocks(entries)
        keys = generator, batch.sites, batch.keys.on_device, self._grid[:steps]
        sizes = np.int32(labeler.tiling.num_tiles), tiles
        batch.launches.blocks(
            kernels.order_openings_kernel, blocks, THREADS, *keys, *sizes, openings
        )
        labeler.flag_ends(entries)
        for step in range(steps):
            if step:
                self._join_openings(entries, step, openings)
            if self.reading is Reading.WRAPPING:
                labeler.read.finish_flags(entries, step, steps)
                continue
            labeler.gather(entries)
            labeler.sum_nodes(entries)
            read, width = labeler.read, labeler.read.tally_width
            tallies = read.tallies, width, read.tallies_of_steps, np.int64(step), np.int64(steps)
            batch.launches.each(copy_tally_kernel, int(width), entries, *tallies)
            labeler.tally_nodes(entries, read.tallies_of_steps, step, steps)
            labeler.read.finish(entries, step, steps)

    def _join_openings(self, entries: int, step: int, openings: Openings) -> None:
        labeler, launches = self.labeler, self.labeler.batch.launches
        blocks, tiles = labeler.count_blocks(entries)
        if not labeler.may_wrap:
            nodes = labeler.nodes.parents, np.uint32(step), tiles, openings
            launches.blocks(kernels.join_openings_kernel, blocks, THREADS, *nodes)
            return
        sizes = np.uint32(step), np.int32(labeler.tiling.num_tiles), tiles
        forest = labeler.forest, *sizes, openings, labeler.read.loops
        launches.blocks(kernels.join_openings_over_periods_kernel, blocks, THREADS, *forest)

    @property
    def widest_window(self) -> int:
        """The widest window in which there is room for the openings of a tile."""
        if not self._most_openings:
            return TOP
        steepest = self._tile_bonds * self.labeler.batch.model.steepest_share
        return min(TOP, int(self._most_openings * TOP / steepest))

    def scan_windows(
        self, generator: int, seed: int, samples: Samples, low: Samples, high: Samples
    ) -> Samples:
        if not self._most_openings:
            return super().scan_windows(generator, seed, samples, low, high)
        widest = int(np.argmax(high - low))
        expected = self._expected(low[widest], high[widest])
        openings, labeler = self._make_room(expected, 1), self.labeler
        search = self._search = self._search or kernels.BracketSearch(labeler)
        search.make_room(openings)

        def measure(samples: Samples, low: Samples, high: Samples) -> Samples:
            entries = len(samples)
            self._write_keys(seed, samples, low, high)
            self._join(generator, entries, openings, over_periods=False)
            labeler.flag_ends(entries)
            self._flag_spanning(entries)
            search.contract(entries, generator, openings)
            thresholds = search.search(openings, (low, high), expected * labeler.tiling.num_tiles)
            if self._overflow.copy_to_host()[0]:
                return super(TiledCoupling, self).scan_windows(generator, seed, samples, low, high)
            return thresholds

        thresholds: Samples = measure_by_batches(
            measure, labeler.batch.capacity, samples, low, high
        )
        return thresholds

    def _flag_spanning(self, entries: int) -> None:
        """Note the axes along which entries span; the roots must have their end flags."""
        labeler, (sites, _) = self.labeler, self.labeler.end_flags
        nodes: tuple[Any, ...] = labeler.labels, labeler.tiles.points, labeler.nodes
        spanning = labeler.read.spanning
        kernel = kernels.spanning_ends_kernel
        labeler.batch.launches.one(kernel, sites.size, entries, *nodes, sites, spanning)
