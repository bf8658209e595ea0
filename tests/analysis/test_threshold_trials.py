"""A term is added before a size is left out, by chi^2 alone, and only as much as needed."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_support import TRUTH, study

from percolab.analysis import (
    AnalysisError,
    SpanningCurve,
    best_by_size,
    choose_fit,
    fit_threshold,
    trial_table,
    try_fits,
)
from percolab.analysis.fit_quality import POOR_FIT

SIZES = (16, 32, 64, 128, 256, 512)
MIXED = replace(TRUTH, mixed=3.0)
QUARTIC = replace(TRUTH, coefficients=(0.1, 1.3, 0.05, -0.06, 0.2))


def bent(curve, by):
    """Return a curve whose R is pushed up where it is large, as no scaling function does."""
    spanning = np.minimum(
        curve.spanning + (by * curve.spanning).astype(int), curve.samples[:, None]
    )
    return SpanningCurve(curve.L, curve.p, curve.samples, spanning)


def with_bent_small_sizes(count, seed=0):
    curves = study(seed, sizes=SIZES)
    return [bent(curve, 0.15) if curve.L in SIZES[:count] else curve for curve in curves]


@pytest.mark.parametrize("spoiled", [0, 1, 2])
def test_the_smallest_size_that_chi_square_accepts_is_the_cutoff(spoiled):
    trials = try_fits(with_bent_small_sizes(spoiled))
    assert [trial.min_size for trial in best_by_size(trials)] == [16, 32, 64]
    chosen = choose_fit(trials)
    assert chosen.min_size == SIZES[spoiled]
    assert abs(chosen.fit.threshold - TRUTH.threshold) < 4 * chosen.fit.fisher_error


def test_where_chi_square_rejects_every_fit_the_last_is_taken_and_called_poor():
    trials = try_fits(with_bent_small_sizes(6, seed=1)[:5] + [study(1, sizes=(512,))[0]])
    assert not any(trial.accepted for trial in trials)
    chosen = choose_fit(trials)
    assert chosen is trials[-1]
    assert (chosen.degree, chosen.fit.corrections) == (5, "b, c")
    assert any("fit is poor" in note for note in chosen.fit.notes)


@pytest.mark.parametrize("spoiled", [0, 1, 2])
def test_a_fit_is_called_poor_exactly_where_it_is_refused(spoiled):
    for trial in try_fits(with_bent_small_sizes(spoiled)):
        poor = any("fit is poor" in note for note in trial.fit.notes)
        assert poor == (not trial.accepted) == (trial.fit.chi_square.p_value < POOR_FIT)


@pytest.mark.parametrize(
    ("truth", "model"), [(TRUTH, (3, "b")), (MIXED, (3, "b, c")), (QUARTIC, (4, "b"))]
)
def test_the_missing_term_is_added_before_a_size_is_left_out(truth, model):
    curves = study(3, sizes=SIZES, truth=truth, samples=2000)
    chosen = choose_fit(try_fits(curves))
    assert chosen.min_size == SIZES[0]
    assert (chosen.fit.degree, chosen.fit.corrections) == model
    assert abs(chosen.fit.threshold - truth.threshold) < 4 * chosen.fit.fisher_error


def test_the_mixed_correction_is_found_with_its_error_and_unbiased():
    pulls = []
    for seed in range(60):
        curves = study(seed, sizes=SIZES, truth=MIXED, samples=2000, blocks=1)
        fit = fit_threshold(curves, mixed=True, bootstrap=0)
        pulls.append(
            [
                (fit.threshold - MIXED.threshold) / fit.fisher_error,
                (fit.y_t - MIXED.y_t) / fit.y_t_fisher_error,
            ]
        )
    assert np.abs(np.mean(pulls, axis=0)).max() * np.sqrt(60) <= 4
    # The spread of n pulls is known to 1 / sqrt(2 n).
    assert np.abs(np.std(pulls, axis=0) - 1).max() <= 4 / np.sqrt(120)
    fit = fit_threshold(study(0, sizes=SIZES, truth=MIXED, samples=2000), mixed=True, bootstrap=40)
    assert abs(fit.scaling.mixed - MIXED.mixed) < 4 * fit.mixed_error
    assert fit.to_dict()["mixed"] == fit.scaling.mixed


def test_what_is_given_is_not_varied():
    curves = with_bent_small_sizes(6)
    assert {trial.fit.degree for trial in try_fits(curves, degree=4)} == {4}
    assert not any(trial.fit.with_mixed for trial in try_fits(curves, mixed=False))
    none = try_fits(curves, correction=False)
    assert {trial.fit.corrections for trial in none} == {"none"}


def test_every_fit_is_shown_if_asked_and_the_choice_is_the_same():
    curves = with_bent_small_sizes(1)
    few, every = try_fits(curves), try_fits(curves, every=True)
    assert len(every) == 3 * 6 > len(few)
    assert choose_fit(few).to_dict() == choose_fit(every).to_dict()


def test_a_model_that_few_points_lower_is_tried_once():
    trials = try_fits(study(points=4, reach=0.6), every=True)
    assert [(trial.fit.degree, trial.fit.corrections) for trial in trials] == [
        (3, "b"),
        (3, "b, c"),
    ]


def test_few_sizes_are_all_kept():
    trials = try_fits(study(sizes=(32, 64, 128)))
    assert [trial.min_size for trial in best_by_size(trials)] == [32]


def test_options_reach_the_fits():
    first, second = (try_fits(study(), omega=omega)[0].fit for omega in (1.0, 2.0))
    assert (first.scaling.omega, second.scaling.omega) == (1.0, 2.0)
    expected = fit_threshold(study(), omega=2.0, bootstrap=0)
    assert second.threshold == expected.threshold


def test_the_table_has_one_row_a_fit_and_marks_the_chosen_one():
    trials = try_fits(with_bent_small_sizes(1))
    head, *rows = trial_table(trials).splitlines()
    assert head.split() == ["L_min", "degree", "corrections", "p_c", "1/nu", "chi2/dof", "p-value"]
    assert [row.split()[0] for row in rows] == [str(trial.min_size) for trial in trials]
    marked = [row.split()[-1] == "chosen" for row in rows]
    assert marked == [trial is choose_fit(trials) for trial in trials]
    assert "chosen" not in trial_table(trials, mark=False)


def test_nothing_to_fit_is_refused():
    with pytest.raises(AnalysisError, match="at least two sizes"):
        try_fits(study(sizes=(64,)))
    with pytest.raises(AnalysisError, match="got none"):
        try_fits([])
