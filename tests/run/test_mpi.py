"""``--executor mpi``: real ranks where mpi4py and an mpiexec are installed, and what is refused."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import answer, blocks_in, refusal, without_runs
from process_support import by_mpi, error_lines, start_by_ranks, stop_by_ctrl_c

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.run import mpi, plan
from percolab.run.executors import CountedWorkers
from percolab.run.plan import plan_study
from percolab.store.results import ResultsWriter, read_results
from percolab.tasks.study_file import make_request

STUDY = ("sweep", "--lattice", "square", "-L", "8,12", "-p", "0.4,0.5", "--device", "cpu")


def run_by_ranks(*arguments, ranks=3):
    """Run a sweep by so many ranks; return its exit code, what it printed, and its errors."""
    process = start_by_ranks(*arguments, "--out", "mpi.h5", ranks=ranks)
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


@by_mpi
@pytest.mark.slow
def test_ranks_make_the_file_of_one_process():
    code, output, errors = run_by_ranks(*STUDY, "--samples", 2000)
    assert (code, errors) == (0, "")
    assert output.startswith("square: L = 8, 12; results in mpi.h5\n")
    answer(*STUDY, "--samples", 2000, "--out", "one.h5")
    found, expected = (read_results(path) for path in ("mpi.h5", "one.h5"))
    assert without_runs(found) == without_runs(expected)
    assert (found.runs[0]["executor"], found.runs[0]["workers"]) == ("MPIPoolExecutor", 2)


@by_mpi
@pytest.mark.slow
def test_ranks_are_stopped_by_ctrl_c():
    study = (*STUDY, "--samples", 10**9, "--out", "mpi.h5")
    stop_by_ctrl_c(start_by_ranks(*study, ranks=3), Path("mpi.h5"))
    assert blocks_in("mpi.h5") > 0


@pytest.mark.parametrize("given", [(), ("--plan",), ("--plan", "--split", "lattice")])
def test_mpi_without_mpi4py_is_refused_in_one_line(given, monkeypatch):
    monkeypatch.setattr(mpi.importlib.util, "find_spec", lambda name: None)
    message = refusal(*STUDY, *given, "--executor", "mpi")
    assert message == "--executor mpi: mpi4py is not installed (pip install 'percolab[mpi]')"


@by_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "given", "message"),
    [
        (2, ("--part", "5/4"), "part = 5/4, but in k/n k must be from 1 to n"),
        (1, (), "--executor mpi: there is only one process; start more, as in mpiexec -n 9 "),
        (2, ("--slabs", "2", "--plan"), "--slabs: only with threads or processes of one host"),
    ],
)
def test_ranks_end_with_one_line_for_bad_input(ranks, given, message):
    code, output, errors = run_by_ranks(*STUDY, "--samples", 10, *given, ranks=ranks)
    assert (code, output) == (2, "")
    (line,) = error_lines(errors)
    assert line.startswith(f"percolab: error: {message}")


@by_mpi
@pytest.mark.slow
def test_ranks_plan_a_study():
    settings = (*STUDY, "--samples", 2000, "--plan", "--json")
    code, output, errors = run_by_ranks(*settings)
    assert (code, errors) == (0, "")
    found, other = json.loads(output), json.loads(answer(*settings, "--workers", 2))
    assert found["workers"] == 2
    assert [size["samples"] for size in found["sizes"]] == [2000, 2000]
    assert found["file_bytes"] == pytest.approx(other["file_bytes"], rel=0.1)
    # Rank 0 and two that measure.
    assert found["host_bytes"] > 3 * found["base_bytes"]
    assert not Path("mpi.h5").exists()


@pytest.mark.slow
def test_the_plan_of_a_study_has_the_workers_of_all_hosts(monkeypatch):
    """Two of nine are on this host, and seven have cores; a block takes a second."""
    monkeypatch.setattr(plan, "usable_cores", lambda: 2)
    time_blocks = plan._Planning._time_blocks

    def timed(self, item, pool, blocks):
        time_blocks(self, item, pool, blocks)
        return blocks / 2

    monkeypatch.setattr(plan._Planning, "_time_blocks", timed)
    request = make_request(lattice="square", L=[8], p=[0.5], samples=10)
    given = {"writer": ResultsWriter(Path("none.h5")), "device": Device("cpu")}
    here = plan_study(request.study, request.rule, **given, executor="processes", workers=2)
    given["executor"] = CountedWorkers(total=9, here=2, at_once=7)
    found = plan_study(request.study, request.rule, **given)
    assert (here.workers, found.workers) == (2, 9)
    assert found.sizes[0].rate == pytest.approx(7 / 2 * here.sizes[0].rate)
    assert found.sizes[0].host_bytes == here.sizes[0].host_bytes
    assert "the memory is that of this host, which has 2 of 9 workers" in found.notes
    choose = plan.choose_engine
    on_gpu = lambda *args: replace(choose(*args), devices=(Device("cuda"),))  # noqa: E731
    monkeypatch.setattr(plan, "choose_engine", on_gpu)
    with pytest.raises(InputError, match="plan: no GPUs with executor mpi; leave out"):
        plan_study(request.study, request.rule, **given)


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


class Meeting(World):
    """A communicator of ranks that are threads, and meet; of a host, or of all."""

    def __init__(self, rank, groups, barriers, host=None):
        super().__init__(rank)
        self.groups, self.barriers, self.own = groups, barriers, host or sum(self.hosts, ())

    def Split_type(self, kind):
        return Meeting(self.rank, self.groups, self.barriers, self.host)

    def allgather(self, value):
        message, barrier = self.groups[self.own], self.barriers[self.own]
        message[self.rank] = value
        barrier.wait(timeout=60)
        return [message[rank] for rank in self.own]


@pytest.mark.parametrize(
    ("cores", "first", "expected"),
    [
        # Two cores on each host, for three ranks and two.
        (lambda rank: {0, 1}, 0, [(3, 4), (3, 4), (3, 4), (2, 4), (2, 4)]),
        # Bound to a core each.
        (lambda rank: {rank}, 0, [(3, 5), (3, 5), (3, 5), (2, 5), (2, 5)]),
        (lambda rank: {rank % 2}, 1, [(2, 4), (2, 4), (2, 4), (2, 4), (2, 4)]),
        (lambda rank: {7}, 1, [(2, 2), (2, 2), (2, 2), (2, 2), (2, 2)]),
    ],
)
def test_ranks_work_at_a_time_where_their_hosts_have_cores(cores, first, expected, monkeypatch):
    own = threading.local()
    monkeypatch.setattr(mpi, "cores_here", lambda: own.cores)
    groups = [*World.hosts, sum(World.hosts, ())]
    message, barriers = {g: {} for g in groups}, {g: threading.Barrier(len(g)) for g in groups}

    def work(rank):
        own.cores = cores(rank)
        return mpi.ranks_at_once(Meeting(rank, message, barriers), 0, first)

    with ThreadPoolExecutor(5) as executor:
        assert list(executor.map(work, range(5))) == expected
