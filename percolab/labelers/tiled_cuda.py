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
from percolab.kernels.cuda_sampling import PARTIALS, THREADS
from percolab.kernels.cuda_tile import LANES, STRIPS, TILE_WORDS
from percolab.labelers.four_step_cuda import FourStepCuda
from percolab.labelers.tiling import can_tile, tiling_of
from percolab.topology import Topology, unpack_bits

cuda = load_cuda()

# Nodes of a tile for which there is room in shared memory.
_MAX_ROOM = 16 * TILE_WORDS
# Extra bonds that a strip lists for each class; about 70 and 125 are usual near p_c.
_LISTED = 4 * LANES


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
            if self._tiling.room > _MAX_ROOM:
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
        partials = min(-(-tiling.num_tiles // TILES_PER_BLOCK), PARTIALS)
        self._partials = cuda.device_array((self.capacity, partials, 4), np.int64)
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

    def _launch_tiles(self, items: int, kernel: Any, *arguments: Any) -> None:
        tiling, classes = self._tiling, len(self._tiling.classes)
        listed = _LISTED * classes
        # Two words for the bonds of every class; then the list, which later has the nodes.
        shared = 4 * (2 * classes * TILE_WORDS + max(STRIPS * listed, tiling.room))
        grid = (tiling.tiles[0], tiling.tiles[1] * tiling.tiles[2], items)
        kernel[grid, TILE_WORDS, 0, shared](
            self._bonds,
            self._counts,
            self._lattice,
            self._geometry,
            self._masks,
            (np.uint32(tiling.room), np.uint32(listed)),
            self.labels,
            self._nodes,
            *arguments,
        )

    def _join_tiles(self, items: int) -> tuple[int, np.int32]:
        """Find the clusters of all tiles and join them; return the grid for all tiles, and them."""
        tiling = self._tiling
        self._launch_tiles(items, tile_kernel, self._interior, self._spanning)
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
        return -(-blocks // TILES_PER_BLOCK), np.int32(blocks)

    def label_items(self, items: int) -> None:
        """Label the open bonds of the first ``items`` items of the batch."""
        if self.falls_back:
            super().label_items(items)
            return
        grid, blocks = self._join_tiles(items)
        room = np.uint32(self._tiling.room)
        parents, _, _, origins = self._nodes
        origin_kernel[grid, THREADS](parents, origins, self._interior, blocks, room)
        self._launch_tiles(items, label_tile_kernel)
        if self._vacant is not None:
            label_vacant_kernel[self.grid(self._vacant.size, items, THREADS), THREADS](
                self.labels, self._counts[2], self._vacant
            )

    def measure_items(self, items: int) -> np.ndarray:
        """Return the rows (items, ROW_WIDTH) int64 of the items' open bonds; labels are lost."""
        if self.falls_back:
            return super().measure_items(items)
        grid, blocks = self._join_tiles(items)
        tiling, room = self._tiling, np.uint32(self._tiling.room)
        parents, sizes, ends, _ = self._nodes
        if tiling.crossing.size:
            gather_kernel[grid, THREADS](parents, sizes, self._interior, blocks, room)
        sites, flags = self._end_flags
        if sites.size:
            end_flags_kernel[self.grid(sites.size, items, THREADS), THREADS](
                self.labels, self._counts[2], parents, ends, sites, flags
            )
        partial_nodes_kernel[(self._partials.shape[1], items), THREADS](
            self._nodes,
            self._interior,
            room,
            np.int32(tiling.num_tiles),
            self._partials,
            self._spanning,
        )
        return self._finish_rows(items)

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
