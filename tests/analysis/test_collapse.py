"""A collapse finds the exponents it was made with, with honest errors, and its quality is 1."""

import json

import numpy as np
import pytest
from analysis_support import BETA, TRUTH, clusters_of
from synthetic_support import synthetic_study

from percolab.analysis.collapse import Measured, _Master, collapse_curves
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.text import collapse_table
from percolab.errors import AnalysisError

SIZES = (16, 32, 64, 128)
#: Nothing but scaling: collapses hold no corrections.
PURE = ScalingFunction(0.6527, 0.75, (0.1, 1.3, 0.05, -0.06))
START = (0.6527, 0.75, 0.0)
FIT_TWO, FIT_KAPPA, FIT_NONE = (False, False, True), (True, True, False), (True, True, True)


def measured(seed, truth=PURE, sizes=SIZES, **options):
    options = {"samples": 250, "blocks": 40} | options
    curves = synthetic_study(truth, sizes, rng=np.random.default_rng(seed), **options)
    return [Measured.of_spanning(curve) for curve in curves]


def collapsed(curves, fixed=FIT_TWO, start=START, bootstrap=0, **options):
    return collapse_curves(
        curves, observable="R", start=start, fixed=fixed, bootstrap=bootstrap, **options
    )


def test_the_quality_of_a_true_collapse_is_one_on_average():
    found = [collapsed(measured(seed), FIT_NONE).quality for seed in range(60)]
    assert abs(np.mean(found) - 1) <= 4 * np.std(found) / np.sqrt(60)
    # The errors of a mean far from 1 could hide it.
    assert np.std(found) < 0.6


@pytest.mark.parametrize("wrong", [(0.655, 0.75, 0.0), (0.6527, 0.9, 0.0), (0.6527, 0.75, 0.05)])
def test_a_wrong_exponent_spoils_the_quality(wrong):
    right = collapsed(measured(0), FIT_NONE).quality
    assert collapsed(measured(0), FIT_NONE, wrong).quality > 3 * right


@pytest.mark.slow
def test_the_exponents_are_found_and_their_errors_are_those_of_repetition():
    few = {"sizes": (32, 64, 128), "points": 6}
    found = [collapsed(measured(seed, **few)) for seed in range(40)]
    values = np.array([(item.threshold, item.y_t) for item in found])
    truth, scatter = (PURE.threshold, PURE.y_t), values.std(axis=0, ddof=1)
    assert (np.abs(values.mean(axis=0) - truth) * np.sqrt(40) <= 4 * scatter).all()
    again = [collapsed(measured(seed, **few), bootstrap=25) for seed in range(3)]
    errors = np.mean([(item.threshold_error, item.y_t_error) for item in again], axis=0)
    # A spread of n values is known to 1 / sqrt(2 n), one by quantiles to about 1.5 times that.
    assert np.abs(errors / scatter - 1).max() <= 4 * np.sqrt(1 / 80 + 1.5**2 / 150)
    assert np.isnan(found[0].threshold_error)


def test_the_percolation_strength_collapses_with_beta():
    rng = np.random.default_rng(4)
    curves = synthetic_study(TRUTH, SIZES[1:4], rng=rng)
    clusters = [Measured.of_clusters(clusters_of(curve, rng), "largest") for curve in curves]
    found = collapsed(clusters, FIT_KAPPA, (TRUTH.threshold, 0.75, -0.2), bootstrap=40)
    assert abs(found.exponent + BETA) <= 4 * found.exponent_error
    # 40 blocks of 2 % noise at both ends of a factor 4 in L.
    expected = 0.02 / np.sqrt(40) * np.sqrt(2) / np.log(4)
    assert found.exponent_error == pytest.approx(expected, rel=0.5)


def test_the_points_are_those_of_the_formula():
    found = collapsed(measured(0), FIT_NONE, (0.65, 0.8, -0.1))
    np.testing.assert_allclose(found.x, (found.p - 0.65) * found.L**0.8)
    np.testing.assert_allclose(found.y, found.value * found.L**0.1)
    np.testing.assert_allclose(found.dy, found.value_error * found.L**0.1)
    assert (found.threshold_error, found.y_t_error, found.exponent_error) == (0, 0, 0)
    n = 250 * 40
    np.testing.assert_allclose(found.value_error, np.sqrt(found.value * (1 - found.value) / n))
    json.dumps(found.to_dict(), allow_nan=False)
    assert f"{found.quality:.2f}" in collapse_table([found])


def test_the_master_curve_is_exact_on_a_cubic_and_made_by_other_sizes_alone():
    curves = measured(0)
    master = _Master.of(curves)
    x = (master.p - PURE.threshold) * master.L**PURE.y_t
    weights, counted = master._weights(x, master.variance)
    cubic = 1 + x - 0.3 * x**2 + 0.2 * x**3
    np.testing.assert_allclose((weights @ cubic)[counted], cubic[counted])
    assert counted.mean() > 0.8
    assert not weights[master.L[:, None] == master.L].any()


def test_points_of_one_size_are_correlated_as_coupled_samples_are():
    own = measured(0, sizes=(64,), blocks=4000, samples=10)[0]
    scattered = np.cov(own.block_means, rowvar=False) / 4000
    scale = np.sqrt(np.outer(np.diag(scattered), np.diag(scattered)))
    assert np.abs((own.covariance - scattered) / scale).max() <= 4 * np.sqrt(2 / 4000)


def test_reach_leaves_out_what_is_far_from_the_threshold():
    found = collapsed(measured(0), FIT_NONE, reach=0.5)
    assert 0 < np.abs(found.x).max() <= 0.5 < np.abs(collapsed(measured(0), FIT_NONE).x).max()


def test_too_few_sizes_are_refused():
    with pytest.raises(AnalysisError, match=r"at least two sizes.*got L = 64"):
        collapsed(measured(0, sizes=(64,)))
    with pytest.raises(AnalysisError, match="overlap too little"):
        collapsed(measured(0, sizes=(16, 4096)), FIT_NONE, (0.2, 2.5, 0.0))
