"""Lattice: a periodic arrangement of sites and bonds, described by data from a TOML file.

A lattice is a small *cell*, a block of grid points with bonds between them, repeated in every
direction.  A file gives the block itself, or a textbook unit cell (basis sites, bonds with cell
offsets) whose sites are laid side by side along the first axis.  docs/lattice-format.md describes
the format; no code here is specific to one lattice.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from itertools import product
from math import gcd, prod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from percolab.errors import InputError, nearest
from percolab.lattices.grid import Grid
from percolab.lattices.one_piece import unreached
from percolab.lattices.shells import neighbourhood_text
from percolab.lattices.shown import Shown, counted
from percolab.lattices.toml_table import Table, cell_text, parse_toml, read_text
from percolab.lattices.topology import MAX_POINTS, Topology

Point = tuple[int, ...]
Vector = tuple[float, ...]
BOUNDARIES = ("open", "periodic")
AXIS_NAMES = "xyzuvwst"


@dataclass(frozen=True)
class BondClass:
    """Bonds owned by cell points ``at``, with one offset; name: as in bond:x=p,y=0.3, or ""."""

    offset: Point
    at: frozenset[Point]
    name: str = ""


@dataclass(frozen=True)
class Threshold:
    """A published threshold, used only for comparison; cite: a short reference."""

    model: str
    value: float
    error: float
    expression: str
    reference: str
    cite: str


@dataclass(frozen=True, repr=False)
class Lattice(Shown):
    """A lattice: cell, bonds, the unit of its size L, and published values.

    cell:      grid points of the block along each axis; ``vacant`` lists those without a site
    bonds:     classes in canonical order, nearest owner-to-neighbour offset first
    per_size:  grid points along each axis for one unit of L
    aspect:    the sides of size L are as these integers; () where all are equal
    source:    the TOML text from which the lattice was read
    vectors:   real-space step of one grid point along each axis; ``shifts`` moves cell points
    """

    #: The boundaries that an axis can have, the default first.
    boundaries: ClassVar[tuple[str, ...]] = BOUNDARIES
    #: Its sizes approach the infinite lattice, as finite-size scaling assumes.
    is_scalable: ClassVar[bool] = True

    name: str
    title: str
    cell: Point
    vacant: frozenset[Point]
    bonds: tuple[BondClass, ...]
    per_size: Point
    vectors: tuple[Vector, ...] = ()
    shifts: tuple[tuple[Point, Vector], ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    aspect: Point = ()
    source: str = ""

    def _facts(self) -> dict[str, Any]:
        known = ", ".join(f"{each.model} {each.value:.8g}" for each in self.thresholds)
        return {
            "lattice": self.name,
            "axes": self.dimension,
            "cell": " x ".join(map(str, self.cell)),
            **({"of it vacant": counted(len(self.vacant), "site")} if self.vacant else {}),
            "bonds at a site": f"{self.coordination_number:g}",
            **({"published p_c": known} if known else {}),
        }

    @classmethod
    def from_cell(
        cls,
        vectors: ArrayLike,
        sites: ArrayLike,
        bonds: Sequence[Sequence[Any]],
        *,
        name: str = "lattice",
        title: str | None = None,
        coordination_number: float | None = None,
        thresholds: Sequence[Mapping[str, Any]] = (),
    ) -> Lattice:
        """Return the lattice of a unit cell; L counts cells along each axis.

        vectors: float (d, d), from a cell to the next along each of d axes, in any unit of length.
        sites: float (n, d), positions of the n sites of a cell as fractions of the vectors; sites
        are numbered 0 to n - 1.  bonds: (from, to, cell), from a site of one cell to a site of
        another one; cell is the number of steps along each axis to that cell.  Give every bond
        once.  A fourth entry names the bond's class.
        title: for figures.  coordination_number: checked against the bonds.  thresholds: published
        ones, with the keys of docs/lattice-format.md.

        ``source`` of the lattice is the text of its lattice file.  InputError (one line), as for
        such a file: a bond that is given twice or leads nowhere, a disconnected lattice, ...

        >>> honeycomb = Lattice.from_cell(
        ...     [[1.5, 3**0.5 / 2], [0, 3**0.5]],
        ...     [[0, 0], [1 / 3, 1 / 3]],
        ...     [(0, 1, (0, 0)), (0, 1, (-1, 0)), (0, 1, (0, -1))],
        ...     name="my-honeycomb",
        ... )
        >>> honeycomb
        <Lattice my-honeycomb; axes 2; cell 2 x 1; bonds at a site 3>
        """
        keys = {"title": title, "coordination_number": coordination_number}
        text = cell_text(vectors, sites, bonds, name=name, keys=keys, thresholds=thresholds)
        return lattice_from_text(text, where=f"lattice {name}")

    @property
    def dimension(self) -> int:
        return len(self.cell)

    @property
    def coordination_number(self) -> float:
        """Mean number of bonds at a site of the infinite lattice."""
        return 2 * sum(len(bond.at) for bond in self.bonds) / len(self.sites)

    @cached_property
    def sites(self) -> frozenset[Point]:
        return frozenset(product(*map(range, self.cell))) - self.vacant

    @property
    def num_classes(self) -> int:
        return len(self.bonds)

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(bond.name for bond in self.bonds)

    @cached_property
    def digest(self) -> str:
        """Hash of everything that determines a sample: cell, vacancies, bonds and unit of L."""
        content = {
            "cell": self.cell,
            "vacant": sorted(self.vacant),
            "bonds": [(bond.offset, sorted(bond.at)) for bond in self.bonds],
            "per_size": self.per_size,
        } | ({"aspect": self.aspect} if self.aspect else {})
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def threshold(self, model: str = "bond") -> Threshold | None:
        return next((each for each in self.thresholds if each.model == model), None)

    def shape(self, size: int) -> Point:
        """Return the grid points along each axis of a lattice of linear size L."""
        return tuple(n * unit for n, unit in zip(self.sides(size), self.per_size, strict=True))

    def sides(self, size: int) -> Point:
        """Return the sides along each axis of a lattice of linear size L, in units of L."""
        return tuple(size * ratio for ratio in self.aspect or (1,) * self.dimension)

    def with_sides(self, aspect: Sequence[int]) -> Lattice:
        """Return the lattice whose sides are in this ratio, which has different samples.

        aspect: positive integers without a common divisor, one for each axis

        >>> wide = load_lattice("square").with_sides((1, 2))
        >>> wide.name, wide.shape(32)
        ('square 1x2', (32, 64))
        """
        text = re.sub(r"(?m)^aspect\s*=.*\n", "", self.source)
        if len(set(aspect)) > 1:
            text = f"aspect = {list(aspect)}\n{text}"
        return lattice_from_text(text, where=f"lattice {self.name}")

    def size_text(self, size: int) -> str:
        """Return a size as users give it: 64, or 64x128."""
        return "x".join(map(str, self.sides(size))) if self.aspect else str(size)

    def check_size(self, size: int, boundary: tuple[str, ...]) -> None:
        """Raise InputError if no lattice of linear size L with this boundary can be labeled."""
        self.check_existence(size, boundary)
        points = prod(self.shape(size))
        if points > MAX_POINTS:
            text = self.size_text(size)
            raise InputError(f"L = {text}: {points} sites, but at most {MAX_POINTS} can be labeled")

    def check_existence(self, size: int, boundary: tuple[str, ...]) -> None:
        """Raise InputError if no lattice of linear size L with this boundary exists."""
        if size < 1:
            raise InputError(f"L = {size}, but it must be an integer of at least 1")
        for axis in self._cut_axes(self.shape(size), boundary):
            raise InputError(
                f"L = {self.size_text(size)}, but along the periodic axis {AXIS_NAMES[axis]} of "
                f"{self.name} it "
                f"must be a multiple of {self.cell[axis] // self.per_size[axis]}"
            )

    def _cut_axes(self, shape: Point, boundary: tuple[str, ...]) -> list[int]:
        """Return the periodic axes along which the grid points are not a whole number of cells."""
        axes = enumerate(zip(shape, self.cell, boundary, strict=True))
        return [axis for axis, (n, cell, kind) in axes if kind == "periodic" and n % cell]

    def check_cells(self, shape: Point, boundary: tuple[str, ...]) -> None:
        """Raise InputError if a periodic axis of a block of ``shape`` grid points cuts a cell.

        Also raise it if the first or last layer along an open axis has no site: nothing would span.
        """
        for axis in self._cut_axes(shape, boundary):
            raise InputError(
                f"{self.name}: {shape[axis]} grid points along the periodic axis "
                f"{AXIS_NAMES[axis]} are not a multiple of its cell, {self.cell[axis]}"
            )
        # A block that is cut along one axis may have lost all sites of a layer along another.
        # Slabs, whose last axis has no end layers, are parts of a lattice that has them.
        ends = [n if depth else cell for n, depth, cell in zip(shape, self.per_size, self.cell)]
        inside = [site for site in self.sites if all(x < n for x, n in zip(site, ends))]
        for axis, (n, kind) in enumerate(zip(shape, boundary, strict=True)):
            cell, depth = self.cell[axis], self.per_size[axis]
            layers = {0, (n - 1) % cell} if kind == "open" and depth == 1 else set()
            if not layers <= {site[axis] for site in inside}:
                raise InputError(
                    f"{self.name}: the first or the last of {n} layers along {AXIS_NAMES[axis]} "
                    f"has no site, so that nothing spans (its block of {cell} points has vacant "
                    "layers); choose another L, --boundary periodic, or a [unit_cell]"
                )

    def _take_shape(self, shape: Any) -> Point:
        """Return a shape as integers; InputError unless it has a positive one for each axis."""
        counts = list(shape) if np.iterable(shape) else []
        is_whole = all(isinstance(n, int | np.integer) and n > 0 for n in counts)
        if len(counts) != self.dimension or not is_whole:
            allowed = f"{self.dimension} integers of at least 1, one for each axis"
            raise InputError(f"shape = {shape!r}, but that of {self.name} is {allowed}")
        return tuple(map(int, counts))

    def topology(self, shape: Point, boundary: tuple[str, ...] | None = None) -> Topology:
        """Return the topology of a block of ``shape`` grid points, first axis fastest.

        ``boundary`` is "open" (default) or "periodic" per axis.  InputError if a periodic axis is
        not a whole number of cells long.
        """
        boundary = ("open",) * self.dimension if boundary is None else boundary
        shape = self._take_shape(shape)
        kinds = tuple(boundary) if np.iterable(boundary) else ()
        if len(kinds) != self.dimension or any(kind not in self.boundaries for kind in kinds):
            known = " or ".join(self.boundaries)
            raise InputError(f"boundary = {boundary!r}, but it must be {known}, one for each axis")
        boundary = kinds
        self.check_cells(shape, boundary)
        grid = Grid(self.cell, shape, boundary, depths=self.per_size)
        offsets = tuple(bond.offset for bond in self.bonds)
        chain_offset = (-1,) + (0,) * (self.dimension - 1)
        return Topology(
            num_points=prod(shape),
            occupied=grid.mask(self.sites, grid.every_layer()),
            deltas=np.array([grid.delta(offset) for offset in offsets], np.int64),
            neighbours=None,
            end_layers=tuple(grid.end_layers(axis, self.sites) for axis in range(self.dimension)),
            chain=offsets.index(chain_offset) if chain_offset in offsets else -1,
            shape=tuple(shape),
            offsets=offsets,
            grid=grid,
            owners_at=tuple(bond.at for bond in self.bonds),
            class_names=self.class_names,
        )

    def positions(self, shape: Point) -> np.ndarray:
        """Return real-space coordinates (num_points, dimension) float64; ValueError if unknown."""
        shape = self._take_shape(shape)
        if not self.vectors:
            raise ValueError(f"lattice {self.name} has no [drawing] vectors")
        axes = np.unravel_index(np.arange(prod(shape)), shape[::-1])[::-1]
        return self.places(np.stack(axes, axis=1))

    def places(self, points: np.ndarray) -> np.ndarray:
        """Return coordinates, float64, of grid points, int (n, d): by default the points."""
        places: np.ndarray = points @ np.array(self.vectors or np.eye(self.dimension))
        for point, shift in self.shifts:
            places[np.all(points % self.cell == point, axis=1)] += shift
        return places


def lattice_names() -> list[str]:
    folder = resources.files("percolab") / "lattices" / "library"
    return sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml"))


def load_lattice(name: str | Path) -> Lattice:
    """Return a lattice by its name, or from a file if ``name`` is a path ending in .toml.

    A name may be followed by shells of neighbours, as in "square:1-3"
    (:mod:`percolab.lattices.shells`), and by a ratio of sides, as in "square 1x2".
    InputError: unknown name (with the nearest known one), or a file that describes no lattice.

    >>> load_lattice("honeycomb").coordination_number
    3.0
    """
    name = str(name)
    if name.endswith(".toml"):
        return lattice_from_text(read_text(Path(name)), where=name)
    known = lattice_names()
    own, _, sides = name.rpartition(" ")
    if own.partition(":")[0] in known and re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})+", sides):
        return load_lattice(own).with_sides([int(n) for n in sides.split("x")])
    if ":" in name and name.partition(":")[0] in known:
        return _load_neighbourhood(name)
    if re.fullmatch(r"\.[A-Za-z]\w*", Path(name).suffix):
        raise InputError(
            f"{name}: is no lattice, which is a name (percolab lattices) or a .toml file; for a "
            "network use --graph, for values percolab threshold --weights, for results percolab fit"
        )
    if name not in known:
        raise InputError(f"unknown lattice {name!r}; {nearest(name, known)} (or give a .toml file)")
    return _load_from_library(name)


@cache
def _load_from_library(name: str) -> Lattice:
    file = Path(str(resources.files("percolab") / "lattices" / "library" / f"{name}.toml"))
    return lattice_from_text(read_text(file), where=f"{name}.toml")


def _load_neighbourhood(name: str) -> Lattice:
    """Return NAME:SHELLS, with its published thresholds, or those of a lattice that it equals."""
    own = load_lattice(name.partition(":")[0])
    text = neighbourhood_text(own, name)
    lattice = lattice_from_text(text, where=name)
    for known in (own, *map(load_lattice, lattice_names())):
        if known.digest == lattice.digest:
            text += "".join(known.source.partition("[[thresholds]]")[1:])
            return lattice_from_text(text, where=name)
    return lattice_from_text(text + _published_text(lattice.name), where=name)


def _published_text(name: str) -> str:
    """Return the published thresholds of an extended neighbourhood, as TOML."""
    file = Path(str(resources.files("percolab") / "lattices" / "neighbourhoods.toml"))
    text = ""
    for paper in parse_toml(read_text(file), where=file.name)["papers"]:
        if name in (values := paper.pop("values")):
            entry = paper | {"value": values[name]}
            text += "\n[[thresholds]]\n"
            text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items())
    return text


def library_name(structure: Any) -> str:
    """Return a lattice's name if it is the library's lattice of that name, else ""."""
    if structure.name not in lattice_names():
        return ""
    is_own = load_lattice(structure.name).digest == structure.digest
    return str(structure.name) if is_own else ""


def lattice_from_text(text: str, *, where: str) -> Lattice:
    """Return the lattice that TOML text describes; InputError names the bad key or bond."""
    return replace(_parse(parse_toml(text, where=where), where=where), source=text)


_KEYS = {"name", "title", "dimension", "coordination_number", "cell", "bonds", "unit_cell"}
_KEYS |= {"drawing", "thresholds", "aspect"}
# A bond: its place in the file, the cell point it starts at, its offset, its class's name.
_Bond = tuple[str, Point, Point, str]
# The vectors of a drawing, and the shifts of cell points.
_Drawing = tuple[tuple[Vector, ...], tuple[tuple[Point, Vector], ...]]
# Grid points of the cell, those without a site, bonds, and the drawing.
_Cell = tuple[Point, frozenset[Point], list[_Bond], _Drawing]


def _parse(data: dict[str, Any], *, where: str) -> Lattice:
    table = Table(data, _KEYS, where)
    dimension = table.integer("dimension", low=1, high=8)
    is_folded = "unit_cell" in data
    if ("cell" in data or "bonds" in data) == is_folded:
        raise InputError(f"{where}: give either cell and bonds, or unit_cell")
    read_cell = _fold_unit_cell if is_folded else _read_block
    cell, vacant, bonds, (vectors, shifts) = read_cell(table, dimension)
    name, title = table.text("name"), table.text("title", table.text("name"))
    aspect: Point = ()
    if "aspect" in data:
        aspect = table.integers("aspect", dimension)
        if min(aspect) < 1 or gcd(*aspect) != 1 or len(set(aspect)) == 1:
            raise table.error("aspect", "positive integers without a common divisor, not all equal")
        name += f" {'x'.join(map(str, aspect))}"
        title += ", " + " \N{MULTIPLICATION SIGN} ".join(f"{n}L" if n > 1 else "L" for n in aspect)
    lattice = Lattice(
        name=name,
        title=title,
        aspect=aspect,
        cell=cell,
        vacant=vacant,
        bonds=_gather_classes(bonds, cell, vacant, where=where),
        per_size=cell if is_folded else (1,) * dimension,
        vectors=vectors,
        shifts=shifts,
        thresholds=tuple(_read_thresholds(table)),
    )
    if "coordination_number" in data:
        stated = table.number("coordination_number")
        if abs(stated - lattice.coordination_number) > 1e-9:
            raise table.error("coordination_number", f"{lattice.coordination_number:g}, as bonded")
    _check_one_piece(lattice, where=where)
    return lattice


def _check_one_piece(lattice: Lattice, *, where: str) -> None:
    bonds = ((point, bond.offset) for bond in lattice.bonds for point in bond.at)
    separate = unreached(lattice.cell, lattice.sites, bonds)
    if separate is None:
        return
    if isinstance(separate, int):
        missing = f"from a cell to the next one along axis {AXIS_NAMES[separate]}"
    elif lattice.per_size[0] > 1:  # a folded unit cell
        missing = f"from site 0 to any copy of site {separate[0]}"
    else:
        missing = f"from site {list(min(lattice.sites))} to any copy of site {list(separate)}"
    raise InputError(f"{where}: the lattice is in pieces: no path of bonds leads {missing}")


def _read_block(table: Table, dimension: int) -> _Cell:
    inner = table.table("cell", ("shape", "vacant"))
    cell = inner.integers("shape", dimension)
    if min(cell) < 1 or prod(cell) > 4096:
        raise inner.error("shape", "positive, with at most 4096 points")
    points = set(product(*map(range, cell)))
    vacant = frozenset(_point(inner, "vacant", each, points) for each in inner.sequence("vacant"))
    bonds: list[_Bond] = []
    for bond in table.tables("bonds", ("offset", "at", "name")):
        offset = bond.integers("offset", dimension)
        # Unless the file names the class, a unit offset gets the name of its axis.
        axes = [axis for axis, step in enumerate(offset) if step]
        is_unit = len(axes) == 1 and abs(offset[axes[0]]) == 1
        name = _class_name(bond, AXIS_NAMES[axes[0]] if is_unit else "")
        owners = sorted(points - vacant)
        if "at" in bond.data:
            owners = [_point(bond, "at", each, points) for each in bond.sequence("at")]
        bonds += [(bond.where, owner, offset, name) for owner in owners]
    return cell, vacant, bonds, _read_drawing(table, cell)


def _read_drawing(table: Table, cell: Point) -> _Drawing:
    if "drawing" not in table.data:
        return (), ()
    inner, points = table.table("drawing", ("vectors", "shifts")), set(product(*map(range, cell)))
    shifts = tuple(
        (_point(shift, "at", shift.data.get("at"), points), shift.numbers("shift", len(cell)))
        for shift in inner.tables("shifts", ("at", "shift"))
    )
    return _read_vectors(inner, len(cell)), shifts


def _read_vectors(table: Table, dimension: int) -> tuple[Vector, ...]:
    vectors = table.rows("vectors", dimension)
    if len(vectors) != dimension:
        raise table.error(
            "vectors", f"{dimension} vectors, from a cell to the next along each axis"
        )
    return vectors


def _point(table: Table, key: str, given: object, points: set[Point]) -> Point:
    point = tuple(given) if isinstance(given, list) else ()
    # By type, too: TOML's 1.0 and true equal 1 in Python.
    if not all(type(x) is int for x in point) or point not in points:
        raise InputError(f"{table.where}: {key} names {given!r}, which is no point of the cell")
    return point


def _fold_unit_cell(table: Table, dimension: int) -> _Cell:
    """Lay the sites of a unit cell side by side along axis 0; L then counts unit cells."""
    inner = table.table("unit_cell", ("sites", "bonds", "vectors"))
    places = inner.data.get("sites")
    if isinstance(places, list) and 1 <= len(places) <= 4096:
        count = len(places)
    else:
        count = inner.integer("sites", low=1, high=4096)
    others = (0,) * (dimension - 1)
    cell = (count, *(1 for _ in others))
    bonds: list[_Bond] = []
    for bond in inner.tables("bonds", ("from", "to", "cell", "name")):
        start = bond.integer("from", low=0, high=count - 1)
        end = bond.integer("to", low=0, high=count - 1)
        step = bond.integers("cell", dimension)
        offset = (step[0] * count + end - start, *step[1:])
        # Along axis 0, the sites of a cell follow one another, so an offset has no direction there.
        bonds.append((bond.where, (start, *others), offset, _class_name(bond, "")))
    if not isinstance(places, list):
        if "vectors" in inner.data:
            raise InputError(
                f"{inner.where}: vectors go with positions of its sites, as in "
                f"sites = {[[0] * dimension]}"
            )
        return cell, frozenset(), bonds, _read_drawing(table, cell)
    if "drawing" in table.data:
        raise InputError(f"{table.where}: sites of the unit cell have positions; leave out drawing")
    steps = np.array(_read_vectors(inner, dimension))
    along = steps[0] / count
    moves = np.array(inner.rows("sites", dimension)) @ steps - np.arange(count)[:, None] * along
    vectors = tuple(map(tuple, [along.tolist(), *steps[1:].tolist()]))
    shifts = (((number, *others), tuple(move)) for number, move in enumerate(moves.tolist()))
    return cell, frozenset(), bonds, (vectors, tuple(each for each in shifts if any(each[1])))


def _class_name(bond: Table, usual: str) -> str:
    """Return the name of a bond's class; InputError if it is not a word, or is "p"."""
    name = bond.text("name", usual)
    if "name" in bond.data and (not name.isidentifier() or name == "p"):
        raise bond.error("name", "a word of letters, digits and _, other than p")
    return name


def _gather_classes(
    bonds: list[_Bond], cell: Point, vacant: frozenset[Point], *, where: str
) -> tuple[BondClass, ...]:
    """Assign every bond to its larger end, and collect bonds with equal offsets in classes."""
    classes: dict[Point, set[Point]] = {}
    names: dict[Point, str] = {}
    for place, start, offset, name in bonds:
        end = tuple((x + step) % n for x, step, n in zip(start, offset, cell))
        if start in vacant or end in vacant:
            bad = start if start in vacant else end
            raise InputError(f"{place}: bond to a site that does not exist, at {list(bad)}")
        if not any(offset):
            raise InputError(f"{place}: offset {list(offset)} joins a site to itself")
        owner = start
        if offset[::-1] > (0,) * len(cell):
            owner, offset = end, tuple(-step for step in offset)
        if owner in classes.setdefault(offset, set()):
            raise InputError(f"{place}: this bond is given twice, from {list(start)}")
        classes[offset].add(owner)
        if names.setdefault(offset, name) != name:
            raise InputError(
                f"{place}: bonds of one offset, here {list(offset)}, are one class, but have the "
                f"names {names[offset] or 'none'} and {name or 'none'}; choose cells or a block in "
                "which their offsets differ (docs/lattice-format.md)"
            )
    if not classes:
        raise InputError(f"{where}: a lattice needs at least one bond")
    order = sorted(classes, key=lambda offset: offset[::-1], reverse=True)
    return tuple(BondClass(each, frozenset(classes[each]), names[each]) for each in order)


def _read_thresholds(table: Table) -> list[Threshold]:
    known = ("model", "value", "error", "expression", "reference", "cite")
    return [
        Threshold(
            model=entry.text("model"),
            value=entry.number_from("value", 0, 1),
            error=entry.number_from("error", 0, 1, default=0.0),
            expression=entry.text("expression", ""),
            reference=entry.text("reference"),
            cite=entry.text("cite", ""),
        )
        for entry in table.tables("thresholds", known)
    ]
