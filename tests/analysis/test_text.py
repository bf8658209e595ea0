"""Numbers with errors in the field's short form, and the table of a fit."""

import numpy as np
import pytest
from synthetic_support import synthetic_study

from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.spin_fit import fit_spins
from percolab.analysis.text import describe_fit, fit_table, format_with_error
from percolab.analysis.threshold import fit_threshold
from percolab.analysis.trees import fit_trees
from percolab.api import sweep, threshold

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
    spins = sweep(
        "square",
        L=[4, 6, 8],
        model="ising",
        boundary="periodic",
        p=[0.55, 0.6],
        samples=4000,
        device="cpu",
        workers=1,
        burn_in=20,
    )
    assert "K_c" in describe_fit(fit_spins(spins), spins.study)
    roots = threshold("square", error=0.02, device="cpu")
    assert "drift of the roots, C/L^4" in describe_fit(roots.fit, roots.results.study)
