"""CUDA: bridges of planar lattices, by labels of the dual lattice.

A bond is a bridge if and only if the faces on both of its sides become one face when all closed
bonds are removed, that is, if they are in one cluster of the dual.  This holds for a lattice in the
plane or around a cylinder, but not on a torus.  So bridges are the closed bonds of the dual whose
ends are in one cluster, and one labeling finds all of them, however large the sample is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types, uint32, uint64
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import CudaBatch
from percolab.bonds.model import BOND
from percolab.kernels.cuda import cuda
from percolab.kernels.device import free_memory
from percolab.kernels.launches import PER_THREAD, Launches, element, zero_kernel
from percolab.kernels.memory import Memory, Needs, entries_that_fit
from percolab.kernels.neighbours import has_bit, inner_word, other_end, periodic_bond
from percolab.labelers import labeler_class, serving_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.dual import CONTRACTED, MISSING, DualTopology
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology

#: Values in place of the bond that a bond of the dual crosses: no such bond, or contracted.
_NONE, _CONTRACTED = MISSING & 0xFFFFFFFF, CONTRACTED & 0xFFFFFFFF
#: The dual takes at most 1 / _SHARE of a device's free memory; one sample's dual must fit.
_SHARE = 4


@cuda.jit(cache=True)
def dual_words_kernel(opened, words, first, sources, exists, crossing):
    """Write the open bonds of the dual of every entry; each thread writes PER_THREAD words.

    opened: uint32, ``words`` per entry, starting at entry ``first``.  sources: uint32 (32 * dual
    words,), for every bit the place of the bond that is crossed.  exists: uint32, the existing
    bonds of the dual.  crossing: uint32, is set to the open bonds of the dual of all entries.
    """
    size, entry = uint32(exists.size), uint32(cuda.blockIdx.y)
    base = uint32(uint32(entry + first) * words)
    for step in range(PER_THREAD):
        word = element(step)
        if word < size:
            is_open = uint32(0)
            for bit in range(32):
                place = sources[uint32(uint32(uint32(bit) * size) + word)]
                closed = place == uint32(_NONE)
                if place < uint32(_CONTRACTED):
                    own = opened[uint32(base + uint32(place >> uint32(5)))]
                    closed = not has_bit(own, place & uint32(31))
                if closed:
                    is_open = uint32(is_open | uint32(uint32(1) << uint32(bit)))
            crossing[uint32(uint32(entry * size) + word)] = uint32(is_open & exists[word])


@cuda.jit(cache=True)
def count_joined_kernel(exists, opened, labels, adjacency, first, counts):
    """Count the closed bonds of every entry whose ends have equal labels, without periodic bonds.

    counts: uint64 (entries,); index ``first`` belongs to the first entry here.
    """
    shared = cuda.shared.array(1, types.uint32)
    entry, points = uint32(cuda.blockIdx.y), adjacency.num_points
    start, base = uint32(entry * points), uint32(entry * uint32(exists.size))
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    count = uint32(0)
    for step in range(PER_THREAD):
        i = element(step)
        if i < points:
            word, label = uint32(i >> uint32(5)), labels[uint32(start + i)]
            for k in range(len(adjacency.ends)):
                there = inner_word(exists, adjacency.periodic_words, uint32(0), word)
                closed = uint32(there & uint32(~opened[uint32(base + word)]))
                word = uint32(word + adjacency.num_words)
                if has_bit(closed, i & uint32(31)):
                    j = other_end(adjacency.ends, k, i)
                    if labels[uint32(start + j)] == label:
                        count = uint32(count + uint32(1))
    if count != uint32(0):
        cuda.atomic.add(shared, 0, count)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and shared[0] != uint32(0):
        cuda.atomic.add(counts, uint32(entry + first), uint64(shared[0]))


@cuda.jit(cache=True)
def count_joined_periodic_kernel(opened, words, labels, adjacency, first, counts):
    """Add the closed periodic bonds whose ends have equal labels; a thread for each bond."""
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < adjacency.periodic_bonds.size:
        start = uint32(entry * adjacency.num_points)
        is_open, i, j = periodic_bond(n, opened, uint32(entry * words), adjacency)
        if not is_open and labels[uint32(start + i)] == labels[uint32(start + j)]:
            cuda.atomic.add(counts, uint32(entry + first), uint64(1))


def copy_sources(dual: DualTopology) -> Any:
    """Return the bonds that a dual's bonds cross, in the form for :func:`dual_words_kernel`."""
    sources = dual.sources.astype(np.uint32).reshape(-1, 32).T
    return cuda.to_device(np.ascontiguousarray(sources).ravel())


def label_memory(topology: Topology, entries: int) -> Memory:
    """Return the memory for the bonds and labels of a number of entries."""
    chosen, extent = _labeler_of(topology), Extent.of_topology(topology)
    labels: Memory = chosen.memory(extent, Needs(labels=True), entries)
    return CudaBatch.memory(extent, BOND, entries).plus(labels)


def dual_memory(dual: DualTopology, entries: int) -> Memory:
    """Return the memory for labels of the dual of a number of entries."""
    return label_memory(dual.topology, entries).plus(Memory(device=4 * dual.sources.size))


def entries_at_once(batch: CudaBatch, memory: Callable[[int], Memory]) -> int:
    """Return how many entries of a batch fit at once; memory: returns what n entries need."""
    return max(min(batch.capacity, entries_that_fit(memory, free_memory(cuda) // _SHARE)), 1)


def new_batch_labeler(topology: Topology, entries: int, launches: Launches) -> Any:
    """Return a labeler for a number of entries, whose bonds other kernels write."""
    return _labeler_of(topology)(CudaBatch(topology, BOND, entries, launches=launches))


def _labeler_of(topology: Topology) -> Any:
    """Return the class of the labeler of a topology."""
    return labeler_class(serving_labeler(None, "cuda", topology), "cuda")


class DualLabels:
    """Labels of the duals of a batch's samples, ``entries`` at a time.

    dual: that of the samples' topology.
    """

    def __init__(self, batch: CudaBatch, dual: DualTopology, entries: int) -> None:
        self._opened, self._words = batch.opened, np.uint32(batch.topology.num_bond_words)
        self.labeler = new_batch_labeler(dual.topology, entries, batch.launches)
        self.batch = self.labeler.batch
        self._sources = copy_sources(dual)

    def join(self, first: int, entries: int) -> Any:
        """Label the duals of some entries, starting at entry ``first``; return the labels."""
        own, start = self.batch, np.uint32(first)
        bonds = self._opened, self._words, start, self._sources, own.exists, own.opened
        own.launches.each(dual_words_kernel, own.exists.size, entries, *bonds)
        self.labeler.join(entries, Reading.LABELS).make_labels()
        return self.labeler.labels


class DualBridges:
    """A counter of the bridges of every sample of a labeler's batch, a few samples at a time.

    batch: samples of a planar lattice with an open axis; dual: that of its topology.
    """

    def __init__(self, batch: CudaBatch, dual: DualTopology) -> None:
        entries = entries_at_once(batch, lambda entries: dual_memory(dual, entries))
        self._batch, self._dual = batch, DualLabels(batch, dual, entries)
        self._counts = cuda.device_array(batch.capacity, np.uint64)

    def rows(self, entries: int) -> NDArray[np.int64]:
        """Return the number of bridges of the first entries of the batch, (entries, 1)."""
        launches, counts = self._batch.launches, self._counts

        def work() -> None:
            launches.each(zero_kernel, entries, 1, counts, np.uint32(entries))
            step = self._dual.batch.capacity
            for first in range(0, entries, step):
                self._count(first, min(step, entries - first))

        launches.call(("dual bridges", entries), work)
        launches.wait()
        rows: NDArray[np.int64] = counts[:entries].copy_to_host().view(np.int64)[:, None]
        return rows

    def _count(self, first: int, entries: int) -> None:
        """Add up the bridges of ``entries`` entries, starting at entry ``first``."""
        own, launches = self._dual.batch, self._batch.launches
        labels = self._dual.join(first, entries)
        counts: tuple[Any, ...] = labels, own.adjacency, np.uint32(first), self._counts
        points, words = own.topology.num_points, np.uint32(own.exists.size)
        launches.each(count_joined_kernel, points, entries, own.exists, own.opened, *counts)
        periodic = own.topology.num_periodic_bonds
        launches.one(count_joined_periodic_kernel, periodic, entries, own.opened, words, *counts)
