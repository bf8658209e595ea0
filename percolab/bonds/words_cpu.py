"""The open bonds, or sites, of a whole sample on the CPU, many words side by side.

The first digit planes of all words are made without a branch, so that the compiler works on 8 or 16
words at once; what is still undecided then, a hundredth of the words, is made anew one by one.
"""

import numpy as np
from numba import njit, uint32, uint64

from percolab.bonds.keys import stream_keys
from percolab.bonds.words import XORWOW, open_word
from percolab.bonds.xorwow import make_xorwow_state, next_digits

# After so many planes 32 bonds of a word are decided but for one word in 128; twelve were fastest.
_PLANES = 12
_BLOCK = 256


@njit
def _open_by_planes(start, step, base, planes, exists, opened, undecided):
    """Write the bonds of words ``base`` ... that the first planes open, and those left undecided.

    planes: p's digits as words of 0 or of 32 ones, uint32.  The other arrays: uint32, equally long.
    """
    for n in range(exists.size):
        v0, v1, v2, v3, v4, d = make_xorwow_state(start, step, uint64(base + uint64(n)))
        left, found = exists[n], uint32(0)
        for k in range(_PLANES):
            digits, v0, v1, v2, v3, v4, d = next_digits(k, v0, v1, v2, v3, v4, d)
            found = uint32(found | uint32(left & uint32(uint32(~digits) & planes[k])))
            left = uint32(left & uint32(~uint32(digits ^ planes[k])))
        opened[n] = found
        undecided[n] = left


@njit(nogil=True, cache=True)
def fill_open_bonds(generator, seed, sample, threshold, first, exists, opened):
    """Write what is open of a sample's words ``first`` ..., uint64; exists and opened: uint32."""
    at_once = generator == XORWOW and uint64(threshold) >> uint64(63) == uint64(0)
    planes, undecided = np.empty(_PLANES, np.uint32), np.empty(_BLOCK, np.uint32)
    for k in range(_PLANES):
        digit = uint64(uint64(threshold) >> uint64(62 - k)) & uint64(1)
        planes[k] = uint32(0xFFFFFFFF) if digit != uint64(0) else uint32(0)
    start, step = stream_keys(seed, sample)
    for base in range(0, exists.size, _BLOCK):
        end = min(base + _BLOCK, exists.size)
        if at_once:
            here, found = exists[base:end], opened[base:end]
            _open_by_planes(
                start, step, uint64(first + uint64(base)), planes, here, found, undecided
            )
        for n in range(base, end):
            if not at_once or undecided[n - base] != uint32(0):
                opened[n] = open_word(
                    generator, seed, sample, uint64(first + uint64(n)), threshold, exists[n]
                )
