"""The first 32 digits of every bond's uniform number, many words side by side.

Digit k of the 32 bonds of a word is one word of its stream, a *plane*.  Turned over, 32 planes are
32 numbers of 32 digits: *prefixes*.  They are in the order of the uniform numbers but for the few
pairs that agree in all 32 digits, which :func:`percolab.trees.weights.compute_key` settles.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint32, uint64

from percolab.bonds.keys import stream_keys
from percolab.bonds.philox import philox_digits
from percolab.bonds.words import XORWOW
from percolab.bonds.xorwow import make_xorwow_state, next_digits

PREFIX_DIGITS = 32
# Words that are made at once: the compiler works on 16 of them in one instruction.
_BLOCK = 64


@njit
def _xorwow_planes(start, step, base, count, states, places, planes):
    """Write the planes of words ``base`` ..., the last digit first.

    states: uint32 (32 + 5, _BLOCK), the outputs of the recurrence, and places: uint32 (_BLOCK,),
    its counter: scratch.
    """
    for n in range(count):
        v0, v1, v2, v3, v4, d = make_xorwow_state(start, step, uint64(base + uint64(n)))
        states[0, n], states[1, n], states[2, n], states[3, n], states[4, n] = v0, v1, v2, v3, v4
        places[n] = d
    for k in range(PREFIX_DIGITS):
        oldest, last, new, plane = states[k], states[k + 4], states[k + 5], planes[31 - k]
        for n in range(count):
            digits, _, _, _, _, newest, d = next_digits(
                k, oldest[n], uint32(0), uint32(0), uint32(0), last[n], places[n]
            )
            plane[n], new[n], places[n] = digits, newest, d


@njit
def _philox_planes(seed, sample, base, count, planes):
    for quad in range(PREFIX_DIGITS // 4):
        for n in range(count):
            x0, x1, x2, x3 = philox_digits(seed, sample, uint64(base + uint64(n)), quad)
            planes[31 - 4 * quad, n] = x0
            planes[30 - 4 * quad, n] = x1
            planes[29 - 4 * quad, n] = x2
            planes[28 - 4 * quad, n] = x3


@njit
def _turn_over(planes, count):
    """Transpose the 32 x 32 bits of every word: bit i of plane j becomes bit j of plane i."""
    width, mask = uint32(16), uint32(0x0000FFFF)
    while width != uint32(0):
        for k in range(32):
            if uint32(uint32(k) & width) == uint32(0):
                low, high = planes[k], planes[k + int(width)]
                for n in range(count):
                    changed = uint32(uint32(uint32(low[n] >> width) ^ high[n]) & mask)
                    high[n] = uint32(high[n] ^ changed)
                    low[n] = uint32(low[n] ^ uint32(changed << width))
        width = uint32(width >> uint32(1))
        mask = uint32(mask ^ uint32(mask << width))


@njit(nogil=True, cache=True)
def fill_prefixes(generator, seed, sample, prefixes):
    """Write the prefixes of a sample's bonds by their numbers, uint32 (32 * words,)."""
    start, step = stream_keys(seed, sample)
    planes = np.empty((32, _BLOCK), np.uint32)
    states, places = np.empty((37, _BLOCK), np.uint32), np.empty(_BLOCK, np.uint32)
    words = prefixes.size // 32
    for base in range(0, words, _BLOCK):
        count = min(words - base, _BLOCK)
        if generator == XORWOW:
            _xorwow_planes(start, step, uint64(base), count, states, places, planes)
        else:
            _philox_planes(seed, sample, uint64(base), count, planes)
        _turn_over(planes, count)
        for n in range(count):
            for bit in range(32):
                prefixes[32 * (base + n) + bit] = planes[bit, n]
