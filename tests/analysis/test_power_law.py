"""Power laws: both parts of their errors hold whatever the corrections are."""

import json

import numpy as np
import pytest
from helpers import slow

from percolab.analysis import power_law
from percolab.analysis.power_law import average, fit_member, fit_power_law, local_slopes
from percolab.analysis.value import REJECTED
from percolab.errors import AnalysisError

SIZES = np.array([8.0, 12, 16, 24, 32, 48, 64])
NOISE = 0.003


def law_of(rng, b, B, sizes=SIZES):
    """Return a fit of 2 L^1.7 (1 + b / L + B / L^2) with noise."""
    exact = 2 * sizes**1.7 * (1 + b / sizes + B / sizes**2)
    noisy = exact * (1 + NOISE * rng.standard_normal(sizes.size))
    return fit_power_law(sizes, noisy, np.full(sizes.size, NOISE**2))


def pulls_of(count, scale, sizes=SIZES):
    rng = np.random.default_rng(3)
    laws = [law_of(rng, *(scale * rng.standard_normal(2)), sizes) for _ in range(count)]
    return np.array([(law.exponent.value - 1.7) / law.exponent.error for law in laws])


@pytest.mark.parametrize("scale", [slow(0.1), 1.0, slow(2.5)])
def test_whole_errors_hold_whatever_the_corrections_are(scale):
    pulls = pulls_of(200, scale)
    assert abs(pulls.mean()) < 0.3
    assert pulls.std() < 1.1
    assert np.mean(np.abs(pulls) < 2) >= 0.94


def test_errors_of_z_hold_where_times_have_a_constant():
    """Times of Swendsen and Wang in the plane, like 2.7 L^0.22 - 1.7, look like L^0.34."""
    sizes, rng = SIZES[:5:2], np.random.default_rng(6)
    exact = 2.7 * sizes**0.22 - 1.7
    law: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(100):
        times = exact * (1 + 0.02 * rng.standard_normal(sizes.size))
        for with_constant, pulls in law.items():
            given = {"omega": 2.0, "of_times": with_constant}
            z = fit_power_law(sizes, times, np.full(sizes.size, 4e-4), **given).exponent
            pulls.append((z.value - 0.22) / z.error)
    assert np.mean(law[False]) > 1
    assert abs(np.mean(law[True])) < 0.5
    assert np.std(law[True]) < 1.1


@pytest.mark.parametrize("options", [{"of_times": True}, {"of_squares": True}])
def test_a_law_with_a_constant_passes_through_its_points(options):
    for constant in (-1.7, 0.0, 2.0):
        times = 2.7 * SIZES**0.5 + constant
        law = fit_power_law(SIZES, times, np.full(SIZES.size, 1e-6), omega=2.0, **options)
        np.testing.assert_allclose(law(SIZES), times, rtol=2e-3)


def test_priors_a_tenth_as_wide_would_not_hold(monkeypatch):
    monkeypatch.setattr(power_law, "PRIORS", (0.3, 0.9, 2.7))
    assert np.mean(np.abs(pulls_of(200, 2.5)) < 2) < 0.8


def test_the_statistical_error_is_the_scatter_of_the_same_law():
    rng = np.random.default_rng(4)
    found = [law_of(rng, 0.5, -1.0, SIZES[:3]).exponent for _ in range(400)]
    scatter = np.std([item.value for item in found])
    assert found[0].statistical_error == pytest.approx(scatter, rel=4 / np.sqrt(2 * 400))
    # Three sizes determine two corrections badly: most of the error is of the priors.
    assert found[0].systematic_error > found[0].statistical_error


def test_two_sizes_have_an_answer_with_a_wide_error():
    law = law_of(np.random.default_rng(5), 1.0, 1.0, SIZES[[0, 6]])
    assert law.exponent.chi_square.dof == 0
    assert not law.exponent.rejected
    assert abs(law.exponent.value - 1.7) < 2 * law.exponent.error
    assert law.exponent.error > 10 * law.exponent.statistical_error


def test_the_average_is_that_of_jay_and_neil():
    values, covariance = np.array([1.0, 1.2, 0.9, 1.0]), 0.01 * np.eye(4)
    design = np.ones((4, 1))
    kept = [np.arange(4) >= first for first in (0, 2)]
    members = [fit_member(design, values, covariance, [np.inf], own) for own in kept]
    chi2 = [np.sum((values[own] - values[own].mean()) ** 2) / 0.01 for own in kept]
    weight = np.exp(-np.array([chi2[0], chi2[1] + 4]) / 2)
    weight /= weight.sum()
    found = average(members, covariance).value(0)
    means = np.array([values[own].mean() for own in kept])
    assert found.value == pytest.approx(weight @ means)
    spread = weight @ (means - found.value) ** 2
    assert found.error**2 == pytest.approx(weight @ [0.01 / 4, 0.01 / 2] + spread)
    gain = weight[0] / 4 + weight[1] * np.array([0, 0, 0.5, 0.5])
    assert found.statistical_error**2 == pytest.approx(0.01 * gain @ gain)
    assert found.members == 2
    assert found.chi_square.value == pytest.approx(chi2[0] if weight[0] > 0.5 else chi2[1])


def test_an_error_of_priors_alone_is_systematic():
    member = fit_member(np.ones((1, 1)), np.array([2.0]), np.array([[1.0]]), [0.5])
    found = average([member], np.array([[1.0]])).value(0)
    # Weights 1 of the data and 4 of the prior at 0.
    assert found.value == pytest.approx(2.0 / 5)
    assert found.statistical_error == pytest.approx(1 / 5)
    assert found.error**2 == pytest.approx(1 / 5)


def test_what_chi_square_rejects_has_no_answer():
    law = fit_power_law(SIZES, np.exp(0.2 * SIZES), np.full(SIZES.size, NOISE**2)).exponent
    assert law.chi_square.p_value < REJECTED
    assert law.rejected
    assert str(law).startswith("rejected by chi^2")
    record = law.to_dict()
    assert next(iter(record)) == "rejected"
    json.dumps(record, allow_nan=False)
    assert not law_of(np.random.default_rng(6), 1.0, 1.0).exponent.rejected


def test_a_fit_is_the_law_at_its_sizes_in_any_order():
    L = np.array([128.0, 8, 16, 32, 64])
    exact = 3 * L**0.25 * np.exp(-1.5 / L + 2 / L**2)
    law = fit_power_law(L, exact, np.full(5, 1e-12))
    # Fits that leave out 8 and 16 take part in the average.
    np.testing.assert_allclose(law(L)[[0, 3, 4]], exact[[0, 3, 4]], rtol=1e-6)
    np.testing.assert_allclose(law(L), exact, rtol=5e-3)
    assert law.exponent.value == pytest.approx(0.25, abs=2e-3)


def test_squares_have_priors_twice_as_wide():
    """The square of a law has twice its exponent and twice its whole error."""
    sizes, variances = 1e3 * SIZES[:3], np.full(3, NOISE**2)
    one = fit_power_law(sizes, sizes, variances).exponent
    # What a constant adds to 1e8 is nothing.
    two = fit_power_law(sizes, sizes**2, 4 * variances, of_squares=True).exponent
    assert two.value == pytest.approx(2 * one.value)
    assert two.error == pytest.approx(2 * one.error)


def test_a_constant_that_small_clusters_add_to_a_square_is_no_bias():
    values = 0.03 * SIZES**1.79 + 0.5
    variances = np.full(SIZES.size, 1e-6)
    plain = fit_power_law(SIZES, values, variances, omega=2.0).exponent
    known = fit_power_law(SIZES, values, variances, omega=2.0, of_squares=True).exponent
    assert abs(known.value - 1.79) < known.error < 0.1
    assert abs(plain.value - 1.79) > 2 * plain.error


@pytest.mark.parametrize(
    ("sizes", "values", "variances"),
    [
        ([8], [1.0], [0.1]),
        ([8, 8], [1.0, 1.1], [0.1, 0.1]),
        ([8, 16], [1, 2], [0.1, 0.0]),
        ([8, 16], [1, -2], [0.1, 0.1]),
        ([8, 16], [1, 2], [[1.0, 1.0], [1.0, 1.0]]),
    ],
)
def test_what_determines_no_power_law_is_refused(sizes, values, variances):
    with pytest.raises(AnalysisError):
        fit_power_law(sizes, values, np.array(variances))


@pytest.mark.slow
def test_without_priors_a_fit_is_the_best_linear_estimate():
    rng = np.random.default_rng(4)
    design = np.stack([np.ones(6), np.arange(6.0)], axis=1)
    root = np.tril(rng.normal(size=(6, 6))) + 3 * np.eye(6)
    covariance = root @ root.T
    draws = (design @ [1.0, -0.5])[:, None] + root @ rng.standard_normal((6, 4000))
    fits = [fit_member(design, values, covariance, [np.inf, np.inf]) for values in draws.T]
    # (X^T C^-1 X)^-1, by another way than whitening.
    expected = np.linalg.inv(design.T @ np.linalg.solve(covariance, design))
    np.testing.assert_allclose(fits[0].gain @ covariance @ fits[0].gain.T, expected)
    theta = np.array([fit.theta for fit in fits])
    assert np.abs((theta.mean(axis=0) - [1.0, -0.5]) / np.sqrt(np.diag(expected) / 4000)).max() < 4
    np.testing.assert_allclose(np.cov(theta, rowvar=False), expected, rtol=4 * np.sqrt(2 / 4000))
    assert {fit.chi_square.dof for fit in fits} == {4}
    values = np.array([fit.chi_square.value for fit in fits])
    assert abs(values.mean() - 4) < 4 * np.sqrt(8 / 4000)


def test_a_power_has_its_exponent_everywhere():
    x = np.geomspace(1, 1000, 41)
    y = 3 * x**-2.05
    found = local_slopes(x, y, np.stack([y, y]))
    np.testing.assert_allclose(found.slope, -2.05)
    np.testing.assert_allclose(found.error, 0, atol=1e-12)
    assert found.x[0] > 1
    assert found.x[-1] < 1000
    # Ends differ by a factor 2 at least, so that noise does not dominate.
    assert (found.x >= 2**0.5 * x[: found.x.size] * (1 - 1e-9)).all()


def test_errors_are_those_of_the_jackknife():
    x, rng, blocks = np.array([1.0, 2.0, 4.0]), np.random.default_rng(0), 400
    parts = 1 + 0.1 * rng.standard_normal((blocks, 3))
    mean = parts.mean(axis=0)
    without = (parts.sum(axis=0) - parts) / (blocks - 1)
    found = local_slopes(x, mean, without)
    # Of two means with relative error 0.1 / sqrt(400).
    np.testing.assert_allclose(found.error, 2**0.5 * 0.005 / np.log(2), rtol=0.15)


def test_what_is_not_positive_is_left_out():
    x, y = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 0.0, 4.0, 8.0])
    found = local_slopes(x, y, np.empty((0, 4)))
    np.testing.assert_allclose(found.slope, [1.0, 1.0])
    assert np.isnan(found.error).all()
