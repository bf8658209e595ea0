"""CUDA kernels of Guo's Prim: round by round as in the paper, and all rounds in one launch.

Keys, candidates and trees of several items lie one after the other.  The arrays have the paper's
names: V and E are a graph's ``starts`` and ``ends``, W the ``weights``, R1, R2, R3 the candidates'
bonds, sites and keys (:mod:`percolab.trees.prim`).
"""

from typing import Any, NamedTuple

from numba import uint32, uint64

from percolab.bonds.words import uniform_of
from percolab.kernels.atomics import atomic_or
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import THREADS
from percolab.trees.min_reduction import (
    LANES,
    MOST_WARPS,
    NO_KEY,
    NO_TAIL,
    SIMULATED,
    least_of_blocks,
    least_of_parts,
    least_of_range,
    least_of_warp,
    precedes,
    tail_of,
)
from percolab.trees.prim import NO_BOND

cuda = load_cuda()

#: Threads of a persistent block: at least, and at most.
LEAST_THREADS, MOST_THREADS = (2, 8) if SIMULATED else (LANES, LANES * MOST_WARPS)
#: Flags in ``ends`` of the persistent kernels: the entry leads to the same site as the one before
#: it, or as the one after it.  Of such a run the first one's thread sees to all.
FOLLOWS, FOLLOWED = 2**31, 2**30
_SITE = FOLLOWED - 1
#: The bond of what is no candidate any more.
_GONE = 2**32 - 1


class Graph(NamedTuple):
    """A :class:`percolab.trees.prim.CompressedAdjacency` in the memory of a device."""

    sites: Any
    numbers: Any
    starts: Any
    ends: Any
    ranks: Any


class Rounds(NamedTuple):
    """What the rounds of one item work on.

    r1, r2, r3: bonds uint32, sites uint32 and keys uint64 of the candidates
    state:      uint32 (2,), how many of them are of the tree, and the site that came last
    keys, tails: temporary arrays of the minimum
    """

    r1: Any
    r2: Any
    r3: Any
    state: Any
    keys: Any
    tails: Any


@cuda.jit(cache=True)
def weigh_kernel(generator, samples, numbers, ranks, weights):
    """Write W of every sample; samples: the seed, then the items' samples."""
    item, half = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if half < ranks.size:
        number = numbers[ranks[half]]
        word, bit = uint32(number >> uint32(5)), uint32(number & uint32(31))
        key = uniform_of(generator, samples[0], samples[uint32(item + uint32(1))], word, bit)
        weights[uint64(uint64(item) * uint64(ranks.size) + uint64(half))] = key


@cuda.jit(cache=True)
def mark_tree_kernel(numbers, length, chosen, num_words, words):
    """Set the bits of chosen bonds, ``length`` entries an item, among words that are 0."""
    item, place = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if place < length:
        rank = chosen[uint64(uint64(item) * uint64(length) + uint64(place))]
        if rank < uint32(NO_BOND):
            number = numbers[rank]
            word = uint64(uint64(item) * uint64(num_words) + uint64(number >> uint32(5)))
            atomic_or(words, word, uint32(uint32(1) << uint32(number & uint32(31))))


@cuda.jit(cache=True)
def clear_tree_kernel(words):
    """Write zeros."""
    n = uint32(cuda.grid(1))
    if n < words.size:
        words[n] = uint32(0)


# Round by round.


@cuda.jit(cache=True)
def begin_rounds_kernel(sites, rounds):
    """Make all sites but the first candidates without a bond, and the first one the tree."""
    n = uint32(cuda.grid(1))
    if n < rounds.r1.size:
        site = sites[uint32(n + uint32(1))]
        rounds.r1[n], rounds.r2[n] = uint32(uint32(NO_BOND) | site), site
        rounds.r3[n] = uint64(NO_KEY)
    if n == uint32(0):
        rounds.state[0], rounds.state[1] = uint32(0), sites[0]


@cuda.jit(device=True)
def _take(rounds, tail):
    """Swap a candidate, the least, to the front; by one thread."""
    first, least = rounds.state[0], uint32(tail & uint64(0xFFFFFFFF))
    if first < rounds.r1.size:
        bond, site, key = rounds.r1[least], rounds.r2[least], rounds.r3[least]
        rounds.r1[least], rounds.r2[least] = rounds.r1[first], rounds.r2[first]
        rounds.r3[least] = rounds.r3[first]
        rounds.r1[first], rounds.r2[first], rounds.r3[first] = bond, site, key
        rounds.state[0], rounds.state[1] = uint32(first + uint32(1)), site


@cuda.jit(cache=True)
def least_kernel(rounds):
    """Find the least candidate of every block, the first kernel; if it is the only one, take it."""
    key, tail = least_of_range(rounds.r3, rounds.r1, rounds.state[0], uint32(rounds.r1.size))
    if cuda.threadIdx.x == 0:
        if cuda.gridDim.x == 1:
            _take(rounds, tail)
        else:
            rounds.keys[cuda.blockIdx.x], rounds.tails[cuda.blockIdx.x] = key, tail


@cuda.jit(cache=True)
def take_least_kernel(blocks, rounds):
    """Find the least candidate of all blocks, the second kernel, and take it."""
    _, tail = least_of_blocks(rounds.keys, rounds.tails, blocks)
    if cuda.threadIdx.x == 0:
        _take(rounds, tail)


@cuda.jit(cache=True)
def plain_least_kernel(rounds):
    """Find the least candidate without the primitive, and take it; one block.

    Every thread goes through its share of the candidates, then one of them through what they found.
    """
    keys = cuda.shared.array(THREADS, uint64)
    tails = cuda.shared.array(THREADS, uint64)
    key, tail = uint64(NO_KEY), uint64(NO_TAIL)
    thread = uint32(cuda.threadIdx.x)
    n = uint32(rounds.state[0] + thread)
    while n < rounds.r1.size:
        own, other = rounds.r3[n], tail_of(rounds.r1[n], n)
        if precedes(own, other, key, tail):
            key, tail = own, other
        n = uint32(n + uint32(THREADS))
    keys[thread], tails[thread] = key, tail
    cuda.syncthreads()
    if thread == uint32(0):
        for other in range(1, THREADS):
            if precedes(keys[other], tails[other], key, tail):
                key, tail = keys[other], tails[other]
        _take(rounds, tail)


@cuda.jit(cache=True)
def decrease_kernel(graph, weights, rounds):
    """Lower the candidates that bonds of the last site lead to.

    Every candidate looks for itself among these bonds, which a block has in shared memory, as many
    at a time as it has threads.
    """
    ends = cuda.shared.array(THREADS, uint32)
    bonds = cuda.shared.array(THREADS, uint32)
    keys = cuda.shared.array(THREADS, uint64)
    thread, site = uint32(cuda.threadIdx.x), rounds.state[1]
    stop = graph.starts[uint32(site + uint32(1))]
    first = uint32(rounds.state[0] + uint32(uint32(cuda.blockIdx.x) * uint32(THREADS)))
    while first < rounds.r1.size:
        n = uint32(first + thread)
        own, bond, key = uint32(_GONE), uint32(_GONE), uint64(NO_KEY)
        if n < rounds.r1.size:
            own, bond, key = rounds.r2[n], rounds.r1[n], rounds.r3[n]
        is_lower = False
        half = graph.starts[site]
        while half < stop:
            count = min(uint32(stop - half), uint32(THREADS))
            cuda.syncthreads()
            if thread < count:
                place = uint32(half + thread)
                ends[thread], bonds[thread] = graph.ends[place], graph.ranks[place]
                keys[thread] = weights[place]
            cuda.syncthreads()
            for other in range(count):
                if ends[other] == own and precedes(keys[other], bonds[other], key, bond):
                    key, bond, is_lower = keys[other], bonds[other], True
            half = uint32(half + count)
        if is_lower:
            rounds.r3[n], rounds.r1[n] = key, bond
        first = uint32(first + uint32(uint32(cuda.gridDim.x) * uint32(THREADS)))


# All rounds in one launch.


@cuda.jit(device=True)
def _least_of_stretch(keys, bonds, first, stop, step, but):
    """Return the least of the candidates first, first + step, ... below ``stop``, one left out."""
    key, tail = uint64(NO_KEY), uint64(NO_TAIL)
    site = uint32(first)
    while site < uint32(stop):
        if site != but and precedes(keys[site], tail_of(bonds[site], site), key, tail):
            key, tail = keys[site], tail_of(bonds[site], site)
        site = uint32(site + uint32(step))
    return key, tail


@cuda.jit(device=True)
def _relax(graph, weights, half, end, bond, key, keys, bonds, shift, marks):
    """Lower the candidate that entry ``half`` leads to, and mark it for the thread that owns it."""
    site = uint32(end & uint32(_SITE))
    while uint32(end & uint32(FOLLOWED)) != uint32(0):
        half = uint32(half + uint32(1))
        end = graph.ends[half]
        if precedes(weights[half], graph.ranks[half], key, bond):
            key, bond = weights[half], graph.ranks[half]
    known = bonds[site]
    if known != uint32(_GONE) and precedes(key, bond, keys[site], known):
        keys[site], bonds[site] = key, bond
        wide = uint32(shift - uint32(5)) if shift > uint32(5) else uint32(0)
        slot = uint32(site & uint32(uint32(uint32(1) << shift) - uint32(1)))
        atomic_or(marks, uint32(site >> shift), uint32(uint32(1) << uint32(slot >> wide)))


@cuda.jit(device=True)
def _lower_own(keys, bonds, first, stop, shift, marked, key, tail):
    """Return the least of a thread's least candidate and those that are marked of its stretch."""
    wide = uint32(1)
    if shift > uint32(5):
        wide = uint32(uint32(1) << uint32(shift - uint32(5)))
    site = uint32(first)
    while marked != uint32(0):
        if uint32(marked & uint32(1)) != uint32(0):
            last = min(uint32(site + wide), uint32(stop))
            other_key, other_tail = _least_of_stretch(
                keys, bonds, site, last, uint32(1), uint32(_GONE)
            )
            if precedes(other_key, other_tail, key, tail):
                key, tail = other_key, other_tail
        site = uint32(site + wide)
        marked = uint32(marked >> uint32(1))
    return key, tail


@cuda.jit(device=True)
def _grow(graph, points, weights, shift, keys, bonds, chosen):
    """Find the tree of one item by one block, whose candidates are keys and bonds by site.

    Every thread owns a stretch of 2^shift candidates, and has the least of them in registers.  A
    round finds the least of these; the warp that owns it goes through its stretch anew while the
    bonds of the new site are on their way; candidates that these lower are marked, one bit for
    1/32 of a stretch, and their owners look at what is marked.
    """
    part_keys = cuda.shared.array(MOST_WARPS, uint64)
    part_tails = cuda.shared.array(MOST_WARPS, uint64)
    marks = cuda.shared.array(MOST_THREADS, uint32)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    lane, warp = uint32(thread & uint32(LANES - 1)), uint32(thread // uint32(LANES))
    warps, slots = uint32(threads // uint32(LANES)), uint32(uint32(1) << shift)
    site = thread
    while site < points:
        keys[site], bonds[site] = uint64(NO_KEY), uint32(_GONE)
        site = uint32(site + threads)
    marks[thread] = uint32(0)
    cuda.syncthreads()
    n = thread
    while n < graph.sites.size:
        site = graph.sites[n]
        bonds[site] = uint32(uint32(NO_BOND) | site)
        n = uint32(n + threads)
    cuda.syncthreads()
    # Stretches beyond the last site are empty.
    begin = min(uint64(uint64(thread) << uint64(shift)), uint64(points))
    first = uint32(begin)
    stop = min(uint32(first + slots), points)
    own_key, own_tail = _least_of_stretch(keys, bonds, first, stop, uint32(1), uint32(_GONE))
    for taken in range(graph.sites.size):
        key, tail = least_of_warp(own_key, own_tail)
        if lane == uint32(0):
            part_keys[warp], part_tails[warp] = key, tail
        cuda.syncthreads()
        key, tail = least_of_parts(part_keys, part_tails, warps)
        site = uint32(tail & uint64(0xFFFFFFFF))
        half, end = graph.starts[site], graph.starts[uint32(site + uint32(1))]
        half = uint32(half + thread)
        lead, bond, weight = uint32(FOLLOWS), uint32(_GONE), uint64(NO_KEY)
        if half < end:
            lead, bond, weight = graph.ends[half], graph.ranks[half], weights[half]
        if thread == uint32(0):
            chosen[taken] = uint32(tail >> uint64(32))
            bonds[site], keys[site] = uint32(_GONE), uint64(NO_KEY)
        owner = uint32(site >> shift)
        if uint32(owner // uint32(LANES)) == warp:
            low = uint32(owner << shift)
            key, tail = _least_of_stretch(
                keys, bonds, uint32(low + lane), min(uint32(low + slots), points), LANES, site
            )
            key, tail = least_of_warp(key, tail)
            if thread == owner:
                own_key, own_tail = key, tail
        cuda.syncthreads()
        while half < end:
            if uint32(lead & uint32(FOLLOWS)) == uint32(0):
                _relax(graph, weights, half, lead, bond, weight, keys, bonds, shift, marks)
            half = uint32(half + threads)
            if half < end:
                lead, bond, weight = graph.ends[half], graph.ranks[half], weights[half]
        cuda.syncthreads()
        marked = marks[thread]
        if marked != uint32(0):
            marks[thread] = uint32(0)
            own_key, own_tail = _lower_own(
                keys, bonds, first, stop, shift, marked, own_key, own_tail
            )


@cuda.jit(cache=True)
def grow_in_shared_kernel(graph, points, weights, shift, chosen):
    """Find the tree of every item, a block each, its candidates in dynamic shared memory."""
    keys = cuda.shared.array(0, uint64)
    bonds = cuda.shared.array(0, uint32)[uint32(points << uint32(1)) :]
    item, halves, sites = uint64(cuda.blockIdx.x), graph.ends.size, graph.sites.size
    own = weights[uint64(item * uint64(halves)) :]
    _grow(graph, points, own, shift, keys, bonds, chosen[uint64(item * uint64(sites)) :])


@cuda.jit(cache=True)
def grow_in_memory_kernel(graph, points, weights, shift, all_keys, all_bonds, chosen):
    """Find the tree of every item, a block each, its candidates in the device's memory."""
    item, halves, sites = uint64(cuda.blockIdx.x), graph.ends.size, graph.sites.size
    own = weights[uint64(item * uint64(halves)) :]
    begin = uint64(item * uint64(points))
    keys, bonds = all_keys[begin:], all_bonds[begin:]
    _grow(graph, points, own, shift, keys, bonds, chosen[uint64(item * uint64(sites)) :])
