"""Exponents and collapses are unbiased, and their errors contain that of p_c."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from analysis_support import BETA, GAMMA, TRUTH, clusters_of
from synthetic_support import synthetic_curve, synthetic_study

from percolab.analysis.collapse import Measured, _Master, collapse_curves
from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.exponents import (
    MIN_REPLICAS,
    QUANTITIES,
    CriticalReplicas,
    Values,
    _interpolated,
    fit_exponents,
    with_logarithm,
)
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.text import collapse_table, exponent_table
from percolab.analysis.theory.known_exponents import known_exponents
from percolab.analysis.threshold import fit_threshold
from percolab.errors import AnalysisError

SIZES = (16, 32, 64, 128)


def a_study(seed, **options):
    rng = np.random.default_rng(seed)
    curves = [
        SpanningCurve(c.L, c.p, c.samples, c.spanning, label=f"task {c.L}")
        for c in synthetic_study(TRUTH, SIZES, rng=rng, samples=50, blocks=40, **options)
    ]
    clusters = [clusters_of(curve, rng, label=curve.label) for curve in curves]
    return fit_threshold(curves), clusters


@pytest.mark.slow
def test_the_exponents_are_unbiased_and_their_errors_cover():
    known = {"1/nu": TRUTH.y_t, "beta/nu": BETA, "gamma/nu": GAMMA, "d_f": 2 - BETA}
    pulls = []
    for seed in range(30):
        fit, clusters = a_study(seed)
        found = fit_exponents(fit, clusters, dimension=2, bootstrap=50, seed=seed).exponents
        # The first is that of the fit of all curves.
        pulls.append([(e.value - known[e.name]) / e.error for e in found[1:-1]])
    pulls = np.array(pulls)
    assert pulls.shape == (30, 5)
    assert np.abs(pulls.mean(axis=0)).max() * np.sqrt(30) <= 4
    inside = np.mean(np.abs(pulls) < 1, axis=0)
    assert np.abs(inside - 0.6827).max() <= 4 * np.sqrt(0.6827 * 0.3173 / 30)
    # The spread of n pulls is known to 1 / sqrt(2 n).
    assert np.abs(pulls.std(axis=0) - 1).max() <= 4 / np.sqrt(60)


@pytest.mark.slow
def test_the_error_of_the_threshold_is_in_that_of_an_exponent():
    fit, clusters = a_study(1)
    without = [replace(c, largest=0.98 * c.largest.mean(0) + 0.02 * c.largest) for c in clusters]
    # With next to no noise of its own P_inf has the error of p_c alone.
    strength = fit_exponents(fit, without, dimension=2).values[1]
    slope = np.array([1 / 3 * L**TRUTH.y_t * L**-BETA for L in SIZES])
    expected = slope * fit.threshold_error
    np.testing.assert_allclose(strength.errors, expected, rtol=0.25)


def test_replicas_of_p_c_follow_their_counts_and_its_systematic_error():
    rng = np.random.default_rng(8)
    curves = synthetic_study(TRUTH, SIZES[:2], rng=rng, samples=50, blocks=40)
    influence = tuple(1e-4 * rng.standard_normal(curve.p.size + 1) for curve in curves)
    mock = SimpleNamespace(threshold=0.65, systematic_error=0.0, used=curves, influence=influence)
    own = CriticalReplicas.of(mock, (), 4000, np.random.default_rng(1))
    expected = 0.65 + sum(
        (counts - curve.threshold_counts.sum(axis=0)) @ by_count
        for curve, counts, by_count in zip(curves, own.counts, influence)
    )
    np.testing.assert_allclose(own.thresholds, expected)
    # Of independent blocks: the variance of what each adds.
    variance = sum(40 * (c.threshold_counts @ own).var() for c, own in zip(curves, influence))
    assert own.thresholds.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / 4000))
    mock.systematic_error = 0.01
    wider = CriticalReplicas.of(mock, (), 4000, np.random.default_rng(1)).thresholds
    assert wider.var() == pytest.approx(variance + 1e-4, rel=4 * np.sqrt(2 / 4000))


def test_the_quantities_are_read_off_at_the_threshold():
    fit, clusters = a_study(1)
    strength, chi, largest = fit_exponents(fit, clusters, dimension=2).values[1:]
    L = np.array(SIZES, float)
    for found, expected in ((strength, L**-BETA), (chi, L**GAMMA), (largest, 2 * L**GAMMA)):
        assert (np.abs(found.values - expected) <= 4 * found.errors).all()
        assert (found.errors < 0.1 * expected).all()


def test_the_interpolation_is_exact_for_polynomials_and_takes_each_row_at_its_own_p():
    p = np.linspace(0, 1, 9)
    values = np.stack([p**4, p**5 - p])
    found = _interpolated(p, values, np.array([0.43, 0.47]), 0.45)
    np.testing.assert_allclose(found, [0.43**4, 0.47**5 - 0.47])


@pytest.mark.slow
def test_known_values_stand_beside_and_obey_hyperscaling():
    for dimension in (2, 3, 4, 5):
        known = {name: item.value for name, item in known_exponents(dimension).items()}
        assert known["gamma/nu"] == pytest.approx(dimension - 2 * known["beta/nu"])
        assert known["tau"] == pytest.approx(1 + dimension / known["d_f"])
    assert known_exponents(6) == {}
    found = fit_exponents(*a_study(2), dimension=2)
    text = exponent_table(found)
    for known_value in ("3/4", "5/48", "43/24", "91/48", "187/91"):
        assert known_value in text
    record = found.to_dict()
    json.dumps(record, allow_nan=False)
    assert [item["name"] for item in record["exponents"]] == [
        "1/nu", "1/nu", "beta/nu", "gamma/nu", "gamma/nu", "d_f", "tau",
    ]  # fmt: skip


@pytest.mark.slow
def test_what_cannot_be_used_is_named():
    fit, clusters = a_study(3)
    few = [replace(clusters[0], p=clusters[0].p + 1), *clusters[1:]]
    notes = fit_exponents(fit, few, dimension=2).notes
    assert any(note.startswith("L = 16 left out") and "p grid" in note for note in notes)
    notes = fit_exponents(fit, (), dimension=2).notes
    assert any("method threshold" in note for note in notes)
    with pytest.raises(AnalysisError, match=f"at least {MIN_REPLICAS} bootstrap replicas, got 3"):
        fit_exponents(fit, clusters, dimension=2, bootstrap=3)


def test_replicas_and_sizes_without_a_logarithm_are_left_out_and_counted():
    replicas = np.random.default_rng(3).normal([1.0, 2.0, 3.0], 0.1, (80, 3))
    values = Values(QUANTITIES[0], (4, 8, 16), np.array([1.0, 2.0, 3.0]), replicas)
    assert with_logarithm(values)[1] == []
    replicas[5, 1] = -0.1
    replicas[:, 0] = 1.0
    kept, notes = with_logarithm(values)
    assert kept.sizes == (8, 16)
    assert kept.replicas.shape == (79, 2)
    assert "for L = 4: left out" in notes[0]
    assert "not positive in 1 of 80 bootstrap replicas" in notes[1]


def test_a_size_whose_quantities_never_differ_does_not_end_the_others():
    """P_inf of a single site is 1 in every replica, and its chi 0."""
    fit, clusters = a_study(6)
    first, every = clusters[0], np.full(clusters[0].largest.shape, 50.0)
    site = ClusterCurve(1, 1, first.p, first.samples, every, 0 * every, every, every, "site")
    found = fit_exponents(fit, [site, *clusters], dimension=2, bootstrap=60)
    assert sum("for L = 1: left out" in note for note in found.notes) == 3
    assert all(np.isfinite(item.value) for item in found.exponents)


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


def test_a_coarse_grid_of_p_for_all_sizes_is_no_lack_of_quality():
    """A curve through few points of each size is farther off than the errors of many samples."""
    grid, sizes = 0.6527 + 0.01 * np.arange(-4, 5), (32, 64, 128, 256)
    found = []
    for seed in range(8):
        rng, how = np.random.default_rng(seed), {"samples": 10_000, "blocks": 40}
        curves = [
            synthetic_curve(L, grid, PURE.probability(grid, L), rng=rng, **how) for L in sizes
        ]
        found.append(collapsed([Measured.of_spanning(curve) for curve in curves]))
    assert max(each.quality for each in found) < 2
    values = np.array([(each.threshold, each.y_t) for each in found])
    scatter = values.std(axis=0, ddof=1)
    assert (np.abs(values.mean(axis=0) - [0.6527, 0.75]) * np.sqrt(8) <= 4 * scatter).all()


def test_two_sizes_make_each_other_s_master_curve_well_enough_for_many_samples():
    options = {"sizes": (20, 50), "points": 9, "reach": 1.5, "samples": 2500}
    found = [collapsed(measured(seed, **options), FIT_NONE).quality for seed in range(8)]
    # A cubic through eight points gives 23.
    assert np.mean(found) < 2


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
    errors = np.mean([item.statistical_errors[:2] for item in again], axis=0)
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
    assert found.statistical_errors[2] == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("seed", [19, 23])
def test_replicas_leave_the_small_minimum_of_the_data(seed):
    rng = np.random.default_rng(seed)
    curves = synthetic_study(TRUTH, SIZES, rng=rng)
    clusters = [Measured.of_clusters(clusters_of(curve, rng), "chi") for curve in curves]
    start, fixed = (TRUTH.threshold, 0.75, 1.7), (True, False, False)
    found = collapsed(clusters, fixed, start, bootstrap=25)
    # Of a line through four sizes, each a factor 2 larger; errors were 0.05 and 0.5 of it.
    expected = 0.02 / np.sqrt(40) / (np.log(2) * np.sqrt(5))
    assert found.statistical_errors[2] == pytest.approx(expected, rel=0.5)
    assert abs(found.exponent - GAMMA) <= 4 * found.exponent_error


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
    assert "(--min-size)" not in collapse_table([replace(found, quality=1.9)])
    poor = collapse_table([replace(found, quality=2.1)])
    assert "larger than the errors of its points; leave out the smallest sizes (--min-size)" in poor


def test_a_collapse_on_few_points_or_two_sizes_says_that_its_errors_leave_something_out():
    every, few = measured(0), measured(0, sizes=SIZES[:3], points=5)
    texts = [collapse_table([collapsed(own, bootstrap=2)]) for own in (every, few, every[:2])]
    assert ["errors leave out that of the interpolation" in text for text in texts] == [
        False,
        True,
        False,
    ]
    assert ["which errors leave out" in text for text in texts] == [False, False, True]


def test_errors_of_a_collapse_contain_corrections_to_scaling():
    """They are no part of the bootstrap, by whose errors p_c is off by three and more."""
    found = [collapsed(measured(seed, TRUTH), bootstrap=10) for seed in range(10, 16)]
    away = np.array([own.threshold for own in found]) - TRUTH.threshold
    statistical = np.array([own.statistical_errors[0] for own in found])
    whole = np.array([own.threshold_error for own in found])
    assert np.median(away / statistical) > 3
    assert np.median(away / whole) < 2
    assert np.mean(np.abs(away) <= 2 * whole) > 0.8
    two = collapsed(measured(0, TRUTH, SIZES[:2]), bootstrap=10)
    assert two.threshold_error == two.statistical_errors[0]


def test_the_error_of_a_given_threshold_is_in_that_of_kappa():
    rng = np.random.default_rng(4)
    curves = [clusters_of(curve, rng) for curve in synthetic_study(PURE, SIZES[:2], rng=rng)]
    points = [Measured.of_clusters(curve, "largest") for curve in curves]
    start, error = (TRUTH.threshold, 0.75, 5 / 48), 0.002
    moved = [
        collapsed(points, FIT_KAPPA, (start[0] + by, *start[1:])).exponent for by in (-error, error)
    ]
    expected = abs(moved[1] - moved[0]) / 2
    few, more = (
        collapsed(points, FIT_KAPPA, start, bootstrap=40, threshold_error=own)
        for own in (0.0, error)
    )
    grown = np.sqrt(more.exponent_error**2 - few.exponent_error**2)
    assert grown == pytest.approx(expected, rel=0.5)
    assert (few.threshold_error, more.threshold_error) == (0, error)
    none = collapsed(points, FIT_KAPPA, start, bootstrap=2, threshold_error=np.nan)
    assert np.isnan(none.exponent_error)


def test_the_master_curve_is_exact_on_a_quintic_and_made_by_other_sizes_alone():
    curves = measured(0)
    master = _Master.of(curves)
    x = (master.p - PURE.threshold) * master.L**PURE.y_t
    weights, counted = master._weights(x, master.variance)
    quintic = 1 + x - 0.3 * x**2 + 0.2 * x**3 + 0.1 * x**4 - 0.1 * x**5
    np.testing.assert_allclose((weights @ quintic)[counted], quintic[counted])
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
