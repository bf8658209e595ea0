"""The open bonds, or sites, of whole samples on the CPU, many words side by side.

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
def _open_by_planes(counters, steps, planes, exists, opened):
    """Write the bonds of words that the first planes open; ``exists`` keeps those left undecided.

    counters, steps: uint64, where the words' streams begin.  planes: p's digits as words of 0 or of
    32 ones, uint32.  The other arrays: uint32, equally long.
    """
    for n in range(exists.size):
        v0, v1, v2, v3, v4, d = make_xorwow_state(counters[n], steps[n], uint64(0))
        left, found = exists[n], uint32(0)
        for k in range(_PLANES):
            digits, v0, v1, v2, v3, v4, d = next_digits(k, v0, v1, v2, v3, v4, d)
            found = uint32(found | uint32(left & uint32(uint32(~digits) & planes[k])))
            left = uint32(left & uint32(~uint32(digits ^ planes[k])))
        opened[n] = found
        exists[n] = left


@njit(nogil=True, cache=True)
def fill_open_bonds(generator, seed, sample, threshold, first, exists, opened):
    """Write what is open of a sample's words ``first`` ..., uint64; exists and opened: uint32."""
    samples = np.full(1, uint64(sample))
    fill_samples(generator, seed, samples, threshold, first, exists, opened.reshape(1, -1))


@njit(nogil=True, cache=True)
def fill_samples(generator, seed, samples, threshold, first, exists, opened):
    """Do so for samples, uint64 (n,); opened: (n, words).  Small ones share a block of words."""
    at_once = generator == XORWOW and uint64(threshold) >> uint64(63) == uint64(0)
    planes = np.empty(_PLANES, np.uint32)
    for k in range(_PLANES):
        digit = uint64(uint64(threshold) >> uint64(62 - k)) & uint64(1)
        planes[k] = uint32(0xFFFFFFFF) if digit != uint64(0) else uint32(0)
    counters, steps = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    left, found = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK, np.uint32)
    together = max(_BLOCK // max(exists.size, 1), 1)
    for base in range(0, exists.size, _BLOCK):
        words, word = min(exists.size - base, _BLOCK), uint64(first + uint64(base))
        for begin in range(0, samples.size, together):
            own = samples[begin : begin + together]
            size = own.size * words
            for n in range(own.size):
                start, step = stream_keys(seed, own[n])
                for w in range(words):
                    at = n * words + w
                    counters[at] = start + uint64(uint64(3) * uint64(word + uint64(w))) * step
                    steps[at], left[at] = step, exists[base + w]
            if at_once:
                _open_by_planes(counters[:size], steps[:size], planes, left[:size], found[:size])
            for n in range(own.size):
                for w in range(words):
                    at = n * words + w
                    if at_once and left[at] == uint32(0):
                        opened[begin + n, base + w] = found[at]
                    else:
                        opened[begin + n, base + w] = open_word(
                            generator, seed, own[n], word + uint64(w), threshold, exists[base + w]
                        )
