"""percolab fit: p_c and its error, exponents, collapses and single T, as text and as JSON."""

import json

import pytest
from cli_support import answer, refusal, stored

from percolab.analysis.stored_fits import compute_collapse, fit_results
from percolab.api import sweep
from percolab.errors import InputError
from percolab.lattices.graph import Graph

P = [0.36 + 0.04 * k for k in range(8)]
QUICK = ("--bootstrap", 50)


@pytest.fixture(scope="module")
def results():
    return sweep("square", L=[4, 6, 8, 12, 16], p=P, samples=600, block_size=30, device="cpu")


@pytest.fixture(scope="module")
def file(results, tmp_path_factory):
    return stored(tmp_path_factory.mktemp("fit") / "square.h5", results)


@pytest.fixture(scope="module")
def thresholds(tmp_path_factory):
    found = sweep("square", L=[4, 8, 16], method="threshold", samples=300, device="cpu")
    return stored(tmp_path_factory.mktemp("fit") / "thresholds.h5", found)


def as_json(*arguments):
    return json.loads(answer("fit", *arguments, "--json"))


@pytest.mark.slow
def test_the_model_is_said_with_both_parts_of_the_error(file):
    record = as_json(file)
    assert {(item["min_size"], item["degree"]) for item in record["members"]} == {
        (size, degree) for size in (4, 6, 8) for degree in (3, 4, 5)
    }
    text = answer("fit", file)
    head = text.split("\n\n")[0].splitlines()
    assert "whole error; 1/nu = 3/4 (exact, Nienhuis 1984)" in head[0]
    assert head[1].split()[:2] == ["+-", f"{record['statistical_error']:.2g}"]
    assert head[2].split()[:2] == ["+-", f"{record['systematic_error']:.2g}"]
    assert head[3].split()[0] == f"{record['prior_shift']:+.1g}"
    assert "of the weight of 9 fits" in head[-1]
    assert "1/nu is free" in answer("fit", file, "--nu", "free")
    one = as_json(file, "--degree", 4, "--min-size", 8)
    assert [(item["min_size"], item["degree"]) for item in one["members"]] == [(8, 4)]


def test_the_command_line_and_python_agree(file, results):
    options = {"nu": "free", "priors": 2.0, "window": (0.2, 0.8), "min_size": 6, "degree": 3}
    given = ("--nu", "free", "--priors", 2, "--window", "0.2,0.8", "--min-size", 6, "--degree", 3)
    assert as_json(file, *given) == json.loads(
        json.dumps(fit_results(results, **options).to_dict())
    )
    with pytest.raises(ValueError, match="nu = 'fixed', but it must be"):
        fit_results(results, nu="fixed")


@pytest.mark.slow
def test_what_is_no_answer_is_said_first(tmp_path):
    """All p are above p_c: in the text, in JSON, in the last line of a sweep and in a report."""
    path, page = tmp_path / "above.h5", tmp_path / "above.html"
    last = answer("sweep", "--lattice", "square", "-L", "8,16,32", "-p", "0.55,0.57,0.6", "--seed",
                  1, "--samples", 1000, "--device", "cpu", "--quiet", "--out", path)  # fmt: skip
    told = "no p_c: "
    assert last.splitlines()[1].startswith(told)
    text = answer("fit", path)
    assert text.startswith(told)
    assert "no answer, see above; 1/nu = 3/4" in text
    assert "sigma" not in text
    record = as_json(path)
    assert record["problem"].startswith(told)
    assert (record["threshold_error"], record["y_t_error"]) == (None, None)
    answer("report", path, "--out", page)
    words = page.read_text()
    assert told in words
    assert "+nan" not in words
    assert ">nan<" not in words


@pytest.mark.slow
def test_exponents_stand_beside_theory(file):
    record = as_json(file, *QUICK, "--exponents")["exponents"]
    found = {item["name"]: item for item in record["exponents"]}
    assert set(found) == {"1/nu", "beta/nu", "gamma/nu", "d_f", "tau"}
    for item in record["exponents"]:
        assert abs(item["value"] - item["known"]["value"]) <= 4 * item["error"] + 0.1
    text = answer("fit", file, *QUICK, "--exponents")
    assert "91/48" in text
    assert "statistical  systematic" in text


@pytest.mark.slow
def test_collapses_are_those_of_python(file, results):
    whole = as_json(file, "--bootstrap", 4, "--collapse", "--min-size", 6)
    record = whole["collapses"]
    assert [item["observable"] for item in record] == ["spanning_y", "largest", "chi"]
    for item in record:
        # P_inf and chi are collapsed at the p_c of the fit.
        p_c = whole["threshold"] if item["observable"] in ("largest", "chi") else None
        direct = compute_collapse(
            results, item["observable"], threshold=p_c, min_size=6, bootstrap=0
        )
        assert item["quality"] == direct.quality
        assert item["threshold"] == direct.threshold
        assert min(item["L"]) == 6
    assert "quality S" in answer("fit", file, "--bootstrap", 0, "--collapse", "--min-size", 6)


def test_what_is_given_to_a_collapse_is_held(results):
    held = compute_collapse(
        results, "largest", threshold=0.5, y_t=0.75, exponent=-5 / 48, bootstrap=0
    )
    assert (held.threshold, held.y_t, held.exponent) == (0.5, 0.75, -5 / 48)
    with pytest.raises(InputError, match="observable 'nothing' is not in this file"):
        compute_collapse(results, "nothing", threshold=0.5, y_t=0.75)


@pytest.mark.slow
def test_single_thresholds_follow_the_fit(thresholds):
    record = as_json(thresholds, *QUICK)["sample_thresholds"]
    assert [row["L"] for row in record["sizes"]] == [4, 8, 16]
    for item in record["extrapolations"]:
        exact = 0.75 if item["name"] == "1/nu" else 0.5
        assert item["rejected"] or abs(item["value"] - exact) <= 4 * item["error"]
    assert all(abs(cell["p"] - 0.5) <= 4 * cell["p_error"] for cell in record["cell_to_cell"])
    text = answer("fit", thresholds, *QUICK)
    assert "mean T" in text
    assert "cell-to-cell p*" in text
    assert "method threshold: 1/nu alone" in answer("fit", thresholds, *QUICK, "--exponents")
    cut = as_json(thresholds, "--bootstrap", 0, "--min-size", 8)["sample_thresholds"]
    assert [row["L"] for row in cut["sizes"]] == [8, 16]


def test_exponents_need_fifty_replicas(file):
    told = refusal("fit", file, "--exponents", "--bootstrap", "10")
    assert "at least 50 bootstrap replicas, got 10" in told


OF_SIZES = ["--omega=1", "--min-size=2", "--degree=3", "--window=0.2,0.8"]
OF_FIT = ["--exponents", "--collapse", "--quantities=all"]


@pytest.mark.parametrize(
    ("command", "option"),
    [("fit", option) for option in OF_FIT]
    + [(command, option) for command in ("fit", "plot", "report") for option in OF_SIZES],
)
def test_a_graph_has_no_sizes_to_fit(tmp_path, command, option):
    found = sweep(graph=Graph.of_bonds(3, [(0, 1), (1, 2)]), samples=60, device="cpu")
    path = stored(tmp_path / "graph.h5", found)
    told = refusal(command, path, option)
    assert (
        told == f"{option.partition('=')[0]}: there is no fit of several sizes here; leave it out"
    )
