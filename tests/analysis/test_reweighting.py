"""Reweighted means against exact ones, and energy histograms with one peak and with two."""

import math

import numpy as np
import pytest
from analysis_support import filter_series
from helpers import slow

import percolab
from percolab.analysis.json_values import plain
from percolab.analysis.reweighting import energy_histogram, find_first_order, reweight
from percolab.analysis.stored_spins import read_series
from percolab.analysis.theory.ising import ising_torus
from percolab.analysis.transition_order import two_peaks
from percolab.bonds.model import Model
from percolab.errors import AnalysisError
from percolab.validation.enumeration import spin_means

SIDE = 4
COUPLING = 0.4


def ising_states():
    """Return satisfied bonds and M^2 of all states of a 4 x 4 torus, float64 (states,)."""
    sites = SIDE * SIDE
    spins = 1 - 2 * (np.arange(2**sites)[:, None] >> np.arange(sites) & 1)
    square = spins.reshape(-1, SIDE, SIDE)
    satisfied = sum((square == np.roll(square, 1, axis)).sum((1, 2)) for axis in (1, 2))
    return satisfied.astype(float), spins.sum(axis=1).astype(float) ** 2


def ising_series(rng, *, chains, updates):
    """Return independent samples at COUPLING of what ising_states returns, (chains, updates)."""
    satisfied, square = ising_states()
    weights = np.exp(2 * COUPLING * (satisfied - satisfied.max()))
    drawn = rng.choice(len(weights), size=(chains, updates), p=weights / weights.sum())
    return satisfied[drawn], square[drawn]


def ring_bonds():
    sites = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    ends = [np.stack([sites, np.roll(sites, 1, axis)], axis=-1) for axis in (0, 1)]
    return np.concatenate(ends).reshape(-1, 2).tolist()


def test_reweighted_means_are_the_exact_ones():
    satisfied, square = ising_series(np.random.default_rng(1), chains=40, updates=2000)
    couplings = np.array([0.32, 0.36, 0.4, 0.44, 0.48])
    beta, betas = 2 * COUPLING, 2 * couplings
    # All bonds, 2 a site, are satisfied or not: E = - sites (energy / 2 - 1).
    exact = [ising_torus(SIDE, SIDE, k) for k in couplings]
    means = [spin_means(16, ring_bonds(), q=2, p=-math.expm1(-2 * k)) for k in couplings]
    cases = [
        ([satisfied], {}, [SIDE**2 * (1 - item.energy / 2) for item in exact]),
        (
            [satisfied, satisfied**2],
            {"function": lambda e, e2: betas**2 * (e2 - e**2) / SIDE**2},
            [item.specific_heat for item in exact],
        ),
        ([square], {}, [mean["magnetization_square"] for mean in means]),
    ]
    for series, options, expected in cases:
        found = reweight(satisfied, series, beta=beta, betas=betas, **options)
        assert np.abs((found.values - expected) / found.errors).max() <= 4
        assert np.all(found.errors < 0.05 * np.array(expected))
        assert found.reliable.all()


@pytest.mark.slow
def test_errors_of_reweighted_means_are_those_of_repeated_series():
    rng, betas = np.random.default_rng(2), np.array([0.72, 0.8, 0.9])
    exact = np.array([SIDE**2 * (1 - ising_torus(SIDE, SIDE, b / 2).energy / 2) for b in betas])
    z = []
    for _ in range(150):
        satisfied, _square = ising_series(rng, chains=60, updates=50)
        found = reweight(satisfied, [satisfied], beta=2 * COUPLING, betas=betas)
        z.append((found.values - exact) / found.errors)
    # Of 150 z the mean and the scatter are tested, which is known to 6 %.
    assert np.abs(np.mean(z, axis=0)).max() * math.sqrt(150) <= 4
    assert np.all(np.std(z, axis=0) < 1.2)
    assert np.all(np.std(z, axis=0) > 0.8)


def test_fluctuations_of_few_samples_are_not_too_small():
    rng, betas = np.random.default_rng(4), np.array([0.9, 1.0])
    heats = []
    for _ in range(600):
        energies = rng.normal(0, 1, (4, 5))
        found = reweight(
            energies, [energies, energies**2], beta=1.0, betas=betas,
            function=lambda e, e2: e2 - e**2,
        )  # fmt: skip
        heats.append(found.values)
    # Of normal numbers the variance does not depend on beta; plain ones are too small by 1 / 20.
    z = (np.mean(heats, axis=0) - 1) / (np.std(heats, axis=0) / 600**0.5)
    assert (np.abs(z) <= 3).all(), z
    assert (np.std(heats, axis=0) / 600**0.5 < 0.05 / 3).all()


def test_chains_that_are_correlated_inside_have_larger_errors():
    satisfied, _ = ising_series(np.random.default_rng(3), chains=40, updates=200)
    repeated = np.repeat(satisfied, 4, axis=1)
    both = [reweight(x, [x], beta=0.8, betas=[0.84]).errors[0] for x in (satisfied, repeated)]
    assert both[1] == pytest.approx(both[0], rel=1e-9)


def test_overlap_falls_with_the_distance():
    satisfied, _ = ising_series(np.random.default_rng(4), chains=10, updates=1000)
    found = reweight(satisfied, [satisfied], beta=0.8, betas=[0.8, 0.9, 1.2, 4.0, -3.0])
    assert found.overlap[0] == pytest.approx(1)
    assert np.all(np.diff(found.overlap[:4]) < 0)
    assert found.reliable.tolist() == [True, True, True, True, False]


def test_a_histogram_is_the_exact_distribution():
    satisfied, _ = ising_series(np.random.default_rng(5), chains=50, updates=4000)
    found = energy_histogram(satisfied)
    values, _ = ising_states()
    weights = np.exp(0.8 * (values - values.max()))
    exact = np.histogram(values, found.edges, weights=weights / weights.sum())[0]
    width = found.edges[1] - found.edges[0]
    assert width == 2
    seen = found.errors > 0
    z = (found.density - exact / width)[seen] / found.errors[seen]
    assert np.abs(z).max() <= 4
    assert found.density.sum() * width == pytest.approx(1)


def two_phases(rng, shift, *, chains=40, updates=5000, q=10, stay=0.0):
    """Return E of two Gaussian phases at a shift from their transition, and the exact gap there.

    A Gaussian with mean m and variance v has, at the shift, the mean m + shift v and the weight
    exp(shift m + shift^2 v / 2).  stay: the probability that the next update draws no new phase.
    """
    means, deviations = np.array([1000.0, 1400.0]), np.array([60.0, 50.0])
    weights = np.array([1, q]) * np.exp(shift * means + shift**2 * deviations**2 / 2 - 1400 * shift)
    share = weights[1] / weights.sum()
    phase = (rng.random((chains, updates)) < share).astype(int)
    kept = rng.random((chains, updates)) < stay
    for n in range(1, updates):
        phase[:, n] = np.where(kept[:, n], phase[:, n - 1], phase[:, n])
    noise = rng.standard_normal((chains, updates)) * deviations[phase]
    return np.rint((means + shift * deviations**2)[phase] + noise), 400.0


@pytest.mark.parametrize("shift", [-0.006, 0.0, 0.004])
@pytest.mark.parametrize("stay", [0.0, 0.9])
def test_two_phases_give_the_transition_and_the_latent_heat(shift, stay):
    beta = 1.4
    energies, gap = two_phases(np.random.default_rng(6), shift, stay=stay)
    found = find_first_order(energies, beta=beta + shift, q=10, num_sites=1000)
    assert found is not None
    assert found.mixed
    assert abs(found.beta - beta) <= 4 * found.beta_error
    assert found.beta_error < 1e-3
    assert abs(found.latent_heat - gap / 1000) <= 4 * found.latent_heat_error + 1e-3
    assert found.latent_heat_error < 0.01
    assert 1100 < found.cut < 1300
    assert found.peaks == pytest.approx((1000, 1400), abs=60)
    # Equally high peaks: half way, Gaussians of the mean deviation are exp(-200^2 / 2 / 55^2).
    assert 4 < found.depth < 7


@pytest.mark.parametrize(
    ("one_chain", "drawn"),
    [
        (False, {"chains": 20, "updates": 300, "stay": 0.5}),
        slow(True, {"chains": 1, "updates": 20_000, "stay": 0.99}),
    ],
)
def test_error_of_the_transition_is_its_scatter(one_chain, drawn):
    rng, z = np.random.default_rng(7), []
    for _ in range(60):
        energies, _ = two_phases(rng, 0.0, q=3, **drawn)
        rows = energies.reshape(200, 100) if one_chain else energies
        found = find_first_order(rows, beta=0.0, q=3, num_sites=1000, one_chain=one_chain)
        z.append(found.beta / found.beta_error)
    assert np.abs(z).max() <= 4
    assert 0.8 <= np.std(z) <= 1.3


def test_chains_that_never_change_phase_are_not_mixed():
    energies, gap = two_phases(np.random.default_rng(8), 0.0, updates=1000, q=1, stay=1.0)
    found = find_first_order(energies, beta=1.0, q=1, num_sites=1000)
    assert found.changes == 0
    assert not found.mixed
    assert 1000 * found.latent_heat == pytest.approx(gap, rel=0.01)


def test_how_one_chain_is_cut_into_blocks_changes_nothing():
    rng = np.random.default_rng(9)
    energies, _ = two_phases(rng, 0.0, chains=1, updates=12_000, q=3, stay=0.99)
    known = {"beta": 0.0, "q": 3, "num_sites": 1000}
    few, many = (
        find_first_order(energies.reshape(blocks, -1), one_chain=True, **known)
        for blocks in (30, 120)
    )
    assert few.changes > 20
    assert few == many
    # Taken for chains, blocks begin and end in a phase without a change, and seem independent.
    chains = find_first_order(energies.reshape(120, -1), **known)
    assert chains.changes < few.changes
    assert chains.beta_error < 0.8 * few.beta_error


def test_fits_and_figures_take_one_chain_for_one(monkeypatch):
    monkeypatch.setattr("percolab.analysis.reweighting._LEAST_CHANGES", 1)
    p = np.sqrt(10) / (1 + np.sqrt(10))
    results = percolab.sweep(
        "square", L=[16], model="potts:q=10", boundary="periodic", chains=1, measure="series",
        burn_in=200, p=[p], samples=20_000, block_size=200, device="cpu",
    )  # fmt: skip
    (item,) = results.tasks.values()
    found = two_peaks(item, Model.parse("potts:q=10"))[0].order
    (curve,) = results.plot(kind="histogram").numbers["curves"]
    assert curve["first_order"] == plain(found)
    energies = item.extra("series").reshape(100, -1, 200)[:, 0].ravel()
    low, high = found.peaks
    phases = energies[(energies <= low) | (energies >= high)] >= high
    assert found.changes == np.count_nonzero(np.diff(phases)) > 0


@pytest.mark.parametrize("seed", range(12))
def test_one_peak_is_no_transition_of_first_order(seed):
    rng = np.random.default_rng(seed)
    shape = (20, 2000)
    series = [
        np.rint(rng.normal(1000, 50, shape)),
        np.rint(rng.gamma(4.0, 30.0, shape)),
        2 * np.rint(rng.uniform(0, 300, shape)),
    ]
    # Correlated as near a critical point.
    noise = rng.standard_normal((20, 3000))
    series.append(np.rint(30 * filter_series(noise, 0.95)[:, 1000:]))
    for energies in series:
        assert find_first_order(energies, beta=1.0, q=3, num_sites=1000) is None


@pytest.mark.slow
def test_few_correlated_chains_show_no_second_peak_by_chance():
    rng = np.random.default_rng(15)
    for _ in range(60):
        noise = rng.standard_normal((4, 4000))
        series = math.sqrt(1 - 0.9**2) * filter_series(noise, 0.9)[:, 1000:]
        assert find_first_order(np.rint(300 * series), beta=1.0, q=3, num_sites=1000) is None


@pytest.mark.parametrize(
    ("q", "size", "scale", "seed"), [(3, 12, 1.03, 0), (5, 8, 0.985, 1), (10, 8, 1.03, 2)]
)
def test_gaps_near_the_ground_state_are_no_phases(q, size, scale, seed):
    """Single spins of a square lattice leave its ground state at the cost of four bonds each."""
    beta = scale * math.log(1 + math.sqrt(q))
    results = percolab.sweep(
        "square", L=[size], model=f"potts:q={q}", boundary="periodic", measure="series",
        beta=[beta], burn_in=100, sweeps=1100, samples=24_000, seed=424_000 + seed, device="cpu",
    )  # fmt: skip
    (item,) = results.tasks.values()
    energies = read_series(item)["satisfied"][0]
    assert find_first_order(energies, beta=beta, q=q, num_sites=size**2) is None


def test_a_transition_far_from_what_was_sampled_is_none():
    """Where one phase is seen in 2 % of the samples, the other must not be made of these."""
    energies, _ = two_phases(np.random.default_rng(32), -0.02, updates=20_000)
    assert find_first_order(energies, beta=1.38, q=10, num_sites=1000) is None


def test_series_that_tell_nothing():
    assert find_first_order(np.full((3, 10), 7), beta=1.0, q=3, num_sites=1000) is None
    # The levels of a tiny lattice have gaps: no state of 16 Ising spins has 30 satisfied bonds.
    satisfied, _ = ising_series(np.random.default_rng(9), chains=20, updates=1000)
    assert find_first_order(satisfied, beta=0.8, q=2, num_sites=16) is None
    with pytest.raises(AnalysisError, match="2 chains"):
        find_first_order(np.arange(10.0)[None], beta=1.0, q=3, num_sites=1000)
    with pytest.raises(AnalysisError, match="does not vary"):
        energy_histogram(np.full((3, 10), 7))
    for series in ([np.ones((3, 5))], []):
        with pytest.raises(AnalysisError, match="shape"):
            reweight(np.ones((3, 4)), series, beta=1.0, betas=[1.0])
