"""Values with errors, p-values and statistics are what their definitions say; curves and text."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import chi2
from synthetic_support import synthetic_study

from percolab.analysis.averaging import ThresholdAverage, ThresholdMember, find_problem, fit_weights
from percolab.analysis.curves import SpanningCurve
from percolab.analysis.json_values import Record
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.spin_fit import fit_spins
from percolab.analysis.statistics import (
    draw_blocks,
    half_width,
    jackknife_error,
    unit_diagonal,
    whitening,
    wilson_interval,
    with_data_first,
)
from percolab.analysis.text import describe_fit, fit_table, format_with_error
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import fit_threshold
from percolab.analysis.trees import fit_trees
from percolab.analysis.value import REJECTED, ChiSquare, Value, list_rejections, published_text
from percolab.api import sweep, threshold

GOOD = ChiSquare.of(5.0, 5)


def test_the_p_value_is_that_of_the_chi_square_distribution():
    quality = ChiSquare.of(12.5, 7)
    assert (quality.value, quality.dof) == (12.5, 7)
    assert quality.p_value == pytest.approx(chi2.sf(12.5, 7))
    assert ChiSquare.of(2.5, 1).p_value == pytest.approx(chi2.sf(2.5, 1), rel=1e-12)


def test_a_fit_without_degrees_of_freedom_is_never_rejected():
    assert not ChiSquare.of(0.0, 0).rejects
    limit = chi2.isf(REJECTED, 4)
    assert ChiSquare.of(limit + 1e-6, 4).rejects
    assert not ChiSquare.of(limit - 1e-6, 4).rejects


def test_weights_are_those_of_the_criterion():
    weights = fit_weights([1000.0, 1002.0, 5000.0])
    assert weights.sum() == pytest.approx(1)
    assert weights[0] / weights[1] == pytest.approx(np.e)
    assert weights[2] == 0


def test_an_average_has_the_spread_of_its_fits_in_the_error():
    made = {1: 1.0, 2: 3.0}

    def member(smallest, degree):
        theta, unit = np.array([made[degree], -2 * made[degree]]), np.eye(2)
        return ThresholdMember(smallest, degree, 0.0, 1.0, theta, 4 * unit, unit, GOOD, 0.0)

    average = ThresholdAverage.over([8, 16], [1, 2], member)
    mean, whole, statistical = average.values([0, [1, 1]])
    assert mean.tolist() == [2, -4]
    assert whole == pytest.approx(np.array([[4 + 1, -2], [-2, 4 + 4]]))
    assert statistical.tolist() == np.eye(2).tolist()
    found = average.value(0)
    assert (found.value, found.statistical_error, found.members) == (2.0, 1.0, 2)
    assert found.error == pytest.approx(np.sqrt(4 + 1))
    assert found.systematic_error == pytest.approx(2)
    scaled = found.scaled(-4.0, -2.0)
    assert (scaled.value, scaled.error, scaled.statistical_error) == (-4, 2 * found.error, 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Value(0.5, 0.01, 0.01, GOOD, 1), None),
        (Value(0.5, 0.01, 0.01, ChiSquare.of(90.0, 5), 1), "the best fit is rejected (p-value "),
        (Value(0.7, 0.01, 0.01, GOOD, 1), "has it at 0.7, outside the sampled p, 0.4 to 0.6"),
        (Value(0.5, 0.3, 0.01, GOOD, 1), "its error, 0.3, is wider than the sampled p"),
        (Value(float("nan"), 0.3, 0.01, GOOD, 1), "outside the sampled p"),
        (Value(0.5, float("nan"), 0.01, GOOD, 1), "its error, nan, is wider"),
    ],
    ids=str,
)
def test_a_fit_that_is_no_answer_has_a_problem_of_one_line(value, message):
    found = find_problem(value, 0.4, 0.6)
    assert (found is None) == (message is None)
    if message is not None:
        assert found.startswith("no p_c: ")
        assert message in found
        assert "\n" not in found


def test_a_mean_has_two_numbers_and_a_fit_all_of_them():
    mean, fit = Value(2.0, 0.5), Value(2.0, 0.5, 0.3, GOOD, 4)
    assert mean.to_dict() == {"value": 2.0, "error": 0.5}
    assert mean.cells == ("2.00(50)", "", "")
    record = fit.to_dict("tau", "tau_error")
    assert list(record)[:3] == ["rejected", "tau", "tau_error"]
    assert (record["rejected"], record["tau"], record["members"]) == (False, 2.0, 4)
    assert record["systematic_error"] == pytest.approx(0.4)
    assert record["chi_square"] == {"value": 5.0, "dof": 5, "p_value": GOOD.p_value}
    assert fit.cells == ("2.00(50)", "+- 0.3", "+- 0.4")


def test_what_is_rejected_has_no_distance_and_one_line_that_says_so():
    known, bad = Known(1.0, 0.0, "", ""), Value(2.0, 0.5, 0.3, ChiSquare.of(90.0, 5), 1)
    assert Value(2.0, 0.5).deviation(known) == pytest.approx(2)
    assert np.isnan(bad.deviation(known))
    assert np.isnan(Value(2.0, 0.5).deviation(None))
    good = Value(2.0, 0.5, 0.3, GOOD, 1)
    (line,) = list_rejections([("d_f", good), ("tau", bad), ("z", None)])
    assert line.startswith("tau: chi^2 rejects even its best fit (p-value ")


def test_a_record_has_its_fields_renamed_or_left_out_and_what_is_added():
    @dataclass(frozen=True)
    class Example(Record):
        renamed: ClassVar = {"first": "one", "hidden": ""}
        added: ClassVar = ("double",)
        first: Value
        hidden: int

        @property
        def double(self) -> float:
            return 2 * self.first.value

    record = Example(Value(2.0, float("nan")), 3).to_dict()
    assert record == {"one": {"value": 2.0, "error": None}, "double": 4.0}


def test_distance_from_published_number_includes_its_error():
    known = Known(0.58504, 5e-6, "", "R. Parviainen 2007")
    text = published_text(known, Value(0.58504635, 7e-7))
    assert text == "published 0.5850400(50)  (R. Parviainen 2007): +1.3 sigma"
    exact = Known(0.5, 0.0, "1/2", "H. Kesten 1980")
    assert published_text(exact) == "published 0.5  1/2  (H. Kesten 1980)"
    assert published_text(exact, Value(0.501, 0.001)).endswith(": +1.0 sigma")


def test_wilson_bounds_solve_the_score_equation():
    low, high = wilson_interval([3, 17], 20, z=1.7)
    for bound in (low, high):
        score = (np.array([3, 17]) / 20 - bound) / np.sqrt(bound * (1 - bound) / 20)
        np.testing.assert_allclose(np.abs(score), 1.7)


def test_wilson_interval_is_exact_at_the_ends_and_symmetric():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    trials = np.arange(1, 500)
    assert np.all(wilson_interval(0 * trials, trials, z=1.7)[0] == 0.0)
    assert np.all(wilson_interval(trials, trials, z=1.7)[1] == 1.0)
    low, high = wilson_interval([0, 50], 50)
    assert high[0] == pytest.approx(1.0 - low[1])
    assert 0.0 < high[0] < 0.05
    with pytest.raises(ValueError, match="successes"):
        wilson_interval(3, 2)


def test_half_width_of_a_normal_sample_is_its_deviation():
    values = np.random.default_rng(0).normal(scale=2.0, size=100_000)
    assert half_width(values) == pytest.approx(2.0, rel=0.02)
    assert np.isnan(half_width(np.array([1.0, np.nan, np.nan, np.nan])))


def test_whitened_numbers_are_independent_and_correlations_have_a_diagonal_of_ones():
    covariance = np.array([[4.0, 1.0], [1.0, 9.0]])
    whiten = whitening(covariance)
    np.testing.assert_allclose(whiten @ covariance @ whiten.T, np.eye(2), atol=1e-15)
    correlation, scale = unit_diagonal(covariance)
    np.testing.assert_allclose(correlation, [[1.0, 1 / 6], [1 / 6, 1.0]])
    np.testing.assert_allclose(scale, [1 / 2, 1 / 3])


def test_the_jackknife_error_of_a_mean_is_that_of_its_scatter():
    values = np.random.default_rng(5).normal(size=(30, 2))
    without = (values.sum(axis=0) - values) / 29
    expected = values.std(axis=0, ddof=1) / np.sqrt(30)
    np.testing.assert_allclose(jackknife_error(without), expected)
    assert np.isnan(jackknife_error(without[:1])).all()


def test_replicas_stand_below_the_data():
    drawn = draw_blocks(12, np.random.default_rng(6), 5)
    weights = with_data_first(drawn)
    assert weights.shape == (6, 12)
    assert (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 12).all()
    np.testing.assert_array_equal(weights[1:], drawn)


TRUTH = ScalingFunction(0.6527, 0.75, (0.1, 1.3), corrections=(0.8, 0.0, 0.0, 0.0))
NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.652706, 0.000131, "0.65271(13)"),
        (0.652706, 0.0000996, "0.65271(10)"),
        (-0.5, 0.02, "-0.500(20)"),
        (12.34, 1.42, "12.3(1.4)"),
        (12.34, 0.997, "12.3(1.0)"),
        (1234.4, 12.0, "1234(12)"),
        (1234.4, 123.0, "1230(120)"),
        (0.5, 0.0, "0.5"),
        (0.5, NAN, "0.5"),
        (NAN, 0.1, "-"),
    ],
)
def test_the_error_is_in_units_of_the_last_digits(value, error, text):
    assert format_with_error(value, error) == text


def test_the_table_shows_the_threshold_each_size_and_each_crossing():
    curves = synthetic_study(TRUTH, (64, 128, 256, 512), rng=np.random.default_rng(0))
    fit = fit_threshold(curves)
    lines = fit_table(fit).splitlines()
    assert format_with_error(fit.threshold, fit.threshold_error) in lines[0]
    assert any(line.startswith("p_c") and "drift" in line for line in lines)
    for size in fit.sizes:
        assert any(line.startswith(f"{size} ") and "25000" in line for line in lines)
    for crossing in fit.by_size.crossings:
        assert any(format_with_error(crossing.p, crossing.p_error) in line for line in lines)


def test_an_absent_crossing_reads_none():
    curves = synthetic_study(TRUTH, (64, 128), rng=np.random.default_rng(0))
    fit = fit_threshold([curve.at(curve.probability < 0.4) for curve in curves])
    assert "none" in fit_table(fit)


def test_every_fit_is_described_by_the_table_of_its_kind():
    given = {"device": "cpu", "workers": 1, "samples": 60}
    trees = sweep("square", L=[4, 6], method="tree", **given)
    assert "weight/site" in describe_fit(fit_trees(trees), trees.study)
    chains = given | {"samples": 4000, "model": "ising", "boundary": "periodic", "burn_in": 20}
    spins = sweep("square", L=[4, 6, 8], p=[0.55, 0.6], **chains)
    assert "K_c" in describe_fit(fit_spins(spins), spins.study)
    roots = threshold("square", error=0.02, device="cpu")
    assert "drift of the roots, C/L^4" in describe_fit(roots.fit, roots.results.study)


def curve(p=(0.4, 0.5, 0.6), samples=(10, 20), spanning=((1, 4, 9), (2, 8, 20)), L=8):
    return SpanningCurve(L, p, samples, spanning, label="task")


def test_threshold_counts_are_a_partition_of_the_samples_also_at_fewer_p():
    assert curve().total_samples == 30
    np.testing.assert_allclose(curve().probability, [3 / 30, 12 / 30, 29 / 30])
    np.testing.assert_array_equal(curve().threshold_counts, [[1, 3, 5, 1], [2, 6, 12, 0]])
    part = curve().at(np.array([False, True, False]))
    np.testing.assert_array_equal(part.p, [0.5])
    np.testing.assert_array_equal(part.threshold_counts, [[4, 6], [8, 12]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"L": 0}, "L must be at least 1"),
        ({"p": (0.4, 0.6, 0.5)}, "strictly ascending"),
        ({"p": (0.4, 0.5, 1.6)}, r"in \[0, 1\]"),
        ({"p": (0.4, 0.5, float("nan"))}, r"in \[0, 1\]"),
        ({"samples": (10, 0)}, "positive count"),
        ({"samples": (10,)}, "shape"),
        ({"samples": (10, 19)}, "between 0 and"),
        ({"spanning": ((1, 4, 9), (-1, 8, 20))}, "between 0 and"),
        ({"spanning": ((1, 4, 3), (2, 8, 20))}, "not coupled"),
    ],
)
def test_a_broken_curve_is_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        curve(**change)
    assert "'task'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_curve_cannot_be_changed_afterwards():
    with pytest.raises(ValueError, match="read-only"):
        curve().p[0] = 0.3
