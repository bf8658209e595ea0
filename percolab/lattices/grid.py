"""Masks over a finite grid of repeated cells, with open or periodic boundaries: sites and bonds.

A bond leads from a grid point, its owner, to the point an offset away.  Point (x, y, ...) has the
index x + shape[0] * (y + ...): the first axis runs fastest.
"""

from collections.abc import Collection, Iterator, Sequence
from math import gcd, prod

import numpy as np

from percolab.lattices.topology import ALL, PERIOD_BITS, PartWords, Topology, count_words, pack_bits

Point = tuple[int, ...]
# Words of a part of a grid, roughly, so that masks of parts stay in the caches.  Smaller grids are
# split into four parts, unless these would be tiny.
_PART_WORDS, _SMALL_PART = 2**17, 2**12


def choose_part_layers(shape: Point) -> int:
    """Return the most layers along the last axis that a part of a grid has."""
    layer = prod(shape[:-1])
    whole = 32 // gcd(32, layer)
    words = min(max(layer * shape[-1] // 128, _SMALL_PART), _PART_WORDS)
    return max(32 * words // (layer * whole), 1) * whole


class Grid:
    """Packed masks over the grid points of one shape, and lists of some of them.

    cell: grid points of a cell along each axis. boundary: "open" or "periodic" along each axis.
    depths: the thickness of the first and last layer along each axis, in grid points.
    """

    def __init__(
        self, cell: Point, shape: Point, boundary: tuple[str, ...], *, depths: Point
    ) -> None:
        self.cell, self.shape, self.boundary, self.depths = cell, shape, boundary, depths
        self.strides = tuple(prod(shape[:axis]) for axis in range(len(shape)))

    def delta(self, offset: Point) -> int:
        """Return the difference of the indices of two points that are an offset apart."""
        return sum(step * stride for step, stride in zip(offset, self.strides))

    def _cell_with(self, points: Collection[Point]) -> np.ndarray:
        """Return a boolean array over the cell, last axis first: True at the given points."""
        cell = np.zeros(self.cell[::-1], bool)
        for point in points:
            cell[point[::-1]] = True
        return cell

    def parts(self) -> list[slice]:
        """Return the layers, along the last axis, of each part; every part begins a new word."""
        num_layers, step = self.shape[-1], choose_part_layers(self.shape)
        return [slice(low, min(low + step, num_layers)) for low in range(0, num_layers, step)]

    def mask(self, points: Collection[Point], layers: Sequence[np.ndarray]) -> np.ndarray:
        """Return the copies of the given cell points in some layers, as words, one bit per point.

        layers: for every axis, booleans that select layers; a point must be in one along all axes
        """
        ((_, words),) = self.masks(points, layers, [ALL])
        return words

    def masks(
        self, points: Collection[Point], layers: Sequence[np.ndarray], parts: Sequence[slice]
    ) -> Iterator[PartWords]:
        """Yield the number of the first word and the words of :meth:`mask`, part by part."""
        from percolab.lattices.grid_loops import put_rows  # imports Numba

        *others, last = layers
        # For every cell point along the remaining axes: the mask along the axes already processed.
        rows, bits = self._cell_with(points).reshape(-1, 1).astype(np.uint32), 1
        for axis, (cell, there) in enumerate(zip(self.cell, others)):
            short = rows.reshape(-1, cell, rows.shape[1])
            if axis == 0:
                rows = _repeated(short[..., 0] > 0, there)
            else:
                rows = np.zeros((len(short), count_words(bits * there.size)), np.uint32)
                for words, kinds in zip(rows, short, strict=True):
                    put_rows(words, kinds, 0, bits, there)
            bits *= there.size

        def gather_words(first: int, there: np.ndarray) -> np.ndarray:
            words = np.zeros(count_words(bits * there.size), np.uint32)
            put_rows(words, rows, first, bits, there)
            return words

        for part in parts:
            first = part.start or 0
            yield first * bits // 32, gather_words(first, last[part])

    def listed(self, points: Collection[Point], along: Sequence[np.ndarray]) -> np.ndarray:
        """Return the copies of cell points at ascending coordinates along every axis, int32."""
        at = np.ix_(*(x % cell for x, cell in zip(along[::-1], self.cell[::-1], strict=True)))
        strides = zip(along[::-1], self.strides[::-1], strict=True)
        steps = ((x * stride).astype(np.int32) for x, stride in strides)
        index: np.ndarray = sum(np.ix_(*steps), np.zeros((), np.int32))
        copies: np.ndarray = index[self._cell_with(points)[at]]
        return copies

    def every_layer(self) -> list[np.ndarray]:
        return [np.ones(n, bool) for n in self.shape]

    def _inside(self, offset: Point, axis: int) -> np.ndarray:
        """Return the layers along an axis from which an offset stays within the grid."""
        there, step = np.ones(self.shape[axis], bool), offset[axis]
        there[: max(-step, 0)] = False
        there[max(there.size - max(step, 0), 0) :] = False
        return there

    def owner_layers(self, offset: Point) -> list[np.ndarray]:
        """Return the layers along each axis in which a bond may have its owner."""
        return [
            np.ones(n, bool) if kind == "periodic" else self._inside(offset, axis)
            for axis, (n, kind) in enumerate(zip(self.shape, self.boundary, strict=True))
        ]

    def inside_layers(self, offset: Point) -> list[np.ndarray]:
        """Return the layers along each axis in which the owners of non-crossing bonds lie."""
        return [self._inside(offset, axis) for axis in range(len(self.shape))]

    def layers_in_boxes(self, offset: Point, edges: Sequence[int]) -> list[np.ndarray]:
        """Return the layers along each axis whose bonds stay in a box of ``edges`` grid points."""
        stays = self.inside_layers(offset)
        for there, step, edge in zip(stays, offset, edges):
            ends = np.arange(step, step + edge)
            there &= np.resize((ends >= 0) & (ends < edge), there.size)
        return stays

    def count(self, points: Collection[Point], layers: Sequence[np.ndarray]) -> int:
        axes = [
            [int(np.count_nonzero(there[x::cell])) for x in range(cell)]
            for there, cell in zip(layers, self.cell, strict=True)
        ]
        return sum(
            prod(counts[x] for x, counts in zip(point, axes, strict=True)) for point in points
        )

    def other_ends(self, owners: np.ndarray, offset: Point) -> tuple[np.ndarray, np.ndarray]:
        """Return the other ends of bonds that may be periodic, like owners, and their codes, int64.

        A code encodes the periods that the bond crosses, starting from its owner
        (:func:`percolab.lattices.topology.period_codes`).
        """
        from percolab.lattices.grid_loops import find_other_ends  # imports Numba

        others, codes = np.empty_like(owners), np.empty(owners.size, np.int64)
        shape, steps = np.array(self.shape, np.uint32), np.array(offset, np.int64)
        find_other_ends(owners, shape, steps, PERIOD_BITS, others, codes)
        return others, codes

    def end_layers(self, axis: int, points: Collection[Point]) -> tuple[np.ndarray, np.ndarray]:
        """Return the sites of the first and last layer along an axis; none if it is periodic.

        Site indices, int32, in ascending order.  points: those of a cell that hold a site
        """
        if self.boundary[axis] == "periodic":
            return np.empty(0, np.int32), np.empty(0, np.int32)
        along = [np.arange(n) for n in self.shape]
        depth = min(self.depths[axis], self.shape[axis])
        ends = along[axis][:depth], along[axis][self.shape[axis] - depth :]
        first, last = (self.listed(points, [*along[:axis], x, *along[axis + 1 :]]) for x in ends)
        return first, last


def _repeated(cells: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return cells, bool (kinds, points), repeated where ``there`` is True, as words."""
    # 32 cells fill a whole number of words, one for each point of the cell.
    period, patterns = cells.shape[1], pack_bits(np.tile(cells, 32))
    rows = np.repeat(pack_bits(there)[np.newaxis], len(cells), axis=0)
    for n in range(period):
        rows[:, n::period] &= patterns[:, n : n + 1]
    return rows


def bonds_in_boxes(topology: Topology, k: int, edges: Sequence[int]) -> np.ndarray:
    """Return the bonds of class k with both ends in one of the boxes that a grid is cut into.

    uint32 like ``Topology.compute_exists``.  Bonds across periodic boundaries are not included.
    edges: grid points of a box along the axes; more entries than the grid has axes are ignored
    """
    ((_, words),) = parts_in_boxes(topology, k, edges, [ALL])
    return words


def parts_in_boxes(
    topology: Topology, k: int, edges: Sequence[int], parts: Sequence[slice] | None = None
) -> Iterator[PartWords]:
    """Yield :func:`bonds_in_boxes` part by part, like ``Topology.exists_parts``."""
    assert topology.grid is not None, "boxes are cut out of a grid"
    stays = topology.grid.layers_in_boxes(topology.offsets[k], edges)
    parts = topology.parts if parts is None else parts
    yield from topology.grid.masks(topology.owners_at[k], stays, parts)
