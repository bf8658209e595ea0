"""The GPU's fast path: tiles, and one labeling for all that happens between two values of p.

The bonds that open in between become events between nodes (:mod:`percolab.coupled.events_cuda`):
joined step by step they give the rows of a grid of p, and by bisection the spanning thresholds.
"""

from __future__ import annotations

from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np

from percolab.bonds.words import TOP
from percolab.coupled.brackets_cuda import spanning_ends_kernel
from percolab.coupled.events_cuda import (
    cross_events_kernel,
    join_events_kernel,
    order_events_kernel,
    wind_events_kernel,
)
from percolab.coupled.tiled_thresholds import BracketSearch
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import THREADS
from percolab.labelers.tiled.batch import MAX_ROOM, TiledBatch
from percolab.labelers.tiled.one_tile import TILE_NODES
from percolab.labelers.tiled.tallies import copy_tally_kernel
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.rows_cuda import PARTIALS, finish_rows_kernel

cuda = load_cuda()

# Late bonds that a tile may have on average; a wider window of p is cut into several.
_LATE = TILE_NODES // 32


def _event_room(late: int, burst: int) -> int:
    """Return the room for a tile's events, ``late`` on average and up to ``burst`` at a time.

    That is eight standard deviations of a Poisson number of bursts.
    """
    return late + 8 * isqrt(late * burst) + 16 * burst


class TiledCuda(TiledBatch):
    """A batch of samples measured or labeled tile by tile, at one p, on a grid, or up to T."""

    _search: BracketSearch | None = None

    def _grid_rows(
        self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray
    ) -> np.ndarray:
        """Return the rows (n, m, row_width) of a batch at every threshold of an ascending grid."""
        if self.falls_back:
            return super()._grid_rows(generator, seed, samples, grid)
        parts, begin = [], 0
        while begin < grid.size:
            end = self._end_of_part(grid, begin)
            parts.append(self._part_rows(generator, seed, samples, grid[begin:end]))
            begin = end
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _part_rows(
        self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray
    ) -> np.ndarray:
        """Return the rows at a part of a grid, from one labeling unless too much opens in it."""
        if grid.size > 1:
            rows = self._late_rows(generator, seed, samples, grid)
            if rows is not None:
                return rows
        rows = np.empty((len(samples), grid.size, self.row_width), np.int64)
        for step, threshold in enumerate(grid):
            self.open_bonds(generator, seed, samples, np.full(len(samples), threshold))
            rows[:, step] = self.measure_items(len(samples))
        return rows

    def _late_bonds(self, low: int, high: int) -> int:
        """Return the bonds of a tile that open on average between two thresholds."""
        opening = self.model.open_share(int(high) / TOP) - self.model.open_share(int(low) / TOP)
        return int(self._tile_bonds * opening)

    @property
    def _burst(self) -> int:
        """How many bonds may open at once: those of a site, or one."""
        return 2 * self.topology.num_classes if self.model.site_varies else 1

    @cached_property
    def _most_late(self) -> int:
        """The most late bonds a tile may have on average; 0 if there is room for none."""
        late = _LATE
        while late and not self._has_room(late):
            late //= 2
        return late

    def _end_of_part(self, grid: np.ndarray, begin: int) -> int:
        """Return where the part of a grid ends that one labeling can serve."""
        end, most = begin + 1, self._most_late
        while end < grid.size and self._late_bonds(grid[begin], grid[end]) <= most:
            end += 1
        return end

    def _late_rows(
        self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray
    ) -> np.ndarray | None:
        """Return the rows (samples, grid, row_width) from one labeling at the lowest threshold.

        None if a tile had more late bonds than there is room for, which is rare.
        """
        items, steps = len(samples), len(grid)
        late = self._late_bonds(grid[0], grid[-1])
        if not self._has_room(late):
            return None
        self._make_late_room(late, steps)
        ends = (np.full(items, limit, np.uint64) for limit in (grid[0], grid[-1]))
        keys = self._join_late(generator, seed, samples, *ends, wind=True)
        blocks, tiles = self._tiles_of(items)
        order_events_kernel[blocks, THREADS](
            generator,
            self.sites,
            np.uint64(seed),
            keys,
            cuda.to_device(grid),
            np.int32(self._tiling.num_tiles),
            tiles,
            self._late(wanted=True),
        )
        self._flag_ends(items)
        for step in range(steps):
            if step:
                self._join_events(items, step)
            self._gather(items)
            self._sum_nodes(items)
            self._tally_step(items, step, steps)
            finish_rows_kernel[items, PARTIALS](
                self._partials,
                self._spanning,
                self._grid_rows_found,
                np.int64(step),
                np.int64(steps),
            )
        rows = self._grid_rows_found[: steps * items * ROW_WIDTH].copy_to_host()
        if self._overflow.copy_to_host()[0]:
            return None
        return self._with_tallies(rows.reshape(items, steps, ROW_WIDTH), self._grid_tallies)

    def _tally_step(self, items: int, step: int, steps: int) -> None:
        """Tally the clusters of all items at one step of a grid, if tallies are kept."""
        width = self._tally_width
        if width:
            copy_tally_kernel[self.grid(int(width), items), THREADS](
                self._tallies, width, self._grid_tallies, np.int64(step), np.int64(steps)
            )
            self._tally_nodes(items, self._grid_tallies, step, steps)

    def _join_events(self, items: int, step: int) -> None:
        """Join the nodes of all events of a step, and note what wraps."""
        (blocks, tiles), events = self._tiles_of(items), self._late(wanted=True)
        if not self.topology.seam_codes.size:
            join_events_kernel[blocks, THREADS](self._nodes[0], np.uint32(step), tiles, events)
            return
        wind_events_kernel[blocks, THREADS](
            self._node_forest,
            np.uint32(step),
            np.int32(self._tiling.num_tiles),
            tiles,
            events,
            self._wrapping,
        )

    def _has_room(self, late: int) -> bool:
        """Return whether so many late bonds a tile fit beside its nodes, and have 32-bit names."""
        room = self._tiling.room + 2 * _event_room(late, self._burst)
        return room <= MAX_ROOM and self.topology.exists.size <= 2**27

    def _make_late_room(self, late: int, steps: int) -> None:
        events = _event_room(late, self._burst)
        self._make_room(self._tiling.room + 2 * events, events, steps)

    def _join_late(
        self,
        generator: int,
        seed: int,
        samples: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        *,
        wind: bool = False,
    ) -> Any:
        """Join samples at ``low``, with the late bonds up to ``high`` as events; return the keys.

        samples, low, high: uint64, equally long.  wind: note what wraps.

        Afterwards ``_overflow`` tells whether a tile had more late bonds than there is room for.
        """
        items, keys = len(samples), cuda.to_device(samples)
        self._overflow.copy_to_device(np.zeros(1, np.uint32))
        self.open_bonds(generator, seed, keys, low)
        self._open_words(generator, seed, keys, high, self._late_words)
        self._join_tiles(items, late=True, wind=wind)
        if self._listed[2]:
            cross_events_kernel[self._blocks_of_listed(items)](
                self.labels,
                self._counts[2],
                self.opened,
                self._counts[1],
                np.uint32(self._room),
                self._crossing,
                self._listed,
                self._late(wanted=True),
            )
        return keys

    @property
    def widest_window(self) -> int:
        """The widest window in which there is room for the late bonds of a tile."""
        if self.falls_back or not self._has_room(0):
            return TOP
        steepest = self._tile_bonds * self.model.steepest_share
        return min(TOP, int(max(self._most_late, 1) * TOP / steepest))

    def scan_windows(
        self, generator: int, seed: int, samples: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:
        """Return T of samples in a window each, with every sample labeled once."""
        if self.falls_back or not self._has_room(0):
            return super().scan_windows(generator, seed, samples, low, high)
        if self._search is None:
            self._search = BracketSearch(self.capacity, self.topology.open_axes)
        widest = int(np.argmax(high - low))
        late = self._late_bonds(low[widest], high[widest])
        self._make_late_room(late, 0)
        batches = []
        for first in range(0, len(samples), self.capacity):
            batch = slice(first, first + self.capacity)
            part, *window = (np.ascontiguousarray(x[batch]) for x in (samples, low, high))
            keys = self._join_late(generator, seed, part, *window)
            self._flag_ends(len(part))
            self._flag_spanning(len(part))
            parents, _, ends, _ = self._nodes
            events, tiles = self._late(wanted=True), self._tiling.num_tiles
            self._search.contract(parents, events, tiles, generator, self.sites, seed, keys)
            nodes = self._interior, np.uint32(self._room)
            found = self._search.search(
                ends, events, tiles, nodes, self._spanning, window, late * tiles
            )
            if self._overflow.copy_to_host()[0]:
                found = super().scan_windows(generator, seed, part, *window)
            batches.append(found)
        return np.concatenate(batches)

    def _flag_spanning(self, items: int) -> None:
        """Note along which axes items span, once the roots have their end flags."""
        sites, _ = self._end_flags
        if sites.size:
            spanning_ends_kernel[self.grid(sites.size, items, THREADS), THREADS](
                self.labels, self._counts[2], self._nodes[0], self._nodes[2], sites, self._spanning
            )
