"""CUDA: the tally of every item, as :mod:`percolab.kernels.tally` keeps it in a row.

A tally is uint64: what stands in a row behind its first columns.  A block counts its clusters by
size in shared memory and adds what it has counted to the item's tally; clusters that are not small
add their powers there at once, as two halves of 128 bits, the lower telling the upper of a carry.
"""

from numba import types, uint32, uint64

from percolab.device import load_cuda
from percolab.kernels.clusters import BINS, CUBES, FOURTHS, ROW_WIDTH
from percolab.kernels.cuda_border import NODES
from percolab.kernels.cuda_sampling import PER_THREAD, THREADS, element
from percolab.kernels.cuda_tile import BORDER, LANES, ROOT, TILE_NODES, field_of, length_of
from percolab.kernels.tally import EXACT, bin_of, num_bins, product

cuda = load_cuda()

#: Bins for clusters of any size, and for those that a tile holds.
ALL_BINS, TILE_BINS = num_bins(2**32 - 1), num_bins(TILE_NODES)
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
def _add_cluster(bins, tallies, base, size):
    """Count a cluster in the block's bins, and add its powers to a tally if it is not small."""
    size = uint64(size)
    cuda.atomic.add(bins, bin_of(size), uint32(1))
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


@cuda.jit(device=True)
def tally_finished(table, start, runs, lane, bins, tallies, base):
    """Count the clusters of a strip's runs that hold no border site."""
    n, end = uint32(start + lane), uint32(start + runs)
    singles = uint32(0)
    while n < end:
        entry = table[n]
        if uint32(entry & uint32(ROOT | BORDER)) == uint32(ROOT):
            size = uint32(field_of(entry) + length_of(entry))
            if size == uint32(1):
                singles = uint32(singles + uint32(1))
            else:
                _add_cluster(bins, tallies, base, size)
        n = uint32(n + uint32(LANES))
    if singles != uint32(0):
        cuda.atomic.add(bins, 0, singles)


@cuda.jit(cache=True)
def clear_tally_kernel(tallies, size):
    """Empty the first ``size`` numbers of the tallies."""
    for step in range(PER_THREAD):
        n = element(step)
        if n < size:
            tallies[n] = uint64(0)


@cuda.jit(cache=True)
def copy_tally_kernel(finished, width, tallies, first, step):
    """Begin tally ``first + item * step`` of every item with that of its finished clusters."""
    item = uint64(cuda.blockIdx.y)
    to = uint64(uint64(uint64(first) + uint64(item * uint64(step))) * uint64(width))
    for part in range(PER_THREAD):
        n = element(part)
        if n < width:
            tallies[uint64(to + uint64(n))] = finished[uint64(item * uint64(width)) + uint64(n)]


@cuda.jit(cache=True)
def tally_nodes_kernel(nodes, interior, room, tiles, width, tallies, first, step):
    """Add the clusters at borders of tiles, known by their roots, to every item's tally.

    A block has a power of two of warps, up to TILES_PER_BLOCK; each takes one tile at a time.
    """
    bins = cuda.shared.array(ALL_BINS, types.uint32)
    parents, sizes, _, _ = nodes
    thread, item = cuda.threadIdx.x, cuda.blockIdx.y
    clear_bins(bins, ALL_BINS, cuda.blockDim.x)
    cuda.syncthreads()
    warp, lane, warps = thread // LANES, thread % LANES, cuda.blockDim.x // LANES
    base = uint64(uint64(uint64(first) + uint64(item * step)) * uint64(width))
    for tile in range(cuda.blockIdx.x * warps + warp, tiles, cuda.gridDim.x * warps):
        block = item * tiles + tile
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * room) + uint32(n))
            if parents[node] == node and sizes[node] != uint32(0):
                _add_cluster(bins, tallies, base, sizes[node])
    cuda.syncthreads()
    flush_bins(bins, ALL_BINS, tallies, base, cuda.blockDim.x)


@cuda.jit(cache=True)
def tally_sizes_kernel(sizes, num_points, size_mask, width, tallies):
    """Add the clusters of every item, known by the sizes at their roots, to its tally."""
    bins = cuda.shared.array(ALL_BINS, types.uint32)
    clear_bins(bins, ALL_BINS, THREADS)
    cuda.syncthreads()
    item = uint32(cuda.blockIdx.y)
    base, start = uint64(uint64(item) * uint64(width)), uint32(item * uint32(num_points))
    for i in range(
        cuda.blockIdx.x * THREADS + cuda.threadIdx.x, num_points, cuda.gridDim.x * THREADS
    ):
        size = uint32(sizes[uint32(start + uint32(i))] & size_mask)
        if size != uint32(0):
            _add_cluster(bins, tallies, base, size)
    cuda.syncthreads()
    flush_bins(bins, ALL_BINS, tallies, base, THREADS)
