"""What studies store of trees, read on a CUDA device for all samples of a batch at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.kernels.device import load_cuda
from percolab.kernels.launches import zero_kernel
from percolab.kernels.memory import Memory
from percolab.lattices.topology import Topology
from percolab.trees.boruvka_cuda import BoruvkaCuda
from percolab.trees.readings_cuda import (
    BINS,
    BONDS,
    SUMS,
    WEIGHT,
    degrees_kernel,
    lattice_degrees_kernel,
    periodic_degrees_kernel,
    tally_degrees_kernel,
    weigh_kernel,
)

cuda = load_cuda()

#: Words of an item that one thread weighs, where there are many.
_WORDS_A_THREAD = 8


class TreeSums(NamedTuple):
    """Sums over the trees of some samples, int64 each, as ``TreeReading`` has them of one.

    bonds:   (items,), how many there are
    weight:  (items,), the sum of their weights in units of 2^-32; 0 where keys are given
    degrees: (items, most bonds of a site + 1), how many sites have so many of them
    weights: (items, 64), the histogram of the weights; 0 where keys are given
    """

    bonds: NDArray[np.int64]
    weight: NDArray[np.int64]
    degrees: NDArray[np.int64]
    weights: NDArray[np.int64]


class ReadingsBatch:
    """Reads the trees that :class:`BoruvkaCuda` found last."""

    def __init__(self, trees: BoruvkaCuda) -> None:
        self._trees = trees
        self._width = bound_site_degree(trees.topology) + 1
        sizes = trees.capacity * SUMS, trees.capacity * BINS, trees.capacity * self._width
        kinds: tuple[Any, ...] = (np.uint64, np.uint32, np.uint32)
        pairs = tuple(zip(sizes, kinds, strict=True))
        self._device = tuple(cuda.device_array(size, kind) for size, kind in pairs)
        self._pinned = tuple(cuda.pinned_array(size, kind) for size, kind in pairs)
        # What is counted begins as 0.
        self._zeros = tuple(cuda.to_device(np.zeros(size, kind)) for size, kind in pairs)

    @staticmethod
    def memory(width: int, items: int) -> Memory:
        """Return the memory that it takes; width: most bonds of a site, and one."""
        size = items * (8 * SUMS + 4 * BINS + 4 * width)
        return Memory(host=size, device=2 * size)

    def read(self, items: int) -> TreeSums:
        """Return sums over the trees of the first items."""
        trees = self._trees
        trees.launches.call(("read", trees.generator, items), lambda: self._enqueue(items))
        trees.launches.wait()
        sums, bins, degrees = (array.reshape(trees.capacity, -1)[:items] for array in self._pinned)
        whole = sums.astype(np.int64)
        tallies = degrees.astype(np.int64)
        return TreeSums(whole[:, BONDS], whole[:, WEIGHT], tallies, bins.astype(np.int64))

    def _enqueue(self, items: int) -> None:
        """Launch what reads the first trees, and fetch it."""
        trees, launch, batch = self._trees, self._trees.launches, self._trees.batch
        top, drawn = trees.topology, trees.generator is not None
        for device, zeros in zip(self._device, self._zeros, strict=True):
            launch.upload(device, zeros)
        sums, bins, tallies = self._device
        words = np.uint32(top.num_bond_words)
        key = trees.generator or 0, batch.keys.on_device.samples
        weighed = batch.opened, words, np.uint32(drawn), sums, bins
        launch.one(weigh_kernel, -(-int(words) // _WORDS_A_THREAD), items, *key, *weighed)
        degrees, points = trees.scratch, np.uint32(top.num_points)
        counted = batch.opened, batch.adjacency, words, degrees
        if top.neighbours is None:
            launch.each(lattice_degrees_kernel, top.num_points, items, *counted)
            launch.one(periodic_degrees_kernel, top.num_periodic_bonds, items, *counted)
        else:
            sites = np.uint32(items * top.num_points)
            launch.each(zero_kernel, int(sites), 1, degrees, sites)
            launch.one(degrees_kernel, int(words), items, *counted)
        tallied = degrees, batch.existing_sites, points, np.uint32(self._width), tallies
        launch.each(tally_degrees_kernel, top.num_points, items, *tallied)
        for device, pinned in zip(self._device, self._pinned, strict=True):
            launch.download(device, pinned)


def bound_site_degree(topology: Topology) -> int:
    """Return a bound on the bonds of a site."""
    if topology.neighbours is None:
        return 2 * topology.num_classes
    neighbours = topology.neighbours
    owned = (neighbours >= 0).sum(axis=0)
    others = np.bincount(neighbours[neighbours >= 0], minlength=topology.num_points)
    return int((owned + others).max())
