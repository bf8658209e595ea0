"""`percolab sweep --plan` predicts what the same sweep then takes and gives."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from cli_support import answer, assert_equal_datasets, blocks_in, refusal
from helpers import slow_but

from percolab import load_lattice, sweep
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.stored_fits import fit_results
from percolab.analysis.threshold import fit_threshold
from percolab.kinds.memory import estimate_memory
from percolab.kinds.threshold import Threshold
from percolab.run import plan as planning
from percolab.run.plan import continue_p, plan_study
from percolab.run.targets import expected_curve
from percolab.store.results import ResultsWriter
from percolab.store.task_result import TaskResult
from percolab.tasks.kind import Kind
from percolab.tasks.study import Task
from percolab.tasks.study_file import make_request

SQUARE = {"lattice": "square", "L": [8, 16, 32], "samples": 3000, "seed": 11}
CUBE = {"lattice": "cubic", "L": [24], "p": [0.1, 0.2488], "samples": 20}
STUDIES = {
    "grid": SQUARE,
    "torus": SQUARE | {"boundary": "periodic", "measure": "sizes"},
    "one size": SQUARE | {"L": [16], "p": [0.4, 0.5], "workers": 2},
    "thresholds": SQUARE | {"method": "threshold"},
    "trees": SQUARE | {"L": [8, 16], "method": "tree", "samples": 200},
    "bethe": SQUARE | {"lattice": "bethe:3", "L": [3, 5], "samples": 500},
    "chains": {"lattice": "square", "L": [8], "model": "ising", "samples": 2000, "p": [0.5, 0.6]},
    "one chain": {"lattice": "square", "L": [8], "model": "potts:q=3", "samples": 2000, "chains": 1,
                  "p": [0.6], "measure": "series"},
    "slabs": CUBE | {"slabs": 4, "boundary": "periodic", "workers": 2},
    "ranks": CUBE | {"split": "lattice", "workers": 2, "slabs": 4, "measure": "sizes"},
    "boxes": CUBE | {"split": "lattice", "blocks": "2x1x2"},
    "processes": SQUARE | {"executor": "processes", "workers": 2},
}  # fmt: skip


def planned(path, **settings):
    """Return the plan of a sweep on the CPU, by one worker if not said otherwise."""
    request = make_request(out=path, device="cpu", **{"workers": 1} | settings)
    if settings.get("blocks"):
        request = replace(request, options={**request.options, "workers": None})
    return plan_study(request.study, request.rule, **request.options, writer=ResultsWriter(path))


def swept(path, **settings):
    given = settings if "blocks" in settings else {"workers": 1} | settings
    return sweep(**given, device="cpu", out=path)


@pytest.mark.parametrize("name", slow_but(STUDIES, "slabs", "chains"))
def test_samples_and_file_come_out_as_planned(tmp_path, name):
    path, study = tmp_path / "results.h5", STUDIES[name]
    plan = planned(path, **study)
    assert list(tmp_path.iterdir()) == []
    results = swept(path, **study)
    assert 1 / 1.5 < plan.file_bytes / os.path.getsize(path) < 1.5
    assert (plan.workers, plan.rounds) == (results.runs[0]["workers"], 1)
    for row in plan.sizes:
        (item,) = results.of_size(row.L)
        assert (row.points, row.stored, row.samples) == (len(item.task.p), 0, item.num_samples)
        assert row.seconds >= 0.99 * (row.samples - 1) / row.rate > 0
        assert row.host_bytes > 0
    parts = plan.start_seconds + plan.placing_seconds + plan.analysis_seconds
    assert plan.seconds > parts + max(row.seconds for row in plan.sizes) / 2
    assert plan.host_bytes > plan.base_bytes + sum(row.host_bytes for row in plan.sizes)
    if name in ("grid", "torus", "thresholds", "processes"):
        error = fit_results(results).threshold_error
        assert plan.threshold_error == pytest.approx(error, rel=0.5)
    else:
        assert plan.threshold_error is None
        assert plan.notes[-1].startswith("no error of p_c: ")


def test_memory_is_that_of_what_samples(tmp_path):
    one, two = (planned(tmp_path / "a.h5", **STUDIES["one size"] | {"workers": n}) for n in (1, 2))
    task = Task(load_lattice("square"), 16, ("open", "open"), (0.4, 0.5))
    for plan, workers in ((one, 1), (two, 2)):
        assert plan.sizes[0].host_bytes == estimate_memory(task, "raster", "cpu", workers).host
        assert plan.sizes[0].device_bytes == plan.device_bytes == 0


@pytest.mark.slow
def test_a_plan_counts_stored_samples(tmp_path):
    path = tmp_path / "results.h5"
    swept(path, **SQUARE | {"samples": 1000})
    before, entries = path.read_bytes(), set(tmp_path.iterdir())
    plan = planned(path, **SQUARE)
    assert (path.read_bytes(), set(tmp_path.iterdir())) == (before, entries)
    assert [(row.stored, row.samples) for row in plan.sizes] == [(1000, 3000)] * 3
    results = swept(path, **SQUARE)
    assert plan.file_bytes == pytest.approx(os.path.getsize(path), rel=0.3)
    error = fit_results(results).threshold_error
    assert plan.threshold_error == pytest.approx(error, rel=0.3)
    done = planned(path, **SQUARE)
    assert (done.seconds, done.analysis_seconds) == (0, 0)
    assert [(row.stored, row.samples, row.rate) for row in done.sizes] == [(3000, 3000, None)] * 3
    assert done.seconds == done.start_seconds == done.placing_seconds == 0
    assert done.file_bytes == pytest.approx(os.path.getsize(path), rel=0.01)


def test_a_plan_changes_no_sample(tmp_path):
    """Its samples have another purpose, and it leaves nothing that a sweep would find."""
    first, second = tmp_path / "first.h5", tmp_path / "second.h5"
    small = SQUARE | {"samples": 200}
    swept(first, **small)
    planned(second, **small)
    swept(second, **small)
    assert_equal_datasets(first, second)


@pytest.mark.slow
def test_a_target_error_has_its_samples_planned(tmp_path):
    path, study = tmp_path / "results.h5", SQUARE | {"samples": None, "target_error": 4e-3}
    plan = planned(path, **study)
    assert plan.threshold_error <= 4e-3
    results = swept(path, **study)
    # When a target is met depends on how far the averaged fits disagree, which no plan foresees.
    for row in plan.sizes:
        assert 1 / 5 < row.samples / results.of_size(row.L)[0].num_samples < 5
    # What is there is judged as the sweep judged it.
    done = planned(path, **study)
    assert [row.samples for row in done.sizes] == [row.stored for row in done.sizes]
    assert (done.seconds, done.rounds) == (0, len(results.runs))


@pytest.mark.parametrize("given", [{}, {"p": [0.46, 0.5, 0.52]}, {"method": "threshold"}], ids=str)
def test_samples_that_take_long_are_planned_by_smaller_ones(tmp_path, monkeypatch, given):
    work = {"cpu": 300 * (3 if "p" in given else 9)}
    monkeypatch.setattr(planning, "_SAMPLE_WORK", work)
    monkeypatch.setattr(Threshold, "count_labelings", lambda self, task: 9)
    monkeypatch.setattr(Kind, "most_placed", {"cpu": 300})
    time_blocks, sizes = planning._Planning._time_blocks, set()

    def timed(self, item, pool, blocks):
        sizes.add(item.task.size)
        return time_blocks(self, item, pool, blocks)

    monkeypatch.setattr(planning._Planning, "_time_blocks", timed)
    plan = planned(tmp_path / "results.h5", **SQUARE | {"L": [32, 64], "samples": 300} | given)
    assert sizes == {16}
    assert [(row.L, row.samples) for row in plan.sizes] == [(32, 300), (64, 300)]
    is_continued = any("p of L = 32, 64 are extrapolated" in note for note in plan.notes)
    assert is_continued == ("p" not in given)


@pytest.mark.parametrize("name", ["slabs", "ranks", "boxes"])
def test_the_time_of_layers_is_on_a_line(tmp_path, monkeypatch, name):
    """A row takes 3 s, and 2 s more for every layer."""
    time_blocks, layers = planning._Planning._time_blocks, []

    def timed(self, item, pool, blocks):
        time_blocks(self, item, pool, blocks)
        layers.append(item.task.shape[-1])
        return blocks * len(item.task.p) * (3.0 + 2.0 * layers[-1])

    monkeypatch.setattr(planning._Planning, "_time_blocks", timed)
    for sites, measured in ((8 * 24**2, {2, 8}), (10**6, {24})):
        monkeypatch.setattr(planning, "_LAYERS_SITES", {"cpu": sites})
        layers.clear()
        (row,) = planned(tmp_path / "none.h5", **STUDIES[name]).sizes
        assert set(layers) == (measured if name != "slabs" or 24 in measured else {2, 6})
        assert 1 / row.rate == pytest.approx(2 * 51)


@pytest.mark.parametrize("samples", [7, 300])
def test_a_plan_measures_at_most_four_times_what_the_study_does(tmp_path, monkeypatch, samples):
    measured, counted = TaskResult.add, dict[int, int]()

    def count(result, blocks):
        made = result.task.block_size * len(blocks)
        counted[result.task.size] = counted.get(result.task.size, 0) + made
        measured(result, blocks)

    monkeypatch.setattr(TaskResult, "add", count)
    plan = planned(tmp_path / "r.h5", L=[4, 6], samples=samples, labeler="reference", p=[0.5])
    assert set(counted) == {4, 6}
    # Two first measurements, a longer one, and blocks are whole.
    assert max(counted.values()) <= 4 * samples
    assert plan.seconds > 0


def test_p_of_a_large_size_continue_those_of_smaller_ones():
    spans = {L: tuple(0.5 + 1.75 * x * L**-0.75 for x in (-1, 0, 1)) for L in (16, 32)}
    expected = [0.5 + 1.75 * x * 512**-0.75 for x in (-1, 0, 1)]
    assert continue_p(spans, 512) == pytest.approx(expected, abs=1e-9)
    assert continue_p({16: (0.4, 0.6)}, 64) == (0.4, 0.6)


def test_the_expected_curve_is_the_scaling_function_without_scatter():
    function = ScalingFunction(0.5, 0.75, (0.1, 1.0), corrections=(0.2, 0.0, 0.0, 0.0))
    p, curves = np.array((0.48, 0.49, 0.5, 0.51, 0.52)), []
    for L in (16, 32, 64):
        curves.append(expected_curve(function, L, p, str(L)))
        assert curves[-1].probability == pytest.approx(function.probability(p, L), abs=1e-8)
    assert fit_threshold(curves).threshold == pytest.approx(0.5, abs=1e-4)


COMMAND = ("sweep", "--lattice", "square", "-L", "8,16,32", "--samples", "300", "--device", "cpu",
           "--workers", "1", "--plan")  # fmt: skip


def test_the_command_prints_a_row_a_size_and_totals(tmp_path):
    out = tmp_path / "results.h5"
    lines = answer(*COMMAND, "--out", out).splitlines()
    assert lines[0] == f"square; would go to {out}"
    assert [line.split()[0] for line in lines[1:]][:8] == [
        "L", "8", "16", "32", "time", "memory", "file", "error",
    ]  # fmt: skip
    assert [line.split()[2] for line in lines[2:5]] == ["300"] * 3
    assert " within a factor of 1.5, on cpu with 1 worker, " in lines[5]
    found = json.loads(answer(*COMMAND, "--json", "--out", out))
    assert [row["L"] for row in found["sizes"]] == [8, 16, 32]
    assert found["file_bytes"] > sum(row["file_bytes"] for row in found["sizes"]) > 0
    assert found["host_bytes"] > found["base_bytes"] > 0
    assert found["threshold_error"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--plan", "--target-error", "2"), "target error 2.0 must be above 0 and below 1"),
        (("--plan", "--samples", "10", "--out", "nowhere/a.h5"), "does not exist"),
        (("--plan", "--lattice", "squre"), "squre"),
        (("--samples", "10", "--json"), "--json: only with --plan"),
        (("--plan", "--target-error", "1e-3", "-p", "0.1,0.2"), "the pilot finds no p_c"),
        (("--plan", "--samples", "10", "--export", "a.csv"), "No such option"),
    ],
)
def test_what_cannot_be_planned_is_one_line(tmp_path, options, message):
    given = ("sweep", "-L", "8,16", "--device", "cpu", "--workers", "1")
    assert message in refusal(*given, *options)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_of_another_study_is_refused(tmp_path):
    out = tmp_path / "results.h5"
    swept(out, **SQUARE | {"samples": 100})
    assert "holds another study" in refusal(*COMMAND, "--seed", "5", "--out", out)
    assert blocks_in(out) == 30
