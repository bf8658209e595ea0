"""The exact likelihood and its maximum under priors: gradient, information, errors, chi^2."""

import numpy as np
import pytest
from analysis_support import TRUTH, study
from scipy import optimize
from synthetic_support import synthetic_curve

from percolab.analysis.likelihood import (
    Prior,
    ThresholdCells,
    _Point,
    chi_square,
    fit_size,
    maximise,
    resample_curve,
)
from percolab.analysis.scaling import Lines, ScalingModel
from percolab.analysis.theory.known_exponents import Known
from percolab.errors import AnalysisError

SIZES = (32, 64, 128)


def small_study(seed=0, **options):
    return study(seed, SIZES, **options)


def problem(curves, degree=3):
    """Return cells, their model and its priors."""
    cells = ThresholdCells.from_curves(curves)
    model = ScalingModel.of(cells, degree=degree, omega=1.0, like=Lines.through(curves))
    return cells, model, model.prior(Known(0.75, 0.02, "", ""))


def maximum(curves, degree=3):
    """Return the cells of curves, and the maximum of their likelihood."""
    cells, model, prior = problem(curves, degree)
    return cells, maximise(model, cells, model.start, prior)


def test_cell_probabilities_are_a_distribution_of_each_curve():
    cells = ThresholdCells.from_curves(small_study())
    R = np.concatenate([TRUTH.probability(curve.p, curve.L) for curve in cells.curves])
    probability = cells.differences(R, last=1.0)
    assert (probability > 0).all()
    np.testing.assert_allclose(np.bincount(cells.curve, weights=probability), 1.0)
    np.testing.assert_allclose(cells.totals, 25_000)
    first = R[: cells.curves[0].p.size]
    np.testing.assert_allclose(probability[: first.size + 1], np.diff([0, *first, 1]))


def test_the_score_is_the_gradient_of_likelihood_and_priors():
    cells, model, prior = problem(small_study(samples=25))
    theta = model.start + 0.01 * np.random.default_rng(1).normal(size=model.start.size)
    here, steps = _Point.at(model, cells, prior, theta), 1e-5 * np.eye(theta.size)
    ends = [[_Point.at(model, cells, prior, theta + x * h).value for x in (1, -1)] for h in steps]
    np.testing.assert_allclose(here.score, -np.diff(ends)[:, 0] / 2e-5, rtol=1e-5, atol=1e-3)
    # The priors are a part of it that shows.
    bare = _Point.at(model, cells, Prior.none(theta.size), theta)
    np.testing.assert_allclose(bare.score - here.score, prior.precision * (theta - prior.mean))
    assert bare.value - here.value == pytest.approx(prior.penalty(theta) / 2)


def test_the_maximum_is_that_of_a_general_optimiser():
    cells, model, prior = problem(small_study(samples=4))
    best = maximise(model, cells, model.start, prior)

    # In units of the errors the optimiser needs no scaling.
    root = np.linalg.cholesky(best.covariance)

    def objective(u):
        point = _Point.at(model, cells, prior, model.start + root @ u)
        return (1e9, 0 * u) if point is None else (-point.value, -root.T @ point.score)

    found = optimize.minimize(
        objective, np.zeros(model.start.size), jac=True, method="BFGS", options={"gtol": 1e-6}
    )
    away = np.linalg.solve(root, model.start + root @ found.x - best.theta)
    assert np.abs(away).max() < 1e-3
    assert -2 * found.fun == pytest.approx(-best.deviance - best.penalty, abs=1e-6)


def test_the_errors_of_the_maximum_are_the_scatter_of_repeated_studies():
    """The prior is a measurement that is not repeated: other samples move less than the error."""
    values, whole, statistical = [], [], []
    for seed in range(100):
        _, best = maximum(small_study(seed, points=7, blocks=1, samples=4000))
        values.append(best.theta[0])
        whole.append(best.covariance[0, 0])
        statistical.append(best.covariance[0] @ best.information @ best.covariance[0])
    # The scatter of n values is known to 1 / sqrt(2 n).
    assert abs(np.std(values) / np.sqrt(np.mean(statistical)) - 1) < 4 / np.sqrt(200)
    assert np.mean(statistical) < 0.9 * np.mean(whole)


def test_chi_square_is_distributed_as_it_should_and_finds_a_wrong_model():
    p_values = np.array([
        chi_square(*maximum(small_study(seed, points=7, blocks=1, samples=2000))).p_value
        for seed in range(100)
    ])  # fmt: skip
    assert abs(p_values.mean() - 0.5) / np.sqrt(1 / 12 / 100) <= 4
    assert np.mean(p_values < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)
    wrong = maximum(small_study(samples=2500, reach=1.4), degree=1)
    assert chi_square(*wrong).p_value < 1e-6


def test_a_parameter_that_nothing_determines_is_said():
    curves = small_study()
    cells = ThresholdCells.from_curves(curves[:1])
    model = ScalingModel.of(cells, degree=3, omega=1.0, like=Lines.through(curves))
    with pytest.raises(AnalysisError, match="do not determine all parameters"):
        maximise(model, cells, model.start)


@pytest.mark.parametrize("blocks", [5, 100])
def test_bootstrap_replicas_have_the_multinomial_covariance(blocks):
    (curve,) = study(sizes=(32,), blocks=blocks, samples=20_000 // blocks)
    replicas = resample_curve(curve, np.random.default_rng(1), 4000)
    np.testing.assert_allclose(replicas.sum(axis=1), 20_000)
    counts = curve.threshold_counts.sum(axis=0)
    expected = np.sqrt(counts * (1 - counts / 20_000))
    # 100 blocks know their own scatter to 1 / sqrt(200); resampled samples know it exactly.
    tolerance = 4 / np.sqrt(2 * (100 if blocks == 100 else 4000)) + 0.01
    np.testing.assert_allclose(replicas.std(axis=0) / expected, 1, atol=tolerance)


def test_a_fit_through_as_many_points_as_parameters_is_exact():
    curve = small_study(points=4)[0]
    fit = fit_size([curve])
    np.testing.assert_allclose(fit.probability(curve.p), curve.probability, atol=1e-6)
    assert fit.chi_square.dof == 0
    assert np.isnan(fit.chi_square.p_value)


def test_empty_intervals_do_not_disturb_a_fit():
    p = np.linspace(0.55, 0.75, 41)
    truth = TRUTH.probability(p, 32)
    sparse = synthetic_curve(32, p, truth, samples=60, blocks=1, rng=np.random.default_rng(2))
    assert (sparse.threshold_counts == 0).any()
    fit = fit_size([sparse], degree=2)
    assert np.abs(fit.probability(p) - truth).max() < 0.2
