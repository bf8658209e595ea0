"""Autocorrelation times of series whose autocorrelation is known."""

import math

import numpy as np
import pytest
from analysis_support import filter_series
from helpers import slow
from scipy.stats import norm

from percolab.analysis.autocorrelation import START_LIMIT, autocorrelation, compare_starts
from percolab.errors import AnalysisError

LAGS = 64


def sums_of(series, lags=LAGS):
    """Return what blocks store of series, float64 (blocks, updates): lagged products, edges."""
    blocks, updates = series.shape
    lagged, edges = np.zeros((2, blocks, lags + 1))
    for lag in range(min(lags + 1, updates)):
        early, late = series[:, : updates - lag], series[:, lag:]
        lagged[:, lag] = (early * late).sum(axis=1)
        edges[:, lag] = early.sum(axis=1) + late.sum(axis=1)
    return lagged, edges


def chains(rng, tau, *, blocks, updates, mean=3.0):
    """Return stationary series x' = a x + noise of variance 1 with this tau, (blocks, updates)."""
    a = (2 * tau - 1) / (2 * tau + 1)
    noise = rng.standard_normal((blocks, updates))
    noise[:, 1:] *= math.sqrt(1 - a * a)
    return filter_series(noise, a) + mean


def analysed(series):
    return autocorrelation(*sums_of(series), series.shape[1])


def test_covariance_is_that_of_the_series_itself():
    series = chains(np.random.default_rng(1), 3, blocks=5, updates=300)
    found, apart = analysed(series), series - series.mean()
    lags = range(LAGS + 1)
    plain = [(apart[:, : 300 - n] * apart[:, n:]).sum() / (5 * (300 - n)) for n in lags]
    missing = (plain[0] + 2 * sum(plain[1 : found.window + 1])) / (5 * 300)
    assert found.covariance == pytest.approx(np.array(plain) + missing, abs=1e-12)
    assert found.mean == pytest.approx(series.mean(), abs=1e-13)
    assert found.correlation[0] == 1
    assert found.tau == pytest.approx(0.5 + found.correlation[1 : found.window + 1].sum())
    assert found.mean_error == pytest.approx(series.mean(axis=1).std(ddof=1) / math.sqrt(5))


def test_a_constant_added_to_a_series_changes_its_mean_alone():
    series = chains(np.random.default_rng(2), 2, blocks=10, updates=500)
    one, other = analysed(series), analysed(series + 1e4)
    assert other.mean - one.mean == pytest.approx(1e4)
    assert other.tau == pytest.approx(one.tau, abs=1e-5)
    assert other.jackknife_error == pytest.approx(one.jackknife_error, rel=1e-4)


@pytest.mark.parametrize(
    ("tau", "updates"), [slow(0.5, 400), slow(1.5, 400), slow(5.0, 400), (5.0, 100)]
)
def test_tau_is_the_true_one_within_both_its_errors(tau, updates):
    rng, repeats = np.random.default_rng(3), 200
    found = [analysed(chains(rng, tau, blocks=50, updates=updates)) for _ in range(repeats)]
    assert all(item.complete and item.error == item.jackknife_error for item in found)
    # Wolff's W is an optimum: what it leaves out is not far below the error, see the last check.
    for name in ("jackknife_error", "formula_error"):
        z = np.array([(item.tau - tau) / getattr(item, name) for item in found])
        assert np.abs(z).max() <= 4, name
        assert 0.85 <= z.std() <= 1.2, name
        assert abs(z.mean()) <= 0.5, name
    z = np.array([(item.mean - 3) / item.mean_error for item in found])
    assert np.abs(z).max() <= 4
    assert 0.85 <= z.std() <= 1.2
    assert abs(z.mean()) * math.sqrt(repeats) <= 4


@pytest.mark.slow
def test_leaving_out_blocks_gives_the_scatter_of_tau_itself():
    rng = np.random.default_rng(4)
    found = [analysed(chains(rng, 4, blocks=30, updates=300)) for _ in range(200)]
    scatter = np.std([item.tau for item in found])
    assert np.mean([item.jackknife_error for item in found]) == pytest.approx(scatter, rel=0.2)


@pytest.mark.slow
def test_covariance_is_not_too_small_by_the_variance_of_the_mean():
    # 4 chains of 100: 2 tau / N = 2.5 % without the correction.
    rng, repeats = np.random.default_rng(5), 2000
    values = [analysed(chains(rng, 5, blocks=4, updates=100)) for _ in range(repeats)]
    variances = np.array([item.covariance[0] for item in values])
    z = (variances.mean() - 1) / (variances.std() / math.sqrt(repeats))
    assert abs(z) <= 3
    assert variances.std() / math.sqrt(repeats) < 0.025 / 5


def test_a_time_beyond_the_stored_lags_is_a_lower_bound():
    series = chains(np.random.default_rng(6), 60, blocks=40, updates=5000)
    found = analysed(series)
    assert (found.complete, found.is_known, found.window) == (False, False, LAGS)
    assert found.tau < 60 - 4 * found.error


def test_an_alternating_series_has_less_than_half():
    rng = np.random.default_rng(8)
    noise = rng.standard_normal((20, 501))
    found = analysed(noise[:, 1:] - 0.5 * noise[:, :-1])
    assert found.tau == pytest.approx(0.5 - 0.4, abs=0.05)
    assert found.complete


def pulls_of_known(tau, *, blocks, updates):
    """Return pulls of tau of 300 studies, of those alone in which it is known."""
    rng = np.random.default_rng(14)
    found = [analysed(chains(rng, tau, blocks=blocks, updates=updates)) for _ in range(300)]
    return np.array([(item.tau - tau) / item.error for item in found if item.is_known])


def test_errors_of_ten_blocks_hold():
    # The scatter of so few is too small where tau is: pulls would have a width of 1.2 to 1.3.
    assert pulls_of_known(9, blocks=10, updates=200).std() < 1.1


def test_short_chains_do_not_choose_small_times():
    """Of chains of five tau few reach Wolff's window, those with a tau that came out too small."""
    pulls = pulls_of_known(4, blocks=64, updates=20)
    assert len(pulls) > 240
    assert abs(pulls.mean()) < 0.5


def test_times_of_many_updates_are_known_without_a_window():
    found = analysed(chains(np.random.default_rng(15), 9, blocks=400, updates=1000))
    assert (found.complete, found.is_known) == (False, True)
    assert abs(found.tau - 9) <= 4 * found.error


def test_few_blocks_quote_the_formula():
    found = analysed(chains(np.random.default_rng(9), 2, blocks=4, updates=3000))
    assert found.error == found.formula_error
    single = analysed(chains(np.random.default_rng(10), 2, blocks=1, updates=3000))
    assert math.isnan(single.jackknife_error)
    assert math.isnan(single.mean_error)
    assert abs(single.tau - 2) <= 4 * single.error


def test_fewer_updates_than_lags_are_enough():
    series = chains(np.random.default_rng(11), 0.5, blocks=500, updates=10)
    found = analysed(series)
    assert len(found.covariance) == 10
    assert abs(found.tau - 0.5) <= 4 * found.error


def test_sums_that_give_no_autocorrelation_are_refused():
    shapes = [((3, 5), (3, 4), 10), (5, 5, 10), ((3, 1), (3, 1), 10), ((3, 5), (3, 5), 1)]
    sums = [(np.ones(one), np.ones(two), updates) for one, two, updates in shapes]
    sums.append((np.ones((0, 5)), np.ones((0, 5)), 10))
    sums += [(*sums_of(np.full((3, 100), value)), 100) for value in (0.0, 0.1)]
    for arguments in sums:
        with pytest.raises(AnalysisError):
            autocorrelation(*arguments)


@pytest.mark.parametrize(("ordered", "random"), [(2, 2), slow(3, 3), slow(3, 8), slow(20, 20)])
def test_starts_that_are_alike_have_normal_deviates(ordered, random):
    rng, repeats = np.random.default_rng(12), 1000
    draws = [(rng.standard_normal(ordered), rng.standard_normal(random)) for _ in range(repeats)]
    z = np.abs([compare_starts(first, second) for first, second in draws])
    # Welch's test is cautious with two or three blocks, and never too bold.
    beyond = 2 * norm.sf(2)
    assert np.mean(z > 2) <= beyond + 4 * math.sqrt(beyond / repeats)
    assert np.mean(z > 2) >= beyond / 10
    assert not np.any(z > 4.5)


def test_starts_that_differ_are_found():
    rng = np.random.default_rng(13)
    first, second = rng.standard_normal((2, 20))
    z = compare_starts(first + 3, second)
    assert z > START_LIMIT
    assert compare_starts(second, first + 3) == pytest.approx(-z)
    # Two blocks each say little, even if they are far apart.
    assert abs(compare_starts([1.0, 1.1], [1.5, 1.4])) < START_LIMIT


def test_starts_in_different_phases_are_far_apart():
    values = np.array([0.0, 0.001] * 20)
    deviates = [compare_starts(values + apart, values) for apart in (1e-4, 1e-3, 1, 100, 1000)]
    assert np.all(np.diff(deviates) > 0)
    assert np.isfinite(deviates).all()
    assert deviates[-1] > 40


def test_starts_without_scatter():
    assert compare_starts([1.0, 1.0], [1.0, 1.0]) == 0
    assert compare_starts([1.0, 1.0], [2.0, 2.0]) == -np.inf
    with pytest.raises(AnalysisError, match="2 blocks"):
        compare_starts([1.0], [1.0, 2.0])
