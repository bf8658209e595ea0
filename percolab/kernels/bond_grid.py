"""All p of a grid from one pass over a sample's digit planes.

A bond that is closed at the lowest p of a grid and open at the highest opens at one of its *steps*:
step j if u lies in [p_{j-1}, p_j).  The first planes of a word decide which bonds those are and
where they open, but for one bond in 2^24 or fewer, whose digits are compared to the last.
"""

from numba import int64, njit, uint8, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.open_bonds import XORWOW, compare_plane
from percolab.kernels.philox import philox_digits
from percolab.kernels.xorwow import xorwow_next, xorwow_state

#: Planes that are compared at once; a multiple of Philox's four.
PLANES = 24
_LAST_PLANE = 63
_INTEGER_DIGIT = 63


@njit
def fill_planes(generator, seed, sample, word, planes):
    """Write the first ``planes.size`` outputs of a word's stream, uint32."""
    if generator == XORWOW:
        v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, word)
        for k in range(planes.size):
            planes[k], v0, v1, v2, v3, v4, d = xorwow_next(v0, v1, v2, v3, v4, d)
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


@njit
def compare_planes(planes, count, threshold, exists):
    """Return (undecided, opened) after comparing ``count`` planes with a threshold's digits."""
    if threshold >> uint64(_INTEGER_DIGIT) != uint64(0):
        return uint32(0), uint32(exists)
    undecided, opened = uint32(exists), uint32(0)
    for k in range(count):
        digit = (threshold >> uint64(_LAST_PLANE - 1 - k)) & uint64(1) != uint64(0)
        undecided, opened = compare_plane(planes[k], digit, undecided, opened)
    return undecided, opened


@njit
def leading_digits(planes, count, bit):
    """Return the first ``count`` binary digits of the uniform number of one bond, uint64."""
    digits = uint64(0)
    for k in range(count):
        digits = uint64((digits << uint64(1)) | uint64((planes[k] >> uint32(bit)) & uint32(1)))
    return digits


@njit
def step_of(digits, count, thresholds):
    """Return (step, sure): the first threshold above a number known to ``count`` digits."""
    shift = uint64(_LAST_PLANE - count)
    for j in range(thresholds.size):
        prefix = uint64(thresholds[j] >> shift)
        if digits < prefix:
            return j, True
        if digits == prefix and count < _LAST_PLANE:
            return j, False
    return thresholds.size, True


@njit(nogil=True, cache=True)
def open_bonds_of_grid(generator, seed, sample, thresholds, exists, opened, bonds, steps, planes):
    """Write the bonds open at the lowest threshold, and list those that open at a later step.

    thresholds: uint64, strictly ascending; exists, opened: uint32 words; bonds: uint32 and steps:
    uint8, the list (bond number 32 * word + bit); planes: uint32 scratch of 63.  Returns the length
    of the list, or -1 if it does not fit; ``opened`` is complete then all the same.
    """
    count = int64(0)
    low, high = thresholds[0], thresholds[thresholds.size - 1]
    for word in range(exists.size):
        here = exists[word]
        fill_planes(generator, seed, sample, word, planes[:PLANES])
        undecided_low, open_low = compare_planes(planes, PLANES, low, here)
        undecided_high, open_high = compare_planes(planes, PLANES, high, here)
        if undecided_low | undecided_high:
            fill_planes(generator, seed, sample, word, planes)
            open_low = compare_planes(planes, _LAST_PLANE, low, here)[1]
            open_high = compare_planes(planes, _LAST_PLANE, high, here)[1]
        opened[word] = open_low
        left = uint32(open_high & ~open_low)
        while left != uint32(0):
            bit = trailing_zeros(left)
            left = uint32(left & uint32(left - uint32(1)))
            if count < 0 or count == bonds.size:
                count = int64(-1)
                break
            step, sure = step_of(leading_digits(planes, PLANES, bit), PLANES, thresholds)
            if not sure:
                fill_planes(generator, seed, sample, word, planes)
                digits = leading_digits(planes, _LAST_PLANE, bit)
                step, _ = step_of(digits, _LAST_PLANE, thresholds)
            bonds[count] = uint32(32 * word + bit)
            steps[count] = uint8(step)
            count += int64(1)
    return count
