"""Minimum spanning trees of many samples on a CUDA device, by Boruvka's algorithm.

A lattice is cut into tiles, and a block of threads joins each tile in shared memory as far as its
inner bonds decide (:mod:`percolab.trees.tiles_cuda`).  The remaining bonds, and all bonds of other
topologies, are joined in rounds over lists (:mod:`percolab.trees.rounds_cuda`).  Several rounds
are captured as one CUDA graph; a round without bonds takes a few microseconds, so the host checks
only at the end of a graph whether bonds are left.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import CudaBatch, copied_by_class
from percolab.bonds.model import BOND
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.launches import THREADS
from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.lattices.grid import parts_in_boxes
from percolab.lattices.topology import PartWords, Topology, find_set_bits
from percolab.trees import rounds_cuda as rounds
from percolab.trees import tiles_cuda as tiles
from percolab.trees.kruskal_tiles import count_crossing

#: Numbers of rounds in the first captured graph over light bonds and then over all bonds, odd, so
#: that they end at the first list and at the second; and of rounds in further graphs, even.
LIGHT_ROUNDS, ALL_ROUNDS, MORE_ROUNDS = 9, 5, 4
#: The number of light bonds, relative to the number at the percolation threshold.
LIGHT_RATIO = 1.15
#: The largest number of blocks that process a list: enough to fill a device, and few enough to
#: cost little if the list is empty.
_MOST_BLOCKS = 3 if SIMULATED else 2048
_AXES = 3


def are_tiled(shape: tuple[int, ...], classes: int) -> bool:
    """Return whether a topology with this shape and number of bond classes is cut into tiles."""
    return 0 < len(shape) <= _AXES and 0 < classes <= tiles.MOST_CLASSES


def tile_extents(dimension: int) -> tuple[int, int, int]:
    """Return the binary logarithms of a tile's grid points along each axis.

    >>> sum(tile_extents(2)) == sum(tile_extents(3)) == tiles.SITE_BITS
    True
    """
    low, more = divmod(tiles.SITE_BITS, dimension)
    x, y, z = (low + (axis < more) if axis < dimension else 0 for axis in range(_AXES))
    return x, y, z


class BoruvkaCuda:
    """The trees of up to ``capacity`` samples (:class:`percolab.trees.Trees`).

    batch:     has the words of the trees as open bonds, for labelers
    launches:  the stream of all work
    is_tiled:  whether the topology is cut into tiles
    generator: of the samples of the last trees, or None if their keys were given
    """

    def __init__(self, topology: Topology, capacity: int = 1, *, tiled: bool = True) -> None:
        """Allocate memory for trees; ``tiled=False``: use no tiles even if that is possible.

        ValueError: too many bonds for their numbers.
        """
        slots = 32 * topology.num_bond_words
        # The number 2^32 - 1 means no bond.
        if slots >= 2**32:
            raise ValueError(f"{slots} bond numbers do not fit in 32 bits")
        capacity = min(capacity, (2**32 - 1) // max(slots, topology.num_points))
        self.topology = topology
        self.batch = CudaBatch(topology, BOND, capacity)
        self.capacity = capacity = self.batch.capacity
        self.launches = self.batch.launches
        self.generator: int | None = None
        self._slots = slots
        self._light = np.uint32(largest_light_prefix(topology))
        sites = capacity * topology.num_points
        self._forest = rounds.BoruvkaForest(
            parents=cuda.device_array(sites, np.uint32),
            best=cuda.device_array(sites, np.uint64),
            tree=self.batch.opened,
        )
        self._prefixes = cuda.device_array(capacity * slots, np.uint32)
        self._counts = cuda.device_array(rounds.COUNTS, np.uint32)
        self._left = cuda.pinned_array(rounds.COUNTS, np.uint32)
        self._given = cuda.device_array(1, np.uint64)
        self._limits = cuda.device_array(2, np.uint64)
        self.is_tiled = tiled and are_tiled(topology.shape, topology.num_classes)
        room = topology.num_bonds
        if self.is_tiled:
            self._cut()
            undecided = estimate_undecided_bonds(topology.num_points)
            room = min(room, int(self._crossing.size) + undecided)
        self._make_lists(capacity * room)

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        """Return the memory needed; it is more if many given keys agree in 31 digits."""
        slots, points = 32 * extent.num_words, extent.num_points
        room = extent.num_classes * points
        own = CudaBatch.memory(extent, BOND, entries)
        if are_tiled(extent.shape, extent.num_classes):
            crossing = min(count_crossing(extent, tile_extents(len(extent.shape))), room)
            room = min(room, crossing + estimate_undecided_bonds(points))
            # All entries share the words of inner bonds, and the numbers of the other bonds.
            shared = 4 * (extent.num_words + crossing)
            own = own.plus(Memory(host=shared, device=shared))
        own = own.plus(Memory(host=16, device=entries * (12 * points + 4 * slots + 32 * room) + 36))
        return own.plus(Memory(device=8 * slots)) if given else own

    def _cut(self) -> None:
        top = self.topology
        extents = tile_extents(len(top.shape))
        shape = [*top.shape, 1, 1][:_AXES]
        counts = [-(-n // 2**extent) for n, extent in zip(shape, extents, strict=True)]
        offsets = [[*offset, 0, 0][:_AXES] for offset in top.offsets]
        wide, high, _ = extents
        shifts = [x + (y << wide) + (z << (wide + high)) for x, y, z in offsets]
        edges = [1 << extent for extent in extents]

        def inner_parts(k: int) -> Iterator[PartWords]:
            return parts_in_boxes(top, k, edges)

        numbers = []
        for k in range(top.num_classes):
            parts = zip(top.exists_parts(k), inner_parts(k), strict=True)
            for (first, exists), (_, inner) in parts:
                owners = find_set_bits(exists ^ inner).astype(np.uint32)
                numbers.append(owners + np.uint32(32 * (k * top.num_words + first)))
        self._num_tiles = prod(counts)
        self._tiles = tiles.BoruvkaTiles(
            shape=tuple(map(np.uint32, shape)),
            extents=tuple(map(np.uint32, extents)),
            counts=tuple(map(np.uint32, counts)),
            # Addition is modulo 2^32.
            shifts=tuple(np.uint32(shift % 2**32) for shift in shifts),
            inner=copied_by_class(top, inner_parts),
            num_words=np.uint32(top.num_words),
            words_per_entry=np.uint32(top.num_bond_words),
            points=np.uint32(top.num_points),
        )
        self._crossing = cuda.to_device(np.concatenate(numbers))

    def _make_lists(self, room: int) -> None:
        self._room = room
        # Free the old lists first, so that old and new ones need not fit together.
        self._lists: tuple[rounds.CandidateList, ...] = ()
        one, other, third, fourth = (cuda.device_array(max(room, 1), np.uint64) for _ in range(4))
        self._lists = rounds.CandidateList(one, other), rounds.CandidateList(third, fourth)

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        entries, self.generator = len(samples), generator
        self.batch.keys.write(seed, samples, np.zeros(entries, np.uint64))
        keys = self._keys(generator, is_given=False)

        def draw() -> None:
            self.batch.keys.upload(entries)
            words = self.topology.num_bond_words
            drawn = keys, np.uint32(entries * words), np.uint32(words), self._prefixes
            self.launches.one(rounds.prefixes_kernel, entries * words, 1, *drawn)
            self._join(keys, entries)

        self._finish(("build", generator, entries), draw, keys)
        return entries

    def build_given(self, keys: NDArray[np.uint64]) -> int:
        self.launches.wait()
        if self._given.size != self._slots:
            self.launches.forget()
            self._given = cuda.device_array(self._slots, np.uint64)
        self._given.copy_to_device(np.ascontiguousarray(keys, np.uint64))
        self._limits.copy_to_device(np.array([2**64 - 1, 0], np.uint64))
        limits = self.batch.exists, self._given, self._limits
        self.launches.each(rounds.limits_kernel, self._slots, 1, *limits)
        self.launches.wait()
        self.generator = None
        round_keys = self._keys(0, is_given=True)

        def draw() -> None:
            given = self._given, self._limits, self._prefixes
            self.launches.each(rounds.given_prefixes_kernel, self._slots, 1, *given)
            self._join(round_keys, 1)

        self._finish(("given",), draw, round_keys)
        return 1

    @property
    def scratch(self) -> Any:
        """Device memory, one uint32 per site of the batch, free for use between two calls."""
        return self._forest.parents

    def words(self, entries: int) -> NDArray[np.uint32]:
        return self.batch.copy_open_words(entries)

    def _keys(self, generator: int, *, is_given: bool) -> rounds.RoundKeys:
        given = self._given, self._limits, np.uint32(is_given), np.uint32(self._slots)
        return rounds.RoundKeys(generator, self.batch.keys.on_device.samples, *given)

    def _join(self, keys: rounds.RoundKeys, entries: int) -> None:
        """Launch all that follows the prefixes: lists, the first rounds, the remaining rounds."""
        top, launch, forest = self.topology, self.launches, self._forest
        sites, words = entries * top.num_points, entries * top.num_bond_words
        listed = entries * int(self._crossing.size) if self.is_tiled else 0
        begin = forest.parents, np.uint32(sites), forest.tree, np.uint32(words)
        counted = self._counts, np.uint32(listed), np.uint32(self.is_tiled)
        launch.each(rounds.begin_kernel, max(sites, words), 1, *begin, *counted)
        first, second = self._lists
        # The distribution of given keys is unknown, so all of them are light.
        light = np.uint32(rounds.NO_SITE) if keys.is_given else self._light
        if self.is_tiled:
            ends = self._crossing, self.batch.adjacency, keys.slots
            bonds = self._prefixes, forest.parents, first.bonds
            launch.one(tiles.crossing_kernel, self._crossing.size, entries, *ends, *bonds)
            own = self._tiles, self._prefixes, forest, first.bonds, self._counts, light
            shared, grid = tiles.CLASS_BYTES * top.num_classes, (self._num_tiles, entries)
            launch.blocks(tiles.tile_kernel, grid, tiles.TILE_THREADS, *own, shared=shared)
        else:
            every = self.batch.exists, np.uint32(words), self._prefixes, first, self._counts
            launch.one(rounds.list_all_kernel, words, 1, *every)
        blocks, counts = (self._blocks, THREADS), self._counts
        ends = forest, self.batch.adjacency, keys.slots
        launch.blocks(rounds.first_ends_kernel, *blocks, *ends, first.bonds, counts, light, second)
        self._rounds(keys, LIGHT_ROUNDS, 1)
        launch.blocks(rounds.heavy_ends_kernel, *blocks, *ends, second.bonds, counts, first)
        self._rounds(keys, ALL_ROUNDS, 0)
        launch.download(counts, self._left)

    def _rounds(self, keys: rounds.RoundKeys, number: int, source: int) -> None:
        """Launch rounds; the first one reads list number ``source``."""
        launch, forest, size = self.launches.blocks, self._forest, (self._blocks, THREADS)
        for _ in range(number):
            listed = np.int32(source), self._lists[source], self._counts
            launch(rounds.offer_kernel, *size, keys, forest.best, *listed)
            launch(rounds.hook_kernel, *size, forest, *listed)
            launch(rounds.ends_kernel, *size, forest, *listed, self._lists[1 - source])
            source = 1 - source

    @property
    def _blocks(self) -> int:
        return max(min(-(-self._room // THREADS), _MOST_BLOCKS), 1)

    def _finish(self, key: tuple[Any, ...], begin: Any, keys: rounds.RoundKeys) -> None:
        """Run ``begin``, then rounds until no bond is left.

        If a list was too short for all bonds, make a longer one and start again.
        """
        self.launches.call(key, begin)
        self.launches.wait()
        if self._left[rounds.BEGINNING] > self._room:
            self.launches.forget()
            most = self.capacity * self.topology.num_bonds
            self._make_lists(min(2 * int(self._left[rounds.BEGINNING]), most))
            self.launches.call(key, begin)
            self.launches.wait()

        def more() -> None:
            self._rounds(keys, MORE_ROUNDS, 1)
            self.launches.download(self._counts, self._left)

        while self._left[1]:
            self.launches.call(("more", *key), more)
            self.launches.wait()


def largest_light_prefix(topology: Topology) -> int:
    """Return the largest prefix of light bonds, which rounds do not postpone.

    Light bonds should be few and yet join most sites.  In d dimensions, with a mean of z bonds per
    site, the threshold of bond percolation is close to d / ((d - 1) z) (V. A. Vyssotsky, S. B.
    Gordon, H. L. Frisch, J. M. Hammersley, Phys. Rev. 123, 1566 (1961)), or 1 / z for large d.
    """
    dimension = len(topology.shape)
    share = 1.0
    if dimension != 1 and topology.num_bonds:
        of_dimension = dimension / (dimension - 1) if dimension else 1.0
        share = LIGHT_RATIO * of_dimension * topology.num_sites / (2 * topology.num_bonds)
    return int(min(share, 1.0) * rounds.NO_SITE)


def estimate_undecided_bonds(points: int) -> int:
    """Return the initial room for a sample's inner bonds that tiles leave undecided.

    There is one such bond in twenty sites on the square lattice, and one in six on the cubic.
    """
    return points // 4 + 1024
