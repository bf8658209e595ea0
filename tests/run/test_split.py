"""``--split lattice``: a study whose samples are measured by all ranks has the file of any."""

import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from cli_support import answer, assert_equal_datasets, blocks_in, changed, refusal, wait_for_blocks
from helpers import lattice, slow
from parts_support import row_by_slabs
from process_support import MPIEXEC, by_mpi, error_lines, start_by_ranks, stop_by_ctrl_c, wait_for

from percolab import InputError, sweep
from percolab.bonds.words import p_to_threshold
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.parts import tiled_cuda
from percolab.parts.parts import Whole
from percolab.parts.ranks import RankJob
from percolab.parts.raster import SampleKey, SlabRaster
from percolab.parts.transport import Local
from percolab.run import rank_group
from percolab.run.executors import RankExecutor
from percolab.run.parts_sampler import make_split_lattice
from percolab.run.rank_group import make_rank_group
from percolab.run.request import Observer
from percolab.store.results import read_results
from percolab.tasks.study import Task

ASKED = {"L": [8, 13], "p": [0.4, 0.5], "samples": 6, "measure": "sizes", "device": "cpu"}
GIVEN = ("sweep", "--lattice", "square", "-L", "8,13", "-p", "0.4,0.5", "--samples", "6",
         "--measure", "sizes", "--device", "cpu", "--split", "lattice")  # fmt: skip


def test_the_record_of_a_run_says_how_it_was_split():
    watched = Observer()
    sites = []
    watched.labeled = sites.append
    given = {"split": "lattice", "workers": 5, "slabs": 8, "observer": watched}
    record = sweep("square", **ASKED, **given).runs[0]
    assert (record["executor"], record["workers"], record["labeler"]) == ("threads", 5, "raster")
    assert record["slabs"] == {"8": 8, "13": 10}
    split = record["split"]
    # 4 messages a row: 2 in stage 0, 1 in stage 1, 1 in stage 2.
    counts = [split[name] for name in ("kind", "ranks", "rows", "messages")]
    assert counts == ["lattice", 5, 24, 96]
    assert split["bytes"] == sum(stage["bytes"] for stage in split["stages"]) > 96 * 150
    assert len(split["stages"]) == 3
    for stage in split["stages"]:
        assert min(stage["transport_seconds"], stage["join_seconds"]) > 0
    assert 0 < split["local_seconds"] < record["seconds"]
    assert split["close_seconds"] > 0
    # Rank 0 reports all layers, in whole samples.
    assert sum(sites) == 12 * (64 + 169)


REFUSED = [
    (("-L", "8", "--workers", "9"), "L = 8 over 9 ranks: 9 ranks, but there are 8 layers"),
    (("-L", "8", "--workers", "2", "--slabs", "9"), "9 slabs, but there are 8 layers"),
    (("--workers", "0"), "--workers"),
    (("-L", "2000", "--workers", "1025"), "lattice: 1025 ranks on one host, but at most 1024 are"),
    (("-L", "64", "--blocks", "64x64", "--workers", "4096"), "lattice: 4096 ranks on one host"),
    (("-L", "3000000", "--slabs", "4"), "L = 3000000 over 2 ranks: a slab of 2250000000000 sites"),
    (("--split", "samples"), "unknown split 'samples'; known: lattice"),
    (("--executor", "dask:tcp://localhost:1"), "--split lattice: the workers of Dask cannot"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_cannot_be_split_is_refused_in_one_line(given, message):
    usual = ("--lattice", "square", "-L", "8", "-p", "0.5", "--device", "cpu", "--workers", "2")
    assert message in refusal(
        "sweep", *changed([*usual, "--split", "lattice"], *given, "--out", "none.h5")
    )


def task(size=12, **kinds):
    return Task(lattice("square"), size, **{"boundary": ("open", "open"), "p": (0.5,)} | kinds)


def test_executors_whose_workers_do_not_send_are_refused():
    with (
        ThreadPoolExecutor(2) as pool,
        pytest.raises(InputError, match="the workers of this executor cannot exchange data"),
    ):
        sweep("square", **ASKED, split="lattice", executor=pool)


ON_CPU = (Device("cpu"),)


def team(devices=ON_CPU, **kinds):
    return make_rank_group([task()], devices, **kinds)


def test_some_ranks_may_be_on_other_hosts():
    """Two of six are on this one."""
    one = Local.ranks(6)[0]
    one.on_host, one.in_one_process = 2, False
    given = RankExecutor(one, "mpi")
    found = team(executor=given)
    assert (found.size, found.local_ranks, found.processes) == (6, 2, 2)
    given.shutdown()
    local = team(workers=3)
    assert (local.local_ranks, local.processes) == (3, 1)
    assert team(workers=3, executor="processes").processes == 3


def test_ranks_are_as_many_as_workers_gpus_or_layers(monkeypatch):
    monkeypatch.setattr(rank_group, "default_workers", lambda device: 64)
    assert (team().size, team(workers=5).size) == (12, 5)
    given = RankExecutor(Local.ranks(3)[0], "mpi")
    assert team(executor=given).size == 3
    given.shutdown()
    monkeypatch.setattr(tiled_cuda, "refusal", lambda whole: "")
    monkeypatch.setattr(Device, "free_memory", lambda device: 10**11)
    gpus = tuple(Device("cuda", number) for number in (0, 2, 3))
    monkeypatch.setattr(RankJob, "most_memory", Memory(10**6, 10**10))
    found = team(gpus)
    assert (found.size, found.executor, found.devices) == (3, "processes", gpus)
    with pytest.raises(InputError, match="4 ranks on one host, which has cuda:0,2,3; every rank"):
        team(gpus, workers=4)
    with pytest.raises(InputError, match="threads can use only one GPU; give executor processes"):
        team(gpus, workers=2, executor="threads")
    monkeypatch.setattr(RankJob, "most_memory", Memory(10**6, 10**11))
    with pytest.raises(InputError, match=r"in 12 slabs needs 100.0 GB on cuda:0; 90.0 GB of GPU"):
        team(gpus)
    monkeypatch.setattr(tiled_cuda, "refusal", lambda whole: "of tiles")
    with pytest.raises(InputError, match="square cannot be labeled in slabs on cuda:0: of tiles"):
        team(gpus)


def test_slabs_of_ranks_are_as_many_as_memory_requires(free_memory):
    def layers(slabs, executor=None):
        group = make_rank_group([task(64)], ON_CPU, executor=executor, workers=4, slabs=slabs)
        return group.division.layers[64]

    many = layers(16)
    needed = 4 * RankJob(make_split_lattice(task(64)), many, p=0.5).most_memory.host
    free_memory(needed)
    assert layers(None) == many
    one = Local.ranks(4)[0]
    one.on_host = 1
    with RankExecutor(one, "mpi") as of_many_hosts:
        assert len(layers("auto", of_many_hosts)[0]) == 1
    with pytest.raises(InputError, match=r"over 4 ranks in 4 slabs needs .* GB of memory for 4 of"):
        layers(4)


class Broken(SlabRaster):
    """Fails at the last layers."""

    def make_interface(self, part, draw, following=None):
        if part.first_layer > 5:
            raise ZeroDivisionError("of a rank")
        return super().make_interface(part, draw, following)


def test_an_error_of_a_rank_is_raised(monkeypatch):
    monkeypatch.setattr("percolab.parts.slabs.SlabRaster", Broken)
    with pytest.raises(ZeroDivisionError, match="of a rank"):
        sweep("square", **ASKED, split="lattice", workers=4)
    assert not [item for item in threading.enumerate() if "percolab" in item.name]


# --- processes -----------------------------------------------------------------------------------

_BEFORE_SLABS = """
from percolab.parts import raster
make_interface = raster.SlabRaster.make_interface
def replaced(own, part, draw, following=None):
    {code}
    return make_interface(own, part, draw, following)
raster.SlabRaster.make_interface = replaced
"""
PROCESSES = changed(GIVEN, "--executor", "processes", "--workers", 3, "--samples", 10**6)


def start(*given, ranks=0, code="pass"):
    """Start a split sweep, by so many ranks of MPI, with code before every slab."""
    before = _BEFORE_SLABS.format(code=code)
    return start_by_ranks(*given, "--out", "split.h5", ranks=ranks, before=before)


def started_ranks(process):
    """Return the processes that a run has started, once there are both."""

    def both():
        # Python itself may start a program that soon ends.
        found = psutil.Process(process.pid).children()
        return found if len(found) >= 2 else None

    return wait_for(both, process)


@pytest.mark.slow
@pytest.mark.parametrize("is_early", [True, False])
def test_a_killed_process_ends_the_run_with_finished_blocks(is_early):
    process = start(*PROCESSES)
    try:
        if not is_early:
            wait_for_blocks(Path("split.h5"), process)
        started_ranks(process)[-1].send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 137
    assert re.match("workers were lost, the last one: .*; finished blocks are in split.h5", errors)
    assert len(errors.splitlines()) == 1
    assert is_early or blocks_in(Path("split.h5")) > 0


@pytest.mark.slow
@pytest.mark.parametrize("is_early", [True, False])
def test_a_killed_parent_leaves_no_process_and_no_folder(monkeypatch, is_early):
    # With a short name, as sockets must have.
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        process = start(*PROCESSES)
        try:
            others = started_ranks(process)
            if not is_early:
                wait_for_blocks(Path("split.h5"), process)
            wait_for(lambda: len(list(Path(folder).glob("percolab-*/[12]"))) == 2, process)
        finally:
            process.kill()
            process.communicate()
        assert psutil.wait_procs(others, timeout=120)[1] == []
        assert list(Path(folder).iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [0, pytest.param(3, marks=by_mpi)])
def test_ctrl_c_stops_ranks_between_two_slabs(ranks):
    process = start(*changed(GIVEN if ranks else PROCESSES, "--samples", 10**6), ranks=ranks)
    stop_by_ctrl_c(process, Path("split.h5"))
    if not ranks:
        assert process.returncode == 130


# --- MPI -----------------------------------------------------------------------------------------

_TWO_RANKS = """
import sys
import numpy as np
from mpi4py import MPI
from percolab.bonds.words import p_to_threshold
from percolab.parts import transport
from percolab.parts.parts import Whole
from percolab.parts.ranks import Leader, RankJob, follow, choose_rank_layers
from percolab.parts.raster import SampleKey
from percolab.lattices.lattice import load_lattice
own = transport.Mpi(MPI)
assert (own.place, own.on_host) == (own.rank, own.size)
# Arrays of many chunks, both ways at once.
transport._CHUNK = 1000
if own.rank < 2:
    (found,) = own.exchange(1 - own.rank, [np.arange(10**4) * own.rank])
    assert np.array_equal(found, np.arange(10**4) * (1 - own.rank))
if own.rank:
    follow(own)
else:
    whole = Whole(load_lattice("square"), (24, 30), ("open", "periodic"))
    leader, job = Leader(own), RankJob(whole, choose_rank_layers(whole, own.size, 6))
    for p in (0.4, 0.5):
        print(leader.row(job, SampleKey(0, 1, 2, p_to_threshold(p)))[0].numbers.tolist())
    assert leader.row(job, SampleKey(0, 1, 2, 5), lambda: True) is None
    leader.end()
"""


@by_mpi
@pytest.mark.parametrize("ranks", [2, slow(4)])
def test_real_ranks_have_the_row_of_the_whole_lattice(ranks):
    command = [MPIEXEC, "-n", str(ranks), sys.executable, "-c", _TWO_RANKS]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    whole = Whole(lattice("square"), (24, 30), ("open", "periodic"))
    rows = [row_by_slabs(whole, SampleKey(0, 1, 2, p_to_threshold(p))).numbers for p in (0.4, 0.5)]
    assert found.stdout.splitlines() == [str(row.tolist()) for row in rows]


@by_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_of_mpi_make_the_file_of_whole_samples(ranks):
    process = start(*GIVEN, "--slabs", 7, ranks=ranks)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert output.startswith("square: L = 8, 13; results in split.h5\n")
    sweep("square", **ASKED, out="whole.h5")
    assert_equal_datasets(Path("split.h5"), Path("whole.h5"))
    record = read_results(Path("split.h5")).runs[0]
    assert (record["executor"], record["workers"]) == ("mpi", ranks)


@by_mpi
@pytest.mark.slow
@pytest.mark.parametrize(("first", "rank"), [(4, 0), (12, 2)])
def test_a_rank_that_fails_ends_all_with_one_line(first, rank):
    code = f"1 / (part.first_layer != {first})"
    process = start(*changed(GIVEN, "-L", 13), "--slabs", 13, ranks=3, code=code)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    lines = [line for line in errors.splitlines() if "percolab: error: " in line]
    assert lines == [f"percolab: error: rank {rank}: ZeroDivisionError: division by zero"]


@by_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "L = 2 over 3 ranks: 3 ranks, but there are 2 layers"),
        (("--plan",), "L = 2 over 3 ranks: 3 ranks, but there are 2 layers"),
        (("--plan", "--blocks", "1x3"),
         "L = 2: blocks 1x3 do not divide the lattice: 2 grid points along axis y"),
        (("--plan", "--blocks", "2x2"),
         "3 ranks, but blocks 2x2 are 4 boxes: each rank has one, or one has all"),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, tuple) else "",
)  # fmt: skip
def test_ranks_of_mpi_end_with_one_line_for_bad_input(given, message):
    process = start(*changed(GIVEN, "-L", 2), *given, ranks=3)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (2, "")
    assert error_lines(errors) == [f"percolab: error: --split lattice: {message}"]


PLANNED_BY_MPI = ("sweep", "--lattice", "cubic", "-L", "24", "-p", "0.1,0.2488", "--samples", "90",
                  "--boundary", "periodic", "--device", "cpu", "--split", "lattice",
                  "--plan", "--json")  # fmt: skip


@pytest.mark.slow
@by_mpi
@pytest.mark.parametrize(
    ("ranks", "given"), [(2, ()), (4, ()), (4, ("--blocks", "1x2x2", "--merge", "quad:bubbles"))]
)
def test_ranks_of_mpi_plan_what_threads_do(ranks, given):
    process = start(*PLANNED_BY_MPI, *given, ranks=ranks)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    plan = json.loads(output)
    threads = json.loads(answer(*PLANNED_BY_MPI, *given, "--workers", ranks))
    assert plan["workers"] == threads["workers"] == ranks
    (row,), (other,) = plan["sizes"], threads["sizes"]
    for name in ("points", "samples", "host_bytes", "file_bytes"):
        assert row[name] == other[name] > 0
    assert plan["host_bytes"] > ranks * plan["base_bytes"] + row["host_bytes"]
    # The same samples, so the same bytes are sent.
    (found,), (expected,) = (
        [note.rpartition(", ")[2] for note in item["notes"] if "ranks send" in note]
        for item in (plan, threads)
    )
    assert found == expected
    assert not Path("split.h5").exists()


_ENDLESS_BUT_ON_RANK_0 = """
    import time; from pathlib import Path; from mpi4py import MPI
    rank = MPI.COMM_WORLD.rank
    Path(f"rank-{rank}").touch()
    time.sleep(60 * rank)"""


@by_mpi
@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_plan_of_ranks_is_interrupted(sent, code):
    """Rank 0 waits for others when it is stopped."""
    process = start(*PLANNED_BY_MPI[:-1], ranks=3, code=_ENDLESS_BUT_ON_RANK_0)
    try:
        wait_for(lambda: len(list(Path().glob("rank-[12]"))) == 2, process, seconds=120)
        process.send_signal(sent)
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == code
    # mpiexec prints something itself.
    assert "ranks on cpu" not in output
    assert errors.splitlines().count("interrupted") == 1
    assert "Traceback" not in errors
