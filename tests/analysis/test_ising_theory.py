"""Exact results of the Ising and Potts models, found again in other ways."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from percolab.analysis.theory.ising import (
    CRITICAL_COUPLING,
    ising_energy,
    ising_magnetization,
    ising_specific_heat,
    ising_torus,
)
from percolab.analysis.theory.planar import THRESHOLDS
from percolab.analysis.theory.potts import (
    EVEN_SUBGRAPHS,
    critical_bond_probability,
    critical_point,
    potts_exponents,
)
from percolab.lattices.lattice import load_lattice

COUPLINGS = [0.01, 0.2, 0.43, CRITICAL_COUPLING, CRITICAL_COUPLING + 1e-9, 0.46, 1.0, 3.0]


def enumerated(length_x, length_y, coupling):
    """Return ln Z / N, energy and specific heat from all states of a torus."""
    sites = length_x * length_y
    spins = 1 - 2 * (np.arange(2**sites)[:, None] >> np.arange(sites) & 1)
    spins = spins.reshape(-1, length_x, length_y)
    products = sum((spins * np.roll(spins, 1, axis)).sum((1, 2)) for axis in (1, 2))
    weights = np.exp(coupling * (products - 2 * sites))
    total = weights.sum()
    mean = (weights * products).sum() / total
    variance = (weights * (products - mean) ** 2).sum() / total
    log_partition = math.log(total) + 2 * sites * coupling
    return log_partition / sites, -mean / sites, coupling**2 * variance / sites


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 3), (3, 4), (4, 3), (4, 4)])
def test_torus_is_that_of_all_its_states(shape, coupling):
    found = ising_torus(*shape, coupling)
    expected = enumerated(*shape, coupling)
    assert (found.log_partition, found.energy, found.specific_heat) == pytest.approx(
        expected, abs=1e-12, rel=1e-12
    )


@pytest.mark.parametrize("coupling", [0.1, 0.3, 0.42, 0.46, 0.6, 2.0])
@pytest.mark.parametrize("length", [1024, 4096])
def test_large_torus_is_the_infinite_lattice(length, coupling):
    found = ising_torus(length, length, coupling)
    assert found.energy == pytest.approx(ising_energy(coupling), abs=1e-13)
    assert found.specific_heat == pytest.approx(ising_specific_heat(coupling), abs=1e-12)


@pytest.mark.parametrize("shape", [(64, 48), (4096, 4096), (3, 1000)])
@pytest.mark.parametrize("apart", [-0.01, -1e-7, 0.0, 1e-7, 0.01])
def test_derivatives_are_those_of_the_logarithm_of_the_partition_function(shape, apart):
    # The scale on which ln Z varies is 1 / L; central differences are good to about 1e-5.
    coupling, step = CRITICAL_COUPLING + apart, 0.02 / max(shape)
    below, here, above = (ising_torus(*shape, coupling + n * step) for n in (-1, 0, 1))
    slope = (above.log_partition - below.log_partition) / (2 * step)
    assert here.energy == pytest.approx(-slope, abs=1e-5)
    heat = -(coupling**2) * (above.energy - below.energy) / (2 * step)
    assert here.specific_heat == pytest.approx(heat, rel=2e-4)


def test_a_torus_is_the_same_along_either_axis():
    assert ising_torus(7, 300, 0.44) == ising_torus(300, 7, 0.44)
    # Elongated, it is a long strip: its free energy does not depend on the length any more.
    strip, longer = ising_torus(8, 3000, 0.44), ising_torus(8, 4000, 0.44)
    assert strip.log_partition == pytest.approx(longer.log_partition, abs=1e-12)


def test_specific_heat_of_the_critical_torus_grows_as_the_logarithm_of_the_size():
    # Onsager's amplitude, 8 K_c^2 / pi; corrections fall as 1 / n.
    heat = [ising_torus(n, n, CRITICAL_COUPLING).specific_heat for n in (1024, 2048, 4096)]
    slopes = np.diff(heat) / math.log(2)
    amplitude = 8 * CRITICAL_COUPLING**2 / math.pi
    assert 2 * slopes[1] - slopes[0] == pytest.approx(amplitude, abs=1e-6)


def test_specific_heat_has_its_maximum_near_the_critical_point():
    # Ferdinand and Fisher (1969): the maximum of an n x n torus is at T / T_c - 1 = 0.3603 / n.
    size = 1024
    at = minimize_scalar(
        lambda coupling: -ising_torus(size, size, coupling).specific_heat,
        bounds=(CRITICAL_COUPLING * (1 - 2 / size), CRITICAL_COUPLING),
        method="bounded",
        options={"xatol": 1e-8},
    ).x
    assert size * (CRITICAL_COUPLING / at - 1) == pytest.approx(0.3603, abs=2e-3)


def test_energy_of_the_critical_torus_falls_as_the_size():
    # Ferdinand and Fisher (1969): E = -sqrt(2) - 2 t2 t3 t4 / (t2 + t3 + t4) / n at T_c, up to
    # n^-3, with the theta constants of the nome exp(-pi).
    numbers = np.arange(-6, 7)
    t2, t3 = (np.exp(-math.pi * (numbers + shift) ** 2).sum() for shift in (0.5, 0.0))
    t4 = ((-1.0) ** numbers * np.exp(-math.pi * numbers**2)).sum()
    for size in (512, 2048):
        rest = ising_torus(size, size, CRITICAL_COUPLING).energy + math.sqrt(2)
        assert size * rest == pytest.approx(-2 * t2 * t3 * t4 / (t2 + t3 + t4), abs=3e-6)


@pytest.mark.parametrize("coupling", [0.1, 0.3, 0.43, 0.4406])
def test_infinite_lattice_obeys_duality(coupling):
    # ln Z(K) / N = ln sinh 2K + ln Z(K*) / N with sinh 2K sinh 2K* = 1, differentiated once, twice.
    dual = math.asinh(1 / math.sinh(2 * coupling)) / 2
    slope = -1 / math.sinh(2 * coupling)
    bend = 2 * math.cosh(2 * coupling) / math.sinh(2 * coupling) ** 2
    energy = -2 / math.tanh(2 * coupling) + slope * ising_energy(dual)
    assert ising_energy(coupling) == pytest.approx(energy, abs=1e-12)
    heat = ising_specific_heat(dual) / dual**2 * slope**2 - ising_energy(dual) * bend
    heat -= 4 / math.sinh(2 * coupling) ** 2
    assert ising_specific_heat(coupling) == pytest.approx(coupling**2 * heat, abs=1e-10)


def test_infinite_lattice_at_its_critical_point_and_far_from_it():
    assert ising_energy(CRITICAL_COUPLING) == pytest.approx(-math.sqrt(2), abs=1e-14)
    assert ising_specific_heat(CRITICAL_COUPLING) > 15
    assert ising_magnetization(CRITICAL_COUPLING - 1e-12) == 0
    # Lowest order: flipping one spin costs 8 K, and weakly coupled bonds have tanh K.
    assert ising_magnetization(2.0) == pytest.approx(1 - 2 * math.exp(-16), abs=1e-9)
    assert ising_energy(1e-3) == pytest.approx(-2e-3, rel=1e-5)
    assert ising_energy(5.0) == pytest.approx(-2 + 8 * math.exp(-40), abs=1e-14)


@pytest.mark.parametrize("coupling", [0.0, -0.4, math.nan, math.inf])
def test_couplings_that_are_none_are_refused(coupling):
    for function in (ising_energy, ising_specific_heat, ising_magnetization):
        with pytest.raises(ValueError, match="coupling"):
            function(coupling)
    with pytest.raises(ValueError, match="coupling"):
        ising_torus(4, 4, coupling)
    with pytest.raises(ValueError, match="lengths"):
        ising_torus(0, 4, 0.4)


@pytest.mark.parametrize("coupling", [1e-6, 100.0])
def test_extreme_couplings_are_evaluated(coupling):
    found = ising_torus(64, 64, coupling)
    assert found.energy == pytest.approx(-2 * math.tanh(coupling), abs=1e-9)
    assert abs(found.specific_heat) < 1e-9
    assert ising_energy(coupling) == pytest.approx(-2 * math.tanh(coupling), abs=1e-9)


@pytest.mark.parametrize("q", [1, 2, 3, 4, 10, 256])
def test_critical_points_are_dual(q):
    square, triangle, star = (
        math.expm1(critical_point(name, q).value) for name in ("square", "triangular", "honeycomb")
    )
    assert square**2 == pytest.approx(q, rel=1e-13)
    assert triangle * star == pytest.approx(q, rel=1e-13)
    # The star-triangle relation: at the critical point of the triangular lattice a star of three
    # bonds v* = q / v, its middle site summed over, is a triangle of bonds v.
    apart, pair, alike = 3 * star + q, star**2 + 3 * star + q, (star + 1) ** 3 + q - 1
    assert pair / apart == pytest.approx(1 + triangle, rel=1e-12)
    assert alike / apart == pytest.approx((1 + triangle) ** 3, rel=1e-12)


@pytest.mark.parametrize("lattice", ["square", "triangular", "honeycomb"])
def test_one_state_is_bond_percolation(lattice):
    known = critical_bond_probability(lattice, 1)
    assert known.value == pytest.approx(THRESHOLDS[lattice, "bond"], abs=1e-14)


def even_subgraphs(lattice):
    """Return the polynomial of the critical point of q = 2 from the bonds of one cell.

    Coefficient n: even subgraphs with n bonds that wind an even number of times around the cell on
    a torus in both directions, less the others.
    """
    cell, sites, ends = lattice.cell, {}, []
    for bond in lattice.bonds:
        for point in bond.at:
            target = [x + step for x, step in zip(point, bond.offset)]
            own = tuple(x % n for x, n in zip(target, cell))
            winds = [x // n & 1 for x, n in zip(target, cell)]
            i, j = (sites.setdefault(s, 1 << (len(sites) + 2)) for s in (tuple(point), own))
            ends.append((i ^ j) | winds[0] | winds[1] << 1)
    chosen = np.arange(2 ** len(ends))
    parity = np.zeros_like(chosen)
    for bond, end in enumerate(ends):
        parity ^= np.where(chosen >> bond & 1, end, 0)
    number = np.bitwise_count(chosen)
    counts = [np.bincount(number[parity == w], minlength=len(ends) + 1) for w in range(4)]
    return 2 * counts[0] - sum(counts)


@pytest.mark.parametrize("name", ["square", "triangular", "honeycomb", *EVEN_SUBGRAPHS])
def test_critical_coupling_is_the_root_of_the_even_subgraphs_of_one_cell(name):
    found = even_subgraphs(load_lattice(name))
    if name in EVEN_SUBGRAPHS:
        assert np.trim_zeros(found, "b").tolist() == list(EVEN_SUBGRAPHS[name])
    x = math.tanh(critical_point(name, 2).value / 2)
    assert np.polynomial.polynomial.polyval(x, found) == pytest.approx(0, abs=1e-13)
    inside = np.polynomial.polynomial.polyval(np.linspace(0, 1, 1001), found)
    assert np.count_nonzero(np.diff(np.sign(inside))) == 1


def test_critical_couplings_are_the_closed_forms():
    """C. Domb, Adv. Phys. 9, 149 (1960); I. Syozi, Phase Transitions and Critical Phenomena 1."""
    closed = {
        "square": math.log(1 + math.sqrt(2)) / 2,
        "triangular": math.log(3) / 4,
        "honeycomb": math.log(2 + math.sqrt(3)) / 2,
        "kagome": math.log(3 + 2 * math.sqrt(3)) / 4,
        "trellis": math.log(2) / 2,
    }
    known = {name: critical_point(name, 2) for name in closed}
    assert {name: item.value / 2 for name, item in known.items()} == pytest.approx(
        closed, abs=1e-14
    )
    assert not any(item.error for item in known.values())


def test_numerical_critical_points_have_errors_and_sources():
    cubic = critical_point("cubic", 2)
    assert (cubic.value, cubic.error) == pytest.approx((2 * 0.221654626, 2 * 5e-9))
    assert "2018" in cubic.reference
    bcc = critical_point("bcc", 2)
    assert (bcc.value, bcc.error) == pytest.approx((2 * 0.1573725, 2 * 1e-6))
    assert "first order" in critical_point("cubic", 3).expression
    p = critical_bond_probability("cubic", 2)
    assert p.value == pytest.approx(1 - math.exp(-2 * 0.221654626))
    assert p.error == pytest.approx(math.exp(-0.4433) * 1e-8, rel=1e-3)
    for unknown in (("cubic", 4), ("kagome", 3), ("square-nnn", 2), ("bcc", 3)):
        assert critical_point(*unknown) is None
        assert critical_bond_probability(*unknown) is None
    assert critical_point("fcc", 2) is None
    with pytest.raises(ValueError, match="q = 0"):
        critical_point("square", 0)


def test_exponents_in_the_plane():
    known = {1: (3 / 4, 91 / 48), 2: (1, 15 / 8), 3: (6 / 5, 28 / 15), 4: (3 / 2, 15 / 8)}
    found = {q: potts_exponents(2, q) for q in known}
    assert {q: (own["1/nu"].value, own["d_f"].value) for q, own in found.items()} == known


@pytest.mark.parametrize(("dimension", "q"), [(2, 2), (2, 3), (2, 4), (3, 2)])
def test_exponents_obey_their_relations(dimension, q):
    found = {name: known.value for name, known in potts_exponents(dimension, q).items()}
    assert 2 * found["beta/nu"] + found["gamma/nu"] == pytest.approx(dimension)
    assert found["d_f"] + found["beta/nu"] == pytest.approx(dimension)
    # Rushbrooke's alpha + 2 beta + gamma = 2, and the sizes of clusters.
    alpha = found["alpha/nu"] + 2 * found["beta/nu"] + found["gamma/nu"]
    assert alpha == pytest.approx(2 * found["1/nu"])
    assert found["tau"] == pytest.approx(1 + dimension / found["d_f"])


def test_exponents_are_given_of_continuous_transitions_alone():
    assert potts_exponents(2, 5) == potts_exponents(3, 3) == potts_exponents(4, 2) == {}
    assert 1 / potts_exponents(3, 2)["1/nu"].value == pytest.approx(0.62997098, abs=2e-7)
