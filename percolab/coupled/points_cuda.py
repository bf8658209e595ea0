"""Point by point on CUDA: a call of many kernels is captured once for a number of items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.coupled.points import PointByPoint, Samples
from percolab.measure.rows import without_vacant


class CapturedPoints(PointByPoint):
    """Point by point, launching what was captured for as many items before."""

    def __init__(self, labeler: Any, *, openings: bool = False) -> None:
        super().__init__(labeler, openings=openings)
        if openings:
            labeler.batch.count_bonds()

    def with_counts(self, rows: NDArray[np.int64], items: int, steps: int = 1) -> NDArray[np.int64]:
        """Return rows, (items, ...), after what is closed was counted and the device is done.

        They are without vacant sites, and have the openings where these are requested.
        """
        batch = self.labeler.batch
        if batch.closed is None:
            return rows
        closed = batch.closed.fetch(items, steps)
        if batch.sites:
            without_vacant(rows, closed)
            return self.with_openings(rows, closed)
        return self.with_openings(rows, batch.topology.num_bonds - closed)

    def measured(
        self, generator: int, seed: int, samples: Samples, thresholds: Samples
    ) -> NDArray[np.int64]:
        """Return the rows of up to ``capacity`` items."""
        labeler, batch, items = self.labeler, self.labeler.batch, len(samples)

        def work() -> None:
            batch.draw(generator, batch.keys, items, batch.opened)
            if batch.closed:
                batch.closed.count(items)
            labeler.join(items).enqueue_rows()

        batch.keys.write(seed, samples, thresholds)
        if labeler.is_capturable:
            batch.launches.call(("rows", generator, items), work)
        else:
            work()
        rows: NDArray[np.int64] = labeler.read.fetch(items)
        return self.with_counts(rows, items)


class CoupledBatches(CapturedPoints):
    """Batches of samples that go over a grid of p together; a subclass says how."""

    def coupled(
        self, generator: int, seed: int, samples: Samples, grid: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, m, row width) of up to ``capacity`` samples, n of them.

        grid: ascending, at least two thresholds.
        """
        raise NotImplementedError

    def rows(
        self, generator: int, seed: int, samples: Samples, thresholds: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, row width) of n items (sample, threshold).

        Where the items are samples that all share one ascending grid of thresholds, sample after
        sample, every sample is labeled once for many of them.
        """
        grid = shared_grid(samples, thresholds)
        if grid.size == 1:
            return super().rows(generator, seed, samples, thresholds)
        starts = np.ascontiguousarray(samples[:: grid.size])
        rows = self.grid_rows(generator, seed, starts, grid)
        return rows.reshape(-1, self.row_width)

    def grid_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, m, row width) of samples at all m thresholds of a grid."""
        if grid.size == 1 or not np.all(grid[1:] > grid[:-1]):
            items = np.repeat(samples, grid.size), np.tile(grid, len(samples))
            return super().rows(generator, seed, *items).reshape(len(samples), grid.size, -1)
        batch = self.labeler.batch
        parts = [
            self.coupled(generator, seed, samples[first : first + batch.capacity], grid)
            for first in range(0, len(samples), batch.capacity)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def shared_grid(samples: Samples, thresholds: Samples) -> Samples:
    """Return the ascending grid that all samples share, or one threshold where there is none."""
    if samples.size < 2 or samples[0] != samples[1]:
        return thresholds[:1]
    length = int(np.argmax(np.append(samples, samples[:1] + np.uint64(1)) != samples[0]))
    grid = thresholds[:length]
    if len(samples) % length == 0 and np.all(grid[1:] > grid[:-1]):
        by_sample = samples.reshape(-1, length)
        if np.all(by_sample == by_sample[:, :1]) and np.all(thresholds.reshape(-1, length) == grid):
            return grid
    return thresholds[:1]
