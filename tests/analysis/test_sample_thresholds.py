"""Single T give p_c and 1/nu without bias, with errors that cover, by mean, median and slopes."""

import json

import numpy as np
import pytest
from helpers import assert_z, slow
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from synthetic_support import synthetic_curve

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.sample_thresholds import analyse_samples, compute_sample_moments
from percolab.analysis.text import sample_table
from percolab.errors import AnalysisError

P_C, Y_T, SIZES = 0.6, 0.75, (16, 32, 64, 128)


def single(seed, sizes=SIZES, count=2000, bend=0.3):
    """Return (L, T): skew T about p_c + A L^-y_t (1 + bend / L), of width S L^-y_t."""
    rng, found = np.random.default_rng(seed), []
    for L in sizes:
        z = rng.standard_normal(count)
        # A skew variable of mean 0: its median is elsewhere.
        skew = 0.3 * (z + 0.2 * (z**2 - 1))
        found.append((L, P_C + L**-Y_T * (0.2 * (1 + bend / L) + skew)))
    return found


def curve_of(L, T, points=15, blocks=20):
    p = np.quantile(T, np.linspace(0.03, 0.97, points))
    spanning = (T.reshape(blocks, -1, 1) <= p).sum(axis=1)
    return SpanningCurve(L, p, np.full(blocks, T.size // blocks), spanning)


def test_the_errors_of_mean_median_and_width_are_those_of_repetition():
    rows = [compute_sample_moments(8, single(seed, (8,))[0][1]) for seed in range(200)]
    values = np.array([(row.mean, row.median, row.width) for row in rows])
    found = np.mean([row.covariance for row in rows], axis=0)
    expected = np.cov(values, rowvar=False)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    # A variance of n values is known to sqrt(2 / n), a correlation no worse.
    assert np.abs((found - expected) / scale).max() <= 4 * np.sqrt(2 / 200)


@pytest.mark.parametrize("sizes", [SIZES, slow(SIZES[:3]), slow(SIZES[::3])])
def test_mean_median_and_width_tell_p_c_and_1_nu_and_their_errors_cover(sizes):
    studies = [analyse_samples(single(seed, sizes), []) for seed in range(100)]
    for n, (estimator, truth) in enumerate((("mean", P_C), ("median", P_C), ("width", Y_T))):
        found = [study.extrapolations[n] for study in studies]
        assert {item.estimator for item in found} == {estimator}
        pulls = np.array([(item.result.value - truth) / item.result.error for item in found])
        assert abs(pulls.mean()) < 0.4
        assert pulls.std() < 1.1
        assert np.mean(np.abs(pulls) < 2) >= 0.94
        own = [item.result.statistical_error for item in found]
        scatter = np.std([item.result.value for item in found])
        assert np.median(own) == pytest.approx(scatter, rel=4 / np.sqrt(2 * 100))


def test_cell_to_cell_gives_the_threshold_and_the_exponent():
    sizes = (64, 128, 256, 512)
    # Without the median's shift the curves cross at p_c.
    rng = np.random.default_rng(1)
    found = [(L, P_C + L**-Y_T * 0.3 * rng.standard_normal(4000)) for L in sizes]
    curves = [curve_of(L, T) for L, T in found]
    cells = analyse_samples(found, curves).cells
    assert [(cell.L1, cell.L2) for cell in cells] == [(64, 128), (128, 256), (256, 512)]
    for cell in cells:
        assert abs(cell.p - P_C) <= 4 * cell.p_error
        assert abs(cell.y_t - Y_T) <= 4 * cell.y_t_error
        # Slopes of a normal distribution at its middle are known to about 1 / sqrt(n).
        assert 0 < cell.y_t_error < 10 / np.sqrt(4000)


def test_cell_to_cell_of_many_samples_has_the_slopes_of_curves_that_are_no_cubics():
    def spanning(p, L):
        x = (p - 0.5 + 0.5 * (p - 0.5) ** 2) * L**Y_T
        bend = 0.2 * np.tanh(x) - 0.1 * np.log(np.cosh(x))
        return ndtr(0.05 + 1.1 * x + bend + (0.6 - 0.3 * x) / L)

    rng, sizes, curves, found = np.random.default_rng(1), (16, 32), [], []
    for L in sizes:
        every = np.linspace(0, 1, 100_001)
        p = np.linspace(*np.interp((0.01, 0.99), spanning(every, L), every), 25)
        how = {"samples": 500_000, "blocks": 20, "rng": rng}
        curves.append(synthetic_curve(L, p, spanning(p, L), **how))
        found.append((L, p))
    (cell,) = analyse_samples(found, curves).cells
    fixed = brentq(lambda p: spanning(p, 32) - spanning(p, 16), 0.46, 0.56)
    slopes = [np.diff(spanning(fixed + np.array([-1e-6, 1e-6]), L))[0] for L in sizes]
    # Cubics over all of R are off by seven errors.
    assert_z(cell.y_t, np.log2(slopes[1] / slopes[0]), cell.y_t_error)


def test_the_median_is_that_of_the_curve():
    T = single(0, (32,))[0][1]
    row = compute_sample_moments(32, T)
    assert np.mean(row.median >= T) == pytest.approx(0.5)
    # Of a normal variable the median scatters sqrt(pi / 2) times as much as the mean.
    normal = ndtri((np.arange(4000) + 0.5) / 4000)
    row = compute_sample_moments(32, normal)
    assert row.errors[1] / row.errors[0] == pytest.approx(np.sqrt(np.pi / 2), rel=0.01)


def test_sizes_that_never_span_are_left_out_and_named():
    found = single(0)
    found[0][1][0] = np.inf
    result = analyse_samples(found, [])
    assert [row.L for row in result.sizes] == [32, 64, 128]
    assert any("L = 16 left out" in note for note in result.notes)
    json.dumps(result.to_dict(), allow_nan=False)
    assert "mean T" in sample_table(result)
    assert "width of T" in sample_table(result)


def test_too_few_samples_are_refused():
    with pytest.raises(AnalysisError, match="L = 16 has 10 samples"):
        analyse_samples([(16, np.linspace(0.4, 0.6, 10))], [])
