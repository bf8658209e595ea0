"""The open bonds of a word at p: digit planes of 32 uniform numbers are compared with p.

Bit b of the k-th digit plane of a word's stream is the k-th binary digit, most significant first,
of the uniform number u_b of bond b.  A bond is open if u_b < p, which is decided by the first digit
that differs from p's; a word needs about 6 planes until no bond is undecided.

p is passed as its *threshold*, ceil(p * 2^63): bit 63 is the integer digit of p (one only for
p = 1, when every u < 1 is below p); bits 62 ... 0 are the digits that are compared.
"""

import math

from numba import njit, uint32, uint64

from percolab.bonds.philox import philox_digits
from percolab.bonds.xorwow import next_digits, xorwow_state
from percolab.kernels.inner import inner

XORWOW, PHILOX = 0, 1
GENERATORS = {"xorwow": XORWOW, "philox": PHILOX}

#: The threshold of p = 1.
TOP = 2**63
#: The spanning threshold of a sample that does not span even with all its bonds open.
NEVER = 2**64 - 1

#: Planes that are compared before a test whether any bond is undecided: a warp of 32 words needs
#: 11 on average, and a loop without a test is faster.
BLIND_PLANES = 10
_LAST_PLANE = 63


def p_to_threshold(p: float) -> int:
    """Return ceil(p * 2^63) as an int in [0, 2^63]; ValueError unless 0 <= p <= 1.

    >>> p_to_threshold(0.0), p_to_threshold(1.0) == 2**63
    (0, True)
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p must be in [0, 1], got {p}")
    return math.ceil(math.ldexp(p, 63))


@inner
def compare_plane(digits, p_digit, undecided, opened):
    """Return (undecided, opened) after one more digit plane of 32 uniforms against p's digit."""
    if p_digit:
        opened = uint32(opened | (undecided & ~digits))
        undecided = uint32(undecided & digits)
    else:
        undecided = uint32(undecided & ~digits)
    return undecided, opened


@inner
def _digit(threshold, plane):
    return (uint64(threshold) >> uint64(_LAST_PLANE - 1 - plane)) & uint64(1) != uint64(0)


@inner
def _open_in_the_end(state, threshold, undecided, opened):
    """Return the word of open bonds, after BLIND_PLANES planes have left some undecided."""
    v0, v1, v2, v3, v4, d = state
    plane = BLIND_PLANES
    while undecided != uint32(0) and plane < _LAST_PLANE:
        digits, v0, v1, v2, v3, v4, d = next_digits(plane, v0, v1, v2, v3, v4, d)
        undecided, opened = compare_plane(digits, _digit(threshold, plane), undecided, opened)
        plane += 1
    return opened


@inner
def open_by_planes(planes, state, threshold, exists):
    """Return the word of open bonds at one of several thresholds, as :func:`open_word` does.

    planes: the first BLIND_PLANES digit planes of a word's XORWOW stream, uint32
    state:  (v0, v1, v2, v3, v4, d), the stream's state after them
    """
    if uint64(threshold) >> uint64(_LAST_PLANE) != uint64(0):
        return uint32(exists)
    undecided, opened = uint32(exists), uint32(0)
    for plane in range(BLIND_PLANES):
        is_one = _digit(threshold, plane)
        undecided, opened = compare_plane(planes[plane], is_one, undecided, opened)
    return _open_in_the_end(state, threshold, undecided, opened)


@inner
def open_word_xorwow(seed, sample, word, threshold, exists):
    """Return the uint32 word of open bonds, from the XORWOW stream of (seed, sample, word)."""
    undecided, opened = uint32(exists), uint32(0)
    v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, word)
    for plane in range(BLIND_PLANES):
        digits, v0, v1, v2, v3, v4, d = next_digits(plane, v0, v1, v2, v3, v4, d)
        undecided, opened = compare_plane(digits, _digit(threshold, plane), undecided, opened)
    return _open_in_the_end((v0, v1, v2, v3, v4, d), threshold, undecided, opened)


@inner
def open_word_philox(seed, sample, word, threshold, exists):
    """Return the uint32 word of open bonds, from the Philox stream of (seed, sample, word)."""
    undecided, opened = uint32(exists), uint32(0)
    plane = 0
    while undecided != uint32(0) and plane < _LAST_PLANE:
        x0, x1, x2, x3 = philox_digits(seed, sample, word, plane // 4)
        undecided, opened = compare_plane(x0, _digit(threshold, plane), undecided, opened)
        undecided, opened = compare_plane(x1, _digit(threshold, plane + 1), undecided, opened)
        undecided, opened = compare_plane(x2, _digit(threshold, plane + 2), undecided, opened)
        if plane + 3 < _LAST_PLANE:
            undecided, opened = compare_plane(x3, _digit(threshold, plane + 3), undecided, opened)
        plane += 4
    return opened


@inner
def open_word(generator, seed, sample, word, threshold, exists):
    """Return the word of open bonds among the bonds that exist (uint32, one bit a bond).

    ``generator`` is one of :data:`GENERATORS`' values; if constant, the other is compiled away.
    ``threshold`` is :func:`p_to_threshold` p as uint64.
    """
    if uint64(threshold) >> uint64(_LAST_PLANE) != uint64(0):
        return uint32(exists)
    if generator == XORWOW:
        return open_word_xorwow(seed, sample, word, threshold, exists)
    return open_word_philox(seed, sample, word, threshold, exists)


@njit(cache=True)
def uniform_number(generator, seed, sample, word, bit):
    """Return the uniform number of one bond as uint64, its 63 binary digits.

    The bond is open at larger thresholds.
    """
    number = uint64(0)
    if generator == XORWOW:
        v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, word)
        for plane in range(_LAST_PLANE):
            digits, v0, v1, v2, v3, v4, d = next_digits(plane, v0, v1, v2, v3, v4, d)
            digit = uint64((uint32(digits) >> uint32(bit)) & uint32(1))
            number = uint64(uint64(number << uint64(1)) | digit)
        return number
    for quad in range(16):
        for digits in philox_digits(seed, sample, word, quad):
            digit = uint64((uint32(digits) >> uint32(bit)) & uint32(1))
            number = uint64(uint64(number << uint64(1)) | digit)
    # The last of the 64 digits is not compared.
    return uint64(number >> uint64(1))
