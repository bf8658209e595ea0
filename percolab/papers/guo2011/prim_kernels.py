"""CUDA kernels of Guo's Prim: round by round as in the paper, and all rounds in one launch.

Keys, candidates and trees of several entries lie one after the other.  The arrays have the paper's
names: V and E are a graph's ``starts`` and ``ends``, W the ``weights``, R1, R2, R3 the candidates'
bonds, sites and keys (:mod:`percolab.papers.guo2011.prim`).
"""

from typing import Any, NamedTuple

from numba import uint32, uint64

from percolab.bonds.words import uniform_number
from percolab.kernels.atomics import atomic_or
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.papers.guo2011.min_reduction import (
    NO_KEY,
    NO_TAIL,
    min_of_blocks,
    min_of_range,
    pack_tail,
    precedes,
)
from percolab.papers.guo2011.prim import NO_BOND
from percolab.papers.guo2011.warps import (
    WARP,
    first_lane,
    from_lane,
    from_lane64,
    in_step,
    lanes_where,
    least_of_lanes,
)

#: Flags in ``ends`` of all rounds in one launch: the entry leads to the same site as the one before
#: it, or as the one after it.  Of such a run the first one's thread sees to all.
FOLLOWS, FOLLOWED = 2**31, 2**30
_SITE = FOLLOWED - 1
#: The bond of what is no candidate any more.
_GONE = 2**32 - 1


class AdjacencyArrays(NamedTuple):
    """A :class:`percolab.papers.guo2011.prim.CompressedAdjacency` in the memory of a device."""

    sites: Any
    numbers: Any
    starts: Any
    ends: Any
    ranks: Any


class Rounds(NamedTuple):
    """What the rounds of one entry work on.

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
    """Write W of every sample; samples: the seed, then the entries' samples."""
    entry, half = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if half < ranks.size:
        number = numbers[ranks[half]]
        word, bit = uint32(number >> uint32(5)), uint32(number & uint32(31))
        key = uniform_number(generator, samples[0], samples[uint32(entry + uint32(1))], word, bit)
        weights[uint64(uint64(entry) * uint64(ranks.size) + uint64(half))] = key


@cuda.jit(cache=True)
def mark_tree_kernel(numbers, length, chosen, num_words, words):
    """Set the bits of chosen bonds, ``length`` ranks a batch entry, among words that are 0."""
    entry, place = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if place < length:
        rank = chosen[uint64(uint64(entry) * uint64(length) + uint64(place))]
        if rank < uint32(NO_BOND):
            number = numbers[rank]
            word = uint64(uint64(entry) * uint64(num_words) + uint64(number >> uint32(5)))
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
    key, tail = min_of_range(rounds.r3, rounds.r1, rounds.state[0], uint32(rounds.r1.size))
    if cuda.threadIdx.x == 0:
        if cuda.gridDim.x == 1:
            _take(rounds, tail)
        else:
            rounds.keys[cuda.blockIdx.x], rounds.tails[cuda.blockIdx.x] = key, tail


@cuda.jit(cache=True)
def take_least_kernel(blocks, rounds):
    """Find the least candidate of all blocks, the second kernel, and take it."""
    _, tail = min_of_blocks(rounds.keys, rounds.tails, blocks)
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
        own, other = rounds.r3[n], pack_tail(rounds.r1[n], n)
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
def _min_of_stretch(keys, bonds, first, stop, step):
    """Return the least of the candidates first, first + step, ... below ``stop``."""
    key, tail = uint64(NO_KEY), uint64(NO_TAIL)
    site = uint32(first)
    while site < uint32(stop):
        if precedes(keys[site], pack_tail(bonds[site], site), key, tail):
            key, tail = keys[site], pack_tail(bonds[site], site)
        site = uint32(site + uint32(step))
    return key, tail


@cuda.jit(device=True)
def _site_of(tail):
    """Return the site in a tail."""
    return uint32(tail & uint64(0xFFFFFFFF))


@cuda.jit(device=True)
def _min_of_leads(keys, bonds, leads, first, stop):
    """Return the least of the leads first, first + WARP, ... below ``stop``."""
    key, tail = uint64(NO_KEY), uint64(NO_TAIL)
    group = uint32(first)
    while group < uint32(stop):
        site = leads[group]
        if precedes(keys[site], pack_tail(bonds[site], site), key, tail):
            key, tail = keys[site], pack_tail(bonds[site], site)
        group = uint32(group + uint32(WARP))
    return key, tail


@cuda.jit(device=True)
def _relax(graph, weights, half, end, bond, key, keys, bonds):
    """Lower the candidate that entry ``half`` leads to; return whether it was, and by what."""
    site = uint32(end & uint32(_SITE))
    while uint32(end & uint32(FOLLOWED)) != uint32(0):
        half = uint32(half + uint32(1))
        end = graph.ends[half]
        if precedes(weights[half], graph.ranks[half], key, bond):
            key, bond = weights[half], graph.ranks[half]
    known = bonds[site]
    is_lower = known != uint32(_GONE) and precedes(key, bond, keys[site], known)
    if is_lower:
        keys[site], bonds[site] = key, bond
    return is_lower, key, pack_tail(bond, site)


@cuda.jit(device=True)
def _grow(graph, points, weights, levels, keys, bonds, leads, chosen):
    """Find the tree of one entry by one warp, whose candidates are keys and bonds by site.

    2^levels[0] neighbouring candidates are a group, 2^levels[1] neighbouring groups a lane's.  The
    least candidate of a group is its lead, known by its site; the least of a lane's is in its
    registers, with where its bonds begin and end.  A round finds the least of these and goes
    through its group and the leads of its lane anew, while the bonds of the new site are on their
    way.  Bonds lower candidates, a lane each; the few that come to lead their groups are passed to
    the lanes that own them, one after the other.
    """
    lane = uint32(cuda.threadIdx.x)
    size = uint32(uint32(1) << levels[0])
    groups = uint32(uint32(points + uint32(size - uint32(1))) >> levels[0])
    shift = uint32(levels[0] + levels[1])
    # All existing sites are candidates without a bond.
    site = lane
    while site < points:
        keys[site], bonds[site] = uint64(NO_KEY), uint32(_GONE)
        site = uint32(site + uint32(WARP))
    in_step()
    n = lane
    while n < graph.sites.size:
        site = graph.sites[n]
        bonds[site] = uint32(uint32(NO_BOND) | site)
        n = uint32(n + uint32(WARP))
    in_step()
    # The leads of groups, and the least candidate of each lane.
    own_key, own_tail = uint64(NO_KEY), uint64(NO_TAIL)
    group = uint32(lane << levels[1])
    stop = min(uint32(group + uint32(uint32(1) << levels[1])), groups)
    while group < stop:
        low = uint32(group << levels[0])
        high = min(uint32(low + size), points)
        key, tail = _min_of_stretch(keys, bonds, low, high, uint32(1))
        leads[group] = _site_of(tail)
        if precedes(key, tail, own_key, own_tail):
            own_key, own_tail = key, tail
        group = uint32(group + uint32(1))
    own_first, own_stop = uint32(0), uint32(0)
    for taken in range(graph.sites.size):
        # The new site's bonds are requested as soon as it is known.
        site = _site_of(own_tail)
        if site < points:
            own_first, own_stop = graph.starts[site], graph.starts[uint32(site + uint32(1))]
        # Take the least candidate of all lanes; load its first bonds.
        _, tail = least_of_lanes(own_key, own_tail)
        site = _site_of(tail)
        owner, group = uint32(site >> shift), uint32(site >> levels[0])
        first, stop = from_lane(own_first, owner), from_lane(own_stop, owner)
        half = uint32(first + lane)
        end, bond, weight = uint32(FOLLOWS), uint32(_GONE), uint64(NO_KEY)
        if half < stop:
            end, bond, weight = graph.ends[half], graph.ranks[half], weights[half]
        if lane == uint32(0):
            chosen[taken] = uint32(tail >> uint64(32))
            bonds[site], keys[site] = uint32(_GONE), uint64(NO_KEY)
        in_step()
        # Find the lead of its group anew, and the least candidate of its lane.
        low = uint32(group << levels[0])
        high = min(uint32(low + size), points)
        key, tail = _min_of_stretch(keys, bonds, uint32(low + lane), high, uint32(WARP))
        key, tail = least_of_lanes(key, tail)
        if lane == uint32(0):
            leads[group] = _site_of(tail)
        in_step()
        low = uint32(owner << levels[1])
        high = min(uint32(low + uint32(uint32(1) << levels[1])), groups)
        key, tail = _min_of_leads(keys, bonds, leads, uint32(low + lane), high)
        key, tail = least_of_lanes(key, tail)
        if lane == owner:
            own_key, own_tail = key, tail
        # Lower the candidates that its bonds lead to; pass new leads to the lanes that own them.
        while first < stop:
            is_lower, key, tail = False, uint64(NO_KEY), uint64(NO_TAIL)
            if uint32(end & uint32(FOLLOWS)) == uint32(0):
                is_lower, key, tail = _relax(graph, weights, half, end, bond, weight, keys, bonds)
            in_step()
            if is_lower:
                site = _site_of(tail)
                lead = leads[uint32(site >> levels[0])]
                is_lower = lead == site or precedes(
                    key, tail, keys[lead], pack_tail(bonds[lead], lead)
                )
            leading = lanes_where(is_lower)
            while leading != uint32(0):
                source = first_lane(leading)
                leading = uint32(leading & uint32(leading - uint32(1)))
                new_key, new_tail = from_lane64(key, source), from_lane64(tail, source)
                site = _site_of(new_tail)
                if uint32(site >> shift) == lane:
                    group = uint32(site >> levels[0])
                    lead = leads[group]
                    if precedes(new_key, new_tail, keys[lead], pack_tail(bonds[lead], lead)):
                        leads[group] = site
                    if precedes(new_key, new_tail, own_key, own_tail):
                        own_key, own_tail = new_key, new_tail
            first = uint32(first + uint32(WARP))
            half = uint32(first + lane)
            end = uint32(FOLLOWS)
            if half < stop:
                end, bond, weight = graph.ends[half], graph.ranks[half], weights[half]
            in_step()


@cuda.jit(cache=True)
def grow_in_shared_kernel(graph, points, weights, levels, chosen):
    """Find the tree of every entry, a warp each, its candidates in dynamic shared memory."""
    keys = cuda.shared.array(0, uint64)
    words = cuda.shared.array(0, uint32)
    bonds = words[uint32(points << uint32(1)) :]
    leads = words[uint32(points * uint32(3)) :]
    entry, halves, sites = uint64(cuda.blockIdx.x), graph.ends.size, graph.sites.size
    own, tree = weights[uint64(entry * uint64(halves)) :], chosen[uint64(entry * uint64(sites)) :]
    _grow(graph, points, own, levels, keys, bonds, leads, tree)


@cuda.jit(cache=True)
def grow_in_memory_kernel(graph, points, weights, levels, all_keys, all_bonds, chosen):
    """Find the tree of every entry, a warp each, its candidates in the device's memory.

    An entry's leads are behind its bonds.
    """
    entry, halves, sites = uint64(cuda.blockIdx.x), graph.ends.size, graph.sites.size
    own, tree = weights[uint64(entry * uint64(halves)) :], chosen[uint64(entry * uint64(sites)) :]
    begin = uint64(entry * uint64(points))
    keys, bonds = all_keys[begin:], all_bonds[uint64(begin << uint64(1)) :]
    leads = bonds[points:]
    _grow(graph, points, own, levels, keys, bonds, leads, tree)
