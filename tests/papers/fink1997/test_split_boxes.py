"""``--split lattice --blocks --merge``: samples in boxes over ranks have the file of any."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from cli_support import changed, refusal
from helpers import lattice

from percolab import InputError, sweep
from percolab.kernels.device import Device
from percolab.kinds.workplace import Stopped
from percolab.papers.fink1997.boxes import BoxRaster
from percolab.parts.transport import Local
from percolab.run import rank_group
from percolab.run.executors import RankExecutor
from percolab.run.parts_sampler import PartsSampler
from percolab.run.rank_group import make_rank_group
from percolab.run.request import Observer
from percolab.tasks.study import Task

ASKED = {"L": [8, 12], "p": [0.4, 0.5], "samples": 3, "block_size": 3, "measure": "sizes"}
CPU = Device("cpu")


def record_of(*, sites=None, **kinds):
    watched = Observer()
    if sites is not None:
        watched.labeled = sites.append
    given = ASKED | {"L": [8]} | kinds
    return sweep("square", **given, device="cpu", split="lattice", observer=watched).runs[0]


def test_the_record_of_a_run_says_how_boxes_were_merged():
    sites = []
    record = record_of(blocks="2x4", merge="quad:bubbles,shorter", sites=sites)
    assert (record["executor"], record["workers"], record["labeler"]) == ("threads", 8, "raster")
    assert "slabs" not in record
    output = record["split"]
    assert (output["blocks"], output["merge"]) == ("2x4", "quad:bubbles,shorter")
    assert (output["kind"], output["ranks"], output["rows"]) == ("lattice", 8, 6)
    # A row: 8 in each of 3 stages, and the two sides of 4 + 6 faces tell of bubbles.
    assert output["messages"] == 6 * (8 * 3 + 2 * 10)
    stages = [*output["stages"], output["bubbles"]]
    assert len(stages) == 4
    assert output["bytes"] == sum(stage["bytes"] for stage in stages)
    for stage in stages:
        assert stage["bytes"] > 0
        assert min(stage["transport_seconds"], stage["join_seconds"]) > 0
    assert 0 < output["local_seconds"] < record["seconds"]
    assert output["close_seconds"] > 0
    assert sum(sites) == 6 * 64


def test_a_tree_sends_one_message_less_than_boxes_and_one_process_none():
    tree = record_of(blocks="2x3", L=[12])["split"]
    assert (tree["messages"], len(tree["stages"]), tree["merge"]) == (6 * 5, 3, "tree")
    assert "bubbles" not in tree
    sites = []
    alone = record_of(blocks="2x2", merge="quad", workers=1, sites=sites)["split"]
    assert (alone["ranks"], alone["blocks"]) == (1, "2x2")
    assert (alone["messages"], alone["bytes"]) == (0, 0)
    assert min(stage["join_seconds"] for stage in alone["stages"]) > 0
    assert sum(sites) == 6 * 64


REFUSED = [
    (("--blocks", "3x2"), "L = 8: blocks 3x2 do not divide the lattice: 8 grid points along axis"),
    (("--blocks", "2x2x2"), "blocks 2x2x2 have 3 axes, but square has 2"),
    (("--blocks", "2x"), "blocks '2x'; they are numbers of boxes along the axes"),
    (("--merge", "quad", "--workers", "9"), "9 ranks, but there are 8 layers"),
    (("--merge", "quad", "--workers", "3", "-L", "9"), "merge quad needs a power of two of boxes"),
    (("--merge", "quad", "--workers", "0"), "--workers"),
    (("--merge", "quat"), "merge 'quat': unknown 'quat'; did you mean 'quad'?"),
    (("--merge", "quad:all"), "merge 'quad:all': unknown option 'all'"),
    (("--blocks", "2x2", "--workers", "3"), "3 ranks, but blocks 2x2 are 4 boxes: each rank has"),
    (("--blocks", "2x2", "--slabs", "4"), "a box is measured as a whole; leave out --slabs"),
    (("--blocks", "4x4", "-L", "1000000"), "boxes of 62500000000 sites, but at most"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_cannot_be_cut_or_merged_is_refused_in_one_line(given, message):
    usual = ("--lattice", "square", "-L", "8", "-p", "0.5", "--device", "cpu")
    output = refusal("sweep", *changed([*usual, "--split", "lattice"], *given, "--out", "none.h5"))
    assert message in output
    assert output.count("--split lattice") <= 1


@pytest.mark.parametrize(
    "given", [("--blocks", "2x2"), ("--merge", "tree")], ids=lambda own: own[0]
)
def test_blocks_and_merge_go_with_split(given):
    output = refusal("sweep", *changed(["--lattice", "square", "-L", "8", "-p", "0.5"], *given))
    assert output == f"{given[0][2:]} = {given[1]}: only with --split lattice"


def task(size=12, **kinds):
    return Task(lattice("square"), size, **{"boundary": ("open", "open"), "p": (0.5,)} | kinds)


def team(devices=(CPU,), tasks=None, **kinds):
    return make_rank_group(tasks or [task()], devices, **kinds)


def test_ranks_are_as_many_as_boxes(monkeypatch):
    assert (team(blocks="2x3").size, team(blocks="2x3", workers=1).size) == (6, 1)
    monkeypatch.setattr(rank_group, "default_workers", lambda device: 7)
    # What divides both lattices, and a power of two for quad.
    both = [task(12), task(18)]
    assert team(merge="tree:runs", tasks=both).division.counts == (1, 6)
    assert team(merge="quad", tasks=both).division.counts == (1, 2)
    for number, message in ((3, "3 ranks, but blocks 2x2 are 4 boxes"), (4, "")):
        given = RankExecutor(Local.ranks(number)[0], "mpi")
        if message:
            with pytest.raises(InputError, match=message):
                team(executor=given, blocks="2x2", workers=4)
        else:
            assert team(executor=given, blocks="2x2").size == 4
        given.shutdown()


def test_boxes_are_not_on_a_gpu_and_fit_in_memory(free_memory):
    gpu = Device("cuda", 0)
    for kinds, words in (({"blocks": "2x2"}, "blocks"), ({"merge": "quad"}, "merge quad")):
        message = f"split lattice: {words}: boxes are labeled on the CPU alone; use device cpu"
        with pytest.raises(InputError, match=message):
            team((gpu,), **kinds)
    free_memory(10**4)
    with pytest.raises(InputError, match=r"L = 12 in blocks 2x2 needs .* GB of memory for 4 of 4"):
        team(blocks="2x2")


def test_auto_runs_boxes_on_the_cpu_with_a_note(monkeypatch):
    monkeypatch.setattr(Device, "resolve_all", lambda device: (Device("cuda", 0),))
    watched, notes = Observer(), []
    watched.noted = notes.append
    given = ASKED | {"L": [8], "split": "lattice", "blocks": "2x1", "observer": watched}
    assert sweep("square", **given, device="auto").runs[0]["device"] == "cpu"
    (note,) = notes
    assert note.startswith("measuring on the CPU, as cuda:0 cannot: split lattice: blocks: ")


def test_a_stop_is_between_two_rows():
    own = team(blocks="2x2", merge="quad")
    calls = iter([False, False, True])
    with own.opened():
        sampler = PartsSampler(task(block_size=3), own)
        with pytest.raises(Stopped):
            sampler.sample([0], lambda: next(calls))
        assert len(sampler.sample([0])) == 1


@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("merge", ["tree", "quad:bubbles"])
def test_an_error_of_a_rank_is_raised_and_no_other_rank_waits(rank, merge, monkeypatch):
    boundary = BoxRaster.boundary

    def broken(own, box, draw):
        if box == (rank % 2, rank // 2) and draw.sample == 2:
            raise ZeroDivisionError("of a rank")
        return boundary(own, box, draw)

    monkeypatch.setattr(BoxRaster, "boundary", broken)
    ranks_of, made = Local.ranks, []
    monkeypatch.setattr(Local, "ranks", lambda size: made.extend(ranks_of(size)) or made)
    with ThreadPoolExecutor(1) as pool:
        given = {"split": "lattice", "blocks": "2x2", "merge": merge, "device": "cpu"}
        done = pool.submit(sweep, "square", **ASKED, **given)
        try:
            with pytest.raises(ZeroDivisionError, match="of a rank"):
                done.result(timeout=100)
        finally:
            # Whoever waits still.
            made[0].abort("the test is over", 1)
    # The progress bar may have a thread, too.
    assert {item.name for item in threading.enumerate()} <= {"MainThread", "tqdm_monitor"}
