"""How a lattice is cut into tiles: which bonds stay inside one, and which lead from one to another.

Everything here is the same for all samples of a topology.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from percolab.labelers import TILE_DIMENSION
from percolab.topology import Topology, pack_bits, unpack_bits


@dataclass(frozen=True, eq=False)
class Tiling:
    """A topology cut into boxes of ``tile`` words, and grid points, along the axes.

    shape, tile, tiles: grid points of the lattice; words (axis 0) and grid points (axes 1, 2) of a
                        tile, powers of two; tiles along every axis
    inner:     uint32 like ``Topology.exists``: bonds with both ends in one tile
    border:    uint32 (num_words,), one bit a site: ends of bonds between tiles, end layers
    room:      the most border sites that a tile has
    classes, shifts, rows: for every class but the chain's, its number, and how many grid points
                        along axis 0 and how many words of a tile the other end is away
    crossing:  int64 (n, 3): for every bond between tiles its bond word, owner and other end
    codes:     int64 (n,), over how many periods it leads, as ``Topology.seam_codes``
    """

    shape: tuple[int, int, int]
    tile: tuple[int, int, int]
    tiles: tuple[int, int, int]
    inner: np.ndarray
    border: np.ndarray
    room: int
    classes: tuple[int, ...]
    shifts: tuple[int, ...]
    rows: tuple[int, ...]
    crossing: np.ndarray
    codes: np.ndarray

    @property
    def num_tiles(self) -> int:
        """Tiles of one sample."""
        return prod(self.tiles)


def can_tile(topology: Topology) -> str:
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
    crossing, codes = _crossing_bonds(topology, inner)
    border = _border_sites(topology, crossing)
    others = [k for k in range(topology.num_classes) if k != topology.chain]
    rows = [tile[0] * (offsets[k][1] + tile[1] * offsets[k][2]) for k in others]
    shifts = [offsets[k][0] for k in others]
    return Tiling(
        shape=shape,
        tile=tile,
        tiles=_tiles(shape, tile),
        inner=inner,
        border=pack_bits(border),
        room=_most_in_a_tile(border, shape, tile),
        classes=tuple(others),
        shifts=tuple(shifts),
        rows=tuple(rows),
        crossing=crossing,
        codes=codes,
    )


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


def _crossing_bonds(topology: Topology, inner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (bond word, owner, other end) and codes of all bonds not inner, in canonical order."""
    left = (topology.exists & ~inner).ravel()
    words = np.flatnonzero(left)
    row, bit = np.nonzero(unpack_bits(left[words, None], 32))
    word = words[row]
    k = word // topology.num_words
    owner = 32 * (word % topology.num_words) + bit
    other = owner + topology.deltas[k]
    codes = np.zeros(word.size, np.int64)
    if topology.seam_bonds.size:
        seam = np.searchsorted(32 * word + bit, topology.seam_bonds)
        other[seam], codes[seam] = topology.seam_ends, topology.seam_codes
    return np.stack([word, owner, other], axis=1), codes


def _border_sites(topology: Topology, crossing: np.ndarray) -> np.ndarray:
    border = np.zeros(topology.num_points, bool)
    border[crossing[:, 1]] = True
    border[crossing[:, 2]] = True
    for pair in topology.end_layers:
        for layer in pair:
            border[layer] = True
    return border


def _most_in_a_tile(
    border: np.ndarray, shape: tuple[int, int, int], tile: tuple[int, int, int]
) -> int:
    """Return the largest number of border sites in one tile, at least 1."""
    tiles = _tiles(shape, tile)
    sites = np.flatnonzero(border)
    x, y, z = sites % shape[0], sites // shape[0] % shape[1], sites // (shape[0] * shape[1])
    number = x // (32 * tile[0]) + tiles[0] * (y // tile[1] + tiles[1] * (z // tile[2]))
    return int(np.bincount(number, minlength=1).max())
