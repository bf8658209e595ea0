"""The dual of a planar lattice: a site in every face, a bond across every bond.

Bond percolation on the dual has p_c = 1 - p_c of the lattice; its site threshold is its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.lattice import Lattice
from percolab.lattices.planarity import is_drawn_planar
from percolab.lattices.topology import Topology, pack_bits, unpack_bits

Floats = NDArray[np.float64]
#: A site of the infinite lattice: its number in the cell, and the cell.
_Site = tuple[int, tuple[int, int]]
#: A bond with a direction: the number of a site in the cell at the origin, and where it leads.
_Directed = tuple[int, _Site]


def make_dual(
    lattice: Lattice,
    *,
    name: str,
    title: str | None = None,
    thresholds: Sequence[Mapping[str, Any]] = (),
) -> Lattice:
    """Return the dual of a lattice whose drawing has no crossing bonds.

    Its sites are drawn at the centres of the faces; L counts unit cells.  thresholds: published
    ones, as for :meth:`Lattice.from_cell`.  InputError: the lattice is not planar as it is drawn.

    >>> from percolab.lattices.lattice import load_lattice
    >>> make_dual(load_lattice("honeycomb"), name="t")
    <Lattice t; axes 2; cell 2 x 1; bonds at a site 6>
    """
    if not is_drawn_planar(lattice):
        raise InputError(f"{lattice.name}: only a lattice drawn without crossings has a dual")
    cell = DrawnCell.of_lattice(lattice)
    parts, crossing = cell.find_dual_bonds()
    dual = [(a, b, np.subtract(end, start).tolist()) for (a, start), (b, end) in crossing]
    both = [*dual, *((b, a, [-n for n in offset]) for a, b, offset in dual)]
    if any(both.count(bond) > 1 for bond in dual):
        raise InputError(
            f"{lattice.name}: its dual has two bonds between the same two sites (across the bonds "
            "of a site that has only two), which a lattice cannot have"
        )
    return Lattice.from_cell(
        cell.periods, parts, dual, name=name, title=title, thresholds=thresholds
    )


class DualTopology(NamedTuple):
    """The dual of a topology: a site in every face, a bond across every bond.

    topology: the dual lattice, which extends beyond the lattice along an open axis
    sources:  integers (32 * num_bond_words,): for every place in the dual's bond words, the place
              of the crossed bond in the lattice's, :data:`MISSING` or :data:`CONTRACTED`.  A bond
              of the dual is open where the bond that it crosses is closed or missing.
    faces:    faces of a cell
    size:     cells along each axis
    around:   cells along each axis before those of the lattice
    turn:     cells once around the lattice, where the dual goes around it twice; else 0
    """

    topology: Topology
    sources: NDArray[Any]
    faces: int
    size: tuple[int, int]
    around: tuple[int, int]
    turn: tuple[int, int]

    def open_words(self, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the dual's open bonds, given those of samples, both uint32 (n, words)."""
        # The last two bits stand for contracted bonds, which count as open, and for missing ones.
        is_open = np.pad(unpack_bits(words, 32 * words.shape[1]), ((0, 0), (0, 2)))
        is_open[:, CONTRACTED] = True
        opened = pack_bits(~is_open[:, self.sources]) & self.topology.exists.ravel()
        return np.asarray(opened, np.uint32)

    def face(self, face: int, x: Any, y: Any) -> Any:
        """Return the site of a face of the lattice's cell (x, y); x and y may be arrays."""
        x, y = (x + self.around[0]) % self.size[0], (y + self.around[1]) % self.size[1]
        return x * self.faces + face + self.size[0] * self.faces * y


#: Instead of the place of the bond that a bond of the dual crosses: it does not exist, or it lies
#: beyond a terminal.
MISSING, CONTRACTED = -1, -2
#: Cells of the dual around a lattice with open sides.
_AROUND = 2


def make_dual_topology(
    lattice: Lattice, topology: Topology, *, between: int | None = None
) -> DualTopology:
    """Return the dual of a topology of a lattice that is drawn without crossings.

    The region outside of open sides is one site, whose parts around the lattice are joined by bonds
    that are always open.  between: an open axis; each of its two sides is contracted, with all that
    lies beyond it, to one node.  If the other axis is periodic, the dual goes around it twice.
    InputError: as for :func:`make_dual`.
    """
    dual = make_dual(lattice, name="dual")
    kinds = ["open" if axis in topology.open_axes else "periodic" for axis in range(2)]
    around = np.array([_AROUND * (kind == "open") for kind in kinds])
    cells = -(-np.array(topology.shape) // lattice.cell)
    turn = cells * [between is not None and kind == "periodic" for kind in kinds]
    size = cells + turn + 2 * around
    made = dual.topology(tuple((size * dual.cell).tolist()), tuple(kinds))
    kind = np.int32 if 32 * topology.num_bond_words < 2**31 else np.int64
    sources = np.full(32 * made.num_bond_words, MISSING, kind)
    found = DualTopology(made, sources, dual.cell[0], _pair(size), _pair(around), _pair(turn))
    classes = {bond.offset: k for k, bond in enumerate(dual.bonds)}
    crossing = iter(DrawnCell.of_lattice(lattice).find_dual_bonds()[1])
    for k, bond in enumerate(lattice.bonds):
        exists = unpack_bits(topology.compute_exists(k), topology.num_points)
        exists = exists.reshape(topology.shape[::-1])
        for at in bond.at:
            (one, start), (other, end) = next(crossing)
            step = np.subtract(end, start)
            offset = (int(step[0]) * found.faces + other - one, int(step[1]))
            if offset[::-1] > (0, 0):
                one, start, offset = other, end, (-offset[0], -offset[1])
            first = 32 * made.num_words * classes[offset]
            y, x = np.nonzero(exists[at[1] :: lattice.cell[1], at[0] :: lattice.cell[0]])
            site = x * lattice.cell[0] + at[0] + topology.shape[0] * (y * lattice.cell[1] + at[1])
            for more in {(0, 0), found.turn}:
                owner = found.face(one, x + start[0] + more[0], y + start[1] + more[1])
                sources[first + owner] = 32 * topology.num_words * k + site
            if between is not None:
                # The cells, along the axis, of the dual bonds that cross contracted ones.
                along = np.arange(size[between]) - found.around[between] - start[between]
                ends = along * lattice.cell[between] + at[between]
                ends = np.array([ends, ends + bond.offset[between]])
                depth, length = topology.grid.depths[between], topology.shape[between]
                beyond = (ends < depth).all(axis=0) | (ends >= length - depth).all(axis=0)
                rows = sources[first : first + made.num_points].reshape(size[1], size[0], -1)
                rows = rows if between else rows.swapaxes(0, 1)
                rows[beyond, :, one] = CONTRACTED
    return found


def _pair(numbers: Any) -> tuple[int, int]:
    """Return two integers."""
    return int(numbers[0]), int(numbers[1])


def find_faces(lattice: Lattice, topology: Topology) -> NDArray[np.int32]:
    """Return the faces to the left and to the right of every bond of a topology, int32 (m, 2).

    Left and right are seen from the owner towards the other end; bonds are in the order of
    :meth:`Topology.bonds`.  Faces are numbered from 0 on.  On a torus they are the sites of its
    dual, and V - E + F = 0 with all bonds open; with open sides the region outside is a face too,
    for every piece of the lattice.  lattice: drawn without crossings, which is not checked here.
    """
    k, owner, other = topology.bonds().T
    at = np.stack(np.unravel_index(owner, topology.shape[::-1])[::-1], axis=1)
    along = lattice.places(at + np.array(topology.offsets)[k]) - lattice.places(at)
    # Every bond in both directions: where it begins, and the angle at which it does.
    begin, along = np.concatenate([owner, other]), np.concatenate([along, -along])
    order = np.lexsort((np.arctan2(along[:, 1], along[:, 0]), begin))
    first = np.flatnonzero(np.diff(begin[order], prepend=-1))
    clockwise = np.roll(order, 1)
    clockwise[first] = order[np.append(first[1:], order.size) - 1]
    # A face lies between a bond and the one that leaves its end by the sharpest turn to the left.
    after = np.empty_like(order)
    after[np.roll(np.arange(order.size), owner.size)[order]] = clockwise
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(order.size, np.int8), (np.arange(order.size), after)))
    _, faces = connected_components(links, directed=False)
    return np.asarray(faces.reshape(2, -1).T, np.int32)


@dataclass(frozen=True)
class DrawnCell:
    """The drawing of a cell.

    periods: float64 (2, 2), from a cell to the next.  places: float64 (n, 2), of the sites.  bonds:
    every bond in one direction.  around: for every site, the bonds that begin there, by angle.
    """

    periods: Floats
    places: Floats
    bonds: list[_Directed]
    around: list[list[_Directed]]

    @classmethod
    def of_lattice(cls, lattice: Lattice) -> DrawnCell:
        cell, shifts = lattice.cell, dict(lattice.shifts)
        periods = np.array(lattice.vectors or np.eye(2)) * np.array(cell)[:, None]
        points = [at for at in product(*map(range, cell)) if at not in lattice.vacant]
        number = {at: n for n, at in enumerate(points)}
        places = np.array(points) / cell @ periods + [shifts.get(at, (0.0, 0.0)) for at in points]
        bonds = []
        for bond in lattice.bonds:
            for at in bond.at:
                (i, x), (j, y) = (divmod(a + o, c)[::-1] for a, o, c in zip(at, bond.offset, cell))
                bonds.append((number[at], (number[i, j], (x, y))))
        around: list[list[_Directed]] = [[] for _ in points]
        for directed in (*bonds, *map(reverse, bonds)):
            around[directed[0]].append(directed)

        def angle(bond: _Directed) -> float:
            here, (there, moved) = bond
            x, y = places[there] - places[here] + np.array(moved) @ periods
            return float(np.arctan2(y, x))

        return cls(periods, places, bonds, [sorted(own, key=angle) for own in around])

    def find_dual_bonds(self) -> tuple[Floats, list[tuple[_Site, _Site]]]:
        """Return where the faces are in a cell, (n, 2) in fractions of it, and the dual's bonds.

        For every bond of ``bonds`` these are the faces on its left and on its right.  A face
        belongs to the cell that its centre lies in, so that bonds of the dual are short.
        """
        # For every directed bond: the face on its left, and the cell where its walk began.
        left: dict[_Directed, _Site] = {}
        centres: list[Floats] = []
        for first in chain.from_iterable(self.around):
            if first in left:
                continue
            around = list(self.walk_face(first))
            for bond, (x, y) in around:
                # Seen from the cell in which the bond begins, the face is that far away.
                left[bond] = len(centres), (-x, -y)
            corners = [self.places[here] + at @ self.periods for (here, _), at in around]
            centres.append(np.mean(corners, axis=0))
        parts = np.array(centres) @ np.linalg.inv(self.periods)
        cells = np.floor(parts + 1e-9).astype(int)

        def place(bond: _Directed, begin: tuple[int, int]) -> _Site:
            face, (x, y) = left[bond]
            return face, (int(x + begin[0] + cells[face][0]), int(y + begin[1] + cells[face][1]))

        # The bond back begins in the cell that the bond leads to.
        bonds = [(place(bond, (0, 0)), place(reverse(bond), bond[1][1])) for bond in self.bonds]
        return parts - cells, bonds

    def walk_face(self, first: _Directed) -> Iterator[tuple[_Directed, tuple[int, int]]]:
        """Yield the bonds around the face on the left of one, and the cell that each begins in."""
        bond, (x, y) = first, (0, 0)
        while True:
            yield bond, (x, y)
            there, moved = bond[1]
            x, y = x + moved[0], y + moved[1]
            # The sharpest turn to the left.
            own = self.around[there]
            bond = own[own.index(reverse(bond)) - 1]
            if bond == first:
                return


def reverse(bond: _Directed) -> _Directed:
    """Return a bond in the other direction, from the cell at the origin."""
    here, (there, (x, y)) = bond
    return there, (here, (-x, -y))
