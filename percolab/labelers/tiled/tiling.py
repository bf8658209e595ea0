"""How a lattice is cut into tiles: which bonds stay inside one, and which lead from one to another.

Everything here is the same for all samples of a topology.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from percolab.labelers.tiled import TILE_DIMENSION
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology, pack_bits, unpack_bits


class CrossingBonds(NamedTuple):
    """Bonds between tiles: those of one word that lead equally far are one entry of n.

    On the host int64, and uint32 masks; kernels get words and owners as uint32, deltas as int32,
    and codes as CUDA has them.

    words:  (n,), the bond word
    owners: (n,), the word of sites that own its bonds
    masks:  (n,), which of its bonds lead to another tile
    deltas: (n,), their other ends less their owners
    codes:  (n,), over how many periods they lead, as ``Topology.seam_codes``
    """

    words: np.ndarray
    owners: np.ndarray
    masks: np.ndarray
    deltas: np.ndarray
    codes: np.ndarray

    @property
    def num_bonds(self) -> int:
        """How many bonds there are."""
        return int(np.bitwise_count(self.masks).sum(dtype=np.int64))

    def mark_ends(self, border: np.ndarray) -> None:
        """Set the bits of both ends of all bonds, in place; border: uint32, one bit a site."""
        np.bitwise_or.at(border, self.owners, self.masks)
        first, shift = np.divmod(32 * self.owners + self.deltas, 32)
        masks, shift = self.masks.astype(np.uint64), shift.astype(np.uint64)
        both = masks << shift
        for word, bits in (
            (first, both & np.uint64(0xFFFFFFFF)),
            (first + 1, both >> np.uint64(32)),
        ):
            some = bits != 0
            np.bitwise_or.at(border, word[some], bits[some].astype(np.uint32))


@dataclass(frozen=True, eq=False)
class Tiling:
    """A topology cut into boxes of ``tile`` words, and grid points, along the axes.

    shape, tile, tiles: grid points of the lattice; words (axis 0) and grid points (axes 1, 2) of a
                        tile, powers of two; tiles along every axis
    inner:     uint32 like ``Topology.exists``: bonds with both ends in one tile
    ends:      uint32 (num_words,), one bit a site: those of end layers
    room:      the most sites of a tile that may be at its border: in end layers, or ends of bonds
               between tiles
    classes, shifts, rows: for every class but the chain's, its number, and how many grid points
                        along axis 0 and how many words of a tile the other end is away
    crossing:  the bonds between tiles
    """

    shape: tuple[int, int, int]
    tile: tuple[int, int, int]
    tiles: tuple[int, int, int]
    inner: np.ndarray
    ends: np.ndarray
    room: int
    classes: tuple[int, ...]
    shifts: tuple[int, ...]
    rows: tuple[int, ...]
    crossing: CrossingBonds

    @property
    def num_tiles(self) -> int:
        """Tiles of one sample."""
        return prod(self.tiles)


def why_not_tiled(topology: Topology) -> str:
    """Return why a topology cannot be cut into tiles, or "" if it can."""
    if not topology.shape:
        return "a graph has no grid to cut into tiles"
    if len(topology.shape) > TILE_DIMENSION:
        return f"tiles have {TILE_DIMENSION} axes, the lattice {len(topology.shape)}"
    if topology.num_classes - (topology.chain >= 0) < 1:
        return "a chain has bonds along one axis alone"
    return ""


@lru_cache(maxsize=8)
def tiling_of(topology: Topology, words: int, strip: int) -> Tiling:
    """Cut a topology into tiles of up to ``words`` words, whose strips have ``strip`` words."""
    shape = _padded(topology.shape, 1)
    offsets = [_padded(offset, 0) for offset in topology.offsets]
    tile = _tile_of(shape, offsets, words, strip)
    inner = _inner_bonds(topology, shape, offsets, tile)
    crossing, ends = _crossing_bonds(topology, inner), _end_sites(topology)
    border = ends.copy()
    crossing.mark_ends(border)
    others = [k for k in range(topology.num_classes) if k != topology.chain]
    rows = [tile[0] * (offsets[k][1] + tile[1] * offsets[k][2]) for k in others]
    shifts = [offsets[k][0] for k in others]
    return Tiling(
        shape=shape,
        tile=tile,
        tiles=_tiles(shape, tile),
        inner=inner,
        ends=ends,
        room=_most_in_a_tile(unpack_bits(border, topology.num_points), shape, tile),
        classes=tuple(others),
        shifts=tuple(shifts),
        rows=tuple(rows),
        crossing=crossing,
    )


class TilingBounds(NamedTuple):
    """What a tiling takes at most, known before it is made.

    tiles:    tiles of a sample
    room:     the most sites of a tile that may be at its border
    crossing: bonds between tiles of a sample
    """

    tiles: int
    room: int
    crossing: int


def tiling_bounds(extent: Extent, words: int, strip: int) -> TilingBounds:
    """Return bounds on what :func:`tiling_of` will make of a topology of this extent."""
    shape = _padded(extent.shape, 1)
    offsets = [_padded(offset, 0) for offset in extent.offsets]
    tile = _tile_of(shape, offsets, words, strip)
    extents = 32 * tile[0], tile[1], tile[2]
    inside = [min(n, edge) for n, edge in zip(shape, extents)]
    volume, tiles = prod(inside), prod(_tiles(shape, tile))
    # On either side of a tile, the layers that a bond of any class can reach.
    faces = [2 * max(abs(offset[axis]) for offset in offsets) for axis in range(TILE_DIMENSION)]
    layers = [max(face, 2) if n > 1 else face for face, n in zip(faces, shape)]
    room = sum(volume // inside[axis] * layers[axis] for axis in range(TILE_DIMENSION))
    reach = [sum(abs(offset[axis]) for offset in offsets) for axis in range(TILE_DIMENSION)]
    cuts = [
        prod(shape) // n * -(-n // edge) * reach[axis]
        for axis, (n, edge) in enumerate(zip(shape, extents))
    ]
    return TilingBounds(tiles, min(room, volume), sum(cuts) + extent.seam_bonds)


def _padded(values: tuple[int, ...], filler: int) -> tuple[int, int, int]:
    x, y, z = (*values, filler, filler)[:TILE_DIMENSION]
    return x, y, z


def _tiles(shape: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, int, int]:
    extents = (32 * tile[0], tile[1], tile[2])
    x, y, z = (-(-n // extent) for n, extent in zip(shape, extents))
    return x, y, z


def _tile_of(
    shape: tuple[int, ...], offsets: list[tuple[int, int, int]], words: int, strip: int
) -> tuple[int, int, int]:
    """Return the tile that cuts the lattice into fewest tiles and, of those, through fewest bonds.

    A strip holds whole rows.
    """

    def cost(tile: tuple[int, int, int]) -> tuple[int, int, int]:
        tiles = _tiles(shape, tile)
        cuts = [
            prod(shape) // n * (count - 1) * sum(abs(offset[axis]) for offset in offsets)
            for axis, (n, count) in enumerate(zip(shape, tiles))
        ]
        return prod(tiles), sum(cuts), tile[0]

    widths = [wide for wide in (1, 2, 4) if strip % wide == 0]
    powers = [2**n for n in range(words.bit_length())]
    heights, depths = ([power for power in powers if power < 2 * n] for n in shape[1:])
    fitting = [t for t in product(widths, heights, depths) if prod(t) <= words]
    return min(fitting, key=cost)


def _inner_bonds(
    topology: Topology,
    shape: tuple[int, int, int],
    offsets: list[tuple[int, int, int]],
    tile: tuple[int, int, int],
) -> np.ndarray:
    inner = np.empty_like(topology.exists)
    for k, offset in enumerate(offsets):
        stays = np.ones(shape[::-1], bool)
        for axis, extent in enumerate((32 * tile[0], tile[1], tile[2])):
            here = np.arange(shape[axis])
            there = here + offset[axis]
            same = (here // extent == there // extent) & (there < shape[axis])
            stays &= same.reshape((-1,) + (1,) * axis)
        inner[k] = topology.exists[k] & pack_bits(stays.ravel())
    return inner


def _crossing_bonds(topology: Topology, inner: np.ndarray) -> CrossingBonds:
    """Return all bonds that are not inner: first those inside the lattice, then across seams."""
    seam, length = topology.seam_bonds, topology.num_words
    bits = np.uint32(1) << (seam & 31).astype(np.uint32)
    across = np.zeros(topology.exists.size, np.uint32)
    np.bitwise_or.at(across, seam >> 5, bits)
    left = (topology.exists & ~inner).ravel() & ~across
    words = np.flatnonzero(left)
    deltas = np.asarray(topology.deltas)[words // length]
    inside = words, words % length, left[words], deltas, np.zeros(words.size, np.int64)
    if not seam.size:
        return CrossingBonds(*inside)
    words = seam >> 5
    deltas = topology.seam_ends - (32 * (words % length) + (seam & 31))
    alike = np.stack([words, deltas, topology.seam_codes])
    starts = np.flatnonzero(np.append(True, np.any(alike[:, 1:] != alike[:, :-1], axis=0)))
    masks = np.bitwise_or.reduceat(bits, starts)
    words, deltas, codes = alike[:, starts]
    outside = words, words % length, masks, deltas, codes
    return CrossingBonds(*map(np.concatenate, zip(inside, outside, strict=True)))


def _end_sites(topology: Topology) -> np.ndarray:
    ends = np.zeros(topology.num_points, bool)
    for pair in topology.end_layers:
        for layer in pair:
            ends[layer] = True
    return pack_bits(ends)


def _most_in_a_tile(
    border: np.ndarray, shape: tuple[int, int, int], tile: tuple[int, int, int]
) -> int:
    """Return the largest number of border sites in one tile, at least 1."""
    tiles = _tiles(shape, tile)
    sites = np.flatnonzero(border)
    x, y, z = sites % shape[0], sites // shape[0] % shape[1], sites // (shape[0] * shape[1])
    number = x // (32 * tile[0]) + tiles[0] * (y // tile[1] + tiles[1] * (z // tile[2]))
    return int(np.bincount(number, minlength=1).max())
