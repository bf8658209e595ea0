"""The averaged joint fit of several quantities, each quantity alone, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from quantity_support import P_C, SIZES, TRUTH, Y_T, analysed, one_p, task, three_p

from percolab.analysis.quantities import BlockMoments
from percolab.analysis.text import quantity_table
from percolab.errors import AnalysisError


@pytest.fixture(scope="module")
def found():
    return analysed(three_p(np.random.default_rng(14)))


def test_the_joint_fit_finds_the_truth_with_both_parts_of_its_error(found):
    assert found.problem is None
    assert abs(found.threshold - P_C) <= 4 * found.threshold_error
    parts = np.hypot(found.statistical_error, found.systematic_error)
    assert parts == pytest.approx(found.threshold_error, rel=1e-12)
    assert abs(found.y_t - Y_T) <= 4 * found.y_t_error
    for own in found.quantities:
        assert abs(own.critical - TRUTH[own.name][0]) <= 4 * own.critical_error
        assert abs(own.alone.value - P_C) <= 4 * own.alone.error
        assert own.alone.error > found.threshold_error
    text = quantity_table(found)
    assert "whole error" in text
    assert "1/nu  " in text
    assert all(own.name in text and f"{own.omega:g}" in text for own in found.quantities)
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert record["y_t"] == found.y_t
    assert record["quantities"][0]["alone"]["value"] == found.quantities[0].alone.value


@pytest.mark.slow
def test_pulls_of_the_average_are_no_wider_than_they_should():
    rng, pulls = np.random.default_rng(31), []
    for _ in range(6):
        found = analysed(three_p(rng), degree=3, min_size=16)
        assert list(found.samples) == [16, 24, 32, 64]
        pulls.append((found.threshold - P_C) / found.threshold_error)
    assert abs(np.mean(pulls)) * np.sqrt(6) <= 4
    assert np.std(pulls) <= 1 + 4 / np.sqrt(12)


def test_two_sizes_give_the_truth_with_a_larger_error():
    rng, pulls = np.random.default_rng(32), []
    for pair in ([1, 3], [2, 4], [3, 5]):
        moments = three_p(rng)
        two = analysed([moments[n] for n in pair], degree=3)
        whole = analysed(moments, degree=3)
        assert two.threshold_error > whole.threshold_error
        pulls += [(two.threshold - P_C) / two.threshold_error, (two.y_t - Y_T) / two.y_t_error]
        assert list(two.samples) == [moments[n].L for n in pair]
    assert max(np.abs(pulls)) <= 4
    assert np.std(pulls) > 0.1


def test_a_size_that_no_correction_describes_has_no_weight():
    moments = three_p(np.random.default_rng(15))
    sums = dict(moments[0].moments)
    sums["wrapping_any"] = sums["wrapping_any"] + 10_000 * 0.04
    broken = BlockMoments(8, moments[0].p, moments[0].samples, sums)
    found = analysed([broken, *moments[1:]], degree=3, priors=0.1)
    assert found.members[0].min_size > 8
    assert sum(item.weight for item in found.members if item.min_size == 8) < 0.01
    assert abs(found.threshold - P_C) <= 4 * found.threshold_error


def test_what_no_fit_describes_is_no_answer_and_said_first():
    rng, broken = np.random.default_rng(33), []
    for L in SIZES:
        item = task(rng, L, points=3, samples=10**6, blocks=100)
        shifted = item.moments["wrapping_any"] + 500 * rng.normal()
        broken.append(replace(item, moments={**item.moments, "wrapping_any": shifted}))
    found = analysed(broken, degree=3)
    assert found.problem.startswith("no p_c: the best fit is rejected")
    assert np.isnan([found.threshold_error, found.statistical_error, found.y_t_error]).all()
    text = quantity_table(found)
    assert text.startswith(found.problem)
    assert "no answer, see above" in text
    assert found.quantities[0].alone.rejected
    assert "rejected" in text.split("p_c alone")[1]


@pytest.mark.slow
def test_a_free_exponent_is_told():
    moments = one_p(np.random.default_rng(18))
    known, free = analysed(moments, degree=3), analysed(moments, degree=3, y_t=None)
    assert free.known_y_t is None
    # Where the fit begins, and which p are near, may follow the known value; the fit does not.
    assert abs(free.exponent.value - known.exponent.value) < 0.2 * free.exponent.error
    assert "1/nu is free" in quantity_table(free)


def test_what_the_data_cannot_tell_is_said_in_one_line():
    rng = np.random.default_rng(17)
    single = [task(rng, L, points=1, samples=10**5, blocks=100) for L in SIZES]
    same = [replace(m, p=np.array([P_C])) for m in single]
    with pytest.raises(AnalysisError, match="'wrapping_any' is there at one p a size"):
        analysed(same)
    with pytest.raises(AnalysisError, match=r"at least two sizes .* got L = 8$"):
        analysed(three_p(rng)[:1])
    study, lacking = three_p(rng), []
    for m in study[2:]:
        rest = {name: sums for name, sums in m.moments.items() if "sum" not in name}
        lacking.append(replace(m, moments=rest))
    with pytest.raises(AnalysisError, match=r"'Q_2' is there at too few sizes \(L = 8, L = 12\)"):
        analysed(study[:2] + lacking)
    once = [task(rng, L, points=1, samples=10**6, blocks=100) for L in SIZES]
    with pytest.raises(AnalysisError, match="'Q_2' is there at one p a size"):
        analysed(lacking + once)
