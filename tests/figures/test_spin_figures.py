"""Figures of spins tell the stored numbers, against the temperature of their convention."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, refusal, stored
from helpers import slow_but

from percolab import AnalysisError, InputError, fit, plot, sweep
from percolab.analysis.spin_fit import fit_spins
from percolab.analysis.stored_spins import (
    compute_correlation_lengths,
    compute_thermodynamics,
    list_spin_tasks,
)
from percolab.analysis.theory.ising import ising_torus
from percolab.analysis.value import format_with_error
from percolab.figures.kinds import StudyFigures, study_figure
from percolab.figures.report import report_page
from percolab.lattices.lattice import lattice_from_text, load_lattice

THERMAL = ("energy", "specific_heat", "order", "susceptibility", "binder")
OF_SPINS = {*THERMAL, "autocorrelation", "tau", "histogram"}


@cache
def ising():
    """Return chains around T_c, with all that is measured; only to be read."""
    return sweep(
        "square", model="ising", L=[8, 12, 16], boundary="periodic", device="cpu",
        K=[0.42, 0.43, 0.4407, 0.45, 0.46], burn_in=40, sweeps=240, samples=6000,
        measure=["sizes", "series"],
    )  # fmt: skip


@cache
def potts():
    """Return chains of first order, at a single temperature and without series."""
    return sweep(
        "square", model="potts:q=10", L=[8, 16], boundary="periodic", device="cpu",
        beta=[1.42], burn_in=2, sweeps=42, samples=800,
    )  # fmt: skip


@cache
def correlated(boundary="periodic", model="ising"):
    """Return short chains with structure factors; only to be read."""
    return sweep(
        "square", model=model, L=[4, 6], boundary=boundary, device="cpu", measure=["correlation"],
        p=[0.0, 0.5, 0.5858, 0.7], burn_in=10, sweeps=40, samples=360,
    )  # fmt: skip


def numbers_of(results, kind):
    return study_figure(results, kind=kind, fitted=lambda: fit(results))[1]


@pytest.mark.parametrize(
    ("boundary", "told"),
    [("periodic", "square, periodic"), ("open", "square, open sides"),
     ("open,periodic", "square, periodic along y")],
)  # fmt: skip
def test_titles_of_spins_tell_the_sides(boundary, told):
    options = {"burn_in": 2, "sweeps": 6, "samples": 40, "device": "cpu"}
    results = sweep("square", model="ising", L=[4], T=[2.3], boundary=boundary, **options)
    assert numbers_of(results, "energy")["title"] == f"Ising model, {told}"


@pytest.mark.slow
def test_all_kinds_of_spins_are_drawn_and_those_of_independent_samples_say_why_not():
    figures = StudyFigures(ising(), lambda: fit(ising()))
    assert set(figures.kinds()) == OF_SPINS | {"clusters", "wrapping", "sizes"}
    for kind in ("curves", "drift", "collapse"):
        assert "sweeps are not" in figures.problem(kind)


def test_kinds_of_spins_say_that_percolation_has_none():
    results = sweep("square", L=[8], p=[0.5], samples=20, device="cpu")
    figures = StudyFigures(results, lambda: fit(results))
    assert {figures.problem(kind) for kind in (*OF_SPINS, "correlation_length")} == {
        "sites have no spins (--model ising)"
    }


@pytest.mark.parametrize(
    "kind", slow_but(sorted(OF_SPINS), "autocorrelation", "tau", "histogram", "order")
)
def test_every_number_drawn_is_json(kind):
    json.dumps(numbers_of(ising(), kind), allow_nan=False)


@pytest.mark.parametrize("kind", slow_but(THERMAL, "order"))
def test_curves_are_the_thermal_means_against_temperature(kind):
    drawn = numbers_of(ising(), kind)["panels"]
    if kind == "binder":
        assert [panel["quantity"] for panel in drawn] == ["binder", "improved_binder"]
    for panel in drawn:
        for curve, known in zip(panel["curves"], compute_thermodynamics(ising()), strict=True):
            assert curve["L"] == known.L
            np.testing.assert_allclose(curve["temperature"], 1 / known.coupling)
            np.testing.assert_array_equal(curve["values"], known.values[panel["quantity"]])
            np.testing.assert_array_equal(curve["errors"], known.errors[panel["quantity"]])


def test_correlation_lengths_are_drawn_over_l_along_every_periodic_axis():
    drawn = numbers_of(correlated(), "correlation_length")
    json.dumps(drawn, allow_nan=False)
    items = list_spin_tasks(correlated())
    assert [panel["quantity"][-1] for panel in drawn["panels"]] == ["x", "y"]
    for axis, panel in enumerate(drawn["panels"]):
        for curve, item in zip(panel["curves"], items, strict=True):
            values, errors = (found[axis] for found in compute_correlation_lengths(item))
            # Without the infinite temperature of p = 0, and where a length is no number.
            kept = np.isfinite(values) & (np.array(item.task.p) > 0)
            assert kept.sum() >= 2
            assert curve["L"] == item.task.size
            np.testing.assert_array_equal(curve["values"], values[kept] / item.task.size)
            np.testing.assert_array_equal(curve["errors"], errors[kept] / item.task.size)
            temperature = -2 / np.log1p(-np.array(item.task.p)[kept])
            np.testing.assert_allclose(curve["temperature"], temperature)
            # Longer at lower temperatures.
            assert (np.diff(curve["temperature"]) < 0).all()
            assert (np.diff(curve["values"]) > 0).all()


@pytest.mark.slow
def test_what_the_correlation_length_is_at_criticality_is_drawn_of_the_ising_torus_alone():
    def dotted(*given):
        results = correlated(*given)
        found = study_figure(results, kind="correlation_length", fitted=lambda: fit(results))
        lines = [line for axes in found[0].axes for line in axes.get_lines()]
        levels = [line.get_ydata()[0] for line in lines if line.get_linestyle() == ":"]
        return len(found[1]["panels"]), levels

    assert dotted() == (2, [0.9050488292] * 2)
    assert dotted("open,periodic") == (1, [])
    assert dotted("periodic", "potts:q=3") == (2, [])


def test_correlation_lengths_that_were_not_measured_are_told_how():
    figures = StudyFigures(ising(), lambda: fit(ising()))
    output = "no structure factors: sweep with --measure correlation"
    assert figures.problem("correlation_length") == output
    assert "correlation_length" in StudyFigures(correlated(), lambda: fit(correlated())).kinds()


def test_exact_curves_are_those_of_the_torus_and_of_the_infinite_lattice():
    (panel,) = numbers_of(ising(), "energy")["panels"]
    assert [curve["L"] for curve in panel["exact"]] == [8, 12, 16, None]
    known = ising_torus(12, 12, 1 / panel["exact"][1]["temperature"][7]).energy
    assert panel["exact"][1]["values"][7] == pytest.approx(known)
    for curve in panel["curves"]:
        z = (np.array(curve["values"]) - curve["exact"]) / curve["errors"]
        assert (np.abs(z) <= 4).all()
    (panel,) = numbers_of(ising(), "order")["panels"]
    assert [curve["L"] for curve in panel["exact"]] == [None]


def test_what_is_exact_is_not_drawn_beside_another_lattice_of_the_same_name():
    text = load_lattice("triangular").source.replace('name = "triangular"', 'name = "square"')
    results = sweep(
        lattice_from_text(text, where="here"), model="ising", L=[8], boundary="periodic",
        K=[0.25, 0.3], burn_in=5, sweeps=25, samples=80, device="cpu",
    )  # fmt: skip
    numbers = numbers_of(results, "energy")
    assert numbers["panels"][0]["exact"] == []
    assert numbers["critical_temperature"] is None


def test_the_critical_temperature_is_in_the_convention_of_the_model():
    critical = [numbers_of(each, "order")["critical_temperature"] for each in (ising(), potts())]
    assert critical[0]["threshold"] == pytest.approx(2 / np.log1p(2**0.5))
    assert critical[1]["threshold"] == pytest.approx(1 / np.log1p(10**0.5))


@pytest.mark.slow
def test_a_single_temperature_is_drawn_against_l():
    figure, _ = study_figure(potts(), kind="energy", fitted=lambda: fit(potts()))
    axes = figure.axes[0]
    assert axes.get_xlabel() == "$L$"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["8", "16"]
    figure, _ = study_figure(ising(), kind="order", fitted=lambda: fit(ising()))
    assert "1/K" in figure.axes[0].get_xlabel()


def test_spins_at_zero_temperature_are_studied_as_others_are():
    results = sweep(
        "square", model="ising", L=[4, 6], p=[0.5, 1], samples=200, measure="series", device="cpu"
    )
    with pytest.raises(AnalysisError):
        fit(results)
    energies = numbers_of(results, "energy")["panels"][0]
    # All bonds are satisfied, and the exact curve begins at the temperature zero.
    assert [curve["values"][-1] for curve in energies["curves"]] == pytest.approx([-1.5, -5 / 3])
    assert energies["exact"][0]["temperature"][0] > 0
    assert numbers_of(results, "autocorrelation")


@pytest.mark.slow
def test_the_overview_of_spins_is_their_binder_ratio():
    path = stored(Path("results.h5"), ising())
    output = json.loads(answer("plot", path, "--json"))
    assert output["kind"] == "binder"
    assert Path("results.png").exists()
    value, error = output["fitted_temperature"]
    assert abs(value - 2 / np.log1p(2**0.5)) < 4 * error < 0.2


def test_chains_that_know_their_start_are_noted():
    # Of a strong first-order transition, with two sweeps of burn-in.
    numbers = numbers_of(potts(), "energy")
    (note,) = numbers["notes"]
    text = "depend on their start"
    assert text in note
    assert not any(text in each for each in numbers_of(ising(), "energy")["notes"])


def test_wrapping_has_errors_of_chains_and_no_theory_of_percolation():
    panels = numbers_of(ising(), "wrapping")["panels"]
    for panel in panels:
        assert panel["theory"] is None
        for curve, item in zip(panel["curves"], ising().tasks.values(), strict=True):
            means = item.column(panel["observable"]) / item.task.block_size
            expected = means.std(axis=0, ddof=1) / len(means) ** 0.5
            np.testing.assert_allclose(curve["errors"], expected)
            np.testing.assert_allclose(np.subtract(curve["high"], curve["low"]), 2 * expected)


def test_the_first_figure_of_open_random_clusters_is_where_they_span_with_the_fit():
    results = sweep(
        "square", model="random-cluster:q=2.5", L=[4, 6, 8], device="cpu", burn_in=20, sweeps=50,
        p=[0.5, 0.58, 0.6, 0.62, 0.64, 0.75], samples=2000,
    )  # fmt: skip
    figure, numbers = study_figure(results, fitted=lambda: fit(results))
    assert (numbers["kind"], len(figure.axes)) == ("wrapping", 4)
    spans = {f"spanning_{way}" for way in ("x", "y", "any", "all")}
    assert {panel["observable"] for panel in numbers["panels"]} == spans
    found = fit_spins(results)
    assert numbers["fitted_threshold"] == [found.threshold, found.threshold_error]
    (label,) = [text.get_text() for text in figure.legends[0].texts if "fit of all" in str(text)]
    assert format_with_error(found.threshold, found.threshold_error) in label
    # Of an open percolation study nothing wraps, and curves show where it spans.
    percolation = sweep("square", L=[4], p=[0.5], samples=20, device="cpu")
    figures = StudyFigures(percolation, lambda: fit(percolation))
    assert figures.problem("wrapping") == "no axis is periodic"


@pytest.mark.parametrize("ends", [{}, {"source": 0, "target": 2}], ids=["clusters", "ends"])
@pytest.mark.parametrize("model", ["ising", "random-cluster:q=2.5"])
def test_spins_of_a_graph_have_figures_and_a_page(tmp_path, model, ends):
    results = sweep(
        graph=[(0, 1), (1, 2), (2, 3), (3, 0)], model=model, p=[0.5, 0.6], burn_in=10, samples=100,
        device="cpu", **ends,
    )  # fmt: skip
    assert results.plot(kind="maxima").numbers["kind"] == "maxima"
    usual = "binder" if model == "ising" else "wrapping" if ends else "maxima"
    assert results.plot().numbers["kind"] == usual
    results.report(tmp_path / "page.html")
    assert "maxima" in (tmp_path / "page.html").read_text()


def test_autocorrelations_are_of_the_largest_size_at_the_transition():
    numbers = numbers_of(ising(), "autocorrelation")
    assert numbers["L"] == 16
    assert numbers["temperature"] == pytest.approx(1 / 0.4407)
    for curve in numbers["curves"]:
        assert curve["correlation"][0] == 1
        tau = 0.5 + sum(curve["correlation"][1 : curve["autocorrelation"]["window"] + 1])
        assert tau == pytest.approx(curve["autocorrelation"]["tau"])


def test_times_of_every_size_are_drawn_with_z():
    numbers = numbers_of(ising(), "tau")
    for curve in numbers["curves"]:
        assert [point["L"] for point in curve["points"]] == [8, 12, 16]
        assert all(point["tau"] > 1 and point["complete"] for point in curve["points"])
        # Swendsen and Wang's z is about 0.2 to 0.35.
        assert abs(curve["fit"]["z"] - 0.25) < 4 * curve["fit"]["error"]
    # That of percolab fit, of times at its T_c, between two temperatures.
    found = fit(ising())
    (z,) = (each for each in found.exponents if each.name == "z")
    energy = numbers["curves"][0]
    assert (energy["fit"]["z"], energy["fit"]["error"]) == (z.value, z.error)
    assert {point["temperature"] for point in energy["points"]} == {found.temperature[0]}
    figure = plot(ising(), kind="tau")
    assert f"k_B T / J$ = {found.temperature[0]:.6g}" in figure.texts[0].get_text()


def test_exponents_of_the_order_parameter_are_those_of_y_h():
    found = {each.name: each.result for each in fit(ising()).exponents}
    y_h, beta, gamma = (found[name] for name in ("y_h", "beta/nu", "gamma/nu"))
    assert beta.value == pytest.approx(2 - y_h.value)
    assert gamma.value == pytest.approx(2 * y_h.value - 2)
    assert (beta.error, gamma.error) == pytest.approx((y_h.error, 2 * y_h.error))
    assert abs(beta.value - 1 / 8) < 4 * beta.error
    ising().save("exponents.h5")
    assert "has y_t = 1/nu, y_h, beta/nu" in refusal("fit", "exponents.h5", "--exponents")


def test_lower_bounds_of_times_make_no_z():
    numbers = numbers_of(potts(), "tau")
    for curve in numbers["curves"]:
        assert not any(point["complete"] for point in curve["points"])
        assert curve["fit"] is None


def test_histograms_integrate_to_one_and_have_the_mean_energy():
    numbers = numbers_of(ising(), "histogram")
    for curve, known in zip(numbers["curves"], compute_thermodynamics(ising()), strict=True):
        energy, density = np.array(curve["energy"]), np.array(curve["density"])
        width = abs(energy[1] - energy[0])
        assert density.sum() * width == pytest.approx(1)
        at = known.p.tolist().index(curve["p"])
        mean = (density * energy).sum() * width
        assert mean == pytest.approx(known.values["energy"][at], abs=width)


def test_a_figure_is_refused_with_its_reason():
    with pytest.raises(InputError, match=r"measure series"):
        plot(potts(), "x.png", kind="histogram")


@pytest.mark.slow
def test_a_report_of_spins_quotes_the_temperature_and_no_fit_of_percolation():
    def never(_):
        raise AssertionError("sweeps are correlated")

    page, numbers = report_page(ising(), name="x.h5", checksum="0", fitted=never)
    assert "<mi>J</mi></mrow></math> = 2.2" in page
    assert "Markov chain" in page
    assert "Samples are independent" not in page
    assert set(numbers["figures"]) == OF_SPINS | {"clusters", "wrapping", "sizes"}
