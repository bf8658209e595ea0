"""A grid of p on CUDA for labelers that label sites: what opens is joined from p to p."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import Model
from percolab.bonds.words import TOP
from percolab.coupled.bisection import bisect
from percolab.coupled.growth_cuda import absorb_kernel, grow_kernel
from percolab.coupled.points import Samples, radii_rows
from percolab.coupled.points_cuda import RecordedPoints, shared_grid
from percolab.kernels.device import load_cuda
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.labeled_batch import LabeledBatch
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.measure.rows import without_vacant
from percolab.measure.wrapping_cuda import join_more

cuda = load_cuda()


class GrownCoupling:
    """The coupling of a batch of labels (:class:`percolab.coupled.Coupling`)."""

    def __init__(self, labeler: LabeledBatch) -> None:
        self.labeler = labeler
        self.points = RecordedPoints(labeler)
        # The bonds at the next p; made when a grid is first asked for.
        self._later: Any = None

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, items: int) -> Memory:
        """Return the memory of the bonds at a next p."""
        return Memory(device=4 * extent.num_words * items if needs.steps > 1 else 0)

    def rows(
        self, generator: int, seed: int, samples: Samples, thresholds: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, row width) of n items (sample, threshold).

        Where the items are samples that all share one ascending grid of thresholds, sample after
        sample, every sample is labeled once and grown from threshold to threshold.
        """
        grid = shared_grid(samples, thresholds)
        if grid.size == 1:
            return self.points.rows(generator, seed, samples, thresholds)
        starts = np.ascontiguousarray(samples[:: grid.size])
        rows = self.grid_rows(generator, seed, starts, grid)
        return rows.reshape(-1, self.labeler.row_width)

    def grid_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, m, row width) of samples at all m thresholds of a grid."""
        if grid.size == 1 or not np.all(grid[1:] > grid[:-1]):
            return self.points.grid_rows(generator, seed, samples, grid)
        batch = self.labeler.batch
        parts = [
            self._grown(generator, seed, samples[first : first + batch.capacity], grid)
            for first in range(0, len(samples), batch.capacity)
        ]
        rows = np.concatenate(parts)
        if batch.model.draws_sites:
            items = np.repeat(samples, grid.size), np.tile(grid, len(samples))
            vacant = batch.count_vacant(generator, seed, *items)
            without_vacant(rows, vacant.reshape(len(samples), grid.size))
        return rows

    def _grown(
        self, generator: int, seed: int, samples: Samples, grid: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, m, row_width) of a batch, vacant sites being clusters."""
        labeler, batch, items = self.labeler, self.labeler.batch, len(samples)
        if self._later is None:
            self._later = cuda.device_array(batch.opened.size, np.uint32)
        batch.fill(generator, seed, samples, np.full(items, grid[0], np.uint64))
        forest = labeler.join(items)
        forest.count_sizes()
        rows = np.empty((items, grid.size, labeler.row_width), np.int64)
        for step, threshold in enumerate(grid):
            if step:
                batch.keys.write(seed, samples, np.full(items, threshold, np.uint64))
                batch.draw(generator, batch.keys, items, self._later)
                self._join_later(items)
            forest.reduce()
            labeler.read.download(items)
            rows[:, step] = labeler.read.fetch(items)
        return rows

    def _join_later(self, items: int) -> None:
        """Join what opens at the next p, and move the sizes to the roots."""
        labeler, batch = self.labeler, self.labeler.batch
        top, launch = batch.topology, batch.launches
        words = labeler.labels, batch.opened, self._later, batch.adjacency
        launch.one(grow_kernel, top.num_words, items, *words)
        labeler.join_seam(items)
        if top.seam_codes.size:
            join_more(batch, items, labeler.windings, labeler.read.loops)
        sizes = batch.adjacency.num_points, labeler.size_mask, labeler.sizes
        launch.each(absorb_kernel, top.num_points, items, labeler.labels, *sizes)

    def radii_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples, geometry: Geometry
    ) -> NDArray[np.int64]:
        """Return how far clusters reach at all m thresholds, (n, m, PER_BIN * bins)."""
        return radii_rows(self.labeler, generator, seed, samples, grid, geometry)

    @property
    def widest_window(self) -> int:
        """Any window can be bisected."""
        return TOP

    def scan_windows(
        self, generator: int, seed: int, samples: Samples, low: Samples, high: Samples
    ) -> Samples:
        """Return T of samples along every open axis in a window each, by bisection of rows."""
        return bisect(self, generator, seed, samples, low, high)
