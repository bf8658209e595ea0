"""The division of a lattice into tiles, and of its bonds into those within and between tiles.

Everything here is the same for all samples of a topology.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, islice, product, starmap
from math import prod
from typing import Any, NamedTuple

import numpy as np

from percolab.labelers.tiled.border_words import (
    additional_bits,
    count_in_tiles,
    join_bonds,
    mark_both_ends,
)
from percolab.lattices.extent import Extent
from percolab.lattices.grid import Grid, parts_in_boxes
from percolab.lattices.topology import PartWords, Topology, set_bits

# Near p_c, a tile takes as long as this many bonds between tiles: 31 ns against 33 ps per bond on
# an H200 (results/notebook/performance.md, slabs).
BONDS_A_TILE = 1000
#: The most parts in which the bonds of a class are listed.
PARTS = 8


@dataclass(frozen=True, eq=False)
class CrossingBonds:
    """All or some bonds between tiles, as n entries: bonds of one word with the same delta.

    words:      uint32 (n,), the bond word
    masks:      uint32 (n,), which of its bonds lead to another tile
    lengths:    int64 (runs,), the numbers of successive entries with the same delta
    run_deltas: int64 (runs,), their deltas: other end less owner
    run_codes:  int64 (runs,), codes of the periods that they cross, as ``Topology.periodic_codes``
    num_words:  bond words of one class
    """

    words: np.ndarray
    masks: np.ndarray
    lengths: np.ndarray
    run_deltas: np.ndarray
    run_codes: np.ndarray
    num_words: int

    @property
    def num_bonds(self) -> int:
        return int(np.bitwise_count(self.masks).sum(dtype=np.int64))

    @property
    def owners(self) -> np.ndarray:
        """The word of sites that own the bonds of each entry, uint32 (n,)."""
        return self.words % np.uint32(self.num_words)

    def of_entries(self, of_runs: np.ndarray) -> np.ndarray:
        """Return values per run, like ``run_deltas``, repeated for every entry."""
        return np.repeat(of_runs, self.lengths)

    def mark_ends(self, border: np.ndarray) -> None:
        """Set the bits of both ends of all bonds, in place; border: uint32, one bit a site."""
        mark_both_ends(border, self.words, self.masks, self.lengths, self.run_deltas)


@dataclass(frozen=True, eq=False)
class Tiling:
    """A topology cut into boxes of ``tile`` words, and grid points, along its axes.

    The first ``joined`` axes of the topology count as one axis, along which words are full even if
    rows are short.  There are at least three axes; missing ones have one grid point.

    shape, tile, tiles: grid points of the lattice; words (axis 0) and grid points (other axes) of a
                        tile, powers of two; tiles along every axis
    topology:  the topology that is cut
    joined:    how many of its axes form axis 0
    room:      the most sites of a tile that may be at its border: in end layers, or ends of bonds
               between tiles
    num_entries, num_crossing: entries of the bonds between tiles, and these bonds
    classes, shifts, rows: for every class but the chain's: its number, and the distance of the
                        other end in grid points along axis 0 and in words of a tile
    """

    shape: tuple[int, ...]
    tile: tuple[int, ...]
    tiles: tuple[int, ...]
    topology: Topology
    joined: int
    room: int
    classes: tuple[int, ...]
    shifts: tuple[int, ...]
    rows: tuple[int, ...]
    num_entries: int = 0
    num_crossing: int = 0

    @property
    def num_tiles(self) -> int:
        return prod(self.tiles)

    def inner_parts(self, k: int) -> Iterator[PartWords]:
        """Yield the bonds of class k with both ends in one tile, as ``Topology.exists_parts``."""
        edges = _extents(self.tile)
        if self.joined == 1:
            return parts_in_boxes(self.topology, k, edges)
        whole = self.topology.shape[: self.joined]
        shape = prod(whole), *self.topology.shape[self.joined :]
        one = (1,) * len(shape)
        grid = Grid(one, shape, ("open",) * len(shape), depths=one)
        stays = grid.layers_in_boxes(_join_axes(whole, self.topology.offsets[k]), edges)
        boxes = grid.masks([(0,) * len(shape)], stays, self.topology.parts)
        inside = self.topology.inside_parts(k)
        return ((first, words & others) for (first, words), (_, others) in zip(boxes, inside))

    @property
    def crossing(self) -> CrossingBonds:
        """All bonds between tiles, computed at every call."""
        parts = list(self.crossing_parts())
        arrays = ("words", "masks", "lengths", "run_deltas", "run_codes")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in arrays}
        return CrossingBonds(**joined, num_words=self.topology.num_words)

    def crossing_parts(self) -> Iterator[CrossingBonds]:
        """Yield the bonds between tiles: those inside the lattice, then the periodic ones.

        The bonds of a class come in parts, each of which takes little memory.
        """
        for k in range(self.topology.num_classes):
            yield from self._leaving_bonds(k)
        for k in range(self.topology.num_classes):
            pieces = self.topology.periodic_list_pieces(k)
            yield from starmap(partial(_periodic_bonds, self.topology.num_words, k), pieces)

    def _leaving_bonds(self, k: int) -> Iterator[CrossingBonds]:
        """Yield the bonds of class k between tiles that cross no periodic boundary."""
        top = self.topology
        deltas, parts = top.deltas[k : k + 1], self._leaving_parts(k)
        step = -(-len(top.parts) // PARTS)
        while some := list(islice(parts, step)):
            words, masks = map(np.concatenate, zip(*some))
            runs = np.array([words.size]), deltas, np.zeros_like(deltas)
            yield CrossingBonds(words, masks, *runs, num_words=top.num_words)

    def _leaving_parts(self, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        def leaving(every: PartWords, others: PartWords) -> tuple[np.ndarray, np.ndarray]:
            (first, inside), (_, inner) = every, others
            words, masks = additional_bits(inside, inner)
            words += np.uint32(k * self.topology.num_words + first)
            return words, masks

        return map(leaving, self.topology.inside_parts(k), self.inner_parts(k))

    @property
    def ends(self) -> np.ndarray:
        """The sites of end layers, a new array uint32 (num_words,), one bit per site."""
        words = np.zeros(self.topology.num_words, np.uint32)
        for layer in chain.from_iterable(self.topology.end_layers):
            set_bits(words, layer)
        return words


def why_not_tiled(topology: Topology) -> str:
    """Return why a topology cannot be cut into tiles, or "" if it can."""
    if not topology.shape:
        return "a graph has no grid to cut into tiles"
    if topology.num_classes - (topology.chain >= 0) < 1:
        return "a chain has bonds along one axis alone"
    return ""


@lru_cache(maxsize=2)
def make_tiling(topology: Topology, words: int, strip: int) -> Tiling:
    """Cut a topology into tiles of up to ``words`` words, whose strips have ``strip`` words."""
    joined, shape, offsets, tile = _choose_tile(topology.shape, topology.offsets, words, strip)
    others = [k for k in range(topology.num_classes) if k != topology.chain]
    tiling = Tiling(
        shape=shape,
        tile=tile,
        tiles=_tiles(shape, tile),
        topology=topology,
        joined=joined,
        room=0,
        classes=tuple(others),
        shifts=tuple(offsets[k][0] for k in others),
        rows=tuple(_rows_away(tile, offsets[k]) for k in others),
    )
    border, entries, bonds = tiling.ends, 0, 0
    for part in tiling.crossing_parts():
        part.mark_ends(border)
        entries, bonds = entries + part.words.size, bonds + part.num_bonds
    room = int(count_in_tiles(border, shape, _extents(tile), tiling.tiles).max())
    return replace(tiling, room=room, num_entries=entries, num_crossing=bonds)


class TilingBounds(NamedTuple):
    """Upper bounds on the numbers of a tiling, known before it is made.

    tiles:    tiles of a sample
    room:     the most sites of a tile that may be at its border
    crossing: bonds between tiles of a sample
    entries:  entries of these bonds
    """

    tiles: int
    room: int
    crossing: int
    entries: int


def tiling_bounds(extent: Extent, words: int, strip: int) -> TilingBounds:
    """Return bounds on the tiling that :func:`make_tiling` makes of a topology of this extent."""
    joined, shape, offsets, tile = _choose_tile(extent.shape, extent.offsets, words, strip)
    extents = _extents(tile)
    inside = [min(n, edge) for n, edge in zip(shape, extents)]
    volume, tiles, axes = prod(inside), prod(_tiles(shape, tile)), range(len(shape))
    # The layers of a tile, on both sides together, that bonds of any class can reach.
    layers = [2 * max(abs(offset[axis]) for offset in offsets) for axis in axes]
    if joined > 1 and inside[0] == shape[0]:
        layers[0] = 0
    reach = [max(abs(offset[axis]) for offset in extent.offsets) for axis in range(extent.num_axes)]
    deep = [max(pair) for pair in zip(reach, extent.depths, strict=True)]
    for axis, depth in enumerate(deep[joined:], 1):
        layers[axis] = max(layers[axis], 2 * depth)
    # The end layers of joined axes may lie anywhere along axis 0.
    for axis in range(joined):
        stride = prod(extent.shape[:axis])
        periods, rest = divmod(inside[0], stride * extent.shape[axis])
        band = stride * min(deep[axis], extent.shape[axis])
        at_ends = 2 * (periods * band + min(band, rest))
        layers[0] = at_ends + layers[0] if joined > 1 else max(layers[0], at_ends)
    room = sum(volume // inside[axis] * layers[axis] for axis in axes)
    cuts = [_count_cuts(shape, offsets, axis, -(-shape[axis] // extents[axis])) for axis in axes]
    # Along axis 0, a word has one bond to another tile; along the other axes, whole rows do.
    rows = sum(cuts[1:]) // shape[0]
    entries = min(cuts[0] + rows * (shape[0] // 32 + 2), extent.num_words) + extent.periodic_bonds
    return TilingBounds(tiles, min(room, volume), sum(cuts) + extent.periodic_bonds, entries)


def _join_axes(whole: tuple[int, ...], offset: tuple[int, ...]) -> tuple[int, ...]:
    """Return an offset with the first axes, of shape ``whole``, as one; at least three axes."""
    joined = len(whole)
    along = sum(step * prod(whole[:axis]) for axis, step in enumerate(offset[:joined]))
    return along, *offset[joined:], *(0,) * (2 + joined - len(offset))


def _rows_away(tile: tuple[int, ...], offset: tuple[int, ...]) -> int:
    """Return the distance, in words of a tile, of an offset without its step along axis 0."""
    return sum(step * prod(tile[:axis]) for axis, step in enumerate(offset) if axis)


def _extents(tile: tuple[int, ...]) -> tuple[int, ...]:
    return 32 * tile[0], *tile[1:]


def _tiles(shape: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-n // extent) for n, extent in zip(shape, _extents(tile)))


def _count_cuts(
    shape: tuple[int, ...], offsets: tuple[tuple[int, ...], ...], axis: int, count: int
) -> int:
    """Return an upper bound on the bonds over ``count`` borders across an axis."""
    n = shape[axis]
    return prod(shape) // n * sum(min(count * abs(offset[axis]), n) for offset in offsets)


@lru_cache(maxsize=64)
def _choose_tile(
    shape: tuple[int, ...], offsets: tuple[tuple[int, ...], ...], words: int, strip: int
) -> tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return the fastest (number of joined axes, shape and offsets then, tile).

    The time is that of tiles and of the bonds between them.  A strip has whole rows.
    """
    best: Any = None
    for joined in range(1, max(len(shape), 2)):
        whole = shape[:joined]
        own = prod(whole), *shape[joined:], *(1,) * (2 + joined - len(shape))
        moved = tuple(_join_axes(whole, offset) for offset in offsets)
        for tile in _possible_tiles(own, words, strip):
            tiles = _tiles(own, tile)
            cuts = (_count_cuts(own, moved, axis, n - 1) for axis, n in enumerate(tiles))
            cost = BONDS_A_TILE * prod(tiles) + sum(cuts), joined, tile[0]
            if best is None or cost < best:
                best, chosen = cost, (joined, own, moved, tile)
    return chosen


def _possible_tiles(shape: tuple[int, ...], words: int, strip: int) -> Iterator[tuple[int, ...]]:
    """Yield the tiles of up to ``words`` words whose rows are fractions of a strip."""
    powers = [2**n for n in range(words.bit_length())]
    widths = [wide for wide in powers if strip % wide == 0]
    others = ([power for power in powers if power < 2 * n] for n in shape[1:])
    return (tile for tile in product(widths, *others) if prod(tile) <= words)


def _periodic_bonds(
    length: int, k: int, owners: np.ndarray, ends: np.ndarray, codes: np.ndarray
) -> CrossingBonds:
    """Return a piece of the periodic bonds of class k as entries; a class has ``length`` words.

    owners, ends, codes: those of ``Topology.periodic_list_pieces``; the codes are overwritten
    """
    words, masks = np.empty_like(owners, np.uint32), np.empty_like(owners, np.uint32)
    deltas = np.empty_like(codes)
    count = join_bonds(owners, ends, codes, words, masks, deltas)
    words = words[:count] + np.uint32(k * length)
    runs = np.ones(count, np.int64), deltas[:count], codes[:count]
    return CrossingBonds(words, masks[:count], *runs, num_words=length)
