"""The exact likelihood: derivatives, information, chi^2, bootstrap replicas."""

import numpy as np
import pytest

from percolab.analysis import ScalingFunction, fit_size, synthetic_study
from percolab.analysis.likelihood import ThresholdCells, chi_square, maximise
from percolab.analysis.scaling import ScalingModel

TRUTH = ScalingFunction(0.65, 0.75, (0.1, 1.3, 0.05, -0.06), correction=0.8)
SIZES = (32, 64, 128)


def study(seed=0, **options):
    return synthetic_study(TRUTH, SIZES, rng=np.random.default_rng(seed), **options)


def model_of(cells, degree=3):
    return ScalingModel.of(cells, degree=degree, with_correction=True, omega=1.0)


def test_cell_probabilities_are_a_distribution_of_each_curve():
    cells = ThresholdCells.from_curves(study())
    R = np.concatenate([TRUTH.probability(curve.p, curve.L) for curve in cells.curves])
    probability = cells.difference @ R + cells.offset
    np.testing.assert_allclose(np.bincount(cells.curve, weights=probability), 1.0)
    np.testing.assert_allclose(np.bincount(cells.curve, weights=cells.counts), 25_000)


def test_derivatives_of_the_scaling_model_match_finite_differences():
    model = model_of(ThresholdCells.from_curves(study()))
    theta = np.array([0.3, 0.7, 0.2, 1.1, 0.05, -0.04, 0.3])
    _, jacobian = model(theta)
    step = 1e-6 * np.eye(theta.size)
    numeric = [(model(theta + h)[0] - model(theta - h)[0]) / 2e-6 for h in step]
    np.testing.assert_allclose(jacobian, np.array(numeric).T, atol=1e-8)


def test_scaled_and_physical_parameters_are_the_same_function():
    cells = ThresholdCells.from_curves(study())
    model = model_of(cells)
    theta = np.array([0.3, 0.7, 0.2, 1.1, 0.05, -0.04, 0.3])
    from scipy.special import ndtr

    physical = model.scaling_function(theta).probability(cells.p, cells.sizes)
    np.testing.assert_allclose(physical, ndtr(model(theta)[0]), rtol=1e-12)


def test_the_maximum_is_a_maximum():
    cells = ThresholdCells.from_curves(study())
    model = model_of(cells)
    best = maximise(model, cells, cells.counts, model.start)
    for direction in np.linalg.cholesky(best.covariance).T:
        for side in (-0.3, 0.3):
            theta = best.theta + side * direction
            R = model.scaling_function(theta).probability(cells.p, cells.sizes)
            value = cells.counts @ np.log(cells.difference @ R + cells.offset)
            assert value < best.log_likelihood


def test_curvature_errors_match_the_scatter_of_repeated_studies():
    estimates = []
    for seed in range(150):
        cells = ThresholdCells.from_curves(study(seed, points=7, blocks=1, samples=4000))
        model = model_of(cells)
        best = maximise(model, cells, cells.counts, model.start)
        error = model.width * np.sqrt(best.covariance[0, 0])
        estimates.append((model.scaling_function(best.theta).threshold, error))
    thresholds, errors = np.array(estimates).T
    # The scatter of n values is known to 1 / sqrt(2 n).
    assert abs(thresholds.std() / errors.mean() - 1.0) < 4.0 / np.sqrt(300)


def test_chi_square_is_distributed_as_it_should():
    p_values = []
    for seed in range(200):
        cells = ThresholdCells.from_curves(study(seed, points=7, blocks=1, samples=2000))
        model = model_of(cells)
        quality = chi_square(model, cells, maximise(model, cells, cells.counts, model.start))
        p_values.append(quality.p_value)
    z = (np.mean(p_values) - 0.5) / np.sqrt(1.0 / 12.0 / 200)
    assert abs(z) <= 4.0
    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / 200)


def test_chi_square_finds_a_wrong_model():
    cells = ThresholdCells.from_curves(study(samples=2500, reach=1.4))
    model = model_of(cells, degree=1)
    best = maximise(model, cells, cells.counts, model.start)
    assert chi_square(model, cells, best).p_value < 1e-6


@pytest.mark.parametrize("blocks", [5, 100])
def test_bootstrap_replicas_have_the_multinomial_covariance(blocks):
    curves = study(blocks=blocks, samples=20_000 // blocks)
    cells = ThresholdCells.from_curves(curves)
    replicas = cells.resample(np.random.default_rng(1), 4000)
    np.testing.assert_allclose(replicas.sum(axis=1), 60_000)
    scatter = replicas.std(axis=0)
    expected = np.sqrt(cells.counts * (1.0 - cells.counts / 20_000))
    # 100 blocks know their own scatter to 1 / sqrt(200); resampled samples know it exactly.
    tolerance = 4.0 / np.sqrt(2.0 * (100 if blocks == 100 else 4000)) + 0.01
    np.testing.assert_allclose(scatter / expected, 1.0, atol=tolerance)


def test_a_fit_through_as_many_points_as_parameters_is_exact():
    curve = study(points=4)[0]
    fit = fit_size([curve])
    np.testing.assert_allclose(fit.probability(curve.p), curve.probability, atol=1e-6)
    assert fit.chi_square.dof == 0
    assert np.isnan(fit.chi_square.p_value)


def test_empty_intervals_do_not_disturb_a_fit():
    p = np.linspace(0.55, 0.75, 41)
    truth = TRUTH.probability(p, 32)
    from percolab.analysis import synthetic_curve

    sparse = synthetic_curve(32, p, truth, samples=60, blocks=1, rng=np.random.default_rng(2))
    assert (sparse.threshold_counts == 0).any()
    fit = fit_size([sparse], degree=2)
    assert np.abs(fit.probability(p) - truth).max() < 0.2
