"""A sample in parts continues after a kill from what its ranks, or the one rank, have saved."""

import re
import signal
import threading
import time
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import fields, replace
from functools import cache
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from cli_support import answer, assert_equal_datasets, changed, run, stored
from helpers import lattice, slow, slow_but
from process_support import Killed, Killer, by_mpi, impatient_rank, start_by_ranks

from percolab import InputError, sweep
from percolab.bonds.words import p_to_threshold
from percolab.kernels.device import Device
from percolab.kinds.workplace import Stopped
from percolab.measure.sums import ClusterSums
from percolab.parts.interface import InterfaceSums
from percolab.parts.ranks import Leader, RankJob
from percolab.parts.raster import SampleKey, SlabRaster
from percolab.parts.slab_partition import SlabDivision
from percolab.parts.slabs import Slabs
from percolab.parts.transport import Local
from percolab.run.parts_sampler import PartsSampler, alone, make_split_lattice
from percolab.run.rank_group import RankGroup
from percolab.run.saving import RankCheckpointer
from percolab.store.checkpoints import Checkpoint, Checkpoints, RankRow, read_checkpoint
from percolab.store.reading import FileFormat
from percolab.tasks.blocks import same_block
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task

PATH = Path("split.h5")
ASKED = {
    "L": [12],
    "p": [0.4, 0.5],
    "boundary": ("open", "periodic"),
    "measure": "sizes",
    "samples": 2,
    "block_size": 2,
    "device": "cpu",
}
# A block of 2 samples at 2 p, in 9 slabs, 3 of each of 3 ranks.
ROWS, SLABS = 4, 9
WAYS = {
    "slabs": {"slabs": SLABS, "workers": 1},
    "ranks": {"slabs": SLABS, "workers": 3, "split": "lattice", "executor": "threads"},
}
RANKS = {"slabs": 1, "ranks": 3}
OPTIONS = {
    "slabs": ("--slabs", SLABS, "--workers", 1),
    "ranks": ("--slabs", SLABS, "--workers", 3, "--split", "lattice"),
}


class Counted(SlabRaster):
    """Counts how often every slab of every row was measured, since the list was cleared."""

    made, lock = Counter(), threading.Lock()

    def make_interface(self, part, draw, following=None):
        # Not those of a small lattice, which are measured first so that all is compiled.
        if part.whole.num_layers == 12:
            with self.lock:
                self.made[draw, part.first_layer] += 1
        return super().make_interface(part, draw, following)


@pytest.fixture
def at_once(monkeypatch):
    """Let checkpoints be saved after every slab and every row."""
    monkeypatch.setattr("percolab.run.saving._CHECKPOINT_EVERY", 0.0)
    monkeypatch.setattr("percolab.run.saving._CHECKPOINT_SHARE", 0.0)


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr("percolab.parts.slabs.SlabRaster", Counted)
    Counted.made.clear()
    return Counted.made


def run_killed(moment=10**9, way="ranks", **kinds):
    """Run the study to its end or until rank 0 has done so many slabs; return what was noted."""
    killer = Killer(moment)
    with suppress(Killed):
        sweep("square", **ASKED | WAYS[way] | kinds, out=PATH, observer=killer)
    return killer


@cache
def whole_study(boundary, samples):
    """Return the study of whole samples; for reading only."""
    return sweep("square", **ASKED | {"boundary": boundary, "samples": samples})


def assert_whole(boundary=ASKED["boundary"], samples=2):
    """Fail unless the file is that of whole samples, and nothing is left beside it."""
    assert_equal_datasets(PATH, stored(Path("whole.h5"), whole_study(boundary, samples)))
    assert not list(Path().glob("*checkpoint*"))


def checkpoints_of_ranks():
    return sorted(Path().glob("split.h5-*-*-*.checkpoint"))


@pytest.mark.parametrize(
    ("way", "moment", "boundary", "samples"),
    [
        slow("ranks", 1, "open", 2),
        ("ranks", 4, "periodic", 2),
        slow("slabs", 1, "open", 2),
        ("slabs", 14, "periodic", 2),
        slow("slabs", 35, "periodic", 2),
        *(
            slow(way, moment, boundary, 4)
            for way, moments in (
                ("ranks", (2, 3, 5, 11, 12, 13, 22)),
                ("slabs", (9, 10, 17, 36, 71)),
            )
            # Every boundary in turn, both ways.
            for moment, boundary in zip(moments, cycle(("open", "periodic", ("periodic", "open"))))
        ),
    ],
)
def test_a_study_killed_at_any_slab_continues_to_the_same_end(
    way, moment, boundary, samples, at_once, made
):
    run_killed(moment, way, boundary=boundary, samples=samples)
    slabs = 2 * samples * SLABS
    assert 0 < made.total() <= slabs
    noted = run_killed(way=way, boundary=boundary, samples=samples)
    assert len(made) == slabs
    # Of every rank at most the one slab that it was at, and of a second block one that was begun.
    assert set(made.values()) <= {1, 2}
    assert made.total() <= slabs + RANKS[way] + (samples > 2)
    assert len(noted.lines) in ((0, 1, 2) if way == "slabs" else (1, 2))
    assert_whole(boundary, samples)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["slabs", slow("ranks")])
def test_repeated_kills_do_not_change_results(way, at_once):
    for moment in (3, 5, 2, 4, 3):
        run_killed(moment, way)
    run_killed(way=way)
    assert_whole()


def task(**kinds):
    return Task(lattice("square"), 12, boundary=("open", "open"), p=(0.5,), **kinds)


@pytest.mark.parametrize(
    "ranks",
    [
        RankGroup("threads", (Device("cpu"),), SlabDivision({12: ((1,) * 4,) * 3})),
        alone((3,) * 4, 12),
    ],
    ids=["ranks", "slabs"],
)
def test_a_stop_between_two_slabs_keeps_all_that_is_measured(ranks, made):
    PATH.touch()
    done = []
    sampler = PartsSampler(task(block_size=2), ranks, done.append)
    sampler.checkpoints = Checkpoints(PATH)
    count = len(ranks.division.layers[12])
    with ranks.opened() if count > 1 else nullcontext():
        with pytest.raises(Stopped):
            # After two of rank 0's four slabs of the second sample.
            sampler.sample([3], lambda: len(done) == 6)
        assert len(sampler.checkpoints.load(sampler.task.id, 3).rows) == 1
        interface = sampler.checkpoints.load(sampler.task.id, 3, 0).interface
        assert interface.layers == 6 // count
        (found,) = sampler.sample([3])
    assert len(done) == 8
    (whole,) = make_sampler(sampler.task, device=Device("cpu")).sample([3])
    assert same_block(found, whole)
    assert len(made) == 2 * 4 * count
    # Another rank may have been done with its layers, which are saved once a minute.
    again = {(draw.sample, layer) for (draw, layer), number in made.items() if number > 1}
    assert again <= {(7, layer) for layer in range(4, 12)}
    assert not again or count > 1
    sampler.checkpoints.remove(sampler.task.id, [3].__contains__)
    assert list(Path().iterdir()) == [PATH]


def test_rows_are_saved_before_an_interface_of_the_next_row(monkeypatch):
    """A row of 45 s, and one that is killed in its second minute."""
    PATH.touch()
    seconds, done = [0.0], []
    monkeypatch.setattr("percolab.run.saving.time", SimpleNamespace(monotonic=lambda: seconds[0]))

    def report(sites):
        done.append(sites)
        seconds[0] += 5 if len(done) <= SLABS else 20
        if len(done) == SLABS + 5:
            raise Killed

    sampler = PartsSampler(task(block_size=2), alone((2, 1, 1) * 3, 12), report)
    sampler.checkpoints = Checkpoints(PATH)
    with pytest.raises(Killed):
        sampler.sample([3])
    assert len(sampler.saved_rows(3)) == 1
    existing = sampler.checkpoints.load(sampler.task.id, 3, 0)
    assert (existing.rank_row.sample, existing.interface.layers) == (7, 6)


@pytest.mark.slow
def test_of_boxes_the_rows_that_are_done_are_kept(at_once):
    boxes = {"way": "ranks", "slabs": None, "blocks": "1x3"}
    run_killed(2, **boxes)
    assert not checkpoints_of_ranks()
    (line,) = run_killed(**boxes).lines
    assert "block 0 goes on after 2 rows" in line
    assert_whole()


class Recorder:
    """Stores nothing but the names of its calls."""

    is_due = True

    def __init__(self):
        self.calls = []

    def begin(self, draw):
        self.calls.append("begin")

    def keep(self, copied):
        self.calls.append(copied().layers)

    def end(self):
        self.calls.append("end")


def test_an_interface_is_sent_once_its_checkpoint_is_written(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(RankJob, "checkpointer", lambda job, rank: recorder)
    leader = Leader(Local.ranks(1)[0])
    job, draw = (
        RankJob(make_split_lattice(task()), ((4, 5, 3),)),
        SampleKey(0, 1, 7, p_to_threshold(0.5)),
    )
    assert leader.row(job, draw) is not None
    assert leader.row(job, draw, lambda: len(recorder.calls) == 7) is None
    assert recorder.calls == ["begin", 4, 9, 12, "end", "begin", 4, 9, "end"]


# --- what is used, and what is not ---------------------------------------------------------------


@cache
def files_of_the_killed(way):
    """Kill a study in the third row of its block, and return the files that it leaves."""
    run_killed({"ranks": 8, "slabs": 22}[way], way)
    assert checkpoints_of_ranks()
    return {path.name: path.read_bytes() for path in Path().glob("split*")}


@pytest.fixture
def way(request):
    return getattr(request, "param", "ranks")


@pytest.fixture
def killed(way, at_once, made):
    """The files of the killed study; slabs are counted from now on."""
    for name, content in files_of_the_killed(way).items():
        Path(name).write_bytes(content)
    made.clear()


killed_both_ways = pytest.mark.parametrize("way", slow_but(WAYS, "slabs"), indirect=True)


def of_third_row():
    """Return the checkpoints of ranks that had begun the third row."""
    existing = {path: read_checkpoint(path) for path in checkpoints_of_ranks()}
    return {path: item for path, item in existing.items() if item.rank_row.sample == 1}


@killed_both_ways
def test_where_a_block_continues_is_noted(killed, way):
    layers = [item.interface.layers for item in of_third_row().values()]
    # Nothing is noted of what is saved of rows that are done.
    old = next(iter(of_third_row().values()))
    row = RankRow(RANKS["ranks"], 0, p_to_threshold(0.5))
    Checkpoints(PATH).save(replace(old, rank_row=row))
    (first, second) = run_killed(way=way).lines
    assert re.fullmatch(
        r"L = 12: block 0 goes on after 2 rows \(from split\.h5-\w{16}-0\.checkpoint\)", first
    )
    assert second == (
        f"L = 12: block 0 goes on with {sum(layers)} of 12 layers "
        f"(from checkpoints of ranks: {len(layers)})"
    )
    assert_whole()


@killed_both_ways
def test_other_slabs_are_measured_anew(killed, made, way):
    left = sorted(of_third_row())
    kinds = {"slabs": {"slabs": 5}, "ranks": {"workers": 2, "slabs": 2}}[way]
    (first, second) = run_killed(way=way, **kinds).lines
    assert "block 0 goes on after 2 rows" in first
    more = f" and {len(left) - 1} more: are" if len(left) > 1 else ": is"
    their = "their" if len(left) > 1 else "its"
    assert second == (
        f"{left[0].resolve()}{more} of other ranks, slabs or rows; {their} layers are measured anew"
    )
    assert made.total() == 2 * kinds["slabs"]
    assert_whole()


def test_slabs_continue_with_what_ranks_saved_and_ranks_with_what_slabs_saved(killed, made):
    rows, layers, others = run_killed(5, "slabs", slabs=12).lines
    assert "block 0 goes on after 2 rows" in rows
    # A rank that is alone has the layers of the first of many ranks, but not those of the others.
    assert re.search(r"block 0 goes on with [234] of 12 layers", layers)
    assert "of other ranks, slabs or rows" in others
    assert set(made.values()) == {1}
    assert any("of other ranks, slabs or rows" in line for line in run_killed().lines)
    assert_whole()


def test_one_rank_of_a_group_continues_with_the_slabs_of_a_rank_that_is_alone(at_once, made):
    run_killed(22, "slabs")
    made.clear()
    run_killed(workers=1)
    assert made.total() == 2 * SLABS - 4
    assert_whole()


@killed_both_ways
def test_checkpoints_of_an_earlier_version_are_measured_anew(killed, made, way, monkeypatch):
    left = [*set(Path().glob("split.h5-*.checkpoint"))]
    for path in left:
        found = read_checkpoint(path)
        with monkeypatch.context() as before:
            form = FileFormat("percolab checkpoint 1", None, "")
            before.setattr("percolab.store.checkpoints._FORMAT", form)
            Checkpoints(PATH).save(found)
    noted = run_killed(way=way)
    assert sorted(noted.lines) == sorted(
        f"{path.resolve()}: is of another version of percolab, and is measured anew"
        for path in left
    )
    assert made.total() == ROWS * SLABS
    assert_whole()


def test_a_checkpoint_of_another_row_is_not_used(killed, made):
    """As where the rows that came after it are saved, or those before it are not."""
    (block,) = set(Path().glob("split.h5-*.checkpoint")) - set(checkpoints_of_ranks())
    block.unlink()
    (line,) = run_killed().lines
    assert "of other ranks, slabs or rows" in line
    assert made.total() == ROWS * SLABS
    assert_whole()


def test_a_checkpoint_of_another_task_is_left_as_it_is(killed, made):
    for path in Path().glob("split.h5-*.checkpoint"):
        path.rename(re.sub(r"-\w{16}-", f"-{'0' * 16}-", path.name))
    left = sorted(Path().glob("split.h5-*.checkpoint"))
    content = [path.read_bytes() for path in left]
    noted = run_killed()
    assert sorted(noted.lines) == sorted(
        f"{path.resolve()}: is a checkpoint of another task, and is left as it is" for path in left
    )
    assert made.total() == ROWS * SLABS
    assert [path.read_bytes() for path in left] == content


def test_files_of_another_rank_are_left_as_they_are(killed):
    (path, *_) = of_third_row()
    other = path.rename(re.sub(r"-\d\.", f"-{RANKS['ranks']}.", path.name))
    assert f"{other.resolve()}: is a checkpoint of another task, and is left as it is" in (
        run_killed(1).lines
    )


def test_a_rank_uses_only_its_own_checkpoint():
    whole, layers = make_split_lattice(task()), (3, 3)
    draw, checkpoints = SampleKey(0, 1, 7, p_to_threshold(0.5)), Checkpoints(PATH)
    interface = next(Slabs(whole, layers, first_layer=6).interfaces(draw))
    own = Checkpoint("0" * 16, 3, (), interface, RankRow(2, 7, draw.threshold))
    path = checkpoints.find_checkpoint("0" * 16, 3, 2)

    def begun(layers=layers, first=6, draw=draw, block_size=2, task_id="0" * 16):
        checkpointer = RankCheckpointer(checkpoints, task_id, block_size, 2, layers, first)
        return checkpointer.begin(draw)

    def written(**changed):
        checkpoints.save(replace(own, **changed))
        return checkpoints.find_checkpoint(*replace(own, **changed).key)

    assert begun() is None
    assert written() == path
    found = begun()
    np.testing.assert_array_equal(found.sizes, interface.sizes)
    assert found.sums == interface.sums
    assert begun(layers=(3, 1, 2)) is not None
    # Other slabs, ranks, samples and p.
    assert begun(layers=(2, 4)) is None
    assert begun(first=5) is None
    assert begun(draw=replace(draw, sample=6)) is None
    assert begun(draw=replace(draw, threshold=5)) is None
    # Another rank, block or task, of which it has the name.
    row = own.rank_row
    for other in (
        {"rank_row": row._replace(rank=1)},
        {"number": 2},
        {"task_id": "1" * 16},
        {"rank_row": None},
    ):
        written(**other).rename(path)
        assert begun() is None


def test_a_rank_that_does_not_see_the_file_keeps_nothing(at_once):
    draw, interface = SampleKey(0, 1, 7, p_to_threshold(0.5)), None
    whole = make_split_lattice(task())
    interface = next(Slabs(whole, (3, 3), first_layer=6).interfaces(draw))
    checkpointer = RankCheckpointer(
        Checkpoints(Path("elsewhere") / "split.h5"), "0" * 16, 2, 2, (3, 3), 6
    )
    assert checkpointer.begin(draw) is None
    checkpointer.keep(lambda: interface)
    checkpointer.end()
    assert not Path("elsewhere").exists()


@killed_both_ways
def test_a_damaged_checkpoint_is_refused_in_one_line(killed, way, monkeypatch):
    given = ("--lattice", "square", "-L", "12", "-p", "0.4,0.5", "--boundary", "open,periodic",
             "--measure", "sizes", "--samples", 2, "--device", "cpu", *OPTIONS[way])  # fmt: skip
    left = checkpoints_of_ranks()[-1]
    good = left.read_bytes()
    for path in (left, *set(Path().glob("split.h5-*-0.checkpoint")) - set(checkpoints_of_ranks())):
        content = path.read_bytes()
        for damaged in (content[: len(content) // 2], flipped(content, -40)):
            path.write_bytes(damaged)
            refused = run("sweep", *given, "--out", PATH)
            assert refused.exit_code == 2
            line = refused.stderr.splitlines()[-1]
            assert f"error: {path.resolve()}: is damaged or no checkpoint; remove it to" in line
        path.write_bytes(content)
    # One that was not yet whole when it was killed is none.
    left.write_bytes(good)
    left.rename(f".{left.name}.tmp")
    monkeypatch.setattr("percolab.run.saving._CHECKPOINT_EVERY", 60.0)
    run_killed(way=way)
    assert_whole()


def flipped(content, place):
    changed = bytearray(content)
    changed[place] ^= 0x10
    return bytes(changed)


def read_or_refusal(path):
    """Return (checkpoint, "") or (None, the error)."""
    try:
        return read_checkpoint(path), ""
    except InputError as error:
        return None, str(error)


def test_a_changed_byte_of_a_checkpoint_is_refused_or_changes_nothing(killed):
    left = checkpoints_of_ranks()[-1]
    good, before, kept = left.read_bytes(), read_checkpoint(left), 0
    places = np.random.default_rng(1).integers(0, len(good), 25)
    for content in (b"", b"no checkpoint", *(flipped(good, place) for place in places)):
        left.write_bytes(content)
        existing, refused = read_or_refusal(left)
        if existing is None:
            assert refused.startswith(f"{left}: is damaged or no checkpoint; remove it")
            assert "\n" not in refused
        else:
            # A byte that nothing depends on.
            assert np.array_equal(existing.interface.sizes, before.interface.sizes)
            assert existing.interface.sums == before.interface.sums
            kept += 1
    assert kept < 10


def test_a_checkpoint_reads_as_it_was_written(killed):
    existing = read_checkpoint(checkpoints_of_ranks()[0])
    again = Checkpoints(Path("other.h5"))
    clusters = ClusterSums(3, 4, 5, 2**70 + 1, 6)
    wide = InterfaceSums(clusters, 2**190 + 3, 2**200, (1, 2), 5, -7)
    for sums in (existing.interface.sums, wide):
        again.save(replace(existing, interface=replace(existing.interface, sums=sums)))
        read = again.load(*existing.key).interface.sums
        for item in fields(sums):
            one, other = getattr(sums, item.name), getattr(read, item.name)
            assert (one, type(one)) == (other, type(other))


# --- processes -----------------------------------------------------------------------------------

GIVEN = ("sweep", "--lattice", "square", "-L", "600", "-p", "0.45,0.5", "--measure", "sizes",
         "--device", "cpu")  # fmt: skip
_IMPATIENT = f"""
sys.path.insert(0, {str(Path(impatient_rank.__code__.co_filename).parent)!r})
import percolab.run.saving as saving, percolab.run.rank_group, process_support
saving._CHECKPOINT_EVERY = saving._CHECKPOINT_SHARE = 0.0
percolab.run.rank_group.be_rank = process_support.impatient_rank
process_support.pace_slabs(0.01)
"""


def kept():
    """Return which checkpoints of ranks there are, and when they were written."""
    found = {}
    for path in checkpoints_of_ranks():
        with suppress(FileNotFoundError):
            found[path] = path.stat().st_mtime_ns
    return found


def kill(process, seconds, victim):
    """Kill a run that was just begun, or one of its ranks, so long after it has kept something.

    Return what it has written to stderr.
    """
    before = kept()
    while process.poll() is None and kept() == before:
        time.sleep(0.01)
    time.sleep(seconds)
    ranks = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    own = [item for item in ranks if "python" in item.name()]
    with suppress(psutil.NoSuchProcess):
        if victim == 0 or not own:
            process.kill()
        else:
            own[victim - 1].send_signal(signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    psutil.wait_procs(ranks, timeout=120)
    return errors


LARGE = "--slabs", 120, "--split", "lattice", "--samples", 6
#: How a study is begun, of which a process is killed: itself, mpiexec, or one of its ranks.
BEGUN = {
    "slabs": (("-L", 240, "--slabs", 48, "--samples", 1, "--workers", 1), 0),
    "threads": (("-L", 240, "--slabs", 48, "--samples", 1, *OPTIONS["ranks"][2:]), 0),
    "processes": ((*LARGE, "--workers", 3, "--executor", "processes"), 0),
    "mpi": (LARGE, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "victim", "boundary"),
    [
        ("slabs", 0, "open"),
        ("threads", 0, "open"),
        ("processes", 0, "periodic"),
        ("processes", 2, "open"),
        pytest.param("mpi", 0, "open,periodic", marks=by_mpi),
        # Which ends all others.
        pytest.param("mpi", 3, "open,periodic", marks=by_mpi),
    ],
)
def test_kills_of_processes_lose_nothing(way, victim, boundary):
    own, ranks = BEGUN[way]
    given = changed(GIVEN, *own, "--boundary", boundary)
    whole = [word for word in given if word not in ("--split", "lattice")]

    def begun():
        options = ("--out", PATH)
        return start_by_ranks(*given, *options, ranks=ranks, before=_IMPATIENT, options=())

    usual = ("--slabs", 1, "--workers", 1, "--executor", "threads", "--out", "whole.h5")
    answer(*changed(whole, *usual))
    printed = [kill(begun(), seconds, victim) for seconds in (0.05, 0.3)]
    process = begun()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert any("goes on with" in lines for lines in (*printed, errors)), printed
    assert_equal_datasets(PATH, Path("whole.h5"))
    assert not list(Path().glob("*checkpoint*"))
