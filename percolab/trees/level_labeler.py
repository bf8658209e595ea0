"""The open bonds and the clusters at a level of given values: the labeler for a search of levels.

A labeler has the values on its device.  The search (:mod:`percolab.trees.levels`) is the same for
all devices; it requests clusters at a level, and the bonds that open up to a higher level.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.errors import InputError
from percolab.kernels.memory import check_free
from percolab.labelers.raster_runs import Runs, join_runs, number_runs
from percolab.lattices.topology import Topology, num_bits, pack_bits, unpack_bits
from percolab.trees import levels_cpu as kernels
from percolab.trees.levels_cpu import Growth

#: Number of values among which levels are bisected.
TRIED = 4096
#: Number of threads, and of words of values that a thread compares at a time.
_THREADS, _SOME_WORDS = min(os.cpu_count() or 1, 8), 1 << 18
# Bytes per run of open sites, per site in the search of a path, and in addition for a loop.
_RUN_BYTES, _SEARCH_BYTES, _LIFT_BYTES = 24, 8, 8

Integers = NDArray[np.int64]
Values = NDArray[Any]
Words = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class NewBonds:
    """The bonds that open between two levels, in the order of their numbers.

    numbers, codes: int64 (n,), 32 * word + bit, and the periods that they cross
    ends, nodes:    int32 (2, n), their sites, and the nodes of these sites
    """

    numbers: Integers
    ends: NDArray[np.int32]
    nodes: NDArray[np.int32]
    codes: Integers


@dataclass(frozen=True, eq=False)
class Nodes:
    """The clusters of open bonds inside the array, as nodes, and the bonds that join these further.

    growth: its ``parents`` join nodes to clusters; the rest is scratch.  count: number of nodes
    ends, flags:  int32 and uint32 (n,), nodes in end layers, and flags of these layers
    pairs, codes: int32 (2, m) and int64 (m,), nodes that bonds across boundaries join
    """

    growth: Growth
    count: int
    ends: NDArray[np.int32]
    flags: NDArray[np.uint32]
    pairs: NDArray[np.int32]
    codes: Integers


@dataclass(frozen=True, eq=False)
class FoundPath:
    """The sites of a path, int64 (n,), and the periods from the first to each, as codes."""

    sites: Integers
    codes: Integers


class LevelLabeler(Protocol):
    """The open bonds and clusters at a level of given values, on one device.

    Levels are as in :func:`turned`.  few: for this number of remaining candidates, labeling costs
    more than opening the bonds between them one by one.
    """

    few: ClassVar[int]

    def candidates(self) -> Values:
        """Return some of the values that can open, ascending, with the lowest and the highest.

        InputError: NaN, or the infinity that would always be open.
        """

    def count_open(self, level: Any) -> int:
        """Return the number of sites, or bonds, that are open at a level."""

    def label(self, level: Any) -> Nodes:
        """Return the clusters at a level; they are valid until the next labeling."""

    def label_between(self, low: Any, high: Any) -> tuple[Nodes, NewBonds]:
        """Return the clusters at ``low``, None: below all, and the bonds that open by ``high``."""

    def values_at(self, places: NDArray[Any]) -> Values:
        """Return the values of sites, or of bonds by their numbers, in an array of any shape."""

    def release(self) -> None:
        """Free the memory of labelings."""

    def find_path(self, level: Any, axis: int) -> FoundPath:
        """Return a path with the fewest steps along an open axis, at a level with such a path."""

    def find_loop(self, level: Any, axis: int, site: int) -> FoundPath:
        """Return a loop with the fewest steps around an axis through a site; it must exist."""


def turned(values: Values, *, above: bool) -> Values:
    """Map values to the same type in reverse order if large ones open first; its own inverse."""
    if not above:
        return values
    return -values if values.dtype.kind == "f" else ~values


def refuse_value(value: Any, *, above: bool) -> None:
    """Raise InputError for a value that cannot be a level."""
    solid = "-inf" if above else "inf"
    raise InputError(f"a weight is {value}, but it must be finite, or {solid} if it never opens")


def join_loop(one: FoundPath, other: FoundPath, loop: int) -> FoundPath:
    """Return the loop of two paths to the source and a bond between their first sites.

    loop: the periods of the loop, as a code
    """
    sites = np.append(one.sites[::-1], other.sites)
    return FoundPath(sites, np.append(one.codes[::-1], other.codes + loop))


class CpuLevelLabeler:
    """A labeler of levels on the CPU: nodes are runs of sites, which threads join.

    values: (num_points,), of sites; or (num_classes, num_points), of bonds, by their owners
    ground: returns the :class:`percolab.trees.invasion_cpu.Ground` for the search of paths
    """

    few: ClassVar[int] = 16

    def __init__(
        self, topology: Topology, values: Values, ground: Callable[[], Any], *, above: bool
    ) -> None:
        self.topology, self.values, self.above = topology, values, above
        self._make_ground = ground
        self.by_site = values.ndim == 1
        self.adjacency, self.exists = make_adjacency(topology), topology.exists.ravel()
        self.growth: Any = None
        self.runs: Any = None
        self.parts, room = self._cut(), topology.num_words
        self.starts = np.empty(room, np.uint32), np.empty(room, np.int32)
        self.end_flags = topology.end_flags()

    def _turned(self, values: Values) -> Values:
        return turned(values, above=self.above)

    def candidates(self) -> Values:
        words = self.topology.occupied if self.by_site else self.topology.exists
        used = self.values.ravel()
        if num_bits(words) < self.values.size:
            used = self.values[unpack_bits(words, self.topology.num_points)]
        if used.size and used.dtype.kind == "f":
            lowest, highest = self._turned(np.sort(self._turned(_ends(used))))
            # A minimum is NaN if any of the values is NaN.
            if not self._turned(lowest) > -np.inf:
                refuse_value(lowest, above=self.above)
            if np.isinf(highest):
                used = used[np.isfinite(used)]
        if used.size > TRIED:
            # Choose at random, since a regular stride may stay in one row or column of the array.
            some = np.random.Generator(np.random.Philox(0)).integers(used.size, size=TRIED)
            used = np.concatenate([used[some], _ends(used)])
        return np.unique(self._turned(used))

    def count_open(self, level: Any) -> int:
        return num_bits(self._mark(level))

    def values_at(self, places: NDArray[Any]) -> Values:
        if self.by_site:
            return np.asarray(self.values[places])
        return np.asarray(self.values[np.divmod(places, 32 * self.topology.num_words)])

    def _mark(self, level: Any) -> Words:
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
        """Return the words of the bonds open at a level, and of sites that include their ends."""
        words = self._mark(level)
        if not self.by_site:
            return words.ravel(), self.topology.occupied
        opened = np.empty_like(self.exists)
        kernels.write_open_bonds(self.exists, words, self.adjacency, opened)
        return opened, words

    # Labels

    def label(self, level: Any) -> Nodes:
        return self._join(*self._open(level))

    def label_between(self, low: Any, high: Any) -> tuple[Nodes, NewBonds]:
        later, nodes = self._open(high)
        opened = np.zeros_like(self.exists) if low is None else self._open(low)[0]
        clusters = self._join(opened, nodes)
        count = int(np.bitwise_count(later & ~opened).sum(dtype=np.int64))
        numbers, codes = np.empty((2, count), np.int64)
        ends, runs = np.empty((2, 2, count), np.int32)
        kernels.list_new_bonds(opened, later, self.adjacency, numbers, ends, codes)
        kernels.find_runs(ends, *self.starts, runs)
        return clusters, NewBonds(numbers, ends, runs, codes)

    def _cut(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return ranges of words whose bonds can be joined in parallel, and those in between.

        Runs do not leave their row, so threads work on disjoint runs.
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

    def _join(self, opened: Words, nodes: Words) -> Nodes:
        """Join all open bonds inside the array; nodes: words of sites that are open or will be."""
        starts, first = self.starts
        adjacency, points = self.adjacency, self.topology.num_points
        of_lattice = opened, adjacency.periodic_words, adjacency.ends, int(adjacency.chain)
        number_runs(*of_lattice[:2], of_lattice[3], points, starts, first)
        starts &= nodes
        count = kernels.count_before(starts, first)
        parts, between = self.parts
        self._make_growth(max(count, 32 * len(parts)))
        runs, size = self.runs, self.growth.slots.size
        runs.parents[:count] = np.arange(count, dtype=np.int32)

        def join(n: int) -> None:
            # Each thread has separate room for postponed pairs.
            wait = slice(n * size // len(parts), (n + 1) * size // len(parts))
            own = runs._replace(sizes=runs.sizes[wait], reach=runs.reach[wait])
            join_runs(*of_lattice, own, *parts[n])

        _at_once(join, range(len(parts)))
        for begin, end in between:
            join_runs(*of_lattice, runs, begin, end)
        return Nodes(self.growth, count, *self._list_ends(nodes), *self._list_crossing(opened))

    def _list_ends(self, nodes: Words) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        sites, flags = self.end_flags
        found = np.empty(sites.size, np.int32), np.empty(sites.size, np.uint32)
        count = kernels.list_ends(nodes, *self.starts, sites, flags, *found)
        return found[0][:count], found[1][:count]

    def _list_crossing(self, opened: Words) -> tuple[NDArray[np.int32], Integers]:
        crossing = self.topology.num_periodic_bonds
        pairs, codes = np.empty((2, crossing), np.int32), np.empty(crossing, np.int64)
        count = kernels.list_crossing(opened, self.adjacency, *self.starts, pairs, codes)
        return pairs[:, :count], codes[:count]

    def _make_growth(self, size: int) -> None:
        """Allocate arrays for a number of runs, unless they are already large enough."""
        if self.growth is not None and self.growth.slots.size >= size:
            return
        self.release()
        check_free("the open sites need", _RUN_BYTES * size)
        self.growth = make_growth(self.topology, size)
        sizes = np.empty(size, np.int32)
        self.runs = Runs(*self.starts, self.growth.parents, sizes, self.growth.reach)

    def release(self) -> None:
        self.growth = self.runs = None

    # Paths

    def find_path(self, level: Any, axis: int) -> FoundPath:
        search, steps = self._search(level), _SEARCH_BYTES
        first, last = self.topology.end_layers[axis]
        found = search.nodes, search.counts, search.make(steps)
        site = kernels.search_target(search.where, search.opened, first, last, *found)
        sites, codes = kernels.way_back(search.where, search.opened, site, *found)
        return FoundPath(sites[::-1], codes[::-1])

    def find_loop(self, level: Any, axis: int, site: int) -> FoundPath:
        search = self._search(level)
        found = search.nodes, search.counts, search.make(_SEARCH_BYTES + _LIFT_BYTES)
        lifts = np.empty(found[2].size, np.int64)
        bonds = search.where, search.opened
        one, other, loop = kernels.search_loop(*bonds, site, axis, *found, lifts)
        first, second = (FoundPath(*kernels.way_back(*bonds, end, *found)) for end in (one, other))
        return join_loop(first, second, loop)

    def _search(self, level: Any) -> _Search:
        opened, nodes = self._open(level)
        counts = np.empty(nodes.size, np.int32)
        num_open = kernels.count_before(nodes, counts)
        return _Search((self._make_ground(), self.adjacency), opened, nodes, counts, num_open)


@dataclass(frozen=True, eq=False)
class _Search:
    """The arguments of kernels that search a path; num_open: number of sites in ``nodes``."""

    where: tuple[Any, Any]
    opened: Words
    nodes: Words
    counts: NDArray[np.int32]
    num_open: int

    def make(self, site_bytes: int) -> NDArray[np.int32]:
        """Allocate the steps; InputError if ``site_bytes`` per open site do not fit into memory."""
        check_free("the search for a path needs", site_bytes * self.num_open)
        return np.empty(self.num_open, np.int32)


def make_growth(topology: Topology, size: int) -> Growth:
    """Allocate memory for clusters of a number of nodes."""
    crossing, axes = topology.num_periodic_bonds, topology.num_axes
    return Growth(
        parents=np.empty(size, np.int32),
        reach=np.empty(size, np.uint32),
        periods=np.empty(size, np.int64),
        slots=np.empty(size, np.int32),
        # Clusters that wrap have distinct periodic bonds, so these bound their number.
        windings=np.empty((crossing, axes, axes), np.int32),
        ranks=np.empty(crossing, np.int8),
        count=np.zeros(1, np.int64),
    )


def _ends(values: Values) -> Values:
    return np.array([values.min(), values.max()])


def _at_once(call: Callable[[int], None], numbers: range) -> None:
    """Call a function with every number, in threads."""
    with ThreadPoolExecutor(min(_THREADS, len(numbers))) as threads:
        list(threads.map(call, numbers))
