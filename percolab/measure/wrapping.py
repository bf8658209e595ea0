"""Wrapping: clusters that close on themselves around a periodic axis, by winding numbers.

A node of a union-find has, with its parent, the number of periods from the parent to it along every
axis.  A bond across periodic boundaries adds the periods that it crosses.  If it closes a loop, the
periods around the loop are its winding numbers; unless all are zero, the cluster *wraps*.  Which
loops are found depends on the order of the bonds; the axes that any loop winds around, and whether
two loops wind in different directions, do not.  Machta et al., Phys. Rev. E 54, 1332 (1996); Newman
and Ziff, Phys. Rev. E 64, 016706 (2001), section II.D.

Periods along all axes are one integer (:func:`percolab.lattices.topology.period_codes`).

In a CUDA forest a node is one uint64: the parent in its low half, the periods from it in the high.
"""

import numpy as np
from numba import int32, int64, njit, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import inner_word, other_end, periodic_bond
from percolab.lattices.topology import PERIOD_BITS

#: The first wrapping bit in a row's flags, above the spanning bits; and the bit that is set if
#: loops wind in two directions.
FIRST_WRAPPING, TWO_DIRECTIONS = 8, 16


@inner
def read_parent(node):
    """Return the parent of a CUDA forest's node, as uint32."""
    return uint32(node & uint64(0xFFFFFFFF))


@inner
def periods_to(node):
    """Return the periods from the parent of a CUDA forest's node to it, as an int32 code."""
    return int32(uint32(node >> uint64(32)))


@inner
def root_in(forest, i):
    """Return the root of a node of a CUDA forest, as uint32."""
    i = uint32(i)
    parent = read_parent(forest[i])
    while parent != i:
        i = parent
        parent = read_parent(forest[i])
    return i


def winding_in(signed, unsigned):
    """Return (periods_along, are_parallel, wrapping_bits) on codes of one integer type.

    signed, unsigned: Numba's types of the codes, 64 bits on the CPU and 32 on CUDA, where wider
    codes took the kernels half of the threads that a multiprocessor can hold.
    """

    @njit
    def periods_along(code, axis, width):
        """Return the signed periods along one axis of a code with ``width`` bits per axis.

        Half a field's range is added to every field, so that no field borrows from the next.
        """
        half = unsigned(unsigned(1) << unsigned(width - 1))
        halves = half
        for _ in range(axis):
            halves = unsigned(unsigned(halves << unsigned(width)) | half)
        shifted = unsigned(unsigned(unsigned(code) + halves) >> unsigned(axis * width))
        return signed(
            signed(shifted & unsigned(unsigned(half << unsigned(1)) - unsigned(1))) - signed(half)
        )

    @njit
    def are_parallel(one, other, axes, width):
        """Return whether two codes wind in the same direction, or in opposite ones."""
        for a in range(axes):
            for b in range(a):
                cross = signed(periods_along(one, a, width) * periods_along(other, b, width))
                if cross != signed(periods_along(one, b, width) * periods_along(other, a, width)):
                    return False
        return True

    @inner
    def wrapping_bits(loop, before, axes, width):
        """Return the bits of a row's flags that a loop sets, uint32.

        loop: its winding numbers; before: those of an earlier loop of the sample, or 0 if there is
        none.
        """
        bits = uint32(0)
        for axis in range(axes):
            if periods_along(loop, axis, width) != signed(0):
                bits = uint32(bits | uint32(uint32(1) << uint32(FIRST_WRAPPING + axis)))
        if before != signed(0) and not are_parallel(loop, before, axes, width):
            bits = uint32(bits | uint32(uint32(1) << uint32(TWO_DIRECTIONS)))
        return bits

    return periods_along, are_parallel, wrapping_bits


periods_along, are_parallel, wrapping_bits = winding_in(int64, uint64)


@inner
def note_loop(wound, loop, axes):
    """Return the bits of a row's flags that a loop sets; ``loop[0]`` keeps the first one."""
    # A loop with the same or the opposite winding numbers as the first sets no further bits.
    if wound == int64(0) or wound == loop[0] or wound == -loop[0]:
        return int64(0)
    bits = int64(wrapping_bits(wound, loop[0], axes, PERIOD_BITS))
    if loop[0] == int64(0):
        loop[0] = wound
    return bits


@inner
def find_winding(parents, periods, i):
    """Return (root of i, periods from the root to i), shortening the path (serial use)."""
    i, total = uint32(i), int64(0)
    parent = uint32(parents[i])
    while parent != i:
        grandparent = uint32(parents[parent])
        if grandparent != parent:
            periods[i] += periods[parent]
            parents[i] = grandparent
        total += periods[i]
        i = grandparent
        parent = uint32(parents[i])
    return i, total


@inner
def join_over_periods(parents, periods, i, j, code):
    """Join i and j by a bond from i to j over ``code`` periods (serial use).

    Return (root that stays, root that became its child, 0) or, if they were in one tree already,
    (root, root, winding numbers of the loop that the bond closes).
    """
    i, j = uint32(i), uint32(j)
    # The first step needs no branch: a root is its own parent, with periods 0.
    a, away = find_winding(parents, periods, parents[i])
    # This precedes the other search, which may give i another parent.
    away += periods[i] + code
    b, to_j = find_winding(parents, periods, parents[j])
    # The periods from a to b.  Again, no branch for which root is smaller, or whether both are one.
    away -= to_j + periods[j]
    stays, child = min(a, b), max(a, b)
    parents[child] = stays
    periods[child] = int64(a != b) * (away if a < b else -away)
    return stays, child, int64(a == b) * away


@inner
def _join_inner_bonds(opened, adjacency, parents, periods):
    """Join the ends of all open bonds that cross no periodic boundary, in a forest of the sites."""
    here, num_words = uint32(0), int64(adjacency.num_words)
    for i in range(parents.size):
        parents[i] = i
        periods[i] = 0
    for k in range(len(adjacency.ends)):
        for word in range(num_words):
            left = inner_word(opened, adjacency.periodic_words, here, uint32(k * num_words + word))
            while left != uint32(0):
                i = uint32(32 * word + trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                other = other_end(adjacency.ends, k, i)
                join_over_periods(parents, periods, i, other, int64(0))


@njit(nogil=True, cache=True)
def wrapping_from_bonds(opened, adjacency, parents, periods, axes):
    """Return the wrapping bits of a sample, joining all its open bonds one by one.

    parents and periods: scratch, one int32 and one int64 per grid point.
    """
    _join_inner_bonds(opened, adjacency, parents, periods)
    loop = np.zeros(1, np.int64)
    bits = int64(0)
    for n in range(adjacency.periodic_bonds.size):
        is_open, i, j = periodic_bond(n, opened, uint32(0), adjacency)
        if is_open:
            code = adjacency.periodic_codes[n]
            _, _, wound = join_over_periods(parents, periods, i, j, code)
            bits |= note_loop(wound, loop, axes)
    return bits


@njit(nogil=True, cache=True)
def mark_wrapping_clusters(opened, adjacency, parents, periods, numbers, axes, flags):
    """Set in the flags of every cluster, uint32, the wrapping bits of its axes.

    parents: scratch as for :func:`wrapping_from_bonds`.  periods: int64, gets the periods to every
    site from the smallest of its cluster.  numbers: int32, the number of each site's cluster
    """
    _join_inner_bonds(opened, adjacency, parents, periods)
    for n in range(adjacency.periodic_bonds.size):
        is_open, i, j = periodic_bond(n, opened, uint32(0), adjacency)
        if is_open:
            code = adjacency.periodic_codes[n]
            _, _, wound = join_over_periods(parents, periods, i, j, code)
            flags[numbers[i]] |= wrapping_bits(wound, int64(0), axes, PERIOD_BITS)
    # Parents are processed before their children, as they are smaller.
    for i in range(parents.size):
        periods[i] += periods[parents[i]]
        parents[i] = parents[parents[i]]


@njit(nogil=True, cache=True)
def join_pieces(pairs, codes, parents, loops):
    """Join pieces of clusters pair by pair; ``parents`` gets the smallest piece of every cluster.

    pairs: int64 (n, 2).  codes: int64 (n,), the periods from the first to the second.  parents:
    int32, initially every piece its own.  loops: int64 (n,), gets the winding numbers of the loop
    that a pair closes, 0 if none.
    """
    periods = np.zeros(parents.size, np.int64)
    for n in range(len(pairs)):
        _, _, loops[n] = join_over_periods(parents, periods, pairs[n, 0], pairs[n, 1], codes[n])
    for i in range(parents.size):
        parents[i] = parents[parents[i]]
