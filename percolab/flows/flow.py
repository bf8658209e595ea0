"""The flow in one sample between two terminals; each number is computed when first needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.flows.blocks import find_block, make_block
from percolab.flows.cycle_words import (
    Forest,
    count_bridges,
    find_trails,
    make_forest,
    virtual_word,
    word_key,
)
from percolab.flows.elimination import solve, sum_powers
from percolab.flows.net import ROOT, BondList, Net, count_sites, make_net, mark_inside, spread
from percolab.flows.paths import Distances, find_length, mark_shortest
from percolab.lattices.shown import Shown

Marks = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Circuit:
    """All bonds of a topology, open or not, and the two terminals of the flow.

    bonds:          :func:`percolab.flows.net.list_bonds`
    num_points:     site numbers are smaller than this
    source, target: int32, the sites of each terminal; empty if there are no terminals
    """

    bonds: BondList
    num_points: int
    source: NDArray[np.int32]
    target: NDArray[np.int32]

    def __post_init__(self) -> None:
        both = np.intersect1d(self.source, self.target)
        if both.size:
            raise InputError(f"site {both[0]} is in both terminals, but these must not share sites")

    @cached_property
    def net(self) -> Net:
        """The bonds between sites."""
        return make_net(self.bonds, self.num_points)

    @cached_property
    def joined(self) -> Net:
        """The bonds between sites and the two terminals; InputError if there are no terminals."""
        if not (self.source.size and self.target.size):
            raise InputError("a flow needs two terminals: open sides, or source and target")
        return make_net(self.bonds, self.num_points, self.source, self.target)


@dataclass(frozen=True, eq=False, repr=False)
class Flow(Shown):
    """The flow through open bonds between two terminals.

    circuit: all bonds, open or not.  is_open: uint8 (m,), 1 for open bonds.  seed, sample: of the
    random words that find bridges.  conductances: float64 (m,), positive, of all bonds; None means
    1 each.  phase: for an image between two of its faces, the numbers of voxels of the phase and
    along the axis.  of_voxels: float64 (m,), for an image whose voxels are not cubes, conductances
    between them in units of that along the axis.

    Arrays of bonds are bool (n,), with an entry for each of the n open bonds in the order of
    ``bonds``.  Where the terminals are not connected, nothing flows: numbers are 0.

    InputError: a property needs terminals, and there are none.
    """

    circuit: Circuit
    is_open: Marks
    seed: int = 1
    sample: int = 0
    conductances: NDArray[np.float64] | None = None
    phase: tuple[int, int] | None = None
    of_voxels: NDArray[np.float64] | None = None

    def summary(self) -> dict[str, Any]:
        """Return all numbers as plain JSON values; without terminals only those of bridges."""
        facts: dict[str, Any] = {"open_bonds": int(self.is_open.sum()), "bridges": self.num_bridges}
        if not self.circuit.source.size:
            return facts
        return facts | {
            "connected": self.connected,
            "red_bonds": self.num_red,
            "trail_bonds": self.num_trails,
            "backbone_bonds": self.num_backbone,
            "backbone_sites": self.num_backbone_sites,
            "path_length": self.length,
            "elastic_bonds": self.num_elastic,
            "elastic_sites": self.num_elastic_sites,
            "conductance": self.conductance,
            "largest_current": self.largest_current,
        }

    def _facts(self) -> dict[str, Any]:
        facts = {"open bonds": int(self.is_open.sum()), "bridges": self.num_bridges}
        if self.circuit.source.size:
            facts |= {"connected": self.connected, "backbone bonds": self.num_backbone}
        return facts

    @cached_property
    def bonds(self) -> NDArray[np.int32]:
        """The two sites of every open bond, int32 (n, 2)."""
        sites: NDArray[np.int32] = self.circuit.bonds.sites[self._opened]
        return sites

    @property
    def places(self) -> NDArray[np.int64]:
        """The positions of the open bonds in a topology's words: 32 * word + bit, int64 (n,)."""
        places: NDArray[np.int64] = self.circuit.bonds.places[self._opened]
        return places

    @cached_property
    def bridges(self) -> NDArray[np.bool_]:
        """Bonds whose removal splits their cluster in two."""
        return self._with_word(np.uint64(0), *self._bridges[1:])

    @property
    def num_bridges(self) -> int:
        """Number of bridges among the open bonds."""
        return self._bridges[0]

    @cached_property
    def largest_bridge_free(self) -> int:
        """Sites of the largest cluster after all bridges are closed."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        ends, many = self.bonds[~self.bridges].T, self.circuit.num_points
        links = coo_array((np.ones(ends.shape[1], np.int8), tuple(ends)), shape=(many, many))
        return int(np.bincount(connected_components(links, directed=False)[1]).max())

    @property
    def connected(self) -> bool:
        """Whether open bonds connect the terminals."""
        return self._trails[0]

    @property
    def num_red(self) -> int:
        """Number of red bonds: closing any one of them disconnects the terminals."""
        return self._trails[1]

    @cached_property
    def red(self) -> NDArray[np.bool_]:
        """The red bonds: closing any one of them disconnects the terminals."""
        forest = self._trails[2]
        if not self.connected:
            return self._of_open(self._no_marks())
        return self._with_word(np.uint64(virtual_word(self._key)), forest.via, forest.words)

    @property
    def num_trails(self) -> int:
        """Number of bonds on trails."""
        return int(self._trail_marks.sum())

    @cached_property
    def trails(self) -> NDArray[np.bool_]:
        """Bonds on trails, which connect the terminals and use no bond twice."""
        return self._of_open(self._trail_marks)

    @cached_property
    def num_backbone(self) -> int:
        """Number of bonds of the backbone."""
        return int(self._block.sum())

    @cached_property
    def backbone(self) -> NDArray[np.bool_]:
        """Bonds on paths, which connect the terminals and visit no site twice."""
        return self._of_open(self._block)

    @cached_property
    def dangling(self) -> NDArray[np.bool_]:
        """Bonds outside of the backbone in clusters that connect the terminals."""
        touched = np.zeros(self.circuit.num_points, np.uint8)
        count_sites(self.circuit.bonds.sites, self._block, touched)
        spread(self.circuit.net, self.is_open, touched)
        return np.asarray((touched[self.bonds[:, 0]] != 0) & ~self.backbone)

    @property
    def num_backbone_sites(self) -> int:
        """Number of sites on bonds of the backbone, including sites of the terminals."""
        return self._count_sites(self._block)

    @property
    def length(self) -> int:
        """Number of bonds of the shortest path between the terminals; 0 if there is none."""
        return self._shortest[0]

    @property
    def num_elastic(self) -> int:
        """Number of bonds of the elastic backbone."""
        return self._shortest[1]

    @property
    def num_elastic_sites(self) -> int:
        """Number of sites on bonds of the elastic backbone."""
        return self._count_sites(self._shortest[2])

    @cached_property
    def elastic(self) -> NDArray[np.bool_]:
        """Bonds on shortest paths, the elastic backbone."""
        return self._of_open(self._shortest[2])

    @property
    def conductance(self) -> float:
        """The current between the terminals at a potential difference of 1; 0 if not connected."""
        return self._potentials[0]

    @property
    def resistance(self) -> float:
        """The inverse of the conductance; infinite if the terminals are not connected."""
        return 1 / self.conductance if self.conductance else float("inf")

    @cached_property
    def tortuosity(self) -> float:
        """The tortuosity factor tau of an image's phase; infinite if the phase does not span.

        It is defined as in TauFactor (S. J. Cooper et al., SoftwareX 5, 203 (2016)): steady
        diffusion between two opposite faces has D_eff = D porosity / tau.  A voxel is a node, a
        bond has conductance 1, and the connection to a face, half a voxel away, has 2.  With the
        conductance G between faces of area A at a distance of L voxels, D_eff / D = G L / A, so
        that tau = voxels / (G L^2).  Voxels are cubes unless ``voxel`` gave their sides: then the
        conductance of bonds along another axis is (side along the axis / side along theirs)^2.

        InputError: not an image on the square or cubic lattice, or with terminals or conductances.
        """
        if self._between_faces is None:
            raise InputError("tortuosity needs the flow between two opposite faces of an image")
        voxels, length = self.phase or (0, 1)
        conductance = self._between_faces.conductance
        return voxels / (conductance * length**2) if conductance else float("inf")

    @cached_property
    def through(self) -> NDArray[np.float64]:
        """The fraction of the total current that flows through every site, float64 (num_points,).

        It is 0 in dead ends.  For an image between two opposite faces the current is that of
        :attr:`tortuosity`, and ``through.reshape(image.shape)`` is a map of it; each layer sums to
        1 or, where the current turns back, to more.  A site of a terminal has the current that
        enters or leaves there.
        """
        flow = self._between_faces or self
        both, net = np.zeros((2, flow.circuit.num_points))
        for end, sign in zip(flow.bonds.T, (1, -1)):
            both += np.bincount(end, np.abs(flow.currents), both.size)
            net += np.bincount(end, sign * flow.currents, net.size)
        shares: NDArray[np.float64] = (both + np.abs(net))[: self.circuit.num_points] / 2
        return shares

    @cached_property
    def _between_faces(self) -> Flow | None:
        """The flow between two faces half a voxel outside of an image; None without an image."""
        if self.phase is None or self.conductances is not None:
            return None
        circuit = self.circuit
        ends, first = (circuit.source, circuit.target), circuit.num_points
        faces = [np.column_stack([end, np.full_like(end, first + n)]) for n, end in enumerate(ends)]
        sites = np.concatenate([circuit.bonds.sites, *faces])
        many = len(sites)
        # Currents do not use the places of bonds, so any numbers serve.
        bonds, terminals = BondList(np.arange(many), sites), np.array([[first], [first + 1]])
        values, is_open = np.full(many, 2.0), np.ones(many, np.uint8)
        between = 1.0 if self.of_voxels is None else self.of_voxels
        values[: self.is_open.size], is_open[: self.is_open.size] = between, self.is_open
        joined = Circuit(bonds, first + 2, *terminals.astype(np.int32))
        return Flow(joined, is_open, conductances=values)

    @cached_property
    def currents(self) -> NDArray[np.float64]:
        """The share of the total current that flows in every open bond, float64 (n,).

        It is positive from the bond's first site to its second, and exactly 0 outside of the
        backbone; inside, it is 0 only in balanced bonds.
        """
        conductance, potentials = self._potentials
        if not conductance:
            return np.zeros(self._opened.size)
        first, second = potentials[self.circuit.joined.pairs[self._opened]].T
        shares = self._all_conductances[self._opened] * (first - second) / conductance
        return np.where(self.backbone, shares, 0.0)

    @property
    def largest_current(self) -> float:
        """The largest share of the current in a bond: 1 if there is a red bond."""
        return float(np.abs(self.currents).max(initial=0.0))

    def current_moment(self, power: int) -> float:
        """Return the sum over bonds of their share of the current to an integer power.

        For unit conductances the second moment is the resistance, and the fourth gives its noise.
        """
        if not isinstance(power, int | np.integer) or power < 0:
            raise InputError(f"power = {power!r}, but it must be an integer of at least 0")
        return float(sum_powers(self.currents[self.backbone], power))

    @cached_property
    def _potentials(self) -> tuple[float, NDArray[np.float64]]:
        net = self.circuit.joined
        if not self.num_backbone:
            return 0.0, np.zeros(net.starts.size - 1)
        return solve(net, self._block, self._all_conductances)

    @property
    def _all_conductances(self) -> NDArray[np.float64]:
        if self.conductances is None:
            return np.ones(self.is_open.size)
        return self.conductances

    @cached_property
    def _opened(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.is_open)

    @cached_property
    def _key(self) -> NDArray[np.uint64]:
        return word_key(self.seed, self.sample)

    @cached_property
    def _bridges(self) -> tuple[int, NDArray[np.uint32], NDArray[np.uint64]]:
        """The number of bridges, the bonds of a spanning forest by site, and their words."""
        bonds, points = self.circuit.bonds, self.circuit.num_points
        via, words = np.empty(points, np.uint32), np.empty(points, np.uint64)
        given = bonds.sites, bonds.places, self.is_open, self._key
        return int(count_bridges(*given, via, words)), via, words

    @cached_property
    def _trails(self) -> tuple[bool, int, Forest]:
        """Whether the terminals are connected, the number of red bonds, and the forest."""
        forest = make_forest(self.circuit.joined)
        connected, red = find_trails(self.circuit.joined, self.is_open, self._key, forest)
        return bool(connected), int(red), forest

    def _with_word(
        self, word: np.uint64, via: NDArray[np.uint32], words: NDArray[np.uint64]
    ) -> NDArray[np.bool_]:
        """Return which open bonds are in a forest and have this word."""
        marks = self._no_marks()
        marks[via[(words == word) & (via < ROOT)]] = 1
        return self._of_open(marks)

    @cached_property
    def _trail_marks(self) -> Marks:
        return self._inside(self._trails[2].inside)

    @cached_property
    def _block(self) -> Marks:
        net = self.circuit.joined
        block = make_block(net)
        find_block(net, self.is_open, block)
        return self._inside(block.inside)

    @cached_property
    def _shortest(self) -> tuple[int, int, Marks]:
        net = self.circuit.joined
        distances = Distances(*np.empty((2, net.starts.size - 1), np.uint32))
        marks = self._no_marks()
        length = find_length(net, self.is_open, distances)
        count = mark_shortest(net, self.is_open, distances, marks) if length else 0
        return int(length), int(count), marks

    def _inside(self, inside: Marks) -> Marks:
        marks = self._no_marks()
        mark_inside(self.circuit.joined, self.is_open, inside, marks)
        return marks

    def _count_sites(self, marks: Marks) -> int:
        touched = np.zeros(self.circuit.num_points, np.uint8)
        return int(count_sites(self.circuit.bonds.sites, marks, touched))

    def _no_marks(self) -> Marks:
        return np.zeros(self.is_open.size, np.uint8)

    def _of_open(self, marks: Marks) -> NDArray[np.bool_]:
        """Return marks of all bonds as flags of the open ones."""
        return np.asarray(marks[self._opened] != 0)
