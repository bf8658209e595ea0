"""A study in slabs has the blocks of the study of whole samples, wherever it was killed."""

import csv
import pickle
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, assert_equal_datasets, refusal, run, start, stored
from helpers import lattice
from process_support import WorkerKiller, impatient_worker, paced_worker, wait_for

from percolab.api import sweep
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.kinds.memory import estimate_memory
from percolab.kinds.workplace import Stopped
from percolab.measure.rows import BINS
from percolab.measure.tallies import compute_row_width, find_wide_bin, num_bins
from percolab.parts.interface import Row
from percolab.parts.ranks import RankJob
from percolab.parts.slab_partition import choose_layers, usual_layers
from percolab.parts.slabs import equal_slabs
from percolab.run.calls import Call, measure_blocks
from percolab.run.parts_sampler import (
    PartsSampler,
    alone,
    choose_slabs,
    make_block,
    make_split_lattice,
)
from percolab.store.checkpoints import Checkpoints
from percolab.store.results import read_results
from percolab.tasks.blocks import same_block
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Study, Task


def test_auto_cuts_the_samples_alone_that_do_not_fit(monkeypatch):
    settings = {"L": [8, 160], "p": [0.5], "samples": 10, "device": "cpu", "workers": 1}
    free = _memory(8) + slab_memory(_task(160), (8,) * 20)
    assert free < _memory(160)
    memory = type("", (), {"available": free})
    monkeypatch.setattr("percolab.kinds.memory.psutil.virtual_memory", lambda: memory)
    monkeypatch.setattr("percolab.parts.slab_partition._SITES_PER_SLAB", 1280)
    found = sweep("square", **settings, slabs="auto")
    assert found.runs[0]["slabs"] == {"160": 20}
    with pytest.raises(InputError, match=r"L = 160 needs .* free; slabs auto measures it"):
        sweep("square", **settings)


def _memory(size):
    return estimate_memory(_task(size), "raster", "cpu").host


def slab_memory(task, layers):
    """Return the bytes that a sample in slabs takes."""
    return RankJob(make_split_lattice(task), (layers,), p=0.5).most_memory.host


def _task(size, **kinds):
    given = {"boundary": ("open", "open"), "p": (0.5,)} | kinds
    return Task(lattice("square"), size, **given)


def test_slabs_are_as_many_as_memory_requires(monkeypatch):
    task = _task(64)
    monkeypatch.setattr("percolab.parts.slab_partition._SITES_PER_SLAB", 64 * 64)
    assert choose_slabs(task, "auto", 1) == (64,)
    for number in (1, 4, 16):
        one = slab_memory(task, (64 // number,) * number)
        memory = type("", (), {"available": 3 * one})
        monkeypatch.setattr("percolab.run.parts_sampler.psutil.virtual_memory", lambda: memory)  # noqa: B023
        assert len(choose_slabs(task, "auto", 3)) == number
        with pytest.raises(InputError, match=r"GB of memory for 4 samples at a time; \d"):
            choose_slabs(task, number, 4)


REFUSED = [
    (("-L", "16", "--slabs", "17"), "L = 16 in 17 slabs: 17 slabs, but there are 16 layers"),
    (("--slabs", "0"), "slabs = '0', but it must be auto or an integer of at least 1"),
    (("--slabs", "few"), "slabs = 'few', but it must be auto or an integer of at least 1"),
    (("-L", "3000000"), "L = 3000000 in 2 slabs: a slab of 4500000000000 sites, but at most"),
    (("-L", "400000000"), "160000000000000000 sites, but sums are kept of fewer than"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_slabs_cannot_do_is_refused_in_one_line(given, message, tmp_path):
    usual = ("--lattice", "square", "-L", "8", "-p", "0.5", "--slabs", "2", "--device", "cpu")
    assert message in refusal("sweep", *usual, *given, "--out", tmp_path / "none.h5")


ASKED = {
    "L": [12],
    "p": [0.4, 0.5],
    "boundary": ("open", "periodic"),
    "measure": "sizes",
    "samples": 6,
    "block_size": 3,
    "device": "cpu",
    "workers": 1,
}


# --- processes -----------------------------------------------------------------------------------


def test_a_call_of_a_sampler_in_slabs_continues_from_its_checkpoint(tmp_path, monkeypatch):
    sampler, reported = PartsSampler(_task(12, block_size=2), alone((3, 3, 3, 3), 12)), []
    (tmp_path / "results.h5").touch()
    sampler.checkpoints = Checkpoints(tmp_path / "results.h5")
    monkeypatch.setattr("percolab.run.parts_sampler.report_progress", reported.append)
    call = Call("run", sampler.spec(), ("cpu",), (4,))
    calls = iter([False] * 5 + [True])
    with pytest.raises(Stopped):
        sampler.sample([4], lambda: next(calls))
    (found,) = measure_blocks(pickle.loads(pickle.dumps(call)))
    assert reported == [36, 36]
    (whole,) = make_sampler(sampler.task, device=Device("cpu")).sample([4])
    assert same_block(found, whole)


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced_and_its_sample_continues(tmp_path, monkeypatch):
    monkeypatch.setattr("percolab.run.engine.be_worker", impatient_worker)
    settings = ASKED | {"L": [60], "workers": 2}
    killer, path = WorkerKiller(100), tmp_path / "results.h5"
    sweep("square", **ASKED | {"L": [60]}, out=tmp_path / "whole.h5")
    found = sweep("square", **settings, slabs=20, out=path, observer=killer, executor="processes")
    assert not list(tmp_path.glob("*.checkpoint"))
    assert_equal_datasets(path, tmp_path / "whole.h5")
    (run,) = found.runs
    assert (run["executor"], run["workers"], run["slabs"]) == ("processes", 2, {"60": 20})
    assert killer.killed
    # 2 blocks of 3 samples at 2 p in 20 slabs, and of one block about 50 were done: those before
    # its last checkpoint are not measured again, and that is two slabs old at most.
    assert killer.seen <= 240 + 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_samples_of_all_processes_continue_after_the_end_of_their_parent(tmp_path, number):
    path, whole = tmp_path / "results.h5", tmp_path / "whole.h5"
    given = ("sweep", "--lattice", "square", "-L", "600", "-p", "0.5", "--samples", 2, "--device",
             "cpu", "--workers", 2)  # fmt: skip
    answer(*given, "--out", whole)
    cut = (*given, "--slabs", 200, "--executor", "processes", "--out", path)
    before = (
        f"sys.path.insert(0, {str(Path(paced_worker.__code__.co_filename).parent)!r})\n"
        "import percolab.run.engine, process_support\n"
        "percolab.run.engine.be_worker = process_support.paced_worker\n"
    )
    process = start(*cut, before=before)
    wait_for(lambda: len(list(tmp_path.glob("*.checkpoint"))) == 2, process)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert len(list(tmp_path.glob("*.checkpoint"))) == 2
    notes = run(*cut).stderr
    assert len(re.findall(r"L = 600: block [01] goes on with \d+ of 600 layers", notes)) == 2, notes
    assert_equal_datasets(path, whole)
    assert not list(tmp_path.glob("*.checkpoint"))


def test_slabs_are_measured_on_one_host(tmp_path):
    given = ("--lattice", "square", "-L", "8", "-p", "0.5", "--slabs", "2", "--device", "cpu")
    message = "slabs: threads or processes of one host measure slabs; on many hosts take "
    out = "--out", tmp_path / "none.h5"
    assert message in refusal("sweep", *given, *out, "--executor", "dask:tcp://127.0.0.1:9")
    with ThreadPoolExecutor(1) as executor, pytest.raises(InputError, match=message):
        sweep("square", **ASKED, slabs=2, executor=executor)


# --- sums beyond an int64 ------------------------------------------------------------------------


def test_sums_of_powers_beyond_128_bits_are_those_of_the_row():
    task = _task(2**23, measure=("sizes",), block_size=1)
    sizes = [2**45 + 12345, 2**44 - 7, 100, 3, 3, 1]
    numbers = np.zeros(compute_row_width(task.num_points), np.int64)
    numbers[[0, 1, 2]] = len(sizes), *sizes[:2]
    for size in (*sizes, *(2**n + d for n in range(30, 63) for d in (-1, 0, 1))):
        assert num_bins(size) == int(find_wide_bin(np.uint64(size))) + 1
    np.add.at(numbers, [BINS + int(find_wide_bin(np.uint64(size))) for size in sizes], 1)
    squares, cubes, fourths = (sum(s**n for s in sizes if s >= 64 or n == 2) for n in (2, 3, 4))
    assert fourths > cubes > 2**128
    powers = make_block(task, 0, [Row(numbers, squares, cubes, fourths)]).extras["powers"]
    exact = [sum(size**n for size in sizes) for n in (3, 4)]
    assert powers[0, :2].tolist() == pytest.approx(exact, rel=1e-15)
    assert powers[0, 2:].tolist() == pytest.approx([sizes[0] ** 3, sizes[0] ** 4], rel=1e-15)


def test_a_study_is_wide_where_one_sample_does_not_fit():
    for size, is_wide in ((55_108, False), (55_109, True)):
        task = Study(lattice("square"), (size,), ("open", "open"), p=(0.5,)).task(size)
        assert task.is_wide == is_wide == ((size**2) ** 2 >= 2**63)
        assert task.block_size == 1


def test_wide_and_other_tasks_are_merged_and_tabulated(tmp_path, monkeypatch):
    monkeypatch.setattr(Task, "is_wide", property(lambda task: task.size == 12))
    paths = []
    for size, seed in ((8, 1), (12, 2)):
        settings = ASKED | {"L": [size], "seed": seed}
        paths.append(stored(tmp_path / f"{size}.h5", sweep("square", **settings, slabs=4)))
    merged = tmp_path / "merged.h5"
    assert "left out" not in answer("merge", *paths, "--out", merged)
    found = read_results(merged)
    ((narrow,), (wide,)) = found.of_size(8), found.of_size(12)
    assert narrow.has("sum_squares")
    assert not narrow.has("sum_squares_low")
    assert wide.has("sum_squares_low", "sum_squares_high")
    assert not wide.has("sum_squares")
    lines = list(csv.DictReader(answer("export", "--tidy", merged).splitlines()))
    own = {
        size: {line["observable"] for line in lines if line["L"] == str(size)} for size in (8, 12)
    }
    assert "sum_squares" in own[8] - own[12]
    assert {"sum_squares_low", "sum_squares_high"} <= own[12] - own[8]
    # The same study goes on with what it has.
    more = ASKED | {"L": [12], "seed": 2, "samples": 9}
    again = sweep("square", **more, slabs=3, out=paths[1])
    assert again.lacking() == []


@pytest.mark.parametrize(
    ("name", "size", "thick"),
    # Of 2^30 sites: 49 and 10737 layers; of most that can be labeled: 21, 5, 535 and 62.
    [
        ("cubic", 4642, 48),
        ("cubic", 10000, 16),
        ("cubic", 20256, 5),
        ("cubic", 5849, 56),
        ("square", 100_000, 10688),
        ("square", 4014080, 512),
    ],
)
def test_slabs_on_a_gpu_are_as_thick_as_tiles_fill(name, size, thick):
    dimension = lattice(name).dimension
    whole = make_split_lattice(
        Task(lattice(name), size, ("open",) * dimension, p=(0.3,), block_size=1)
    )
    assert usual_layers(whole, "cuda") == thick
    layers = equal_slabs(whole, thick)
    assert set(layers[:-1]) == {thick}
    assert sum(layers) == size


def test_slabs_get_thinner_until_they_fit():
    whole = make_split_lattice(Task(lattice("cubic"), 300, ("open",) * 3, p=(0.3,), block_size=1))

    def needed(layers):
        return Memory(max(layers[0]))

    assert choose_layers(whole, "auto", 1, "cpu", needed, Memory(49)) == ((37,) * 8 + (4,),)
    # One layer is tried last, and then memory is not asked.
    assert choose_layers(whole, "auto", 1, "cpu", needed, Memory(0)) == ((1,) * 300,)
