"""Means at any p from sums by the number of openings, against exact sums of fractions."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from helpers import slow

from percolab.measure.openings import (
    MOST_BINS,
    bin_counts,
    bin_weights,
    bin_width,
    binomial,
    convolve,
)

P = [Fraction(0), Fraction(1, 1000), Fraction(1, 3), Fraction(7, 8), Fraction(1)]


def exact_mean(values, p):
    openings = len(values) - 1
    return sum(
        comb(openings, n) * p**n * (1 - p) ** (openings - n) * int(value)
        for n, value in enumerate(values)
    )


@pytest.mark.parametrize("openings", [1, 2, 30, slow(400)])
def test_means_are_those_of_exact_sums(openings):
    values = np.random.default_rng(openings).integers(0, 1000, openings + 1)
    floats = [float(p) for p in P]
    (means,) = convolve(values[None], openings, floats)
    for p, mean in zip(map(Fraction, floats), means, strict=True):
        assert mean == pytest.approx(float(exact_mean(values, p)), rel=1e-12)


@pytest.mark.parametrize("p", [1e-12, 1e-6, 0.25, 0.5, 1 - 1e-6])
def test_a_million_openings_have_the_moments_of_the_binomial_distribution(p):
    openings = 10**6
    first, found = binomial(openings, p)
    n = np.arange(first, first + found.size)
    assert found.sum() == pytest.approx(1, rel=1e-12)
    assert (found * n).sum() == pytest.approx(openings * p, rel=1e-9)
    spread = (found * (n - openings * p) ** 2).sum()
    assert spread == pytest.approx(openings * p * (1 - p), rel=1e-8)


def test_what_is_constant_in_a_bin_or_linear_is_found_exactly_from_bins():
    openings = 5 * MOST_BINS
    counts = bin_counts(openings)
    assert counts.sum() == openings + 1
    assert counts.size <= MOST_BINS
    assert bin_width(openings) == 8
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    n_sums = np.array([sum(range(a, a + k)) for a, k in zip(starts, counts, strict=True)])
    for p in (0.1, 0.5, 0.77):
        assert bin_weights(openings, p) @ counts == pytest.approx(1, rel=1e-12)
        assert bin_weights(openings, p) @ n_sums == pytest.approx(openings * p, rel=1e-7)
    # The last bin has fewer openings than the others.
    assert counts[-1] < counts[0]
    assert bin_weights(openings, 1.0) @ counts == 1
