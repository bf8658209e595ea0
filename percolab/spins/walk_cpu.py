"""Sweeps whose time grows with the changed clusters, not the lattice: walks from chosen sites, CPU.

If a sweep is not measured and changes only the clusters of chosen sites (``wolff``, ``few``), a
walk goes breadth first from each of these sites over open bonds.  The open bonds of a word are
drawn when the walk first needs one of them, from the same random numbers as when all clusters are
labeled: the spins are the same, bit for bit.  Per site a walk takes several times as long as
labeling, so it is given up when its clusters get large, before any spin has changed.
Source: U. Wolff, Phys. Rev. Lett. 62, 361 (1989).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.bonds.keys import seed_at
from percolab.bonds.words import open_word
from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import INNER, inner
from percolab.kernels.neighbours import find_periodic_number, periodic_word
from percolab.kernels.uncounted import UNCOUNTED
from percolab.lattices.topology import Topology, pack_bits
from percolab.spins.kernels_cpu import choose_sites
from percolab.spins.words import changed, satisfied_word, spin_at, spin_change


class Walk(NamedTuple):
    """The memory of walks, in addition to the spins and the words of open bonds."""

    visited: Any  # uint32 (num_words,), sites visited by the walks of a sweep; 0 between sweeps
    drawn: Any  # uint32 (classes * num_words,), the stamp of the sweep of a word's bonds
    stamp: Any  # int64 (1,), of the current sweep
    ends: Any  # int64 (seeds,), number of visited sites at the end of each walk
    # int64 (periodic bonds,), the numbers of the periodic bonds in the order of their other ends
    arrivals: Any
    landing: Any  # int32 (periodic bonds,), these ends, ascending
    landed: Any  # uint32 (num_words,), words of these ends


def new_walk(topology: Topology, seeds: int) -> Walk:
    """Return the memory for walks on a lattice from ``seeds`` sites in each sweep."""
    ends = topology.periodic_ends
    order = np.argsort(ends, kind="stable").astype(np.int64)
    is_end = np.zeros(topology.num_points, bool)
    is_end[ends] = True
    return Walk(
        visited=np.zeros(topology.num_words, np.uint32),
        drawn=np.zeros(topology.num_bond_words, np.uint32),
        stamp=np.zeros(1, np.int64),
        ends=np.zeros(seeds, np.int64),
        arrivals=order,
        landing=ends[order],
        landed=pack_bits(is_end),
    )


@inner
def _next_stamp(drawn, stamp):
    """Return the stamp of the next sweep; after 2^32 sweeps all stamps are cleared."""
    stamp[0] += 1
    if stamp[0] >> 32:
        drawn[:] = 0
        stamp[0] = 1
    return uint32(stamp[0])


class _Bonds(NamedTuple):
    """The parameters of the open bonds of a sweep, and which of them are drawn."""

    generator: Any
    chain: Any
    seed: Any  # of the words of bonds at this sweep
    num_planes: Any
    exists: Any
    adjacency: Any
    planes: Any
    opened: Any
    drawn: Any  # as in Walk
    stamp: Any  # of this sweep


@inner
def _draw_word(bonds, k, w):
    """Write the open bonds of word w of class k."""
    adjacency, planes, num_planes = bonds.adjacency, bonds.planes, bonds.num_planes
    num_words, here = int64(adjacency.num_words), uint32(0)
    index = k * num_words + w
    there = uint32(bonds.exists[index])
    beyond = uint32(there & periodic_word(adjacency.periodic_words, index))
    inner, left = uint32(there & ~beyond), beyond
    alive = satisfied_word(planes, here, num_planes, adjacency, k, uint32(w), inner)
    while left != uint32(0):
        bit = uint32(trailing_zeros(left))
        left = uint32(left & uint32(left - uint32(1)))
        n = find_periodic_number(32 * index + int64(bit), adjacency.periodic_bonds)
        one = spin_at(planes, here, num_planes, num_words, uint32(32 * w + int64(bit)))
        other = spin_at(planes, here, num_planes, num_words, uint32(adjacency.periodic_ends[n]))
        if one == other:
            alive = uint32(alive | uint32(uint32(1) << bit))
    bits = uint32(0)
    if alive != uint32(0):
        number, threshold = bonds.chain.number, bonds.chain.threshold
        bits = open_word(bonds.generator, bonds.seed, number, uint64(index), threshold, alive)
    bonds.opened[index] = bits


@njit(**INNER, forceinline=True)
def _read_word(bonds, k, w):
    """Return the open bonds of word w of class k, which are drawn when first needed."""
    index = k * int64(bonds.adjacency.num_words) + w
    if bonds.drawn[index] != bonds.stamp:
        bonds.drawn[index] = bonds.stamp
        _draw_word(bonds, k, w)
    return uint32(bonds.opened[index])


@njit(**INNER, forceinline=True)
def _bit_of(site):
    return uint32(uint32(1) << uint32(uint32(site) & uint32(31)))


@njit(**INNER, forceinline=True)
def _visit(site, visited, queue, tail):
    """Append a site to the queue unless it has been visited; return the end of the queue."""
    if uint32(visited[site >> 5] & _bit_of(site)) == uint32(0):
        visited[site >> 5] = uint32(visited[site >> 5] | _bit_of(site))
        queue[tail] = uint32(site)
        tail += 1
    return tail


@njit(**INNER, forceinline=True)
def _walk_from(site, begin, most, bonds, queue, visited, arrivals, landing, landed):
    """Write the sites of a cluster into ``queue`` from place ``begin`` on; return their end.

    The walk stops when there are ``most`` sites or more in the queue.  site: must be in no cluster
    that was found before.
    """
    adjacency = bonds.adjacency
    num_words, periodic = int64(adjacency.num_words), adjacency.periodic_words
    head, tail = begin, _visit(site, visited, queue, begin)
    while head < tail and tail < most:
        i = int64(queue[head])
        head += 1
        w, own = i >> 5, _bit_of(i)
        for k in range(len(adjacency.ends)):
            # The bonds of the site.
            delta, index = int64(adjacency.ends[k]), k * num_words + w
            if uint32(_read_word(bonds, k, w) & own) != uint32(0):
                j = i + delta
                if uint32(periodic_word(periodic, index) & own) != uint32(0):
                    n = find_periodic_number(32 * index + (i & 31), adjacency.periodic_bonds)
                    j = int64(adjacency.periodic_ends[n])
                tail = _visit(j, visited, queue, tail)
            # The bond of the same class of another site that ends here.
            j = i - delta
            if j < 0 or j >> 5 >= num_words or uint32(visited[j >> 5] & _bit_of(j)) != uint32(0):
                continue
            beyond = uint32(periodic_word(periodic, k * num_words + (j >> 5)))
            if uint32(uint32(_read_word(bonds, k, j >> 5) & ~beyond) & _bit_of(j)) != uint32(0):
                tail = _visit(j, visited, queue, tail)
        # The periodic bonds of other sites that end here.
        if uint32(landed[w] & own) == uint32(0):
            continue
        n = int64(np.searchsorted(landing, i))
        while n < landing.size and landing[n] == i:
            bond = int64(adjacency.periodic_bonds[arrivals[n]])
            n += 1
            k, v = (bond >> 5) // num_words, (bond >> 5) % num_words
            j = 32 * v + (bond & 31)
            if uint32(visited[v] & _bit_of(j)) != uint32(0):
                continue
            if uint32(_read_word(bonds, k, v) & _bit_of(j)) != uint32(0):
                tail = _visit(j, visited, queue, tail)
    return tail


@inner
def _paint_sites(generator, chain, seed, rule, num_planes, sites, planes, counts):
    """Give the cluster of these sites its new spin."""
    root, num_words = sites[0], planes.size // num_planes
    for site in sites:
        root = min(root, site)
    old = spin_at(planes, uint32(0), num_planes, num_words, root)
    new = changed(old, spin_change(generator, seed, chain.number, root, True, rule), rule)
    if new == old:
        return
    counts[old] -= sites.size
    counts[new] += sites.size
    for plane in range(num_planes):
        if uint32(uint32(uint32(old ^ new) >> uint32(plane)) & uint32(1)) != uint32(0):
            for site in sites:
                place = plane * num_words + int64(site >> uint32(5))
                planes[place] = uint32(planes[place] ^ _bit_of(site))


@njit(nogil=True, cache=True, **UNCOUNTED)
def walk_sweeps(
    generator, chain, first, sweeps, most, rule, num_planes, exists, adjacency, occupied, opened,
    spins, walk,
):  # fmt: skip
    """Do up to ``sweeps`` sweeps from number ``first`` on; return the number that was done.

    If it is smaller, the walks of the next sweep exceed ``most`` sites, and that sweep has changed
    nothing.  The sites that walks find are in ``spins.marks``.
    """
    queue, visited, planes = spins.marks, walk.visited, spins.planes
    for n in range(sweeps):
        sweep = uint64(first + n)
        choose_sites(generator, chain, sweep, occupied, adjacency.num_points, spins.chosen)
        tail = int64(0)
        bonds = _Bonds(
            generator, chain, seed_at(chain.bonds, sweep), num_planes, exists, adjacency, planes,
            opened, walk.drawn, _next_stamp(walk.drawn, walk.stamp),
        )  # fmt: skip
        landings = walk.arrivals, walk.landing, walk.landed
        for m in range(spins.chosen.size):
            site = spins.chosen[m]
            free = uint32(occupied[site >> 5] & ~visited[site >> 5])
            if uint32(free & _bit_of(site)) != uint32(0):
                tail = _walk_from(site, tail, most, bonds, queue, visited, *landings)
            walk.ends[m] = tail
            if tail >= most:
                break
        for place in range(tail):
            visited[int64(queue[place]) >> 5] = uint32(0)
        if tail >= most:
            return n
        begin, seed = int64(0), seed_at(chain.spins, sweep)
        for end in walk.ends:
            if end > begin:
                sites = queue[begin:end]
                _paint_sites(generator, chain, seed, rule, num_planes, sites, planes, spins.counts)
            begin = end
    return sweeps
