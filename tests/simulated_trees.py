"""Runs trees in CUDA's simulator and compares them with a plain reference."""

from unittest.mock import patch

import numpy as np
from helpers import lattice
from tree_support import assert_equal_sums, keys_of_sample, tree_words

from percolab.bonds.words import GENERATORS
from percolab.lattices.bethe import bethe_topology
from percolab.lattices.graph import graph_topology
from percolab.trees import boruvka_cuda, rounds_cuda, weights
from percolab.trees.boruvka_cuda import BoruvkaCuda
from percolab.trees.readings_cuda import ReadingsBatch

#: Lattice: shapes and boundaries, across tiles and words, and smaller than a tile.
CASES = {
    "square": (((17, 5), "periodic"), ((2, 1), "periodic")),
    "open": (((19, 9), "open"),),
    "triangular": (((11, 9), "periodic"),),
    "honeycomb": (((18, 6), "periodic"),),
    "kagome": (((10, 6), "open"),),
    "cubic": (((5, 4, 3), "periodic"),),
    "hypercubic_4d": (((2, 3, 2, 3), "open"),),
}


def topologies(name):
    if name == "graph":
        bonds = [(i, (7 * i + 3) % 50) for i in range(50)] + [(4, 4), (1, 2), (2, 1), (2, 1)]
        yield graph_topology(60, bonds)
        yield graph_topology(1, [(0, 0)])
        yield bethe_topology(3)
        return
    item = lattice("square" if name == "open" else name)
    for shape, boundary in CASES[name]:
        yield item.topology(shape, (boundary,) * item.dimension)


def compare_samples(topology, generator, batches=((3, 4), (5,)), **options):
    """Compare trees of samples, and their sums, batch by batch."""
    trees = BoruvkaCuda(topology, 2, **options)
    readings = ReadingsBatch(trees)
    for samples in batches:
        assert trees.build(generator, 2**63 + 7, np.array(samples, np.uint64)) == len(samples)
        for found, sample in zip(trees.words(len(samples)), samples, strict=True):
            keys = keys_of_sample(generator, 2**63 + 7, sample, topology)
            np.testing.assert_array_equal(found, tree_words(topology, keys))
        assert_equal_sums(readings.read(len(samples)), trees, generator, 2**63 + 7, samples)


def compare_given(topology, rng):
    """Compare trees of keys that tie: in all digits, in their prefixes, and in none."""
    trees, size = BoruvkaCuda(topology), 32 * topology.exists.size
    few = rng.integers(0, 3, size).astype(np.uint64)
    for keys in (
        few,
        few << np.uint64(40) | rng.integers(0, 2, size).astype(np.uint64),
        weights.values_to_keys(rng.standard_normal(size)),
    ):
        assert trees.build_given(keys) == 1
        np.testing.assert_array_equal(trees.words(1)[0], tree_words(topology, keys))


def main(name):
    """Compare all cases of a lattice, or of graphs."""
    rng = np.random.default_rng(7)
    for number, topology in enumerate(topologies(name)):
        generator = list(GENERATORS.values())[number % 2]
        compare_samples(topology, generator)
        compare_given(topology, rng)
        # The others show it as well, on tiles and without.
        if number == 0 and name not in ("square", "open"):
            with patch.object(rounds_cuda, "KEPT_DIGITS", 0xE0000000):
                compare_samples(topology, generator, ((6, 7),))
            # Lists without room for what tiles leave are made anew.
            with patch.object(boruvka_cuda, "estimate_undecided_bonds", lambda points: 0):
                compare_samples(topology, generator, ((6, 7),))
            with patch.multiple(boruvka_cuda, LIGHT_ROUNDS=1, ALL_ROUNDS=1):
                compare_samples(topology, generator, ((6, 7),), tiled=False)
