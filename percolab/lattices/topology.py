"""Topology: the sites and bonds of a finite lattice or of a graph, in the form that kernels use.

Bond (k, i) belongs to site i, its owner, and is i's k-th bond.  Its other end is ``i + deltas[k]``
on a lattice, and ``neighbours[k, i]`` in an explicit list (the NN list of Komura 2016, section 3).
32 consecutive owners of one class form a bond word.  Masks over bond words say which bonds exist;
a sample says which of them are open.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.shown import Shown

#: Bits, in a periodic bond's code, for the periods along one axis: up to 2047 in each direction.
PERIOD_BITS = 12
#: Labels are int32 and a bond word's number is a uint32.
MAX_POINTS = 2**31 - 64
#: The longest name of a site, in bytes: in results files, all names take the room of the longest.
LONGEST_NAME = 255
# Words whose bits are unpacked at once: more words took more memory and no less time.
_SOME_WORDS = 2**12
# The most periodic bonds listed at once, and the most where there are few grid points.
_MOST_BONDS, _FEW_BONDS = 2**14, 2**10
#: All parts of a topology.
ALL = slice(None)
#: Numbers of samples, or thresholds, uint64 (n,).
UInt64s = NDArray[np.uint64]
#: The number of a part's first word, and its words, uint32.
PartWords = tuple[int, np.ndarray]
#: Owners and other ends, int32, and codes, int64, of periodic bonds.
PeriodicBonds = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class Topology(Shown):
    """Sites, bonds and end layers, ready for the kernels.

    Masks and lists of bonds are computed from few numbers: those of one class at every call, those
    of all classes once, as they are kept.

    num_points:   grid points (site indices run below it; vacant points carry no site)
    occupied:     uint32 (num_words,), one bit per grid point, 0 where it is vacant
    deltas:       int64 (num_classes,), index difference to the other end inside the lattice;
                  meaningless (zeros) when ``neighbours`` is given
    neighbours:   int32 (num_classes, num_points) or None; -1 where there is no bond
    end_layers:   per axis a pair of int32 site arrays; two empty arrays where the axis is periodic
    chain:        the class whose bonds join i to i - 1, or -1
    shape:        grid points along each axis, first axis fastest; () where there is no grid
    offsets:      grid points from owner to other end along each axis, one tuple a class; ()
                  where there is no grid
    grid:         the ``lattices.grid.Grid`` that makes the masks; None if ``neighbours`` is given
    owners_at:    the cell points that own the bonds of each class; () where there is no grid
    class_names:  names of the bond classes; () where they have none
    bond_weights: float64 (32 * num_bond_words,), by the bonds' numbers; None where they have none
    """

    num_points: int
    occupied: np.ndarray
    deltas: np.ndarray
    neighbours: np.ndarray | None
    end_layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    chain: int
    shape: tuple[int, ...] = ()
    offsets: tuple[tuple[int, ...], ...] = ()
    grid: Any = None
    owners_at: tuple[Collection[tuple[int, ...]], ...] = ()
    class_names: tuple[str, ...] = ()
    bond_weights: np.ndarray | None = None

    def _facts(self) -> dict[str, object]:
        shape = {"grid points": " x ".join(map(str, self.shape))} if self.shape else {}
        return {**shape, "sites": self.num_sites, "bonds": self.num_bonds}

    @property
    def num_classes(self) -> int:
        return len(self.deltas)

    @property
    def num_words(self) -> int:
        return count_words(self.num_points)

    @property
    def num_bond_words(self) -> int:
        return self.num_classes * self.num_words

    @property
    def num_sites(self) -> int:
        """Occupied grid points."""
        return num_bits(self.occupied)

    @cached_property
    def num_bonds(self) -> int:
        if self.neighbours is not None:
            return sum(int(np.count_nonzero(ends >= 0)) for ends in self.neighbours)
        assert self.grid is not None
        layers = map(self.grid.owner_layers, self.offsets)
        return sum(map(self.grid.count, self.owners_at, layers))

    @cached_property
    def num_periodic_bonds(self) -> int:
        return sum(self.periodic_counts)

    @cached_property
    def periodic_counts(self) -> tuple[int, ...]:
        """How many bonds of every class cross a periodic boundary."""
        grid = self.grid
        if grid is None or "periodic" not in grid.boundary:
            return (0,) * self.num_classes
        return tuple(
            grid.count(points, grid.owner_layers(offset))
            - grid.count(points, grid.inside_layers(offset))
            for points, offset in zip(self.owners_at, self.offsets, strict=True)
        )

    @property
    def parts(self) -> list[slice]:
        """Parts whose masks can be made separately: layers along the last axis of the grid."""
        return [ALL] if self.grid is None else list(self.grid.parts())

    @cached_property
    def exists(self) -> np.ndarray:
        """The bonds that exist, uint32 (num_classes, num_words), one bit per bond."""
        return self._all_classes(self.exists_parts)

    def compute_exists(self, k: int) -> np.ndarray:
        """Return the existing bonds of class k, a new array: uint32 (num_words,)."""
        return self._join_parts(self.exists_parts(k))

    def compute_inside(self, k: int) -> np.ndarray:
        """Return the bonds of class k that cross no boundary, like :meth:`compute_exists`."""
        return self._join_parts(self.inside_parts(k))

    def exists_parts(self, k: int) -> Iterator[PartWords]:
        """Yield the parts of :meth:`compute_exists`: number of the first word, and the words."""
        if self.neighbours is not None:
            return iter([(0, pack_bits(self.neighbours[k] >= 0))])
        assert self.grid is not None
        layers = self.grid.owner_layers(self.offsets[k])
        made: Iterator[PartWords] = self.grid.masks(self.owners_at[k], layers, self.parts)
        return made

    def inside_parts(self, k: int) -> Iterator[PartWords]:
        """Yield the bonds of class k that cross no periodic boundary, like :meth:`exists_parts`."""
        if self.grid is None:
            return self.exists_parts(k)
        layers = self.grid.inside_layers(self.offsets[k])
        made: Iterator[PartWords] = self.grid.masks(self.owners_at[k], layers, self.parts)
        return made

    def periodic_parts(self, k: int) -> Iterator[PartWords]:
        """Yield the parts that may have periodic bonds of class k, like :meth:`exists_parts`."""
        if not self.periodic_counts[k]:
            return
        assert self.grid is not None
        offset = self.offsets[k]
        every, inside = self.grid.owner_layers(offset), self.grid.inside_layers(offset)
        aside = not all(map(np.array_equal, every[:-1], inside[:-1]))
        crosses = [aside or not np.array_equal(every[-1][p], inside[-1][p]) for p in self.parts]
        parts = list(compress(self.parts, crosses))
        if not aside:
            layers = [*every[:-1], every[-1] & ~inside[-1]]
            yield from self.grid.masks(self.owners_at[k], layers, parts)
            return
        both = (self.grid.masks(self.owners_at[k], layers, parts) for layers in (every, inside))
        for (first, words), (_, others) in zip(*both, strict=True):
            words ^= others
            yield first, words

    @property
    def periodic_words(self) -> np.ndarray | None:
        """The periodic bonds as words, a new array uint32 like ``exists``; None if there are none.

        Their other ends are given by the list of periodic bonds, not by ``deltas``.
        """
        return self._all_classes(self.periodic_parts) if self.num_periodic_bonds else None

    def _all_classes(self, parts_of: Callable[[int], Iterable[PartWords]]) -> np.ndarray:
        opened = np.zeros((self.num_classes, self.num_words), np.uint32)
        for k, words in enumerate(opened):
            write_parts(parts_of(k), words)
        return opened

    def _join_parts(self, parts: Iterable[PartWords]) -> np.ndarray:
        words = np.zeros(self.num_words, np.uint32)
        write_parts(parts, words)
        return words

    def list_periodic_bonds(self, k: int) -> PeriodicBonds:
        """Return owner and other end, int32, and code, int64, of the periodic bonds of class k.

        The arrays are new, by ascending owner.  A code (:func:`period_codes`) encodes the periods
        the bond crosses from its owner along each axis.
        """
        return _joined(self.periodic_list_pieces(k), self.periodic_counts[k], np.int32)

    @cached_property
    def _periodic_lists(self) -> PeriodicBonds:
        pieces = (
            (np.add(owners, k * 32 * self.num_words, dtype=np.int64), *others)
            for k in range(self.num_classes)
            for owners, *others in self.periodic_list_pieces(k)
        )
        return _joined(pieces, self.num_periodic_bonds, np.int64)

    def periodic_list_pieces(self, k: int) -> Iterator[PeriodicBonds]:
        """Yield :meth:`list_periodic_bonds` in pieces of :func:`periodic_piece_length` at most."""
        if not self.periodic_counts[k]:
            return
        from percolab.lattices.grid_loops import list_bits  # imports Numba

        assert self.grid is not None
        # All bits of a word are listed together.
        most = min(periodic_piece_length(self.num_points), self.periodic_counts[k] + 32)
        offset = self.offsets[k]
        owners, count = np.empty(most, np.int32), 0
        for first, words in self.periodic_parts(k):
            count, start = list_bits(first, words, 0, owners, count)
            while start < words.size:
                yield owners[:count], *self.grid.other_ends(owners[:count], offset)
                owners = np.empty(most, np.int32)
                count, start = list_bits(first, words, start, owners, 0)
        if count:
            yield owners[:count], *self.grid.other_ends(owners[:count], offset)

    @property
    def periodic_bonds(self) -> np.ndarray:
        """The numbers k * 32 * num_words + i of all periodic bonds, int64 (num_periodic_bonds,)."""
        return self._periodic_lists[0]

    @property
    def periodic_ends(self) -> np.ndarray:
        """The other ends of all periodic bonds, int32 (num_periodic_bonds,)."""
        return self._periodic_lists[1]

    @property
    def periodic_codes(self) -> np.ndarray:
        """The codes of all periodic bonds, int64 (num_periodic_bonds,)."""
        return self._periodic_lists[2]

    @property
    def num_axes(self) -> int:
        """Axes along which samples may span."""
        return len(self.end_layers)

    @property
    def open_axes(self) -> tuple[int, ...]:
        """Axes with two end layers, along which a sample can span."""
        return tuple(
            axis for axis, pair in enumerate(self.end_layers) if pair[0].size and pair[1].size
        )

    def check_end_layers(self) -> None:
        """Raise InputError if a site is in both end layers of an axis: it would always span."""
        for axis, (first, last) in enumerate(self.end_layers):
            both = np.intersect1d(first, last, assume_unique=True)
            if both.size:
                raise InputError(
                    f"site percolation needs two end layers, but site {both[0]} is in both of axis "
                    f"{axis}"
                )

    def end_flags(self) -> tuple[np.ndarray, np.ndarray]:
        """Return end sites, int32, and flags, uint32: bit 2a, for the last layer of a 2a + 1."""
        layers = [layer for pair in self.end_layers for layer in pair]
        flags = [np.full(layer.size, 1 << bit, np.uint32) for bit, layer in enumerate(layers)]
        none = [np.empty(0, np.int32)], [np.empty(0, np.uint32)]
        return np.concatenate(layers or none[0]), np.concatenate(flags or none[1])

    def bonds(self) -> np.ndarray:
        """Return every bond as rows (class, owner, other end), int64, in canonical order."""
        rows = []
        for k in range(self.num_classes):
            owner = np.flatnonzero(unpack_bits(self.compute_exists(k), self.num_points))
            if self.neighbours is not None:
                other = self.neighbours[k, owner].astype(np.int64)
            else:
                other = owner + self.deltas[k]
                crossing, ends, _ = self.list_periodic_bonds(k)
                other[np.searchsorted(owner, crossing)] = ends
            rows.append(np.column_stack([np.full_like(owner, k), owner, other]))
        return np.concatenate(rows) if rows else np.empty((0, 3), np.int64)

    def explicit(self) -> Topology:
        """Return the same topology with a stored neighbour list in place of the computed one."""
        k, owner, other = self.bonds().T
        neighbours = np.full((self.num_classes, self.num_points), -1, np.int32)
        neighbours[k, owner] = other
        return replace(
            self,
            neighbours=neighbours,
            deltas=np.zeros_like(self.deltas),
            chain=-1,
            shape=(),
            offsets=(),
            grid=None,
            owners_at=(),
        )


def periodic_piece_length(num_points: int) -> int:
    """Return the most periodic bonds of a class that are listed at once."""
    return min(max(num_points // 256, _FEW_BONDS), _MOST_BONDS)


def _joined(pieces: Iterable[tuple[np.ndarray, ...]], size: int, kind: type) -> PeriodicBonds:
    """Return the columns of all pieces, (size,) each; the first is of dtype ``kind``."""
    owners: np.ndarray = np.empty(size, kind)
    ends, codes, start = np.empty(size, np.int32), np.empty(size, np.int64), 0
    for piece in pieces:
        part = slice(start, start := start + piece[0].size)
        owners[part], ends[part], codes[part] = piece
    return owners, ends, codes


def period_codes(periods: np.ndarray, width: int = PERIOD_BITS) -> np.ndarray:
    """Return one integer for the periods along all axes, int64 (n, axes) to (n,).

    Each axis has ``width`` bits, the first axis the lowest.  Codes add and cancel as vectors do.

    >>> period_codes(np.array([[1, -1]])).tolist() == [1 - 2**PERIOD_BITS]
    True
    """
    digits = periods << (width * np.arange(periods.shape[1]))
    codes: np.ndarray = digits.sum(axis=1, dtype=np.int64)
    return codes


def decode_periods(codes: np.ndarray, axes: int) -> np.ndarray:
    """Return the periods along every axis of codes, int64 (n,) to (n, axes).

    >>> decode_periods(period_codes(np.array([[1, -2, 3]])), 3).tolist()
    [[1, -2, 3]]
    """
    half, periods = 1 << (PERIOD_BITS - 1), np.empty((codes.size, axes), np.int64)
    for axis in range(axes):
        periods[:, axis] = ((codes & (2 * half - 1)) ^ half) - half
        codes = (codes - periods[:, axis]) >> PERIOD_BITS
    return periods


def count_words(num_points: int) -> int:
    """Return the number of words that hold one bit per grid point."""
    return (num_points + 31) // 32


def num_bits(words: np.ndarray) -> int:
    """Return how many bits of uint32 words are set."""
    return int(np.bitwise_count(words).sum(dtype=np.int64))


def write_parts(parts: Iterable[PartWords], words: np.ndarray) -> None:
    """Write the words of parts, uint32, to their places among all words."""
    for first, part in parts:
        words[first : first + part.size] = part


def find_set_bits(words: np.ndarray) -> np.ndarray:
    """Return where the bits of uint32 words are set, int32, ascending.

    >>> find_set_bits(np.array([1, 10, 0], np.uint32)).tolist()
    [0, 33, 35]
    """
    filled = np.flatnonzero(words != 0)
    set_places, start = np.empty(num_bits(words), np.int32), 0
    for low in range(0, filled.size, _SOME_WORDS):
        some = filled[low : low + _SOME_WORDS]
        bits = np.flatnonzero(unpack_bits(words[some], 32 * some.size))
        places = set_places[start : start + bits.size]
        start += bits.size
        places[:] = some[bits >> 5]
        places <<= 5
        bits &= 31
        places += bits
    return set_places


def set_bits(words: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Set the bits at the given places of uint32 words, and return these.

    >>> set_bits(np.zeros(3, np.uint32), np.array([0, 33, 35])).tolist()
    [1, 10, 0]
    """
    np.bitwise_or.at(words, places >> 5, np.uint32(1) << (places & 31).astype(np.uint32))
    return words


def pack_bits(flags: np.ndarray) -> np.ndarray:
    """Pack booleans (..., n) into uint32 words (..., ceil(n / 32)), bit 0 first."""
    octets = np.packbits(flags, axis=-1, bitorder="little")
    words = np.zeros((*flags.shape[:-1], count_words(flags.shape[-1])), "<u4")
    words.view(np.uint8)[..., : octets.shape[-1]] = octets
    return words.astype(np.uint32, copy=False)


def unpack_bits(words: np.ndarray, count: int) -> np.ndarray:
    """Return the first ``count`` bits of uint32 words (..., w) as booleans (..., count)."""
    octets = np.ascontiguousarray(words.astype("<u4", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=count, bitorder="little").view(bool)


def at_other_end(topology: Topology, klass: int, values: np.ndarray) -> np.ndarray:
    """Return, for every owner, the value at the other end of its bond of class ``klass``.

    values: one per grid point, of any dtype; the result has the same shape and dtype, and 0 (False)
    where the other end would lie outside.  It is meaningful only where the bond exists.
    """
    if topology.neighbours is not None:
        there: np.ndarray = values[topology.neighbours[klass]]
        return there
    at_end = np.zeros_like(values)
    delta = int(topology.deltas[klass])
    if delta < 0:
        at_end[-delta:] = values[:delta]
    else:
        at_end[: max(values.size - delta, 0)] = values[delta:]
    owners, ends, _ = topology.list_periodic_bonds(klass)
    at_end[owners] = values[ends]
    return at_end


def bonds_between(topology: Topology, sites: np.ndarray) -> np.ndarray:
    """Return the bonds with an occupied site at both ends: uint32 (num_classes, num_words).

    sites: (num_points,), bool, True where occupied; or integers, 0 where there is no site: then
    both ends of a bond must have the same integer.

    >>> from percolab.lattices.lattice import load_lattice
    >>> chain = load_lattice("square").topology((4, 1))
    >>> unpack_bits(bonds_between(chain, np.array([True, True, False, True])), 4)[0].tolist()
    [False, True, False, False]
    """
    opened = np.empty_like(topology.exists)
    for klass, exists in enumerate(topology.exists):
        are_equal = sites == at_other_end(topology, klass, sites)
        opened[klass] = exists & pack_bits(are_equal & (sites != 0))
    return opened
