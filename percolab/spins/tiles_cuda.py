"""CUDA kernels of spins on a lattice in tiles: all sites of a run get their spin together.

They read what the tiled labeler stores for every run (:mod:`percolab.labelers.tiled.all_tiles`).
"""

from numba import int64, types, uint32, uint64

from percolab.bonds.keys import seed_at
from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.neighbours import has_bit
from percolab.kernels.runs import bits_at, fill_segments
from percolab.kernels.union_find import find
from percolab.labelers.tiled.all_tiles import (
    block_number,
    occupied_at,
    run_at,
    tile_place,
    word_span,
)
from percolab.labelers.tiled.borders import NODES
from percolab.labelers.tiled.one_tile import (
    KEPT_BORDER,
    LANES,
    PLACE,
    STRIP_NODES,
    TILE_NODES,
    TILE_WORDS,
    load_chain,
    number_words,
)
from percolab.spins.kernels_cuda import is_marked, mark_cluster
from percolab.spins.words import add_digits, changed, chosen_site, spin_change, write_digits


@cuda.jit(device=True)
def _number_runs(tiles, opened, entry, place, first):
    """Number the runs of a tile as the labeler did; return where runs of this word may start.

    Runs start only at occupied sites.  first: is set to the number of every word's first run.
    """
    site, count, occupied = place
    word = cuda.threadIdx.x
    joined = load_chain(tiles, opened, uint32(entry * tiles.words_per_entry), site, count)
    edges = uint32(uint32(~joined) | uint32(1))
    strip, lane = word // LANES, word % LANES
    runs = uint32(popcount(uint32(edges & occupied)))
    before, _ = number_words(first, runs, strip, lane, word)
    first[word] = uint32(uint32(strip * STRIP_NODES) + before)
    return edges


@cuda.jit(cache=True)
def mark_tiles_kernel(
    generator, chains, clock, rule, sites, num_points, tiles, counted, opened, nodes, kept, marks
):
    """Mark the clusters of chosen sites by their labels; one block per chosen site, in its tile.

    sites: uint32, one bit per existing site.  counted: numbers of tiles along axis 0 and in total.
    marks: as for :func:`percolab.spins.kernels_cuda.mark_labels_kernel`.
    """
    starts = cuda.shared.array(TILE_WORDS, types.uint32)
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    begins = cuda.shared.array(TILE_WORDS, types.uint32)
    n, entry, word = uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y), cuda.threadIdx.x
    seed = seed_at(chains.sites[entry], uint64(clock[entry] + uint64(1)))
    site = chosen_site(generator, seed, chains.number[entry], uint64(n), num_points, sites)
    column, number, at = tile_place(tiles, uint32(site))
    begin, count = word_span(tiles, column, number, uint32(word))
    place = (begin, count, occupied_at(tiles.occupied, begin, count))
    begins[word] = begin
    edges = _number_runs(tiles, opened, entry, place, first)
    starts[word] = uint32(edges & place[2])
    cuda.syncthreads()
    if word == 0:
        run = run_at(starts, first, uint32(at >> uint32(5)), uint32(at & uint32(31)))
        across, num_tiles = counted
        block = uint32(uint32(entry * num_tiles) + uint32(uint32(number * across) + column))
        code = uint32(kept[uint64(uint64(uint64(block) * uint64(TILE_NODES)) + uint64(run))])
        if code >= uint32(KEPT_BORDER):
            node = uint32(uint32(block * nodes.room) + uint32(code ^ uint32(KEPT_BORDER)))
            root = find(nodes.parents, uint32(0), node)
            label = nodes.origins[root]
        else:
            run_place = uint32(code & uint32(PLACE))
            label = uint32(begins[run_place >> uint32(5)] + uint32(run_place & uint32(31)))
        mark_cluster(marks, entry, tiles.num_words, label)


@cuda.jit(device=True)
def _change_at(depends, generator, seed, number, entry, label, rule, tiles, marks):
    is_chosen = depends and is_marked(marks, entry, tiles.num_words, label)
    return spin_change(generator, seed, number, label, is_chosen, rule)


@cuda.jit(device=True)
def _write_digits_at(generator, seed, number, site, num_planes, old_planes, word):
    """Write the digits of the 32 sites from ``site`` on, which are in one word or in two."""
    place, shift = uint32(site >> uint32(5)), uint32(site & uint32(31))
    where = word, TILE_WORDS
    write_digits(generator, seed, number, place, num_planes, old_planes, where, shift)
    if shift != uint32(0):
        after, left = uint32(place + uint32(1)), uint32(uint32(32) - shift)
        add_digits(generator, seed, number, after, num_planes, old_planes, where, left)


@cuda.jit(device=True)
def _old_spin(old_planes, word, num_planes, bit):
    """Return the spin at a bit of a tile's word, from its old planes in shared memory."""
    spin = uint32(0)
    for plane in range(num_planes):
        if has_bit(old_planes[plane * TILE_WORDS + word], bit):
            spin = uint32(spin | uint32(uint32(1) << uint32(plane)))
    return spin


@cuda.jit(cache=True)
def paint_tiles_kernel(
    generator, chains, clock, rule, num_planes, tiles, opened, nodes, interior, kept, marks, planes
):
    """Give every cluster a new spin; one block per tile, as in the labeler's kernels."""
    key = generator, chains, clock, rule, num_planes
    _paint(False, key, tiles, opened, nodes, interior, kept, marks, planes)


@cuda.jit(cache=True)
def repaint_tiles_kernel(
    generator, chains, clock, rule, num_planes, tiles, opened, nodes, interior, kept, marks, planes
):
    """Give marked clusters other spins than their present ones; arguments as above."""
    key = generator, chains, clock, rule, num_planes
    _paint(True, key, tiles, opened, nodes, interior, kept, marks, planes)


@cuda.jit(device=True)
def _paint(depends, key, tiles, opened, nodes, interior, kept, marks, planes):
    """Give clusters new spins; depends: whether these depend on the old spins.

    Origins must have been gathered.  Shared memory: ``nodes.room`` words; and TILE_WORDS for each
    plane of old spins if new spins depend on them, else of digits of new spins.
    """
    generator, chains, clock, rule, num_planes = key
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    sites = cuda.shared.array(TILE_WORDS, types.uint32)
    known = cuda.shared.array(0, types.uint32)
    old_planes = known[nodes.room :]
    word, entry = cuda.threadIdx.x, uint32(cuda.blockIdx.z)
    # Find the word of this thread, and where its runs start.
    site, count = word_span(tiles, uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y), uint32(word))
    occupied = occupied_at(tiles.occupied, site, count)
    sites[word] = site
    edges = _number_runs(tiles, opened, entry, (site, count, occupied), first)
    base = uint32(uint32(entry * uint32(num_planes)) * tiles.num_words)
    by_word = not depends and rule.by_word != uint32(0)
    block = block_number()
    least = uint32(block * nodes.room)
    seed = seed_at(chains.spins[entry], uint64(clock[entry] + uint64(1)))
    number = chains.number[entry]
    # Load the old spins, or the digits of new ones.
    if depends and count > uint32(0):
        for plane in range(num_planes):
            start = uint32(base + uint32(uint32(plane) * tiles.num_words))
            old_planes[plane * TILE_WORDS + word] = bits_at(planes, start, site, count)
    if by_word and count > uint32(0):
        _write_digits_at(generator, seed, number, site, num_planes, old_planes, word)
    # Draw the new spins of clusters at the border of the tile.
    for n in range(word, interior[block, NODES], TILE_WORDS):
        root = find(nodes.parents, uint32(0), uint32(least + uint32(n)))
        label = nodes.origins[root]
        known[n] = _change_at(depends, generator, seed, number, entry, label, rule, tiles, marks)
    cuda.syncthreads()
    if count == uint32(0):
        return
    # Give every run of the word the spin of its cluster.
    begins = uint32(edges & occupied)
    runs = uint64(uint64(uint64(block) * uint64(TILE_NODES)) + uint64(first[word]))
    # The first plane is found with the spins of the runs; most models have no other.
    for plane in range(num_planes):
        left, marked, run = begins, uint32(0), runs
        while left != uint32(0):
            rest = uint32(left & uint32(left - uint32(1)))
            code = uint32(kept[run])
            place = uint32(uint32(code & uint32(PLACE)) >> uint32(5))
            bit = uint32(code & uint32(31))
            if code >= uint32(KEPT_BORDER):
                spin = known[uint32(code ^ uint32(KEPT_BORDER))]
                is_set = has_bit(spin, plane)
            elif by_word:
                is_set = has_bit(old_planes[plane * TILE_WORDS + int64(place)], bit)
            else:
                label = uint32(sites[place] + bit)
                spin = _change_at(
                    depends, generator, seed, number, entry, label, rule, tiles, marks
                )
                is_set = has_bit(spin, plane)
            if depends:
                before = _old_spin(old_planes, word, num_planes, uint32(lowest_one(left)))
                is_set = has_bit(changed(before, spin, rule), plane)
            if is_set:
                marked = uint32(marked | uint32(left ^ rest))
            run = uint64(run + uint64(1))
            left = rest
        painted = uint32(fill_segments(marked, edges) & occupied)
        start = uint32(base + uint32(uint32(plane) * tiles.num_words))
        _write_bits(planes, start, site, count, painted)


@cuda.jit(device=True)
def _write_bits(planes, start, site, count, bits):
    """Write ``count`` bits at a site to words from ``start``; others may write adjacent bits."""
    place = uint32(start + uint32(site >> uint32(5)))
    shift = uint32(site & uint32(31))
    mask = uint32(0xFFFFFFFF)
    if count < uint32(32):
        mask = uint32(uint32(uint32(1) << count) - uint32(1))
    elif shift == uint32(0):
        planes[place] = bits
        return
    _exchange_bits(planes, place, uint32(mask << shift), uint32(bits << shift))
    if shift != uint32(0):
        back = uint32(uint32(32) - shift)
        over = uint32(mask >> back)
        if over != uint32(0):
            _exchange_bits(planes, uint32(place + uint32(1)), over, uint32(bits >> back))


@cuda.jit(device=True)
def _exchange_bits(planes, place, mask, bits):
    """Replace the bits under a mask; only one thread may write each bit."""
    cuda.atomic.and_(planes, place, uint32(~uint32(mask & ~bits)))
    cuda.atomic.or_(planes, place, uint32(mask & bits))
