"""Point by point: every (sample, threshold) is drawn, joined and measured independently.

It works with any labeler.  On CUDA, a call of many kernels is captured once per number of entries.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import Model
from percolab.bonds.words import TOP
from percolab.coupled import Rows, Samples
from percolab.coupled.thresholds import bisect
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import Labeler, Reading
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.measure.radii import radii_row_width
from percolab.measure.rows import without_vacant


def measure_by_batches(measure: Callable[..., Any], capacity: int, *samples: NDArray[Any]) -> Any:
    """Return measurements of samples, ``capacity`` at a time; samples: arrays of equal length."""
    firsts = range(0, len(samples[0]), capacity)
    parts = [measure(*(each[first : first + capacity] for each in samples)) for first in firsts]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class PointByPoint:
    """The coupling that measures every p independently (:class:`percolab.coupled.Coupling`)."""

    wraps_alone = False

    def __init__(self, labeler: Labeler, *, openings: bool = False) -> None:
        self.labeler: Any = labeler
        self.openings = openings
        self.row_width: int = labeler.row_width + openings

    @property
    def reading(self) -> Reading:
        """The quantity that is read from samples."""
        top = self.labeler.batch.topology
        wraps = self.wraps_alone and top.num_periodic_bonds and not top.open_axes
        return Reading.WRAPPING if wraps else Reading.ROWS

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, entries: int) -> Memory:
        """Return the memory needed in addition to that of batch and labeler."""
        return Memory()

    def with_openings(self, rows: Rows, counts: Rows) -> Rows:
        """Return rows with the openings as their last number, if these are requested.

        counts: the numbers of open bonds or, if sites are drawn, of vacant sites; int64, with the
        rows' shape without its last axis.
        """
        if not self.openings:
            return rows
        batch = self.labeler.batch
        opened = batch.topology.num_sites - counts if batch.model.draws_sites else counts
        return np.concatenate([rows, opened[..., None]], axis=-1)

    def measured(self, generator: int, seed: int, samples: Samples, thresholds: Samples) -> Rows:
        """Return the rows of up to ``capacity`` batch entries."""
        batch = self.labeler.batch
        entries = batch.fill(generator, seed, samples, thresholds)
        rows: Rows = self.labeler.join(entries).rows()
        if batch.model.draws_sites:
            counts = batch.copy_vacant(entries)
            without_vacant(rows, counts)
        else:
            counts = np.bitwise_count(batch.opened).sum(dtype=np.int64, keepdims=True)
        return self.with_openings(rows, counts)

    def rows(self, generator: int, seed: int, samples: Samples, thresholds: Samples) -> Rows:
        def measure(*batch: Samples) -> Rows:
            return self.measured(generator, seed, *batch)

        rows: Rows = measure_by_batches(measure, self.labeler.batch.capacity, samples, thresholds)
        return rows

    def grid_rows(self, generator: int, seed: int, samples: Samples, grid: Samples) -> Rows:
        points = np.repeat(samples, grid.size), np.tile(grid, len(samples))
        return self.rows(generator, seed, *points).reshape(len(samples), grid.size, -1)

    def radii_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples, geometry: Geometry
    ) -> Rows:
        labeler = self.labeler
        width = radii_row_width(labeler.batch.topology.num_points)

        def measure(part: Samples) -> Rows:
            rows = np.empty((len(part), grid.size, width), np.int64)
            for point, threshold in enumerate(grid):
                limits = np.full(len(part), threshold, np.uint64)
                entries = labeler.batch.fill(generator, seed, part, limits)
                rows[:, point] = labeler.join(entries, Reading.RADII).radii(geometry)
            return rows

        rows: Rows = measure_by_batches(measure, labeler.entries_with_radii(geometry), samples)
        return rows

    @property
    def widest_window(self) -> int:
        """Any window can be bisected."""
        return TOP

    def scan_windows(
        self, generator: int, seed: int, samples: Samples, low: Samples, high: Samples
    ) -> Samples:
        return bisect(self, generator, seed, samples, low, high)


class CapturedPoints(PointByPoint):
    """Point by point on CUDA, by graphs captured before for the same number of batch entries."""

    def __init__(self, labeler: Any, *, openings: bool = False) -> None:
        super().__init__(labeler, openings=openings)
        if openings:
            labeler.batch.count_bonds()

    def with_counts(self, rows: Rows, entries: int, steps: int = 1) -> Rows:
        """Wait for the device; return rows, (entries, ...), corrected by counts of closed bonds.

        Vacant sites are subtracted, and openings are appended if they are requested.
        """
        batch = self.labeler.batch
        if batch.closed is None:
            return rows
        closed = batch.closed.fetch(entries, steps)
        if batch.sites:
            without_vacant(rows, closed)
            return self.with_openings(rows, closed)
        return self.with_openings(rows, batch.topology.num_bonds - closed)

    def measured(self, generator: int, seed: int, samples: Samples, thresholds: Samples) -> Rows:
        self.enqueue_rows(generator, seed, samples, thresholds)
        entries = len(samples)
        return self.with_counts(self.labeler.read.fetch(entries), entries)

    def enqueue_rows(
        self, generator: int, seed: int, samples: Samples, thresholds: Samples
    ) -> None:
        """Launch the kernels that write the rows of up to ``capacity`` batch entries."""
        labeler, batch, entries = self.labeler, self.labeler.batch, len(samples)

        def work() -> None:
            batch.draw(generator, batch.keys, entries, batch.opened)
            if batch.closed:
                batch.closed.count(entries)
            labeler.join(entries, self.reading).enqueue_rows()

        batch.keys.write(seed, samples, thresholds)
        if labeler.is_capturable:
            batch.launches.call((self.reading, generator, entries), work)
        else:
            work()


class CoupledBatches(CapturedPoints):
    """Batches of samples that are updated along a grid of p together; a subclass says how."""

    def coupled(self, generator: int, seed: int, samples: Samples, grid: Samples) -> Rows:
        """Return the rows (n, m, row width) of up to ``capacity`` samples, n of them.

        grid: ascending, at least two thresholds.
        """
        raise NotImplementedError

    def rows(self, generator: int, seed: int, samples: Samples, thresholds: Samples) -> Rows:
        """Return the rows (n, row width) of n batch entries (sample, threshold).

        If the entries are those of samples on one ascending grid of thresholds, sample after
        sample, every sample is labeled once for many thresholds.
        """
        grid = _shared_grid(samples, thresholds)
        if grid.size == 1:
            return super().rows(generator, seed, samples, thresholds)
        starts = np.ascontiguousarray(samples[:: grid.size])
        return self.grid_rows(generator, seed, starts, grid).reshape(-1, self.row_width)

    def grid_rows(self, generator: int, seed: int, samples: Samples, grid: Samples) -> Rows:
        if grid.size == 1 or not np.all(grid[1:] > grid[:-1]):
            return super().grid_rows(generator, seed, samples, grid)

        def measure(batch: Samples) -> Rows:
            return self.coupled(generator, seed, batch, grid)

        rows: Rows = measure_by_batches(measure, self.labeler.batch.capacity, samples)
        return rows


def _shared_grid(samples: Samples, thresholds: Samples) -> Samples:
    """Return the ascending grid that all samples share, or one threshold if there is none."""
    if samples.size < 2 or samples[0] != samples[1]:
        return thresholds[:1]
    length = int(np.argmax(np.append(samples, samples[:1] + np.uint64(1)) != samples[0]))
    grid = thresholds[:length]
    if len(samples) % length == 0 and np.all(grid[1:] > grid[:-1]):
        by_sample = samples.reshape(-1, length)
        if np.all(by_sample == by_sample[:, :1]) and np.all(thresholds.reshape(-1, length) == grid):
            return grid
    return thresholds[:1]
