"""Prim's algorithm (1957) with a binary heap on the CPU: the plain reference for the others.

From the smallest site of every cluster on, the least bond that leads to a new site is taken.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.trees import OneTree
from percolab.trees.invasion import topology_ground
from percolab.trees.ordered_joins import add_to_tree
from percolab.trees.weights import BondWeights, compute_key


@njit(nogil=True, cache=True)
def make_bond_keys(weights, bonds):
    """Return the keys of bonds by their numbers, uint32 to uint64."""
    keys = np.empty(bonds.size, np.uint64)
    for n in range(bonds.size):
        keys[n] = compute_key(weights, bonds[n])
    return keys


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
    def memory(extent: Extent, items: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes: most of it while the bonds are being listed."""
        return Memory(host=160 * 32 * extent.num_words + 9 * extent.num_points)

    def find(self, weights: BondWeights) -> None:
        keys = make_bond_keys(weights, self._bonds)
        _grow(self._first, self._ends, self._bonds, keys, self.tree)
