"""p_c from three wrapping probabilities: honest, with their covariance, corrections and priors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from percolab.analysis.quantities import BlockMoments, list_quantities
from percolab.analysis.quantity_fits import JointInput, make_fitter
from percolab.analysis.shared_fit import combine
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import Information
from percolab.analysis.wrapping_fit import (
    DEGREES,
    QUANTITIES,
    WrappingEstimate,
    divide_for_error,
    divide_work,
)

P_C, Y_T, OMEGA = 0.2488, 1.141, 1.2
KNOWN = Known(Y_T, 0.0015, "", "")
#: Probits at p_c that one, two and three axes or more are wrapped around, and their slopes.
CRITICAL, SLOPE = ndtri([0.46, 0.233, 0.0804]), np.array([4.2, 4.3, 4.4])
SIZES, SAMPLES = (8, 12, 16, 24, 32, 48), 20_000


def chances(p, L, b, fourth=0.0):
    """Return the probabilities that at least one, two and three axes are wrapped around.

    fourth: of the probits, the amplitude of the fourth power of X.
    """
    X = (p - P_C) * L**Y_T
    return ndtr(CRITICAL + SLOPE * X + fourth * X**4 + b * L**-OMEGA)


def moments_at(rng, L, offsets, blocks, each, b):
    """Return blocks of samples at p that are so far, in units of L^(-1/nu), from 0.0005 above P_C.

    A sample's numbers are the same at all p, so that what wraps at one p does so at a larger one.
    """
    p = P_C + 0.0005 + np.array(offsets) * L**-Y_T
    wanted = np.array([chances(x, L, b) for x in p])
    given = np.column_stack([wanted[:, 0], wanted[:, 1:] / wanted[:, :-1]])
    numbers = rng.random((blocks * each, 3))
    wraps = np.cumprod(numbers[:, None, :] < given, axis=2).reshape(blocks, each, p.size, 3)
    any_axis, all_axes = wraps[..., 0].sum(1), wraps[..., 2].sum(1)
    mean = wraps.sum(axis=(1, 3)) / 3
    sums = {"wrapping_any": any_axis, "wrapping_all": all_axes}
    sums |= {f"wrapping_{axis}": mean for axis in "xyz"}
    return BlockMoments(L, p, np.full(blocks, each), {k: v.astype(float) for k, v in sums.items()})


def study(seed, b=0.3):
    rng, found = np.random.default_rng(seed), []
    for L in SIZES:
        found.append(moments_at(rng, L, (-0.075, 0.0, 0.075), 64, SAMPLES // 640, b))
        found.append(moments_at(rng, L, (0.0,), 512, SAMPLES // 512, b))
    return found


def estimated(moments, degrees=DEGREES, critical=()):
    known = {item.name: item for item in list_quantities(["periodic"] * 3)}
    chosen = [known[name] for name in QUANTITIES]
    joint = JointInput(moments, chosen, [OMEGA] * 3, KNOWN, critical)
    fitter, _, _ = make_fitter(joint, degrees=degrees)
    return WrappingEstimate(fitter, fitter.average(KNOWN), KNOWN)


@pytest.fixture(scope="module")
def estimates():
    return [estimated(study(seed)) for seed in range(24)]


@pytest.mark.slow
def test_errors_hold(estimates):
    pulls = [(item.threshold.value - P_C) / item.threshold.error for item in estimates]
    # A mean of 24 has an error of 0.2, their root mean square one of 0.14.
    assert abs(np.mean(pulls)) < 4 / 24**0.5
    assert 0.45 < np.sqrt(np.mean(np.square(pulls))) < 1 + 4 / 48**0.5


def counted_at(rng, L, offset, blocks, each, fourth):
    """Return blocks of many samples at one p, of which only the counts are drawn."""
    at_least = chances(P_C + offset * L**-Y_T, L, 0.3, fourth)
    counts = rng.multinomial(each, -np.diff([1.0, *at_least, 0.0]), blocks) @ np.tri(4)[:, 1:]
    sums = {"wrapping_any": counts[:, 0], "wrapping_all": counts[:, 2]}
    sums |= {f"wrapping_{axis}": counts.sum(axis=1) / 3 for axis in "xyz"}
    p = np.array([P_C + offset * L**-Y_T])
    return BlockMoments(L, p, np.full(blocks, each), {k: v[:, None] for k, v in sums.items()})


def test_errors_hold_where_the_fourth_power_matters():
    places = [(L, offset) for L in SIZES for offset in (-0.12, -0.06, 0.0, 0.06, 0.12)]
    pulls = []
    for seed in range(7, 13):
        rng = np.random.default_rng(seed)
        found = estimated([counted_at(rng, *place, 256, 2**22, 10.0) for place in places]).threshold
        pulls.append((found.value - P_C) / found.error)
    # With degrees 2 and 3 it is 1.86.
    assert abs(np.mean(pulls)) < 4 / 6**0.5


@pytest.mark.slow
def test_two_studies_that_share_what_wraps_at_p_c_are_more_precise(estimates):
    """The errors shrink, still hold, and the probabilities of both agree."""
    pulls, gains, misfit = [], [], 0.0
    for pair in zip(estimates[::2], estimates[1::2], strict=True):
        values, agreement = combine([own.joint() for own in pair])
        pulls += [(value.value - P_C) / value.error for value in values[:2]]
        gains += [v.error / own.threshold.error for v, own in zip(values[:2], pair, strict=True)]
        misfit += agreement.value
    assert abs(np.mean(pulls)) < 4 / 24**0.5
    assert 0.45 < np.sqrt(np.mean(np.square(pulls))) < 1 + 4 / 48**0.5
    # Most of the error of p_c is that of R, which is 0.71 of two equal errors.
    assert 0.7 < np.mean(gains) < 0.9
    # 36 degrees of freedom.
    assert misfit < 36 + 4 * 72**0.5


def test_the_correction_is_found_with_its_sign():
    for b in (-2.5, 2.5):
        found = estimated(study(1, b))
        assert abs(found.threshold.value - P_C) < 4 * found.threshold.error
        function = found.average.best.functions[0]
        # d Phi / d probit at W_any = 0.46 is 0.397.
        assert function.corrections[0] == pytest.approx(0.397 * b, abs=0.6)


def test_the_three_probabilities_of_a_sample_are_correlated_in_the_fit(estimates):
    centres = [item for item in estimates[0].fitter.observations if item.dimension == 3]
    assert [item.L for item in centres] == list(SIZES)
    for item in centres:
        any_axis, _, all_axes = chances(P_C + 0.0005, item.L, 0.3)
        covariance = item.covariance * item.samples
        # Clusters wrap around all axes only where they wrap around any.  Of 512 blocks.
        expected = all_axes * (1 - any_axis)
        error = ((any_axis * all_axes + expected**2) / 511) ** 0.5
        assert abs(covariance[0, 2] - expected) < 4 * error < expected


def test_an_error_without_correlations_is_another(estimates):
    fitter = estimates[0].fitter
    alone = tuple(
        replace(item, covariance=np.diag(np.diag(item.covariance))) for item in fitter.observations
    )
    found = replace(fitter, observations=alone).average(KNOWN).threshold
    assert abs(found.error / estimates[0].threshold.error - 1) > 0.05


def test_priors_are_in_the_fit_and_in_its_systematic_error(estimates):
    fitter = estimates[0].fitter
    narrow, wide = (
        replace(fitter, priors=factor).average(KNOWN).threshold for factor in (1e-3, 3.0)
    )
    value = estimates[0].threshold
    assert narrow.error < 0.85 * value.error
    assert wide.error > 1.05 * value.error
    assert narrow.systematic_error < 0.3 * value.systematic_error


def test_known_values_at_p_c_are_priors(estimates):
    """They make p_c more precise by a factor, and move it where they are wrong."""
    exact = ndtr(CRITICAL) @ np.array([[1, 1 / 3, 0], [0, 1 / 3, 0], [0, 1 / 3, 1]])
    pulls, gains = [], []
    for seed, free in enumerate(estimates[:12]):
        own = estimated(study(seed), critical=tuple(Known(x, 1e-4, "", "") for x in exact))
        pulls.append((own.threshold.value - P_C) / own.threshold.error)
        gains.append(own.threshold.error / free.threshold.error)
    assert abs(np.mean(pulls)) < 4 / 12**0.5
    assert np.sqrt(np.mean(np.square(pulls))) < 1 + 4 / 24**0.5
    assert np.mean(gains) < 0.6
    wrong = tuple(Known(x + 0.03, 1e-4, "", "") for x in exact)
    moved = estimated(study(0), critical=wrong).threshold
    assert moved.value - P_C > 4 * moved.error


def test_information_forecasts_the_error_of_more_samples(estimates):
    first = estimates[0]
    found = first.information(SIZES)
    samples = {str(size): SAMPLES for size in SIZES}
    assert found.error(samples) == pytest.approx(first.threshold.error, rel=0.25)
    statistical, systematic = found.parts({key: 100 * n for key, n in samples.items()})
    assert statistical < 0.2 * found.parts(samples)[0]
    assert systematic < found.parts(samples)[1]


def test_larger_sizes_are_worth_their_work(estimates):
    costs = {size: 1.1 * size**3 for size in (*SIZES, 64, 96)}
    information = estimates[0].information(list(costs))
    few = {size: costs[size] for size in SIZES[:4]}
    work = 1e10
    assert divide_work(information, costs, work, 1024).error < (
        0.7 * divide_work(information, few, work, 1024).error
    )


def test_the_least_work_for_an_error_gives_that_error(estimates):
    costs = {size: 1.1 * size**3 for size in SIZES}
    information = estimates[0].information(SIZES)
    found = divide_for_error(information, costs, 1e-4, 1024)
    assert 0.9e-4 < found.error <= 1e-4
    assert found.cost == pytest.approx(sum(costs[size] * n for size, n in found.samples.items()))
    assert divide_work(information, costs, 0.8 * found.cost, 1024).error > 1e-4


def test_a_division_is_better_than_equal_work():
    rng = np.random.default_rng(3)
    parts = [rng.standard_normal((2, 3)) for _ in range(4)]
    information = Information({str(n): x.T @ x for n, x in enumerate(parts)}, np.eye(3), 1.0)
    costs = {0: 1.0, 1: 3.0, 2: 0.5, 3: 8.0}
    found = divide_work(information, costs, 1e4, 0)
    equal = {str(n): 1e4 / 4 / cost for n, cost in costs.items()}
    assert found.error < information.error(equal)
    assert found.cost == pytest.approx(1e4)
    # Every size has its part of the quarter that is divided equally.
    assert all(costs[n] * x >= 0.9999 * 1e4 / 16 for n, x in found.samples.items())
