"""The CPU's labeler: one scan over packed words, with runs of sites as nodes of a union-find.

Follows the two-scan algorithms in use since Hoshen and Kopelman (1976); the union-find is that of
Tarjan with path halving, larger root under smaller.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import CpuBatch
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import Reading
from percolab.labelers.one_sample import OneSample
from percolab.labelers.raster_radii import gyration_from_runs
from percolab.labelers.raster_runs import (
    Windings,
    find_clusters,
    make_runs,
    measure_runs,
    write_labels,
)
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.lattices.topology import count_words
from percolab.measure.radii import SCALARS, radii_row_width


class Raster(OneSample):
    """Joins a sample's runs; ``runs`` and ``windings`` hold the last sample's forest."""

    name: ClassVar[str] = "raster"

    def __init__(self, batch: CpuBatch, *, tally: bool = False) -> None:
        super().__init__(batch, tally=tally)
        top = batch.topology
        points = top.num_points
        self.runs = make_runs(points)
        periods = np.empty(points if top.num_periodic_bonds else 0, np.int64)
        self.windings = Windings(periods, np.zeros(1, np.int64), top.num_axes)
        # Sums for radii; allocated at first use.
        self.sums = np.empty(0, np.uint64)

    @staticmethod
    def memory(extent: Extent, needs: Needs, entries: int = 1) -> Memory:
        """Return the memory of a sample's runs, and of what is read off them."""
        words = 8 * count_words(extent.num_points)
        windings = 8 * extent.num_points if extent.periodic_bonds else 0
        labels = 4 * extent.num_points if needs.labels else 0
        axes = needs.radii_axes
        # Sums over each cluster of at least two sites, and over all sites before each site.
        sums = 8 * (axes + SCALARS) * (extent.num_points // 2 + 1) if axes else 0
        sums += 8 * (axes + 2) * (extent.num_points + 1) if axes else 0
        return Memory(host=words + 12 * extent.num_points + windings + labels + sums)

    def radii_scratch(
        self, geometry: Geometry
    ) -> tuple[tuple[NDArray[Any], ...], NDArray[np.uint64]]:
        """Return the coordinates and scratch memory that :func:`gyration_from_runs` takes."""
        axes = len(geometry.spans)
        size = (axes + SCALARS) * (self.batch.topology.num_points // 2 + 1)
        if self.sums.size < size:
            self.sums = np.empty(size, np.uint64)
        return (geometry.prefixes, geometry.spans, np.empty(axes, np.int64)), self.sums

    def join(self, entries: int, reading: Reading = Reading.ROWS) -> RunsOfOneSample:
        """Return the forest of the batch's one entry."""
        batch = self.batch
        # Vacant sites have no bonds; rows count them as clusters of their own, to be left out.
        sites = batch.occupied if reading is Reading.RADII else batch.topology.occupied
        words = batch.opened, batch.adjacency, sites
        count, wrapping = find_clusters(*words, self.runs, self.windings)
        return RunsOfOneSample(self, count, wrapping)


class RunsOfOneSample:
    """The forest of one sample as runs: their number, and the wrapping bits of the sample."""

    def __init__(self, labeler: Raster, count: int, wrapping: int) -> None:
        self._labeler, self._count, self._wrapping = labeler, count, wrapping

    def rows(self) -> NDArray[np.int64]:
        """Return the row, (1, row width)."""
        labeler = self._labeler
        row = np.zeros(labeler.row_width, np.int64)
        measure_runs(self._count, self._wrapping, labeler.end_flags, labeler.runs, row)
        return row[None]

    def make_labels(self) -> None:
        """Write the labels into an array."""
        self.labels()

    def labels(self) -> NDArray[np.int32]:
        """Return the labels, (1, num_points); sizes are lost."""
        labeler = self._labeler
        labels = np.empty(labeler.batch.topology.num_points, np.int32)
        runs = labeler.runs
        write_labels(runs.starts, runs.parents, runs.sizes, labels)
        return labels[None]

    def radii(self, geometry: Geometry) -> NDArray[np.int64]:
        """Return the radii of clusters, (1, PER_BIN * bins); sizes are lost."""
        labeler, batch = self._labeler, self._labeler.batch
        bins = np.empty(radii_row_width(batch.topology.num_points), np.int64)
        words = batch.opened, batch.adjacency, self._count, labeler.end_flags
        forest = labeler.runs, labeler.windings.periods
        gyration_from_runs(*words, *forest, *labeler.radii_scratch(geometry), bins)
        return bins[None]
