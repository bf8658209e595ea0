"""Which points of a finite grid hold a site or a bond: cells repeated, and cut off or closed up.

A bond leads from a grid point, its owner, to the point an offset away.  Point (x, y, ...) has the
index x + shape[0] * (y + ...): the first axis runs fastest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd, prod

import numpy as np

from percolab.lattices.topology import ALL, PERIOD_BITS, Topology, num_words_of

Point = tuple[int, ...]
# Words of a part of a grid, about: masks of parts take few bytes, and stay in the caches.
_PART_WORDS = 2**17
# Rows of a part at least: the points of one are looked at one by one for every part.
_PART_ROWS = 32


def layers_of_part(shape: Point) -> int:
    """Return how many layers along the last axis are a part of a grid, if there are so many."""
    layer = prod(shape[:-1])
    whole = 32 // gcd(32, layer)
    row = shape[0] if len(shape) > 1 else 1
    points = max(32 * _PART_WORDS, _PART_ROWS * row)
    return max(points // (layer * whole), 1) * whole


class Grid:
    """Packed masks over the grid points of one shape, and lists of some of them.

    cell: grid points of a cell along each axis. boundary: "open" or "periodic" along each axis.
    depths: how thick the first and last layer are along each axis.
    """

    def __init__(
        self, cell: Point, shape: Point, boundary: tuple[str, ...], *, depths: Point
    ) -> None:
        self.cell, self.shape, self.boundary, self.depths = cell, shape, boundary, depths
        self.strides = tuple(prod(shape[:axis]) for axis in range(len(shape)))

    def delta(self, offset: Point) -> int:
        """Return the index difference of two points an offset apart."""
        return sum(step * stride for step, stride in zip(offset, self.strides))

    def _cell_with(self, points: Collection[Point]) -> np.ndarray:
        """Return which points of a cell are given, booleans with the last axis first."""
        cell = np.zeros(self.cell[::-1], bool)
        for point in points:
            cell[point[::-1]] = True
        return cell

    def parts(self) -> list[slice]:
        """Return layers along the last axis, part by part; every part begins with a word."""
        num_layers, step = self.shape[-1], layers_of_part(self.shape)
        return [slice(low, min(low + step, num_layers)) for low in range(0, num_layers, step)]

    def mask(
        self, points: Collection[Point], layers: Sequence[np.ndarray], part: slice = ALL
    ) -> np.ndarray:
        """Return the copies of the given cell points in some layers, as words of a bit a point.

        layers: along every axis which layers, booleans; a point must be in one along all of them
        part:   one of :meth:`parts`: its words alone
        """
        from percolab.lattices.packed_rows import put_rows  # brings Numba along

        *others, last = layers
        # For every cell point of the axes to come, the grid points of those that there were.
        cell_points = np.roll(self._cell_with(points), -(part.start or 0), axis=0)
        rows, bits = cell_points.reshape(-1, 1).astype(np.uint32), 1
        for cell, there in zip(self.cell, (*others, last[part]), strict=True):
            short = rows.reshape(-1, cell, rows.shape[1])
            rows = np.zeros((len(short), num_words_of(bits * there.size)), np.uint32)
            for words, parts in zip(rows, short, strict=True):
                put_rows(words, parts, bits, there)
            bits *= there.size
        found: np.ndarray = rows[0]
        return found

    def listed(self, points: Collection[Point], along: Sequence[np.ndarray]) -> np.ndarray:
        """Return the copies of the given cell points at some coordinates, int64, ascending.

        along: coordinates along every axis, ascending
        """
        at = np.ix_(*(x % cell for x, cell in zip(along[::-1], self.cell[::-1], strict=True)))
        steps = (x * stride for x, stride in zip(along[::-1], self.strides[::-1], strict=True))
        index: np.ndarray = sum(np.ix_(*steps), np.zeros((), np.int64))
        found: np.ndarray = index[self._cell_with(points)[at]]
        return found

    def every_layer(self) -> list[np.ndarray]:
        """Return all layers along each axis."""
        return [np.ones(n, bool) for n in self.shape]

    def _inside(self, offset: Point, axis: int) -> np.ndarray:
        """Return from which layers an offset leads to another layer of the grid."""
        there, step = np.ones(self.shape[axis], bool), offset[axis]
        there[: max(-step, 0)] = False
        there[max(there.size - max(step, 0), 0) :] = False
        return there

    def owner_layers(self, offset: Point) -> list[np.ndarray]:
        """Return in which layers along each axis a bond may have its owner."""
        axes = zip(self.boundary, self.every_layer(), strict=True)
        return [
            every if kind == "periodic" else self._inside(offset, axis)
            for axis, (kind, every) in enumerate(axes)
        ]

    def inside_layers(self, offset: Point) -> list[np.ndarray]:
        """Return in which layers along each axis a bond has its owner and crosses no boundary."""
        return [self._inside(offset, axis) for axis in range(len(self.shape))]

    def count(self, points: Collection[Point], layers: Sequence[np.ndarray]) -> int:
        """Return how many grid points :meth:`mask` finds."""
        axes = tuple(zip(layers, self.cell, strict=True))
        return sum(
            prod(int(there[x::cell].sum()) for x, (there, cell) in zip(point, axes, strict=True))
            for point in points
        )

    def other_ends(self, owners: np.ndarray, offset: Point) -> tuple[np.ndarray, np.ndarray]:
        """Return the other ends of bonds that may cross seams, like owners, and their codes, int64.

        The code is that of the periods which the bond leads over from its owner
        (:func:`percolab.lattices.topology.period_codes`).
        """
        left, other, codes = owners, np.zeros_like(owners), np.zeros(owners.size, np.int64)
        for axis, (n, stride, step) in enumerate(zip(self.shape, self.strides, offset)):
            # Several times as fast as np.divmod.
            rest = left // n
            end = left - rest * n + step
            periods = end // n
            other += (end - periods * n) * stride
            codes += np.left_shift(periods, PERIOD_BITS * axis, dtype=np.int64)
            left = rest
        return other, codes

    def end_layers(self, axis: int, points: Collection[Point]) -> tuple[np.ndarray, np.ndarray]:
        """Return the sites of the first and last layer along an axis; none if it is periodic.

        Site indices, int32, in ascending order.  points: those of a cell that hold a site
        """
        if self.boundary[axis] == "periodic":
            return np.empty(0, np.int32), np.empty(0, np.int32)
        along = [np.arange(n) for n in self.shape]
        depth = min(self.depths[axis], self.shape[axis])
        ends = along[axis][:depth], along[axis][self.shape[axis] - depth :]
        first, last = (
            self.listed(points, [*along[:axis], x, *along[axis + 1 :]]).astype(np.int32)
            for x in ends
        )
        return first, last


def bonds_in_boxes(
    topology: Topology, k: int, edges: Sequence[int], part: slice = ALL
) -> np.ndarray:
    """Return the bonds of class k that stay in one of the boxes that a grid is cut into.

    uint32 like ``Topology.exists_of``.  Bonds across periodic seams are none of these.
    edges: grid points of a box along the axes; more axes than the grid's are left out
    """
    assert topology.grid is not None, "boxes are cut out of a grid"
    stays = topology.grid.inside_layers(topology.offsets[k])
    for there, step, edge in zip(stays, topology.offsets[k], edges):
        here = np.arange(there.size)
        there &= here // edge == (here + step) // edge
    found: np.ndarray = topology.grid.mask(topology.owners_at[k], stays, part)
    return found
