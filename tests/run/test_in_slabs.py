"""Studies in slabs, over ranks and in boxes have the file of whole samples, even after a kill."""

import csv
import pickle
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, assert_equal_datasets, changed, refusal, run, start, stored
from helpers import lattice
from process_support import WorkerKiller, impatient_worker, paced_worker, wait_for

from percolab import InputError, sweep
from percolab.analysis.stored_data import read_cluster_curves
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


def test_auto_cuts_the_samples_alone_that_do_not_fit(free_memory, monkeypatch):
    settings = {"L": [8, 160], "p": [0.5], "samples": 10, "device": "cpu", "workers": 1}
    free = _memory(8) + slab_memory(_task(160), (8,) * 20)
    assert free < _memory(160)
    free_memory(free)
    monkeypatch.setattr("percolab.parts.slab_partition._SITES_PER_SLAB", 1280)
    found = sweep("square", **settings, slabs="auto")
    assert found.runs[0]["slabs"] == {"160": 20}
    with pytest.raises(InputError, match=r"L = 160 needs .* free; slabs auto measures it"):
        sweep("square", **settings)


def _memory(size):
    return estimate_memory(_task(size), "raster", "cpu").host


def slab_memory(task, layers):
    return RankJob(make_split_lattice(task), (layers,), p=0.5).most_memory.host


def _task(size, **kinds):
    given = {"boundary": ("open", "open"), "p": (0.5,)} | kinds
    return Task(lattice("square"), size, **given)


def test_slabs_are_as_many_as_memory_requires(free_memory, monkeypatch):
    task = _task(64)
    monkeypatch.setattr("percolab.parts.slab_partition._SITES_PER_SLAB", 64 * 64)
    assert choose_slabs(task, "auto", 1) == (64,)
    for number in (1, 4, 16):
        one = slab_memory(task, (64 // number,) * number)
        free_memory(3 * one)
        assert len(choose_slabs(task, "auto", 3)) == number
        with pytest.raises(InputError, match=r"GB of memory for 4 samples at a time; \d"):
            choose_slabs(task, number, 4)


REFUSED = [
    (("-L", "16", "--slabs", "17"), "L = 16 in 17 slabs: 17 slabs, but there are 16 layers"),
    (("--slabs", "0"), "slabs = '0', but it must be auto or an integer of at least 1"),
    (("--slabs", "few"), "slabs = 'few', but it must be auto or an integer of at least 1"),
    (("-L", "3000000"), "L = 3000000 in 2 slabs: a slab of 4500000000000 sites, but at most"),
    (("-L", "400000000"), "160000000000000000 sites, but a study needs fewer than"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_slabs_cannot_do_is_refused_in_one_line(given, message, tmp_path):
    usual = ("--lattice", "square", "-L", "8", "-p", "0.5", "--slabs", "2", "--device", "cpu")
    assert message in refusal("sweep", *changed(usual, *given, "--out", tmp_path / "none.h5"))


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
    message = "slabs: only with threads or processes of one host; for several hosts use "
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
        task = Study(lattice("square"), (size,), ("open", "open"), p=(0.5,)).tasks[size]
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


#: One way for each partition, as options of the command line.
WAYS = {
    "slabs": ("--slabs", "2"),
    "ranks": ("--split", "lattice", "--workers", "2"),
    "boxes": ("--split", "lattice", "--blocks", "2x1"),
}
RANKS = {"split": "lattice", "executor": "threads"}
CUBIC = {"lattice": "cubic", "L": (8,), "p": (0.2488,), "boundary": "periodic"}
ODD = {"L": (8, 13)}
slow = pytest.mark.slow
WIDE = {"p": (0.0, 0.3, 0.5, 0.7), "L": (6, 8)}

FILES = [
    {"slabs": "4"},
    {"slabs": "auto"},
    {"slabs": 3, "executor": "processes", "workers": 2, "is_slow": True},
    {**WIDE, "slabs": 3, "rng": "philox"},
    {**WIDE, "slabs": 5, "boundary": ("periodic", "open"), "model": "site", "rng": "philox"},
    {**WIDE, "slabs": 4, "lattice": "triangular", "boundary": "periodic", "model": "site-bond",
     "is_slow": True},
    {**WIDE, "slabs": 5, "lattice": "honeycomb", "boundary": "periodic", "rng": "philox",
     "is_slow": True},
    {**WIDE, "slabs": 3, "lattice": "kagome", "boundary": ("open", "periodic"),
     "model": "site-bond:site=0.9", "rng": "philox"},
    {**WIDE, "slabs": 2, "lattice": "cubic", "boundary": "periodic"},
    {**WIDE, "slabs": 6, "lattice": "bcc", "model": "site", "is_slow": True},
    {**WIDE, "slabs": 3, "lattice": "hypercubic-4d", "L": (4, 6), "rng": "philox",
     "boundary": ("open", "open", "periodic", "open")},
    {**RANKS, **ODD, "workers": 3},
    {**RANKS, **ODD, "workers": 3, "slabs": 8, "executor": "processes", "is_slow": True},
    {**RANKS, "lattice": "kagome", "L": (8,), "boundary": "periodic", "model": "site",
     "workers": 4, "slabs": 7},
    {**RANKS, "lattice": "cubic", "boundary": ("open", "open", "periodic"), "workers": 2,
     "slabs": "auto", "is_slow": True},
    {**RANKS, "blocks": "2x2", "merge": "quad:bubbles,runs"},
    {**RANKS, "blocks": "2x2", "merge": "quad:bubbles,shorter", "is_slow": True},
    {**RANKS, "blocks": "4x2", "merge": "quad:runs", "workers": 1},
    {**RANKS, "blocks": "1x3", "L": (12,)},
    {**RANKS, "merge": "quad:bubbles", "workers": 4},
    {**RANKS, "merge": "tree:bubbles", "workers": 3, "L": (12,)},
    *({**RANKS, **CUBIC, "blocks": "2x2x2", "merge": merge, "is_slow": True}
      for merge in ("tree", "quad", "quad:bubbles,runs", "quad:bubbles,shorter")),
    *({**RANKS, **CUBIC, "blocks": "2x2x2", "merge": merge, "executor": "processes",
       "is_slow": True} for merge in ("tree", "quad:bubbles,runs")),
]  # fmt: skip


@cache
def whole_study(lattice, sizes, p, boundary, model, rng):
    """Return the study of whole samples; for reading only."""
    return sweep(lattice, **settings(sizes, p, boundary, model, rng))


def settings(sizes=(8,), p=(0.4, 0.5), boundary="open", model="bond", rng="xorwow"):
    return {
        "L": list(sizes),
        "p": list(p),
        "boundary": boundary,
        "model": model,
        "rng": rng,
        "samples": 6,
        "block_size": 3,
        "measure": "sizes",
        "device": "cpu",
    }


@pytest.mark.parametrize(
    "given",
    [pytest.param(given, marks=[slow] * given.get("is_slow", False)) for given in FILES],
    ids=lambda given: " ".join(f"{key}={value}" for key, value in given.items()),
)
def test_the_file_of_a_study_in_parts_is_that_of_whole_samples(given):
    way = {key: value for key, value in given.items() if key != "is_slow"}
    study = {"lattice": "square", "L": (8, 12), "p": (0.4, 0.5), "boundary": "open"}
    study |= {"model": "bond", "rng": "xorwow"}
    lattice, *rest = (way.pop(name, default) for name, default in study.items())
    found = sweep(lattice, **settings(*rest), **way, out="parts.h5")
    whole = whole_study(lattice, *rest)
    assert_equal_datasets(Path("parts.h5"), stored(Path("whole.h5"), whole))
    assert found.tasks.keys() == whole.tasks.keys()
    record = found.runs[0]
    assert ("split" in record) == ("split" in way)
    # Where all samples fit, auto cuts none.
    is_cut = "split" in way or way["slabs"] != "auto"
    assert ("slabs" in record) == (is_cut and not {"blocks", "merge"} & way.keys())
    if "split" not in way and is_cut:
        assert record["slabs"] == {str(size): int(way["slabs"]) for size in rest[0]}
    assert not {"split", "slabs"} & whole.runs[0].keys()


def test_a_study_may_be_begun_in_one_way_and_continued_in_others():
    study = settings()
    ways = ({}, {"slabs": 3}, RANKS | {"workers": 2}, RANKS | {"blocks": "2x2"})
    for blocks, way in enumerate(ways, 1):
        found = sweep("square", **study | {"samples": 3 * blocks}, **way, out="results.h5")
        assert len(found.runs) == blocks
        if "split" in way:
            assert found.runs[-1]["split"]["rows"] == 6
    sweep("square", **study | {"samples": 12}, out="whole.h5")
    assert_equal_datasets(Path("results.h5"), Path("whole.h5"))
    # Nothing is left to do.
    sweep("square", **study | {"samples": 12}, slabs=2, out="whole.h5")
    assert len(read_results(Path("whole.h5")).runs) == 1


@pytest.mark.parametrize("way", [{"slabs": 3}, RANKS | {"workers": 2}, RANKS | {"blocks": "2x2"}])
def test_sums_beyond_64_bits_have_two_columns(way, monkeypatch):
    (one,) = sweep("square", **settings()).tasks.values()
    monkeypatch.setattr(Task, "is_wide", property(lambda task: True))
    monkeypatch.setattr("percolab.run.parts_sampler.LOW_BITS", 5)
    wide = read_results(stored(Path("wide.h5"), sweep("square", **settings(), **way)))
    (other,) = wide.tasks.values()
    assert one.task.id == other.task.id
    assert not other.has("sum_squares")
    low, high = other.extra("wide_squares").transpose(2, 0, 1)
    assert high.min() > 0
    assert low.max() < 32 * 3
    expected = one.column("sum_squares").tolist()
    assert (low + 32 * high).tolist() == expected
    for name in ("powers", "size_counts"):
        assert other.extra(name).tolist() == one.extra(name).tolist()
    assert other.column("largest").tolist() == one.column("largest").tolist()
    monkeypatch.setattr("percolab.store.task_result.LOW_BITS", 5)
    (curve,) = read_cluster_curves(wide)
    assert curve.sum_squares.tolist() == expected


NOT_IN_PARTS = [
    (("--measure", "gyration"), "radii of clusters need whole samples"),
    (("--measure", "openings"), "they are counted only in whole samples"),
    (("--model", "ising"), "a sweep of ising needs all spins at once"),
    (("--lattice", "bethe:3"), "bethe:3 has no layers, so it cannot be cut"),
    (("--labeler", "reference"), "on cpu the labeler is raster, not reference"),
    (("--method", "threshold"), "method threshold needs whole samples"),
    (("--method", "tree"), "method tree needs the whole lattice at once"),
    (("-p", ""), "give p (-p)"),
    (("-p", "", "--plan"), "give p (-p)"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("given", "message"), NOT_IN_PARTS, ids=lambda item: " ".join(item[:2]))
def test_what_parts_cannot_do_is_refused_in_one_line(way, given, message):
    usual = ["--lattice", "square", "-L", "8", "-p", "0.5", "--device", "cpu", *WAYS[way]]
    if given[0] in ("-p", "--method"):
        usual.remove("-p")
        usual.remove("0.5")
        given = given[2:] if given[0] == "-p" else given
    found = refusal("sweep", *changed(usual, *given, "--out", "none.h5"))
    assert message in found
    assert found.count("--split lattice") <= 1


@pytest.mark.parametrize(
    ("way", "message"),
    [
        (("--slabs", "4"), "a slab of 2 layers is too thin: bonds of far reach over 3"),
        (("--split", "lattice", "--workers", "3"), "bonds of far reach over 3 layers"),
        (("--split", "lattice", "--blocks", "1x4"), "along axis y, but bonds of far reach 3 far"),
    ],
)
def test_parts_thinner_than_bonds_reach_are_refused(way, message):
    bonds = ", ".join(
        f"{{ offset = {offset}, at = [[0, 0]] }}" for offset in ([1, 0], [0, 1], [0, 3])
    )
    text = f'name = "far"\ndimension = 2\nbonds = [{bonds}]\n[cell]\nshape = [1, 1]\n'
    Path("far.toml").write_text(text)
    given = ("--lattice", "far.toml", "-L", "8", "-p", "0.5", "--device", "cpu", *way)
    assert message in refusal("sweep", *given, "--out", "none.h5")
