"""Intervals, resampled blocks, correlations and least squares are what their definitions say."""

import numpy as np
import pytest

from percolab.analysis.statistics import (
    draw_blocks,
    half_width,
    jackknife_error,
    unit_diagonal,
    whitening,
    wilson_interval,
    with_data_first,
)


def test_wilson_bounds_solve_the_score_equation():
    low, high = wilson_interval([3, 17], 20, z=1.7)
    for bound in (low, high):
        score = (np.array([3, 17]) / 20 - bound) / np.sqrt(bound * (1 - bound) / 20)
        np.testing.assert_allclose(np.abs(score), 1.7)


def test_wilson_interval_is_exact_at_the_ends_and_symmetric():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    trials = np.arange(1, 500)
    assert np.all(wilson_interval(0 * trials, trials, z=1.7)[0] == 0.0)
    assert np.all(wilson_interval(trials, trials, z=1.7)[1] == 1.0)
    low, high = wilson_interval([0, 50], 50)
    assert high[0] == pytest.approx(1.0 - low[1])
    assert 0.0 < high[0] < 0.05
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(3, 2)


def test_half_width_of_a_normal_sample_is_its_deviation():
    values = np.random.default_rng(0).normal(scale=2.0, size=100_000)
    assert half_width(values) == pytest.approx(2.0, rel=0.02)
    assert np.isnan(half_width(np.array([1.0, np.nan, np.nan, np.nan])))


def test_whitened_numbers_are_independent_and_correlations_have_a_diagonal_of_ones():
    covariance = np.array([[4.0, 1.0], [1.0, 9.0]])
    whiten = whitening(covariance)
    np.testing.assert_allclose(whiten @ covariance @ whiten.T, np.eye(2), atol=1e-15)
    correlation, scale = unit_diagonal(covariance)
    np.testing.assert_allclose(correlation, [[1.0, 1 / 6], [1 / 6, 1.0]])
    np.testing.assert_allclose(scale, [1 / 2, 1 / 3])


def test_the_jackknife_error_of_a_mean_is_that_of_its_scatter():
    values = np.random.default_rng(5).normal(size=(30, 2))
    without = (values.sum(axis=0) - values) / 29
    expected = values.std(axis=0, ddof=1) / np.sqrt(30)
    np.testing.assert_allclose(jackknife_error(without), expected)
    assert np.isnan(jackknife_error(without[:1])).all()


def test_replicas_stand_below_the_data():
    drawn = draw_blocks(12, np.random.default_rng(6), 5)
    weights = with_data_first(drawn)
    assert weights.shape == (6, 12)
    assert (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 12).all()
    np.testing.assert_array_equal(weights[1:], drawn)
