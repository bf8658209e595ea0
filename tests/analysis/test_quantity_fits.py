"""The table of joint fits, and the mean of p_c from quantities fitted alone."""

from dataclasses import replace

import numpy as np
import pytest
from quantity_support import (
    OMEGA,
    P_C,
    QUANTITIES,
    SIZES,
    TRUTH,
    Y_T,
    analysed,
    check_pulls,
    one_p,
    task,
    three_p,
)

from percolab.analysis import AnalysisError
from percolab.analysis.quantities import BlockMoments, observe
from percolab.analysis.quantity_fits import Fitter, least_variance, mean_threshold
from percolab.analysis.quantity_model import ModelChoice, Start, scales_of
from percolab.analysis.text import quantity_table

FIXED = {"degree": 2, "corrections": "b", "y_t": None}
STUDIES = 120


def test_the_table_of_fits_chooses_one_and_tells_the_spread():
    found = analysed(three_p(np.random.default_rng(14)))
    assert found.chosen.accepted
    assert abs(found.threshold - P_C) <= 4 * found.threshold_error
    shown = [trial for trial in found.trials if trial.shown]
    assert {trial.fit.min_size for trial in shown} == {8, 12, 16}
    # Without a correction the smallest sizes are refused, and tell of no systematic error.
    none = next(trial for trial in shown if trial.fit.choice.corrections == "none")
    assert not none.accepted
    others = [t.fit for t in shown if t.accepted and t is not found.chosen]
    away = np.array([(fit.threshold - found.threshold) ** 2 for fit in others])
    weights = np.array([fit.threshold_error**-2 for fit in others])
    assert found.compared == len(others) > 1
    assert found.systematic_error == pytest.approx(np.sqrt(np.sum(away * weights) / weights.sum()))
    # Every quantity alone agrees.
    for quantity, own in zip(QUANTITIES, found.alone, strict=True):
        assert own.accepted
        assert abs(own.fit.threshold - P_C) <= 4 * own.fit.threshold_error
        critical = own.fit.amplitudes[0]
        assert abs(critical.critical - TRUTH[quantity.name][0]) <= 4 * critical.critical_error
    text = quantity_table(found)
    assert all(word in text for word in ("chosen", "rejected", "Q_c wrapping_any"))


def test_chi_square_alone_moves_the_cut_off():
    moments = three_p(np.random.default_rng(15))
    # The smallest size has a correction of its own, six of its errors large.
    sums = dict(moments[0].moments)
    sums["wrapping_any"] = sums["wrapping_any"] + 10_000 * 6 * 0.5 / 1000
    broken = BlockMoments(8, moments[0].p, moments[0].samples, sums)
    options = {"degree": 2, "corrections": "b"}
    assert analysed(moments, **options).chosen.fit.min_size == 8
    assert analysed([broken, *moments[1:]], **options).chosen.fit.min_size == 12


def test_smaller_sizes_are_left_out_when_asked():
    found = analysed(three_p(np.random.default_rng(16)), min_size=16)
    assert found.chosen.fit.sizes == (16, 24, 32, 64)


def test_what_the_data_cannot_tell_is_said_in_one_line():
    rng = np.random.default_rng(17)
    single = [task(rng, L, points=1, samples=10**5, blocks=100) for L in SIZES]
    same = [BlockMoments(m.L, np.array([P_C]), m.samples, m.moments) for m in single]
    with pytest.raises(AnalysisError, match="'wrapping_any' is there at one p a size"):
        analysed(same)
    with pytest.raises(AnalysisError, match=r"at least three sizes .* got L = 8, L = 12$"):
        analysed(three_p(rng)[:2])
    study = three_p(rng)
    lacking = [
        BlockMoments(m.L, m.p, m.samples, {k: v for k, v in m.moments.items() if "sum" not in k})
        for m in study[2:]
    ]
    with pytest.raises(AnalysisError, match=r"'Q_2' is there at fewer than three sizes \(L = 8, L"):
        analysed(study[:2] + lacking)
    once = [task(rng, L, points=1, samples=10**6, blocks=100) for L in SIZES]
    with pytest.raises(AnalysisError, match="'Q_2' is there at one p a size"):
        analysed(lacking + once)


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


@pytest.fixture(
    scope="module", params=[three_p, one_p, pytest.param(coarse, marks=pytest.mark.slow)]
)
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
