"""Runs a study in slabs in CUDA's simulator and compares it with the CPU's."""

import tempfile
from contextlib import chdir
from pathlib import Path
from unittest import mock

import pytest
from helpers import assert_same_blocks
from parts_support import CHAIN_OF_TWO
from process_support import worker_processes
from simulated_worker import simulated_worker, two_gpus

from percolab.api import sweep
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kinds.workplace import Stopped
from percolab.lattices.lattice import load_lattice
from percolab.run.parts_sampler import PartsSampler, alone, choose_slabs
from percolab.run.request import Observer
from percolab.store.checkpoints import Checkpoints
from percolab.tasks.blocks import same_block
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task

CUDA, CPU = Device("cuda"), Device("cpu")


def compare_study():
    """Compare the blocks of a study in slabs, by two threads, with those of whole samples."""
    settings = {"L": [6, 8], "p": [0.4, 0.6], "samples": 4, "block_size": 2, "measure": "sizes"}
    settings["boundary"] = "open", "periodic"
    found = sweep("square", **settings, device="cuda", slabs=3, workers=2)
    expected = sweep("square", **settings, device="cpu")
    (run,) = found.runs
    assert (run["device"], run["slabs"]) == ("cuda:0", {"6": 3, "8": 3})
    assert_same_blocks(found, expected)


def compare_gpus():
    """Compare the blocks of studies, in slabs and not, by this process and one for a second GPU."""
    settings = {"L": [6], "p": [0.4, 0.6], "samples": 4, "block_size": 1, "measure": "sizes"}
    two_gpus()
    expected = sweep("square", **settings, device="cpu")
    for slabs, workers in ((3, 1), (None, 2)):
        # How many processes there are when blocks come in.
        observer, counts = Observer(), []
        observer.advanced = lambda *_, counts=counts: counts.append(len(worker_processes()))
        with mock.patch("percolab.run.engine.be_worker", simulated_worker):
            found = sweep(
                "square", **settings, device="cuda", slabs=slabs, workers=workers, observer=observer
            )
        (run,) = found.runs
        drivers = run["device"], run["executor"], run["workers"]
        assert drivers == ("cuda:0,1", "processes", 2 * workers)
        assert run.get("slabs") == ({"6": 3} if slabs else None)
        assert set(counts) == {1}
        assert_same_blocks(found, expected)


def compare_checkpoints():
    """Stop a block on one device in the middle of a sample, and go on with it on the other."""
    boundary = "open", "periodic"
    task = Task(load_lattice("square"), 8, boundary, p=(0.5,), block_size=2)
    (expected,) = make_sampler(task, device=CPU).sample([3])
    for one, other in ((CUDA, CPU), (CPU, CUDA), (CUDA, CUDA)):
        path = Path(f"{one}{other}.h5")
        path.touch()
        calls, done = iter([False] * 4 + [True]), []
        first = PartsSampler(task, alone((2, 3, 3), 8, one))
        second = PartsSampler(task, alone((2, 3, 3), 8, other), done.append)
        first.checkpoints = second.checkpoints = Checkpoints(path)
        with pytest.raises(Stopped):
            first.sample([3], calls.__next__)
        (found,) = second.sample([3])
        assert done == [24], "the first sample and two slabs of the second were done"
        assert same_block(found, expected)


def compare_choices():
    """Check which device and how many slabs are chosen, and what is refused in which words."""
    chain = {"L": [4], "p": [0.3], "samples": 1, "slabs": 2, "boundary": "periodic"}
    with pytest.raises(InputError, match=r"chain_of_two .* on cuda:0: a chain has no layers"):
        sweep(CHAIN_OF_TWO, **chain, device="cuda")
    observer, notes = Observer(), []
    observer.noted = notes.append
    found = sweep(CHAIN_OF_TWO, **chain, device="auto", observer=observer)
    assert found.runs[0]["device"] == "cpu"
    assert any(line.startswith("measuring on the CPU, as cuda:0 cannot") for line in notes)
    with pytest.raises(InputError, match="on cuda:0 the labeler is tiled, not four_step"):
        sweep("square", **chain, device="cuda", labeler="four_step")
    open_square = {"boundary": ("open", "open"), "p": (0.5,)}
    task = Task(load_lattice("square"), 2**22, **open_square)
    assert choose_slabs(task, "auto", 2, device=CUDA)[:2] == (504, 504)
    with mock.patch("percolab.kernels.device.free_memory", return_value=8 * 10**9):
        assert max(choose_slabs(task, "auto", 2, device=CUDA)) == 120
        with pytest.raises(InputError, match=r"GB on cuda:0; 7\.2 GB of GPU memory are available"):
            choose_slabs(task, 2**14, 2, device=CUDA)
    # A layer has so many sites that four of them are taken, though they are more than 2^30.
    cubic = {"boundary": ("open",) * 3, "p": (0.2488,)}
    assert (
        max(choose_slabs(Task(load_lattice("cubic"), 20480, **cubic), "auto", 1, device=CUDA)) == 4
    )


def main(*what):
    """Compare what is chosen, or what is measured."""
    plenty = type("", (), {"available": 10**13})
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        mock.patch("percolab.kernels.device.free_memory", return_value=10**12),
        mock.patch("percolab.run.parts_sampler.psutil.virtual_memory", return_value=plenty),
    ):
        for each in what:
            globals()[f"compare_{each}"]()
