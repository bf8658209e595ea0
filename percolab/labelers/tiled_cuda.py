"""The GPU's fast path: union-find tile by tile in shared memory, then on what crosses the borders.

Bonds are packed words; a tile's clusters are found with runs of sites as nodes; those that touch no
border of the tile are finished there; the others are joined as nodes of a graph that is far
smaller than the lattice.  A row needs no labels; labels are written once, when they are final.

Tiles in shared memory: Fink and Weigel, Komura and Okabe; runs as nodes: Hoshen and Kopelman.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.device import load_cuda
from percolab.kernels.cuda_border import (
    TILES_PER_BLOCK,
    end_flags_kernel,
    gather_kernel,
    label_tile_kernel,
    label_vacant_kernel,
    merge_kernel,
    origin_kernel,
    partial_nodes_kernel,
    tile_kernel,
)
from percolab.kernels.cuda_sampling import PARTIALS, THREADS, finish_rows_kernel
from percolab.kernels.cuda_tile import LANES, QUEUE, TILE_THREADS, TILE_WORDS
from percolab.labelers.four_step_cuda import FourStepCuda
from percolab.labelers.tiling import can_tile, tiling_of
from percolab.topology import Topology, unpack_bits

cuda = load_cuda()


def _typed(kind: Any, *rows: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(map(kind, row)) for row in rows)


class TiledCuda(FourStepCuda):
    """A batch of samples measured, or labeled, tile by tile.

    ``falls_back`` says why a topology is labeled by the four steps instead; it is "" otherwise.
    """

    def __init__(self, topology: Topology, *, capacity: int) -> None:
        super().__init__(topology, capacity=capacity)
        self.falls_back = can_tile(topology)
        if not self.falls_back:
            self._tiling = tiling_of(topology, TILE_WORDS, LANES)
            if self._tiling.room > QUEUE:
                self.falls_back = "nearly every site is at the border of a tile"
        self.measure_needs_labels = bool(self.falls_back)
        if not self.falls_back:
            self._load_tiling()

    def _load_tiling(self) -> None:
        topology, tiling = self.topology, self._tiling
        blocks = self.capacity * tiling.num_tiles
        # Nodes are numbered with 32 bits.
        if blocks * tiling.room >= 2**32:
            self.capacity = (2**32 - 1) // (tiling.num_tiles * tiling.room)
            blocks = self.capacity * tiling.num_tiles
        self._nodes = tuple(cuda.device_array(blocks * tiling.room, np.uint32) for _ in range(4))
        self._interior = cuda.device_array((blocks, 5), np.uint32)
        crossing = np.ascontiguousarray(tiling.crossing.T.astype(np.uint32))
        self._crossing = tuple(cuda.to_device(column) for column in crossing)
        sites, flags = topology.end_flags()
        self._end_flags = cuda.to_device(sites.astype(np.uint32)), cuda.to_device(flags)
        logarithms = [extent.bit_length() - 1 for extent in tiling.tile]
        down = tiling.tiles[1] if tiling.tiles[2] > 1 else 0
        self._geometry = (*_typed(np.uint32, tiling.shape, logarithms), np.uint32(down))
        self._lattice = _typed(np.int32, tiling.classes, tiling.shifts, tiling.rows)
        vacant = np.flatnonzero(~unpack_bits(topology.occupied, topology.num_points))
        self._vacant = cuda.to_device(vacant.astype(np.uint32)) if vacant.size else None
        self._bonds = (
            self.opened,
            cuda.to_device(tiling.inner.ravel()),
            np.int32(topology.chain),
        )
        self._masks = self._occupied, cuda.to_device(tiling.border)
        self._counts = tuple(
            map(np.uint32, (topology.num_words, topology.exists.size, topology.num_points))
        )

    def _launch_tiles(self, items: int, kernel: Any, shared_words: int, *arguments: Any) -> None:
        tiling = self._tiling
        # The first and the extra bonds of every class; later four sums of every word.
        shared = 4 * (max(2 * len(tiling.classes), 4) * TILE_WORDS + shared_words)
        grid = (tiling.tiles[0], tiling.tiles[1] * tiling.tiles[2], items)
        kernel[grid, TILE_THREADS, 0, shared](
            self._bonds,
            self._counts,
            self._lattice,
            self._geometry,
            self._masks,
            np.uint32(tiling.room),
            self.labels,
            self._nodes,
            *arguments,
        )

    def _join_tiles(self, items: int) -> tuple[int, np.ndarray]:
        """Find the clusters of all tiles and join them; return blocks of nodes, and the nodes'."""
        tiling = self._tiling
        self._launch_tiles(items, tile_kernel, 0, self._interior, self._spanning)
        if tiling.crossing.size:
            merge_kernel[self.grid(len(tiling.crossing), items, THREADS), THREADS](
                self.labels,
                self._counts[2],
                self.opened,
                self._counts[1],
                self._nodes[0],
                *self._crossing,
            )
        blocks = items * tiling.num_tiles
        return -(-blocks // TILES_PER_BLOCK), self._interior[:blocks]

    def label_items(self, items: int) -> None:
        """Label the open bonds of the first ``items`` items of the batch."""
        if self.falls_back:
            super().label_items(items)
            return
        blocks, interior = self._join_tiles(items)
        room = np.uint32(self._tiling.room)
        origin_kernel[blocks, THREADS](self._nodes[0], self._nodes[3], interior, room)
        self._launch_tiles(items, label_tile_kernel, self._tiling.room)
        if self._vacant is not None:
            label_vacant_kernel[self.grid(self._vacant.size, items, THREADS), THREADS](
                self.labels, self._counts[2], self._vacant
            )

    def measure_items(self, items: int) -> np.ndarray:
        """Return the rows (items, ROW_WIDTH) int64 of the items' open bonds; labels are lost."""
        if self.falls_back:
            return super().measure_items(items)
        blocks, interior = self._join_tiles(items)
        tiling, room = self._tiling, np.uint32(self._tiling.room)
        parents, sizes, ends, _ = self._nodes
        if tiling.crossing.size:
            gather_kernel[blocks, THREADS](parents, sizes, interior, room)
        sites, flags = self._end_flags
        if sites.size:
            end_flags_kernel[self.grid(sites.size, items, THREADS), THREADS](
                self.labels, self._counts[2], parents, ends, sites, flags
            )
        partials = self._partials[:, : min(-(-tiling.num_tiles // TILES_PER_BLOCK), PARTIALS)]
        partial_nodes_kernel[(partials.shape[1], items), THREADS](
            self._nodes, interior, room, np.int32(tiling.num_tiles), partials, self._spanning
        )
        finish_rows_kernel[items, PARTIALS](partials, self._spanning, self._rows)
        return self._rows[:items].copy_to_host()

    def rows(
        self, generator: int, seed: int, samples: np.ndarray, thresholds: np.ndarray
    ) -> np.ndarray:
        """Return the rows (n, ROW_WIDTH) int64 of n items (sample, threshold), uint64 each."""
        if self.falls_back:
            return super().rows(generator, seed, samples, thresholds)
        batches = []
        for first in range(0, len(samples), self.capacity):
            batch = slice(first, first + self.capacity)
            items = self.open_bonds(generator, seed, samples[batch], thresholds[batch])
            batches.append(self.measure_items(items))
        return np.concatenate(batches)
