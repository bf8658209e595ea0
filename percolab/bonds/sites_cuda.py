"""CUDA kernels where sites are drawn too: close what a vacant site closes, count the vacant."""

from numba import types, uint32, uint64

from percolab.bonds.sites import close_word, is_vacant
from percolab.bonds.words import BLIND_PLANES, XORWOW, open_by_planes, open_word
from percolab.bonds.xorwow import next_digits, xorwow_state
from percolab.kernels.bits import popcount
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element

cuda = load_cuda()

#: Thresholds at which vacant sites are counted in one launch.
MOST_LIMITS = 32
# Counters of a threshold, so that the threads of a warp do not queue for one; and of all.
_COUNTERS = 32
_ALL_COUNTERS = MOST_LIMITS * _COUNTERS


@cuda.jit(cache=True)
def close_bonds_kernel(opened, sites):
    """Close the bonds that have a vacant site; one thread a word of sites.

    Bonds across a periodic seam are closed by :func:`close_seam_kernel` where their other end is.
    """
    adjacency = sites.adjacency
    num_words = adjacency.num_words
    item, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if word < num_words:
        base, start = uint32(item * sites.first_word), uint32(item * num_words)
        for k in range(len(adjacency.ends)):
            close_word(opened, base, sites.occupied, start, adjacency, k, word)


@cuda.jit(cache=True)
def close_seam_kernel(opened, sites):
    """Close the bonds across a periodic seam whose other end is vacant."""
    adjacency = sites.adjacency
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < adjacency.seam_bonds.size:
        start = uint32(item * adjacency.num_words)
        if is_vacant(sites.occupied, start, adjacency.seam_ends[n]):
            bond = adjacency.seam_bonds[n]
            place = uint32(uint32(item * sites.first_word) + uint32(bond >> 5))
            bit = uint32(uint32(1) << uint32(bond & 31))
            cuda.atomic.and_(opened, place, uint32(~bit))


@cuda.jit(cache=True)
def clear_counts_kernel(counts, size):
    """Set the first ``size`` counts to zero."""
    for step in range(PER_THREAD):
        n = element(step)
        if n < size:
            counts[n] = uint32(0)


@cuda.jit(cache=True)
def count_vacant_kernel(exists, occupied, counts):
    """Add up the sites of every item that there are and that are not occupied.

    exists: uint32 (words,); occupied: uint32 (items * words,); counts: uint32 (items,), begin as 0
    """
    shared = cuda.shared.array(1, types.uint32)
    item = uint32(cuda.blockIdx.y)
    base = uint32(item * uint32(exists.size))
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    found = uint32(0)
    for step in range(PER_THREAD):
        word = element(step)
        if word < exists.size:
            vacant = uint32(exists[word] & uint32(~occupied[uint32(base + uint32(word))]))
            found = uint32(found + uint32(popcount(vacant)))
    if found != uint32(0):
        cuda.atomic.add(shared, 0, found)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(counts, item, shared[0])


@cuda.jit(device=True)
def _add_vacant(counters, limits, planes, state, exists):
    """Add up what a word lacks at every threshold, from the first planes of its XORWOW stream."""
    for n in range(limits.size):
        occupied = open_by_planes(planes, state, limits[n], exists)
        place = uint32(n * _COUNTERS + cuda.threadIdx.x % _COUNTERS)
        cuda.atomic.add(counters, place, uint32(popcount(uint32(exists & uint32(~occupied)))))


@cuda.jit(cache=True)
def count_vacant_along_kernel(generator, samples, limits, sites, first, steps, counts):
    """Add up how many sites of every item are vacant at each threshold of a part of a grid.

    samples: uint64 (1 + items,), the seed and the items' samples
    limits:  uint64 (n,), thresholds of sites from step ``first`` of the grid on, n <= MOST_LIMITS
    counts:  uint32 (items * steps,), all of an item side by side, begin as zeros
    A word's random digits are made once for all thresholds.
    """
    counters = cuda.shared.array(_ALL_COUNTERS, uint32)
    planes = cuda.local.array(BLIND_PLANES, uint32)
    item, thread = uint32(cuda.blockIdx.y), cuda.threadIdx.x
    seed, sample, count = samples[0], samples[uint32(item + uint32(1))], limits.size
    for n in range(thread, count * _COUNTERS, THREADS):
        counters[n] = uint32(0)
    cuda.syncthreads()
    for step in range(PER_THREAD):
        word = element(step)
        if word < sites.exists.size:
            number = uint64(uint64(sites.first_word) + uint64(word))
            exists = sites.exists[word]
            if generator == XORWOW:
                v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, number)
                for plane in range(BLIND_PLANES):
                    digits, v0, v1, v2, v3, v4, d = next_digits(plane, v0, v1, v2, v3, v4, d)
                    planes[plane] = digits
                _add_vacant(counters, limits, planes, (v0, v1, v2, v3, v4, d), exists)
            else:
                for n in range(count):
                    occupied = open_word(generator, seed, sample, number, limits[n], exists)
                    place = uint32(n * _COUNTERS + thread % _COUNTERS)
                    vacant = uint32(exists & uint32(~occupied))
                    cuda.atomic.add(counters, place, uint32(popcount(vacant)))
    cuda.syncthreads()
    for n in range(thread, count, THREADS):
        found = uint32(0)
        for k in range(_COUNTERS):
            # Each thread begins at another counter, so that they lie in different banks.
            found = uint32(found + counters[n * _COUNTERS + (n + k) % _COUNTERS])
        place = uint32(uint32(item * uint32(steps)) + uint32(uint32(first) + uint32(n)))
        cuda.atomic.add(counts, place, found)
