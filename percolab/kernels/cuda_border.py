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
from percolab.kernels.bits import popcount, trailing_zeros
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
from percolab.kernels.cuda_tile import (
    BORDER,
    FIELD,
    LANES,
    PLACE,
    QUEUE,
    ROOT,
    STRIP_NODES,
    STRIPS,
    TILE_NODES,
    TILE_WORDS,
    field_of,
    join_tile,
    run_at,
    table_root,
)
from percolab.kernels.runs import bits_at, run_from
from percolab.kernels.union_find import find, union

cuda = load_cuda()

_QUEUED = STRIPS * QUEUE
_PENDING = STRIPS + 1
#: Tiles whose nodes one block of threads goes through.
TILES_PER_BLOCK = THREADS // LANES
CLUSTERS, SQUARES, LARGEST, SECOND, NODES = range(5)


@cuda.jit(device=True)
def _place_of_word(shape, tile, tiles, number, word):
    """Return (first grid point, grid points) of a word of a tile; (0, 0) outside the lattice."""
    wide, high = uint32(tile[0]), uint32(tile[1])
    across, down = uint32(tiles[0]), uint32(tiles[1])
    row = uint32(word // wide)
    x = uint32(uint32(uint32(uint32(number % across) * wide) + uint32(word % wide)) << uint32(5))
    y = uint32(uint32(uint32(uint32(number // across) % down) * high) + uint32(row % high))
    layer = uint32(row // high)
    z = uint32(uint32(uint32(number // uint32(across * down)) * uint32(tile[2])) + layer)
    inside = x < uint32(shape[0]) and y < uint32(shape[1]) and z < uint32(shape[2])
    if not inside or layer >= uint32(tile[2]):
        return uint32(0), uint32(0)
    above = uint32(uint32(z * uint32(shape[1])) + y)
    site = uint32(uint32(above * uint32(shape[0])) + x)
    return site, uint32(min(uint32(32), uint32(uint32(shape[0]) - x)))


@cuda.jit(device=True)
def _word_and_run(starts, entry):
    """Return the word of a table entry and the mask of its run there."""
    word = uint32(uint32(entry & uint32(PLACE)) >> uint32(5))
    return word, run_from(starts[word], uint32(entry & uint32(31)))


@cuda.jit(device=True)
def _point_to(table, n, entry, root):
    """Point a run that is no root straight to its root."""
    if root != n:
        table[n] = uint32(uint32(root << uint32(FIELD)) | uint32(entry & uint32(PLACE)))


@cuda.jit(device=True)
def _size_runs(table, starts, occupied, border, start, runs, lane):
    """Add every run to the size of its root; mark the roots that have a border site."""
    for step in range(lane, runs, LANES):
        n = uint32(start + step)
        entry = table[n]
        word, mask = _word_and_run(starts, entry)
        root = table_root(table, n)
        size = uint32(popcount(uint32(occupied[word] & mask)))
        cuda.atomic.add(table, root, uint32(size << uint32(FIELD)))
        if uint32(border[word] & mask) != uint32(0):
            cuda.atomic.or_(table, root, uint32(BORDER))
        _point_to(table, n, entry, root)


@cuda.jit(device=True)
def _new_node(table, root, entry, counter, least, sites, nodes):
    """Make a border cluster a node, and leave its number within the tile in the table."""
    parents, sizes, ends, origins = nodes
    number = cuda.atomic.add(counter, 0, uint32(1))
    place = uint32(entry & uint32(PLACE))
    table[root] = uint32(uint32(uint32(ROOT) | uint32(number << uint32(FIELD))) | place)
    node = uint32(least + number)
    parents[node] = node
    sizes[node] = field_of(entry)
    ends[node] = uint32(0)
    origins[node] = uint32(sites[place >> uint32(5)] + uint32(place & uint32(31)))


@cuda.jit(device=True)
def _write_nodes(table, starts, border, sites, start, runs, lane, base, least, labels):
    """Write the node of every border site where the tiles around look for it."""
    for step in range(lane, runs, LANES):
        n = uint32(start + step)
        entry = table[n]
        word, mask = _word_and_run(starts, entry)
        left = uint32(border[word] & mask)
        if left != uint32(0):
            if entry < uint32(ROOT):
                entry = table[field_of(entry)]
            node = uint32(least + field_of(entry))
            site = uint32(base + sites[word])
            while left != uint32(0):
                labels[uint32(site + uint32(trailing_zeros(left)))] = node
                left = uint32(left & uint32(left - uint32(1)))


@cuda.jit(cache=True)
def tile_kernel(
    bonds, sizes_of, lattice, geometry, masks, room, labels, nodes, interior, spanning
):
    """Find the clusters of every tile of every item, and make those at its border nodes.

    One block of TILE_WORDS threads a tile; the second grid axis counts items.  bonds: (opened,
    inner, chain).  sizes_of: (words of a class, words of an item, sites).  lattice: (classes,
    shifts, rows, reach) and geometry: (shape, tile, tiles) of :class:`Tiling`.  masks: (occupied,
    border).  nodes: (parents, sizes, ends, origins).
    """
    table = cuda.shared.array(TILE_NODES, types.uint32)
    starts = cuda.shared.array(TILE_WORDS, types.uint32)
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    occupied = cuda.shared.array(TILE_WORDS, types.uint32)
    border = cuda.shared.array(TILE_WORDS, types.uint32)
    sites = cuda.shared.array(TILE_WORDS, types.uint32)
    queue = cuda.shared.array(_QUEUED, types.uint32)
    pending = cuda.shared.array(_PENDING, types.uint32)
    counter = cuda.shared.array(1, types.uint32)
    links = cuda.shared.array(0, types.uint32)
    num_words, words_per_item, points = sizes_of
    word, number, item = cuda.threadIdx.x, uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y)
    site, count = _place_of_word(geometry[0], geometry[1], geometry[2], number, uint32(word))
    sites[word] = site
    occupied[word] = uint32(0)
    border[word] = uint32(0)
    if count > uint32(0):
        occupied[word] = bits_at(masks[0], uint32(0), site, count)
        border[word] = bits_at(masks[1], uint32(0), site, count)
    if word == 0:
        counter[0] = uint32(0)
        if number == uint32(0):
            spanning[item] = uint32(0)
    ours = (bonds[0], uint32(item * words_per_item), bonds[1], bonds[2])
    runs = join_tile(
        table, starts, first, links, queue, pending, ours, num_words, lattice, site, count
    )
    start, lane = (word // LANES) * STRIP_NODES, word % LANES
    _size_runs(table, starts, occupied, border, start, runs, lane)
    cuda.syncthreads()
    block = uint32(uint32(item * uint32(cuda.gridDim.x)) + number)
    least = uint32(block * room)
    clusters, squares, largest, second = uint32(0), uint32(0), uint32(0), uint32(0)
    for step in range(lane, runs, LANES):
        n = uint32(start + step)
        entry = table[n]
        if entry >= uint32(ROOT):
            size = field_of(entry)
            if uint32(entry & uint32(BORDER)) != uint32(0):
                _new_node(table, n, entry, counter, least, sites, nodes)
            elif size != uint32(0):
                clusters = uint32(clusters + uint32(1))
                squares = uint32(squares + uint32(size * size))
                second = max(second, min(largest, size))
                largest = max(largest, size)
    cuda.syncthreads()
    base = uint32(item * points)
    _write_nodes(table, starts, border, sites, start, runs, lane, base, least, labels)
    cuda.syncthreads()
    # The table has done its work; its memory serves the last sums.
    counts, totals = table[:TILE_WORDS], table[TILE_WORDS : 2 * TILE_WORDS]
    tops, lows = table[2 * TILE_WORDS : 3 * TILE_WORDS], table[3 * TILE_WORDS :]
    counts[word], totals[word] = clusters, squares
    tops[word], lows[word] = largest, second
    reduce_block(counts, totals, tops, lows, word, TILE_WORDS)
    if word == 0:
        interior[block, CLUSTERS], interior[block, SQUARES] = counts[0], totals[0]
        interior[block, LARGEST], interior[block, SECOND] = tops[0], lows[0]
        interior[block, NODES] = counter[0]


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
def gather_kernel(parents, sizes, interior, room):
    """Add the size of every node that was joined to another to the size of its root."""
    keys = cuda.shared.array(SLOTS, types.uint32)
    counts = cuda.shared.array(SLOTS, types.uint32)
    clear_slots(keys, counts, THREADS)
    cuda.syncthreads()
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < interior.shape[0]:
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * room) + uint32(n))
            root = find(parents, uint32(0), node)
            if root != node:
                add_size(keys, counts, sizes, uint32(0), root, sizes[node])
    cuda.syncthreads()
    flush_slots(keys, counts, sizes, uint32(0), THREADS)


@cuda.jit(cache=True)
def origin_kernel(parents, origins, interior, room):
    """Lower the origin of every root to the smallest of its nodes'."""
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < interior.shape[0]:
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
    """Reduce an item's finished clusters and roots to one tuple a block, as for any row."""
    clusters = cuda.shared.array(THREADS, types.int64)
    squares = cuda.shared.array(THREADS, types.int64)
    largest = cuda.shared.array(THREADS, types.int64)
    second = cuda.shared.array(THREADS, types.int64)
    parents, sizes, ends, _ = nodes
    thread, item = cuda.threadIdx.x, cuda.blockIdx.y
    warp, lane = thread // LANES, thread % LANES
    count, total, top, low = int64(0), int64(0), int64(0), int64(0)
    spans = int64(0)
    step = cuda.gridDim.x * TILES_PER_BLOCK
    for tile in range(cuda.blockIdx.x * TILES_PER_BLOCK + warp, tiles, step):
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
    reduce_block(clusters, squares, largest, second, thread, THREADS)
    if thread == 0:
        write_partial(clusters, squares, largest, second, partials, item, cuda.blockIdx.x)


@cuda.jit(device=True)
def _look_up_nodes(table, starts, border, sites, known, start, runs, lane, base, least, found):
    """Point runs to their roots, and find the label of every root that is a node."""
    labels, parents, origins = found
    for step in range(lane, runs, LANES):
        n = uint32(start + step)
        entry = table[n]
        word, mask = _word_and_run(starts, entry)
        root = table_root(table, n)
        left = uint32(border[word] & mask)
        if left != uint32(0):
            site = uint32(sites[word] + uint32(trailing_zeros(left)))
            node = labels[uint32(base + site)]
            number = uint32(node - least)
            known[number] = origins[find(parents, uint32(0), node)]
            place = uint32(table[root] & uint32(PLACE))
            # All runs of a cluster write the same.
            table[root] = uint32(
                uint32(uint32(ROOT) | uint32(BORDER))
                | uint32(uint32(number << uint32(FIELD)) | place)
            )
        _point_to(table, n, entry, root)


@cuda.jit(cache=True)
def label_tile_kernel(bonds, sizes_of, lattice, geometry, masks, room, labels, nodes):
    """Find the clusters of every tile again and write the label of every site.

    Arguments as for :func:`tile_kernel`, after which origins must have been gathered.
    """
    table = cuda.shared.array(TILE_NODES, types.uint32)
    starts = cuda.shared.array(TILE_WORDS, types.uint32)
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    counts = cuda.shared.array(TILE_WORDS, types.uint32)
    border = cuda.shared.array(TILE_WORDS, types.uint32)
    sites = cuda.shared.array(TILE_WORDS, types.uint32)
    queue = cuda.shared.array(_QUEUED, types.uint32)
    pending = cuda.shared.array(_PENDING, types.uint32)
    links = cuda.shared.array(0, types.uint32)
    known = links[(len(lattice[0]) + 1) * TILE_WORDS :]
    num_words, words_per_item, points = sizes_of
    word, number, item = cuda.threadIdx.x, uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y)
    site, count = _place_of_word(geometry[0], geometry[1], geometry[2], number, uint32(word))
    sites[word], counts[word] = site, count
    border[word] = uint32(0)
    if count > uint32(0):
        border[word] = bits_at(masks[1], uint32(0), site, count)
    ours = (bonds[0], uint32(item * words_per_item), bonds[1], bonds[2])
    runs = join_tile(
        table, starts, first, links, queue, pending, ours, num_words, lattice, site, count
    )
    start, lane = (word // LANES) * STRIP_NODES, word % LANES
    base = uint32(item * points)
    least = uint32(uint32(uint32(item * uint32(cuda.gridDim.x)) + number) * room)
    found = (labels, nodes[0], nodes[3])
    _look_up_nodes(
        table, starts, border, sites, known, start, runs, lane, base, least, found
    )
    cuda.syncthreads()
    for row in range(word - lane, word - lane + LANES):
        for bit in range(lane, counts[row], LANES):
            entry = table[run_at(starts, first, uint32(row), uint32(bit))]
            if entry < uint32(ROOT):
                entry = table[field_of(entry)]
            if uint32(entry & uint32(BORDER)) != uint32(0):
                label = known[field_of(entry)]
            else:
                place = uint32(entry & uint32(PLACE))
                label = uint32(sites[place >> uint32(5)] + uint32(place & uint32(31)))
            labels[uint32(uint32(base + sites[row]) + uint32(bit))] = label
