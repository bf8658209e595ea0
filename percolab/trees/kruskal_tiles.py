"""Kruskal's algorithm in tiles of a lattice: it leaves over what only the whole lattice decides.

A *tile* is a box of grid points that is small enough for the fastest cache.  Bonds inside it are
joined in ascending order.  A bond that closes a cycle of smaller ones is in no minimum spanning
tree, whatever is outside.  A bond between two clusters is in it for certain if it is the least that
leaves one of them, and it is that as long as no smaller bond leads from this cluster out of the
tile.  So *crossing* bonds, those that leave a tile or lead around a periodic boundary, are met
in the same order, and their clusters are *touched*.  A bond between two touched clusters is left
over.  Each such bond makes one touched cluster of two, so that they are fewer than the sites of a
tile with crossing bonds.

A *fragment* is what certain bonds join: a node of the graph of what is left over, which with all
crossing bonds holds the rest of the tree.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64, njit, uint8, uint32, uint64

from percolab.kernels.neighbours import end_of_bond, has_bit
from percolab.kernels.union_find import find_halving
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.trees.ordered_joins import add_to_tree, precedes

#: Sites of a tile, as a power of two.
TILE_BITS = 12
_CROSSING = 1 << 31
_DIGITS, _PASSES = 11, 3
_VALUES = 1 << _DIGITS


class Tiles(NamedTuple):
    """How a lattice is cut into tiles, and the bonds that cross their borders.

    shape:   int64 (axes,), grid points
    bits:    int64 (axes,), edges of a tile as powers of two
    counts:  int64 (axes,), tiles
    offsets: int64 (classes, axes), grid points from owner to other end
    first:   int64 (tiles + 1,), where the crossing bonds of a tile start in the next three
    bonds:   uint32, their numbers; a bond is listed at each of its two ends
    sites:   uint32, its end in the tile, as a place in there
    ends:    uint32, which end of which crossing bond that is: 2 e and 2 e + 1 are those of bond e
    """

    shape: Any
    bits: Any
    counts: Any
    offsets: Any
    first: Any
    bonds: Any
    sites: Any
    ends: Any


class TileScratch(NamedTuple):
    """Memory for one tile.

    items:     uint64 (2, bonds of a tile with its crossing ones), prefix and place
    starts:    int64 (rows,), the grid point where a row of the tile starts, or -1
    fragments: uint32 (sites,), union-find of what is joined for certain
    joined:    uint32 (sites,), union-find of fragments by bonds left over
    touched:   uint8 (sites,), whether a crossing bond was met, at the roots of ``joined``
    numbers:   int32 (sites,), of fragments at their roots, -1 where they have none
    left:      uint32 (sites,), bonds left over, by their places
    """

    items: Any
    starts: Any
    fragments: Any
    joined: Any
    touched: Any
    numbers: Any
    left: Any


def tile_bits(shape: tuple[int, ...], total: int = TILE_BITS) -> tuple[int, ...]:
    """Return the edges of tiles as powers of two: cubes as far as the lattice has room for them.

    >>> tile_bits((1000, 1000)), tile_bits((1000, 1000, 1000)), tile_bits((1000, 3))
    ((6, 6), (4, 4, 4), (10, 2))
    """
    bits = [0] * len(shape)
    for _ in range(total):
        roomy = [axis for axis, points in enumerate(shape) if 1 << bits[axis] < points]
        if not roomy:
            break
        bits[min(roomy, key=lambda axis: bits[axis])] += 1
    return tuple(bits)


def most_crossing(extent: Extent, total: int = TILE_BITS) -> int:
    """Return how many bonds of a lattice cross the borders of tiles, at most."""
    bits = tile_bits(extent.shape, total)
    found = 0
    for offset in extent.offsets:
        for axis, points in enumerate(extent.shape):
            # As many layers of owners as the bond is long, at each border.
            borders = (points + (1 << bits[axis]) - 1) >> bits[axis]
            found += extent.num_points // points * min(borders * abs(offset[axis]), points)
    return found


def tile_bytes(extent: Extent, total: int = TILE_BITS) -> int:
    """Return the bytes that the scratch of a tile takes, with all bonds of its border."""
    sites = 1 << sum(tile_bits(extent.shape, total))
    classes = extent.num_classes
    return 16 * 3 * classes * sites + 25 * sites + 8 * _num_tiles(extent.shape, total)


def _num_tiles(shape: tuple[int, ...], total: int) -> int:
    sides = zip(shape, tile_bits(shape, total), strict=True)
    return prod((points + (1 << bits) - 1) >> bits for points, bits in sides)


def new_tiles(topology: Topology, adjacency: Any, total: int = TILE_BITS) -> Tiles:
    """Return how the lattice of a topology is cut into tiles; it must have a shape."""
    shape = np.array(topology.shape, np.int64)
    bits = np.array(tile_bits(topology.shape, total), np.int64)
    counts = (shape + (1 << bits) - 1) >> bits
    offsets = np.array(topology.offsets, np.int64).reshape(-1, shape.size)
    none = np.empty(0, np.uint32)
    first = np.zeros(int(counts.prod()) + 1, np.int64)
    tiles = Tiles(shape, bits, counts, offsets, first, none, none, none)
    exists = topology.exists.ravel()
    crossing = list_crossing(tiles, exists, adjacency, np.empty(0, np.int64))
    first[1:] = np.cumsum(first[1:])
    room = 2 * crossing
    tiles = tiles._replace(
        bonds=np.empty(room, np.uint32),
        sites=np.empty(room, np.uint32),
        ends=np.empty(room, np.uint32),
    )
    list_crossing(tiles, exists, adjacency, first[:-1].copy())
    return tiles


def new_tile_scratch(tiles: Tiles) -> TileScratch:
    """Return memory for the tiles of a lattice."""
    sites = 1 << int(tiles.bits.sum())
    crossing = int(np.diff(tiles.first).max(initial=0))
    return TileScratch(
        items=np.empty((2, len(tiles.offsets) * sites + crossing), np.uint64),
        starts=np.empty(sites >> int(tiles.bits[0]), np.int64),
        fragments=np.empty(sites, np.uint32),
        joined=np.empty(sites, np.uint32),
        touched=np.empty(sites, np.uint8),
        numbers=np.empty(sites, np.int32),
        left=np.empty(sites, np.uint32),
    )


@njit
def _origin_of(tiles, tile, axis):
    """Return the first coordinate of a tile along an axis."""
    for before in range(axis):
        tile //= tiles.counts[before]
    return (tile % tiles.counts[axis]) << tiles.bits[axis]


@njit
def _coordinate(tiles, row, axis):
    """Return the coordinate in its tile, along an axis but the first, of a row of the tile."""
    for before in range(1, axis):
        row >>= tiles.bits[before]
    return row & ((1 << tiles.bits[axis]) - 1)


@njit
def _row_start(tiles, tile, row):
    """Return the grid point where a row of a tile starts, or -1 if it is not in the lattice."""
    point, stride = int64(0), int64(1)
    for axis in range(tiles.shape.size):
        at = _origin_of(tiles, tile, axis)
        if axis > 0:
            at += _coordinate(tiles, row, axis)
        if at >= tiles.shape[axis]:
            return int64(-1)
        point += at * stride
        stride *= tiles.shape[axis]
    return point


@njit
def _extent_of(tiles, tile, axis):
    """Return how many grid points a tile has along an axis."""
    left = tiles.shape[axis] - _origin_of(tiles, tile, axis)
    return min(int64(1) << tiles.bits[axis], left)


@njit
def _inside(tiles, tile, k, row):
    """Return from where to where bonds of class k from a row of a tile stay in the tile."""
    for axis in range(1, tiles.shape.size):
        to = _coordinate(tiles, row, axis) + tiles.offsets[k, axis]
        if to < 0 or to >= _extent_of(tiles, tile, axis):
            return int64(0), int64(0)
    extent, step = _extent_of(tiles, tile, 0), tiles.offsets[k, 0]
    low, high = min(max(0, -step), extent), max(min(extent, extent - step), 0)
    return low, max(low, high)


@njit
def _place_of(tiles, point):
    """Return (tile, place in the tile) of a grid point."""
    tile, place, tiles_before, bits_before = int64(0), int64(0), int64(1), int64(0)
    for axis in range(tiles.shape.size):
        at, point = point % tiles.shape[axis], point // tiles.shape[axis]
        tile += (at >> tiles.bits[axis]) * tiles_before
        place += (at & ((1 << tiles.bits[axis]) - 1)) << bits_before
        tiles_before *= tiles.counts[axis]
        bits_before += tiles.bits[axis]
    return tile, place


@njit
def _note_crossing(tiles, heads, bond, e, adjacency):
    """Count a crossing bond at the tiles of its two ends, or list it there."""
    i, j = end_of_bond(bond, adjacency)
    for which, point in ((0, i), (1, j)):
        tile, place = _place_of(tiles, point)
        if heads.size == 0:
            tiles.first[tile + 1] += 1
        else:
            n = heads[tile]
            heads[tile] = n + 1
            tiles.bonds[n], tiles.sites[n] = bond, place
            tiles.ends[n] = 2 * e + which


@njit(nogil=True, cache=True)
def list_crossing(tiles, exists, adjacency, heads):
    """Count the crossing bonds of every tile in ``tiles.first[1:]``, or list them.

    heads: int64, where those of every tile start; of length 0 to count.  Returns how many bonds
    cross.
    """
    num_tiles, e = tiles.first.size - 1, int64(0)
    rows = (1 << np.sum(tiles.bits)) >> tiles.bits[0]
    stride = int64(adjacency.num_words) << 5
    for tile in range(num_tiles):
        extent = _extent_of(tiles, tile, 0)
        for row in range(rows):
            start = _row_start(tiles, tile, row)
            if start < 0:
                continue
            for k in range(len(tiles.offsets)):
                low, high = _inside(tiles, tile, k, row)
                x = int64(0)
                while x < extent:
                    if x == low and low < high:
                        x = high
                        continue
                    bond = k * stride + start + x
                    if has_bit(exists[bond >> 5], bond & 31):
                        _note_crossing(tiles, heads, bond, e, adjacency)
                        e += 1
                    x += 1
    return e


@njit
def _collect(tiles, tile, prefixes, exists, adjacency, scratch):
    """Write the bonds of a tile as prefix and place; return how many.

    The place of a bond inside is its class and its owner's place, that of a crossing one says which
    of the tile's it is.
    """
    items, starts = scratch.items[0], scratch.starts
    bits, total = uint64(tiles.bits[0]), uint64(np.sum(tiles.bits))
    stride, n = uint64(uint64(adjacency.num_words) << uint64(5)), uint64(0)
    for row in range(starts.size):
        start = _row_start(tiles, tile, row)
        starts[row] = start
        if start < 0:
            continue
        for k in range(len(tiles.offsets)):
            low, high = _inside(tiles, tile, k, row)
            first = uint64(uint64(uint64(k) * stride) + uint64(start))
            place = uint64(uint64(uint64(k) << total) | uint64(uint64(row) << bits))
            for x in range(uint64(low), uint64(high)):
                bond = uint64(first + x)
                items[n] = uint64(
                    uint64(uint64(prefixes[bond]) << uint64(32)) | uint64(place | x)
                )
                word = uint32(exists[uint64(bond >> uint64(5))])
                n = uint64(n + uint64(uint32(word >> uint32(bond & uint64(31))) & uint32(1)))
    begin = tiles.first[tile]
    for e in range(begin, tiles.first[tile + 1]):
        place = uint64(uint64(_CROSSING) | uint64(e - begin))
        items[n] = uint64(uint64(uint64(prefixes[tiles.bonds[e]]) << uint64(32)) | place)
        n = uint64(n + uint64(1))
    return int64(n)


@njit
def _sort_items(items, count, heads):
    """Sort by the prefix; return which of the two rows of ``items`` holds the result.

    heads: uint32 (passes, values), scratch.
    """
    heads[:] = uint32(0)
    for n in range(count):
        key = uint64(items[0, n] >> uint64(32))
        for turn in range(_PASSES):
            heads[turn, uint64(key & uint64(_VALUES - 1))] += uint32(1)
            key = uint64(key >> uint64(_DIGITS))
    for turn in range(_PASSES):
        places, total = heads[turn], uint32(0)
        for value in range(_VALUES):
            total, places[value] = uint32(total + places[value]), total
        read, written = items[turn & 1], items[1 - (turn & 1)]
        shift = uint64(32 + _DIGITS * turn)
        for n in range(count):
            value = uint64(uint64(read[n] >> shift) & uint64(_VALUES - 1))
            place = places[value]
            places[value] = uint32(place + uint32(1))
            written[place] = read[n]
    return _PASSES & 1


@njit
def _bond_of_item(tiles, tile, item, starts, stride):
    """Return the number of the bond that an item stands for, uint32."""
    place = uint32(item & uint64(0xFFFFFFFF))
    if uint32(place & uint32(_CROSSING)) != uint32(0):
        return tiles.bonds[tiles.first[tile] + int64(uint32(place ^ uint32(_CROSSING)))]
    bits, total = uint32(tiles.bits[0]), uint32(np.sum(tiles.bits))
    k = uint32(place >> total)
    site = uint32(place & uint32(uint32(uint32(1) << total) - uint32(1)))
    x = uint32(site & uint32(uint32(uint32(1) << bits) - uint32(1)))
    return uint32(uint32(uint32(starts[uint32(site >> bits)]) + x) + uint32(k * uint32(stride)))


@njit
def _settle_items(weights, tiles, tile, items, count, starts, stride):
    """Put sorted items with equal prefixes in order, by all digits and numbers."""
    for n in range(1, count):
        if uint64(items[n] ^ items[n - 1]) >> uint64(32) != uint64(0):
            continue
        item, place = items[n], n
        bond = _bond_of_item(tiles, tile, item, starts, stride)
        while place > 0 and uint64(items[place - 1] ^ item) >> uint64(32) == uint64(0):
            before = _bond_of_item(tiles, tile, items[place - 1], starts, stride)
            if not precedes(weights, bond, before):
                break
            items[place] = items[place - 1]
            place -= 1
        items[place] = item


@njit
def _cluster_of(scratch, site):
    """Return (root of its fragment, root of its cluster in the tile) of a site."""
    fragment = find_halving(scratch.fragments, uint32(site))
    return fragment, find_halving(scratch.joined, fragment)


@njit
def _join_inside(tiles, tile, items, count, deltas, stride, scratch, tree):
    """Join the sorted bonds of a tile; return (how many are in the tree, how many left over)."""
    fragments, joined, touched = scratch.fragments, scratch.joined, scratch.touched
    total = uint32(np.sum(tiles.bits))
    sites = uint32(uint32(uint32(1) << total) - uint32(1))
    found, left = int64(0), int64(0)
    begin = tiles.first[tile]
    for n in range(count):
        place = uint32(items[n] & uint64(0xFFFFFFFF))
        if uint32(place & uint32(_CROSSING)) != uint32(0):
            e = begin + int64(uint32(place ^ uint32(_CROSSING)))
            _, cluster = _cluster_of(scratch, tiles.sites[e])
            touched[cluster] = uint8(1)
            continue
        site = uint32(place & sites)
        i, a = _cluster_of(scratch, site)
        j, b = _cluster_of(scratch, uint32(site + deltas[uint32(place >> total)]))
        if a == b:
            continue
        # A cluster that was not touched is one fragment.
        if touched[a] == uint8(0) and (touched[b] != uint8(0) or b < a):
            fragments[a] = j
        elif touched[b] == uint8(0):
            fragments[b] = i
        else:
            joined[max(a, b)] = min(a, b)
            scratch.left[left] = place
            left += int64(1)
            continue
        add_to_tree(tree, _bond_of_item(tiles, tile, items[n], scratch.starts, stride))
        found += int64(1)
    return found, left


@njit
def _number_of(scratch, site, fragments):
    """Return (the number of the fragment of a site, how many have one)."""
    root = find_halving(scratch.fragments, uint32(site))
    number = scratch.numbers[root]
    if number < int32(0):
        number = int32(fragments)
        scratch.numbers[root] = number
        fragments += int64(1)
    return number, fragments


@njit(nogil=True, cache=True)
def join_tiles(weights, prefixes, exists, adjacency, tiles, scratch, listed, tree):
    """Write the certain bonds of all tiles to ``tree``, and list the other ones.

    listed: a :class:`percolab.trees.ordered_joins.BondList`, whose first bonds are going to be the
    crossing ones, and whose nodes are fragments.  Returns (bonds in the tree, bonds listed,
    fragments that are ends of them).
    """
    stride = int64(adjacency.num_words) << 5
    deltas = np.empty(len(tiles.offsets), np.uint32)
    for k in range(deltas.size):
        delta, bits_before = int64(0), int64(0)
        for axis in range(tiles.shape.size):
            delta += tiles.offsets[k, axis] * (int64(1) << bits_before)
            bits_before += tiles.bits[axis]
        deltas[k] = uint32(uint64(delta) & uint64(0xFFFFFFFF))
    heads = np.empty((_PASSES, _VALUES), np.uint32)
    found, fragments, count = int64(0), int64(0), int64(tiles.ends.size // 2)
    for tile in range(tiles.first.size - 1):
        for site in range(scratch.fragments.size):
            scratch.fragments[site] = scratch.joined[site] = uint32(site)
            scratch.touched[site], scratch.numbers[site] = uint8(0), int32(-1)
        size = _collect(tiles, tile, prefixes, exists, adjacency, scratch)
        items = scratch.items[_sort_items(scratch.items, size, heads)]
        _settle_items(weights, tiles, tile, items, size, scratch.starts, stride)
        here, left = _join_inside(tiles, tile, items, size, deltas, stride, scratch, tree)
        found += here
        for n in range(left):
            place = scratch.left[n]
            site = uint32(place & uint32(scratch.fragments.size - 1))
            other = uint32(site + deltas[uint32(place >> uint32(np.sum(tiles.bits)))])
            bond = _bond_of_item(tiles, tile, uint64(place), scratch.starts, stride)
            listed.bonds[count] = bond
            listed.ends[2 * count], fragments = _number_of(scratch, site, fragments)
            listed.ends[2 * count + 1], fragments = _number_of(scratch, other, fragments)
            count += int64(1)
        for e in range(tiles.first[tile], tiles.first[tile + 1]):
            end = tiles.ends[e]
            listed.bonds[end >> uint32(1)] = tiles.bonds[e]
            listed.ends[end], fragments = _number_of(scratch, tiles.sites[e], fragments)
    return found, count, fragments
