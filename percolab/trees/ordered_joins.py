"""Bonds in ascending order, joined one by one: the last step of Kruskal's algorithm (1956).

Bonds are sorted by a *first key*: the 32-digit prefix of a sample's bond, or the whole key of a
given one.  Bonds that agree in it are put in order by all digits, then by their numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.neighbours import end_of_bond
from percolab.kernels.union_find import find_halving
from percolab.trees.weights import key_of

# Eleven digits a pass: the counts of a pass fit into the first-level cache.
_DIGITS = 11
_PASSES = 6
_VALUES = 1 << _DIGITS


class BondList(NamedTuple):
    """Bonds to be put in order, with their ends.

    bonds: uint32, their numbers
    ends:  int32 (2 * room,), the two nodes that bond n joins at 2 n and 2 n + 1
    keys:  uint64 (2, room), first keys, and scratch
    order: uint32 (2, room), positions in the list, and scratch
    """

    bonds: Any
    ends: Any
    keys: Any
    order: Any


def new_bond_list(room: int) -> BondList:
    """Return an empty list with room for so many bonds."""
    return BondList(
        bonds=np.empty(room, np.uint32),
        ends=np.empty(2 * room, np.int32),
        keys=np.empty((2, room), np.uint64),
        order=np.empty((2, room), np.uint32),
    )


#: Bytes that a bond list takes for each bond.
BOND_LIST_BYTES = 4 + 8 + 16 + 8


@njit
def first_key(weights, prefixes, bond):
    """Return what a bond is sorted by at first, uint64."""
    if weights.given.size > 0:
        return weights.given[bond]
    return uint64(prefixes[bond])


@njit
def precedes(weights, one, other):
    """Return whether a bond comes before another: by all digits, then by their numbers."""
    key, other_key = key_of(weights, one), key_of(weights, other)
    return key < other_key or (key == other_key and one < other)


@njit
def _counts_of_digits(keys, count):
    """Return how often each value of each group of digits occurs, int64 (passes, values)."""
    counts = np.zeros((_PASSES, _VALUES), np.int64)
    for n in range(count):
        key = keys[n]
        for turn in range(_PASSES):
            counts[turn, uint64(key & uint64(_VALUES - 1))] += 1
            key = uint64(key >> uint64(_DIGITS))
    return counts


@njit(nogil=True, cache=True)
def sort_by_key(keys, order, count):
    """Put ``keys[0]`` in ascending order and ``order[0]`` with them; equal keys stay as they are.

    keys: uint64 (2, room); order: uint32 (2, room); row 1 is scratch.  A radix sort that leaves out
    the digits in which all keys agree.
    """
    counts, source = _counts_of_digits(keys[0], count), 0
    for turn in range(_PASSES):
        shift, places = uint64(_DIGITS * turn), counts[turn]
        if count == 0 or places[uint64(keys[0, 0] >> shift) & uint64(_VALUES - 1)] == count:
            continue
        total = int64(0)
        for value in range(_VALUES):
            total, places[value] = total + places[value], total
        read, written = keys[source], keys[1 - source]
        moved, arrived = order[source], order[1 - source]
        for n in range(count):
            value = uint64(uint64(read[n] >> shift) & uint64(_VALUES - 1))
            place = places[value]
            places[value] = place + 1
            written[place], arrived[place] = read[n], moved[n]
        source = 1 - source
    if source == 1:
        keys[0, :count], order[0, :count] = keys[1, :count], order[1, :count]


@njit(nogil=True, cache=True)
def settle_equal_keys(weights, bonds, keys, order, count):
    """Put those of the sorted bonds that agree in their first keys in order, by all digits.

    bonds: uint32, by position; keys: uint64 (count,), ascending; order: uint32, positions.  There
    are few of them, two or three at a time.
    """
    for n in range(1, count):
        place, one = n, order[n]
        while (
            place > 0
            and keys[place - 1] == keys[n]
            and precedes(weights, bonds[one], bonds[order[place - 1]])
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = one


@njit(nogil=True, cache=True)
def add_to_tree(tree, bond):
    """Set the bit of a bond in the words of a tree."""
    word = uint32(uint32(bond) >> uint32(5))
    tree[word] = uint32(tree[word] | uint32(uint32(1) << uint32(uint32(bond) & uint32(31))))


@njit(nogil=True, cache=True)
def join_in_order(weights, prefixes, listed, count, parents, tree):
    """Join the listed bonds in ascending order; return how many are in the tree.

    parents: int32, a union-find of the nodes, which goes on from what is joined; tree: uint32, the
    words of bonds.  Bonds of given keys must be listed by ascending numbers.
    """
    bonds, ends, keys, order = listed.bonds, listed.ends, listed.keys, listed.order
    for n in range(count):
        keys[0, n], order[0, n] = first_key(weights, prefixes, bonds[n]), uint32(n)
    sort_by_key(keys, order, count)
    if weights.given.size == 0:
        settle_equal_keys(weights, bonds, keys[0], order[0], count)
    found = int64(0)
    for n in range(count):
        place = order[0, n]
        i = find_halving(parents, uint32(ends[2 * place]))
        j = find_halving(parents, uint32(ends[2 * place + 1]))
        if i != j:
            parents[max(i, j)] = min(i, j)
            add_to_tree(tree, bonds[place])
            found += int64(1)
    return found


@njit(nogil=True, cache=True)
def list_bonds_between(weights, prefixes, low, high, exists, adjacency, parents, listed):
    """List the bonds with first keys from ``low`` to ``high`` whose ends are not joined yet.

    Returns how many there are.  Both limits are included.
    """
    count = int64(0)
    for word in range(exists.size):
        left = uint32(exists[word])
        while left != uint32(0):
            bond = uint32(uint32(word << 5) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            key = first_key(weights, prefixes, bond)
            if key < low or key > high:
                continue
            i, j = end_of_bond(bond, adjacency)
            if find_halving(parents, uint32(i)) != find_halving(parents, uint32(j)):
                listed.bonds[count] = bond
                listed.ends[2 * count], listed.ends[2 * count + 1] = i, j
                count += int64(1)
    return count
