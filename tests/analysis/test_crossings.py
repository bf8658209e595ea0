"""Crossings of neighbouring sizes and their drift."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr

from percolab.analysis import ChiSquare, Crossing, SizeFit
from percolab.analysis.crossings import extrapolate, find_crossing, find_crossings, half_width

UNKNOWN = ChiSquare(0.0, 0, float("nan"))


def size_fit(L, coefficients, p_low=0.4, p_high=0.6, p_mid=0.5, scale=0.1):
    return SizeFit(L, p_mid, scale, coefficients, p_low, p_high, 9, 1000, UNKNOWN)


def test_straight_lines_cross_where_algebra_says():
    # 1 + x = 3 x + 0.8 at x = 0.1, and x = (p - 0.5) / 0.1.
    crossing = find_crossing(size_fit(8, (1.0, 1.0)), size_fit(16, (0.8, 3.0)))
    assert crossing.p == pytest.approx(0.51)
    assert crossing.probability == pytest.approx(ndtr(1.1))


def test_a_crossing_does_not_depend_on_how_the_curves_are_written():
    # The second line is 0.8 + 3 x again, now about 0.52 in units of 0.05.
    rewritten = size_fit(16, (1.4, 1.5), p_mid=0.52, scale=0.05)
    assert find_crossing(size_fit(8, (1.0, 1.0)), rewritten).p == pytest.approx(0.51)


def test_parallel_curves_have_no_crossing():
    crossing = find_crossing(size_fit(8, (1.0, 1.0)), size_fit(16, (0.8, 1.0)))
    assert not crossing.found
    assert crossing.to_dict()["p"] is None


def test_a_root_outside_the_common_range_is_no_crossing():
    small, large = size_fit(8, (1.0, 1.0)), size_fit(16, (0.8, 3.0), p_low=0.52)
    assert not find_crossing(small, large).found
    assert find_crossing(small, large, near=0.51).p == pytest.approx(0.51)


def test_a_crossing_with_the_larger_size_falling_through_is_not_taken():
    # 3 x - x^3 crosses x at x = 0, where it rises through, and falls through at +-sqrt 2.
    wide = {"p_low": 0.3, "p_high": 0.7}
    crossing = find_crossing(size_fit(8, (0, 1.0), **wide), size_fit(16, (0, 3.0, 0, -1.0), **wide))
    assert crossing.p == pytest.approx(0.5)
    assert not find_crossing(size_fit(8, (1.0, 3.0)), size_fit(16, (0.8, 1.0))).found


def test_each_size_is_crossed_with_the_next():
    fits = [size_fit(8, (0.1, 1.0)), size_fit(16, (0.1, 2.0)), size_fit(64, (0.1, 3.0))]
    crossings = find_crossings(fits)
    assert [(c.L1, c.L2) for c in crossings] == [(8, 16), (16, 64)]
    assert crossings[1].mean_size == pytest.approx(32.0)


def drifting(sizes, threshold=0.6, amplitude=0.3, exponent=1.75):
    pairs = pairwise(sizes)
    return [
        Crossing(a, b, threshold + amplitude * (a * b) ** (-exponent / 2), 0.5) for a, b in pairs
    ]


def test_the_drift_extrapolates_to_the_threshold():
    crossings = drifting([16, 32, 64, 128])
    noise = np.random.default_rng(0).normal(scale=1e-5, size=(400, 3))
    drift = extrapolate(crossings, noise + [c.p for c in crossings], exponent=1.75)
    assert drift.threshold == pytest.approx(0.6, abs=1e-9)
    assert drift.amplitude == pytest.approx(0.3, abs=1e-6)
    assert drift.chi_square.dof == 1
    assert drift.chi_square.value < 1e-9


def test_the_drift_error_is_that_of_generalised_least_squares():
    covariance = 1e-10 * np.array([[1.0, -0.4, 0.0], [-0.4, 1.0, -0.4], [0.0, -0.4, 1.0]])
    crossings = drifting([16, 32, 64, 128])
    rng = np.random.default_rng(3)
    noise = rng.multivariate_normal(np.zeros(3), covariance, size=20_000)
    drift = extrapolate(crossings, noise + [c.p for c in crossings], exponent=1.75)
    x = np.array([crossing.mean_size for crossing in crossings]) ** -1.75
    design = np.stack([np.ones(3), x], axis=1)
    exact = np.sqrt(np.linalg.inv(design.T @ np.linalg.inv(covariance) @ design)[0, 0])
    assert drift.threshold_error == pytest.approx(exact, rel=0.04)


def test_one_crossing_has_no_drift():
    crossings = [*drifting([16, 32]), Crossing(32, 64, float("nan"), float("nan"))]
    assert extrapolate(crossings, np.full((200, 2), 0.6), exponent=1.75) is None


def test_half_width_of_a_normal_sample_is_its_deviation():
    values = np.random.default_rng(0).normal(scale=2.0, size=100_000)
    assert half_width(values) == pytest.approx(2.0, rel=0.02)
    assert np.isnan(half_width(np.array([1.0, np.nan, np.nan, np.nan])))
