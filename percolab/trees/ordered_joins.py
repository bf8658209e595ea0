"""Bonds in ascending order, joined one by one: the last step of Kruskal's algorithm (1956).

Bonds of a sample are sorted by the first 32 digits of their uniform numbers, their *prefixes*; the
few bonds with equal prefixes are sorted by all digits, and then by number.  Given keys are sorted
by all their bits.  Digit k of the 32 bonds of a word is one word of its stream, a *plane*: the
transpose of 32 planes is 32 prefixes.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.bonds.keys import stream_keys
from percolab.bonds.philox import philox_digits
from percolab.bonds.words import XORWOW
from percolab.bonds.xorwow import make_xorwow_state, next_digits
from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import inner, inner_with_arrays
from percolab.kernels.neighbours import find_bond_end
from percolab.kernels.union_find import find_halving
from percolab.trees.weights import compute_key

# Number of words made together: vector instructions process 16 of them.
_BLOCK = 64
# Eleven digits per pass: the counts of a pass fit into the fastest cache.
_DIGITS, _PASSES = 11, 3
_VALUES = 1 << _DIGITS
#: Mask of the low half of a pair.
LOW = 0xFFFFFFFF


@inner
def _xorwow_planes(start, step, base, count, states, places, planes):
    """Write the planes of words ``base`` ..., the last digit first.

    Scratch: states: uint32 (32 + 5, _BLOCK), the outputs of the recurrence, and places: uint32
    (_BLOCK,), its counter.
    """
    for n in range(count):
        v0, v1, v2, v3, v4, d = make_xorwow_state(start, step, uint64(base + uint64(n)))
        states[0, n], states[1, n], states[2, n], states[3, n], states[4, n] = v0, v1, v2, v3, v4
        places[n] = d
    for k in range(32):
        oldest, last, new, plane = states[k], states[k + 4], states[k + 5], planes[31 - k]
        for n in range(count):
            digits, _, _, _, _, newest, d = next_digits(
                k, oldest[n], uint32(0), uint32(0), uint32(0), last[n], places[n]
            )
            plane[n], new[n], places[n] = digits, newest, d


@inner
def _philox_planes(seed, sample, base, count, planes):
    for quad in range(8):
        for n in range(count):
            x0, x1, x2, x3 = philox_digits(seed, sample, uint64(base + uint64(n)), quad)
            planes[31 - 4 * quad, n] = x0
            planes[30 - 4 * quad, n] = x1
            planes[29 - 4 * quad, n] = x2
            planes[28 - 4 * quad, n] = x3


@inner
def _turn_over(planes, count):
    """Transpose the 32 x 32 bits of every word: bit i of plane j becomes bit j of plane i."""
    width, mask = uint32(16), uint32(0x0000FFFF)
    while width != uint32(0):
        for k in range(32):
            if uint32(uint32(k) & width) == uint32(0):
                low, high = planes[k], planes[k + int(width)]
                for n in range(count):
                    changed = uint32(uint32(uint32(low[n] >> width) ^ high[n]) & mask)
                    high[n] = uint32(high[n] ^ changed)
                    low[n] = uint32(low[n] ^ uint32(changed << width))
        width = uint32(width >> uint32(1))
        mask = uint32(mask ^ uint32(mask << width))


@njit(nogil=True, cache=True)
def fill_prefixes(generator, seed, sample, prefixes):
    """Write the prefixes of a sample's bonds by their numbers, uint32 (32 * words,)."""
    start, step = stream_keys(seed, sample)
    planes = np.empty((32, _BLOCK), np.uint32)
    states, places = np.empty((37, _BLOCK), np.uint32), np.empty(_BLOCK, np.uint32)
    words = prefixes.size // 32
    for base in range(0, words, _BLOCK):
        count = min(words - base, _BLOCK)
        if generator == XORWOW:
            _xorwow_planes(start, step, uint64(base), count, states, places, planes)
        else:
            _philox_planes(seed, sample, uint64(base), count, planes)
        _turn_over(planes, count)
        for n in range(count):
            for bit in range(32):
                prefixes[32 * (base + n) + bit] = planes[bit, n]


class BondList(NamedTuple):
    """Bonds to be sorted, with their ends."""

    bonds: Any  # uint32, their numbers
    ends: Any  # int32 (2 * room,), the two nodes that bond n joins at 2 n and 2 n + 1
    pairs: Any  # uint64 (2, room), the pairs to be sorted, and scratch


#: Memory of a bond list in bytes per bond.
BOND_LIST_BYTES = 4 + 8 + 16


def new_bond_list(room: int) -> BondList:
    bonds, ends = np.empty(room, np.uint32), np.empty(2 * room, np.int32)
    return BondList(bonds, ends, np.empty((2, room), np.uint64))


@inner
def packed(high, low):
    """Return a pair to be sorted by its high 32 bits, uint64."""
    return uint64(uint64(uint64(high) << uint64(32)) | uint64(uint64(low) & uint64(LOW)))


@inner_with_arrays
def sort_pairs(pairs, count):
    """Sort pairs, key above position, by their high 32 bits; equal ones stay in order.

    pairs: uint64 (2, room).  Returns the row that holds the result; the other one is scratch.  A
    radix sort that leaves out the digits in which all pairs agree.
    """
    counts = np.zeros((_PASSES, _VALUES), np.uint32)
    for n in range(count):
        key = uint64(pairs[0, n] >> uint64(32))
        for turn in range(_PASSES):
            counts[turn, uint64(key & uint64(_VALUES - 1))] += uint32(1)
            key = uint64(key >> uint64(_DIGITS))
    source = 0
    for turn in range(_PASSES):
        places, shift = counts[turn], uint64(32 + _DIGITS * turn)
        read, written = pairs[source], pairs[1 - source]
        if count == 0 or places[uint64(read[0] >> shift) & uint64(_VALUES - 1)] == count:
            continue
        total = uint32(0)
        for value in range(_VALUES):
            total, places[value] = uint32(total + places[value]), total
        for n in range(count):
            value = uint64(uint64(read[n] >> shift) & uint64(_VALUES - 1))
            place = places[value]
            places[value] = uint32(place + uint32(1))
            written[place] = read[n]
        source = 1 - source
    return source


@njit(nogil=True, cache=True)
def order_by_all_digits(weights, bonds, count, order):
    """Write the positions, int64, of bonds, uint32, in ascending order by key, then by number.

    It is for few bonds: those whose sorted digits are equal.
    """
    keys = np.empty(count, np.uint64)
    for n in range(count):
        keys[n] = compute_key(weights, bonds[n])
        place = n
        while place > 0:
            before = order[place - 1]
            if keys[before] < keys[n] or (keys[before] == keys[n] and bonds[before] < bonds[n]):
                break
            order[place] = before
            place -= 1
        order[place] = n


@inner_with_arrays
def settle(weights, bonds, pairs, count):
    """Order sorted pairs with equal high halves by all digits; ``bonds[low half]`` is the bond.

    bonds: uint32; pairs: uint64 (count,)
    """
    begin = 0
    while begin < count:
        end = begin + 1
        while end < count and uint64(pairs[begin] ^ pairs[end]) >> uint64(32) == uint64(0):
            end += 1
        if end - begin > 1:
            equal, size = pairs[begin:end].copy(), end - begin
            numbers, order = np.empty(size, np.uint32), np.empty(size, np.int64)
            for n in range(size):
                numbers[n] = bonds[uint32(equal[n] & uint64(LOW))]
            order_by_all_digits(weights, numbers, size, order)
            for n in range(size):
                pairs[begin + n] = equal[order[n]]
        begin = end


@njit(nogil=True, cache=True)
def sort_bonds(weights, prefixes, bonds, pairs, count):
    """Write the positions of bonds in ascending order to the low halves of pairs.

    bonds: uint32, in ascending order of number if keys are given.  Returns the row of ``pairs``,
    uint64 (2, room), with the result.
    """
    if weights.given.size == 0:
        for n in range(count):
            pairs[0, n] = packed(prefixes[bonds[n]], n)
        row = sort_pairs(pairs, count)
        settle(weights, bonds, pairs[row], count)
        return row
    # Sort by the low halves of the keys first, then by the high halves.
    for n in range(count):
        pairs[0, n] = packed(weights.given[bonds[n]], n)
    for half in range(2):
        row = sort_pairs(pairs, count)
        for n in range(count if half == 0 else 0):
            place = uint32(pairs[row, n] & uint64(LOW))
            pairs[0, n] = packed(weights.given[bonds[place]] >> uint64(32), place)
    return row


@inner
def add_to_tree(tree, bond):
    """Set the bit of a bond by its number in a tree, uint32 words."""
    word = uint32(uint32(bond) >> uint32(5))
    tree[word] = uint32(tree[word] | uint32(uint32(1) << uint32(uint32(bond) & uint32(31))))


@njit(nogil=True, cache=True)
def join_in_order(pairs, bonds, ends, parents, tree):
    """Join bonds in ascending order; return the number of bonds in the tree.

    pairs:   uint64, the bonds' positions in the low halves, as :func:`sort_bonds` writes them
    bonds:   uint32, their numbers
    ends:    int32 (2 * room,), the nodes at their ends
    parents: int32, a union-find of the nodes, in which some may be joined already
    tree:    uint32, words of bonds
    """
    joined = int64(0)
    for n in range(pairs.size):
        place = uint32(pairs[n] & uint64(LOW))
        i = find_halving(parents, uint32(ends[2 * place]))
        j = find_halving(parents, uint32(ends[2 * place + 1]))
        if i != j:
            parents[max(i, j)] = min(i, j)
            add_to_tree(tree, bonds[place])
            joined += int64(1)
    return joined


@njit(nogil=True, cache=True)
def list_bonds_between(weights, prefixes, low, high, exists, adjacency, parents, listed):
    """List bonds from ``low`` to ``high``, uint64, whose ends are not joined; return their number.

    The limits, both included, are prefixes, or keys if keys are given.
    """
    count = int64(0)
    for word in range(exists.size):
        left = uint32(exists[word])
        while left != uint32(0):
            bond = uint32(uint32(word << 5) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            key = weights.given[bond] if weights.given.size > 0 else uint64(prefixes[bond])
            if key < low or key > high:
                continue
            i, j = find_bond_end(bond, adjacency)
            if find_halving(parents, uint32(i)) != find_halving(parents, uint32(j)):
                listed.bonds[count] = bond
                listed.ends[2 * count], listed.ends[2 * count + 1] = i, j
                count += int64(1)
    return count
