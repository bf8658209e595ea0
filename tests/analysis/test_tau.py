"""n_s, tau and radii: exact small cases, synthetic power laws with pulls, and real studies."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from analysis_support import counted, synthetic_task
from cli_support import answer, refusal, stored
from helpers import assert_z

from percolab import AnalysisError, fit, sweep
from percolab.analysis.radii import GyrationSums, fit_radius
from percolab.analysis.stored_data import read_gyration_sums, read_size_counts
from percolab.analysis.stored_fits import compute_exponents, tau_at
from percolab.analysis.tau import TauReplicas, fit_tau, mean_power
from percolab.analysis.theory.known_exponents import find_size_correction
from percolab.measure.tallies import bin_edges

TAU = 187 / 91
OMEGA = find_size_correction(2).value


def synthetic(rng, tau, *, edge=0.0, at_sides=0.0, sizes=(64, 128, 256), blocks=20, a=0.05):
    """Return counts drawn about n_s = a s^-tau (1 + 0.4 s^-Omega + edge x (1 + at_sides s^-Omega)).

    x is s^(1/d_f) / L.
    """
    tasks = []
    for L in sizes:
        edges = bin_edges(L * L)
        extent = (tau - 1) / 2
        n_s = mean_power(edges, tau) + 0.4 * mean_power(edges, tau + OMEGA)
        n_s += edge * mean_power(edges, tau - extent) / L
        n_s += edge * at_sides * mean_power(edges, tau + OMEGA - extent) / L
        mean = a * n_s * np.diff(edges) * 100 * L * L
        tasks.append(synthetic_task(rng.poisson(mean, (blocks, 1, mean.size)), edges, L, str(L)))
    return tasks


def tau_of(tasks, **options):
    return fit_tau(tasks, threshold=0.5, dimension=2, **({"is_open": False} | options))


@pytest.mark.slow
@pytest.mark.parametrize(("tau", "edge"), [(TAU, 1.5), (2.189, 0.0)])
def test_errors_of_tau_hold(tau, edge):
    rng = np.random.default_rng(7)
    fits = [tau_of(synthetic(rng, tau, edge=edge), is_open=edge > 0) for _ in range(24)]
    pulls = np.array([(item.tau - tau) / item.error for item in fits])
    assert abs(pulls.mean()) < 4 / 24**0.5, pulls.mean()
    assert 0.5 < pulls.std() < 1.5, pulls.std()
    assert 0.3 < np.mean([item.result.chi_square.p_value for item in fits]) < 0.75


def test_tau_does_not_follow_what_few_blocks_say_of_the_correlations_of_bins():
    rng = np.random.default_rng(14)
    tasks = [item.coarse() for item in synthetic(rng, TAU)]
    # The blocks of every bin in an order of its own: the same n_s and variances.
    mixed = [replace(item, counts=rng.permuted(item.counts, axis=0)) for item in tasks]
    assert tau_of(mixed).tau == pytest.approx(tau_of(tasks).tau, abs=1e-9)


@pytest.mark.slow
def test_the_bootstrap_makes_up_for_the_scatter_that_it_lacks():
    rng = np.random.default_rng(15)
    tasks = synthetic(rng, TAU, blocks=10)
    drawn = {item.label: rng.multinomial(10, np.full(10, 0.1), size=4000) for item in tasks}
    replicas = TauReplicas(np.full(4000, 0.5), drawn)
    # At a given p the jackknife has the error without a bias: 5 % more than replicas of 10 blocks.
    ratio = tau_of(tasks, replicas=replicas).error / tau_of(tasks).error
    assert ratio == pytest.approx(1.0, abs=4 / (2 * 4000) ** 0.5)


def test_a_wrong_model_is_rejected():
    tasks = synthetic(np.random.default_rng(8), TAU, edge=5.0, sizes=(64, 128), blocks=60)
    assert tau_of(tasks).result.rejected
    assert not tau_of(tasks, is_open=True).result.rejected


@pytest.mark.parametrize("at_sides", [-1.5, 1.5])
def test_n_s_of_open_sides_may_have_a_correction_of_their_own(at_sides):
    """Of square sites edge is 6; without the correction tau is off by five of its errors."""
    rng = np.random.default_rng(14)
    tasks = synthetic(rng, TAU, edge=6.0, at_sides=at_sides, sizes=(32, 64, 128), blocks=60, a=5.0)
    found = tau_of(tasks, is_open=True)
    assert_z(found.tau, TAU, found.error)
    assert found.error < 0.02


def test_steps_that_would_oscillate_are_halved(monkeypatch):
    """The slowest window takes 22 steps; without halving 51."""
    rng = np.random.default_rng(4)
    tasks = synthetic(rng, TAU, edge=12.0, at_sides=1.5, sizes=(12, 16, 24), blocks=40)
    every = tau_of(tasks, is_open=True).result
    monkeypatch.setattr("percolab.analysis.tau._STEPS", 30)
    assert tau_of(tasks, is_open=True).result == every


def test_the_fitted_numbers_are_the_model():
    found = tau_of(synthetic(np.random.default_rng(9), TAU, edge=1.5, blocks=100), is_open=True)
    s = np.array([10.0, 100.0])
    for L in (64, np.inf):
        expected = 0.05 * s**-TAU * (1 + 0.4 * s**-OMEGA + 1.5 * s ** ((TAU - 1) / 2) / L)
        np.testing.assert_allclose(found.numbers(s, L), expected, rtol=0.02)
    assert found.fractal_dimension == pytest.approx(91 / 48, rel=0.01)


@pytest.mark.slow
def test_the_error_of_the_threshold_is_in_that_of_tau():
    rng = np.random.default_rng(10)
    tasks = []
    for item in synthetic(rng, TAU):
        # n_s changes with p as s^sigma does, so that another p is another slope.
        tilt = 1 - 2 * (np.array([0.4, 0.5, 0.6]) - 0.5)[:, None] * item.sizes**0.2
        counts = np.rint(item.counts * np.maximum(tilt, 0.0)).astype(int)
        tasks.append(synthetic_task(counts, item.edges, item.L, item.label))
    drawn, errors = {x.label: rng.multinomial(20, [1 / 20] * 20, size=200) for x in tasks}, []
    for width in (0.0, 0.01):
        replicas = TauReplicas(0.5 + width * rng.normal(size=200), drawn)
        errors.append(tau_of(tasks, threshold_error=width, replicas=replicas).error)
    assert errors[1] > 1.5 * errors[0]
    assert errors[0] == pytest.approx(tau_of(tasks).error, rel=0.3)


def test_what_cannot_give_tau_says_why():
    rng = np.random.default_rng(11)
    few, tasks = synthetic(rng, TAU, blocks=5), synthetic(rng, TAU)
    with pytest.raises(AnalysisError, match="fewer than 8 bins of sizes"):
        tau_of(few)
    found = tau_of([*few, *tasks])
    assert len(found.notes) == 3
    assert "fewer than 10 blocks" in found.notes[0]
    with pytest.raises(AnalysisError):
        fit_tau(tasks, threshold=0.7, dimension=2, is_open=False)
    with pytest.raises(AnalysisError, match="no sizes that scale"):
        tau_at(sweep("bethe:3", L=[4], p=[0.5], samples=20, measure="sizes", device="cpu"), 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_tau_of_the_square_lattice_is_exact_within_its_error(boundary):
    results = sweep(
        "square", L=[64, 128, 256], p=[0.49, 0.495, 0.5, 0.505, 0.51], samples=1000,
        block_size=50, boundary=boundary, measure="sizes", device="cpu", seed=3,
    )  # fmt: skip
    at_half = tau_at(results, 0.5)
    assert_z(at_half.tau, TAU, at_half.error)
    assert at_half.error < 0.025
    found = compute_exponents(results, fit(results), bootstrap=100)
    assert_z(found.tau_fit.tau, TAU, found.tau_fit.error)
    own = [item for item in found.exponents if item.source.startswith("n_s")]
    assert [(item.name, item.value) for item in own] == [("tau", found.tau_fit.tau)]
    # Without its corrections, which are not small, the power law would be far off.
    leading, *corrections = np.abs(found.tau_fit.coefficients)
    assert max(corrections) > 0.1 * leading


def test_n_s_of_two_by_two_squares_is_that_of_all_configurations():
    p, samples = 0.5, 4000
    results = sweep("square", L=[2], p=[p], samples=samples, measure="sizes", device="cpu")
    (counts,) = read_size_counts(results)
    expected = np.zeros(5)
    for mask in range(16):
        # Sites 0 1 / 2 3 and the bonds between them.
        label = list(range(4))
        for bond, (i, j) in enumerate(((0, 1), (2, 3), (0, 2), (1, 3))):
            if mask >> bond & 1:
                label = [label[i] if x == label[j] else x for x in label]
        expected += np.bincount(np.bincount(label, minlength=4), minlength=5) / 16
    for size in range(1, 5):
        error = counts.errors()[0, size - 1]
        assert_z(counts.numbers()[0, size - 1], expected[size] / 4, error)


def test_coarse_bins_hold_the_same_clusters():
    for counts in read_size_counts(counted()):
        coarse = counts.coarse()
        assert coarse.counts.sum() == counts.counts.sum()
        assert set(coarse.edges) <= set(counts.edges)
        assert coarse.edges[-1] == counts.edges[-1]
        at = np.searchsorted(counts.edges, 16)
        merged = counts.counts[0, 0, at : at + 4].sum()
        assert coarse.counts[0, 0][coarse.edges[:-1] == 16] == merged


@pytest.mark.parametrize("exponent", [0.7, 1.0, 2.0549, 3.6])
def test_mean_power_is_the_mean_over_integer_sizes(exponent):
    for edges in (bin_edges(5000), np.array([1, 2, 4, 7]), np.array([8, 10, 64, 80, 96])):
        direct = [np.mean(np.arange(a, b, dtype=float) ** -exponent) for a, b in pairwise(edges)]
        np.testing.assert_allclose(mean_power(edges, exponent), direct, rtol=1e-7)


def test_errors_of_n_s_are_those_of_repeated_blocks():
    rng = np.random.default_rng(1)
    edges = bin_edges(100)
    mean = 4000 * mean_power(edges, 2.0) * np.diff(edges)
    found, errors = [], []
    for _ in range(300):
        item = synthetic_task(rng.poisson(mean, (20, 1, mean.size)), edges)
        found.append(item.numbers()[0])
        errors.append(item.errors()[0])
    scatter = np.std(found, axis=0)
    np.testing.assert_allclose(np.mean(errors, axis=0), scatter, rtol=0.2)


def gyration_sums(rng, d_f, *, blocks=20, L=256, at_sides=0.0):
    """Return sums of clusters with R_s^2 = 0.3 s^(2/d_f) (1 + noise of a tenth a cluster).

    at_sides: that at open sides clusters are larger by so many times s^-Omega R_s / L, too.
    """
    edges = bin_edges(L * L)
    sizes = (edges[:-1] + edges[1:] - 1) / 2
    number = rng.poisson(2e4 * sizes**-1.0, (blocks, 1, sizes.size))
    squares = number * sizes**2
    noise = 1 + 0.1 * rng.normal(size=number.shape) / np.sqrt(np.maximum(number, 1))
    squared = 0.3 * sizes ** (2 / d_f)
    squared *= 1 + at_sides * sizes ** (-72 / 91) * np.sqrt(squared) / L
    spreads = squares * squared * noise
    largest = np.array([0.8 * L ** (91 / 48)])
    return GyrationSums(L, L * L, 100, np.array([0.5]), edges, squares, spreads, largest)


@pytest.mark.parametrize("is_open", [False, True])
def test_errors_of_the_fractal_dimension_hold(is_open):
    rng = np.random.default_rng(12)
    options, fits = {"threshold": 0.5, "dimension": 2, "is_open": is_open}, []
    for _ in range(40):
        fits.append(fit_radius([gyration_sums(rng, 91 / 48, L=L) for L in (64, 256)], **options))
    pulls = np.array([(item.d_f - 91 / 48) / item.error for item in fits])
    assert abs(pulls.mean()) < 0.5
    assert pulls.std() < 1.2
    scatter = np.std([item.d_f for item in fits])
    own = np.median([item.result.statistical_error for item in fits])
    # Twenty blocks determine an error to a sixth.
    assert own == pytest.approx(scatter, rel=0.5)
    assert all(item.sizes == (64, 256) for item in fits)


@pytest.mark.parametrize("at_sides", [-9.0, 9.0])
def test_clusters_at_open_sides_may_have_a_correction_of_their_own(at_sides):
    rng, options = np.random.default_rng(14), {"threshold": 0.5, "dimension": 2, "is_open": True}
    pulls = []
    for _ in range(20):
        own = [gyration_sums(rng, 91 / 48, L=L, at_sides=at_sides) for L in (32, 64, 128)]
        found = fit_radius(own, **options)
        pulls.append((found.d_f - 91 / 48) / found.error)
    assert abs(np.mean(pulls)) < 0.7
    assert np.max(np.abs(pulls)) < 4


@pytest.mark.parametrize(
    ("filled", "blocks", "enough"),
    [(9, 20, False), (10, 20, True), (9, 10, False), (10, 10, True), (2, 3, False), (3, 3, True)],
)
def test_radii_of_clusters_in_few_blocks_are_left_out(filled, blocks, enough):
    """With clusters in two of ten blocks a radius in four was off by more than two errors."""
    sums = gyration_sums(np.random.default_rng(15), 1.9, blocks=blocks)
    some = (np.arange(blocks) < filled)[:, None, None]
    few = replace(sums, squares=sums.squares * some, spreads=sums.spreads * some)
    assert (few.radii(0)[0].size > 0) == enough


def test_the_correlation_length_is_that_of_all_bins():
    sums = gyration_sums(np.random.default_rng(13), 1.9)
    xi, error = sums.correlation_length()
    assert xi[0] == pytest.approx(np.sqrt(2 * sums.spreads.sum() / sums.squares.sum()))
    found = [gyration_sums(np.random.default_rng(n), 1.9).correlation_length() for n in range(60)]
    scatter = np.std([item[0][0] for item in found])
    assert np.mean([item[1][0] for item in found]) == pytest.approx(scatter, rel=0.35)
    assert error[0] > 0


def test_radii_of_pairs_of_sites_are_half_a_bond_and_xi_is_drawn():
    results = sweep("square", L=[8, 16], p=[0.3, 0.5], samples=200, block_size=20,
                    measure="gyration", boundary="periodic", device="cpu")  # fmt: skip
    for sums in read_gyration_sums(results):
        s, squared, _ = sums.radii(0)
        assert squared[s == 1] == 0
        assert squared[s == 2] == pytest.approx(0.25)
    path = stored(Path("radii.h5"), results)
    message = json.loads(answer("plot", path, "--kind", "gyration", "--bootstrap", 0, "--json"))
    assert set(message) == {
        "kind", "title", "threshold", "threshold_source", "exact", "curves", "fit", "notes",
    }  # fmt: skip
    for curve, sums in zip(message["curves"], read_gyration_sums(results), strict=True):
        assert curve["correlation_length"] == sums.correlation_length()[0].tolist()
    message = refusal("plot", stored(Path("none.h5")), "--kind", "gyration", "--bootstrap", 0)
    assert "sweep with --measure gyration" in message


@pytest.mark.slow
@pytest.mark.parametrize("p", [[0.0, 1.0], [0.0]])
def test_without_a_cluster_of_two_sites_that_ends_there_are_no_radii(p):
    results = sweep("square", L=[2, 4], p=p, samples=40, block_size=10, measure="sizes,gyration",
                    device="cpu")  # fmt: skip
    path = stored(Path("radii.h5"), results)
    message = refusal("plot", path, "--kind", "gyration", "--bootstrap", 0)
    assert "there are no radii" in message
    answer("report", path, "--bootstrap", 0)
    assert "there are no radii" in Path("radii.html").read_text()


@pytest.mark.slow
def test_radii_of_one_block_leave_their_panel_empty():
    """An empty panel cannot be logarithmic, and does not end the report."""
    results = sweep("cubic", L=[1, 2, 3], p=[0.1, 0.2, 0.3], samples=50, measure="gyration",
                    boundary="periodic", device="cpu")  # fmt: skip
    path = stored(Path("block.h5"), results)
    answer("plot", path, "--kind", "gyration", "--bootstrap", 0)
    answer("report", path, "--bootstrap", 0)


@pytest.mark.slow
def test_a_refusal_says_what_would_measure_it():
    results = sweep("square", L=[4, 8], samples=40, method="threshold", device="cpu")
    path = stored(Path("thresholds.h5"), results)
    for kind in ("sizes", "gyration"):
        message = refusal("plot", path, "--kind", kind, "--bootstrap", 0)
        assert f"sweep with --measure {kind} and --method grid" in message
    bethe = stored(Path("bethe.h5"), sweep("bethe:3", L=[3], p=[0.5], samples=40, device="cpu"))
    assert "has no coordinates" in refusal("plot", bethe, "--kind", "gyration")
