"""What flows in one sample between two terminals, each number found when it is first asked for."""

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
    mark_forest,
    virtual_word,
    word_key,
)
from percolab.flows.net import BondList, Net, count_sites, make_net, mark_inside
from percolab.flows.paths import find_length, make_distances, mark_shortest
from percolab.lattices.shown import Shown

Marks = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Circuit:
    """All bonds of a topology, open or not, and the two terminals between which something flows.

    bonds:          :func:`percolab.flows.net.list_bonds`
    num_points:     sites are numbered below it
    source, target: int32, the sites of each terminal; empty where there are none
    """

    bonds: BondList
    num_points: int
    source: NDArray[np.int32]
    target: NDArray[np.int32]

    def __post_init__(self) -> None:
        both = np.intersect1d(self.source, self.target)
        if both.size:
            raise InputError(
                f"site {both[0]} is in both terminals, but what flows needs two that are apart"
            )

    @cached_property
    def net(self) -> Net:
        """The bonds between sites."""
        return make_net(self.bonds, self.num_points)

    @cached_property
    def joined(self) -> Net:
        """The bonds between sites and the two terminals; InputError if there are no terminals."""
        if not (self.source.size and self.target.size):
            raise InputError("there are no terminals between which anything flows")
        return make_net(self.bonds, self.num_points, self.source, self.target)


@dataclass(frozen=True, eq=False, repr=False)
class Flow(Shown):
    """What flows through open bonds between two terminals.

    circuit: the bonds, open or not.  is_open: uint8 (m,), which are.  seed, sample: of the words by
    which bridges are found.

    An array of bonds is bool (n,), an entry for each of the n open bonds in the order of ``bonds``.
    Where the terminals are not connected, nothing flows: numbers are 0.

    InputError: what needs terminals where there are none.
    """

    circuit: Circuit
    is_open: Marks
    seed: int = 1
    sample: int = 0

    def _facts(self) -> dict[str, Any]:
        facts = {"open bonds": int(self.is_open.sum()), "bridges": self.num_bridges}
        if self.circuit.source.size:
            facts |= {"connected": self.connected, "backbone bonds": self.num_backbone}
        return facts

    @cached_property
    def bonds(self) -> NDArray[np.int32]:
        """The two sites of every open bond, int32 (n, 2)."""
        found: NDArray[np.int32] = self.circuit.bonds.sites[self._opened]
        return found

    @cached_property
    def bridges(self) -> NDArray[np.bool_]:
        """Bonds without which their cluster falls into two."""
        forest, marks = self._bridges[1], self._no_marks()
        mark_forest(self.circuit.net, forest, forest.order.size, np.uint64(0), marks)
        return self._of_open(marks)

    @property
    def num_bridges(self) -> int:
        """Bridges among the open bonds."""
        return self._bridges[0]

    @property
    def connected(self) -> bool:
        """Whether open bonds connect the terminals."""
        return self._trails[0]

    @property
    def num_red(self) -> int:
        """Red bonds: each would disconnect the terminals if it were closed."""
        return self._trails[1]

    @cached_property
    def red(self) -> NDArray[np.bool_]:
        """The red bonds: each would disconnect the terminals if it were closed."""
        _, _, count, forest = self._trails
        word, marks = np.uint64(virtual_word(self._key)), self._no_marks()
        if self.connected:
            mark_forest(self.circuit.joined, forest, count, word, marks)
        return self._of_open(marks)

    @property
    def num_trails(self) -> int:
        """Bonds on trails."""
        return int(self._trail_marks.sum())

    @cached_property
    def trails(self) -> NDArray[np.bool_]:
        """Bonds on trails: ways between the terminals that use no bond twice."""
        return self._of_open(self._trail_marks)

    @cached_property
    def num_backbone(self) -> int:
        """Bonds of the backbone."""
        return int(self._block.sum())

    @cached_property
    def backbone(self) -> NDArray[np.bool_]:
        """Bonds on paths: ways between the terminals that visit no site twice."""
        return self._of_open(self._block)

    @property
    def num_backbone_sites(self) -> int:
        """Sites that bonds of the backbone have, those of the terminals among them."""
        return self._count_sites(self._block)

    @property
    def length(self) -> int:
        """Bonds of the shortest path between the terminals; 0 where there is none."""
        return self._shortest[0]

    @property
    def num_elastic(self) -> int:
        """Bonds of the elastic backbone."""
        return self._shortest[1]

    @property
    def num_elastic_sites(self) -> int:
        """Sites that bonds of the elastic backbone have."""
        return self._count_sites(self._shortest[2])

    @cached_property
    def elastic(self) -> NDArray[np.bool_]:
        """Bonds on shortest paths, the elastic backbone."""
        return self._of_open(self._shortest[2])

    @cached_property
    def _opened(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.is_open)

    @cached_property
    def _key(self) -> NDArray[np.uint64]:
        return word_key(self.seed, self.sample)

    @cached_property
    def _bridges(self) -> tuple[int, Forest]:
        forest = make_forest(self.circuit.net)
        return int(count_bridges(self.circuit.net, self.is_open, self._key, forest)), forest

    @cached_property
    def _trails(self) -> tuple[bool, int, int, Forest]:
        """Whether there is a connection, the red bonds, and the nodes of the forest."""
        forest = make_forest(self.circuit.joined)
        found = find_trails(self.circuit.joined, self.is_open, self._key, forest)
        return bool(found[0]), int(found[2]), int(found[1]), forest

    @cached_property
    def _trail_marks(self) -> Marks:
        return self._inside(self._trails[3].inside)

    @cached_property
    def _block(self) -> Marks:
        net = self.circuit.joined
        block = make_block(net)
        find_block(net, self.is_open, block)
        return self._inside(block.inside)

    @cached_property
    def _shortest(self) -> tuple[int, int, Marks]:
        net = self.circuit.joined
        distances, marks = make_distances(net), self._no_marks()
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
