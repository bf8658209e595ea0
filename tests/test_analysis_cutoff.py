"""Small sizes are left out by chi^2 alone, and only as many as needed."""

import numpy as np
import pytest
from test_analysis_threshold import TRUTH, study

from percolab.analysis import (
    AnalysisError,
    SpanningCurve,
    choose_cutoff,
    cutoff_table,
    fit_threshold,
    scan_cutoffs,
)
from percolab.analysis.selection import POOR_FIT

SIZES = (16, 32, 64, 128, 256, 512)


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
    cutoffs = scan_cutoffs(with_bent_small_sizes(spoiled))
    assert [cutoff.min_size for cutoff in cutoffs] == [16, 32, 64]
    chosen = choose_cutoff(cutoffs)
    assert chosen.min_size == SIZES[spoiled]
    assert abs(chosen.fit.threshold - TRUTH.threshold) < 4 * chosen.fit.fisher_error


def test_where_chi_square_rejects_every_cutoff_the_largest_is_taken_and_called_poor():
    cutoffs = scan_cutoffs(with_bent_small_sizes(6, seed=1)[:5] + [study(1, sizes=(512,))[0]])
    assert not any(cutoff.accepted for cutoff in cutoffs)
    chosen = choose_cutoff(cutoffs)
    assert chosen is cutoffs[-1]
    assert any("fit is poor" in note for note in chosen.fit.notes)


@pytest.mark.parametrize("spoiled", [0, 1, 2])
def test_a_fit_is_called_poor_exactly_where_its_cutoff_is_refused(spoiled):
    for cutoff in scan_cutoffs(with_bent_small_sizes(spoiled)):
        poor = any("fit is poor" in note for note in cutoff.fit.notes)
        assert poor == (not cutoff.accepted) == (cutoff.fit.chi_square.p_value < POOR_FIT)


def test_few_sizes_are_all_kept():
    assert [cutoff.min_size for cutoff in scan_cutoffs(study(sizes=(32, 64, 128)))] == [32]


def test_options_reach_the_fits():
    first, second = (scan_cutoffs(study(), omega=omega)[0].fit for omega in (1.0, 2.0))
    assert (first.scaling.omega, second.scaling.omega) == (1.0, 2.0)
    expected = fit_threshold(study(), omega=2.0, bootstrap=0)
    assert second.threshold == expected.threshold


def test_the_table_has_one_row_a_cutoff_and_marks_the_chosen_one():
    cutoffs = scan_cutoffs(with_bent_small_sizes(1))
    head, *rows = cutoff_table(cutoffs).splitlines()
    assert head.split() == ["L_min", "p_c", "chi2/dof", "p-value"]
    assert [row.split()[0] for row in rows] == ["16", "32", "64"]
    assert [row.split()[-1] == "chosen" for row in rows] == [False, True, False]


def test_nothing_to_fit_is_refused():
    with pytest.raises(AnalysisError, match="at least two sizes"):
        scan_cutoffs(study(sizes=(64,)))
    with pytest.raises(AnalysisError, match="got none"):
        scan_cutoffs([])
