"""CUDA: the open bonds, or sites, of a batch of entries."""

from typing import Any, NamedTuple

from numba import uint32, uint64

from percolab.bonds.hooks import word_limit
from percolab.bonds.words import open_word
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, element


class BatchKeys(NamedTuple):
    """The keys from which the entries of a batch are drawn, uint64 each.

    samples: (1 + entries,), the seed and then the number of every entry's sample
    sites:   (entries,), the thresholds of the sites
    bonds:   (entries,), those of the bonds
    """

    samples: Any
    sites: Any
    bonds: Any


@cuda.jit(cache=True)
def open_words_kernel(generator, samples, thresholds, first, exists, opened, record):
    """Write the open bonds, or occupied sites, of every entry, whose words begin at ``first``.

    samples: the seed, then the entries' samples.  record: ClassLimits of the bonds, or ().
    """
    entry = uint32(cuda.blockIdx.y)
    base = uint32(entry * uint32(exists.size))
    seed, sample, threshold = samples[0], samples[uint32(entry + uint32(1))], thresholds[entry]
    for step in range(PER_THREAD):
        word = element(step)
        if word < exists.size:
            opened[uint32(base + word)] = open_word(
                generator,
                seed,
                sample,
                uint64(uint64(first) + uint64(word)),
                word_limit(record, word, threshold),
                exists[word],
            )
