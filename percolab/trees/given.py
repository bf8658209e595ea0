"""The minimum spanning tree of given weights: one tree, with its bonds, weights and words.

Weights belong to bonds: the array for a lattice has one for each (class, owner), the list for a
graph one for each bond.  Bonds of equal weight are ordered by their numbers; a bond of infinite
weight is in no tree.
"""

import math
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.errors import InputError, import_networkx
from percolab.kernels.device import Device
from percolab.kernels.memory import check_free
from percolab.lattices.extent import Extent
from percolab.lattices.graph import Graph
from percolab.lattices.graph_files.weights import make_weights
from percolab.lattices.shown import Shown
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology, pack_bits, unpack_bits
from percolab.trees import DEFAULT_TREE_METHOD, new_trees, tree_class
from percolab.trees.readings import find_trunk
from percolab.trees.readings_cpu import list_tree
from percolab.trees.weights import SOLID, BondWeights, given_weights, make_bond_keys, values_to_keys

#: A sample's weights are keys times this unit.
_UNIT = 2.0**-63
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, eq=False, repr=False)
class SpanningTree(Shown):
    """A minimum spanning tree, or a forest with one tree per connected component.

    bonds:     int32 (n, 2), the two sites of every bond, the smaller first, in ascending order of
               weight and, for equal weights, of bond number
    weights:   int64 or float64 (n,), of these bonds; for a sample its uniform numbers as float64
    numbers:   uint32 (n,), numbers of these bonds in the topology: 32 * word + bit
    words:     uint32 (num_classes, num_words), one bit per bond, in the format of open bonds
    method:    the algorithm that found it
    topology:  sites and bonds of the structure
    structure: the lattice or graph, with its boundary; None if only a topology was given
    names:     the sites' names, if they have any
    notes:     remarks on the input, one line each
    order:     the weights that order all bonds

    Sites are numbered as in a graph's file; those of a lattice are its grid points.
    """

    bonds: NDArray[np.int32]
    weights: NDArray[Any]
    numbers: NDArray[np.uint32]
    words: NDArray[np.uint32]
    method: str
    topology: Topology = field(repr=False)
    structure: Structure | None = None
    boundary: tuple[str, ...] = ()
    names: tuple[str, ...] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    order: BondWeights = field(default=given_weights(np.empty(0, np.uint64)), repr=False)

    def _facts(self) -> dict[str, Any]:
        facts = self.to_dict()
        return {name: facts[name] for name in ("weight", "bonds", "sites", "parts", "method")}

    @cached_property
    def weight(self) -> int | float:
        """The sum of all weights: exact for integers, and the float nearest to it for floats.

        InputError: it is larger than floats are.
        """
        values = self.weights.tolist()
        try:
            return math.fsum(values) if self.weights.dtype.kind == "f" else sum(values)
        except OverflowError as error:
            raise InputError(
                f"weights: their sum is beyond {sys.float_info.max:.4g}; solid bonds have inf"
            ) from error

    @property
    def has_solid(self) -> bool:
        """Whether there are bonds of infinite weight."""
        return self.weights.dtype.kind == "f" and bool((self.order.given == SOLID).any())

    @property
    def num_sites(self) -> int:
        """Number of sites, without vacant grid points."""
        return self.topology.num_sites

    @property
    def parts(self) -> int:
        """Number of trees: 1 if all sites are connected."""
        return self.num_sites - len(self.bonds)

    def trunk(self, axis: int = 0) -> NDArray[np.int64]:
        """Return the bonds on the path between the two sides of an axis.

        int64, indices in ``bonds``, ascending; for a graph the sides are its source and target.
        Empty if they are not connected.  InputError: there are no two sides.
        """
        if axis not in self.topology.open_axes:
            raise InputError(f"axis {axis} has no two sides; open axes: {self.topology.open_axes}")
        on_path = find_trunk(self.topology, self.order, self.words.ravel(), axis)
        return np.flatnonzero(np.isin(self.numbers, on_path))

    def to_networkx(self) -> Any:
        """Return a networkx graph of all sites, bonds with the attribute "weight".

        Nodes are the sites' names, or their numbers.  InputError: networkx is not installed.
        """
        networkx = import_networkx("a graph of the tree")
        graph = networkx.Graph()
        sites = np.flatnonzero(unpack_bits(self.topology.occupied, self.topology.num_points))
        graph.add_nodes_from(map(self.site_name, sites.tolist()))
        for (one, other), weight in zip(self.bonds.tolist(), self.weights.tolist(), strict=True):
            graph.add_edge(self.site_name(one), self.site_name(other), weight=weight)
        return graph

    def to_sparse(self) -> Any:
        """Return a scipy.sparse.coo_array with every weight once, at (smaller, larger site).

        A weight 0 is stored like any other.
        """
        from scipy.sparse import coo_array

        shape = (self.topology.num_points,) * 2
        return coo_array((self.weights, (self.bonds[:, 0], self.bonds[:, 1])), shape=shape)

    def site_name(self, site: int) -> str | int:
        """Return a site's name, or its number if sites have no names."""
        return site if self.names is None else self.names[site]

    def to_dict(self) -> dict[str, Any]:
        """Return a summary of the tree as plain JSON values."""
        return {
            "weight": self.weight,
            "bonds": len(self.bonds),
            "sites": self.num_sites,
            "parts": self.parts,
            "integers": self.weights.dtype.kind != "f",
            "method": self.method,
        }


def keys_from_array(topology: Topology, values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the keys of all bonds of a topology from an array with a weight for each.

    values: (num_classes, ...), the owner's grid point last axis first: [k, y, x] is the weight of
    the bond of class k that the site (x, y) owns.  Entries without a bond are not used.

    InputError: too few or too many values, or a bond whose weight is NaN, minus infinity, or an
    integer outside of int64.
    """
    points, classes = topology.num_points, topology.num_classes
    if values.size != classes * points or len(values) != classes:
        expected = (classes, *(topology.shape[::-1] or (points,)))
        raise InputError(
            f"weights have the shape {values.shape}, but those of the bonds have {expected}"
        )
    flat = values.reshape(classes, points)
    exists = np.stack([unpack_bits(words, points) for words in topology.exists])

    def where(n: int) -> str:
        klass, owner = np.argwhere(exists)[n].tolist()
        place = np.unravel_index(owner, topology.shape[::-1] or (points,))
        return f"weights[{', '.join(str(int(each)) for each in (klass, *place))}]: "

    make_weights(flat[exists], where)
    keys = np.zeros((classes, 32 * topology.num_words), np.uint64)
    keys[:, :points] = values_to_keys(np.where(exists, flat, flat.dtype.type(0)))
    return keys.ravel()


def keys_from_list(graph: Graph, values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the keys of all bonds of a graph, as ``keys_from_array`` does.

    values: (num_bonds,), in the order of its bonds.  InputError: another number of values, NaN, or
    minus infinity.
    """
    if values.shape != (graph.num_bonds,):
        raise InputError(
            f"{values.size} weights in the shape {values.shape}, but {graph.name} has "
            f"{graph.num_bonds} bonds"
        )
    topology = graph.topology((graph.num_sites,))
    keys = np.zeros(32 * topology.num_bond_words, np.uint64)
    keys[graph.bond_numbers()] = values_to_keys(values)
    return keys


def keys_to_values(keys: NDArray[np.uint64], kind: str) -> NDArray[Any]:
    """Return the values that have these keys: the inverse of ``values_to_keys``.

    kind: NumPy's kind of the values, "i", "u", "b" or "f".

    >>> keys_to_values(values_to_keys([-1.5, 0.0, 3.25]), "f").tolist()
    [-1.5, 0.0, 3.25]
    """
    if kind in "bu":
        return keys.astype(np.int64)
    if kind == "i":
        return (keys ^ _SIGN).view(np.int64)
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def check_tree_memory(extent: Extent, method: str | None, device: str) -> None:
    """Raise InputError unless a tree of given weights, with topology and keys, fits into memory."""
    target = Device.parse(device).resolve()
    needed = tree_class(method, target.kind).memory(extent, 1, given=True)
    made = extent.topology_bytes + extent.building_bytes + 3 * 8 * 32 * extent.num_words
    for where, bytes_needed in ((Device("cpu"), needed.host + made), (target, needed.device)):
        what, of = f"the tree of {extent.num_points} sites needs", f" of memory on {where}"
        check_free(what, bytes_needed, where.free_memory(), of)


def find_tree(
    topology: Topology,
    weights: BondWeights,
    kind: str = "",
    *,
    method: str | None = None,
    device: str = "cpu",
    **facts: Any,
) -> SpanningTree:
    """Return the minimum spanning tree of a topology.

    kind: NumPy's kind of the values of given keys; "" for a sample's uniform numbers.
    facts: further attributes of the tree: structure, boundary, names, notes.
    InputError: an unknown method or device, or too little memory.
    """
    target = Device.parse(device).resolve()
    with target.driven():
        trees = new_trees(method, target.kind, topology)
        if weights.given.size:
            trees.build_given(weights.given)
        else:
            sample = np.array([weights.sample], np.uint64)
            trees.build(weights.generator, int(weights.seed), sample)
        words = trees.words(1)[0]
    if kind == "f":
        # Bonds of infinite weight come last; without them the tree may become a forest.
        words &= pack_bits(weights.given < SOLID)
    count = int(np.bitwise_count(words).sum(dtype=np.int64))
    numbers, ends = np.empty(count, np.uint32), np.empty((count, 2), np.int32)
    list_tree(
        words, make_adjacency(topology), numbers, ends, np.zeros(topology.num_points, np.int32)
    )
    keys = make_bond_keys(weights, numbers)
    # Bonds are listed by ascending number, so a stable sort orders equal keys.
    order = np.argsort(keys, kind="stable")
    structure = facts.get("structure")
    inner = structure.inner_numbers if isinstance(structure, Graph) else None
    if inner is not None:
        ends = np.argsort(inner).astype(np.int32)[ends]
    return SpanningTree(
        bonds=np.sort(ends[order], axis=1),
        weights=keys_to_values(keys[order], kind) if kind else keys[order] * _UNIT,
        numbers=numbers[order],
        words=words.reshape(topology.exists.shape),
        method=method or DEFAULT_TREE_METHOD[target.kind],
        topology=topology,
        order=weights,
        **facts,
    )
