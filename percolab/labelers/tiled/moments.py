"""CUDA: radii of the clusters of tiles, as defined in :mod:`percolab.measure.radii`.

Every tile computes the moments of its clusters in shared memory: the number of sites, the sum of
their coordinates, and the sum of the coordinates' squares.  A finished cluster is added to the bins
of its sample at once.  Every node keeps its moments; once all nodes are joined, these are shifted
by periods and added to the root's.  All numbers are integers, so the order does not matter.

kept: data of every run from the tile kernel.  moments: uint64, SCALARS + axes numbers a node, as in
:func:`percolab.measure.radii.read_spread`, relative to the lattice's first site.
bins: uint64 (entries * width,), PER_BIN numbers a bin.  places: int32 (axes, grid points).
"""

from numba import int32, int64, types, uint32, uint64

from percolab.kernels.bits import popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.neighbours import has_bit
from percolab.kernels.runs import bits_at
from percolab.labelers.tiled.all_tiles import block_number, occupied_at, run_at, word_span
from percolab.labelers.tiled.borders import NODES, TILES_PER_BLOCK, listed_bond
from percolab.labelers.tiled.one_tile import (
    KEPT_BORDER,
    KEPT_SINGLE,
    LANES,
    PLACE,
    STRIP_NODES,
    STRIPS,
    TILE_NODES,
    TILE_WORDS,
    load_chain,
    number_words,
)
from percolab.measure.radii import OUT, PER_BIN, SCALARS, add_pair, has_end, less_square
from percolab.measure.radii_cuda import add_spread
from percolab.measure.tallies import negative, num_bins, product, size_bin
from percolab.measure.tallies_cuda import add_wide
from percolab.measure.wrapping import periods_to, read_parent
from percolab.measure.wrapping_cuda import periods_along

#: 32-bit words of a slot: sites, two halves of the sum of squares; every axis adds two words.
WORDS = 3
#: How many numbers the bins of a tile's finished clusters have.
_TILE_NUMBERS = PER_BIN * num_bins(TILE_NODES)
# The bit that marks a run that is not a root; lower bits number the run that is its root.
_FOLLOWS = 1 << 31
#: The slot number of vacant sites, and of finished clusters of one site.
_NO_SLOT = (1 << 31) - 1


@cuda.jit(device=True)
def _half(slot, axis, slots):
    """Return the index of the lower half of a slot's sum of coordinates along an axis."""
    return uint32(slot + uint32(uint32(WORDS + 2 * axis) * slots))


@cuda.jit(device=True)
def _add_halves(sums, slots, at, value):
    """Add a uint64, modulo 2^64, to its halves in ``sums[at]`` and ``sums[at + slots]``."""
    low, high = uint32(value & uint64(0xFFFFFFFF)), uint32(value >> uint64(32))
    if low != uint32(0):
        old = uint32(cuda.atomic.add(sums, at, low))
        if uint32(old + low) < low:
            high = uint32(high + uint32(1))
    if high != uint32(0):
        cuda.atomic.add(sums, uint32(at + slots), high)


@cuda.jit(device=True)
def _read_halves(sums, slots, at):
    """Return the uint64 whose halves are at ``at`` and ``at + slots``."""
    return uint64(uint64(uint64(sums[uint32(at + slots)]) << uint64(32)) | sums[at])


@cuda.jit(device=True)
def _number_clusters(table, starts, first, filled, totals, block, kept, counter):
    """Write the slot of each run's cluster into the table; return this thread's single sites.

    Nodes have their own numbers as slots, and finished clusters the numbers after these.  Vacant
    sites and clusters of one site have no slot; the latter are counted.
    """
    singles = uint32(0)
    base = uint64(uint64(block) * uint64(TILE_NODES))
    for strip in range(STRIPS):
        n = uint32(strip * STRIP_NODES + cuda.threadIdx.x)
        end = uint32(uint32(strip * STRIP_NODES) + totals[strip])
        while n < end:
            known = uint32(kept[uint64(base + uint64(n))])
            if known >= uint32(KEPT_BORDER):
                table[n] = uint32(known ^ uint32(KEPT_BORDER))
            else:
                place = uint32(known & uint32(PLACE))
                word, bit = uint32(place >> uint32(5)), uint32(place & uint32(31))
                if uint32(known & uint32(KEPT_SINGLE)) != uint32(0):
                    table[n] = uint32(_NO_SLOT)
                    if has_bit(filled[word], bit):
                        singles = uint32(singles + uint32(1))
                else:
                    root = run_at(starts, first, word, bit)
                    if root != n:
                        table[n] = uint32(uint32(_FOLLOWS) | root)
                    else:
                        table[n] = cuda.atomic.add(counter, 0, uint32(1))
            n = uint32(n + uint32(TILE_WORDS))
    cuda.syncthreads()
    for strip in range(STRIPS):
        n = uint32(strip * STRIP_NODES + cuda.threadIdx.x)
        end = uint32(uint32(strip * STRIP_NODES) + totals[strip])
        while n < end:
            if table[n] >= uint32(_FOLLOWS):
                table[n] = table[uint32(table[n] ^ uint32(_FOLLOWS))]
            n = uint32(n + uint32(TILE_WORDS))
    return singles


@cuda.jit(device=True)
def _add_places(table, starts, first, filled, sites, begin, slots, places, sums):
    """Add the coordinates of a strip's sites, from the tile's first, to slots from ``begin`` on.

    Atomics of lanes on the same slot are serialized, but first summing over neighbouring lanes, by
    shuffles, took longer.
    """
    strip, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    for row in range(strip * LANES, strip * LANES + LANES):
        for bit in range(lane, 32, LANES):
            if has_bit(filled[row], bit):
                slot = uint32(table[run_at(starts, first, row, uint32(bit))] - begin)
                if slot < slots:
                    site, square = uint32(sites[row] + uint32(bit)), uint64(0)
                    cuda.atomic.add(sums, slot, uint32(1))
                    for axis in range(places.shape[0]):
                        step = int64(int64(places[axis, site]) - int64(places[axis, sites[0]]))
                        square = uint64(square + uint64(step * step))
                        _add_halves(sums, slots, _half(slot, axis, slots), uint64(step))
                    _add_halves(sums, slots, uint32(slot + slots), square)


@cuda.jit(device=True)
def _add_finished(sums, slots, slot, axes, bins):
    """Add the cluster of a slot to the tile's bins."""
    size = uint64(sums[slot])
    to = uint32(uint32(PER_BIN) * uint32(size_bin(size)))
    cuda.atomic.add(bins, to, uint64(size * size))
    low, high = product(size, _read_halves(sums, slots, uint32(slot + slots)))
    for axis in range(axes):
        step = _read_halves(sums, slots, _half(slot, axis, slots))
        low, high = less_square(low, high, step)
    if low != uint64(0) or high != uint64(0):
        add_wide(bins, uint32(to + uint32(1)), low, high)


@cuda.jit(device=True)
def _moved_square(low, high, shift, steps):
    """Return (low, high) plus ``shift * steps``, int64 each, modulo 2^128.

    This uses sum (x + b)^2 = sum x^2 + b (sum x + sum (x + b)).
    """
    less, most = product(uint64(abs(shift)), uint64(abs(steps)))
    if (shift < int64(0)) != (steps < int64(0)):
        less, most = negative(less, most)
    return add_pair(low, high, less, most)


@cuda.jit(device=True)
def _write_moments(sums, slots, slot, places, start, moments, at):
    """Write the moments of a slot's node, relative to the lattice's first site."""
    size = int64(sums[slot])
    low, high = _read_halves(sums, slots, uint32(slot + slots)), uint64(0)
    for axis in range(places.shape[0]):
        step = int64(_read_halves(sums, slots, _half(slot, axis, slots)))
        shift = int64(places[axis, start])
        moved = int64(step + int64(size * shift))
        low, high = _moved_square(low, high, shift, int64(step + moved))
        moments[uint64(at + uint64(SCALARS + axis))] = uint64(moved)
    moments[at] = uint64(size)
    moments[uint64(at + uint64(1))] = uint64(low & uint64(0xFFFFFFFF))
    moments[uint64(at + uint64(2))] = _upper(low, high)


@cuda.jit(device=True)
def _upper(low, high):
    """Return bits 32 to 95 of a number of 128 bits."""
    return uint64(uint64(low >> uint64(32)) | uint64(high << uint64(32)))


@cuda.jit(cache=True)
def tile_moments_kernel(
    tiles,
    opened,
    drawn,
    drawn_words,
    nodes,
    interior,
    kept,
    slots,
    places,
    moments,
    width,
    all_bins,
):  # fmt: skip
    """Compute the moments of every tile's clusters; add the finished clusters to ``all_bins``.

    drawn: uint32, the occupied sites, ``drawn_words`` words an entry.  slots: uint32, the number of
    clusters for which there is room at a time.  all_bins: uint64, the bins.
    One block of TILE_WORDS threads per tile, on the grid of the tile kernel.
    """
    table = cuda.shared.array(TILE_NODES, types.uint32)
    starts = cuda.shared.array(TILE_WORDS, types.uint32)
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    sites = cuda.shared.array(TILE_WORDS, types.uint32)
    filled = cuda.shared.array(TILE_WORDS, types.uint32)
    bins = cuda.shared.array(_TILE_NUMBERS, types.uint64)
    totals = cuda.shared.array(STRIPS, types.uint32)
    counter = cuda.shared.array(1, types.uint32)
    sums = cuda.shared.array(0, types.uint32)
    word, entry = cuda.threadIdx.x, uint32(cuda.blockIdx.z)
    site, count = word_span(tiles, uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y), uint32(word))
    joined = load_chain(tiles, opened, uint32(entry * tiles.words_per_entry), site, count)
    there = occupied_at(tiles.occupied, site, count)
    begins = uint32(uint32(uint32(~joined) | uint32(1)) & there)
    strip, lane = word // LANES, word % LANES
    before, whole = number_words(first, uint32(popcount(begins)), strip, lane, word)
    first[word] = uint32(uint32(strip * STRIP_NODES) + before)
    starts[word], sites[word] = begins, site
    if count != uint32(0):
        there = uint32(there & bits_at(drawn, uint32(entry * drawn_words), site, count))
    filled[word] = there
    if lane == 0:
        totals[strip] = whole
    block = block_number()
    num_nodes = interior[block, NODES]
    if word == 0:
        counter[0] = num_nodes
    for n in range(word, _TILE_NUMBERS, TILE_WORDS):
        bins[n] = uint64(0)
    cuda.syncthreads()
    singles = _number_clusters(table, starts, first, filled, totals, block, kept, counter)
    if singles != uint32(0):
        # For a cluster of one site, s^2 is 1 and the spread is 0.
        cuda.atomic.add(bins, 0, uint64(singles))
    cuda.syncthreads()
    axes, begin, total = places.shape[0], uint32(0), counter[0]
    numbers = uint64(SCALARS + axes)
    while begin < total:
        for n in range(word, (WORDS + 2 * axes) * int64(slots), TILE_WORDS):
            sums[n] = uint32(0)
        cuda.syncthreads()
        _add_places(table, starts, first, filled, sites, begin, slots, places, sums)
        cuda.syncthreads()
        for n in range(word, min(slots, uint32(total - begin)), TILE_WORDS):
            slot = uint32(begin + uint32(n))
            if slot < num_nodes:
                at = uint64(uint64(uint64(block) * uint64(nodes.room)) + uint64(slot))
                at = uint64(at * numbers)
                _write_moments(sums, slots, uint32(n), places, sites[0], moments, at)
            else:
                _add_finished(sums, slots, uint32(n), axes, bins)
        begin = uint32(begin + slots)
        cuda.syncthreads()
    base = uint64(uint64(entry) * uint64(width))
    for n in range(PER_BIN * word, _TILE_NUMBERS, PER_BIN * TILE_WORDS):
        if bins[n] != uint64(0):
            cuda.atomic.add(all_bins, uint64(base + uint64(n)), bins[n])
            if bins[n + 1] != uint64(0) or bins[n + 2] != uint64(0):
                add_wide(all_bins, uint64(base + uint64(n + 1)), bins[n + 1], bins[n + 2])


@cuda.jit(cache=True)
def mark_winding_kernel(labels, points, opened, words_per_entry, nodes, forest, crossing, listed):
    """Mark the roots of clusters that wrap, once every node of ``forest`` points to its root."""
    entry = uint32(cuda.blockIdx.y)
    base, k = uint32(entry * points), uint32(cuda.grid(1))
    while k < listed.counts[entry]:
        n, bit, owner, other = listed_bond(k, entry, listed, crossing)
        if has_bit(opened[uint32(uint32(entry * words_per_entry) + crossing.words[n])], bit):
            one = forest[labels[uint32(base + owner)]]
            two = forest[labels[uint32(base + other)]]
            if int32(periods_to(one) + crossing.codes[n]) != periods_to(two):
                cuda.atomic.or_(nodes.ends, read_parent(one), uint32(OUT))
        k = uint32(k + uint32(cuda.gridsize(1)))


@cuda.jit(cache=True)
def root_moments_kernel(nodes, interior, blocks, forest, geometry, moments):
    """Add the moments of every node below a root to those of the root.

    geometry: (places, spans int64 (period, axis), bits an axis has in a code of periods).
    """
    places, spans, code_width = geometry
    axes = places.shape[0]
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * nodes.room) + uint32(n))
            root = nodes.parents[node]
            own = uint64(uint64(node) * uint64(SCALARS + axes))
            size = moments[own]
            if root != node and size != uint64(0) and has_end(nodes.ends[root]):
                at = uint64(uint64(root) * uint64(SCALARS + axes))
                upper = moments[uint64(own + uint64(2))]
                low = uint64(uint64(upper << uint64(32)) | moments[uint64(own + uint64(1))])
                high = uint64(upper >> uint64(32))
                for axis in range(axes):
                    step = int64(moments[uint64(own + uint64(SCALARS + axis))])
                    moved = step
                    if forest.size > 1:
                        code, shift = periods_to(forest[node]), int64(0)
                        for period in range(spans.shape[0]):
                            turns = int64(periods_along(code, period, code_width))
                            shift = int64(shift + int64(turns * spans[period, axis]))
                        moved = int64(step + int64(int64(size) * shift))
                        low, high = _moved_square(low, high, shift, int64(step + moved))
                    cuda.atomic.add(moments, uint64(at + uint64(SCALARS + axis)), uint64(moved))
                cuda.atomic.add(moments, at, size)
                cuda.atomic.add(moments, uint64(at + uint64(1)), uint64(low & uint64(0xFFFFFFFF)))
                cuda.atomic.add(moments, uint64(at + uint64(2)), _upper(low, high))


@cuda.jit(cache=True)
def root_spreads_kernel(nodes, interior, tiles, axes, moments, width, all_bins):
    """Add the clusters at borders of tiles, known by their roots, to their entry's bins."""
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    entry = cuda.blockIdx.y
    tile = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    row = uint64(uint64(entry) * uint64(width))
    if tile < tiles:
        block = entry * tiles + tile
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(uint32(uint32(block) * nodes.room) + uint32(n))
            at = uint64(uint64(node) * uint64(SCALARS + axes))
            is_root = nodes.parents[node] == node
            if is_root and moments[at] != uint64(0) and has_end(nodes.ends[node]):
                add_spread(moments, at, axes, all_bins, row)
