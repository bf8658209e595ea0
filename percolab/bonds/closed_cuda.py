"""CUDA kernels that count the vacant sites, or the closed bonds, of drawn samples."""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.bonds.hooks import word_limit
from percolab.bonds.words import BLIND_PLANES, XORWOW, open_by_planes, open_word
from percolab.bonds.xorwow import next_digits, xorwow_state
from percolab.kernels.bits import popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element

#: The most thresholds at which one launch counts.
MOST_LIMITS = 32
# Counters per threshold, so that the threads of a warp do not queue for one; and their total.
_COUNTERS = 32
_ALL_COUNTERS = MOST_LIMITS * _COUNTERS


class Drawn(NamedTuple):
    """The words of a sample that are counted.

    first_word: number of the first of them in the sample, uint32
    exists:     uint32 (words,), the bonds, or the sites, that exist
    classes:    thresholds of classes of bonds, :class:`percolab.bonds.hooks.ClassLimits`, or ()
    """

    first_word: Any
    exists: Any
    classes: Any


@cuda.jit(cache=True)
def count_closed_kernel(exists, opened, counts):
    """Count the bonds, or the sites, of every entry that exist and are not open.

    exists: uint32 (words,); opened: uint32 (entries * words,); counts: uint32 (entries,), first 0
    """
    shared = cuda.shared.array(1, types.uint32)
    entry = uint32(cuda.blockIdx.y)
    base = uint32(entry * uint32(exists.size))
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    total = uint32(0)
    for step in range(PER_THREAD):
        word = element(step)
        if word < exists.size:
            closed = uint32(exists[word] & uint32(~opened[uint32(base + uint32(word))]))
            total = uint32(total + uint32(popcount(closed)))
    if total != uint32(0):
        cuda.atomic.add(shared, 0, total)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(counts, entry, shared[0])


@cuda.jit(device=True)
def _add_closed(counters, limits, word, drawn, planes, state):
    """Count a word's closed bonds at every threshold, by the first planes of its stream."""
    exists = drawn.exists[word]
    for n in range(limits.size):
        opened = open_by_planes(planes, state, word_limit(drawn.classes, word, limits[n]), exists)
        place = uint32(n * _COUNTERS + cuda.threadIdx.x % _COUNTERS)
        cuda.atomic.add(counters, place, uint32(popcount(uint32(exists & uint32(~opened)))))


@cuda.jit(cache=True)
def count_closed_along_kernel(generator, samples, limits, drawn, first, steps, counts):
    """Count the closed bonds, or vacant sites, of every entry at each threshold of part of a grid.

    samples: uint64 (1 + entries,), the seed and the entries' samples
    limits:  uint64 (n,), thresholds from step ``first`` of the grid on, n <= MOST_LIMITS
    drawn:   :class:`Drawn`
    counts:  uint32 (entries * steps,), those of an entry adjacent, initially zeros
    A word's random digits are generated once for all thresholds.
    """
    counters = cuda.shared.array(_ALL_COUNTERS, uint32)
    planes = cuda.local.array(BLIND_PLANES, uint32)
    entry, thread = uint32(cuda.blockIdx.y), cuda.threadIdx.x
    seed, sample, count = samples[0], samples[uint32(entry + uint32(1))], limits.size
    for n in range(thread, count * _COUNTERS, THREADS):
        counters[n] = uint32(0)
    cuda.syncthreads()
    for step in range(PER_THREAD):
        word = element(step)
        if word < drawn.exists.size:
            number = uint64(uint64(drawn.first_word) + uint64(word))
            if generator == XORWOW:
                v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, number)
                for plane in range(BLIND_PLANES):
                    digits, v0, v1, v2, v3, v4, d = next_digits(plane, v0, v1, v2, v3, v4, d)
                    planes[plane] = digits
                _add_closed(counters, limits, word, drawn, planes, (v0, v1, v2, v3, v4, d))
            else:
                exists = drawn.exists[word]
                for n in range(count):
                    limit = word_limit(drawn.classes, word, limits[n])
                    opened = open_word(generator, seed, sample, number, limit, exists)
                    place = uint32(n * _COUNTERS + thread % _COUNTERS)
                    closed = uint32(exists & uint32(~opened))
                    cuda.atomic.add(counters, place, uint32(popcount(closed)))
    cuda.syncthreads()
    for n in range(thread, count, THREADS):
        total = uint32(0)
        for k in range(_COUNTERS):
            # Each thread begins at a different counter, to avoid bank conflicts.
            total = uint32(total + counters[n * _COUNTERS + (n + k) % _COUNTERS])
        place = uint32(uint32(entry * uint32(steps)) + uint32(uint32(first) + uint32(n)))
        cuda.atomic.add(counts, place, total)
