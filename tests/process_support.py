"""What the tests of processes share: those that were started, workers that tests change, kills."""

import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from cli_support import wait_for_blocks

from percolab.parts.raster import SlabRaster
from percolab.run import saving
from percolab.run.calls import be_worker
from percolab.run.processes import Processes
from percolab.run.rank_group import be_rank
from percolab.run.request import Observer

MPIEXEC = shutil.which("mpiexec", path=f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")
by_mpi = pytest.mark.skipif(
    MPIEXEC is None or find_spec("mpi4py") is None, reason="mpi4py or mpiexec is not installed"
)


def start_by_ranks(*arguments, ranks, before="", options=("--quiet",)):
    """Start the command line by so many ranks of MPI, or alone if 0, with code to run first."""
    program = f"import sys\n{before}\nfrom percolab.cli import main\nmain()"
    command = [sys.executable, "-c", program, *map(str, arguments), *options]
    if ranks:
        command = [MPIEXEC, "-n", str(ranks), *command, "--executor", "mpi"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(fact, process, seconds=120):
    """Wait until a function returns something true, and return that; the process must be alive."""
    for _ in range(round(100 * seconds)):
        if found := fact():
            return found
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("what was waited for did not happen")


def stop_by_ctrl_c(process, path):
    """Send Ctrl-C to a run that has stored blocks; assert that it says how to go on."""
    try:
        wait_for_blocks(path, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert f"interrupted; finished blocks are in {path}. Run the same command again" in errors
    assert "Traceback" not in errors


def error_lines(errors):
    """Return the messages of percolab among the lines that mpiexec passes on."""
    return [line for line in errors.splitlines() if line.startswith("percolab: error: ")]


class Killed(BaseException):
    """What a kill is to a thread of this process."""


class Killer(Observer):
    """Ends a run when so many slabs are done; counts them, and keeps what is noted.

    sites: that every slab has, if all have as many
    """

    def __init__(self, slabs=10**9, *, sites=None):
        self.left, self.sites, self.seen, self.lines = slabs, sites, 0, []

    def labeled(self, sites):
        assert self.sites in (None, sites)
        self.seen += 1
        if self.seen > self.left:
            raise Killed

    def noted(self, text):
        self.lines.append(text)


class WorkerKiller(Observer):
    """Kills a process that measures when so many slabs are done; counts them all."""

    def __init__(self, slabs):
        self.left, self.seen, self.killed = slabs, 0, 0

    def labeled(self, sites):
        self.seen += 1
        if self.seen == self.left:
            process = next(iter(worker_processes()))
            self.killed = process.pid
            process.kill()


class Interrupting(Observer):
    """Interrupts a study at its first finished blocks."""

    def advanced(self, *_):
        raise KeyboardInterrupt


def worker_processes():
    """Return the processes that percolab has started here."""
    return [
        child
        for child in psutil.Process().children()
        if "processes.serve" in " ".join(child.cmdline())
    ]


def start_and_wait(pool, start=Processes.start):
    """Start processes and return when they are there, so that each gets some of the first calls."""
    start(pool)
    for _ in range(6000):
        if all(process._is_there for process in pool._processes):
            return
        time.sleep(0.01)
    raise AssertionError("a process does not start")


def impatient_worker(number, devices, graph=None):
    """Be a worker that saves a checkpoint after every slab."""
    saving._CHECKPOINT_EVERY = saving._CHECKPOINT_SHARE = 0.0
    be_worker(number, devices, graph)


def pace_slabs(seconds):
    """Wait before every slab that is measured in this process, which leaves time to interfere."""
    make_interface = SlabRaster.make_interface

    def paced(*given):
        time.sleep(seconds)
        return make_interface(*given)

    SlabRaster.make_interface = paced


def paced_worker(number, devices, graph=None):
    """Be such a worker, unhurried."""
    pace_slabs(0.05)
    impatient_worker(number, devices, graph)


def endless_begin(number, *arguments):
    """Be a process that is never there."""
    time.sleep(100)


def early_note(number):
    Path(f"early-{number}").touch()


def wait_for_files(*names):
    """Return whether all these files are there, at the latest after a minute."""
    for _ in range(6000):
        if all(Path(name).exists() for name in names):
            return True
        time.sleep(0.01)
    return False


def begin_after_note(number):
    wait_for_files(f"early-{number}")


def meet(own, other):
    """Leave a file and wait for another, so that two calls end only if they run together."""
    Path(own).touch()
    return wait_for_files(other)


def impatient_rank(number, folder, size):
    """Be an unhurried rank that saves a checkpoint after every slab."""
    pace_slabs(0.01)
    saving._CHECKPOINT_EVERY = saving._CHECKPOINT_SHARE = 0.0
    be_rank(number, folder, size)
