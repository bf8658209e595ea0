"""Compiled sweeps of one chain on the CPU: open bonds, new spins, measurements.

With the runs of the labeler ``raster`` many sweeps are one call, which sets the spins of a whole
run together.  chain: keys and a threshold; occupied, exists, opened: uint32 words; labels: int32.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.bonds.keys import seed_at
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.inner import inner, inner_with_arrays
from percolab.kernels.neighbours import has_bit, periodic_bond, periodic_word
from percolab.kernels.runs import fill_segments
from percolab.labelers.raster_runs import find_clusters, find_run, measure_runs
from percolab.measure.spins import LARGEST_STATE, OPEN_BONDS, SATISFIED, STATE_SQUARES
from percolab.spins.words import (
    changed,
    chosen_site,
    first_spin,
    satisfied_word,
    spin_at,
    spin_change,
    write_digits,
    write_spin,
)


class Spins(NamedTuple):
    """A configuration, and scratch memory for its sweeps."""

    planes: Any  # uint32 (planes * num_words,)
    counts: Any  # int64 (states,), number of sites in every state
    alive: Any  # uint32 like the open bonds, scratch for the satisfied bonds
    chosen: Any  # int64 (seeds,), scratch for the chosen sites
    marks: Any  # uint32 (num_points,), scratch: the spin of every run or cluster


#: Bit in ``marks`` of the cluster of a chosen site.
_CHOSEN = 1 << 31


@njit(nogil=True, cache=True)
def begin_spins(generator, chain, rule, is_random, occupied, spins):
    """Write the initial spins of a chain: all 0, or each at random."""
    num_words = occupied.size
    spins.planes[:] = 0
    spins.counts[:] = 0
    for word in range(num_words):
        left = occupied[word]
        while left != uint32(0):
            site = uint32(32 * word + trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            spin = uint32(0)
            if is_random:
                spin = first_spin(generator, chain.spins, chain.number, site, rule)
            spins.counts[spin] += 1
            write_spin(spins.planes, uint32(0), rule.planes, num_words, site, spin)


@njit(nogil=True, cache=True)
def count_states(planes, num_planes, occupied, counts):
    """Count the sites in every state; counts: int64 (states,)."""
    counts[:] = 0
    for word in range(occupied.size):
        left = occupied[word]
        while left != uint32(0):
            site = uint32(32 * word + trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            counts[spin_at(planes, uint32(0), num_planes, occupied.size, site)] += 1


@inner
def _keep_equal(plane, first, last, delta, alive):
    """Remove bonds between sites of unequal bits from ``alive``; other ends are ``delta`` sites on.

    plane: uint32 words of the bits.  first, last: the range of words of ``alive`` whose other ends
    are all within ``plane``.
    """
    place, shift = delta >> 5, uint64(delta & 31)
    for word in range(first, last):
        pair = uint64(uint64(plane[word + place + 1]) << uint64(32)) | uint64(plane[word + place])
        others = uint32(uint64(pair >> shift))
        alive[word] = uint32(alive[word] & ~uint32(plane[word] ^ others))


@inner
def _keep_satisfied(planes, num_planes, adjacency, ends, k, alive):
    """Keep only bonds of class k between equal spins; none may cross a periodic boundary.

    ends: of the adjacency; Numba compiles only the branch for its dimension.
    """
    count = alive.size
    first, last = count, count
    if ends.ndim == 1:
        # Other ends have a constant index difference, so many words are processed together.
        delta = int64(ends[k])
        first = min(max(-(delta >> 5), 0), count)
        last = max(min(count, count - 1 - (delta >> 5)), first)
        for plane in range(num_planes):
            own = planes[plane * count : (plane + 1) * count]
            _keep_equal(own, first, last, delta, alive)
    for begin, end in ((0, first), (last, count)):
        for word in range(begin, end):
            alive[word] = satisfied_word(
                planes, uint32(0), num_planes, adjacency, k, uint32(word), alive[word]
            )


@inner
def count_bits(words):
    """Return the number of 1 bits in words, uint32 (n,)."""
    count = int64(0)
    for word in words:
        count += int64(popcount(word))
    return count


@inner
def find_satisfied(num_planes, exists, adjacency, spins, opened):
    """Write the satisfied bonds to ``spins.alive``, and return their number.  opened: any words."""
    num_words, periodic, here = int64(adjacency.num_words), adjacency.periodic_words, uint32(0)
    satisfied = int64(0)
    for k in range(len(adjacency.ends)):
        begin = k * num_words
        alive = spins.alive[begin : begin + num_words]
        for word in range(num_words):
            beyond = uint32(periodic_word(periodic, begin + word))
            alive[word] = uint32(exists[begin + word] & ~beyond)
        _keep_satisfied(spins.planes, num_planes, adjacency, adjacency.ends, k, alive)
        for word in range(num_words):
            satisfied += int64(popcount(alive[word]))
            beyond = uint32(periodic_word(periodic, begin + word))
            alive[word] = uint32(alive[word] | uint32(exists[begin + word] & beyond))
    for n in range(adjacency.periodic_bonds.size):
        _, i, j = periodic_bond(n, opened, here, adjacency)
        one = spin_at(spins.planes, here, num_planes, num_words, i)
        other = spin_at(spins.planes, here, num_planes, num_words, j)
        if one == other:
            satisfied += 1
        else:
            bond = adjacency.periodic_bonds[n]
            bit = uint32(uint32(1) << uint32(bond & 31))
            spins.alive[bond >> 5] = uint32(spins.alive[bond >> 5] & ~bit)
    return satisfied


@njit(nogil=True, cache=True)
def open_satisfied(generator, chain, sweep, num_planes, exists, adjacency, spins, opened):
    """Write the open bonds of a sweep; return the numbers of satisfied and of open bonds."""
    satisfied = find_satisfied(num_planes, exists, adjacency, spins, opened)
    seed = seed_at(chain.bonds, sweep)
    fill_open_bonds(generator, seed, chain.number, chain.threshold, uint64(0), spins.alive, opened)
    return satisfied, count_bits(opened)


@njit(nogil=True, cache=True)
def choose_sites(generator, chain, sweep, occupied, num_points, chosen):
    """Write the chosen sites of a sweep, int64 (seeds,)."""
    seed = seed_at(chain.sites, sweep)
    for n in range(chosen.size):
        chosen[n] = int64(
            chosen_site(generator, seed, chain.number, uint64(n), num_points, occupied)
        )


@inner_with_arrays
def _paint_runs_by_bit(generator, chain, sweep, occupied, runs, spins):
    """Give the clusters of a sweep new spins of one binary digit, and count the states.

    Every run stores the digit of its first site, or that of its cluster's first run, which has been
    processed before it.
    """
    planes, marks, parents = spins.planes, spins.marks, runs.parents
    seed, digits, run, ones = seed_at(chain.spins, sweep), np.empty(1, np.uint32), 0, int64(0)
    sites, spin = int64(0), uint32(0)
    for word in range(occupied.size):
        write_digits(generator, seed, chain.number, uint32(word), 1, digits, (0, 1), uint32(0))
        starts, digit = runs.starts[word], digits[0]
        # A run may have begun in an earlier word.
        left, marked = starts, uint32(spin & ~starts & uint32(1))
        while left != uint32(0):
            bit = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            marks[run] = uint32(uint32(digit >> bit) & uint32(1))
            spin = marks[parents[run]]
            marked = uint32(marked | uint32(spin << bit))
            run += 1
        there = occupied[word]
        painted = uint32(fill_segments(marked, uint32(starts | uint32(1))) & there)
        planes[word] = painted
        ones += int64(popcount(painted))
        sites += int64(popcount(there))
    spins.counts[0], spins.counts[1] = sites - ones, ones


@inner_with_arrays
def _paint_runs(generator, chain, sweep, rule, num_planes, occupied, runs, spins):
    """Give the clusters of a sweep their new spins, run by run, and count the states."""
    planes, marks, counts = spins.planes, spins.marks, spins.counts
    num_words, seed = occupied.size, seed_at(chain.spins, sweep)
    whole = rule.seeds == uint32(0)
    if not whole:
        for n in range(spins.chosen.size):
            root = runs.parents[find_run(spins.chosen[n], runs.starts, runs.first)]
            marks[root] = uint32(_CHOSEN)
    counts[:] = 0
    run, spin = -1, uint32(0)
    words, digits = np.empty(num_planes, np.uint32), np.empty(num_planes, np.uint32)
    for word in range(num_words):
        if rule.by_word != uint32(0):
            where, right = (0, 1), uint32(0)
            write_digits(
                generator, seed, chain.number, uint32(word), num_planes, digits, where, right
            )
        left, there = runs.starts[word], occupied[word]
        for plane in range(num_planes):
            words[plane] = uint32(0)
        # Sites before the first start belong to the previous run.
        mask = uint32(uint32(left & uint32(~left + uint32(1))) - uint32(1))
        while True:
            mask = uint32(mask & there)
            counts[spin] += int64(popcount(mask))
            for plane in range(num_planes):
                if has_bit(spin, plane):
                    words[plane] = uint32(words[plane] | mask)
            if left == uint32(0):
                break
            run += 1
            rest = uint32(left & uint32(left - uint32(1)))
            following = uint32(rest & uint32(~rest + uint32(1)))
            mask = uint32(uint32(following - uint32(1)) & ~uint32((left ^ rest) - uint32(1)))
            root = runs.parents[run]
            if root == run and rule.by_word != uint32(0):
                bit, new = uint32(trailing_zeros(left)), uint32(0)
                for plane in range(num_planes):
                    one = uint32(uint32(digits[plane] >> bit) & uint32(1))
                    new = uint32(new | uint32(one << uint32(plane)))
                marks[run] = new
            elif root == run:
                site = uint32(32 * word + trailing_zeros(left))
                old, is_chosen = uint32(0), False
                if not whole:
                    old = spin_at(planes, uint32(0), num_planes, num_words, site)
                    is_chosen = marks[run] == uint32(_CHOSEN)
                change = spin_change(generator, seed, chain.number, site, is_chosen, rule)
                marks[run] = changed(old, change, rule)
            spin = marks[root]
            left = rest
        for plane in range(num_planes):
            planes[plane * num_words + word] = words[plane]


@njit(nogil=True, cache=True)
def paint_labels(generator, chain, sweep, rule, num_planes, occupied, labels, spins):
    """Give the clusters of a sweep their new spins by the sites' labels, and count the states."""
    planes, marks, counts = spins.planes, spins.marks, spins.counts
    num_words, seed = occupied.size, seed_at(chain.spins, sweep)
    whole = rule.seeds == uint32(0)
    marks[:] = 0
    if not whole:
        for n in range(spins.chosen.size):
            marks[labels[spins.chosen[n]]] = uint32(_CHOSEN)
    counts[:] = 0
    for word in range(num_words):
        left = occupied[word]
        while left != uint32(0):
            site = uint32(32 * word + trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            root = uint32(labels[site])
            if root == site:
                old = spin_at(planes, uint32(0), num_planes, num_words, site)
                is_chosen = marks[root] == uint32(_CHOSEN)
                change = spin_change(generator, seed, chain.number, root, is_chosen, rule)
                marks[root] = changed(old, change, rule)
            counts[marks[root]] += 1
            write_spin(planes, uint32(0), num_planes, num_words, site, marks[root])


@njit(nogil=True, cache=True)
def write_spin_numbers(satisfied, count, counts, row):
    """Write the numbers of a sweep except those of clusters to ``row``, int64 (SPIN_ROW_WIDTH,)."""
    row[SATISFIED], row[OPEN_BONDS] = satisfied, count
    largest, squares = int64(0), int64(0)
    for number in counts:
        largest = max(largest, number)
        squares += number * number
    row[LARGEST_STATE], row[STATE_SQUARES] = largest, squares


@njit(nogil=True, cache=True)
def sweep_runs(
    generator, chain, first, rule, num_planes, exists, adjacency, occupied, end_flags, opened,
    runs, windings, spins, rows, numbers,
):  # fmt: skip
    """Do one sweep for every row, the first with number ``first``; write rows and numbers."""
    for n in range(len(rows)):
        sweep = uint64(first + n)
        satisfied, count = open_satisfied(
            generator, chain, sweep, num_planes, exists, adjacency, spins, opened
        )
        write_spin_numbers(satisfied, count, spins.counts, numbers[n])
        clusters, wrapping = find_clusters(opened, adjacency, occupied, runs, windings)
        measure_runs(clusters, wrapping, end_flags, runs, rows[n])
        choose_sites(generator, chain, sweep, occupied, adjacency.num_points, spins.chosen)
        if rule.by_word != uint32(0) and num_planes == 1:
            _paint_runs_by_bit(generator, chain, sweep, occupied, runs, spins)
        else:
            spins.marks[:clusters] = 0
            _paint_runs(generator, chain, sweep, rule, num_planes, occupied, runs, spins)
