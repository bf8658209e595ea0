"""Runs as bits of words: where runs start and end, and one bond for each pair of joined runs.

A word has 32 neighbouring sites of a row; a bit of ``starts`` marks the first site of a run, and
bit 0 always starts a run, so that no run extends beyond its word.

Words, bit arrays, bit numbers, counts and results are uint32.
"""

from numba import uint32

from percolab.kernels.inner import inner

_ALL = 0xFFFFFFFF


@inner
def low_bits(count):
    """Return the word whose ``count`` lowest bits are ones, for a count from 1 to 32."""
    return uint32(uint32(_ALL) >> uint32(uint32(32) - uint32(count)))


@inner
def bits_at(words, base, bit, count):
    """Return ``count`` bits, 1 to 32, of a bit array that starts at ``words[base]``."""
    place, shift = uint32(base + uint32(bit >> uint32(5))), uint32(bit & uint32(31))
    bits = uint32(words[place] >> shift)
    if uint32(shift + count) > uint32(32):
        following = uint32(words[uint32(place + uint32(1))])
        bits = uint32(bits | uint32(following << uint32(uint32(32) - shift)))
    return uint32(bits & low_bits(count))


@inner
def negative(word, starts):
    """Return -x for the number x in every segment of a word; bit 0 of ``starts`` is a one.

    A single addition does this for all segments: its carries stop at their highest bits.
    """
    top = uint32(uint32(starts >> uint32(1)) | uint32(0x80000000))
    inverse = uint32(~word)
    summed = uint32(uint32(inverse & ~top) + uint32(starts & ~top))
    return uint32(summed ^ uint32(uint32(inverse ^ starts) & top))


@inner
def mark_segment_starts(word, starts):
    """Return the lowest one of every segment of a word; ``starts`` marks where segments begin.

    x & -x finds the lowest one of x, here in all segments at once.
    """
    return uint32(word & negative(word, starts))


@inner
def fill_segments(word, starts):
    """Return the word with every segment that contains a one filled with ones.

    ``word`` has at most one one per segment.  Upwards, -x fills the segment; downwards, the ones
    are spread in doubling steps that pass no start of a segment.
    """
    filled = negative(word, starts)
    open_below = uint32(~uint32(starts >> uint32(1)) & uint32(0x7FFFFFFF))
    for step in (1, 2, 4, 8, 16):
        filled = uint32(filled | uint32(open_below & uint32(filled >> uint32(step))))
        open_below = uint32(open_below & uint32(open_below >> uint32(step)))
    return filled
