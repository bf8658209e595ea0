"""The threshold fit: what it finds, the parts of its error, and what it refuses to answer."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from analysis_support import SIZES, TRUTH, drawn_study, study
from helpers import slow
from scipy import optimize
from scipy.special import ndtr
from synthetic_support import synthetic_curve

import percolab
from percolab.analysis.curves import SpanningCurve
from percolab.analysis.likelihood import (
    Prior,
    ThresholdCells,
    _Point,
    chi_square,
    fit_size,
    maximise,
    resample_curve,
)
from percolab.analysis.scaling import Lines, ScalingModel
from percolab.analysis.text import fit_table
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import MemberFits, fit_threshold, select
from percolab.errors import AnalysisError

PLANAR = Known(0.75, 0.0, "3/4", "Nienhuis 1984")


def exact_curve(L, p, samples=10**10):
    spanning = np.round(samples * TRUTH.probability(p, L)).astype(np.int64)
    return SpanningCurve(L, p, [samples], [spanning])


def exact_study(sizes=(32, 64, 256, 1024), **options):
    x = np.linspace(-1.0, 1.0, 9)
    return [exact_curve(L, TRUTH.threshold + x / L**TRUTH.y_t, **options) for L in sizes]


def resampled(curves, rng):
    """Return curves with as many samples, drawn from the frequencies of these."""
    found = []
    for curve in curves:
        counts = curve.threshold_counts.sum(axis=0)
        drawn = rng.multinomial(counts.sum(), counts / counts.sum())
        found.append(SpanningCurve(curve.L, curve.p, [counts.sum()], [drawn.cumsum()[:-1]]))
    return found


def test_data_without_noise_give_back_every_parameter():
    fit = fit_threshold(exact_study(), degree=3)
    assert fit.threshold == pytest.approx(TRUTH.threshold, abs=1e-6)
    assert fit.y_t == pytest.approx(TRUTH.y_t, abs=1e-4)
    assert fit.scaling.corrections[0] == pytest.approx(0.8, abs=0.02)
    assert fit.critical_probability == pytest.approx(ndtr(TRUTH.coefficients[0]), abs=1e-4)
    assert fit.chi_square.p_value > 0.01


def test_the_whole_error_is_of_its_two_parts():
    fit = fit_threshold(study(), y_t=PLANAR)
    assert 0 < fit.statistical_error < fit.threshold_error
    parts = np.hypot(fit.statistical_error, fit.systematic_error)
    assert parts == pytest.approx(fit.threshold_error, rel=1e-12)


@pytest.mark.parametrize(
    ("seed", "options"), [slow(0, {}), (1, {"degree": 3, "min_size": 32}), slow(5, {"degree": 4})]
)
def test_the_statistical_error_is_the_scatter_of_replicas(seed, options):
    """One member, and averages of several, whose weights move with the samples."""
    curves = drawn_study(seed)
    stated = fit_threshold(curves, y_t=PLANAR, **options).statistical_error
    rng, degree = np.random.default_rng(1), options.get("degree")
    values = []
    for _ in range(50):
        used, _ = select(resampled(curves, rng), min_size=options.get("min_size"))
        degrees = {} if degree is None else {"degrees": (degree,)}
        fits = MemberFits.of(used, omega=1.0, y_t=PLANAR, **degrees)
        values.append(fits.threshold.value)
    # The scatter of n values is known to 1 / sqrt(2 n).
    assert abs(np.std(values) / stated - 1) <= 4 / np.sqrt(100)


@pytest.mark.parametrize("options", [{"degree": 3, "min_size": 64}, slow({})])
def test_influence_is_how_a_count_moves_the_threshold(options):
    curves = exact_study((16, 32, 64, 128), samples=10**7)
    fit = fit_threshold(curves, y_t=PLANAR, **options)
    assert [len(own) for own in fit.influence] == [curve.p.size + 1 for curve in fit.used]
    largest = max(np.abs(own).max() for own in fit.influence)
    for index, curve in enumerate(fit.used):
        for cell in (0, 4)[index % 2 :]:
            more, moved = 3000 * (np.arange(curve.p.size) >= cell), []
            for sign in (1, -1):
                counts = curve.samples + 3000 * sign, curve.spanning + sign * more
                changed = SpanningCurve(curve.L, curve.p, *counts)
                others = [other for other in fit.used if other is not curve]
                moved.append(fit_threshold([*others, changed], y_t=PLANAR, **options).threshold)
            slope = (moved[0] - moved[1]) / 6000
            assert slope == pytest.approx(fit.influence[index][cell], abs=0.03 * largest)


def test_a_known_exponent_enters_p_c_and_never_the_exponent():
    curves = study(3, sizes=(16, 32, 64))
    known, free = fit_threshold(curves, y_t=PLANAR), fit_threshold(curves)
    assert (known.y_t, known.y_t_error) == (free.y_t, free.y_t_error)
    assert known.known_y_t is PLANAR
    assert free.known_y_t is None
    assert "1/nu = 3/4 (Nienhuis 1984)" in fit_table(known)
    assert "1/nu is free" in fit_table(free)
    # Members of p_c have the known exponent, those of 1/nu do not.
    assert {round(member.y_t, 4) for member in known.members} == {0.75}
    assert {round(member.y_t, 4) for member in known.free_members} != {0.75}


def test_members_are_all_degrees_and_smallest_sizes_that_leave_three():
    fit = fit_threshold(study(sizes=(16, 32, 64, 128, 256)))
    found = {(member.min_size, member.degree) for member in fit.members}
    assert found == {(size, degree) for size in (16, 32, 64) for degree in (3, 4, 5)}
    weights = [member.weight for member in fit.members]
    assert sum(weights) == pytest.approx(1)
    assert weights == sorted(weights, reverse=True)
    mean = sum(member.weight * member.threshold for member in fit.members)
    assert fit.threshold == pytest.approx(mean, rel=1e-12)
    assert fit.chi_square == fit.members[0].chi_square
    few = fit_threshold(study(sizes=(16, 32)), degree=2)
    assert [(member.min_size, member.degree) for member in few.members] == [(16, 2)]


def raised(curve, factor):
    """Return a curve whose spanning samples are multiplied by a factor."""
    spanning = np.minimum((curve.spanning * factor).astype(int), curve.samples[:, None])
    return replace(curve, spanning=spanning)


def test_a_size_that_no_correction_describes_has_no_weight():
    first, *others = study(sizes=(8, 16, 32, 64, 128))
    fit = fit_threshold([raised(first, 1.15), *others])
    assert fit.problem is None
    assert sum(item.weight for item in fit.members if item.min_size == 8) < 0.01
    assert abs(fit.threshold - TRUTH.threshold) < 4 * fit.threshold_error


def test_neither_order_nor_rounding_decides():
    """What sums in another order change, as other BLAS kernels do, is far below the error."""
    curves = study(sizes=(16, 32, 64), samples=40)
    first, *others = (fit_threshold(order, y_t=PLANAR) for order in permutations(curves))
    for other in others:
        assert abs(other.threshold - first.threshold) < 1e-3 * first.threshold_error
        assert other.threshold_error == pytest.approx(first.threshold_error, rel=1e-3)
        assert abs(other.y_t - first.y_t) < 1e-3 * first.y_t_error
    again = fit_threshold(curves, y_t=PLANAR)
    assert json.dumps(again.to_dict()) == json.dumps(first.to_dict())


def test_a_task_split_in_two_gives_the_threshold_of_the_whole():
    whole = study()
    halves = [
        replace(c, samples=c.samples[part], spanning=c.spanning[part])
        for c in whole
        for part in (slice(0, 50), slice(50, 100))
    ]
    alone = {"degree": 3, "min_size": 128}
    one, two = fit_threshold(whole, **alone), fit_threshold(halves, **alone)
    assert two.threshold == pytest.approx(one.threshold, abs=1e-3 * one.threshold_error)
    assert two.threshold_error == pytest.approx(one.threshold_error, rel=1e-3)


def test_p_outside_the_window_do_no_harm():
    wide = study(reach=1.5, points=11)
    flat = []
    for c in wide:
        spanning = np.column_stack([0 * c.samples, c.spanning, c.samples])
        flat.append(replace(c, p=np.concatenate([[0.3], c.p, [0.95]]), spanning=spanning))
    plain, padded = fit_threshold(wide), fit_threshold(flat)
    assert padded.threshold == pytest.approx(plain.threshold, abs=1e-9)
    narrow = fit_threshold(wide, window=(0.3, 0.7))
    assert all((c.probability > 0.3).all() and (c.probability < 0.7).all() for c in narrow.used)
    assert sum(c.p.size for c in narrow.used) < sum(c.p.size for c in plain.used)


def test_wider_priors_give_wider_errors_and_the_move_is_told():
    curves = study(2, sizes=(16, 32, 64), samples=1000)
    one, two = fit_threshold(curves, y_t=PLANAR), fit_threshold(curves, y_t=PLANAR, priors=2.0)
    assert two.threshold_error > one.threshold_error
    assert one.prior_shift == pytest.approx(two.threshold - one.threshold, abs=1e-12)
    # The noise of two sizes is small, and what is not known of their corrections is not.
    tight = fit_threshold(study(2, sizes=(8, 16), samples=10**5), y_t=PLANAR, priors=0.05)
    assert abs(tight.prior_shift) > 0.5 * tight.threshold_error
    assert any("if the priors are twice as wide" in note for note in tight.notes)


@pytest.mark.parametrize("seed", [0, 1, 2, slow(3)])
@pytest.mark.parametrize(
    ("sizes", "points", "samples"),
    [((16, 32), 3, 100), slow((16, 32, 64), 3, 100), slow((16, 64), 9, 30)],
)
def test_few_data_give_wide_errors_or_say_what_is_wrong(sizes, points, samples, seed):
    curves = drawn_study(seed, sizes=sizes, points=points, samples=samples)
    fit = fit_threshold(curves, y_t=PLANAR)
    if fit.problem is None:
        assert 5e-3 < fit.threshold_error < 0.2
        assert abs(fit.threshold - 0.5) < 4 * fit.threshold_error
    else:
        assert np.isnan(fit.threshold_error)
    json.dumps(fit.to_dict(), allow_nan=False)
    fit_table(fit)


def rejected_study():
    """Return curves whose middle size is off, as no scaling function is."""
    small, middle, large = study(1, sizes=(16, 32, 64), samples=1000)
    return [small, raised(middle, 1.2), large]


def outside_study():
    """Return curves that are all above p_c."""
    return [curve.at(curve.p > TRUTH.threshold) for curve in study(points=9, reach=0.8)]


@pytest.mark.parametrize(
    ("curves", "message"),
    [(rejected_study(), "no p_c: the best fit is rejected"), (outside_study(), "no p_c: ")],
    ids=["rejected", "outside"],
)
def test_a_fit_that_is_no_answer_reports_its_problem_first(curves, message):
    fit = fit_threshold(curves)
    assert fit.problem.startswith(message)
    errors = fit.threshold_error, fit.statistical_error, fit.systematic_error, fit.y_t_error
    assert np.isnan([*errors, fit.critical_probability_error]).all()
    text = fit_table(fit)
    assert text.startswith(fit.problem)
    assert f"{fit.threshold:.4g}?" in text
    assert "no answer, see above" in text
    assert repr(fit).startswith(f"<ThresholdFit problem {fit.problem}")
    record = fit.to_dict()
    assert record["problem"] == fit.problem
    assert record["threshold_error"] is None


def test_two_sizes_and_sizes_that_do_not_cross_have_no_drift():
    two = fit_threshold(study(sizes=(512, 1024)), y_t=PLANAR)
    assert two.by_size.drift is None
    assert abs(two.threshold - TRUTH.threshold) < 4 * two.threshold_error
    below = [curve.at(curve.probability < 0.4) for curve in study()]
    fit = fit_threshold(below)
    assert not any(crossing.found for crossing in fit.by_size.crossings)
    assert fit.by_size.drift is None
    json.dumps(fit.to_dict(), allow_nan=False)


def test_one_size_is_refused():
    with pytest.raises(AnalysisError, match=r"at least two sizes.* got L = 64"):
        fit_threshold(study(sizes=(64,)))
    with pytest.raises(AnalysisError, match=r"of L >= 512.* got L = 512"):
        fit_threshold(study(), min_size=512)
    with pytest.raises(AnalysisError, match="got none"):
        fit_threshold([])
    assert fit_threshold(study(), min_size=100).sizes == (128, 256, 512)


def test_one_p_of_each_size_is_no_curve():
    curves = [SpanningCurve(size, [0.65], [1000], [[540]]) for size in (64, 128)]
    with pytest.raises(AnalysisError, match=r"each size has one p.*--exponents"):
        fit_threshold(curves)
    # Where all samples span at p = 0, method threshold has no other p.
    curves = [SpanningCurve(size, [0.0], [1000], [[1000]]) for size in (64, 128)]
    with pytest.raises(AnalysisError, match="two p at which R is between 0 and 1, got none"):
        fit_threshold(curves)


def test_a_size_with_one_informative_point_is_left_out_and_named():
    curves = study(sizes=(64, 128, 256))
    coarse = SpanningCurve(512, [0.5, 0.6527, 0.8], [1000], [[0, 540, 1000]])
    fit = fit_threshold([*curves, coarse])
    assert fit.sizes == (64, 128, 256)
    assert any("L = 512 not used" in note for note in fit.notes)
    with pytest.raises(AnalysisError, match="finer p grid"):
        fit_threshold([curves[0], coarse])


@pytest.mark.parametrize(
    "option",
    [{"omega": 0.0}, {"degree": 0}, {"degree": 9}, {"window": (0.5, 0.5)}, {"priors": 0.0}],
)
def test_an_option_out_of_range_is_named(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        fit_threshold(study(), **option)


def test_the_record_is_json_and_complete():
    record = fit_threshold(study(), y_t=PLANAR).to_dict()
    json.dumps(record, allow_nan=False)
    assert {
        "threshold", "threshold_error", "statistical_error", "systematic_error", "problem", "y_t",
        "y_t_error", "known_y_t", "nu", "nu_error", "critical_probability",
        "critical_probability_error", "prior_shift", "chi_square", "scaling", "omega", "members",
        "free_members", "sizes", "size_fits", "crossings", "drift", "curves", "notes",
    } <= set(record)  # fmt: skip
    assert len(record["crossings"]) == len(SIZES) - 1
    assert record["known_y_t"]["value"] == 0.75


@pytest.mark.parametrize(
    ("sizes", "boundary", "cut"),
    [((8, 16), "open", True), ((9, 18), "open", False), ((12, 24), "periodic", False)],
)
def test_sizes_that_cut_unit_cells_differently_are_reported_first(sizes, boundary, cut):
    results = percolab.sweep(
        "ruby", L=sizes, p=[0.2, 0.4, 0.45, 0.5, 0.6], samples=200, boundary=boundary, device="cpu"
    )
    notes = results.fit().notes
    assert any("cut the unit cell of 3 points differently" in line for line in notes) == cut
    assert not cut or notes[0].startswith("L = 8, 16 cut")


OF_SIZES = (32, 64, 128)


def small_study(seed=0, **options):
    return study(seed, OF_SIZES, **options)


def problem(curves, degree=3):
    """Return cells, their model and its priors."""
    cells = ThresholdCells.from_curves(curves)
    model = ScalingModel.of(cells, degree=degree, omega=1.0, like=Lines.through(curves))
    return cells, model, model.prior(Known(0.75, 0.02, "", ""))


def maximum(curves, degree=3):
    """Return the cells of curves, and the maximum of their likelihood."""
    cells, model, prior = problem(curves, degree)
    return cells, maximise(model, cells, model.start, prior)


def test_cell_probabilities_are_a_distribution_of_each_curve():
    cells = ThresholdCells.from_curves(small_study())
    R = np.concatenate([TRUTH.probability(curve.p, curve.L) for curve in cells.curves])
    probability = cells.differences(R, last=1.0)
    assert (probability > 0).all()
    np.testing.assert_allclose(np.bincount(cells.curve, weights=probability), 1.0)
    np.testing.assert_allclose(cells.totals, 25_000)
    first = R[: cells.curves[0].p.size]
    np.testing.assert_allclose(probability[: first.size + 1], np.diff([0, *first, 1]))


def test_the_score_is_the_gradient_of_likelihood_and_priors():
    cells, model, prior = problem(small_study(samples=25))
    theta = model.start + 0.01 * np.random.default_rng(1).normal(size=model.start.size)
    here, steps = _Point.at(model, cells, prior, theta), 1e-5 * np.eye(theta.size)
    ends = [[_Point.at(model, cells, prior, theta + x * h).value for x in (1, -1)] for h in steps]
    np.testing.assert_allclose(here.score, -np.diff(ends)[:, 0] / 2e-5, rtol=1e-5, atol=1e-3)
    # The priors are a part of it that shows.
    bare = _Point.at(model, cells, Prior.none(theta.size), theta)
    np.testing.assert_allclose(bare.score - here.score, prior.precision * (theta - prior.mean))
    assert bare.value - here.value == pytest.approx(prior.penalty(theta) / 2)


def test_the_maximum_is_that_of_a_general_optimiser():
    cells, model, prior = problem(small_study(samples=4))
    best = maximise(model, cells, model.start, prior)

    # In units of the errors the optimiser needs no scaling.
    root = np.linalg.cholesky(best.covariance)

    def objective(u):
        point = _Point.at(model, cells, prior, model.start + root @ u)
        return (1e9, 0 * u) if point is None else (-point.value, -root.T @ point.score)

    found = optimize.minimize(
        objective, np.zeros(model.start.size), jac=True, method="BFGS", options={"gtol": 1e-6}
    )
    away = np.linalg.solve(root, model.start + root @ found.x - best.theta)
    assert np.abs(away).max() < 1e-3
    assert -2 * found.fun == pytest.approx(-best.deviance - best.penalty, abs=1e-6)


def test_the_errors_of_the_maximum_are_the_scatter_of_repeated_studies():
    """The prior is a measurement that is not repeated: other samples move less than the error."""
    values, whole, statistical = [], [], []
    for seed in range(100):
        _, best = maximum(small_study(seed, points=7, blocks=1, samples=4000))
        values.append(best.theta[0])
        whole.append(best.covariance[0, 0])
        statistical.append(best.covariance[0] @ best.information @ best.covariance[0])
    # The scatter of n values is known to 1 / sqrt(2 n).
    assert abs(np.std(values) / np.sqrt(np.mean(statistical)) - 1) < 4 / np.sqrt(200)
    assert np.mean(statistical) < 0.9 * np.mean(whole)


def test_chi_square_is_distributed_as_it_should_and_finds_a_wrong_model():
    p_values = np.array([
        chi_square(*maximum(small_study(seed, points=7, blocks=1, samples=2000))).p_value
        for seed in range(100)
    ])  # fmt: skip
    assert abs(p_values.mean() - 0.5) / np.sqrt(1 / 12 / 100) <= 4
    assert np.mean(p_values < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 100)
    wrong = maximum(small_study(samples=2500, reach=1.4), degree=1)
    assert chi_square(*wrong).p_value < 1e-6


def test_a_parameter_that_nothing_determines_is_said():
    curves = small_study()
    cells = ThresholdCells.from_curves(curves[:1])
    model = ScalingModel.of(cells, degree=3, omega=1.0, like=Lines.through(curves))
    with pytest.raises(AnalysisError, match="do not determine all parameters"):
        maximise(model, cells, model.start)


@pytest.mark.parametrize("blocks", [5, 100])
def test_bootstrap_replicas_have_the_multinomial_covariance(blocks):
    (curve,) = study(sizes=(32,), blocks=blocks, samples=20_000 // blocks)
    replicas = resample_curve(curve, np.random.default_rng(1), 4000)
    np.testing.assert_allclose(replicas.sum(axis=1), 20_000)
    counts = curve.threshold_counts.sum(axis=0)
    expected = np.sqrt(counts * (1 - counts / 20_000))
    # 100 blocks know their own scatter to 1 / sqrt(200); resampled samples know it exactly.
    tolerance = 4 / np.sqrt(2 * (100 if blocks == 100 else 4000)) + 0.01
    np.testing.assert_allclose(replicas.std(axis=0) / expected, 1, atol=tolerance)


def test_a_fit_through_as_many_points_as_parameters_is_exact():
    curve = small_study(points=4)[0]
    fit = fit_size([curve])
    np.testing.assert_allclose(fit.probability(curve.p), curve.probability, atol=1e-6)
    assert fit.chi_square.dof == 0
    assert np.isnan(fit.chi_square.p_value)


def test_empty_intervals_do_not_disturb_a_fit():
    p = np.linspace(0.55, 0.75, 41)
    truth = TRUTH.probability(p, 32)
    sparse = synthetic_curve(32, p, truth, samples=60, blocks=1, rng=np.random.default_rng(2))
    assert (sparse.threshold_counts == 0).any()
    fit = fit_size([sparse], degree=2)
    assert np.abs(fit.probability(p) - truth).max() < 0.2
