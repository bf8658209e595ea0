"""percolab fit: p_c, exponents, collapses, single T, tables and quantities, and what is refused."""

import json
from functools import cache

import numpy as np
import pytest
from cli_support import answer, refusal, stored
from scipy.stats import binom

import percolab
from percolab import AnalysisError, Graph, InputError, sweep
from percolab.analysis.roots import fit_roots
from percolab.analysis.stored_fits import compute_collapse, fit_quantities, fit_results
from percolab.analysis.theory.critical import critical_probability
from percolab.analysis.value import format_with_error
from percolab.store.merging import merge

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
        if p_c is not None:
            assert item["threshold_error"] == whole["threshold_error"] > 0
    assert "quality S" in answer("fit", file, "--bootstrap", 0, "--collapse", "--min-size", 6)


def test_what_is_given_to_a_collapse_is_held(results):
    held = compute_collapse(
        results, "largest", threshold=0.5, y_t=0.75, exponent=-5 / 48, bootstrap=0
    )
    assert (held.threshold, held.y_t, held.exponent) == (0.5, 0.75, -5 / 48)
    with pytest.raises(InputError, match="observable 'nothing' is not in this file"):
        compute_collapse(results, "nothing", threshold=0.5, y_t=0.75)


@pytest.mark.slow
def test_curves_that_do_not_overlap_are_not_collapsed():
    few = sweep("square:1-2", L=[7, 13], boundary="periodic", model="site", samples=7, device="cpu")
    # Warnings are errors in the tests.
    with pytest.raises(AnalysisError, match="overlap too little to be collapsed"):
        compute_collapse(few)


def test_what_is_nothing_at_p_c_is_not_collapsed():
    few = sweep("kagome", L=[2, 3], model="site", samples=200, rng="philox", device="cpu")
    with pytest.raises(AnalysisError, match="L = 2: second_largest is 0 at p_c"):
        compute_collapse(few, "second_largest", threshold=0.1, y_t=0.75)


def test_curves_of_one_slope_give_no_warning():
    few = sweep("diamond", L=[2, 4], p=[0.24, 0.25, 0.26], boundary="open,open,periodic", samples=7,
                rng="philox", device="cpu")  # fmt: skip
    # Warnings are errors in the tests.
    assert "outside the sampled p" in fit_results(few).problem


def test_samples_that_all_agree_have_no_root():
    few = sweep("square-nnn", L=[12, 24], p=[0.24, 0.25], boundary="periodic", samples=7,
                device="cpu", part="2/2")  # fmt: skip
    with pytest.raises(AnalysisError, match="do not determine the root"):
        fit_roots(few)


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
    assert "no cluster sizes are stored (method threshold" in answer(
        "fit", thresholds, *QUICK, "--exponents"
    )
    cut = as_json(thresholds, "--bootstrap", 0, "--min-size", 8)["sample_thresholds"]
    assert [row["L"] for row in cut["sizes"]] == [8, 16]


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


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """Return a table of two decoders, of which one has too few sizes."""
    rng = np.random.default_rng(2)
    lines = ["d,p,errors,shots,decoder"]
    for d in (5, 9, 17, 33):
        for p in np.linspace(0.4, 0.6, 9):
            lines.append(f"{d},{p:.4g},{rng.binomial(9999, binom.sf(d // 2, d, p))},9999,majority")
    lines += ["3,0.4,5,10,lone", "3,0.6,6,10,lone"]
    path = tmp_path_factory.mktemp("tables") / "codes.csv"
    path.write_text("\n".join(lines))
    return path


def test_every_series_is_fitted_or_says_why_not(codes):
    record = json.loads(answer("fit", codes, "--json", "--degree", 3, "--collapse"))
    lone, fit = record["fits"]
    assert lone == {"name": "decoder=lone", "problem": "need at least two sizes with two p each"}
    assert fit["name"] == "decoder=majority"
    assert abs(fit["threshold"] - 0.5) <= 4 * fit["threshold_error"]
    assert abs(fit["collapse"]["threshold"] - 0.5) <= 4 * fit["collapse"]["threshold_error"]
    assert fit["sizes"] == [5, 9, 17, 33]
    assert len(fit["priors"]) == 3
    text = answer("fit", codes, "--series", "decoder=majority", "--degree", 3)
    for line in ("p_c ", "1/nu ", "check: drift of the crossings", "1/nu = 1 +- 1; p_c has none",
                 "L1  L2  crossing p  errors/shots there"):  # fmt: skip
        assert line in text


def test_commands_that_take_no_table_say_which_do(codes):
    for command in ("status", "report", "export"):
        assert refusal(command, codes).endswith(
            "for tables (.csv, .tsv, .txt, .dat) use percolab fit or plot, or percolab.open_table"
        )


def test_the_collapse_is_drawn_with_the_answer_of_the_fit(codes):
    table = percolab.open_table(codes)
    fit = table.fit(series="decoder=majority", degree=3)
    figure = table.plot(kind="collapse", series="decoder=majority", degree=3)
    drawn = figure.numbers["collapse"]
    assert (drawn["threshold"], drawn["y_t"]) == (fit.threshold, fit.y_t)
    title = figure.axes[1].get_title()
    for value, error in ((fit.threshold, fit.threshold_error), (fit.y_t, fit.y_t_error)):
        assert format_with_error(value, error) in title
    tuned = fit.collapse(bootstrap=0)
    assert tuned.quality < drawn["quality"]


def test_axes_of_a_table_have_its_units(codes, tmp_path):
    path = tmp_path / "percent.csv"
    path.write_text(codes.read_text().replace("d,p,", "d,p [%],", 1))
    table, options = percolab.open_table(path), {"series": "decoder=majority", "degree": 3}
    axes = {kind: table.plot(kind=kind, **options).axes for kind in ("curves", "collapse")}
    assert axes["curves"][0].get_xlabel() == "$p$ (%)"
    assert [panel.get_xlabel()[-5:] for panel in axes["collapse"]] == ["$ (%)"] * 2
    assert {panel.get_ylabel() for panels in axes.values() for panel in panels} == {
        r"$\mathrm{errors/shots}$"
    }


@pytest.mark.slow
def test_a_table_is_drawn(codes, tmp_path):
    for kind in ("curves", "crossings", "collapse"):
        out = tmp_path / f"{kind}.png"
        options = ("--series", "decoder=majority", "--degree", 3)
        text = answer("plot", codes, *options, "--kind", kind, "--out", out, "--json")
        numbers = json.loads(text[text.index("{") :])
        assert numbers["kind"] == kind
        assert out.stat().st_size > 5000
    assert len(numbers["collapse"]["x"]) > 20


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--window", "0.2,0.8"), "--window: the fit of a table does not take it"),
        (("--exponents",), "--exponents: the fit of a table does not take it"),
        (("--quantities", "all"), "--quantities: the fit of a table does not take it"),
        (("--series", "decoder=minority"), "did you mean 'decoder=majority'"),
        (("--columns", "x=q"), "--columns x=q"),
        (("--series", "decoder=majority", "--kappa"), "not probabilities, that are all above 0"),
        (("--min-size", 33), "at least two sizes of L >= 33"),
    ],
)
def test_options_that_a_table_has_no_use_for_are_refused(codes, options, problem):
    assert problem in refusal("fit", codes, *options)


def test_a_figure_is_of_one_series(codes):
    assert "give a --series, one of: decoder=lone; decoder=majority" in refusal("plot", codes)
    assert "figures of tables are curves, crossings, collapse" in refusal(
        "plot", codes, "--series", "decoder=majority", "--kind", "drift", "--degree", 3
    )


@pytest.mark.parametrize("command", ["fit", "plot"])
def test_results_take_no_options_of_tables(command):
    assert "--columns: for tables alone" in refusal(command, "a.h5", "--columns", "x=p")


SIZES = [4, 6, 8, 12, 16]


@cache
def torus():
    """Square torus about p = 1/2: five sizes at three p, and more samples of some at one p."""
    options = {"boundary": "periodic", "block_size": 50, "device": "cpu", "workers": 1}
    grid = sweep("square", L=SIZES, p=(0.48, 0.5, 0.52), samples=5000, seed=3, **options)
    one = sweep("square", L=SIZES[2:], p=(0.501,), samples=10_000, seed=4, **options)
    return merge([("grid", grid), ("one", one)])


@pytest.fixture
def path(tmp_path):
    return stored(tmp_path / "torus.h5", torus())


def fitted(path, *options):
    return json.loads(answer("fit", path, "--json", *options))


@pytest.mark.slow
def test_merged_files_give_the_exact_threshold_and_wrapping_probabilities(path):
    record = fitted(path, "--quantities", "wrapping_any,wrapping_axis,Q_1")
    assert abs(record["threshold"] - 0.5) <= 4 * record["threshold_error"]
    assert 0 < record["threshold_error"] < 0.01
    assert abs(record["y_t"] - 0.75) <= 4 * record["y_t_error"]
    assert record["samples"]["8"] == 15_000
    any_axis, axis, ratio = record["quantities"]
    lattice, boundary = torus().study.structure, torus().study.boundary
    along_x = critical_probability(lattice, boundary, "wrapping_x").value
    # The axes of a square torus are alike, so their mean is each of them.
    assert axis["known"]["value"] == pytest.approx(along_x)
    assert ratio["known"] is None
    for own in (any_axis, axis):
        assert abs(own["critical"] - own["known"]["value"]) <= 4 * own["critical_error"]
    assert 0.9 < ratio["critical"] < 1
    for own in record["quantities"]:
        assert abs(own["alone"]["value"] - 0.5) <= 4 * own["alone"]["error"]
        assert record["threshold_error"] < 1.5 * own["alone"]["error"]


def test_the_table_names_quantities_theory_and_both_parts_of_the_error(path):
    text = answer("fit", path, "--quantities", "wrapping_any, Q_1")
    record = fitted(path, "--quantities", "wrapping_any,Q_1")
    head = text.splitlines()
    assert "whole error; 1/nu = 3/4" in head[0]
    assert f"+- {record['statistical_error']:.2g}" in head[1]
    assert f"+- {record['systematic_error']:.2g}" in head[2]
    assert "0.690474" in text
    assert [line.split()[0] for line in text.split("\n\n")[1].splitlines()] == [
        "quantity", "wrapping_any", "Q_1",
    ]  # fmt: skip
    assert "published 0.5" in text


def test_options_hold_what_they_give(path):
    options = ("--degree", "2", "--omega", "1.7", "--min-size", "6", "--nu", "free", "--priors", 2)
    record = fitted(path, "--quantities", "Q_1", *options)
    assert {member["degree"] for member in record["members"]} == {2}
    assert {member["min_size"] for member in record["members"]} == {6, 8}
    assert record["quantities"][0]["omega"] == 1.7
    assert record["known_y_t"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--exponents", "--bootstrap", "10"), "at least 50 bootstrap replicas, got 10"),
        (("--quantities", "Q_9"), "unknown quantity 'Q_9'; "),
        (("--quantities", "Q_B"), "quantity 'Q_B' is not in this file: "),
        (("--quantities", "al"), "unknown quantity 'al'; did you mean 'all'?"),
        (
            ("--quantities", "all,Q_2"),
            "quantity 'all' means wrapping_any, wrapping_all, Q_1, Q_2, ",
        ),
        (("--quantities", "Q_1", "--exponents"), "--exponents: not with --quantities"),
        (("--quantities", "Q_1", "--collapse"), "--collapse: not with --quantities"),
        (("--quantities", "Q_1", "--observable", "wrapping_x"), "--observable: not with"),
        (("--quantities", "Q_1", "--window", "0.2,0.8"), "--window: not with --quantities"),
        (("--quantities", "Q_1", "--bootstrap", "0"), "--bootstrap: not with --quantities"),
        (("--quantities", "Q_1", "--bootstrap", "200"), "--bootstrap: not with --quantities"),
        (("--quantities", "wrapping_any,wrapping_all,wrapping_x,wrapping_y"), "follows exactly"),
    ],
)
def test_what_cannot_be_fitted_is_refused(path, options, message):
    assert message in refusal("fit", path, *options)


@pytest.mark.slow
def test_too_few_blocks_are_told_with_how_many_quantities_they_are_enough_for(tmp_path):
    options = {"boundary": "periodic", "block_size": 200, "device": "cpu", "workers": 1}
    counts, p = [8000, 7600, 4800], (0.47, 0.5, 0.53)
    results = sweep("square", L=SIZES[:3], p=p, samples=counts, seed=2, **options)
    path = stored(tmp_path / "few.h5", results)
    names = "wrapping_any,wrapping_all,Q_1,Q_2,s_2/s_1"
    assert refusal("fit", path, "--quantities", names) == (
        "L = 8: 24 blocks are too few for the covariance of 5 quantities (at least 50; they are "
        "enough for 2): fit fewer quantities, or add samples"
    )
    assert fitted(path, "--quantities", "wrapping_any,Q_1")["samples"]["8"] == 4800
    # Without names as many are fitted as there are blocks for.
    record = fitted(path, "--quantities", "all")
    assert [item["name"] for item in record["quantities"]] == ["wrapping_any", "wrapping_all"]
    assert sum("blocks are too few for the covariance" in n for n in record["notes"]) == 3


def test_two_sizes_give_an_answer_and_one_does_not(tmp_path):
    options = {"samples": 4000, "block_size": 50, "device": "cpu", "workers": 1}
    results = sweep("square", L=[8, 16], p=(0.47, 0.5, 0.53), boundary="periodic", **options)
    path = stored(tmp_path / "two.h5", results)
    record = fitted(path, "--quantities", "all")
    assert list(record["samples"]) == ["8", "16"]
    assert abs(record["threshold"] - 0.5) <= 4 * record["threshold_error"] < 0.1
    message = refusal("fit", path, "--quantities", "all", "--min-size", 16)
    assert message == "need at least two sizes for a joint fit, got L = 16"


def test_a_size_whose_p_are_all_too_far_from_p_c_is_left_out_and_named(tmp_path):
    options = {"samples": 2000, "block_size": 50, "seed": 6, "device": "cpu", "workers": 1}
    results = sweep("square", L=[8, 16, 32], p=(0.42, 0.47, 0.52, 0.57), **options)
    names = "spanning_any,spanning_all,Q_1,Q_2"
    record = fitted(stored(tmp_path / "wide.h5", results), "--quantities", names)
    assert list(record["samples"]) == ["8", "16"]
    assert "L = 32 not used: none of its p is near p_c" in record["notes"]
    assert abs(record["threshold"] - 0.5) <= 4 * record["threshold_error"] < 0.2


@pytest.mark.slow
def test_all_leaves_out_what_has_no_slope(tmp_path):
    options = {"boundary": "periodic", "block_size": 50, "device": "cpu", "workers": 1}
    one = sweep(
        "square", L=SIZES[:3], p=(0.5,), samples=2000, seed=5, measure=("sizes",), **options
    )
    path = stored(tmp_path / "more.h5", merge([("torus", torus()), ("one", one)]))
    record = fitted(path, "--quantities", "all")
    assert "Q_B" not in [item["name"] for item in record["quantities"]]
    assert (
        "quantity 'Q_B' is measured at one p per size, so its slope is unknown: left out"
        in (record["notes"])
    )
    assert "'Q_B' is measured at one p per size" in refusal("fit", path, "--quantities", "Q_1,Q_B")


@pytest.mark.slow
def test_exact_thresholds_of_samples_are_fitted_too(tmp_path):
    options = {"samples": 3000, "block_size": 20, "device": "cpu", "workers": 1}
    results = sweep("square", L=[8, 12, 16, 24], method="threshold", **options)
    path = stored(tmp_path / "exact.h5", results)
    record = fitted(path, "--quantities", "spanning_axis")
    assert abs(record["threshold"] - 0.5) <= 4 * record["threshold_error"]
    assert any("too far from p_c" in note for note in record["notes"])


@pytest.mark.slow
def test_a_part_with_too_few_blocks_is_left_out_with_a_note():
    shared = {"L": [4, 8, 12, 16], "p": [0.48, 0.5, 0.52], "boundary": "periodic", "device": "cpu"}
    many = sweep("square", samples=3000, seed=5, block_size=50, **shared)
    alone = fit_quantities(many, ["wrapping_any", "Q_1"])
    # A part of its own: other blocks than the large one's, so that they are not pooled.
    few = sweep("square", samples=250, seed=6, block_size=25, **shared)
    both = fit_quantities(merge([("many", many), ("few", few)]), ["wrapping_any", "Q_1"])
    assert both.threshold == alone.threshold
    assert [note for note in both.notes if "too few blocks" in note] == [
        "L = 4, 8, 12, 16: p with too few blocks for their covariance: left out"
    ]
