"""n_s: exact small cases, and its errors."""

from itertools import pairwise

import numpy as np
import pytest
from analysis_support import synthetic_task
from counted_sizes import counted
from helpers import assert_z

from percolab.analysis.stored_data import read_size_counts
from percolab.analysis.tau import mean_power
from percolab.api import sweep
from percolab.measure.tallies import bin_edges

pytestmark = pytest.mark.usefixtures("own_directory")


def test_n_s_of_two_by_two_squares_is_that_of_all_configurations():
    p, samples = 0.5, 4000
    results = sweep("square", L=[2], p=[p], samples=samples, measure="sizes", device="cpu")
    (counts,) = read_size_counts(results)
    expected = np.zeros(5)
    for mask in range(16):
        # Sites 0 1 / 2 3 and the bonds between them.
        label = list(range(4))
        for bond, (i, j) in enumerate(((0, 1), (2, 3), (0, 2), (1, 3))):
            if mask >> bond & 1:
                label = [label[i] if x == label[j] else x for x in label]
        expected += np.bincount(np.bincount(label, minlength=4), minlength=5) / 16
    for size in range(1, 5):
        error = counts.errors()[0, size - 1]
        assert_z(counts.numbers()[0, size - 1], expected[size] / 4, error)


def test_coarse_bins_hold_the_same_clusters():
    for counts in read_size_counts(counted()):
        coarse = counts.coarse()
        assert coarse.counts.sum() == counts.counts.sum()
        assert set(coarse.edges) <= set(counts.edges)
        assert coarse.edges[-1] == counts.edges[-1]
        at = np.searchsorted(counts.edges, 16)
        merged = counts.counts[0, 0, at : at + 4].sum()
        assert coarse.counts[0, 0][coarse.edges[:-1] == 16] == merged


@pytest.mark.parametrize("exponent", [0.7, 1.0, 2.0549, 3.6])
def test_mean_power_is_the_mean_over_integer_sizes(exponent):
    for edges in (bin_edges(5000), np.array([1, 2, 4, 7]), np.array([8, 10, 64, 80, 96])):
        direct = [np.mean(np.arange(a, b, dtype=float) ** -exponent) for a, b in pairwise(edges)]
        np.testing.assert_allclose(mean_power(edges, exponent), direct, rtol=1e-7)


def test_errors_of_n_s_are_those_of_repeated_blocks():
    rng = np.random.default_rng(1)
    edges = bin_edges(100)
    mean = 4000 * mean_power(edges, 2.0) * np.diff(edges)
    found, errors = [], []
    for _ in range(300):
        item = synthetic_task(rng.poisson(mean, (20, 1, mean.size)), edges)
        found.append(item.numbers()[0])
        errors.append(item.errors()[0])
    scatter = np.std(found, axis=0)
    np.testing.assert_allclose(np.mean(errors, axis=0), scatter, rtol=0.2)
