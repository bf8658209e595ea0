"""XORWOW (Marsaglia 2003, the recurrence of cuRAND) as short streams keyed by (seed, sample, word).

A stream's six state words are three outputs of a SplitMix64 sequence (Steele, Lea and Flood 2014)
whose start and increment are hashed from seed and sample.  The first five outputs of XORWOW are a
bijection of its 160 state bits, so these are as good as that mixer.  Later outputs are tied to them
by a recurrence of few bits; :func:`next_digits` scatters every output before its bits are used, so
that no short relation involves only a few of them.  The all-zero state, which XORWOW never leaves,
has probability 2^-160 and is ignored.

Sources: G. Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8(14), 2003; the multiplications and the
rotation between them are the scrambler of D. Blackman and S. Vigna, "Scrambled linear pseudorandom
number generators", ACM Trans. Math. Softw. 47(4), 36, 2021.
"""

from numba import uint32, uint64

from percolab.bonds.keys import mix64, stream_keys
from percolab.kernels.inner import inner

_WEYL = 362437


@inner
def xorwow_state(seed, sample, word):
    """Return the six uint32 state words (v0, v1, v2, v3, v4, d) of one stream."""
    start, step = stream_keys(seed, sample)
    return make_xorwow_state(start, step, word)


@inner
def make_xorwow_state(start, step, word):
    """Return the state of a word's stream, six uint32, by the keys of its sample, uint64."""
    z = uint64(start + uint64(uint64(uint64(word) * uint64(3)) * step))
    a = mix64(z)
    b = mix64(uint64(z + step))
    c = mix64(uint64(z + uint64(step << uint64(1))))
    low, shift = uint64(0xFFFFFFFF), uint64(32)
    return (
        uint32(a & low),
        uint32(a >> shift),
        uint32(b & low),
        uint32(b >> shift),
        uint32(c & low),
        uint32(c >> shift),
    )


@inner
def xorwow_next(v0, v1, v2, v3, v4, d):
    """Return (output, v0, v1, v2, v3, v4, d): one uint32 output and the state after it."""
    t = uint32(v0 ^ (v0 >> uint32(2)))
    v = uint32((v4 ^ uint32(v4 << uint32(4))) ^ (t ^ uint32(t << uint32(1))))
    d = uint32(d + uint32(_WEYL))
    return uint32(v + d), v1, v2, v3, v4, v, d


@inner
def rotated(x, count):
    """Return a uint32 rotated to the left by ``count`` mod 32 places."""
    left = uint32(uint32(count) & uint32(31))
    right = uint32(uint32(uint32(32) - left) & uint32(31))
    return uint32(uint32(x << left) | uint32(x >> right))


@inner
def scattered(output, plane):
    """Return a stream's output, uint32, as digit plane number ``plane``: 32 digits.

    This is a bijection of the output.  After the scrambler, no bit is determined by a few bits of
    the state; the rotation gives every bond a different bit in every plane.
    """
    x = rotated(uint32(output * uint32(5)), uint32(7))
    return rotated(uint32(x * uint32(9)), uint32(uint32(11) * uint32(plane)))


@inner
def next_digits(plane, v0, v1, v2, v3, v4, d):
    """Return (digits, v0, v1, v2, v3, v4, d): the digit plane of that number and the state after.

    Planes must be taken in order, from 0 on.
    """
    output, v0, v1, v2, v3, v4, d = xorwow_next(v0, v1, v2, v3, v4, d)
    return scattered(output, plane), v0, v1, v2, v3, v4, d
