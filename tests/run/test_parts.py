"""Parts of a study, made apart and merged, are the undivided study byte for byte."""

import shutil
from pathlib import Path

import pytest
from cli_support import answer, blocks_in, refusal, run, without_runs
from helpers import slow

from percolab.api import sweep
from percolab.store.results import read_results

GRID = {"L": [6, 8], "p": [0.4, 0.5], "samples": 1000}
ISING = ("--model", "ising", "--boundary", "periodic")
STUDY = ("sweep", "--lattice", "square", "-L", "6,8", "--device", "cpu", "--workers", "1")


def file_of(path):
    return without_runs(read_results(path))


def test_a_part_has_every_nth_block_and_is_finished_with_them():
    sweep("square", **GRID, part="2/3", device="cpu", out="p.h5")
    for item in read_results("p.h5").tasks.values():
        assert item.numbers.tolist() == list(range(1, 10, 3))
    before = Path("p.h5").read_bytes()
    results = sweep("square", **GRID, part="2/3", device="cpu", out="p.h5")
    assert Path("p.h5").read_bytes() == before
    assert [run["asked"]["part"] for run in results.runs] == ["2/3"]
    # More samples, and the other blocks, are added to it as to any file.
    sweep("square", **GRID | {"samples": 2000}, part="2/3", device="cpu", out="p.h5")
    assert blocks_in("p.h5") == 14
    sweep("square", **GRID | {"samples": 2000}, device="cpu", out="p.h5")
    for item in read_results("p.h5").tasks.values():
        assert item.num_samples == 2000


def test_as_many_blocks_of_another_part_do_not_finish_a_part():
    for k, blocks in ((2, 6), (3, 12)):
        sweep("square", **GRID, part=f"{k}/3", device="cpu", out="p.h5")
        assert blocks_in("p.h5") == blocks


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), slow(ISING)], ids=len)
def test_what_is_left_open_is_placed_once(more):
    study = (*STUDY, *more, "--samples", 400, "--quiet")
    answer(*study, "--out", "whole.h5")
    message = answer(*study, "--prepare", "--out", "prepared.h5")
    assert message == "square: 2 tasks prepared in prepared.h5\n"
    assert blocks_in("prepared.h5") == 0
    before = Path("prepared.h5").read_bytes()
    answer(*study, "--prepare", "--out", "prepared.h5")
    assert Path("prepared.h5").read_bytes() == before
    for k in (1, 2):
        shutil.copy("prepared.h5", f"part-{k}.h5")
        answer(*study, "--part", f"{k}/2", "--out", f"part-{k}.h5")
    answer("merge", "part-1.h5", "part-2.h5", "--out", "all.h5")
    assert file_of("all.h5") == file_of("whole.h5")


def test_progress_of_a_part_is_that_of_its_own_blocks():
    message = run(*STUDY, "-p", "0.5", "--samples", 1000, "--part", "1/4", "--out", "p.h5").stderr
    assert "100%" in message


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["0/4", "5/4", "0/0"], "part = {}, but in k/n k must be from 1 to n"),
        (
            ["x", "1", "1/", "/2", "1/x", "-1/4", "1/2/3", "1.5/4", "²/4"],
            "part = {!r}, but a part is k/n, as in 3/16",
        ),
    ],
)
def test_what_is_no_part_of_n_is_refused(texts, message):
    for text in texts:
        assert refusal(*STUDY, "-p", "0.5", "--part", text) == message.format(text)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("-p", "0.5", "--target-error", "0.01"), "part 1/2: a target error needs all "),
        ((), "part 1/2: p must be the same in all parts: give it, or find it once with --prepare"),
        (("--model", "ising", "-p", "0.5"), "part 1/2: the burn-in must be the same in all parts"),
        (
            ("--model", "ising", "-p", "0.5", "--burn-in", 5, "--chains", 1),
            "part 1/2: one long chain (chains 1) has no parts",
        ),
        (("-p", "0.5", "--plan"), "--plan: only for the whole study; leave out --part"),
        (("-p", "0.5", "--prepare"), "--prepare: only for the whole study; leave out --part"),
    ],
    ids=["target error", "p", "burn-in", "one chain", "plan", "prepare"],
)
def test_what_has_no_parts_is_refused_in_one_line_and_writes_nothing(more, message, tmp_path):
    assert refusal(*STUDY, *more, "--part", "1/2", "--out", "r.h5").startswith(message)
    assert not list(tmp_path.iterdir())
