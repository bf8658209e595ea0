"""Roots of P(two directions) - P(none wraps): exact on tiny tori, and p_c with its error."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, sqrt

import numpy as np
import pytest
from helpers import count_by_walking, cpu_labeler, lattice, slow

import percolab
from percolab import AnalysisError, load_lattice
from percolab.analysis import roots
from percolab.analysis.roots import (
    OTHER_BONDS,
    OTHERS,
    PLANAR_BONDS,
    PLANAR_SITES,
    Drift,
    SizeRoot,
    _read_curve,
    choose_drift,
    combine_roots,
    find_root,
    fit_roots,
    has_slopes,
    read_differences,
    why_no_roots,
)
from percolab.analysis.value import Value
from percolab.bonds.model import Model
from percolab.lattices.topology import pack_bits
from percolab.measure.columns import list_observables
from percolab.measure.openings import (
    MOST_BINS,
    bin_counts,
    bin_weights,
    bin_width,
    binomial,
    convolve,
)
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import Block, pick_squared
from percolab.tasks.study import Task
from percolab.tasks.study_file import make_request

TORUS = ("periodic", "periodic")
#: Lattice and grid points of tiny tori; 4 x 2 points of honeycomb and kagome are two cells.
TINY = [
    ("square", (2, 2)),
    ("square", (3, 2)),
    ("triangular", (2, 2)),
    ("honeycomb", (2, 2)),
    ("honeycomb", (4, 2)),
    ("kagome", (2, 2)),
    ("kagome", (4, 2)),
]
#: Of p^0, p^1 ... (C. Scullard and R. Ziff, Phys. Rev. E 73, 045102 (2006)).
KAGOME_POLYNOMIAL = [1, 0, -3, -6, 12, -6, 1]


@cache
def enumerate_torus(name, shape):
    """Return (two, none, clusters, open bonds) of every configuration, counted by walking."""
    topology = lattice(name).topology(shape, TORUS)
    bonds = topology.bonds().tolist()
    found = []
    for bits in product((False, True), repeat=len(bonds)):
        opened = [bond for bond, bit in zip(bonds, bits, strict=True) if bit]
        found.append((*count_by_walking(topology, opened), len(opened)))
    return found


def polynomial_of(name, shape):
    """Return the integer coefficients of D, those of p^0, p^1 ..., from all configurations."""
    every = enumerate_torus(name, shape)
    most = every[-1][3]
    found = [0] * (most + 1)
    for two, none, _, opened in every:
        for more in range(most - opened + 1):
            sign = (-1) ** more * comb(most - opened, more)
            found[opened + more] += (int(two) - int(none)) * sign
    return found


def remainder(dividend, divisor):
    """Return what is left of integer polynomials; the leading coefficient of divisor is 1."""
    left = list(dividend)
    for end in range(len(left) - 1, len(divisor) - 2, -1):
        factor = left[end]
        for place, own in enumerate(reversed(divisor)):
            left[end - place] -= factor * own
    return left


@pytest.mark.parametrize(
    ("name", "shape"),
    [torus if torus in (TINY[0], TINY[3], TINY[5]) else slow(*torus) for torus in TINY],
)
def test_columns_are_the_windings_of_every_configuration(name, shape):
    topology = lattice(name).topology(shape, TORUS)
    columns = {column.name: column for column in list_observables(TORUS)}
    labeler, bonds = cpu_labeler("reference", topology), topology.bonds().tolist()
    expected = enumerate_torus(name, shape)
    rows = []
    for bits in product((False, True), repeat=len(bonds)):
        flags = np.zeros((topology.num_classes, topology.num_points), bool)
        for (klass, owner, _), bit in zip(bonds, bits, strict=True):
            flags[klass, owner] = bit
        labeler.load(pack_bits(flags))
        rows.append(labeler.row())
    for place, column in enumerate(("wrapping_two", "wrapping_none")):
        found = columns[column].of_rows(np.array(rows))
        np.testing.assert_array_equal(found, [int(own[place]) for own in expected])


@pytest.mark.parametrize("shape", [(2, 2), slow((3, 2))])
def test_on_the_square_torus_the_root_is_a_half_at_every_size(shape):
    # Configurations with n open bonds in two directions are as many as those with m - n in none.
    two, none = Counter(), Counter()
    for is_two, is_none, _, opened in enumerate_torus("square", shape):
        two[opened] += is_two
        none[2 * shape[0] * shape[1] - opened] += is_none
    assert +two == +none
    at_half = sum(c * 2.0**-n for n, c in enumerate(polynomial_of("square", shape)))
    assert at_half == 0


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("kagome", (2, 2)),
        slow("kagome", (4, 2)),
        ("trellis", (1, 2)),
        ("three-twelve", (3, 2)),
        slow("snub-square", (2, 2)),
    ],
)
def test_exact_roots_of_tiny_tori_of_bonds_drift_by_less_than_the_prior(name, shape):
    coefficients = polynomial_of(name, shape)[::-1]
    inside = [r.real for r in np.roots(coefficients) if abs(r.imag) < 1e-9 and 0 < r.real < 1]
    (root,) = inside
    fourth = (root - load_lattice(name).threshold("bond").value) * np.prod(shape) ** 2
    # A drift that is not there at all would be a root of the wrong function.
    assert 1e-5 < abs(fourth) < PLANAR_BONDS.fourth


@pytest.mark.parametrize("shape", [(2, 2), (3, 2)])
def test_for_spins_two_directions_are_q_times_none_at_the_self_dual_point(shape):
    # There a bond has the weight sqrt(q), a cluster q: a power of sqrt(q) for each configuration.
    two, none = Counter(), Counter()
    for is_two, is_none, clusters, opened in enumerate_torus("square", shape):
        two[opened + 2 * clusters] += is_two
        none[opened + 2 * clusters + 2] += is_none
    assert +two == +none
    for q in (2, 3):
        v = sqrt(q)
        weights = [
            (v ** (opened + 2 * clusters), is_two, is_none)
            for is_two, is_none, clusters, opened in enumerate_torus("square", shape)
        ]
        of_two = sum(weight for weight, is_two, _ in weights if is_two)
        of_none = sum(weight for weight, _, is_none in weights if is_none)
        assert of_two == pytest.approx(q * of_none, rel=1e-12)


@pytest.mark.parametrize("shape", [(2, 2), (4, 2)])
def test_the_kagome_torus_has_the_root_of_scullard_and_ziff(shape):
    assert not any(remainder(polynomial_of("kagome", shape), KAGOME_POLYNOMIAL))
    roots = np.roots(KAGOME_POLYNOMIAL[::-1])
    real = roots[np.abs(roots.imag) < 1e-9].real
    assert real[(real > 0) & (real < 1)] == pytest.approx([0.5244297175], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "shape", "polynomial"),
    [("triangular", (2, 2), [1, -3, 0, 1]), ("honeycomb", (2, 2), [1, 0, -3, 1])],
)
def test_where_p_c_is_exact_tiny_tori_have_it_as_root(name, shape, polynomial):
    # 1 - 3 p + p^3 and 1 - 3 p^2 + p^3 (M. F. Sykes and J. W. Essam, 1964).
    assert not any(remainder(polynomial_of(name, shape), polynomial))


def one_root(size, value, error):
    return SizeRoot(size, float(size), Value(value, error, error), 1.0, 100)


def test_without_drift_roots_are_averaged_by_their_errors():
    fit = combine_roots([one_root(8, 0.5, 0.001), one_root(12, 0.503, 0.002)], Drift(0.0))
    assert fit.weights == pytest.approx((0.8, 0.2))
    assert fit.threshold.value == pytest.approx(0.5006)
    assert fit.threshold.error == pytest.approx(0.001 * sqrt(0.8))
    assert fit.threshold.systematic_error == pytest.approx(0, abs=1e-9)
    assert fit.threshold.quality.value == pytest.approx(0.003**2 / (0.001**2 + 0.002**2))


def test_a_drift_makes_the_larger_size_decide_and_enters_the_error():
    drift = Drift(1.5)
    fit = combine_roots([one_root(8, 0.5, 1e-6), one_root(16, 0.5001, 1e-6)], drift)
    # Two roots without statistical errors give p_c and C.
    assert fit.threshold.value == pytest.approx((16 * 0.5001 - 0.5) / 15, abs=1e-6)
    alone = combine_roots([one_root(16, 0.5, 1e-9)], drift)
    assert alone.threshold.error == pytest.approx(1.5 / 16**4)
    assert alone.threshold.systematic_error == pytest.approx(1.5 / 16**4)


@pytest.mark.parametrize("length", [8.0, 24.0])
def test_where_bonds_cross_the_drift_has_three_terms(length):
    terms = 1.5 / length**4, 0.02 / length**2, 0.02 * np.log(length) / length**2
    assert OTHERS.of_length(length) == pytest.approx(np.linalg.norm(terms))
    assert PLANAR_SITES.of_length(length) == pytest.approx(terms[0])
    one, other = OTHERS.spread(np.array([length, 2 * length])).diagonal() ** 0.5
    assert one == pytest.approx(OTHERS.of_length(length))
    assert other < one / 2.5


def test_roots_that_contradict_each_other_give_no_answer():
    fit = combine_roots([one_root(32, 0.5, 1e-5), one_root(48, 0.5002, 1e-5)], PLANAR_BONDS)
    assert "contradict" in fit.problem
    assert "problem" in repr(fit)


def torus(name="square", model="bond", **options):
    given = {"L": [6], "p": [0.5], "samples": 40, "block_size": 10, "device": "cpu"}
    return percolab.sweep(name, model=model, **{"boundary": "periodic"} | given | options)


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("kagome", "bond", PLANAR_BONDS),
        ("square", "bond:x=0.4", OTHER_BONDS),
        ("square", "ising", OTHER_BONDS),
        ("kagome", "site", PLANAR_SITES),
        ("kagome", "site-bond", PLANAR_SITES),
        ("square-nnn", "bond", OTHERS),
        ("square-nnn", "site", OTHERS),
    ],
)
def test_the_drift_is_that_of_the_lattice_and_the_model(name, model, expected):
    assert choose_drift(torus(name, model).study) == expected


def test_a_sweep_on_a_torus_has_roots_too():
    results = torus(L=[8, 12], p=[0.46, 0.49, 0.52, 0.55], samples=2000, block_size=50)
    fit = fit_roots(results)
    assert [root.size for root in fit.roots] == [8, 12]
    assert abs(fit.threshold.value - 0.5) < 4 * fit.threshold.error < 0.04


def test_many_p_of_the_same_samples_tell_hardly_more_than_one():
    grid = [0.48, 0.485, 0.49, 0.495, 0.5, 0.505, 0.51, 0.515, 0.52]
    results = torus(L=[8], p=grid, samples=2000, block_size=20)
    (root,) = fit_roots(results).roots
    _, _, errors = read_differences(results.tasks.values())
    assert root.value.error > 0.8 * errors.min() / root.slope


def test_the_error_of_a_root_between_two_p_is_that_of_a_straight_line():
    items = [
        item
        for seed, p in ((1, 0.495), (2, 0.505))
        for item in torus(L=[8], p=[p], samples=40_000, block_size=1000, seed=seed).tasks.values()
    ]
    p, mean, error = read_differences(items)
    root = find_root(items)
    slope = (mean[1] - mean[0]) / (p[1] - p[0])
    assert root.value.value == pytest.approx(p[0] - mean[0] / slope, abs=1e-4)
    # The root moves by the share of each value in it; the prior of the curvature adds 5 %.
    shares = np.array([mean[1], mean[0]]) / (mean[1] - mean[0]) / slope
    assert root.value.error == pytest.approx(np.linalg.norm(shares * error), rel=0.1)


def test_the_variance_of_the_difference_is_that_of_its_values():
    (item,) = torus(L=[8], p=[0.53], samples=400).tasks.values()
    curve = _read_curve(item)
    two, none = (item.column(f"wrapping_{word}").sum() for word in ("two", "none"))
    assert 0.2 < abs(two - none) / 400 < 0.5
    values = np.repeat([1.0, -1.0, 0.0], [two, none, 400 - two - none])
    assert curve.whitening[0, 0] ** -2 == pytest.approx((values.var() + 1 / 400) / 400)


def test_few_blocks_give_the_p_nearest_to_the_root_alone():
    grid = [0.47, 0.49, 0.51]
    blocks = {4: 1, 16: 3}
    for count, expected in blocks.items():
        (item,) = torus(L=[8], p=grid, samples=10 * count).tasks.values()
        curve = _read_curve(item)
        assert curve.p.size == expected
        nearest = abs(read_differences([item])[1]).min()
        assert abs(curve.mean).min() == pytest.approx(nearest)


def test_files_without_the_columns_have_the_same_roots(monkeypatch):
    results = torus(L=[8], p=[0.47, 0.53], samples=1000, block_size=50)
    fit = fit_roots(results)
    has = TaskResult.has
    absent = ("wrapping_two", "wrapping_none")
    monkeypatch.setattr(
        TaskResult, "has", lambda self, *names: not {*names} & {*absent} and has(self, *names)
    )
    assert fit_roots(results).to_dict() == fit.to_dict()


def test_differences_of_several_tasks_are_pooled():
    one, other = torus(p=[0.45, 0.55]), torus(p=[0.55], seed=2, samples=80)
    merged = percolab.merge([one, other])
    p, mean, error = read_differences(merged.tasks.values())
    assert p.tolist() == [0.45, 0.55]
    parts = [
        (item.column("wrapping_two") - item.column("wrapping_none"))[
            :, list(item.task.p).index(0.55)
        ]
        for item in merged.tasks.values()
    ]
    assert mean[1] == sum(part.sum() for part in parts) / 120
    assert error[1] <= 1 / sqrt(120)


@cache
def task_of_one_p(p):
    (item,) = torus(p=[p], L=[2], measure=["openings"], samples=1, block_size=1).tasks.values()
    return item.task


def of_one_bond(p, seed, *, openings, samples=1600, blocks=32):
    """Return a task whose D is 1 if the first of all bonds is open, else -1: 2 p - 1 exactly.

    openings: how many bonds there are.
    """
    task = replace(task_of_one_p(p), block_size=samples // blocks)
    opened = np.random.default_rng(seed).random((blocks, task.block_size, openings)) < p
    numbers = dict.fromkeys((column.name for column in task.observables), 0 * opened[..., 0])
    numbers |= {"wrapping_two": opened[..., 0], "wrapping_none": ~opened[..., 0]}
    numbers["openings"] = opened.sum(axis=2)
    numbers |= {
        f"openings_{word}": numbers[f"wrapping_{word}"] * numbers["openings"]
        for word in ("two", "none")
    }
    values = np.stack([np.asarray(own, np.int64) for own in numbers.values()], axis=-1)
    squares = (values[..., pick_squared(task.observables)].astype(float) ** 2).sum(axis=1)
    every = zip(values.sum(axis=1)[:, None], squares[:, None], strict=True)
    return TaskResult(task, {n: Block(n, *own) for n, own in enumerate(every)})


def pulls_of_one_bond(p, monkeypatch, *, openings, seeds=100):
    """Return (roots - 1/2) / error of many seeds; D is known to be a straight line."""
    monkeypatch.setattr(Task, "num_openings", openings)
    monkeypatch.setattr(roots, "_CURVATURE", np.array([1e-9, 1e-9]))
    found = [find_root([of_one_bond(p, seed, openings=openings)]).value for seed in range(seeds)]
    return np.array([(root.value - 0.5) / root.error for root in found])


@pytest.mark.parametrize(("p", "openings"), [(0.5, 2), (0.65, 10)])
def test_the_error_of_one_p_has_the_control_coefficient_and_the_slope_in_it(
    p, openings, monkeypatch
):
    # Of two bonds the openings are half of the variance of D; at 0.65 half of that of the root
    # comes from the slope.
    pulls = pulls_of_one_bond(p, monkeypatch, openings=openings)
    assert abs(np.sqrt(np.mean(pulls**2)) - 1) < 4 / sqrt(2 * pulls.size)
    assert abs(pulls.mean()) < 4 / sqrt(pulls.size)


def test_the_openings_make_the_error_of_a_root_smaller_at_one_p():
    options = {"L": [8], "model": "site", "p": [0.593], "samples": 8000, "block_size": 200}
    (root,) = fit_roots(torus(measure=["openings"], **options)).roots
    two_p = torus(**options | {"p": [0.585, 0.601]})
    (other,) = fit_roots(two_p).roots
    # 24 % smaller (results/notebook); both p of the same samples tell little more than one.
    assert 0.7 < root.value.error / other.value.error < 0.85
    assert abs(root.value.value - other.value.value) < 4 * other.value.error
    with pytest.raises(AnalysisError, match="both sides"):
        fit_roots(torus(**options))


def test_of_several_p_of_the_same_samples_the_nearest_is_taken():
    grid = {"L": [8], "samples": 4000, "block_size": 100, "measure": ["openings"]}
    (alone,) = fit_roots(torus(p=[0.503], **grid)).roots
    (every,) = fit_roots(torus(p=[0.47, 0.503, 0.52], **grid)).roots
    assert every.to_dict() == alone.to_dict()


@pytest.mark.parametrize("model", ["site-bond", "site-bond:site=0.95", "bond:x=0.4"])
def test_where_not_all_openings_have_p_their_covariance_is_not_used(model):
    results = torus(model=model, L=[8], p=[0.6], samples=40, measure=["openings"])
    (item,) = results.tasks.values()
    assert not has_slopes(item)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"boundary": "open"}, "torus"),
        ({"boundary": ["open", "periodic"]}, "torus"),
        ({"name": "cubic", "p": [0.25]}, "plane"),
        ({}, "both sides"),
        ({"p": [0.1, 0.9]}, "both sides"),
    ],
)
def test_where_there_is_no_root_one_line_says_why(options, reason):
    with pytest.raises(AnalysisError, match=reason) as refusal:
        fit_roots(torus(**options))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("square", {"model": "ising"}, ""),
        ("kagome", {"model": "potts:q=4"}, ""),
        ("square", {"model": "potts:q=5"}, "first order"),
        ("square-nnn", {"model": "ising"}, "not planar"),
        ("square", {"model": "ising", "chains": 1}, "many chains"),
        ("cubic", {"model": "ising"}, "plane"),
    ],
)
def test_spins_have_roots_on_planar_tori_up_to_four_states(name, options, reason):
    found = why_no_roots(make_request(name, boundary="periodic", L=[8], **options).study)
    assert reason in found
    assert bool(reason) == bool(found)


def chains_of_spins(model, p, chains, **options):
    given = {"L": [6], "burn_in": 60, "block_size": 64, "seed": 5, "measure": ["openings"]}
    given |= options
    return torus(model=model, p=[p], samples=chains * given["block_size"], **given)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "q"), [("ising", 2), slow("potts:q=3", 3)])
def test_errors_of_spins_are_those_of_chains_and_of_the_slope(model, q):
    # At every size the root is the self-dual point; p is off it by about two errors.
    exact = sqrt(q) / (1 + sqrt(q))
    (item,) = chains_of_spins(model, round(exact + 0.004, 4), 32 * 100).tasks.values()
    groups = [
        {number: item.blocks[number] for number in range(first, first + 32)}
        for first in range(0, 3200, 32)
    ]
    found = [find_root([TaskResult(item.task, group)]).value for group in groups]
    pulls = np.array([(root.value - exact) / root.error for root in found])
    assert abs(np.sqrt(np.mean(pulls**2)) - 1) < 4 / sqrt(200)
    assert abs(pulls.mean()) < 4 / sqrt(100)


@pytest.mark.slow
def test_slopes_of_spins_are_those_of_two_temperatures():
    results = [chains_of_spins("ising", p, 1000) for p in (0.58, 0.586, 0.592)]
    low, middle, high = (fit_roots(each).roots[0] for each in results)
    (_, below, one), _, (_, above, other) = (
        read_differences(each.tasks.values()) for each in results
    )
    slope, error = (above - below)[0] / 0.012, np.hypot(one, other)[0] / 0.012
    assert abs(slope - middle.slope) < 4 * error < 0.25 * slope
    assert low.slope == pytest.approx(high.slope, rel=0.1)


@pytest.mark.parametrize("model", ["bond", "ising"])
def test_roots_of_groups_of_blocks_are_those_of_the_blocks(model):
    p, options = (0.5, {}) if model == "bond" else (0.586, {"burn_in": 40})
    options |= {"L": [6], "samples": 64 * 100, "block_size": 64, "measure": ["openings"]}
    (item,) = torus(model=model, p=[p], **options).tasks.values()
    groups = {number: block for number, block in item.blocks.items() if number >= 48}
    for first in range(0, 48, 2):
        one, other = (item.blocks[first + n].arrays for n in range(2))
        both = {name: one[name] + other[name] for name in one}
        groups[first] = item.blocks[first].with_arrays(both, 2)
    alone, grouped = (find_root([each]) for each in (item, TaskResult(item.task, groups)))
    assert grouped.value.value == pytest.approx(alone.value.value, abs=1e-7)
    assert grouped.slope == pytest.approx(alone.slope, rel=1e-4)
    # The error of an error from 76 sums is 8 %, and most of them are the same.
    assert grouped.value.error == pytest.approx(alone.value.error, rel=0.2)


def test_the_jacobian_of_a_root_is_the_change_of_its_residuals():
    p = np.array([0.49, 0.5, 0.52])
    mean, whitening = np.array([-0.1, 0.02, 0.3]), np.array([[2, 0, 0], [1, 3, 0], [0, 1, 2.0]])
    curves = [roots._Curve(p, mean, whitening, (11.0, 0.3), 0.515)]
    at, curvature = np.array([0.501, 12.0, 0.2, -0.4]), np.array([0.3, 0.5])
    _, jacobian = roots._residuals(curves, at, curvature)
    for place, step in enumerate((1e-7, 1e-5, 1e-5, 1e-5)):
        away = step * np.eye(4)[place]
        above, below = (roots._residuals(curves, at + x, curvature)[0] for x in (away, -away))
        assert jacobian[:, place] == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("model", ["ising", "potts:q=3"])
def test_the_error_of_a_coupling_is_its_slope_times_that_of_p(model):
    found = roots.coupling_record(Value(0.5, 1e-6), model)
    draw = Model.parse(model)
    shifted = draw.p_to_coupling(0.5 + 1e-6) - draw.p_to_coupling(0.5)
    assert found["coupling_error"] == pytest.approx(shifted, rel=1e-4)


P = [Fraction(0), Fraction(1, 1000), Fraction(1, 3), Fraction(7, 8), Fraction(1)]


def exact_mean(values, p):
    openings = len(values) - 1
    return sum(
        comb(openings, n) * p**n * (1 - p) ** (openings - n) * int(value)
        for n, value in enumerate(values)
    )


@pytest.mark.parametrize("openings", [1, 2, 30, slow(400)])
def test_means_are_those_of_exact_sums(openings):
    values = np.random.default_rng(openings).integers(0, 1000, openings + 1)
    floats = [float(p) for p in P]
    (means,) = convolve(values[None], openings, floats)
    for p, mean in zip(map(Fraction, floats), means, strict=True):
        assert mean == pytest.approx(float(exact_mean(values, p)), rel=1e-12)


@pytest.mark.parametrize("p", [1e-12, 1e-6, 0.25, 0.5, 1 - 1e-6])
def test_a_million_openings_have_the_moments_of_the_binomial_distribution(p):
    openings = 10**6
    first, found = binomial(openings, p)
    n = np.arange(first, first + found.size)
    assert found.sum() == pytest.approx(1, rel=1e-12)
    assert (found * n).sum() == pytest.approx(openings * p, rel=1e-9)
    spread = (found * (n - openings * p) ** 2).sum()
    assert spread == pytest.approx(openings * p * (1 - p), rel=1e-8)


def test_what_is_constant_in_a_bin_or_linear_is_found_exactly_from_bins():
    openings = 5 * MOST_BINS
    counts = bin_counts(openings)
    assert counts.sum() == openings + 1
    assert counts.size <= MOST_BINS
    assert bin_width(openings) == 8
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    n_sums = np.array([sum(range(a, a + k)) for a, k in zip(starts, counts, strict=True)])
    for p in (0.1, 0.5, 0.77):
        assert bin_weights(openings, p) @ counts == pytest.approx(1, rel=1e-12)
        assert bin_weights(openings, p) @ n_sums == pytest.approx(openings * p, rel=1e-7)
    # The last bin has fewer openings than the others.
    assert counts[-1] < counts[0]
    assert bin_weights(openings, 1.0) @ counts == 1
