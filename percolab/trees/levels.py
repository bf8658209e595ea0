"""The levels at which given values percolate: energies, heights, pore sizes, weights of bonds.

At level t all sites, or bonds, with values of at most t are open.  The lowest levels are found at
which a cluster spans an open axis or wraps around a periodic one, and has so many directions; all
are values of the array.  What clusters reach only grows with t.  So t is bisected over a sample of
the values, a labeling each; where few values are left, bonds are opened one by one in ascending
order, as Newman and Ziff (2001) do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.errors import InputError
from percolab.kernels.memory import explain_lack
from percolab.labelers.raster_runs import make_runs
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import AXIS_NAMES, Lattice
from percolab.lattices.shown import Shown
from percolab.lattices.structure import Structure
from percolab.lattices.topology import PERIOD_BITS, Topology, decode_periods, pack_bits, unpack_bits
from percolab.trees import levels_cpu as kernels
from percolab.trees.invasion import lattice_ground, topology_ground

#: Values over which levels are bisected, and how many of them are left at the end.
_TRIED, _FEW = 4096, 16
# Bytes of a grid point and of each of its bonds, beside the values.
_POINT_BYTES, _BOND_BYTES = 28, 1

Integers = NDArray[np.int64]
Values = NDArray[Any]


@dataclass(frozen=True, eq=False)
class LevelPath:
    """A path whose largest value is the level, with the fewest steps.

    sites:   int64 (n,), from side to side; around a periodic axis from the saddle back to it
    places:  int64 (n, axes), their grid points; those of a loop go on beyond the array, by a period
             wherever it crosses a boundary.  (n, 0) of a graph
    values:  (n,), of the sites; or (n - 1,), of the bonds between them
    winding: periods along every axis from the first to the last place
    """

    sites: Integers
    places: Integers
    values: Values
    winding: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Level:
    """A level at which something begins to percolate.

    level:   a value of the array
    barrier: from the lowest value of all to the level; from the highest where these open first
    share:   the part of all sites, or bonds, that is open at the level
    saddle:  the site that opens last; of values of bonds the two sites of the bond
    path:    along or around an axis; None of a number of directions
    """

    level: float
    barrier: float
    share: float
    saddle: tuple[int, ...]
    path: LevelPath | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Levels(Shown):
    """The levels at which values percolate; None where they do not, even if all is open.

    axes:       by name: where a cluster spans an open axis, or wraps around a periodic one
    directions: by 1, 2, ...: where one cluster has so many independent directions: open axes that
                it spans, and windings of its loops
    bottom:     the value that opens first; None if none does
    of:         "sites" or "bonds".  never_open: how many of these never open
    """

    axes: dict[str, Level | None]
    directions: dict[int, Level | None]
    bottom: float | None
    of: str
    never_open: int
    boundary: tuple[str, ...]
    structure: Structure

    def _facts(self) -> dict[str, Any]:
        levels = {
            axis: "none" if at is None else level_text(at.level) for axis, at in self.axes.items()
        }
        return {"of": self.structure.name, **levels}

    def site_name(self, site: int) -> str | int:
        """Return a site's name, or its number where sites have no names."""
        return self.structure.site_name(site) if isinstance(self.structure, Graph) else site

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "of": self.structure.name,
            "values": self.of,
            "boundary": list(self.boundary),
            "bottom": self.bottom,
            "never_open": self.never_open,
            "axes": {axis: self._record(level) for axis, level in self.axes.items()},
            "directions": {str(n): self._record(level) for n, level in self.directions.items()},
        }

    def _record(self, level: Level | None) -> dict[str, Any] | None:
        if level is None:
            return None
        record = {name: getattr(level, name) for name in ("level", "barrier", "share")}
        record["saddle"] = [self.site_name(site) for site in level.saddle]
        if level.path is not None:
            record |= {"steps": level.path.sites.size - 1, "winding": list(level.path.winding)}
            record["path"] = [self.site_name(site) for site in level.path.sites.tolist()]
        return record


def level_text(value: float) -> str:
    """Return an integer as it is, and eight digits of a float."""
    return str(value) if isinstance(value, int) else f"{value:.8g}"


def levels_too_large(num_points: int, num_classes: int, value_bytes: int) -> str:
    """Return why the search of levels does not fit into the free memory, or ""."""
    needed = num_points * (_POINT_BYTES + _BOND_BYTES * num_classes) + value_bytes
    return explain_lack(f"{num_points} sites need", needed)


class LevelSearch:
    """The search of the levels at which given values percolate.

    values: (num_points,), of sites; or (num_classes, num_points), of bonds, by their owners.  What
    is at a point without a site, or without a bond, is not used.  inf never opens.
    above: open is what has at least the level, and -inf never opens.

    InputError: NaN or -inf (above: inf); a site on both sides of an axis; a graph without source
    and target.
    """

    def __init__(
        self,
        topology: Topology,
        values: Values,
        structure: Structure,
        boundary: tuple[str, ...] = (),
        *,
        above: bool = False,
    ) -> None:
        self.topology, self.structure, self.boundary = topology, structure, boundary
        self.above, self.by_site = above, values.ndim == 1
        self.values = self._turned(values)
        words = topology.occupied if self.by_site else topology.exists
        total = topology.num_sites if self.by_site else topology.num_bonds
        #: Those of all sites, or bonds, that exist.
        self.used = self.values.ravel()
        if total < values.size:
            self.used = self.values[unpack_bits(words, topology.num_points)]
        self._check()
        self.adjacency = make_adjacency(topology)
        self.exists = topology.exists.ravel()
        points, axes, crossing = topology.num_points, topology.num_axes, topology.num_periodic_bonds
        self.growth = kernels.Growth(
            runs=make_runs(points),
            periods=np.empty(points, np.int64),
            slots=np.empty(points, np.int32),
            # Every cluster that wraps has a periodic bond of its own.
            windings=np.empty((crossing, axes, axes), np.int32),
            ranks=np.empty(crossing, np.int8),
            count=np.zeros(1, np.int64),
        )
        self.wound = np.empty(axes, np.int64)
        #: By what is reached: the level, the number of the bond that opens last, and its ends.
        self.reached: dict[int, tuple[Any, int, tuple[int, int]]] = {}

    def find(self) -> Levels:
        tried = self._candidates()
        if tried.size:
            self._look(tried, -1, 0, len(tried) - 1, self._label(self._open_bonds(tried[-1])))
        dimension = self.topology.num_axes
        axes = AXIS_NAMES[:dimension] if self.topology.shape else ["source-target"]
        return Levels(
            axes={name: self._level(axis, self._path(axis)) for axis, name in enumerate(axes)},
            directions={n + 1: self._level(kernels.FIRST_DIRECTION + n) for n in range(dimension)},
            bottom=self._turned(tried[0]).item() if tried.size else None,
            of="sites" if self.by_site else "bonds",
            never_open=self.used.size - (self._count_open(tried[-1]) if tried.size else 0),
            boundary=self.boundary,
            structure=self.structure,
        )

    def _turned(self, values: Values) -> Values:
        """Return values of the same type in reverse order if large ones open first, or undo it."""
        if not self.above:
            return values
        return -values if values.dtype.kind == "f" else ~values

    def _check(self) -> None:
        topology, used = self.topology, self.used
        # A minimum is NaN where any of the values is.
        if used.size and used.dtype.kind == "f" and not used.min() > -np.inf:
            wrong, solid = self._turned(used.min()), "-inf" if self.above else "inf"
            raise InputError(f"a value is {wrong}, but it must be finite, or {solid} for what "
                             "never opens")  # fmt: skip
        if not topology.num_axes:
            raise InputError(f"{self.structure.name}: give --source and --target")
        for axis, layers in enumerate(topology.end_layers):
            both = np.intersect1d(*layers)
            if both.size:
                where = f"axis {AXIS_NAMES[axis]}" if topology.shape else self.structure.name
                raise InputError(f"{where}: site {self._outer(both)[0]} is on both sides")
        if topology.num_periodic_bonds and topology.num_axes * PERIOD_BITS > 64:
            raise InputError(f"{self.structure.name}: windings are counted along 5 axes at most")

    def _outer(self, sites: Any) -> Integers:
        """Return sites by the numbers that they have in a graph."""
        inner, sites = getattr(self.structure, "inner_numbers", None), np.asarray(sites, np.int64)
        return cast(Integers, sites if inner is None else np.argsort(inner)[sites])

    # Levels

    def _candidates(self) -> Values:
        """Return some of the values that open, ascending, the lowest and the highest among them."""
        used = self.used
        if used.dtype.kind == "f" and used.size and used.max() == np.inf:
            used = used[used < np.inf]
        if used.size > _TRIED:
            # At random, since a stride may follow a row of the array.
            some = np.random.Generator(np.random.Philox(0)).integers(used.size, size=_TRIED)
            used = np.concatenate([used[some], [used.min(), used.max()]])
        return np.unique(used)

    def _count_open(self, level: Any) -> int:
        return int(np.count_nonzero(self.used <= level))

    def _open_bonds(self, level: Any) -> NDArray[np.uint32]:
        words, opened = pack_bits(self.values <= level), np.empty_like(self.exists)
        if self.by_site:
            words &= self.topology.occupied
            kernels.write_open_bonds(self.exists, words, self.adjacency, opened)
        else:
            np.bitwise_and(words.ravel(), self.exists, out=opened)
        return opened

    def _label(self, opened: NDArray[np.uint32]) -> int:
        ends = self.topology.end_flags()
        return int(kernels.label_open_bonds(opened, self.adjacency, *ends, self.growth, self.wound))

    def _look(self, tried: Values, low: int, before: int, high: int, after: int) -> None:
        """Find what is reached above one candidate, where there is ``before``, and up to another.

        low, high: their places, -1 below all of them.
        """
        if before == after:
            return
        if high - low > _FEW:
            middle = (low + high) // 2
            between = self._label(self._open_bonds(tried[middle]))
            self._look(tried, low, before, middle, between)
            self._look(tried, middle, between, high, after)
            return
        opened = self._open_bonds(tried[low]) if low >= 0 else np.zeros_like(self.exists)
        self._label(opened)
        later = self._open_bonds(tried[high])
        count = int(np.bitwise_count(later & ~opened).sum(dtype=np.int64))
        bonds, ends = np.empty(count, np.int64), np.empty((2, count), np.int32)
        kernels.list_new_bonds(opened, later, self.adjacency, bonds, ends)
        levels = self.values[ends].max(axis=0) if self.by_site else self._bond_values(bonds)
        order, opens = np.argsort(levels, kind="stable"), np.full(64, -1, np.int64)
        called = order, bonds, ends, self.adjacency, self.growth, self.wound
        kernels.open_in_order(*called, before, after, opens)
        for bit in np.flatnonzero(opens >= 0).tolist():
            n = opens[bit]
            self.reached[bit] = levels[n], int(bonds[n]), (int(ends[0, n]), int(ends[1, n]))

    def _bond_values(self, bonds: Integers) -> Values:
        return np.asarray(self.values[np.divmod(bonds, 32 * self.topology.num_words)])

    def _saddle(self, bit: int) -> tuple[int, ...]:
        level, _, ends = self.reached[bit]
        if not self.by_site:
            return ends
        return (ends[0] if self.values[ends[0]] == level else ends[1],)

    def _level(self, bit: int, path: LevelPath | None = None) -> Level | None:
        if bit not in self.reached:
            return None
        level = self.reached[bit][0]
        value, bottom = self._turned(level).item(), self._turned(self.used.min()).item()
        share = self._count_open(level) / self.used.size
        saddle = tuple(self._outer(self._saddle(bit)).tolist())
        return Level(value, abs(value - bottom), share, saddle, path)

    # Paths

    @cached_property
    def _ground(self) -> Any:
        if isinstance(self.structure, Lattice):
            return lattice_ground(self.structure, self.topology.shape, self.boundary)
        return topology_ground(self.topology)

    def _path(self, axis: int) -> LevelPath | None:
        if axis not in self.reached:
            return None
        level, number, ends = self.reached[axis]
        growth, opened = self.growth, self._open_bonds(level)
        # Labels are not needed any more.
        before, lifts = growth.runs.parents, growth.periods
        scratch = np.empty((2, self._ground.degree), np.int64)
        room = before, lifts, growth.runs.reach.view(np.int32), growth.slots, *scratch
        where = self._ground, self.adjacency, opened
        if ends[0] == ends[1]:
            # The axis has one site.
            sites, numbers = np.array(ends, np.int64), self.adjacency.periodic_bonds
            codes = np.append(np.int64(0), self.adjacency.periodic_codes[numbers == number])
        else:
            first, last = self.topology.end_layers[axis]
            if not last.size:
                first = np.array(self._saddle(axis)[:1], np.int32)
            elif self.by_site:
                first = first[self.values[first] <= level]
            one, other, loop = kernels.search_path(*where, first, last, axis, *room)
            there, back = _way_back(before, one)[::-1], _way_back(before, other)
            sites = there if last.size else np.concatenate([there, back])
            codes = lifts[there] if last.size else np.append(lifts[there], lifts[back] + loop)
        periods = decode_periods(codes, self.topology.num_axes)
        shape = self.topology.shape
        places = np.empty((sites.size, len(shape)), np.int64)
        if shape:
            places[:] = np.stack(np.unravel_index(sites, shape[::-1])[::-1], 1) + periods * shape
        if self.by_site:
            values = self.values[sites]
        else:
            numbers = np.full(sites.size - 1, number)
            kernels.list_path_bonds(*where, sites, codes, *scratch, numbers)
            values = self._bond_values(numbers)
        winding = tuple(periods[-1].tolist())
        return LevelPath(self._outer(sites), places, self._turned(values), winding)


def _way_back(before: NDArray[np.int32], site: int) -> Integers:
    """Return the sites from one to its start, which is before itself, both among them."""
    sites = [site]
    while before[sites[-1]] != sites[-1]:
        sites.append(int(before[sites[-1]]))
    return np.array(sites, np.int64)
