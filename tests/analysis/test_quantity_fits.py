"""The joint fit of dimensionless quantities: of synthetic data, averaged, and what is refused.

The data are moments of a probability, Q_1 and Q_2 of a cubic torus.  They have normal errors with
the covariance that was measured at L = 16; those at neighbouring p are correlated, too.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import slow

from percolab import AnalysisError, sweep
from percolab.analysis.quantities import BlockMoments, list_quantities, observe
from percolab.analysis.quantity_fits import JointInput, analyse_quantities
from percolab.analysis.quantity_model import JointModel, fit_joint, near_threshold
from percolab.analysis.stored_fits import fit_quantities
from percolab.analysis.text import quantity_table
from percolab.analysis.theory.known_exponents import Known

P_C, Y_T, OMEGA = 0.2488, 1.14, 1.2

#: Q_c, a_1, a_2 and b of each quantity.
TRUTH = {
    "wrapping_any": (0.46, 1.5, 0.3, 0.15),
    "Q_1": (0.865, 0.3, -0.4, 0.05),
    "Q_2": (0.74, 0.5, -0.3, 0.1),
}

#: Standard deviations of W_any, s_1, s_1^2, S_2, S_2^2 of a sample, and their correlation.
SPREAD = np.array([0.474, 0.392, 0.825, 0.593, 1.53])
CORRELATION = np.array(
    [
        [1.000, 0.511, 0.489, 0.487, 0.429],
        [0.511, 1.000, 0.983, 0.975, 0.901],
        [0.489, 0.983, 1.000, 0.995, 0.961],
        [0.487, 0.975, 0.995, 1.000, 0.968],
        [0.429, 0.901, 0.961, 0.968, 1.000],
    ]
)
QUANTITIES = [item for item in list_quantities(["periodic"] * 3) if item.name in TRUTH]
SIZES = (8, 12, 16, 24, 32, 64)


def value(name, p, L):
    Q_c, a_1, a_2, b = TRUTH[name]
    x = (p - P_C) * L**Y_T
    return Q_c + a_1 * x + a_2 * x**2 + b * L**-OMEGA


def task(rng, L, *, points, samples, blocks, reach=0.03):
    """Return blocks of one task at p about p_c, <s_1> and <S_2> being 1."""
    x = reach * np.linspace(-1, 1, points) + 0.002 if points > 1 else np.array([0.002])
    p = P_C + x * L**-Y_T
    one = np.ones_like(p)
    means = {
        "wrapping_any": value("wrapping_any", p, L),
        "largest": one,
        "largest*largest": 1 / value("Q_1", p, L),
        "sum_squares": one,
        "sum_squares*sum_squares": 1 / value("Q_2", p, L),
    }
    # Samples at two p differ where bonds between them matter, in proportion to their distance.
    along = 1 - 0.9 * np.abs(x[:, None] - x)
    root = np.linalg.cholesky(np.kron(CORRELATION * np.outer(SPREAD, SPREAD), along))
    each = samples // blocks
    noise = rng.standard_normal((blocks, len(root))) @ root.T / np.sqrt(each)
    noise = noise.reshape(blocks, len(means), points)
    sums = {name: each * (means[name] + noise[:, i]) for i, name in enumerate(means)}
    return BlockMoments(L, p, np.full(blocks, each), sums)


def three_p(rng, *, samples=10**6, blocks=100):
    return [task(rng, L, points=3, samples=samples, blocks=blocks) for L in SIZES]


def one_p(rng):
    """Return a study with nearly all of its samples at one p, and a few at three for slopes."""
    most = [task(rng, L, points=1, samples=10**6, blocks=100) for L in SIZES]
    few = [task(rng, L, points=3, samples=30_000, blocks=60, reach=0.1) for L in (16, 64)]
    return most + few


def analysed(moments, **options):
    own = {"omegas": (OMEGA,) * len(QUANTITIES), "y_t": Known(Y_T, 0.0, "", "")}
    own |= {name: options.pop(name) for name in ("omegas", "y_t", "critical") if name in options}
    return analyse_quantities(JointInput(moments, QUANTITIES, **own), **options)


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


def test_a_moment_ratio_alone_finds_the_threshold():
    sizes = {"L": [8, 16, 32], "boundary": "periodic", "samples": 4000, "seed": 1}
    results = sweep("square", **sizes, device="cpu", workers=1)
    for name in ("Q_1", "Q_2", "s_2/s_1"):
        # Over the whole transition no polynomial follows Q_1 and Q_2: chi^2 of 156 and 26.
        found = fit_quantities(results, [name])
        assert found.problem is None
        assert abs(found.threshold - 0.5) <= 4 * found.threshold_error
        assert abs(found.y_t - 0.75) <= 4 * found.y_t_error
        assert found.threshold_error < 0.005


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
    with pytest.raises(AnalysisError, match="each size has one p, so slopes are unknown"):
        analysed(same)
    with pytest.raises(AnalysisError, match=r"at least two sizes .* got L = 8$"):
        analysed(three_p(rng)[:1])
    study, lacking = three_p(rng), []
    for m in study[2:]:
        rest = {name: sums for name, sums in m.moments.items() if "sum" not in name}
        lacking.append(replace(m, moments=rest))
    with pytest.raises(
        AnalysisError, match=r"'Q_2' is measured at too few sizes \(L = 8, L = 12\)"
    ):
        analysed(study[:2] + lacking)
    once = [task(rng, L, points=1, samples=10**6, blocks=100) for L in SIZES]
    with pytest.raises(AnalysisError, match="'Q_2' is measured at one p per size"):
        analysed(lacking + once)


KNOWN = Known(Y_T, 0.0, "", "")


def model_of(moments, quantities=QUANTITIES, *, degree=3, known=None, wider=1.0):
    start, near = near_threshold(moments, quantities)
    units, slopes = start.units(sorted({item.L for item in near}))
    observations = tuple(observe(item, quantities) for item in near)
    omegas = (OMEGA,) * len(quantities)
    return JointModel(observations, degree, omegas, slopes, units, known, wider)


@pytest.mark.slow
@pytest.mark.parametrize("known", [None, slow(KNOWN)])
def test_pulls_of_all_numbers_are_those_of_whole_errors(known):
    rng, pulls, chances = np.random.default_rng(7), [], []
    for _ in range(studies := 10):
        fit = fit_joint(model_of(three_p(rng), known=known), Y_T)
        errors = np.sqrt(np.diag(fit.covariance))
        at = [0, 1, 4 + 2 * (fit.degree + 5)]
        truth = [(P_C - fit.p_0) / fit.width, Y_T, TRUTH["Q_2"][0]]
        pulls.append((fit.theta[at] - truth) / errors[at])
        chances.append(fit.chi_square.p_value)
    pulls = np.array(pulls)[:, [0, 1, 2] if known is None else [0, 2]]
    assert np.abs(pulls.mean(axis=0)).max() * np.sqrt(studies) <= 4
    assert pulls.std(axis=0).max() <= 1 + 4 / np.sqrt(2 * studies)
    # The errors are not bought by being wide.
    assert pulls.std(axis=0).min() > 0.3
    # p-values are uniform: mean 1/2, variance 1/12.
    assert abs(np.mean(chances) - 0.5) <= 4 * np.sqrt(1 / 12 / studies)


def test_the_covariance_is_that_of_the_linear_estimate():
    """With many blocks: what white noise in the residuals does to the estimate, priors kept."""
    rng = np.random.default_rng(8)
    model = model_of(three_p(rng, blocks=2000))
    fit = fit_joint(model, Y_T)
    jacobian = model.jacobian(fit.theta)
    scale = np.linalg.norm(jacobian, axis=0)
    noise = np.zeros((len(jacobian), 2000))
    noise[: model.target.size] = rng.standard_normal((model.target.size, 2000))
    drawn = np.linalg.lstsq(jacobian / scale, noise, rcond=None)[0] / scale[:, None]
    expected = np.sqrt(np.diag(fit.statistical))
    np.testing.assert_allclose(drawn.std(axis=1), expected, rtol=4 / np.sqrt(4000) + 0.02)
    assert (fit.statistical.diagonal() <= fit.covariance.diagonal()).all()


@pytest.mark.parametrize(("degree", "known"), [(2, None), (3, KNOWN), (5, None)])
def test_the_jacobian_is_that_of_residuals_and_priors(degree, known):
    model = model_of(three_p(np.random.default_rng(9)), degree=degree, known=known)
    theta = np.random.default_rng(10).uniform(0.5, 1.5, 4 + 3 * model.terms)
    jacobian, step = model.jacobian(theta), 1e-6
    assert jacobian.shape == (model.target.size + theta.size, theta.size)
    for column, exact in enumerate(jacobian.T):
        up, down = theta.copy(), theta.copy()
        up[column] += step
        down[column] -= step
        slope = (model.residuals(up) - model.residuals(down)) / (2 * step)
        np.testing.assert_allclose(slope, exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max() + 1e-6)


def test_priors_are_in_units_of_a_probit_and_of_each_slope():
    moments = three_p(np.random.default_rng(11))
    one, two = model_of(moments), model_of(moments, wider=2.0)
    (mean, root), (_, half) = one.prior, two.prior
    amplitudes = root[4:].reshape(len(QUANTITIES), -1)
    # b of all quantities is as wide, c goes with the slope.
    assert len(set(np.round(amplitudes[:, 4], 9))) == 1
    of_slope = amplitudes[:, 5] * one.slopes
    np.testing.assert_allclose(of_slope, of_slope[0], rtol=1e-9)
    given = root > 0
    # m has the square of the width of n, and 1/nu a width of its own.
    expected = np.where(np.flatnonzero(given) == 3, 4.0, 2.0)
    expected[np.flatnonzero(given) == 1] = 1.0
    np.testing.assert_allclose((root / np.where(given, half, 1))[given], expected)
    assert mean[1] == 1
    assert not np.delete(mean, 1).any()
    assert model_of(moments, known=KNOWN).prior[0][1] == Y_T


def test_what_the_data_do_not_determine_is_said():
    """Two sizes at one p each: p_c, 1/nu and a critical value cannot come from two numbers."""
    rng = np.random.default_rng(12)
    model = model_of(three_p(rng), QUANTITIES[:1])
    tasks = [task(rng, L, points=1, samples=10**5, blocks=100) for L in (8, 16)]
    single = tuple(observe(item, QUANTITIES[:1]) for item in tasks)
    few = JointModel(single, 3, model.omegas, model.slopes, model.units)
    with pytest.raises(AnalysisError, match=r"do not determine|did not converge"):
        fit_joint(few, Y_T)


def test_the_start_is_near_and_far_p_are_left_out():
    rng = np.random.default_rng(13)
    wide = [task(rng, L, points=9, samples=10**6, blocks=200, reach=0.3) for L in SIZES]
    start, near = near_threshold(wide, QUANTITIES)
    assert abs(start.threshold - P_C) < 2e-4
    assert abs(start.y_t - Y_T) < 0.1
    x = np.concatenate([(item.p - P_C) * item.L**Y_T for item in near])
    # 1.5 |x| <= 0.2 leaves 3 of the 9 p; the bound itself is known as well as the slope is.
    assert np.abs(x).max() < 0.16
    assert {item.p.size for item in near} == {3}
