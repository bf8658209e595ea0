"""CUDA: the open bonds, or sites, of a batch of items."""

from numba import uint32, uint64

from percolab.bonds.words import open_word
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, element

cuda = load_cuda()


@cuda.jit(cache=True)
def open_words_kernel(generator, seed, samples, thresholds, first, exists, opened):
    """Write what is open, of the words from ``first`` on, of every item: bonds, or sites."""
    item = uint32(cuda.blockIdx.y)
    base = uint32(item * uint32(exists.size))
    sample, threshold = samples[item], thresholds[item]
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
