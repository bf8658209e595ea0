"""tau from n_s: synthetic power laws with pulls, and a real study."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_support import synthetic_task
from helpers import assert_z

from percolab.analysis.stored_fits import compute_exponents, tau_at
from percolab.analysis.tau import TauReplicas, fit_tau, mean_power
from percolab.analysis.theory.known_exponents import find_size_correction
from percolab.api import fit, sweep
from percolab.errors import AnalysisError
from percolab.measure.tallies import bin_edges

TAU = 187 / 91
OMEGA = find_size_correction(2).value
pytestmark = pytest.mark.usefixtures("own_directory")


def synthetic(rng, tau, *, edge=0.0, correction=0.4, sizes=(64, 128, 256), blocks=20):
    """Return counts drawn about n_s = 0.05 s^-tau (1 + correction s^-Omega + edge x)."""
    tasks = []
    for L in sizes:
        edges = bin_edges(L * L)
        extent = (tau - 1) / 2
        n_s = mean_power(edges, tau) + correction * mean_power(edges, tau + OMEGA)
        n_s += edge * mean_power(edges, tau - extent) / L
        mean = 0.05 * n_s * np.diff(edges) * 100 * L * L
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
    with pytest.raises(AnalysisError, match="no 8 bins of sizes"):
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
    assert at_half.error < 0.02
    found = compute_exponents(results, fit(results), bootstrap=100)
    assert_z(found.tau_fit.tau, TAU, found.tau_fit.error)
    own = [item for item in found.exponents if item.source.startswith("n_s")]
    assert [(item.name, item.value) for item in own] == [("tau", found.tau_fit.tau)]
    # Without its corrections, which are not small, the power law would be far off.
    leading, *corrections = np.abs(found.tau_fit.coefficients)
    assert max(corrections) > 0.1 * leading
