"""The exact results that ``percolab validate`` compares with, found again in other ways."""

import cmath
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from cli_support import answer, stored
from helpers import EXACT_GRAPHS, EXACT_LATTICES, FLAT, exact, slow_but
from scipy.integrate import quad
from scipy.special import betainc, ellipk, ellipkm1

from percolab.analysis.theory.critical import (
    critical_probability,
    has_cubic_tori,
    is_isotropic,
    torus_modulus,
    torus_shape,
)
from percolab.analysis.theory.known_exponents import correction_exponent
from percolab.analysis.theory.planar import (
    CLUSTERS_PER_SITE,
    THRESHOLDS,
    _cross_ratios,
    crossing_probability,
    double_crossing_probability,
)
from percolab.analysis.theory.torus import excess_clusters, wrapping_probabilities
from percolab.api import fit, sweep
from percolab.figures.kinds import study_figure
from percolab.lattices.bethe import bethe_lattice
from percolab.lattices.lattice import BondClass, Lattice, lattice_names, load_lattice
from percolab.validation.critical import TORI
from percolab.validation.enumeration import count_configurations, mean_threshold

TAUS = [1j, 2j, 0.5j, 0.3 + 0.8j, cmath.exp(1j * math.pi / 3), 1j * math.sqrt(3)]
every_tau = pytest.mark.parametrize("tau", TAUS, ids=lambda tau: f"{tau:.3g}")


def test_wrapping_of_the_square_torus_is_that_of_newman_and_ziff():
    """Phys. Rev. Lett. 85, 4104 (2000); the last digit is uncertain, 1 - either is one cross."""
    found = wrapping_probabilities(1j)
    numbers = found.either, found.both, found.x_alone, found.x
    expected = 0.690473725, 0.351642855, 0.169415435, 0.521058290
    assert numbers == pytest.approx(expected, abs=2e-9)
    assert found.oblique == pytest.approx(0.042116580, abs=3e-9)
    assert found.one_alone == pytest.approx(2 * 0.169415435, abs=3e-9)


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


@pytest.mark.parametrize(
    ("functions", "shape", "message"),
    [
        *(
            ((wrapping_probabilities, excess_clusters), (tau,), "Im tau")
            for tau in (0.05j, 20j, 2 + 1j)
        ),
        *(
            ((crossing_probability, double_crossing_probability), shape, "aspect ratio")
            for shape in ((0.01,), (30,), (math.nan,), (0.01, 1.5), (30, 1.5), (math.nan, 1))
        ),
        *(
            ((crossing_probability, double_crossing_probability), (1, angle), "angle")
            for angle in (0.05, 3.1)
        ),
    ],
)
def test_a_shape_out_of_range_is_refused(functions, shape, message):
    for function in functions:
        with pytest.raises(ValueError, match=message):
            function(*shape)


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


OPEN, TORUS = ("open", "open"), ("periodic", "periodic")


def test_all_planar_lattices_but_the_trellis_are_symmetric():
    assert [name for name in FLAT if not is_isotropic(load_lattice(name))] == ["trellis"]


@pytest.mark.parametrize(
    ("name", "height"), [("square", 1.1), ("triangular", 1.0), ("honeycomb", 1.5), ("kagome", None)]
)
def test_a_lattice_that_is_drawn_askew_or_not_at_all_has_no_shape(name, height):
    vectors = ((1.0, 0.0), (0.0, height)) if height else ()
    lattice = replace(load_lattice(name), vectors=vectors)
    assert not is_isotropic(lattice)
    assert critical_probability(lattice, OPEN, "spanning_x") is None


def test_the_bonds_decide_and_not_the_sites_alone():
    # The snub square lattice with its diagonals all in one direction, at the same places.
    lattice = load_lattice("snub-square")
    kept = [bond for bond in lattice.bonds if abs(sum(bond.offset)) != 2]
    assert not is_isotropic(replace(lattice, bonds=tuple(kept)))


def test_bonds_are_looked_at_in_more_than_one_cell():
    # Without every second column: turned about a site of the others, one cell fits and most do not.
    points = frozenset({(0, 0), (1, 0)})
    rows, columns = BondClass((-1, 0), points), BondClass((0, -1), frozenset({(0, 0)}))
    comb = replace(load_lattice("square"), cell=(2, 1), bonds=(rows, columns))
    assert not is_isotropic(comb)
    assert is_isotropic(replace(comb, bonds=(rows, BondClass((0, -1), points))))


SPATIAL = [name for name in lattice_names() if load_lattice(name).dimension > 2]


def test_all_spatial_lattices_but_the_stacked_one_are_symmetric():
    alike = [name for name in SPATIAL if is_isotropic(load_lattice(name))]
    assert set(SPATIAL) - set(alike) == {"stacked-triangular"}
    assert [name for name in alike if has_cubic_tori(load_lattice(name))] == ["cubic"]


def test_bonds_along_one_diagonal_of_a_cube_make_its_axes_alike_and_not_its_directions():
    # Turns about that diagonal map the lattice onto itself, and the tori are cubes.
    cubic = load_lattice("cubic")
    diagonal = BondClass((-1, -1, -1), frozenset({(0, 0, 0)}))
    one = replace(cubic, bonds=(*cubic.bonds, diagonal))
    assert not is_isotropic(one)
    assert not has_cubic_tori(one)
    assert critical_probability(one, ("periodic",) * 3, "wrapping_any") is None
    signs = [(-1, -1, -1), (-1, -1, 1), (-1, 1, -1), (1, -1, -1)]
    every = [BondClass(offset, frozenset({(0, 0, 0)})) for offset in signs]
    assert has_cubic_tori(replace(cubic, bonds=(*cubic.bonds, *every)))


def test_symmetry_does_not_depend_on_the_cell_or_how_it_lies():
    # Diamond in cubes of eight sites, turned in space; and one with another height.
    corners = np.array([[0, 0, 0], [0, 2, 2], [2, 0, 2], [2, 2, 0]]) / 4
    sites = np.vstack([corners, corners + 0.25])
    bonds = []
    for n, k in np.ndindex(4, 4):
        for shift in np.ndindex(3, 3, 3):
            cell = np.array(shift) - 1
            away = sites[4 + k] + cell - sites[n]
            if np.isclose(away @ away, 3 / 16):
                bonds.append((n, 4 + k, cell.tolist()))
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    assert has_cubic_tori(Lattice.from_cell(turn, sites, bonds))
    assert not is_isotropic(Lattice.from_cell(np.diag([1, 1, 1.1]) @ turn, sites, bonds))


@pytest.mark.parametrize("scale", [1e-10, 1e-3, 1e6])
def test_symmetry_does_not_depend_on_the_unit_of_length(scale):
    for name in ("cubic", "diamond", "stacked-triangular", "honeycomb", "trellis"):
        item = load_lattice(name)
        shifts = tuple((at, tuple(scale * x for x in shift)) for at, shift in item.shifts)
        vectors = tuple(tuple(scale * x for x in vector) for vector in item.vectors)
        assert is_isotropic(replace(item, vectors=vectors, shifts=shifts)) == is_isotropic(item)


def test_sites_that_are_drawn_at_one_place_have_no_shape():
    bonds = [(0, 1, [0, 0]), (0, 0, [1, 0]), (1, 1, [0, 1])]
    assert not is_isotropic(Lattice.from_cell(np.eye(2), [[0, 0], [0, 0]], bonds))


def test_one_bond_that_is_missing_in_a_large_cell_breaks_the_symmetry():
    # Of 64 sites: six minutes were not enough when every site was tried for every turn.
    cubic = load_lattice("cubic")
    points = frozenset(np.ndindex(4, 4, 4))
    whole = [BondClass(bond.offset, points) for bond in cubic.bonds]
    large = replace(cubic, cell=(4, 4, 4), bonds=tuple(whole))
    assert has_cubic_tori(large)
    fewer = BondClass(cubic.bonds[0].offset, points - {(1, 2, 3)})
    assert not is_isotropic(replace(large, bonds=(fewer, *whole[1:])))


def test_tori_of_one_shape_are_alike_however_large_a_cell_is():
    wide = load_lattice("cubic").with_sides((1, 1, 2))
    assert np.allclose(torus_shape(wide), np.diag([1, 1, 4]) / 6)
    assert not has_cubic_tori(wide)
    assert np.allclose(torus_shape(load_lattice("fcc")), (np.eye(3) + 1) / 6)


@pytest.mark.parametrize("angle", [math.pi / 3, math.pi / 2, 2.0])
@pytest.mark.parametrize("ratio", [1.0, 1.5, 3.0])
def test_the_map_of_the_half_plane_gives_the_parallelogram(ratio, angle):
    a, (eta, other) = angle / math.pi, _cross_ratios(ratio, angle)
    assert eta + other == pytest.approx(1, abs=1e-12)

    def side(m):
        # From 0 to 1, by z = t^(1/a) up to 1/2 and alike from there, where it is regular.
        def near_0(s):
            t = s ** (1 / a)
            return (1 - t) ** -a * (1 - m * t) ** (a - 1) / a

        def near_1(s):
            t = 1 - s ** (1 / (1 - a))
            return t ** (a - 1) * (1 - m * t) ** (a - 1) / (1 - a)

        return quad(near_0, 0, 0.5**a)[0] + quad(near_1, 0, 0.5 ** (1 - a))[0]

    assert side(other) / side(eta) == pytest.approx(ratio, rel=1e-9)


def test_a_rhombus_is_crossed_in_every_second_sample():
    for angle in (1.0, math.pi / 2, 2 * math.pi / 3):
        assert crossing_probability(1.0, angle) == pytest.approx(0.5, abs=1e-12)
    # Leaning over makes it narrower, and brings two corners of its ends closer together.
    leaning = crossing_probability(2.0, math.pi / 3)
    assert crossing_probability(2 / math.sin(math.pi / 3)) < leaning < crossing_probability(2.0)
    assert crossing_probability(2.0, 2 * math.pi / 3) == pytest.approx(leaning, abs=1e-12)


def test_crossings_both_ways_are_those_of_watts_and_of_langlands():
    # Langlands, Pouliot and Saint-Aubin (1994), square: 0.3223, by simulation, errors of 1e-3.
    assert double_crossing_probability(1.0) == pytest.approx(0.3221, abs=5e-5)
    for ratio in (0.2, 1.0, 1.7, 6.0):
        both = double_crossing_probability(ratio)
        assert both == pytest.approx(double_crossing_probability(1 / ratio), abs=1e-12)
        assert 0 < both < min(crossing_probability(ratio), crossing_probability(1 / ratio))
    # Crossed the long way, a strip is crossed the short way too.
    assert double_crossing_probability(8.0) / crossing_probability(8.0) > 0.9999


def test_the_modulus_is_that_of_the_drawing():
    known = {
        "square": 1j,
        "honeycomb": math.sqrt(3) * 1j,
        "triangular": complex(-0.5, math.sqrt(0.75)),
        "kagome": complex(0.5, math.sqrt(0.75)),
        "four-eight": 2j,
        "three-twelve": 1.5 * complex(-0.5, math.sqrt(0.75)),
    }
    found = {name: torus_modulus(load_lattice(name)) for name in known}
    assert found == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "observable", "expected"),
    [
        ("square", "spanning_x", 0.5),
        ("triangular", "spanning_y", 0.5),
        # A brick is sqrt(3)/2 wide and 3/2 high: crossed along x it is wider than long.
        ("honeycomb", "spanning_x", crossing_probability(1 / math.sqrt(3))),
        ("honeycomb", "spanning_y", crossing_probability(math.sqrt(3))),
        ("honeycomb", "spanning_all", double_crossing_probability(math.sqrt(3))),
        ("square", "spanning_any", 1 - double_crossing_probability(1.0)),
        ("square", "wrapping_x", None),
        ("square", "clusters", None),
    ],
)
def test_open_lattices_have_the_crossings_of_their_shape(name, observable, expected):
    found = critical_probability(load_lattice(name), OPEN, observable)
    assert (found and found.value) == (expected and pytest.approx(expected, abs=1e-12))


def test_a_torus_has_pinsons_values():
    known = {"wrapping_x": 0.521058290, "wrapping_any": 0.690473725, "wrapping_all": 0.351642855}
    for name, value in known.items():
        found = critical_probability(load_lattice("square"), TORUS, name)
        assert found.value == pytest.approx(value, abs=2e-9)
        assert found.error == 0
        assert "Pinson" in found.reference
    assert critical_probability(load_lattice("square"), TORUS, "spanning_x") is None


def test_nothing_is_said_of_what_is_not_known():
    square = load_lattice("square")
    assert critical_probability(square, ("open", "periodic"), "spanning_x") is None
    assert critical_probability(square, ("open", "periodic"), "wrapping_y") is None
    assert critical_probability(load_lattice("cubic"), ("open",) * 3, "spanning_x") is None
    assert critical_probability(bethe_lattice("bethe:3"), ("shells",), "spanning") is None
    long = replace(square, per_size=(1, 40))
    assert critical_probability(long, OPEN, "spanning_x") is None
    assert critical_probability(long, TORUS, "wrapping_x") is None


def test_corrections_fall_by_dimension_and_boundary():
    known = {2: (2.0, 1.0), 3: (1.2, 1.0), 5: (0.72, 0.72), 7: (1.0, 1.0)}
    for dimension, omegas in known.items():
        found = [correction_exponent(dimension, periodic=torus).value for torus in (True, False)]
        assert tuple(found) == omegas


STUDIES = {
    "open": ("square", "open", [0.44 + 0.02 * k for k in range(7)]),
    "torus": ("square", "periodic", [0.44 + 0.02 * k for k in range(7)]),
    "bricks": ("honeycomb", "open", [0.6 + 0.02 * k for k in range(6)]),
    "sheared": ("triangular", "periodic", [0.29 + 0.02 * k for k in range(6)]),
    "cylinder": ("square", ("open", "periodic"), [0.44 + 0.02 * k for k in range(7)]),
}


@pytest.fixture(scope="module", params=slow_but(STUDIES, "bricks"))
def study(request):
    lattice, boundary, p = STUDIES[request.param]
    options = {"samples": 3000, "block_size": 100, "seed": 3, "device": "cpu", "workers": 1}
    return request.param, sweep(lattice, L=[8, 16, 32], p=p, boundary=boundary, **options)


def test_a_fit_agrees_with_theory_and_says_so(study, tmp_path):
    name, results = study
    estimate = fit(results)
    text = answer("fit", stored(tmp_path / "study.h5", results), "--bootstrap", 60)
    record = json.loads(answer("fit", tmp_path / "study.h5", "--bootstrap", 60, "--json"))
    omega = {"torus": 2.0, "sheared": 2.0}.get(name, 1.0)
    assert estimate.scaling.omega == record["omega"] == omega
    assert re.search(rf"^omega +{omega:g} ", text, re.MULTILINE)
    if name == "cylinder":
        assert record["known_probability"] is record["critical_probability_z"] is None
        assert "theory" not in text
        return
    known, z = record["known_probability"], record["critical_probability_z"]
    away = estimate.critical_probability - known["value"]
    assert z == pytest.approx(away / estimate.critical_probability_error)
    assert abs(z) <= 4
    # Small enough to distinguish x and y on bricks: 0.77 and 0.23.
    assert estimate.critical_probability_error < 0.07
    assert re.search(rf"^theory +{known['value']:.6g} ", text, re.MULTILINE)
    assert f"{z:+.1f} sigma" in text


@pytest.mark.slow
@pytest.mark.parametrize("study", ["bricks", "cylinder"], indirect=True)
def test_figures_and_reports_show_theory_too(study, tmp_path):
    name, results = study
    path = stored(tmp_path / "study.h5", results)
    numbers = json.loads(answer("plot", path, "--json", "--bootstrap", 60))
    known = numbers["fit"]["known_probability"]
    answer("report", path, "--bootstrap", 60)
    page = (tmp_path / "study.html").read_text()
    figure, _ = study_figure(results, fitted=lambda: fit(results))
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.texts if "formula" in text.get_text()]
    if name == "cylinder":
        assert known is None
        assert "formula" not in page
        assert not labels
        return
    assert known["value"] == pytest.approx(crossing_probability(math.sqrt(3)))
    # One row an observable: along x, along y, any, all.
    for value in (0.76746, 0.23254, 0.786441, 0.213559):
        assert f"<td>{value} (" in page
    assert "Watts, J. Phys. A 29, L363 (1996)" in page
    assert labels == ["0.2325 at $p_c$, Cardy's formula"]


def test_an_omega_that_is_given_is_used(study):
    _, results = study
    assert fit(results, omega=1.5).scaling.omega == 1.5
    assert fit(results, omega=1.5).omega_source == "given"


@pytest.mark.slow
def test_corrections_on_a_torus_fall_with_the_second_power():
    # At p_c = 1/2 exactly; amplitudes that agree at 4 and 8 differ by a factor of 2 if the power
    # were 1.
    amplitudes, errors = [], []
    theory = wrapping_probabilities(1j).either
    for size, samples in ((4, 400_000), (8, 200_000)):
        options = {"samples": samples, "block_size": 1000, "seed": 3, "device": "cpu", "workers": 1}
        results = sweep("square", L=[size], p=[0.5], boundary="periodic", **options)
        (item,) = results.tasks.values()
        mean = item.column("wrapping_any").sum() / samples
        amplitudes.append(size**2 * (mean - theory))
        errors.append(size**2 * math.sqrt(theory * (1 - theory) / samples))
    assert abs(amplitudes[0] - amplitudes[1]) <= 4 * np.hypot(*errors)
    assert amplitudes[0] > 10 * errors[0]
