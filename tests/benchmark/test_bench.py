"""`percolab bench`: what is timed, what its table, JSON and figure hold, and that peers agree."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import LATTICES, SHAPES, cpu_labeler, lattice, probabilities, run_simulated

from percolab.benchmark import peers, stages, timer
from percolab.benchmark.benchmark import FURTHER_STAGES
from percolab.benchmark.figure import plot_time_per_site
from percolab.benchmark.records import (
    GRID_POINTS,
    Place,
    Setting,
    TimeRecord,
    make_grid,
    make_topology,
)
from percolab.benchmark.stages import SEED, STAGES, bytes_moved, time_lattice, time_topology
from percolab.bonds.model import BOND
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.cli import bench as bench_command
from percolab.kernels.device import Device
from percolab.labelers.forest import Reading
from percolab.lattices.bethe import NUMBERINGS, BetheLattice
from percolab.lattices.structure import load_structure
from percolab.measure.rows import CLUSTERS, ROW_WIDTH

TINY = ("bench", "--device", "cpu", "--runs", 2)
CPU = Device("cpu")


def table_of(text):
    """Return the rows of the printed table as (lattice, L, program, stage), below its header."""
    lines = text.splitlines()
    (header,) = (n for n, line in enumerate(lines) if line.startswith("lattice"))
    return [tuple(line.split()[n] for n in (0, 1, 3, 4)) for line in lines[header + 1 :]]


# The command


@pytest.mark.slow
def test_table_json_and_figure_hold_every_program_and_stage():
    given = ("--lattice", "square", "-L", "8,4", "--ratio", "1,1.5")
    given += ("--labeler", "raster", "--labeler", "four_step")
    text = answer(*TINY, *given, "--json", "b.json", "--plot", "b.png")
    parts = [("scipy", part) for part in ("build", "labels")] * 2
    parts += [
        (name, stage) for name in ("raster", "four_step") for _ in range(2) for stage in STAGES
    ]
    assert table_of(text) == [("square", size, *part) for size in ("8", "4") for part in parts]
    document = json.loads(Path("b.json").read_text(encoding="utf-8"))
    assert {"command", "machine", "versions", "records"} < set(document)
    assert document["machine"]["device"] == "cpu"
    assert document["copy_bandwidth_bytes_per_second"] > 0
    assert len(document["records"]) == len(table_of(text))
    assert {record["p"] for record in document["records"]} == {0.5, 0.75}
    assert Path("b.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_record_says_what_was_timed_and_how_it_compares():
    text = answer(*TINY, "--lattice", "square", "-L", "8", "-p", "0.5", "--json", "-")
    document = json.loads(text)
    assert document["command"][0] == "percolab"
    build, scipy, *records = document["records"]
    assert [(r["program"], r["stage"]) for r in (build, scipy)] == [
        ("scipy", "build"),
        ("scipy", "labels"),
    ]
    assert [record["stage"] for record in records] == list(STAGES)
    for record in records:
        assert (record["program"], record["p"], record["ratio"]) == ("raster", 0.5, None)
        assert record["runs"] == 2
        times = [record[f"seconds_per_sample{which}"] for which in ("_min", "", "_max")]
        assert times == sorted(times)
        assert record["nanoseconds_per_site"] == pytest.approx(1e9 * times[1] / 64)
        speed = record["bytes_moved_per_sample"] / times[1]
        share = speed / document["copy_bandwidth_bytes_per_second"]
        assert record["copy_bandwidth_share"] == pytest.approx(share)
    bonds, labels, row, sweep = records
    assert (sweep["probabilities"], bonds["compared_with"]) == (GRID_POINTS, "")
    for one, other, name in (
        (labels, scipy, "scipy"),
        (row, scipy, "scipy"),
        (sweep, row, "one p"),
    ):
        ratio = one["seconds_per_sample"] / other["seconds_per_sample"]
        assert (one["compared_with"], one["time_ratio"]) == (name, pytest.approx(ratio))


def test_a_sweep_is_compared_with_the_row_at_one_p():
    text = answer(*TINY, "--lattice", "square", "-L", "4", "--quick", "--stage", "sweep")
    assert [row[3] for row in table_of(text)] == ["build", "labels", "measure", "sweep"]


def test_quick_times_two_sizes_at_the_threshold():
    document = json.loads(answer(*TINY, "--quick", "--stage", "bonds", "--no-peers", "--json", "-"))
    assert [(r["shape"], r["ratio"]) for r in document["records"]] == [
        ([64, 64], 1.0),
        ([256, 256], 1.0),
    ]
    assert {r["program"] for r in document["records"]} == {"raster"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--plot", "b.txt"), "b.txt: cannot write a figure as '.txt'; use .png"),
        (("--json", "missing/b.json"), "missing/b.json: the directory missing does not exist"),
        (("--labeler", "tiled"), "labeler 'tiled' does not run on cpu"),
        (("--stage", "lables"), "'lables' is not one of"),
        (("--ratio", "x"), "'--ratio': 'x' is not a number"),
        (("--ratio", "-1"), "'--ratio': -1.0 is not in the range"),
        (("--ratio", "1,nan"), "'--ratio': nan is not a number"),
        (("-p", "1.5"), "p = 1.5, but it must be a number from 0 to 1"),
        (("-L", "4,100000"), "at most"),
        (("--stage", "kernels"), "--stage kernels: needs a GPU"),
        (("--points", "1,9"), "--points: only with --stage grid, threshold, graph"),
        (("--stage", "grid", "--points", "0"), "'--points': 0 is not in the range"),
        (("--stage", "threshold", "--boundary", "periodic"), "--boundary: a threshold T needs"),
        (("--stage", "trees", "--model", "site"), "other models only with --stage grid or kernels"),
        (("--model", "ising", "--stage", "grid"), "--stage: not of spins"),
        (("--model", "ising", "--points", "9"), "--points: not of spins"),
        (("--stage", "grid", "--plot", "b.png"), "--plot: draws only bonds, labels, measure"),
    ],
)
def test_what_cannot_be_timed_is_refused_before_anything_is(given, says):
    assert says in refusal(*TINY, *given)
    assert list(Path().iterdir()) == []


# Stages


def test_bytes_moved_are_those_of_the_data_structures():
    topology = lattice("square").topology((64, 4))
    words, one_a_site, row = 4 * 2 * 8, 4 * 256, 48
    grown = (GRID_POINTS - 1) * (2 * words + row)
    assert bytes_moved("bonds", topology, needs_labels=True) == words
    assert bytes_moved("labels", topology, needs_labels=False) == 2 * words + one_a_site
    for needs_labels, measure in (
        (False, 2 * words + row),
        (True, 2 * words + 4 * one_a_site + row),
    ):
        assert bytes_moved("measure", topology, needs_labels=needs_labels) == measure
        assert bytes_moved("sweep", topology, needs_labels=needs_labels) == measure + grown


def test_a_stored_neighbour_list_has_to_be_read_where_labels_or_rows_are_made():
    computed = lattice("triangular").topology((64, 4))
    stored = 4 * 3 * 256
    for needs_labels in (True, False):
        for stage in STAGES:
            moved = bytes_moved(stage, computed, needs_labels=needs_labels)
            more = 0 if stage == "bonds" else stored
            explicit = bytes_moved(stage, computed.explicit(), needs_labels=needs_labels)
            assert explicit == moved + more


def test_lattice_supplied_as_a_graph_is_timed_as_the_lattice_is():
    item = lattice("honeycomb")
    setting = Setting((CPU,), ratios=(0.5, 1.0), labelers=("four_step",), runs=2)
    chosen = ("labels", "measure")
    records = time_lattice(setting, item, 8, chosen)
    listed, places = item.topology((8, 8)).explicit(), setting.choose_places(item)
    given = {"labeler": "four_step", "stages": chosen}
    others = time_topology(setting, item.name, listed, places, **given)
    for one, other in zip(records, others, strict=True):
        keys = ("lattice", "num_sites", "p", "ratio", "program", "stage", "runs")
        assert [getattr(one, key) for key in keys] == [getattr(other, key) for key in keys]
        assert 0 < other.seconds_per_sample_min <= other.seconds_per_sample_max
        assert other.bytes_moved_per_sample == one.bytes_moved_per_sample + 4 * 2 * 64


@pytest.mark.parametrize("numbering", NUMBERINGS)
def test_bethe_lattice_is_timed_at_multiples_of_its_threshold(numbering):
    bethe = BetheLattice(4, numbering)
    records = [*time_lattice(Setting((CPU,), runs=1), bethe, 3, ("labels",))]
    assert [(r.lattice, r.num_sites) for r in records] == [(bethe.name, 53)] * 3
    assert [round(r.p, 9) for r in records] == [0.166666667, 0.333333333, 0.5]


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("name", "size"), [("square", 1), ("cubic", 64), ("bethe", 12)])
def test_the_grid_of_a_sweep_ascends_around_p(p, name, size):
    topology = make_topology(load_structure(name), size)
    grid = make_grid(p, topology)
    assert len(grid) == GRID_POINTS
    assert np.all(np.diff(grid) > 0)
    assert 0 <= grid[0] <= p <= grid[-1] <= 1
    assert make_grid(p, topology, 1).tolist() == [p]


def test_windows_are_those_of_studies():
    for name, size, half in (("square", 64, 0.6656 / 64**0.75), ("cubic", 16, 0.3 / 16**1.141)):
        grid = make_grid(0.5, make_topology(lattice(name), size), 3)
        assert grid.tolist() == pytest.approx([0.5 - half, 0.5, 0.5 + half])


class _MockCoupling:
    capacity, name, row_width = 3, "tiled", ROW_WIDTH

    def __init__(self, topology):
        self.labeler = self.batch = self
        self.topology, self.calls = topology, []

    def fill(self, generator, seed, samples, thresholds):
        self.calls.append(("bonds", samples.tolist(), set(thresholds.tolist())))
        return len(samples)

    def join(self, items, reading):
        self.calls.append((reading, items))
        return self

    def make_labels(self):
        self.calls.append("written")

    def rows(self, generator, seed, samples, thresholds):
        self.calls.append(("rows", samples.tolist(), len(set(thresholds.tolist()))))


@pytest.mark.parametrize("labeler", ["tiled", "four_step"])
def test_a_cuda_run_is_a_batch_that_fits(labeler, monkeypatch):
    topology, mocks = lattice("square").topology((64, 128)), []

    def coupling(name, kind, where, model, *, capacity):
        assert (name, kind, where, model) == (labeler, "cuda", topology, BOND)
        mocks.append(_MockCoupling(topology))
        mocks[-1].name, mocks[-1].capacity = labeler, capacity
        return mocks[-1]

    monkeypatch.setattr("percolab.coupled.new_coupling", coupling)
    monkeypatch.setattr(Device, "open", lambda self: None)
    monkeypatch.setitem(stages.SITES_PER_RUN, "cuda", 10_000 * 64 * 128)
    for memory in (32 * 10**6, 32 * 10**7, 32 * 10**8):
        monkeypatch.setattr(Device, "free_memory", lambda self, free=memory: free)
        free = iter((100_000, 40_000))
        gpu = SimpleNamespace(free_memory=lambda free=free: next(free))
        monkeypatch.setattr(stages, "make_timer", lambda device, gpu=gpu: gpu)
        _, record = stages.prepare(Setting((Device("cuda"),)), "square", topology, labeler)
        assert record.samples == mocks[-1].capacity
        assert record.memory_bytes_per_sample == 60_000 // record.samples
    few, many, most = (mock.capacity for mock in mocks)
    assert 1 <= few < many / 8
    assert most == 10_000


@pytest.mark.parametrize(("name", "needed"), [("raster", False), ("tiled", False), ("x", True)])
def test_rows_are_read_off_labels_where_a_labeler_needs_them(name, needed):
    assert stages.needs_labels(SimpleNamespace(name=name)) is needed


def test_every_stage_of_a_batch_is_made_of_what_it_names():
    mock = _MockCoupling(lattice("square").topology((64, 4)))
    works, limit = stages.make_works(mock, 5)(0.25), p_to_threshold(0.25)
    bonds = [("bonds", [0, 1, 2], {limit}), ("bonds", [3, 4], {limit})]
    labels = [[(Reading.LABELS, count), "written"] for count in (3, 2)]
    for stage, expected in {
        "bonds": bonds,
        "labels": [bonds[0], *labels[0], bonds[1], *labels[1]],
        "measure": [("rows", [0, 1, 2, 3, 4], 1)],
        "sweep": [("rows", np.repeat(range(5), GRID_POINTS).tolist(), GRID_POINTS)],
    }.items():
        mock.calls.clear()
        works[stage]()
        assert mock.calls == expected


@pytest.mark.slow
def test_cuda_timing_runs_from_end_to_end_in_the_simulator():
    given = ("--lattice", "square", "--labeler", "four_step", "-L", "4", "--quick", "--no-peers")
    document = simulated(*given)
    assert document["machine"]["device_name"] == "CUDA simulator"
    assert [record["stage"] for record in document["records"]] == list(STAGES)
    assert {record["device"] for record in document["records"]} == {"cuda:0"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue", "535.54.03"),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release",
            "580.159.04",
        ),
        ("", None),
    ],
)
def test_driver_version_is_read_from_the_system(tmp_path, text, version):
    (tmp_path / "version").write_text(text, encoding="utf-8")
    assert timer.driver_version(tmp_path / "version") == version
    assert timer.driver_version(tmp_path / "none") is None


# Peers


@pytest.mark.parametrize("name", LATTICES)
def test_scipy_finds_as_many_clusters(name):
    item = lattice(name)
    topology = item.topology(SHAPES[item.dimension][-1])
    labeler = cpu_labeler("raster", topology)
    for p in probabilities(name):
        items = np.zeros(1, np.uint64), np.full(1, p_to_threshold(p), np.uint64)
        (row,) = labeler.rows(XORWOW, SEED, *items)
        build, labels = peers.time_scipy(Setting((CPU,)), name, topology, Place(p))
        assert build.clusters == labels.clusters == row[CLUSTERS]
        assert (build.stage, labels.stage) == ("build", "labels")


def test_every_open_bond_is_listed_once_from_owner_to_neighbour():
    topology = lattice("triangular").topology((9, 5))
    owner, other = peers.open_bond_list(topology, 1.0)
    bonds = topology.bonds()
    np.testing.assert_array_equal(np.stack([owner, other], axis=1), bonds[:, 1:])


def test_large_samples_are_not_given_to_scipy_nor_images_to_a_cpu(monkeypatch):
    monkeypatch.setattr(peers, "MAX_SCIPY_SITES", 15)
    topology = lattice("square").topology((4, 4))
    assert [*peers.time_scipy(Setting((CPU,)), "square", topology, Place(0.5))] == []
    assert [*peers.time_site_image(Setting((CPU,)), 8)] == []


# The figure


def stage_time(stage, size, program="tiled", ratio=1.0, seconds=1e-6, **given):
    record = TimeRecord(
        stage=stage,
        lattice="square",
        shape=(size, size),
        num_sites=size**2,
        program=program,
        device="cuda:0",
        **given,
    )
    return record.at(Place(ratio / 2, ratio)).timed([seconds])


def image_time(size):
    return stage_time("labels", size, "cupyx", 1.2)


def test_a_panel_has_one_line_for_every_program_and_stage():
    records = [
        stage_time(stage, size, labeler, ratio=ratio)
        for ratio in (0.5, 1.0)
        for labeler in ("tiled", "four_step")
        for size in (8, 4)
        for stage in STAGES
    ]
    figure = plot_time_per_site([*records, image_time(4), image_time(8)], title="GPU")
    first, second = figure.axes
    assert (first.get_title(), second.get_title()) == ("square, $p = 0.5 p_c$", "square, $p = p_c$")
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        lines = {line.get_label(): line for line in axes.get_lines()}
        assert len(lines) == 9
        assert "cupyx, labels of a site image" in lines
        np.testing.assert_array_equal(lines["tiled, bonds"].get_xdata(), [16, 64])
        looks = {(line.get_marker(), line.get_linestyle()) for line in lines.values()}
        assert len(looks) == len(lines), "lines must differ without colour"
    assert first.get_ylabel() == "time per site (ns)"


def test_the_axis_has_the_unit_of_most_of_its_times():
    records = [stage_time("bonds", 4, seconds=16 * value) for value in (2e-12, 3e-12, 1e-9)]
    figure = plot_time_per_site(records, title="GPU")
    assert figure.axes[0].get_ylabel() == "time per site (ps)"
    np.testing.assert_allclose(figure.axes[0].get_lines()[0].get_ydata(), [2, 3, 1000])


def test_no_records_are_refused():
    with pytest.raises(ValueError, match="at least one record"):
        plot_time_per_site([image_time(4)], title="")


ONCE = ("bench", "--device", "cpu", "--runs", 1)
CALL = TimeRecord(stage="s", lattice="square", shape=(4, 4), num_sites=16, program="", device="cpu")


@pytest.fixture(autouse=True)
def _small_and_fast(monkeypatch):
    monkeypatch.setattr(timer, "WARM_UP_SECONDS", 0.0)
    monkeypatch.setitem(timer.COPY_BYTES, "cpu", 2**16)
    monkeypatch.setitem(timer.WARM_UP_CALLS, "cpu", 0)


def time_stage(*arguments):
    document = json.loads(answer(*ONCE, "--json", "-", *arguments))
    for record in document["records"]:
        assert record["stage"] in arguments
        assert record["seconds_per_sample_min"] >= 0
        assert record["device"] == "cpu"
    return document["records"]


def list_parts(records):
    return [(r["lattice"], r["shape"][0], r["part"]) for r in records]


def test_the_command_names_the_stages_that_can_be_timed():
    assert bench_command.STAGES == STAGES
    assert tuple(FURTHER_STAGES) == bench_command.FURTHER_STAGES


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
    lines = answer(*ONCE, "--stage", "threshold", "--lattice", "square", "-L", 8, "--samples", 3)
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
    lines = answer(*ONCE, "--model", "ising", "-L", 4, "--chains", 2, "--json", "b.json")
    header, row = (line.split() for line in lines.splitlines()[2:])
    assert header[:6] == ["lattice", "L", "p", "program", "stage", "samples"]
    assert row[:6] == ["square", "4", "0.58579", "raster", "ising:sw", "1"]
    (record,) = json.loads(Path("b.json").read_text())["records"]
    assert record["nanoseconds_per_site"] == pytest.approx(1e3 * float(row[7]) / 1e6, rel=1e-3)


# CUDA's simulator


def simulated(*arguments):
    done = run_simulated("simulated_bench.py", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def list_kernels(records, part):
    return {r["part"].partition(":")[2] for r in records if r["part"].startswith(f"{part}:")}


@pytest.mark.slow
def test_trees_are_timed_on_a_gpu_whole_and_kernel_by_kernel():
    given = ("--lattice", "square", "-L", "9", "--samples", "2")
    found = simulated("--stage", "trees", *given)["records"]
    assert [r["part"] for r in found if ":" not in r["part"]] == ["build", "read", "given"]
    assert {"call", "prefixes", "tile", "offer", "hook"} <= list_kernels(found, "build")
    assert {"call", "weigh", "lattice_degrees"} <= list_kernels(found, "read")


@pytest.mark.slow
def test_slabs_are_timed_on_a_gpu_whole_and_kernel_by_kernel():
    given = ("--lattice", "square", "--boundary", "periodic", "--layers", "8", "--sites", "64")
    found = simulated("--stage", "slabs", *given)["records"]
    assert [r["part"] for r in found if ":" not in r["part"]] == ["piece", "row", "front", "join"]
    assert {"plant", "join", "finish"} <= list_kernels(found, "join")
    assert {"aligned_words", "tile", "read_face"} <= list_kernels(found, "front")


@pytest.mark.slow
def test_kernels_of_rows_and_labels_are_timed():
    given = ("--lattice", "cubic", "--boundary", "periodic", "-L", "4", "--ratio", "1")
    found = simulated("--stage", "kernels", *given)["records"]
    assert {"call", "small_rows"} <= list_kernels(found, "row")
    assert {"call", "tile"} <= list_kernels(found, "labels")
