"""CUDA: the open bonds, or sites, of a batch of items.

keys: uint64, what a batch draws from: the seed, then for every item KEY numbers, its sample and
the thresholds of its sites and of its bonds.
"""

from numba import uint32, uint64

from percolab.bonds.words import open_word
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, element

cuda = load_cuda()

#: Numbers of an item among the keys, and where they stand.
KEY = 3
SAMPLE, SITES, BONDS = range(KEY)


@cuda.jit(device=True)
def sample_of(keys, item):
    """Return (seed, sample) of an item."""
    return keys[0], keys[uint32(uint32(item) * uint32(KEY) + uint32(1 + SAMPLE))]


@cuda.jit(device=True)
def key_of(keys, item, which):
    """Return (seed, sample, threshold) of an item: that of its SITES or of its BONDS."""
    begin = uint32(uint32(item) * uint32(KEY) + uint32(1))
    return keys[0], keys[uint32(begin + uint32(SAMPLE))], keys[uint32(begin + uint32(which))]


@cuda.jit(cache=True)
def open_words_kernel(generator, keys, which, first, exists, opened):
    """Write what is open, of the words from ``first`` on, of every item: SITES or BONDS."""
    item = uint32(cuda.blockIdx.y)
    base = uint32(item * uint32(exists.size))
    seed, sample, threshold = key_of(keys, item, which)
    for step in range(PER_THREAD):
        word = element(step)
        if word < exists.size:
            opened[uint32(base + word)] = open_word(
                generator,
                seed,
                sample,
                uint64(uint64(first) + uint64(word)),
                threshold,
                exists[word],
            )
