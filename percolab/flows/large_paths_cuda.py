"""CUDA: shortest paths of few large samples on a grid, with a block of threads for each.

Searches start from both terminals at once, which halves the number of levels, and a site belongs to
the search that reaches it first: the first bonds to sites of the other search give the shortest
paths.  The sites of a terminal are not joined: all are at distance 0.  From where the searches
meet, all shortest paths are followed back, again to both terminals at once.

A level is a list of *ends*, a site and a bond that leads away from it: site << slot_bits | slot.
An end costs one memory access: the site's open bonds are loaded together with its distance.  State:
uint32, the distance and the open slots of every site, next to each other.
"""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.kernels.neighbours import has_bit

#: Number of ends of a level in shared memory, per thread of the block.
NEAR = 1 if SIMULATED else 4
#: The distance of a site that was not reached.
UNSEEN = 0xFFFFFFFF
#: The highest bit is the terminal of distances and ends; in open slots it marks sites of terminals.
#: The next bit marks sites on shortest paths, or sites with bonds across a boundary.
SIDE = _TERMINAL = 0x80000000
_COMES = _CROSSES = 0x40000000
_LOW = 0x3FFFFFFF


class PathNet(NamedTuple):
    """The ends of bonds, and the terminals.

    Slot 2k of a site is its bond of class k, slot 2k + 1 the bond of class k that leads to it.

    slot_bits: number of bits of a slot's number, uint32
    source, target: uint32, sites
    begins:    uint32 (points,), the distances at the start of a search
    shape:     uint32 (axes,), of the grid
    offsets:   uint32 (slots, axes), offsets to the other end, modulo the shape: none is negative
    deltas:    uint32 (slots,), difference of the site numbers, unless across a boundary
    """

    slot_bits: Any
    source: Any
    target: Any
    begins: Any
    shape: Any
    offsets: Any
    deltas: Any


class Levels(NamedTuple):
    """The ends of a level and of the next: the first ones in ``near``, the others in ``far``.

    near: uint32, shared memory; far: uint32, odd levels from the end.  counts: uint32 (3,), numbers
    of ends, by level modulo 3.
    """

    near: Any
    far: Any
    counts: Any


@cuda.jit(device=True)
def _go_round(net, site, slot):
    """Return the site at the other end of a slot, also across boundaries, axis by axis."""
    other, stride = uint32(0), uint32(1)
    for axis in range(net.shape.size):
        length = net.shape[axis]
        at = uint32(uint32(site % length) + net.offsets[slot, axis])
        site = uint32(site // length)
        other = uint32(other + uint32(stride * uint32(at - length if at >= length else at)))
        stride = uint32(stride * length)
    return other


@cuda.jit(device=True)
def _follow(net, end):
    """Return (the site that an end leads to, the bit of the slot that leads back)."""
    site = uint32(uint32(end & uint32(_LOW)) >> net.slot_bits)
    slot = uint32(uint32(end & uint32(_LOW)) - uint32(site << net.slot_bits))
    back = uint32(uint32(1) << uint32(slot ^ uint32(1)))
    if uint32(end & uint32(_CROSSES)) != uint32(0):
        return _go_round(net, site, slot), back
    return uint32(site + net.deltas[slot]), back


@cuda.jit(cache=True)
def open_slots_kernel(net, opened, words, first, states):
    """Write the open slots of samples, starting at entry ``first``, and the initial distances."""
    entry = uint32(cuda.blockIdx.y)
    state, base = states[entry], uint32(uint32(first + entry) * words)
    num_words = uint32(uint32(net.begins.size + 31) >> uint32(5))
    for step in range(PER_THREAD):
        site = element(step)
        if site < uint32(net.begins.size):
            slots = uint32(_TERMINAL if net.begins[site] != uint32(UNSEEN) else 0)
            for slot in range(net.deltas.size):
                end = _go_round(net, site, slot)
                owner = end if slot & 1 else site
                word = uint32(base + uint32(uint32(slot >> 1) * num_words))
                if has_bit(opened[uint32(word + uint32(owner >> uint32(5)))], owner & uint32(31)):
                    slots = uint32(slots | uint32(uint32(1) << uint32(slot)))
                    if end != uint32(site + net.deltas[slot]):
                        slots = uint32(slots | uint32(_CROSSES))
            state[uint32(2 * site)], state[uint32(2 * site + 1)] = net.begins[site], slots


@cuda.jit(cache=True)
def prune_kernel(net, states):
    """Close the last bond of sites that are in no terminal, until no such site has just one bond.

    A thread that leaves the next site with one bond goes on there.
    """
    state = states[cuda.blockIdx.y]
    for step in range(PER_THREAD):
        site = element(step)
        if site < uint32(net.begins.size):
            slots = state[uint32(2 * site + 1)]
            while slots < uint32(_TERMINAL) and popcount(uint32(slots & uint32(_LOW))) == 1:
                bit = uint32(slots & uint32(_LOW))
                cuda.atomic.and_(state, uint32(2 * site + 1), uint32(~bit))
                crosses = uint32(slots & uint32(_CROSSES))
                end = uint32(uint32(site << net.slot_bits) | uint32(lowest_one(bit)))
                site, back = _follow(net, uint32(end | crosses))
                slots = cuda.atomic.and_(state, uint32(2 * site + 1), uint32(~back))
                slots = uint32(slots & uint32(~back))


@cuda.jit(cache=True)
def large_path_kernel(net, first, states, far, numbers):
    """Find the shortest paths of samples, starting at entry ``first``.

    far: uint32 (blocks, 4 * bonds), for ends.  numbers: uint64 (entries, 1 or 3), the length, and
    the numbers of bonds and sites on all shortest paths; 0 if there is no path.
    """
    counts = cuda.shared.array(3, types.uint32)
    # The least length seen so far, and the numbers of bonds and sites on shortest paths.
    met = cuda.shared.array(1, types.uint32)
    sums = cuda.shared.array(2, types.uint64)
    near = cuda.shared.array(0, types.uint32)
    block, thread = uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    entry, state = uint32(first + block), states[block]
    levels = Levels(near, far[block], counts)
    if thread < uint32(3):
        counts[thread] = uint32(0)
    if thread == uint32(0):
        met[0], sums[0], sums[1] = uint32(UNSEEN), uint64(0), uint64(0)
    cuda.syncthreads()
    _begin_at(net, state, levels, net.source, uint32(0))
    _begin_at(net, state, levels, net.target, uint32(SIDE))
    length = _find_length(net, state, levels, met)
    if numbers.shape[1] > 1:
        if length != uint32(0):
            bonds, sites = _go_back(net, state, levels, length)
            cuda.atomic.add(sums, 0, bonds)
            cuda.atomic.add(sums, 1, sites)
        cuda.syncthreads()
        if thread < uint32(2):
            numbers[entry, thread + uint32(1)] = sums[thread]
    if thread == uint32(0):
        numbers[entry, 0] = uint64(length)


@cuda.jit(device=True)
def _begin_at(net, state, levels, sites, side):
    """List the ends of a terminal's sites as the first level."""
    n = uint32(cuda.threadIdx.x)
    while n < uint32(sites.size):
        slots = uint32(state[uint32(2 * sites[n] + 1)] & uint32(_CROSSES | _LOW))
        _list_ends(net, levels, uint32(1), sites[n], uint32(slots | side))
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _list_ends(net, levels, level, site, slots):
    """List the open ends of a site for a level; slots: its open slots, and its side."""
    end, bits = uint32(slots & uint32(SIDE | _CROSSES)), uint32(slots & uint32(_LOW))
    end = uint32(end | uint32(site << net.slot_bits))
    n = uint32(cuda.atomic.add(levels.counts, uint32(level % uint32(3)), uint32(popcount(bits))))
    while bits != uint32(0):
        place, is_near = _place(levels, level, n)
        one = uint32(end | uint32(lowest_one(bits)))
        if is_near:
            levels.near[place] = one
        else:
            levels.far[place] = one
        bits = uint32(bits & uint32(bits - uint32(1)))
        n = uint32(n + uint32(1))


@cuda.jit(device=True)
def _place(levels, level, n):
    """Return the index of the n-th end of a level, and whether it is in shared memory."""
    most, is_odd = uint32(uint32(NEAR) * uint32(cuda.blockDim.x)), uint32(level & uint32(1))
    if n < most:
        return uint32(n + uint32(most * is_odd)), True
    return (uint32(uint32(levels.far.size) - uint32(1) - n) if is_odd else n), False


@cuda.jit(device=True)
def _take(levels, level, n):
    """Return the n-th end of a level."""
    place, is_near = _place(levels, level, n)
    return levels.near[place] if is_near else levels.far[place]


@cuda.jit(device=True)
def _claim(net, state, end, expected, mine):
    """Replace the distance of the site that an end leads to if it is the expected one.

    Return (the site's former distance, the site, its open slots, the bit of the slot back).
    """
    site, back = _follow(net, end)
    # The load is issued first, so that it overlaps with the wait for the atomic.
    slots = uint32(state[uint32(2 * site + 1)] & uint32(_CROSSES | _LOW))
    old = cuda.atomic.cas(state, uint32(2 * site), expected, mine)
    return uint32(old), site, slots, back


@cuda.jit(device=True)
def _count_ends(levels, level):
    """Return the number of ends of a level, after a barrier, and clear that of two levels later."""
    count = levels.counts[uint32(level % uint32(3))]
    if cuda.threadIdx.x == 0:
        levels.counts[uint32(uint32(level + uint32(2)) % uint32(3))] = uint32(0)
    return count


@cuda.jit(device=True)
def _find_length(net, state, levels, met):
    """Return the length of the shortest path, 0 if there is none, and write distances."""
    level = uint32(1)
    while True:
        cuda.syncthreads()
        # A length from a thread that is one level ahead is longer, and does not end this level.
        if met[0] < uint32(2 * level - 1):
            return met[0]
        count = _count_ends(levels, level)
        if count == uint32(0):
            return uint32(0)
        following = uint32(level + uint32(1))
        n = uint32(cuda.threadIdx.x)
        while n < count:
            end = _take(levels, level, n)
            side = uint32(end & uint32(SIDE))
            mine = uint32(side | level)
            old, site, slots, back = _claim(net, state, end, uint32(UNSEEN), mine)
            if old == uint32(UNSEEN):
                slots = uint32(uint32(slots ^ back) | side)
                _list_ends(net, levels, following, site, slots)
            elif uint32(old & uint32(SIDE)) != side:
                cuda.atomic.min(met, 0, uint32(level + uint32(old & uint32(_LOW))))
            n = uint32(n + uint32(cuda.blockDim.x))
        level = following


@cuda.jit(device=True)
def _go_back(net, state, levels, length):
    """Follow all shortest paths back from where the searches met, instead of a further level.

    If the length is even, they meet at sites, which either side may have reached first: their ends
    lead to both terminals.  If it is odd, they meet at bonds, which both sides list.  Return the
    numbers of bonds and sites of the paths that this thread visited.
    """
    level, is_odd = uint32(uint32(length + uint32(1)) >> uint32(1)), uint32(length & uint32(1))
    nearer, turn = uint32(length - level), uint32(SIDE)
    bonds, sites = uint64(0), uint64(0)
    if cuda.threadIdx.x == 0:
        levels.counts[uint32(uint32(level + uint32(1)) % uint32(3))] = uint32(0)
    while True:
        cuda.syncthreads()
        count, following = _count_ends(levels, level), uint32(level + uint32(1))
        n = uint32(cuda.threadIdx.x)
        while n < count:
            end = _take(levels, level, n)
            own = uint32(end & uint32(SIDE))
            side = uint32(own ^ turn)
            expected = uint32(side | nearer)
            mine = uint32(expected | uint32(_COMES))
            old, site, slots, _ = _claim(net, state, end, expected, mine)
            is_first = turn == uint32(0) or (is_odd != uint32(0) and own == uint32(0))
            if is_first and uint32(old | uint32(_COMES)) == mine:
                bonds = uint64(bonds + uint64(1))
            if old == expected:
                sites = uint64(sites + uint64(1))
                others, owns = uint32(slots | side), uint32(slots | own)
                _list_ends(net, levels, following, site, others)
                if turn != uint32(0) and is_odd == uint32(0):
                    _list_ends(net, levels, following, site, owns)
            n = uint32(n + uint32(cuda.blockDim.x))
        if nearer == uint32(0):
            return bonds, sites
        level, nearer, turn = following, uint32(nearer - uint32(1)), uint32(0)
