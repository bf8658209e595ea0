"""The fit of anybody's table: its likelihood, what it does not depend on, and known answers."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import slow
from scipy.special import ndtr
from scipy.stats import binom

from percolab.analysis.table_fit import Series, fit_series
from percolab.errors import AnalysisError

X_C, Y_T = 2.3, 1 / 1.5


def grid(sizes=(8, 16, 32), x_c=X_C, reach=0.2, points=9):
    x = np.linspace(x_c - reach, x_c + reach, points)
    return np.repeat(sizes, points), np.tile(x, len(sizes))


def means(*, seed=None, error=0.002, kappa=0.0, y_t=Y_T, sizes=(8, 16, 32), reach=0.2):
    """Return a quantity that falls with x, with corrections to scaling."""
    L, x = grid(sizes, reach=reach)
    X = -2 * (x / X_C - 1) * L**y_t
    y = (0.6 + 0.2 * X - 0.03 * X**2 + 0.3 * (1 + 0.5 * X) / L) * L**kappa
    errors = error * L**kappa * np.ones(L.size)
    if seed is not None:
        y = np.random.default_rng(seed).normal(y, errors)
    return Series("", "T", "y", L, x, y, errors)


def repetition(seed, sizes=(5, 9, 17, 33), n=20_000):
    """Return failures of the repetition code, whose threshold is 1/2 with 1/nu = 1/2."""
    L, p = grid(sizes, 0.5, 0.15, 11)
    k = np.random.default_rng(seed).binomial(n, binom.sf((L - 1) // 2, L, p))
    return Series.of_counts(("", "p", "errors/shots"), L, p, k, n)


def test_squared_residuals_of_counts_are_the_binomial_deviance():
    n, k = 40, np.array([0, 1, 17, 39, 40])
    rows = Series.of_counts(("", "p", "k/n"), np.ones(5), np.zeros(5), k, n)
    f = np.array([-1.0, -3.0, 0.3, 0.1, 4.0])
    residuals, slopes, roots = rows.residuals(f)
    deviance = 2 * (binom.logpmf(k, n, k / n) - binom.logpmf(k, n, ndtr(f)))
    np.testing.assert_allclose(residuals**2, deviance, rtol=1e-9)
    step = 1e-6
    numeric = (rows.residuals(f + step)[0] - rows.residuals(f - step)[0]) / (2 * step)
    np.testing.assert_allclose(slopes, numeric, rtol=1e-6)
    density = np.exp(-0.5 * f**2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(roots**2, n * density**2 / (ndtr(f) * ndtr(-f)))


def test_residuals_of_counts_are_smooth_where_they_vanish():
    rows = Series.of_counts(("", "p", "k/n"), np.ones(3), np.zeros(3), [8, 8, 8], 40)
    centre = -0.8416212335729143  # probit of 8 / 40
    residuals, slopes, roots = rows.residuals(centre + np.array([-1e-5, 0, 1e-5]))
    np.testing.assert_allclose(residuals, roots[1] * np.array([-1e-5, 0, 1e-5]), atol=1e-7)
    np.testing.assert_allclose(slopes, roots, rtol=1e-3)


def test_residuals_far_from_every_count_are_finite():
    rows = Series.of_counts(("", "p", "k/n"), np.ones(5), np.zeros(5), [0, 1, 17, 39, 40], 40)
    for far in (1e9, -1e9, 3e12, -3e12):
        residuals, slopes, roots = rows.residuals(np.full(5, far))
        assert np.isfinite([residuals, slopes, roots]).all()
        # Where the tail of a probit is so far, the deviance of misses is f^2 each.
        missed = rows.trials * (1 - rows.values if far > 0 else rows.values)
        np.testing.assert_allclose(residuals**2, missed * far**2, rtol=1e-6, atol=200)
        np.testing.assert_allclose(np.abs(slopes), np.sqrt(missed), rtol=1e-6, atol=1e-6)


def test_a_table_without_noise_gives_its_values_back():
    fit = fit_series(means(error=1e-4, sizes=(8, 16, 32, 64)), degree=3)
    assert abs(fit.threshold - X_C) < 0.5 * fit.threshold_error < 5e-3
    assert abs(fit.y_t - Y_T) < 0.3 * fit.y_t_error < 0.02
    assert abs(fit.critical.value - 0.6) < 0.5 * fit.critical.error
    assert fit.problem is None
    np.testing.assert_allclose(fit.value_at(fit.series.x, fit.series.L)[fit.used],
                               fit.series.values[fit.used], atol=3e-4)  # fmt: skip


def test_errors_allow_for_corrections_of_an_unknown_exponent():
    L, p = grid((8, 16, 32, 64), 0.5, 0.01, 13)
    n, share = 10**7, ndtr(4 * (p - 0.5) * L - L**-0.8)
    rows = Series.of_counts(("", "p", "k/n"), L, p, np.round(n * share), n)
    fit, alone = (fit_series(rows, degree=3, omega=omega) for omega in (None, 1.0))
    assert abs(fit.threshold - 0.5) < fit.threshold_error
    assert abs(alone.threshold - 0.5) > 5 * alone.threshold_error


@pytest.mark.parametrize("seed", [1, *(slow(n) for n in (2, 3))])
def test_the_repetition_code_has_its_threshold_at_one_half(seed):
    fit = fit_series(repetition(seed))
    assert fit.problem is None
    assert abs(fit.threshold - 0.5) <= 4 * fit.threshold_error < 0.1
    assert abs(fit.y_t - 0.5) <= 4 * fit.y_t_error < 1
    assert abs(fit.critical.value - 0.5) <= 4 * fit.critical.error < 0.4
    for crossing in fit.crossings:
        assert abs(crossing.p - 0.5) <= 4 * crossing.p_error < 0.05


def test_units_and_signs_of_a_table_do_not_matter():
    rows = means(seed=4)
    fit = fit_series(rows, degree=3)
    assert abs(fit.threshold - X_C) <= 4 * fit.threshold_error
    scaled = replace(rows, values=-1e3 * rows.values, errors=1e3 * rows.errors)
    mirrored = replace(rows, x=-10 * rows.x)
    for other, factor in ((scaled, 1), (mirrored, -10)):
        again = fit_series(other, degree=3)
        assert again.threshold == pytest.approx(factor * fit.threshold, rel=1e-6)
        assert again.threshold_error == pytest.approx(abs(factor) * fit.threshold_error, rel=1e-4)
        assert again.y_t == pytest.approx(fit.y_t, rel=1e-4)
        assert [item.p for item in again.crossings] == pytest.approx(
            [factor * item.p for item in fit.crossings], rel=1e-9
        )


def test_counting_failures_or_successes_gives_the_same_threshold():
    rows = repetition(5)
    fit = fit_series(rows, degree=3)
    again = fit_series(replace(rows, values=1 - rows.values), degree=3)
    assert again.threshold == pytest.approx(fit.threshold, abs=1e-6)
    assert again.critical.value == pytest.approx(1 - fit.critical.value, abs=1e-6)


def test_kappa_is_fitted_where_it_is_requested():
    fit = fit_series(means(seed=6, kappa=1.75, y_t=1.0, reach=0.07), kappa=True, degree=3)
    assert abs(fit.kappa.value - 1.75) <= 4 * fit.kappa.error < 1
    assert abs(fit.threshold - X_C) <= 4 * fit.threshold_error < 0.2
    assert fit.critical is None
    assert fit.crossings == ()
    near = fit.used
    away = fit.value_at(fit.series.x, fit.series.L) - fit.series.values
    assert np.abs(away / fit.series.errors)[near].max() < 5
    with pytest.raises(AnalysisError, match="kappa"):
        fit_series(repetition(1), kappa=True)


def test_rows_far_from_the_transition_are_not_used():
    rows = repetition(7, sizes=(5, 17, 65))
    fit = fit_series(rows, degree=3)
    far = np.abs(rows.values - 0.5) > 0.45
    assert far.any()
    assert not fit.used[far].any()
    # Whatever they say: here a plateau.
    flat = np.where(far, np.clip(rows.values, 0.04, 0.96), rows.values)
    again = fit_series(replace(rows, values=np.round(flat * 20_000) / 20_000), degree=3)
    assert again.threshold == pytest.approx(fit.threshold, abs=0.1 * fit.threshold_error)


def test_sizes_cross_where_their_lines_do():
    L, x = np.repeat([4, 8, 16], 5), np.tile(np.linspace(1, 3, 5), 3)
    rows = Series("", "T", "y", L, x, 0.5 - 0.01 * L * (x - 1.9), np.full(15, 0.01))
    assert [item.p for item in fit_series(rows).crossings] == pytest.approx([1.9, 1.9])


def test_pulls_of_crossings_are_no_wider_than_they_should_where_trials_are_few():
    pulls = []
    L, p = grid((8, 16, 32), 0.3, 0.12, 7)
    for seed in range(40):
        k = np.random.default_rng(seed).binomial(30, ndtr((p - 0.3) * L**0.8 - 0.2))
        fit = fit_series(Series.of_counts(("", "p", "k/n"), L, p, k, 30), degree=3, omega=1)
        for item in fit.crossings:
            errors = np.array([item.p_error, item.probability_error])
            pulls.append([item.p - 0.3, item.probability - ndtr(-0.2)] / errors)
    # With errors of first order they were 1.7 and 1.6; some sizes do not cross.
    found = np.array(pulls)[np.isfinite(pulls).all(axis=1)]
    assert len(found) > 60
    assert (found.std(axis=0) < 1.25).all()
    assert (np.mean(np.abs(found) < 2, axis=0) > 0.9).all()


def test_sizes_that_do_not_cross_give_no_answer():
    L, p = np.repeat([6, 8, 12, 16, 24, 32], 2), np.tile([0.09, 0.09325], 6)
    # Drawn with p_c = 0.1031 and nu = 1.5, where the best fit has p_c = 0.0913(4).
    k = [4391, 5190, 3577, 4630, 2709, 3654, 1941, 2901, 943, 1826, 471, 1196]
    fit = fit_series(Series.of_counts(("", "p", "errors/shots"), L, p, k, 20_000))
    assert fit.problem == "no p_c: no neighbouring sizes cross at the sampled p"


def test_a_mean_with_a_power_of_the_size_is_told_by_sizes_that_do_not_cross():
    wrong, right = (fit_series(means(kappa=-0.3, seed=1), kappa=kappa) for kappa in (False, True))
    assert (
        "do not cross at the sampled T: a mean that scales with a power of L needs --kappa"
        in str(wrong.notes)
    )
    assert "--kappa" not in str([right.notes, fit_series(means(seed=1)).notes])


def test_a_fit_that_the_data_contradict_has_no_answer():
    rows = means(seed=8)
    fit = fit_series(replace(rows, errors=rows.errors / 10))
    assert "rejected" in fit.problem
    assert fit.problem.startswith("no T_c")
    assert np.isnan(fit.threshold_error)
    assert fit.to_dict()["threshold_error"] is None


@pytest.mark.slow
def test_the_collapse_of_a_table_is_good_without_corrections():
    L, x = grid()
    X = (x - X_C) * L
    y = np.random.default_rng(9).normal(1 + 0.3 * X + 0.05 * X**2, 0.01)
    fit = fit_series(Series("", "T", "y", L, x, y, np.full(L.size, 0.01)))
    found = fit.collapse()
    assert 0.3 < found.quality < 2
    assert abs(found.threshold - X_C) <= 4 * found.statistical_errors[0] < 0.02
    assert abs(found.y_t - 1) <= 4 * found.y_t_error < 0.2


def test_one_size_or_one_x_is_no_table_to_fit():
    rows = means()
    with pytest.raises(AnalysisError, match="two sizes with two T each"):
        fit_series(rows.at(rows.L == 8))
    with pytest.raises(AnalysisError, match="of L >= 32"):
        fit_series(rows, min_size=32)


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_rows_of_one_value_have_no_transition(share):
    L, p = grid((5, 9), 0.5, 0.1, 5)
    n = np.full(L.size, 100)
    with pytest.raises(AnalysisError, match=rf"k/n = {share:g} in every row: this shows no trans"):
        fit_series(Series.of_counts(("", "p", "k/n"), L, p, share * n, n))
