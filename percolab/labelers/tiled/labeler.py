"""The tiled labeler: union-find tile by tile in shared memory, then on the bonds across borders.

Bonds are packed words.  A tile's clusters are found with runs of sites as nodes.  Clusters that do
not touch the border of their tile are finished there; the others are joined as nodes of a graph far
smaller than the lattice.  A row needs no labels; labels are written once, when they are final.

Tiles in shared memory: Fink and Weigel, Komura and Okabe; runs as nodes: Hoshen and Kopelman.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import CudaBatch, copied_by_class, end_flags_on_device, narrow_codes
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import DeviceForest, Reading
from percolab.labelers.tiled import borders
from percolab.labelers.tiled.all_tiles import label_tile_kernel, label_vacant_kernel, tile_kernel
from percolab.labelers.tiled.one_tile import LANES, STRIPS, TILE_NODES, TILE_WORDS
from percolab.labelers.tiled.radii import TileRadii
from percolab.labelers.tiled.records import Crossing, CrossingList, Nodes, Openings, Tallies, Tiles
from percolab.labelers.tiled.tallies import TILE_BINS, tally_nodes_kernel
from percolab.labelers.tiled.tiling import PARTS, make_tiling, tiling_bounds, why_not_tiled
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.lattices.topology import MAX_POINTS, Topology, count_words
from percolab.measure.rows_batch import RowsBatch
from percolab.measure.rows_cuda import FULL, PARTIALS

# Room for the extra bonds that a strip lists for each class; about 70 and 125 are usual near p_c.
_LISTED = 4 * LANES
# Words of shared memory for bonds, lists and nodes: 48 KiB less the other arrays of the kernel.
_SHARED_WORDS = 48 * 256 - TILE_NODES - 3 * TILE_WORDS - 256


#: The most tiles along all axes but the first together, a limit of CUDA's launch grid.
MAX_ROWS = 2**16 - 1
#: The most bond classes besides the chain, those of 26 neighbours; 21 compile for a minute.
MAX_CLASSES = 12
#: The most entries of bonds between tiles: 32 bonds each are numbered with 32 bits.
MAX_ENTRIES = 2**27


def refusal(topology: Topology) -> str:
    """Return why the tiled labeler cannot label a topology, or "" if it can."""
    problem = why_not_tiled(topology)
    if problem:
        return problem
    tiling = make_tiling(topology, TILE_WORDS, LANES)
    if prod(tiling.tiles[1:]) > MAX_ROWS:
        return "it has more rows of tiles than a launch can have"
    if len(tiling.classes) > MAX_CLASSES:
        return "a site has more bonds than tiles allow"
    if tiling.num_entries > MAX_ENTRIES:
        return "its tiles share more bonds than 32-bit numbers can name"
    return ""


class Tiled:
    """A batch of samples joined tile by tile."""

    name: ClassVar[str] = "tiled"
    is_capturable: ClassVar[bool] = True

    def __init__(self, batch: CudaBatch, *, tally: bool = False, room: int = 0) -> None:
        """Allocate memory for tiles; room: border sites of a tile, if more than the tiling has."""
        top, arrays = batch.topology, batch.arrays
        self.batch = batch
        self.tiling = tiling = make_tiling(top, TILE_WORDS, LANES)
        #: The number of tiles of the whole batch.
        self.num_blocks = batch.capacity * tiling.num_tiles
        most = max(FULL // batch.capacity, PARTIALS)
        partials = min(-(-tiling.num_tiles // borders.TILES_PER_BLOCK), most)
        self.read = RowsBatch(batch, partials, tally=tally)
        self.row_width = self.read.row_width
        #: Whether an axis is periodic, so that clusters may wrap.
        self.may_wrap = top.num_periodic_bonds > 0
        # The numbers of nodes, at their border sites; later the labels, if they are requested.
        self.labels = arrays.reserve("labels", batch.capacity * top.num_points, np.uint32)
        #: The sums over the finished clusters of each tile, and the number of its nodes.
        self.interior = cuda.device_array((self.num_blocks, borders.NODES + 1), np.uint32)
        self.border = arrays.reserve("border", batch.capacity * top.num_words, np.uint32)
        self._kept: Any = None
        self._radii: TileRadii | None = None
        self._nothing_kept = cuda.device_array(1, np.uint16)
        self._load()
        self._make_nodes(max(tiling.room, room))

    @staticmethod
    def memory(extent: Extent, needs: Needs, entries: int) -> Memory:
        """Return the memory of tiles, of nodes at their borders, and of lists."""
        points, words = extent.num_points, count_words(extent.num_points)
        bounds = tiling_bounds(extent, TILE_WORDS, LANES)
        nodes = bounds.tiles * bounds.room
        forest = 8 if extent.periodic_bonds else 0
        kept = 2 * bounds.tiles * TILE_NODES if needs.labels else 0
        of_entry = 4 * points + 4 * words + 24 * bounds.tiles + (16 + forest) * nodes + kept
        # All batch entries share inner bonds, end layers and the words of bonds between tiles.
        shared = 4 * extent.num_words + 4 * words + 20 * bounds.entries + 8 * extent.end_sites
        of_entry += 4 * bounds.crossing + 4
        # These follow one another: parts of entries, pieces of the periodic bonds, flags of an end
        # layer.  The memory that the batch needed for one class is free again.
        part = min(bounds.entries, words // PARTS + extent.part_words)
        periodic = extent.class_bytes + 20 * extent.piece_bonds
        most = max(36 * part, periodic, 4 * extent.end_sites)
        tiles = Memory(host=max(most - extent.class_bytes, 0))
        tiles = tiles.plus(Memory(device=entries * of_entry + shared))
        tiles = tiles.plus(RowsBatch.memory(points, entries, needs))
        if not needs.radii_axes:
            return tiles
        radii = TileRadii.memory(points, nodes, bounds.tiles, needs.radii_axes, entries)
        return tiles.plus(radii)

    @staticmethod
    def most_points(axes: int) -> int:
        """Return the most grid points of an entry: sizes share their words with end-layer flags."""
        return MAX_POINTS

    def _load(self) -> None:
        top, tiling, capacity = self.batch.topology, self.tiling, self.batch.capacity
        logarithms = [extent.bit_length() - 1 for extent in tiling.tile]
        self._load_bonds()
        self.tiles = Tiles(
            shape=tuple(map(np.uint32, tiling.shape)),
            extents=tuple(map(np.uint32, logarithms)),
            counts=tuple(
                np.uint32(count * (prod(tiling.tiles[axis + 1 :]) > 1))
                for axis, count in enumerate(tiling.tiles)
            ),
            classes=tuple(map(np.int32, tiling.classes)),
            shifts=tuple(map(np.int32, tiling.shifts)),
            rows=tuple(map(np.int32, tiling.rows)),
            inner=copied_by_class(top, tiling.inner_parts),
            occupied=self.batch.existing_sites,
            chain=np.int32(top.chain),
            num_words=np.uint32(top.num_words),
            words_per_entry=np.uint32(top.num_bond_words),
            points=np.uint32(top.num_points),
        )
        room = tiling.num_crossing
        bonds = self.batch.arrays.reserve("listed", max(capacity * room, 1), np.uint32)
        self.listed = CrossingList(bonds, cuda.device_array(capacity, np.uint32), np.uint32(room))
        self._ends = cuda.to_device(tiling.ends)
        self.end_flags = end_flags_on_device(top)
        nothing = cuda.device_array((1, 1, 4), np.uint32), cuda.device_array(1, np.uint32)
        overflow = cuda.device_array(1, np.uint32)
        self._no_openings = Openings(self.batch.opened, *nothing, np.uint32(0), overflow)

    def _load_bonds(self) -> None:
        """Copy the bonds between tiles to the device part by part."""
        top, tiling = self.batch.topology, self.tiling
        kinds = np.uint32, np.uint32, np.uint32, np.int32, np.int32
        self.crossing = Crossing(*(cuda.device_array(tiling.num_entries, kind) for kind in kinds))
        start = 0
        for part in tiling.crossing_parts():
            stop = start + part.words.size
            deltas, codes = part.run_deltas.astype(np.int32), narrow_codes(top, part.run_codes)
            own = part.words, part.owners, part.masks
            runs = (part.of_entries(each) for each in (deltas, codes))
            for to, values in zip(self.crossing, (*own, *runs), strict=True):
                if start < stop:
                    to[start:stop].copy_to_device(values)
            start = stop

    def make_room(self, room: int) -> bool:
        """Ensure that tiles have room for this many nodes; return whether memory is new."""
        if room <= self.nodes.room:
            return False
        # Free the old arrays first, so that old and new ones need not fit together.
        self._make_nodes(0)
        self._make_nodes(room)
        return True

    def _make_nodes(self, room: int) -> None:
        """Allocate memory for this many nodes in every tile."""
        # An array of one element stands for no array.
        size, arrays = max(self.num_blocks * room, 2), self.batch.arrays
        names = ("parents", "sizes", "ends", "origins")
        parents, sizes, ends, origins = (arrays.reserve(name, size, np.uint32) for name in names)
        self.nodes = Nodes(parents, sizes, ends, origins, np.uint32(room))
        nothing = cuda.device_array(1, np.uint32)
        #: The nodes if only the wrapping is read, for which the forest is enough.
        self._bare_nodes = Nodes(nothing, nothing, nothing, nothing, np.uint32(room))
        #: The nodes with their periods, where an axis is periodic.
        self.forest = arrays.reserve("forest", size if self.may_wrap else 1, np.uint64)

    def join(self, entries: int, reading: Reading = Reading.ROWS) -> NodesOfBatch:
        # For radii, the joins are captured together with the radii's kernels.
        if reading is Reading.LABELS:
            self.join_tiles(entries, self.kept, over_periods=False)
        elif reading is not Reading.RADII:
            self.join_tiles(entries, with_sizes=reading is Reading.ROWS)
        return NodesOfBatch(self, entries, reading)

    @property
    def kept(self) -> Any:
        """The array in which :meth:`join_tiles` stores data of every run, made at first use."""
        if self._kept is None:
            self._kept = cuda.device_array(self.num_blocks * TILE_NODES, np.uint16)
        return self._kept

    def entries_with_radii(self, geometry: Geometry) -> int:
        """Return the number of batch entries whose radii can be read at a time."""
        return int(self.radii_batch(geometry).entries)

    def radii_batch(self, geometry: Geometry) -> TileRadii:
        if self._radii is None:
            self._radii = TileRadii(self, geometry)
        return self._radii

    def join_tiles(
        self,
        entries: int,
        kept: Any = None,
        openings: Openings | None = None,
        *,
        over_periods: bool = True,
        with_sizes: bool = True,
    ) -> None:
        """Find the clusters of all tiles and join them across the tiles' borders.

        kept: gets the data from which labels are found.  openings: get the bonds that open up to a
        higher p.  over_periods: find what wraps, if an axis is periodic.  with_sizes: more than
        wrapping is read, so nodes need sizes, ends and origins.
        """
        upper = self.batch.opened if openings is None else openings.upper
        nodes, launch = self.nodes, self.batch.launches
        self.read.clear_tallies(entries)
        self._list_crossing(entries, upper)
        classes = len(self.tiling.classes)
        # Two words for the bonds of every class, then the list, whose memory later has the nodes.
        words = 2 * classes * TILE_WORDS
        listed = min(_LISTED * classes, (_SHARED_WORDS - words) // STRIPS)
        shared = 4 * (words + max(STRIPS * listed, int(nodes.room)))
        # The bins of a tally reuse the memory of the bonds.
        shared = max(shared, 4 * TILE_BINS)
        launch.blocks(
            tile_kernel,
            self.tile_launch_grid(entries),
            TILE_WORDS,
            self.tiles,
            self.batch.opened,
            self.border,
            np.uint32(listed),
            self.labels,
            nodes if with_sizes else self._bare_nodes,
            self.interior,
            self.read.spanning,
            self._no_openings if openings is None else openings,
            self._nothing_kept if kept is None else kept,
            Tallies(self.read.tallies, self.read.tally_width),
            self.forest,
            self.read.loops.first,
            shared=shared,
        )
        self._merge(entries, over_periods=over_periods)

    def _merge(self, entries: int, *, over_periods: bool) -> None:
        """Join the nodes at the ends of the open bonds between tiles."""
        if not self.listed.room:
            return
        tiles, launch = self.tiles, self.batch.launches
        words = self.labels, tiles.points, self.batch.opened, tiles.words_per_entry
        bonds = self.crossing, self.listed
        grid = self.listed_launch_grid(entries)
        if over_periods and self.may_wrap:
            forest = *words, self.forest, *bonds, self.read.loops
            launch.blocks(borders.merge_over_periods_kernel, grid, THREADS, *forest)
        else:
            parents = *words, self.nodes.parents, *bonds
            launch.blocks(borders.merge_kernel, grid, THREADS, *parents)

    def _list_crossing(self, entries: int, opened: Any) -> None:
        """List the open bonds between tiles, and mark the sites at the borders of tiles."""
        launch, ends, listed = self.batch.launches, self._ends, self.listed
        clear, tiles = borders.clear_border_kernel, self.tiles
        launch.each(clear, ends.size, entries, self.border, ends, listed.counts)
        bonds = opened, tiles.words_per_entry, self.crossing, self.border, tiles.num_words
        launch.one(borders.list_crossing_kernel, self.tiling.num_entries, entries, *bonds, listed)

    def tile_launch_grid(self, entries: int) -> tuple[int, int, int]:
        """Return the grid of blocks with one tile each."""
        tiles = self.tiling.tiles
        return tiles[0], prod(tiles[1:]), entries

    def listed_launch_grid(self, entries: int) -> tuple[int, int]:
        """Return the grid of blocks for each entry's listed bonds, which rarely fill the list."""
        return -(-int(self.listed.room) // (2 * THREADS)), entries

    def count_blocks(self, entries: int) -> tuple[int, np.int32]:
        """Return how many thread blocks process the nodes of all tiles, and how many tiles."""
        tiles = entries * self.tiling.num_tiles
        return -(-tiles // borders.TILES_PER_BLOCK), np.int32(tiles)

    def gather(self, entries: int, *, with_origins: bool = False) -> None:
        """Add sizes and end flags of nodes to their roots, and with ``with_origins`` origins."""
        blocks, tiles = self.count_blocks(entries)
        nodes = self.nodes, self.interior, tiles, self.forest, np.uint32(with_origins)
        self.batch.launches.blocks(borders.gather_kernel, blocks, THREADS, *nodes)

    def flag_ends(self, entries: int) -> None:
        """Mark in the roots of nodes which end layers their clusters touch."""
        sites, flags = self.end_flags
        nodes = self.labels, self.tiles.points, self.nodes
        self.batch.launches.one(borders.end_flags_kernel, sites.size, entries, *nodes, sites, flags)

    def sum_nodes(self, entries: int) -> None:
        """Compute the sums of rows over finished clusters and the roots of nodes."""
        nodes = self.nodes, self.interior, np.int32(self.tiling.num_tiles)
        sums = self.read.partials, self.read.spanning
        self.batch.launches.blocks(
            borders.partial_nodes_kernel, *self._node_launch_grid(entries), *nodes, *sums
        )

    def tally_nodes(self, entries: int, tallies: Any, first: int = 0, step: int = 1) -> None:
        """Add the roots of nodes to tally ``first + entry * step`` of each entry, if it has one."""
        if self.read.tally_width:
            nodes = self.nodes, self.interior, np.int32(self.tiling.num_tiles)
            places = self.read.tally_width, tallies, np.int64(first), np.int64(step)
            self.batch.launches.blocks(
                tally_nodes_kernel, *self._node_launch_grid(entries), *nodes, *places
            )

    def _node_launch_grid(self, entries: int) -> tuple[tuple[int, int], int]:
        """Return the blocks and threads that process the tiles of each entry."""
        warps = min(1 << (self.tiling.num_tiles - 1).bit_length(), borders.TILES_PER_BLOCK)
        return (self.read.partials.shape[1], entries), warps * LANES

    def join_rows(self, entries: int, *, with_origins: bool = False) -> None:
        """Compute, on the device, the rows of the first entries, which were joined over periods.

        with_origins: give the roots of nodes the smallest site of their cluster, too.
        """
        self.gather(entries, with_origins=with_origins)
        self.flag_ends(entries)
        self.sum_nodes(entries)
        self.tally_nodes(entries, self.read.tallies)
        self.read.finish(entries)

    def write_labels(self, entries: int) -> None:
        """Write the labels of the first entries, which were joined for a reading of labels."""
        nodes, launch = self.nodes, self.batch.launches
        # Set the origin of every cluster at borders to its smallest site.
        blocks, count = self.count_blocks(entries)
        launch.blocks(borders.origin_kernel, blocks, THREADS, nodes, self.interior, count)
        words = self.tiles, self.batch.opened, self.labels, nodes, self.interior, self._kept
        launch.blocks(
            label_tile_kernel,
            self.tile_launch_grid(entries),
            TILE_WORDS,
            *words,
            shared=4 * int(nodes.room),
        )
        tiles = self.tiles
        vacant = self.labels, tiles.points, tiles.occupied
        launch.one(label_vacant_kernel, int(tiles.num_words), entries, *vacant)


class NodesOfBatch(DeviceForest):
    """The forest of the entries of a batch: finished clusters of tiles, and nodes at borders."""

    _labeler: Tiled

    def __init__(self, labeler: Tiled, entries: int, reading: Reading) -> None:
        super().__init__(labeler, entries)
        self._reading = reading

    def enqueue_rows(self) -> None:
        if self._reading is Reading.WRAPPING:
            self._labeler.read.finish_flags(self._entries)
        else:
            self._labeler.join_rows(self._entries)
        self._labeler.read.download(self._entries)

    def make_labels(self) -> None:
        self._labeler.write_labels(self._entries)

    def radii(self, geometry: Geometry) -> NDArray[np.int64]:
        return self._labeler.radii_batch(geometry).rows(self._labeler, self._entries)
