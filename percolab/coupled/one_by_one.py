"""Rows of a sample after every opening of a bond or a site, in the order of their numbers u.

The algorithm of M. E. J. Newman and R. M. Ziff, Phys. Rev. Lett. 85, 4104 (2000) and Phys. Rev. E
64, 016706 (2001).  After n openings the sample is the one at every p between the n-th smallest
number and the next.  If ranks prescribe the order of removal, bonds or sites open in the reverse
order; of equal ranks, the one with the largest u is removed first, so that all orders are equally
likely.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import float64, int32, int64, njit, uint32, uint64

from percolab.bonds.words import TOP, uniform_number
from percolab.coupled.adaptive import order_by_score
from percolab.coupled.bond_order import count_compared_digits, order_by_number
from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import inner, inner_with_arrays
from percolab.kernels.uncounted import UNCOUNTED
from percolab.kernels.union_find import find_halving
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.rows import (
    LARGEST,
    ROW_WIDTH,
    SECOND_LARGEST,
    SPANNING,
    read_observable,
    spanning_bits,
)
from percolab.measure.sums import SUMS
from percolab.measure.wrapping import join_over_periods, note_loop

_empty, _with_cluster, _replaced = SUMS.empty, SUMS.with_cluster, SUMS.replaced
_put, _take = SUMS.put, SUMS.take
_TOP, _TOP_FLOAT = TOP, float(TOP)


class Openings(NamedTuple):
    """The M bonds or sites that open, in ascending order of their places in a sample's words."""

    places: Any  # int64 (M,), 32 * word + bit of the uniform numbers
    sites: Any  # int32 (M,), the sites that become occupied; empty where bonds open
    starts: Any  # int64 (M + 1,), the index of each opening's first pair
    pairs: Any  # int32 (n, 2), sites that the opening joins if both are occupied
    # int64 (n,), the periods from the first to the second; empty without a periodic axis
    codes: Any
    # int64 (M,), ranks of removal, 0 first; empty where the order is random, and one of
    # ADAPTIVE_RANKS where it depends on what is left
    ranks: Any = np.empty(0, np.int64)


#: Values in place of ranks for scores that are computed again after every removal.
ADAPTIVE_RANKS = {
    "degree:adaptive": np.array([-1], np.int64),
    "betweenness:adaptive": np.array([-2], np.int64),
    "influence:adaptive": np.array([-3], np.int64),
}


class Scratch(NamedTuple):
    """Memory for the order of a sample's openings, and for its clusters."""

    numbers: Any  # uint64; this and the next three are as :func:`order_by_number` takes them
    order: Any  # uint32
    heads: Any  # uint32
    planes: Any  # uint32
    parents: Any  # int32 (num_points,)
    sizes: Any  # int32 (num_points,), 0 for a vacant site
    reach: Any  # uint32 (num_points,), end flags of clusters at their roots
    counts: Any  # int32 (num_points + 1,), clusters by their size
    periods: Any  # int64 (num_points,), empty without a periodic axis
    loop: Any  # int64 (1,), the winding numbers of a loop of the sample
    row: Any  # int64 (ROW_WIDTH,)


class Layers(NamedTuple):
    """The sites: uint32 words of those that exist, end layers (sites, flags), axes."""

    occupied: Any
    end_sites: Any
    end_flags: Any
    axes: Any


def list_openings(topology: Topology, *, sites: bool) -> Openings:
    """Return the openings in the samples of a topology: its bonds, or its sites."""
    k, owner, other = topology.bonds().T
    places = 32 * topology.num_words * k + owner
    codes = np.zeros(places.size, np.int64)
    if topology.num_periodic_bonds:
        codes[np.searchsorted(places, topology.periodic_bonds)] = topology.periodic_codes
    has_periods = topology.num_periodic_bonds > 0
    if not sites:
        pairs = np.column_stack([owner, other]).astype(np.int32)
        starts = np.arange(places.size + 1, dtype=np.int64)
        lists = places, np.empty(0, np.int32), starts, pairs
        return Openings(*lists, codes if has_periods else codes[:0])
    own = np.flatnonzero(unpack_bits(topology.occupied, topology.num_points))
    first, second = np.concatenate([owner, other]), np.concatenate([other, owner])
    by_site = np.argsort(first, kind="stable")
    pairs = np.column_stack([first, second])[by_site].astype(np.int32)
    both = np.concatenate([codes, -codes])[by_site] if has_periods else codes[:0]
    starts = np.searchsorted(first[by_site], np.append(own, topology.num_points))
    places = 32 * topology.num_bond_words + own
    return Openings(places, own.astype(np.int32), starts.astype(np.int64), pairs, both)


def list_layers(topology: Topology) -> Layers:
    """Return the sites of a topology, and those in end layers."""
    return Layers(topology.occupied, *topology.end_flags(), np.int64(topology.num_axes))


def is_strict(ranks: np.ndarray, count: int) -> bool:
    """Return whether ranks determine the whole order, as no two openings have the same rank."""
    return ranks.size == count and (count < 2 or np.unique(ranks).size == count)


def make_scratch(topology: Topology, openings: Openings) -> Scratch:
    """Return memory for one sample at a time."""
    count, points = openings.places.size, topology.num_points
    return Scratch(
        numbers=np.empty(count, np.uint64),
        order=np.empty(count, np.uint32),
        heads=np.empty(count + 1, np.uint32),
        planes=np.empty(count_compared_digits(count), np.uint32),
        parents=np.empty(points, np.int32),
        sizes=np.empty(points, np.int32),
        reach=np.empty(points, np.uint32),
        counts=np.empty(points + 1, np.int32),
        periods=np.empty(points if openings.codes.size else 0, np.int64),
        loop=np.zeros(1, np.int64),
        row=np.zeros(ROW_WIDTH, np.int64),
    )


def host_bytes(extent: Extent, openings: int, *, sites: bool) -> int:
    """Return the memory of all these, at most."""
    bonds = extent.num_classes * extent.num_points
    # Rows of bonds and their copies while the list is made; two pairs a bond where sites open.
    listed = 64 * bonds + (48 * bonds if sites else 0)
    return listed + 40 * openings + 24 * extent.num_points


@njit(nogil=True, cache=True)
def add_sample(generator, seed, sample, openings, layers, scratch, picks, width, sums):
    """Add the observables of a sample after 0, 1, ..., M openings to the sums of its block.

    picks: (places, masks, rules, without) of the observables, as
    :func:`percolab.measure.block_sums.sum_blocks` takes them.  width: numbers of openings in a bin.
    sums: int64 (bins, C + 1), last the squared size of the largest cluster.
    """
    places, count = openings.places, openings.places.size
    buffers = scratch.planes, scratch.numbers, scratch.order, scratch.heads
    whole = uint64(0), uint64(_TOP)
    if count:
        order_by_number(generator, (), seed, sample, *whole, places, count, *buffers)
        if openings.ranks.size and openings.ranks[0] < 0:
            if openings.ranks[0] < -1 or not openings.sites.size:
                order_by_score(
                    generator, seed, sample, openings, scratch.parents.size, scratch.order
                )
            else:
                order_by_degree(generator, seed, sample, openings, scratch.order)
        elif openings.ranks.size:
            order_by_rank(openings.ranks, scratch.order, scratch.heads)
    state = _begin(openings, layers, scratch)
    _add_row(state, scratch.row, picks, sums[0])
    for n in range(count):
        state = open_one(int64(scratch.order[n]), state, openings, layers, scratch)
        _add_row(state, scratch.row, picks, sums[(n + 1) // width])


@inner_with_arrays
def order_by_rank(ranks, order, heads):
    """Sort openings stably by descending rank, the last removed first.

    ranks: int64 (M,), below M; order: uint32 (M,); heads: uint32 (M + 1,), scratch
    """
    count = ranks.size
    before = order.copy()
    heads[:] = 0
    for n in range(count):
        heads[count - ranks[n]] += uint32(1)
    for k in range(count):
        heads[k + 1] += heads[k]
    for n in before:
        at = count - 1 - ranks[n]
        order[heads[at]] = n
        heads[at] += uint32(1)


@njit(cache=True)
def order_by_degree(generator, seed, sample, openings, order):
    """Write the order of sites removed one by one, always one with the most remaining neighbours.

    Each of several such sites is equally likely: removal t chooses by the number u of site t.
    order: uint32 (N,), overwritten.  Sites are kept sorted by degree, as in the algorithm for cores
    of V. Batagelj and M. Zaversnik, arXiv:cs/0310049.
    """
    starts, places, left = openings.starts, openings.places, openings.sites.size
    degrees = starts[1:] - starts[:-1]
    most = degrees.max()
    first = np.zeros(most + 2, np.int64)  # The index in by_degree of each degree's first site.
    for i in range(left):
        first[degrees[i] + 1] += 1
    first = np.cumsum(first)
    by_degree, at, free = np.empty(left, np.int64), np.empty(left, np.int64), first.copy()
    for i in range(left):
        at[i] = free[degrees[i]]
        by_degree[at[i]] = i
        free[degrees[i]] += 1
    for step in range(left):
        while first[most] == left:
            most -= 1
        place = places[step]
        number = uniform_number(generator, seed, sample, uint32(place >> 5), uint32(place & 31))
        n = first[most] + int64(float64(number) / _TOP_FLOAT * (left - first[most]))
        left -= 1
        i = by_degree[n]
        _swap(by_degree, at, n, left)
        order[left] = uint32(i)
        for pair in range(starts[i], starts[i + 1]):
            j = int64(openings.pairs[pair, 1])
            if at[j] < left:
                _swap(by_degree, at, at[j], first[degrees[j]])
                first[degrees[j]] += 1
                degrees[j] -= 1


@inner
def _swap(by_degree, at, n, m):
    """Swap the n-th and the m-th site in the order by degree."""
    i, j = by_degree[n], by_degree[m]
    by_degree[n], by_degree[m] = j, i
    at[i], at[j] = m, n


@inner
def _add_row(state, row, picks, sums):
    places, masks, rules, without = picks
    flags = int64(state[1])
    _put(row, 0, 1, state[0])
    row[SPANNING] = flags
    for c in range(places.size):
        sums[c] += read_observable(row[places[c]], flags, masks[c], rules[c], without[c])
    sums[places.size] += row[LARGEST] * row[LARGEST]


@njit(nogil=True, cache=True, **UNCOUNTED)
def _begin(openings, layers, scratch):
    """Return the sums and the flags before the first opening."""
    scratch.counts[:] = 0
    scratch.sizes[:] = 0
    scratch.reach[:] = 0
    scratch.periods[:] = 0
    scratch.loop[0] = 0
    for n in range(layers.end_sites.size):
        scratch.reach[layers.end_sites[n]] |= layers.end_flags[n]
    sums, flags = _empty(), int64(0)
    for i in range(scratch.parents.size):
        scratch.parents[i] = i
    if openings.sites.size:
        return sums, flags
    for word in range(layers.occupied.size):
        left = layers.occupied[word]
        while left != uint32(0):
            site = 32 * word + trailing_zeros(left)
            left = uint32(left & uint32(left - uint32(1)))
            sums, flags = _occupy(site, sums, flags, scratch)
    return sums, flags


@inner
def _occupy(site, sums, flags, scratch):
    """Return the sums and the flags with one more cluster, of one site."""
    scratch.sizes[site] = 1
    scratch.counts[1] += int32(1)
    return _with_cluster(sums, int64(1)), flags | spanning_bits(scratch.reach[site])


@njit(nogil=True, cache=True, **UNCOUNTED)
def open_one(opening, state, openings, layers, scratch):
    """Open one bond or site, int64; return the sums and the flags, int64, after it: the state."""
    sums, flags = state
    parents, sizes, periods = scratch.parents, scratch.sizes, scratch.periods
    if openings.sites.size:
        sums, flags = _occupy(openings.sites[opening], sums, flags, scratch)
    for n in range(openings.starts[opening], openings.starts[opening + 1]):
        i, j = openings.pairs[n, 0], openings.pairs[n, 1]
        # A vacant site is a root without a size; the parents of the others are occupied.
        if parents[j] == j and sizes[j] == 0:
            continue
        if periods.size:
            a, b, wound = join_over_periods(parents, periods, i, j, openings.codes[n])
            if a == b:
                flags |= note_loop(wound, scratch.loop, layers.axes)
                continue
        else:
            a, b = find_halving(parents, i), find_halving(parents, j)
            if a == b:
                continue
            if b < a:
                a, b = b, a
            parents[b] = a
        sums = _add_cluster(sums, a, b, scratch)
        flags |= spanning_bits(scratch.reach[a])
    return sums, flags


@inner
def _add_cluster(sums, a, b, scratch):
    """Add root b to root a, which became its parent; return the new sums."""
    sizes, counts = scratch.sizes, scratch.counts
    large, small = max(int64(sizes[a]), int64(sizes[b])), min(int64(sizes[a]), int64(sizes[b]))
    counts[large] -= int32(1)
    counts[small] -= int32(1)
    counts[large + small] += int32(1)
    sizes[a], sizes[b] = large + small, 0
    scratch.reach[a] |= scratch.reach[b]
    sums, lost = _replaced(sums, large, small)
    if lost:
        # Find the next smaller size of a cluster; over a sample, these steps are few in total.
        second = small
        while second > 0 and counts[second] == 0:
            second -= 1
        _put(scratch.row, 0, 1, sums)
        scratch.row[SECOND_LARGEST] = second
        sums = _take(scratch.row, 0, 1)
    return sums
