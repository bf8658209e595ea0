"""The runs of a sample's open bonds as nodes of a union-find: numbered, joined, sized, labeled.

A *run* is a maximal row of sites joined by open chain bonds (i to i - 1).  Runs are numbered in the
order of their first sites, so the smallest run of a cluster holds its smallest site.  A site's run
is found by counting the run starts at or below its bit, so nothing is stored per site.  Without
chain bonds, as on a graph, every site is a run and this is plain union-find.

opened, periodic: uint32, bond words of the sample; occupied: uint32 (num_words,); end_sites and
end_flags: int32 and uint32 (n,); row: int64 (ROW_WIDTH,), longer with a tally; the others are
fields of :class:`Runs` and :class:`Windings`.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64, njit, uint32, uint64

from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import has_bit, inner_word, periodic_bond
from percolab.kernels.runs import mark_segment_starts
from percolab.kernels.uncounted import UNCOUNTED
from percolab.kernels.union_find import union_halving
from percolab.measure.rows import ROW_WIDTH, SPANNING, row_from_sizes, spanning_bits
from percolab.measure.tallies import tally_sizes
from percolab.measure.wrapping import join_over_periods, note_loop


class Runs(NamedTuple):
    """The runs of one sample.

    starts:  uint32 (num_words,), where runs start
    first:   int32 (num_words,), the number of runs before each word
    parents: int32 (num_points,), of every run; roots come first in their trees
    sizes:   int32 (num_points,), sites of the clusters at their roots, 0 elsewhere
    reach:   uint32 (num_points,), end flags of the clusters at their roots

    While runs are joined, ``sizes`` and ``reach`` store the pairs that wait to be joined.
    """

    starts: Any
    first: Any
    parents: Any
    sizes: Any
    reach: Any


def make_runs(points: int) -> Runs:
    """Return uninitialized arrays for the runs of ``points`` grid points."""
    words, kinds = -(-points // 32), (np.int32, np.int32, np.uint32)
    starts, first = np.empty(words, np.uint32), np.empty(words, np.int32)
    return Runs(starts, first, *(np.empty(points, kind) for kind in kinds))


class Windings(NamedTuple):
    """How runs wind around periodic axes.

    periods: int64, for every run, the periods from its root to it; empty if no axis is periodic
    loop:    int64 (1,), the winding numbers of one loop of the sample, 0 if none is known yet
    axes:    axes of the lattice
    """

    periods: Any
    loop: Any
    axes: Any


@njit(nogil=True, cache=True, **UNCOUNTED)
def number_runs(opened, periodic, chain, num_points, starts, first):
    """Write the run starts of every word and the number of runs before it; return their count."""
    runs = int64(0)
    for word in range(starts.size):
        joined = uint32(0)
        if chain >= 0:
            joined = inner_word(opened, periodic, 0, chain * starts.size + word)
        start = uint32(~joined)
        if 32 * word + 32 > num_points:
            start &= uint32((uint32(1) << uint32(num_points & 31)) - uint32(1))
        starts[word] = start
        first[word] = runs
        runs += int64(popcount(start))
    return runs


@inner
def find_run(site, starts, first):
    """Return the run that contains a site, as uint32: a signed index would cost a sign test."""
    word = uint32(uint32(site) >> uint32(5))
    return _run_in(starts[word], first[word], uint32(uint32(site) & uint32(31)))


@inner
def _run_in(starts, before, bit):
    """Return the run of a bit of a word, given its run starts and the number of runs before it."""
    upto = uint32(uint32(0xFFFFFFFF) >> uint32(uint32(31) - uint32(bit)))
    return uint32(uint32(before) + uint32(popcount(uint32(starts & upto))) - uint32(1))


@inner
def _attach(run, other, runs, waiting):
    """Give a run without a parent the parent of an earlier run, or let the pair wait to be joined.

    Return the number of pairs that wait in ``sizes`` and ``reach``.  In a lattice's order of sites,
    nearly every run gets its parent here, without a search for roots and without a branch.
    """
    parents = runs.parents
    run = uint32(run)
    own, root = uint32(parents[run]), uint32(parents[uint32(other)])
    is_new = own == run and root < run
    parents[run] = root if is_new else own
    runs.sizes[waiting], runs.reach[waiting] = own, root
    return uint32(waiting + uint32(own != root and not is_new))


@inner
def _join_waiting(runs, waiting):
    """Join the pairs that wait."""
    for n in range(waiting):
        union_halving(runs.parents, runs.sizes[n], runs.reach[n])


@inner
def _join_listed_ends(left, ends, word, runs, waiting):
    """Join the runs at the ends of a word's bonds, whose other ends are in a list."""
    starts, first = runs.starts, runs.first
    while left != uint32(0):
        site = 32 * word + trailing_zeros(left)
        left = uint32(left & uint32(left - uint32(1)))
        run = _run_in(starts[word], first[word], uint32(site & 31))
        waiting = _attach(run, find_run(ends[site], starts, first), runs, waiting)
    return waiting


@inner
def _join_shifted_ends(left, delta, word, runs, waiting):
    """Join the runs at the ends of a word's bonds, whose other ends are ``delta`` away."""
    starts, first = runs.starts, runs.first
    begin = 32 * word + delta
    place, shift = begin >> 5, uint32(begin & 31)
    others, before = uint32(0), int32(-1)
    if place >= 0:
        others = uint32(starts[place] >> shift)
        below = uint32(starts[place] & uint32(uint32(uint32(1) << shift) - uint32(1)))
        before = int32(first[place] + popcount(below) - 1)
    if shift != uint32(0) and 0 <= place + 1 < starts.size:
        others = uint32(others | uint32(starts[place + 1] << uint32(uint32(32) - shift)))
    ours, ours_before = starts[word], int32(first[word] - 1)
    # One of the bonds that join the same two runs is enough.
    left = mark_segment_starts(left, uint32(uint32(ours | others) | uint32(1)))
    while left != uint32(0):
        upto = uint32(left ^ uint32(left - uint32(1)))
        left = uint32(left & uint32(left - uint32(1)))
        run = int32(ours_before + popcount(uint32(ours & upto)))
        other = int32(before + popcount(uint32(others & upto)))
        waiting = _attach(run, other, runs, waiting)
    return waiting


@njit(nogil=True, cache=True, **UNCOUNTED)
def join_runs(opened, periodic, ends, chain, runs, begin, end):
    """Join the runs at both ends of open bonds that are neither chain nor periodic bonds.

    begin, end: the words whose bonds are joined.
    """
    words, waiting = runs.starts.size, uint32(0)
    for word in range(begin, end):
        for k in range(len(ends)):
            if k == chain:
                continue
            left = inner_word(opened, periodic, 0, k * words + word)
            if left == uint32(0):
                continue
            if waiting + 32 > runs.sizes.size:
                _join_waiting(runs, waiting)
                waiting = uint32(0)
            if ends.ndim == 2:
                waiting = _join_listed_ends(left, ends[k], word, runs, waiting)
            else:
                waiting = _join_shifted_ends(left, int64(ends[k]), word, runs, waiting)
    _join_waiting(runs, waiting)


@inner
def join_periodic_bonds(opened, adjacency, runs):
    """Join the runs at the two ends of every open bond across a periodic boundary."""
    for n in range(adjacency.periodic_bonds.size):
        is_open, owner, other = periodic_bond(n, opened, uint32(0), adjacency)
        if is_open:
            one = find_run(int64(owner), runs.starts, runs.first)
            union_halving(runs.parents, one, find_run(int64(other), runs.starts, runs.first))


@inner
def size_clusters(count, occupied, runs, periods):
    """Point every run at its root, and add up the occupied sites of every cluster in ``sizes``.

    periods: those of every run, or empty.
    """
    starts, parents, sizes = runs.starts, runs.parents, runs.sizes
    sizes[:count] = 0
    last = int64(-1)
    for word in range(starts.size):
        left, here = starts[word], occupied[word]
        if left == uint32(0):
            sizes[uint32(parents[uint32(last)])] += popcount(here)
            continue
        below = uint32(uint32(left & uint32(~left + uint32(1))) - uint32(1))
        if below != uint32(0):
            sizes[uint32(parents[uint32(last)])] += popcount(uint32(here & below))
        while left != uint32(0):
            rest = uint32(left & uint32(left - uint32(1)))
            following = uint32(rest & uint32(~rest + uint32(1)))
            mask = uint32(uint32(following - uint32(1)) & ~uint32((left ^ rest) - uint32(1)))
            last += int64(1)
            run = uint32(last)
            parent = uint32(parents[run])
            if periods.size:
                # A root has no periods.
                periods[run] += periods[parent]
            root = uint32(parents[parent])
            parents[run] = root
            sizes[root] += popcount(uint32(here & mask))
            left = rest


@inner
def spanning_from_runs(end_sites, end_flags, starts, first, parents, reach):
    """Return the spanning bits, given flattened ``parents``; ``reach`` is cleared scratch."""
    spanned = uint32(0)
    for n in range(end_sites.size):
        root = uint32(parents[find_run(end_sites[n], starts, first)])
        flags = uint32(reach[root] | end_flags[n])
        reach[root] = flags
        # Both flags of an axis, without a branch, which would be hard to predict.
        pairs = uint32(flags & uint32(flags >> uint32(1)) & uint32(0x55555555))
        spanned = uint32(spanned | uint32(pairs | uint32(pairs << uint32(1))))
    return spanning_bits(spanned)


@njit(nogil=True, cache=True, **UNCOUNTED)
def write_labels(starts, parents, origins, labels):
    """Write the smallest site of every site's cluster; ``origins`` is scratch, one int32 a run."""
    run = -1
    for site in range(labels.size):
        if (starts[site >> 5] >> uint32(site & 31)) & uint32(1) != uint32(0):
            run += 1
            origins[run] = site
        labels[site] = origins[parents[run]]


@inner
def join_open_bonds(opened, adjacency, runs):
    """Join all open bonds of a sample; return the number of runs."""
    count = join_inside(opened, adjacency, runs)
    join_periodic_bonds(opened, adjacency, runs)
    return count


@inner
def join_inside(opened, adjacency, runs):
    """Join a sample's open bonds that cross no periodic boundary; return the number of runs."""
    periodic, ends, chain = adjacency.periodic_words, adjacency.ends, int64(adjacency.chain)
    points = int64(adjacency.num_points)
    count = number_runs(opened, periodic, chain, points, runs.starts, runs.first)
    for run in range(count):
        runs.parents[run] = run
    join_runs(opened, periodic, ends, chain, runs, int64(0), int64(runs.starts.size))
    return count


@inner
def _list_open(opened, bonds, first, most, stride, listed, owners):
    """List the open ones, and their owners, of up to ``most`` periodic bonds from ``first`` on.

    Return how many there are.  There is no branch, since half of them would be mispredicted.
    """
    count, begin = uint32(0), int64(0)
    for n in range(first, min(first + most, bonds.size)):
        bond = bonds[n]
        while bond >= begin + stride:
            begin += stride
        listed[count], owners[count] = n, bond - begin
        count += uint32(has_bit(opened[uint64(bond) >> uint64(5)], bond & 31))
    return count


@inner
def join_periodic_over_periods(opened, adjacency, count, runs, windings):
    """Join the open periodic bonds and track periods; return the wrapping bits of the sample."""
    starts, first, parents, listed, owners = runs
    periods, loop, axes = windings.periods, windings.loop, windings.axes
    bonds, ends, codes = adjacency.periodic_bonds, adjacency.periodic_ends, adjacency.periodic_codes
    periods[:count] = 0
    loop[0] = 0
    bits = int64(0)
    stride = int64(32) * int64(adjacency.num_words)
    last_i, last_j, last_code = uint32(0xFFFFFFFF), uint32(0xFFFFFFFF), int64(0)
    for base in range(0, bonds.size, listed.size):
        for k in range(_list_open(opened, bonds, base, listed.size, stride, listed, owners)):
            n = uint32(listed[k])
            i, j = find_run(owners[k], starts, first), find_run(ends[n], starts, first)
            # Neighbouring bonds often join the same two runs; one of them is enough.
            if i != last_i or j != last_j or codes[n] != last_code:
                last_i, last_j, last_code = i, j, codes[n]
                _, _, wound = join_over_periods(parents, periods, i, j, last_code)
                bits |= note_loop(wound, loop, axes)
    return bits


@njit(nogil=True, cache=True, **UNCOUNTED)
def join_clusters(opened, adjacency, runs, windings):
    """Join all open bonds of a sample; return (the number of runs, the wrapping bits)."""
    if windings.periods.size:
        count = join_inside(opened, adjacency, runs)
        return count, join_periodic_over_periods(opened, adjacency, count, runs, windings)
    return join_open_bonds(opened, adjacency, runs), int64(0)


@njit(nogil=True, cache=True, **UNCOUNTED)
def find_clusters(opened, adjacency, occupied, runs, windings):
    """Join and size the clusters of a sample; return (number of runs, wrapping bits)."""
    count, wrapping = join_clusters(opened, adjacency, runs, windings)
    size_clusters(count, occupied, runs, windings.periods)
    return count, wrapping


@njit(nogil=True, cache=True, **UNCOUNTED)
def measure_runs(count, wrapping, end_flags, runs, row):
    """Write the row of a sample whose clusters :func:`find_clusters` has found."""
    row_from_sizes(runs.sizes, count, row)
    if row.size > ROW_WIDTH:
        tally_sizes(runs.sizes, count, runs.reach, row)
    runs.reach[:count] = 0
    sites, flags = end_flags
    spanning = spanning_from_runs(sites, flags, runs.starts, runs.first, runs.parents, runs.reach)
    row[SPANNING] = spanning | wrapping
