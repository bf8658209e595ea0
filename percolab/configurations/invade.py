"""Invasion percolation of one sample of a lattice, a Bethe lattice or a graph, by name.

Sources, targets and other options are read and checked here; :mod:`percolab.trees.invasion`
invades.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from percolab.bonds.words import GENERATORS
from percolab.configurations.array_files import to_array
from percolab.configurations.tree import IN_FILE, read_numbers
from percolab.errors import InputError, nearest, refuse_given
from percolab.kernels.memory import check_free
from percolab.lattices.bethe import BetheLattice, site_numbers
from percolab.lattices.graph import Graph, find_sites, make_graph, read_any_graph
from percolab.lattices.graph_files import names_file
from percolab.lattices.grid import Grid
from percolab.lattices.lattice import AXIS_NAMES, Lattice
from percolab.lattices.structure import Structure, load_structure
from percolab.lattices.terminals import CENTRE, name_sides
from percolab.lattices.topology import Topology, unpack_bits
from percolab.tasks.study import Task, axis_boundaries
from percolab.tasks.values import (
    check_choice,
    take_flag,
    take_integer,
    take_sample_key,
    take_shape,
    take_shapes,
)
from percolab.trees.invasion import (
    LISTED_BYTES,
    SITE_BYTES,
    TRAPPING_BYTES,
    Floats,
    Integers,
    Invasion,
    InvasionWeights,
    Stop,
    lattice_ground,
    topology_ground,
)
from percolab.trees.invasion import invade as invade_from
from percolab.trees.invasion_cpu import Ground, Target
from percolab.trees.weights import values_to_keys

#: The elements that have weights.
INVADED_MODELS = ("bond", "site")

Sites = str | int | Sequence[int] | NDArray[np.integer[Any]]


def invade(
    lattice: Any = None,
    L: int | str | tuple[int, ...] | None = None,
    *,
    source: Sites | None = None,
    target: Sites | None = None,
    stop: Stop | None = None,
    trapping: bool = False,
    model: str = "bond",
    seed: int = 1,
    sample: int = 0,
    rng: str = "xorwow",
    boundary: str | Sequence[str] | None = None,
    weights: str | ArrayLike | None = None,
    graph: Any = None,
    multi: bool = False,
    columns: str | Sequence[Any] | None = None,
) -> Invasion:
    """Invade a sample from a source, always by the bond or site with the smallest weight.

    lattice: a name, a :class:`Lattice` (``L``: its size, or its sides as (64, 128)), a Bethe
    lattice (``L``: its shells), a :class:`Graph`, a networkx graph, a sparse matrix, a data frame
    (``columns``: names of its site columns) or an edge array (n, 2).  graph: instead of a lattice,
    one of these graphs or a graph file (docs/graph-files.md); multi: keep its parallel edges.
    source: a side, "x-", "x+", "y-" ... (or "left", "right", "bottom", "top"), "centre", a site or
    a list of sites; by default the first side of the last open axis, a Bethe lattice's centre, or a
    graph's source.  target: like source; by default the side opposite to the source, any side if
    the source is a site, a Bethe lattice's outermost shell, or a graph's target.
    stop: "spanning", when the first site of the target is invaded (the default if there is a
    target); "all"; or a number of sites.  trapping: regions cut off from the target are not
    invaded.

    model: "bond" or "site".  Source sites are invaded from the start, except a side in the site
    model: there the invader enters from outside, and sites of the side are invaded one by one.
    weights: in place of the sample's uniform numbers, floats or integers.  A bond or site of weight
    inf is solid: neither the invader nor the displaced fluid passes.  Shapes: for bonds
    (num_classes, num_points) or (num_classes, *shape), for bonds of a graph (num_bonds,) in its
    order, for sites one weight per grid point; entries without a bond or site are ignored.  They
    may be in a .npy file or "file.h5:/dataset"; "file" takes those in a graph's file or object.

    Time and memory grow with the invaded sites only; with trapping, with the whole lattice.

    Raises InputError (one line) for invalid arguments.

    >>> found = invade("square", 64, source="left", seed=3)
    >>> found.num_invaded > 64 and found.breakthrough == found.num_invaded - 1
    True
    >>> invade("square", 2**15, source="centre", stop=1000).num_invaded
    1000
    """
    (invader,) = make_invaders(locals())
    return invader.run(sample)


def make_invaders(given: Mapping[str, Any], sizes: Sequence[Any] | None = None) -> list[Invader]:
    """Return the invaders for the arguments of :func:`invade`, one for each size.

    sizes: several sizes in place of L.  InputError: as for :func:`invade`.
    """
    lattice, graph, weights = given["lattice"], given["graph"], given["weights"]
    named: dict[str, Any] = {name: given[name] for name in ("multi", "columns")}
    way = {name: given[name] for name in ("source", "target", "stop", "trapping", "model", "rng")}
    if weights is not None:
        samples = {name: given[name] for name in ("seed", "sample", "rng")}
        refuse_given("given weights have no samples", **samples)
    if graph is not None:
        refuse_given("the graph is given as well", lattice=lattice)
    elif lattice is None:
        raise InputError("invade: give a lattice and its size L, or a graph")
    elif not isinstance(lattice, str | Path | Structure):
        graph = lattice
    if isinstance(graph, tuple) and weights is None:
        raise InputError(
            "invade: give only the pairs of sites as graph, and their weights as weights"
        )
    if graph is not None and not isinstance(graph, Structure) and way["target"] is not None:
        # The sample of a sweep with this source and target.
        named |= {name: way.pop(name) for name in ("source", "target")}
    if graph is not None:
        refuse_given("a graph has its own", L=given["L"], boundary=given["boundary"])
    structure: Structure
    if isinstance(weights, str) and weights == IN_FILE:
        if graph is None or isinstance(graph, Structure):
            raise InputError("--weights file: only a graph's file (--graph) has weights in it")
        structure, data = read_any_graph(graph, weights=True, **named)
        weights = data.weights
    elif graph is not None:
        structure = make_graph(graph, **named)
    else:
        refuse_given("only a graph has it", **named)
        structure = load_structure(str(lattice)) if isinstance(lattice, str | Path) else lattice
    if isinstance(weights, str):
        weights = read_numbers(weights, _wrong_weights)
    sizes = [given["L"]] if sizes is None else sizes
    if len(sizes) > 1:
        structure, chosen = take_shapes(structure, list(sizes))
        sizes = sorted(set(chosen))
    fields = [make_field(structure, size, given["boundary"]) for size in sizes]
    return [Invader(field, **way, seed=given["seed"], weights=weights) for field in fields]


def _wrong_weights(shape: tuple[int, ...], dtype: np.dtype) -> str:
    return "" if dtype.kind in "iuf" else f"holds {dtype}; weights are floats or integers"


@dataclass(frozen=True, eq=False)
class Field:
    """One size of a structure, with the data that an invasion needs.

    boundary: per axis, as in a task.  topology: None for a lattice, whose points are not
    listed.  ground: where bonds lead.  inner: for a graph whose sites have other numbers in its
    topology, that number of every site
    """

    structure: Structure
    size: int
    boundary: tuple[str, ...]
    topology: Topology | None
    ground: Ground
    inner: NDArray[np.int32] | None = None
    _layers: dict[tuple[int, int], Integers] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.structure.shape(self.size)

    @property
    def num_points(self) -> int:
        return prod(self.shape)

    @cached_property
    def num_sites(self) -> int:
        """Number of sites, computed from the unit cell."""
        return Task(self.structure, self.size, self.boundary, (0.5,)).num_sites

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of a lattice."""
        return tuple(AXIS_NAMES[: len(self.boundary)]) if self.is_lattice else ()

    @property
    def is_lattice(self) -> bool:
        """Whether it has axes with sides."""
        return self.topology is None

    def is_site(self, site: int) -> bool:
        """Whether a grid point holds a site."""
        lattice = self.structure
        if not isinstance(lattice, Lattice):
            return True
        place = np.unravel_index(site, self.shape[::-1])[::-1]
        return tuple(int(x) % n for x, n in zip(place, lattice.cell)) in lattice.sites

    def parse_side(self, name: str) -> tuple[int, int] | None:
        """Return (axis, end) of a side, None for other names; InputError if it is periodic."""
        side = name_sides(len(self.axes)).get(name)
        if side is not None and self.boundary[side[0]] == "periodic":
            raise InputError(f"{name}: axis {self.axes[side[0]]} is periodic and has no sides")
        return side

    def layer(self, axis: int, end: int) -> Integers:
        """Return the sites of the first or last layer along an axis, int64, ascending."""
        lattice = self.structure
        assert isinstance(lattice, Lattice)
        if (axis, end) not in self._layers:
            grid = Grid(lattice.cell, self.shape, self.boundary, depths=lattice.per_size)
            for n, sites in enumerate(grid.end_layers(axis, lattice.sites)):
                self._layers[axis, n] = sites.astype(np.int64)
        return self._layers[axis, end]

    def distances(self, sites: NDArray[np.integer[Any]], start: int) -> Floats:
        """Return the distances of sites from a site, float64; on a torus the shortest way around.

        InputError: a structure without coordinates.
        """
        lattice = self.structure
        if not isinstance(lattice, Lattice) or not lattice.vectors:
            raise InputError(f"{lattice.name} has no coordinates, so no distances")
        points = np.append(sites.astype(np.int64), start)
        axes = np.stack(np.unravel_index(points, self.shape[::-1])[::-1], axis=1)
        shifts = np.zeros((points.size, lattice.dimension))
        for point, shift in lattice.shifts:
            shifts[np.all(axes % lattice.cell == point, axis=1)] += shift
        steps = axes - axes[-1]
        for axis, (n, kind) in enumerate(zip(self.shape, self.boundary)):
            if kind == "periodic":
                steps[:, axis] = (steps[:, axis] + n // 2) % n - n // 2
        apart = steps @ np.array(lattice.vectors) + shifts - shifts[-1]
        return np.asarray(np.linalg.norm(apart, axis=1)[:-1])

    def centre(self) -> int:
        """Return the site in the middle; for a Bethe lattice the site between its branches."""
        if isinstance(self.structure, BetheLattice):
            return int(site_numbers(self.num_points, self.structure.numbering)[0])
        strides = [prod(self.shape[:n]) for n in range(len(self.shape))]
        middle = sum(n // 2 * stride for n, stride in zip(self.shape, strides))
        around = range(middle, self.num_points)
        return next((site for site in around if self.is_site(site)), middle)


def make_field(
    structure: Structure,
    L: int | str | tuple[int, ...] | None = None,
    boundary: str | Sequence[str] | None = None,
) -> Field:
    """Return one size of a structure; InputError if the structure cannot have it.

    L: the size, or the sides of a lattice as (64, 128); a graph has its own.  boundary: one for all
    axes of a lattice, or one for each axis as a list or text; open unless given.
    """
    if isinstance(structure, Graph):
        L = structure.num_sites if L is None else L
    if L is None:
        raise InputError(f"{structure.name}: give the size L")
    structure, L = take_shape(structure, L)
    if boundary is not None and not isinstance(structure, Lattice):
        raise InputError(f"boundary: {structure.name} has none; leave it out")
    kinds = axis_boundaries(structure, boundary)
    structure.check_size(L, kinds)
    shape = structure.shape(L)
    if isinstance(structure, Lattice):
        return Field(structure, L, kinds, None, lattice_ground(structure, shape, kinds))
    topology = structure.topology(shape, kinds)
    inner = structure.inner_numbers if isinstance(structure, Graph) else None
    return Field(structure, L, kinds, topology, topology_ground(topology), inner)


class Invader:
    """The checked options of an invasion of a field; ``run`` invades any of its samples.

    The arguments are those of :func:`invade`; drawn: ``model``, ``seed`` and ``rng``.
    """

    def __init__(
        self,
        field: Field,
        *,
        source: Sites | None = None,
        target: Sites | None = None,
        stop: Stop | None = None,
        trapping: bool = False,
        weights: ArrayLike | None = None,
        **drawn: Any,
    ) -> None:
        model = drawn.setdefault("model", "bond")
        if not isinstance(model, str) or model not in INVADED_MODELS:
            raise InputError(
                f"model {model!r}: an invasion takes bonds or sites; "
                f"{nearest(model, INVADED_MODELS)}"
            )
        check_choice("rng", drawn.get("rng", "xorwow"), GENERATORS)
        self.field, self.model = field, model
        self.trapping = take_flag("trapping", trapping)
        self.task = Task(field.structure, field.size, field.boundary, (0.5,), **drawn)
        side = self._take_source(source)
        self._take_target(target, side)
        self.stop = self._checked_stop(stop)
        listed = self.exits if self.has_target else self.sources[:0]
        for targets in (listed, *(field.layer(*end) for end in self.ends)):
            both = np.intersect1d(self.sources, targets)
            if both.size:
                site = both[0] if field.inner is None else self._outer_numbers[both[0]]
                raise InputError(f"site {site} is both in the source and in the target")
        if trapping and not self.has_target:
            raise InputError("trapping: give a target, through which the displaced fluid leaves")
        self._check_memory()
        self.ground = field.ground
        self.given = None if weights is None else self._given(weights)

    def run(self, sample: int = 0) -> Invasion:
        """Return the invasion of a sample; InputError if the sample does not exist."""
        sample = take_sample_key("sample", sample)
        field = self.field
        values, keys = (None, None) if self.given is None else self.given
        invasion = invade_from(
            self.ground,
            InvasionWeights(
                self.model,
                GENERATORS[self.task.rng],
                self.task.stream_seed,
                sample,
                field.structure.num_classes,
                values,
                keys,
            ),
            self.sources,
            self.target,
            num_sites=field.num_sites,
            enters=self.enters,
            stop=self.stop,
            exits=self.exits if self.trapping else None,
        )
        invasion = replace(invasion, shape=field.shape if field.is_lattice else ())
        return invasion if field.inner is None else invasion.renumbered(self._outer_numbers)

    # Sites

    def _take_source(self, source: Sites | None) -> tuple[int, int] | None:
        """Set the sources, and whether they enter; return (axis, end) if they are a side."""
        field, structure = self.field, self.field.structure
        # Spanning in a sweep requires that sites of these ends are occupied, too.
        self.enters = source is None and not field.is_lattice
        if source is None:
            source = self._default_source()
        side = field.parse_side(source) if isinstance(source, str) else None
        if side is not None:
            self.sources, self.enters = field.layer(*side), True
        elif isinstance(source, str) and source in CENTRE and not isinstance(structure, Graph):
            self.sources = np.array([field.centre()], np.int64)
        else:
            self.sources = self._listed("source", source)
        return side

    def _default_source(self) -> Sites:
        field, structure = self.field, self.field.structure
        if isinstance(structure, Graph):
            if structure.content is None or not structure.num_sources:
                raise InputError(f"{structure.name}: give the source")
            return structure.content.source
        open_axes = [name for name, kind in zip(field.axes, field.boundary) if kind == "open"]
        return f"{open_axes[-1]}-" if open_axes else CENTRE[0]

    def _take_target(self, target: Sites | None, side: tuple[int, int] | None) -> None:
        """Set the target, whether there is one, and all its sites if there is trapping."""
        field, structure = self.field, self.field.structure
        layers = np.zeros((len(field.axes), 2), np.int64)
        listed = np.empty(0, np.int64)
        ends: list[tuple[int, int]] = []
        if target is not None:
            named = field.parse_side(target) if isinstance(target, str) else None
            if named is not None:
                ends = [named]
            elif isinstance(target, str) and target in CENTRE and field.is_lattice:
                listed = np.array([field.centre()], np.int64)
            else:
                listed = self._listed("target", target)
        elif isinstance(structure, Graph):
            if structure.content is not None and structure.num_targets:
                listed = self._listed("target", structure.content.target)
        elif field.topology is not None:
            listed = field.topology.end_layers[0][1].astype(np.int64)
        elif side is not None:
            ends = [(side[0], 1 - side[1])]
        else:
            kinds = enumerate(field.boundary)
            ends = [(axis, end) for axis, kind in kinds if kind == "open" for end in (0, 1)]
        for axis, end in ends:
            assert isinstance(structure, Lattice)
            layers[axis, end] = structure.per_size[axis]
        self.ends = ends
        self.has_target = bool(ends) or listed.size > 0
        self.target = Target(layers, listed)
        self.exits = listed
        if self.trapping and ends:
            self.exits = np.unique(np.concatenate([field.layer(*end) for end in ends]))

    def _listed(self, what: str, sites: Sites) -> Integers:
        """Return the topology's site numbers, int64, ascending; InputError for unknown sites."""
        field = self.field
        names = field.structure.names if isinstance(field.structure, Graph) else None
        is_word = isinstance(sites, str) and names_file(sites) and not set("./") & set(sites)
        if field.is_lattice and is_word:
            known = [*name_sides(len(field.axes)), CENTRE[0]]
            raise InputError(
                f"{what} {sites!r} is not a side; {nearest(str(sites), known)}, or a site"
            )
        listed = np.unique(find_sites(what, sites, field.num_points, names))
        if listed.dtype.kind not in "iu":
            raise InputError(f"{what}: sites are integers, got {listed[0]!r}")
        wrong = listed[(listed < 0) | (listed >= field.num_points)]
        if wrong.size:
            raise InputError(
                f"{what}: site {wrong[0]}, but sites are integers 0 to {field.num_points - 1}"
            )
        for site in listed.tolist():
            if not field.is_site(site):
                raise InputError(f"{what}: point {site} of {field.structure.name} has no site")
        listed = listed.astype(np.int64)
        return listed if field.inner is None else np.sort(field.inner[listed].astype(np.int64))

    @property
    def _outer_numbers(self) -> NDArray[np.int32]:
        assert self.field.inner is not None
        return np.argsort(self.field.inner).astype(np.int32)

    # Checks

    def _checked_stop(self, stop: Stop | None) -> Stop:
        if stop is None:
            if self.has_target:
                return "spanning"
            raise InputError("stop: without a target give all or a number of sites")
        if isinstance(stop, str):
            if stop not in ("spanning", "all"):
                raise InputError(
                    f"stop = {stop!r}, but it must be spanning, all or a number of sites"
                )
            if stop == "spanning" and not self.has_target:
                raise InputError("stop = spanning needs a target; or give all or a number of sites")
            return stop
        stop = take_integer("stop", stop)
        if not 1 <= stop < 2**63:
            raise InputError(f"stop = {stop}, but it must be an integer of at least 1, below 2^63")
        # Otherwise all sources are invaded at the start.
        if not (self.enters and self.model == "site") and stop < self.sources.size:
            raise InputError(f"stop = {stop}, but the source alone has {self.sources.size} sites")
        return stop

    def _check_memory(self) -> None:
        """Raise InputError if what will certainly be invaded does not fit into memory."""
        field = self.field
        sites = min(self.stop, field.num_sites) if isinstance(self.stop, int) else 0
        if self.stop == "all" or (self.trapping and isinstance(self.stop, int)):
            sites = field.num_sites
        needed = SITE_BYTES * sites + TRAPPING_BYTES * field.num_points * self.trapping
        check_free(f"{sites or field.num_points} sites need", needed)

    def _given(self, weights: ArrayLike) -> tuple[Floats, NDArray[np.uint64]]:
        field, structure = self.field, self.field.structure
        values = to_array("weights", weights)
        if values.dtype.kind not in "biuf":
            raise InputError(f"weights must be floats or integers, got {values.dtype}")
        topology = field.topology or structure.topology(field.shape, field.boundary)
        points, stride = field.num_points, 32 * topology.num_words
        total = topology.num_classes * stride
        if self.model == "site":
            expected: tuple[int, ...] = (points,)
            if values.size == points and isinstance(structure, Graph) and field.inner is not None:
                values = values.ravel()[self._outer_numbers]
            there = unpack_bits(topology.occupied, points)
            number, total = np.flatnonzero(there), stride
        elif isinstance(structure, Graph):
            expected = (structure.num_bonds,)
            number = structure.bond_numbers()
            there = np.ones(structure.num_bonds, bool)
        else:
            expected = (topology.num_classes, points)
            there = unpack_bits(topology.exists, points).ravel()
            klass, owner = np.divmod(np.flatnonzero(there), points)
            number = klass * stride + owner
        shaped = expected[:-1] + field.shape[::-1] if field.is_lattice else expected
        if values.shape not in (expected, shaped):
            raise InputError(
                f"weights have the shape {values.shape}, but those of the {self.model}s of "
                f"{structure.name} have {shaped}"
            )
        if number.size == 0:
            raise InputError(f"{structure.name} has no {self.model}s to be given weights")
        used = values.ravel()[there]
        keys, floats = np.zeros(total, np.uint64), np.zeros(total)
        keys[number], floats[number] = values_to_keys(used), used
        if used.dtype.kind == "f" and used.max() == np.inf:
            self._leave_out_solid(topology, floats)
        return floats, keys

    def _leave_out_solid(self, topology: Topology, weights: Floats) -> None:
        """Set where bonds lead, without bonds that are solid or lead to a solid site.

        weights: float64, by numbers; infinite for solid bonds and sites.  InputError: a site that
        is given as a source is solid.
        """
        check_free("lists of the bonds that are not solid need", LISTED_BYTES * topology.num_bonds)
        bonds = topology.bonds()
        klass, owner, other = bonds.T
        if self.model == "site":
            is_solid = np.maximum(weights[owner], weights[other]) == np.inf
            solid = self.sources[weights[self.sources] == np.inf]
            if solid.size and not self.enters:
                site = solid[0] if self.field.inner is None else self._outer_numbers[solid[0]]
                raise InputError(f"source: site {site} has the weight inf, so nothing enters it")
            self.sources = np.setdiff1d(self.sources, solid)
        else:
            is_solid = weights[32 * topology.num_words * klass + owner] == np.inf
        self.ground = topology_ground(topology, bonds[~is_solid])
        # A list of bonds has no layers, so the sites of the ends are listed.
        ends = [self.field.layer(*end) for end in self.ends]
        self.target = Target(
            np.zeros((0, 2), np.int64), np.unique(np.concatenate([self.exits, *ends]))
        )
