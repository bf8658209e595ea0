"""CUDA: the open bonds of a slab and of a cut, from words that are numbered in the whole lattice.

As :mod:`percolab.parts.words` on the CPU.  Grid axis 1 counts classes of bonds; ``classes`` has
their numbers, that of the sites is the number of classes.
"""

from typing import Any, NamedTuple

from numba import int64, types, uint32, uint64

from percolab.bonds.hooks import class_limit
from percolab.bonds.sites import is_vacant
from percolab.bonds.words import open_word
from percolab.kernels.bits import trailing_zeros
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.kernels.neighbours import has_bit, periodic_word
from percolab.parts.words import find_cut_bond

cuda = load_cuda()

#: Words that a block makes where they have to be shifted; the last one is made for its bits alone.
SPAN = PER_THREAD * THREADS


class Stretch(NamedTuple):
    """Words of a slab or cut: where they lie in the whole lattice."""

    whole: Any  # words of one class of the whole lattice, uint64
    first: Any  # the first one, counted in its class, uint64
    shift: Any  # the bit of it that is the first site, uint32
    classes: Any  # int64, the classes
    words: Any  # words of each class, uint32
    limits: Any  # thresholds of classes, as :func:`percolab.bonds.hooks.class_limit` takes them


@cuda.jit(device=True)
def _find_first_word(stretch, n):
    """Return the number of the first word of the n-th class in the whole lattice."""
    return uint64(uint64(uint64(stretch.classes[n]) * stretch.whole) + stretch.first)


@cuda.jit(cache=True)
def aligned_words_kernel(generator, samples, thresholds, stretch, exists, opened):
    """Write what is open of bonds or sites whose first one is the first of a word.

    samples: the seed and the sample; thresholds: (1,); exists, opened: uint32 (classes * words,)
    """
    n = uint32(cuda.blockIdx.y)
    base, number = uint32(n * stretch.words), _find_first_word(stretch, n)
    seed, sample = samples[0], samples[1]
    threshold = class_limit(stretch.limits, stretch.classes[n], thresholds[0])
    for step in range(PER_THREAD):
        word = element(step)
        if word < stretch.words:
            place = uint32(base + word)
            opened[place] = open_word(
                generator, seed, sample, uint64(number + uint64(word)), threshold, exists[place]
            )


@cuda.jit(cache=True)
def shifted_words_kernel(generator, samples, thresholds, stretch, exists, opened):
    """Write what is open of bonds or sites whose first one is any bit of a word but the first.

    Arguments as of :func:`aligned_words_kernel`.  A block writes SPAN - 1 words.
    """
    made = cuda.shared.array(SPAN, types.uint32)
    n, thread = uint32(cuda.blockIdx.y), uint32(cuda.threadIdx.x)
    base, number = uint32(n * stretch.words), _find_first_word(stretch, n)
    seed, sample = samples[0], samples[1]
    threshold = class_limit(stretch.limits, stretch.classes[n], thresholds[0])
    begin = uint32(uint32(cuda.blockIdx.x) * uint32(SPAN - 1))
    for step in range(PER_THREAD):
        k = uint32(uint32(step * THREADS) + thread)
        word = uint32(begin + k)
        if word <= stretch.words:
            made[k] = open_word(
                generator,
                seed,
                sample,
                uint64(number + uint64(word)),
                threshold,
                uint32(0xFFFFFFFF),
            )
    cuda.syncthreads()
    up = uint32(uint32(32) - stretch.shift)
    for step in range(PER_THREAD):
        k = uint32(uint32(step * THREADS) + thread)
        word = uint32(begin + k)
        if k < uint32(SPAN - 1) and word < stretch.words:
            both = uint32(made[k] >> stretch.shift)
            both = uint32(both | uint32(made[uint32(k + uint32(1))] << up))
            place = uint32(base + word)
            opened[place] = uint32(both & exists[place])


@cuda.jit(cache=True)
def close_cut_kernel(cut, upper, lower, opened):
    """Close the bonds of a cut that have a vacant site above or below: one thread a word."""
    place = uint32(cuda.grid(1))
    if place < opened.size:
        words = uint32(cut.adjacency.num_words)
        n = uint32(place // words)
        word = uint32(place - uint32(n * words))
        down, aside = (
            int64(cut.adjacency.ends[n]),
            periodic_word(cut.adjacency.periodic_words, place),
        )
        left = uint32(opened[place] & upper[word])
        kept = left
        while left != uint32(0):
            bit = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            other = int64(int64(uint32(uint32(word << uint32(5)) + bit)) + down)
            if has_bit(aside, bit):
                other = int64(cut.adjacency.periodic_ends[find_cut_bond(cut.adjacency, place, bit)])
            if is_vacant(lower, uint32(0), uint32(other)):
                kept = uint32(kept & ~uint32(uint32(1) << bit))
        opened[place] = kept
