"""Runs as bits of words: where one starts and ends, and one bond for each pair of runs it joins.

A word holds 32 neighbouring sites of a row; a bit of ``starts`` marks the first site of a run, and
bit 0 always starts one, so that no run leaves its word.
"""

from numba import njit, uint32

from percolab.kernels.bits import trailing_zeros

_ALL = 0xFFFFFFFF


@njit
def low_bits(count):
    """Return the word whose ``count`` lowest bits are ones, for a count from 1 to 32."""
    return uint32(uint32(_ALL) >> uint32(uint32(32) - uint32(count)))


@njit
def bits_at(words, base, bit, count):
    """Return ``count`` bits, 1 to 32, of a bit array that starts at ``words[base]``."""
    place, shift = uint32(base + uint32(bit >> uint32(5))), uint32(bit & uint32(31))
    found = uint32(words[place] >> shift)
    if uint32(shift + count) > uint32(32):
        following = uint32(words[uint32(place + uint32(1))])
        found = uint32(found | uint32(following << uint32(uint32(32) - shift)))
    return uint32(found & low_bits(count))


@njit
def run_from(starts, bit):
    """Return the mask of the run that starts at ``bit``."""
    # Shifting by bit + 1 in one step would be undefined for bit 31.
    later = uint32(uint32(uint32(starts >> bit) >> uint32(1)) << uint32(1))
    length = min(uint32(trailing_zeros(later)), uint32(uint32(32) - bit))
    return uint32(low_bits(length) << bit)


@njit
def first_of_segments(word, starts):
    """Return the lowest one of every segment of a word; ``starts`` marks where segments begin.

    x & -x finds the lowest one of x.  Here -x is taken in all segments at once, by an addition
    whose carries stop at the segments' highest bits.
    """
    top = uint32(uint32(starts >> uint32(1)) | uint32(0x80000000))
    inverse = uint32(~word)
    summed = uint32(uint32(inverse & ~top) + uint32(starts & ~top))
    negative = uint32(summed ^ uint32(uint32(inverse ^ starts) & top))
    return uint32(word & negative)
