"""Rows of packed bits, put one after the other at any bit: how masks over a grid are made."""

from __future__ import annotations

from numba import njit, uint32


@njit(nogil=True, cache=True)
def put_rows(words, rows, bits, there):
    """Put a row of ``bits`` bits at every place n that is there, from bit ``n * bits`` on.

    words: uint32, zeros before; rows: uint32 (kinds, words of a row), taken in turns, with zeros
    after their bits; there: bool (places,)
    """
    kinds, count = rows.shape
    for n in range(there.size):
        if there[n]:
            row = rows[n % kinds]
            place, shift = (n * bits) >> 5, uint32((n * bits) & 31)
            words[place] |= uint32(row[0] << shift)
            if shift == 0:
                for j in range(1, count):
                    words[place + j] |= row[j]
            else:
                back = uint32(uint32(32) - shift)
                for j in range(1, count):
                    words[place + j] |= uint32(uint32(row[j] << shift) | uint32(row[j - 1] >> back))
                beyond = uint32(row[count - 1] >> back)
                if beyond != 0:
                    words[place + count] |= beyond
