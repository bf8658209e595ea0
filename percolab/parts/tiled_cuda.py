"""The interface of a slab on a CUDA device: tiles joined as by the labeler tiled, faces read.

Everything is as on the CPU (:mod:`percolab.parts.raster`), except for the numbers of the clusters
of an interface, which may be in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from percolab.bonds.batch_cuda import CudaBatch, KeysOfBatch
from percolab.bonds.closed_cuda import count_closed_kernel
from percolab.bonds.hooks import VARIES
from percolab.errors import InputError
from percolab.kernels.arrays import SharedArrays
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS, Launches
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.tiled.labeler import MAX_ENTRIES, Tiled
from percolab.labelers.tiled.one_tile import LANES, TILE_NODES, TILE_WORDS
from percolab.labelers.tiled.tiling import BONDS_A_TILE, tiling_bounds
from percolab.lattices.grid_loops import put_periods
from percolab.lattices.topology import PERIOD_BITS, count_words
from percolab.measure import rows
from percolab.measure.rows import without_vacant
from percolab.measure.rows_batch import RowsBatch
from percolab.measure.tallies import compute_row_width
from percolab.parts import interface_cuda as kernels
from percolab.parts.interface import Face, Interface, InterfaceSums, interface_bytes
from percolab.parts.join_cuda import DeviceArrays
from percolab.parts.parts import Cut, Slab, Tables, Whole
from percolab.parts.raster import SampleKey, sums_from_row

# Seconds per bond between tiles, and the time of faces per site of a layer, in these bonds.
_SECONDS_A_BOND, _BONDS_A_FACE = 33e-12, 3
#: The most kinds of slabs (of equal tables) whose tables stay on the device; the oldest is dropped.
_MOST_KINDS = 4
# The arrays of an interface are larger than needed by one part in _SPARE, for the samples that
# follow.
_SPARE = 10


def refusal(whole: Whole) -> str:
    """Return why slabs of a lattice cannot be labeled in tiles, or "" if they can."""
    if len(whole.shape) == 1:
        return "a chain has no layers to cut into tiles"
    if whole.most_crossing >= 2**32:
        return (
            f"{whole.most_crossing} bonds between two layers, but at most 2^32 - 1 can have numbers"
        )
    return ""


class Crossed:
    """The open bonds of one cut of one sample, with their cumulative counts.

    cut:    the bonds that exist there, on the device
    opened: uint32 like ``cut.exists``; before: uint32, open bonds before each FACE_WORDS words
    key:    identifies the cut and the sample
    """

    def __init__(self, words: int) -> None:
        self.cut: Any = None
        self.key: Any = None
        self.opened = cuda.device_array(words, np.uint32)
        self.before = cuda.device_array(-(-words // kernels.FACE_WORDS), np.uint32)
        self.total = cuda.device_array(1, np.uint32)
        self.pinned = cuda.pinned_array(1, np.uint32)

    @property
    def num_bonds(self) -> int:
        """The number of open bonds, valid once the stream has written :attr:`pinned`."""
        return int(self.pinned[0])


class Side(NamedTuple):
    """A face of a slab."""

    name: str  # "low" or "high"
    crossed: Crossed | None  # the bonds that cross it, or None
    is_upper: bool  # whether the slab has their owners, or their other ends
    shift: int  # the site of the slab at which the sites of the cut begin


class Pinned(NamedTuple):
    """Pinned memory of the host for copies to and from the device, one number each."""

    zero: Any
    clusters: Any
    vacant: Any
    loop: Any


class Begun(NamedTuple):
    """A slab of which drawing the bonds and joining the tiles has been launched."""

    key: tuple[int, int, SampleKey]  # its first layer, its layers, and the draw
    labeler: SlabLabels  # its labeler
    sides: tuple[Side, Side]  # its faces
    counted: Any  # an event after which the numbers of bonds that cross its faces are known


class SlabLabels(Tiled):
    """A slab joined tile by tile, with nodes for the sites of its faces.

    sides:      its faces
    end_layers: as :meth:`percolab.parts.parts.Slab.end_layers` returns them
    """

    def __init__(self, batch: CudaBatch, *, tally: bool, room: int) -> None:
        super().__init__(batch, tally=tally, room=room)
        self.sides: tuple[Side, ...] = ()
        self.end_layers: list[tuple[int, int, int]] = []

    def _list_crossing(self, entries: int, opened: Any) -> None:
        """List the open bonds between tiles, and mark the borders of tiles, including faces."""
        super()._list_crossing(entries, opened)
        launch = self.batch.launches
        for first, after, _ in self.end_layers:
            words = (after - 1) // 32 - first // 32 + 1
            span = np.uint32(first), np.uint32(after)
            sites = self.batch.existing_sites
            launch.one(kernels.mark_layers_kernel, words, 1, self.border, sites, *span)
        for _, crossed, is_upper, shift in self.sides:
            if crossed is not None:
                side = np.uint32(is_upper), np.uint32(shift)
                bonds = crossed.opened, crossed.cut
                launch.one(
                    kernels.mark_cut_kernel, crossed.opened.size, 1, *bonds, *side, self.border
                )

    def flag_ends(self, entries: int) -> None:
        """Mark in the roots of nodes which end layers of the whole lattice their clusters touch."""
        super().flag_ends(entries)
        for first, after, flag in self.end_layers:
            span = np.uint32(first), np.uint32(after), np.uint32(flag)
            nodes = self.labels, self.nodes, self.batch.existing_sites
            self.batch.launches.one(kernels.flag_layers_kernel, after - first, 1, *nodes, *span)


class SlabTiled:
    """Finds the interfaces of the parts of one lattice, one after the other, in reused memory.

    The arrays of an interface are on the device.  They are valid until the next interface but one
    is made: there are two sets of arrays, which are used in turns.

    whole:      the lattice
    most_layers: layers of the thickest part
    tally:      whether sizes are tallied

    InputError: the lattice cannot be labeled in tiles.
    """

    def __init__(self, whole: Whole, most_layers: int, *, tally: bool = False) -> None:
        problem = refusal(whole)
        if problem:
            raise InputError(f"slabs of {whole.lattice.name} on CUDA: {problem}")
        self.whole, self.tally = whole, tally
        self.row_width = compute_row_width(whole.num_points) if tally else rows.ROW_WIDTH
        self.launches, self._arrays = Launches(), SharedArrays()
        self._keys = KeysOfBatch(whole.model, 1, self.launches)
        self._draw: SampleKey | None = None
        self._begun: Begun | None = None
        self._labelers: dict[Tables, SlabLabels] = {}
        self._thickest = 0
        self._cuts: dict[int, Any] = {}
        words = count_words(whole.reach * whole.layer_points)
        classes = sum(bond.offset[-1] < 0 for bond in whole.lattice.bonds)
        self._crossed = tuple(Crossed(classes * words) for _ in range(2))
        numbers = np.arange(whole.lattice.num_classes + 1)
        self._bond_classes = cuda.to_device(numbers[:-1])
        self._site_class = cuda.to_device(numbers[-1:])
        limits = whole.model.class_limits(whole.lattice.class_names)
        # Sites are a class after those of bonds, with the threshold that is passed.
        self._limits = cuda.to_device(np.append(limits, np.uint64(VARIES))) if len(limits) else ()
        if whole.model.draws_sites:
            self._all_sites = cuda.to_device(np.full(words, 0xFFFFFFFF, np.uint32))
            self._above, self._below = (cuda.device_array(words, np.uint32) for _ in range(2))
        self._interfaces = DeviceArrays(_SPARE, 2), DeviceArrays(_SPARE, 2)
        kinds = np.uint32, np.uint64, np.int64
        self._none = {kind: cuda.device_array(0, kind) for kind in kinds}
        #: The numbers of clusters of the interface, and of vacant sites.
        self._counts = cuda.device_array(1, np.uint32), cuda.device_array(1, np.uint32)
        pinned = np.uint32, np.uint32, np.uint32, np.int32
        self._pinned = Pinned(*(cuda.pinned_array(1, kind) for kind in pinned))
        self._pinned.zero[0] = 0

    @staticmethod
    def memory(whole: Whole, layers: Sequence[int], p: float = 1.0) -> Memory:
        """Return the memory of its arrays, including two interfaces, at p or below.

        layers: those of successive slabs, all or some of them.  p: that of bonds or of sites, the
        smaller one.  Interfaces are counted as if every open bond at a face led to a separate
        cluster.
        """
        kinds = _kinds_kept(whole, layers)
        extents = [whole.slab_extent(thick) for thick in kinds]
        bounds = [tiling_bounds(extent, TILE_WORDS, LANES) for extent in extents]
        needs, largest = Needs(tally=True), extents[0]
        memory = KeysOfBatch.memory(1)
        for extent, bound in zip(extents, bounds):
            # The memory that all slabs of the kind share, and sums, but not that of a single slab.
            memory = memory.plus(CudaBatch.memory(extent, whole.model, 0))
            memory = memory.plus(Tiled.memory(extent, needs, 0))
            memory = memory.plus(RowsBatch.memory(extent.num_points, 1, needs))
            memory = memory.plus(KeysOfBatch.memory(1)).plus(Memory(device=24 * bound.tiles))
        points, words = largest.num_points, count_words(largest.num_points)
        # Bonds and occupied sites; labels and borders; bonds between tiles; nodes.
        slab = 4 * (largest.num_words + words * whole.model.draws_sites) + 4 * (points + words)
        slab += 4 * max(bound.crossing for bound in bounds)
        nodes = max(bound.tiles * _border_capacity(whole, n) for bound, n in zip(bounds, kinds))
        slab += (24 if largest.periodic_bonds else 16) * nodes
        parts = slab + _cut_bytes(whole, layers) + _interface_bytes(whole, layers, p)
        return memory.plus(Memory(device=parts))

    def begin(self, part: Slab, draw: SampleKey) -> None:
        """Launch drawing and labeling of a part, whose interface is requested next; do not wait."""
        if draw != self._draw:
            samples, limits = (np.array([n], np.uint64) for n in (draw.sample, draw.threshold))
            self._keys.write(draw.seed, samples, limits)
            self._keys.upload(1)
            self._draw = draw
        labeler = self._get_labeler(part)
        self._draw_slab(part, labeler)
        low = self._crossed_at(part.low, part.first_site, draw)
        high = self._crossed_at(part.high, part.first_site + part.num_points, draw)
        shift = part.num_points - (part.high.num_points if part.high else 0)
        sides = Side("low", low, True, 0), Side("high", high, False, shift)
        key, counted = (part.first_layer, part.layers, draw), self.launches.mark()
        labeler.sides, labeler.end_layers = sides, part.end_layers()
        labeler.join_tiles(1)
        labeler.gather(1)
        labeler.flag_ends(1)
        self._begun = Begun(key, labeler, sides, counted)

    def make_interface(
        self, part: Slab, draw: SampleKey, following: Slab | None = None
    ) -> Interface:
        """Return the interface of a part of a sample, with arrays of the device.

        following: the part of the sample that is requested next.  Its work is launched before this
        one waits, so that the device is not idle then, nor while the interface is processed.
        """
        key = part.first_layer, part.layers, draw
        if self._begun is None or self._begun.key != key:
            self.begin(part, draw)
        assert self._begun is not None
        _, labeler, sides, counted = self._begun
        self._begun = None
        counted.synchronize()
        below, over, sizes, flags = self._read_faces(part, labeler, sides)
        sums = self._wait_for_sums(labeler, following, draw)
        clusters = int(self._pinned.clusters[0])
        layers = part.first_layer, part.layers, self.whole.num_layers, len(self.whole.shape)
        sizes, flags = self._first(sizes, clusters), self._first(flags, clusters)
        return Interface(*layers, below, over, sizes, flags, sums)

    def _get_labeler(self, part: Slab) -> SlabLabels:
        if part.tables not in self._labelers:
            while len(self._labelers) >= _MOST_KINDS:
                self._labelers.pop(next(iter(self._labelers)))
            if part.layers > self._thickest:
                # Free the old memory first, so that old and new need not fit together.
                self._labelers.clear()
                self._arrays, self._thickest = SharedArrays(), part.layers
            before, top = self._arrays.replaced, part.tables.topology
            batch = CudaBatch(top, self.whole.model, 1, launches=self.launches, arrays=self._arrays)
            room = _border_capacity(self.whole, part.layers)
            labeler = SlabLabels(batch, tally=self.tally, room=room)
            if labeler.tiling.num_entries > MAX_ENTRIES:
                raise InputError("its tiles share more bonds than 32-bit numbers can name")
            if self._arrays.replaced > before:
                # The old labelers refer to memory that was too small for this one.
                self._labelers.clear()
            self._labelers[part.tables] = labeler
        return self._labelers[part.tables]

    def _fill(
        self, site: int, classes: Any, words: int, limits: Any, exists: Any, opened: Any
    ) -> None:
        """Write the open words of bonds or sites from a site of the whole lattice on."""
        assert self._draw is not None
        first, shift = divmod(site, 32)
        where = np.uint64(self.whole.num_words), np.uint64(first), np.uint32(shift)
        stretch = kernels.Stretch(*where, classes, np.uint32(words), self._limits)
        key = self._draw.generator, self._keys.on_device.samples, limits
        if shift == 0:
            launch = self.launches.each
            launch(kernels.aligned_words_kernel, words, classes.size, *key, stretch, exists, opened)
        else:
            grid = -(-words // (kernels.SPAN - 1)), classes.size
            self.launches.blocks(
                kernels.shifted_words_kernel, grid, THREADS, *key, stretch, exists, opened
            )

    def _crossed_at(self, cut: Cut | None, above: int, draw: SampleKey) -> Crossed | None:
        """Return the open bonds of a cut, which is kept if it was the last slab's upper face.

        above: the first site above it; on a torus, the last layers are below the first ones.
        """
        if cut is None:
            return None
        above %= self.whole.num_points
        key = draw, above
        one, other = self._crossed
        if key not in (one.key, other.key) or key == other.key:
            # Of two cuts, the one that was requested last is kept.
            one, other = self._crossed = other, one
        if one.key == key:
            return one
        if id(cut) not in self._cuts:
            self._cuts[id(cut)] = cut, _on_device(cut)
        one.key, (_, one.cut) = key, self._cuts[id(cut)]
        self._draw_cut(one, above, cut.num_points)
        return one

    def _draw_cut(self, crossed: Crossed, above: int, points: int) -> None:
        """Write and count the open bonds of a cut, between ``points`` sites on each side."""
        keys, cut, launch = self._keys.on_device, crossed.cut, self.launches
        words = count_words(points)
        self._fill(above, cut.classes, words, keys.bonds, cut.exists, crossed.opened)
        if self.whole.model.draws_sites:
            below = (above - points) % self.whole.num_points
            for site, occupied in ((above, self._above), (below, self._below)):
                sites = keys.sites, self._all_sites, occupied
                self._fill(site, self._site_class, words, *sites)
            sites = self._above, self._below, crossed.opened
            launch.one(kernels.close_cut_kernel, crossed.opened.size, 1, cut, *sites)
        counts = crossed.opened, crossed.before
        launch.blocks(kernels.count_bonds_kernel, crossed.before.size, kernels.FACE_WORDS, *counts)
        launch.blocks(kernels.scan_counts_kernel, 1, THREADS, crossed.before, crossed.total)
        launch.download(crossed.total, crossed.pinned)

    def _draw_slab(self, part: Slab, labeler: SlabLabels) -> None:
        """Write the slab's open bonds, and count its vacant sites."""
        batch, keys, launch = labeler.batch, self._keys.on_device, self.launches
        words, site = part.tables.topology.num_words, part.first_site
        limits = keys.bonds, batch.exists, batch.opened
        self._fill(site, self._bond_classes, words, *limits)
        _, vacant = self._counts
        for count in self._counts:
            launch.upload(count, self._pinned.zero)
        if self.whole.model.draws_sites:
            sites = batch.existing_sites, batch.occupied
            self._fill(site, self._site_class, words, keys.sites, *sites)
            batch.close_bonds(1, batch.opened)
            launch.each(count_closed_kernel, words, 1, *sites, vacant)

    def _read_faces(
        self, part: Slab, labeler: SlabLabels, sides: tuple[Side, Side]
    ) -> tuple[Face, Face, Any, Any]:
        """Return both faces, and arrays of the sizes and flags of their clusters."""
        self._interfaces = self._interfaces[::-1]
        room, launch, nodes = self._interfaces[0], self.launches, labeler.nodes
        faces = [self._read_face(part, labeler, side) for side in sides]
        total = sum(face.num_bonds for face in faces)
        most = min(total, 2 * self.whole.reach * self.whole.layer_points)
        sizes, flags = room.take("sizes", most, np.uint64), room.take("flags", most, np.uint32)
        blocks, tiles = labeler.count_blocks(1)
        given = nodes, labeler.interior, tiles, labeler.read.spanning, self._counts[0], sizes, flags
        launch.blocks(kernels.number_roots_kernel, blocks, THREADS, *given)
        for face in faces:
            entries = face.clusters, np.uint32(face.num_bonds), nodes.origins
            grid = max(-(-face.num_bonds // (PER_THREAD * THREADS)), 1), 1
            launch.blocks(kernels.number_entries_kernel, grid, THREADS, *entries)
        return faces[0], faces[1], sizes, flags

    def _read_face(self, part: Slab, labeler: SlabLabels, side: Side) -> Face:
        """Return a face as roots of nodes, which are marked."""
        crossed, room, has_codes = side.crossed, self._interfaces[0], self.whole.has_periods
        if crossed is None:
            return Face(self._none[np.uint32], self._none[np.int64])
        bonds = crossed.num_bonds
        roots = room.take(f"{side.name} roots", bonds, np.uint32)
        codes = room.take(f"{side.name} codes", bonds * has_codes, np.int64)
        given = crossed.opened, crossed.before, crossed.cut
        where = np.uint32(side.is_upper), np.uint32(side.shift), np.int64(part.crossing_code)
        nodes = labeler.labels, labeler.nodes, labeler.forest, labeler.read.loops
        grid, face = crossed.before.size, (roots, codes, np.uint32(has_codes))
        self.launches.blocks(kernels.read_face_kernel, grid, THREADS, *given, *where, *nodes, *face)
        return Face(self._first(roots, bonds), self._first(codes, bonds * has_codes))

    def _first(self, array: Any, count: int) -> Any:
        return array[:count] if count else self._none[array.dtype.type]

    def _wait_for_sums(
        self, labeler: SlabLabels, following: Slab | None, draw: SampleKey
    ) -> InterfaceSums:
        """Launch the following part, wait, and return the sums of clusters that touch no face."""
        launch, read, (clusters, vacant) = self.launches, labeler.read, self._counts
        labeler.sum_nodes(1)
        labeler.tally_nodes(1, read.tallies)
        read.finish(1)
        read.download(1)
        for count, pinned in ((clusters, self._pinned.clusters), (vacant, self._pinned.vacant)):
            launch.download(count, pinned)
        launch.download(read.loops.first, self._pinned.loop)
        done = None
        if following is not None and not self.tally:
            done = launch.mark()
            self.begin(following, draw)
        (sums,) = read.fetch(1, done=done)
        if following is not None and self.tally:
            # Not earlier, as there is only one tally, which is cleared first.
            self.begin(following, draw)
        without_vacant(sums, self._pinned.vacant[0].astype(np.int64))
        row = np.zeros(self.row_width, np.int64)
        row[: sums.size] = sums
        loop, narrow = np.empty(1, np.int64), self._pinned.loop.astype(np.int64)
        put_periods(narrow, int(read.loops.axes), int(read.loops.width), PERIOD_BITS, loop)
        return sums_from_row(row, int(row[rows.SPANNING]), int(loop[0]))


def seconds_a_layer(whole: Whole, layers: int) -> float:
    """Return the approximate seconds per layer, near p_c, of slabs of ``layers`` layers.

    Measured on an H200 (results/notebook/performance.md, slabs): 33 ps per bond between tiles, the
    time of 1000 of these bonds per tile, and of 3 per site of a layer, for the faces.
    """
    bounds = tiling_bounds(whole.slab_extent(layers), TILE_WORDS, LANES)
    bonds = BONDS_A_TILE * bounds.tiles + bounds.crossing + _BONDS_A_FACE * whole.layer_points
    return _SECONDS_A_BOND * bonds / layers


def _border_capacity(whole: Whole, layers: int) -> int:
    """Return the most border sites of a tile, including those of faces and end layers."""
    if not whole.is_closed and whole.depth > max(whole.reach, 1):
        return TILE_NODES
    # The bound is that of a tile with bonds to other tiles on all sides, so it covers faces.
    return min(tiling_bounds(whole.slab_extent(layers), TILE_WORDS, LANES).room, TILE_NODES)


def _kinds_kept(whole: Whole, layers: Sequence[int]) -> list[int]:
    """Return the layers of the kinds of slabs whose tables are kept, in descending order."""
    starts = accumulate((0, *layers[:-1]))
    kinds = {(whole.phase(first), thick) for first, thick in zip(starts, layers)}
    return sorted((thick for _, thick in kinds), reverse=True)[:_MOST_KINDS]


def _cut_bytes(whole: Whole, layers: Sequence[int]) -> int:
    """Return the bytes on the device of the cuts between slabs, and of their open bonds."""
    phases = {whole.phase(first) for first in accumulate((0, *layers))}
    words = count_words(whole.reach * whole.layer_points)
    classes = sum(bond.offset[-1] < 0 for bond in whole.lattice.bonds)
    periodic_bonds = whole.slab_extent(whole.reach).periodic_bonds
    masks = 1 + (periodic_bonds > 0)
    cut = 4 * masks * classes * words + 20 * periodic_bonds
    opened = 4 * classes * words + 4 * (classes * words // kernels.FACE_WORDS + 2)
    sites = 3 * 4 * words * whole.model.draws_sites
    return len(phases) * (cut + 8 * classes) + 2 * opened + sites + 8 * whole.lattice.num_classes


def _interface_bytes(whole: Whole, layers: Sequence[int], p: float) -> int:
    """Return the bytes of the two interfaces that are used in turns."""
    bonds, _ = whole.open_at_face(p)
    is_all = not whole.is_closed and sum(layers) == whole.num_layers
    faces = min(len(layers) - 1, 2) if is_all else 2
    clusters = min(faces * bonds, 2 * whole.reach * whole.layer_points)
    one = interface_bytes(faces * bonds, clusters, has_periods=whole.has_periods)
    # Every array has at least two elements.
    return 2 * (one + one // _SPARE + 96)


def _on_device(cut: Cut) -> Cut:
    adjacency = cut.adjacency
    there = {
        name: cuda.to_device(getattr(adjacency, name))
        for name in ("ends", "periodic_words", "periodic_bonds", "periodic_ends", "periodic_codes")
    }
    exists = cuda.to_device(cut.exists)
    return Cut(cuda.to_device(cut.classes), exists, adjacency._replace(**there))
