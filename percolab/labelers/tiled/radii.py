"""Radii of a batch that was joined tile by tile: its memory and the order of the kernels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.launches import THREADS, zero_kernel
from percolab.kernels.memory import Memory
from percolab.labelers.tiled.borders import TILES_PER_BLOCK
from percolab.labelers.tiled.moments import (
    WORDS,
    mark_winding_kernel,
    root_moments_kernel,
    root_spreads_kernel,
    tile_moments_kernel,
)
from percolab.labelers.tiled.one_tile import TILE_NODES, TILE_WORDS
from percolab.lattices.geometry import Geometry
from percolab.measure.radii import PER_BIN, SCALARS, radii_row_width
from percolab.measure.radii_cuda import SUM_BINS, SUM_THREADS, sum_gyration_kernel

# The most bytes for the bins of all entries, also in pinned memory; one entry is always possible.
_BYTES = 2**26


class TileRadii:
    """The device memory for radii of a batch that is joined tile by tile."""

    def __init__(self, labeler: Any, geometry: Geometry) -> None:
        self._axes = geometry.places.shape[0]
        points = labeler.batch.topology.num_points
        self._width = radii_row_width(points)
        #: The number of batch entries whose radii are read at a time.
        self.entries = entries_at_once(points, labeler.batch.capacity)
        self._places = cuda.to_device(geometry.places)
        self._spans = cuda.to_device(geometry.spans)
        self._bins = cuda.device_array(self.entries * self._width, np.uint64)
        self._pinned = cuda.pinned_array(self.entries * self._width, np.uint64)
        self._moments: Any = None
        self._make_moments(labeler)

    @staticmethod
    def memory(points: int, nodes: int, tiles: int, axes: int, entries: int) -> Memory:
        """Return the memory for the radii of a batch; nodes, tiles: numbers of one entry."""
        of_entry = 8 * (SCALARS + axes) * nodes + 2 * TILE_NODES * tiles
        bins = 8 * radii_row_width(points) * entries_at_once(points, entries)
        device = entries * of_entry + bins + 4 * axes * points + 8 * axes * axes
        return Memory(host=bins, device=device)

    def _make_moments(self, labeler: Any) -> None:
        """Ensure that there is memory for the moments of every node."""
        numbers = labeler.nodes.sizes.size * (SCALARS + self._axes)
        if self._moments is None or self._moments.size < numbers:
            self._moments = cuda.device_array(numbers, np.uint64)

    def rows(self, labeler: Any, entries: int) -> NDArray[np.int64]:
        """Join the bonds of the first entries; return their bins, (entries, PER_BIN * bins).

        The array is valid until the next call.
        """
        self._fill_bins(labeler, entries)
        launch, size = labeler.batch.launches, entries * self._width
        launch.download(self._bins[:size], self._pinned[:size])
        launch.wait()
        numbers: NDArray[np.int64] = self._pinned[:size].view(np.int64)
        return numbers.reshape(entries, self._width)

    def add_to_blocks(
        self, labeler: Any, entries: int, first: int, size: int, unit: float, sums: Any
    ) -> None:
        """Join the bonds of the first entries, and add their bins to the sums of their blocks.

        first: the number of the first entry among the samples of blocks of ``size``.  unit: the
        square of a step of coordinates.  sums: float64 (blocks, 2 * bins), on the device.
        """
        self._fill_bins(labeler, entries)
        begin, end = first // size, -(-(first + entries) // size)
        grid = end - begin, -(-self._width // (PER_BIN * SUM_BINS))
        blocks = np.int64(entries), np.int64(size), np.int64(first % size), np.float64(unit)
        own = self._bins, *blocks, sums[begin:end]
        labeler.batch.launches.blocks(sum_gyration_kernel, grid, SUM_THREADS, *own)

    def _fill_bins(self, labeler: Any, entries: int) -> None:
        """Join the bonds of the first entries, and compute their bins on the device."""
        launch, size = labeler.batch.launches, entries * self._width
        self._make_moments(labeler)

        def work() -> None:
            labeler.join_tiles(entries, labeler.kept)
            launch.each(zero_kernel, size, 1, self._bins, np.uint32(size))
            # Make nodes point to their roots; roots of what wraps or touches end layers are marked.
            labeler.gather(entries)
            labeler.flag_ends(entries)
            _mark_windings(labeler, entries)
            self._gather_moments(labeler, entries)

        launch.call(("radii", entries), work)

    def _gather_moments(self, labeler: Any, entries: int) -> None:
        """Compute the moments of all clusters, and add each cluster to the bins."""
        batch, axes = labeler.batch, self._axes
        launch, clusters = batch.launches, (labeler.nodes, labeler.interior)
        width = np.uint32(self._width)
        # In two dimensions, less memory allows more tiles at a time; in more, more clusters fit.
        slots = 8 if SIMULATED else 320 if axes < 3 else 5760 // (WORDS + 2 * axes)
        launch.blocks(
            tile_moments_kernel,
            labeler.tile_launch_grid(entries),
            TILE_WORDS,
            labeler.tiles,
            batch.opened,
            batch.occupied,
            batch.occupied_words,
            *clusters,
            labeler.kept,
            np.uint32(slots),
            self._places,
            self._moments,
            width,
            self._bins,
            shared=4 * (WORDS + 2 * axes) * slots,
        )
        blocks, count = labeler.count_blocks(entries)
        geometry = self._places, self._spans, np.int32(32 // axes)
        moved = *clusters, count, labeler.forest, geometry, self._moments
        launch.blocks(root_moments_kernel, blocks, THREADS, *moved)
        tiles = labeler.tiling.num_tiles
        grid = -(-tiles // TILES_PER_BLOCK), entries
        roots = *clusters, np.int32(tiles), np.int32(axes), self._moments, width, self._bins
        launch.blocks(root_spreads_kernel, grid, THREADS, *roots)


def _mark_windings(labeler: Any, entries: int) -> None:
    """Mark the roots of clusters that wrap, if any can."""
    tiles = labeler.tiles
    if labeler.may_wrap and labeler.listed.room:
        words = labeler.labels, tiles.points, labeler.batch.opened, tiles.words_per_entry
        bonds = labeler.nodes, labeler.forest, labeler.crossing, labeler.listed
        grid = labeler.listed_launch_grid(entries)
        labeler.batch.launches.blocks(mark_winding_kernel, grid, THREADS, *words, *bonds)


def entries_at_once(points: int, capacity: int) -> int:
    """Return the number of batch entries, up to ``capacity``, whose bins fit into memory."""
    return min(capacity, max(_BYTES // (8 * radii_row_width(points)), 1))
