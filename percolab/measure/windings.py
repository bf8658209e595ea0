"""Which clusters of one configuration wrap around which periodic axes.

The bonds that cross no periodic boundary join sites to pieces.  Between pieces the bonds of the
periodic boundaries are left, few of them, and each says how many periods it leads on.  Where such
bonds close a loop whose periods do not add up to zero along an axis, the cluster wraps around that
axis, as in :mod:`percolab.measure.wrapping`, which tells it of all clusters together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from percolab.lattices.topology import Topology, decode_periods

Periods = NDArray[np.int64]


def wrapping_clusters(
    topology: Topology, opened: NDArray[np.uint32], numbers: NDArray[np.int32]
) -> dict[int, NDArray[np.int64]]:
    """Return by periodic axis the numbers of the clusters that wrap around it, int64, ascending.

    opened: uint32 (num_classes, num_words), the open bonds.  numbers: int32 (num_points,), of every
    site's cluster.
    """
    periodic = [axis for axis in range(topology.num_axes) if axis not in topology.open_axes]
    if not periodic or not topology.shape:
        return {}
    from percolab.measure.pieces import find_pieces  # imports Numba

    open_periodic = np.flatnonzero(_is_open(opened, topology.periodic_bonds))
    owners = topology.periodic_bonds[open_periodic] % (32 * topology.num_words)
    ends = topology.periodic_ends[open_periodic]
    periods = decode_periods(topology.periodic_codes[open_periodic], topology.num_axes)
    pieces = find_pieces(topology, opened)
    joined = _Pieces()
    found: dict[int, set[int]] = {axis: set() for axis in periodic}
    bonds = zip(pieces[owners].tolist(), pieces[ends].tolist(), periods, numbers[owners].tolist())
    for one, other, step, cluster in bonds:
        loop = joined.join(one, other, step)
        for axis in np.flatnonzero(loop).tolist():
            found[axis].add(cluster)
    return {axis: np.array(sorted(found[axis]), np.int64) for axis in periodic}


class _Pieces:
    """A union-find of pieces that knows how many periods each is away from its root."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}
        self._away: dict[int, Periods] = {}

    def join(self, one: int, other: int, step: Periods) -> Periods:
        """Join two pieces that are ``step`` periods apart; return the periods around the loop.

        They are 0 where no loop is closed.
        """
        (root, away), (other_root, other_away) = self._root(one), self._root(other)
        loop = away + step - other_away
        if root == other_root:
            return loop
        self._parent[other_root], self._away[other_root] = root, loop
        return np.zeros_like(step)

    def _root(self, piece: int) -> tuple[int, Periods]:
        path: list[int] = []
        while self._parent.get(piece, piece) != piece:
            path.append(piece)
            piece = self._parent[piece]
        total: Periods = np.zeros(1, np.int64)
        for below in reversed(path):
            total = total + self._away[below]
            self._parent[below], self._away[below] = piece, total
        return piece, total


def _is_open(opened: NDArray[np.uint32], bonds: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which bonds are open, by their numbers 32 * word + bit in the words of all classes."""
    words = opened.ravel()[bonds >> 5]
    return np.asarray((words >> (bonds & 31).astype(np.uint32)) & np.uint32(1), bool)
