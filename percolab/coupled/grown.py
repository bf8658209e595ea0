"""A grid of p on CUDA for labelers that label sites: what opens is joined from p to p."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import Model
from percolab.coupled.growth_cuda import absorb_kernel, grow_kernel
from percolab.coupled.points import Samples
from percolab.coupled.points_cuda import CoupledBatches
from percolab.kernels.device import load_cuda
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.labeled_batch import LabeledBatch
from percolab.lattices.extent import Extent
from percolab.measure.wrapping_cuda import join_more

cuda = load_cuda()


class GrownCoupling(CoupledBatches):
    """The coupling of a batch of labels (:class:`percolab.coupled.Coupling`)."""

    labeler: LabeledBatch

    def __init__(self, labeler: LabeledBatch, *, openings: bool = False) -> None:
        super().__init__(labeler, openings=openings)
        # The bonds at the next p; made when a grid is first used.
        self._later: Any = None

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, items: int) -> Memory:
        """Return the memory of the bonds at a next p."""
        return Memory(device=4 * extent.num_words * items if needs.steps > 1 else 0)

    def coupled(
        self, generator: int, seed: int, samples: Samples, grid: Samples
    ) -> NDArray[np.int64]:
        """Return the rows (n, m, row width) of a batch."""
        labeler, batch, items = self.labeler, self.labeler.batch, len(samples)
        if self._later is None:
            self._later = cuda.device_array(batch.opened.size, np.uint32)
        batch.fill(generator, seed, samples, np.full(items, grid[0], np.uint64))
        forest = labeler.join(items)
        forest.count_sizes()
        rows = np.empty((items, grid.size, self.row_width), np.int64)
        for step, threshold in enumerate(grid):
            if step:
                batch.keys.write(seed, samples, np.full(items, threshold, np.uint64))
                batch.draw(generator, batch.keys, items, self._later)
                self._join_later(items)
            if batch.closed:
                batch.closed.count(items)
            forest.reduce()
            labeler.read.download(items)
            rows[:, step] = self.with_counts(labeler.read.fetch(items), items)
        return rows

    def _join_later(self, items: int) -> None:
        """Join what opens at the next p, and move the sizes to the roots."""
        labeler, batch = self.labeler, self.labeler.batch
        top, launch = batch.topology, batch.launches
        words = labeler.labels, batch.opened, self._later, batch.adjacency
        launch.one(grow_kernel, top.num_words, items, *words)
        labeler.join_periodic_bonds(items)
        if top.num_periodic_bonds:
            join_more(batch, items, labeler.windings, labeler.read.loops)
        sizes = batch.adjacency.num_points, labeler.size_mask, labeler.sizes
        launch.each(absorb_kernel, top.num_points, items, labeler.labels, *sizes)
