"""A plain judge of minimum spanning trees, and the cases that Guo's Prim is tried on."""

import numpy as np
from helpers import lattice

from percolab.bonds.words import uniform_number
from percolab.lattices.bethe import bethe_topology
from percolab.lattices.graph import graph_topology

#: Lattice: shape and boundary; seams, vacant points, parallel bonds and self-loops over seams.
LATTICES = {
    "square": ((5, 4), ("periodic", "open")),
    "kagome": ((4, 6), ("open", "periodic")),
    "cubic": ((2, 3, 2), ("periodic",) * 3),
    "triangular": ((1, 7), ("periodic",) * 2),
}
#: Graphs: sites and bonds.
GRAPHS = {
    "one site": (1, [(0, 0)]),
    "no bonds": (3, []),
    "forest": (9, [(0, 5), (5, 7), (7, 0), (1, 2), (2, 8), (8, 1), (4, 4), (6, 3)]),
    "parallel": (6, [(0, 1), (1, 0), (0, 1), (2, 1), (1, 2), (3, 2), (3, 4), (4, 3), (3, 3), (5, 4),
                     (5, 4), (5, 4), (0, 5)]),
    "hub": (24, [(0, i) for i in range(1, 24)] + [(i, i % 7 + 1) for i in range(8, 24)]),
}  # fmt: skip


def random_graph(rng, sites, bonds):
    """Return the topology of random pairs, self-loops and parallel bonds among them."""
    return graph_topology(sites, rng.integers(0, sites, (bonds, 2)))


def topologies():
    """Yield (name, topology) of all cases."""
    for name, (shape, boundary) in LATTICES.items():
        yield name, lattice(name).topology(shape, boundary)
    for name, (sites, bonds) in GRAPHS.items():
        yield name, graph_topology(sites, bonds)
    yield "bethe", bethe_topology(3)


def numbers_of(topology):
    """Return the numbers of all bonds, with their ends: int64 (bonds, 3)."""
    k, owner, other = topology.bonds().T
    return np.column_stack([32 * topology.num_words * k + owner, owner, other])


def judged_words(topology, keys):
    """Return the tree of keys by sorting all bonds and joining sites, uint32 (1, words)."""
    root = list(range(topology.num_points))

    def find(site):
        while root[site] != site:
            site = root[site]
        return site

    words = np.zeros((1, topology.exists.size), np.uint32)
    bonds = sorted(numbers_of(topology).tolist(), key=lambda bond: (int(keys[bond[0]]), bond[0]))
    for number, owner, other in bonds:
        a, b = find(owner), find(other)
        if a != b:
            root[a] = b
            words[0, number >> 5] |= np.uint32(1 << (number & 31))
    return words


def sample_keys(topology, generator, seed, sample):
    """Return the keys of a sample's bonds by their numbers, from the definition."""
    keys = np.zeros(32 * topology.exists.size, np.uint64)
    for number in numbers_of(topology)[:, 0]:
        word, bit = np.uint32(number >> 5), np.uint32(number & 31)
        args = np.uint64(seed), np.uint64(sample), word, bit
        keys[number] = uniform_number(generator, *args)
    return keys


def tied_keys(topology, rng, kinds):
    """Return keys of which there are few different ones, the largest there is among them."""
    values = np.append(rng.integers(0, 2**64, kinds - 1, np.uint64), np.uint64(2**64 - 1))
    return values[rng.integers(0, kinds, 32 * topology.exists.size)]
