"""Kruskal's algorithm in tiles of a lattice, which leaves over bonds that a tile cannot decide.

A *tile* is a box of grid points that fits into the fastest cache.  Bonds inside it are joined in
ascending order.  A bond that closes a cycle of smaller bonds is in no tree.  A bond between two
clusters is certainly in the tree if it is the least bond that leaves one of them, that is, if no
smaller bond leads from this cluster out of the tile.  So *crossing* bonds, which leave a tile or
cross a periodic boundary, are processed in the same order, and mark clusters as *touched*.  A bond
that joins two touched clusters is left over; there are fewer than sites with crossing bonds.

A *fragment* is a cluster of certain bonds: a node of the graph of left-over bonds and crossing
bonds, which contain the rest of the tree.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64, njit, uint8, uint32, uint64
from numpy.typing import NDArray

from percolab.kernels.inner import inner
from percolab.kernels.union_find import find_halving
from percolab.lattices.extent import Extent
from percolab.lattices.grid import bonds_in_boxes
from percolab.lattices.topology import Topology, unpack_bits
from percolab.trees.ordered_joins import LOW, add_to_tree, packed, settle, sort_pairs

#: Binary logarithm of the number of sites in a tile.
TILE_BITS = 14


class KruskalTiles(NamedTuple):
    """The tiles of a lattice, and the bonds that cross their borders."""

    shape: Any  # int64 (axes,), grid points
    bits: Any  # int64 (axes,), binary logarithms of a tile's edges
    counts: Any  # int64 (axes,), numbers of tiles
    rows: Any  # int64 (rows of a tile, axes), coordinates of the rows within a tile
    deltas: Any  # uint32 (classes,), difference of places in a tile from owner to other end
    offsets: Any  # int64 (classes, axes), grid points from owner to other end
    first: Any  # int64 (tiles + 1,), where the crossing bonds of a tile start in the next three
    bonds: Any  # uint32, their numbers; a bond is listed at each of its two ends
    sites: Any  # uint32, the bond's end in this tile, as a place in the tile
    # uint32, the number of this end: crossing bond e has the ends 2 e and 2 e + 1
    ends: Any


class TileScratch(NamedTuple):
    """Memory for one tile."""

    pairs: Any  # uint64 (2, bonds of a tile with its crossing ones), prefix and place
    bonds: Any  # uint32 (places,), the numbers of the bonds by their places
    origin: Any  # int64 (axes,), the first grid point of the tile
    extent: Any  # int64 (axes,), its grid points, fewer at the far ends of the lattice
    fragments: Any  # uint32 (sites,), union-find of sites by certain bonds
    joined: Any  # uint32 (sites,), union-find of fragments by left-over bonds
    touched: Any  # uint8 (sites,), at roots of ``joined``, whether the cluster is touched
    numbers: Any  # int32 (sites,), at roots, the numbers of fragments, -1 if they have none
    left: Any  # uint32 (sites,), places of left-over bonds


def tile_bits(shape: tuple[int, ...], total: int = TILE_BITS) -> tuple[int, ...]:
    """Return binary logarithms of tile edges: cubes as far as the lattice has room for them.

    >>> tile_bits((1000, 1000)), tile_bits((1000, 1000, 1000)), tile_bits((1000, 3))
    ((7, 7), (5, 5, 4), (10, 2))
    """
    bits = [0] * len(shape)
    for _ in range(total):
        roomy = [axis for axis, points in enumerate(shape) if 1 << bits[axis] < points]
        if not roomy:
            break
        bits[min(roomy, key=lambda axis: bits[axis])] += 1
    return tuple(bits)


def count_crossing(extent: Extent, bits: Sequence[int]) -> int:
    """Return a bound on the number of bonds that cross the borders of tiles with edges 2^bits."""
    crossing = 0
    for offset in extent.offsets:
        for points, bit, step in zip(extent.shape, bits, offset):
            # At each border, the layers of owners number as many as the bond is long.
            borders = (points + (1 << bit) - 1) >> bit
            crossing += extent.num_points // points * min(borders * abs(step), points)
    return crossing


def most_crossing(extent: Extent, total: int = TILE_BITS) -> int:
    """Return a bound on the number of bonds that cross the borders of tiles of 2^total sites."""
    return count_crossing(extent, tile_bits(extent.shape, total))


def tile_bytes(extent: Extent, total: int = TILE_BITS) -> int:
    """Return the bytes of the scratch of a tile, including all bonds across its border."""
    sites = 1 << sum(tile_bits(extent.shape, total))
    classes = extent.num_classes
    return 20 * 3 * classes * sites + 25 * sites + 8 * _num_tiles(extent.shape, total)


def _num_tiles(shape: tuple[int, ...], total: int) -> int:
    sides = zip(shape, tile_bits(shape, total), strict=True)
    return prod((points + (1 << bits) - 1) >> bits for points, bits in sides)


def new_tiles(topology: Topology, total: int = TILE_BITS) -> KruskalTiles:
    """Return the tiles of a topology's lattice; the topology must have a shape."""
    shape = np.array(topology.shape, np.int64)
    bits = np.array(tile_bits(topology.shape, total), np.int64)
    counts = (shape + (1 << bits) - 1) >> bits
    offsets = np.array(topology.offsets, np.int64).reshape(-1, shape.size)
    before = np.cumsum(bits) - bits
    deltas = (offsets << before).sum(axis=1).astype(np.uint32)
    places = np.arange(1 << int(bits[1:].sum()), dtype=np.int64) << bits[0]
    rows = places[:, None] >> before & (1 << bits) - 1
    crossing = _crossing_bonds(topology, bits)
    tile_of_end, place_of_end = _places(crossing[:, 1:].ravel(), shape, bits, counts)
    order = np.argsort(tile_of_end, kind="stable")
    return KruskalTiles(
        shape=shape,
        bits=bits,
        counts=counts,
        rows=rows,
        deltas=deltas,
        offsets=offsets,
        first=np.searchsorted(tile_of_end[order], np.arange(counts.prod() + 1)),
        bonds=crossing[order // 2, 0].astype(np.uint32),
        sites=place_of_end[order].astype(np.uint32),
        ends=order.astype(np.uint32),
    )


def _crossing_bonds(topology: Topology, bits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return bonds that leave their tile: rows (number, owner, other end), int64."""
    stride, rows = 32 * topology.num_words, [np.empty((0, 3), np.int64)]
    for k, exists in enumerate(topology.exists):
        leaves = exists & ~bonds_in_boxes(topology, k, 1 << bits)
        owner = np.flatnonzero(unpack_bits(leaves, topology.num_points))
        other = owner + topology.deltas[k]
        crossing, ends, _ = topology.list_periodic_bonds(k)
        other[np.searchsorted(owner, crossing)] = ends
        rows.append(np.column_stack([k * stride + owner, owner, other]))
    return np.concatenate(rows)


def _places(
    points: NDArray[np.int64], *layout: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tiles of grid points, and their places there; layout: shape, bits and counts."""
    tile, place = np.zeros_like(points), np.zeros_like(points)
    tiles_before, bits_before = 1, 0
    for length, bits, count in zip(*layout, strict=True):
        at, points = points % length, points // length
        tile += (at >> bits) * tiles_before
        place += (at & ((1 << bits) - 1)) << bits_before
        tiles_before, bits_before = tiles_before * count, bits_before + bits
    return tile, place


def new_tile_scratch(tiles: KruskalTiles) -> TileScratch:
    sites = 1 << int(tiles.bits.sum())
    places = len(tiles.offsets) * sites + int(np.diff(tiles.first).max(initial=0))
    return TileScratch(
        pairs=np.empty((2, places), np.uint64),
        bonds=np.empty(places, np.uint32),
        origin=np.empty(tiles.shape.size, np.int64),
        extent=np.empty(tiles.shape.size, np.int64),
        fragments=np.empty(sites, np.uint32),
        joined=np.empty(sites, np.uint32),
        touched=np.empty(sites, np.uint8),
        numbers=np.empty(sites, np.int32),
        left=np.empty(sites, np.uint32),
    )


@inner
def _enter(tiles, tile, origin, extent):
    """Write the first grid point and the number of grid points of a tile along every axis."""
    for axis in range(origin.size):
        origin[axis] = (tile % tiles.counts[axis]) << tiles.bits[axis]
        tile //= tiles.counts[axis]
        extent[axis] = min(int64(1) << tiles.bits[axis], tiles.shape[axis] - origin[axis])


@inner
def _row_start(tiles, row, origin, extent):
    """Return the grid point where a row of the tile starts, or -1 if it is outside the lattice."""
    point, stride = int64(0), int64(1)
    for axis in range(origin.size):
        if row[axis] >= extent[axis]:
            return int64(-1)
        point += (origin[axis] + row[axis]) * stride
        stride *= tiles.shape[axis]
    return point


@inner
def _inside(offset, row, extent):
    """Return the range of sites in a row from which bonds with this offset stay in the tile."""
    for axis in range(1, extent.size):
        to = row[axis] + offset[axis]
        if to < 0 or to >= extent[axis]:
            return uint64(0), uint64(0)
    low, high = max(0, -offset[0]), min(extent[0], extent[0] - offset[0])
    return uint64(low), uint64(max(low, high))


@inner
def _collect(tiles, tile, stride, prefixes, exists, scratch):
    """Write the bonds of a tile as pairs, prefix and place; return their number.

    The place of an inner bond is its class and its owner's place; crossing bonds follow.
    """
    pairs, bonds, origin, extent = scratch.pairs[0], scratch.bonds, scratch.origin, scratch.extent
    bits, total = uint64(tiles.bits[0]), uint64(tiles.bits.sum())
    n = uint64(0)
    _enter(tiles, tile, origin, extent)
    for r in range(len(tiles.rows)):
        row = tiles.rows[r]
        start = _row_start(tiles, row, origin, extent)
        for k in range(len(tiles.offsets) if start >= 0 else 0):
            low, high = _inside(tiles.offsets[k], row, extent)
            first = uint64(uint64(uint64(k) * uint64(stride)) + uint64(start))
            before = uint64(uint64(uint64(k) << total) | uint64(uint64(r) << bits))
            for x in range(low, high):
                bond, place = uint64(first + x), uint64(before | x)
                pairs[n], bonds[place] = packed(prefixes[bond], place), uint32(bond)
                word = uint32(exists[uint64(bond >> uint64(5))])
                n = uint64(n + uint64(uint32(word >> uint32(bond & uint64(31))) & uint32(1)))
    place = uint64(uint64(len(tiles.offsets)) << total)
    for e in range(tiles.first[tile], tiles.first[tile + 1]):
        pairs[n], bonds[place] = packed(prefixes[tiles.bonds[e]], place), tiles.bonds[e]
        n, place = uint64(n + uint64(1)), uint64(place + uint64(1))
    return int64(n)


@inner
def _find_fragment_and_cluster(scratch, site):
    """Return (root of a site's fragment, root of its cluster in the tile)."""
    fragment = find_halving(scratch.fragments, uint32(site))
    return fragment, find_halving(scratch.joined, fragment)


@inner
def _join_inside(tiles, tile, pairs, count, scratch, tree):
    """Join the sorted bonds of a tile; return the number of left-over bonds."""
    fragments, joined, touched = scratch.fragments, scratch.joined, scratch.touched
    total = uint32(tiles.bits.sum())
    mask, crossing = uint32(fragments.size - 1), uint32(uint32(len(tiles.offsets)) << total)
    left = int64(0)
    for n in range(count):
        place = uint32(pairs[n] & uint64(LOW))
        if place >= crossing:
            site = tiles.sites[tiles.first[tile] + int64(uint32(place - crossing))]
            touched[_find_fragment_and_cluster(scratch, site)[1]] = uint8(1)
            continue
        site = uint32(place & mask)
        i, a = _find_fragment_and_cluster(scratch, site)
        j, b = _find_fragment_and_cluster(
            scratch, uint32(site + tiles.deltas[uint32(place >> total)])
        )
        if a == b:
            continue
        # A cluster that is not touched is a single fragment.
        if touched[a] == uint8(0) and (touched[b] != uint8(0) or b < a):
            fragments[a] = j
        elif touched[b] == uint8(0):
            fragments[b] = i
        else:
            joined[max(a, b)] = min(a, b)
            scratch.left[left] = place
            left += int64(1)
            continue
        add_to_tree(tree, scratch.bonds[place])
    return left


@inner
def _number_fragment(scratch, site, fragments):
    """Return (the number of a site's fragment, how many fragments are numbered)."""
    root = find_halving(scratch.fragments, uint32(site))
    number = scratch.numbers[root]
    if number < int32(0):
        number = int32(fragments)
        scratch.numbers[root] = number
        fragments += int64(1)
    return number, fragments


@njit(nogil=True, cache=True)
def join_tiles(weights, prefixes, exists, stride, tiles, scratch, listed, tree):
    """Write the certain bonds of all tiles to ``tree``, and list the undecided ones.

    stride: bond numbers per class.  listed: a
    :class:`percolab.trees.ordered_joins.BondList`, which gets the crossing bonds first, and whose
    nodes are fragments.  Returns (number of listed bonds, number of fragments at their ends).
    """
    mask, total = uint32(scratch.fragments.size - 1), uint32(tiles.bits.sum())
    fragments, count = int64(0), int64(tiles.ends.size // 2)
    for tile in range(tiles.first.size - 1):
        for site in range(scratch.fragments.size):
            scratch.fragments[site] = scratch.joined[site] = uint32(site)
            scratch.touched[site], scratch.numbers[site] = uint8(0), int32(-1)
        size = _collect(tiles, tile, stride, prefixes, exists, scratch)
        pairs = scratch.pairs[sort_pairs(scratch.pairs, size)]
        settle(weights, scratch.bonds, pairs, size)
        left = _join_inside(tiles, tile, pairs, size, scratch, tree)
        for n in range(left):
            place = scratch.left[n]
            listed.bonds[count] = scratch.bonds[place]
            site = uint32(place & mask)
            for end in range(2):
                listed.ends[2 * count + end], fragments = _number_fragment(scratch, site, fragments)
                site = uint32(site + tiles.deltas[uint32(place >> total)])
            count += int64(1)
        for e in range(tiles.first[tile], tiles.first[tile + 1]):
            end = tiles.ends[e]
            listed.bonds[end >> uint32(1)] = tiles.bonds[e]
            listed.ends[end], fragments = _number_fragment(scratch, tiles.sites[e], fragments)
    return count, fragments
