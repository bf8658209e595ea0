"""XORWOW (Marsaglia 2003, the recurrence of cuRAND) as short streams keyed by (seed, sample, word).

A stream's six state words are three outputs of a SplitMix64 sequence (Steele, Lea and Flood 2014)
whose start and increment are hashed from seed and sample.  The first five outputs of XORWOW are a
bijection of its 160 state bits, so a short stream is as good as that mixer.  The all-zero state,
which XORWOW never leaves, has probability 2^-160 and is not treated.

Source of the recurrence: G. Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8(14), 2003.
"""

from numba import float64, njit, uint32, uint64

_GOLDEN = 0x9E3779B97F4A7C15
_WEYL = 362437


@njit
def mix64(z):
    """Return the SplitMix64 finaliser of a uint64: a bijection, each bit depends on all."""
    z = uint64(z)
    z = uint64((z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9))
    z = uint64((z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB))
    return uint64(z ^ (z >> uint64(31)))


@njit
def stream_keys(seed, sample):
    """Return (start, step), uint64: where the streams of a sample lie."""
    start = mix64(mix64(uint64(seed) + uint64(_GOLDEN)) + uint64(uint64(sample) * uint64(_GOLDEN)))
    # An increment of its own per sample: two samples never walk the same SplitMix64 sequence.
    return start, uint64(mix64(start ^ uint64(_GOLDEN)) | uint64(1))


@njit
def xorwow_state(seed, sample, word):
    """Return the six uint32 state words (v0, v1, v2, v3, v4, d) of one stream."""
    start, step = stream_keys(seed, sample)
    return xorwow_state_of(start, step, word)


@njit
def xorwow_state_of(start, step, word):
    """Return the state of a word's stream, given :func:`stream_keys` of its sample."""
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


@njit
def xorwow_next(v0, v1, v2, v3, v4, d):
    """Return (output, v0, v1, v2, v3, v4, d): one uint32 output and the state after it."""
    t = uint32(v0 ^ (v0 >> uint32(2)))
    v = uint32((v4 ^ uint32(v4 << uint32(4))) ^ (t ^ uint32(t << uint32(1))))
    d = uint32(d + uint32(_WEYL))
    return uint32(v + d), v1, v2, v3, v4, v, d


@njit
def uniform_double(x, y):
    """Return the double in (0, 1] that cuRAND's ``curand_uniform_double`` makes of two outputs."""
    z = uint64(uint64(x) ^ uint64(uint64(y) << uint64(21)))
    return float64(z) * 2.0**-53 + 2.0**-54
