"""Point by point: every item is drawn, joined and measured on its own; any labeler will do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import Model
from percolab.bonds.words import TOP
from percolab.coupled.bisection import bisect
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import Labeler, Reading
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.measure.rows import without_vacant

Samples = NDArray[np.uint64]


class PointByPoint:
    """The coupling that couples nothing (:class:`percolab.coupled.Coupling`)."""

    def __init__(self, labeler: Labeler, *, openings: bool = False) -> None:
        self.labeler: Any = labeler
        self.openings = openings
        self.row_width: int = labeler.row_width + openings

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, items: int) -> Memory:
        """Return the memory in addition to that of batch and labeler."""
        return Memory()

    def with_openings(
        self, rows: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return rows with the openings as a last number, where they are requested.

        counts: of the bonds that are open, or where sites are drawn of those that are vacant; int64
        like the rows without their last axis.
        """
        if not self.openings:
            return rows
        batch = self.labeler.batch
        found = batch.topology.num_sites - counts if batch.model.draws_sites else counts
        return np.concatenate([rows, found[..., None]], axis=-1)

    def measured(
        self, generator: int, seed: int, samples: Samples, thresholds: Samples
    ) -> NDArray[np.int64]:
        """Return the rows of up to ``capacity`` items."""
        batch = self.labeler.batch
        items = batch.fill(generator, seed, samples, thresholds)
        rows: NDArray[np.int64] = self.labeler.join(items).rows()
        if batch.model.draws_sites:
            counts = batch.copy_vacant(items)
            without_vacant(rows, counts)
        else:
            counts = np.bitwise_count(batch.opened).sum(dtype=np.int64, keepdims=True)
        return self.with_openings(rows, counts)

    def rows(
        self, generator: int, seed: int, samples: Samples, thresholds: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, row width) of n items (sample, threshold)."""
        batch = self.labeler.batch
        parts = [
            self.measured(
                generator,
                seed,
                samples[first : first + batch.capacity],
                thresholds[first : first + batch.capacity],
            )
            for first in range(0, len(samples), batch.capacity)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def grid_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, m, row width) of samples at all m thresholds of a grid."""
        items = np.repeat(samples, grid.size), np.tile(grid, len(samples))
        return self.rows(generator, seed, *items).reshape(len(samples), grid.size, -1)

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


def radii_rows(
    labeler: Any, generator: int, seed: int, samples: Samples, grid: Samples, geometry: Geometry
) -> NDArray[np.int64]:
    """Return how far clusters reach at all m thresholds of a grid, (n, m, PER_BIN * bins)."""
    step = labeler.items_with_radii(geometry)
    found = []
    for first in range(0, len(samples), step):
        part = samples[first : first + step]
        at_each = []
        for threshold in grid:
            limits = np.full(len(part), threshold, np.uint64)
            items = labeler.batch.fill(generator, seed, part, limits)
            at_each.append(labeler.join(items, Reading.RADII).radii(geometry))
        found.append(np.stack(at_each, axis=1))
    return np.concatenate(found)
