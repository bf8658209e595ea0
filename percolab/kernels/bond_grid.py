"""Which bonds open between the lowest and the highest p of a grid, and at which step.

A bond that is closed at the lowest p and open at the highest opens at one of the grid's *steps*:
step j if u lies in [p_{j-1}, p_j).  Few words hold such bonds.  Their first planes decide where
they open, but for one bond in 2^24, whose digits are compared to the last.
"""

from numba import int64, njit, uint8, uint32, uint64

from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.open_bonds import XORWOW
from percolab.kernels.open_bonds_cpu import fill_open_bonds
from percolab.kernels.philox import philox_digits
from percolab.kernels.xorwow import xorwow_next, xorwow_state

#: Planes that are compared at once; a multiple of Philox's four.
PLANES = 24
_LAST_PLANE = 63


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
def open_bonds_of_grid(
    generator, seed, sample, thresholds, exists, opened, later, bonds, steps, planes
):
    """Write the bonds open at the lowest threshold, and list those that open at a later step.

    thresholds: uint64, strictly ascending; exists, opened: uint32 words, and later, scratch like
    them; bonds: uint32 and steps: uint8, the list (bond number 32 * word + bit); planes: uint32
    scratch of 63.  Returns the length of the list, or -1 if it does not fit; ``opened`` is complete
    then all the same.
    """
    fill_open_bonds(generator, seed, sample, thresholds[0], exists, opened)
    fill_open_bonds(generator, seed, sample, thresholds[thresholds.size - 1], exists, later)
    count = int64(0)
    for word in range(exists.size):
        left = uint32(later[word] & ~opened[word])
        if left == uint32(0):
            continue
        if count + popcount(left) > bonds.size:
            return int64(-1)
        fill_planes(generator, seed, sample, word, planes[:PLANES])
        while left != uint32(0):
            bit = trailing_zeros(left)
            left = uint32(left & uint32(left - uint32(1)))
            step, sure = step_of(leading_digits(planes, PLANES, bit), PLANES, thresholds)
            if not sure:
                fill_planes(generator, seed, sample, word, planes)
                digits = leading_digits(planes, _LAST_PLANE, bit)
                step, _ = step_of(digits, _LAST_PLANE, thresholds)
            bonds[count] = uint32(32 * word + bit)
            steps[count] = uint8(step)
            count += int64(1)
    return count
