"""The four steps as CUDA kernels, and a batch of samples that goes through them.

labels: uint32 (entries * num_points,), those of entry n from n * num_points on; opened: uint32
(entries * classes * num_words,), words of open bonds.
"""

from typing import ClassVar

from numba import uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.labelers.four_step import analysis, initialization, label_reduction, word_reduction
from percolab.labelers.labeled_batch import LabeledBatch


@cuda.jit(device=True)
def entry_offsets(entry, adjacency):
    """Return where an entry's sites, and its bond words, begin in the arrays of a batch."""
    words = uint32(uint32(len(adjacency.ends)) * adjacency.num_words)
    return uint32(entry * adjacency.num_points), uint32(entry * words)


@cuda.jit(cache=True)
def initialization_kernel(labels, opened, adjacency):
    """Step (i) for every site of every entry."""
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    for step in range(PER_THREAD):
        i = element(step)
        if i < adjacency.num_points:
            initialization(labels, start, opened, base, adjacency, i)


@cuda.jit(cache=True)
def analysis_kernel(labels, num_points):
    """Steps (ii) and (iv) for every site of every entry.

    Only its own thread writes a site's label.  Other threads that follow the label read the parent
    or the root; both are valid, as no root changes here.
    """
    start = uint32(uint32(cuda.blockIdx.y) * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            analysis(labels, start, i)


@cuda.jit(cache=True)
def label_reduction_kernel(labels, opened, adjacency):
    """Step (iii) for the residual list of every site of every entry."""
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    for step in range(PER_THREAD):
        i = element(step)
        if i < adjacency.num_points:
            label_reduction(labels, start, opened, base, adjacency, i)


@cuda.jit(cache=True)
def word_reduction_kernel(labels, opened, adjacency):
    """Step (iii) on a lattice: one thread a word of 32 sites, so that all lanes have work."""
    word = uint32(cuda.grid(1))
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    if word < adjacency.num_words:
        word_reduction(labels, start, opened, base, adjacency, word)


class FourStepCuda(LabeledBatch):
    """A batch of samples labeled by the four steps, on the computed or the explicit list."""

    name: ClassVar[str] = "four_step"

    def label(self, entries: int) -> None:
        top, launch = self.batch.topology, self.batch.launches
        points = self.batch.adjacency.num_points
        bonds = self.labels, self.batch.opened, self.batch.adjacency
        launch.each(initialization_kernel, top.num_points, entries, *bonds)
        launch.each(analysis_kernel, top.num_points, entries, self.labels, points)
        if top.neighbours is None:
            launch.one(word_reduction_kernel, top.num_words, entries, *bonds)
        else:
            launch.each(label_reduction_kernel, top.num_points, entries, *bonds)
        self.join_periodic_bonds(entries)
        launch.each(analysis_kernel, top.num_points, entries, self.labels, points)
