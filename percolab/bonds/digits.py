"""The first binary digits of uniform numbers, from the bit planes of a word's stream."""

from numba import int64, uint32, uint64

from percolab.bonds.philox import philox_digits
from percolab.bonds.words import XORWOW
from percolab.bonds.xorwow import next_digits, xorwow_state
from percolab.kernels.inner import inner


@inner
def fill_planes(generator, seed, sample, word, planes):
    """Write the first ``planes.size`` outputs of a word's stream, uint32."""
    if generator == XORWOW:
        v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, word)
        for k in range(planes.size):
            planes[k], v0, v1, v2, v3, v4, d = next_digits(k, v0, v1, v2, v3, v4, d)
    else:
        for k in range(0, planes.size, 4):
            x0, x1, x2, x3 = philox_digits(seed, sample, word, k >> 2)
            planes[k] = x0
            if k + 1 < planes.size:
                planes[k + 1] = x1
            if k + 2 < planes.size:
                planes[k + 2] = x2
            if k + 3 < planes.size:
                planes[k + 3] = x3


@inner
def leading_digits(planes, count, bit):
    """Return the first ``count`` binary digits of the uniform number of one bond, uint64."""
    digits = uint64(0)
    for k in range(count):
        digits = uint64((digits << uint64(1)) | uint64((planes[k] >> uint32(bit)) & uint32(1)))
    return digits


@inner
def word_digits(generator, seed, sample, word, bit, planes, last):
    """Return (first digits of a word's bit, uint64; the word); planes: uint32, of word ``last``."""
    if int64(word) != last:
        fill_planes(generator, seed, sample, word, planes)
    return leading_digits(planes, planes.size, bit), int64(word)
