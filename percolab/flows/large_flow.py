"""What flows through few large samples on a CUDA device: all of its blocks work on one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.flows import tile_paths_cuda as paths
from percolab.flows import tile_trees_cuda as trees
from percolab.flows.tile_net import TILE, TileNet
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import zero_kernel
from percolab.labelers.forest import Reading
from percolab.measure.rows import LARGEST

cuda = load_cuda()

#: The arrays of nodes, by what is measured: distances, and then a forest.
_PATH = np.uint32, np.uint32
_FOREST = np.uint32, *[np.uint64] * 3, *[np.uint32] * 5
KINDS: dict[str, tuple[Any, ...]] = {
    "bridges": _FOREST,
    "bridge_free": _FOREST,
    "backbone": (*_FOREST, np.uint32, np.uint32, np.uint8),
    "connected": _PATH,
    "path": _PATH,
    "path_lengths": _PATH,
}
#: Blocks that share the tiles of a round, at most.
_BLOCKS = 4 * 132


def listed_bytes(net: TileNet) -> int:
    """Return the shared memory in which a block lists the bonds of any tile but the last."""
    return 4 * int(np.diff(net.starts)[:-1].max())


class LargeFlow:
    """Reads what flows through every sample of a labeler's batch, one after the other.

    net: of its topology, on the host.  word: of one of :data:`KINDS`.  numbers: how many are read
    of a sample.
    """

    def __init__(self, labeler: Any, net: TileNet, word: str, numbers: int) -> None:
        self._labeler, self._word = labeler, word
        self._of_clusters = word in ("bridges", "bridge_free")
        searches = 2 if KINDS[word] is _PATH else 1
        self._net = TileNet(*map(cuda.to_device, net))
        self._tiles, self._listed = net.starts.size - 1, listed_bytes(net)
        nodes, items = net.sites.size, searches * self._tiles
        zeros = (np.zeros(n, np.uint32) for n in ((2, items), (2, items), paths.ROUNDS + 1))
        self._front = paths.Front(*map(cuda.to_device, zeros))
        self._left = cuda.pinned_array(1, np.uint32)
        self._away = cuda.device_array((searches, nodes), np.uint32)
        arrays = [cuda.device_array(nodes, kind) for kind in KINDS[word][searches:]]
        # Bridges need no numbers: none of their kernels uses the last arrays.
        unused = arrays[:1] * (len(trees.TileForest._fields) - len(arrays))
        self._forest = trees.TileForest(*arrays, *unused) if searches == 1 else None
        self._entry = cuda.device_array(1, np.uint32)
        self._sums = cuda.device_array(numbers, np.uint64)
        self._numbers = cuda.device_array((labeler.batch.capacity, numbers), np.uint64)

    def rows(self, entries: int) -> NDArray[np.int64]:
        """Return the numbers of the first entries of the batch, (entries, numbers)."""
        labeler, launches = self._labeler, self._labeler.batch.launches
        if self._of_clusters:
            labeler.join(entries, Reading.LABELS).make_labels()
        for array in (self._entry, self._sums):
            launches.each(zero_kernel, array.size, 1, array, np.uint32(array.size))
        for _ in range(entries):
            launches.call((self._word, "begin"), self._begin)
            self._left[0] = 1
            while self._left[0]:
                launches.call((self._word, "rounds"), self._go_rounds)
                launches.wait()
            launches.call((self._word, "read"), self._read)
        launches.wait()
        if self._word == "bridge_free":
            return np.asarray(labeler.join(entries).rows()[:, LARGEST, None])
        rows: NDArray[np.int64] = self._numbers[:entries].copy_to_host().view(np.int64)
        return rows

    def _begin(self) -> None:
        """Begin the searches of the present entry."""
        labels, points = self._entry, 0
        if self._of_clusters:
            labels, points = self._labeler.labels, self._labeler.batch.topology.num_points
        of_all = labels, np.uint32(points), self._entry, self._away, self._front
        launches, nodes = self._labeler.batch.launches, self._net.sites.size
        launches.one(paths.begin_kernel, nodes, 1, self._net, *of_all)

    def _go_rounds(self) -> None:
        """Lower distances, some rounds, and note how many tiles are left to the next."""
        launches, front = self._labeler.batch.launches, self._front
        launches.blocks(paths.next_call_kernel, 1, 1, front)
        grid = min(_BLOCKS, front.flags.shape[1]), paths.THREADS
        for step in range(paths.ROUNDS):
            of_all = *self._bonds, self._away, front, np.uint32(step)
            launches.blocks(paths.round_kernel, *grid, *of_all, shared=self._listed)
        launches.download(front.counts[paths.ROUNDS :], self._left)

    def _read(self) -> None:
        """Read the numbers of the present entry, whose distances are known, and keep them."""
        if self._forest is None:
            self._by_tiles(paths.shortest_kernel, *self._bonds, self._away, self._sums)
        else:
            self._read_forest(self._forest)
        of_all = self._sums, self._entry, self._numbers
        self._labeler.batch.launches.blocks(paths.keep_kernel, 1, 1, *of_all)

    def _read_forest(self, forest: trees.TileForest) -> None:
        """Read bridges, or red bonds, trails and the backbone."""
        batch, sums, bonds = self._labeler.batch, self._sums, self._bonds
        samples, launches = batch.keys.on_device.samples, batch.launches
        launches.blocks(trees.terminals_kernel, 1, TILE, self._entry, samples, forest)
        of_all = *bonds, samples, self._away, forest
        launches.blocks(trees.branches_kernel, self._tiles - 1, TILE, *of_all)
        self._by_tiles(trees.count_children_kernel, forest)
        self._climb_heads(np.uint32(0))
        wanted = np.uint32(not self._of_clusters), np.uint32(self._word == "bridge_free")
        self._by_tiles(trees.words_kernel, *bonds[1:], samples, forest, *wanted, sums)
        if self._of_clusters:
            return
        nodes = forest.ends.size
        launches.each(zero_kernel, nodes, 1, forest.ends, np.uint32(nodes))
        self._by_tiles(trees.number_kernel, forest)
        self._by_tiles(trees.jump_kernel, forest)
        self._by_tiles(trees.begin_blocks_kernel, self._away, forest)
        self._by_tiles(trees.ranges_kernel, *bonds, forest)
        self._climb_heads(np.uint32(1))
        self._by_tiles(trees.fences_kernel, forest)
        self._by_tiles(trees.join_kernel, *bonds, self._away, forest)
        self._by_tiles(trees.mark_block_kernel, forest)
        self._by_tiles(trees.count_marks_kernel, *bonds, forest, sums)

    def _climb_heads(self, of_numbers: np.uint32) -> None:
        """Sum up from head to head, or find ranges, and bring that into the tiles."""
        self._by_tiles(trees.climb_heads_kernel, self._forest, of_numbers)
        self._by_tiles(trees.bring_in_kernel, self._forest, of_numbers)

    def _by_tiles(self, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel whose blocks have a tile each."""
        self._labeler.batch.launches.blocks(kernel, self._tiles, TILE, *arguments)

    @property
    def _bonds(self) -> tuple[Any, ...]:
        """The bonds, which are open, the words of an entry, and which entry is read."""
        batch = self._labeler.batch
        words = np.uint32(batch.topology.num_bond_words)
        return self._net, batch.opened, words, self._entry
