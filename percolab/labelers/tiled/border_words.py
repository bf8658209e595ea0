"""Packed words on the host: list bonds between tiles, mark their ends and count these by tile."""

import numpy as np
from numba import int64, njit, uint32

from percolab.kernels.bits import popcount


@njit(nogil=True, cache=True)
def additional_bits(all_bits, others):
    """Return the indices of words with bits missing in ``others``, and these bits: uint32 (n,)."""
    count = 0
    for n in range(all_bits.size):
        count += (all_bits[n] & ~others[n]) != 0
    words, masks, count = np.empty(count, np.uint32), np.empty(count, np.uint32), 0
    for n in range(all_bits.size):
        left = all_bits[n] & ~others[n]
        if left != 0:
            words[count], masks[count] = n, left
            count += 1
    return words, masks


@njit(nogil=True, cache=True)
def join_bonds(owners, ends, codes, words, masks, deltas):
    """Combine successive bonds with the same word, delta and code into one entry.

    owners, ends, codes: those of bonds, by ascending owner.  words, masks, deltas: of equal length,
    get the entries' words of sites, bits, and deltas (other end less owner).  The entries' codes
    overwrite those of the bonds.  Return the number of entries.
    """
    count = 0
    for n in range(owners.size):
        word, delta, code = owners[n] >> 5, ends[n] - owners[n], codes[n]
        last = count - 1
        if n == 0 or word != words[last] or delta != deltas[last] or code != codes[last]:
            words[count], masks[count], deltas[count], codes[count] = word, 0, delta, code
            last, count = count, count + 1
        masks[last] |= uint32(1) << uint32(owners[n] & 31)
    return count


@njit(nogil=True, cache=True)
def mark_both_ends(border, words, masks, lengths, deltas):
    """Set the bits of both ends of bonds between tiles (``CrossingBonds``), in place."""
    n, size = int64(0), uint32(border.size)
    for run in range(lengths.size):
        for _ in range(lengths[run]):
            owner, mask = uint32(words[n] % size), masks[n]
            border[owner] |= mask
            first = int64(int64(owner) << int64(5)) + deltas[run]
            place, shift = int64(first >> int64(5)), uint32(first & int64(31))
            low = uint32(mask << shift)
            # A word without an end may lie outside of the array.
            if low != uint32(0):
                border[place] |= low
            if shift != uint32(0):
                high = uint32(mask >> uint32(uint32(32) - shift))
                if high != uint32(0):
                    border[place + 1] |= high
            n += 1


@njit(nogil=True, cache=True)
def count_in_tiles(border, shape, extents, tiles):
    """Return the number of border sites of every tile, int32.

    shape, extents, tiles: grid points of the lattice and of a tile, and tiles, along the axes
    """
    rows, number = int64(1), int64(tiles[0])
    for axis in range(1, len(shape)):
        rows, number = rows * shape[axis], number * tiles[axis]
    counts = np.zeros(number, np.int32)
    for row in range(rows):
        left, first, stride = row, int64(0), int64(tiles[0])
        for axis in range(1, len(shape)):
            first += stride * (left % shape[axis] // extents[axis])
            left, stride = left // shape[axis], stride * tiles[axis]
        for column in range(tiles[0]):
            ones = int64(0)
            stop = min((column + 1) * extents[0], shape[0])
            for x in range(column * extents[0], stop, 32):
                site = row * shape[0] + x
                place, shift = site >> 5, uint32(site & 31)
                word = uint32(border[place] >> shift)
                if shift != uint32(0) and place + 1 < border.size:
                    word |= uint32(border[place + 1] << uint32(uint32(32) - shift))
                if stop - x < 32:
                    word &= uint32((1 << (stop - x)) - 1)
                ones += popcount(uint32(word))
            counts[first + column] += ones
    return counts
