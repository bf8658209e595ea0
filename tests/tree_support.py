"""Graphs and references for tests of minimum spanning trees."""

from __future__ import annotations

from itertools import product

import networkx
import numpy as np
from helpers import lattice
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from percolab.lattices.bethe import bethe_topology
from percolab.lattices.graph import graph_topology
from percolab.lattices.topology import Topology
from percolab.trees import TREE_METHODS, new_trees

CPU_TREES = tuple(name for name, entry in TREE_METHODS.items() if "cpu" in entry.classes)
#: Those that are here to be compared; prim has tests of its own.
COMPARED = tuple(name for name in CPU_TREES if name in ("kruskal", "boruvka", "heap"))


def numbers_of(topology: Topology) -> np.ndarray:
    """Return the numbers of all bonds, in the order of ``topology.bonds()``."""
    klass, owner, _ = topology.bonds().T
    return klass * 32 * topology.num_words + owner


def bonds_in(words: np.ndarray) -> list[int]:
    """Return the numbers of the bonds in the words of a tree, ascending."""
    octets = words.astype("<u4").view(np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little")).tolist()


def tree_of_keys(name: str, topology: Topology, keys: np.ndarray) -> list[int]:
    """Return the bonds of the tree that a method finds for given keys."""
    trees = new_trees(name, "cpu", topology)
    assert trees.build_given(keys) == 1
    return bonds_in(trees.words(1)[0])


def ranked_bonds(topology: Topology, keys: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return (rank from 1 on, number, owner, other end) of all bonds, in their order."""
    bonds, numbers = topology.bonds(), numbers_of(topology)
    order = np.lexsort([numbers, keys[numbers]])
    rows = zip(numbers[order].tolist(), *bonds[order, 1:].T.tolist())
    return [(rank, *row) for rank, row in enumerate(rows, start=1)]


def scipy_tree(topology: Topology, keys: np.ndarray) -> list[int]:
    """Return the bonds of scipy's tree; of parallel bonds it is shown the first in order."""
    first: dict[tuple[int, int], tuple[int, int]] = {}
    for rank, bond, i, j in ranked_bonds(topology, keys):
        if i != j:
            first.setdefault((min(i, j), max(i, j)), (rank, bond))
    points = (topology.num_points,) * 2
    if not first:
        return []
    ends, ranks = np.array(list(first)).T, np.array([rank for rank, _ in first.values()], float)
    found = minimum_spanning_tree(coo_array((ranks, tuple(ends)), shape=points).tocsr()).tocoo()
    by_rank = dict(first.values())
    return sorted(by_rank[int(rank)] for rank in found.data)


def networkx_tree(topology: Topology, keys: np.ndarray) -> list[int]:
    """Return the bonds of networkx's tree."""
    graph = networkx.MultiGraph()
    for rank, bond, i, j in ranked_bonds(topology, keys):
        graph.add_edge(i, j, weight=rank, bond=bond)
    found = networkx.minimum_spanning_edges(graph, keys=True)
    return sorted(data["bond"] for _, _, _, data in found)


def random_graph(random: np.random.Generator) -> Topology:
    """Return a small graph: often not connected, with parallel bonds and self-loops."""
    sites = int(random.integers(1, 14))
    bonds = int(random.integers(0, 3 * sites))
    return graph_topology(sites, random.integers(0, sites, (bonds, 2)))


def random_keys(random: np.random.Generator, topology: Topology) -> np.ndarray:
    """Return keys: all different, many equal, or equal in one half of their bits."""
    size, kind = 32 * topology.exists.size, random.integers(5)
    keys = random.integers(0, 2**64, size, np.uint64)
    if kind == 1:
        return keys % np.uint64(4)
    if kind == 2:
        return keys >> np.uint64(32) | np.uint64(7 << 32)
    if kind == 3:
        return keys % np.uint64(3) << np.uint64(32) | keys >> np.uint64(62)
    return np.full(size, 2**64 - 1, np.uint64) if kind == 4 else keys


def small_lattices(name: str):
    """Yield (case, topology) of a lattice, open, periodic and mixed, with odd sizes."""
    item = lattice(name)
    for boundary in product(("open", "periodic"), repeat=item.dimension):
        # The kinds of boundary of a long product tell nothing new.
        if item.dimension > 2 and len(set(boundary)) > 1 and boundary[0] == "open":
            continue
        points = {2: 15, 3: 7, 4: 4, 5: 3}[item.dimension]
        shape = tuple(
            max(points // cell, 1) * cell if kind == "periodic" else points + (axis == 0)
            for axis, (cell, kind) in enumerate(zip(item.cell, boundary))
        )
        yield (name, shape, boundary), item.topology(shape, boundary)


def bethe_lattices():
    """Yield (case, topology) of Bethe lattices in both numberings."""
    for z, numbering in product((3, 4), ("standard", "random")):
        yield (z, numbering), bethe_topology(5, coordination_number=z, numbering=numbering)
