"""The threshold fit is unbiased, its error bars cover, and it says what it cannot do."""

import json

import numpy as np
import pytest
from analysis_support import SIZES, TRUTH, study

from percolab.analysis import AnalysisError, SpanningCurve, fit_threshold, threshold


def exact_curve(L, p, samples=10**10):
    spanning = np.round(samples * TRUTH.probability(p, L)).astype(np.int64)
    return SpanningCurve(L, p, [samples], [spanning])


def test_data_without_noise_give_back_every_parameter():
    x = np.linspace(-1.0, 1.0, 9)
    curves = [exact_curve(L, TRUTH.threshold + x / L**TRUTH.y_t) for L in (32, 64, 256, 1024)]
    fit = fit_threshold(curves, bootstrap=0)
    assert fit.threshold == pytest.approx(TRUTH.threshold, abs=1e-6)
    assert fit.y_t == pytest.approx(TRUTH.y_t, abs=1e-4)
    assert fit.scaling.correction == pytest.approx(TRUTH.correction, abs=0.01)
    assert fit.critical_probability == pytest.approx(TRUTH.critical_probability, abs=1e-4)
    assert fit.chi_square.p_value > 0.01


@pytest.mark.parametrize(
    "sizes", [SIZES, pytest.param((32, 128, 512, 2048, 4096), marks=pytest.mark.slow)]
)
def test_the_threshold_is_unbiased_and_its_curvature_error_covers(sizes):
    pulls = []
    for seed in range(200):
        fit = fit_threshold(study(seed, sizes, samples=2000, blocks=1), bootstrap=0)
        pulls.append((fit.threshold - TRUTH.threshold) / fit.threshold_error)
    assert_standard_normal(np.array(pulls))


@pytest.mark.slow
def test_the_bootstrap_errors_cover_for_threshold_exponent_and_drift():
    pulls = []
    for seed in range(80):
        fit = fit_threshold(study(seed, blocks=50, samples=100), bootstrap=40, seed=seed)
        drift = fit.by_size.drift
        pulls.append(
            [
                (fit.threshold - TRUTH.threshold) / fit.threshold_error,
                (fit.y_t - TRUTH.y_t) / fit.y_t_error,
                (drift.threshold - TRUTH.threshold) / drift.threshold_error,
            ]
        )
    for column in np.array(pulls).T:
        assert_standard_normal(column)


def assert_standard_normal(pulls):
    """Check mean 0 and 68.3 % inside one sigma, each within four sigma."""
    n = pulls.size
    assert abs(pulls.mean()) * np.sqrt(n) <= 4.0
    inside = np.mean(np.abs(pulls) < 1.0)
    assert abs(inside - 0.6827) <= 4.0 * np.sqrt(0.6827 * 0.3173 / n)


def test_leaving_out_the_correction_moves_the_threshold_and_chi_square_tells():
    curves = study(sizes=(16, 32, 64, 128), samples=2500)
    good, bad = fit_threshold(curves), fit_threshold(curves, correction=False)
    assert abs(good.threshold - TRUTH.threshold) < 4.0 * good.threshold_error
    assert abs(bad.threshold - TRUTH.threshold) > 8.0 * bad.threshold_error
    assert bad.chi_square.p_value < 1e-3
    assert any("fit is poor" in note for note in bad.notes)


def test_the_fit_is_the_same_for_the_same_seed():
    first, second = (fit_threshold(study(), bootstrap=20, seed=5).to_dict() for _ in range(2))
    assert json.dumps(first) == json.dumps(second)


def test_the_order_of_the_curves_does_not_matter():
    curves = study()
    forward, backward = (fit_threshold(c, bootstrap=0) for c in (curves, curves[::-1]))
    assert forward.threshold == pytest.approx(backward.threshold, abs=1e-9)


def test_a_task_split_in_two_gives_the_threshold_of_the_whole():
    whole = study()
    halves = [
        SpanningCurve(c.L, c.p, c.samples[part], c.spanning[part])
        for c in whole
        for part in (slice(0, 50), slice(50, 100))
    ]
    one, two = fit_threshold(whole, bootstrap=0), fit_threshold(halves, bootstrap=0)
    assert two.threshold == pytest.approx(one.threshold, abs=1e-3 * one.threshold_error)
    assert two.threshold_error == pytest.approx(one.threshold_error, rel=1e-3)


def test_saturated_points_of_a_wide_grid_do_no_harm():
    wide = study(reach=1.5, points=11)
    flat = [
        SpanningCurve(
            c.L,
            np.concatenate([[0.3], c.p, [0.95]]),
            c.samples,
            np.column_stack([0 * c.samples, c.spanning, c.samples]),
        )
        for c in wide
    ]
    plain, padded = fit_threshold(wide, bootstrap=0), fit_threshold(flat, bootstrap=0)
    assert padded.threshold == pytest.approx(plain.threshold, abs=1e-9)


def test_two_sizes_are_fitted_without_correction_and_say_so():
    fit = fit_threshold(study(sizes=(512, 1024)), bootstrap=40)
    assert not fit.with_correction
    assert fit.to_dict()["correction"] is None
    assert any("no correction to scaling" in note for note in fit.notes)
    assert fit.by_size.drift is None
    assert abs(fit.threshold - TRUTH.threshold) < 5.0 * fit.threshold_error


@pytest.mark.parametrize(("points", "degree"), [(2, 1), (3, 2), (4, 3), (9, 3)])
def test_few_points_lower_the_degree(points, degree):
    fit = fit_threshold(study(points=points, reach=0.6), bootstrap=0)
    assert fit.degree == degree
    assert any("lower" in n or f"degree {degree}" in n for n in fit.notes) == (degree < 3)


def test_the_degree_leaves_the_fit_one_degree_of_freedom():
    four_points = study(sizes=(64,), points=4, reach=0.6)
    two_points = study(sizes=(128,), points=2, reach=0.6)
    fit = fit_threshold([*four_points, *two_points], bootstrap=0)
    assert (fit.degree, fit.chi_square.dof) == (2, 1)


def test_few_blocks_are_resampled_by_sample():
    few = fit_threshold(study(blocks=4, samples=2000), bootstrap=100)
    assert few.error_method == "bootstrap over samples"
    assert any("fewer than 10 blocks" in note for note in few.notes)
    assert few.threshold_error == pytest.approx(few.fisher_error, rel=0.35)
    assert fit_threshold(study(), bootstrap=20).error_method == "bootstrap over blocks"


def test_without_bootstrap_the_curvature_gives_the_error():
    fit = fit_threshold(study(), bootstrap=0)
    assert fit.threshold_error == fit.fisher_error
    assert fit.error_method == "curvature of the likelihood"
    assert fit.to_dict()["y_t_error"] is None


def test_sizes_that_do_not_cross_are_reported_as_absent():
    below = [curve.within(0.0, 0.4) for curve in study()]
    fit = fit_threshold(below, bootstrap=40)
    assert not any(crossing.found for crossing in fit.by_size.crossings)
    assert fit.by_size.drift is None
    assert any("no crossing" in note for note in fit.notes)
    json.dumps(fit.to_dict(), allow_nan=False)


def test_one_size_is_refused():
    with pytest.raises(AnalysisError, match=r"at least two sizes.* got L = 64"):
        fit_threshold(study(sizes=(64,)))
    with pytest.raises(AnalysisError, match=r"of L >= 512.* got L = 512"):
        fit_threshold(study(), min_size=512)
    with pytest.raises(AnalysisError, match="got none"):
        fit_threshold([])


def test_a_size_with_one_informative_point_is_left_out_and_named():
    curves = study(sizes=(64, 128, 256))
    coarse = SpanningCurve(512, [0.5, 0.6527, 0.8], [1000], [[0, 540, 1000]])
    fit = fit_threshold([*curves, coarse], bootstrap=0)
    assert fit.sizes == (64, 128, 256)
    assert any("L = 512 not used" in note for note in fit.notes)
    with pytest.raises(AnalysisError, match="finer p grid"):
        fit_threshold([curves[0], coarse])


def test_min_size_leaves_small_sizes_out():
    assert fit_threshold(study(), min_size=100, bootstrap=0).sizes == (128, 256, 512)


@pytest.mark.parametrize(
    "option", [{"omega": 0.0}, {"degree": 0}, {"window": (0.5, 0.5)}, {"bootstrap": -1}]
)
def test_an_option_out_of_range_is_named(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        fit_threshold(study(), **option)


def test_failed_and_crossless_replicas_are_counted_in_the_notes(monkeypatch):
    real = threshold.maximise
    calls = iter(range(1000))

    def maximise(*arguments):
        if next(calls) % 10 == 3:
            raise AnalysisError("this replica fails")
        return real(*arguments)

    assert not any("replicas" in note for note in fit_threshold(study(), bootstrap=40).notes)
    monkeypatch.setattr(threshold, "maximise", maximise)
    fit = fit_threshold(study(), bootstrap=40)
    assert fit.failed_replicas == 4
    assert "4 of 40 bootstrap replicas could not be fitted: the errors leave them out" in fit.notes


def test_crossings_that_some_replicas_lack_are_counted_in_the_notes():
    few = [curve.within(0.3, 0.7) for curve in study(samples=2, blocks=100)]
    fit = fit_threshold(few, bootstrap=60)
    lacking = {
        (crossing.L1, crossing.L2)
        for crossing, own in zip(fit.by_size.crossings, _replicas_of(few).T)
        if crossing.found and np.isnan(own).any()
    }
    assert lacking
    note = next(note for note in fit.notes if note.startswith("crossings absent"))
    for pair in lacking:
        assert f"{pair} in " in note


def _replicas_of(curves):
    """Return p* (60, crossings) of the replicas that `fit_threshold` makes."""
    kept = []
    real = threshold.run_bootstrap
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            threshold, "run_bootstrap", lambda *a, **k: kept.append(real(*a, **k)) or kept[-1]
        )
        fit_threshold(curves, bootstrap=60)
    return kept[0].crossings[:, :, 0]


def test_the_record_is_json_and_complete():
    record = fit_threshold(study(), bootstrap=40).to_dict()
    json.dumps(record, allow_nan=False)
    assert {
        "threshold", "threshold_error", "fisher_error", "error_method", "y_t", "y_t_error", "nu",
        "nu_error", "critical_probability", "critical_probability_error", "coefficients",
        "coefficient_errors", "correction", "correction_error", "omega", "degree", "sizes",
        "chi_square", "size_fits", "crossings", "drift", "curves", "notes",
    } <= set(record)  # fmt: skip
    assert len(record["crossings"]) == 3
