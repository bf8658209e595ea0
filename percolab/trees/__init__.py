"""Minimum spanning trees and invasion percolation.  Here: what ways to find a tree have in common.

All ways give the same bonds; :mod:`percolab.trees.weights` has their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from percolab.kernels.registry import load, load_class
from percolab.measure.columns import open_axes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from percolab.kernels.memory import Memory
    from percolab.lattices.extent import Extent
    from percolab.lattices.topology import Topology
    from percolab.trees.weights import BondWeights


class Trees(Protocol):
    """The minimum spanning trees of up to ``capacity`` samples of one topology, on one device.

    Of a topology that is not connected it is a forest: one tree for each of its clusters with all
    bonds open.  A vacant point is in none.
    """

    topology: Topology
    capacity: int

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes; given: for given keys, which are not counted."""

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        """Find the trees of samples, uint64 (n,) with n <= capacity; return n."""

    def build_given(self, keys: NDArray[np.uint64]) -> int:
        """Find the tree of given keys, uint64 (32 * words of all classes,); return 1."""

    def words(self, entries: int) -> NDArray[np.uint32]:
        """Return the bonds of the first trees, uint32 (entries, words of all classes).

        One bit a bond, as everywhere; bits of bonds that do not exist are 0.
        """


class OneTree:
    """What finds one tree at a time on the CPU (:class:`Trees`): a way has ``find``.

    tree: uint32 (words of all classes,), the bonds of the last one
    """

    capacity = 1

    def __init__(self, topology: Topology) -> None:
        import numpy as np

        self.topology = topology
        self.tree = np.zeros(topology.num_bond_words, np.uint32)

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        from percolab.trees.weights import make_sample_weights

        (sample,) = samples
        return self._build(make_sample_weights(generator, seed, int(sample)))

    def build_given(self, keys: NDArray[np.uint64]) -> int:
        from percolab.trees.weights import given_weights

        return self._build(given_weights(keys))

    def _build(self, weights: BondWeights) -> int:
        self.tree[:] = 0
        self.find(weights)
        return 1

    def find(self, weights: BondWeights) -> None:
        """Write the tree by weights to ``tree``, which is cleared."""
        raise NotImplementedError

    def words(self, entries: int) -> NDArray[np.uint32]:
        return self.tree[None].copy()


@dataclass(frozen=True)
class TreeEntry:
    """A way to find trees: its name, what it is, and its class for each kind of device."""

    name: str
    summary: str
    classes: dict[str, str]
    # By kind of device the class that reads trees where they lie; without one the host reads their
    # words.  paper: the paper whose comparison it is here for (:mod:`percolab.papers`)
    readings: dict[str, str] = field(default_factory=dict)
    paper: str = ""


TREE_METHODS = {
    entry.name: entry
    for entry in (
        TreeEntry(
            "kruskal",
            "bonds in ascending order, joined by union-find",
            {"cpu": "trees.kruskal:Kruskal"},
        ),
        TreeEntry(
            "boruvka",
            "every cluster takes its least bond outwards, in tiles first, then over their borders",
            {"cpu": "papers.guo2011.plain:Boruvka", "cuda": "trees.boruvka_cuda:BoruvkaCuda"},
            {"cuda": "trees.readings_cuda:ReadingsBatch"},
        ),
        TreeEntry(
            "prim",
            "Guo 2011: a site after another, each round a minimum of all candidates",
            {"cpu": "papers.guo2011.prim:Prim", "cuda": "papers.guo2011.prim_cuda:PrimCuda"},
            paper="guo2011",
        ),
        TreeEntry(
            "prim:persistent",
            "the same in one launch, many graphs at once",
            {"cuda": "papers.guo2011.prim_cuda:PersistentPrim"},
            paper="guo2011",
        ),
        TreeEntry(
            "heap",
            "Prim with a binary heap, the reference",
            {"cpu": "papers.guo2011.plain:Heap"},
            paper="guo2011",
        ),
    )
}

#: What runs when none is named: the fastest of each kind of device.
DEFAULT_TREE_METHOD = {"cpu": "kruskal", "cuda": "boruvka"}


def tree_class(name: str | None, kind: str) -> Any:
    """Return the class of a way to find trees on a kind of device, "cpu" or "cuda".

    None names the default.  InputError: unknown, or not available on that kind of device.
    """
    chosen = DEFAULT_TREE_METHOD[kind] if name is None else name
    return load_class("tree method", TREE_METHODS, chosen, kind)


def readings_class(name: str | None, kind: str, extent: Extent, boundary: Sequence[str]) -> Any:
    """Return the class that reads trees of a lattice where they lie, or None.

    What lies between two sides is read on the host, and so are trees of a graph, whose sites may
    have any number of bonds.
    """
    place = TREE_METHODS[name or DEFAULT_TREE_METHOD[kind]].readings.get(kind)
    if place is None or extent.is_stored or open_axes(boundary):
        return None
    return load(place)


def new_trees(name: str | None, kind: str, topology: Topology, *, capacity: int = 1) -> Trees:
    """Return what finds trees of a topology on a kind of device, "cpu" or "cuda".

    name: one of :data:`TREE_METHODS`, or None for the fastest.  capacity: the samples requested
    side by side; its own ``capacity`` may be smaller.  InputError as for :func:`tree_class`;
    ValueError: more bonds than :data:`percolab.trees.weights.MOST_BONDS`.
    """
    from percolab.trees.weights import MOST_BONDS

    if 32 * topology.num_bond_words > MOST_BONDS:
        raise ValueError(f"{32 * topology.num_bond_words} bond numbers do not fit in 32 bits")
    trees: Trees = tree_class(name, kind)(topology, capacity)
    return trees
