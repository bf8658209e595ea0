"""The mean of p_c from quantities fitted alone: its weights, its error and what it leaves out."""

from dataclasses import replace

import numpy as np
import pytest
from test_quantity_fit import (
    OMEGA,
    P_C,
    QUANTITIES,
    SIZES,
    Y_T,
    analysed,
    check_pulls,
    one_p,
    task,
    three_p,
)

from percolab.analysis.observations import observe
from percolab.analysis.quantity_mean import least_variance, mean_threshold
from percolab.analysis.quantity_model import ModelChoice, scales_of
from percolab.analysis.quantity_start import Start
from percolab.analysis.quantity_table import quantity_table
from percolab.analysis.quantity_trials import Fitter

FIXED = {"degree": 2, "corrections": "b", "y_t": None}
STUDIES = 120


def fitted(moments):
    """Return the fits of each quantity alone with the right model, and the mean.

    Each has a smallest size of its own.
    """
    observations = [observe(item, QUANTITIES) for item in moments]
    start = Start(P_C, Y_T, 1.5)
    names = [item.name for item in QUANTITIES]
    fitter = Fitter(observations, names, 2.0, start, scales_of(observations, P_C, 0.02))
    choice = ModelChoice(2, (OMEGA,), "b")
    fits = [fitter.only(index).fit(SIZES[index], choice) for index in range(len(QUANTITIES))]
    return fits, mean_threshold(fitter, fits)


def coarse(rng):
    """Return a study with so few blocks that of five p four combinations are used."""
    return [task(rng, L, points=5, samples=10**6, blocks=60) for L in SIZES]


@pytest.fixture(scope="module", params=[three_p, one_p, coarse])
def studies(request):
    rng = np.random.default_rng(31)
    return [fitted(request.param(rng)) for _ in range(STUDIES)]


def test_weights_are_those_of_the_least_variance():
    rng = np.random.default_rng(32)
    for count in (2, 3, 6):
        root = rng.normal(size=(count, count))
        covariance = 1e-14 * (root @ root.T + 0.1 * np.eye(count))
        weights = least_variance(covariance)
        assert weights.sum() == pytest.approx(1)
        assert weights.min() >= 0
        # At the minimum every weight that is not 0 has the same gradient, and the others a larger.
        gradient = covariance @ weights
        value = weights @ gradient
        np.testing.assert_allclose(gradient[weights > 0], value, rtol=1e-9)
        assert np.all(gradient >= value * (1 - 1e-9))


def test_without_correlations_weights_are_those_of_the_textbook():
    np.testing.assert_allclose(least_variance(np.diag([1.0, 4.0, 4.0])), [2 / 3, 1 / 6, 1 / 6])


def test_no_weight_is_negative_where_the_best_linear_estimate_has_one():
    covariance = np.array([[1.0, 1.8], [1.8, 4.0]])
    best = np.linalg.solve(covariance, np.ones(2))
    assert best[1] < 0
    np.testing.assert_allclose(least_variance(covariance), [1, 0], atol=1e-12)


def test_pulls_of_the_mean_are_standard_normal(studies):
    check_pulls([(mean.threshold - P_C) / mean.error for _, mean in studies])


def test_correlations_are_those_among_studies(studies):
    seen = np.corrcoef(np.array([[fit.threshold for fit in fits] for fits, _ in studies]).T)
    stated = np.mean([mean.correlations for _, mean in studies], axis=0)
    assert np.abs(stated[0, 1:]).min() > 0.05
    # Fisher's transform of a correlation has the error 1 / sqrt(n - 3).
    upper = np.triu_indices(len(QUANTITIES), 1)
    away = np.arctanh(seen[upper]) - np.arctanh(stated[upper])
    assert np.abs(away).max() <= 4 / np.sqrt(STUDIES - 3)


def test_the_mean_is_no_less_precise_than_any_of_its_quantities(studies):
    for fits, mean in studies:
        assert all(mean.error <= fit.threshold_error for fit in fits)
        p_c = np.array([fit.threshold for fit in fits])
        weights = np.array([fit.threshold_error**-2 for fit in fits])
        assert mean.threshold == pytest.approx(np.dot(mean.weights, p_c))
        square = np.average((p_c - mean.threshold) ** 2, weights=weights)
        assert mean.spread == pytest.approx(np.sqrt(square))


def test_the_table_has_a_row_for_each_quantity_alone():
    found = analysed(three_p(np.random.default_rng(35)), **FIXED)
    text = quantity_table(found)
    alone = text.split("alone ")[-1].split("\n\n")[0].splitlines()[1:]
    assert [line.split()[0] for line in alone] == [item.name for item in QUANTITIES]
    assert [line.split()[2] for line in alone] == [f"{x:.2f}" for x in found.mean.weights]
    assert "mean of the quantities alone" in text
    assert found.to_dict()["mean"]["threshold"] == found.mean.threshold


def test_a_quantity_that_no_fit_describes_is_left_out_and_said():
    rng = np.random.default_rng(33)
    broken = []
    for L in SIZES:
        item = task(rng, L, points=3, samples=10**6, blocks=100)
        shifted = item.moments["wrapping_any"] + 200 * rng.normal()
        broken.append(replace(item, moments={**item.moments, "wrapping_any": shifted}))
    found = analysed(broken, **FIXED)
    assert not found.alone[0].accepted
    assert found.mean.weights[0] == 0
    assert sum(found.mean.weights) == pytest.approx(1)
    assert "wrapping_any alone: no fit is accepted" in found.notes
    assert "rejected" in quantity_table(found).split("L_min  degree  corrections  Q_c")[0]


def test_one_quantity_has_no_mean():
    fits, _ = fitted(three_p(np.random.default_rng(34)))
    assert mean_threshold(None, [fits[0], None, None]) is None
