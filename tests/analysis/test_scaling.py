"""The scaling function: derivatives, priors, and units in which every parameter is of order one."""

import numpy as np
import pytest
from analysis_support import TRUTH, study
from scipy.special import ndtr

from percolab.analysis import scaling
from percolab.analysis.curves import SpanningCurve
from percolab.analysis.likelihood import ThresholdCells
from percolab.analysis.scaling import OUTER, Lines, ScalingFunction, ScalingModel
from percolab.analysis.theory.known_exponents import Known
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
