"""Numbers that studies store of trees, read on a CUDA device for all samples of a batch at once.

Weights and degrees are those that :mod:`percolab.trees.readings` reads on the CPU.

tree: uint32, bond words of the entries; degrees: uint32 (entries * num_points,).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types, uint32, uint64
from numpy.typing import NDArray

from percolab.bonds.digits import fill_planes, leading_digits
from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element, zero_kernel
from percolab.kernels.memory import Memory
from percolab.kernels.neighbours import has_bit, inner_word, periodic_bond
from percolab.lattices.topology import Topology
from percolab.trees.boruvka_cuda import BoruvkaCuda
from percolab.trees.rounds_cuda import find_ends

#: Number of digits of a weight that are summed up, after rounding, and of its bin.
WEIGHT_DIGITS, BIN_DIGITS = 32, 6
BINS = 1 << BIN_DIGITS
#: Sites with fewer bonds than this are counted in shared memory first.
SHARED_DEGREES = 64
_PLANES = WEIGHT_DIGITS + 1
_COLUMNS = THREADS * _PLANES
# Number of words that one thread weighs if a batch entry has many words.
_WORDS_A_THREAD = 8
#: Columns of the sums of an entry: number of bonds, and their weight in units of 2^-32.
BONDS, WEIGHT, SUMS = 0, 1, 2


@cuda.jit(cache=True)
def weigh_kernel(generator, samples, tree, words_per_entry, is_drawn, sums, bins):
    """Count the bonds of every tree, sum up their weights, and count these by bin.

    A thread processes words of one entry, and draws the 33 planes of each.  is_drawn: 0 leaves out
    weights, as for given keys.  sums: uint64 (entries * SUMS,), bins: uint32 (entries * BINS,),
    both must be 0.
    """
    columns = cuda.shared.array(_COLUMNS, types.uint32)
    counts = cuda.shared.array(BINS, types.uint32)
    weights = cuda.shared.array(THREADS, types.uint64)
    numbers = cuda.shared.array(THREADS, types.uint32)
    thread, entry = uint32(cuda.threadIdx.x), uint32(cuda.blockIdx.y)
    base = uint32(thread * uint32(_PLANES))
    for n in range(thread, BINS, THREADS):
        counts[n] = uint32(0)
    cuda.syncthreads()
    total, number = uint64(0), uint32(0)
    sample = samples[uint32(entry + uint32(1))]
    planes = columns[base : base + _PLANES]
    word = uint32(cuda.grid(1))
    while word < words_per_entry:
        left = tree[uint32(uint32(entry * words_per_entry) + word)]
        number = uint32(number + uint32(popcount(left)))
        if left != uint32(0) and is_drawn != uint32(0):
            fill_planes(generator, samples[0], sample, word, planes)
            of_word, k = uint64(0), base
            while k < uint32(base + uint32(WEIGHT_DIGITS)):
                ones = popcount(uint32(columns[k] & left))
                of_word = uint64(uint64(of_word << uint64(1)) + uint64(ones))
                k = uint32(k + uint32(1))
            last = popcount(uint32(columns[k] & left))
            total = uint64(uint64(total + of_word) + uint64(last))
            while left != uint32(0):
                bit = uint32(lowest_one(left))
                left = uint32(left & uint32(left - uint32(1)))
                cuda.atomic.add(counts, leading_digits(planes, BIN_DIGITS, bit), uint32(1))
        word = uint32(word + uint32(cuda.gridsize(1)))
    weights[thread], numbers[thread] = total, number
    width = THREADS // 2
    while width > 0:
        cuda.syncthreads()
        if thread < width:
            weights[thread] = uint64(weights[thread] + weights[thread + width])
            numbers[thread] = uint32(numbers[thread] + numbers[thread + width])
        width //= 2
    cuda.syncthreads()
    if thread == uint32(0):
        own = uint32(entry * uint32(SUMS))
        cuda.atomic.add(sums, uint32(own + uint32(BONDS)), uint64(numbers[0]))
        cuda.atomic.add(sums, uint32(own + uint32(WEIGHT)), weights[0])
    for n in range(thread, BINS, THREADS):
        if counts[n] != uint32(0):
            cuda.atomic.add(bins, uint32(uint32(entry * uint32(BINS)) + uint32(n)), counts[n])


@cuda.jit(cache=True)
def degrees_kernel(tree, adjacency, words_per_entry, degrees):
    """Find the degrees of all sites of a graph in the trees: one thread per word."""
    word, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if word >= words_per_entry:
        return
    base = uint32(entry * adjacency.num_points)
    left = tree[uint32(uint32(entry * words_per_entry) + word)]
    while left != uint32(0):
        bond = uint32(uint32(word << uint32(5)) + uint32(lowest_one(left)))
        left = uint32(left & uint32(left - uint32(1)))
        i, j = find_ends(bond, adjacency)
        cuda.atomic.add(degrees, uint32(base + i), uint32(1))
        cuda.atomic.add(degrees, uint32(base + j), uint32(1))


@cuda.jit(cache=True)
def lattice_degrees_kernel(tree, adjacency, words_per_entry, degrees):
    """Count the bonds of the trees at every site of a lattice, without one kind of bonds.

    Bonds that another site owns are counted only if they do not cross a periodic boundary, since
    they are found by the index difference.
    """
    entry, points = uint32(cuda.blockIdx.y), uint32(adjacency.num_points)
    base = uint32(entry * words_per_entry)
    for step in range(PER_THREAD):
        i = element(step)
        if i < points:
            degree = uint32(0)
            for k in range(len(adjacency.ends)):
                first = uint32(uint32(k) * uint32(adjacency.num_words))
                own = tree[uint32(uint32(base + first) + uint32(i >> uint32(5)))]
                if has_bit(own, i & uint32(31)):
                    degree = uint32(degree + uint32(1))
                # An owner before the first site wraps to a number beyond the last site.
                j = uint32(i - uint32(adjacency.ends[k]))
                if j < points:
                    word = uint32(first + uint32(j >> uint32(5)))
                    inner = inner_word(tree, adjacency.periodic_words, base, word)
                    if has_bit(inner, j & uint32(31)):
                        degree = uint32(degree + uint32(1))
            degrees[uint32(uint32(entry * points) + i)] = degree


@cuda.jit(cache=True)
def periodic_degrees_kernel(tree, adjacency, words_per_entry, degrees):
    """Count the periodic bonds at the sites that do not own them: one thread per bond."""
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < uint32(adjacency.periodic_bonds.size):
        is_open, _, j = periodic_bond(n, tree, uint32(entry * words_per_entry), adjacency)
        if is_open:
            place = uint32(uint32(entry * uint32(adjacency.num_points)) + j)
            cuda.atomic.add(degrees, place, uint32(1))


@cuda.jit(cache=True)
def tally_degrees_kernel(degrees, occupied, points, width, tallies):
    """Count the sites by degree; tallies: uint32 (entries * width,), must be 0."""
    counts = cuda.shared.array(SHARED_DEGREES, types.uint32)
    entry = uint32(cuda.blockIdx.y)
    for k in range(cuda.threadIdx.x, SHARED_DEGREES, THREADS):
        counts[k] = uint32(0)
    cuda.syncthreads()
    begin = uint32(entry * width)
    for step in range(PER_THREAD):
        i = element(step)
        if i < points and has_bit(occupied[uint32(i >> uint32(5))], i & uint32(31)):
            degree = degrees[uint32(uint32(entry * points) + i)]
            if degree < uint32(SHARED_DEGREES):
                cuda.atomic.add(counts, degree, uint32(1))
            else:
                cuda.atomic.add(tallies, uint32(begin + degree), uint32(1))
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, SHARED_DEGREES, THREADS):
        if counts[k] != uint32(0):
            cuda.atomic.add(tallies, uint32(begin + uint32(k)), counts[k])


class TreeSums(NamedTuple):
    """The numbers of ``TreeReading`` for several samples, int64 each."""

    bonds: NDArray[np.int64]  # (entries,), number of bonds
    # (entries,), the sum of their weights in units of 2^-32; 0 if keys are given
    weight: NDArray[np.int64]
    # (entries, largest degree + 1), number of sites by degree
    degrees: NDArray[np.int64]
    weights: NDArray[np.int64]  # (entries, 64), the histogram of the weights; 0 with given keys


class ReadingsBatch:
    """A reader of the last trees that :class:`BoruvkaCuda` found."""

    def __init__(self, trees: BoruvkaCuda) -> None:
        self._trees = trees
        self._width = bound_site_degree(trees.topology) + 1
        sizes = trees.capacity * SUMS, trees.capacity * BINS, trees.capacity * self._width
        kinds: tuple[Any, ...] = (np.uint64, np.uint32, np.uint32)
        pairs = tuple(zip(sizes, kinds, strict=True))
        self._device = tuple(cuda.device_array(size, kind) for size, kind in pairs)
        self._pinned = tuple(cuda.pinned_array(size, kind) for size, kind in pairs)
        # Zeros to which all counts are reset.
        self._zeros = tuple(cuda.to_device(np.zeros(size, kind)) for size, kind in pairs)

    @staticmethod
    def memory(width: int, entries: int) -> Memory:
        """Return the memory needed; width: largest degree of a site plus 1."""
        size = entries * (8 * SUMS + 4 * BINS + 4 * width)
        return Memory(host=size, device=2 * size)

    def read(self, entries: int) -> TreeSums:
        """Return sums over the trees of the first entries."""
        trees = self._trees
        trees.launches.call(("read", trees.generator, entries), lambda: self._enqueue(entries))
        trees.launches.wait()
        sums, bins, degrees = (each.reshape(trees.capacity, -1)[:entries] for each in self._pinned)
        read = sums[:, BONDS], sums[:, WEIGHT], degrees, bins
        return TreeSums(*(each.astype(np.int64) for each in read))

    def _enqueue(self, entries: int) -> None:
        trees, launch, batch = self._trees, self._trees.launches, self._trees.batch
        top, drawn = trees.topology, trees.generator is not None
        for device, zeros in zip(self._device, self._zeros, strict=True):
            launch.upload(device, zeros)
        sums, bins, tallies = self._device
        words = np.uint32(top.num_bond_words)
        key = trees.generator or 0, batch.keys.on_device.samples
        weighed = batch.opened, words, np.uint32(drawn), sums, bins
        launch.one(weigh_kernel, -(-int(words) // _WORDS_A_THREAD), entries, *key, *weighed)
        degrees, points = trees.scratch, np.uint32(top.num_points)
        counted = batch.opened, batch.adjacency, words, degrees
        if top.neighbours is None:
            launch.each(lattice_degrees_kernel, top.num_points, entries, *counted)
            launch.one(periodic_degrees_kernel, top.num_periodic_bonds, entries, *counted)
        else:
            sites = np.uint32(entries * top.num_points)
            launch.each(zero_kernel, int(sites), 1, degrees, sites)
            launch.one(degrees_kernel, int(words), entries, *counted)
        tallied = degrees, batch.existing_sites, points, np.uint32(self._width), tallies
        launch.each(tally_degrees_kernel, top.num_points, entries, *tallied)
        for device, pinned in zip(self._device, self._pinned, strict=True):
            launch.download(device, pinned)


def bound_site_degree(topology: Topology) -> int:
    """Return a bound on the number of bonds of a site."""
    if topology.neighbours is None:
        return 2 * topology.num_classes
    neighbours = topology.neighbours
    owned = (neighbours >= 0).sum(axis=0)
    others = np.bincount(neighbours[neighbours >= 0], minlength=topology.num_points)
    return int((owned + others).max())
