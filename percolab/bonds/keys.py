"""Keys of random words, which distinguish their streams, on the host and in kernels.

A word's stream is keyed by (seed, sample, word).  The seed is a hash of everything that makes
samples differ, including the purpose of the words (:attr:`percolab.tasks.study.Task.stream_seed`).
A sample that draws words repeatedly, as a Markov chain does in every sweep, counts how often.

Source of the mixer: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014.
"""

from numba import uint64

from percolab.kernels.inner import inner

GOLDEN = 0x9E3779B97F4A7C15


@inner
def mix64(z):
    """Return the SplitMix64 finaliser of a uint64: a bijection in which each bit depends on all."""
    z = uint64(z)
    z = uint64((z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9))
    z = uint64((z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB))
    return uint64(z ^ (z >> uint64(31)))


@inner
def seed_at(seed, counter):
    """Return the seed, uint64, of a sample's words when they are drawn the ``counter``-th time.

    For counter 0 it is the seed itself; different counters of a seed give different results.
    """
    if uint64(counter) == uint64(0):
        return uint64(seed)
    return mix64(uint64(uint64(seed) + uint64(uint64(counter) * uint64(GOLDEN))))


@inner
def stream_keys(seed, sample):
    """Return (start, step), uint64: the SplitMix64 sequence of a sample's streams."""
    start = mix64(mix64(uint64(seed) + uint64(GOLDEN)) + uint64(uint64(sample) * uint64(GOLDEN)))
    # Each sample has its own increment: no two samples walk the same SplitMix64 sequence.
    return start, uint64(mix64(start ^ uint64(GOLDEN)) | uint64(1))
