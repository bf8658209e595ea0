"""The exact results that ``percolab validate`` compares with, found again in other ways."""

import cmath
import math

import pytest
from helpers import EXACT_GRAPHS, EXACT_LATTICES, exact
from scipy.integrate import quad
from scipy.special import betainc, ellipk, ellipkm1

from percolab.analysis.theory.planar import CLUSTERS_PER_SITE, THRESHOLDS, crossing_probability
from percolab.analysis.theory.torus import excess_clusters, wrapping_probabilities
from percolab.lattices.lattice import load_lattice
from percolab.validation.critical import TORI
from percolab.validation.enumeration import count_configurations, mean_threshold

TAUS = [1j, 2j, 0.5j, 0.3 + 0.8j, cmath.exp(1j * math.pi / 3), 1j * math.sqrt(3)]
every_tau = pytest.mark.parametrize("tau", TAUS, ids=lambda tau: f"{tau:.3g}")


def test_wrapping_of_the_square_torus_is_that_of_newman_and_ziff():
    """Phys. Rev. Lett. 85, 4104 (2000); the last digit is uncertain."""
    found = wrapping_probabilities(1j)
    numbers = found.either, found.both, found.x_alone, found.x
    expected = 0.690473725, 0.351642855, 0.169415435, 0.521058290
    assert numbers == pytest.approx(expected, abs=2e-9)


@every_tau
def test_a_torus_is_wrapped_or_by_duality_its_dual_is(tau):
    found = wrapping_probabilities(tau)
    # No cluster wraps as often as one does in two ways, and x, y and both add up.
    assert found.either + found.cross == pytest.approx(1, abs=1e-12)
    assert found.x + found.y == pytest.approx(found.either + found.both, abs=1e-12)
    assert found.x_alone + found.both == pytest.approx(found.x, abs=1e-12)


@every_tau
def test_a_torus_does_not_depend_on_the_choice_of_its_periods(tau):
    one, inverse, sheared = (wrapping_probabilities(t) for t in (tau, -1 / tau, _shifted(tau)))
    assert inverse.either == pytest.approx(one.either, abs=1e-12)
    assert (inverse.x, inverse.y) == pytest.approx((one.y, one.x), abs=1e-12)
    assert sheared.cross == pytest.approx(one.cross, abs=1e-12)
    for other in (-1 / tau, _shifted(tau)):
        assert excess_clusters(other) == pytest.approx(excess_clusters(tau), abs=1e-9)


def _shifted(tau):
    return tau - 1 if tau.real > 0 else tau + 1


def test_excess_clusters_of_square_and_triangular_torus_are_the_published_ones():
    # Ziff, Finch and Adamchik (1997) and Kleban and Ziff (1998).
    assert excess_clusters(1j) == pytest.approx(0.883576308, abs=1e-8)
    assert excess_clusters(TORI["triangular"]) == pytest.approx(0.878290117, abs=1e-8)


def test_tori_have_the_shape_that_the_lattices_are_drawn_with():
    for name, tau in TORI.items():
        x, y = (complex(*vector) for vector in load_lattice(name).vectors)
        assert y / x == pytest.approx(tau, abs=1e-12)


@pytest.mark.parametrize("tau", [0.05j, 20j, 2 + 1j])
def test_a_torus_out_of_range_is_refused(tau):
    for function in (wrapping_probabilities, excess_clusters):
        with pytest.raises(ValueError, match="Im tau"):
            function(tau)


def free_energy(q, ratio, factor):
    """Return Baxter's critical free energy a site of the q-state Potts model, by quadrature."""
    mu = math.acos(math.sqrt(q) / 2)

    def term(x):
        numerator = math.sinh((math.pi - mu) * x) * math.sinh(ratio * mu * x)
        return numerator / (x * math.sinh(math.pi * x) * math.cosh(mu * x))

    return math.log(q) / 2 + factor * quad(term, 1e-12, 60, epsabs=1e-13, epsrel=1e-13)[0]


# By lattice: ratio and factor of the integral, v on the critical line, bonds a site.
def _triangular(q):
    return 2 * math.cos(2 / 3 * math.acos(math.sqrt(q) / 2)) - 1


POTTS = {"square": (1, 2, math.sqrt, 2), "triangular": (2 / 3, 3, _triangular, 3)}


@pytest.mark.parametrize("name", POTTS)
def test_clusters_per_site_are_the_derivative_of_baxters_free_energy(name):
    ratio, factor, weight, bonds = POTTS[name]
    v, h = weight(1), 1e-3
    # At q = 1 the partition function is (1 + v)^bonds, and v belongs to p_c.
    assert free_energy(1, ratio, factor) == pytest.approx(bonds * math.log1p(v), abs=1e-10)
    assert v / (1 + v) == pytest.approx(THRESHOLDS[name, "bond"], abs=1e-12)

    def slope(function):
        # Central differences of fourth order.
        one, two = (function(1 + k * h) - function(1 - k * h) for k in (1, 2))
        return (8 * one - two) / (12 * h)

    energy = slope(lambda q: free_energy(q, ratio, factor))
    found = energy - bonds * slope(weight) / (1 + v)
    assert found == pytest.approx(CLUSTERS_PER_SITE[name], abs=1e-9)


def test_honeycomb_by_duality_is_honeycomb_by_star_and_triangle():
    # A star in place of every second triangle connects its corners alike, and leaves its centre
    # alone when all three bonds are closed: 2 n_honeycomb = n_triangular + p^3.
    p = THRESHOLDS["triangular", "bond"]
    both = CLUSTERS_PER_SITE["triangular"] + p**3
    assert 2 * CLUSTERS_PER_SITE["honeycomb"] == pytest.approx(both, abs=1e-14)
    assert 1 - 3 * p + p**3 == pytest.approx(0, abs=1e-15)


def test_thresholds_are_those_of_the_lattice_files():
    for (lattice_name, model), value in THRESHOLDS.items():
        assert load_lattice(lattice_name).threshold(model).value == pytest.approx(value)


@pytest.mark.parametrize("ratio", [1.0, 1.3, 2.0, 5.0])
def test_a_rectangle_is_crossed_one_way_or_its_dual_the_other(ratio):
    assert crossing_probability(ratio) + crossing_probability(1 / ratio) == pytest.approx(1)
    for aspect_ratio in (ratio, 1 / ratio):
        found = crossing_probability(aspect_ratio)
        assert found == pytest.approx(_carleson(aspect_ratio), abs=1e-12)


def _carleson(aspect_ratio):
    """Cardy's formula in Carleson's form: a fraction of the side of an equilateral triangle.

    The rectangle's cross-ratio is found by bisection of K(1 - eta) / K(eta) = aspect ratio.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        eta = (low + high) / 2
        low, high = (eta, high) if ellipkm1(eta) / ellipk(eta) > aspect_ratio else (low, eta)
    return betainc(1 / 3, 1 / 3, eta)


def test_a_long_rectangle_is_crossed_with_the_boundary_exponent_one_third():
    decay = math.log(crossing_probability(9) / crossing_probability(10))
    assert decay == pytest.approx(math.pi / 3, abs=1e-9)
    for ratio in (0.01, 30, math.nan):
        with pytest.raises(ValueError, match="aspect ratio"):
            crossing_probability(ratio)


FEW = [name for name in (*EXACT_LATTICES, *EXACT_GRAPHS) if exact(name)["E"] <= 13]


@pytest.mark.parametrize("name", FEW)
def test_counts_of_all_sets_of_open_bonds_are_the_enumerations(name):
    known = exact(name)
    bonds = [tuple(bond[:2]) for bond in known["edges"]]
    ends = [(known["source"], known["target"])] if known["source"] else []
    clusters, squares, *spanning = count_configurations(known["V"], bonds, ends)
    assert list(clusters) == known["clusters"]
    assert list(squares) == known["sum_s2"]
    for counts in spanning:
        assert list(counts) == known["n_span"]
        mean = known["derived_float"]["mean_spanning_threshold"]
        assert mean_threshold(counts) == pytest.approx(mean, abs=1e-14)
