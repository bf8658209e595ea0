"""Flow through few large samples on a CUDA device: all blocks work on one sample at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.flows import tile_forest_cuda as forests
from percolab.flows import tile_trees_cuda as trees
from percolab.flows.open_bonds_cuda import OpenNet, open_bonds_kernel
from percolab.flows.tile_net import TILE, TileNet
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import zero_kernel
from percolab.measure.rows import LARGEST

#: The types of the arrays of a :class:`~percolab.flows.tile_forest_cuda.TileForest`.
_FOREST = np.uint32, *[np.uint64] * 3, *[np.uint32] * 5
KINDS: dict[str, tuple[Any, ...]] = {
    "bridges": _FOREST,
    "bridge_free": _FOREST,
    "backbone": (*_FOREST, np.uint32, np.uint32, np.uint8),
}
#: Paths that a node follows in each of the first jumps to the root, the number of these jumps, and
#: no limit.  Without short first jumps the blocks that run first would follow all paths alone.
_HOPS, _SHORT_JUMPS, _NO_LIMIT = 8, 5, 2**32 - 1
#: Number of blocks that orient the pieces of a forest.
_BLOCKS = 4 * 132


class LargeFlow:
    """A measurement of the flow through every sample of a labeler's batch, one after the other.

    net: of its topology, on the host.  word: a key of :data:`KINDS`.  numbers: how many numbers a
    sample has.
    """

    def __init__(self, labeler: Any, net: TileNet, word: str, numbers: int) -> None:
        self._labeler, self._word = labeler, word
        self._bonds, self._tiles = TileNet(*map(cuda.to_device, net)), net.starts.size - 1
        bonds, at = (cuda.device_array(each.size, each.dtype) for each in (net.bonds, net.at))
        stops = cuda.device_array(self._tiles, np.uint32)
        self._net = OpenNet(self._bonds.starts, stops, bonds, at, self._bonds.owners)
        arrays = [cuda.device_array(net.owners.size, kind) for kind in KINDS[word]]
        # For bridges the last arrays are not used, so one array serves for all of them.
        unused = arrays[:1] * (len(forests.TileForest._fields) - len(arrays))
        self._forest = forests.TileForest(*arrays, *unused)
        self._entry, self._count = (cuda.device_array(1, np.uint32) for _ in range(2))
        self._sums = cuda.device_array(numbers, np.uint64)
        self._numbers = cuda.device_array((labeler.batch.capacity, numbers), np.uint64)

    def rows(self, entries: int) -> NDArray[np.int64]:
        """Return the numbers of the first entries of the batch, (entries, numbers)."""
        launches = self._labeler.batch.launches
        for array in (self._entry, self._sums):
            launches.each(zero_kernel, array.size, 1, array, np.uint32(array.size))
        for _ in range(entries):
            launches.call((self._word, "all blocks"), self._read)
        launches.wait()
        if self._word == "bridge_free":
            return np.asarray(self._labeler.join(entries).rows()[:, LARGEST, None])
        rows: NDArray[np.int64] = self._numbers[:entries].copy_to_host().view(np.int64)
        return rows

    def _read(self) -> None:
        """Read the numbers of the current entry, store them, and go on to the next entry."""
        batch, forest, net, entry = self._labeler.batch, self._forest, self._net, self._entry
        samples, launches, inner = batch.keys.on_device.samples, batch.launches, self._tiles - 1
        is_red, closing = self._word == "backbone", np.uint32(self._word == "bridge_free")
        opened = batch.opened, np.uint32(batch.topology.num_bond_words), entry
        launches.each(zero_kernel, 1, 1, self._count, np.uint32(1))
        self._by_tiles(open_bonds_kernel, self._bonds, *opened, closing, net, self._sums)
        if is_red:
            # The bonds of leaves are none.
            launches.each(zero_kernel, 1, 1, self._sums, np.uint32(1))
        self._by_tiles(forests.pieces_kernel, net, forest)
        launches.blocks(forests.join_pieces_kernel, inner, TILE, net, forest)
        self._by_tiles(forests.list_lowest_kernel, forest, self._count)
        launches.blocks(forests.orient_kernel, _BLOCKS, 128, forest, self._count)
        launches.blocks(forests.branches_kernel, inner, TILE, net, entry, samples, forest)
        launches.blocks(forests.terminals_kernel, 1, TILE, entry, samples, forest)
        self._by_tiles(trees.count_children_kernel, forest)
        self._climb_heads(np.uint32(0))
        wanted = np.uint32(is_red), closing
        self._by_tiles(trees.words_kernel, *opened, samples, forest, *wanted, self._sums)
        if is_red:
            self._find_backbone()
        launches.blocks(trees.keep_kernel, 1, 1, self._sums, self._entry, self._numbers)

    def _find_backbone(self) -> None:
        """Find trails and the backbone."""
        forest, net, nodes = self._forest, self._net, self._net.owners.size
        arrays = forest.ends, np.uint32(nodes)
        self._labeler.batch.launches.each(zero_kernel, nodes, 1, *arrays)
        self._by_tiles(trees.number_kernel, forest)
        for most in (*[_HOPS] * _SHORT_JUMPS, _NO_LIMIT):
            self._by_tiles(trees.jump_kernel, forest, np.uint32(most))
        self._by_tiles(trees.begin_blocks_kernel, net, forest)
        self._by_tiles(trees.ranges_kernel, net, forest)
        self._climb_heads(np.uint32(1))
        self._by_tiles(trees.fences_kernel, forest)
        self._by_tiles(trees.join_kernel, net, forest)
        self._by_tiles(trees.mark_block_kernel, net, forest)
        self._by_tiles(trees.count_marks_kernel, net, forest, self._sums)

    def _climb_heads(self, of_numbers: np.uint32) -> None:
        """Sum words and sizes up the heads, or find ranges, and bring the results into tiles."""
        self._by_tiles(trees.climb_heads_kernel, self._forest, of_numbers)
        self._by_tiles(trees.bring_in_kernel, self._forest, of_numbers)

    def _by_tiles(self, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel with a block for each tile."""
        self._labeler.batch.launches.blocks(kernel, self._tiles, TILE, *arguments)
