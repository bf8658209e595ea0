"""The scaling function: derivatives, priors, and units in which every parameter is of order one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from analysis_support import TRUTH, study
from scipy.special import ndtr

from percolab.analysis import scaling
from percolab.analysis.crossings import (
    CurveCrossing,
    cross_sizes,
    extrapolate,
    find_crossing,
    ratio_crossings,
    transition_width,
)
from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.likelihood import SizeFit, ThresholdCells
from percolab.analysis.scaling import OUTER, Lines, ScalingFunction, ScalingModel
from percolab.analysis.text import ratio_table
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import ChiSquare
from percolab.errors import AnalysisError

THETA = np.array([0.3, 0.7, -0.05, 0.03, 0.2, 1.1, 0.05, -0.04, 0.3, -0.2, 0.4, 0.1])


def model_of(curves, degree=3, omega=1.2):
    cells = ThresholdCells.from_curves(curves)
    return ScalingModel.of(cells, degree=degree, omega=omega, like=Lines.through(curves)), cells


def test_the_function_is_that_of_the_formula():
    f = ScalingFunction(0.5, 0.8, (0.1, 1.2, 0.3), (-0.8, 2.0), (0.5, -0.6, 0.7, -0.9), 1.5)
    t, L = 0.03, 20.0
    X = (t - 0.8 * t**2 + 2.0 * t**3) * L**0.8
    expected = 0.1 + 1.2 * X + 0.3 * X**2
    expected += (0.5 - 0.6 * X) * L**-1.5 + (0.7 - 0.9 * X) * L**-3.0
    assert f(0.53, 20) == pytest.approx(expected, rel=1e-14)
    assert f.probability([0.53], 20) == pytest.approx(ndtr(expected))


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_derivatives_of_the_model_match_finite_differences(degree):
    model, _ = model_of(study(), degree)
    rng = np.random.default_rng(degree)
    theta = np.array([0.3, 0.7, -0.1, 0.05, *rng.normal(0, 0.4, degree + 5)])
    _, jacobian = model(theta)
    step = 1e-6 * np.eye(theta.size)
    numeric = [(model(theta + h)[0] - model(theta - h)[0]) / 2e-6 for h in step]
    np.testing.assert_allclose(jacobian, np.array(numeric).T, rtol=1e-6, atol=1e-7)


def test_scaled_and_physical_parameters_are_the_same_function():
    model, cells = model_of(study())
    function = model.scaling_function(THETA)
    np.testing.assert_allclose(function(cells.p, cells.sizes), model(THETA)[0], rtol=1e-11)
    assert model.threshold(THETA) == function.threshold
    assert function.y_t == 0.7


def test_priors_are_natural_in_lattice_constants():
    """A parameter one width of its prior off has a penalty of 1, whatever the units of the fit."""
    model, _ = model_of(study(), degree=4)
    prior = model.prior(Known(0.75, 0.01, "", ""))
    with np.errstate(divide="ignore"):
        widths = prior.precision**-0.5
    theta = np.zeros(widths.size)
    theta[1], theta[OUTER + 1] = 0.75, 1.0
    assert prior.penalty(theta) == 0
    p_0 = model.units.p_0
    pairs = zip(scaling.CORRECTION_WIDTHS, scaling.CORRECTIONS, strict=True)
    for index, (width, (of_x, _)) in enumerate(pairs):
        moved = theta.copy()
        moved[OUTER + 5 + index] = widths[OUTER + 5 + index]
        function = model.scaling_function(moved)
        unit = function.coefficients[1] if of_x else 1.0
        assert function.corrections[index] / unit == pytest.approx(width, rel=1e-12)
        assert prior.penalty(moved) == pytest.approx(1)
    theta[2:4] = widths[2:4]
    n, m = model.scaling_function(theta).field
    assert n == pytest.approx(scaling.FIELD_WIDTH / (p_0 * (1 - p_0)))
    assert m == pytest.approx(n**2)
    assert widths[1] == 0.01


def test_wider_priors_are_wider_but_for_that_of_the_exponent():
    model, _ = model_of(study())
    known = Known(0.75, 0.01, "", "")
    one, two = (model.prior(known, wider=factor).precision for factor in (1.0, 2.0))
    given = one > 0
    ratio = (one[given] / two[given]) ** 0.5
    # m has the square of the width of n.
    expected = np.where(np.flatnonzero(given) == 3, 4.0, 2.0)
    expected[np.flatnonzero(given) == 1] = 1.0
    np.testing.assert_allclose(ratio, expected)
    assert not given[[0, OUTER, OUTER + 1]].any()
    assert model.prior(None).mean[1] == model.prior(None).precision[1] == 1


def test_lines_through_each_size_are_near_the_truth():
    lines = Lines.through(study(sizes=(64, 256, 1024), samples=10_000, reach=0.5))
    assert lines.units.p_0 == pytest.approx(TRUTH.threshold, abs=1e-3)
    assert lines.y_t == pytest.approx(TRUTH.y_t, abs=0.03)
    assert pytest.approx(256) == lines.units.L_0
    falling = SpanningCurve(8, [0.4, 0.5], [10], [[5, 5]])
    with pytest.raises(AnalysisError, match="L = 8 does not rise with p"):
        Lines.through([falling])


UNKNOWN = ChiSquare(0.0, 0, float("nan"))


def size_fit(L, coefficients, p_low=0.4, p_high=0.6, p_mid=0.5, scale=0.1):
    covariance = tuple(map(tuple, 1e-6 * np.eye(len(coefficients))))
    return SizeFit(L, p_mid, scale, coefficients, p_low, p_high, 9, 1000, UNKNOWN, covariance)


@pytest.mark.parametrize(
    ("small", "large", "p"),
    [
        # 1 + x = 3 x + 0.8 at x = 0.1, and x = (p - 0.5) / 0.1; also in units of 0.05 about 0.52.
        (((1.0, 1.0), {}), ((0.8, 3.0), {}), 0.51),
        (((1.0, 1.0), {}), ((1.4, 1.5), {"p_mid": 0.52, "scale": 0.05}), 0.51),
        # 3 x - x^3 crosses x at x = 0, where it rises through, and falls through at +-sqrt 2.
        (((0, 1.0), {"p_low": 0.3}), ((0, 3.0, 0, -1.0), {"p_low": 0.3}), 0.5),
        # Parallel, outside the common range, and falling through: no crossing.
        (((1.0, 1.0), {}), ((0.8, 1.0), {}), None),
        (((1.0, 1.0), {}), ((0.8, 3.0), {"p_low": 0.52}), None),
        (((1.0, 3.0), {}), ((0.8, 1.0), {}), None),
    ],
)
def test_curves_cross_where_the_larger_size_rises_through_the_smaller(small, large, p):
    crossing = find_crossing(size_fit(8, small[0], **small[1]), size_fit(16, large[0], **large[1]))
    assert crossing.found == (p is not None)
    if p is None:
        assert crossing.to_dict()["p"] is None
    else:
        assert crossing.p == pytest.approx(p)
        x = (p - 0.5) / 0.1
        assert crossing.probability == pytest.approx(ndtr(small[0][0] + small[0][1] * x))


def test_each_size_is_crossed_with_the_next():
    fits = [size_fit(8, (0.1, 1.0)), size_fit(16, (0.1, 2.0)), size_fit(64, (0.1, 3.0))]
    crossings, covariance = cross_sizes(fits)
    assert covariance.shape == (2, 2)
    assert [(c.L1, c.L2) for c in crossings] == [(8, 16), (16, 64)]
    assert crossings[1].mean_size == pytest.approx(32.0)


@pytest.mark.slow
def test_errors_of_crossings_are_their_scatter():
    """Neighbouring crossings share a size, which moves them in opposite directions."""
    fits = [size_fit(8, (0.1, 1.0)), size_fit(16, (0.0, 2.0, 0.1)), size_fit(32, (0.2, 4.0))]
    crossings, covariance = cross_sizes(fits)
    rng, found = np.random.default_rng(0), []
    for _ in range(1000):
        moved = []
        for fit in fits:
            noise = 1e-3 * rng.standard_normal(len(fit.coefficients))
            moved.append(replace(fit, coefficients=tuple(fit.coefficients + noise)))
        found.append([(c.p, c.probability) for c in cross_sizes(moved)[0]])
    p, R = np.moveaxis(np.array(found), 2, 0)
    within = {"rtol": 4 / np.sqrt(2 * 1000)}
    np.testing.assert_allclose(p.std(axis=0), [c.p_error for c in crossings], **within)
    np.testing.assert_allclose(R.std(axis=0), [c.probability_error for c in crossings], **within)
    scatter = np.corrcoef(p, rowvar=False)[0, 1]
    expected = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert expected < -0.1
    assert scatter == pytest.approx(expected, abs=4 / np.sqrt(1000))


#: Of curves a_1 (p - p_c) L^y_t + b L^-omega.
DRIFT = {"omega": 1.0, "y_t": 0.75, "width": 0.5}


def drifting(sizes, threshold=0.6, b=0.8):
    """Return where a_1 (p - p_c) L^y_t + b / L of neighbouring sizes cross."""
    return [
        CurveCrossing(x, y, threshold + 0.5 * b * (1 / x - 1 / y) / (y**0.75 - x**0.75), 0.5)
        for x, y in pairwise(sizes)
    ]


def test_the_drift_extrapolates_to_the_threshold_whatever_the_ratios_of_sizes():
    crossings = drifting([16, 24, 64, 128])
    drift = extrapolate(crossings, 1e-14 * np.eye(3), **DRIFT)
    assert drift.threshold == pytest.approx(0.6, abs=1e-6)
    assert drift.amplitudes[0] == pytest.approx(0.4, abs=0.01)
    assert drift.chi_square.value < 1
    sizes = np.array([[c.L1, c.L2] for c in crossings], float).T
    np.testing.assert_allclose(drift.at(*sizes), [c.p for c in crossings], atol=1e-6)


def test_the_statistical_error_of_the_drift_is_its_scatter():
    covariance = 1e-10 * np.array([[1.0, -0.4, 0.0], [-0.4, 1.0, -0.4], [0.0, -0.4, 1.0]])
    crossings = drifting([16, 32, 64, 128])
    rng = np.random.default_rng(3)
    found = []
    for shift in rng.multivariate_normal(np.zeros(3), covariance, size=150):
        moved = [replace(c, p=c.p + x) for c, x in zip(crossings, shift)]
        found.append(extrapolate(moved, covariance, **DRIFT).result)
    scatter = np.std([item.value for item in found])
    assert found[0].statistical_error == pytest.approx(scatter, rel=4 / np.sqrt(2 * 150))
    assert max(abs(item.value - 0.6) / item.error for item in found) < 4


def test_the_width_of_the_transition_is_that_of_the_curves():
    fits = [size_fit(L, (0.1, 0.1 * L**0.75 / 0.5)) for L in (8, 16, 32)]
    assert transition_width(fits, 0.5, 0.75) == pytest.approx(0.5)


def test_one_crossing_or_errors_that_are_unknown_or_singular_give_no_drift():
    one = [*drifting([16, 32]), CurveCrossing(32, 64, float("nan"), float("nan"))]
    assert extrapolate(one, np.eye(2), **DRIFT) is None
    for covariance in (np.full((2, 2), np.nan), np.ones((2, 2))):
        assert extrapolate(drifting([16, 32, 64]), covariance, **DRIFT) is None


def ratio_study(seed, sizes=(32, 64, 128)):
    """Return curves whose Q_1 = 1 / (1.2 - 0.1 x) crosses at p_c, with 1 % noise a block."""
    rng, found = np.random.default_rng(seed), []
    x, ones = np.linspace(-1, 1, 9), np.ones((40, 9))
    for L in sizes:
        p = TRUTH.threshold + x / L**TRUTH.y_t
        x = (p - TRUTH.threshold) * L**TRUTH.y_t
        first = 1 + 0.3 * x
        squares = first**2 * (1.2 - 0.1 * x) * (1 + 0.01 * rng.standard_normal((40, 1)))
        samples = np.ones(40, int)
        found.append(ClusterCurve(L, L**2, p, samples, first * ones, ones, ones, squares))
    return found


def test_the_crossings_of_the_moment_ratio_and_their_drift_are_unbiased():
    pulls = []
    for seed in range(40):
        curves, near = ratio_study(seed), TRUTH.threshold
        found = ratio_crossings(curves, near=near, **DRIFT, bootstrap=60, seed=seed)
        pulls.append([(c.p - TRUTH.threshold) / c.p_error for c in found.crossings])
        for crossing in found.crossings:
            assert abs(crossing.probability - 1 / 1.2) <= 4 * crossing.probability_error
    pulls = np.array(pulls)
    assert pulls.shape == (40, 2)
    assert np.abs(pulls.mean(axis=0)).max() * np.sqrt(40) <= 4
    inside = np.mean(np.abs(pulls) < 1)
    # The two crossings share a size, so they count for little more than one.
    assert abs(inside - 0.6827) <= 4 * np.sqrt(0.6827 * 0.3173 / 40)
    assert abs(found.drift.threshold - TRUTH.threshold) <= 4 * found.drift.threshold_error
    assert [item["L1"] for item in found.to_dict()["crossings"]] == [32, 64]
    assert "from their drift" in ratio_table(found)


def test_ratios_that_do_not_cross_are_absent():
    apart = ratio_study(0, (32, 64))
    apart[1] = ClusterCurve(**{**vars(apart[1]), "largest_squares": 1.5 * apart[1].largest_squares})
    found = ratio_crossings(apart, near=TRUTH.threshold, **DRIFT, bootstrap=0)
    assert not found.crossings[0].found
    assert "none" in ratio_table(found)
    with pytest.raises(AnalysisError, match="at least two L"):
        ratio_crossings(apart[:1], near=0.65, **DRIFT)
