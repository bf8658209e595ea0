"""How often the bonds of a word are open alone, in pairs and in triples."""

from __future__ import annotations

from numba import njit, uint32

from percolab.kernels.bits import popcount
from percolab.kernels.inner import inner


@inner
def _turn(words, columns):
    """Write bit l of all words to column l: uint32 (32 n,) to uint32 (32, n)."""
    columns[:] = uint32(0)
    for w in range(words.size):
        for lane in range(32):
            bit = uint32((words[w] >> uint32(lane)) & uint32(1))
            columns[lane, w >> 5] |= uint32(bit << uint32(w & 31))


@njit(nogil=True, cache=True)
def count_lanes(words, columns, both, one, two, three):
    """Add up the words in which a bond, two, or three given bonds are open.

    words: uint32 (32 n,); columns: uint32 (32, n) and both: uint32 (n,), scratch; one, two, three:
    int64 (32,), (32, 32) and (32, 32, 32), ascending indices.
    """
    _turn(words, columns)
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
