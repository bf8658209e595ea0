"""Intervals, resampled blocks, correlations and least squares are what their definitions say."""

import numpy as np
import pytest

from percolab.analysis.statistics import (
    draw_blocks,
    half_width,
    jackknife_error,
    least_squares,
    unit_diagonal,
    whitening,
    wilson_interval,
    with_data_first,
)
from percolab.errors import AnalysisError


def test_wilson_interval_without_trials_knows_nothing():
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_wilson_bounds_solve_the_score_equation():
    low, high = wilson_interval([3, 17], 20, z=1.7)
    for bound in (low, high):
        score = (np.array([3, 17]) / 20 - bound) / np.sqrt(bound * (1 - bound) / 20)
        np.testing.assert_allclose(np.abs(score), 1.7)


def test_wilson_interval_is_exact_at_the_ends_and_symmetric():
    trials = np.arange(1, 500)
    assert np.all(wilson_interval(0 * trials, trials, z=1.7)[0] == 0.0)
    assert np.all(wilson_interval(trials, trials, z=1.7)[1] == 1.0)
    low, high = wilson_interval([0, 50], 50)
    assert high[0] == pytest.approx(1.0 - low[1])
    assert 0.0 < high[0] < 0.05


def test_more_successes_than_trials_are_refused():
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(3, 2)


def test_half_width_of_a_normal_sample_is_its_deviation():
    values = np.random.default_rng(0).normal(scale=2.0, size=100_000)
    assert half_width(values) == pytest.approx(2.0, rel=0.02)
    assert np.isnan(half_width(np.array([1.0, np.nan, np.nan, np.nan])))


def test_correlated_least_squares_is_the_best_linear_estimate():
    rng = np.random.default_rng(4)
    design = np.stack([np.ones(6), np.arange(6.0)], axis=1)
    root = np.tril(rng.normal(size=(6, 6))) + 3 * np.eye(6)
    covariance = root @ root.T
    draws = (design @ [1.0, -0.5])[:, None] + root @ rng.standard_normal((6, 4000))
    fits = [least_squares(design, values, covariance) for values in draws.T]
    theta, qualities = np.array([fit[0] for fit in fits]), [fit[2] for fit in fits]
    # (X^T C^-1 X)^-1, by another way than whitening.
    expected = np.linalg.inv(design.T @ np.linalg.solve(covariance, design))
    np.testing.assert_allclose(fits[0][1], expected)
    assert np.abs((theta.mean(axis=0) - [1.0, -0.5]) / np.sqrt(np.diag(expected) / 4000)).max() < 4
    np.testing.assert_allclose(np.cov(theta, rowvar=False), expected, rtol=4 * np.sqrt(2 / 4000))
    assert {quality.dof for quality in qualities} == {4}
    values = np.array([quality.value for quality in qualities])
    assert abs(values.mean() - 4) < 4 * np.sqrt(8 / 4000)


def test_a_covariance_that_is_singular_is_refused():
    with pytest.raises(AnalysisError, match="do not determine the fit"):
        least_squares(np.ones((3, 1)), np.arange(3.0), np.ones((3, 3)))


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
