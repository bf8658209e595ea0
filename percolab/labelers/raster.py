"""The CPU's labeler: one scan over packed words, with runs as the nodes of a union-find.

A *run* is a maximal row of sites joined by open chain bonds (i to i - 1).  Runs are numbered in the
order of their first sites, so the smallest run of a cluster holds its smallest site.  A site's run
is found by counting the run starts at or below its bit, so nothing is stored per site.  Without
chain bonds, as on a graph, every site is a run and this is plain union-find.

Follows the two-scan algorithms in use since Hoshen and Kopelman (1976); the union-find is that of
Tarjan with path halving, larger root under smaller.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint32

from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.bond_grid import open_bonds_of_grid
from percolab.kernels.bonds import has_bit, inner_word
from percolab.kernels.clusters import (
    LARGEST,
    ROW_WIDTH,
    SECOND_LARGEST,
    SPANNING,
    row_of_sizes,
    spanning_bits,
)
from percolab.kernels.open_bonds_cpu import fill_open_bonds
from percolab.kernels.runs import first_of_segments
from percolab.kernels.union_find import union_halving
from percolab.labelers.base import CpuLabeler
from percolab.labelers.raster_grid import (
    end_of_bond,
    merge_clusters,
    second_largest,
    sort_by_step,
)
from percolab.topology import Topology

#: Thresholds of one sample that are measured in one go; a step's number is a uint8.
MAX_STEPS = 255


@njit(nogil=True, cache=True)
def number_runs(opened, seam, chain, num_points, starts, first):
    """Write the run starts of every word and the number of runs before it; return their count."""
    runs = int64(0)
    for word in range(starts.size):
        joined = uint32(0)
        if chain >= 0:
            joined = inner_word(opened, seam, 0, chain * starts.size + word)
        start = uint32(~joined)
        if 32 * word + 32 > num_points:
            start &= uint32((uint32(1) << uint32(num_points & 31)) - uint32(1))
        starts[word] = start
        first[word] = runs
        runs += int64(popcount(start))
    return runs


@njit
def run_of(site, starts, first):
    """Return the run that holds a site."""
    word = site >> 5
    upto = uint32(uint32(0xFFFFFFFF) >> uint32(31 - (site & 31)))
    return int32(first[word] + popcount(uint32(starts[word] & upto)) - 1)


@njit
def _join_listed_ends(left, ends, word, starts, first, parents):
    """Join the runs at the ends of a word's bonds, the other ends being looked up."""
    last_run, last_other = int32(-1), int32(-1)
    while left != uint32(0):
        site = 32 * word + trailing_zeros(left)
        left = uint32(left & uint32(left - uint32(1)))
        run = run_of(site, starts, first)
        other = run_of(int64(ends[site]), starts, first)
        # Neighbouring bonds often join the same two runs; one of them is enough.
        if run != last_run or other != last_other:
            union_halving(parents, run, other)
            last_run, last_other = run, other


@njit
def _join_shifted_ends(left, delta, word, starts, first, parents):
    """Join the runs at the ends of a word's bonds, the other ends lying ``delta`` away."""
    begin = 32 * word + delta
    place, shift = begin >> 5, uint32(begin & 31)
    others, before = uint32(0), int32(0)
    if place >= 0:
        others = uint32(starts[place] >> shift)
        below = uint32(starts[place] & uint32(uint32(uint32(1) << shift) - uint32(1)))
        before = int32(first[place] + popcount(below))
    if shift != uint32(0) and 0 <= place + 1 < starts.size:
        others = uint32(others | uint32(starts[place + 1] << uint32(uint32(32) - shift)))
    ours = starts[word]
    # Of all bonds that join the same two runs, one is enough.
    left = first_of_segments(left, uint32(uint32(ours | others) | uint32(1)))
    while left != uint32(0):
        upto = uint32(left ^ uint32(left - uint32(1)))
        left = uint32(left & uint32(left - uint32(1)))
        run = int32(first[word] + popcount(uint32(ours & upto)) - 1)
        union_halving(parents, run, int32(before + popcount(uint32(others & upto)) - 1))


@njit(nogil=True, cache=True)
def join_runs(opened, seam, seam_bonds, seam_ends, ends, chain, starts, first, parents):
    """Join the runs at the two ends of every open bond that is not a chain bond."""
    for k in range(len(ends)):
        if k == chain:
            continue
        for word in range(starts.size):
            left = inner_word(opened, seam, 0, k * starts.size + word)
            if ends.ndim == 2:
                _join_listed_ends(left, ends[k], word, starts, first, parents)
            elif left != uint32(0):
                _join_shifted_ends(left, int64(ends[k]), word, starts, first, parents)
    for n in range(seam_bonds.size):
        bond = seam_bonds[n]
        if has_bit(opened[bond >> 5], bond & 31):
            site = bond % (32 * starts.size)
            union_halving(parents, run_of(site, starts, first), run_of(seam_ends[n], starts, first))


@njit(nogil=True, cache=True)
def size_clusters(parents, runs, starts, occupied, sizes):
    """Point every run at its root and add up the occupied sites of every cluster in ``sizes``."""
    sizes[:runs] = 0
    run = -1
    for word in range(starts.size):
        left, here = starts[word], occupied[word]
        if left == uint32(0):
            sizes[parents[run]] += popcount(here)
            continue
        below = uint32(uint32(left & uint32(~left + uint32(1))) - uint32(1))
        if below != uint32(0):
            sizes[parents[run]] += popcount(uint32(here & below))
        while left != uint32(0):
            rest = uint32(left & uint32(left - uint32(1)))
            following = uint32(rest & uint32(~rest + uint32(1)))
            mask = uint32(uint32(following - uint32(1)) & ~uint32((left ^ rest) - uint32(1)))
            run += 1
            root = parents[parents[run]]
            parents[run] = root
            sizes[root] += popcount(uint32(here & mask))
            left = rest


@njit(nogil=True, cache=True)
def spanning_of_runs(end_sites, end_flags, starts, first, parents, reach):
    """Return the spanning bits, given flattened ``parents``; ``reach`` is cleared scratch."""
    bits = int64(0)
    for n in range(end_sites.size):
        root = parents[run_of(int64(end_sites[n]), starts, first)]
        reach[root] |= end_flags[n]
        bits |= spanning_bits(reach[root])
    return bits


@njit(nogil=True, cache=True)
def write_labels(starts, parents, origins, labels):
    """Write the smallest site of every site's cluster; ``origins`` is scratch, one int32 a run."""
    run = -1
    for site in range(labels.size):
        if (starts[site >> 5] >> uint32(site & 31)) & uint32(1) != uint32(0):
            run += 1
            origins[run] = site
        labels[site] = origins[parents[run]]


@njit(nogil=True, cache=True)
def _find_clusters(opened, bonds, occupied, num_points, scratch):
    """Join all open bonds of a sample and size its clusters; return the number of runs."""
    seam, seam_bonds, seam_ends, ends, chain = bonds
    starts, first, parents, sizes, _ = scratch
    runs = number_runs(opened, seam, chain, num_points, starts, first)
    for run in range(runs):
        parents[run] = run
    join_runs(opened, seam, seam_bonds, seam_ends, ends, chain, starts, first, parents)
    size_clusters(parents, runs, starts, occupied, sizes)
    return runs


@njit(nogil=True, cache=True)
def _measure(opened, bonds, occupied, num_points, end_flags, scratch, row):
    """Write the row of a sample's open bonds."""
    runs = _find_clusters(opened, bonds, occupied, num_points, scratch)
    starts, first, parents, sizes, reach = scratch
    row_of_sizes(sizes, runs, row)
    reach[:runs] = 0
    row[SPANNING] = spanning_of_runs(end_flags[0], end_flags[1], starts, first, parents, reach)


@njit(nogil=True, cache=True)
def _grid_rows(opened, listed, bonds, occupied, num_points, end_flags, scratch, rows):
    """Write the rows of a sample at every p of a grid; ``listed`` are the bonds that open later."""
    _, seam_bonds, seam_ends, ends, _ = bonds
    starts, first, parents, sizes, reach = scratch
    numbers, order, step_ends = listed
    _measure(opened, bonds, occupied, num_points, end_flags, scratch, rows[0])
    runs = number_of_runs(starts, first)
    for step in range(1, len(rows)):
        row = rows[step]
        row[:] = rows[step - 1]
        lost = False
        for n in range(step_ends[step - 1], step_ends[step]):
            number = int64(numbers[order[n]])
            i, j = end_of_bond(number, 32 * starts.size, ends, seam_bonds, seam_ends)
            a, b = run_of(i, starts, first), run_of(j, starts, first)
            lost |= merge_clusters(parents, sizes, reach, row, a, b)
        if lost:
            row[SECOND_LARGEST] = second_largest(sizes, runs, row[LARGEST])


@njit
def number_of_runs(starts, first):
    """Return the number of runs that :func:`number_runs` found."""
    last = starts.size - 1
    return int64(first[last]) + int64(popcount(starts[last]))


@njit
def _grid_length(samples, thresholds, n):
    """Return how many items from n on are one sample at ascending thresholds."""
    end = n + 1
    while end < samples.size and samples[end] == samples[n]:
        if thresholds[end] <= thresholds[end - 1] or end - n == MAX_STEPS:
            break
        end += 1
    return end - n


@njit(nogil=True, cache=True)
def _rows(
    generator,
    seed,
    samples,
    thresholds,
    exists,
    opened,
    bonds,
    sites,
    end_flags,
    scratch,
    lists,
    rows,
):
    """Write the rows of all items; neighbouring items of one sample share its labeling."""
    occupied, num_points = sites
    numbers, steps, order, step_ends, planes, later = lists
    n = 0
    while n < samples.size:
        length = _grid_length(samples, thresholds, n)
        count = int64(-1)
        if length > 1:
            grid = thresholds[n : n + length]
            count = open_bonds_of_grid(
                generator, seed, samples[n], grid, exists, opened, later, numbers, steps, planes
            )
        if count >= 0:
            sort_by_step(steps, count, length, order, step_ends)
            listed = (numbers, order, step_ends)
            here = rows[n : n + length]
            _grid_rows(opened, listed, bonds, occupied, num_points, end_flags, scratch, here)
            n += length
        else:
            fill_open_bonds(generator, seed, samples[n], thresholds[n], exists, opened)
            _measure(opened, bonds, occupied, num_points, end_flags, scratch, rows[n])
            n += 1


class Raster(CpuLabeler):
    """Labels and measures samples on runs; a sample's grid of p costs little more than one p.

    A grid is shared while at most a third of the bonds open in it; a wider one is measured p by p.
    """

    def __init__(self, topology: Topology) -> None:
        super().__init__(topology)
        words, points = topology.num_words, topology.num_points
        self._bonds = (
            self.seam,
            topology.seam_bonds,
            topology.seam_ends,
            self.ends,
            topology.chain,
        )
        self._scratch = (
            np.empty(words, np.uint32),
            np.empty(words, np.int32),
            np.empty(points, np.int32),
            np.empty(points, np.int32),
            np.empty(points, np.uint32),
        )
        # A bond's number is a uint32; larger lattices are measured p by p.
        countable = 32 * topology.exists.size <= 2**32
        listed = topology.num_classes * points // 3 if countable else 0
        self._lists = (
            np.empty(listed, np.uint32),
            np.empty(listed, np.uint8),
            np.empty(listed, np.uint32),
            np.empty(MAX_STEPS + 2, np.int64),
            np.empty(63, np.uint32),
            np.empty(topology.exists.size, np.uint32),
        )

    @staticmethod
    def scratch_bytes(num_points: int, num_classes: int) -> int:
        """Return the bytes a labeler holds beside the bond words of its sample."""
        return 13 * num_points + 4 * num_classes * num_points

    def _sites(self) -> tuple[np.ndarray, int]:
        return self.topology.occupied, self.topology.num_points

    def measure(self, row: np.ndarray) -> None:
        """Write the row of the open bonds (int64, ROW_WIDTH)."""
        _measure(self.opened, self._bonds, *self._sites(), self.end_flags, self._scratch, row)

    def rows(
        self, generator: int, seed: int, samples: np.ndarray, thresholds: np.ndarray
    ) -> np.ndarray:
        """Return the rows (n, ROW_WIDTH) int64 of n items (sample, threshold), uint64 each."""
        rows = np.zeros((len(samples), ROW_WIDTH), np.int64)
        items = (generator, np.uint64(seed), samples, thresholds)
        words = (self.exists, self.opened, self._bonds)
        _rows(*items, *words, self._sites(), self.end_flags, self._scratch, self._lists, rows)
        return rows

    def label(self) -> np.ndarray:
        """Return the labels of the open bonds, int32 (num_points,)."""
        starts, _, parents, origins, _ = self._scratch
        _find_clusters(self.opened, self._bonds, *self._sites(), self._scratch)
        labels = np.empty(self.topology.num_points, np.int32)
        write_labels(starts, parents, origins, labels)
        return labels
