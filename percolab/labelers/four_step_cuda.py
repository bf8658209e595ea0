"""The four steps as CUDA kernels, and a batch of samples that goes through them."""

from __future__ import annotations

import numpy as np
from numba import uint32

from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.labelers.base_cuda import CudaLabeler
from percolab.labelers.four_step import analysis, initialization, label_reduction, word_reduction

cuda = load_cuda()


@cuda.jit(cache=True)
def initialization_kernel(labels, num_points, opened, seam, num_words, ends):
    """Step (i) for every site of every item."""
    item = uint32(cuda.blockIdx.y)
    start, base = uint32(item * num_points), uint32(item * uint32(len(ends) * num_words))
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            initialization(labels, start, opened, seam, base, num_words, ends, i)


@cuda.jit(cache=True)
def analysis_kernel(labels, num_points):
    """Steps (ii) and (iv) for every site of every item."""
    start = uint32(uint32(cuda.blockIdx.y) * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            analysis(labels, start, i)


@cuda.jit(cache=True)
def label_reduction_kernel(labels, num_points, opened, seam, num_words, ends):
    """Step (iii) for the residual list of every site of every item."""
    item = uint32(cuda.blockIdx.y)
    start, base = uint32(item * num_points), uint32(item * uint32(len(ends) * num_words))
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            label_reduction(labels, start, opened, seam, base, num_words, ends, i)


@cuda.jit(cache=True)
def word_reduction_kernel(labels, num_points, opened, seam, num_words, ends):
    """Step (iii) on a lattice: one thread a word of 32 sites, so that all lanes have work."""
    item, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    start, base = uint32(item * num_points), uint32(item * uint32(len(ends) * num_words))
    if word < num_words:
        word_reduction(labels, start, opened, seam, base, num_words, ends, word)


class FourStepCuda(CudaLabeler):
    """A batch of samples labeled by the four steps, on the computed or the explicit list."""

    def label_items(self, items: int) -> None:
        """Label the open bonds of the first ``items`` items of the batch."""
        points, words = np.uint32(self.topology.num_points), np.uint32(self.topology.num_words)
        grid = self.grid(self.topology.num_points, items)
        bonds = (self.opened, self.seam, words, self.ends)
        initialization_kernel[grid, THREADS](self.labels, points, *bonds)
        analysis_kernel[grid, THREADS](self.labels, points)
        if self.topology.neighbours is None:
            words_grid = self.grid(self.topology.num_words, items, THREADS)
            word_reduction_kernel[words_grid, THREADS](self.labels, points, *bonds)
        else:
            label_reduction_kernel[grid, THREADS](self.labels, points, *bonds)
        self.join_seam(items)
        analysis_kernel[grid, THREADS](self.labels, points)
