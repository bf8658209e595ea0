"""Consolidation by label relaxation over the borders of tiles, until no label changes.

A bond between two tiles makes an entry for each of them.  First the roots, in their tiles, of the
ends of all open ones are found and stored.  Then, step by step, a tile lowers the labels of its
roots to those of the roots beyond its border: one block a tile, one thread an entry.  The host
reads after each step whether a label changed; a step is a captured call, of which there are many.

Against the paper: labels are lowered by atomics, so that the smallest of several that meet at a
root stays.
"""

from typing import ClassVar, NamedTuple

import numpy as np
from numba import uint32, uint64

from percolab.kernels.atomics import atomic_min
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.kernels.neighbours import has_bit
from percolab.kernels.union_find import find
from percolab.lattices.topology import unpack_bits
from percolab.papers.weigel2011.tiles import TileStep, num_tiles


class TileEdges(NamedTuple):
    """The bonds between tiles, one entry for each of the two tiles, tile after tile.

    bonds:  int64, their numbers 32 * word + bit
    own:    int32, the end in the tile
    beyond: int32, the end in the other tile
    first:  uint32 (tiles + 1,), the first entry of each tile, and the number of entries
    """

    bonds: object
    own: object
    beyond: object
    first: object


def make_border(topology, tiles):
    """Return the border between tiles, and all bonds across periodic boundaries, on the host."""
    width, edge = int(tiles.width), int(tiles.edge)
    x, y = (np.arange(points) % edge for points in topology.shape)
    stride = 32 * topology.num_words
    bonds, owners, others = [], [], []
    for k in range(topology.num_classes):
        owner, end, _ = (part.astype(np.int64) for part in topology.list_periodic_bonds(k))
        bonds.append(k * stride + owner)
        owners.append(owner)
        others.append(end)
    for k, (right, down) in enumerate(topology.offsets):
        leaves_x = (x + right < 0) | (x + right >= edge)
        leaves_y = (y + down < 0) | (y + down >= edge)
        leaves = (leaves_x | leaves_y[:, np.newaxis]).ravel()
        owner = np.flatnonzero(
            leaves & unpack_bits(topology.compute_inside(k), topology.num_points)
        )
        bonds.append(k * stride + owner)
        owners.append(owner)
        others.append(owner + topology.deltas[k])
    bond, owner, other = (np.concatenate(part) for part in (bonds, owners, others))
    bond, own, beyond = np.tile(bond, 2), np.append(owner, other), np.append(other, owner)
    across = -(-width // edge)
    tile = own // width // edge * across + own % width // edge
    order = np.argsort(tile, kind="stable")
    counts = np.bincount(tile, minlength=num_tiles(topology.shape, edge))
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    return TileEdges(
        bond[order], own[order].astype(np.int32), beyond[order].astype(np.int32), first
    )


@cuda.jit(cache=True)
def prepare_relaxation_kernel(roots, labels, num_points, opened, words, border):
    """Store the roots at both ends of every open bond of every entry; of a closed one the site 0.

    roots: uint32 (capacity, 2, ends).  words: bond words of an entry.
    """
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < border.bonds.size:
        bond = uint64(border.bonds[n])
        start, base = uint32(entry * num_points), uint32(entry * words)
        own, beyond = uint32(0), uint32(0)
        if has_bit(opened[uint32(base + uint32(bond >> uint64(5)))], bond & uint64(31)):
            own = find(labels, start, uint32(border.own[n]))
            beyond = find(labels, start, uint32(border.beyond[n]))
        roots[entry, 0, n], roots[entry, 1, n] = own, beyond


@cuda.jit(cache=True)
def relaxation_kernel(labels, num_points, roots, border, last_change, step):
    """Lower the labels of every tile's roots; ``last_change`` becomes ``step`` if one changed.

    last_change, step: uint32 (1,)
    """
    tile, entry = uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y)
    start = uint32(entry * num_points)
    n = uint32(border.first[tile] + uint32(cuda.threadIdx.x))
    end = uint32(border.first[uint32(tile + uint32(1))])
    while n < end:
        own, beyond = uint32(start + roots[entry, 0, n]), uint32(start + roots[entry, 1, n])
        low = labels[beyond]
        if low < labels[own]:
            atomic_min(labels, own, low)
            last_change[0] = step[0]
        n = uint32(n + uint32(cuda.blockDim.x))


class Relaxation(TileStep):
    """Label relaxation; the label of a tile's root becomes the smallest site of the cluster.

    steps: how many the last ``run`` made, the one included in which nothing changed
    """

    is_capturable: ClassVar[bool] = False

    def __init__(self, batch, labels, tiles):
        super().__init__(batch, labels, tiles)
        border = make_border(batch.topology, tiles)
        self._ends = border.bonds.size
        self._border = TileEdges(*(cuda.to_device(part) for part in border))
        self._roots = cuda.device_array((batch.capacity, 2, max(self._ends, 1)), np.uint32)
        # The number of a step, and of the last one in which a label changed.  Steps are counted
        # through, so that what an earlier call noted cannot be taken for this.
        self._step, self._last_change = (cuda.to_device(np.zeros(1, np.uint32)) for _ in range(2))
        self._pinned_step, self._pinned_change = (cuda.pinned_array(1, np.uint32) for _ in range(2))
        self._pinned_step[0] = 0
        #: What captured steps of this object are known by, among all of the batch.
        self._key = object()
        self.steps = 0

    @staticmethod
    def memory(extent, edge, entries):
        """Return the bytes of the border and of the roots stored for its ends."""
        width, height = extent.shape
        tiles_x, tiles_y = -(-width // edge), -(-height // edge)
        across = sum(
            (tiles_x - 1) * height * abs(right) + (tiles_y - 1) * width * abs(down)
            for right, down in extent.offsets
        )
        ends = 2 * (across + extent.periodic_bonds)
        return ends * (16 + 8 * entries) + 4 * (tiles_x * tiles_y + 1)

    def run(self, entries):
        """Join the clusters of all tiles."""
        self.steps = 0
        if self._ends:
            self._prepare(entries)
            while self._changes(entries):
                pass

    def _prepare(self, entries):
        batch, points = self.batch, self.batch.adjacency.num_points
        words = np.uint32(batch.topology.num_bond_words)
        sources = self.labels, points, batch.opened, words, self._border
        batch.launches.one(prepare_relaxation_kernel, self._ends, entries, self._roots, *sources)

    def _changes(self, entries):
        """Make a step; return whether a label changed."""
        self.steps += 1
        self._pinned_step += np.uint32(1)
        self.batch.launches.call((self._key, entries), lambda: self._relax(entries))
        self.batch.launches.wait()
        return bool(self._pinned_change[0] == self._pinned_step[0])

    def _relax(self, entries):
        launch, points = self.batch.launches, self.batch.adjacency.num_points
        threads = min(4 * int(self.tiles.edge), THREADS)
        launch.upload(self._step, self._pinned_step)
        work = self.labels, points, self._roots, self._border, self._last_change, self._step
        launch.blocks(relaxation_kernel, (self.num_tiles, entries), threads, *work)
        launch.download(self._last_change, self._pinned_change)
