"""Sweeps of one chain in the memory of the host.

With the labeler ``raster`` many sweeps are one call of compiled code, in which a run of sites gets
its spin at once.  Any other labeler joins the bonds of a sweep and gives labels, from which the
spins follow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32, uint64
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import CpuBatch
from percolab.bonds.keys import seed_at
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.memory import Memory
from percolab.kernels.neighbours import has_bit, seam_bond, seam_word
from percolab.labelers.forest import Reading
from percolab.labelers.raster import Raster
from percolab.labelers.raster_runs import find_clusters, measure_runs, run_of
from percolab.lattices.extent import Extent
from percolab.lattices.topology import num_words_of
from percolab.measure.spins import LARGEST_STATE, OPEN_BONDS, SATISFIED, STATE_SQUARES
from percolab.spins.update import Rule, num_planes_of
from percolab.spins.words import (
    Chain,
    change_of,
    changed,
    chosen_site,
    first_spin,
    satisfied_word,
    spin_at,
    write_digits,
)


class Spins(NamedTuple):
    """A configuration, and what a sweep of it needs.

    planes:  uint32 (planes * num_words,)
    counts:  int64 (states,), the sites in every state
    alive:   uint32 like the open bonds, scratch for the satisfied bonds
    chosen:  int64 (seeds,), scratch for the chosen sites
    marks:   uint32 (num_points,), scratch: the spin of every run or cluster
    """

    planes: Any
    counts: Any
    alive: Any
    chosen: Any
    marks: Any


#: Set in ``marks`` at the cluster of a chosen site.
_CHOSEN = 1 << 31


@njit(nogil=True, cache=True)
def begin_spins(generator, chain, rule, is_random, occupied, spins):
    """Write the spins that a chain starts with: all 0, or each at random."""
    num_words = occupied.size
    spins.planes[:] = 0
    spins.counts[:] = 0
    for word in range(num_words):
        left = occupied[word]
        while left != uint32(0):
            bit = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            spin = uint32(0)
            if is_random:
                site = uint32(uint32(uint32(word) << uint32(5)) + bit)
                spin = first_spin(generator, chain.spins, chain.number, site, rule)
            spins.counts[spin] += 1
            for plane in range(rule.planes):
                if has_bit(spin, plane):
                    place = plane * num_words + word
                    spins.planes[place] = uint32(spins.planes[place] | uint32(uint32(1) << bit))


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


@njit(nogil=True, cache=True)
def open_satisfied(generator, chain, sweep, num_planes, exists, adjacency, spins, opened):
    """Write the open bonds of a sweep; return the numbers of satisfied and of open bonds."""
    num_words, seam, here = int64(adjacency.num_words), adjacency.seam, uint32(0)
    satisfied = int64(0)
    for k in range(len(adjacency.ends)):
        for word in range(num_words):
            index = k * num_words + word
            beyond = uint32(exists[index] & seam_word(seam, index))
            inner = uint32(exists[index] & ~beyond)
            same = satisfied_word(spins.planes, here, num_planes, adjacency, k, uint32(word), inner)
            satisfied += int64(popcount(same))
            spins.alive[index] = uint32(same | beyond)
    for n in range(adjacency.seam_bonds.size):
        _, i, j = seam_bond(n, opened, here, adjacency)
        one = spin_at(spins.planes, here, num_planes, num_words, i)
        other = spin_at(spins.planes, here, num_planes, num_words, j)
        if one == other:
            satisfied += 1
        else:
            bond = adjacency.seam_bonds[n]
            bit = uint32(uint32(1) << uint32(bond & 31))
            spins.alive[bond >> 5] = uint32(spins.alive[bond >> 5] & ~bit)
    seed = seed_at(chain.bonds, sweep)
    fill_open_bonds(generator, seed, chain.number, chain.threshold, here, spins.alive, opened)
    count = int64(0)
    for index in range(opened.size):
        count += int64(popcount(opened[index]))
    return satisfied, count


@njit(nogil=True, cache=True)
def choose_sites(generator, chain, sweep, occupied, num_points, chosen):
    """Write the chosen sites of a sweep."""
    seed = seed_at(chain.sites, sweep)
    for n in range(chosen.size):
        chosen[n] = int64(
            chosen_site(generator, seed, chain.number, uint64(n), num_points, occupied)
        )


@njit(nogil=True, cache=True)
def _paint_runs(generator, chain, sweep, rule, num_planes, occupied, runs, spins):
    """Give the clusters of a sweep their new spins, run by run, and count the states."""
    planes, marks, counts = spins.planes, spins.marks, spins.counts
    num_words, seed = occupied.size, seed_at(chain.spins, sweep)
    whole = rule.seeds == uint32(0)
    if not whole:
        for n in range(spins.chosen.size):
            root = runs.parents[run_of(spins.chosen[n], runs.starts, runs.first)]
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
        # What comes before the first start belongs to the run before.
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
                change = change_of(generator, seed, chain.number, site, is_chosen, rule)
                marks[run] = changed(old, change, rule)
            spin = marks[root]
            left = rest
        for plane in range(num_planes):
            planes[plane * num_words + word] = words[plane]


@njit(nogil=True, cache=True)
def _paint_labels(generator, chain, sweep, rule, num_planes, occupied, labels, spins):
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
            bit = uint32(trailing_zeros(left))
            site = uint32(uint32(uint32(word) << uint32(5)) + bit)
            left = uint32(left & uint32(left - uint32(1)))
            root = uint32(labels[site])
            if root == site:
                old = spin_at(planes, uint32(0), num_planes, num_words, site)
                is_chosen = marks[root] == uint32(_CHOSEN)
                change = change_of(generator, seed, chain.number, root, is_chosen, rule)
                marks[root] = changed(old, change, rule)
            spin = marks[root]
            counts[spin] += 1
            for plane in range(num_planes):
                place = plane * num_words + word
                cleared = uint32(planes[place] & ~uint32(uint32(1) << bit))
                one = uint32(uint32(uint32(spin >> uint32(plane)) & uint32(1)) << bit)
                planes[place] = uint32(cleared | one)


@njit(nogil=True, cache=True)
def write_spin_numbers(satisfied, count, counts, row):
    """Write the numbers of a sweep beside its clusters into ``row``, int64 (SPIN_ROW_WIDTH,)."""
    row[SATISFIED], row[OPEN_BONDS] = satisfied, count
    largest, squares = int64(0), int64(0)
    for number in counts:
        largest = max(largest, number)
        squares += number * number
    row[LARGEST_STATE], row[STATE_SQUARES] = largest, squares


@njit(nogil=True, cache=True)
def _sweep_runs(
    generator, chain, first, rule, num_planes, exists, adjacency, occupied, end_flags, opened,
    runs, windings, spins, rows, numbers,
):  # fmt: skip
    """Do one sweep for every row, from number ``first`` on; write their rows and numbers."""
    for n in range(len(rows)):
        sweep = uint64(first + n)
        satisfied, count = open_satisfied(
            generator, chain, sweep, num_planes, exists, adjacency, spins, opened
        )
        write_spin_numbers(satisfied, count, spins.counts, numbers[n])
        found, wrapping = find_clusters(opened, adjacency, occupied, runs, windings)
        measure_runs(found, wrapping, end_flags, runs, rows[n])
        choose_sites(generator, chain, sweep, occupied, adjacency.num_points, spins.chosen)
        spins.marks[:found] = 0
        _paint_runs(generator, chain, sweep, rule, num_planes, occupied, runs, spins)


class CpuChain:
    """One chain on the CPU: its spins, and sweeps of them with a labeler of one sample.

    sweep: how many sweeps were done since the start.
    """

    #: How many chains are swept together.
    capacity = 1

    def __init__(self, labeler: Any, rule: Rule) -> None:
        self.labeler, self.rule = labeler, rule
        batch: CpuBatch = labeler.batch
        top = batch.topology
        self._planes = int(rule.planes)
        self.spins = Spins(
            planes=np.zeros(self._planes * top.num_words, np.uint32),
            counts=np.zeros(int(rule.states), np.int64),
            alive=np.zeros(batch.opened.size, np.uint32),
            chosen=np.zeros(int(rule.seeds), np.int64),
            marks=np.zeros(top.num_points, np.uint32),
        )
        self.sweep = 0
        self._generator = 0
        self._chain: Chain | None = None

    @staticmethod
    def memory(extent: Extent, states: int, items: int = 1) -> Memory:
        """Return the memory beside that of batch and labeler."""
        words = num_planes_of(states) * num_words_of(extent.num_points) + extent.num_words
        return Memory(host=4 * (words + extent.num_points))

    def begin(self, generator: int, chains: list[Chain], random: list[bool]) -> None:
        """Start a chain: with all spins 0, or with random ones."""
        (chain,), (is_random,) = chains, random
        self._generator, self._chain, self.sweep = generator, chain, 0
        occupied = self.labeler.batch.topology.occupied
        begin_spins(generator, chain, self.rule, is_random, occupied, self.spins)

    def planes_of(self) -> NDArray[np.uint32]:
        """Return the spins, uint32 (1, planes, num_words)."""
        return self.spins.planes.reshape(1, self._planes, -1).copy()

    def advance(self, sweeps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Do sweeps; return their rows (1, sweeps, row width) and numbers of spins.

        These are (1, sweeps, SPIN_ROW_WIDTH), zeros in place of the row's columns.
        """
        rows = np.zeros((sweeps, self.labeler.row_width), np.int64)
        numbers = np.zeros((sweeps, STATE_SQUARES + 1), np.int64)
        if isinstance(self.labeler, Raster):
            self._advance_runs(rows, numbers)
        else:
            for n in range(sweeps):
                self._sweep_labels(self.sweep + 1 + n, rows[n], numbers[n])
        self.sweep += sweeps
        return rows[None], numbers[None]

    def rows_at(self, thresholds: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the row of the sweep that comes next, at a threshold; no spin changes."""
        assert self._chain is not None
        chain = self._chain._replace(threshold=np.uint64(thresholds[0]))
        batch = self.labeler.batch
        bonds = self._planes, batch.exists, batch.adjacency
        open_satisfied(
            self._generator, chain, np.uint64(self.sweep + 1), *bonds, self.spins, batch.opened
        )
        rows: NDArray[np.int64] = self.labeler.join(1).rows()
        return rows

    def advance_at(self, thresholds: NDArray[np.uint64]) -> None:
        """Do one sweep with another threshold."""
        assert self._chain is not None
        own = self._chain
        self._chain = own._replace(threshold=np.uint64(thresholds[0]))
        self.advance(1)
        self._chain = own

    def _advance_runs(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        labeler, batch = self.labeler, self.labeler.batch
        key = self._generator, self._chain, self.sweep + 1, self.rule, self._planes
        there = batch.exists, batch.adjacency, batch.topology.occupied
        forest = labeler.end_flags, batch.opened, labeler.runs, labeler.windings
        _sweep_runs(*key, *there, *forest, self.spins, rows, numbers)

    def _sweep_labels(self, sweep: int, row: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        batch = self.labeler.batch
        occupied, points = batch.topology.occupied, np.uint32(batch.topology.num_points)
        key = self._generator, self._chain, np.uint64(sweep)
        bonds = self._planes, batch.exists, batch.adjacency
        found = open_satisfied(*key, *bonds, self.spins, batch.opened)
        write_spin_numbers(*found, self.spins.counts, numbers)
        forest = self.labeler.join(1, Reading.LABELS)
        (row[:],) = forest.rows()
        choose_sites(*key, occupied, points, self.spins.chosen)
        (labels,) = forest.labels()
        _paint_labels(*key, self.rule, self._planes, occupied, labels, self.spins)
