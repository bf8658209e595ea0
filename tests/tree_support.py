"""What the tests of trees and levels share: plain references, graphs and values to compare."""

from itertools import product
from math import prod

import networkx
import numpy as np
from helpers import lattice
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from percolab.bonds.digits import fill_planes
from percolab.lattices.bethe import bethe_topology
from percolab.lattices.graph import graph_topology
from percolab.lattices.topology import Topology, unpack_bits
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


def keys_of_sample(generator: int, seed: int, sample: int, topology: Topology) -> np.ndarray:
    """Return the keys of a sample's bonds, uint64 by their numbers: their 63 digits."""
    words = topology.exists.size
    planes = np.empty((words, 63), np.uint32)
    for word in range(words):
        key = np.uint64(seed), np.uint64(sample)
        fill_planes(generator, *key, np.uint32(word), planes[word])
    keys = np.zeros((words, 32), np.uint64)
    for plane in planes.T:
        digits = plane[:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
        keys = keys << np.uint64(1) | digits.astype(np.uint64)
    return keys.ravel()


def tree_words(topology: Topology, keys: np.ndarray) -> np.ndarray:
    """Return the words of the tree of given keys, uint32 (words of all classes,)."""
    k, owner, other = topology.bonds().T
    numbers = k * 32 * topology.num_words + owner
    parents = list(range(topology.num_points))

    def root_of(i: int) -> int:
        while parents[i] != i:
            parents[i] = parents[parents[i]]
            i = parents[i]
        return i

    chosen = np.zeros(32 * topology.exists.size, bool)
    order = np.lexsort((numbers, keys[numbers]))
    for number, i, j in zip(*(each[order].tolist() for each in (numbers, owner, other))):
        i, j = root_of(i), root_of(j)
        if i != j:
            parents[i] = j
            chosen[number] = True
    return np.packbits(chosen, bitorder="little").view("<u4")


def assert_equal_sums(sums, trees, generator: int, seed: int, samples) -> None:
    """Assert that what was read off trees on CUDA is what their words tell."""
    topology = trees.topology
    k, owner, other = topology.bonds().T
    occupied = unpack_bits(topology.occupied, topology.num_points)
    for n, words in enumerate(trees.words(len(samples))):
        chosen = unpack_bits(words, 32 * words.size)
        keys = keys_of_sample(generator, seed, int(samples[n]), topology)[chosen].astype(object)
        assert sums.bonds[n] == chosen.sum()
        assert sums.weight[n] == sum((key + 2**30) >> 31 for key in keys.tolist())
        bins = np.bincount([key >> 57 for key in keys.tolist()], minlength=64)
        np.testing.assert_array_equal(sums.weights[n], bins)
        in_tree = chosen[k * 32 * topology.num_words + owner]
        ends = np.concatenate([owner[in_tree], other[in_tree]])
        degrees = np.bincount(ends, minlength=topology.num_points)[occupied]
        expected = np.bincount(degrees, minlength=sums.degrees.shape[1])
        np.testing.assert_array_equal(sums.degrees[n], expected)


#: Name, lattice, shape of the array, boundary, what the values are, above, values of bonds or not.
CASES = {
    "open": ("square", (7, 37), "open", "f4", False, False),
    "torus": ("square", (9, 34), "periodic", "f8", True, False),
    "one row": ("square", (1, 35), "periodic", "f4", False, False),
    "thin": ("cubic", (1, 6, 7), "periodic,open,open", "f4", True, False),
    "short": ("square", (2, 2), "periodic", "u1", False, False),
    "triangular": ("triangular", (8, 11), "periodic", "i2", True, False),
    "kagome": ("kagome", (6, 10), "periodic,open", "f2", False, False),
    "cubic": ("cubic", (5, 6, 7), "periodic", "f4", True, False),
    "mixed": ("cubic", (4, 5, 33), "open,periodic,open", "u8", False, False),
    "signs": ("cubic", (4, 3, 5), "periodic", "zeros", False, False),
    "solid": ("square", (12, 13), "periodic,open", "solid", True, False),
    "bonds": ("square", (6, 35), "periodic", "f4", False, True),
    "tied bonds": ("triangular", (5, 7), "periodic,open", "u1", True, True),
}


def given_values(shape, kind, *, above=False, seed=0):
    """Return values of a type; of whole numbers few, which tie.

    "zeros": -1, -0.0, 0.0 and 1; "solid": a third of the sites never opens.
    """
    rng = np.random.default_rng(seed)
    if kind == "zeros":
        return rng.choice(np.array([-1, -0.0, 0.0, 1], np.float32), shape)
    if kind == "solid":
        values = rng.normal(size=shape)
        values[rng.random(shape) < 0.3] = -np.inf if above else np.inf
        return values
    if np.dtype(kind).kind == "f":
        return rng.normal(size=shape).astype(kind)
    largest = {"u8": 2**63, "i2": -9, "u1": 0}[kind]
    few = rng.integers(0, max(prod(shape) // 8, 4), shape)
    return np.array(largest, kind) + few.astype(kind)


def call(name, seed=0):
    """Return the arguments of :func:`percolab.threshold` of a case."""
    lattice, shape, boundary, kind, above, of_bonds = CASES[name]
    if of_bonds:
        shape = ({"square": 2, "triangular": 3}[lattice], *shape)
    values = given_values(shape, kind, above=above, seed=seed)
    return {"lattice": lattice, "weights": values, "boundary": boundary, "above": above}


def record(found):
    """Return all that is found as plain JSON values, with the places and values of paths."""
    paths = {
        axis: [item.path.places.tolist(), item.path.values.tolist()]
        for axis, item in found.axes.items()
        if item is not None
    }
    return found.to_dict() | {"paths": paths}
