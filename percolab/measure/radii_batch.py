"""Radii of the clusters of a batch, from its bonds joined in a forest with periods."""

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import CudaBatch, end_flags_on_device, period_width
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import zero_kernel
from percolab.kernels.memory import Memory
from percolab.lattices.geometry import Geometry
from percolab.measure import radii_cuda
from percolab.measure.radii import SCALARS, radii_row_width
from percolab.measure.wrapping_cuda import Loops, join_all

# The most device memory for forests and sums; one entry is always possible.
_BYTES = 2**31


def _entry_bytes(points: int, axes: int) -> int:
    return (12 + 8 * (axes + SCALARS)) * points + 8 * radii_row_width(points) + 8


class RadiiBatch:
    """The device memory for radii of ``entries`` entries of a batch, made at first use."""

    def __init__(self, batch: CudaBatch, geometry: Geometry) -> None:
        self._batch = batch
        top = batch.topology
        self._axes = geometry.places.shape[0]
        points = top.num_points
        #: The number of entries whose radii are read at a time.
        self.entries = self.entries_at_once(points, self._axes, batch.capacity)
        self._forest = cuda.device_array(self.entries * points, np.uint64)
        self._reach = cuda.device_array(self.entries * points, np.uint32)
        self._sums = cuda.device_array(self.entries * (self._axes + SCALARS) * points, np.uint64)
        flags = cuda.device_array(self.entries, np.uint32)
        loop = cuda.device_array(self.entries, np.int32)
        width = np.int32(period_width(top))
        self._loops = Loops(loop, flags, np.int32(top.num_axes), width)
        places, spans = cuda.to_device(geometry.places), cuda.to_device(geometry.spans)
        self._geometry = places, spans, np.int32(32 // self._axes)
        self._end_flags = end_flags_on_device(top)
        self._width = radii_row_width(points)
        self._bins = cuda.device_array(self.entries * self._width, np.uint64)

    @staticmethod
    def entries_at_once(points: int, axes: int, capacity: int) -> int:
        """Return the number of entries whose radii fit into memory at a time."""
        return min(capacity, max(_BYTES // _entry_bytes(points, axes), 1))

    @staticmethod
    def memory(points: int, axes: int, capacity: int) -> Memory:
        entries = RadiiBatch.entries_at_once(points, axes, capacity)
        # All entries share the coordinates.
        return Memory(device=entries * _entry_bytes(points, axes) + 4 * axes * points)

    def rows(self, entries: int) -> NDArray[np.int64]:
        """Return the bins, (entries, PER_BIN * bins), of at most ``self.entries`` entries."""
        batch, top, launch = self._batch, self._batch.topology, self._batch.launches
        points, size = top.num_points, entries * self._width
        launch.each(zero_kernel, size, 1, self._bins, np.uint32(size))
        join_all(batch, entries, self._forest, self._loops)
        # Make every node point to its root; then mark the clusters that wrap or touch end layers.
        forest = self._forest, batch.adjacency.num_points
        sums = self._reach, self._sums, np.uint64((self._axes + SCALARS) * points)
        launch.each(radii_cuda.flatten_kernel, points, entries, *forest, *sums)
        bonds = self._forest, batch.opened, batch.adjacency, self._reach
        launch.one(radii_cuda.mark_periodic_kernel, top.num_periodic_bonds, entries, *bonds)
        sites, flags = self._end_flags
        launch.one(
            radii_cuda.mark_ends_kernel, sites.size, entries, *forest, sites, flags, self._reach
        )
        # Sum the coordinates of all sites, and add these sums to the bins.
        occupied = batch.occupied, batch.occupied_words
        places = *occupied, self._geometry, self._reach, self._sums
        launch.each(radii_cuda.sum_places_kernel, points, entries, *forest, *places)
        bins = np.int32(self._axes), self._sums, np.uint32(self._width), self._bins
        launch.each(radii_cuda.add_spreads_kernel, points, entries, *forest, *bins)
        launch.wait()
        flat = self._bins[:size].copy_to_host()
        numbers: NDArray[np.int64] = flat.view(np.int64).reshape(entries, self._width)
        return numbers


class ReadsRadii:
    """A labeler of a batch from which radii are read, in memory made at first use."""

    batch: CudaBatch
    _radii: RadiiBatch | None = None

    def entries_with_radii(self, geometry: Geometry) -> int:
        """Return the number of entries whose radii can be read at a time."""
        return self.radii_batch(geometry).entries

    def radii_batch(self, geometry: Geometry) -> RadiiBatch:
        if self._radii is None:
            self._radii = RadiiBatch(self.batch, geometry)
        return self._radii
