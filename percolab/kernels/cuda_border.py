"""CUDA kernels of the tiled labeler: tiles into border clusters, these into clusters, into rows.

A cluster of a tile that holds no *border* site (one with a bond to another tile, or of an end
layer) is finished when its tile is.  Every other becomes a *node*; ``labels`` holds a node's number
at its border sites, and nowhere else anything, until the labels are written.  Bonds between tiles
are joined on the nodes.

Tile t of item n is block n * tiles + t.  A block has room for ``room`` nodes from ``block * room``
on; ``interior[block]`` holds of its finished clusters (number, sum of squares, largest, second
largest) and then the number of its nodes, all uint32.  A node has a parent, a size, end flags (bit
2a: it touches the first layer of axis a, bit 2a + 1: the last), and its smallest site, the origin.
"""

from numba import int64, types, uint32

from percolab.device import load_cuda
from percolab.kernels.bonds import has_bit
from percolab.kernels.clusters import spanning_bits
from percolab.kernels.cuda_sampling import (
    SLOTS,
    THREADS,
    add_size,
    clear_slots,
    flush_slots,
    reduce_block,
    write_partial,
)
from percolab.kernels.cuda_tile import LANES
from percolab.kernels.union_find import find, union

cuda = load_cuda()

#: Tiles whose nodes one block of threads goes through.
TILES_PER_BLOCK = THREADS // LANES
CLUSTERS, SQUARES, LARGEST, SECOND, NODES = range(5)


@cuda.jit(cache=True)
def merge_kernel(labels, points, opened, words_per_item, parents, words, owners, others):
    """Join the nodes at the two ends of every open bond between tiles."""
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < words.size:
        owner = uint32(owners[n])
        if has_bit(opened[uint32(uint32(item * words_per_item) + words[n])], owner & uint32(31)):
            base = uint32(item * points)
            one, other = labels[uint32(base + owner)], labels[uint32(base + others[n])]
            if one != other:
                union(parents, uint32(0), one, other)


@cuda.jit(cache=True)
def gather_kernel(parents, sizes, ends, interior, blocks, room):
    """Move the size and the end flags of every node that was joined to another to its root."""
    keys = cuda.shared.array(SLOTS, types.uint32)
    counts = cuda.shared.array(SLOTS, types.uint32)
    clear_slots(keys, counts, THREADS)
    cuda.syncthreads()
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * room) + uint32(n))
            size = sizes[node]
            if size != uint32(0) and parents[node] != node:
                root = find(parents, uint32(0), node)
                add_size(keys, counts, sizes, uint32(0), root, size)
                sizes[node] = uint32(0)
                if ends[node] != uint32(0):
                    cuda.atomic.or_(ends, root, ends[node])
    cuda.syncthreads()
    flush_slots(keys, counts, sizes, uint32(0), THREADS)


@cuda.jit(cache=True)
def origin_kernel(parents, origins, interior, blocks, room):
    """Lower the origin of every root to the smallest of its nodes'."""
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * room) + uint32(n))
            root = find(parents, uint32(0), node)
            if origins[node] < origins[root]:
                cuda.atomic.min(origins, root, origins[node])


@cuda.jit(cache=True)
def end_flags_kernel(labels, points, parents, ends, sites, flags):
    """Set the flags of every end-layer site at its cluster's root."""
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < sites.size:
        node = labels[uint32(uint32(item * points) + uint32(sites[n]))]
        root = find(parents, uint32(0), node)
        flag = flags[n]
        if uint32(ends[root] & flag) != flag:
            cuda.atomic.or_(ends, root, flag)


@cuda.jit(cache=True)
def partial_nodes_kernel(nodes, interior, room, tiles, partials, spanning):
    """Reduce an item's finished clusters and roots to one tuple a block, as for any row.

    A block has a power of two of warps, up to TILES_PER_BLOCK; each takes one tile at a time.
    """
    clusters = cuda.shared.array(THREADS, types.int64)
    squares = cuda.shared.array(THREADS, types.int64)
    largest = cuda.shared.array(THREADS, types.int64)
    second = cuda.shared.array(THREADS, types.int64)
    parents, sizes, ends, _ = nodes
    thread, item = cuda.threadIdx.x, cuda.blockIdx.y
    warp, lane = thread // LANES, thread % LANES
    count, total, top, low = int64(0), int64(0), int64(0), int64(0)
    spans = int64(0)
    warps = cuda.blockDim.x // LANES
    for tile in range(cuda.blockIdx.x * warps + warp, tiles, cuda.gridDim.x * warps):
        block = item * tiles + tile
        if lane == 0:
            count += int64(interior[block, CLUSTERS])
            total += int64(interior[block, SQUARES])
            size, other = int64(interior[block, LARGEST]), int64(interior[block, SECOND])
            low = max(max(low, other), min(top, size))
            top = max(top, size)
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * room) + uint32(n))
            size = int64(sizes[node])
            if parents[node] == node and size > 0:
                count += int64(1)
                total += size * size
                low = max(low, min(top, size))
                top = max(top, size)
                if ends[node] != uint32(0):
                    spans |= spanning_bits(ends[node])
    if spans != 0:
        cuda.atomic.or_(spanning, item, uint32(spans))
    clusters[thread], squares[thread] = count, total
    largest[thread], second[thread] = top, low
    reduce_block(clusters, squares, largest, second, thread, cuda.blockDim.x)
    if thread == 0:
        write_partial(clusters, squares, largest, second, partials, item, cuda.blockIdx.x)
