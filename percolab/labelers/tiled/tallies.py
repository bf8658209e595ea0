"""CUDA: the tallies of a batch that was labeled in tiles.

tallies: uint64, ``width`` numbers an entry; bins: uint32 (TILE_BINS,), in shared memory.
"""

from numba import types, uint32, uint64

from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.labelers.tiled.borders import NODES
from percolab.labelers.tiled.one_tile import (
    BORDER,
    LANES,
    ROOT,
    TILE_NODES,
    entry_field,
    run_length,
)
from percolab.measure.tallies import num_bins
from percolab.measure.tallies_cuda import ALL_BINS, add_cluster, clear_bins, flush_bins

#: The number of bins for the clusters of a tile.
TILE_BINS = num_bins(TILE_NODES)


@cuda.jit(device=True)
def tally_finished(table, start, runs, lane, bins, tallies, base):
    """Count the clusters of a strip's runs that have no border site."""
    n, end = uint32(start + lane), uint32(start + runs)
    singles = uint32(0)
    while n < end:
        entry = table[n]
        if uint32(entry & uint32(ROOT | BORDER)) == uint32(ROOT):
            size = uint32(entry_field(entry) + run_length(entry))
            if size == uint32(1):
                singles = uint32(singles + uint32(1))
            else:
                add_cluster(bins, tallies, base, size)
        n = uint32(n + uint32(LANES))
    if singles != uint32(0):
        cuda.atomic.add(bins, 0, singles)


@cuda.jit(cache=True)
def copy_tally_kernel(finished, width, tallies, first, step):
    """Copy each entry's tally of finished clusters to tally ``first + entry * step``."""
    entry = uint64(cuda.blockIdx.y)
    to = uint64(uint64(uint64(first) + uint64(entry * uint64(step))) * uint64(width))
    for part in range(PER_THREAD):
        n = element(part)
        if n < width:
            tallies[uint64(to + uint64(n))] = finished[uint64(entry * uint64(width)) + uint64(n)]


@cuda.jit(cache=True)
def tally_nodes_kernel(nodes, interior, tiles, width, tallies, first, step):
    """Add the clusters at borders of tiles, known by their roots, to every entry's tally.

    The warps of a block are a power of two, up to TILES_PER_BLOCK; each takes one tile at a time.
    """
    bins = cuda.shared.array(ALL_BINS, types.uint32)
    parents, sizes = nodes.parents, nodes.sizes
    thread, entry = cuda.threadIdx.x, cuda.blockIdx.y
    clear_bins(bins, ALL_BINS, cuda.blockDim.x)
    cuda.syncthreads()
    warp, lane, warps = thread // LANES, thread % LANES, cuda.blockDim.x // LANES
    base = uint64(uint64(uint64(first) + uint64(entry * step)) * uint64(width))
    for tile in range(cuda.blockIdx.x * warps + warp, tiles, cuda.gridDim.x * warps):
        block = entry * tiles + tile
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * nodes.room) + uint32(n))
            if parents[node] == node and sizes[node] != uint32(0):
                add_cluster(bins, tallies, base, sizes[node])
    cuda.syncthreads()
    flush_bins(bins, ALL_BINS, tallies, base, cuda.blockDim.x)
