"""What every CUDA labeler has in common: a batch of items in device memory, measured as rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.bonds.model import BOND, Model
from percolab.bonds.samples_cuda import CudaSamples
from percolab.coupled.growth_cuda import absorb_kernel, grow_kernel
from percolab.coupled.thresholds import Bisection
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import THREADS
from percolab.labelers.seams_cuda import seam_kernel
from percolab.lattices.geometry import Geometry
from percolab.lattices.topology import Topology, period_codes, periods_of
from percolab.measure.radii_batch import GyrationCuda
from percolab.measure.rows import ROW_WIDTH, without_vacant
from percolab.measure.rows_cuda import (
    COUNTED_WORDS,
    PARTIALS,
    clear_kernel,
    count_sizes_kernel,
    finish_rows_kernel,
    mark_layer_kernel,
    partial_rows_kernel,
)
from percolab.measure.tallies import row_width_of
from percolab.measure.tallies_cuda import clear_tally_kernel, tally_sizes_kernel
from percolab.measure.wrapping_cuda import plant_kernel, wind_seam_kernel, wind_words_kernel

cuda = load_cuda()


def _shared_grid(samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the grid that all samples share, or one threshold where there is none."""
    length = int(np.argmax(np.append(samples, samples[:1] + 1) != samples[0]))
    grid = thresholds[:length]
    if len(samples) % length == 0 and np.all(grid[1:] > grid[:-1]):
        by_sample = samples.reshape(-1, length)
        if np.all(by_sample == by_sample[:, :1]) and np.all(thresholds.reshape(-1, length) == grid):
            return grid
    return thresholds[:1]


def _num_partials(num_points: int) -> int:
    """Return how many blocks reduce an item's sizes: 16 sizes a thread, while there are enough."""
    return min(max(num_points // (16 * THREADS), 1), PARTIALS)


class CudaLabeler(CudaSamples, Bisection):
    """Labels and measures up to ``capacity`` items of one topology per launch.

    An item is one sample at one p.  A subclass defines ``label_items``.  Device memory: the bond
    words, and 4 bytes of label and 4 of size a site.

    Where the model has vacant sites, these have no open bond: ``labels_of`` and ``measure_items``
    take each for a cluster of one site, and ``rows`` leaves them out.
    """

    #: Whether ``measure_items`` takes the labels of ``label_items``, or the open bonds alone.
    measure_needs_labels = True

    def __init__(self, topology: Topology, model: Model = BOND, *, capacity: int) -> None:
        points = topology.num_points
        if points > self.most_points(topology.num_axes):
            raise ValueError(f"{points} sites do not fit beside {topology.num_axes} axis bits")
        super().__init__(topology, model, capacity)
        self._size_mask = np.uint32(CudaLabeler.most_points(topology.num_axes))
        self.labels = cuda.device_array(self.capacity * points, np.uint32)
        self._sizes = None
        self._load_winding()
        self._gyration: GyrationCuda | None = None
        #: Columns of a row: those of every row, and the tally's once :meth:`keep_tally` was called.
        self.row_width = ROW_WIDTH
        self._tallies = cuda.device_array(1, np.uint64)
        self._later: Any = None
        self._layers = [
            (axis, tuple(cuda.to_device(layer) for layer in pair))
            for axis, pair in enumerate(topology.end_layers)
            if pair[0].size and pair[1].size
        ]
        self._spanning = cuda.device_array(self.capacity, np.uint32)
        partials = _num_partials(points)
        self._partials = cuda.device_array((self.capacity, partials, 4), np.int64)
        self._rows = cuda.device_array(self.capacity * ROW_WIDTH, np.int64)

    def keep_tally(self) -> None:
        """From now on, measure the tally of every sample too (:mod:`percolab.measure.tallies`)."""
        self.row_width = row_width_of(self.topology.num_points)
        size = self.capacity * int(self._tally_width)
        self._tallies = cuda.device_array(size, np.uint64)

    @property
    def _tally_width(self) -> np.uint32:
        return np.uint32(self.row_width - ROW_WIDTH)

    def _clear_tallies(self, items: int) -> None:
        """Empty the tallies of the first items, if there are any."""
        size = items * int(self._tally_width)
        if size:
            clear_tally_kernel[self.grid(size, 1), THREADS](self._tallies, np.uint32(size))

    def _with_tallies(self, rows: np.ndarray, tallies: Any) -> np.ndarray:
        """Return rows, int64 (..., ROW_WIDTH), with their tallies behind them, if there are any."""
        width = int(self._tally_width)
        if not width:
            return rows
        found = np.empty((*rows.shape[:-1], self.row_width), np.int64)
        found[..., :ROW_WIDTH] = rows
        flat = tallies[: rows.size // ROW_WIDTH * width].copy_to_host()
        found[..., ROW_WIDTH:] = flat.view(np.int64).reshape(*rows.shape[:-1], width)
        return found

    def _load_winding(self) -> None:
        """See to what wrapping needs where an axis is periodic; the forest is made when used."""
        codes, axes = self.topology.seam_codes, self.topology.num_axes
        self._forest: Any = None
        # The periods along all axes of a node are 32 bits.
        self._period_width = 32 // max(axes, 1)
        self._loops = cuda.device_array(self.capacity, np.int32)
        narrow = np.empty(0, np.int32)
        if codes.size:
            narrow = period_codes(periods_of(codes, axes), self._period_width).astype(np.int32)
        #: The seam bonds, their other ends, and over how many periods they lead.
        self.seam_list = self._seam_bonds, self._seam_ends, cuda.to_device(narrow)

    @property
    def _wrapping(self) -> tuple[Any, ...]:
        width = np.int32(self._period_width)
        return self._loops, self._spanning, np.int32(self.topology.num_axes), width

    def _plant_forest(self, items: int, nodes: int) -> None:
        """Make every one of so many nodes of each item a root."""
        if self._forest is None or self._forest.size < items * nodes:
            self._forest = cuda.device_array(self.capacity * nodes, np.uint64)
        plant_kernel[self.grid(nodes, items), THREADS](self._forest, np.uint32(nodes), self._loops)

    def join_forest(self, forest: Any, items: int) -> None:
        """Join all open bonds of the first items in a forest of the sites, uint64 each."""
        points = self.topology.num_points
        plant_kernel[self.grid(points, items), THREADS](forest, np.uint32(points), self._loops)
        self._wind_bonds(forest, items)

    def _wind_bonds(self, forest: Any, items: int) -> None:
        """Join all open bonds in the forest of the sites, and note what wraps."""
        points, words = np.uint32(self.topology.num_points), np.uint32(self.topology.num_words)
        wind_words_kernel[self.grid(int(words), items, THREADS), THREADS](
            forest, points, self.opened, self.seam, words, self.ends, self._wrapping
        )
        if self.topology.seam_codes.size:
            wind_seam_kernel[self.grid(self._seam_bonds.size, items, THREADS), THREADS](
                forest,
                points,
                self.opened,
                np.uint32(self.topology.exists.size),
                words,
                *self.seam_list,
                self._wrapping,
            )

    def gyration_rows(
        self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray, geometry: Geometry
    ) -> np.ndarray:
        """Return how far the clusters of samples reach at all m thresholds, uint64 each.

        int64 (n, m, PER_BIN * bins), as :mod:`percolab.measure.radii` has it.
        """
        if self._gyration is None:
            self._gyration = GyrationCuda(self, geometry)
        step = self._gyration.items
        parts = [
            self._gyration.rows(generator, seed, samples[first : first + step], grid)
            for first in range(0, len(samples), step)
        ]
        return np.concatenate(parts)

    @staticmethod
    def most_points(axes: int) -> int:
        """Return the most grid points of an item.

        The highest bits of a size mark the axes whose first layer the cluster touches.
        """
        return (1 << (32 - axes)) - 1

    @staticmethod
    def bytes_per_item(topology: Topology) -> int:
        """Return the device memory an item takes."""
        partials = 32 * _num_partials(topology.num_points)
        words = 8 * topology.exists.size + 4 * topology.num_words
        forest = 8 * topology.num_points if topology.seam_codes.size else 0
        return words + 8 * topology.num_points + forest + partials + 64

    def rows(
        self, generator: int, seed: int, samples: np.ndarray, thresholds: np.ndarray
    ) -> np.ndarray:
        """Return the rows (n, row_width) int64 of n items (sample, threshold), uint64 each.

        Where the items are samples that all share one ascending grid of thresholds, sample after
        sample, every sample is labeled once and grown from threshold to threshold.
        """
        grid = _shared_grid(samples, thresholds)
        if grid.size > 1:
            starts = np.ascontiguousarray(samples[:: grid.size])
            return self.grid_rows(generator, seed, starts, grid).reshape(-1, self.row_width)
        batches = []
        for first in range(0, len(samples), self.capacity):
            batch = slice(first, first + self.capacity)
            items = self.open_bonds(generator, seed, samples[batch], thresholds[batch])
            if self.measure_needs_labels:
                self.label_items(items)
            batches.append(self.measure_items(items))
        rows = np.concatenate(batches)
        if self.sites:
            without_vacant(rows, self._count_vacant(generator, seed, samples, thresholds))
        return rows

    def grid_rows(
        self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray
    ) -> np.ndarray:
        """Return the rows (n, m, row_width) int64 of samples at all m thresholds, uint64 each."""
        if grid.size == 1 or not np.all(grid[1:] > grid[:-1]):
            items = np.repeat(samples, grid.size), np.tile(grid, len(samples))
            return self.rows(generator, seed, *items).reshape(
                len(samples), grid.size, self.row_width
            )
        batches = [
            self._grid_rows(generator, seed, samples[first : first + self.capacity], grid)
            for first in range(0, len(samples), self.capacity)
        ]
        rows = batches[0] if len(batches) == 1 else np.concatenate(batches)
        if self.sites:
            items = np.repeat(samples, grid.size), np.tile(grid, len(samples))
            vacant = self._count_vacant(generator, seed, *items)
            without_vacant(rows.reshape(-1, self.row_width), vacant)
        return rows

    def _grid_rows(
        self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray
    ) -> np.ndarray:
        """Return the rows (n, m, row_width) of a batch at every threshold of an ascending grid."""
        items, keys = len(samples), cuda.to_device(samples)
        points, words = np.uint32(self.topology.num_points), np.uint32(self.topology.num_words)
        self.open_bonds(generator, seed, keys, np.full(items, grid[0], np.uint64))
        self.label_items(items)
        rows = np.empty((items, grid.size, self.row_width), np.int64)
        rows[:, 0] = self.measure_items(items)
        if self._later is None:
            self._later = cuda.device_array(self.opened.size, np.uint32)
        for step in range(1, grid.size):
            limits = np.full(items, grid[step], np.uint64)
            self._open_words(generator, seed, keys, limits, self._later)
            grow_kernel[self.grid(int(words), items, THREADS), THREADS](
                self.opened, self._later, self.labels, points, self.seam, words, self.ends
            )
            self.join_seam(items)
            if self.topology.seam_codes.size:
                self._wind_bonds(self._forest, items)
            absorb_kernel[self.grid(int(points), items), THREADS](
                self.labels, points, self._size_mask, self._sizes
            )
            rows[:, step] = self._rows_of_sizes(items)
        return rows

    def join_seam(self, items: int) -> None:
        """Join the ends of the open bonds across periodic seams."""
        if self._seam_bonds.size:
            seam_kernel[self.grid(self._seam_bonds.size, items, THREADS), THREADS](
                self.labels,
                np.uint32(self.topology.num_points),
                self.opened,
                np.uint32(self.topology.exists.size),
                np.uint32(self.topology.num_words),
                self._seam_bonds,
                self._seam_ends,
            )

    def label_items(self, items: int) -> None:
        """Label the open bonds of the first ``items`` items of the batch."""
        raise NotImplementedError

    def measure_items(self, items: int) -> np.ndarray:
        """Return the rows (items, row_width) int64 of the labeled items."""
        points = self.topology.num_points
        if self._sizes is None:
            self._sizes = cuda.device_array(self.capacity * points, np.uint32)
        sizes, count = self._sizes, np.uint32(points)
        clear_kernel[self.grid(points, items), THREADS](sizes, count, self._spanning)
        words = self.topology.num_words
        if self.topology.seam_codes.size:
            self._plant_forest(items, points)
            self._wind_bonds(self._forest, items)
        count_sizes_kernel[self.grid(words, items, COUNTED_WORDS), COUNTED_WORDS](
            self.labels,
            count,
            self.opened,
            self.seam,
            np.uint32(self.topology.exists.size),
            self.topology.chain,
            np.uint32(words),
            self._occupied,
            sizes,
        )
        return self._rows_of_sizes(items)

    def _rows_of_sizes(self, items: int) -> np.ndarray:
        """Return the rows of the first items, whose sizes stand at their roots."""
        points = self.topology.num_points
        sizes, count = self._sizes, np.uint32(points)
        for axis, layers in self._layers:
            for closing, sites in enumerate(layers):
                mark_layer_kernel[self.grid(sites.size, items, THREADS), THREADS](
                    self.labels, count, sites, 31 - axis, closing, sizes, self._spanning
                )
        partial_rows_kernel[(self._partials.shape[1], items), THREADS](
            sizes, points, self._size_mask, self._partials
        )
        self._clear_tallies(items)
        if self._tally_width:
            tally_sizes_kernel[(self._partials.shape[1], items), THREADS](
                sizes, points, self._size_mask, self._tally_width, self._tallies
            )
        return self._finish_rows(items)

    def _finish_rows(self, items: int) -> np.ndarray:
        """Return the rows of the first items from their partial sums."""
        finish_rows_kernel[items, PARTIALS](
            self._partials, self._spanning, self._rows, np.int64(0), np.int64(1)
        )
        # A slice of a flat array: one of rows takes longer to find than to copy.
        rows = self._rows[: items * ROW_WIDTH].copy_to_host().reshape(items, ROW_WIDTH)
        return self._with_tallies(rows, self._tallies)

    def labels_of(self, items: int) -> np.ndarray:
        """Return the labels of the first items, int32 (items, num_points)."""
        points = self.topology.num_points
        flat = self.labels[: items * points].copy_to_host()
        return flat.view(np.int32).reshape(items, points)
