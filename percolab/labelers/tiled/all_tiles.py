"""CUDA kernels that find the clusters of tiles, and write labels once all clusters are known.

labels: uint32 (entries * points,); opened: uint32, bond words of the entries; starts, first: uint32
(TILE_WORDS,); interior: uint32 (tiles, NODES + 1); kept: uint16.
"""

from numba import int32, types, uint32, uint64

from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.neighbours import has_bit
from percolab.kernels.runs import bits_at
from percolab.kernels.union_find import find
from percolab.labelers.tiled.borders import NODES
from percolab.labelers.tiled.one_tile import (
    BORDER,
    FIELD,
    KEPT_BORDER,
    KEPT_SINGLE,
    LANES,
    PLACE,
    ROOT,
    STRIP_NODES,
    STRIPS,
    TILE_NODES,
    TILE_WORDS,
    TOTALS,
    count_starts,
    entry_field,
    join_tile,
    list_root,
    load_chain,
    number_words,
    run_length,
    table_root,
)
from percolab.labelers.tiled.openings import mark_openings, write_openings
from percolab.labelers.tiled.tallies import TILE_BINS, tally_finished
from percolab.measure.rows_cuda import reduce_block32
from percolab.measure.sums import SUMS32
from percolab.measure.tallies_cuda import clear_bins, flush_bins

_empty, _with_cluster, _put = SUMS32.empty, SUMS32.with_cluster, SUMS32.put


@cuda.jit(device=True)
def word_span(tiles, across, number, word):
    """Return (first grid point, grid points) of a word of a tile; (0, 0) outside the lattice.

    across, number: of the tile along axis 0, and along the others together.
    """
    shape, extents, row = tiles.shape, tiles.extents, uint32(word >> tiles.extents[0])
    column = uint32(uint32(across << extents[0]) + uint32(word - uint32(row << extents[0])))
    x = uint32(column << uint32(5))
    inside, site, stride = x < uint32(shape[0]), x, uint32(shape[0])
    for axis in range(1, len(shape)):
        tile = uint32(number)
        if tiles.counts[axis] != uint32(0):
            number = uint32(tile // tiles.counts[axis])
            tile = uint32(tile - uint32(number * tiles.counts[axis]))
        else:
            number = uint32(0)
        layer = uint32(row >> extents[axis])
        along = uint32(row - uint32(layer << extents[axis]))
        y = uint32(uint32(tile << extents[axis]) + along)
        inside = inside and y < uint32(shape[axis])
        site = uint32(site + uint32(y * stride))
        row, stride = layer, uint32(stride * uint32(shape[axis]))
    if not inside or row != uint32(0):
        return uint32(0), uint32(0)
    return site, uint32(min(uint32(32), uint32(uint32(shape[0]) - x)))


@cuda.jit(device=True)
def tile_place(tiles, site):
    """Return (across, number, place) of a site: its tile, as in :func:`word_span`, and its place.

    place: 32 times the word in the tile, plus the bit.
    """
    shape, extents, left = tiles.shape, tiles.extents, uint32(site // tiles.shape[0])
    x = uint32(site - uint32(left * shape[0]))
    column = uint32(uint32(x >> uint32(5)) >> extents[0])
    place, above = uint32(x - uint32(uint32(column << extents[0]) << uint32(5))), extents[0]
    number, stride = uint32(0), uint32(1)
    for axis in range(1, len(shape)):
        row = uint32(left // shape[axis])
        y = uint32(left - uint32(row * shape[axis]))
        tile = uint32(y >> extents[axis])
        along = uint32(y - uint32(tile << extents[axis]))
        place = uint32(place + uint32(uint32(along << above) << uint32(5)))
        number = uint32(number + uint32(tile * stride))
        left, above = row, uint32(above + extents[axis])
        stride = uint32(stride * tiles.counts[axis])
    return column, number, place


@cuda.jit(device=True)
def block_number():
    """Return the number of this block's tile, counted through all entries."""
    tiles = uint32(cuda.gridDim.x * cuda.gridDim.y)
    number = uint32(uint32(cuda.blockIdx.y * cuda.gridDim.x) + uint32(cuda.blockIdx.x))
    return uint32(uint32(uint32(cuda.blockIdx.z) * tiles) + number)


@cuda.jit(device=True)
def occupied_at(occupied, site, count):
    """Return the occupied sites of a word of a tile, as bits."""
    if count == uint32(0):
        return uint32(0)
    return bits_at(occupied, uint32(0), site, count)


@cuda.jit(device=True)
def _border_at(border, base, site, count):
    """Return the border sites of a word of a tile, as bits; the entry's words begin at ``base``."""
    if count == uint32(0):
        return uint32(0)
    return bits_at(border, base, site, count)


@cuda.jit(device=True)
def _list_places(border, word, slot, begin, places):
    """List a word's border sites as places of the tile, the first at ``slot``.

    ``places`` gets only the part of the list from ``begin`` on, as far as there is room.
    """
    k = uint32(slot - begin)
    while border != uint32(0):
        # Before ``begin``, k wraps around to a number far above the room.
        if k < uint32(places.size):
            places[k] = types.uint16(uint32(uint32(word) << uint32(5)) + uint32(lowest_one(border)))
        border = uint32(border & uint32(border - uint32(1)))
        k = uint32(k + uint32(1))


@cuda.jit(device=True)
def run_at(starts, first, word, bit):
    """Return the number of the run that contains a bit of a word."""
    return uint32(uint32(first[word] + count_starts(starts[word], bit)) - uint32(1))


@cuda.jit(device=True)
def _root_at(table, starts, first, place):
    """Return the root of the cluster at a place of the tile."""
    n = run_at(starts, first, uint32(place >> uint32(5)), uint32(place & uint32(31)))
    return table_root(table, n)


@cuda.jit(device=True)
def _mark_border(table, starts, first, places, end, counter, queue, room):
    """Mark the roots of listed border sites, and list each root when it is first found."""
    k = uint32(cuda.threadIdx.x)
    while k < end:
        root = _root_at(table, starts, first, uint32(places[k]))
        list_root(table, root, counter, queue, room)
        k = uint32(k + uint32(TILE_WORDS))


@cuda.jit(device=True)
def _begin_nodes(table, counter, queue, thread, least, sites, nodes, forest):
    """Create a node for every listed root, in the forest, too, and put its number in the table."""
    number, end = uint32(thread), min(counter[0], nodes.room)
    while number < end:
        root = uint32(queue[number])
        entry = table[root]
        others, place = entry_field(entry), uint32(entry & uint32(PLACE))
        table[root] = uint32(entry ^ uint32(uint32(others ^ number) << uint32(FIELD)))
        node = uint32(least + number)
        if forest.size > 1:
            forest[node] = uint64(node)
        if nodes.sizes.size > 1:
            nodes.parents[node] = node
            nodes.sizes[node] = uint32(others + run_length(entry))
            nodes.ends[node] = uint32(0)
            nodes.origins[node] = uint32(sites[place >> uint32(5)] + uint32(place & uint32(31)))
        number = uint32(number + uint32(TILE_WORDS))


@cuda.jit(device=True)
def _sum_finished(table, start, runs, lane):
    """Return the sums over the clusters without border sites, uint32 each."""
    sums = _empty()
    n, end = uint32(start + lane), uint32(start + runs)
    while n < end:
        entry = table[n]
        if uint32(entry & uint32(ROOT | BORDER)) == uint32(ROOT):
            sums = _with_cluster(sums, uint32(entry_field(entry) + run_length(entry)))
        n = uint32(n + uint32(LANES))
    return sums


@cuda.jit(device=True)
def _write_nodes(table, starts, first, places, end, sites, start, least, room, labels):
    """Write the nodes of listed border sites into ``labels``, where adjacent tiles look them up."""
    k = uint32(cuda.threadIdx.x)
    while k < end:
        place = uint32(places[k])
        root = _root_at(table, starts, first, place)
        site = uint32(sites[uint32(place >> uint32(5))] + uint32(place & uint32(31)))
        # A root for which there was no room has no number; then the whole batch is done again.
        node = min(entry_field(table[root]), uint32(room - uint32(1)))
        labels[uint32(start + site)] = uint32(least + node)
        k = uint32(k + uint32(TILE_WORDS))


@cuda.jit(device=True)
def _keep_runs(table, totals, block, kept):
    """Store, for every run, its cluster's node with KEPT_BORDER, or the cluster's first place.

    The place of a cluster of one site is stored with KEPT_SINGLE.
    """
    base = uint64(uint64(block) * uint64(TILE_NODES))
    for strip in range(STRIPS):
        n = uint32(strip * STRIP_NODES + cuda.threadIdx.x)
        end = uint32(uint32(strip * STRIP_NODES) + totals[strip])
        while n < end:
            entry = table[table_root(table, n)]
            code = uint32(entry & uint32(PLACE))
            if uint32(entry & uint32(BORDER)) != uint32(0):
                code = uint32(uint32(KEPT_BORDER) | entry_field(entry))
            elif uint32(entry_field(entry) + run_length(entry)) == uint32(1):
                code = uint32(code | uint32(KEPT_SINGLE))
            kept[uint64(base + uint64(n))] = types.uint16(code)
            n = uint32(n + uint32(TILE_WORDS))


@cuda.jit(cache=True)
def tile_kernel(
    tiles, opened, border_words, listed, labels, nodes, interior, spanning, openings, kept,
    tallies, forest, first_loops,
):  # fmt: skip
    """Find the clusters of every tile of every entry, and make a node of each one at its border.

    One block of TILE_WORDS threads per tile; grid axis 0 counts tiles along axis 0 of the lattice,
    axis 1 the others, axis 2 entries.  tiles, nodes, openings, tallies: records.  border_words:
    uint32, one bit per site of every entry.  listed: bonds that a strip can list.  kept: if it has
    room, it gets, for every run, TILE_NODES a tile, the data from which :func:`label_tile_kernel`
    finds its label.  tallies: if they have room, finished clusters are added.  forest, first_loops:
    as in :mod:`percolab.measure.wrapping_cuda`; if it has room, the forest gets the nodes, too.
    """
    table = cuda.shared.array(TILE_NODES, types.uint32)
    starts = cuda.shared.array(TILE_WORDS, types.uint32)
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    sites = cuda.shared.array(TILE_WORDS, types.uint32)
    counter = cuda.shared.array(3, types.uint32)
    totals = cuda.shared.array(TOTALS, types.uint32)
    links = cuda.shared.array(0, types.uint32)
    queue = links[2 * len(tiles.classes) * TILE_WORDS :]
    room = nodes.room
    word, entry = cuda.threadIdx.x, uint32(cuda.blockIdx.z)
    site, count = word_span(tiles, uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y), uint32(word))
    occupied = occupied_at(tiles.occupied, site, count)
    border = _border_at(border_words, uint32(entry * tiles.num_words), site, count)
    sites[word] = site
    if word == 0:
        counter[0], counter[1], counter[2] = uint32(0), uint32(0), uint32(0)
        # All tiles of an entry write the same value.
        spanning[entry] = uint32(0)
        first_loops[entry] = int32(0)
    base = uint32(entry * tiles.words_per_entry)
    place = (site, count, occupied)
    with_sizes = nodes.sizes.size > 1
    runs = join_tile(
        table, starts, first, totals, links, queue, listed, tiles, opened, base, place,
        with_sizes,
    )  # fmt: skip
    start, lane = uint32((word // LANES) * STRIP_NODES), uint32(word % LANES)
    # The bonds are no longer needed; their memory is used for the border.
    places = cuda.shared.array(0, types.uint16)[: 4 * len(tiles.classes) * TILE_WORDS]
    slot = cuda.atomic.add(counter, 2, uint32(popcount(border)))
    cuda.syncthreads()
    total, begin = counter[2], uint32(0)
    while begin < total:
        _list_places(border, uint32(word), slot, begin, places)
        cuda.syncthreads()
        end = min(uint32(total - begin), uint32(places.size))
        _mark_border(table, starts, first, places, end, counter, queue, room)
        cuda.syncthreads()
        begin = uint32(begin + uint32(places.size))
    if openings.room != uint32(0):
        mark_openings(
            table, starts, first, tiles, opened, base, place, openings, counter, queue, room
        )
    cuda.syncthreads()
    sums = _empty()
    if with_sizes:
        sums = _sum_finished(table, start, runs, lane)
    cuda.syncthreads()
    block = block_number()
    least = uint32(block * room)
    _begin_nodes(table, counter, queue, word, least, sites, nodes, forest)
    cuda.syncthreads()
    if kept.size > 1:
        _keep_runs(table, totals, block, kept)
    start_of_labels, begin = uint32(entry * tiles.points), uint32(0)
    while begin < total:
        if total > uint32(places.size):
            # The list was too short: fill it again with the next part.
            cuda.syncthreads()
            _list_places(border, uint32(word), slot, begin, places)
            cuda.syncthreads()
        end = min(uint32(total - begin), uint32(places.size))
        _write_nodes(table, starts, first, places, end, sites, start_of_labels, least, room, labels)
        begin = uint32(begin + uint32(places.size))
    if openings.room != uint32(0):
        write_openings(
            table, starts, first, tiles, opened, base, place, openings, counter, block, room
        )
    cuda.syncthreads()
    if tallies.counts.size > 1:
        # The links are no longer needed either; their memory is used for the bins.
        to = uint64(uint64(entry) * uint64(tallies.width))
        clear_bins(links, TILE_BINS, TILE_WORDS)
        cuda.syncthreads()
        tally_finished(table, start, runs, lane, links, tallies.counts, to)
        cuda.syncthreads()
        flush_bins(links, TILE_BINS, tallies.counts, to, TILE_WORDS)
    # The table is no longer needed; its memory is used for the last sums.
    if with_sizes:
        sums = reduce_block32(table, TILE_WORDS, word, TILE_WORDS, sums)
    if word == 0:
        _put(interior[block], 0, 1, sums)
        interior[block, NODES] = min(counter[0], room)
        if openings.room != uint32(0):
            openings.counts[block] = counter[1]
            if counter[0] > room:
                openings.overflow[0] = uint32(1)


@cuda.jit(device=True)
def _label_runs(table, totals, sites, known, block, kept):
    """Write the label of every run into the table."""
    base = uint64(uint64(block) * uint64(TILE_NODES))
    for strip in range(STRIPS):
        n = uint32(strip * STRIP_NODES + cuda.threadIdx.x)
        end = uint32(uint32(strip * STRIP_NODES) + totals[strip])
        while n < end:
            code = uint32(kept[uint64(base + uint64(n))])
            if code >= uint32(KEPT_BORDER):
                table[n] = known[uint32(code ^ uint32(KEPT_BORDER))]
            else:
                code = uint32(code & uint32(PLACE))
                table[n] = uint32(sites[code >> uint32(5)] + uint32(code & uint32(31)))
            n = uint32(n + uint32(TILE_WORDS))


@cuda.jit(cache=True)
def label_tile_kernel(tiles, opened, labels, nodes, interior, kept):
    """Write the label of every site, from the data that :func:`tile_kernel` stored for every run.

    Arguments as for that kernel; origins must have been gathered after it.
    """
    table = cuda.shared.array(TILE_NODES, types.uint32)
    starts = cuda.shared.array(TILE_WORDS, types.uint32)
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    sites = cuda.shared.array(TILE_WORDS, types.uint32)
    filled = cuda.shared.array(TILE_WORDS, types.uint32)
    totals = cuda.shared.array(STRIPS, types.uint32)
    known = cuda.shared.array(0, types.uint32)
    word, entry = cuda.threadIdx.x, uint32(cuda.blockIdx.z)
    site, count = word_span(tiles, uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y), uint32(word))
    occupied = occupied_at(tiles.occupied, site, count)
    joined = load_chain(tiles, opened, uint32(entry * tiles.words_per_entry), site, count)
    begins = uint32(uint32(uint32(~joined) | uint32(1)) & occupied)
    strip, lane = word // LANES, word % LANES
    before, whole = number_words(first, uint32(popcount(begins)), strip, lane, word)
    first[word] = uint32(uint32(strip * STRIP_NODES) + before)
    starts[word], sites[word], filled[word] = begins, site, occupied
    if lane == 0:
        totals[strip] = whole
    block = block_number()
    least = uint32(block * nodes.room)
    for n in range(word, interior[block, NODES], TILE_WORDS):
        root = find(nodes.parents, uint32(0), uint32(least + uint32(n)))
        known[n] = nodes.origins[root]
    cuda.syncthreads()
    _label_runs(table, totals, sites, known, block, kept)
    cuda.syncthreads()
    base = uint32(entry * tiles.points)
    for row in range(strip * LANES, strip * LANES + LANES):
        for bit in range(lane, 32, LANES):
            if has_bit(filled[row], bit):
                place = uint32(uint32(base + sites[row]) + uint32(bit))
                labels[place] = table[run_at(starts, first, row, uint32(bit))]


@cuda.jit(cache=True)
def label_vacant_kernel(labels, points, occupied):
    """Label the vacant grid points of every entry with their own index: one thread per word."""
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < occupied.size:
        left = uint32(~occupied[n])
        while left != uint32(0):
            site = uint32(uint32(n << uint32(5)) + uint32(lowest_one(left)))
            left = uint32(left & uint32(left - uint32(1)))
            if site < points:
                labels[uint32(uint32(entry * points) + site)] = site
