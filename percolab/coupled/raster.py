"""A sample's grid of p by runs: label at the lowest p, then join what opens, all in one call.

Items of one sample that follow one another share its labeling; many samples are drawn, joined and
measured in a single call, since on small lattices a call from Python costs more than a sample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit
from numpy.typing import NDArray

from percolab.bonds.model import Model
from percolab.bonds.sites import fill_sample
from percolab.bonds.words import TOP
from percolab.coupled.bisection import bisect
from percolab.coupled.bond_order import list_opening_bonds, steps_of_bonds
from percolab.coupled.points import PointByPoint, Samples
from percolab.coupled.raster_grid import (
    merge_clusters,
    merge_over_periods,
    second_largest,
    sort_by_step,
)
from percolab.coupled.raster_thresholds import BondOrder, thresholds_of_samples
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.neighbours import code_of_bond, end_of_bond
from percolab.labelers.raster import Raster
from percolab.labelers.raster_runs import find_clusters, measure_runs, run_of
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.lattices.topology import Topology
from percolab.measure.rows import LARGEST, SECOND_LARGEST, without_vacant

#: Thresholds of one sample that are measured in one go; a step's number is a uint8.
MAX_STEPS = 255
#: A bond's number is a uint32; lattices with more words are measured p by p.
_MOST_WORDS = 2**27
# Bonds that can be put in order: a fourth of all, or so many.
_ORDERED_SHARE, _ORDERED_LEAST = 4, 4096


class GridLists(NamedTuple):
    """Memory for the bonds of a sample that open along a grid.

    bonds:  uint32, their numbers, as many as there is room for
    steps:  uint8, at which step of the grid each opens
    order:  uint32, their positions by step
    ends:   int64 (MAX_STEPS + 2,), where each step ends in the order
    planes: uint32 (63,), scratch for digits
    later:  uint32, the bond words at the highest p
    """

    bonds: Any
    steps: Any
    order: Any
    ends: Any
    planes: Any
    later: Any


class Sample(NamedTuple):
    """What a call needs of a labeler and its batch, by the names they have there."""

    sites: Any
    exists: Any
    opened: Any
    adjacency: Any
    occupied: Any
    end_flags: Any
    runs: Any
    windings: Any


@njit(nogil=True, cache=True)
def _measure(sample, row):
    """Write the row of the open bonds; return the number of runs."""
    count, wrapping = find_clusters(
        sample.opened, sample.adjacency, sample.occupied, sample.runs, sample.windings
    )
    measure_runs(count, wrapping, sample.end_flags, sample.runs, row)
    return count


@njit(nogil=True, cache=True)
def _grid_rows(sample, lists, rows):
    """Write the rows of a sample at every p of a grid, along which the listed bonds open."""
    starts, first, parents, sizes, reach = sample.runs
    count = _measure(sample, rows[0])
    periods = sample.windings.periods.size > 0
    for step in range(1, len(rows)):
        row = rows[step]
        row[:] = rows[step - 1]
        lost = False
        for n in range(lists.ends[step - 1], lists.ends[step]):
            number = int64(lists.bonds[lists.order[n]])
            i, j = end_of_bond(number, sample.adjacency)
            a, b = run_of(i, starts, first), run_of(j, starts, first)
            if periods:
                code = code_of_bond(number, sample.adjacency)
                lost |= merge_over_periods(parents, sizes, reach, row, a, b, code, sample.windings)
            else:
                lost |= merge_clusters(parents, sizes, reach, row, a, b)
        if lost:
            row[SECOND_LARGEST] = second_largest(sizes, count, row[LARGEST])


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
def _rows(generator, seed, samples, thresholds, sample, lists, rows):
    """Write the rows of all items; neighbouring items of one sample share its labeling."""
    sites, exists, opened = sample.sites, sample.exists, sample.opened
    n = 0
    while n < samples.size:
        key = seed, samples[n]
        length = _grid_length(samples, thresholds, n)
        count = int64(-1)
        if length > 1:
            grid = thresholds[n : n + length]
            ends = grid[0], grid[-1]
            words = exists, opened, lists.later
            count = list_opening_bonds(generator, sites, *key, *ends, *words, lists.bonds)
        if count >= 0:
            found = lists.bonds, count, lists.planes, lists.steps
            steps_of_bonds(generator, sites, *key, grid, *found)
            sort_by_step(lists.steps, count, length, lists.order, lists.ends)
            _grid_rows(sample, lists, rows[n : n + length])
            n += length
        else:
            fill_sample(generator, sites, *key, thresholds[n], exists, opened)
            _measure(sample, rows[n])
            n += 1


def _most_ordered(topology: Topology) -> int:
    """Return how many bonds of a sample can be put in order: all those of a small lattice."""
    bonds = topology.num_bonds
    return max(bonds // _ORDERED_SHARE, min(bonds, _ORDERED_LEAST))


def _grid_lists(topology: Topology) -> GridLists:
    countable = topology.exists.size <= _MOST_WORDS
    listed = topology.num_classes * topology.num_points // 3 if countable else 0
    return GridLists(
        bonds=np.empty(listed, np.uint32),
        steps=np.empty(listed, np.uint8),
        order=np.empty(listed, np.uint32),
        ends=np.empty(MAX_STEPS + 2, np.int64),
        planes=np.empty(63, np.uint32),
        later=np.empty(topology.exists.size, np.uint32),
    )


def _bond_order(topology: Topology, later: NDArray[np.uint32]) -> BondOrder:
    listed = _most_ordered(topology) if topology.exists.size <= _MOST_WORDS else 0
    # With so many digits, few bonds agree in all that are compared.
    digits = min(4 * (topology.num_bonds.bit_length() // 4 + 2), 60)
    return BondOrder(
        later=later,
        bonds=np.empty(listed, np.uint32),
        numbers=np.empty(listed, np.uint64),
        order=np.empty(listed, np.uint32),
        heads=np.empty(listed + 1, np.uint32),
        planes=np.empty(digits, np.uint32),
    )


class RasterCoupling:
    """The coupling of a sample's runs (:class:`percolab.coupled.Coupling`).

    A grid is shared while at most a third of the bonds open in it; a wider one is measured p by p.
    """

    def __init__(self, labeler: Raster) -> None:
        self.labeler = labeler
        self.points = PointByPoint(labeler)
        batch = labeler.batch
        self._sample = Sample(
            batch.sites,
            batch.exists,
            batch.opened,
            batch.adjacency,
            batch.topology.occupied,
            labeler.end_flags,
            labeler.runs,
            labeler.windings,
        )
        self._lists = _grid_lists(batch.topology)
        self._order: BondOrder | None = None

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, items: int = 1) -> Memory:
        """Return the memory of the lists for a grid of p and, if asked for, for thresholds."""
        sites = extent.num_classes * extent.num_points
        listed = 9 * (sites // 3) + 4 * extent.num_words
        ordered = 20 * max(sites // _ORDERED_SHARE, min(sites, _ORDERED_LEAST))
        return Memory(host=listed + (ordered if needs.thresholds else 0))

    def rows(
        self, generator: int, seed: int, samples: Samples, thresholds: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, row width) of n items (sample, threshold)."""
        rows = np.zeros((len(samples), self.labeler.row_width), np.int64)
        items = generator, np.uint64(seed), samples, thresholds
        _rows(*items, self._sample, self._lists, rows)
        batch = self.labeler.batch
        if batch.model.draws_sites:
            without_vacant(rows, batch.count_vacant(generator, seed, samples, thresholds))
        return rows

    def grid_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, m, row width) of samples at all m thresholds of a grid."""
        items = np.repeat(samples, grid.size), np.tile(grid, len(samples))
        return self.rows(generator, seed, *items).reshape(len(samples), grid.size, -1)

    def radii_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples, geometry: Geometry
    ) -> NDArray[np.int64]:
        """Return how far clusters reach at all m thresholds, (n, m, PER_BIN * bins)."""
        return self.points.radii_rows(generator, seed, samples, grid, geometry)

    @property
    def widest_window(self) -> int:
        """The widest window in which a sample's opening bonds fit into their list."""
        topology, model = self.labeler.batch.topology, self.labeler.batch.model
        bonds, listed = topology.num_bonds, _most_ordered(topology)
        if listed >= bonds:
            return TOP
        # Three quarters of the list, for the scatter of their number.
        return 3 * TOP // 4 * listed // bonds // model.steepest_share

    def scan_windows(
        self, generator: int, seed: int, samples: Samples, low: Samples, high: Samples
    ) -> Samples:
        """Return T of samples in a window each, with every sample labeled once."""
        open_axes = self.labeler.batch.topology.open_axes
        if self._order is None:
            self._order = _bond_order(self.labeler.batch.topology, self._lists.later)
        found = np.empty((len(samples), len(open_axes)), np.uint64)
        axes = np.array(open_axes, np.int64)
        items = generator, np.uint64(seed), (samples, low, high)
        if thresholds_of_samples(*items, self._sample, axes, self._order, found):
            return found
        return bisect(self, generator, seed, samples, low, high)
