"""``--executor mpi``: real ranks where mpi4py and an mpiexec are installed, and what is refused."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from cli_support import answer, blocks_in, refusal, wait_for_blocks

from percolab.api import sweep
from percolab.errors import InputError
from percolab.run import mpi
from percolab.store.results import encode, read_results

STUDY = ("sweep", "--lattice", "square", "-L", "8,12", "-p", "0.4,0.5", "--device", "cpu")
MPIEXEC = shutil.which("mpiexec", path=f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")
by_mpi = pytest.mark.skipif(
    MPIEXEC is None or find_spec("mpi4py") is None, reason="mpi4py or mpiexec is not there"
)


def start(*arguments, ranks=3):
    """Start a sweep by so many ranks."""
    command = [MPIEXEC, "-n", str(ranks), sys.executable, "-m", "percolab", *map(str, arguments)]
    return subprocess.Popen(
        [*command, "--executor", "mpi", "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@by_mpi
@pytest.mark.slow
def test_ranks_make_the_file_of_one_process():
    process = start(*STUDY, "--samples", 2000, "--out", "mpi.h5")
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    assert output.startswith("square: L = 8, 12; results in mpi.h5\n")
    answer(*STUDY, "--samples", 2000, "--out", "one.h5")
    found, expected = (read_results(path) for path in ("mpi.h5", "one.h5"))
    assert encode(replace(found, runs=[])) == encode(replace(expected, runs=[]))
    assert (found.runs[0]["executor"], found.runs[0]["workers"]) == ("MPIPoolExecutor", 2)


@by_mpi
@pytest.mark.slow
def test_ranks_are_stopped_by_ctrl_c():
    process = start(*STUDY, "--samples", 10**9, "--out", "mpi.h5")
    try:
        # Saved every five seconds.
        wait_for_blocks(Path("mpi.h5"), process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "interrupted; finished blocks are in mpi.h5. Run the same command again" in errors
    assert "Traceback" not in errors
    assert blocks_in("mpi.h5") > 0


@by_mpi
@pytest.mark.slow
def test_ranks_end_with_one_line_for_bad_input():
    process = start(*STUDY, "--part", "5/4", "--out", "mpi.h5")
    output, errors = process.communicate(timeout=60)
    assert output == ""
    lines = [line for line in errors.splitlines() if line.startswith("percolab: error: ")]
    assert lines == ["percolab: error: part = 5/4: of n parts k is the first, 1, to the last, n"]


@by_mpi
@pytest.mark.slow
def test_one_rank_is_refused():
    process = start(*STUDY, ranks=1)
    _, errors = process.communicate(timeout=60)
    assert errors.startswith("percolab: error: --executor mpi: this is one process; mpiexec -n 9 ")


def test_mpi_without_mpi4py_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(mpi.importlib.util, "find_spec", lambda name: None)
    told = refusal(*STUDY, "--executor", "mpi")
    assert told == "--executor mpi: mpi4py is not installed (pip install 'percolab[mpi]')"


def test_a_plan_is_not_measured_by_mpi():
    told = refusal(*STUDY, "--executor", "mpi", "--plan")
    assert told == "--plan measures on this machine: leave out --executor"


def test_python_is_told_to_give_an_executor():
    with pytest.raises(InputError, match=r"in Python give an executor of mpi4py\.futures"):
        sweep("square", L=[4], executor="mpi")


class World:
    """A communicator of ranks on two hosts."""

    hosts = ((0, 1, 2), (3, 4))

    def __init__(self, rank):
        self.rank = rank
        self.host = next(host for host in self.hosts if rank in host)

    def Get_rank(self):
        return self.rank

    def Split_type(self, kind):
        return self

    def allgather(self, value):
        return list(self.host)

    def Free(self):
        pass


def test_the_workers_of_each_host_are_numbered_from_0():
    """Rank 0 hands out, so that of its host the next one drives the first GPU."""
    found = [mpi.number_on_host(World(rank), kind=0) for rank in range(1, 5)]
    assert found == [0, 1, 0, 1]
