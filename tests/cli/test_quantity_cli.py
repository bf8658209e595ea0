"""percolab fit --quantities: the joint fit from stored files, its options and its refusals."""

import json
from functools import cache

import pytest
from cli_support import answer, refusal, stored

from percolab.analysis.stored_fits import fit_quantities
from percolab.analysis.theory.critical import critical_probability
from percolab.api import sweep
from percolab.store.merging import merge

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
        (("--quantities", "Q_9"), "unknown quantity 'Q_9'; "),
        (("--quantities", "Q_B"), "quantity 'Q_B' is not in this file: "),
        (("--quantities", "al"), "unknown quantity 'al'; did you mean 'all'?"),
        (
            ("--quantities", "all,Q_2"),
            "quantity 'all' stands alone, for wrapping_any, wrapping_all, Q_1, Q_2, ",
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
        "enough for 2): ask for fewer quantities, or add samples"
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
        "quantity 'Q_B' is there at one p a size, so its slope is unknown: left out"
        in (record["notes"])
    )
    assert "'Q_B' is there at one p a size" in refusal("fit", path, "--quantities", "Q_1,Q_B")


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
    assert sum("10 blocks are too few" in note for note in both.notes) == 4
