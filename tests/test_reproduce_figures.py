"""scripts/reproduce_figures.py: small runs of what a GPU does at full size."""

import json
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import script

import percolab
from percolab.benchmark import timer
from percolab.papers.komura2016 import figures as komura
from percolab.papers.komura2016.timing import Timing, plot_timing

reproduce_figures = script("reproduce_figures")


@pytest.fixture(autouse=True)
def _small_and_fast(monkeypatch):
    monkeypatch.setattr(timer, "WARM_UP_SECONDS", 0.0)
    monkeypatch.setitem(komura.TIMED_SHELLS, "cpu", range(2, 4))
    monkeypatch.setitem(komura.BETHE_RUNS, "cpu", 1)
    monkeypatch.setitem(komura.SIZES, "cpu", (8, 16))


def make(folder, figures):
    """Make figures on the CPU and return how it ended."""
    arguments = ["--device", "cpu", "--out", str(folder), "--figures", figures]
    return CliRunner().invoke(reproduce_figures.main, arguments)


def made(folder, figures):
    """Make figures on the CPU, which must succeed, and return the summary's entries."""
    done = make(folder, figures)
    assert done.exit_code == 0, done.output
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))["figures"]


@pytest.mark.slow
def test_figures_8_and_9_are_the_clusters_of_both_numberings(tmp_path):
    entries = made(tmp_path, "9,8")
    assert list(entries) == ["8", "9"]
    for number, name in (("8", "bethe:3"), ("9", "bethe:3:random")):
        labels = percolab.label(name, 5, 0.75, labeler="reference")
        drawn = json.loads((tmp_path / f"komura2016-fig{number}.json").read_text(encoding="utf-8"))
        assert drawn["site_labels"] == labels[drawn["site_numbers"]].tolist()
        found = entries[number]
        assert found["clusters"] == drawn["clusters"] == np.unique(labels).size
        assert (found["lattice"], found["p"], found["sites"]) == (name, 0.75, 94)
        for suffix in ("png", "pdf", "svg"):
            assert (tmp_path / f"komura2016-fig{number}.{suffix}").stat().st_size > 10_000
    assert entries["8"].keys() >= {"command", "device", "device_name", "versions", "seconds"}


@pytest.mark.slow
def test_figure_10_times_both_numberings_at_three_p_and_every_size(tmp_path):
    timings = made(tmp_path, "10")["10"]["timings"]
    found = {(item["lattice"], item["num_sites"], item["p"]) for item in timings}
    names = ("bethe:3", "bethe:3:random")
    assert found == {(name, n, p) for name in names for n in (10, 22) for p in (0.25, 0.5, 0.75)}
    assert {item["program"] for item in timings} == {"four_step"}
    drawn = json.loads((tmp_path / "komura2016-fig10.json").read_text(encoding="utf-8"))
    assert [(s["lattice"], s["ratio"]) for s in drawn["series"]] == [
        (numbering, ratio) for numbering in ("standard", "random") for ratio in (0.5, 1.0, 1.5)
    ]
    times = {(t["lattice"], t["num_sites"], t["ratio"]): t["seconds_per_sample"] for t in timings}
    series = drawn["series"][-1]
    expected = [1e3 * times["bethe:3:random", n, 1.5] for n in series["num_sites"]]
    assert series["milliseconds"] == expected


STORED = sorted(
    json.loads((reproduce_figures.STORED / "summary.json").read_bytes())["figures"], key=int
)


def assert_close(one, other):
    """Compare numbers of figures: what is computed may differ in its last digits elsewhere."""
    assert type(one) is type(other) or {type(one), type(other)} == {int, float}
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_close(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_close(*pair)
    else:
        assert one == (pytest.approx(other, rel=1e-6) if isinstance(one, float) else other)


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=pytest.mark.slow if n in ("5", "6") else ()) for n in STORED]
)
def test_stored_figures_have_the_numbers_that_todays_code_draws(number):
    folder = reproduce_figures.STORED
    entry = json.loads((folder / "summary.json").read_bytes())["figures"][number]
    name, _, numbers = komura.redrawn(number, entry, folder)
    stored = json.loads((folder / f"{name}.json").read_bytes())
    assert_close(json.loads(json.dumps(numbers)), stored)


def test_stored_figures_are_drawn_again_and_differences_reported(tmp_path, monkeypatch):
    def save(_, numbers, stem):
        stem.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")

    monkeypatch.setattr(komura, "save", save)
    made(tmp_path, "8")
    stored = (tmp_path / "komura2016-fig8.json").read_bytes()
    arguments = ["--redraw", "--out", str(tmp_path), "--figures", "8,9"]

    def again():
        done = CliRunner().invoke(reproduce_figures.main, arguments)
        assert done.exit_code == 0, done.output
        return done.output.splitlines()

    assert again() == ["Fig 8: drawn anew, same numbers", f"Fig 9: nothing is stored in {tmp_path}"]
    assert (tmp_path / "komura2016-fig8.json").read_bytes() == stored
    (tmp_path / "komura2016-fig8.json").write_bytes(
        stored.replace(b'"clusters": 25', b'"clusters": 24')
    )
    assert again()[0] == "Fig 8: drawn anew, other clusters than were stored"


def test_lines_of_times_are_named_at_their_ends_with_p_in_units_of_p_c():
    labelers = [("square", "four_step"), ("square", "tiled"), ("cubic", "tiled")]
    times = [
        Timing(*pair, ratio, n, 1e-6 * n * (ratio if "square" in pair else 1), batch=10000 // n)
        for pair, ratio, n in product(labelers, (0.5, 1.0), (100, 1000))
    ]
    figure, _ = plot_timing(times, title="time")
    square, cubic = figure.axes
    assert not figure.legends
    assert [axes.get_title() for axes in (square, cubic)] == ["square", "cubic"]
    assert "batched: 10 to 100 samples at a time" in figure.get_suptitle().replace("\n", " ")
    named = [{text.get_text() for text in axes.texts} for axes in (square, cubic)]
    assert named[0] >= {rf"{name}, $0.5\,p_c$" for name in ("four_step", "tiled")}
    # Both lines end at one place.
    assert named[1] >= {r"tiled, $0.5, 1\,p_c$"}


def test_sizes_on_a_gpu_are_those_of_the_paper():
    bethe = komura.BetheLattice()
    found = [bethe.shape(shells)[0] for shells in komura.TIMED_SHELLS["cuda"]]
    assert found == [393214, 786430, 1572862, 3145726, 6291454, 12582910]


@pytest.mark.slow
def test_a_run_of_some_figures_keeps_what_others_left(tmp_path):
    before = {"device": "another", "timings": [1], "figures": {"5": {"threshold": 1}, "8": {}}}
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(before), encoding="utf-8")
    entries = made(tmp_path, "7,8")
    assert list(entries) == ["5", "7", "8"]
    assert entries["5"] == {"threshold": 1}
    assert entries["8"]["sites"] == 94
    assert len(entries["7"]["timings"]) == 12
    after = json.loads(path.read_text(encoding="utf-8"))
    assert (after["device"], after["timings"]) == ("another", [1])


@pytest.mark.parametrize("content", ["no JSON", "[1]", '{"figures": 3}', '{"figures": {"11": {}}}'])
def test_another_file_of_that_name_is_not_replaced(tmp_path, content):
    (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    done = make(tmp_path, "8")
    assert done.exit_code != 0
    assert "summary.json: is no summary" in done.output
    assert (tmp_path / "summary.json").read_text(encoding="utf-8") == content


@pytest.mark.parametrize("asked", ["4", "8,,9", "8-10"])
def test_other_figures_are_refused_before_anything_is_made(tmp_path, asked):
    done = make(tmp_path / "new", asked)
    assert done.exit_code == 2
    assert "is none of 5, 6, 7, 8, 9, 10" in done.output
    assert not (tmp_path / "new").exists()
