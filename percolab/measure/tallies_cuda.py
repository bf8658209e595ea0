"""CUDA: the tally of every entry, in the form of :mod:`percolab.measure.tallies`.

A tally is uint64: the part of a row after its first columns.  A block counts its clusters by size
in shared memory, ``bins``, uint32, and adds them to the entry's tally.  Clusters that are not small
add their powers directly to the tally, as two halves of 128 bits with a carry from the lower one.
"""

from numba import types, uint32, uint64

from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.measure.rows import BINS, CUBES, FOURTHS, ROW_WIDTH
from percolab.measure.tallies import EXACT, num_bins, product, size_bin

#: Bins for clusters of any size.
ALL_BINS = num_bins(2**32 - 1)
_CUBES, _FOURTHS, _BINS = CUBES - ROW_WIDTH, FOURTHS - ROW_WIDTH, BINS - ROW_WIDTH


@cuda.jit(device=True)
def add_wide(tallies, at, low, high):
    """Add 128 bits to the pair of uint64 at ``at``."""
    old = cuda.atomic.add(tallies, at, low)
    if uint64(old + low) < low:
        high = uint64(high + uint64(1))
    if high != uint64(0):
        cuda.atomic.add(tallies, uint64(at + uint64(1)), high)


@cuda.jit(device=True)
def add_cluster(bins, tallies, base, size):
    """Count a cluster in the block's bins and, if it is not small, add its powers to a tally."""
    size = uint64(size)
    cuda.atomic.add(bins, size_bin(size), uint32(1))
    if size >= uint64(EXACT):
        square = uint64(size * size)
        low, high = product(square, size)
        add_wide(tallies, uint64(base + uint64(_CUBES)), low, high)
        low, high = product(square, square)
        add_wide(tallies, uint64(base + uint64(_FOURTHS)), low, high)


@cuda.jit(device=True)
def clear_bins(bins, count, threads):
    """Empty the first ``count`` bins of a block."""
    for n in range(cuda.threadIdx.x, count, threads):
        bins[n] = uint32(0)


@cuda.jit(device=True)
def flush_bins(bins, count, tallies, base, threads):
    """Add the first ``count`` bins of a block to a tally."""
    for n in range(cuda.threadIdx.x, count, threads):
        if bins[n] != uint32(0):
            place = uint64(base + uint64(_BINS + n))
            cuda.atomic.add(tallies, place, uint64(bins[n]))


@cuda.jit(cache=True)
def tally_sizes_kernel(sizes, num_points, size_mask, width, tallies):
    """Add the clusters of every entry, given by the sizes at their roots, to its tally."""
    bins = cuda.shared.array(ALL_BINS, types.uint32)
    clear_bins(bins, ALL_BINS, THREADS)
    cuda.syncthreads()
    entry = uint32(cuda.blockIdx.y)
    base, start = uint64(uint64(entry) * uint64(width)), uint32(entry * uint32(num_points))
    for i in range(
        cuda.blockIdx.x * THREADS + cuda.threadIdx.x, num_points, cuda.gridDim.x * THREADS
    ):
        size = uint32(sizes[uint32(start + uint32(i))] & size_mask)
        if size != uint32(0):
            add_cluster(bins, tallies, base, size)
    cuda.syncthreads()
    flush_bins(bins, ALL_BINS, tallies, base, THREADS)
