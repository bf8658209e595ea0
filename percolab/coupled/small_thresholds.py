"""CUDA: the spanning thresholds T of samples of small lattices, with a team of threads per sample.

A team labels its sample at the lower end of a window (:mod:`percolab.labelers.small_cuda`), lists
the bonds that open up to the upper end and join two of these clusters, and finds T by trials.  In a
trial, all bonds below a threshold join their roots; the sample spans if the two nodes that stand
for the ends of an axis are joined.  Every trial narrows the bracket, and bonds outside are dropped:
those below have made new nodes, those above do not matter.  The next trial is at the bond nearest
to the middle of the bracket, so that the last one leaves no bond in it.  Nothing is sorted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import int32, types, uint32, uint64

from percolab.bonds.hooks import bond_number
from percolab.bonds.words import NEVER
from percolab.kernels.bits import highest_one, lowest_one
from percolab.kernels.cuda import cuda
from percolab.kernels.union_find import find, union
from percolab.labelers.small_cuda import (
    ENDS,
    LANES,
    PAIRS,
    WORD_NODES,
    Team,
    is_periodic_bond_open,
    join_runs,
    load_word,
    node,
    parent,
    read_new_bonds,
    team_threads,
)

#: The most bonds for which a team has room; a window has three quarters of that on average.
MOST_OPENING = 4096
#: The most samples that are processed at the same time.
BLOCKS = 2**12
#: The value, in place of T, of samples with more bonds than a team has room for.
TOO_MANY = NEVER - 1
#: Bits of a bond's position in the list; a choice of the next trial has the distance above them.
_POSITION_BITS = 13
_POSITIONS, _DISTANCE_BITS = (1 << _POSITION_BITS) - 1, 31 - _POSITION_BITS
_NONE = 0xFFFFFFFF
#: The flags of the first end of every axis.
_FIRST_ENDS = 0b010101
#: The length of a team's state: opening bonds, axes that the sample spans, two next trials.
_STATE = 4


class Opening(NamedTuple):
    """Device memory for the opening bonds of every team, ``room`` of each.

    nodes:   uint32, the roots at both ends, the first in the upper 16 bits
    flags:   uint32, the end layers that these clusters touch, in the same way
    bonds:   uint32, their numbers 32 * word + bit
    numbers: uint64, the thresholds above which they are open
    left:    uint32, the nodes of the bonds that are left in the bracket of an axis
    left_numbers: uint64, their numbers
    room:    uint32
    """

    nodes: Any
    flags: Any
    bonds: Any
    numbers: Any
    left: Any
    left_numbers: Any
    room: Any

    @classmethod
    def allocate(cls, num_bonds: int) -> Opening:
        """Return memory for all teams, on a lattice of ``num_bonds`` bonds."""
        room = room_for(num_bonds)
        return cls(*(cuda.device_array(BLOCKS * room, kind) for kind in _KINDS), np.uint32(room))


#: The dtypes of the arrays of :class:`Opening`.
_KINDS = np.uint32, np.uint32, np.uint32, np.uint64, np.uint32, np.uint64


def room_for(num_bonds: int) -> int:
    """Return a team's room for opening bonds, on a lattice of ``num_bonds`` bonds.

    >>> room_for(100), room_for(10**4)
    (100, 4096)
    """
    return min(num_bonds, MOST_OPENING)


def opening_bytes(num_bonds: int) -> int:
    """Return the bytes of :meth:`Opening.allocate`.

    >>> opening_bytes(100) == 32 * 100 * BLOCKS
    True
    """
    return sum(np.dtype(kind).itemsize for kind in _KINDS) * BLOCKS * room_for(num_bonds)


def shared_bytes(words: int) -> int:
    """Return the shared memory of a team of ``words`` words."""
    warps = team_threads(words) // LANES
    return 4 * ((WORD_NODES + 2) * words + 2 + _STATE + warps * (PAIRS + LANES))


@cuda.jit(device=True)
def _find_root(team, n):
    """Return the root of a node of the labeling, where roots may have flags."""
    up = parent(team, n)
    while up != n:
        n = up
        up = parent(team, n)
    return n


@cuda.jit(device=True)
def _join_periodic_bonds(team, lattice, opened):
    """Join the clusters at the ends of the open bonds across periodic boundaries."""
    base, n = uint32(team.entry * lattice.stride), uint32(cuda.threadIdx.x)
    while n < uint32(lattice.periodic_places.size):
        if is_periodic_bond_open(team, lattice, opened, base, uint32(0), n, False):
            i, j = node(team, lattice.periodic_owners[n]), node(team, lattice.periodic_ends[n])
            union(team.table, uint32(0), i, j)
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _flag_ends(team, lattice, state):
    """Give roots the flags of the end layers that they touch, and note the axes that are spanned.

    A site that is still vacant is a separate root.
    """
    num_words, masks = lattice.adjacency.num_words, lattice.end_masks
    place, flag = team.word, uint32(1 << ENDS)
    while team.is_mine and place < uint32(masks.size):
        left = uint32(masks[place] & team.occupied[team.word])
        while left:
            site = uint32(uint32(team.word << uint32(5)) + uint32(lowest_one(left)))
            left = uint32(left & uint32(left - uint32(1)))
            root = _find_root(team, node(team, site))
            flags = uint32(uint32(cuda.atomic.or_(team.table, root, flag)) | flag)
            flags = uint32(flags >> uint32(ENDS))
            # The thread that sets the second flag of an axis sees both.
            both = uint32(flags & uint32(flags >> uint32(1)))
            if both & uint32(_FIRST_ENDS):
                cuda.atomic.or_(state, 1, both)
        flag, place = uint32(flag << uint32(1)), uint32(place + num_words)


@cuda.jit(device=True)
def _list_bond(team, opening, base, state, i, j, bond):
    """List a bond if it joins two clusters, provided that the list has room."""
    i, j = _find_root(team, i), _find_root(team, j)
    if i != j:
        slot = uint32(cuda.atomic.add(state, 0, uint32(1)))
        if slot < opening.room:
            flags = uint32(uint32(team.table[i] >> uint32(ENDS)) << uint32(16))
            flags = uint32(flags | uint32(team.table[j] >> uint32(ENDS)))
            opening.nodes[uint32(base + slot)] = uint32(uint32(i << uint32(16)) | j)
            opening.flags[uint32(base + slot)] = flags
            opening.bonds[uint32(base + slot)] = bond


@cuda.jit(device=True)
def _list_opening_bonds(team, lattice, opened, opening, base, state):
    """List the bonds that open between the previous entry and this one and join two clusters."""
    adjacency = lattice.adjacency
    for k in range(len(adjacency.ends)):
        delta, left = int32(adjacency.ends[k]), uint32(0)
        if team.is_mine:
            left = read_new_bonds(team, lattice, opened, k)
        first = uint32(uint32(uint32(k) * adjacency.num_words) << uint32(5))
        while left:
            site = uint32(uint32(team.word << uint32(5)) + uint32(lowest_one(left)))
            left = uint32(left & uint32(left - uint32(1)))
            i, j = node(team, site), node(team, uint32(int32(site) + delta))
            _list_bond(team, opening, base, state, i, j, uint32(first + site))
    own, n = uint32(team.entry * lattice.stride), uint32(cuda.threadIdx.x)
    while n < uint32(lattice.periodic_places.size):
        if is_periodic_bond_open(team, lattice, opened, own, uint32(0), n, True):
            i, j = node(team, lattice.periodic_owners[n]), node(team, lattice.periodic_ends[n])
            _list_bond(team, opening, base, state, i, j, lattice.periodic_places[n])
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _take_bonds(opening, base, count, ends, begin):
    """Make the list of an axis, in which one node stands for all roots that touch an end of it.

    Each thread has every ``cuda.blockDim.x``-th place.  ends: the first of the two nodes.  begin:
    the flag of the first end.  Return the end of this thread's bonds.
    """
    n = uint32(cuda.threadIdx.x)
    to = n
    while n < count:
        pair, flags = opening.nodes[uint32(base + n)], opening.flags[uint32(base + n)]
        i = _move_to_end(uint32(pair >> uint32(16)), uint32(flags >> uint32(16)), ends, begin)
        j = _move_to_end(uint32(pair & uint32(0xFFFF)), flags, ends, begin)
        if i != j:
            opening.left[uint32(base + to)] = uint32(uint32(i << uint32(16)) | j)
            opening.left_numbers[uint32(base + to)] = opening.numbers[uint32(base + n)]
            to = uint32(to + uint32(cuda.blockDim.x))
        n = uint32(n + uint32(cuda.blockDim.x))
    return to


@cuda.jit(device=True)
def _move_to_end(root, flags, ends, begin):
    """Return a root or, if its flags say that it touches an end, the node of that end."""
    if flags & begin:
        return ends
    if flags & uint32(begin << uint32(1)):
        return uint32(ends + uint32(1))
    return root


@cuda.jit(device=True)
def _join_below(table, opening, base, to, ends, trial):
    """Join the nodes of those remaining bonds that are open at a threshold, starting from roots."""
    thread = uint32(cuda.threadIdx.x)
    if thread < uint32(2):
        table[uint32(ends + thread)] = uint32(ends + thread)
    n = thread
    while n < to:
        pair = opening.left[uint32(base + n)]
        i, j = uint32(pair >> uint32(16)), uint32(pair & uint32(0xFFFF))
        table[i], table[j] = i, j
        n = uint32(n + uint32(cuda.blockDim.x))
    cuda.syncthreads()
    n = thread
    while n < to:
        if opening.left_numbers[uint32(base + n)] < trial:
            pair = opening.left[uint32(base + n)]
            union(table, uint32(0), uint32(pair >> uint32(16)), uint32(pair & uint32(0xFFFF)))
        n = uint32(n + uint32(cuda.blockDim.x))
    cuda.syncthreads()


@cuda.jit(device=True)
def _root_or_end(table, i, ends, one, other):
    """Return a node's root or, if it is the root ``one`` or ``other`` of an end, the end's node."""
    i = find(table, uint32(0), i)
    if i == one:
        return ends
    return uint32(ends + uint32(1)) if i == other else i


@cuda.jit(device=True)
def _keep_between(table, opening, base, to, bracket, roots, chosen):
    """Keep this thread's bonds that open within a bracket, and choose the one nearest its middle.

    roots: (the node of the first end, the roots of both ends); these differ if the trial did not
    span, and then its clusters become nodes.  chosen: uint32 (1,) in shared memory, _NONE before
    the call and, if no bond is left, after it.  Return the end of this thread's bonds.
    """
    (lower, upper), (ends, one, other) = bracket, roots
    width = uint64(upper - lower)
    middle = uint64(lower + uint64(width >> uint64(1)))
    # A distance is at most half the width.
    shift = uint64(highest_one(uint32(width >> uint64(32))) + 32 - _DISTANCE_BITS)
    n, nearest = uint32(cuda.threadIdx.x), uint32(_NONE)
    kept = n
    while n < to:
        number = opening.left_numbers[uint32(base + n)]
        opens_at = uint64(number + uint64(1))
        if lower < opens_at < upper:
            pair = opening.left[uint32(base + n)]
            i, j = uint32(pair >> uint32(16)), uint32(pair & uint32(0xFFFF))
            if one != other:
                i = _root_or_end(table, i, ends, one, other)
                j = _root_or_end(table, j, ends, one, other)
            if i != j:
                opening.left[uint32(base + kept)] = uint32(uint32(i << uint32(16)) | j)
                opening.left_numbers[uint32(base + kept)] = number
                away = uint64(max(opens_at, middle) - min(opens_at, middle))
                away = uint32(away >> shift)
                nearest = min(nearest, uint32(uint32(away << uint32(_POSITION_BITS)) | kept))
                kept = uint32(kept + uint32(cuda.blockDim.x))
        n = uint32(n + uint32(cuda.blockDim.x))
    if nearest != uint32(_NONE):
        cuda.atomic.min(chosen, 0, nearest)
    return kept


@cuda.jit(device=True)
def _find_threshold(table, opening, base, count, ends, axis, window, chosen):
    """Return T along an axis of a sample that does not span at the lower end of the window.

    chosen: uint32 (2,) in shared memory, used by trials alternately.
    """
    begin, (lower, trial) = uint32(uint32(1) << uint32(2 * axis)), window
    upper, which = uint64(NEVER), uint32(0)
    to = _take_bonds(opening, base, count, ends, begin)
    while True:
        if cuda.threadIdx.x == 0:
            chosen[which] = uint32(_NONE)
        _join_below(table, opening, base, to, ends, trial)
        one = find(table, uint32(0), ends)
        other = find(table, uint32(0), uint32(ends + uint32(1)))
        if one == other:
            upper = trial
        elif upper == uint64(NEVER):
            # The sample does not span at the upper end of the window, which is tried first.
            break
        else:
            lower = trial
        bracket, roots = (lower, upper), (ends, one, other)
        to = _keep_between(table, opening, base, to, bracket, roots, chosen[which:])
        cuda.syncthreads()
        nearest = chosen[which]
        if nearest == uint32(_NONE):
            break
        n = uint32(nearest & uint32(_POSITIONS))
        trial = uint64(opening.left_numbers[uint32(base + n)] + uint64(1))
        which = uint32(which ^ uint32(1))
    cuda.syncthreads()
    return upper


@cuda.jit(cache=True, max_registers=64)
def small_thresholds_kernel(
    generator, seed, numbers, record, lattice, opened, windows, axes, opening, thresholds
):
    """Write T of samples along every open axis, as :meth:`Coupling.scan_windows` returns it.

    numbers: uint64 (samples,).  record: that of the batch.  opened: uint32, the words of every
    sample at the lower and at the upper end of its window.  windows: uint64 (2 * samples,), these
    ends.  axes: int32, the open ones.  thresholds: uint64 (samples * axes,); TOO_MANY for a sample
    with more opening bonds than there is room for.
    """
    shared = cuda.shared.array(0, types.uint32)
    words, thread = lattice.adjacency.num_words, uint32(cuda.threadIdx.x)
    ends = uint32(uint32(WORD_NODES) * words)
    occupied = uint32(ends + uint32(2))
    edges = uint32(occupied + words)
    states = uint32(edges + words)
    lists = uint32(states + uint32(_STATE))
    pairs = uint32(lists + uint32(uint32(thread // uint32(LANES)) * uint32(PAIRS + LANES)))
    state, base = shared[states:], uint32(uint32(cuda.blockIdx.x) * opening.room)
    n = uint32(cuda.blockIdx.x)
    while n < uint32(numbers.size):
        entry = uint32(n << uint32(1))
        low, high = windows[entry], windows[uint32(entry + uint32(1))]
        if thread == uint32(0):
            state[0], state[1] = uint32(0), uint32(0)
        team = Team(
            shared, shared, shared[occupied:], shared[edges:], shared[pairs:], words, thread,
            thread, entry, entry, uint32(2), uint32(0), thread < words,
        )  # fmt: skip
        chained = load_word(team, lattice, opened)
        join_runs(team, lattice, opened, chained)
        cuda.syncthreads()
        _join_periodic_bonds(team, lattice, opened)
        # From here on, the team's entry is the one at the upper end of the window.
        team = Team(
            shared, shared, shared[occupied:], shared[edges:], shared[pairs:], words, thread,
            thread, uint32(entry + uint32(1)), entry, uint32(2), uint32(0), thread < words,
        )  # fmt: skip
        if lattice.first_site:
            cuda.syncthreads()
            if team.is_mine:
                index = uint32(uint32(team.entry * lattice.stride) + lattice.first_site)
                team.occupied[thread] = opened[uint32(index + thread)]
        cuda.syncthreads()
        _flag_ends(team, lattice, state)
        cuda.syncthreads()
        _list_opening_bonds(team, lattice, opened, opening, base, state)
        cuda.syncthreads()
        count, spanned = state[0], state[1]
        m = thread
        while m < min(count, opening.room):
            bond = opening.bonds[uint32(base + m)]
            number = bond_number(generator, record, seed, numbers[n], bond)
            opening.numbers[uint32(base + m)] = number
            m = uint32(m + uint32(cuda.blockDim.x))
        cuda.syncthreads()
        for row in range(axes.size):
            axis, found = uint32(axes[row]), low
            if count > opening.room:
                found = uint64(TOO_MANY)
            elif not uint32(spanned >> uint32(axis << uint32(1))) & uint32(1):
                window, chosen = (low, high), state[uint32(2) :]
                found = _find_threshold(shared, opening, base, count, ends, axis, window, chosen)
            if thread == uint32(0):
                thresholds[uint32(uint32(n * uint32(axes.size)) + uint32(row))] = found
        cuda.syncthreads()
        n = uint32(n + uint32(cuda.gridDim.x))
