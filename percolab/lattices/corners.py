"""Corners of a planar lattice: which face lies between two neighbouring bonds of a site.

Two sides of a lattice are *terminals*: each is one node with all that lies beyond it, which the
bonds there contract.  Around a terminal the other bonds have an order too, along its side.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.lattices.dual import DrawnCell, DualTopology, make_dual_topology, reverse
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import Topology

#: The most bonds that a site may have.
MOST_BONDS = 12
#: A site of the infinite lattice, or a face: its number in the cell, and the cell.
_Site = tuple[int, tuple[int, int]]
#: A bond on a walk: class, owner, and the faces before and after it.
_Step = tuple[int, tuple[int, int], _Site, _Site]


class Side(NamedTuple):
    """The bonds of a terminal in their order, and the faces between them.

    places: uint32 (n,), where the bonds are in the bond words of a topology
    faces:  uint32 (n + 1,), the face before every bond, and the one after the last; where the
            order is cyclic, (2n,): the faces before the bonds of two turns
    """

    places: NDArray[np.uint32]
    faces: NDArray[np.uint32]


class Corners(NamedTuple):
    """The corners of a planar lattice between two of its sides.

    dual:   the dual of the topology; it goes around twice where the axis across is periodic
    bonds:  int32 (classes * cell points, 6), the faces to the left and right of every bond
    starts: int32 (cell points + 1,), where the bonds around a point of the cell begin in ``around``
    around: int32 (n, 6), the bonds of each point, counterclockwise: class, distance to the owner
            along both axes, and the face between this bond and the next
    sides:  the terminals

    A face has three numbers: its number in its cell, and the distance to that cell along both axes.
    """

    dual: DualTopology
    bonds: NDArray[np.int32]
    starts: NDArray[np.int32]
    around: NDArray[np.int32]
    sides: tuple[Side, Side]


def make_corners(lattice: Lattice, topology: Topology) -> Corners | None:
    """Return the corners between the two sides of the last open axis.

    None if the region beyond a side is not connected in the plane, if a bond is as long as the
    lattice is wide, if the end layers overlap, or if a site has too many bonds.  InputError: as for
    :func:`percolab.lattices.dual.make_dual`.
    """
    axis = topology.open_axes[-1]
    across, length = topology.shape[1 - axis], topology.shape[axis]
    depth = topology.grid.depths[axis]
    cell, reach = DrawnCell.of_lattice(lattice), max(abs(at[1 - axis]) for at in topology.offsets)
    if across <= reach or 2 * depth > length or max(map(len, cell.around)) > MOST_BONDS:
        return None
    dual = make_dual_topology(lattice, topology, between=axis)
    table = _Table(lattice, topology, cell, dual, axis)
    walks = [table.walk_side(depth - 1, 1), table.walk_side(length - depth, -1)]
    if not all(walk for walk, _ in walks):
        return None
    first, last = (table.make_side(*walk) for walk in walks)
    bonds, (starts, around) = table.bonds(), table.around()
    # Faces are at most one turn away.
    is_near = max(np.abs(bonds[:, [1, 2, 4, 5]]).max(), np.abs(around[:, 4:]).max()) <= min(
        dual.size
    )
    if not (first.places.size and last.places.size and is_near):
        return None
    return Corners(dual, bonds, starts, around, (first, last))


class _Table:
    """Derives the fields of :class:`Corners` from the drawing of a cell."""

    def __init__(
        self, lattice: Lattice, topology: Topology, cell: DrawnCell, dual: DualTopology, axis: int
    ) -> None:
        self._lattice, self._topology, self._cell, self._axis = lattice, topology, cell, axis
        self._dual, self._size = dual, np.array(lattice.cell)
        points = product(*map(range, lattice.cell))
        self._points = np.array([at for at in points if at not in lattice.vacant])
        #: Class and owner of every bond of the cell.
        self._owners = [(k, at) for k, bond in enumerate(lattice.bonds) for at in bond.at]
        self._numbers = {bond: n for n, bond in enumerate(cell.bonds)}
        self._crossing = cell.find_dual_bonds()[1]

    def bonds(self) -> NDArray[np.int32]:
        """Return the faces to the left and right of the bonds of a cell."""
        many = int(self._size.prod())
        rows = np.zeros((len(self._lattice.bonds) * many, 6), np.int32)
        for (k, at), ((left, start), (right, end)) in zip(
            self._owners, self._crossing, strict=True
        ):
            rows[k * many + at[0] + self._size[0] * at[1]] = left, *start, right, *end
        return rows

    def around(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return where the bonds of every cell point begin, and the bonds themselves."""
        rows: list[tuple[int, ...]] = []
        starts = [0]
        number = {tuple(at): n for n, at in enumerate(self._points.tolist())}
        for y, x in product(range(self._size[1]), range(self._size[0])):
            if (x, y) in number:
                here = number[x, y]
                for slot in range(len(self._cell.around[here])):
                    k, owner, (face, at), _ = self._bond((here, (0, 0)), slot)
                    rows.append((k, owner[0] - x, owner[1] - y, face, *at))
            starts.append(len(rows))
        return np.array(starts, np.int32), np.array(rows, np.int32)

    def walk_side(self, edge: int, inward: int) -> tuple[list[_Step], int]:
        """Return the bonds along a cell's part of a side, and the direction of the walk, 1 or -1.

        edge: the last layer of the terminal; inward: the direction from there into the lattice.
        The walk is in the plane of the lattice, along the bonds that the terminal contracts.  There
        are no bonds if the contracted ones are not connected all along the side.
        """
        leaving, across = list(self._leaving(edge, inward)), 1 - self._axis
        site, slot = start, first = leaving[0]
        found = []
        while True:
            there = self._other(site, slot)
            if self._is_beyond(there, edge, inward):
                back = reverse(self._cell.around[site[0]][slot])
                site, slot = there, self._cell.around[there[0]].index(back)
            else:
                found.append(self._bond(site, slot))
            # The next one clockwise.
            slot = (slot - 1) % len(self._cell.around[site[0]])
            moved = np.subtract(site[1], start[1])
            if (site[0], slot, moved[self._axis]) == (start[0], first, 0):
                is_whole = abs(moved[across]) == 1 and len(found) == len(leaving)
                return found if is_whole else [], int(moved[across])

    def make_side(self, walk: list[_Step], direction: int) -> Side:
        """Return the bonds of the whole side; direction: that of the walk, 1 or -1."""
        across, shape, dual = 1 - self._axis, self._topology.shape, self._dual
        cells, is_cyclic = -(-shape[across] // self._size[across]), any(dual.turn)
        # The owner of a bond may lie in another cell than the walk.
        more = 1 + max(abs(owner[across]) // self._size[across] for _, owner, *_ in walk)
        along = np.arange(2 * cells) if is_cyclic else np.arange(-more, cells + more)
        moved = np.zeros((along.size, 2), np.int64)
        moved[:, across] = along if direction > 0 else cells - 1 - along
        places, before, after = np.empty((3, along.size, len(walk)), np.int64)
        for n, (k, owner, *faces) in enumerate(walk):
            owners = owner + moved * self._size
            if is_cyclic:
                owners[:, across] %= shape[across]
            inside = ((owners >= 0) & (owners < shape)).all(axis=1)
            sites = np.where(inside, owners[:, 0] + shape[0] * owners[:, 1], 0)
            exists = self._topology.compute_exists(k)[sites >> 5] >> (sites & 31) & 1
            place = 32 * self._topology.num_words * k + sites
            places[:, n] = np.where(inside & (exists != 0), place, -1)
            for listed, (face, at) in zip((before, after), faces, strict=True):
                listed[:, n] = dual.face(face, *(at + moved).T)
        kept = places >= 0
        first, last = before[kept], after[kept][-1:]
        places = places[kept]
        if is_cyclic:
            # The walk went around twice.
            places, last = places[: places.size // 2], last[:0]
        every = np.concatenate([first, last])
        return Side(places.astype(np.uint32), every.astype(np.uint32))

    def _bond(self, site: _Site, slot: int) -> _Step:
        """Return the class, the owner, and the faces left and right of a bond of a site."""
        here, begin = site
        directed = self._cell.around[here][slot]
        n, is_back = self._numbers.get(directed), False
        if n is None:
            n, is_back = self._numbers[reverse(directed)], True
            begin = _add(begin, directed[1][1])
        k, at = self._owners[n]
        faces = [(face, _add(cell, begin)) for face, cell in self._crossing[n]]
        left, right = faces[::-1] if is_back else faces
        return k, tuple(np.array(begin) * self._size + at), left, right

    def _other(self, site: _Site, slot: int) -> _Site:
        """Return where a bond of a site leads."""
        there, moved = self._cell.around[site[0]][slot][1]
        return there, _add(site[1], moved)

    def _is_beyond(self, site: _Site, edge: int, inward: int) -> bool:
        """Return whether a site belongs to a terminal or lies beyond it."""
        at = site[1][self._axis] * self._size[self._axis] + self._points[site[0]][self._axis]
        return bool((at - edge) * inward <= 0)

    def _leaving(self, edge: int, inward: int) -> Iterator[tuple[_Site, int]]:
        """Yield the bonds from a terminal, or from beyond it, into the lattice, one cell wide."""
        middle = edge // self._size[self._axis]
        reach = 2 + max(abs(moved[self._axis]) for _, (_, moved) in self._cell.bonds)
        for here, along in product(range(len(self._points)), range(-reach, reach + 1)):
            cell = (0, middle + along) if self._axis else (middle + along, 0)
            if self._is_beyond((here, cell), edge, inward):
                for slot in range(len(self._cell.around[here])):
                    if not self._is_beyond(self._other((here, cell), slot), edge, inward):
                        yield (here, cell), slot


def _add(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Return the sum of two pairs."""
    return one[0] + other[0], one[1] + other[1]
