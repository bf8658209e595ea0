"""The common part of CUDA labelers that label every site, and the readings off their labels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import CudaBatch
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import DeviceForest, Reading
from percolab.labelers.periodic_cuda import periodic_kernel
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.measure.radii_batch import RadiiBatch, ReadsRadii
from percolab.measure.rows_batch import RowsBatch
from percolab.measure.rows_cuda import (
    COUNTED_WORDS,
    PARTIALS,
    clear_kernel,
    count_sizes_kernel,
    mark_layer_kernel,
    partial_rows_kernel,
)
from percolab.measure.tallies_cuda import tally_sizes_kernel
from percolab.measure.wrapping_cuda import join_all


def _num_partials(num_points: int) -> int:
    """Return how many blocks reduce an entry's sizes: 16 sizes per thread, if there are enough."""
    return min(max(num_points // (16 * THREADS), 1), PARTIALS)


class LabeledBatch(ReadsRadii):
    """A batch whose sites get labels; a subclass defines ``label``.

    labels: uint32 (capacity * num_points,), those of entry n from n * num_points on
    """

    name: ClassVar[str]
    #: Whether ``join`` only launches kernels, without waiting for their results.
    is_capturable: ClassVar[bool] = True

    def __init__(self, batch: CudaBatch, *, tally: bool = False) -> None:
        top = batch.topology
        self.batch = batch
        self.labels = cuda.device_array(batch.capacity * top.num_points, np.uint32)
        self.read = RowsBatch(batch, _num_partials(top.num_points), tally=tally)
        self.row_width = self.read.row_width
        self.sizes: Any = None
        #: The forest of all sites with their periods, where an axis is periodic; made at first use.
        self.windings: Any = None
        #: The bits of a size; higher bits mark the axes whose first layer the cluster touches.
        self.size_mask = np.uint32(self.most_points(top.num_axes))
        self._layers = [
            (axis, tuple(cuda.to_device(layer) for layer in pair))
            for axis, pair in enumerate(top.end_layers)
            if pair[0].size and pair[1].size
        ]

    @staticmethod
    def memory(extent: Extent, needs: Needs, entries: int) -> Memory:
        """Return the memory of labels, sizes and, where axes are periodic, windings."""
        forest = 8 if extent.periodic_bonds else 0
        sites = Memory(device=entries * (8 + forest) * extent.num_points + 8 * extent.num_points)
        rows = RowsBatch.memory(extent.num_points, entries, needs)
        if not needs.radii_axes:
            return sites.plus(rows)
        radii = RadiiBatch.memory(extent.num_points, needs.radii_axes, entries)
        return sites.plus(rows).plus(radii)

    @staticmethod
    def most_points(axes: int) -> int:
        """Return the most grid points of an entry: a size has 32 bits, less one for each axis."""
        return (1 << (32 - axes)) - 1

    def label(self, entries: int) -> None:
        """Label the open bonds of the first entries of the batch."""
        raise NotImplementedError

    def join(self, entries: int, reading: Reading = Reading.ROWS) -> LabelsOfBatch:
        """Return the forest of the first entries of the batch."""
        # Radii are computed from windings, for which labels are not needed.
        if reading is not Reading.RADII:
            self.label(entries)
        return LabelsOfBatch(self, entries)

    def join_periodic_bonds(self, entries: int) -> None:
        """Join the labels at the ends of the open bonds across periodic boundaries."""
        periodic_bonds = self.batch.topology.num_periodic_bonds
        bonds = self.batch.opened, self.batch.adjacency
        self.batch.launches.one(periodic_kernel, periodic_bonds, entries, self.labels, *bonds)

    def flag_ends(self, entries: int) -> None:
        """Mark in the roots' sizes which end layers clusters touch, and the entries that span."""
        points = self.batch.adjacency.num_points
        for axis, layers in self._layers:
            for closing, sites in enumerate(layers):
                marks = 31 - axis, closing, self.sizes, self.read.spanning
                self.batch.launches.one(
                    mark_layer_kernel, sites.size, entries, self.labels, points, sites, *marks
                )


class LabelsOfBatch(DeviceForest):
    """The forest of the entries of a batch as labels."""

    _labeler: LabeledBatch

    def enqueue_rows(self) -> None:
        self.count_sizes()
        self.reduce()
        self._labeler.read.download(self._entries)

    def count_sizes(self) -> None:
        """Count each cluster's sites at its root; if an axis is periodic, find what wraps."""
        labeler, batch, entries = self._labeler, self._labeler.batch, self._entries
        top, launch = batch.topology, batch.launches
        if labeler.sizes is None:
            labeler.sizes = cuda.device_array(labeler.labels.size, np.uint32)
        points = batch.adjacency.num_points
        sizes, spanning = labeler.sizes, labeler.read.spanning
        launch.each(clear_kernel, top.num_points, entries, sizes, points, spanning)
        if top.num_periodic_bonds:
            if labeler.windings is None:
                labeler.windings = cuda.device_array(labeler.labels.size, np.uint64)
            join_all(batch, entries, labeler.windings, labeler.read.loops)
        grid = (-(-top.num_words // COUNTED_WORDS), entries)
        words = batch.opened, batch.adjacency, batch.existing_sites
        launch.blocks(count_sizes_kernel, grid, COUNTED_WORDS, labeler.labels, *words, sizes)

    def reduce(self) -> None:
        """Reduce the sizes at the roots to rows."""
        labeler, entries = self._labeler, self._entries
        launch, points = labeler.batch.launches, labeler.batch.topology.num_points
        labeler.flag_ends(entries)
        read = labeler.read
        grid = read.partials.shape[1], entries
        sizes = labeler.sizes, points, labeler.size_mask
        launch.blocks(partial_rows_kernel, grid, THREADS, *sizes, read.partials)
        read.clear_tallies(entries)
        if read.tally_width:
            tallies = read.tally_width, read.tallies
            launch.blocks(tally_sizes_kernel, grid, THREADS, *sizes, *tallies)
        read.finish(entries)

    def radii(self, geometry: Geometry) -> NDArray[np.int64]:
        """Return the radii of clusters, (entries, PER_BIN * bins)."""
        return self._labeler.radii_batch(geometry).rows(self._entries)
