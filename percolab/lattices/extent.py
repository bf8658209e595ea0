"""The size of a topology before it is made, from which its memory is computed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from percolab.errors import InputError
from percolab.lattices.ensemble import Ensemble
from percolab.lattices.graph import Graph
from percolab.lattices.grid import choose_part_layers
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology, count_words, periodic_piece_length

#: Bytes that a periodic bond takes while it is listed.
LIST_BYTES = 60


@dataclass(frozen=True)
class Extent:
    """The numbers that determine a topology's memory.

    num_points, num_classes, num_axes, shape, offsets: as :class:`Topology` has them
    periodic_bonds: an upper bound on the bonds across periodic boundaries
    class_periodic: the same for the class that has most of them
    depths:         the thickness of end layers along each axis, in grid points; 0 where there are
                    none
    is_stored:      whether the other ends of bonds are stored in a list
    cell_layers:    grid points of a cell along the last axis
    """

    num_points: int
    num_classes: int
    num_axes: int
    shape: tuple[int, ...]
    offsets: tuple[tuple[int, ...], ...]
    periodic_bonds: int
    depths: tuple[int, ...]
    is_stored: bool
    class_periodic: int = 0
    cell_layers: int = 1

    @classmethod
    def of_topology(cls, topology: Topology) -> Extent:
        return cls(
            topology.num_points,
            topology.num_classes,
            topology.num_axes,
            topology.shape,
            topology.offsets,
            topology.num_periodic_bonds,
            tuple(_depth_along(topology, axis) for axis in range(len(topology.shape))),
            topology.neighbours is not None,
            max(topology.periodic_counts, default=0),
            topology.grid.cell[-1] if topology.grid is not None else 1,
        )

    @classmethod
    def of_structure(
        cls, structure: Structure, shape: tuple[int, ...], boundary: tuple[str, ...]
    ) -> Extent:
        """Return the extent of the topology that ``structure.topology(shape, boundary)`` makes."""
        points, axes = prod(shape), len(boundary)
        if isinstance(structure, Ensemble):
            structure = structure.graph(points)
        if not isinstance(structure, Lattice):
            return cls(points, structure.num_classes, axes, (), (), 0, (), True)
        offsets = tuple(bond.offset for bond in structure.bonds)
        crossing = [
            sum(
                points // n * min(abs(step), n)
                for n, kind, step in zip(shape, boundary, offset, strict=True)
                if kind == "periodic"
            )
            for offset in offsets
        ]
        depths = tuple(
            min(depth, n) if kind == "open" else 0
            for n, kind, depth in zip(shape, boundary, structure.per_size, strict=True)
        )
        numbers = points, structure.num_classes, axes
        most = max(crossing), structure.cell[-1]
        return cls(*numbers, shape, offsets, sum(crossing), depths, False, *most)

    @property
    def num_words(self) -> int:
        return self.num_classes * count_words(self.num_points)

    @property
    def end_sites(self) -> int:
        """An upper bound on the sites in the end layers of all axes of a lattice."""
        layers = zip(self.shape, self.depths, strict=True)
        return sum(2 * self.num_points // n * depth for n, depth in layers)

    @property
    def base_bytes(self) -> int:
        """The host memory of a topology whose bonds are made class by class."""
        stored = 4 * self.num_classes * self.num_points if self.is_stored else 0
        return 4 * count_words(self.num_points) + 4 * self.end_sites + stored

    @property
    def topology_bytes(self) -> int:
        """The host memory of a topology with all bonds, and lists of all periodic bonds."""
        return self.base_bytes + 4 * self.num_words + 20 * self.periodic_bonds

    @property
    def periodic_bytes(self) -> int:
        """The host memory of ``Topology.periodic_words``, which kernels on the CPU need."""
        return 4 * self.num_words if self.periodic_bonds else 0

    @property
    def class_bytes(self) -> int:
        """The additional host memory while the bonds or lists of one class are made."""
        if self.is_stored:
            return 2 * self.num_points
        # Masks of a part, the layers of cells that parts share, and a piece of a list: owners,
        # ends, codes, and copies of these.
        layers = 12 * self.cell_layers * count_words(prod(self.shape[:-1]))
        return 12 * self.part_words + layers + LIST_BYTES * self.piece_bonds

    @property
    def piece_bonds(self) -> int:
        """The most periodic bonds that are listed at once."""
        return min(self.class_periodic, periodic_piece_length(self.num_points))

    @property
    def part_words(self) -> int:
        """The most words in a part of a topology on a grid."""
        words = count_words(self.num_points)
        return min(count_words(choose_part_layers(self.shape) * prod(self.shape[:-1])), words)

    @property
    def building_bytes(self) -> int:
        """The additional host memory while a topology is made."""
        if self.is_stored:
            return (2 * self.num_classes + 16) * self.num_points
        return 32 * sum(self.shape) + max(5 * self.end_sites, self.class_bytes)


def _depth_along(topology: Topology, axis: int) -> int:
    """Return the thickness of the first end layer along an axis, in grid points."""
    first, _ = topology.end_layers[axis]
    along = first // prod(topology.shape[:axis]) % topology.shape[axis]
    return int(along.max(initial=-1)) + 1


def count_bonds(structure: Structure, shape: tuple[int, ...], boundary: tuple[str, ...]) -> int:
    """Return the number of bonds of ``structure.topology(shape, boundary)``.

    The bonds of a lattice of any size are counted from its cell, without making the topology.

    >>> from percolab.lattices.lattice import load_lattice
    >>> count_bonds(load_lattice("square"), (30_000, 30_000), ("periodic", "open"))
    1799970000
    """
    if isinstance(structure, Graph):
        return structure.num_bonds  # known even if the graph comes from a results file
    if isinstance(structure, Ensemble):
        if (count := structure.num_bonds(*shape)) is None:
            advice = "use --model site, or graphs with equal numbers of bonds, as gnm:k=4"
            reason = f"its graphs have different numbers of bonds; {advice}"
            raise InputError(f"{structure.name}: {reason}")
        return count
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
