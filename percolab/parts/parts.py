"""Parts: slabs of whole layers of one lattice, each with its own bonds and its own two faces.

A slab's sites are consecutive.  Inside it they are numbered from 0 on with 32 bits; ``first_site``,
of 64 bits, is the number of its site 0 in the whole lattice, by which bond words are numbered, too.
The owner of a bond between two layers is its end in the upper layer.  So a bond between two slabs
belongs to the upper slab; on a torus, one between the last and the first belongs to the first.  The
bonds that cross there are a :class:`Cut`, the same for both slabs.

No table has the size of the whole lattice: the tables of a slab are those of a lattice of its
shape, and slabs that are equally thick and begin at the same layer of a cell share them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, prod, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.bonds.model import BOND, Model
from percolab.errors import InputError
from percolab.kernels.memory import Memory
from percolab.kernels.neighbours import Adjacency
from percolab.lattices.extent import LIST_BYTES, Extent
from percolab.lattices.grid import Grid
from percolab.lattices.lattice import AXIS_NAMES, Lattice
from percolab.lattices.topology import (
    MAX_POINTS,
    Topology,
    count_words,
    find_set_bits,
    period_codes,
    unpack_bits,
)

#: The most words of a sample that Philox can distinguish.
_MOST_WORDS = 2**60


@dataclass(frozen=True)
class Whole:
    """The lattice that is sampled in parts, without tables of the whole.

    InputError: a graph or a Bethe lattice; spins; a model with its own record; a boundary that cuts
    a cell; more sites than words can be numbered for; or sites are drawn and one of them lies in
    both end layers.

    >>> from percolab.lattices.lattice import load_lattice
    >>> Whole(load_lattice("cubic"), (100, 100, 10**9), ("open",) * 3).num_points
    10000000000000
    """

    lattice: Lattice
    shape: tuple[int, ...]
    boundary: tuple[str, ...]
    model: Model = BOND  # bond, site or site-bond percolation

    def __post_init__(self) -> None:
        if not isinstance(self.lattice, Lattice):
            raise InputError("only a lattice can be cut into slabs, not a graph or a Bethe lattice")
        if self.model.chains:
            raise InputError(
                f"model {self.model}: the {self.model.chains} of a chain must all be in memory"
            )
        if self.model.has_own_record:
            raise InputError(
                f"model {self.model}: it cannot be drawn in parts; measure whole samples"
            )
        self.lattice.check_cells(self.shape, self.boundary)
        if (self.lattice.num_classes + 1) * self.num_words > _MOST_WORDS:
            raise InputError(
                f"{self.num_points} sites are too many: numbers of bond words have 60 bits"
            )
        if self.model.draws_sites and not self.is_closed and 2 * self.depth > self.num_layers:
            raise InputError(
                f"site percolation needs two end layers, but {self.num_layers} layers along axis "
                f"{AXIS_NAMES[len(self.shape) - 1]} have sites in both"
            )

    @property
    def num_points(self) -> int:
        return prod(self.shape)

    @property
    def num_words(self) -> int:
        """Bond words of one class."""
        return count_words(self.num_points)

    @property
    def num_layers(self) -> int:
        return self.shape[-1]

    @property
    def layer_points(self) -> int:
        return prod(self.shape[:-1])

    @property
    def is_closed(self) -> bool:
        """Whether the last layer meets the first."""
        return self.boundary[-1] == "periodic"

    @property
    def has_periods(self) -> bool:
        """Whether any axis is periodic, so that clusters may wrap."""
        return "periodic" in self.boundary

    @property
    def depth(self) -> int:
        """The thickness, in layers, of an end layer of the last axis."""
        return min(self.lattice.per_size[-1], self.num_layers)

    @property
    def reach(self) -> int:
        """The most layers that a bond leads down; no slab may be thinner."""
        return max(-bond.offset[-1] for bond in self.lattice.bonds)

    def phase(self, layer: int) -> int:
        """Return the position of a layer within its cell."""
        return layer % self.lattice.cell[-1]

    @property
    def most_crossing(self) -> int:
        """The most bonds that can cross a face."""
        crossing = sum(-bond.offset[-1] for bond in self.lattice.bonds)
        return crossing * self.layer_points

    def open_at_face(self, p: float = 1.0) -> tuple[int, int]:
        """Return the most open bonds that cross a face, and the most clusters of these on a side.

        p: that of bonds or of sites, the smaller one.  The bounds are ten standard deviations up.
        """
        most = self.most_crossing
        bonds = min(most, ceil(most * p + 10 * sqrt(most * p)))
        return bonds, min(bonds, self.reach * self.layer_points)

    def slab_extent(self, layers: int) -> Extent:
        return Extent.of_structure(_from_layer(self.lattice, 0), *_open_layers(self, layers))

    def check_layers(self, first_layer: int, layers: int) -> None:
        """Raise InputError unless these layers are a slab that can be a part."""
        if layers < max(self.reach, 1):
            raise InputError(
                f"a slab of {layers} layers is too thin: bonds of {self.lattice.name} reach over "
                f"{self.reach} layers"
            )
        if first_layer < 0 or first_layer + layers > self.num_layers:
            last = first_layer + layers - 1
            raise InputError(
                f"layers {first_layer} to {last}, but the lattice has 0 to {self.num_layers - 1}"
            )
        if layers * self.layer_points > MAX_POINTS:
            raise InputError(
                f"a slab of {layers * self.layer_points} sites, but at most {MAX_POINTS} can be "
                "labeled at once"
            )


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables that equal slabs share: sites, bonds inside, and end layers at their sides.

    Tables for kernels on the CPU are made when they are requested.
    """

    # That of a lattice of the slab's shape, open along the last axis, without end layers there
    topology: Topology

    @cached_property
    def adjacency(self) -> Adjacency:
        return make_adjacency(self.topology)

    @cached_property
    def end_flags(self) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """The sites of the other axes' end layers, and their flags."""
        return self.topology.end_flags()


class Cut(NamedTuple):
    """The bonds between the last layers of a slab and the first of the next, ``reach`` of each."""

    classes: Any  # int64, the classes that lead downwards
    # uint32 (classes * words,), one bit a bond: the bonds of owners in the first layers of the
    # upper slab, numbered from there on, that lead below it
    exists: Any
    # Their other ends, numbered from the lower slab's last layers on
    adjacency: Adjacency

    @property
    def num_points(self) -> int:
        """Grid points of the layers on each side."""
        return int(self.adjacency.num_points)


@dataclass(frozen=True, eq=False)
class Slab:
    """A slab of a lattice: its layers, its tables, and the bonds that cross its faces."""

    whole: Whole
    first_layer: int
    layers: int
    tables: Tables
    low: Cut | None  # the bonds below; None at an open end of the lattice
    high: Cut | None  # the bonds above

    @property
    def num_points(self) -> int:
        return self.layers * self.whole.layer_points

    @property
    def first_site(self) -> int:
        """The number of its first site in the whole lattice."""
        return self.first_layer * self.whole.layer_points

    @property
    def crossing_code(self) -> int:
        """The periods along the last axis that every bond of ``low`` crosses, as a code."""
        if self.first_layer or not self.whole.is_closed:
            return 0
        return int(period_codes(np.array([[0] * (len(self.whole.shape) - 1) + [-1]]))[0])

    def end_layers(self) -> list[tuple[int, int, int]]:
        """Return its parts of the last axis' end layers: (first point, point after it, flag)."""
        whole, spans = self.whole, []
        if not whole.is_closed:
            ends = (0, whole.depth), (whole.num_layers - whole.depth, whole.num_layers)
            for bit, span in enumerate(ends, 2 * (len(whole.shape) - 1)):
                layers = (min(max(edge - self.first_layer, 0), self.layers) for edge in span)
                first, after = (layer * whole.layer_points for layer in layers)
                if first < after:
                    spans.append((first, after, 1 << bit))
        return spans

    def end_flags(self) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        """Return its sites in end layers of the whole lattice, and their flags.

        They are like :meth:`percolab.lattices.topology.Topology.end_flags`, for this slab's sites.
        """
        sites, flags = map(list, zip(self.tables.end_flags))
        for first, after, flag in self.end_layers():
            word = first // 32
            words = self.tables.topology.occupied[word : count_words(after)]
            there = np.flatnonzero(unpack_bits(words, after - 32 * word)[first - 32 * word :])
            sites.append((first + there).astype(np.int32))
            flags.append(np.full(there.size, flag, np.uint32))
        return np.concatenate(sites), np.concatenate(flags)


@dataclass(frozen=True)
class Parts:
    """Makes the parts of a lattice; equal slabs and cuts share their tables."""

    whole: Whole
    _tables: dict[tuple[int, int], Tables] = field(default_factory=dict)
    _cuts: dict[int, Cut] = field(default_factory=dict)

    def part(self, first_layer: int, layers: int) -> Slab:
        """Return the part with these layers; InputError if they cannot be a part."""
        whole, after = self.whole, first_layer + layers
        whole.check_layers(first_layer, layers)
        has_low = whole.is_closed or first_layer > 0
        has_high = whole.is_closed or after < whole.num_layers
        low = self._cut_below(first_layer) if has_low else None
        high = self._cut_below(after % whole.num_layers) if has_high else None
        tables = self._make_tables(whole.phase(first_layer), layers)
        return Slab(whole, first_layer, layers, tables, low, high)

    @staticmethod
    def memory(whole: Whole, slabs: Iterable[tuple[int, int]], kind: str = "cpu") -> Memory:
        """Return the memory of the tables of slabs (first layer, layers), and of making one.

        kind: "cpu", or "cuda": there kernels take bonds and lists from the device.
        """
        kinds = {(whole.phase(first), layers) for first, layers in slabs}
        extents = [whole.slab_extent(layers) for _, layers in kinds]
        cuts = len({phase for phase, _ in kinds}) + 1
        cut = whole.slab_extent(whole.reach)
        tables = cuts * (cut.topology_bytes + cut.periodic_bytes)
        if kind == "cuda":
            tables += sum(extent.base_bytes for extent in extents)
        else:
            # A second list of the sites of end layers, with their flags.
            tables += sum(
                each.topology_bytes + each.periodic_bytes + 8 * each.end_sites for each in extents
            )
        # A cut's periodic bonds are listed class by class.
        making = cut.building_bytes + LIST_BYTES * cut.class_periodic
        making = max(making, *(extent.building_bytes for extent in extents))
        return Memory(host=tables + making)

    def _make_tables(self, phase: int, layers: int) -> Tables:
        if (phase, layers) not in self._tables:
            lattice = _from_layer(self.whole.lattice, phase)
            topology = lattice.topology(*_open_layers(self.whole, layers))
            if self.whole.model.draws_sites:
                topology.check_end_layers()
            self._tables[phase, layers] = Tables(topology)
        return self._tables[phase, layers]

    def _cut_below(self, layer: int) -> Cut:
        """Return the bonds that cross between a layer and the one below it."""
        phase = self.whole.phase(layer)
        if phase not in self._cuts:
            self._cuts[phase] = _cut_below(self.whole, phase)
        return self._cuts[phase]


def _from_layer(lattice: Lattice, phase: int) -> Lattice:
    """Return the lattice with its cell beginning at another layer.

    It has no end layers along the last axis.
    """
    height = lattice.cell[-1]

    def moved(points: frozenset[tuple[int, ...]]) -> frozenset[tuple[int, ...]]:
        return frozenset((*point[:-1], (point[-1] - phase) % height) for point in points)

    bonds = tuple(replace(bond, at=moved(bond.at)) for bond in lattice.bonds)
    per_size = (*lattice.per_size[:-1], 0)
    return replace(lattice, vacant=moved(lattice.vacant), bonds=bonds, per_size=per_size)


def _open_layers(whole: Whole, layers: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return shape and boundary of a number of layers."""
    return (*whole.shape[:-1], layers), (*whole.boundary[:-1], "open")


def _cut_below(whole: Whole, phase: int) -> Cut:
    """Return the bonds that cross below a layer, owned by this layer and the following ones."""
    lattice, reach = _from_layer(whole.lattice, phase), whole.reach
    shape, boundary = _open_layers(whole, reach)
    grid = Grid(lattice.cell, shape, boundary, depths=lattice.per_size)
    words, layer = count_words(prod(shape)), whole.layer_points
    exists, periodic, deltas, bonds, ends, codes = [], [], [], [], [], []
    classes = [k for k, bond in enumerate(lattice.bonds) if bond.offset[-1] < 0]
    for n, k in enumerate(classes):
        *aside, step = lattice.bonds[k].offset
        # The bond along the other axes, as if it stayed in its layer.
        at, offset = lattice.bonds[k].at, (*aside, 0)
        layers = grid.owner_layers(offset)
        # Bonds of layer -step and above end in the upper slab.
        layers[-1][-step:] = False
        inside = zip(layers, grid.inside_layers(offset), strict=True)
        there = grid.mask(at, layers)
        across = there ^ grid.mask(at, [one & other for one, other in inside])
        owners = find_set_bits(across)
        other_ends, codes_of_class = grid.other_ends(owners, offset)
        down = (reach + step) * layer
        exists.append(there)
        periodic.append(across)
        deltas.append(grid.delta(offset) + down)
        bonds.append(np.add(owners, n * 32 * words, dtype=np.int64))
        ends.append(other_ends + np.int32(down))
        codes.append(codes_of_class)
    periodic_bonds = np.concatenate(bonds)
    adjacency = Adjacency(
        ends=np.array(deltas, np.int64),
        periodic_words=np.concatenate(periodic) if periodic_bonds.size else np.empty(0, np.uint32),
        periodic_bonds=periodic_bonds,
        periodic_ends=np.concatenate(ends),
        periodic_codes=np.concatenate(codes),
        num_points=np.uint32(prod(shape)),
        num_words=np.uint32(words),
        chain=np.int32(-1),
    )
    return Cut(np.array(classes, np.int64), np.concatenate(exists), adjacency)
