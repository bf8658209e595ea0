"""The joint fit of dimensionless quantities finds what synthetic data were made of.

Three quantities of a cubic torus: a probability, Q_1 and Q_2.  Their moments have normal errors
with the covariance that was measured at L = 16; those at neighbouring p are correlated, too.
"""

import itertools

import numpy as np
import pytest

from percolab.analysis import AnalysisError
from percolab.analysis.observations import BlockMoments, observe
from percolab.analysis.quantities import quantities_of
from percolab.analysis.quantity_fit import fit_model
from percolab.analysis.quantity_fits import analyse_quantities
from percolab.analysis.quantity_model import CORRECTIONS, JointModel, ModelChoice, scales_of
from percolab.analysis.quantity_start import near_threshold
from percolab.analysis.quantity_table import quantity_table

P_C, Y_T, OMEGA = 0.2488, 1.14, 1.2
SIZES = (8, 12, 16, 24, 32, 64)
#: Q_c, a_1, a_2 and b of each quantity.
TRUTH = {
    "wrapping_any": (0.46, 1.5, 0.3, 0.15),
    "Q_1": (0.865, 0.3, -0.4, 0.05),
    "Q_2": (0.74, 0.5, -0.3, 0.1),
}
QUANTITIES = [item for item in quantities_of(["periodic"] * 3) if item.name in TRUTH]
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


def model_of(moments, quantities=QUANTITIES, *, corrections="b", free=False, y_t=None, degree=2):
    observations = tuple(observe(item, quantities) for item in moments)
    choice = ModelChoice(degree, (OMEGA,) * len(quantities), corrections, free, y_t)
    return JointModel(observations, choice, 2.0, scales_of(observations, P_C, 0.02))


def fit_of(moments, quantities=QUANTITIES, **options):
    model = model_of(moments, quantities, **options)
    start = [0.0, Y_T][: 1 + (model.choice.y_t is None)]
    start += [OMEGA] if model.choice.free_omega else []
    return fit_model(model, np.array(start), [item.name for item in quantities])


def check_pulls(pulls):
    """Check that pulls have mean 0 and width 1, each within four of its errors."""
    count = len(pulls)
    assert abs(np.mean(pulls)) <= 4 / np.sqrt(count)
    assert abs(np.std(pulls) - 1) <= 4 / np.sqrt(2 * count)


@pytest.mark.parametrize("study", [three_p, one_p])
def test_pulls_of_all_numbers_are_standard_normal(study):
    rng = np.random.default_rng(7)
    pulls, chances = [], []
    for _ in range(200):
        fit = fit_of(study(rng))
        last = fit.amplitudes[-1]
        pulls.append(
            [
                (fit.threshold - P_C) / fit.threshold_error,
                (fit.y_t - Y_T) / fit.y_t_error,
                (last.critical - TRUTH["Q_2"][0]) / last.critical_error,
                (last.slopes[0] - TRUTH["Q_2"][1]) / last.slope_errors[0],
                (last.correction - TRUTH["Q_2"][3]) / last.correction_error,
            ]
        )
        chances.append(fit.chi_square.p_value)
    for column in np.array(pulls).T:
        check_pulls(column)
    # p-values are uniform: mean 1/2, variance 1/12; the noise of the covariance is in neither.
    assert abs(np.mean(chances) - 0.5) <= 4 * np.sqrt(1 / 12 / 200)


def test_few_blocks_widen_the_errors_as_they_must():
    rng = np.random.default_rng(8)
    quantities, pulls, naive = QUANTITIES, [], []
    for _ in range(200):
        model = model_of(three_p(rng, blocks=45))
        fit = fit_model(model, np.array([0.0, Y_T]), [item.name for item in quantities])
        pulls.append((fit.threshold - P_C) / fit.threshold_error)
        theta = model.linear_fit(np.array(fit.outer))
        jacobian = model.jacobian(theta)
        error = model.scales.width * np.sqrt(np.linalg.inv(jacobian.T @ jacobian)[0, 0])
        naive.append(error / fit.threshold_error)
    check_pulls(pulls)
    # 45 blocks for 9 values: the curvature alone is too sure of itself.
    assert np.mean(naive) < 0.98


@pytest.mark.parametrize(
    ("corrections", "free", "y_t"),
    [*itertools.product(CORRECTIONS, [False], [None, 1.1]), ("bc", True, None)],
)
def test_the_jacobian_is_that_of_the_residuals(corrections, free, y_t):
    moments = three_p(np.random.default_rng(9))
    model = model_of(moments, corrections=corrections, free=free, y_t=y_t)
    rng = np.random.default_rng(10)
    theta = rng.uniform(0.5, 1.5, model.parameters)
    step = 1e-6
    for column, exact in enumerate(model.jacobian(theta).T):
        up, down = theta.copy(), theta.copy()
        up[column] += step
        down[column] -= step
        slope = (model.residuals(up) - model.residuals(down)) / (2 * step)
        np.testing.assert_allclose(slope, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


def test_the_joint_fit_is_more_precise_than_each_of_its_quantities():
    moments = three_p(np.random.default_rng(11))
    joint = fit_of(moments).threshold_error
    assert all(joint < fit_of(moments, [item]).threshold_error for item in QUANTITIES)


def test_omega_can_be_fitted():
    moments = three_p(np.random.default_rng(12), samples=10**8)
    own = fit_of(moments, free=True).amplitudes[0]
    assert 0 < own.omega_error < 0.1
    assert abs(own.omega - OMEGA) <= 4 * own.omega_error


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


def analysed(moments, **options):
    own = {"omegas": [(OMEGA,) * len(QUANTITIES)], "omega_2": 2.0, "y_t": Y_T}
    return analyse_quantities(moments, QUANTITIES, **own | options)


def test_the_table_of_fits_chooses_one_and_tells_the_spread():
    found = analysed(three_p(np.random.default_rng(14)))
    assert found.chosen.accepted
    assert abs(found.threshold - P_C) <= 4 * found.threshold_error
    shown = [trial for trial in found.trials if trial.shown]
    assert {trial.fit.min_size for trial in shown} == {8, 12, 16}
    # Without a correction the smallest sizes are refused, and tell of no systematic error.
    none = next(trial for trial in shown if trial.fit.choice.corrections == "none")
    assert not none.accepted
    others = [t.fit for t in shown if t.accepted and t is not found.chosen]
    away = np.array([(fit.threshold - found.threshold) ** 2 for fit in others])
    weights = np.array([fit.threshold_error**-2 for fit in others])
    assert found.compared == len(others) > 1
    assert found.systematic_error == pytest.approx(np.sqrt(np.sum(away * weights) / weights.sum()))
    # Every quantity alone agrees.
    for quantity, own in zip(QUANTITIES, found.alone, strict=True):
        assert own.accepted
        assert abs(own.fit.threshold - P_C) <= 4 * own.fit.threshold_error
        critical = own.fit.amplitudes[0]
        assert abs(critical.critical - TRUTH[quantity.name][0]) <= 4 * critical.critical_error
    text = quantity_table(found)
    assert all(word in text for word in ("chosen", "rejected", "Q_c wrapping_any"))


def test_chi_square_alone_moves_the_cut_off():
    moments = three_p(np.random.default_rng(15))
    # The smallest size has a correction of its own, six of its errors large.
    sums = dict(moments[0].moments)
    sums["wrapping_any"] = sums["wrapping_any"] + 10_000 * 6 * 0.5 / 1000
    broken = BlockMoments(8, moments[0].p, moments[0].samples, sums)
    options = {"degree": 2, "corrections": "b"}
    assert analysed(moments, **options).chosen.fit.min_size == 8
    assert analysed([broken, *moments[1:]], **options).chosen.fit.min_size == 12


def test_smaller_sizes_are_left_out_when_asked():
    found = analysed(three_p(np.random.default_rng(16)), min_size=16)
    assert found.chosen.fit.sizes == (16, 24, 32, 64)


def test_what_the_data_cannot_tell_is_said_in_one_line():
    rng = np.random.default_rng(17)
    single = [task(rng, L, points=1, samples=10**5, blocks=100) for L in SIZES]
    same = [BlockMoments(m.L, np.array([P_C]), m.samples, m.moments) for m in single]
    with pytest.raises(AnalysisError, match="'wrapping_any' is there at one p a size"):
        analysed(same)
    with pytest.raises(AnalysisError, match=r"at least three sizes .* got L = 8, L = 12$"):
        analysed(three_p(rng)[:2])
    study = three_p(rng)
    lacking = [
        BlockMoments(m.L, m.p, m.samples, {k: v for k, v in m.moments.items() if "sum" not in k})
        for m in study[2:]
    ]
    with pytest.raises(AnalysisError, match=r"'Q_2' is there at fewer than three sizes \(L = 8, L"):
        analysed(study[:2] + lacking)
    once = [task(rng, L, points=1, samples=10**6, blocks=100) for L in SIZES]
    with pytest.raises(AnalysisError, match="'Q_2' is there at one p a size"):
        analysed(lacking + once)
