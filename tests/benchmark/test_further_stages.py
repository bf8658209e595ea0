"""The further stages of `percolab bench`: their tables and records, on a CPU and simulated."""

import inspect
import json
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest
from cli_support import answer, refusal
from helpers import run_simulated

import percolab.benchmark
import percolab.cli.bench
from percolab.benchmark import timer
from percolab.benchmark.benchmark import FURTHER_STAGES
from percolab.benchmark.records import TimeRecord
from percolab.benchmark.stages import STAGES

TINY = ("bench", "--device", "cpu", "--runs", 1)
CALL = TimeRecord(stage="s", lattice="square", shape=(4, 4), num_sites=16, program="", device="cpu")


@pytest.fixture(autouse=True)
def _small_and_fast(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(timer, "WARM_UP_SECONDS", 0.0)
    monkeypatch.setitem(timer.COPY_BYTES, "cpu", 2**16)
    monkeypatch.setitem(timer.WARM_UP_CALLS, "cpu", 0)


def time_stage(*arguments):
    document = json.loads(answer(*TINY, "--json", "-", *arguments))
    for record in document["records"]:
        assert record["stage"] in arguments
        assert record["seconds_per_sample_min"] >= 0
        assert record["device"] == "cpu"
    return document["records"]


def list_parts(records):
    return [(r["lattice"], r["shape"][0], r["part"]) for r in records]


def test_the_command_names_the_stages_that_can_be_timed():
    assert percolab.cli.bench.STAGES == STAGES
    assert tuple(FURTHER_STAGES) == percolab.cli.bench.FURTHER_STAGES


def test_no_function_of_the_benchmark_takes_more_than_eight_arguments():
    modules = [percolab.cli.bench]
    for found in pkgutil.iter_modules(percolab.benchmark.__path__, "percolab.benchmark."):
        modules.append(import_module(found.name))
    for module in modules:
        for name, item in vars(module).items():
            if inspect.isfunction(item) and item.__module__ == module.__name__:
                assert len(inspect.signature(item).parameters) <= 8, f"{module.__name__}.{name}"


def test_the_ratio_of_a_call_is_its_time_divided_by_the_other():
    one, other = CALL.timed([3.0, 1.0, 2.0]), CALL.timed([8.0], samples=2)
    assert (one.seconds_per_sample_min, one.seconds_per_sample_max, one.runs) == (1.0, 3.0, 3)
    found = other.compared(one, "one")
    assert (found.compared_with, found.time_ratio) == ("one", 2.0)
    assert other.compared(CALL.timed([0.0]), "nothing").time_ratio is None


def test_rows_of_a_grid_are_compared_with_those_at_one_p():
    shape = ("--lattice", "cubic", "--boundary", "periodic", "-L", "6,8", "--points", "1,3")
    found = time_stage("--stage", "grid", *shape, "--sites", 2000)
    assert list_parts(found) == [("cubic", size, part) for size in (6, 8) for part in ("1", "3")]
    assert [r["samples"] for r in found] == [9, 9, 3, 3]
    ratio = found[1]["seconds_per_sample"] / found[0]["seconds_per_sample"]
    assert (found[1]["compared_with"], found[1]["time_ratio"]) == ("one p", pytest.approx(ratio))


def test_a_threshold_is_compared_with_a_row_and_the_table_shows_it(monkeypatch):
    monkeypatch.setitem(timer.WARM_UP_CALLS, "cpu", 1)  # times of a compilation are too wide
    lines = answer(*TINY, "--stage", "threshold", "--lattice", "square", "-L", 8, "--samples", 3)
    row, found = (line.split() for line in lines.splitlines()[3:])
    assert row[:6] == ["square", "8", "0.50000", "raster", "threshold:row", "3"]
    assert (found[4], found[-1]) == ("threshold:T", "row")
    assert float(found[-2]) == pytest.approx(float(found[6]) / float(row[6]), rel=0.01)


def test_site_percolation_is_timed_at_its_own_threshold():
    given = ("--model", "site", "--lattice", "square", "-L", 8, "--samples", 1, "--points", 1)
    (found,) = time_stage("--stage", "grid", *given)
    assert found["p"] == pytest.approx(0.5927, abs=1e-4)


def test_a_list_of_neighbours_moves_more_bytes_than_the_lattice_that_computes_them():
    found = time_stage("--stage", "graph", "-L", 16)
    assert [r["part"] for r in found] == [
        f"{part}:{form}" for form in ("lattice", "list") for part in ("labels", "row")
    ]
    for one, other in zip(found[:2], found[2:], strict=True):
        assert other["bytes_moved_per_sample"] - one["bytes_moved_per_sample"] == 8 * 256
        assert other["compared_with"] == "lattice"


@pytest.mark.slow
def test_slabs_are_compared_with_one_piece():
    found = time_stage("--stage", "slabs", "--sites", 4096, "--boundary", "open")
    assert [r["part"] for r in found] == ["piece", "row", "front", "join"] * 3
    assert (found[0]["shape"], found[1]["shape"]) == ([16, 256], [16, 1024])
    assert found[1]["compared_with"] == "one piece"
    assert "open bonds at the face" in found[3]["note"]


@pytest.mark.slow
def test_trees_of_tori_and_of_a_graph_are_timed():
    given = ("--lattice", "square", "-L", 8, "--sites", 128)
    found = time_stage("--stage", "trees", *given)
    assert list_parts(found) == [("square", 8, "build"), ("graph", 128, "given")]


@pytest.mark.slow
def test_studies_are_timed_in_one_process_and_in_two():
    given = ("--lattice", "square", "-L", 16, "--samples", 60)
    found = time_stage("--stage", "study", *given)
    assert [(r["part"], r["program"]) for r in found] == [
        (part, program)
        for part in ("grid", "threshold")
        for program in ("1 process", "2 processes")
    ]
    assert found[0]["probabilities"] == 9
    assert found[0]["note"].startswith("60 samples in ")


@pytest.mark.slow
def test_one_sample_is_timed_on_one_rank_and_on_two():
    given = ("--sites", 4096, "--samples", 3, "--lattice", "square", "--boundary", "open")
    one, strong, weak = time_stage("--stage", "split", *given)
    assert [r["part"] for r in (one, strong, weak)] == ["one", "strong", "weak"]
    assert [r["shape"][0] for r in (one, strong, weak)] == [64, 64, 91]
    assert one["runs"] == 2, "the first of three rows is not counted"
    assert "messages" in strong["note"]
    assert "messages" not in one["note"]
    efficiency = one["seconds_per_sample_min"] / strong["seconds_per_sample_min"] / 2
    assert strong["note"].endswith(f"efficiency {efficiency:.3f}")


def test_sweeps_of_spins_are_in_the_same_table():
    lines = answer(*TINY, "--model", "ising", "-L", 4, "--chains", 2, "--json", "b.json")
    header, row = (line.split() for line in lines.splitlines()[2:])
    assert header[:6] == ["lattice", "L", "p", "program", "stage", "samples"]
    assert row[:6] == ["square", "4", "0.58579", "raster", "ising:sw", "1"]
    (record,) = json.loads(Path("b.json").read_text())["records"]
    assert record["nanoseconds_per_site"] == pytest.approx(1e3 * float(row[7]) / 1e6, rel=1e-3)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--stage", "kernels"), "--stage kernels: needs a GPU"),
        (("--points", "1,9"), "--points: of --stage grid, threshold, graph"),
        (("--stage", "grid", "--points", "0"), "'--points': 0 is not in the range"),
        (("--stage", "threshold", "--boundary", "periodic"), "--boundary: a threshold T needs"),
        (("--stage", "trees", "--model", "site"), "another model with --stage grid or kernels"),
        (("--model", "ising", "--stage", "grid"), "--stage: not of spins"),
        (("--model", "ising", "--points", "9"), "--points: not of spins"),
        (("--stage", "grid", "--plot", "b.png"), "--plot: draws bonds, labels, measure, sweep"),
    ],
)
def test_what_cannot_be_timed_is_refused(given, says):
    assert says in refusal(*TINY, *given)


# CUDA's simulator


def simulated(*arguments):
    pytest.importorskip("numba_cuda")
    done = run_simulated("simulated_bench.py", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["records"]


def list_kernels(records, part):
    return {r["part"].partition(":")[2] for r in records if r["part"].startswith(f"{part}:")}


@pytest.mark.slow
def test_trees_are_timed_on_a_gpu_whole_and_kernel_by_kernel():
    found = simulated("--stage", "trees", "--lattice", "square", "-L", "9", "--samples", "2")
    assert [r["part"] for r in found if ":" not in r["part"]] == ["build", "read", "given"]
    assert {"call", "prefixes", "tile", "offer", "hook"} <= list_kernels(found, "build")
    assert {"call", "weigh", "lattice_degrees"} <= list_kernels(found, "read")


@pytest.mark.slow
def test_slabs_are_timed_on_a_gpu_whole_and_kernel_by_kernel():
    given = ("--lattice", "square", "--boundary", "periodic", "--layers", "8", "--sites", "64")
    found = simulated("--stage", "slabs", *given)
    assert [r["part"] for r in found if ":" not in r["part"]] == ["piece", "row", "front", "join"]
    assert {"plant", "join", "finish"} <= list_kernels(found, "join")
    assert {"aligned_words", "tile", "read_face"} <= list_kernels(found, "front")


@pytest.mark.slow
def test_kernels_of_rows_and_labels_are_timed():
    given = ("--lattice", "cubic", "--boundary", "periodic", "-L", "4", "--ratio", "1")
    found = simulated("--stage", "kernels", *given)
    assert {"call", "small_rows"} <= list_kernels(found, "row")
    assert {"call", "tile"} <= list_kernels(found, "labels")
