"""Splits lattices over ranks of simulated GPUs, compares rows with the CPU's."""

import tempfile
from pathlib import Path
from unittest import mock

import pytest
from helpers import assert_same_blocks
from parts_support import by_ranks, row_by_slabs

from percolab.api import sweep
from percolab.bonds.words import p_to_threshold
from percolab.kernels.device import Device
from percolab.kinds.workplace import Stopped
from percolab.lattices.lattice import load_lattice
from percolab.parts.parts import Whole
from percolab.parts.ranks import RankJob, choose_rank_layers
from percolab.parts.raster import SampleKey
from percolab.parts.slab_partition import SlabDivision
from percolab.run.parts_sampler import PartsSampler
from percolab.run.rank_group import RankGroup
from percolab.store.checkpoints import Checkpoints
from percolab.tasks.blocks import same_block
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task

CPU, CUDA = Device("cpu"), Device("cuda", 0)

CASES = {
    "square": ((7, 9), ("open", "periodic"), 3, 5, 0.5),
    "cubic": ((4, 3, 6), ("periodic", "periodic", "open"), 2, 3, 0.3),
}


def compare_rows(name):
    """Compare the row of several ranks, each with a simulated GPU, to that of one slab."""
    shape, boundary, ranks, slabs, p = CASES[name]
    whole = Whole(load_lattice(name), shape, boundary)
    # Of the simulator there is one device, which the ranks drive in turn.
    layers, devices = choose_rank_layers(whole, ranks, slabs), ("cuda:0",) * ranks
    job = RankJob(whole, layers, tally=True, devices=devices, p=p)
    draw = SampleKey(0, 3, 1, p_to_threshold(p))

    expected = row_by_slabs(whole, draw, tally=True)
    for row, steps in by_ranks(job, [draw] * 2):
        assert row.numbers.tolist() == expected.numbers.tolist()
        assert sum(step.bytes > 0 for step in steps) == ranks - 1


def compare_study():
    """Compare a study on one GPU, which one rank drives, with the CPU's."""
    settings = {"L": [6], "p": [0.4, 0.6], "samples": 2, "boundary": "periodic"}
    found = sweep("square", **settings, device="cuda", split="lattice", slabs=2)
    expected = sweep("square", **settings, device="cpu")
    (run,) = found.runs
    assert (run["device"], run["labeler"], run["split"]["ranks"]) == ("cuda:0", "tiled", 1)
    assert_same_blocks(found, expected)


def compare_checkpoints():
    """Stop a sample on one device between two slabs, and go on with it on the other."""
    task = Task(load_lattice("square"), 6, ("open", "periodic"), p=(0.5,), block_size=1)
    (expected,) = make_sampler(task, device=CPU).sample([3])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.h5"
        path.touch()
        # The interface that is kept is of some layers, or of all.
        for one, other, slabs in ((CUDA, CPU, 2), (CPU, CUDA, 2), (CUDA, CUDA, 3)):
            done, checkpoints = [], Checkpoints(path)
            with pytest.raises(Stopped):
                sampled(task, one, done, checkpoints, lambda n=slabs, done=done: len(done) == n)
            (found,) = sampled(task, other, done, checkpoints)
            assert done == [12] * 3, "nothing was measured twice"
            assert same_block(found, expected)
            checkpoints.remove(task.id, lambda number: number == 3)


def sampled(task, device, done, checkpoints, stopped=None):
    """Return a block that one rank measures on a device, in three slabs."""
    group = RankGroup("threads", (device,), SlabDivision({6: ((2, 2, 2),)}, (str(device),)))
    sampler = PartsSampler(task, group, done.append)
    sampler.checkpoints = checkpoints
    with group.opened():
        return sampler.sample([3], stopped)


def main(what):
    """Compare rows of a lattice, a study, or what goes on from checkpoints."""
    with mock.patch("percolab.kernels.device.free_memory", return_value=10**12):
        if what == "study":
            compare_study()
        elif what == "checkpoints":
            compare_checkpoints()
        else:
            compare_rows(what)
