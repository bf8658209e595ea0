"""How large a topology is going to be, before it is made: what memory follows from."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology, num_words_of


@dataclass(frozen=True)
class Extent:
    """The numbers that a topology's memory follows from.

    num_points, num_classes, num_axes, shape, offsets: as :class:`Topology` has them
    seam_bonds:  bonds across periodic seams, at most
    is_stored:   whether other ends are a stored list
    """

    num_points: int
    num_classes: int
    num_axes: int
    shape: tuple[int, ...]
    offsets: tuple[tuple[int, ...], ...]
    seam_bonds: int
    is_stored: bool

    @classmethod
    def of_topology(cls, topology: Topology) -> Extent:
        """Return the extent of a topology that there is."""
        return cls(
            topology.num_points,
            topology.num_classes,
            topology.num_axes,
            topology.shape,
            topology.offsets,
            topology.seam_bonds.size,
            topology.neighbours is not None,
        )

    @classmethod
    def of_structure(
        cls, structure: Structure, shape: tuple[int, ...], boundary: tuple[str, ...]
    ) -> Extent:
        """Return the extent of what a structure's ``topology(shape, boundary)`` would make."""
        points, axes = prod(shape), len(boundary)
        if not isinstance(structure, Lattice):
            return cls(points, structure.num_classes, axes, (), (), 0, True)
        offsets = tuple(bond.offset for bond in structure.bonds)
        crossing = [
            points // n * min(abs(offset[axis]), n)
            for offset in offsets
            for axis, (n, kind) in enumerate(zip(shape, boundary, strict=True))
            if kind == "periodic"
        ]
        return cls(points, structure.num_classes, axes, shape, offsets, sum(crossing), False)

    @property
    def num_words(self) -> int:
        """Bond words of a sample."""
        return self.num_classes * num_words_of(self.num_points)

    @property
    def topology_bytes(self) -> int:
        """The host memory that the topology takes, and what is listed of its seams."""
        stored = 4 * self.num_classes * self.num_points if self.is_stored else 0
        seam = 4 * self.num_words + 20 * self.seam_bonds if self.seam_bonds else 0
        return 8 * self.num_words + num_words_of(self.num_points) * 4 + seam + stored

    @property
    def building_bytes(self) -> int:
        """The host memory that is taken beside the topology while it is made."""
        return (2 * self.num_classes + 16) * self.num_points


def num_bonds_of(structure: Structure, shape: tuple[int, ...], boundary: tuple[str, ...]) -> int:
    """Return how many bonds a structure's ``topology(shape, boundary)`` has.

    Those of a lattice are counted from its cell, without a topology, whatever its size.

    >>> from percolab.lattices.lattice import load_lattice
    >>> num_bonds_of(load_lattice("square"), (30_000, 30_000), ("periodic", "open"))
    1799970000
    """
    if not isinstance(structure, Lattice):
        return structure.topology(shape, boundary).num_bonds
    axes = tuple(zip(shape, boundary, structure.cell, strict=True))
    return sum(
        prod(
            _copies(at, cell, (0, n) if kind == "periodic" else (max(-step, 0), min(n - step, n)))
            for at, step, (n, kind, cell) in zip(point, bond.offset, axes, strict=True)
        )
        for bond in structure.bonds
        for point in bond.at
    )


def _copies(at: int, cell: int, span: tuple[int, int]) -> int:
    """Return how many of the integers from span[0] to below span[1] are ``at`` modulo ``cell``."""
    low, high = span
    return max((high - at + cell - 1) // cell - (low - at + cell - 1) // cell, 0)
