"""The common part of the CPU's labelers: a batch of one sample, and the readings off its labels."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import CpuBatch
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import Forest, Reading
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.lattices.topology import MAX_POINTS
from percolab.measure.radii import SCALARS, gyration_from_bonds, radii_row_width
from percolab.measure.rows import ROW_WIDTH, SPANNING, row_from_labels
from percolab.measure.tallies import compute_row_width, tally_sizes
from percolab.measure.wrapping import wrapping_from_bonds


class OneSample:
    """A labeler of one sample on one thread; a subclass defines joining and reading.

    tally: whether a tally of sizes follows in each row (:mod:`percolab.measure.tallies`).
    """

    name: ClassVar[str]

    def __init__(self, batch: CpuBatch, *, tally: bool = False) -> None:
        self.batch = batch
        self.end_flags = batch.topology.end_flags()
        self.row_width = compute_row_width(batch.topology.num_points) if tally else ROW_WIDTH

    @staticmethod
    def most_points(axes: int) -> int:
        return MAX_POINTS

    def entries_with_radii(self, geometry: Geometry) -> int:
        """Return the number of entries whose radii can be read at a time."""
        return self.batch.capacity


class LabelingOneSample(OneSample):
    """A labeler that gives every site its label; a subclass defines ``label``."""

    @staticmethod
    def memory(extent: Extent, needs: Needs, entries: int = 1) -> Memory:
        """Return the memory that joining and reading a sample takes."""
        # Labels, sizes, end flags; then the forest of windings, in place of sizes and flags.
        windings = 12 if extent.periodic_bonds or needs.radii_axes else 0
        sums = 4 + 8 * (needs.radii_axes + SCALARS) if needs.radii_axes else 0
        return Memory(host=(12 + windings + sums) * extent.num_points)

    def label(self) -> NDArray[np.int32]:
        """Return the labels of the open bonds, int32 (num_points,)."""
        raise NotImplementedError

    def wrapping(self) -> int:
        """Return the wrapping bits of the open bonds."""
        top = self.batch.topology
        scratch = np.empty(top.num_points, np.int32), np.empty(top.num_points, np.int64)
        words = self.batch.opened, self.batch.adjacency
        return int(wrapping_from_bonds(*words, *scratch, top.num_axes))

    def join(self, entries: int, reading: Reading = Reading.ROWS) -> Forest:
        # Radii are computed from windings, for which labels are not needed.
        labels = np.empty(0, np.int32) if reading is Reading.RADII else self.label()
        return LabelsOfOneSample(self, labels)


class LabelsOfOneSample:
    """The forest of one sample as labels, int32 (num_points,)."""

    def __init__(self, labeler: LabelingOneSample, labels: NDArray[np.int32]) -> None:
        self._labeler, self._labels = labeler, labels

    def make_labels(self) -> None:
        """Do nothing: the labels are there already."""

    def labels(self) -> NDArray[np.int32]:
        return self._labels[None]

    def rows(self) -> NDArray[np.int64]:
        labeler, top = self._labeler, self._labeler.batch.topology
        sizes, reach = np.empty(top.num_points, np.int32), np.empty(top.num_points, np.uint32)
        row = np.zeros(labeler.row_width, np.int64)
        row_from_labels(self._labels, top.occupied, *labeler.end_flags, sizes, reach, row)
        if row.size > ROW_WIDTH:
            tally_sizes(sizes, sizes.size, reach, row)
        if top.num_periodic_bonds:
            row[SPANNING] |= labeler.wrapping()
        return row[None]

    def radii(self, geometry: Geometry) -> NDArray[np.int64]:
        """Return the radii of clusters, (1, PER_BIN * bins), from the bonds themselves."""
        labeler, batch = self._labeler, self._labeler.batch
        points = batch.topology.num_points
        bins = np.empty(radii_row_width(points), np.int64)
        sums = np.empty((geometry.places.shape[0] + SCALARS) * points, np.uint64)
        forest = np.empty(points, np.int32), np.empty(points, np.int64)
        scratch = *forest, np.empty(points, np.uint32), sums
        words = batch.opened, batch.adjacency, batch.occupied
        places = geometry.places, geometry.spans
        gyration_from_bonds(*words, labeler.end_flags, places, scratch, bins)
        return bins[None]
