"""Errors of p_c and 1/nu are true, on synthetic studies with every correction and on real ones.

What the fit is made of is needed: without the nonlinear field, or with priors that claim too much,
the same studies give pulls that are wrong.
"""

import gzip
import json

import numpy as np
import pytest
from analysis_support import drawn_study
from helpers import DATA

from percolab.analysis import scaling
from percolab.analysis.curves import SpanningCurve
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import MemberFits, fit_threshold, select

PLANAR = Known(0.75, 0.0, "3/4", "")


def pulls_of(count, *, wider=1.0, **options):
    """Return pulls of p_c and 1/nu, (count, 2), and how many fits chi^2 rejects."""
    pulls, rejected = [], 0
    for seed in range(count):
        used, _ = select(drawn_study(seed, **options), min_size=None)
        p_c = MemberFits.of(used, omega=1.0, y_t=PLANAR, wider=wider).threshold
        y_t = MemberFits.of(used, omega=1.0, wider=wider).y_t
        pulls.append([(p_c.value - 0.5) / p_c.error, (y_t.value - 0.75) / y_t.error])
        rejected += p_c.rejected
    return np.array(pulls), rejected


def are_right(pulls):
    """Return of each column whether its mean is 0 and its width near 1."""
    return (np.abs(pulls.mean(axis=0)) * np.sqrt(len(pulls)) <= 4) & (
        (pulls.std(axis=0) >= 0.6) & (pulls.std(axis=0) <= 1.2)
    )


@pytest.mark.slow
def test_pulls_of_p_c_and_of_the_exponent_are_normal():
    pulls, rejected = pulls_of(60)
    assert are_right(pulls).all()
    # Of 60 good fits 1 in 1000 is rejected.
    assert rejected <= 1


@pytest.mark.slow
def test_pulls_of_few_samples_are_not_too_wide():
    pulls, rejected = pulls_of(20, samples=4000)
    assert (np.abs(pulls.mean(axis=0)) * np.sqrt(20) <= 4).all()
    assert (pulls.std(axis=0) <= 1.2).all()
    assert rejected <= 1


@pytest.mark.slow
def test_without_the_nonlinear_field_the_exponent_is_wrong(monkeypatch):
    monkeypatch.setattr(scaling, "FIELD_WIDTH", 1e-3)
    pulls, rejected = pulls_of(30)
    assert not are_right(pulls)[1]
    assert rejected > 10


@pytest.mark.slow
def test_priors_a_tenth_as_wide_are_wrong():
    pulls, _ = pulls_of(20, wider=0.1)
    assert not are_right(pulls).any()
    assert (pulls.std(axis=0) > 3).all()


def real_studies():
    with gzip.open(DATA / "curves.json.gz", "rt") as file:
        return [
            pytest.param(record, curves, id=f"{record['name']} {number}")
            for record in json.load(file)
            for number, curves in enumerate(record["studies"], 1)
        ]


@pytest.mark.parametrize(("record", "curves"), real_studies())
def test_real_samples_give_the_published_threshold_and_exponent(record, curves):
    known = Known(record["y"], record["y_error"], "", "")
    found = fit_threshold(
        [SpanningCurve(c["L"], c["p"], [c["samples"]], [c["spanning"]]) for c in curves],
        omega=record["omega"],
        y_t=known,
    )
    assert found.problem is None
    assert found.chi_square.p_value > 1e-3
    assert abs(found.threshold - record["p_c"]) <= 3 * found.threshold_error
    assert abs(found.y_t - known.value) <= 3 * np.hypot(found.y_t_error, known.error)
    # The errors are not bought by being wide.
    assert found.threshold_error < 1e-3
    assert found.y_t_error < 0.06
