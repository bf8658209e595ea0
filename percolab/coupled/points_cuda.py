"""Point by point on CUDA: a call of many kernels is recorded once for a number of items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from percolab.coupled.points import PointByPoint, Samples


class RecordedPoints(PointByPoint):
    """Point by point, replaying what was recorded for as many items before."""

    def measured(
        self, generator: int, seed: int, samples: Samples, thresholds: Samples
    ) -> NDArray[np.int64]:
        """Return the rows of up to ``capacity`` items, vacant sites being clusters."""
        labeler, batch, items = self.labeler, self.labeler.batch, len(samples)

        def work() -> None:
            batch.draw(generator, batch.keys, items, batch.opened)
            labeler.join(items).enqueue_rows()

        batch.keys.write(seed, samples, thresholds)
        if labeler.is_recordable:
            batch.launches.call(("rows", generator, items), work)
        else:
            work()
        rows: NDArray[np.int64] = labeler.read.fetch(items)
        return rows


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
