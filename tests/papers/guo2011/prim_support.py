"""The cases that Guo's Prim is tried on, and the comparison with plain sorting."""

import numpy as np
from helpers import lattice
from tree_support import keys_of_sample, tree_words

from percolab.lattices.bethe import bethe_topology
from percolab.lattices.graph import graph_topology

SEED = 2**63 + 5
#: Lattice: shape and boundary; periodic boundaries, vacant points, parallel bonds and self-loops
#: over periodic boundaries.
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
    for name, (shape, boundary) in LATTICES.items():
        yield name, lattice(name).topology(shape, boundary)
    for name, (sites, bonds) in GRAPHS.items():
        yield name, graph_topology(sites, bonds)
    yield "bethe", bethe_topology(3)


def tied_keys(topology, rng, kinds):
    """Return keys of which there are few different ones, the largest there is among them."""
    values = np.append(rng.integers(0, 2**64, kinds - 1, np.uint64), np.uint64(2**64 - 1))
    return values[rng.integers(0, kinds, 32 * topology.exists.size)]


def assert_given_trees(trees, topology, rng, kinds):
    """Assert that trees of given keys with so many different values each are the reference's."""
    for count in kinds:
        keys = tied_keys(topology, rng, int(count))
        assert trees.build_given(keys) == 1
        np.testing.assert_array_equal(trees.words(1)[0], tree_words(topology, keys))


def assert_sampled_trees(trees, topology):
    """Assert the same of samples, as many at once as there may be."""
    samples = np.array([7, 2**40, 8][: trees.capacity], np.uint64)
    for generator in (0, 1):
        assert trees.build(generator, SEED, samples) == samples.size
        for words, sample in zip(trees.words(samples.size), samples, strict=True):
            keys = keys_of_sample(generator, SEED, int(sample), topology)
            np.testing.assert_array_equal(words, tree_words(topology, keys))
