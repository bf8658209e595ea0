"""The levels at which given values percolate: energies, heights, pore sizes, weights of bonds.

At level t all sites, or bonds, with values of at most t are open.  The lowest levels are found at
which a cluster spans an open axis or wraps around a periodic one, and has so many directions; all
are values of the array.  What clusters reach only grows with t.  So t is bisected over a sample of
the values, a labeling each; where few values are left, bonds are opened one by one in ascending
order, as Newman and Ziff (2001) do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.errors import InputError
from percolab.kernels.memory import check_free, explain_lack
from percolab.labelers.raster_runs import Runs, join_runs, number_runs
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import AXIS_NAMES, Lattice
from percolab.lattices.shown import Shown
from percolab.lattices.structure import Structure
from percolab.lattices.topology import (
    PERIOD_BITS,
    Topology,
    decode_periods,
    num_bits,
    pack_bits,
    unpack_bits,
)
from percolab.trees import levels_cpu as kernels
from percolab.trees.invasion import lattice_ground, topology_ground

#: Values over which levels are bisected, and how many of them are left at the end.
_TRIED, _FEW = 4096, 16
#: Threads, and words of values that one compares at a time.
_THREADS, _SOME_WORDS = min(os.cpu_count() or 1, 8), 1 << 18
# Bytes of a run of open sites, and of a site where a path is searched.
_RUN_BYTES, _SEARCH_BYTES = 24, 20
# Bytes of a grid point, where values are independent, and of each of its bonds.
_POINT_BYTES, _BOND_BYTES = 8, 1

Integers = NDArray[np.int64]
Values = NDArray[Any]
Words = NDArray[np.uint32]


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
        self.above, self.by_site, self.values = above, values.ndim == 1, values
        words = topology.occupied if self.by_site else topology.exists
        self.total = topology.num_sites if self.by_site else topology.num_bonds
        used = values.ravel()
        if self.total < values.size:
            used = values[unpack_bits(words, topology.num_points)]
        self.tried = self._candidates(used)
        self.bottom = self._turned(self.tried[0]).item() if self.tried.size else None
        self._check()
        self.adjacency, self.exists = make_adjacency(topology), topology.exists.ravel()
        self.growth: Any = None
        self.wound = np.empty(topology.num_axes, np.int64)
        self.parts, room = self._cut(), topology.num_words
        self.starts = np.empty(room, np.uint32), np.empty(room, np.int32)
        #: By level: the part of all that is open there.
        self.shares: dict[Any, float] = {}
        #: By what is reached: the level, the number of the bond that opens last, and its ends.
        self.reached: dict[int, tuple[Any, int, tuple[int, int]]] = {}

    def find(self) -> Levels:
        num_open = 0
        if self.tried.size:
            last = len(self.tried) - 1
            self._look(-1, 0, last, self._label(self._open(self.tried[last])))
            num_open = num_bits(self._mark(self.tried[-1]))
            # Paths need its memory.
            self.growth = None
        dimension = self.topology.num_axes
        axes = AXIS_NAMES[:dimension] if self.topology.shape else ["source-target"]
        return Levels(
            axes={name: self._level(axis, self._path(axis)) for axis, name in enumerate(axes)},
            directions={n + 1: self._level(kernels.FIRST_DIRECTION + n) for n in range(dimension)},
            bottom=self.bottom,
            of="sites" if self.by_site else "bonds",
            never_open=self.total - num_open,
            boundary=self.boundary,
            structure=self.structure,
        )

    def _turned(self, values: Values) -> Values:
        """Return values of the same type in reverse order if large ones open first, or undo it."""
        if not self.above:
            return values
        return -values if values.dtype.kind == "f" else ~values

    def _check(self) -> None:
        topology = self.topology
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

    def _candidates(self, used: Values) -> Values:
        """Return some of the values that open, ascending, the lowest and the highest among them.

        used: those of all sites, or bonds, that exist.  Here and below they are turned.
        """
        if used.size and used.dtype.kind == "f":
            lowest, highest = self._turned(np.sort(self._turned(_ends(used))))
            # A minimum is NaN where any of the values is.
            if not self._turned(lowest) > -np.inf:
                solid = "-inf" if self.above else "inf"
                raise InputError(f"a value is {lowest}, but it must be finite, or {solid} for what "
                                 "never opens")  # fmt: skip
            if np.isinf(highest):
                used = used[np.isfinite(used)]
        if used.size > _TRIED:
            # At random, since a stride may follow a row of the array.
            some = np.random.Generator(np.random.Philox(0)).integers(used.size, size=_TRIED)
            used = np.concatenate([used[some], _ends(used)])
        return np.unique(self._turned(used))

    def _mark(self, level: Any) -> NDArray[np.uint32]:
        """Return the words of the sites, or bonds of all classes, that are open at a level."""
        values, level = self.values, self._turned(level)
        words = np.empty((*values.shape[:-1], self.topology.num_words), np.uint32)
        is_open = np.greater_equal if self.above else np.less_equal

        def mark(first: int) -> None:
            part = values[..., 32 * first : 32 * (first + _SOME_WORDS)]
            words[..., first : first + _SOME_WORDS] = pack_bits(is_open(part, level))

        _at_once(mark, range(0, self.topology.num_words, _SOME_WORDS))
        words &= self.topology.occupied if self.by_site else self.topology.exists
        return words

    def _open(self, level: Any) -> tuple[Words, Words]:
        """Return the words of the bonds open at a level, and of sites with all their ends."""
        words = self._mark(level)
        if not self.by_site:
            return words.ravel(), self.topology.occupied
        opened = np.empty_like(self.exists)
        kernels.write_open_bonds(self.exists, words, self.adjacency, opened)
        return opened, words

    def _cut(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return ranges of words whose bonds can be joined at once, and those between them.

        Runs do not leave their row, so no thread meets the runs of another.
        """
        topology, words = self.topology, self.topology.num_words
        if not topology.shape:
            return [(0, words)], []
        margin = (int(np.abs(topology.deltas).max()) + topology.shape[0]) // 32 + 1
        count = max(min(_THREADS, words // (4 * margin)), 1)
        edges = [words * n // count for n in range(1, count)]
        firsts = [0, *(edge + margin for edge in edges)]
        lasts = [*(edge - margin for edge in edges), words]
        return list(zip(firsts, lasts)), [(edge - margin, edge + margin) for edge in edges]

    def _label(self, opened: tuple[Words, Words], nodes: Words | None = None) -> int:
        """Join all open bonds of a configuration; return what its clusters reach.

        nodes: the sites that are open, or will be.
        """
        bonds, nodes = opened[0], opened[1] if nodes is None else nodes
        starts, first = self.starts
        adjacency, points = self.adjacency, self.topology.num_points
        of_lattice = bonds, adjacency.periodic_words, adjacency.ends, int(adjacency.chain)
        number_runs(*of_lattice[:2], of_lattice[3], points, starts, first)
        starts &= nodes
        count = kernels.count_before(starts, first)
        parts, between = self.parts
        self._make_growth(max(count, 32 * len(parts)))
        growth, runs, size = self.growth, self.growth.runs, self.growth.slots.size
        runs.parents[:count] = np.arange(count, dtype=np.int32)

        def join(n: int) -> None:
            # Each has room of its own for pairs that wait.
            wait = slice(n * size // len(parts), (n + 1) * size // len(parts))
            own = runs._replace(sizes=runs.sizes[wait], reach=runs.reach[wait])
            join_runs(*of_lattice, own, *parts[n])

        _at_once(join, range(len(parts)))
        for begin, end in between:
            join_runs(*of_lattice, runs, begin, end)
        ends = self.topology.end_flags()
        return int(kernels.join_ends(bonds, adjacency, nodes, count, *ends, growth, self.wound))

    def _make_growth(self, size: int) -> None:
        """Make the arrays of so many runs, unless there are."""
        if self.growth is not None and self.growth.slots.size >= size:
            return
        self.growth = None
        check_free("the open sites need", _RUN_BYTES * size)
        crossing, axes = self.topology.num_periodic_bonds, self.topology.num_axes
        numbers = (np.empty(size, kind) for kind in (np.int32, np.int32, np.uint32))
        self.growth = kernels.Growth(
            runs=Runs(*self.starts, *numbers),
            periods=np.empty(size, np.int64),
            slots=np.empty(size, np.int32),
            # Every cluster that wraps has a periodic bond of its own.
            windings=np.empty((crossing, axes, axes), np.int32),
            ranks=np.empty(crossing, np.int8),
            count=np.zeros(1, np.int64),
        )

    def _look(self, low: int, before: int, high: int, after: int) -> None:
        """Find what is reached above one candidate, where there is ``before``, and up to another.

        low, high: their places, -1 below all of them.
        """
        if before == after:
            return
        if high - low > _FEW:
            middle = (low + high) // 2
            between = self._label(self._open(self.tried[middle]))
            self._look(low, before, middle, between)
            self._look(middle, between, high, after)
            return
        later, nodes = self._open(self.tried[high])
        opened = np.zeros_like(self.exists), np.zeros_like(nodes)
        if low >= 0:
            opened = self._open(self.tried[low])
        self._label(opened, nodes)
        count = int(np.bitwise_count(later & ~opened[0]).sum(dtype=np.int64))
        bonds, ends = np.empty(count, np.int64), np.empty((2, count), np.int32)
        kernels.list_new_bonds(opened[0], later, self.adjacency, bonds, ends)
        if self.by_site:
            levels = self._turned(self.values[ends]).max(axis=0)
        else:
            levels = self._turned(self._bond_values(bonds))
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
        return (ends[0] if self._turned(self.values[ends[0]]) == level else ends[1],)

    def _level(self, bit: int, path: LevelPath | None = None) -> Level | None:
        if bit not in self.reached:
            return None
        level = self.reached[bit][0]
        if level not in self.shares:
            self.shares[level] = num_bits(self._mark(level)) / self.total
        value = self._turned(level).item()
        saddle = tuple(self._outer(self._saddle(bit)).tolist())
        return Level(value, abs(value - self.bottom), self.shares[level], saddle, path)

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
        (opened, nodes), where = self._open(level), (self._ground, self.adjacency)
        if ends[0] == ends[1]:
            # The axis has one site.
            sites, numbers = np.array(ends, np.int64), self.adjacency.periodic_bonds
            codes = np.append(np.int64(0), self.adjacency.periodic_codes[numbers == number])
        else:
            first, last = self.topology.end_layers[axis]
            if not last.size:
                first = np.array(self._saddle(axis)[:1], np.int32)
            counts = np.empty(nodes.size, np.int32)
            num_open = kernels.count_before(nodes, counts)
            check_free("the search for a path needs", _SEARCH_BYTES * num_open)
            found = nodes, counts, np.empty(num_open, kernels.REACHED)
            one, other, loop = kernels.search_path(where, opened, first, last, axis, *found)
            (sites, codes), back = (kernels.way_back(site, *found) for site in (one, other))
            sites, codes = sites[::-1], codes[::-1]
            if not last.size:
                sites, codes = np.append(sites, back[0]), np.append(codes, back[1] + loop)
        periods = decode_periods(codes, self.topology.num_axes)
        shape = self.topology.shape
        places = np.empty((sites.size, len(shape)), np.int64)
        if shape:
            places[:] = np.stack(np.unravel_index(sites, shape[::-1])[::-1], 1) + periods * shape
        if self.by_site:
            values = self.values[sites]
        else:
            numbers = np.full(sites.size - 1, number)
            kernels.list_path_bonds(where, opened, sites, codes, numbers)
            values = self._bond_values(numbers)
        winding = tuple(periods[-1].tolist())
        return LevelPath(self._outer(sites), places, values, winding)


def _ends(values: Values) -> Values:
    return np.array([values.min(), values.max()])


def _at_once(call: Callable[[int], None], numbers: range) -> None:
    """Call a function with every number, in threads."""
    with ThreadPoolExecutor(min(_THREADS, len(numbers))) as threads:
        list(threads.map(call, numbers))
