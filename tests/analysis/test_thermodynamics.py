"""Thermal means of stored chains are those of the Hamiltonian, in both conventions."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers import slow

from percolab import InputError, load_lattice, sweep
from percolab.analysis.quantities import BlockMoments, choose_quantities
from percolab.analysis.quantity_fits import JointInput, analyse_quantities
from percolab.analysis.stored_spins import (
    THERMAL,
    System,
    compute_thermodynamics,
    correlation_errors,
    list_spin_tasks,
    read_lagged,
    read_series,
    thermodynamics,
)
from percolab.analysis.theory.ising import exact_mean, is_square_ising, ising_torus
from percolab.analysis.theory.potts import (
    critical_bond_probability,
    potts_exponents,
    spin_correction,
)
from percolab.bonds.model import Model
from percolab.validation.enumeration import bond_means, spin_means

COUPLINGS = (0.2, 0.44, 0.7)


@cache
def tori(model):
    """Return chains on 4 x 4 and 8 x 8 tori at the same p in either convention; only to be read."""
    betas = [2 * each for each in COUPLINGS]
    point = {"K": COUPLINGS} if model == "ising" else {"beta": betas}
    return sweep(
        "square", model=model, L=[4, 8], boundary="periodic", burn_in=40, sweeps=240,
        samples=40_000, measure=["sizes", "series"], device="cpu", **point,
    )  # fmt: skip


@pytest.mark.parametrize("model", ["ising", slow("potts:q=2")])
def test_energy_and_specific_heat_are_kaufmans(model):
    bonds_per_site = 2
    for found in compute_thermodynamics(tori(model)):
        np.testing.assert_allclose(found.temperature, 1 / found.coupling)
        exact = [ising_torus(found.L, found.L, coupling) for coupling in COUPLINGS]
        energy = np.array([each.energy for each in exact])
        if model != "ising":
            np.testing.assert_allclose(found.coupling, 2 * np.array(COUPLINGS))
            energy = (energy - bonds_per_site) / 2
        heat = np.array([each.specific_heat for each in exact])
        for name, known in (("energy", energy), ("specific_heat", heat)):
            z = (found.values[name] - known) / found.errors[name]
            assert (np.abs(z) <= 4).all(), (name, found.L, z)
            # A wide error would pass any comparison.
            assert (found.errors[name] < 0.05 * np.abs(known)).all()


@pytest.mark.parametrize("q", [slow(2), 3])
def test_order_parameter_and_its_moments_are_those_of_all_spins(q):
    results = sweep(
        "square", model=f"potts:q={q}", L=[3], boundary="periodic", burn_in=40, sweeps=240,
        samples=40_000, measure=["sizes"], device="cpu", p=[0.35, 0.6],
    )  # fmt: skip
    lattice = load_lattice("square")
    bonds = lattice.topology((3, 3), ("periodic", "periodic")).bonds()[:, 1:].tolist()
    (found,) = compute_thermodynamics(results)
    for at, p in enumerate(found.p):
        exact = spin_means(9, bonds, q=q, p=float(p))
        square, largest = exact["magnetization_square"], exact["largest_state"]
        fourth = exact["magnetization_square_squared"]
        spread = exact["largest_state_squared"] - largest**2
        known = {
            "energy": -exact["satisfied"] / 9,
            "order": (q * largest / 9 - 1) / (q - 1),
            "susceptibility": square / 9,
            "improved_susceptibility": square / 9,
            "connected_susceptibility": (q / (q - 1)) ** 2 * spread / 9,
            "binder": square**2 / fourth,
            "improved_binder": square**2 / fourth,
            "open_excess": 0.0,
        }
        for name, value in known.items():
            z = (found.values[name][at] - value) / found.errors[name][at]
            assert abs(z) <= 4, (name, p, z)
        assert found.errors["improved_binder"][at] < found.errors["binder"][at]


@pytest.mark.parametrize("q", [2, 3, 5])
def test_improved_fourth_moment_is_exact_on_a_triangle(q):
    bonds = [(0, 1), (1, 2), (0, 2), (2, 3)]
    exact = bond_means(4, bonds, q=q, p=0.4)
    mean = {
        "sum_squares": np.array([exact["sum_squares"]]),
        "sum_squares*sum_squares": np.array([exact["sum_squares_squared"]]),
        "s^4": np.array([exact["sum_fourths"]]),
    }
    system = System(Model.parse(f"potts:q={q}"), 4, 4)
    ratio = exact["magnetization_square"] ** 2 / exact["magnetization_square_squared"]
    found = THERMAL["improved_binder"].value(system, np.array([0.4]), mean)
    assert found[0] == pytest.approx(ratio, rel=1e-12)


def test_errors_are_those_of_repeated_studies():
    """A fluctuation's error by the jackknife is its scatter over independent sets of chains."""
    rng = np.random.default_rng(5)
    system = System(Model.parse("ising"), 16, 32)
    values, errors = [], []
    for _ in range(300):
        sweeps = rng.normal(20, 3, (20, 50))
        sums = {
            "satisfied": sweeps.sum(axis=1)[:, None],
            "satisfied*satisfied": (sweeps**2).sum(axis=1)[:, None],
        }
        moments = BlockMoments(4, np.array([0.5]), np.full(20, 50), sums)
        found = thermodynamics(moments, system)
        values.append(found.values["specific_heat"][0])
        errors.append(found.errors["specific_heat"][0])
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)
    heat = (2 * Model.parse("ising").p_to_coupling(0.5)) ** 2 * 9 / 16
    assert abs(np.mean(values) - heat) < 4 * np.std(values) / 300**0.5


def test_limits_of_p_are_no_numbers_but_no_failures():
    results = sweep(
        "square", model="ising", L=[4], boundary="open", p=[0.0, 1.0], burn_in=5, sweeps=9,
        samples=16, device="cpu",
    )  # fmt: skip
    (found,) = compute_thermodynamics(results)
    assert found.system.num_bonds == 24
    assert found.temperature.tolist() == [np.inf, 0.0]
    # At p = 1 a chain stays ordered once it is.
    assert found.values["energy"][1] == -24 / 16
    assert found.values["order"][1] == 1.0
    assert found.values["energy"][0] == pytest.approx(0, abs=1.5)


def short_chains(samples):
    return sweep(
        "square", model="ising", L=[4], boundary="periodic", K=[0.4], burn_in=5, sweeps=25,
        samples=samples, device="cpu",
    )  # fmt: skip


def test_a_single_chain_has_values_and_no_errors():
    (found,) = compute_thermodynamics(short_chains(20))
    assert all(np.isfinite(own).all() for own in found.values.values())
    assert all(np.isnan(own).all() for own in found.errors.values())
    assert "improved_binder" not in found.values


def test_series_are_those_whose_sums_are_stored():
    for item in list_spin_tasks(tori("ising")):
        series = read_series(item)
        for name, values in series.items():
            assert values.shape == (3, len(item.blocks), item.task.block_size)
            np.testing.assert_array_equal(values.sum(axis=2).T, item.column(name))
            for at in range(3):
                lagged, edges = read_lagged(item, name, at)
                own = values[at].astype(float)
                np.testing.assert_allclose(lagged[:, 0], (own**2).sum(axis=1))
                np.testing.assert_allclose(lagged[:, 2], (own[:, 2:] * own[:, :-2]).sum(axis=1))
                np.testing.assert_allclose(edges[:, 0], 2 * own.sum(axis=1))


def test_errors_of_an_autocorrelation_are_zero_at_lag_zero_and_grow():
    item = list_spin_tasks(tori("ising"))[-1]
    errors = correlation_errors(item, "satisfied", 1)
    assert errors[0] == 0
    assert 0 < errors[1] < errors[10] < 0.2


def test_series_that_were_not_asked_for_are_refused():
    with pytest.raises(InputError, match="series"):
        read_series(list_spin_tasks(short_chains(40))[0])


def test_exact_curves_are_in_the_convention_of_the_model():
    ising, potts = Model.parse("ising"), Model.parse("potts:q=2")
    for name in ("energy", "specific_heat", "order"):
        one, other = exact_mean(name, ising, 0.5), exact_mean(name, potts, 1.0)
        assert other == pytest.approx((one - 2) / 2 if name == "energy" else one)
    assert exact_mean("energy", potts, 0.8, 4) == pytest.approx(
        (exact_mean("energy", ising, 0.4, 4) - 2) / 2
    )
    assert exact_mean("order", ising, 0.4, 4) is None
    assert exact_mean("binder", ising, 0.4) is None
    square = load_lattice("square")
    assert is_square_ising(square, potts)
    assert not is_square_ising(square, Model.parse("potts:q=3"))
    assert not is_square_ising(load_lattice("triangular"), ising)


def test_reweighting_as_documented_gives_kaufmans_energies():
    text = (Path(__file__).parents[2] / "docs" / "spins.md").read_text(encoding="utf-8")
    code = text.partition("```python\n")[2].partition("```")[0]
    own: dict[str, object] = {}
    exec(compile(code, "spins.md", "exec"), own)
    known = [ising_torus(16, 16, each / 2).energy for each in own["found"].betas]
    z = (own["energy"] - known) / own["error"]
    assert (np.abs(z) <= 4).all(), z
    assert (own["error"] < 0.02).all()


# spanning_any at p_c on open squares, and its slope over p_c -+ 0.05 / L: 8.0e6, 2.6e6 and 7.1e5
# samples a point, errors 0.0003, 0.0005 and 0.0010 (percolab, seed 77).
MEANS = {8: (0.54478, 6.625), 16: (0.47405, 13.324), 32: (0.43365, 25.778)}
BLOCKS, SAMPLES = 64, 157


def draw_study(rng: np.random.Generator, p_c: float) -> list[BlockMoments]:
    tasks = []
    for L, (value, slope) in MEANS.items():
        p = p_c + np.linspace(-0.15, 0.15, 7) / L
        probability = value + slope * (p - p_c)
        sums = rng.binomial(SAMPLES, probability, (BLOCKS, p.size)).astype(float)
        tasks.append(BlockMoments(L, p, np.full(BLOCKS, SAMPLES), {"spanning_any": sums}))
    return tasks


def test_open_ising_lattices_have_unbiased_pulls() -> None:
    known = critical_bond_probability("square", 2)
    assert known is not None
    chosen = choose_quantities(["spanning_any"], ["open"] * 2, ["spanning_any"])
    omega = spin_correction(2, 2, periodic=False, spans=True).value
    rng = np.random.default_rng(7)
    pulls = []
    for _ in range(40):
        moments, y_t = draw_study(rng, known.value), potts_exponents(2, 2)["1/nu"]
        fit = analyse_quantities(JointInput(moments, chosen, [omega], y_t))
        pulls.append((fit.threshold - known.value) / fit.threshold_error)
    assert abs(np.mean(pulls)) <= 4 * max(np.std(pulls, ddof=1), 1.0) / np.sqrt(len(pulls))
