"""Runs Guo's Prim and its primitive in CUDA's simulator, compared with sorted bonds."""

from functools import partial

import numpy as np
import pytest
from prim_support import assert_given_trees, assert_sampled_trees, random_graph, topologies

from percolab.papers.guo2011.min_reduction import MinReduction, blocks_for, cuda, min_reduction
from percolab.papers.guo2011.prim_cuda import PersistentPrim, PrimCuda


def compare_minima():
    """Compare minima of arrays of many lengths and few different elements."""
    rng = np.random.default_rng(1)
    reduction, seen = MinReduction(), set()
    for length in (1, 2, 7, 8, 9, 16, 17, 24, 25, 61, 100):
        for kinds in (1, 3, 1000):
            keys = 2**64 - 1 - rng.integers(0, kinds, length, np.uint64)
            numbers = 2**32 - 1 - rng.integers(0, kinds, length, np.uint32)
            least = min(zip(keys.tolist(), numbers.tolist(), range(length)))
            assert reduction.of(cuda.to_device(keys), cuda.to_device(numbers)) == least
            seen.add(blocks_for(length))
    assert min_reduction([5, 4, 4], [0, 2, 1]) == (4, 1, 2)
    assert len(seen) > 2
    for wrong in ((0, 0), (3, 2)):
        with pytest.raises(ValueError, match="no minimum of"):
            reduction.of(*(np.zeros(n, np.uint32) for n in wrong))


def compare_trees(made, more):
    """Compare the trees of all cases; more: sites and bonds of further random graphs."""
    rng = np.random.default_rng(2)
    cases = [topology for _, topology in topologies()]
    for topology in (*cases, *(random_graph(rng, *sizes) for sizes in more)):
        assert_given_trees(made(topology), topology, rng, (2, 1000))
    parallel = dict(topologies())["parallel"]
    assert_sampled_trees(made(parallel, 3), parallel)


def compare_rounds():
    """Compare Prim by launches, with the primitive and without."""
    compare_trees(PrimCuda, ((40, 60),))
    compare_trees(partial(PrimCuda, primitive=False), ())


def compare_persistent():
    """Compare Prim in one launch: groups of as many candidates as lanes and of more."""
    compare_trees(PersistentPrim, ((37, 50), (300, 420), (30, 400)))
    # With its candidates in the memory of the device.
    compare_trees(partial(PersistentPrim, most_shared=0), ())
