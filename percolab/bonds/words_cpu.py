"""The open bonds, or sites, of whole samples on the CPU, many words in parallel (SIMD).

The first digit planes of all words are made without a branch, so that vector instructions work on 8
or 16 words at once; words with undecided bonds, a hundredth of all, are then redone one by one.
"""

import numpy as np
from numba import njit, uint32, uint64

from percolab.bonds.keys import stream_keys
from percolab.bonds.words import XORWOW, open_word
from percolab.bonds.xorwow import make_xorwow_state, next_digits
from percolab.kernels.inner import inner, inner_with_arrays

# After this many planes, all but one word in 128 are fully decided; twelve were fastest.
_PLANES = 12
_BLOCK = 256


@inner
def _open_by_planes(states, planes, exists, opened):
    """Write the bonds of words that the first planes open; ``exists`` keeps those left undecided.

    states: states of the words' streams, six arrays.  planes: p's digits as words of 0 or 32 ones.
    All arrays are uint32, and all but planes of equal length.
    """
    s0, s1, s2, s3, s4, s5 = states
    for n in range(exists.size):
        v0, v1, v2, v3, v4, d = s0[n], s1[n], s2[n], s3[n], s4[n], s5[n]
        left, bits = exists[n], uint32(0)
        for k in range(_PLANES):
            digits, v0, v1, v2, v3, v4, d = next_digits(k, v0, v1, v2, v3, v4, d)
            bits = uint32(bits | uint32(left & uint32(uint32(~digits) & planes[k])))
            left = uint32(left & uint32(~uint32(digits ^ planes[k])))
        opened[n] = bits
        exists[n] = left


@njit(nogil=True, cache=True)
def fill_open_bonds(generator, seed, sample, threshold, first, exists, opened):
    """Write a sample's open words from word ``first``, uint64, on; exists and opened: uint32."""
    samples = np.full(1, uint64(sample))
    fill_samples(generator, seed, samples, threshold, first, exists, opened.reshape(1, -1))


@inner_with_arrays
def fill_samples(generator, seed, samples, threshold, first, exists, opened):
    """Write the open words of samples, uint64 (n,); opened: (n, words), small ones in blocks."""
    room = min(_BLOCK, opened.size)
    scratch = np.empty((7, room), np.uint32), np.empty(_PLANES, np.uint32)
    flat = opened.reshape(-1)
    _fill_blocks(generator, seed, samples, threshold, first, exists, flat, *scratch)


@inner
def _fill_blocks(generator, seed, samples, threshold, first, exists, opened, states, planes):
    at_once = generator == XORWOW and uint64(threshold) >> uint64(63) == uint64(0)
    for k in range(_PLANES):
        digit = uint64(uint64(threshold) >> uint64(62 - k)) & uint64(1)
        planes[k] = uint32(0xFFFFFFFF) if digit != uint64(0) else uint32(0)
    own = states[0], states[1], states[2], states[3], states[4], states[5]
    together = max(_BLOCK // max(exists.size, 1), 1)
    for base in range(0, exists.size, _BLOCK):
        words, word = min(exists.size - base, _BLOCK), uint64(first + uint64(base))
        for begin in range(0, samples.size, together):
            count = min(samples.size - begin, together)
            size = count * words
            left, block_words = states[6, :size], opened[begin * exists.size + base :][:size]
            for n in range(count if at_once else 0):
                start, step = stream_keys(seed, samples[begin + n])
                for w in range(words):
                    at = n * words + w
                    v0, v1, v2, v3, v4, d = make_xorwow_state(start, step, uint64(word + uint64(w)))
                    states[0, at], states[1, at], states[2, at] = v0, v1, v2
                    states[3, at], states[4, at], states[5, at] = v3, v4, d
                    left[at] = exists[base + w]
            if at_once:
                _open_by_planes(own, planes, left, block_words)
            for n in range(size):
                if not at_once or left[n] != uint32(0):
                    key = seed, samples[begin + n // words], uint64(word + uint64(n % words))
                    block_words[n] = open_word(generator, *key, threshold, exists[base + n % words])
