"""A joint fit of dimensionless quantities finds what synthetic data were made of."""

import itertools

import numpy as np
import pytest
from quantity_support import (
    OMEGA,
    P_C,
    QUANTITIES,
    SIZES,
    TRUTH,
    Y_T,
    check_pulls,
    one_p,
    task,
    three_p,
)

from percolab.analysis.quantities import observe
from percolab.analysis.quantity_model import (
    CORRECTIONS,
    JointModel,
    ModelChoice,
    fit_model,
    near_threshold,
    scales_of,
)


def model_of(moments, quantities=QUANTITIES, *, corrections="b", free=False, y_t=None, degree=2):
    observations = tuple(observe(item, quantities) for item in moments)
    choice = ModelChoice(degree, (OMEGA,) * len(quantities), corrections, free, y_t)
    return JointModel(observations, choice, 2.0, scales_of(observations, P_C, 0.02))


def fit_of(moments, quantities=QUANTITIES, **options):
    model = model_of(moments, quantities, **options)
    start = [0.0, Y_T][: 1 + (model.choice.y_t is None)]
    start += [OMEGA] if model.choice.free_omega else []
    return fit_model(model, np.array(start), [item.name for item in quantities])


@pytest.mark.parametrize("study", [three_p, one_p])
def test_pulls_of_all_numbers_are_standard_normal(study):
    rng = np.random.default_rng(7)
    pulls, chances = [], []
    for _ in range(200):
        fit = fit_of(study(rng))
        last = fit.amplitudes[-1]
        pulls.append(
            [
                (fit.threshold - P_C) / fit.threshold_error,
                (fit.y_t - Y_T) / fit.y_t_error,
                (last.critical - TRUTH["Q_2"][0]) / last.critical_error,
                (last.slopes[0] - TRUTH["Q_2"][1]) / last.slope_errors[0],
                (last.correction - TRUTH["Q_2"][3]) / last.correction_error,
            ]
        )
        chances.append(fit.chi_square.p_value)
    for column in np.array(pulls).T:
        check_pulls(column)
    # p-values are uniform: mean 1/2, variance 1/12; the noise of the covariance is in neither.
    assert abs(np.mean(chances) - 0.5) <= 4 * np.sqrt(1 / 12 / 200)


def test_few_blocks_widen_the_errors_as_they_must():
    rng = np.random.default_rng(8)
    quantities, pulls, naive = QUANTITIES, [], []
    for _ in range(200):
        model = model_of(three_p(rng, blocks=45))
        fit = fit_model(model, np.array([0.0, Y_T]), [item.name for item in quantities])
        pulls.append((fit.threshold - P_C) / fit.threshold_error)
        theta = model.linear_fit(np.array(fit.outer))
        jacobian = model.jacobian(theta)
        error = model.scales.width * np.sqrt(np.linalg.inv(jacobian.T @ jacobian)[0, 0])
        naive.append(error / fit.threshold_error)
    check_pulls(pulls)
    # 45 blocks for 9 values: the curvature alone is too sure of itself.
    assert np.mean(naive) < 0.98


@pytest.mark.parametrize(
    ("corrections", "free", "y_t"),
    [*itertools.product(CORRECTIONS, [False], [None, 1.1]), ("bc", True, None)],
)
def test_the_jacobian_is_that_of_the_residuals(corrections, free, y_t):
    moments = three_p(np.random.default_rng(9))
    model = model_of(moments, corrections=corrections, free=free, y_t=y_t)
    rng = np.random.default_rng(10)
    theta = rng.uniform(0.5, 1.5, model.parameters)
    step = 1e-6
    for column, exact in enumerate(model.jacobian(theta).T):
        up, down = theta.copy(), theta.copy()
        up[column] += step
        down[column] -= step
        slope = (model.residuals(up) - model.residuals(down)) / (2 * step)
        np.testing.assert_allclose(slope, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


def test_the_joint_fit_is_more_precise_than_each_of_its_quantities():
    moments = three_p(np.random.default_rng(11))
    joint = fit_of(moments).threshold_error
    assert all(joint < fit_of(moments, [item]).threshold_error for item in QUANTITIES)


def test_omega_can_be_fitted():
    moments = three_p(np.random.default_rng(12), samples=10**8)
    own = fit_of(moments, free=True).amplitudes[0]
    assert 0 < own.omega_error < 0.1
    assert abs(own.omega - OMEGA) <= 4 * own.omega_error


def test_the_start_is_near_and_far_p_are_left_out():
    rng = np.random.default_rng(13)
    wide = [task(rng, L, points=9, samples=10**6, blocks=200, reach=0.3) for L in SIZES]
    start, near = near_threshold(wide, QUANTITIES)
    assert abs(start.threshold - P_C) < 2e-4
    assert abs(start.y_t - Y_T) < 0.1
    x = np.concatenate([(item.p - P_C) * item.L**Y_T for item in near])
    # 1.5 |x| <= 0.2 leaves 3 of the 9 p; the bound itself is known as well as the slope is.
    assert np.abs(x).max() < 0.16
    assert {item.p.size for item in near} == {3}
