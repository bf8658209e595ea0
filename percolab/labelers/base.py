"""What every CPU labeler has in common: one topology, the open bonds of one sample, its row."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.bonds.model import BOND, Model
from percolab.bonds.sites import fill_sample, limits_at
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.coupled.thresholds import Bisection
from percolab.lattices.geometry import Geometry
from percolab.lattices.topology import Topology
from percolab.measure.radii import BESIDE, PER_BIN, gyration_of_bonds
from percolab.measure.rows import ROW_WIDTH, SPANNING, row_of_labels, without_vacant
from percolab.measure.tallies import num_bins, row_width_of, tally_sizes
from percolab.measure.wrapping import wrapping_of_bonds


class CpuLabeler(Bisection):
    """Labels and measures the samples of one topology, one at a time, on one thread.

    A subclass defines ``label`` and may override ``measure`` and ``_bond_rows``, which need no
    labels.  ``opened`` holds the open bonds, uint32 (num_classes * num_words,), class by class.

    Where the model has vacant sites, these have no open bond: ``label`` and ``measure`` take each
    for a cluster of one site, and ``rows`` leaves them out.
    """

    def __init__(self, topology: Topology, model: Model = BOND) -> None:
        self.topology, self.model = topology, model
        self.opened = np.zeros(topology.exists.size, np.uint32)
        self.exists = topology.exists.ravel()
        self.seam = () if topology.seam is None else topology.seam.ravel()
        self.ends = topology.deltas if topology.neighbours is None else topology.neighbours
        self.end_flags = topology.end_flags()
        #: Columns of a row: those of every row, and the tally's once :meth:`keep_tally` was called.
        self.row_width = ROW_WIDTH
        self.sites: tuple[Any, ...] = ()
        if model.draws_sites:
            words = topology.occupied, topology.occupied.copy(), self.seam
            self.sites = model.rule, topology.site_lattice(self.ends), words

    def keep_tally(self) -> None:
        """From now on, measure the tally of every sample too (:mod:`percolab.measure.tallies`)."""
        self.row_width = row_width_of(self.topology.num_points)

    @staticmethod
    def scratch_bytes(num_points: int, num_classes: int) -> int:
        """Return the bytes a labeler holds beside the bond words of its sample."""
        return 12 * num_points

    def open_bonds(self, generator: int, seed: int, sample: int, threshold: int) -> None:
        """Fill ``opened`` with the bonds of one sample that are open at a threshold."""
        key = (np.uint64(seed), np.uint64(sample), np.uint64(threshold))
        fill_sample(generator, self.sites, *key, self.exists, self.opened)

    @property
    def occupied(self) -> np.ndarray:
        """The sites of the last sample that are occupied, uint32 (num_words,), one bit a site."""
        return self.sites[2][1] if self.sites else self.topology.occupied

    def label(self) -> np.ndarray:
        """Return the labels of the open bonds, int32 (num_points,)."""
        raise NotImplementedError

    def measure(self, row: np.ndarray) -> None:
        """Write the row of the open bonds (int64, row_width)."""
        points = self.topology.num_points
        sizes, reach = np.empty(points, np.int32), np.empty(points, np.uint32)
        row_of_labels(self.label(), self.topology.occupied, *self.end_flags, sizes, reach, row)
        if row.size > ROW_WIDTH:
            tally_sizes(sizes, sizes.size, reach, row)
        if self.topology.seam_codes.size:
            row[SPANNING] |= self._wrapping()

    def _wrapping(self) -> int:
        """Return the wrapping bits of the open bonds."""
        top = self.topology
        bonds = self.seam, self.ends, top.num_words, top.seam_bonds, top.seam_ends
        scratch = np.empty(top.num_points, np.int32), np.empty(top.num_points, np.int64)
        return wrapping_of_bonds(self.opened, bonds, top.seam_codes, *scratch, top.num_axes)

    def rows(
        self, generator: int, seed: int, samples: np.ndarray, thresholds: np.ndarray
    ) -> np.ndarray:
        """Return the rows (n, row_width) int64 of n items (sample, threshold), uint64 each."""
        rows = self._bond_rows(generator, seed, samples, thresholds)
        if self.sites:
            vacant = [
                self._count_vacant(generator, seed, *item)
                for item in zip(samples, thresholds, strict=True)
            ]
            without_vacant(rows, np.array(vacant, np.int64))
        return rows

    def gyration_rows(
        self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray, geometry: Geometry
    ) -> np.ndarray:
        """Return how far the clusters of samples reach at all m thresholds, uint64 each.

        int64 (n, m, PER_BIN * bins), as :mod:`percolab.measure.radii` has it.
        """
        points = self.topology.num_points
        sums = np.empty((geometry.places.shape[0] + BESIDE) * points, np.uint64)
        found = np.empty((len(samples), grid.size, PER_BIN * num_bins(points)), np.int64)
        for sample, rows in zip(samples, found, strict=True):
            for threshold, row in zip(grid, rows, strict=True):
                self.open_bonds(generator, seed, sample, threshold)
                self._measure_gyration((geometry.places, geometry.spans), sums, row)
        return found

    def _measure_gyration(
        self, places: tuple[np.ndarray, np.ndarray], sums: np.ndarray, row: np.ndarray
    ) -> None:
        """Write how far the clusters of the open bonds reach; ``sums`` is scratch."""
        top, points = self.topology, self.topology.num_points
        bonds = self.seam, self.ends, top.num_words, top.seam_bonds, top.seam_ends
        forest = np.empty(points, np.int32), np.empty(points, np.int64)
        scratch = *forest, np.empty(points, np.uint32), sums
        words = self.opened, bonds, top.seam_codes, self.occupied
        gyration_of_bonds(*words, self.end_flags, places, scratch, row)

    def _bond_rows(
        self, generator: int, seed: int, samples: np.ndarray, thresholds: np.ndarray
    ) -> np.ndarray:
        """Return the rows of items as :meth:`measure` writes them."""
        rows = np.zeros((len(samples), self.row_width), np.int64)
        for row, sample, threshold in zip(rows, samples, thresholds, strict=True):
            self.open_bonds(generator, seed, sample, threshold)
            self.measure(row)
        return rows

    def _count_vacant(self, generator: int, seed: int, sample: int, threshold: int) -> int:
        """Return how many sites of a sample are vacant."""
        limit, _ = limits_at(self.model.rule, np.uint64(threshold))
        first, occupied = self.sites[1][0], self.occupied
        key = np.uint64(seed), np.uint64(sample), np.uint64(limit)
        fill_open_bonds(generator, *key, first, self.topology.occupied, occupied)
        return self.topology.num_sites - int(np.bitwise_count(occupied).sum(dtype=np.int64))

    def grid_rows(
        self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray
    ) -> np.ndarray:
        """Return the rows (n, m, row_width) int64 of samples at all m thresholds, uint64 each."""
        items = np.repeat(samples, grid.size), np.tile(grid, len(samples))
        return self.rows(generator, seed, *items).reshape(len(samples), grid.size, self.row_width)
