"""Which points of a finite grid hold a site or a bond: cells repeated, and cut off or closed up.

A bond leads from a grid point, its owner, to the point an offset away.  Point (x, y, ...) has the
index x + shape[0] * (y + ...): the first axis runs fastest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

import numpy as np

from percolab.lattices.topology import PERIOD_BITS, Topology, num_words_of

Point = tuple[int, ...]


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

    def mask(self, points: Collection[Point], layers: Sequence[np.ndarray]) -> np.ndarray:
        """Return the copies of the given cell points in some layers, as words of a bit a point.

        layers: along every axis which layers, booleans; a point must be in one along all of them
        """
        from percolab.lattices.packed_rows import put_rows  # brings Numba along

        # For every cell point of the axes to come, the grid points of those that there were.
        rows, bits = self._cell_with(points).reshape(-1, 1).astype(np.uint32), 1
        for cell, there in zip(self.cell, layers, strict=True):
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
        end = np.arange(self.shape[axis]) + offset[axis]
        return (end >= 0) & (end < self.shape[axis])

    def owner_layers(self, offset: Point) -> list[np.ndarray]:
        """Return in which layers along each axis a bond may have its owner."""
        axes = zip(self.boundary, self.every_layer(), strict=True)
        return [
            every if kind == "periodic" else self._inside(offset, axis)
            for axis, (kind, every) in enumerate(axes)
        ]

    def seam_list(
        self, points: Collection[Point], offset: Point, layers: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return owner, other end and code, int64, of every bond across a periodic seam.

        Its owners are copies of the given cell points in some layers (:meth:`mask`), ascending.
        The code is that of the periods which the bond leads over from its owner
        (:func:`percolab.lattices.topology.period_codes`).
        """
        along, found = [np.flatnonzero(there) for there in layers], [np.empty(0, np.int64)]
        for axis, kind in enumerate(self.boundary):
            if kind == "periodic":
                crossing = np.flatnonzero(layers[axis] & ~self._inside(offset, axis))
                found.append(self.listed(points, [*along[:axis], crossing, *along[axis + 1 :]]))
        # Each list is ascending, and this sort makes use of it.
        owner = np.sort(np.concatenate(found), kind="stable")
        owner = owner[np.diff(owner, prepend=-1) > 0]
        other, codes = np.zeros_like(owner), np.zeros_like(owner)
        for axis, (n, stride, step) in enumerate(zip(self.shape, self.strides, offset)):
            end = owner // stride % n + step
            other += end % n * stride
            codes += end // n << PERIOD_BITS * axis
        return owner, other, codes

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


def bonds_in_boxes(topology: Topology, k: int, edges: Sequence[int]) -> np.ndarray:
    """Return the bonds of class k that stay in one of the boxes that a grid is cut into.

    uint32 (num_words,) like ``Topology.exists``.  Bonds across periodic seams are none of these.
    edges: grid points of a box along the axes; more axes than the grid's are left out
    """
    shape, ones, stays = topology.shape, (1,) * len(topology.shape), []
    for n, step, edge in zip(shape, topology.offsets[k], edges):
        here = np.arange(n)
        there = here + step
        stays.append((here // edge == there // edge) & (there < n))
    every_point = Grid(ones, shape, ("open",) * len(shape), depths=ones)
    found = every_point.mask([(0,) * len(shape)], stays)
    found &= topology.exists[k]
    return found
