"""The CPU's labeler: one scan over packed words, with runs of sites as nodes of a union-find.

Follows the two-scan algorithms in use since Hoshen and Kopelman (1976); the union-find is that of
Tarjan with path halving, larger root under smaller.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from percolab.bonds.model import BOND, Model
from percolab.bonds.sites import fill_sample
from percolab.bonds.words import TOP
from percolab.coupled.bond_order import list_late_bonds, steps_of_bonds
from percolab.coupled.raster_grid import merge_clusters, second_largest, sort_by_step, wind_clusters
from percolab.coupled.raster_thresholds import thresholds_of_samples
from percolab.kernels.neighbours import code_of_bond, end_of_bond
from percolab.labelers.base import CpuLabeler
from percolab.labelers.raster_radii import gyration_of_runs
from percolab.labelers.raster_runs import (
    find_clusters,
    join_inside,
    number_of_runs,
    run_of,
    size_clusters,
    spanning_of_runs,
    wind_seam,
    write_labels,
)
from percolab.lattices.topology import Topology
from percolab.measure.rows import LARGEST, ROW_WIDTH, SECOND_LARGEST, SPANNING, row_of_sizes
from percolab.measure.tallies import tally_sizes

#: Thresholds of one sample that are measured in one go; a step's number is a uint8.
MAX_STEPS = 255
#: A late bond's number is a uint32; lattices with more words are measured p by p.
_MOST_WORDS = 2**27
# Late bonds that can be put in order: a fourth of all, or so many.
_LATE_SHARE, _LATE_LEAST = 4, 4096


@njit(nogil=True, cache=True)
def _measure(opened, bonds, occupied, num_points, end_flags, scratch, winding, row):
    """Write the row of a sample's open bonds."""
    starts, first, parents, sizes, reach = scratch
    wrapping = int64(0)
    if winding[0].size:
        runs = join_inside(opened, bonds, num_points, scratch)
        wrapping = wind_seam(opened, bonds, runs, scratch, winding)
        size_clusters(parents, runs, starts, occupied, sizes)
    else:
        runs = find_clusters(opened, bonds, occupied, num_points, scratch)
    row_of_sizes(sizes, runs, row)
    if row.size > ROW_WIDTH:
        tally_sizes(sizes, runs, reach, row)
    reach[:runs] = 0
    spanning = spanning_of_runs(end_flags[0], end_flags[1], starts, first, parents, reach)
    row[SPANNING] = spanning | wrapping


@njit(nogil=True, cache=True)
def _grid_rows(opened, listed, bonds, occupied, num_points, end_flags, scratch, winding, rows):
    """Write the rows of a sample at every p of a grid; ``listed`` are the bonds that open later."""
    _, seam_bonds, seam_ends, ends, _ = bonds
    starts, first, parents, sizes, reach = scratch
    numbers, order, step_ends = listed
    _measure(opened, bonds, occupied, num_points, end_flags, scratch, winding, rows[0])
    codes = winding[0]
    runs = number_of_runs(starts, first)
    for step in range(1, len(rows)):
        row = rows[step]
        row[:] = rows[step - 1]
        lost = False
        for n in range(step_ends[step - 1], step_ends[step]):
            number = int64(numbers[order[n]])
            i, j = end_of_bond(number, 32 * starts.size, ends, seam_bonds, seam_ends)
            a, b = run_of(i, starts, first), run_of(j, starts, first)
            if codes.size:
                code = code_of_bond(number, seam_bonds, codes)
                lost |= wind_clusters(parents, sizes, reach, row, a, b, code, winding)
            else:
                lost |= merge_clusters(parents, sizes, reach, row, a, b)
        if lost:
            row[SECOND_LARGEST] = second_largest(sizes, runs, row[LARGEST])


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
    sites,
    seed,
    samples,
    thresholds,
    exists,
    opened,
    bonds,
    points,
    end_flags,
    scratch,
    winding,
    lists,
    rows,
):
    """Write the rows of all items; neighbouring items of one sample share its labeling."""
    occupied, num_points = points
    numbers, steps, order, step_ends, planes, later = lists
    n = 0
    while n < samples.size:
        length = _grid_length(samples, thresholds, n)
        count = int64(-1)
        if length > 1:
            grid = thresholds[n : n + length]
            ends = grid[0], grid[-1]
            count = list_late_bonds(
                generator, sites, seed, samples[n], *ends, exists, opened, later, numbers
            )
        if count >= 0:
            steps_of_bonds(generator, sites, seed, samples[n], grid, numbers, count, planes, steps)
            sort_by_step(steps, count, length, order, step_ends)
            listed = (numbers, order, step_ends)
            here = rows[n : n + length]
            _grid_rows(
                opened, listed, bonds, occupied, num_points, end_flags, scratch, winding, here
            )
            n += length
        else:
            fill_sample(generator, sites, seed, samples[n], thresholds[n], exists, opened)
            _measure(opened, bonds, occupied, num_points, end_flags, scratch, winding, rows[n])
            n += 1


def _late_bonds(topology: Topology) -> int:
    """Return for how many late bonds of a sample there is room: all those of a small lattice."""
    bonds = topology.num_bonds
    return max(bonds // _LATE_SHARE, min(bonds, _LATE_LEAST))


def _order_lists(topology: Topology) -> tuple[np.ndarray, ...]:
    """Return memory for late bonds: themselves, their numbers, their order, and to sort them."""
    listed = _late_bonds(topology) if topology.exists.size <= _MOST_WORDS else 0
    # With so many digits, few bonds agree in all that are compared.
    digits = min(4 * (topology.num_bonds.bit_length() // 4 + 2), 60)
    return (
        np.empty(listed, np.uint32),
        np.empty(listed, np.uint64),
        np.empty(listed, np.uint32),
        np.empty(listed + 1, np.uint32),
        np.empty(digits, np.uint32),
    )


class Raster(CpuLabeler):
    """Labels and measures samples on runs; a sample's grid of p costs little more than one p.

    A grid is shared while at most a third of the bonds open in it; a wider one is measured p by p.
    """

    def __init__(self, topology: Topology, model: Model = BOND) -> None:
        super().__init__(topology, model)
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
        periods = points if topology.seam_codes.size else 0
        self._winding = (
            topology.seam_codes,
            np.empty(periods, np.int64),
            np.zeros(1, np.int64),
            topology.num_axes,
        )
        countable = topology.exists.size <= _MOST_WORDS
        listed = topology.num_classes * points // 3 if countable else 0
        self._order: tuple[np.ndarray, ...] | None = None
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
        return 21 * num_points + 4 * num_classes * num_points

    def _points(self) -> tuple[np.ndarray, int]:
        return self.topology.occupied, self.topology.num_points

    def measure(self, row: np.ndarray) -> None:
        """Write the row of the open bonds (int64, row_width)."""
        sample = self.opened, self._bonds, *self._points(), self.end_flags
        _measure(*sample, self._scratch, self._winding, row)

    def _bond_rows(
        self, generator: int, seed: int, samples: np.ndarray, thresholds: np.ndarray
    ) -> np.ndarray:
        rows = np.zeros((len(samples), self.row_width), np.int64)
        items = (generator, self.sites, np.uint64(seed), samples, thresholds)
        words = (self.exists, self.opened, self._bonds)
        places = self._points(), self.end_flags, self._scratch, self._winding
        _rows(*items, *words, *places, self._lists, rows)
        return rows

    def _measure_gyration(
        self, places: tuple[np.ndarray, np.ndarray], sums: np.ndarray, row: np.ndarray
    ) -> None:
        """Write how far the clusters of the open bonds reach; ``sums`` is scratch."""
        sample = self.opened, self._bonds, self.occupied, self.topology.num_points, self.end_flags
        gyration_of_runs(*sample, self._scratch, self._winding, places, sums, row)

    @property
    def widest_window(self) -> int:
        """The widest window in which a sample's late bonds fit into their list."""
        bonds, listed = self.topology.num_bonds, _late_bonds(self.topology)
        if listed >= bonds:
            return TOP
        # Three quarters of the list, for the scatter of their number.
        return 3 * TOP // 4 * listed // bonds // self.model.steepest_share

    def scan_windows(
        self, generator: int, seed: int, samples: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:
        """Return T of samples in a window each, with every sample labeled once."""
        topology = self.topology
        if self._order is None:
            self._order = _order_lists(topology)
        found = np.empty((len(samples), len(topology.open_axes)), np.uint64)
        fitted = thresholds_of_samples(
            generator,
            self.sites,
            np.uint64(seed),
            (samples, low, high),
            self.exists,
            self._bonds,
            topology.num_points,
            (*self.end_flags, np.array(topology.open_axes, np.int64)),
            self._scratch,
            (self.opened, self._lists[-1], *self._order),
            found,
        )
        return found if fitted else super().scan_windows(generator, seed, samples, low, high)

    def label(self) -> np.ndarray:
        """Return the labels of the open bonds, int32 (num_points,)."""
        starts, _, parents, origins, _ = self._scratch
        find_clusters(self.opened, self._bonds, *self._points(), self._scratch)
        labels = np.empty(self.topology.num_points, np.int32)
        write_labels(starts, parents, origins, labels)
        return labels
