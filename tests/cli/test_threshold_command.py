"""percolab threshold, and what the other commands make of its file."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, left_in, refusal, run
from helpers import CHAIN
from matplotlib.figure import Figure
from PIL import Image

import percolab
from percolab.errors import InputError

QUICK = ("threshold", "kagome", "--error", "3e-3", "--device", "cpu", "--quiet")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("threshold") / "threshold.h5"
    answer(*QUICK, "--out", found)
    return found


@pytest.fixture(scope="module")
def record(path):
    return json.loads(answer(*QUICK, "--out", path, "--json"))


def test_the_answer_is_a_few_lines(path, record):
    lines = answer(*QUICK, "--out", path).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("kagome (3,6,3,6), bond: p_c = 0.52")
    assert "statistical" in lines[0]
    assert "systematic" in lines[0]
    for root in record["roots"]:
        assert f"at L = {root['L']}" in lines[1]
    assert "half the error" in lines[2]
    assert lines[3].startswith("published 0.524404999")


@pytest.mark.slow
def test_a_search_in_the_plane_begins_without_scipy(tmp_path):
    # Importing its fits takes as long as the samples of --error 1e-4.
    code = (
        "import sys; from percolab.cli import main\n"
        "try: main()\n"
        "finally: print(sorted({'scipy.special', 'scipy.optimize'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", code, *QUICK, "--out", str(tmp_path / "threshold.h5")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_json_has_every_number_and_fit_says_the_same(path, record):
    assert record["lattice"] == "kagome"
    assert record["model"] == "bond"
    value = record["p_c"]
    parts = value["statistical_error"] ** 2 + value["systematic_error"] ** 2
    assert value["error"] ** 2 == pytest.approx(parts)
    assert sum(root["weight"] for root in record["roots"]) == pytest.approx(1)
    assert percolab.open_results(path).fit().to_dict() == {
        key: item for key, item in record.items() if key not in ("lattice", "model")
    }
    assert json.loads(answer("fit", path, "--json")) == record
    # In the plane and in space.
    assert record["threshold"] == value["value"]
    assert record["threshold_error"] == value["error"] > 0
    text = answer("fit", path)
    assert "systematic: drift of the roots, C/L^4, C = 0 +- 0.01" in text
    assert "published 0.52440499" in text
    for root in record["roots"]:
        assert f"\n{root['L']} " in text


def test_fit_with_options_is_the_fit_of_curves(tmp_path):
    # A model with fixed bonds has three p of each size.
    out = tmp_path / "three.h5"
    command = "threshold", "square", "--model", "bond:x=0.45", "--error", "3e-3"
    answer(*command, "--device", "cpu", "--quiet", "--out", out)
    text = answer("fit", out, "--observable", "wrapping_any")
    assert "R(p_c)" in text
    assert "roots" not in text


def test_plot_draws_the_roots(path, record, tmp_path):
    out = tmp_path / "roots.png"
    drawn = json.loads(answer("plot", path, "--out", out, "--json"))
    assert out.exists()
    assert drawn["kind"] == "roots"
    assert drawn["p_c"] == record["p_c"]
    assert drawn["roots"] == record["roots"]
    assert drawn["exact"]["threshold"] == pytest.approx(0.52440499917)
    for root, curve in zip(record["roots"], drawn["differences"], strict=True):
        (p,), (difference,), (error,) = (curve[name] for name in ("p", "difference", "error"))
        assert abs(difference - root["slope"] * (p - root["root"])) < 4 * error
    assert drawn["drift_of_prior"]["width"][0] > drawn["drift_of_prior"]["width"][-1]


def test_one_panel_can_be_drawn_into_given_axes(path):
    axes = Figure().subplots()
    assert percolab.open_results(path).plot(ax=axes) is axes.figure
    assert axes.get_xlabel() == "$L$"
    assert axes.get_legend() is not None


@pytest.mark.slow
def test_a_sweep_on_a_torus_has_the_figure_and_one_on_an_open_lattice_says_why_not(tmp_path):
    torus, opened = tmp_path / "torus.h5", tmp_path / "open.h5"
    options = ("-L", "8", "-p", "0.45,0.5,0.55", "--samples", 2000, "--device", "cpu", "--quiet")
    answer("sweep", "--lattice", "square", *options, "--boundary", "periodic", "--out", torus)
    answer("sweep", "--lattice", "square", *options, "--out", opened)
    answer("plot", torus, "--kind", "roots", "--out", tmp_path / "roots.svg")
    assert "torus" in refusal("plot", opened, "--kind", "roots", "--out", tmp_path / "open.svg")


@pytest.mark.slow
def test_a_report_begins_with_p_c_and_has_the_figure(path, tmp_path):
    out = tmp_path / "page.html"
    answer("report", path, "--bootstrap", 0, "--out", out)
    page = out.read_text(encoding="utf-8")
    assert "drift of the roots" in page
    assert 'id="roots"' in page or "Roots" in page
    assert "0.524404999" in page


def test_status_and_export_show_every_p(path, tmp_path):
    text = answer("status", path)
    tasks = json.loads(answer("status", path, "--json"))["tasks"]
    assert [task["L"] for task in tasks] == [8, 12]
    for task in tasks:
        assert f"{task['p'][0]:.10g}" in text
    out = tmp_path / "means.csv"
    answer("export", path, "--out", out)
    rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    assert "wrapping_two" in rows[0]
    # What only one of several p of the same samples has is a row of its own.
    assert sum(int(row["samples"]) for row in rows) == sum(task["samples"] for task in tasks)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("fit PATH --bootstrap 20", "--bootstrap: p_c of percolab threshold has its error without"),
        ("fit PATH --observable wrapping_any", "each size has one p"),
        ("plot PATH --kind curves", "percolab sweep"),
        ("threshold kagome --seed 2 --out PATH", "seed is 1 there, 2 here"),
        ("threshold kagome --model site --out PATH", "model is bond there, site here"),
        ("threshold kagome --rng philox --out PATH", "rng is xorwow there"),
        ("threshold square --out PATH", "lattice is kagome there, square here"),
    ],
)
def test_what_the_file_of_a_search_is_not_for_is_refused(path, command, reason):
    data = path.read_bytes()
    assert reason in refusal(*(path if word == "PATH" else word for word in command.split()))
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("square", "--error", "1e-3", "--time", "5s"), "error and time"),
        (("square", "--error", "0"), "error = 0"),
        (("square", "--error", "1"), "error = 1"),
        (("square", "--error", "nan"), "error = nan"),
        (("square", "--error", "small"), "'--error': 'small' is not a number."),
        (("square", "--time", "0"), "time = 0"),
        (("square", "--time", "abc"), "time = 'abc'"),
        (("square", "-L", "0"), "L = '0'"),
        (("square", "--model", "site", "-L", "6", "--error", "1e-3"), "off by 1.2e-03, more"),
        (("chain.toml",), "chain: p_c is 1 in one dimension"),
        (("kagome", "-L", "7"), "multiple of 2"),
        (("square", "--model", "potts:q=5"), "first order"),
        (("square-nnn", "--model", "ising"), "ising: square-nnn is not planar"),
        (("cubic", "--model", "ising"), "for other spins use percolab sweep"),
        (("bethe:3",), "which only lattices have"),
        (("nowhere",), "unknown lattice"),
        (("field.npy",), "field.npy: is no lattice, which is a name"),
        (("results.h5",), "for results percolab fit"),
        (("square", "--model", "bond:x=0,y=p"), "has no p_c: without bonds x the lattice is in"),
        (("square", "--model", "bond:x=1,y=p"), "p_c is 0: bonds x, which are always open"),
        (("square", "--model", "site-bond:site=0.3"), "p = 1 clusters wrap around fewer tori"),
        (("square", "--model", "site-bond:site=0.57"), "p = 1 clusters wrap around fewer tori"),
        (("cubic", "--model", "site-bond:site=0.2"), "p = 1 clusters wrap around fewer tori"),
        (("square", "--model", "bond:y=0.05"), "hardly depends on p, as one axis"),
        (("cubic", "--model", "bond:z=0.6"), "p = 0 clusters wrap around more tori of L = 8"),
        (("graph.csv",), "for a network use --graph"),
        (("--graph", "graph.csv"), "percolab sweep --graph graph.csv --order random"),
        (("square", "--out", "threshold.png"), "ends in .png"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_used_is_refused_in_one_line(options, reason, tmp_path):
    files = [tmp_path / name for name in options if name == "chain.toml"]
    for file in files:
        file.write_text(CHAIN, encoding="utf-8")
    assert reason in refusal("threshold", *options)
    assert left_in() == [file.name for file in files]


def test_a_lattice_of_a_file_is_taken(tmp_path):
    text = percolab.load_lattice("square").source
    lattice = tmp_path / "own.toml"
    lattice.write_text(text.replace('name = "square"', 'name = "own"'), encoding="utf-8")
    out = tmp_path / "own.h5"
    text = answer(
        "threshold", lattice, "--error", "5e-3", "--device", "cpu", "--out", out, "--quiet"
    )
    assert "p_c = 0." in text


def test_a_time_too_short_says_so(tmp_path):
    out = tmp_path / "short.h5"
    result = run("threshold", "square", "--time", "0.1", "--device", "cpu", "--out", out, "--quiet")
    assert result.exit_code == 0, result.output
    assert "p_c" in result.stdout


@pytest.mark.slow
def test_three_dimensions_have_a_fit_of_three_probabilities_and_its_figure(tmp_path):
    path = tmp_path / "cubic.h5"
    command = ("threshold", "cubic", "-L", "4,6,8", "--error", "5e-3", "--device", "cpu", "--quiet")
    lines = answer(*command, "--out", path).splitlines()
    assert lines[0].startswith("simple cubic, bond: p_c = 0.2")
    assert "statistical" in lines[0]
    assert "systematic" in lines[0]
    assert lines[1].startswith(
        "P(wrapping around any axis, one, all) on tori of L = 4, 6, 8 in one"
    )
    assert lines[2].startswith("half the error")
    assert lines[-1].startswith("published 0.24881185")
    record = json.loads(answer(*command, "--out", path, "--json"))
    assert json.loads(answer("fit", path, "--json")) == record
    # In the plane and in space.
    assert record["threshold"] == record["p_c"]["value"]
    assert record["threshold_error"] == record["p_c"]["error"] > 0
    assert "wrapping_axis" in answer("fit", path)
    assert "without replicas" in refusal("fit", path, "--bootstrap", 20)
    assert "R(p_c)" in answer("fit", path, "--observable", "wrapping_any", "--bootstrap", 0)
    drawn = json.loads(answer("plot", path, "--out", tmp_path / "p.png", "--json"))
    assert drawn["kind"] == "crossings"
    assert drawn["p_c"]["value"] == record["threshold"]
    assert len(drawn["crossings"]) == 6
    assert all(item["error"] > 0 for item in drawn["crossings"])
    answer("report", path, "--bootstrap", 0, "--out", tmp_path / "page.html")
    assert "wrapping_axis" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "at least 3 sizes" in refusal(*command[:2], "-L", "8,12", "--out", tmp_path / "two.h5")


FIELD = np.array([[3, 1, 2, 5], [9, 9, 4, 7], [0, 6, 8, 1]])


@pytest.fixture
def field():
    np.save("field.npy", FIELD)
    return ("threshold", "--weights", "field.npy")


def test_the_answer_is_a_table_and_paths_are_written(field):
    assert answer(*field, "--boundary", "periodic,open", "--out", "path.csv").splitlines() == [
        "sites of square; the first open at 0",
        "                level  barrier  open sites  saddle  steps  winding",
        "wraps around x  5      5        0.58333     3       4      1,0",
        "spans y         7      7        0.75000     7       2      0,0",
        "1 direction     5      5        0.58333     3",
        "2 directions    7      7        0.75000     7",
        "paths in path.csv",
    ]
    rows = Path("path.csv").read_text().splitlines()
    assert rows[0] == "axis,step,site,x,y,value"
    assert rows[1:6] == ["x,0,3,3,0,5", "x,1,0,4,0,3", "x,2,1,5,0,1", "x,3,2,6,0,2", "x,4,3,7,0,5"]
    assert [row.split(",")[0] for row in rows[6:]] == ["y"] * 3
    # It is percolab's own, and may be replaced.
    answer(*field, "--out", "path.csv")


def test_json_is_what_python_has_to_say(field):
    found = json.loads(answer(*field, "--above", "--json"))
    assert found == percolab.threshold(weights=FIELD, above=True).to_dict()
    assert found == percolab.threshold(weights="field.npy", above=True).to_dict()
    assert found == json.loads(answer(*field, "--above", "--json", "--device", "auto"))
    assert found["axes"]["x"]["path"] == [4, 5, 6, 7]


def test_weights_are_read_of_images_hdf5_and_graph_files():
    Image.fromarray(FIELD.astype(np.uint8)).save("field.png")
    assert "\nspans x       5 " in answer("threshold", "--weights", "field.png")
    with h5py.File("rock.h5", "w") as file:
        file["pores/size"] = FIELD
    assert "sites of square" in answer("threshold", "--weights", "rock.h5:/pores/size")
    Path("roads.csv").write_text("source,target,weight\na,b,3\nb,c,-2\na,c,5\n")
    of_graph = ("threshold", "--graph", "roads.csv", "--source", "a", "--target", "c")
    lines = answer(*of_graph, "--weights", "file", "--out", "path.csv").splitlines()
    assert lines[2] == "connects source-target  3      5        0.66667     b-a     2      0"
    assert Path("path.csv").read_text().splitlines()[1:] == [
        "source-target,0,a,",
        "source-target,1,b,3",
        "source-target,2,c,-2",
    ]
    np.save("lengths.npy", [1.0, 1.5, 7.0])
    assert json.loads(answer(*of_graph, "--weights", "lengths.npy", "--json"))["bottom"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--device", "cuda"), "--device cuda: no GPU here"),
        (("--device", "gpu"), "--device gpu: must be auto, cpu, cuda or cuda:n"),
        (("-L", "4"), "-L: given weights (--weights) have no samples"),
        (("--error", "1e-3"), "--error: given weights (--weights) have no samples"),
        (("--out", "path.h5"), "path.h5: cannot write paths as '.h5'"),
        (("--out", "notes.csv"), "notes.csv: holds something else than a path of percolab's"),
        (("--multi",), "multi: only a graph has it"),
        (("--boundary", "closed"), "unknown boundary 'closed'"),
        (("cubic",), "field.npy: has the shape (3, 4), but the weights of sites have (z, y, x)"),
        (("bethe:3",), "lattice: bethe:3"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(field, arguments, message):
    Path("notes.csv").write_text("mine")
    before = left_in(".")
    assert message in refusal(*field, *arguments)
    assert left_in(".") == before


def test_large_integers_are_printed_as_they_are():
    np.save("large.npy", FIELD + 2**62)
    assert f" {2**62 + 5}  5 " in answer("threshold", "--weights", "large.npy")


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searches")
    for name, error in (("square", 2e-3), ("cubic", 4e-3)):
        percolab.threshold(name, error=error, device="cpu", out=folder / f"{name}.h5")
    return folder


def test_options_of_a_fit_are_for_the_fit_of_the_search(searches):
    plane, space = (str(searches / f"{name}.h5") for name in ("square", "cubic"))
    usual, fewer = (json.loads(answer("fit", plane, *more, "--json"))
                    for more in ((), ("--min-size", "9")))  # fmt: skip
    assert [root["L"] for root in fewer["roots"]] == [root["L"] for root in usual["roots"]][1:]
    wider = json.loads(answer("fit", plane, "--priors", "100", "--json"))
    assert wider["p_c"]["systematic_error"] > 10 * usual["p_c"]["systematic_error"]
    assert percolab.open_results(plane).fit(priors=100).p_c.error == wider["p_c"]["error"]
    assert "no size of L >= 999" in refusal("fit", plane, "--min-size", "999")
    usual, known, larger, narrow = (
        json.loads(answer("fit", space, *more, "--json"))
        for more in ((), ("--universal", "known"), ("--min-size", "9"), ("--priors", "0.5"))
    )
    assert {"quantities", "members"} <= usual.keys() & larger.keys() & narrow.keys()
    assert "8" in usual["samples"]
    assert "8" not in larger["samples"]
    assert narrow["threshold_error"] < usual["threshold_error"]
    # Of these quantities, which are all, the same fit.
    all_known = json.loads(answer(*("fit", space, "--quantities", "all", "--universal", "known"),
                                  "--json"))  # fmt: skip
    assert all_known["threshold"] == known["threshold"] != usual["threshold"]


def test_another_fit_of_the_samples_of_a_search_says_so(searches):
    space = str(searches / "cubic.h5")
    note = "this fit is not that of percolab threshold, which has no --window"
    text = answer("fit", space, "--window", "0.2,0.8", "--min-size", "8")
    assert text.rstrip().endswith(f"note: {note}")
    record = json.loads(answer("fit", space, "--window", "0.2,0.8", "--json"))
    assert record["notes"][-1] == note
    assert "this fit is not" not in answer("fit", space, "--min-size", "8")
    for command in ("plot", "report"):
        message = refusal(command, space, "--min-size", "9")
        assert "--min-size: figures of percolab threshold show the fit that it made" in message
        assert "--priors: figures" in refusal(command, space, "--priors", 2)
    with pytest.raises(InputError, match="degree: figures of percolab threshold show the fit"):
        percolab.open_results(space).plot(degree=3)


def test_a_field_is_written_and_percolates():
    assert answer("field", "16x8", "--exponent", "1", "--seed", "3") == "field in field.npy\n"
    field = np.load("field.npy")
    assert np.array_equal(field, percolab.gaussian_field((8, 16), 1, seed=3))
    site = ("--lattice", "square", "--model", "site", "--weights", "field.npy")
    assert "invaded" in answer("invade", *site, "-L", "16x8")
    told = refusal("invade", *site, "-L", "8x16")
    assert (
        told == "weights have the shape (8, 16), but those of the sites of square 1x2 have (16, 8)"
    )
    assert run("threshold", "--weights", "field.npy", "--boundary", "periodic").exit_code == 0
    answer("field", "8x8", "--exponent", "2")
    np.save("mine.npy", field)
    assert "holds something else" in refusal("field", "8x8", "--exponent", "2", "--out", "mine.npy")
    assert "SHAPE '8,8'" in refusal("field", "8,8", "--exponent", "2")
    assert "exponent = -1.0" in refusal("field", "8x8", "--exponent", "-1", "--out", "new.npy")
