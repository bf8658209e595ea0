"""Words as sample version 1 made them, which every check of random words must reject.

Bond b took bit b of every XORWOW output, and these are correlated: see docs/randomness.md.
"""

import numpy as np
from numba import njit, uint32, uint64

from percolab.bonds.words import compare_plane
from percolab.bonds.xorwow import xorwow_next, xorwow_state


@njit
def open_word_of_version_1(seed, sample, word, threshold):
    """Return a uint32 word of 32 bonds, from the outputs of XORWOW as they are."""
    undecided, opened = uint32(0xFFFFFFFF), uint32(0)
    v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, word)
    plane = 0
    while undecided != uint32(0) and plane < 63:
        digits, v0, v1, v2, v3, v4, d = xorwow_next(v0, v1, v2, v3, v4, d)
        p_digit = (uint64(threshold) >> uint64(62 - plane)) & uint64(1) != uint64(0)
        undecided, opened = compare_plane(digits, p_digit, undecided, opened)
        plane += 1
    return opened


@njit
def fill_of_version_1(seed, sample, threshold, opened):
    """Write the first words of a sample; opened: uint32."""
    for word in range(opened.size):
        opened[word] = open_word_of_version_1(
            np.uint64(seed), np.uint64(sample), np.uint64(word), np.uint64(threshold)
        )
