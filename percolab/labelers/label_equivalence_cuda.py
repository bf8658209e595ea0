"""Label equivalence as CUDA kernels, and a batch of samples that is iterated until none changes."""

from __future__ import annotations

import numpy as np
from numba import uint32

from percolab.bonds.model import BOND, Model
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.labelers.base_cuda import CudaLabeler
from percolab.labelers.four_step_cuda import analysis_kernel
from percolab.labelers.label_equivalence import scan, scan_seam
from percolab.lattices.topology import Topology

cuda = load_cuda()


@cuda.jit(cache=True)
def singletons_kernel(labels, num_points, last_change):
    """Label every site of every item by itself; no scan has changed anything yet."""
    item = uint32(cuda.blockIdx.y)
    start = uint32(item * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            labels[uint32(start + i)] = i
    if item == uint32(0) and element(0) == uint32(0):
        last_change[0] = uint32(0)


@cuda.jit(cache=True)
def scan_kernel(labels, num_points, opened, seam, num_words, ends, last_change, iteration):
    """Scan every site of every item; ``last_change`` becomes ``iteration`` if labels differed.

    All threads that write it write the same, so it needs no atomic, and no clearing in between.
    """
    item = uint32(cuda.blockIdx.y)
    start, base = uint32(item * num_points), uint32(item * uint32(len(ends) * num_words))
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points and scan(labels, start, opened, seam, base, num_words, ends, i):
            last_change[0] = iteration


@cuda.jit(cache=True)
def scan_seam_kernel(
    labels,
    num_points,
    opened,
    words_per_item,
    num_words,
    seam_bonds,
    seam_ends,
    last_change,
    iteration,
):
    """Scan the bonds across periodic seams of every item."""
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < seam_bonds.size:
        start, base = uint32(item * num_points), uint32(item * words_per_item)
        if scan_seam(labels, start, opened, base, num_words, seam_bonds, seam_ends, n):
            last_change[0] = iteration


class LabelEquivalenceCuda(CudaLabeler):
    """A batch of samples labeled by label equivalence, on the computed or the explicit list.

    All items are iterated until none changes, which costs one flag read back an iteration.
    """

    def __init__(self, topology: Topology, model: Model = BOND, *, capacity: int) -> None:
        super().__init__(topology, model, capacity=capacity)
        self._last_change = cuda.device_array(1, np.uint32)

    def label_items(self, items: int) -> None:
        """Label the open bonds of the first ``items`` items of the batch."""
        points = np.uint32(self.topology.num_points)
        grid = self.grid(self.topology.num_points, items)
        singletons_kernel[grid, THREADS](self.labels, points, self._last_change)
        iteration = 1
        self._scan(items, iteration)
        while int(self._last_change.copy_to_host()[0]) == iteration:
            analysis_kernel[grid, THREADS](self.labels, points)
            iteration += 1
            self._scan(items, iteration)

    def _scan(self, items: int, iteration: int) -> None:
        points, words = np.uint32(self.topology.num_points), np.uint32(self.topology.num_words)
        scan_kernel[self.grid(self.topology.num_points, items), THREADS](
            self.labels,
            points,
            self.opened,
            self.seam,
            words,
            self.ends,
            self._last_change,
            np.uint32(iteration),
        )
        if self._seam_bonds.size:
            scan_seam_kernel[self.grid(self._seam_bonds.size, items, THREADS), THREADS](
                self.labels,
                points,
                self.opened,
                np.uint32(self.topology.exists.size),
                words,
                self._seam_bonds,
                self._seam_ends,
                self._last_change,
                np.uint32(iteration),
            )
