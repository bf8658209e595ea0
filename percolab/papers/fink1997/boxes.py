"""Boxes: one lattice cut along several axes, each box with its own bonds and its own boundary.

A slab has two faces (:mod:`percolab.parts.parts`); a box has one towards every neighbour, and
where bonds lead aslant also at edges and corners.  What it hands on is its :class:`Boundary`: as a
:class:`percolab.parts.interface.Interface` does, it names for every open bond that crosses the
cluster it reaches.  Boundaries of neighbours along an axis join into that of both, and the whole
lattice closes its periodic axes at the end; the joining itself is that of interfaces.

A face is known by its *direction*: a step of -1, 0 or 1 along every axis, from a box to the
neighbour.  Both sides list its bonds by class and owner, and where boxes were joined one list after
the other, in one order (:func:`join_boundaries`), so that the two lists need no positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.errors import InputError
from percolab.kernels.memory import Memory
from percolab.kernels.neighbours import Adjacency
from percolab.labelers.raster_runs import Windings, find_clusters, make_runs
from percolab.lattices.extent import Extent
from percolab.lattices.grid import Grid
from percolab.lattices.lattice import AXIS_NAMES, Lattice
from percolab.lattices.topology import MAX_POINTS, Topology, count_words, period_codes
from percolab.measure import rows
from percolab.measure.tallies import compute_row_width
from percolab.papers.fink1997.box_kernels import (
    compress_runs,
    fill_box,
    fill_crossing,
    match_runs,
    read_crossing,
)
from percolab.parts.interface import (
    Face,
    Interface,
    InterfaceSums,
    Row,
    close,
    join,
    make_row,
    no_face,
)
from percolab.parts.kernels import SlabKeys, measure_slab
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey, sums_from_row

#: Bytes of a boundary for each open bond, if every bond has a cluster of its own.
BOND_BYTES = 24
# Digits of a number of boxes: Python does not read numbers of any length.
_DIGITS = 18
#: A step of -1, 0 or 1 along every axis; or the coordinates of a box, in boxes.
Vector = tuple[int, ...]


def blocks_from_text(text: str) -> Vector:
    """Return how many boxes there are along each axis, x first, from ``4x4x2``.

    >>> blocks_from_text("4x4x2")
    (4, 4, 2)
    """
    parts = text.split("x")
    digits = (part.isascii() and part.isdigit() and len(part) <= _DIGITS for part in parts)
    if not all(digits) or not all(map(int, parts)):
        raise InputError(f"blocks {text!r}; they are numbers of boxes along the axes, as 4x4x2")
    return tuple(int(part) for part in parts)


@dataclass(frozen=True)
class Blocks:
    """How a lattice is cut into boxes of one shape.

    whole:  the lattice
    counts: boxes along each axis; an axis with one is not cut

    InputError: another number of axes; counts that do not divide the lattice; boxes thinner than
    bonds reach along a cut axis, or with more sites than can be labeled at once; sites are drawn
    and one lies in both end layers.
    """

    whole: Whole
    counts: Vector

    def __post_init__(self) -> None:
        shape, text = self.whole.shape, "x".join(map(str, self.counts))
        if len(self.counts) != len(shape):
            raise InputError(
                f"blocks {text} have {len(self.counts)} axes, but {self.whole.lattice.name} has "
                f"{len(shape)}"
            )
        for axis, (n, count, thick) in enumerate(zip(shape, self.counts, self.reaches)):
            if count < 1 or n % count:
                raise InputError(
                    f"blocks {text} do not divide the lattice: {n} grid points along axis "
                    f"{AXIS_NAMES[axis]}"
                )
            if count > 1 and n // count < thick:
                raise InputError(
                    f"boxes of {n // count} grid points along axis {AXIS_NAMES[axis]}, but bonds "
                    f"of {self.whole.lattice.name} reach {thick} far: a box must be as thick"
                )
        if prod(self.box) > MAX_POINTS:
            raise InputError(
                f"boxes of {prod(self.box)} sites, but at most {MAX_POINTS} can be labeled at once"
            )
        self._check_end_layers()

    @property
    def reaches(self) -> Vector:
        """How many grid points bonds lead along each axis at most."""
        offsets = [bond.offset for bond in self.whole.lattice.bonds]
        return tuple(max(abs(step) for step in steps) for steps in zip(*offsets))

    def _check_end_layers(self) -> None:
        whole = self.whole
        if not whole.model.draws_sites:
            return
        axes = zip(whole.shape, whole.boundary, whole.lattice.per_size)
        for axis, (n, kind, depth) in enumerate(axes):
            if kind == "open" and 2 * min(depth, n) > n:
                raise InputError(
                    f"site percolation needs two end layers, but {n} grid points along axis "
                    f"{AXIS_NAMES[axis]} have sites in both"
                )

    @property
    def box(self) -> Vector:
        """Grid points of a box along each axis."""
        return tuple(n // count for n, count in zip(self.whole.shape, self.counts))

    @property
    def strides(self) -> Vector:
        """Sites of the whole lattice from one to the next along each axis."""
        return tuple(prod(self.whole.shape[:axis]) for axis in range(len(self.counts)))

    @property
    def num_boxes(self) -> int:
        """Boxes in all."""
        return prod(self.counts)

    def most_crossing(self, boxes: Vector) -> int:
        """Return how many bonds cross the faces of a block of so many boxes at most, both ways."""
        sizes = [n * count for n, count in zip(self.box, boxes)]
        return 2 * sum(
            abs(step) * prod(sizes) // n
            for bond in self.whole.lattice.bonds
            for step, n, count in zip(bond.offset, sizes, self.counts)
            if count > 1
        )

    def coordinates(self) -> list[Vector]:
        """Return the coordinates of all boxes, the first axis fastest."""
        return [point[::-1] for point in product(*map(range, self.counts[::-1]))]

    def neighbour(self, box: Vector, direction: Vector) -> Vector | None:
        """Return the box that a direction leads to, None where the lattice ends."""
        neighbour = []
        axes = zip(box, direction, self.counts, self.whole.boundary)
        for place, step, count, kind in axes:
            if kind == "open" and not 0 <= place + step < count:
                return None
            neighbour.append((place + step) % count)
        return tuple(neighbour)

    def first_site(self, box: Vector) -> int:
        """Return the number of a box's first site in the whole lattice."""
        return sum(b * n * stride for b, n, stride in zip(box, self.box, self.strides))

    def phase(self, box: Vector) -> Vector:
        """Return which point of a cell the first site of a box is."""
        return tuple(b * n % cell for b, n, cell in zip(box, self.box, self.whole.lattice.cell))


class Span(NamedTuple):
    """A block of sites as rows of equal width, in the whole lattice and in a box.

    width:  sites in a row
    abroad: int64, the first site of every row in the whole lattice, from the block's first site on
    inside: int64, the same in a box
    """

    width: int
    abroad: NDArray[np.int64]
    inside: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Piece:
    """The bonds of one class that lead from a box in one direction, over the same periods.

    klass, step: the class, and how many boxes they lead along every axis, or periods of a closed
                 axis that is not cut
    direction:   the step, 0 along axes that are not cut
    corner, end: the first owner in its box; the other end of its bond in the other box
    span:        the owners; the other ends are as many
    exists:      uint32, one bit an owner, in the order of the span
    """

    klass: int
    step: Vector
    direction: Vector
    corner: Vector
    end: Vector
    span: Span
    exists: NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class BoxTables:
    """What boxes share that begin at the same point of a cell.

    topology:  of a lattice of a box's shape, open along cut axes, without end layers
    adjacency: where its bonds lead
    pieces:    the bonds whose owners it has and whose other ends it has not
    grid:      its grid points
    sites:     the points of a cell that have a site
    """

    topology: Topology
    adjacency: Adjacency
    pieces: tuple[Piece, ...]
    grid: Grid
    sites: frozenset[Vector]


def _moved_points(points: frozenset[Vector], corner: Vector, cell: Vector) -> frozenset[Vector]:
    """Return points of a cell as they are counted from another point on."""
    return frozenset(
        tuple((x - first) % n for x, first, n in zip(point, corner, cell)) for point in points
    )


def _from_corner(lattice: Lattice, phase: Vector) -> Lattice:
    """Return the lattice as it is counted from another point of its cell on, without end layers."""
    bonds = tuple(
        replace(bond, at=_moved_points(bond.at, phase, lattice.cell)) for bond in lattice.bonds
    )
    vacant = _moved_points(lattice.vacant, phase, lattice.cell)
    return replace(lattice, vacant=vacant, bonds=bonds, per_size=(0,) * len(phase))


def _tables_of(blocks: Blocks, phase: Vector) -> BoxTables:
    whole, box = blocks.whole, blocks.box
    lattice = _from_corner(whole.lattice, phase)
    cut = [count > 1 for count in blocks.counts]
    boundary = tuple("open" if is_cut else kind for is_cut, kind in zip(cut, whole.boundary))
    topology = lattice.topology(box, boundary)
    pieces = []
    for k, bond in enumerate(lattice.bonds):
        for step in product(*(_steps(n, o) for n, o in zip(box, bond.offset))):
            direction = tuple(s if is_cut else 0 for s, is_cut in zip(step, cut))
            # Along an open axis that is not cut there is nothing to step to.
            leaves = zip(step, cut, whole.boundary)
            if not any(direction) or any(s and not c and b == "open" for s, c, b in leaves):
                continue
            # Owners x with x + offset - step * n in 0 ... n - 1.
            sides = list(zip(box, bond.offset, step))
            low = tuple(max(0, s * n - o) for n, o, s in sides)
            high = tuple(min(n, (s + 1) * n - o) for n, o, s in sides)
            end = tuple(x + o - s * n for x, (n, o, s) in zip(low, sides))
            sizes = tuple(b - a for a, b in zip(low, high))
            owners = _make_block_grid(lattice, sizes)
            at = _moved_points(bond.at, low, lattice.cell)
            exists = owners.mask(at, owners.every_layer())
            span = _span(blocks, sizes)
            pieces.append(Piece(k, step, direction, low, end, span, exists))
    sites = frozenset(product(*map(range, lattice.cell))) - lattice.vacant
    tables = topology, make_adjacency(topology), tuple(pieces)
    return BoxTables(*tables, _make_block_grid(lattice, box), sites)


def _make_block_grid(lattice: Lattice, sizes: Vector) -> Grid:
    """Return a block of grid points."""
    return Grid(lattice.cell, sizes, ("open",) * len(sizes), depths=lattice.per_size)


def _steps(thick: int, offset: int) -> range:
    """Return over how many thicknesses a bond may lead, depending on its owner."""
    return range(offset // thick, (thick - 1 + offset) // thick + 1)


def _span(blocks: Blocks, sizes: Vector) -> Span:
    """Return a block of sites as rows; axes that it fills are one with the next."""
    whole, width, filled = blocks.whole.shape, sizes[0], 1
    while filled < len(sizes) and sizes[filled - 1] == whole[filled - 1]:
        width *= sizes[filled]
        filled += 1
    own = [prod(blocks.box[:axis]) for axis in range(len(sizes))]
    places = []
    for strides in (blocks.strides, own):
        starts = np.zeros(1, np.int64)
        for size, stride in zip(sizes[filled:], strides[filled:]):
            starts = (np.arange(size, dtype=np.int64)[:, None] * stride + starts).ravel()
        places.append(starts)
    return Span(width, *places)


@dataclass(frozen=True, eq=False)
class Border:
    """The open bonds that cross the faces of one direction, as one side sees them.

    face:   their clusters and codes, as an interface has them; of each run where they are
            compressed
    counts: int64, how many bonds each run has; None where every bond has an entry of its own
    """

    face: Face
    counts: NDArray[np.int64] | None = None

    @property
    def num_bonds(self) -> int:
        """Open bonds that cross."""
        return self.face.num_bonds if self.counts is None else int(self.counts.sum())

    @property
    def num_runs(self) -> int:
        """How often the cluster changes from a bond to the next, and one."""
        clusters = self.face.clusters
        return int((clusters[1:] != clusters[:-1]).sum()) + 1 if clusters.size else 0

    @property
    def num_bytes(self) -> int:
        """The memory of its arrays."""
        counts = 0 if self.counts is None else self.counts.nbytes
        return self.face.clusters.nbytes + self.face.codes.nbytes + counts

    def compressed(self) -> Border:
        """Return the same by runs of entries that are equal."""
        clusters, codes = self.face.clusters.copy(), self.face.codes.copy()
        counts = np.ones(clusters.size, np.int64) if self.counts is None else self.counts.copy()
        runs = slice(compress_runs(clusters, codes, counts))
        return Border(Face(clusters[runs], codes[runs]), counts[runs])

    def expanded(self) -> Border:
        """Return the same with an entry of its own for every bond."""
        if self.counts is None:
            return self
        codes = self.face.codes
        each = np.repeat(codes, self.counts) if codes.size else codes
        return Border(Face(np.repeat(self.face.clusters, self.counts), each))


def _chosen(face: Face, index: Any) -> Face:
    """Return some entries of a face."""
    return Face(face.clusters[index], face.codes[index] if face.codes.size else face.codes)


def _chained(faces: Iterable[Face]) -> Face:
    """Return several faces as one."""
    chained = tuple(faces)
    if len(chained) == 1:
        return chained[0]
    if not chained:
        return no_face()
    return Face(
        np.concatenate([face.clusters for face in chained]),
        np.concatenate([face.codes for face in chained]),
    )


def _chained_borders(borders: Sequence[Border]) -> Border:
    if len(borders) == 1 and borders[0].counts is None:
        return borders[0]
    counts = [border.counts for border in borders if border.counts is not None]
    face = _chained(border.face for border in borders)
    return Border(face, np.concatenate(counts)).compressed() if counts else Border(face)


def _matched(one: Border, other: Border) -> tuple[Face, Face]:
    """Return the two sides of a face entry by entry; where runs overlap, one entry for all bonds.

    ValueError: the sides have other numbers of bonds.
    """
    if one.num_bonds != other.num_bonds:
        raise ValueError(f"{one.num_bonds} open bonds on one side, {other.num_bonds} on the other")
    if one.counts is None or other.counts is None:
        return one.face, other.face
    most = one.counts.size + other.counts.size
    entries, others = np.empty(most, np.int64), np.empty(most, np.int64)
    pairs = match_runs(one.counts, other.counts, entries, others)
    return _chosen(one.face, entries[:pairs]), _chosen(other.face, others[:pairs])


@dataclass(frozen=True, eq=False)
class Boundary:
    """What a box, or a block of boxes that were joined, hands on.

    corner, boxes: its first box, and how many it has along each axis
    blocks:        how the lattice is cut
    faces:         by direction the open bonds that cross; clusters are numbered 0 ... m - 1
    sizes, flags:  uint64 and uint32 (m,), as an interface has them
    sums:          of all other clusters
    """

    corner: Vector
    boxes: Vector
    blocks: Blocks
    faces: dict[Vector, Border]
    sizes: NDArray[np.uint64]
    flags: NDArray[np.uint32]
    sums: InterfaceSums

    @property
    def num_clusters(self) -> int:
        """Clusters that may still grow."""
        return self.sizes.size

    @property
    def num_bonds(self) -> int:
        """Open bonds that cross its faces."""
        return sum(border.num_bonds for border in self.faces.values())

    @property
    def num_bytes(self) -> int:
        """The memory of its arrays."""
        borders = sum(border.num_bytes for border in self.faces.values())
        return borders + self.sizes.nbytes + self.flags.nbytes

    def compressed(self) -> Boundary:
        """Return the same with its borders by runs."""
        faces = {direction: border.compressed() for direction, border in self.faces.items()}
        return replace(self, faces=faces)


def _moved(direction: Vector, axis: int, step: int) -> Vector:
    return (*direction[:axis], direction[axis] + step, *direction[axis + 1 :])


def opposite(direction: Vector) -> Vector:
    """Return the direction from the other side."""
    return tuple(-step for step in direction)


def is_upward(direction: Vector) -> bool:
    """Return whether a direction leads up along the last axis that it leads along."""
    return direction[::-1] > (0,) * len(direction)


def join_boundaries(low: Boundary, high: Boundary, axis: int) -> Boundary:
    """Return the boundary of two neighbours along an axis, ``low`` below and ``high`` above.

    All blocks of boxes must be joined alike along the axis before any is along another one: then
    the faces of neighbours are in the same order.  What led aslant from one of the two to a
    neighbour of the other leads straight there from both, and comes last: from the lower of the
    two first, and seen from the neighbour, whose lower part is across, from the upper one.

    InputError: they are no neighbours, or together they have 2^32 clusters or more.  ValueError:
    their faces do not match, as those of different samples.
    """
    other_axes = (n for n in range(len(low.corner)) if n != axis)
    if low.corner[axis] + low.boxes[axis] != high.corner[axis] or any(
        low.corner[n] != high.corner[n] or low.boxes[n] != high.boxes[n] for n in other_axes
    ):
        raise InputError(
            f"boxes {low.corner} ... and {high.corner} ... are no neighbours along axis "
            f"{AXIS_NAMES[axis]}"
        )
    none, up = (0,) * len(low.corner), _moved((0,) * len(low.corner), axis, 1)
    down = opposite(up)
    sides = _matched(low.faces.get(up, _NO_BORDER), high.faces.get(down, _NO_BORDER))
    below = {d: border for d, border in low.faces.items() if d != up}
    above = {d: border for d, border in high.faces.items() if d != down}
    axes = len(low.corner)
    rest = [_chained(border.face for border in own.values()) for own in (below, above)]
    both = join(
        Interface(0, 1, 2, axes, rest[0], sides[0], low.sizes, low.flags, low.sums),
        Interface(1, 1, 2, axes, sides[1], rest[1], high.sizes, high.flags, high.sums),
    )
    own, others = _cut(both.low, below), _cut(both.high, above)
    faces: dict[Vector, Border] = {}
    for direction in sorted({_moved(d, axis, -d[axis]) for d in (*own, *others)}):
        if direction != none:
            aslant = [own.get(_moved(direction, axis, 1)), others.get(_moved(direction, axis, -1))]
            straight = [own.get(direction), others.get(direction)]
            borders = straight + (aslant if is_upward(direction) else aslant[::-1])
            there = [border for border in borders if border is not None]
            if there:
                faces[direction] = _chained_borders(there)
        for step, side in ((-1, own), (1, others)):
            away = _moved(direction, axis, step)
            if away in side:
                faces[away] = _chained_borders([side[away]])
    corner = low.corner
    boxes = _moved(low.boxes, axis, high.boxes[axis])
    return Boundary(corner, boxes, low.blocks, faces, both.sizes, both.flags, both.sums)


_NO_BORDER = Border(no_face())


def _cut(face: Face, borders: dict[Vector, Border]) -> dict[Vector, Border]:
    """Return the parts of a face that was chained from borders, under their directions."""
    by_direction, start = {}, 0
    for direction, border in borders.items():
        end = start + border.face.num_bonds
        by_direction[direction] = Border(_chosen(face, slice(start, end)), border.counts)
        start = end
    return by_direction


def row_from_boxes(boundary: Boundary) -> Row:
    """Return the row of a sample from the boundary of all boxes, closing what is periodic.

    InputError: boxes are missing.  ValueError: faces do not match.
    """
    if boundary.boxes != boundary.blocks.counts:
        raise InputError(
            f"a row needs all {boundary.blocks.num_boxes} boxes; there are {prod(boundary.boxes)}"
        )
    ups = [direction for direction in sorted(boundary.faces) if is_upward(direction)]
    sides = [_matched(boundary.faces[d], boundary.faces.get(opposite(d), _NO_BORDER)) for d in ups]
    if len(ups) * 2 != len(boundary.faces):
        raise ValueError("faces of opposite directions do not match")
    low, high = (_chained(side[n] for side in sides) for n in (1, 0))
    where = 0, 1, 1, len(boundary.boxes)
    interface = Interface(*where, low, high, boundary.sizes, boundary.flags, boundary.sums)
    return make_row(close(interface))


class BoxRaster:
    """Finds the boundaries of the boxes of one lattice, one after the other, in its own memory.

    One thread at a time.  blocks: how the lattice is cut; tally: whether sizes are tallied
    """

    def __init__(self, blocks: Blocks, *, tally: bool = False) -> None:
        self.blocks, whole = blocks, blocks.whole
        self.row_width = compute_row_width(whole.num_points) if tally else rows.ROW_WIDTH
        points = prod(blocks.box)
        words = count_words(points)
        self._tables: dict[Vector, BoxTables] = {}
        self._ends: dict[tuple[Any, ...], tuple[NDArray[np.int32], NDArray[np.uint32]]] = {}
        self._span = _span(blocks, blocks.box)
        self._opened = np.empty((whole.lattice.num_classes, words), np.uint32)
        self._occupied = np.empty(words if whole.model.draws_sites else 0, np.uint32)
        self._runs = make_runs(points)
        axes = zip(whole.boundary, blocks.counts)
        aside = any(kind == "periodic" and count == 1 for kind, count in axes)
        self._periods = np.empty(points if aside else 0, np.int64)

    @staticmethod
    def memory(blocks: Blocks) -> Memory:
        """Return the memory of its arrays and tables, and of one boundary as if all were open."""
        whole, box = blocks.whole, blocks.box
        points, words = prod(box), count_words(prod(box))
        kinds = zip(whole.boundary, blocks.counts)
        aside = any(kind == "periodic" and count == 1 for kind, count in kinds)
        own = 4 * words * (whole.lattice.num_classes + whole.model.draws_sites)
        own += 8 * words + 12 * points + (8 * points if aside else 0)
        boundary = tuple(
            "open" if count > 1 else kind for kind, count in zip(whole.boundary, blocks.counts)
        )
        lattice = _from_corner(whole.lattice, (0,) * len(box))
        extent = Extent.of_structure(lattice, box, boundary)
        phases = len({blocks.phase(place) for place in blocks.coordinates()})
        crossing = blocks.most_crossing((1,) * len(box))
        tables = phases * (extent.topology_bytes + extent.periodic_bytes + 17 * crossing)
        tables += extent.building_bytes
        return Memory(host=own + tables + BOND_BYTES * crossing)

    def fill(self, box: Vector, draw: SampleKey) -> list[tuple[Vector, list[Any]]]:
        """Draw the open bonds of a box and those across its faces; what :meth:`label` is given."""
        blocks, keys = self.blocks, draw.keys(self.blocks.whole)
        tables, span = self._tables_of(box), self._span
        top, first = tables.topology, np.uint64(blocks.first_site(box))
        fill_box(
            keys,
            first,
            span.abroad,
            span.width,
            top.exists,
            top.occupied,
            tables.adjacency,
            self._opened,
            self._occupied,
        )
        return [
            (direction, [self._crossing(keys, *part) for part in parts])
            for direction, parts in self._find_crossings(box).items()
        ]

    def label(self, box: Vector, crossing: list[tuple[Vector, list[Any]]]) -> Boundary:
        """Return the boundary of the box that was filled last."""
        tables, top = self._tables_of(box), self._tables_of(box).topology
        occupied = self._occupied if self._occupied.size else top.occupied
        periods, runs = self._periods, self._runs
        windings = Windings(periods, np.zeros(1, np.int64), top.num_axes)
        count, wrapping = find_clusters(
            self._opened.ravel(), tables.adjacency, occupied, runs, windings
        )
        faces = [self._face(parts) for _, parts in crossing]
        every = _chained(faces)
        row = np.zeros(self.row_width, np.int64)
        none = np.empty(0, np.uint32)
        sizes, flags, spanning = measure_slab(
            count, every.clusters, none, self._end_flags(box), runs, row
        )
        sums = sums_from_row(row, int(spanning) | int(wrapping), int(windings.loop[0]))
        borders = {direction: Border(face) for (direction, _), face in zip(crossing, faces)}
        borders = _cut(every, borders)
        ones = (1,) * len(box)
        return Boundary(box, ones, self.blocks, borders, sizes, flags, sums)

    def boundary(self, box: Vector, draw: SampleKey) -> Boundary:
        """Return the boundary of one box of a sample."""
        return self.label(box, self.fill(box, draw))

    def _tables_of(self, box: Vector) -> BoxTables:
        phase = self.blocks.phase(box)
        if phase not in self._tables:
            self._tables[phase] = _tables_of(self.blocks, phase)
        return self._tables[phase]

    def _find_crossings(
        self, box: Vector
    ) -> dict[Vector, list[tuple[Piece, Vector, Vector, bool]]]:
        """Return by direction what crosses there: (piece, its owners' box, the other, own?)."""
        crossings: dict[Vector, list[tuple[Piece, Vector, Vector, bool]]] = {}
        for piece in self._tables_of(box).pieces:
            other = self.blocks.neighbour(box, piece.direction)
            if other is not None:
                crossings.setdefault(piece.direction, []).append((piece, box, other, True))
        for direction in product((-1, 0, 1), repeat=len(box)):
            owner = self.blocks.neighbour(box, direction) if any(direction) else None
            cut = all(not step or n > 1 for step, n in zip(direction, self.blocks.counts))
            if owner is None or not cut:
                continue
            for piece in self._tables_of(owner).pieces:
                if piece.direction == opposite(direction):
                    crossings.setdefault(direction, []).append((piece, owner, box, False))
        # A class crosses a face in one direction; its pieces are in the same order on both sides.
        return {d: sorted(crossings[d], key=lambda part: part[0].klass) for d in sorted(crossings)}

    def _crossing(
        self, keys: SlabKeys, piece: Piece, owner: Vector, other: Vector, own: bool
    ) -> tuple[Any, ...]:
        """Draw the bonds of a piece; return what is read of them."""
        blocks, whole = self.blocks, self.blocks.whole
        near = np.uint64(blocks.first_site(owner) + _dot(piece.corner, blocks.strides))
        far = np.uint64(blocks.first_site(other) + _dot(piece.end, blocks.strides))
        opened = np.empty(piece.exists.size, np.uint32)
        span = piece.span
        bonds = fill_crossing(
            keys,
            whole.model.draws_sites,
            piece.klass,
            near,
            far,
            span.abroad,
            span.width,
            piece.exists,
            opened,
        )
        corner = piece.corner if own else piece.end
        first = _dot(corner, [prod(blocks.box[:axis]) for axis in range(len(corner))])
        code = self._code(piece, owner) if own else 0
        return opened, span.inside, first, span.width, code, bonds

    def _code(self, piece: Piece, owner: Vector) -> int:
        """Return the periods that the bonds of a piece lead over, as a code."""
        ends = zip(owner, piece.step, self.blocks.counts)
        periods = [(place + step) // count for place, step, count in ends]
        return int(period_codes(np.array([periods]))[0])

    def _face(self, parts: list[Any]) -> Face:
        """Return a face as roots of clusters, not yet numbered."""
        faces = []
        for opened, inside, first, width, code, bonds in parts:
            roots = np.empty(bonds, np.uint32)
            codes = np.empty(bonds if self.blocks.whole.has_periods else 0, np.int64)
            forest = self._runs, self._periods
            read_crossing(opened, inside, first, width, code, *forest, roots, codes)
            faces.append(Face(roots, codes))
        return _chained(faces)

    def _end_flags(self, box: Vector) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Return the sites of a box in end layers of the whole lattice, and their flags."""
        whole, shape = self.blocks.whole, self.blocks.box
        ends = []
        for axis, (n, kind) in enumerate(zip(whole.shape, whole.boundary)):
            depth, first = min(whole.lattice.per_size[axis], n), box[axis] * shape[axis]
            for low, high in ((0, depth), (n - depth, n)) if kind == "open" else ():
                ends.append((axis, *(min(max(x - first, 0), shape[axis]) for x in (low, high))))
            if kind != "open":
                ends += [(axis, 0, 0), (axis, 0, 0)]
        key = self.blocks.phase(box), tuple(ends)
        if key not in self._ends:
            tables = self._tables_of(box)
            sites, flags = [np.empty(0, np.int32)], [np.empty(0, np.uint32)]
            for bit, (axis, low, high) in enumerate(ends):
                along = [np.arange(n) for n in shape]
                along[axis] = along[axis][low:high]
                listed = tables.grid.listed(tables.sites, along)
                sites.append(listed)
                flags.append(np.full(listed.size, 1 << bit, np.uint32))
            self._ends[key] = np.concatenate(sites), np.concatenate(flags)
        return self._ends[key]


def _dot(one: Iterable[int], other: Iterable[int]) -> int:
    return sum(a * b for a, b in zip(one, other))
