"""`percolab sweep --plan` predicts what the same sweep then takes and gives."""

import json
import os
import time
from dataclasses import replace

import numpy as np
import pytest
from cli_support import answer, assert_equal_datasets, blocks_in, refusal, run

from percolab.analysis import fit_threshold
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.stored_fits import fit_results
from percolab.api import sweep
from percolab.kernels.device import Device
from percolab.kinds.grid import GridSampler
from percolab.kinds.threshold import ThresholdSampler
from percolab.lattices.lattice import load_lattice
from percolab.run import plan_pilot
from percolab.run.engine import Engine
from percolab.run.plan import _sampled_p, plan_study
from percolab.run.plan_file import likely_block
from percolab.run.plan_pilot import extrapolated
from percolab.run.wanted import expected_curve
from percolab.store.results import ResultsWriter, read_results
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task
from percolab.tasks.study_file import make_request

SQUARE = {"lattice": "square", "L": [8, 16, 32], "samples": 3000, "seed": 11}
STUDIES = {
    "square": SQUARE,
    "triangular": SQUARE | {"lattice": "triangular", "L": [12, 24, 48], "samples": 2000},
    "torus": SQUARE | {"boundary": "periodic", "samples": 2000},
    "thresholds": SQUARE | {"method": "threshold"},
    "target": SQUARE | {"samples": None, "target_error": 4e-3},
}


def planned(path, **settings):
    """Return the plan of a sweep on one thread of the CPU."""
    request = make_request(out=path, **settings)
    writer = ResultsWriter(path)
    return plan_study(request.study, request.rule, writer=writer, device=Device("cpu"), workers=1)


def swept(path, **settings):
    """Run the sweep; return its results and the seconds it took."""
    begin = time.perf_counter()
    results = sweep(**settings, device="cpu", workers=1, out=path)
    return results, time.perf_counter() - begin


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("triangular", "torus")))
        for name in STUDIES
    ],
)
def test_file_error_and_samples_come_out_as_planned(tmp_path, name):
    path = tmp_path / "results.h5"
    plan = planned(path, **STUDIES[name])
    assert list(tmp_path.iterdir()) == []
    results, seconds = swept(path, **STUDIES[name])
    # When a target is met depends on how far the averaged fits disagree, which no plan foresees.
    factor = 5 if name == "target" else 1.15
    assert 1 / factor < plan.file_bytes / os.path.getsize(path) < factor
    error = fit_results(results).threshold_error
    assert plan.threshold_error == pytest.approx(error, rel=0.5)
    # A machine that others use too may be slow for a while: measured alone, 0.8 to 1.3.
    assert seconds < 5 * factor * plan.seconds + 2
    assert plan.seconds < 5 * factor * seconds + 2
    assert plan.compile_seconds >= 0
    for row in plan.sizes:
        (item,) = results.of_size(row.L)
        assert 1 / factor < row.samples / item.num_samples < factor
        assert name == "target" or row.samples == item.num_samples
        assert row.points == len(item.task.p)
    if name == "target":
        assert plan.threshold_error <= 4e-3


def test_a_plan_counts_what_the_file_holds(tmp_path):
    path = tmp_path / "results.h5"
    swept(path, **SQUARE | {"samples": 1000})
    before = path.read_bytes()
    entries = set(tmp_path.iterdir())
    plan = planned(path, **SQUARE)
    assert path.read_bytes() == before
    assert set(tmp_path.iterdir()) == entries
    assert [(row.held, row.samples) for row in plan.sizes] == [(1000, 3000)] * 3
    results, _ = swept(path, **SQUARE)
    assert plan.file_bytes == pytest.approx(os.path.getsize(path), rel=0.15)
    error = fit_results(results).threshold_error
    assert plan.threshold_error == pytest.approx(error, rel=0.3)
    done = planned(path, **SQUARE)
    assert done.seconds == 0
    assert [(row.held, row.samples) for row in done.sizes] == [(3000, 3000)] * 3
    assert done.file_bytes == pytest.approx(os.path.getsize(path), rel=0.1)


@pytest.mark.slow
def test_a_plan_of_a_finished_target_error_adds_nothing(tmp_path):
    """The sweep judges its own samples, so the plan does not foresee what is there."""
    path = tmp_path / "results.h5"
    for seed in (3, 4, 5):
        path.unlink(missing_ok=True)
        study = SQUARE | {"samples": None, "target_error": 8e-3, "seed": seed}
        results, _ = swept(path, **study)
        plan = planned(path, **study)
        assert [row.samples for row in plan.sizes] == [row.held for row in plan.sizes]
        assert (plan.seconds, plan.analysis_seconds) == (0, 0)
        assert plan.rounds == len(results.runs)


def test_a_plan_changes_no_sample(tmp_path):
    """The pilot draws from other seeds, and leaves nothing behind that a sweep would find."""
    first, second = tmp_path / "first.h5", tmp_path / "second.h5"
    small = SQUARE | {"samples": 200}
    swept(first, **small)
    planned(second, **small)
    swept(second, **small)
    assert_equal_datasets(first, second)


@pytest.mark.slow
def test_more_samples_cost_in_proportion_and_shrink_the_error(tmp_path):
    one = planned(tmp_path / "one.h5", **SQUARE | {"samples": 10_000})
    four = planned(tmp_path / "four.h5", **SQUARE | {"samples": 40_000})
    assert four.threshold_error == pytest.approx(one.threshold_error / 2, rel=0.25)
    assert four.file_bytes == pytest.approx(4 * one.file_bytes, rel=0.3)


def test_without_several_sizes_there_is_no_error_to_plan(tmp_path):
    plan = planned(tmp_path / "one.h5", **SQUARE | {"L": [16], "samples": 500})
    assert plan.threshold_error is None
    assert any("no error of p_c" in note for note in plan.notes)
    swept(tmp_path / "one.h5", **SQUARE | {"L": [16], "samples": 500})
    assert plan.file_bytes == pytest.approx(os.path.getsize(tmp_path / "one.h5"), rel=0.15)


def test_a_graph_has_time_and_file_planned(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("".join(f"{n} {(n * 7 + 3) % 60}\n{n} {(n + 1) % 60}\n" for n in range(60)))
    out = tmp_path / "graph.h5"
    settings = {"graph": path, "samples": 1000}
    plan = planned(out, **settings)
    swept(out, **settings)
    assert plan.threshold_error is None
    assert plan.file_bytes == pytest.approx(os.path.getsize(out), rel=0.15)


@pytest.mark.parametrize("given", [{}, {"p": [0.5, 0.8]}], ids=str)
def test_a_plan_of_a_bethe_lattice_says_what_it_leaves_out(tmp_path, given):
    plan = planned(tmp_path / "tree.h5", lattice="bethe:3", L=[3, 5, 7], samples=500, **given)
    assert plan.threshold_error is None
    assert any("errors are not predicted" in note for note in plan.notes)
    # Shells do not scale, so the p of no size are foreseen from those of others.
    assert not any("extrapolated" in note for note in plan.notes)


@pytest.mark.parametrize(
    "kinds",
    [
        {},
        pytest.param({"p": [0.46, 0.48, 0.5, 0.52]}, marks=pytest.mark.slow),
        pytest.param({"method": "threshold"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_samples_that_take_long_are_planned_by_smaller_ones(tmp_path, monkeypatch, kinds):
    monkeypatch.setattr(plan_pilot, "_MOST_SITES", {"grid": 300, "threshold": 300})
    # A look takes a microsecond a site: 700 of them are 0.5 s at 357 sites, half of it for each.
    monkeypatch.setattr(plan_pilot, "_FIRST", 0.5)
    monkeypatch.setattr(plan_pilot, "_look_seconds", lambda task, engine: 1e-6 * task.num_points)
    monkeypatch.setattr(plan_pilot, "_allowed", lambda least, run: 0.3 * (least > 3))
    sampled = ThresholdSampler if "method" in kinds else GridSampler
    sample, sizes = sampled.sample, set()

    def watched(sampler, *given):
        sizes.add(sampler.task.size)
        return sample(sampler, *given)

    settings = SQUARE | {"L": [32, 64], "samples": 300} | kinds
    with monkeypatch.context() as only:
        only.setattr(sampled, "sample", watched)
        plan = planned(tmp_path / "results.h5", **settings)
    # Two for the times, and others for the curve.
    assert {8, 16} <= sizes
    assert max(sizes) == 16
    assert [(row.L, row.samples) for row in plan.sizes] == [(32, 300), (64, 300)]
    assert plan.threshold_error is not None, plan.notes
    assert "p" in kinds or any("p of L = 32, 64 are extrapolated" in note for note in plan.notes)
    results, seconds = swept(tmp_path / "results.h5", **settings)
    assert seconds < 5 * plan.seconds + 2
    assert plan.seconds < 5 * seconds + 2
    assert plan.file_bytes == pytest.approx(os.path.getsize(tmp_path / "results.h5"), rel=0.3)
    error = fit_results(results).threshold_error
    assert plan.threshold_error == pytest.approx(error, rel=0.7)


def test_a_stand_in_has_the_seconds_of_a_site(monkeypatch):
    task = Task(load_lattice("square"), 64, ("open", "open"), p=(0.5,))
    engine = Engine(Device("cpu"), "raster", 1)
    monkeypatch.setattr(plan_pilot, "_MOST_SITES", {"grid": 300})
    small = plan_pilot._stand_in(task, engine)
    assert (small.size, small.p) == (16, task.p)
    assert plan_pilot._times(task, small) == 16
    both = plan_pilot._stand_ins([task, replace(task, size=32)], engine)
    assert {size: other.size for size, other in both.items()} == {64: 16, 32: 8}
    ticks = iter(range(100))
    monkeypatch.setattr(plan_pilot, "_clock", lambda engine: lambda: next(ticks))
    assert plan_pilot._look_seconds(task, engine) == 16


def test_likely_blocks_have_the_sums_of_as_many_samples():
    task = Task(load_lattice("square"), 8, ("open", "open"), (0.4, 0.5), seed=1, block_size=1)
    kept = make_sampler(task, device=Device("cpu")).sample(range(400))
    rng = np.random.default_rng(0)
    blocks = [likely_block(n, kept, 50, rng) for n in range(200)]
    assert blocks[0].sums.dtype == np.int64
    means = np.mean([block.sums for block in blocks], axis=0) / 50
    expected = np.array([block.sums for block in kept])
    error = expected.std(axis=0) / np.sqrt(200 * 50)
    z = (means - expected.mean(axis=0)) / np.where(error > 0, error, 1)
    assert np.abs(z).max() <= 4
    assert len({block.sums.tobytes() for block in blocks}) == 200


@pytest.mark.parametrize("method", ["grid", "threshold"])
def test_the_expected_curve_is_the_scaling_function_without_scatter(method):
    function = ScalingFunction(0.5, 0.75, (0.1, 1.0), corrections=(0.2, 0.0, 0.0, 0.0))
    p, curves = (0.48, 0.49, 0.5, 0.51, 0.52) if method == "grid" else (), []
    for L in (16, 32, 64):
        task = Task(load_lattice("square"), L, ("open", "open"), p, seed=1, method=method)
        curves.append(expected_curve(function, L, _sampled_p(function, task), task.id))
        expected = function.probability(curves[-1].p, L)
        assert curves[-1].probability == pytest.approx(expected, abs=1e-8)
        if method == "threshold":
            assert curves[-1].probability[0] < 0.1 < 0.9 < curves[-1].probability[-1]
    fit = fit_threshold(curves)
    assert fit.threshold == pytest.approx(0.5, abs=1e-4)


def test_p_are_foreseen_where_the_fitted_polynomial_turns_back():
    bent = ScalingFunction(0.5, 0.75, (0.1, 1.0, -0.2, -0.3), (5.0, -30.0), (1.0, -3.0, 5.0, 9.0))
    task = Task(load_lattice("square"), 8, ("open", "open"), (), seed=1, method="threshold")
    p = _sampled_p(bent, task)
    assert (np.diff(p) > 0).all()
    assert 0 <= p[0] < 0.5 < p[-1] <= 1


def test_p_of_a_large_size_are_extrapolated_as_the_transition_narrows():
    spans = {L: tuple(0.5 + 1.75 * x * L**-0.75 for x in (-1, 0, 1)) for L in (16, 32)}
    assert extrapolated(spans, 512) == pytest.approx(
        [0.5 + 1.75 * x * 512**-0.75 for x in (-1, 0, 1)], abs=1e-9
    )
    assert extrapolated({16: (0.4, 0.6)}, 64) == (0.4, 0.6)


@pytest.mark.slow
def test_sizes_whose_p_take_long_to_find_are_extrapolated(tmp_path, monkeypatch):
    monkeypatch.setattr("percolab.run.plan_pilot._PLACING", 0.0)
    monkeypatch.setattr("percolab.run.plan_pilot._PART", 0.0)
    settings = SQUARE | {"L": [8, 16, 32, 64]}
    plan = planned(tmp_path / "results.h5", **settings)
    assert any("p of L = 32, 64 are extrapolated" in note for note in plan.notes)
    results, _ = swept(tmp_path / "results.h5", **settings)
    error = fit_results(results).threshold_error
    assert plan.threshold_error == pytest.approx(error, rel=0.3)


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
    # What is used may be half of it: it is a bound.
    assert lines[6].startswith("memory  at most ")
    assert "not counted" in lines[-1]
    assert not out.exists()


def test_json_holds_every_number(tmp_path):
    found = json.loads(answer(*COMMAND, "--json", "--out", tmp_path / "results.h5"))
    assert [row["L"] for row in found["sizes"]] == [8, 16, 32]
    assert found["file_bytes"] > sum(row["file_bytes"] for row in found["sizes"]) > 0
    assert found["threshold_error"] > 0
    assert found["seconds"] > 0
    assert found["host_bytes"] > found["base_bytes"] > 0
    assert list(tmp_path.iterdir()) == []


def test_rounds_to_come_are_told_as_about(tmp_path):
    command = ("sweep", "--lattice", "square", "-L", "8,16", "--target-error", "5e-3", "--device",
               "cpu", "--workers", "1", "--out", tmp_path / "results.h5")  # fmt: skip

    def rounds():
        lines = answer(*command, "--plan").splitlines()
        return next(line.removeprefix("rounds  ") for line in lines if line.startswith("rounds"))

    assert rounds().endswith(", or one more or less: the sweep judges its own samples")
    answer(*command, "--quiet")
    assert rounds() == str(len(read_results(command[-1]).runs))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--plan", "--target-error", "2"), "target error 2.0 must be above 0 and below 1"),
        (("--plan", "--samples", "10", "--out", "nowhere/a.h5"), "does not exist"),
        (("--plan", "--lattice", "squre"), "squre"),
        (("--samples", "10", "--json"), "--json goes with --plan"),
        (("--plan", "--target-error", "1e-3", "-p", "0.1,0.2"), "the pilot finds no p_c"),
        (("--plan", "--samples", "10", "--export", "a.csv"), "No such option"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_one_line(tmp_path, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    given = ("sweep", "-L", "8,16", "--device", "cpu", "--workers", "1")
    assert told in refusal(*given, *options)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_of_another_study_is_refused(tmp_path):
    out = tmp_path / "results.h5"
    swept(out, **SQUARE | {"samples": 100})
    told = refusal(*COMMAND, "--seed", "5", "--out", out)
    assert "holds another study" in told
    assert blocks_in(out) == 30


@pytest.mark.slow
def test_an_interrupted_adaptive_sweep_goes_on_until_its_target_is_met(tmp_path, monkeypatch):
    path, direct = tmp_path / "results.h5", tmp_path / "direct.h5"
    settings = ("sweep", "--lattice", "square", "-L", "8,16,32", "--target-error", "5e-3",
                "--device", "cpu", "--workers", "1", "--quiet")  # fmt: skip
    answer(*settings, "--out", direct)
    real, calls = GridSampler.sample, []

    def sample(self, numbers, stopped=None):
        calls.append(numbers)
        if len(calls) % 12 == 0:
            raise KeyboardInterrupt
        return real(self, numbers, stopped)

    with monkeypatch.context() as patch:
        patch.setattr(GridSampler, "sample", sample)
        codes = [run(*settings, "--out", path).exit_code for _ in range(2)]
    assert codes == [130, 130]
    assert blocks_in(path) < blocks_in(direct)
    answer(*settings, "--out", path)
    assert fit_results(read_results(path)).threshold_error <= 5e-3
    assert_equal_datasets(path, direct)
