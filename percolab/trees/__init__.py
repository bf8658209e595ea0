"""Minimum spanning trees and invasion percolation.  Here: the interface of all methods.

All methods give the same bonds; :mod:`percolab.trees.weights` defines their order.
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

    If the topology is not connected, the result is a forest with one tree for each cluster of the
    topology with all bonds open.  Vacant points are in no tree.
    """

    topology: Topology
    capacity: int

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        """Return the memory needed; given: for given keys, without the memory of the keys."""

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        """Find the trees of samples, uint64 (n,) with n <= capacity; return n."""

    def build_given(self, keys: NDArray[np.uint64]) -> int:
        """Find the tree of given keys, uint64 (32 * words of all classes,); return 1."""

    def words(self, entries: int) -> NDArray[np.uint32]:
        """Return the bonds of the first trees, uint32 (entries, words of all classes).

        One bit per bond, as in all bond words; bits of bonds that do not exist are 0.
        """


class OneTree:
    """Base of methods (:class:`Trees`) that find one tree at a time on the CPU, by ``find``.

    tree: uint32 (words of all classes,), the bonds of the last tree
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
        """Write the tree for these weights to ``tree``, whose bits are all 0 before."""
        raise NotImplementedError

    def words(self, entries: int) -> NDArray[np.uint32]:
        return self.tree[None].copy()


@dataclass(frozen=True)
class TreeEntry:
    """A method to find trees: its name, a description, and its class for each kind of device."""

    name: str
    summary: str
    classes: dict[str, str]
    # The class that reads trees in place, by kind of device; without one the host reads their
    # words.  paper: the paper that the method is here to reproduce (:mod:`percolab.papers`)
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

#: The default method: the fastest on each kind of device.
DEFAULT_TREE_METHOD = {"cpu": "kruskal", "cuda": "boruvka"}


def tree_class(name: str | None, kind: str) -> Any:
    """Return the class of a method to find trees on a kind of device, "cpu" or "cuda".

    None selects the default.  InputError: unknown, or not available on that kind of device.
    """
    chosen = DEFAULT_TREE_METHOD[kind] if name is None else name
    return load_class("tree method", TREE_METHODS, chosen, kind)


def readings_class(name: str | None, kind: str, extent: Extent, boundary: Sequence[str]) -> Any:
    """Return the class that reads trees of a lattice in place on the device, or None.

    Paths between two sides are read on the host, and so are trees of a graph, whose sites may have
    any number of bonds.
    """
    place = TREE_METHODS[name or DEFAULT_TREE_METHOD[kind]].readings.get(kind)
    if place is None or extent.is_stored or open_axes(boundary):
        return None
    return load(place)


def new_trees(name: str | None, kind: str, topology: Topology, *, capacity: int = 1) -> Trees:
    """Return an object that finds trees of a topology on a kind of device, "cpu" or "cuda".

    name: one of :data:`TREE_METHODS`, or None for the fastest.  capacity: the number of samples
    requested at a time; the result's may be smaller.  InputError as for :func:`tree_class`;
    ValueError: more bonds than :data:`percolab.trees.weights.MOST_BONDS`.
    """
    from percolab.trees.weights import MOST_BONDS

    if 32 * topology.num_bond_words > MOST_BONDS:
        raise ValueError(f"{32 * topology.num_bond_words} bond numbers do not fit in 32 bits")
    trees: Trees = tree_class(name, kind)(topology, capacity)
    return trees
