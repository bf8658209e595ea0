"""Counts of words in which single bonds, pairs and triples of bonds are open."""

import numpy as np
from numba import njit

from percolab.kernels.bits import popcount


@njit(nogil=True, cache=True)
def count_lanes(columns, one, two, three):
    """Add up the words in which one, two, or three given bonds are open.

    columns: uint32 (32, n), for each bond the words in which it is open, one bit per word.  one,
    two, three: int64 (32,), (32, 32) and (32, 32, 32), with ascending indices.
    """
    both = np.empty_like(columns[0])
    for i in range(32):
        for k in range(both.size):
            one[i] += popcount(columns[i, k])
        for j in range(i + 1, 32):
            total = 0
            for k in range(both.size):
                both[k] = columns[i, k] & columns[j, k]
                total += popcount(both[k])
            two[i, j] += total
            for m in range(j + 1, 32):
                total = 0
                for k in range(both.size):
                    total += popcount(both[k] & columns[m, k])
                three[i, j, m] += total
