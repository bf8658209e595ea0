"""Prim's algorithm (1957) with a binary heap on the CPU: the plain reference for the others.

From the smallest site of every cluster on, the least bond that leads to a new site is taken.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numba import int64, njit, uint32, uint64
from numpy.typing import NDArray

from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology, pack_bits
from percolab.trees.tree import OneTree
from percolab.trees.weights import BondWeights, compute_key


@njit(nogil=True, cache=True)
def make_bond_keys(weights, bonds):
    """Return the keys of bonds by their numbers, uint32 to uint64."""
    keys = np.empty(bonds.size, np.uint64)
    for n in range(bonds.size):
        keys[n] = compute_key(weights, bonds[n])
    return keys


@njit(nogil=True, cache=True)
def _grow(first, listed, others, bonds, keys, chosen):
    """Mark which bonds are in the forest.

    first:  int64 (points + 1,), where the bonds of a site start in the next two
    listed: int64, positions of bonds in ``bonds``, uint32, and ``keys``, uint64
    others: int64, their other ends
    chosen: bool, by position
    """
    reached = np.zeros(first.size - 1, np.bool_)
    heap = [(uint64(0), uint32(0), int64(0)) for _ in range(0)]
    for start in range(reached.size):
        if reached[start]:
            continue
        site = start
        reached[site] = True
        while True:
            for entry in range(first[site], first[site + 1]):
                if not reached[others[entry]]:
                    n = listed[entry]
                    heappush(heap, (keys[n], bonds[n], int64(entry)))
            while heap and reached[others[heap[0][2]]]:
                heappop(heap)
            if not heap:
                break
            entry = heappop(heap)[2]
            site = others[entry]
            reached[site] = True
            chosen[listed[entry]] = True


class Heap(OneTree):
    """The minimum spanning tree of one sample (:class:`percolab.trees.tree.Trees`).

    bonds: uint32, the numbers of all bonds, ascending
    """

    def __init__(self, topology: Topology, capacity: int = 1) -> None:
        super().__init__(topology)
        klass, owner, other = topology.bonds().T
        self.bonds = (klass * 32 * topology.num_words + owner).astype(np.uint32)
        # Every bond is listed at both its ends.
        ends = np.concatenate([owner, other])
        order = np.argsort(ends, kind="stable")
        self._listed = order % max(self.bonds.size, 1)
        self._others = np.concatenate([other, owner])[order]
        self._first = np.searchsorted(ends[order], np.arange(topology.num_points + 1))
        self._chosen = np.zeros(self.bonds.size, bool)

    @staticmethod
    def memory(extent: Extent, items: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes: most of it while the bonds are being listed."""
        return Memory(host=120 * 32 * extent.num_words + 9 * extent.num_points)

    def find(self, weights: BondWeights) -> None:
        """Find the tree by weights."""
        self._chosen[:] = False
        keys = make_bond_keys(weights, self.bonds)
        _grow(self._first, self._listed, self._others, self.bonds, keys, self._chosen)

    def words(self, items: int) -> NDArray[np.uint32]:
        """Return the bonds of the tree, uint32 (1, words of all classes)."""
        flags = np.zeros(32 * self.topology.num_bond_words, bool)
        flags[self.bonds[self._chosen]] = True
        return pack_bits(flags)[None]
