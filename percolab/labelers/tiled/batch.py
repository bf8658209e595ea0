"""Tiles of a batch: union-find tile by tile in shared memory, then on what crosses the borders.

Bonds are packed words; a tile's clusters are found with runs of sites as nodes; those that touch no
border of the tile are finished there; the others are joined as nodes of a graph that is far
smaller than the lattice.  A row needs no labels; labels are written once, when they are final.

Tiles in shared memory: Fink and Weigel, Komura and Okabe; runs as nodes: Hoshen and Kopelman.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.bonds.model import BOND, Model
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import THREADS
from percolab.labelers.four_step_cuda import FourStepCuda
from percolab.labelers.tiled.all_tiles import label_tile_kernel, label_vacant_kernel, tile_kernel
from percolab.labelers.tiled.borders import (
    TILES_PER_BLOCK,
    clear_border_kernel,
    end_flags_kernel,
    gather_kernel,
    list_crossing_kernel,
    merge_kernel,
    origin_kernel,
    partial_nodes_kernel,
    wind_crossing_kernel,
)
from percolab.labelers.tiled.one_tile import LANES, STRIPS, TILE_NODES, TILE_WORDS
from percolab.labelers.tiled.tallies import TILE_BINS, tally_nodes_kernel
from percolab.labelers.tiled.tiling import can_tile, tiling_of
from percolab.lattices.topology import MAX_POINTS, Topology, period_codes, periods_of, unpack_bits
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.rows_cuda import PARTIALS

cuda = load_cuda()

#: Nodes of a tile for which there is room in shared memory.
MAX_ROOM = 2048
#: Entries of bonds between tiles, of which 32 have each a 32-bit name.
MAX_ENTRIES = 2**27
# Extra bonds that a strip lists for each class; about 70 and 125 are usual near p_c.
_LISTED = 4 * LANES


def _typed(kind: Any, *rows: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(map(kind, row)) for row in rows)


class TiledBatch(FourStepCuda):
    """A batch of samples measured, or labeled, tile by tile.

    ``falls_back`` says why a topology is labeled by the four steps instead; it is "" otherwise.
    """

    def __init__(self, topology: Topology, model: Model = BOND, *, capacity: int) -> None:
        super().__init__(topology, model, capacity=capacity)
        self.falls_back = can_tile(topology)
        if self.falls_back and topology.num_points > super().most_points(topology.num_axes):
            raise ValueError(f"{self.falls_back}, and the four steps have no room for its sites")
        if not self.falls_back:
            self._tiling = tiling_of(topology, TILE_WORDS, LANES)
            if self._tiling.room > MAX_ROOM:
                self.falls_back = "nearly every site is at the border of a tile"
            if self._tiling.crossing.words.size > MAX_ENTRIES:
                self.falls_back = "its tiles share more bonds than have a 32-bit name"
        self.measure_needs_labels = bool(self.falls_back)
        if not self.falls_back:
            self._load_tiling()

    @staticmethod
    def most_points(axes: int) -> int:
        """Return the most grid points of an item: end layers are marked beside the sizes."""
        return MAX_POINTS

    @staticmethod
    def bytes_per_item(topology: Topology) -> int:
        """Return about the device memory an item takes: two sets of bonds, labels, nodes, lists.

        In three dimensions nodes take up to 8 bytes a site, in two a third of that; of all runs 4
        bytes a site are kept where labels are asked for, and events where a window of p is.
        """
        words = 8 * topology.exists.size + 4 * topology.num_words
        # Where an axis is periodic, the forest takes 8 bytes a node, and half of all sites may be.
        forest = 4 * topology.num_points if topology.seam_codes.size else 0
        listed = 0
        if not can_tile(topology):
            listed = 4 * tiling_of(topology, TILE_WORDS, LANES).crossing.num_bonds
        return words + 16 * topology.num_points + forest + listed + 16384

    def _load_tiling(self) -> None:
        topology, tiling = self.topology, self._tiling
        partials = min(-(-tiling.num_tiles // TILES_PER_BLOCK), PARTIALS)
        self._partials = cuda.device_array((self.capacity, partials, 4), np.int64)
        self._interior = cuda.device_array((self.capacity * tiling.num_tiles, 5), np.uint32)
        self._overflow = cuda.to_device(np.zeros(1, np.uint32))
        self._event_counts = cuda.device_array(self.capacity * tiling.num_tiles, np.uint32)
        self._tile_bonds = TILE_NODES * topology.num_bonds / topology.num_points
        self._room, self._event_room = 0, 0
        self._kept: Any = None
        self._nothing_kept = cuda.device_array(1, np.uint32)
        self._late_words, self._grid_rows_found = self.opened, self._rows
        self._grid_tallies = self._tallies
        self._make_room(tiling.room, 0, 0)
        self._load_crossing()
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
        self._ends = cuda.to_device(tiling.ends)
        self._masks = self._occupied, cuda.device_array(self.capacity * tiling.ends.size, np.uint32)
        self._counts = tuple(
            map(np.uint32, (topology.num_words, topology.exists.size, topology.num_points))
        )

    def _load_crossing(self) -> None:
        """Load the bonds between tiles, and make room for a list of those that are open."""
        crossing, axes = self._tiling.crossing, self.topology.num_axes
        codes = crossing.codes
        if self.topology.seam_codes.size:
            codes = period_codes(periods_of(codes, axes), self._period_width)
        self._crossing = (
            *(cuda.to_device(part.astype(np.uint32)) for part in crossing[:3]),
            *(cuda.to_device(part.astype(np.int32)) for part in (crossing.deltas, codes)),
        )
        room = crossing.num_bonds
        bonds = cuda.device_array(max(self.capacity * room, 1), np.uint32)
        self._listed = bonds, cuda.device_array(self.capacity, np.uint32), np.uint32(room)

    def _make_room(self, room: int, event_room: int, steps: int) -> None:
        """See to it that there is memory for so many nodes and events of a tile, and for rows."""
        blocks = self.capacity * self._tiling.num_tiles
        if room > self._room:
            self._room = room
            self._nodes = tuple(cuda.device_array(blocks * room, np.uint32) for _ in range(4))
            # One element stands for no forest.
            nodes = max(blocks * room, 2) if self.topology.seam_codes.size else 1
            self._node_forest = cuda.device_array(nodes, np.uint64)
        if event_room > self._event_room or not self._event_room:
            self._event_room = max(event_room, 1)
            self._events = cuda.device_array((blocks, self._event_room, 4), np.uint32)
        if event_room and self._late_words is self.opened:
            self._late_words = cuda.device_array(self.opened.size, np.uint32)
        if steps * self.capacity * ROW_WIDTH > self._grid_rows_found.size:
            self._grid_rows_found = cuda.device_array(steps * self.capacity * ROW_WIDTH, np.int64)
        wanted = steps * self.capacity * int(self._tally_width)
        if wanted > self._grid_tallies.size:
            self._grid_tallies = cuda.device_array(wanted, np.uint64)

    def _late(self, *, wanted: bool) -> tuple[Any, ...]:
        room = np.uint32(self._event_room if wanted else 0)
        return self._late_words, self._events, self._event_counts, room, self._overflow

    def _grid_of(self, items: int) -> tuple[int, int, int]:
        """Return the grid of blocks with one tile each."""
        tiles = self._tiling.tiles
        return tiles[0], tiles[1] * tiles[2], items

    def _join_tiles(
        self, items: int, *, late: bool = False, keep: bool = False, wind: bool = False
    ) -> None:
        """Find the clusters of all tiles and join what crosses their borders.

        late: with the bonds that open later, which are listed with the open ones.  keep: what the
        labels are found by.  wind: note what wraps, if an axis is periodic.
        """
        classes = len(self._tiling.classes)
        listed = _LISTED * classes
        # Two words for the bonds of every class; then the list, which later has the nodes.
        shared = 4 * (2 * classes * TILE_WORDS + max(STRIPS * listed, self._room))
        # The bins of a tally come where the bonds were.
        shared = max(shared, 4 * TILE_BINS)
        self._clear_tallies(items)
        self._list_crossing(items, self._late_words if late else self.opened)
        tile_kernel[self._grid_of(items), TILE_WORDS, 0, shared](
            self._bonds,
            self._counts,
            self._lattice,
            self._geometry,
            self._masks,
            (np.uint32(self._room), np.uint32(listed)),
            self.labels,
            self._nodes,
            self._interior,
            self._spanning,
            self._late(wanted=late),
            self._kept if keep else self._nothing_kept,
            (self._tallies, self._tally_width),
            (self._node_forest, self._loops),
        )
        if not self._listed[2]:
            return
        grid = self._blocks_of_listed(items)
        bonds: tuple[Any, ...] = self.labels, self._counts[2], self.opened, self._counts[1]
        if wind and self.topology.seam_codes.size:
            wind_crossing_kernel[grid](
                *bonds, self._node_forest, self._crossing, self._listed, self._wrapping
            )
        else:
            merge_kernel[grid](*bonds, self._nodes[0], self._crossing, self._listed)

    def _list_crossing(self, items: int, opened: Any) -> None:
        """List the open bonds between tiles, and mark what is at the border of a tile."""
        (_, border), size = self._masks, self._ends.size
        clear_border_kernel[self.grid(size, items), THREADS](border, self._ends, self._listed[1])
        if self._listed[2]:
            entries = self._tiling.crossing.words.size
            list_crossing_kernel[self.grid(entries, items, THREADS), THREADS](
                opened, self._counts[1], self._crossing, border, self._counts[0], self._listed
            )

    def _blocks_of_listed(self, items: int) -> tuple[tuple[int, int], int]:
        """Return blocks and threads for the listed bonds of each item, of which a part is open."""
        return self.grid(int(self._listed[2]), items, 2 * THREADS), THREADS

    def _tiles_of(self, items: int) -> tuple[int, np.int32]:
        """Return the blocks of threads that go through the nodes of all tiles, and their number."""
        tiles = items * self._tiling.num_tiles
        return -(-tiles // TILES_PER_BLOCK), np.int32(tiles)

    def label_items(self, items: int) -> None:
        """Label the open bonds of the first ``items`` items of the batch."""
        if self.falls_back:
            super().label_items(items)
            return
        if self._kept is None:
            self._kept = cuda.device_array(self._interior.shape[0] * TILE_NODES, np.uint32)
        self._join_tiles(items, keep=True)
        blocks, tiles = self._tiles_of(items)
        parents, _, _, origins = self._nodes
        room = np.uint32(self._room)
        origin_kernel[blocks, THREADS](parents, origins, self._interior, tiles, room)
        label_tile_kernel[self._grid_of(items), TILE_WORDS, 0, 4 * self._room](
            self._bonds,
            self._counts,
            self._geometry,
            self._masks,
            room,
            self.labels,
            self._nodes,
            self._interior,
            self._kept,
        )
        if self._vacant is not None:
            label_vacant_kernel[self.grid(self._vacant.size, items, THREADS), THREADS](
                self.labels, self._counts[2], self._vacant
            )

    def measure_items(self, items: int) -> np.ndarray:
        """Return the rows (items, row_width) int64 of the items' open bonds; labels are lost."""
        if self.falls_back:
            return super().measure_items(items)
        self._join_tiles(items, wind=True)
        self._gather(items)
        self._flag_ends(items)
        self._sum_nodes(items)
        self._tally_nodes(items, self._tallies, 0, 1)
        return self._finish_rows(items)

    def _gather(self, items: int) -> None:
        """Move sizes and end flags to the roots of nodes."""
        blocks, tiles = self._tiles_of(items)
        parents, sizes, ends, _ = self._nodes
        gather_kernel[blocks, THREADS](
            parents, sizes, ends, self._interior, tiles, np.uint32(self._room), self._node_forest
        )

    def _flag_ends(self, items: int) -> None:
        """Tell the roots of nodes which end layers they touch."""
        sites, flags = self._end_flags
        if sites.size:
            end_flags_kernel[self.grid(sites.size, items, THREADS), THREADS](
                self.labels, self._counts[2], self._nodes[0], self._nodes[2], sites, flags
            )

    def _tally_nodes(self, items: int, tallies: Any, first: int, step: int) -> None:
        """Add the roots of nodes to tally ``first + item * step`` of each item, if it has one."""
        if self._tally_width:
            tally_nodes_kernel[self._blocks_of_nodes(items)](
                self._nodes,
                self._interior,
                np.uint32(self._room),
                np.int32(self._tiling.num_tiles),
                self._tally_width,
                tallies,
                np.int64(first),
                np.int64(step),
            )

    def _blocks_of_nodes(self, items: int) -> tuple[tuple[int, int], int]:
        """Return the blocks and threads that go through the tiles of each item."""
        warps = min(1 << (self._tiling.num_tiles - 1).bit_length(), TILES_PER_BLOCK)
        return (self._partials.shape[1], items), warps * LANES

    def _sum_nodes(self, items: int) -> None:
        """Sum what rows need over finished clusters and the roots of nodes."""
        partial_nodes_kernel[self._blocks_of_nodes(items)](
            self._nodes,
            self._interior,
            np.uint32(self._room),
            np.int32(self._tiling.num_tiles),
            self._partials,
            self._spanning,
        )
