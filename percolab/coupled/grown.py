"""A grid of p on CUDA for labelers that label sites: newly open bonds are joined from p to p.

After these kernels, labels are not final (a site's label may be a former root that was joined to
another), but only roots have sizes, which is all that a row needs.

labels, sizes: uint32 (entries * num_points,); opened, later: uint32 (entries * classes *
num_words,).
"""

from typing import Any

import numpy as np
from numba import uint32

from percolab.bonds.model import Model
from percolab.coupled import Rows, Samples
from percolab.coupled.points import CoupledBatches
from percolab.kernels.bits import trailing_zeros
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.neighbours import inner_word, other_end
from percolab.kernels.union_find import find, union
from percolab.labelers.labeled_batch import LabeledBatch
from percolab.lattices.extent import Extent
from percolab.measure.wrapping_cuda import join_more


@cuda.jit(cache=True)
def grow_kernel(labels, opened, later, adjacency):
    """Join the ends of the bonds that open between two p: one thread per word of sites.

    opened, later: the open bonds at the two p; ``opened`` becomes ``later``.  Bonds
    across a periodic boundary are joined by
    :func:`percolab.labelers.periodic_cuda.periodic_kernel`.
    """
    entry, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    num_words, ends = adjacency.num_words, adjacency.ends
    if word >= num_words:
        return
    start = uint32(entry * adjacency.num_points)
    base = uint32(entry * uint32(uint32(len(ends)) * num_words))
    for k in range(len(ends)):
        index = uint32(uint32(k) * num_words + word)
        place = uint32(base + index)
        new = uint32(later[place] & ~opened[place])
        opened[place] = later[place]
        left = uint32(new & inner_word(opened, adjacency.periodic_words, base, index))
        while left != uint32(0):
            i = uint32(uint32(word << uint32(5)) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            union(labels, start, i, other_end(ends, k, i))


@cuda.jit(cache=True)
def absorb_kernel(labels, num_points, size_mask, sizes):
    """Move the size of every root that was joined to another to its new root."""
    start = uint32(uint32(cuda.blockIdx.y) * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            size = uint32(sizes[uint32(start + i)] & size_mask)
            if size != uint32(0) and labels[uint32(start + i)] != i:
                sizes[uint32(start + i)] = uint32(0)
                root = find(labels, start, i)
                cuda.atomic.add(sizes, uint32(start + root), size)


class GrownCoupling(CoupledBatches):
    """The coupling of a batch of labels (:class:`percolab.coupled.Coupling`)."""

    labeler: LabeledBatch

    def __init__(self, labeler: LabeledBatch, *, openings: bool = False) -> None:
        super().__init__(labeler, openings=openings)
        # The bonds at the next p; allocated when a grid is first measured.
        self._later: Any = None

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, entries: int) -> Memory:
        """Return the memory of the bonds at the next p."""
        return Memory(device=4 * extent.num_words * entries if needs.steps > 1 else 0)

    def coupled(self, generator: int, seed: int, samples: Samples, grid: Samples) -> Rows:
        labeler, batch, entries = self.labeler, self.labeler.batch, len(samples)
        if self._later is None:
            self._later = cuda.device_array(batch.opened.size, np.uint32)
        batch.fill(generator, seed, samples, np.full(entries, grid[0], np.uint64))
        forest = labeler.join(entries)
        forest.count_sizes()
        rows = np.empty((entries, grid.size, self.row_width), np.int64)
        for step, threshold in enumerate(grid):
            if step:
                batch.keys.write(seed, samples, np.full(entries, threshold, np.uint64))
                batch.draw(generator, batch.keys, entries, self._later)
                self._join_later(entries)
            if batch.closed:
                batch.closed.count(entries)
            forest.reduce()
            labeler.read.download(entries)
            rows[:, step] = self.with_counts(labeler.read.fetch(entries), entries)
        return rows

    def _join_later(self, entries: int) -> None:
        """Join the bonds that open at the next p, and move the sizes to the roots."""
        labeler, batch = self.labeler, self.labeler.batch
        top, launch = batch.topology, batch.launches
        words = labeler.labels, batch.opened, self._later, batch.adjacency
        launch.one(grow_kernel, top.num_words, entries, *words)
        labeler.join_periodic_bonds(entries)
        if top.num_periodic_bonds:
            join_more(batch, entries, labeler.windings, labeler.read.loops)
        sizes = batch.adjacency.num_points, labeler.size_mask, labeler.sizes
        launch.each(absorb_kernel, top.num_points, entries, labeler.labels, *sizes)
