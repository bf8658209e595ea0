"""The threshold of one size alone: maxima of curves, the median, and their errors."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import assert_z
from scipy.special import ndtr

import percolab
from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.maxima import estimate_size, locate_maximum, locate_median
from percolab.analysis.text import estimate_table
from percolab.analysis.transition_order import classify_order, phases_apart, two_peaks
from percolab.bonds.model import Model

GRID = np.linspace(0.1, 0.9, 25)
ONES = np.ones(25)


def skew_peak(p):
    """A gamma density, whose maximum is at exactly 0.4."""
    return (p / 0.4) ** 6 * np.exp(-6 * (p / 0.4 - 1))


@pytest.mark.parametrize("p", [GRID, np.array([0.3, 0.4, 0.6])], ids=len)
def test_the_maximum_of_a_parabola_is_found_exactly(p):
    found = locate_maximum(p, 3 - (p - 0.417) ** 2, np.ones(p.size))
    assert found == pytest.approx((0.417, 3.0, False))


@pytest.mark.parametrize("shift", np.linspace(0, 1, 5))
def test_a_skew_maximum_between_few_points_is_found_within_a_hundredth_of_a_step(shift):
    # Four of these reach 90 %; a parabola through them would be off by up to 0.08 steps.
    step = 0.04
    grid = 0.1 + step * (np.arange(20) + shift)
    assert abs(locate_maximum(grid, skew_peak(grid), np.ones(20))[0] - 0.4) < 0.01 * step


def test_a_skew_maximum_is_found_within_a_fraction_of_a_step():
    grid = np.linspace(0.1, 0.9, 61)
    found, height, _ = locate_maximum(grid, skew_peak(grid), np.ones(61))
    # A parabola would be off by 0.0026, a fifth of a step.
    assert abs(found - 0.4) < 0.0003
    assert height == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_maximum_at_an_end_is_called_so(sign):
    p, _, at_edge = locate_maximum(GRID, sign * GRID, ONES)
    assert at_edge
    assert p == GRID[-1 if sign > 0 else 0]
    assert locate_maximum(GRID[:1], ONES[:1], ONES[:1]) == (GRID[0], 1.0, True)


def test_the_median_lies_between_two_points_or_nowhere():
    p, many = np.array([0.2, 0.4, 0.8]), np.full(3, 1000.0)
    # Probits of 0.4 and 0.6 are as far below as above.
    assert locate_median(p, np.array([0.1, 0.4, 0.6]), many)[0] == pytest.approx(0.6)
    assert locate_median(p, np.array([0.5, 0.6, 0.7]), many)[0] == 0.2
    assert locate_median(p, np.array([0.0, 0.0, 1.0]), many)[0] == pytest.approx(0.6)
    assert locate_median(p, np.array([0.0, 0.0, 1.0]), np.ones(3))[0] == pytest.approx(0.6)
    for outside in ([0.6, 0.7, 0.8], [0.1, 0.2, 0.49]):
        found, _, at_edge = locate_median(p, np.array(outside), many)
        assert at_edge
        assert np.isnan(found)


def test_the_median_of_a_normal_distribution_is_exact_on_a_coarse_grid():
    # A straight line in R would be off by 0.003.
    p = np.array([0.2, 0.35, 0.5, 0.65, 0.8])
    found = locate_median(p, ndtr((p - 0.4) / 0.1), np.full(5, 1e6))
    assert found[0] == pytest.approx(0.4, abs=1e-12)


def curve_of(seed, *, blocks=50, size=100, noise=0.05):
    """Return a curve whose second largest cluster peaks at 0.4; blocks scatter in place."""
    places = 0.4 + noise * np.random.default_rng(seed).standard_normal((blocks, 1))
    second = size * skew_peak(GRID * 0.4 / places)
    one, samples = np.full_like(second, size), np.full(blocks, size)
    squares = 16 * one + second, 16 * one + 0.1 * second
    return ClusterCurve(9, 9, GRID, samples, 4 * one, second, *squares)


def estimates(curves, spanning=(), **options):
    found = estimate_size(curves, spanning, num_sites=9, **options)
    return {item.name: item for item in found.estimates}


@pytest.mark.slow
def test_the_bootstrap_error_is_the_scatter_of_independent_runs():
    error = np.mean([estimates([curve_of(seed)])["second"].error for seed in range(10)])
    scatter = np.std([estimates([curve_of(n)], bootstrap=0)["second"].p for n in range(200)])
    # A standard deviation of n runs is uncertain by 1 / sqrt(2 n); so is each bootstrap's.
    assert_z(error, scatter, scatter * np.sqrt(1 / 400 + 1 / 4000 + 1 / 1000))


def test_errors_of_the_highest_point_are_seldom_zero_though_most_replicas_agree_on_it():
    """By the central 68 % of replicas three errors in ten were 0."""
    found = []
    for seed in range(60):
        curve, noise = curve_of(1, blocks=20), np.random.default_rng(seed)
        second = 0.5 * np.ones_like(curve.second_largest)
        second[:, 10:13:2] = [1, 0.98] + 0.2 * noise.standard_normal((20, 2))
        own = replace(curve, second_largest=second)
        found.append(estimates([own], steps=True, bootstrap=100)["second"])
    p, errors = np.array([(own.p, own.error) for own in found]).T
    assert np.mean(errors == 0) < 0.1
    # A variance of so few values is known to a fifth.
    assert np.mean(errors**2) == pytest.approx(p.var(), rel=0.6)


def test_pulls_of_maxima_are_no_wider_than_they_should():
    p, found = np.linspace(0.15, 0.4, 17).round(4).tolist(), []
    for seed in range(1, 41):
        study = {"L": [100], "p": p, "samples": 100, "seed": seed}
        results = percolab.sweep("er:k=4", **study, device="cpu", workers=1)
        (size,) = percolab.estimates(results, bootstrap=100)
        found.append([(own.p, own.error) for own in size.estimates])
    places, errors = np.moveaxis(np.array(found), 2, 0)
    pulls = (places - places.mean(axis=0)) / errors
    # 1.5 by the central 68 % of the replicas; 120 pulls of ten blocks, three of a study.
    assert pulls.std() < 1.25


def test_chi_and_ratio_are_what_they_are_said_to_be():
    means = curve_of(1).means()
    np.testing.assert_allclose(means["chi"], 0.9 * means["second"] / 9)
    np.testing.assert_allclose(means["ratio"], 0.1 * means["second"] / 4)


def test_a_grid_that_is_coarse_at_a_maximum_is_noted_where_its_error_is_small():
    def notes(curve, keep):
        every = curve.largest, curve.second_largest, curve.sum_squares, curve.largest_squares
        cut = ClusterCurve(9, 9, GRID[keep], curve.samples, *(values[:, keep] for values in every))
        return estimate_size([cut], [], num_sites=9).notes

    coarse = slice(1, None, 4)
    assert not notes(curve_of(1), slice(None))
    assert "p is sampled coarsely near a maximum" in notes(curve_of(1), coarse)[0]
    assert not notes(curve_of(1, blocks=10, noise=0.1), coarse)


def test_two_seeds_are_one_data_set():
    one, other = curve_of(1), curve_of(2)
    both = estimates([one, other])["second"]
    assert both.error < estimates([one])["second"].error
    shifted = replace(other, p=GRID + 0.01)
    assert abs(estimates([one, shifted])["second"].p - both.p) < 0.03


def test_errors_of_means_are_those_of_the_mean():
    curve = curve_of(1)
    per_sample = curve.second_largest / curve.samples[:, None]
    expected = per_sample.std(axis=0, ddof=1) / np.sqrt(50)
    np.testing.assert_allclose(curve.errors()["second"], expected)
    alone = {name: values[:1] for name, values in vars(curve).items() if np.ndim(values) == 2}
    single = replace(curve, samples=curve.samples[:1], **alone)
    assert np.isnan(single.errors()["chi"]).all()


def test_few_blocks_give_no_error_and_say_so():
    found = estimate_size([curve_of(1, blocks=9)], [], num_sites=9)
    assert all(np.isnan(item.error) for item in found.estimates)
    assert "9 blocks are too few" in found.notes[0]
    assert found.to_dict()["estimates"][0]["error"] is None
    assert "note: 9 blocks are too few" in estimate_table([found])
    alone = estimate_size([curve_of(1, blocks=1)], [], num_sites=9)
    assert alone.notes[0] == "1 block is too few for an error (at least 10): add samples"


def test_the_median_stands_beside_the_maxima_and_alone():
    rng = np.random.default_rng(5)
    threshold = rng.normal(0.5, 0.1, (40, 100, 1))
    spanning = SpanningCurve(9, GRID, np.full(40, 100), (threshold <= GRID).sum(axis=1))
    both = estimates([curve_of(1)], [spanning])
    assert list(both) == ["second", "chi", "ratio", "median"]
    alone = estimates([], [spanning])["median"]
    assert alone.error == pytest.approx(0.1 * np.sqrt(np.pi / 2 / 4000), rel=0.25)
    assert_z(alone.p, 0.5, alone.error)


def test_pulls_of_the_median_of_ten_blocks_are_no_wider_than_they_should():
    rng, p, pulls = np.random.default_rng(7), np.linspace(0.3, 0.7, 17), []
    for threshold in rng.normal(0.5, 0.06, (300, 10, 10, 1)):
        curve = SpanningCurve(9, p, np.full(10, 10), (threshold <= p).sum(axis=1))
        own = estimates([], [curve], bootstrap=100)["median"]
        pulls.append((own.p - 0.5) / own.error)
    # 1.3 where blocks are drawn, of which there are ten, in place of their hundred samples.
    assert np.std(pulls) < 1.15


def items_of(q, sizes, scales, **given):
    beta = [scale * math.log(1 + math.sqrt(q)) for scale in scales]
    options = {"burn_in": 100, "sweeps": 1100, "samples": 24_000, "seed": 424_000} | given
    results = percolab.sweep(
        "square", L=sizes, model=f"potts:q={q}", boundary="periodic", beta=beta, device="cpu",
        **options,
    )  # fmt: skip
    return list(results.tasks.values())


def test_a_strong_transition_is_of_first_order_at_its_beta():
    items = items_of(10, [8, 12], [0.97, 0.985, 1.0, 1.015], measure="series")
    model = Model.parse("potts:q=10")
    (L, _, found), note = classify_order(items, model)
    assert note is None
    assert L == 12
    assert found.depth >= 1
    assert found.beta == pytest.approx(math.log(1 + math.sqrt(10)), abs=0.02)
    assert len([each for item in items for each in two_peaks(item, model)]) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(("q", "scales"), [(3, (0.985, 1.0, 1.03, 1.045)), (5, (0.97, 0.985, 1.0))])
def test_a_continuous_transition_and_a_weak_one_are_not_of_first_order(q, scales):
    items = items_of(q, [8, 12], scales, measure="series")
    found, note = classify_order(items, Model.parse(f"potts:q={q}"))
    assert found is None
    # In the plane that of q = 3 is known to be continuous.
    assert (note is None) == (q == 3)
    assert note is None or note.startswith("order of the transition undecided: at L = 8, 12 no two")


def test_chains_that_stay_in_two_phases_say_first_order_without_their_series():
    items = items_of(20, [24], [0.998, 1.0], burn_in=500, sweeps=2500, samples=16_000)
    found, note = classify_order(items, Model.parse("potts:q=20"))
    assert found is None
    assert note.startswith("first order: chains that started ordered and at random stay in two")
    (one, other) = phases_apart(items[0])
    assert np.isclose(one.gap, other.gap, rtol=0.2)


def test_chains_that_relax_slowly_are_not_two_phases():
    """Without a burn-in ordered and random starts are apart for a while at any transition."""
    (item,) = items_of(4, [48], [1.0], burn_in=0, sweeps=20, samples=200)
    assert phases_apart(item) == []
    assert classify_order([item], Model.parse("potts:q=4")) == (None, None)
