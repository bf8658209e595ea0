"""A plain reference of trees: all bonds sorted by (key, number), joined one after another."""

import numpy as np

from percolab.bonds.digits import fill_planes
from percolab.lattices.topology import Topology, unpack_bits


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
