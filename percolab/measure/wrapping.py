"""Wrapping: clusters that close on themselves around a periodic axis, by winding numbers.

A node of a union-find carries, beside its parent, how many periods it is away from it along every
axis.  A bond that leads to its other end across seams adds its own.  Where it closes a loop, the
periods around the loop are its winding numbers; unless all are zero the cluster *wraps*.  Which
loops are found hangs on the order of the bonds, but not along which axes any of them winds, nor
whether two of them wind in different directions.  Machta et al., Phys. Rev. E 54, 1332 (1996);
Newman and Ziff, Phys. Rev. E 64, 016706 (2001), section II.D.

Periods along all axes are one integer (:func:`percolab.lattices.topology.period_codes`).

In a CUDA forest a node is one uint64: its parent below, the periods from the parent to it above.
"""

import numpy as np
from numba import int32, int64, njit, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.neighbours import has_bit, inner_word, other_end
from percolab.lattices.topology import PERIOD_BITS

#: Where the wrapping bits begin in a row's flags, beside the spanning bits; and the bit that is set
#: where loops wind in two directions.
FIRST_WRAPPING, TWO_DIRECTIONS = 8, 16


@njit
def parent_of(node):
    """Return the parent of a CUDA forest's node, as uint32."""
    return uint32(node & uint64(0xFFFFFFFF))


@njit
def periods_to(node):
    """Return the periods from the parent of a CUDA forest's node to it, as an int32 code."""
    return int32(uint32(node >> uint64(32)))


@njit
def root_in(forest, i):
    """Return the root of a node of a CUDA forest, as uint32."""
    i = uint32(i)
    parent = parent_of(forest[i])
    while parent != i:
        i = parent
        parent = parent_of(forest[i])
    return i


@njit
def periods_along(code, axis, width):
    """Return the periods along one axis of a code with ``width`` bits an axis, as int64."""
    rest = int64(code)
    half, mask = int64(1) << int64(width - 1), (int64(1) << int64(width)) - int64(1)
    for _ in range(axis):
        low = ((rest & mask) ^ half) - half
        rest = (rest - low) >> int64(width)
    return ((rest & mask) ^ half) - half


@njit
def are_parallel(one, other, axes, width):
    """Return whether two codes wind in the same direction, or in opposite ones."""
    for a in range(axes):
        for b in range(a):
            cross = periods_along(one, a, width) * periods_along(other, b, width)
            if cross != periods_along(one, b, width) * periods_along(other, a, width):
                return False
    return True


@njit
def wrapping_bits(loop, before, axes, width):
    """Return the bits of a row's flags that a loop sets.

    loop: its winding numbers; before: those of another loop of the sample, or 0 if it is the first.
    """
    bits = int64(0)
    for axis in range(axes):
        if periods_along(loop, axis, width) != int64(0):
            bits |= int64(1) << int64(FIRST_WRAPPING + axis)
    if before != int64(0) and not are_parallel(loop, before, axes, width):
        bits |= int64(1) << int64(TWO_DIRECTIONS)
    return bits


@njit
def note_loop(wound, loop, axes):
    """Return the bits of a row's flags that a loop sets; ``loop[0]`` keeps the first one."""
    if wound == int64(0):
        return int64(0)
    bits = wrapping_bits(wound, loop[0], axes, PERIOD_BITS)
    if loop[0] == int64(0):
        loop[0] = wound
    return bits


@njit
def find_winding(parents, periods, i):
    """Return (root of i, periods from the root to i), shortening the path (serial use)."""
    total = int64(0)
    parent = parents[i]
    while parent != i:
        grandparent = parents[parent]
        if grandparent != parent:
            periods[i] += periods[parent]
            parents[i] = grandparent
        total += periods[i]
        i = parents[i]
        parent = parents[i]
    return i, total


@njit
def close_or_hang(parents, periods, i, j, code):
    """Join i and j by a bond that leads from i to j over ``code`` periods (serial use).

    Returns (root kept, root hung under it, 0), or where they were one tree already (root, root,
    winding numbers of the loop that the bond closes).
    """
    a, to_i = find_winding(parents, periods, i)
    b, to_j = find_winding(parents, periods, j)
    if a == b:
        return a, b, to_i + code - to_j
    if a < b:
        parents[b], periods[b] = a, to_i + code - to_j
        return a, b, int64(0)
    parents[a], periods[a] = b, to_j - code - to_i
    return b, a, int64(0)


@njit(nogil=True, cache=True)
def wrapping_of_bonds(opened, bonds, codes, parents, periods, axes):
    """Return the wrapping bits of a sample's open bonds, from all of them, one by one.

    bonds: (seam words, ends, words of a class, seam bonds, their other ends).  codes: int64, of the
    seam bonds.  parents and periods: scratch, one int32 and one int64 a grid point.
    """
    seam, ends, num_words, seam_bonds, seam_ends = bonds
    for i in range(parents.size):
        parents[i] = i
        periods[i] = 0
    for k in range(len(ends)):
        for word in range(num_words):
            left = inner_word(opened, seam, uint32(0), uint32(k * num_words + word))
            while left != uint32(0):
                i = uint32(32 * word + trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                close_or_hang(parents, periods, i, other_end(ends, k, i), int64(0))
    loop = np.zeros(1, np.int64)
    bits = int64(0)
    for n in range(seam_bonds.size):
        bond = seam_bonds[n]
        if has_bit(opened[bond >> 5], bond & 31):
            i, j = bond % (32 * num_words), seam_ends[n]
            _, _, wound = close_or_hang(parents, periods, i, j, codes[n])
            bits |= note_loop(wound, loop, axes)
    return bits
