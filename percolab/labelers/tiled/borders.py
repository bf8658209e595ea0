"""CUDA kernels of the tiled labeler: join clusters at tile borders, and reduce them to rows.

A site is at the *border* of its tile in an entry if it is in an end layer, or if an open bond leads
from it to another tile.  A tile's cluster without border sites is finished when the tile is.  Every
other cluster of a tile becomes a *node*.  Until the labels are written, ``labels`` has the number
of a node at its border sites, and is undefined elsewhere.  The open bonds between tiles are listed
first, and join the nodes later.

Tile t of entry n is block n * tiles + t.  A block has room for ``room`` nodes from ``block * room``
on; ``interior[block]`` has the sums over its finished clusters (:mod:`percolab.measure.sums`) and
then the number of its nodes, all uint32.  A node has a parent, a size, end flags (bit 2a: it
touches the first layer of axis a, bit 2a + 1: the last), and its smallest site, the origin.
"""

from numba import int64, types, uint32, uint64

from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.kernels.neighbours import has_bit
from percolab.kernels.union_find import find, union
from percolab.labelers.tiled.one_tile import LANES
from percolab.measure.rows import spanning_bits
from percolab.measure.rows_cuda import (
    COLUMNS,
    SLOTS,
    add_size,
    clear_slots,
    flush_slots,
    reduce_block,
)
from percolab.measure.sums import NUMBERS, SUMS
from percolab.measure.wrapping_cuda import join_over_periods, note_loop, shortened

#: Tiles whose nodes one block of threads processes.
TILES_PER_BLOCK = THREADS // LANES
#: Index, in a tile's interior, of the number of its nodes, after the sums.
NODES = NUMBERS
_empty, _with_cluster, _merged = SUMS.empty, SUMS.with_cluster, SUMS.merged
_put, _take = SUMS.put, SUMS.take


@cuda.jit(cache=True)
def clear_border_kernel(border, ends, counts):
    """Set the border of every entry to its end layers, and clear its list of bonds."""
    entry, size = uint32(cuda.blockIdx.y), uint32(ends.size)
    for step in range(PER_THREAD):
        n = element(step)
        if n < size:
            border[uint32(uint32(entry * size) + n)] = ends[n]
    if element(0) == uint32(0):
        counts[entry] = uint32(0)


@cuda.jit(device=True)
def _mark_bits(border, place, bits):
    """Set bits of the border by an atomic, as other threads may set bits of the same word."""
    if bits != uint32(0):
        cuda.atomic.or_(border, place, bits)


@cuda.jit(device=True)
def mark_from(border, base, first, bits):
    """Set bits of the sites from ``first``, int64, on; the bit of site 0 is at ``base``."""
    place, shift = uint32(base + uint32(first >> int64(5))), uint32(first & int64(31))
    _mark_bits(border, place, uint32(bits << shift))
    if shift != uint32(0):
        after = uint32(bits >> uint32(uint32(32) - shift))
        _mark_bits(border, uint32(place + uint32(1)), after)


@cuda.jit(cache=True)
def list_crossing_kernel(opened, words_per_entry, crossing, border, words_of_sites, listed):
    """List the open bonds between tiles, and mark their ends as border: one thread per entry."""
    shared = cuda.shared.array(2, types.uint32)
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    bits, slot = uint32(0), uint32(0)
    if n < uint32(crossing.words.size):
        word = opened[uint32(uint32(entry * words_per_entry) + crossing.words[n])]
        bits = uint32(word & crossing.masks[n])
    if bits != uint32(0):
        slot = cuda.atomic.add(shared, 0, uint32(popcount(bits)))
        base = uint32(entry * words_of_sites)
        owner = crossing.owners[n]
        cuda.atomic.or_(border, uint32(base + owner), bits)
        first = int64(int64(int64(owner) << int64(5)) + int64(crossing.deltas[n]))
        mark_from(border, base, first, bits)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        shared[1] = cuda.atomic.add(listed.counts, entry, shared[0])
    cuda.syncthreads()
    place = uint64(uint64(uint64(entry) * uint64(listed.room)) + uint64(uint32(shared[1] + slot)))
    while bits != uint32(0):
        listed.bonds[place] = uint32(uint32(n << uint32(5)) + uint32(lowest_one(bits)))
        bits = uint32(bits & uint32(bits - uint32(1)))
        place = uint64(place + uint64(1))


@cuda.jit(device=True)
def listed_bond(k, entry, listed, crossing):
    """Return (crossing word, bit, owner, other end) of the k-th listed bond of a batch entry."""
    bond = listed.bonds[uint64(uint64(uint64(entry) * uint64(listed.room)) + uint64(k))]
    n, bit = uint32(bond >> uint32(5)), uint32(bond & uint32(31))
    owner = uint32(uint32(crossing.owners[n] << uint32(5)) + bit)
    return n, bit, owner, uint32(owner + uint32(crossing.deltas[n]))


@cuda.jit(cache=True)
def merge_kernel(labels, points, opened, words_per_entry, parents, crossing, listed):
    """Join the nodes at the two ends of every listed bond that is open."""
    entry = uint32(cuda.blockIdx.y)
    base, k = uint32(entry * points), uint32(cuda.grid(1))
    while k < listed.counts[entry]:
        n, bit, owner, other = listed_bond(k, entry, listed, crossing)
        if has_bit(opened[uint32(uint32(entry * words_per_entry) + crossing.words[n])], bit):
            i, j = labels[uint32(base + owner)], labels[uint32(base + other)]
            if i != j:
                union(parents, uint32(0), i, j)
        k = uint32(k + uint32(cuda.gridsize(1)))


@cuda.jit(cache=True)
def gather_kernel(nodes, interior, blocks, forest, with_origins):
    """Add the size and end flags of every node that was joined to another to those of its root.

    With ``with_origins`` the root gets the smallest origin, too.  If ``forest`` has the nodes, they
    were joined there; then parents are copied from it, and paths in it are shortened to the root.
    """
    keys = cuda.shared.array(SLOTS, types.uint32)
    counts = cuda.shared.array(SLOTS, types.uint32)
    parents, sizes, ends = nodes.parents, nodes.sizes, nodes.ends
    clear_slots(keys, counts, THREADS)
    cuda.syncthreads()
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * nodes.room) + uint32(n))
            size, root = sizes[node], node
            if size != uint32(0):
                if forest.size > 1:
                    root = shortened(forest, node)
                else:
                    root = uint32(find(parents, uint32(0), node))
            if root != node:
                # Other threads that pass this node find the parent or the root, both valid.  Sizes
                # and flags are only added to roots, so no more are added to this node.
                parents[node] = root
                add_size(keys, counts, sizes, uint32(0), root, size)
                sizes[node] = uint32(0)
                if with_origins != uint32(0) and nodes.origins[node] < nodes.origins[root]:
                    cuda.atomic.min(nodes.origins, root, nodes.origins[node])
                if ends[node] != uint32(0):
                    cuda.atomic.or_(ends, root, ends[node])
    cuda.syncthreads()
    flush_slots(keys, counts, sizes, uint32(0), THREADS)


@cuda.jit(cache=True)
def origin_kernel(nodes, interior, blocks):
    """Lower the origin of every root to the smallest origin of its nodes."""
    parents, origins = nodes.parents, nodes.origins
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * nodes.room) + uint32(n))
            root = find(parents, uint32(0), node)
            if origins[node] < origins[root]:
                cuda.atomic.min(origins, root, origins[node])


@cuda.jit(cache=True)
def end_flags_kernel(labels, points, nodes, sites, flags):
    """Set the flags of every end-layer site at its cluster's root."""
    parents, ends = nodes.parents, nodes.ends
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < sites.size:
        node = labels[uint32(uint32(entry * points) + uint32(sites[n]))]
        root = find(parents, uint32(0), node)
        flag = flags[n]
        if uint32(ends[root] & flag) != flag:
            cuda.atomic.or_(ends, root, flag)


@cuda.jit(cache=True)
def partial_nodes_kernel(nodes, interior, tiles, partials, spanning):
    """Reduce an entry's finished clusters and roots to one set of sums for each block.

    The warps of a block are a power of two, up to TILES_PER_BLOCK; each takes one tile at a time.
    """
    columns = cuda.shared.array(COLUMNS, types.int64)
    parents, sizes, ends = nodes.parents, nodes.sizes, nodes.ends
    thread, entry = cuda.threadIdx.x, cuda.blockIdx.y
    warp, lane = thread // LANES, thread % LANES
    sums, spans = _empty(), int64(0)
    warps = cuda.blockDim.x // LANES
    for tile in range(cuda.blockIdx.x * warps + warp, tiles, cuda.gridDim.x * warps):
        block = entry * tiles + tile
        if lane == 0:
            sums = _merged(sums, _take(interior[block], 0, 1))
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * nodes.room) + uint32(n))
            size = int64(sizes[node])
            if parents[node] == node and size > 0:
                sums = _with_cluster(sums, size)
                if ends[node] != uint32(0):
                    spans |= spanning_bits(ends[node])
    if spans != 0:
        cuda.atomic.or_(spanning, entry, uint32(spans))
    sums = reduce_block(columns, THREADS, thread, cuda.blockDim.x, sums)
    if thread == 0:
        _put(partials[entry, cuda.blockIdx.x], 0, 1, sums)


@cuda.jit(cache=True)
def merge_over_periods_kernel(
    labels, points, opened, words_per_entry, forest, crossing, listed, loops
):
    """Join the nodes at the two ends of every listed bond that is open, in one forest of nodes."""
    entry = uint32(cuda.blockIdx.y)
    base, k = uint32(entry * points), uint32(cuda.grid(1))
    while k < listed.counts[entry]:
        n, bit, owner, other = listed_bond(k, entry, listed, crossing)
        if has_bit(opened[uint32(uint32(entry * words_per_entry) + crossing.words[n])], bit):
            one, other = labels[uint32(base + owner)], labels[uint32(base + other)]
            wound = join_over_periods(forest, one, other, crossing.codes[n])
            note_loop(wound, entry, loops)
        k = uint32(k + uint32(cuda.gridsize(1)))
