"""The four steps as CUDA kernels, and a batch of samples that goes through them."""

from __future__ import annotations

import numpy as np
from numba import uint32

from percolab.device import load_cuda
from percolab.kernels.cuda_sampling import PER_THREAD, THREADS, element
from percolab.labelers.cuda_base import CudaLabeler
from percolab.labelers.four_step import (
    analysis,
    initialization,
    label_reduction,
    seam_reduction,
    word_reduction,
)
from percolab.topology import Topology

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


@cuda.jit(cache=True)
def seam_reduction_kernel(
    labels, num_points, opened, words_per_item, num_words, seam_bonds, seam_ends
):
    """Step (iii) for the bonds across periodic seams of every item."""
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < seam_bonds.size:
        start, base = uint32(item * num_points), uint32(item * words_per_item)
        seam_reduction(labels, start, opened, base, num_words, seam_bonds, seam_ends, n)


class FourStepCuda(CudaLabeler):
    """A batch of samples labeled by the four steps, on the computed or the explicit list."""

    def __init__(self, topology: Topology, *, capacity: int) -> None:
        super().__init__(topology, capacity=capacity)
        if topology.neighbours is None:
            self.ends = tuple(np.int32(delta) for delta in topology.deltas)
        else:
            self.ends = cuda.to_device(topology.neighbours)
        self._seam_bonds = cuda.to_device(topology.seam_bonds)
        self._seam_ends = cuda.to_device(topology.seam_ends)

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
        if self._seam_bonds.size:
            seam_reduction_kernel[self.grid(self._seam_bonds.size, items, THREADS), THREADS](
                self.labels,
                points,
                self.opened,
                np.uint32(self.topology.exists.size),
                words,
                self._seam_bonds,
                self._seam_ends,
            )
        analysis_kernel[grid, THREADS](self.labels, points)
