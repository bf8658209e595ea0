"""Rows of packed bits, put one after the other at any bit: how masks over a grid are made."""

from __future__ import annotations

from numba import njit, uint32, uint64


@njit(nogil=True, cache=True)
def put_rows(words, rows, first, bits, there):
    """Put a row of ``bits`` bits at every place n that is there, from bit ``n * bits`` on.

    words: uint32, zeros before; rows: uint32 (kinds, words of a row), taken in turns from row
    ``first`` on, with zeros after their bits; there: bool (places,)
    """
    kinds, count = rows.shape
    for n in range(there.size):
        if there[n]:
            row = rows[(first + n) % kinds]
            place, shift = uint64((n * bits) >> 5), uint32((n * bits) & 31)
            if shift == 0:
                for j in range(uint64(count)):
                    words[place + j] = row[j]
            else:
                back = uint32(uint32(32) - shift)
                words[place] |= uint32(row[0] << shift)
                for j in range(uint64(1), uint64(count)):
                    words[place + j] = uint32(
                        uint32(row[j] << shift) | uint32(row[j - uint64(1)] >> back)
                    )
                beyond = uint32(row[count - 1] >> back)
                if beyond != 0:
                    words[place + uint64(count)] = beyond
