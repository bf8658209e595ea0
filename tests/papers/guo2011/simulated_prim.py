"""Runs Guo's Prim and its primitive in CUDA's simulator beside a plain judge; a test starts it."""

import numpy as np
from prim_support import judged_words, random_graph, sample_keys, tied_keys, topologies

from percolab.papers.guo2011.min_reduction import MinReduction, blocks_for, cuda, min_reduction
from percolab.papers.guo2011.prim_cuda import PersistentPrim, PrimCuda

SEED = 2**63 + 5


def compare_minima():
    """Compare minima of arrays of many lengths and few different elements."""
    rng = np.random.default_rng(1)
    reduction, seen = MinReduction(), set()
    for length in (1, 2, 7, 8, 9, 16, 17, 24, 25, 61, 100):
        for kinds in (1, 3, 1000):
            keys = 2**64 - 1 - rng.integers(0, kinds, length, np.uint64)
            numbers = 2**32 - 1 - rng.integers(0, kinds, length, np.uint32)
            wanted = min(zip(keys.tolist(), numbers.tolist(), range(length)))
            assert reduction.of(cuda.to_device(keys), cuda.to_device(numbers)) == wanted
            seen.add(blocks_for(length))
    assert min_reduction([5, 4, 4], [0, 2, 1]) == (4, 1, 2)
    assert len(seen) > 2
    for wrong in ((0, 0), (3, 2)):
        try:
            reduction.of(*(np.zeros(n, np.uint32) for n in wrong))
        except ValueError:
            continue
        raise AssertionError(f"{wrong} were taken")


def compare_given(made, topology, rng, name):
    """Compare trees of given keys, with ties, one after the other."""
    trees = made(topology)
    for kinds in (2, 1000):
        keys = tied_keys(topology, rng, kinds)
        assert trees.build_given(keys) == 1
        assert np.array_equal(trees.words(1), judged_words(topology, keys)), (name, kinds)


def compare_samples(made, topology, name):
    """Compare the trees of samples, as many as there may be side by side."""
    trees = made(topology, 3)
    for generator in (0, 1):
        samples = np.array([7, 2**40, 8][: trees.capacity], np.uint64)
        assert trees.build(generator, SEED, samples) == samples.size
        found = trees.words(samples.size)
        for words, sample in zip(found, samples, strict=True):
            wanted = judged_words(topology, sample_keys(topology, generator, SEED, sample))
            assert np.array_equal(words[None], wanted), (name, generator, sample)


def compare_trees(made, more):
    """Compare the trees of all cases; more: sites and bonds of further random graphs."""
    rng = np.random.default_rng(2)
    for name, topology in topologies():
        compare_given(made, topology, rng, name)
    for sites, bonds in more:
        compare_given(made, random_graph(rng, sites, bonds), rng, (sites, bonds))
    compare_samples(made, dict(topologies())["parallel"], "parallel")


def plainly(topology, capacity=1):
    """Return Guo's rounds without the primitive."""
    return PrimCuda(topology, capacity, primitive=False)


def in_memory(topology, capacity=1):
    """Return the persistent kernel with its candidates in the device's memory."""
    return PersistentPrim(topology, capacity, most_shared=0)


def main(part):
    """Run one part."""
    if part == "minima":
        compare_minima()
    elif part == "rounds":
        compare_trees(PrimCuda, ((40, 60),))
        compare_trees(plainly, ())
    else:
        # Groups of as many candidates as lanes and of more, one and several a lane.
        compare_trees(PersistentPrim, ((37, 50), (300, 420), (30, 400)))
        compare_trees(in_memory, ())
    print("equal")
