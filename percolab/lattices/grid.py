"""Which points of a finite grid hold a site or a bond: cells repeated, and cut off or closed up.

A bond leads from a grid point, its owner, to the point an offset away.  Point (x, y, ...) has the
index x + shape[0] * (y + ...): the first axis runs fastest.
"""

from __future__ import annotations

from math import prod

import numpy as np

Point = tuple[int, ...]


class Grid:
    """Masks over the grid points of one shape, as boolean arrays with the last axis first.

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

    def tiled(self, points: frozenset[Point]) -> np.ndarray:
        """Return which grid points are copies of the given cell points."""
        cell = np.zeros(self.cell[::-1], bool)
        for point in points:
            cell[point[::-1]] = True
        copies = [-(-n // c) for n, c in zip(self.shape[::-1], self.cell[::-1])]
        return np.tile(cell, copies)[tuple(slice(n) for n in self.shape[::-1])]

    def bond_masks(self, at: frozenset[Point], offset: Point) -> tuple[np.ndarray, np.ndarray]:
        """Return the owners of existing bonds, and those whose bond crosses a periodic seam."""
        exists = self.tiled(at)
        seam = np.zeros_like(exists)
        for axis, step in enumerate(offset):
            end = np.arange(self.shape[axis]) + step
            inside = ((end >= 0) & (end < self.shape[axis])).reshape((-1,) + (1,) * axis)
            if self.boundary[axis] == "periodic":
                seam |= ~inside
            else:
                exists &= inside
        return exists, seam & exists

    def seam_list(
        self, offset: Point, seam: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return owner, other end, and the periods between, of every seam bond of a class.

        Periods are int64 (number of seam bonds, axes), as the bond leads from its owner.
        """
        owner = np.flatnonzero(seam)
        other = np.zeros_like(owner)
        periods = np.zeros((owner.size, len(self.shape)), np.int64)
        for axis, (n, stride, step) in enumerate(zip(self.shape, self.strides, offset)):
            end = owner // stride % n + step
            other += end % n * stride
            periods[:, axis] = end // n
        return owner, other, periods

    def end_layers(self, axis: int, occupied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sites of the first and last layer along an axis; none if it is periodic.

        Site indices, int32, in ascending order.
        """
        if self.boundary[axis] == "periodic":
            return np.empty(0, np.int32), np.empty(0, np.int32)
        index = np.arange(prod(self.shape), dtype=np.int64).reshape(self.shape[::-1])
        depth = min(self.depths[axis], self.shape[axis])
        along = len(self.shape) - 1 - axis
        layers = []
        for where in (slice(0, depth), slice(self.shape[axis] - depth, None)):
            cut = tuple(where if n == along else slice(None) for n in range(len(self.shape)))
            layers.append(index[cut][occupied[cut]].astype(np.int32).ravel())
        return layers[0], layers[1]
