"""Dimensionless quantities are what their symbols say, with the covariance of their blocks."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from percolab import AnalysisError, InputError, label, sweep
from percolab.analysis.quantities import (
    MAX_COMBINATIONS,
    RATIOS,
    BlockMoments,
    choose_quantities,
    correction_exponents,
    list_quantities,
    observe,
)
from percolab.analysis.quantity_fits import observe_all
from percolab.analysis.stored_data import available_quantities, pool_moments
from percolab.store.merging import merge

TORUS = ("periodic", "periodic")
OPTIONS = {"boundary": "periodic", "block_size": 5, "device": "cpu", "workers": 1}


def torus(**options):
    return sweep("square", **({"L": [6], "p": (0.45, 0.5), "samples": 40} | OPTIONS | options))


def quantity(name):
    return next(item for item in list_quantities(TORUS) if item.name == name)


def sizes_of_samples(p, samples):
    """Return the cluster sizes of every sample, largest first, from their labels."""
    found = []
    for sample in range(samples):
        labels = label("square", 6, p, sample=sample, seed=1, boundary=TORUS)
        sizes = np.sort(np.unique(labels, return_counts=True)[1])[::-1].astype(float)
        # Where there is one cluster alone the second has size 0.
        found.append(np.append(sizes, 0.0))
    return found


def by_definition(sizes):
    """Return the ratios of samples whose clusters have these sizes."""
    s_1, s_2 = (np.array([one[rank] for one in sizes]) for rank in (0, 1))
    S_2, S_4 = (np.array([np.sum(one**power) for one in sizes]) for power in (2, 4))
    return {
        "Q_1": s_1.mean() ** 2 / np.mean(s_1**2),
        "Q_2": S_2.mean() ** 2 / np.mean(S_2**2),
        "Q_B": S_2.mean() ** 2 / np.mean(3 * S_2**2 - 2 * S_4),
        "s_2/s_1": s_2.mean() / s_1.mean(),
    }


def test_ratios_of_stored_moments_are_those_of_the_clusters():
    (moments,) = pool_moments(torus(measure=("sizes",)), RATIOS)
    means = {name: sums.sum(axis=0) / 40 for name, sums in moments.moments.items()}
    for column, p in enumerate((0.45, 0.5)):
        expected = by_definition(sizes_of_samples(p, 40))
        assert {item.name: item.value(means)[column] for item in RATIOS} == pytest.approx(expected)


def test_the_mean_over_axes_is_that_of_the_axes():
    results = torus(L=[4])
    one = quantity("wrapping_axis")
    (moments,) = pool_moments(results, (one, quantity("wrapping_any"), quantity("wrapping_all")))
    x, y, some, every = (
        moments.moments[f"wrapping_{k}"].sum(axis=0) for k in ("x", "y", "any", "all")
    )
    np.testing.assert_array_equal(x + y, some + every)
    np.testing.assert_allclose(moments.values([one])[0][0], (x + y) / 80)


def test_what_all_stands_for_depends_on_what_was_measured():
    plain, sizes = torus(), torus(measure=("sizes",))
    assert "Q_B" not in available_quantities(plain)
    names = [item.name for item in choose_quantities(["all"], TORUS, available_quantities(sizes))]
    assert names == ["wrapping_any", "wrapping_all", "Q_1", "Q_2", "Q_B", "s_2/s_1"]
    refused = {"Q_B": "measure sizes", "Q_7": "unknown quantity 'Q_7'", "Q_1,Q_1": "twice"}
    for names, message in refused.items():
        with pytest.raises(InputError, match=message):
            choose_quantities(names.split(","), TORUS, available_quantities(plain))


def test_corrections_of_probabilities_and_ratios_differ_on_a_torus():
    both = (quantity("wrapping_any"), quantity("Q_1"))
    assert correction_exponents(both, TORUS) == [2.0, 1.5]
    assert correction_exponents(both, ["periodic"] * 3) == [1.2, 1.2]
    assert correction_exponents(both, ["open"] * 2) == [1.0, 1.0]


def test_tasks_that_differ_by_seed_are_one_with_more_blocks():
    merged = merge([("a", torus()), ("b", torus(seed=2, samples=60))])
    (moments,) = pool_moments(merged, [quantity("wrapping_x")])
    assert (moments.samples.size, int(moments.samples.sum())) == (20, 100)


def test_tasks_of_one_size_may_differ_in_p_and_in_what_was_measured():
    other = torus(seed=2, p=(0.5,), measure=("sizes",))
    merged = merge([("a", torus()), ("b", other)])
    found = pool_moments(merged, [quantity("Q_1"), quantity("Q_B")])
    assert {(item.p.size, item.has(quantity("Q_B"))) for item in found} == {(1, True), (2, False)}


def test_tasks_that_share_samples_are_refused():
    results = torus()
    # Of other blocks: tasks of the same blocks are joined along p.
    again = torus(p=(0.48,), block_size=4)
    for item in again.tasks.values():
        results.add_task(item.task).blocks.update(item.blocks)
    with pytest.raises(AnalysisError, match=r"L = 6: .* hold the same samples of seed 1"):
        pool_moments(results, [quantity("Q_1")])


def normal_moments(rng, *, blocks=200, points=2, samples=50, L=8):
    """Return blocks of normal moments: <s_1> = 1 and <s_1^2> = 1.25, errors known."""
    cov = np.kron([[1.0, 0.6], [0.6, 1.0]], 0.5 + 0.5 * np.eye(points)) * 0.04
    draws = rng.multivariate_normal(np.repeat([1.0, 1.25], points), cov / samples, blocks)
    first, second = samples * draws.reshape(blocks, 2, points).swapaxes(0, 1)
    p = np.linspace(0.4, 0.6, points)
    full = np.full(blocks, samples)
    moments = BlockMoments(L, p, full, {"largest": first, "largest*largest": second})
    return moments, cov / (samples * blocks)


def test_the_covariance_of_a_ratio_is_that_of_propagated_errors():
    moments, cov = normal_moments(np.random.default_rng(1), blocks=4000)
    found = observe(moments, [quantity("Q_1")])
    # Q_1 = a^2 / b at a = 1, b = 1.25.
    gradient = np.kron([2 / 1.25, -1 / 1.25**2], np.eye(2)).reshape(2, 4)
    exact = gradient @ cov @ gradient.T
    # An element of the covariance of n blocks is off by less than sqrt(2 / n) of the variances.
    assert np.abs(found.covariance - exact).max() <= 4 * np.sqrt(2 / 4000) * exact.max()
    np.testing.assert_allclose(found.values, 0.8, atol=4 * np.sqrt(exact[0, 0]))


def test_whitened_deviations_have_the_chi_square_of_their_number():
    rng = np.random.default_rng(2)
    values = []
    for _ in range(400):
        found = observe(normal_moments(rng, blocks=40, points=4)[0], [quantity("Q_1")])
        values.append(np.sum((found.whiten @ (found.values - 0.8)) ** 2))
    # 40 blocks for 4 values: without Hartlap's factor the mean would be 4 * 39 / 34 = 4.59.
    assert abs(np.mean(values) - 4) <= 4 * np.std(values) / 20
    assert abs(np.mean(values) - 4.59) > 2 * np.std(values) / 20
    assert np.mean(np.array(values) > chi2.ppf(0.9, 4)) < 0.2


@pytest.mark.slow
def test_the_bias_of_a_ratio_is_taken_out():
    rng = np.random.default_rng(3)
    plain, corrected = [], []
    for _ in range(2000):
        moments, _ = normal_moments(rng, blocks=10, points=1, samples=2)
        corrected.append(moments.values([quantity("Q_1")])[0][0, 0])
        first, second = (sums.sum() / 20 for sums in moments.moments.values())
        plain.append(first**2 / second)
    error = np.std(corrected) / np.sqrt(2000)
    assert abs(np.mean(corrected) - 0.8) <= 4 * error
    # The second-order term: (var(a) - 2 a cov / b + a^2 var(b) / b^2) / b.
    assert np.mean(plain) - np.mean(corrected) == pytest.approx(
        0.04 / 20 * (1 - 1.2 / 1.25 + 1 / 1.25**2) / 1.25, rel=0.2
    )


def test_few_blocks_leave_few_combinations_of_many_p():
    rng = np.random.default_rng(4)
    many = observe(normal_moments(rng, blocks=400, points=9)[0], [quantity("Q_1")])
    assert (many.dimension, many.whiten.shape) == (MAX_COMBINATIONS, (MAX_COMBINATIONS, 9))
    few = observe(normal_moments(rng, blocks=12, points=9)[0], [quantity("Q_1")])
    assert few.dimension == 2
    # The lowest combinations are the mean and the slope: a parabola about the middle has no slope.
    curve = (few.p - few.p.mean()) ** 2
    assert abs(few.combine @ curve)[1] <= 1e-12 < abs(few.combine @ curve)[0]
    few_blocks = r"9 blocks are too few .* 1 quantity \(at least 10\): add"
    with pytest.raises(AnalysisError, match=few_blocks):
        observe(normal_moments(rng, blocks=9, points=9)[0], [quantity("Q_1")])


def test_a_quantity_that_follows_from_others_is_refused():
    named = [quantity(f"wrapping_{kind}") for kind in ("any", "all", "axis")]
    with pytest.raises(AnalysisError, match="follows exactly from the others"):
        observe(pool_moments(torus(samples=400), named)[0], named)


def test_samples_that_are_too_much_alike_are_left_out_while_enough_sizes_remain():
    boundary = ("periodic",) * 3
    names = [f"wrapping_{kind}" for kind in ("any", "axis", "all")]
    named = choose_quantities(names, boundary, names)
    settings = OPTIONS | {"L": [3, 4, 5], "p": (0.25,), "samples": 400}
    tasks = list(pool_moments(sweep("cubic", **settings), named))
    alike = replace(tasks[0], moments=dict.fromkeys(tasks[0].moments, tasks[0].moments[names[0]]))
    observations, near = observe_all([tasks[0], alike, *tasks[1:]], named)
    assert [each.L for each in observations] == [3, 4, 5]
    assert [one is other for one, other in zip(near, tasks, strict=True)] == [True] * 3
    assert [each.L for each in observe_all([alike, *tasks[1:]], named)[0]] == [4, 5]
    with pytest.raises(AnalysisError, match="follows exactly from the others"):
        observe_all([alike, tasks[1]], named)


def test_grouped_blocks_hold_the_same_samples():
    moments, _ = normal_moments(np.random.default_rng(5), blocks=103)
    grouped = moments.grouped(20)
    assert grouped.samples.tolist() == [300] * 17 + [50]
    for name, sums in moments.moments.items():
        np.testing.assert_allclose(grouped.moments[name].sum(axis=0), sums.sum(axis=0))
    one = replace(moments).grouped(103)
    np.testing.assert_array_equal(one.samples, moments.samples)
