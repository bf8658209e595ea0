"""Label equivalence as CUDA kernels, and a batch of samples that is iterated until none changes.

labels: uint32 (entries * num_points,), those of entry n from n * num_points on; opened: uint32
(entries * classes * num_words,), words of open bonds.
"""

from typing import ClassVar

import numpy as np
from numba import uint32

from percolab.bonds.batch_cuda import CudaBatch
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.labelers.four_step_cuda import analysis_kernel, entry_offsets
from percolab.labelers.labeled_batch import LabeledBatch
from percolab.papers.komura2016.label_equivalence import scan, scan_periodic_bonds


@cuda.jit(cache=True)
def singletons_kernel(labels, num_points, last_change):
    """Label every site of every entry by itself; no scan has changed anything yet."""
    entry = uint32(cuda.blockIdx.y)
    start = uint32(entry * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            labels[uint32(start + i)] = i
    if entry == uint32(0) and element(0) == uint32(0):
        last_change[0] = uint32(0)


@cuda.jit(cache=True)
def scan_kernel(labels, opened, adjacency, last_change, iteration):
    """Scan every site of every entry; ``last_change`` becomes ``iteration`` if labels differed.

    All threads that write it write the same, so it needs no atomic, and no clearing in between.
    """
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    for step in range(PER_THREAD):
        i = element(step)
        if i < adjacency.num_points and scan(labels, start, opened, base, adjacency, i):
            last_change[0] = iteration


@cuda.jit(cache=True)
def scan_periodic_bonds_kernel(labels, opened, adjacency, last_change, iteration):
    """Scan the bonds across periodic boundaries of every entry."""
    n = uint32(cuda.grid(1))
    start, base = entry_offsets(uint32(cuda.blockIdx.y), adjacency)
    if n < adjacency.periodic_bonds.size and scan_periodic_bonds(
        labels, start, opened, base, adjacency, n
    ):
        last_change[0] = iteration


class LabelEquivalenceCuda(LabeledBatch):
    """A batch of samples labeled by label equivalence, on the computed or the explicit list.

    All entries are iterated until none changes, which costs one flag read back an iteration.
    """

    name: ClassVar[str] = "label_equivalence"
    is_capturable = False

    def __init__(self, batch: CudaBatch, *, tally: bool = False) -> None:
        super().__init__(batch, tally=tally)
        self._last_change = cuda.device_array(1, np.uint32)

    def label(self, entries: int) -> None:
        """Label the open bonds of the first entries of the batch."""
        launch, points = self.batch.launches, self.batch.topology.num_points
        every_site = self.labels, self.batch.adjacency.num_points
        launch.each(singletons_kernel, points, entries, *every_site, self._last_change)
        iteration = 1
        self._scan(entries, iteration)
        while self._changed_in(iteration):
            launch.each(analysis_kernel, points, entries, *every_site)
            iteration += 1
            self._scan(entries, iteration)

    def _changed_in(self, iteration: int) -> bool:
        self.batch.launches.wait()
        return int(self._last_change.copy_to_host()[0]) == iteration

    def _scan(self, entries: int, iteration: int) -> None:
        top, launch = self.batch.topology, self.batch.launches
        bonds = self.labels, self.batch.opened, self.batch.adjacency
        change = self._last_change, np.uint32(iteration)
        launch.each(scan_kernel, top.num_points, entries, *bonds, *change)
        launch.one(scan_periodic_bonds_kernel, top.num_periodic_bonds, entries, *bonds, *change)
