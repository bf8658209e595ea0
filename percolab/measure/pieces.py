"""Pieces of a configuration: what open bonds join that cross no periodic boundary."""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint32
from numpy.typing import NDArray

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.union_find import union_halving
from percolab.lattices.topology import Topology


def find_pieces(topology: Topology, opened: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return the smallest site of every site's piece, int32 (num_points,).

    opened: uint32 (num_classes, num_words), the open bonds.
    """
    inner = opened & topology.exists
    if topology.periodic_words is not None:
        inner &= ~topology.periodic_words
    parents = np.arange(topology.num_points, dtype=np.int32)
    join_inner_bonds(inner, topology.deltas, parents)
    return parents


@njit(nogil=True, cache=True)
def join_inner_bonds(words, deltas, parents):
    """Join the ends i and i + delta of bonds; every parent is then the smallest site of its tree.

    words: uint32 (num_classes, num_words).  parents: int32 (num_points,), each site its own.
    """
    for k in range(words.shape[0]):
        for word in range(words.shape[1]):
            left = words[k, word]
            while left != uint32(0):
                i = int64(32 * word + trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                union_halving(parents, i, i + deltas[k])
    for i in range(parents.size):
        # A parent is never larger than its child, so that it has its root already.
        parents[i] = parents[parents[i]]
