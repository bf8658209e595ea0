"""percolab fit: the table of fits, exponents, collapses and single T, as text and as JSON."""

import json

import pytest
from cli_support import answer, refusal, stored

from percolab.analysis import stored_fits
from percolab.analysis.stored_fits import collapse_of, fit_results
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


def test_every_fit_is_shown_with_its_model(file):
    record = as_json(file, "--fits", "--bootstrap", 0)
    assert [(row["min_size"], row["degree"], row["corrections"]) for row in record["fits"]] == [
        (size, degree, corrections)
        for size in (4, 6)
        for degree, corrections in [(3, "b"), (3, "b, c"), (4, "b"), (4, "b, c"), (5, "b"),
                                    (5, "b, c")]
    ]  # fmt: skip
    table = answer("fit", file, "--fits", "--bootstrap", 0).split("\n\n")[0]
    assert len(table.splitlines()) == 13
    assert "chosen" not in table
    # The fit itself is that of the default options.
    assert record["threshold"] == as_json(file, "--bootstrap", 0)["threshold"]


def test_the_degree_and_the_corrections_are_heard(file):
    plain = as_json(file, "--bootstrap", 0)
    assert (plain["degree"], plain["with_correction"], plain["with_mixed"]) == (3, True, False)
    assert as_json(file, "--bootstrap", 0, "--degree", 4)["degree"] == 4
    assert as_json(file, "--bootstrap", 0, "--corrections", "none")["correction"] is None
    mixed = as_json(file, *QUICK, "--corrections", "bc")
    assert mixed["mixed"] is not None
    assert mixed["mixed_error"] > 0
    assert "mixed correction" in answer("fit", file, "--bootstrap", 0, "--corrections", "bc")
    auto = as_json(file, "--bootstrap", 0, "--min-size", "auto", "--degree", 4)
    assert {row["degree"] for row in auto["fits"]} == {4}
    assert auto["degree"] == 4


def test_auto_is_accepted_where_the_help_says_so(file, results, monkeypatch):
    plain = as_json(file, "--bootstrap", 0)
    assert as_json(file, "--bootstrap", 0, "--degree", "auto")["degree"] == plain["degree"]
    # A chi^2 that rejects everything makes every model be tried, and no size be left out.
    monkeypatch.setattr("percolab.analysis.threshold_trials.is_poor", lambda _: True)
    for options, tried in {
        ("--degree", "auto"): [(3, "b"), (4, "b"), (5, "b")],
        ("--corrections", "auto"): [(3, "b"), (3, "b, c")],
        ("--corrections", "auto", "--degree", "auto"): 6,
        ("--corrections", "none", "--degree", "auto"): [(3, "none"), (4, "none"), (5, "none")],
        ("--min-size", 6, "--corrections", "auto"): [(3, "b"), (3, "b, c")],
    }.items():
        record = as_json(file, "--bootstrap", 0, *options)
        rows = [(row["degree"], row["corrections"]) for row in record["cutoffs"]]
        fits = as_json(file, "--bootstrap", 0, "--fits", *options)["fits"]
        models = [(row["degree"], row["corrections"]) for row in fits]
        assert models == tried or len(models) == tried
        assert rows == models[-1:]
        least = 6 if 6 in options else 4
        assert {row["min_size"] for row in fits} == {least}
        assert (record["degree"], record["with_mixed"]) == (models[-1][0], "c" in models[-1][1])
    both = fit_results(results, degree="auto", mixed="auto", bootstrap=0)
    assert (both.degree, both.with_mixed) == (5, True)
    assert min(both.sizes) == 4


def test_auto_for_one_thing_leaves_the_others_as_they_are(file):
    auto = ("--bootstrap", 0, "--min-size", "auto")
    assert as_json(file, *auto, "--degree", "auto") == as_json(file, *auto)
    assert as_json(file, *auto, "--corrections", "auto") == as_json(file, *auto)


def test_automatic_fits_agree_between_the_command_line_and_python(file, results):
    record = as_json(file, "--bootstrap", 0, "--min-size", "auto")
    fit = fit_results(results, min_size="auto", bootstrap=0)
    assert (record["threshold"], record["degree"]) == (fit.threshold, fit.degree)


def test_exponents_stand_beside_theory(file):
    record = as_json(file, *QUICK, "--exponents")["exponents"]
    found = {item["name"]: item for item in record["exponents"]}
    assert set(found) == {"1/nu", "beta/nu", "gamma/nu", "d_f", "tau"}
    for item in record["exponents"]:
        assert abs(item["value"] - item["known"]["value"]) <= 4 * item["error"] + 0.1
    text = answer("fit", file, *QUICK, "--exponents")
    assert "91/48" in text
    assert "statistical" in text


def test_collapses_are_those_of_python(file, results):
    whole = as_json(file, "--bootstrap", 4, "--collapse", "--min-size", 6)
    record = whole["collapses"]
    assert [item["observable"] for item in record] == ["spanning_y", "largest", "chi"]
    for item in record:
        # P_inf and chi are collapsed at the p_c of the fit.
        p_c = whole["threshold"] if item["observable"] in ("largest", "chi") else None
        direct = collapse_of(results, item["observable"], threshold=p_c, min_size=6, bootstrap=0)
        assert item["quality"] == direct.quality
        assert item["threshold"] == direct.threshold
        assert min(item["L"]) == 6
    assert "quality S" in answer("fit", file, "--bootstrap", 0, "--collapse", "--min-size", 6)


def test_an_automatic_collapse_leaves_out_no_more_than_it_must(results, monkeypatch):
    tried = {
        size: collapse_of(results, "chi", min_size=size, bootstrap=0).quality for size in (4, 6)
    }
    for limit in (0.0, *(1.001 * quality for quality in tried.values())):
        monkeypatch.setattr(stored_fits, "POOR_COLLAPSE", limit)
        found = collapse_of(results, "chi", min_size="auto", bootstrap=0)
        good = [size for size, quality in tried.items() if quality < limit]
        assert min(found.L) == min(good, default=8)


def test_what_is_given_to_a_collapse_is_held(results):
    held = collapse_of(results, "largest", threshold=0.5, y_t=0.75, exponent=-5 / 48, bootstrap=0)
    assert (held.threshold, held.y_t, held.exponent) == (0.5, 0.75, -5 / 48)
    with pytest.raises(InputError, match="observable 'nothing' is not in this file"):
        collapse_of(results, "nothing", threshold=0.5, y_t=0.75)


def test_single_thresholds_follow_the_fit(thresholds):
    record = as_json(thresholds, *QUICK)["sample_thresholds"]
    assert [row["L"] for row in record["sizes"]] == [4, 8, 16]
    for item in record["extrapolations"]:
        truth = {"p_c": 0.5, "1/nu": 0.75}[item["name"]]
        assert abs(item["value"] - truth) <= 4 * item["error"]
    assert all(abs(cell["p"] - 0.5) <= 4 * cell["p_error"] for cell in record["cell_to_cell"])
    text = answer("fit", thresholds, *QUICK)
    assert "mean T" in text
    assert "cell-to-cell p*" in text
    assert "method threshold: 1/nu alone" in answer("fit", thresholds, *QUICK, "--exponents")
    cut = as_json(thresholds, "--bootstrap", 0, "--min-size", 8)["sample_thresholds"]
    assert [row["L"] for row in cut["sizes"]] == [8, 16]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--degree", "0"), "'--degree': 0 is not in the range 1<=x<=8"),
        (("--corrections", "d"), "'--corrections': 'd' is not one of"),
        (("--exponents", "--bootstrap", "10"), "at least 50 bootstrap replicas, got 10"),
    ],
)
def test_bad_options_are_refused(file, options, told):
    assert told in refusal("fit", file, *options)


OF_SIZES = ["--omega=1", "--min-size=2", "--degree=3", "--corrections=b"]
OF_FIT = ["--fits", "--exponents", "--collapse", "--quantities=all"]


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


def test_wrapping_is_fitted_as_spanning_is(tmp_path):
    options = {"boundary": "periodic", "samples": 600, "block_size": 30, "device": "cpu"}
    path = stored(tmp_path / "torus.h5", sweep("square", L=[4, 8, 16], p=P, **options))
    record = as_json(path, *QUICK, "--observable", "wrapping_x", "--exponents", "--collapse")
    assert abs(record["threshold"] - 0.5) <= 4 * record["threshold_error"]
    for crossing in record["ratio_crossings"]["crossings"]:
        assert abs(crossing["p"] - 0.5) <= 4 * crossing["p_error"] + 0.01
    assert [item["observable"] for item in record["collapses"]] == ["wrapping_x", "largest", "chi"]
    # It falls again at large p, which is no distribution of a threshold.
    assert "wrapping_some: no " in refusal("fit", path, "--observable", "wrapping_some")
