"""CUDA kernels of Boruvka's algorithm in tiles: the part that a thread block does in shared memory.

A tile is a box of sites.  Its clusters choose their least bond as long as that is an *inner* bond,
with both ends in the tile; for this every site next to another tile has the least prefix of its
bonds to other tiles.  When no cluster can choose any more, the chosen bonds are in the tree.

In a second part bonds to other tiles are ignored: an inner bond that is not chosen now either is
the largest bond of a cycle, and in no tree.  The others, like all bonds that a tile leaves
undecided, are listed for the rounds of :mod:`percolab.trees.rounds_cuda`.

The lowest bit of an inner bond's prefix is 1; a least prefix with the bit 0 makes a cluster choose
nothing.  It is 0 for bonds to other tiles, and for equal prefixes, as no more digits are compared.

Every warp has its own list of bonds, from which bonds within one cluster are dropped.  At the end
of its memory, bonds are put aside: heavy bonds during the first rounds, and in the first part bonds
larger than the least outward bonds of both their clusters, which cannot be chosen until the second.
"""

from typing import Any, NamedTuple

from numba import types, uint32

from percolab.kernels.bits import popcount
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.neighbours import has_bit
from percolab.trees.rounds_cuda import NO_SITE, find_ends, listed_bond

#: Sites of a tile, by their binary logarithm, and its threads; the simulator has tiny tiles.
SITE_BITS = 5 if SIMULATED else 10
TILE_SITES = 1 << SITE_BITS
#: Threads of a warp, and of a tile.
LANES = 8 if SIMULATED else 32
TILE_THREADS = 8 if SIMULATED else 256
_WARPS = TILE_THREADS // LANES
#: Number of sites of a tile whose bonds one warp lists.
_WARP_SITES = TILE_SITES // _WARPS
#: A word has room for a bond's number in the tile, which includes its class, and for both its ends.
MOST_CLASSES = 4
_SITE_MASK = TILE_SITES - 1
#: Number of rounds without heavy bonds.
LIGHT_STEPS = 3
#: Shared memory of one class: prefixes and ends.
CLASS_BYTES = 8 * TILE_SITES
_CHOSEN_WORDS = MOST_CLASSES * TILE_SITES // 32
# Counters of a block: the last round that joined clusters, bonds kept, undecided bonds, and their
# place in the list; then for every warp the place of its undecided bonds among these.  In the
# simulator the votes of a warp follow.
_ROUND, _KEPT, _UNDECIDED, _PLACE, _OWN = range(5)
_COUNTERS = _OWN + _WARPS + LANES


if SIMULATED:

    def _vote(keeps, counters):
        lane = int(cuda.threadIdx.x)
        cuda.syncthreads()
        counters[_OWN + _WARPS + lane] = uint32(bool(keeps))
        cuda.syncthreads()
        votes = [int(counters[_OWN + _WARPS + n]) for n in range(LANES)]
        return uint32(sum(votes[:lane])), uint32(sum(votes))
else:

    @cuda.jit(device=True)
    def _vote(keeps, counters):
        """Return (the lanes before this one that keep something, all lanes that do)."""
        votes = uint32(cuda.ballot_sync(0xFFFFFFFF, keeps))
        before = uint32(uint32(uint32(1) << uint32(cuda.laneid)) - uint32(1))
        # All lanes have read before any lane writes.
        cuda.syncwarp()
        return uint32(popcount(uint32(votes & before))), uint32(popcount(votes))


class BoruvkaTiles(NamedTuple):
    """The tiles of a topology."""

    shape: Any  # three uint32, grid points along each axis
    extents: Any  # three uint32, binary logarithms of a tile's edges
    counts: Any  # three uint32, tiles along each axis
    shifts: Any  # int32 by class, the other end's place in the tile minus the owner's
    inner: Any  # uint32 (words_per_entry,), the bonds with both ends in one tile
    num_words: Any  # uint32, words of one class
    words_per_entry: Any  # uint32, of all classes
    points: Any  # uint32, grid points


@cuda.jit(cache=True)
def crossing_kernel(crossing, adjacency, slots, prefixes, parents, bonds):
    """List the bonds between tiles first, and write the least prefix at their ends.

    crossing: uint32 (n,), their numbers in an entry.
    """
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n >= uint32(crossing.size):
        return
    own = crossing[n]
    number = uint32(uint32(entry * slots) + own)
    bonds[uint32(uint32(entry * uint32(crossing.size)) + n)] = listed_bond(prefixes, number)
    prefix = uint32(prefixes[number] & uint32(0xFFFFFFFE))
    base = uint32(entry * adjacency.num_points)
    i, j = find_ends(own, adjacency)
    cuda.atomic.min(parents, uint32(base + i), prefix)
    cuda.atomic.min(parents, uint32(base + j), prefix)


@cuda.jit(device=True)
def _tile_corner(tiles, number):
    """Return the coordinates of the first grid point of a tile."""
    across, down = tiles.counts[0], tiles.counts[1]
    row = uint32(number // across)
    column = uint32(number - uint32(row * across))
    layer = uint32(row // down)
    row = uint32(row - uint32(layer * down))
    wide, high, deep = tiles.extents
    return uint32(column << wide), uint32(row << high), uint32(layer << deep)


@cuda.jit(device=True)
def _locate_site(tiles, corner, place):
    """Return whether a place of a tile is in the lattice, and its site number."""
    wide, high, _ = tiles.extents
    row = uint32(place >> wide)
    layer = uint32(row >> high)
    x = uint32(corner[0] + uint32(place - uint32(row << wide)))
    y = uint32(corner[1] + uint32(row - uint32(layer << high)))
    z = uint32(corner[2] + layer)
    shape = tiles.shape
    inside = x < shape[0] and y < shape[1] and z < shape[2]
    return inside, uint32(uint32(uint32(uint32(z * shape[1]) + y) * shape[0]) + x)


@cuda.jit(device=True)
def _root_in(parents, place):
    parent = parents[place]
    while parent != place:
        place = parent
        parent = parents[place]
    return place


@cuda.jit(device=True)
def _offer_prefix(best, root, prefix):
    """Lower the least prefix of a cluster; clear the lowest bit if two are equal."""
    if prefix <= best[root]:
        old = cuda.atomic.min(best, root, prefix)
        if old == prefix:
            cuda.atomic.min(best, root, uint32(prefix - uint32(1)))


@cuda.jit(device=True)
def _chooses(best, outwards, root, prefix, is_first):
    """Return whether a cluster chooses the bond with this prefix, in the first or second part."""
    return best[root] == prefix and (not is_first or prefix < outwards[root])


@cuda.jit(device=True)
def _bond_at(tiles, corner, entry, identity):
    """Return the number in the batch of a bond by its number in the tile."""
    k = uint32(identity >> uint32(SITE_BITS))
    _, i = _locate_site(tiles, corner, uint32(identity & uint32(_SITE_MASK)))
    word = uint32(uint32(entry * tiles.words_per_entry) + uint32(k * tiles.num_words))
    return uint32(uint32(word << uint32(5)) + i)


@cuda.jit(device=True)
def _list_bond(prefixes, number, bonds, place):
    if place < uint32(bonds.size):
        bonds[place] = listed_bond(prefixes, number)


@cuda.jit(device=True)
def _write_chosen(tiles, corner, entry, chosen, tree):
    wide = uint32(min(uint32(tiles.extents[0]), uint32(5)))
    pieces = uint32(uint32(uint32(len(tiles.shifts)) << uint32(SITE_BITS)) >> wide)
    piece = uint32(cuda.threadIdx.x)
    mask = uint32(uint32(0xFFFFFFFF) >> uint32(uint32(32) - uint32(uint32(1) << wide)))
    while piece < pieces:
        identity = uint32(piece << wide)
        bits = uint32(
            uint32(chosen[uint32(identity >> uint32(5))] >> uint32(identity & uint32(31))) & mask
        )
        if bits != uint32(0):
            number = _bond_at(tiles, corner, entry, identity)
            word, shift = uint32(number >> uint32(5)), uint32(number & uint32(31))
            cuda.atomic.or_(tree, word, uint32(bits << shift))
            if shift != uint32(0):
                after = uint32(bits >> uint32(uint32(32) - shift))
                if after != uint32(0):
                    cuda.atomic.or_(tree, uint32(word + uint32(1)), after)
        piece = uint32(piece + uint32(TILE_THREADS))


@cuda.jit(device=True)
def _write_roots(tiles, corner, entry, parents, forest):
    first_site, place = uint32(entry * tiles.points), uint32(cuda.threadIdx.x)
    while place < uint32(TILE_SITES):
        inside, i = _locate_site(tiles, corner, place)
        if inside:
            _, root = _locate_site(tiles, corner, _root_in(parents, place))
            forest.parents[uint32(first_site + i)] = uint32(first_site + root)
        place = uint32(place + uint32(TILE_THREADS))


@cuda.jit(device=True)
def _first_end(ends):
    return uint32(ends & uint32(_SITE_MASK))


@cuda.jit(device=True)
def _second_end(ends):
    return uint32(uint32(ends >> uint32(SITE_BITS)) & uint32(_SITE_MASK))


@cuda.jit(device=True)
def _make_identity(ends):
    return uint32(ends >> uint32(2 * SITE_BITS))


@cuda.jit(device=True)
def _ends_word(identity, i, j):
    """Return the word of a bond by its number in the tile and the places of its ends."""
    places = uint32(uint32(j << uint32(SITE_BITS)) | i)
    return uint32(uint32(identity << uint32(2 * SITE_BITS)) | places)


@cuda.jit(device=True)
def _list_inner(tiles, corner, entry, lists, prefixes, forest, outwards, counters, light):
    """List the inner bonds of a warp's sites; return (bonds listed, heavy bonds put aside).

    Also write the least outward prefix of every site.
    """
    memory, far, begin, end = lists
    thread, count, aside = uint32(cuda.threadIdx.x), uint32(0), uint32(0)
    first_site = uint32(entry * tiles.points)
    for step in range(TILE_SITES // TILE_THREADS):
        place = uint32(uint32(uint32(step) * uint32(TILE_THREADS)) + thread)
        inside, i = _locate_site(tiles, corner, place)
        outwards[place] = uint32(NO_SITE)
        if inside:
            outwards[place] = forest.parents[uint32(first_site + i)]
        for k in range(len(tiles.shifts)):
            word = uint32(uint32(uint32(k) * tiles.num_words) + uint32(i >> uint32(5)))
            is_inner = inside and has_bit(tiles.inner[word], i & uint32(31))
            prefix = uint32(0)
            if is_inner:
                word = uint32(word + uint32(entry * tiles.words_per_entry))
                number = uint32(uint32(word << uint32(5)) | uint32(i & uint32(31)))
                prefix = uint32(prefixes[number] | uint32(1))
            is_heavy = prefix > light
            slot, more = _vote(is_inner and not is_heavy, counters)
            heavy_slot, more_heavy = _vote(is_heavy, counters)
            if is_inner:
                identity = uint32(uint32(uint32(k) << uint32(SITE_BITS)) | place)
                other = uint32(place + uint32(tiles.shifts[k]))
                target = uint32(uint32(begin + count) + slot)
                if is_heavy:
                    target = uint32(end - uint32(uint32(aside + heavy_slot) + uint32(1)))
                memory[target] = prefix
                memory[uint32(far + target)] = _ends_word(identity, place, other)
            count = uint32(count + more)
            aside = uint32(aside + more_heavy)
    return count, aside


@cuda.jit(device=True)
def _list_again(lists, parents, outwards, counters, source, number, left, aside, room):
    """List the bonds between two clusters again; return (bonds listed, bonds aside).

    Reads ``number`` bonds of the warp's memory, starting at ``source``.  The remaining bonds are
    listed from ``left`` on, which is not above ``source``.  If there is ``room``, bonds that cannot
    be chosen in the first part are put aside, below the ``aside`` bonds that already are.
    """
    memory, far, begin, end = lists
    lane = uint32(uint32(cuda.threadIdx.x) & uint32(LANES - 1))
    first = uint32(0)
    while first < number:
        n = uint32(first + lane)
        prefix, ends, i, j = uint32(0), uint32(0), uint32(0), uint32(0)
        if n < number:
            place = uint32(uint32(begin + source) + n)
            prefix, ends = memory[place], memory[uint32(far + place)]
            i, j = _root_in(parents, _first_end(ends)), _root_in(parents, _second_end(ends))
        stays = i != j
        if room != uint32(0):
            waits = stays and prefix > outwards[i] and prefix > outwards[j]
            slot, more = _vote(waits, counters)
            if more <= room:
                if waits:
                    target = uint32(end - uint32(uint32(aside + slot) + uint32(1)))
                    memory[target] = prefix
                    memory[uint32(far + target)] = _ends_word(_make_identity(ends), i, j)
                stays = stays and not waits
                aside = uint32(aside + more)
                room = uint32(room - more)
        slot, more = _vote(stays, counters)
        if stays:
            target = uint32(uint32(begin + left) + slot)
            memory[target] = prefix
            memory[uint32(far + target)] = _ends_word(_make_identity(ends), i, j)
        left = uint32(left + more)
        first = uint32(first + uint32(LANES))
    return left, aside


@cuda.jit(cache=True)
def tile_kernel(tiles, prefixes, forest, bonds, counts, light):
    """Join one tile; write the roots of its sites, its bonds in the tree, and undecided bonds.

    light: the largest prefix of light bonds, uint32.  Undecided bonds are counted even if the list
    has no room for them.  Dynamic shared memory: CLASS_BYTES for every class.
    """
    parents = cuda.shared.array(TILE_SITES, types.uint32)
    best = cuda.shared.array(TILE_SITES, types.uint32)
    outwards = cuda.shared.array(TILE_SITES, types.uint32)
    kept = cuda.shared.array(TILE_SITES, types.uint16)
    chosen = cuda.shared.array(_CHOSEN_WORDS, types.uint32)
    counters = cuda.shared.array(_COUNTERS, types.uint32)
    memory = cuda.shared.array(0, types.uint32)
    thread = uint32(cuda.threadIdx.x)
    lane, warp = uint32(thread & uint32(LANES - 1)), uint32(thread // uint32(LANES))
    entry = uint32(cuda.blockIdx.y)
    corner = _tile_corner(tiles, uint32(cuda.blockIdx.x))
    # The limits of a warp's memory: prefixes, and at the same distance behind them, bond ends.
    classes = uint32(len(tiles.shifts))
    far, size = uint32(classes << uint32(SITE_BITS)), uint32(classes * uint32(_WARP_SITES))
    begin = uint32(warp * size)
    lists = memory, far, begin, uint32(begin + size)
    for site in range(thread, TILE_SITES, TILE_THREADS):
        parents[site], best[site] = uint32(site), uint32(NO_SITE)
    for word in range(thread, _CHOSEN_WORDS, TILE_THREADS):
        chosen[word] = uint32(0)
    if thread < uint32(_OWN):
        counters[thread] = uint32(0)
    count, aside = _list_inner(
        tiles, corner, entry, lists, prefixes, forest, outwards, counters, light
    )
    is_light, is_first, step = light != uint32(NO_SITE), True, uint32(1)
    cuda.syncthreads()
    while True:
        n = lane
        while n < count:
            place = uint32(begin + n)
            prefix, ends = memory[place], memory[uint32(far + place)]
            _offer_prefix(best, _first_end(ends), prefix)
            _offer_prefix(best, _second_end(ends), prefix)
            n = uint32(n + uint32(LANES))
        cuda.syncthreads()
        n = lane
        while n < count:
            place = uint32(begin + n)
            prefix, ends = memory[place], memory[uint32(far + place)]
            i, j = _first_end(ends), _second_end(ends)
            of_one = _chooses(best, outwards, i, prefix, is_first)
            of_other = _chooses(best, outwards, j, prefix, is_first)
            if of_one or of_other:
                if of_one and (i > j or not of_other):
                    parents[i] = j
                else:
                    parents[j] = i
                counters[_ROUND] = step
                identity = _make_identity(ends)
                if is_first:
                    bit = uint32(uint32(1) << uint32(identity & uint32(31)))
                    cuda.atomic.or_(chosen, uint32(identity >> uint32(5)), bit)
                else:
                    kept[cuda.atomic.add(counters, _KEPT, uint32(1))] = types.uint16(identity)
            n = uint32(n + uint32(LANES))
        cuda.syncthreads()
        has_joined = counters[_ROUND] == step
        place = thread
        while place < uint32(TILE_SITES):
            if best[place] != uint32(NO_SITE):
                best[place] = uint32(NO_SITE)
                root = _root_in(parents, place)
                if root != place:
                    # Other threads that read this place go on from the parent or from the root.
                    parents[place] = root
                    if is_first and outwards[place] != uint32(NO_SITE):
                        cuda.atomic.min(outwards, root, outwards[place])
            place = uint32(place + uint32(TILE_THREADS))
        # The room is between the list and the bonds put aside.  Another warp may still lower
        # ``outwards``: a bond that is therefore listed once more is not chosen either.
        room = uint32(size - uint32(count + aside)) if is_first else uint32(0)
        count, aside = _list_again(
            lists, parents, outwards, counters, uint32(0), count, uint32(0), aside, room
        )
        cuda.syncthreads()
        if not has_joined or (is_light and step == uint32(LIGHT_STEPS)):
            if not is_first:
                break
            if not is_light:
                is_first = False
                _write_roots(tiles, corner, entry, parents, forest)
            is_light = False
            behind = uint32(size - aside)
            count, _ = _list_again(
                lists, parents, outwards, counters, behind, aside, count, uint32(0), uint32(0)
            )
            aside = uint32(0)
            cuda.syncthreads()
        step = uint32(step + uint32(1))
    _write_chosen(tiles, corner, entry, chosen, forest.tree)
    # List the undecided bonds for the rounds over all tiles.
    if lane == uint32(0):
        counters[_OWN + warp] = cuda.atomic.add(counters, _UNDECIDED, count)
    cuda.syncthreads()
    num_kept = counters[_KEPT]
    if thread == uint32(0):
        counters[_PLACE] = cuda.atomic.add(counts, 0, uint32(num_kept + counters[_UNDECIDED]))
    cuda.syncthreads()
    target, n = uint32(counters[_PLACE] + thread), thread
    while n < num_kept:
        _list_bond(prefixes, _bond_at(tiles, corner, entry, uint32(kept[n])), bonds, target)
        target, n = uint32(target + uint32(TILE_THREADS)), uint32(n + uint32(TILE_THREADS))
    target, n = uint32(uint32(counters[_PLACE] + num_kept) + counters[_OWN + warp]), lane
    while n < count:
        identity = _make_identity(memory[uint32(uint32(far + begin) + n)])
        number = _bond_at(tiles, corner, entry, identity)
        _list_bond(prefixes, number, bonds, uint32(target + n))
        n = uint32(n + uint32(LANES))
