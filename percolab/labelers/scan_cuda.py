"""CUDA: rows of small planar lattices: each thread scans one sample word by word.

After J. Hoshen and R. Kopelman, Phys. Rev. B 14, 3438 (1976): a cluster is represented by its runs
of sites near the word that is scanned, in a *window* of words; when a word leaves the window, the
clusters that end in it are complete.  A window has a slot for each of its words; a run is a node,
identified by its slot and the bit at which it begins.  Where the last axis is periodic, the first
words stay in their own slots to the end.  Each node has a uint16:

    a root       bit 15 is 0; ``size_bits`` bits have the number of sites of its cluster so far,
                 less one, and the bits above them the flags of the end layers that it touches
    a child      bit 15 is 1; bits 0-7 are 32 * slot + bit of its parent, bits 8-14 the periods
                 from parent to child along the axis that is periodic within the window, modulo 128

Bonds across the last boundary are joined last.  For these, the periods along the last axis matter,
too.  A root that gets a parent then gets one among the first words, marked by an addition of
``32 * kept`` to its number.  The root lies one period before that parent; or, if the root itself is
among the first words, a byte in a slot that is free by then has its periods.

The parent of a node is in the same or a later word, or in one of the first words if those are kept,
so no parent leaves the window before its children.  Where a row is two words (*paired*), the parent
may also be in the first word if the node is in the second.  The first one leaves the window before,
but no word scanned from then on reaches the second.

Periods modulo 128 are enough: a loop of a spanning tree and one bond visits no site twice, so that
it winds at most 64 times, and 64 times only if it visits all sites, which at most one loop of a
tree does.

All arrays are in shared memory; entries of all threads for one number are adjacent, so that the
threads of a warp have no bank conflicts.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64, types, uint8, uint16, uint32, uint64
from numpy.typing import NDArray

from percolab.kernels.bits import highest_one, lowest_one, popcount
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.neighbours import has_periodic, inner_word
from percolab.kernels.runs import low_bits, mark_segment_starts
from percolab.labelers.small_cuda import SmallLattice, count_openings, even_bits
from percolab.lattices.topology import PERIOD_BITS, Topology
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.measure.sums import SUMS32
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS

#: Threads of a block; each has one sample.
SAMPLES = 4 if SIMULATED else 64
#: The most slots of a window and the first words together.
MOST_SLOTS = 6
#: The most times that a loop may wind around an axis.
MOST_TURNS = 64
#: The first bit of the periods in a node, and the bit that marks a node with a parent.
_PERIODS, _CHILD = 8, 1 << 15
_empty, _with_cluster, _put = SUMS32.empty, SUMS32.with_cluster, SUMS32.put


class ScanLattice(NamedTuple):
    """A topology of few sites in the form that :func:`scan_rows_kernel` takes.

    small:     its words, bonds and end layers (:class:`percolab.labelers.small_cuda.SmallLattice`)
    ring:      slots of the words that move through the window, uint32
    kept:      slots of the first words, which stay, uint32; 0 unless the last axis is periodic
    size_bits: bits of the size of a cluster, uint32
    paired:    1 if a row is two words, and a root for both may be in either one; uint32
    around:    the axis whose periods are counted within the window, uint32
    first:     uint32 (num_words + 1,), for each word the first of the bonds across that axis'
               boundary whose later site is in it; then the first bond across the last boundary
    bonds:     uint32 (n,), all these bonds as numbers 32 * word + bit of an entry
    later, earlier: uint32 (n,), their sites, as 32 * slot + bit
    periods:   int32 (n,), periods along ``around`` from the earlier to the later site; along the
               last axis, the number is -1 for bonds across its boundary
    """

    small: Any
    ring: Any
    kept: Any
    size_bits: Any
    paired: Any
    around: Any
    first: Any
    bonds: Any
    later: Any
    earlier: Any
    periods: Any


class Window(NamedTuple):
    """A thread's data in shared memory.

    nodes:    uint16; the node of bit b of slot s is at ``base + (32 * s + b) * step``
    base:     uint32
    step:     SAMPLES, uint32, but unknown to the compiler, so that it multiplies and adds in one
              instruction instead of shifting
    bytes:    uint8, the same memory as nodes
    edges:    uint32, slot s at ``s * SAMPLES``: bits where a run or a vacancy begins
    occupied, joined: uint32, in the same order: the occupied sites, and those with an open bond
    """

    nodes: Any
    base: Any
    step: Any
    bytes: Any
    edges: Any
    occupied: Any
    joined: Any


def shared_bytes(lattice: ScanLattice) -> int:
    """Return the shared memory of a block."""
    return SAMPLES * int(lattice.ring + lattice.kept) * (3 * 4 + 32 * 2)


def make_scan_lattice(topology: Topology, small: SmallLattice) -> ScanLattice | None:
    """Return the topology for a scan; None if it does not fit into a window."""
    aside = [axis for axis in range(topology.num_axes - 1) if axis not in topology.open_axes]
    around = aside[0] if aside else 0
    size_bits = 15 - (2 * topology.num_axes - 1) * bool(topology.open_axes)
    owners, ends = topology.periodic_bonds % (32 * topology.num_words), topology.periodic_ends
    later, earlier = np.maximum(owners, ends), np.minimum(owners, ends)
    periods = _decode_periods(topology.periodic_codes, topology.num_axes)
    periods *= np.where(owners == later, -1, 1)
    closes = periods[-1] != 0
    kept = int(earlier[closes].max() // 32 + 1) if closes.any() else 0
    turning = [*aside, *([-1] if kept else [])]
    reach = [-(int(delta) >> 5) for delta in topology.deltas]
    within = ~closes & (earlier // 32 >= kept)
    # Words of the last layer stay in the window; if bonds join it to the first, one slot is free.
    last = np.concatenate([topology.end_layers[-1][1], later[closes]]) // 32
    last = topology.num_words - last[last >= kept] + bool(kept)
    apart = (later // 32 - earlier // 32)[within]
    ring = max([1 + int(max([*reach, *apart])), *map(int, last)])
    paired = int(_has_paired_words(topology, ring, kept))
    ring += ring % 2 * paired
    if (
        len(aside) > 1
        or min(topology.shape) == 1
        or topology.num_points > 2**size_bits
        or ring + kept > MOST_SLOTS
        or kept > 2
        or np.any(periods[-1][closes] != -1)
        or any(_count_turns(topology, axis) > MOST_TURNS for axis in turning)
    ):
        return None
    order = np.lexsort((later // 32, closes))
    words = np.where(closes, topology.num_words, later // 32)[order]
    own = periods[around] * (around != topology.num_axes - 1)
    first = np.searchsorted(words, np.arange(topology.num_words + 1))

    def place(sites: NDArray[np.int64]) -> NDArray[np.int64]:
        words = sites // 32
        slots = np.where(words < kept, ring + words, (words - kept) % ring)
        return 32 * slots + sites % 32

    arrays = first, topology.periodic_bonds[order], place(later[order]), place(earlier[order])
    return ScanLattice(
        small,
        *(np.uint32(number) for number in (ring, kept, size_bits, paired, around)),
        *(cuda.to_device(array.astype(np.uint32)) for array in arrays),
        cuda.to_device(own[order].astype(np.int32)),
    )


def _has_paired_words(topology: Topology, ring: int, kept: int) -> bool:
    """Return whether a root for both words of a row may be in either word.

    The window then has whole rows.  If words are kept, an additional slot costs more time than
    pairing saves.  With bonds half a row long, the first word of a row might reach the second word
    of a row that is about to leave.
    """
    steps = [abs(offset[0]) for offset in topology.offsets]
    is_free = ring % 2 == 0 or not kept
    return topology.shape[0] == 64 and max(steps) < 32 and kept % 2 == 0 and is_free


def _count_turns(topology: Topology, axis: int) -> float:
    """Return a bound on the winding number, along an axis, of a loop that visits no site twice."""
    steps = max(abs(offset[axis]) for offset in topology.offsets)
    return topology.num_points * steps / topology.shape[axis]


def _decode_periods(codes: NDArray[np.int64], axes: int) -> NDArray[np.int64]:
    """Return the periods along each axis, (axes, n), of the codes of bonds."""
    half, periods = 1 << PERIOD_BITS - 1, []
    for _ in range(axes):
        periods.append(((codes & 2 * half - 1) ^ half) - half)
        codes = codes - periods[-1] >> PERIOD_BITS
    return np.array(periods).reshape(axes, -1)


@cuda.jit(device=True)
def _at(n):
    return uint32(uint32(n) * uint32(SAMPLES))


@cuda.jit(device=True)
def _slot_before(lattice, slot, word, back):
    """Return the slot of the word ``back`` words before ``word``, which is in ``slot``."""
    if word < uint32(lattice.kept + back):
        return uint32(lattice.ring + uint32(word - back))
    return uint32(uint32(slot - back) + (lattice.ring if slot < back else uint32(0)))


@cuda.jit(device=True)
def _node_at(window, place):
    """Return the node of the run that begins at a bit of a slot, place ``32 * slot + bit``."""
    return uint32(window.base + uint32(place * window.step))


@cuda.jit(device=True)
def _node(window, place):
    """Return the node of the occupied site at a bit of a slot, place ``32 * slot + bit``."""
    slot = uint32(place >> uint32(5))
    below = low_bits(uint32(uint32(place & uint32(31)) + uint32(1)))
    edges = uint32(window.edges[_at(slot)] & below)
    return _node_at(window, uint32(uint32(slot << uint32(5)) | uint32(highest_one(edges))))


@cuda.jit(device=True)
def _begin(window, lattice, opened, base, word, slot, before):
    """Make nodes of the runs of a word; return whether the chain connects it to the word before.

    before: the slot of that word.
    """
    small = lattice.small
    adjacency = small.adjacency
    occupied, chained = uint32(small.exists[word]), uint32(0)
    if small.first_site:
        occupied = uint32(opened[uint32(uint32(base + small.first_site) + word)])
    if adjacency.chain >= 0:
        index = uint32(uint32(uint32(adjacency.chain) * adjacency.num_words) + word)
        chained = inner_word(opened, adjacency.periodic_words, base, index)
        if small.first_site and chained:
            last = uint32(0)
            if word:
                last = uint32(window.occupied[_at(before)] >> uint32(31))
            both = uint32(occupied & uint32(uint32(occupied << uint32(1)) | last))
            chained = uint32(chained & both)
    edges = uint32(uint32(~chained) | uint32(1))
    window.edges[_at(slot)], window.occupied[_at(slot)] = edges, occupied
    window.joined[_at(slot)] = uint32(chained | uint32(chained >> uint32(1)))
    # Bits before which the next run or a vacancy begins, or the word ends.
    ends = uint32(uint32(edges >> uint32(1)) | uint32(0x80000000))
    # 64 bits let the compiler add the number of a bit to the address.
    first, sites = uint64(_node_at(window, uint32(slot << uint32(5)))), uint32(0)
    for each in range(32):
        bit = 31 - each
        sites = uint32(sites + uint32(1))
        if uint32(ends >> uint32(bit)) & uint32(1):
            sites = uint32(0)
        window.nodes[first + uint64(bit) * uint64(SAMPLES)] = uint16(sites)
    _flag_ends(window, lattice, word, slot, edges, occupied)
    return uint32(chained & uint32(1))


@cuda.jit(device=True)
def _flag_ends(window, lattice, word, slot, edges, occupied):
    """Give the runs of a word the flags of the end layers that they touch, except for the last one.

    That layer, the last one of the last axis, is still in the window at the end.
    """
    masks, words = lattice.small.end_masks, lattice.small.adjacency.num_words
    place, flag = word, uint32(uint32(1) << lattice.size_bits)
    while uint32(place + words) < uint32(masks.size):
        left = uint32(masks[place] & occupied)
        while left:
            below = uint32(left - uint32(1))
            start = uint32(highest_one(uint32(edges & uint32(left ^ below))))
            left = uint32(left & below)
            n = _node_at(window, uint32(uint32(slot << uint32(5)) | start))
            window.nodes[n] = uint16(uint32(window.nodes[n]) | flag)
        flag, place = uint32(flag << uint32(1)), uint32(place + words)


@cuda.jit(device=True)
def _parent(window, entry):
    """Return the parent of a node that is no root."""
    return _node_at(window, uint32(entry & uint32(0xFF)))


@cuda.jit(device=True)
def _link(window, lattice, i, j, a, b, periods):
    """Make the first of two roots the parent of the second."""
    sizes = uint32(uint32(uint32(1) << lattice.size_bits) - uint32(1))
    size = uint32(uint32(a & sizes) + uint32(uint32(b & sizes) + uint32(1)))
    place = uint32(uint32(i - window.base) // uint32(SAMPLES))
    up = uint32(place | uint32(periods << uint32(_PERIODS)))
    window.nodes[j] = uint16(up | uint32(_CHILD))
    window.nodes[i] = uint16(size | uint32(uint32(a | b) & uint32(~sizes)))


@cuda.jit(device=True)
def _join(window, lattice, i, j, slot, periods):
    """Join the clusters of two nodes, the first of which is in the slot of the scanned word.

    periods: from the first to the second.  Return the periods of the loop that this bond closes,
    modulo 128; 0 if there is none.
    """
    winds = has_periodic(lattice.small.adjacency.periodic_words)
    a, b = uint32(window.nodes[i]), uint32(window.nodes[j])
    while uint32(a | b) >= uint32(_CHILD):
        if winds:
            if a >= uint32(_CHILD):
                periods = uint32(periods + uint32(a >> uint32(_PERIODS)))
            if b >= uint32(_CHILD):
                periods = uint32(periods - uint32(b >> uint32(_PERIODS)))
        i = _parent(window, a) if a >= uint32(_CHILD) else i
        j = _parent(window, b) if b >= uint32(_CHILD) else j
        a, b = uint32(window.nodes[i]), uint32(window.nodes[j])
    if i == j:
        return uint32(periods & uint32(0x7F))
    # The first node's root is in the scanned word or among the kept words.  If both roots are in
    # one word, or pair of words, that of the larger cluster stays a root.
    first = _node_at(window, uint32(uint32(slot & uint32(~lattice.paired)) << uint32(5)))
    turns = (uint32(j - first) < uint32(_at(32) << lattice.paired)) & (b > a)
    if winds:
        limit = _node_at(window, uint32(lattice.ring << uint32(5)))
        turns = (j >= limit) | (turns & (i < limit))
        periods = uint32(uint32(-int32(periods)) if turns else periods)
    up, down = j if turns else i, i if turns else j
    _link(window, lattice, up, down, a, b, uint32(periods & uint32(0x7F)))
    return uint32(0)


@cuda.jit(device=True)
def _join_class(window, lattice, opened, base, k, word, slot):
    """Join the runs of a word by the bonds of a class that cross no boundary.

    Return the periods of all loops that these bonds close, combined by bitwise or.
    """
    small = lattice.small
    adjacency, loops = small.adjacency, uint32(0)
    index = uint32(uint32(uint32(k) * adjacency.num_words) + word)
    bonds = inner_word(opened, adjacency.periodic_words, base, index)
    delta = int32(adjacency.ends[k])
    shift, back = uint32(delta & int32(31)), uint32(-int32(delta >> int32(5)))
    edges, high, low = window.edges[_at(slot)], slot, slot
    # The other ends are at bits ``shift`` and above of one word, and below ``shift`` of the next.
    one, other, there = uint32(1), uint32(0), uint32(0)
    rest = uint32(uint32(32) - shift)
    if word >= back:
        low = _slot_before(lattice, slot, word, back)
        one = window.edges[_at(low)]
        there = uint32(window.occupied[_at(low)] >> shift)
    if shift:
        high = _slot_before(lattice, slot, word, uint32(back - uint32(1)))
        other = uint32(window.edges[_at(high)] << rest)
        there = uint32(there | uint32(window.occupied[_at(high)] << rest))
    if small.first_site:
        bonds = uint32(bonds & uint32(window.occupied[_at(slot)] & there))
    window.joined[_at(slot)] = uint32(window.joined[_at(slot)] | bonds)
    window.joined[_at(low)] = uint32(window.joined[_at(low)] | uint32(bonds << shift))
    if shift:
        far = uint32(bonds >> rest)
        window.joined[_at(high)] = uint32(window.joined[_at(high)] | far)
    starts = uint32(uint32(one >> shift) | other)
    left = mark_segment_starts(bonds, uint32(edges | starts))
    first = uint32(slot << uint32(5))
    # The run of the first bond's other end may begin before bit ``shift``.
    initial = uint32(highest_one(uint32(one & low_bits(uint32(shift + uint32(1))))))
    initial = uint32(uint32(low << uint32(5)) + initial)
    starts = uint32(starts | uint32(1))
    far = uint32(uint32(low << uint32(5)) + shift)
    near = uint32(uint32(high << uint32(5)) + shift)
    while left:
        below = uint32(left - uint32(1))
        mask = uint32(left ^ below)
        left = uint32(left & below)
        i = _node_at(window, uint32(first | uint32(highest_one(uint32(edges & mask)))))
        bit = uint32(highest_one(uint32(starts & mask)))
        j = uint32(uint32(near + bit) - uint32(32)) if bit >= rest else uint32(far + bit)
        j = _node_at(window, uint32(j if bit else initial))
        loops = uint32(loops | _join(window, lattice, i, j, slot, uint32(0)))
    return loops


@cuda.jit(device=True)
def _is_open(window, lattice, opened, base, n):
    """Return whether a bond across a boundary is open; if so, mark its sites in ``joined``."""
    bond, later, earlier = lattice.bonds[n], lattice.later[n], lattice.earlier[n]
    bits = uint32(opened[uint32(base + uint32(bond >> uint32(5)))])
    bits = uint32(bits >> uint32(bond & uint32(31)))
    at, to = _at(uint32(later >> uint32(5))), _at(uint32(earlier >> uint32(5)))
    later, earlier = uint32(later & uint32(31)), uint32(earlier & uint32(31))
    if lattice.small.first_site:
        both = uint32(window.occupied[at] >> later) & uint32(window.occupied[to] >> earlier)
        bits = uint32(bits & uint32(both))
    if uint32(bits & uint32(1)) == uint32(0):
        return False
    window.joined[at] = uint32(window.joined[at] | uint32(uint32(1) << later))
    window.joined[to] = uint32(window.joined[to] | uint32(uint32(1) << earlier))
    return True


@cuda.jit(device=True)
def _join_around(window, lattice, opened, base, word, slot):
    """Join a word's runs by bonds across the boundary within the window; return loops' periods."""
    loops = uint32(0)
    for number in range(lattice.first[word], lattice.first[uint32(word + uint32(1))]):
        n = uint32(number)
        if _is_open(window, lattice, opened, base, n):
            i, j = _node(window, lattice.later[n]), _node(window, lattice.earlier[n])
            periods = uint32(-int32(lattice.periods[n]))
            loops = uint32(loops | _join(window, lattice, i, j, slot, periods))
    return loops


@cuda.jit(device=True)
def _byte_of(window, first, free, i):
    """Return the place of the byte of a node in the first words, whose nodes begin at ``first``."""
    n = uint32(uint32(i - first) // uint32(SAMPLES))
    at = _node_at(window, uint32(uint32(free << uint32(5)) + uint32(n >> uint32(1))))
    return uint32(uint32(at << uint32(1)) | uint32(n & uint32(1)))


@cuda.jit(device=True)
def _find_root(window, lattice, free, i, around, along):
    """Return (root, its entry, ``around`` and ``along`` plus periods from the root to node i)."""
    beyond = uint32(uint32(lattice.ring + lattice.kept) << uint32(5))
    entry = uint32(window.nodes[i])
    while entry >= uint32(_CHILD):
        around = uint32(around + uint32(entry >> uint32(_PERIODS)))
        place = uint32(entry & uint32(0xFF))
        if place >= beyond:
            place = uint32(place - uint32(lattice.kept << uint32(5)))
            first = _node_at(window, uint32(lattice.ring << uint32(5)))
            if i < first:
                along = uint32(along - uint32(1))
            else:
                along = uint32(along + uint32(window.bytes[_byte_of(window, first, free, i)]))
        i = _node_at(window, place)
        entry = uint32(window.nodes[i])
    return i, entry, around, along


@cuda.jit(device=True)
def _close(window, lattice, opened, base, loops, free):
    """Join across the last boundary; return (axes that loops wind around, if in two directions).

    loops: the periods of loops within the window, as bits.  free: a slot without a word.  The axes
    are two bits: that of the window, and the last one.
    """
    seen, two, x, y = uint32(0), False, int32(0), int32(0)
    if loops:
        # How often does not matter: all these loops wind around the same axis.
        seen, x = uint32(1), int32(1)
    kept, none = lattice.kept, uint32(0)
    if kept == none:
        return seen, two
    beyond = uint32(kept << uint32(5))
    first = _node_at(window, uint32(lattice.ring << uint32(5)))
    begin = lattice.first[lattice.small.adjacency.num_words]
    for number in range(begin, uint32(lattice.bonds.size)):
        n = uint32(number)
        if not _is_open(window, lattice, opened, base, n):
            continue
        end = _node(window, lattice.earlier[n])
        i, j, periods = _node(window, lattice.later[n]), end, uint32(lattice.periods[n])
        i, a, to_i, up_i = _find_root(window, lattice, free, i, none, uint32(1))
        j, b, to_j, up_j = _find_root(window, lattice, free, j, periods, none)
        around, along = uint32(to_i - to_j), uint32(up_i - up_j)
        if i == j:
            # The representatives nearest to 0.
            u = int32(int32(uint32(around << uint32(25))) >> int32(25))
            v = int32(int32(uint32(along << uint32(24))) >> int32(24))
            if u != int32(0):
                seen = uint32(seen | uint32(1))
            if v != int32(0):
                seen = uint32(seen | uint32(2))
            if x == int32(0) and y == int32(0):
                x, y = u, v
            two = two or int32(x * v) != int32(y * u)
            continue
        up, down, to = i, j, around
        if i < first:
            # The parent of i is the node of the other site itself, not its root.
            _link(window, lattice, j, i, b, a, none)
            up, down, to = end, i, uint32(periods - to_i)
        else:
            _link(window, lattice, i, j, a, b, none)
            window.bytes[_byte_of(window, first, free, j)] = uint8(along & uint32(0xFF))
        place = uint32(uint32(uint32(up - window.base) // uint32(SAMPLES)) + beyond)
        to = uint32(uint32(to & uint32(0x7F)) << uint32(_PERIODS))
        window.nodes[down] = uint16(uint32(place | to) | uint32(_CHILD))
    return seen, two


@cuda.jit(device=True)
def _span_last(window, lattice, slot):
    """Return whether a cluster touches both end layers of the last axis.

    slot: that of the last word.
    """
    masks, words = lattice.small.end_masks, lattice.small.adjacency.num_words
    spans = False
    axis = uint32(lattice.small.axes - int32(1))
    flag = uint32(uint32(1) << uint32(lattice.size_bits + uint32(axis << uint32(1))))
    begin, back = uint32(uint32(masks.size) - words), uint32(0)
    while back < min(lattice.ring, words):
        word = uint32(words - uint32(back + uint32(1)))
        place = _slot_before(lattice, slot, uint32(words - uint32(1)), back)
        back = uint32(back + uint32(1))
        left = uint32(masks[uint32(begin + word)] & window.occupied[_at(place)])
        while left:
            bit = uint32(lowest_one(left))
            left = uint32(left & uint32(left - uint32(1)))
            entry = uint32(window.nodes[_node(window, uint32(uint32(place << uint32(5)) + bit))])
            while entry >= uint32(_CHILD):
                entry = uint32(window.nodes[_parent(window, entry)])
            spans = spans or uint32(entry & flag) != uint32(0)
    return spans


@cuda.jit(device=True)
def _end(window, lattice, slot, sums, spanned, single):
    """Add the clusters whose roots are in a slot; return (sums, flags that span, single sites)."""
    occupied, joined = window.occupied[_at(slot)], window.joined[_at(slot)]
    single = uint32(single + uint32(popcount(uint32(occupied & uint32(~joined)))))
    first, children = uint64(_node_at(window, uint32(slot << uint32(5)))), uint32(0)
    for each in range(32):
        entry = uint32(window.nodes[first + uint64(31 - each) * uint64(SAMPLES)])
        children = uint32(uint32(children << uint32(1)) | uint32(entry >> uint32(15)))
    left = uint32(window.edges[_at(slot)] & uint32(uint32(occupied & joined) & uint32(~children)))
    sizes = uint32(uint32(uint32(1) << lattice.size_bits) - uint32(1))
    while left:
        n = _node_at(window, uint32(uint32(slot << uint32(5)) + uint32(lowest_one(left))))
        left = uint32(left & uint32(left - uint32(1)))
        entry = uint32(window.nodes[n])
        sums = _with_cluster(sums, uint32(uint32(entry & sizes) + uint32(1)))
        flags = uint32(entry >> lattice.size_bits)
        spanned = uint32(spanned | uint32(flags & uint32(flags >> uint32(1))))
    return sums, spanned, single


@cuda.jit(device=True)
def _scan(window, lattice, opened, base):
    """Scan the words of an entry; return (sums over clusters, flags of the row)."""
    adjacency = lattice.small.adjacency
    words, kept, ring = adjacency.num_words, lattice.kept, lattice.ring
    sums, spanned, single, loops = _empty(), uint32(0), uint32(0), uint32(0)
    slot, before = uint32(0), uint32(0)
    winds = has_periodic(adjacency.periodic_words)
    for each in range(words):
        word = uint32(each)
        slot = uint32(slot + uint32(1))
        if word < kept:
            slot = uint32(ring + word)
        elif word == kept or slot == ring:
            slot = uint32(0)
        if word >= uint32(kept + ring):
            sums, spanned, single = _end(window, lattice, slot, sums, spanned, single)
        if _begin(window, lattice, opened, base, word, slot, before):
            at = _at(before)
            window.joined[at] = uint32(window.joined[at] | uint32(0x80000000))
            j = _node(window, uint32(uint32(before << uint32(5)) + uint32(31)))
            i = _node_at(window, uint32(slot << uint32(5)))
            loops = uint32(loops | _join(window, lattice, i, j, slot, uint32(0)))
        for k in range(len(adjacency.ends)):
            if k != adjacency.chain:
                more = _join_class(window, lattice, opened, base, k, word, slot)
                loops = uint32(loops | more)
        if winds:
            loops = uint32(loops | _join_around(window, lattice, opened, base, word, slot))
        before = slot
    bits, seen, two = uint32(0), uint32(0), False
    free = uint32(slot + uint32(1)) if slot + uint32(1) < ring else uint32(0)
    is_used = words >= uint32(kept + ring)
    if winds:
        if is_used:
            sums, spanned, single = _end(window, lattice, free, sums, spanned, single)
        seen, two = _close(window, lattice, opened, base, loops, free)
    if lattice.small.end_masks.size and _span_last(window, lattice, slot):
        bits = uint32(uint32(1) << uint32(lattice.small.axes - int32(1)))
    for number in range(uint32(ring + kept)):
        slot = uint32(number)
        has_word = slot >= ring or uint32(slot + kept) < words
        if has_word and not (winds and is_used and slot == free):
            sums, spanned, single = _end(window, lattice, slot, sums, spanned, single)
    for _ in range(single):
        sums = _with_cluster(sums, uint32(1))
    bits = uint32(bits | even_bits(spanned))
    if seen & uint32(1):
        bits = uint32(bits | uint32(uint32(1) << uint32(uint32(FIRST_WRAPPING) + lattice.around)))
    if seen & uint32(2):
        last = uint32(uint32(FIRST_WRAPPING - 1) + uint32(lattice.small.axes))
        bits = uint32(bits | uint32(uint32(1) << last))
    if two:
        bits = uint32(bits | uint32(1 << TWO_DIRECTIONS))
    return sums, bits


@cuda.jit(cache=True, max_registers=64)
def scan_rows_kernel(lattice, opened, entries, rows):
    """Write the rows of entries, one per thread.

    opened: uint32, ``lattice.small.stride`` words of every entry.  rows: int64,
    ``lattice.small.row_width`` of every entry.
    """
    shared, thread = cuda.shared.array(0, types.uint32), uint32(cuda.threadIdx.x)
    halves, bytes_ = cuda.shared.array(0, types.uint16), cuda.shared.array(0, types.uint8)
    small, plane = lattice.small, _at(uint32(lattice.ring + lattice.kept))
    # Two warps share the banks: each has one half of every four bytes.
    half = uint32(SAMPLES // 2)
    is_second = uint32(thread >= half)
    column = uint32(uint32(uint32(thread - uint32(is_second * half)) << uint32(1)) + is_second)
    window = Window(
        halves,
        uint32(uint32(uint32(6) * plane) + column),
        uint32(cuda.blockDim.x),
        bytes_,
        shared[thread:],
        shared[uint32(plane + thread) :],
        shared[uint32(uint32(plane << uint32(1)) + thread) :],
    )
    entry = uint32(uint32(cuda.blockIdx.x * cuda.blockDim.x) + thread)
    if entry >= entries:
        return
    sums, bits = _scan(window, lattice, opened, uint32(entry * small.stride))
    row = int64(entry) * int64(small.row_width)
    _put(rows, row, 1, sums)
    rows[row + SPANNING] = int64(bits)
    if small.row_width > uint32(ROW_WIDTH):
        total = uint32(0)
        for word in range(small.adjacency.num_words):
            total = uint32(total + count_openings(small, opened, entry, uint32(word)))
        rows[row + ROW_WIDTH] = int64(total)
