"""The interface of a part: the data that its neighbours and the row of the sample still need.

A cluster that touches no face of a part cannot grow: it is counted in the part's sums, exact
integers.  For other clusters an interface keeps the sizes and flags, and for each of its two faces
the cluster of every open bond that crosses it.  Two interfaces of neighbouring parts are joined to
the interface of both.  Joining is associative, so one function serves chains of slabs and trees of
ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.measure import rows
from percolab.measure.sums import EXACT_SUMS, FIELDS, NUMBERS, ClusterSums
from percolab.parts.kernels import (
    INSIDE,
    finish_clusters,
    gather_clusters,
    join_entries,
    loop_bits,
    number_entries,
)

#: The number of 64-bit digits with which a sum of powers is sent and stored.
_DIGITS = 4
#: Sums over clusters that are sent and stored in one digit.
_SHORT = tuple(name for name in FIELDS if name != "sum_squares")


@dataclass(frozen=True, eq=False)
class Face:
    """The open bonds that cross a face, in canonical order, seen from one of its two sides."""

    # uint32, the number of the cluster that each bond reaches on this side
    clusters: NDArray[np.uint32]
    # int64, the periods from that cluster's reference point to the bond's lower end, along the
    # bond; empty if no axis is periodic
    codes: NDArray[np.int64]

    @property
    def num_bonds(self) -> int:
        """The number of open bonds that cross the face."""
        return self.clusters.size


def no_face() -> Face:
    """Return the face of an open end, which nothing crosses."""
    return Face(np.empty(0, np.uint32), np.empty(0, np.int64))


@dataclass(frozen=True)
class InterfaceSums:
    """The sums over finished clusters: exact integers of any length."""

    clusters: ClusterSums  # the sums that a row has of them
    cubes: int = 0  # with a tally, the sum of s^3 over those of EXACT sites or more
    fourths: int = 0  # and that of s^4
    bins: tuple[int, ...] = ()  # clusters in each bin of sizes, () without a tally
    flags: int = 0  # spanning and wrapping bits, of unfinished clusters too
    loop: int = 0  # the winding numbers of the first loop, as a code; 0 if there is none

    @classmethod
    def empty(cls, bins: int = 0) -> InterfaceSums:
        """Return the sums over no clusters; bins: the number of bins of a tally."""
        return cls(EXACT_SUMS.empty(), bins=(0,) * bins)

    def plus(self, other: InterfaceSums, axes: int) -> InterfaceSums:
        """Return the sums over both; axes: those of the lattice."""
        flags, loop = self.flags | other.flags, self.loop or other.loop
        if self.loop and other.loop:
            # Loops of one part wind in one direction, unless its flags say otherwise.
            flags |= int(loop_bits(np.int64(self.loop), np.int64(other.loop), axes))
        return InterfaceSums(
            EXACT_SUMS.merged(self.clusters, other.clusters),
            self.cubes + other.cubes,
            self.fourths + other.fourths,
            tuple(a + b for a, b in zip(self.bins, other.bins, strict=True)),
            flags,
            loop,
        )

    def to_arrays(self) -> list[NDArray[Any]]:
        short = [getattr(self.clusters, name) for name in _SHORT]
        powers = (self.clusters.sum_squares, self.cubes, self.fourths)
        return [
            np.array([*short, self.flags, self.loop], np.int64),
            np.array([digit for number in powers for digit in split_digits(number)], np.uint64),
            np.array(self.bins, np.int64),
        ]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]]) -> InterfaceSums:
        """Return the sums that :meth:`to_arrays` gave as arrays."""
        *short, flags, loop = arrays[0].tolist()
        squares, cubes, fourths = map(join_digits, arrays[1].reshape(-1, _DIGITS))
        clusters = ClusterSums(sum_squares=squares, **dict(zip(_SHORT, short, strict=True)))
        return cls(clusters, cubes, fourths, tuple(arrays[2].tolist()), flags, loop)


#: Types of the arrays of an interface: clusters and codes of its faces, sizes, flags.
ARRAY_KINDS = (np.uint32, np.int64, np.uint32, np.int64, np.uint64, np.uint32)


@dataclass(frozen=True, eq=False)
class Interface:
    """The interface of a part, or of neighbouring parts that were joined."""

    first_layer: int  # the first of its layers
    layers: int
    num_layers: int  # those of the whole lattice
    axes: int  # axes of the lattice
    # Its faces below and above; clusters are numbered 0 ... m - 1 in the order in which the entries
    # of ``low`` and then of ``high`` name them
    low: Face
    high: Face
    sizes: NDArray[np.uint64]  # uint64 (m,), their sites so far
    # uint32 (m,), which end layers they touch, bit 2a the first of axis a and 2a + 1 the last
    flags: NDArray[np.uint32]
    sums: InterfaceSums  # of all other clusters

    @property
    def num_clusters(self) -> int:
        """Clusters that may still grow."""
        return self.sizes.size

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Its arrays, whose types are ARRAY_KINDS."""
        low, high = self.low, self.high
        return low.clusters, low.codes, high.clusters, high.codes, self.sizes, self.flags

    def with_arrays(self, arrays: Sequence[Any]) -> Interface:
        """Return an interface with other arrays, in the order of ``arrays``."""
        low, low_codes, high, high_codes, sizes, flags = arrays
        faces = Face(low, low_codes), Face(high, high_codes)
        return replace(self, low=faces[0], high=faces[1], sizes=sizes, flags=flags)

    @property
    def num_bytes(self) -> int:
        """The memory of its arrays."""
        return sum(array.nbytes for array in self.arrays)


class Row(NamedTuple):
    """The row of a sample, and the sums that may not fit in it."""

    # int64, the row of a labeler of the whole lattice, without vacant sites; the sum of squares is
    # modulo 2^64, those of cubes and fourth powers modulo 2^128
    numbers: NDArray[np.int64]
    sum_squares: int  # of all sizes, exact
    cubes: int  # as in InterfaceSums, exact
    fourths: int


def interface_bytes(bonds: int, clusters: int, *, has_periods: bool) -> int:
    """Return the bytes of the arrays of an interface.

    bonds: open bonds that cross its faces; clusters: clusters of these bonds, no more than bonds
    """
    return (12 if has_periods else 4) * bonds + 12 * clusters


def joining_bytes(clusters: int, *, has_periods: bool) -> int:
    """Return the bytes that joining needs in addition to the interfaces before and after it.

    clusters: those of both interfaces together
    """
    return (28 if has_periods else 20) * clusters


def join(low: Interface, high: Interface) -> Interface:
    """Return the interface of two neighbouring parts, ``low`` below and ``high`` above.

    InputError: they are not neighbours, their faces do not match (they are of different samples),
    or together they have too many clusters.
    """
    return _joined(find_meeting(low, high))


def close(interface: Interface) -> Interface:
    """Return the interface of a whole torus, its last face joined to its first.

    InputError: it does not have all layers, or its faces do not match.
    """
    return _joined(find_closing(interface))


class Meeting(NamedTuple):
    """The interfaces and faces of a join, on any device."""

    interfaces: tuple[Interface, ...]  # two neighbours, or one to be closed
    upper: Face  # the face of the upper one, or of the first layers
    lower: Face  # the face that it meets, with the same bonds
    left: tuple[Face, Face]  # the faces that remain, of the first and of the last interface

    @property
    def shift(self) -> int:
        """The first number of the upper interface's clusters."""
        return self.interfaces[0].num_clusters if len(self.interfaces) > 1 else 0

    @property
    def num_clusters(self) -> int:
        """Clusters of all interfaces."""
        return sum(interface.num_clusters for interface in self.interfaces)

    @property
    def has_codes(self) -> bool:
        return any(face.codes.size for face in (self.upper, self.lower, *self.left))

    def interface(
        self, faces: tuple[Face, Face], sizes: Any, flags: Any, sums: InterfaceSums
    ) -> Interface:
        """Return the joined interface; sums: those of the clusters finished by joining."""
        first = self.interfaces[0]
        for interface in self.interfaces:
            sums = sums.plus(interface.sums, interface.axes)
        layers = sum(interface.layers for interface in self.interfaces)
        where = first.first_layer, layers, first.num_layers, first.axes
        return Interface(*where, *faces, sizes, flags, sums)


def find_meeting(low: Interface, high: Interface) -> Meeting:
    """Return the meeting of two interfaces; errors: as for :func:`join`."""
    after = low.first_layer + low.layers
    if after != high.first_layer or low.num_layers != high.num_layers:
        raise InputError(
            f"layers {low.first_layer} to {after - 1} have no neighbours from {high.first_layer} on"
        )
    return _checked(Meeting((low, high), high.low, low.high, (low.low, high.high)))


def find_closing(interface: Interface) -> Meeting:
    """Return the meeting of the two faces of a torus; errors: as for :func:`close`."""
    if interface.layers != interface.num_layers:
        raise InputError(
            f"a torus needs all {interface.num_layers} layers; only {interface.layers} are here"
        )
    return _checked(Meeting((interface,), interface.low, interface.high, (no_face(), no_face())))


def _checked(meeting: Meeting) -> Meeting:
    below, above = meeting.lower.num_bonds, meeting.upper.num_bonds
    if below != above:
        raise InputError(
            f"slabs do not fit together: {below} open bonds below a face, {above} above; if this "
            "sample continued from a checkpoint, remove the checkpoint"
        )
    if meeting.num_clusters >= INSIDE:
        raise InputError(
            f"{meeting.num_clusters} clusters at two faces, but at most 2^32 - 2 can have labels"
        )
    return meeting


def _joined(meeting: Meeting) -> Interface:
    interfaces, upper, lower, left = meeting
    first, shift = interfaces[0], meeting.shift
    sizes = np.concatenate([interface.sizes for interface in interfaces])
    flags = np.concatenate([interface.flags for interface in interfaces])
    parents = np.arange(sizes.size, dtype=np.uint32)
    periods = np.zeros(sizes.size if meeting.has_codes else 0, np.int64)
    loop = np.zeros(1, np.int64)
    sides = upper.clusters, upper.codes, lower.clusters, lower.codes
    wrapping = join_entries(*sides, shift, parents, periods, loop, first.axes)
    gather_clusters(parents, periods, sizes, flags)
    numbers = np.full(sizes.size, INSIDE, np.uint32)
    forest = parents, periods, numbers
    low, high = (Face(face.clusters.copy(), face.codes.copy()) for face in left)
    number = number_entries(low.clusters, low.codes, 0, 0, *forest)
    number_entries(high.clusters, high.codes, shift, number, *forest)
    powers, bins = np.zeros((3, 4), np.uint64), np.zeros(len(first.sums.bins), np.int64)
    clusters = parents, sizes, flags, numbers
    open_sizes, open_flags, sums, spanning = finish_clusters(*clusters, powers, bins)
    squares, cubes, fourths = map(join_digits, powers)
    total = InterfaceSums(
        ClusterSums(*map(int, sums))._replace(sum_squares=squares),
        cubes,
        fourths,
        tuple(bins.tolist()),
        int(spanning) | int(wrapping),
        int(loop[0]),
    )
    return meeting.interface((low, high), open_sizes, open_flags, total)


def split_digits(number: int) -> list[int]:
    """Return the 64-bit digits of a number, the lowest first."""
    return [number >> 64 * n & 2**64 - 1 for n in range(_DIGITS)]


def join_digits(digits: NDArray[np.uint64]) -> int:
    """Return the integer with these 64-bit digits, the lowest first."""
    return sum(int(digit) << 64 * n for n, digit in enumerate(digits))


def make_row(interface: Interface) -> Row:
    """Return the row of a sample from the interface of the whole lattice.

    InputError: parts are missing, or a torus is not closed.
    """
    sums = interface.sums
    if (
        interface.layers != interface.num_layers
        or interface.low.num_bonds
        or interface.high.num_bonds
    ):
        raise InputError(
            f"a row needs all {interface.num_layers} layers and no open face; this interface has "
            f"{interface.layers} layers and {interface.num_clusters} clusters that may still grow"
        )
    width = rows.BINS + len(sums.bins) if sums.bins else rows.ROW_WIDTH
    numbers = np.zeros(width, np.int64)
    numbers[:NUMBERS] = _low_digits(*sums.clusters)
    numbers[rows.SPANNING] = sums.flags
    if sums.bins:
        numbers[rows.CUBES : rows.BINS] = _low_digits(
            *split_digits(sums.cubes)[:2], *split_digits(sums.fourths)[:2]
        )
        numbers[rows.BINS :] = sums.bins
    return Row(numbers, sums.clusters.sum_squares, sums.cubes, sums.fourths)


def _low_digits(*numbers: int) -> NDArray[np.int64]:
    """Return the lowest 64 bits of each number, in the form of a row's columns."""
    return np.array([number & 2**64 - 1 for number in numbers], np.uint64).view(np.int64)
