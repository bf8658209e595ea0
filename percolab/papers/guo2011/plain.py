"""Two plain ways to find a tree on the CPU, with which Guo et al. and the tests compare.

Prim's algorithm (1957) with a binary heap: from the smallest site of every cluster on, the least
bond that leads to a new site is taken.  Boruvka's (1926): in every round each cluster takes its
least bond outward; the clusters that these bonds join are the next round's, at most half as many.
"""

from heapq import heappop, heappush

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.kernels.memory import Memory
from percolab.kernels.union_find import find_halving, union_halving
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.trees import OneTree
from percolab.trees.invasion import topology_ground
from percolab.trees.ordered_joins import add_to_tree
from percolab.trees.weights import BondWeights, make_bond_keys


@njit(nogil=True, cache=True)
def _grow(first, ends, bonds, keys, tree):
    """Write the forest to ``tree``, uint32 words.

    first: int64 (points + 1,), where the bonds of a site start in the next three: other ends,
    int64, numbers, uint32, and keys, uint64.
    """
    reached = np.zeros(first.size - 1, np.bool_)
    heap = [(uint64(0), uint32(0), int64(0)) for _ in range(0)]
    for start in range(reached.size):
        site = start
        while not reached[site]:
            reached[site] = True
            for n in range(first[site], first[site + 1]):
                if not reached[ends[n]]:
                    heappush(heap, (keys[n], bonds[n], ends[n]))
            while heap and reached[heap[0][2]]:
                heappop(heap)
            if heap:
                _, bond, site = heappop(heap)
                add_to_tree(tree, bond)


class Heap(OneTree):
    """The minimum spanning tree of one sample (:class:`percolab.trees.Trees`)."""

    def __init__(self, topology: Topology, capacity: int = 1) -> None:
        super().__init__(topology)
        ground = topology_ground(topology)
        self._first, (self._ends, numbers) = ground.first, ground.steps.T.copy()
        self._bonds = numbers.astype(np.uint32)

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes: most of it while the bonds are being listed."""
        return Memory(host=160 * 32 * extent.num_words + 9 * extent.num_points)

    def find(self, weights: BondWeights) -> None:
        keys = make_bond_keys(weights, self._bonds)
        _grow(self._first, self._ends, self._bonds, keys, self.tree)


@njit(nogil=True, cache=True)
def _rounds(bonds, keys, ends, parents, least, tree):
    """Add the bonds of the forest to ``tree``, uint32 words.

    bonds:   uint32, numbers of all bonds, ascending; overwritten, as the next two are
    keys:    uint64, their keys
    ends:    int32 (bonds, 2), the sites at both ends, later the clusters
    parents: int32 (points,), a union-find in which every site is a cluster
    least:   int64 (points,), scratch: the least bond outward of a cluster, by its root
    """
    live = int64(bonds.size)
    while live > 0:
        # Bonds stay in order, so that of two with equal keys the one that comes later is larger.
        kept = int64(0)
        least[:] = -1
        for n in range(live):
            i = find_halving(parents, uint32(ends[n, 0]))
            j = find_halving(parents, uint32(ends[n, 1]))
            if i == j:
                continue
            bonds[kept], keys[kept], ends[kept, 0], ends[kept, 1] = bonds[n], keys[n], i, j
            for root in (i, j):
                if least[root] < 0 or keys[kept] < keys[least[root]]:
                    least[root] = kept
            kept += 1
        live = kept
        for root in range(least.size):
            n = least[root]
            # Two clusters may take the same bond; the second of them finds it joined.
            if n >= 0:
                add_to_tree(tree, bonds[n])
                union_halving(parents, uint32(ends[n, 0]), uint32(ends[n, 1]))


class Boruvka(OneTree):
    """The minimum spanning tree of one sample (:class:`percolab.trees.Trees`)."""

    def __init__(self, topology: Topology, capacity: int = 1) -> None:
        super().__init__(topology)
        klass, owner, other = topology.bonds().T
        self._bonds = (klass * 32 * topology.num_words + owner).astype(np.uint32)
        self._ends = np.column_stack([owner, other]).astype(np.int32)

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes: most of it while the bonds are being listed."""
        bonds = 32 * extent.num_words
        return Memory(host=52 * bonds + 4 * extent.num_words + 12 * extent.num_points)

    def find(self, weights: BondWeights) -> None:
        points, keys = self.topology.num_points, make_bond_keys(weights, self._bonds)
        parents, least = np.arange(points, dtype=np.int32), np.empty(points, np.int64)
        _rounds(self._bonds.copy(), keys, self._ends.copy(), parents, least, self.tree)
