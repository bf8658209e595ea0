"""The p-value of chi^2, when a fit is rejected, and weights in place of choosing a fit."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import chi2

from percolab.analysis.averaging import (
    ThresholdAverage,
    ThresholdMember,
    find_problem,
    fit_weights,
)
from percolab.analysis.json_values import Record
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import (
    REJECTED,
    ChiSquare,
    Value,
    list_rejections,
    published_text,
)

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
        theta, unit = np.array([made[degree]]), np.eye(1)
        return ThresholdMember(smallest, degree, 0.0, 1.0, theta, 4 * unit, unit, GOOD, 0.0)

    found = ThresholdAverage.over([8, 16], [1, 2], member).value(0)
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
