"""Topology: the sites and bonds that a kernel sees, of a finite lattice or of a graph.

Bond (k, i) belongs to site i, its owner, and is i's k-th bond.  Its other end is ``i + deltas[k]``
on a lattice, and ``neighbours[k, i]`` in an explicit list (the NN list of Komura 2016, section 3).
32 consecutive owners of one class form a bond word.  Masks over bond words say what there is; which
of those bonds are open is a sample's business.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from percolab.errors import InputError

#: Bits of a seam bond's code for the periods along one axis: up to 2047 to either side.
PERIOD_BITS = 12
#: Labels are int32 and a bond word's number is a uint32.
MAX_POINTS = 2**31 - 64


@dataclass(frozen=True, eq=False)
class Topology:
    """Sites, bonds and end layers, ready for the kernels.

    num_points:   grid points (site indices run below it; vacant points carry no site)
    exists:       uint32 (num_classes, num_words), one bit a bond
    occupied:     uint32 (num_words,), one bit a site; vacant points are 0
    deltas:       int64 (num_classes,), index difference to the other end inside the lattice;
                  meaningless (zeros) when ``neighbours`` is given
    neighbours:   int32 (num_classes, num_points) or None; -1 where there is no bond
    seam_bonds:   int64 (num_seam,), k * 32 * num_words + i of every bond that crosses a periodic
                  boundary, ascending
    seam_ends:    int32 (num_seam,), the other end
    seam_codes:   int64 (num_seam,), over how many periods the bond leads from its owner along
                  each axis, as :func:`period_codes` has it
    end_layers:   per axis a pair of int32 site arrays; two empty arrays where the axis is periodic
    chain:        the class whose bonds join i to i - 1, or -1
    shape:        grid points along each axis, first axis fastest; () where there is no grid
    offsets:      grid points from owner to other end along each axis, one tuple a class; ()
                  where there is no grid
    """

    num_points: int
    exists: np.ndarray
    occupied: np.ndarray
    deltas: np.ndarray
    neighbours: np.ndarray | None
    seam_bonds: np.ndarray
    seam_ends: np.ndarray
    seam_codes: np.ndarray
    end_layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    chain: int
    shape: tuple[int, ...] = ()
    offsets: tuple[tuple[int, ...], ...] = ()

    @property
    def num_classes(self) -> int:
        """Bond classes."""
        return len(self.exists)

    @property
    def num_words(self) -> int:
        """Bond words of one class."""
        return int(self.exists.shape[1])

    @property
    def num_sites(self) -> int:
        """Occupied grid points."""
        return int(np.bitwise_count(self.occupied).sum(dtype=np.int64))

    @property
    def num_bonds(self) -> int:
        """Bonds that exist."""
        return int(np.bitwise_count(self.exists).sum(dtype=np.int64))

    @property
    def seam(self) -> np.ndarray | None:
        """The seam bonds as words, uint32 like ``exists``, made anew; None if there are none.

        Their other ends are in the seam list, not where ``deltas`` would have them.
        """
        if not self.seam_bonds.size:
            return None
        return np.stack([self.seam_of(k) for k in range(self.num_classes)])

    def seam_of(self, k: int) -> np.ndarray:
        """Return the seam bonds of class k as words, uint32 (num_words,)."""
        stride = 32 * self.num_words
        low, high = np.searchsorted(self.seam_bonds, [k * stride, (k + 1) * stride])
        return set_bits(np.zeros(self.num_words, np.uint32), self.seam_bonds[low:high] - k * stride)

    @property
    def num_axes(self) -> int:
        """Axes along which spanning is asked for."""
        return len(self.end_layers)

    @property
    def open_axes(self) -> tuple[int, ...]:
        """Axes with two end layers, along which a sample can span."""
        return tuple(
            axis for axis, pair in enumerate(self.end_layers) if pair[0].size and pair[1].size
        )

    def check_end_layers(self) -> None:
        """Raise InputError if a site is in both end layers of an axis.

        Where sites are drawn, the sample would span there even if the site were vacant.
        """
        for axis, (first, last) in enumerate(self.end_layers):
            both = np.intersect1d(first, last)
            if both.size:
                raise InputError(
                    f"site percolation needs two end layers, but site {both[0]} is in both of axis "
                    f"{axis}"
                )

    def end_flags(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all end-layer sites, int32, and for each its flag, uint32.

        The flag is bit 2a for the first layer of axis a and bit 2a + 1 for the last.
        """
        layers = [layer for pair in self.end_layers for layer in pair]
        flags = [np.full(layer.size, 1 << bit, np.uint32) for bit, layer in enumerate(layers)]
        none = [np.empty(0, np.int32)], [np.empty(0, np.uint32)]
        return np.concatenate(layers or none[0]), np.concatenate(flags or none[1])

    def bonds(self) -> np.ndarray:
        """Return every bond as rows (class, owner, other end), int64, in canonical order."""
        rows = []
        for k in range(self.num_classes):
            owner = np.flatnonzero(unpack_bits(self.exists[k], self.num_points))
            if self.neighbours is not None:
                other = self.neighbours[k, owner].astype(np.int64)
            else:
                other = owner + self.deltas[k]
                stride = 32 * self.num_words
                low, high = np.searchsorted(self.seam_bonds, [k * stride, (k + 1) * stride])
                at = np.searchsorted(owner, self.seam_bonds[low:high] - k * stride)
                other[at] = self.seam_ends[low:high]
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
            seam_bonds=np.empty(0, np.int64),
            seam_ends=np.empty(0, np.int32),
            seam_codes=np.empty(0, np.int64),
            chain=-1,
            shape=(),
            offsets=(),
        )


def period_codes(periods: np.ndarray, width: int = PERIOD_BITS) -> np.ndarray:
    """Return one integer for periods along all axes, int64 (n, axes) to (n,).

    ``width`` bits an axis, the first lowest.  Codes add and cancel as the vectors do.

    >>> period_codes(np.array([[1, -1]])).tolist() == [1 - 2**PERIOD_BITS]
    True
    """
    digits = periods << (width * np.arange(periods.shape[1]))
    codes: np.ndarray = digits.sum(axis=1, dtype=np.int64)
    return codes


def periods_of(codes: np.ndarray, axes: int) -> np.ndarray:
    """Return the periods along every axis of codes, int64 (n,) to (n, axes).

    >>> periods_of(period_codes(np.array([[1, -2, 3]])), 3).tolist()
    [[1, -2, 3]]
    """
    rest, found = codes.copy(), np.empty((codes.size, axes), np.int64)
    half = 1 << (PERIOD_BITS - 1)
    for axis in range(axes):
        found[:, axis] = ((rest & (2 * half - 1)) ^ half) - half
        rest = (rest - found[:, axis]) >> PERIOD_BITS
    return found


def num_words_of(num_points: int) -> int:
    """Return how many words hold one bit a grid point."""
    return (num_points + 31) // 32


def set_bits(words: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Set the bits at the given places of uint32 words, and return these.

    >>> set_bits(np.zeros(3, np.uint32), np.array([0, 33, 35])).tolist()
    [1, 10, 0]
    """
    np.bitwise_or.at(words, places >> 5, np.uint32(1) << (places & 31).astype(np.uint32))
    return words


def pack_bits(flags: np.ndarray) -> np.ndarray:
    """Pack booleans (..., n) into uint32 words (..., ceil(n / 32)), bit 0 first."""
    width = num_words_of(flags.shape[-1]) * 4
    packed = np.packbits(flags, axis=-1, bitorder="little")
    padding = [(0, 0)] * (packed.ndim - 1) + [(0, width - packed.shape[-1])]
    return np.ascontiguousarray(np.pad(packed, padding)).view("<u4").astype(np.uint32, copy=False)


def unpack_bits(words: np.ndarray, count: int) -> np.ndarray:
    """Return the first ``count`` bits of uint32 words (..., w) as booleans (..., count)."""
    octets = np.ascontiguousarray(words.astype("<u4", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=count, bitorder="little").astype(bool)
