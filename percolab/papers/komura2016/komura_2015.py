"""The four steps for square and cubic lattices alone, without a neighbour list, for CUDA.

Y. Komura, "GPU-based cluster-labeling algorithm without the use of conventional iteration:
Application to the Swendsen-Wang multi-cluster spin flip algorithm", Comput. Phys. Commun. 194, 54
(2015).  It is what his general algorithm (:mod:`percolab.labelers.four_step`) grew out of, and here
to compare with it.

A site's bonds lead one step down along each axis, in a fixed order of site numbers.  So the lowest
open neighbour is that of the last axis with an open bond, and of the last axis no bond is left for
the label reduction.  Bonds across periodic boundaries are joined from percolab's list of them.

labels: uint32 (entries * num_points,), those of entry n from n * num_points on; opened: uint32
(entries * classes * num_words,), words of open bonds.
"""

from typing import ClassVar

import numpy as np
from numba import uint32

from percolab.bonds.batch_cuda import CudaBatch
from percolab.kernels.cuda import cuda
from percolab.kernels.inner import inner
from percolab.kernels.launches import PER_THREAD, element
from percolab.kernels.neighbours import has_bit
from percolab.kernels.union_find import union
from percolab.labelers.four_step import bond_word
from percolab.labelers.four_step_cuda import analysis_kernel, entry_offsets
from percolab.labelers.labeled_batch import LabeledBatch


def why_not(offsets):
    """Return why bonds with these offsets, () for a graph, cannot be served, or ""."""
    dimension = len(offsets)
    down = tuple(tuple(-1 if a == k else 0 for a in range(dimension)) for k in range(dimension))
    if dimension not in (2, 3) or tuple(offsets) != down:
        return "needs bonds along the axes of a square or cubic lattice"
    return ""


@inner
def initial_label(opened, base, adjacency, strides, i):
    """Step (i): return the lowest open neighbour below a site, or the site itself.

    strides: how far the neighbour of each axis lies below it, uint32, ascending
    """
    label = uint32(i)
    for k in range(len(strides)):
        word = bond_word(opened, base, adjacency, k, uint32(i >> uint32(5)))
        if has_bit(word, i & uint32(31)):
            label = uint32(i - strides[k])
    return label


@inner
def reduce_label(labels, start, opened, base, adjacency, strides, i):
    """Step (iii): join a site with its open neighbours but the lowest."""
    above = False
    for step in range(len(strides)):
        k = len(strides) - 1 - step
        word = bond_word(opened, base, adjacency, k, uint32(i >> uint32(5)))
        if has_bit(word, i & uint32(31)):
            if above:
                union(labels, start, i, uint32(i - strides[k]))
            above = True


@cuda.jit(cache=True)
def initial_label_kernel(labels, opened, adjacency, strides):
    """Step (i) for every site of every entry."""
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    for step in range(PER_THREAD):
        i = element(step)
        if i < adjacency.num_points:
            labels[uint32(start + i)] = initial_label(opened, base, adjacency, strides, i)


@cuda.jit(cache=True)
def reduce_label_kernel(labels, opened, adjacency, strides):
    """Step (iii) for every site of every entry."""
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    for step in range(PER_THREAD):
        i = element(step)
        if i < adjacency.num_points:
            reduce_label(labels, start, opened, base, adjacency, strides, i)


class Komura2015(LabeledBatch):
    """A batch of samples on a square or cubic lattice, labeled by the four steps."""

    name: ClassVar[str] = "komura_2015"

    def __init__(self, batch: CudaBatch, *, tally: bool = False) -> None:
        super().__init__(batch, tally=tally)
        self._strides = tuple(np.uint32(-delta) for delta in batch.topology.deltas)

    def label(self, entries: int) -> None:
        """Label the open bonds of the first entries of the batch."""
        launch, points = self.batch.launches, self.batch.topology.num_points
        bonds = self.labels, self.batch.opened, self.batch.adjacency
        every_site = self.labels, self.batch.adjacency.num_points
        launch.each(initial_label_kernel, points, entries, *bonds, self._strides)
        launch.each(analysis_kernel, points, entries, *every_site)
        launch.each(reduce_label_kernel, points, entries, *bonds, self._strides)
        self.join_periodic_bonds(entries)
        launch.each(analysis_kernel, points, entries, *every_site)
