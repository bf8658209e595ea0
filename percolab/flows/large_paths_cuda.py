"""CUDA: shortest paths of few large samples on a grid, a block of threads each.

Both terminals are searched from at once, which halves the levels, and a site belongs to the one
that comes first: where a bond leads to a site of the other, there is a shortest path.  The sites of
a terminal stay apart: all are at distance 0.  From where the searches meet, all shortest paths are
followed back, again to both terminals at once.

A level is a list of *ends*, a site and a bond that leads away from it: site << slot_bits | slot.
An end takes one access to memory: whoever claims the site that it leads to has loaded with it which
bonds are open there.  State: uint32, of every site its distance and its open slots, side by side.
"""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.kernels.neighbours import has_bit

#: Ends of a level that are in shared memory, a thread of the block.
NEAR = 1 if SIMULATED else 4
#: The distance of a site that was not reached.
UNSEEN = 0xFFFFFFFF
#: The highest bit says of distances and ends from which terminal, of open slots that the site is
#: in one; the next, that shortest paths come there, or that a bond is across a boundary.
SIDE = _TERMINAL = 0x80000000
_COMES = _CROSSES = 0x40000000
_LOW = 0x3FFFFFFF


class PathNet(NamedTuple):
    """Where bonds lead, and the terminals.

    Slot 2k of a site is its bond of class k, slot 2k + 1 that of class k which leads to it.

    slot_bits: of a slot's number, uint32
    source, target: uint32, sites
    begins:    uint32 (points,), the distances when a search begins
    shape:     uint32 (axes,), of the grid
    offsets:   uint32 (slots, axes), grid points to the other end, none negative: round the torus
    deltas:    uint32 (slots,), what is added to a site's number, but across a boundary
    """

    slot_bits: Any
    source: Any
    target: Any
    begins: Any
    shape: Any
    offsets: Any
    deltas: Any


class Levels(NamedTuple):
    """The ends of a level and of the next: the first in shared memory, of odd levels from behind.

    near, far: uint32.  counts: uint32 (3,), how many there are, for the level modulo 3.
    """

    near: Any
    far: Any
    counts: Any


@cuda.jit(device=True)
def _go_round(net, site, slot):
    """Return the site at the other end of a slot, found along every axis: across boundaries too."""
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
    """Write the open slots of samples, from entry ``first`` on, and the distances of terminals."""
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
    """Close the bond of every site that has no other and is in no terminal, until there is none.

    Whoever closes the last but one of a site goes on there.
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
    """Find the shortest paths of samples from entry ``first`` on.

    far: uint32 (blocks, 4 * bonds), for ends.  numbers: uint64 (entries, 1 or 3), the length, and
    the bonds and sites of all shortest paths; 0 where there is none.
    """
    counts = cuda.shared.array(3, types.uint32)
    # The least length that was seen, and bonds and sites of shortest paths.
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
    """List the ends of a terminal's sites, as the first level."""
    n = uint32(cuda.threadIdx.x)
    while n < uint32(sites.size):
        slots = uint32(state[uint32(2 * sites[n] + 1)] & uint32(_CROSSES | _LOW))
        _list_ends(net, levels, uint32(1), sites[n], uint32(slots | side))
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _list_ends(net, levels, level, site, slots):
    """List the open ends of a site for a level; slots: its open ones, and its side."""
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
    """Return (where the n-th end of a level is, whether that is in shared memory)."""
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
    """Write a distance where an end leads to, if the expected one is there.

    Return (the distance that was there, the site, its open slots, the bit of that which leads
    back).
    """
    site, back = _follow(net, end)
    # Loaded first, so that it is under way while the atomic is waited for.
    slots = uint32(state[uint32(2 * site + 1)] & uint32(_CROSSES | _LOW))
    old = cuda.atomic.cas(state, uint32(2 * site), expected, mine)
    return uint32(old), site, slots, back


@cuda.jit(device=True)
def _count_ends(levels, level):
    """Return how many ends a level has, after a barrier, and make room for those two levels on."""
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
        # A thread may be ahead by a level, whose paths are longer.
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
    """Follow all shortest paths back from where the searches met, in place of a level more.

    Of an even length that is at sites, which either side came to first: their ends lead to both.
    Of an odd one it is at bonds, which both have.  Return how many bonds and sites of the paths
    this thread came by.
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
