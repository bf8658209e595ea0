"""A file is extended in place: nothing stored changes, nothing is made otherwise silently."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, assert_equal_datasets, refusal, run

from percolab.analysis.quantities import list_quantities
from percolab.analysis.statistics import MIN_BLOCKS
from percolab.analysis.stored_data import pool_moments, read_curves
from percolab.api import fit, sweep
from percolab.kernels.device import Device
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.run.plan import plan_study
from percolab.run.stored import Interrupted
from percolab.store.joined import joined
from percolab.store.merging import merge
from percolab.store.results import ResultsWriter, read_results
from percolab.tasks.study import StopRule, block_size_for, default_block_size

P = [0.4, 0.5, 0.6]
SQUARE = {"L": [4, 6], "p": P, "samples": 200, "device": "cpu", "workers": 1}


pytestmark = pytest.mark.usefixtures("own_directory")


def samples_of(path="r.h5"):
    """Return the samples of a file by size and p."""
    tasks = read_results(path).tasks.values()
    return {(item.task.size, p): item.num_samples for item in tasks for p in item.task.p}


def content(path="r.h5"):
    """Return the sums of every task of a file by its id."""
    tasks = read_results(path).tasks
    return {key: item.column("largest").tobytes() for key, item in tasks.items()}


@pytest.mark.parametrize("default", [10, 13, 32, 64, 100])
@pytest.mark.parametrize("samples", [1, 2, 10, 97, 100, 250, 300, 1000, 10_000, 10_007, 20_000])
def test_blocks_make_up_the_samples_and_are_enough(samples, default):
    size = block_size_for(samples, default)
    assert 1 <= size <= default
    made = -(-samples // size) * size
    assert made - samples <= (1 if samples == 10_007 else 0)
    assert samples // size >= min(MIN_BLOCKS, samples)


def test_ordinary_studies_have_the_default_blocks():
    for samples in (1000, 10_000, 10**6):
        assert block_size_for(samples, default_block_size(2**17)) == 100


@pytest.mark.parametrize("samples", [1, 10, 97, 250])
def test_requested_samples_are_made(samples):
    results = sweep("square", **SQUARE | {"samples": samples})
    assert {item.num_samples for item in results.tasks.values()} == {samples}


def test_one_line_reports_samples_that_are_no_whole_blocks():
    command = ("sweep", "--lattice", "square", "-L", 4, "-p", 0.5, "--device", "cpu",
               "--out", "r.h5")  # fmt: skip
    assert "samples are made" not in run(*command, "--samples", 250).stderr
    message = run(*command, "--samples", 260).stderr.splitlines()
    assert message.count("L = 4: 275 samples are made, not 260: a block has 25") == 1
    assert samples_of() == {(4, 0.5): 275}
    assert "samples are made" not in run(*command, "--samples", 260).stderr


def test_more_sizes_are_added_and_less_adds_nothing():
    sweep("square", **SQUARE, out="r.h5")
    before = content()
    sweep("square", **SQUARE | {"L": [6, 8]}, out="r.h5")
    after = content()
    assert before.items() < after.items()
    assert read_results("r.h5").study.sizes == (4, 6, 8)
    whole = Path("r.h5").read_bytes()
    for less in ({}, {"L": [4]}, {"samples": 20}, {"p": [0.5]}, {"L": None, "samples": None}):
        sweep("square", **SQUARE | less, out="r.h5")
        assert Path("r.h5").read_bytes() == whole
    sweep("square", **SQUARE | {"L": [4, 6, 8]}, out="direct.h5")
    assert_equal_datasets(Path("r.h5"), Path("direct.h5"))


def test_more_p_are_measured_on_the_same_samples_and_joined():
    """The file of two requests is analysed as that of one with all p."""
    measure = {"measure": "sizes,gyration"}
    sweep("square", **SQUARE, **measure, out="r.h5")
    before = content()
    sweep("square", **SQUARE | {"p": [0.45, 0.5, 0.55]}, **measure, out="r.h5")
    assert before.items() < content().items()
    found = read_results("r.h5")
    assert found.study.p == (0.4, 0.45, 0.5, 0.55, 0.6)
    whole = sweep("square", **SQUARE | {"p": [0.4, 0.45, 0.5, 0.55, 0.6]}, **measure)
    assert len(found.tasks) == 4
    parts = joined(found).tasks
    assert parts.keys() == whole.tasks.keys()
    for key, item in whole.tasks.items():
        for number, block in item.blocks.items():
            own = parts[key].blocks[number]
            np.testing.assert_array_equal(own.sums, block.sums)
            np.testing.assert_array_equal(own.squares, block.squares)
            for name in block.extras:
                np.testing.assert_array_equal(own.extras[name], block.extras[name])
    ours, theirs = fit(found), fit(whole)
    assert (ours.threshold, ours.threshold_error) == (theirs.threshold, theirs.threshold_error)


def test_samples_that_only_some_p_have_stay_apart():
    """They are others than the joined ones, so that no sample counts twice."""
    sweep("square", **SQUARE, out="r.h5")
    sweep("square", **SQUARE | {"p": [0.45], "samples": 100}, out="r.h5")
    curves = [curve for curve in read_curves(read_results("r.h5")) if curve.L == 4]
    found = {tuple(curve.p): curve.samples.sum() for curve in curves}
    assert found == {(0.4, 0.5, 0.6): 100, (0.4, 0.45, 0.5, 0.6): 100}


def test_a_file_with_more_p_can_be_merged_and_the_moments_are_joined():
    sweep("square", **SQUARE, out="r.h5")
    sweep("square", **SQUARE | {"p": [0.45, 0.55]}, out="r.h5")
    merged = merge([("r.h5", read_results("r.h5"))])
    assert len(merged.tasks) == 4
    quantity = next(
        item for item in list_quantities(("open", "open")) if item.name == "spanning_any"
    )
    found = pool_moments(merged, [quantity])
    assert [(item.L, item.p.tolist()) for item in found] == [
        (size, [0.4, 0.45, 0.5, 0.55, 0.6]) for size in (4, 6)
    ]


def test_more_p_than_a_pilot_placed():
    placed = {key: value for key, value in SQUARE.items() if key != "p"}
    sweep("square", **placed, out="r.h5")
    before = samples_of()
    sweep("square", **SQUARE, out="r.h5")
    assert samples_of() == before | {(L, p): 200 for L in (4, 6) for p in P}
    whole = Path("r.h5").read_bytes()
    sweep("square", **placed, out="r.h5")
    assert Path("r.h5").read_bytes() == whole


def test_a_plan_predicts_an_extension():
    sweep("square", **SQUARE, out="r.h5")
    study = sweep("square", **SQUARE | {"L": [6, 8], "p": [0.4, 0.45], "samples": 10}).study
    rule = StopRule(dict.fromkeys(study.sizes, 200))
    plan = plan_study(study, rule, writer=ResultsWriter("r.h5"), device=Device("cpu"), workers=1)
    assert [(row.L, row.points, row.samples, row.stored) for row in plan.sizes] == [
        (6, 4, 200, 0),
        (8, 2, 200, 0),
    ]


def test_without_samples_a_file_keeps_what_it_was_made_with():
    sweep("square", **SQUARE, out="r.h5")
    for _ in range(2):
        sweep("square", **SQUARE | {"samples": None}, out="r.h5")
        assert set(samples_of().values()) == {200}
    sweep("square", **SQUARE | {"samples": None, "L": [8]}, out="r.h5")
    assert samples_of()[8, 0.5] == 200


def test_an_interrupted_file_continues_to_its_request(interrupting):
    with pytest.raises(Interrupted):
        sweep("square", **SQUARE, out="r.h5", observer=interrupting)
    assert min(samples_of().values()) < 200
    sweep("square", **SQUARE | {"samples": None}, out="r.h5")
    assert set(samples_of().values()) == {200}


def test_without_samples_a_target_error_is_kept():
    options = {"L": [6, 12], "p": [0.4, 0.45, 0.5, 0.55, 0.6], "device": "cpu", "workers": 1}
    sweep("square", **options, target_error=0.05, out="r.h5")
    before = Path("r.h5").read_bytes()
    sweep("square", **options, out="r.h5")
    assert Path("r.h5").read_bytes() == before


def test_a_message_never_repeats_a_long_list():
    many = ",".join(f"{x:.9f}" for x in np.linspace(0.1, 0.9, 9000))
    tiny = ("sweep", "--lattice", "square", "-L", 4, "--device", "cpu", "--out", "r.h5")
    answer(*tiny, "-p", many, "--samples", 1, "--quiet")
    for wrong in (("-p", many, "--seed", 2), ("-p", f"{many},x"), ("-p", f"{many},2")):
        assert len(refusal(*tiny, *wrong)) < 300
    Path("s.toml").write_text(f"p = [{many}, 'x']")
    assert len(refusal("sweep", "s.toml")) < 300


CHAIN = """
name = "mine"
dimension = 2
cell = { shape = [1, 1] }
bonds = [{ offset = [1, 0] }, { offset = [0, 1] }]
"""
KNOWN = """
[[thresholds]]
model = "bond"
value = 0.5
expression = "1/2"
reference = "H. Kesten, Commun. Math. Phys. 74, 41 (1980)"
"""


@pytest.mark.slow
def test_fit_prints_a_threshold_published_since():
    Path("mine.toml").write_text(CHAIN)
    command = ("sweep", "--lattice", "mine.toml", "-L", "4,6,8", "-p", "0.4:0.6:5", "--samples",
               300, "--device", "cpu", "--out", "r.h5", "--quiet")  # fmt: skip
    answer(*command)
    assert "published" not in answer("fit", "r.h5", "--bootstrap", 0)
    before = content()
    Path("mine.toml").write_text(CHAIN + KNOWN)
    answer(*command)
    assert "published 0.5" in answer("fit", "r.h5", "--bootstrap", 0)
    assert content() == before
    assert read_results("r.h5").study.structure.source == CHAIN + KNOWN


def test_what_is_published_is_no_part_of_a_digest():
    assert (
        lattice_from_text(CHAIN, where="a").digest
        == lattice_from_text(CHAIN.replace("mine", "other") + KNOWN, where="b").digest
        == load_lattice("square").digest
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lattice", ""), "unknown lattice ''"),
        (("-L", ""), "L = ''"),
        (("-p", ""), "p = ''"),
        (("--boundary", ""), "boundary ''"),
        (("--out", "results.png"), "results.png ends in .png, but a results file ends in .h5"),
        (("--out", "results"), "results has no suffix, but a results file ends in .h5"),
        (("--out", "nowhere/r.h5"), "the directory"),
    ],
    ids=str,
)
def test_empty_settings_and_wrong_files_are_refused_before_sampling(options, message):
    assert message in refusal("sweep", *options, "--samples", 10)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "study.toml: is empty"),
        ("# nothing\n", "study.toml: is empty"),
        ('lattice = ""', "study.toml: unknown lattice ''"),
        ('out = "r.txt"', "study.toml: out = r.txt ends in .txt"),
        ('out = "nowhere/r.h5"', "the directory"),
    ],
)
def test_a_study_file_without_a_graph_or_with_a_wrong_one_is_refused(text, message):
    Path("study.toml").write_text(text)
    assert message in refusal("sweep", "study.toml")
    assert [path.name for path in Path().iterdir()] == ["study.toml"]


def test_the_record_of_a_run_has_the_request():
    sweep("square", **SQUARE, out="r.h5")
    (record,) = json.loads(answer("status", "r.h5", "--json"))["runs"]
    assert record["asked"] == {"samples": dict.fromkeys(read_results("r.h5").tasks, 200)}
