"""What commands make of counted sizes and of wrapping: tables, figures, the report."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from analysis_support import counted, sorted_tasks
from cli_support import answer, refusal, stored
from helpers import assert_z, slow

import percolab
from percolab.analysis.stored_data import read_size_counts
from percolab.analysis.value import format_with_error
from percolab.api import fit, sweep
from percolab.figures.kinds import study_figure
from percolab.measure.columns import (
    CHAIN_COLUMNS,
    EXTRA_COLUMNS,
    WORDS_WITH_COLUMNS,
    list_observables,
)
from percolab.tables.flat import SIZE_HEADER


def texts_of(axes):
    """Return what is written into a panel, but for its letter."""
    return [text.get_text() for text in axes.texts if text.get_weight() != "bold"]


@pytest.mark.slow
def test_fit_prints_tau_of_n_s_beside_theory():
    path = stored(Path("sizes.h5"), counted())
    line = next(
        line
        for line in answer("fit", path, "--exponents", "--bootstrap", 60).splitlines()
        if line.startswith("tau") and "n_s" in line
    )
    assert "187/91" in line
    assert "sigma" in line
    output = json.loads(answer("fit", path, "--exponents", "--bootstrap", 60, "--json"))
    numbers = output["exponents"]["cluster_numbers"]
    assert numbers["omega"] == pytest.approx(72 / 91)
    assert numbers["error_method"] == "bootstrap"
    assert numbers["members"] > 1
    assert numbers["error"] >= numbers["statistical_error"] > 0


@pytest.mark.slow
def test_a_study_without_counts_has_no_cluster_numbers():
    options = {"p": [0.4, 0.45, 0.5, 0.55, 0.6], "samples": 1000, "block_size": 50}
    path = stored(Path("results.h5"), sweep("square", L=[8, 12, 16], device="cpu", **options))
    output = json.loads(answer("fit", path, "--exponents", "--bootstrap", 60, "--json"))
    assert output["exponents"]["cluster_numbers"] is None
    plot = ("plot", path, "--kind", "sizes", "--bootstrap", 0)
    for arguments in (plot, ("export", path, "--sizes")):
        assert "sweep with --measure sizes" in refusal(*arguments)
    for other in (["--tidy"], ["-p", "0.4:0.6:3"], ["--thresholds"]):
        assert "--sizes" in refusal("export", path, "--sizes", *other)


@pytest.mark.slow
def test_the_figure_tells_the_stored_n_s():
    path = stored(Path("sizes.h5"), counted())
    output = json.loads(answer("plot", path, "--kind", "sizes", "--bootstrap", 60, "--json"))
    assert Path("sizes-sizes.png").exists()
    assert set(output) == {
        "kind", "title", "exact", "threshold", "threshold_source", "curves", "fit", "y_t",
        "scaled", "local_slopes", "notes",
    }  # fmt: skip
    for curve, counts in zip(output["curves"], read_size_counts(counted()), strict=True):
        coarse = counts.coarse()
        assert curve["L"] == counts.L
        assert curve["s_low"] == coarse.edges[:-1].tolist()
        at = coarse.nearest(curve["p"])
        assert curve["counted_p"] == coarse.p[at]
        assert curve["count"] == coarse.counts[:, at].sum(axis=0).tolist()
        many = np.array(curve["count"]) > 400
        near, n_s = coarse.numbers()[at], np.array(curve["n_s"])
        np.testing.assert_allclose(n_s[many], near[many], rtol=0.25)
    assert {item["p"] for item in output["scaled"]} == {0.46, 0.48, 0.5, 0.52, 0.54}
    tau, y_t = output["fit"]["tau"], output["y_t"]
    item = output["scaled"][-1]
    x = (item["p"] - output["threshold"]) * np.array(item["s"]) ** (y_t * (tau - 1) / 2)
    np.testing.assert_allclose(item["x"], x, rtol=1e-9)
    # Where n_s is a power of s, that is its slope.
    slopes = output["local_slopes"][-1]
    kept = [n for n, s in enumerate(slopes["x"]) if 8 < s < 100]
    assert len(kept) > 8
    weights = np.array(slopes["error"])[kept] ** -2.0
    mean = np.average(np.array(slopes["slope"])[kept], weights=weights)
    assert mean == pytest.approx(-187 / 91, abs=0.05)


def test_n_s_of_one_size_is_drawn_at_the_p_that_is_taken_for_the_threshold():
    one = sweep("square", L=[32], p=[0.45, 0.5], samples=2000, measure="sizes", block_size=100,
                boundary="periodic", device="cpu")  # fmt: skip
    figure, numbers = study_figure(one, kind="sizes", fitted=lambda: fit(one))
    assert "$p = 0.5$" in texts_of(figure.axes[0])
    assert numbers["threshold"] == 0.5
    assert "published" in numbers["threshold_source"]
    assert numbers["fit"]["error_method"] == "jackknife"
    few = sweep(
        "bethe:3",
        L=[5],
        p=[0.4, 0.5, 0.6],
        samples=40,
        block_size=40,
        measure="sizes",
        device="cpu",
    )
    figure, numbers = study_figure(few, kind="sizes", fitted=lambda: fit(few))
    assert texts_of(figure.axes[0]) == ["$p = 0.5$"]
    assert figure.legends[0].get_title().get_text() == "", "no bars of a single block"
    assert numbers["fit"] is None
    assert numbers["scaled"] == []


def test_lattices_too_small_for_n_s_off_p_c_have_no_panel_of_it():
    small = sweep("diamond", L=[4, 8, 12], model="site", boundary="periodic", samples=300,
                  measure="sizes", block_size=10, device="cpu")  # fmt: skip
    figure, numbers = study_figure(small, kind="sizes", fitted=lambda: fit(small), bootstrap=60)
    assert numbers["fit"]["tau"] > 1
    assert not any(each["s"] for each in numbers["scaled"])
    assert len(figure.axes) == 4


def test_no_clusters_are_described_as_that(tmp_path):
    none = sweep("square", L=[8], p=[0], model="site", samples=40, measure="sizes", device="cpu")
    path = stored(tmp_path / "none.h5", none)
    assert answer("report", path, "--out", tmp_path / "none.html").startswith("report in")
    assert "there are no clusters" in (tmp_path / "none.html").read_text(encoding="utf-8")


def test_n_s_and_radii_tell_the_p_that_they_are_drawn_at():
    results = counted()
    found = fit(results)
    figure, _ = study_figure(results, kind="sizes", fitted=lambda: found, bootstrap=60)
    value = format_with_error(found.threshold, found.threshold_error)
    assert f"$p_c = {value}$" in texts_of(figure.axes[0])
    radii = sweep("square", L=[16], p=[0.4, 0.49], samples=200, measure="gyration", block_size=20,
                  device="cpu")  # fmt: skip
    figure, _ = study_figure(radii, kind="gyration", fitted=lambda: fit(radii))
    assert "$p = 0.49$" in texts_of(figure.axes[0])
    radius, slope, length = (axes.get_ylabel() for axes in figure.axes)
    assert "lattice units" in radius
    assert "lattice units" in length
    assert "ln R_s" in slope


def test_a_figure_has_the_symbols_of_the_registry():
    results = counted()
    figure, output = study_figure(results, kind="wrapping", fitted=lambda: fit(results))
    symbols = {item.name: item.symbol for item in list_observables(results.study.boundary)}
    *drawn, compared = figure.axes
    assert "theory" in compared.get_ylabel()
    for axes, panel in zip(drawn, output["panels"], strict=True):
        letter, index = symbols[panel["observable"]].split("_")
        shown = index if len(index) == 1 else rf"{{\mathrm{{{index}}}}}"
        assert axes.get_ylabel() == f"${letter}_{shown}$"


@pytest.mark.slow
def test_wrapping_is_drawn_with_pinsons_values():
    path = stored(Path("sizes.h5"), counted())
    output = json.loads(answer("plot", path, "--kind", "wrapping", "--bootstrap", 0, "--json"))
    panels = {panel["observable"]: panel for panel in output["panels"]}
    exact = {
        "wrapping_x": 0.521058289, "wrapping_any": 0.690473725, "wrapping_all": 0.351642853,
        "wrapping_some": 0.338830872, "wrapping_none": 0.309526275, "wrapping_two": 0.309526275,
        "wrapping_diagonal": 0.042115,
    }  # fmt: skip
    assert set(panels) == {*exact, "wrapping_y"}
    for name, value in exact.items():
        assert panels[name]["theory"]["value"] == pytest.approx(value, abs=2e-6)
        # Corrections at L = 64 are smaller than four errors of 600 samples.
        curve = panels[name]["curves"][-1]
        assert (curve["L"], curve["samples"]) == (64, 600)
        at = curve["p"].index(0.5)
        half = (curve["high"][at] - curve["low"][at]) / 2
        assert_z(curve["probability"][at], value, half)
    for panel in panels.values():
        for item, curve in zip(sorted_tasks(), panel["curves"], strict=True):
            assert curve["counts"] == item.column(panel["observable"]).sum(axis=0).tolist()
    # p_c = 0.5 is a p of the grid, so that nothing is interpolated there.
    compared = {(item["observable"], item["L"]): item for item in output["at_threshold"]}
    for name, panel in panels.items():
        for curve in panel["curves"]:
            item = compared[name, curve["L"]]
            assert item["value"] == pytest.approx(curve["probability"][curve["p"].index(0.5)])
            assert item["theory"] == panel["theory"]["value"]
    assert "no axis is periodic" in refusal(
        "plot", stored(Path("o.h5")), "--kind", "wrapping", "--bootstrap", 0
    )


@pytest.mark.parametrize("kind", [slow("sizes"), "wrapping"])
def test_every_panel_has_labels_and_no_legend_covers_data(kind):
    results = counted()
    figure, _ = study_figure(results, kind=kind, fitted=lambda: fit(results))
    figure.draw_without_rendering()
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    boxes = [item.get_window_extent() for item in legends if item is not None]
    assert boxes
    panels = [axes for axes in figure.axes if axes.axison]
    assert len(panels) >= 5
    for letter, axes in zip("abcdefg", panels, strict=False):
        assert f"({letter})" in [text.get_text() for text in axes.texts]
        assert axes.get_ylabel()
        assert not any(box.overlaps(axes.get_window_extent()) for box in boxes)


def test_exported_sizes_are_the_stored_counts():
    path = stored(Path("sizes.h5"), counted())
    rows = list(csv.DictReader(io.StringIO(answer("export", path, "--sizes"))))
    assert tuple(rows[0]) == SIZE_HEADER
    assert len(rows) == sum(item.counts[0].size for item in read_size_counts(counted()))
    for item in read_size_counts(counted()):
        own = [row for row in rows if int(row["L"]) == item.L]
        total = item.counts.sum(axis=0)
        assert [int(row["count"]) for row in own] == total.ravel().tolist()
        for row in own[:200:7]:
            width = int(row["s_high"]) - int(row["s_low"]) + 1
            n_s = int(row["count"]) / (int(row["samples"]) * int(row["sites"]) * width)
            assert float(row["n_s"]) == pytest.approx(n_s, rel=1e-12)
        errors = item.errors().ravel()
        np.testing.assert_allclose([float(row["error"]) for row in own], errors, rtol=1e-12)
    one_block = sweep(
        "square", L=[4], p=[0.5], samples=10, block_size=10, measure="sizes", device="cpu"
    )
    output = answer("export", stored(Path("one.h5"), one_block), "--sizes").splitlines()
    assert all(line.endswith(",") for line in output[1:])


def test_tidy_tables_carry_the_powers():
    path = stored(Path("sizes.h5"), counted())
    rows = list(csv.DictReader(io.StringIO(answer("export", path, "--tidy"))))
    item = sorted_tasks()[0]
    found = [row for row in rows if row["observable"] == "largest_cubes" and row["L"] == "16"]
    powers = item.extra("powers")[:, :, 2].sum(axis=0) / item.num_samples
    np.testing.assert_allclose([float(row["mean"]) for row in found], powers, rtol=1e-12)
    assert {row["unit"] for row in found} == {"site^3"}


def test_frames_carry_cluster_numbers():
    frame = percolab.to_pandas(counted(), sizes=True)
    assert tuple(frame.columns) == SIZE_HEADER
    data = percolab.to_xarray(counted())
    assert data.n_s.dims == ("task", "point", "bin")
    for n, item in enumerate(read_size_counts(counted())):
        own = data.n_s.values[n, :, : item.edges.size - 1]
        np.testing.assert_array_equal(own, item.numbers())
        assert np.isnan(data.n_s.values[n, :, item.edges.size - 1 :]).all()
    assert "largest_fourths_error" in data


def test_observables_lists_what_every_measure_adds():
    output = json.loads(answer("observables", "--json"))
    extras = [item for item in output if "measure" in item]
    names = [item.name for item in (*EXTRA_COLUMNS, *CHAIN_COLUMNS) if item.measure]
    assert [item["name"] for item in extras] == names
    spins = [item["name"] for item in output if item.get("model") == "spins"]
    assert spins[:2] == ["satisfied", "open_bonds"]
    assert "of spins" in answer("observables")
    text = answer("observables")
    for word in WORDS_WITH_COLUMNS:
        assert f"with sweep --measure {word}" in text
    assert all(item.meaning in text and item.source in text for item in EXTRA_COLUMNS)


def test_every_measure_that_is_named_is_measured_and_status_says_so():
    answer("sweep", "--lattice", "square", "-L", "4,6", "-p", "0.5", "--samples", 10, "--measure",
           "sizes", "--measure", "gyration", "--out", "both.h5", "--quiet")  # fmt: skip
    output = json.loads(answer("status", "both.h5", "--json"))
    assert [task["measure"] for task in output["tasks"]] == [["sizes", "gyration"]] * 2
    line = "measured and stored as well: sizes, gyration (L = 4, 6)"
    assert line in answer("status", "both.h5").splitlines()
    assert "must name some of sizes, gyration" in refusal("sweep", "--measure", ",")
    assert not Path("results.h5").exists()
