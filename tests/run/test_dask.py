"""``--executor dask:ADDRESS``: a cluster of this machine where distributed is installed."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec

import pytest
from cli_support import blocks_in, refusal

from percolab import InputError, sweep
from percolab.run import executors
from percolab.run.measured import Callers
from percolab.run.stored import Interrupted
from percolab.store.results import encode

GRID = {"L": [8, 12], "p": [0.4, 0.5], "samples": 2000, "device": "cpu"}
STUDY = ("sweep", "--lattice", "square", "-L", "8", "-p", "0.5", "--device", "cpu")

pytestmark = pytest.mark.usefixtures("one_block_calls")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
@pytest.mark.filterwarnings("default")
def test_a_cluster_makes_the_same_file_and_one_of_its_workers_may_be_killed(monkeypatch):
    from distributed import LocalCluster

    expected = encode(replace(sweep("square", **GRID), runs=[]))
    real, made = Callers.blocks, []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:

        def blocks(self, job, future):
            made.append(job)
            if len(made) == 5:
                os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
            return real(self, job, future)

        monkeypatch.setattr(Callers, "blocks", blocks)
        found = sweep("square", executor=f"dask:{cluster.scheduler_address}", **GRID)
    assert encode(replace(found, runs=[])) == expected
    assert (found.runs[0]["executor"], found.runs[0]["workers"]) == ("DaskExecutor", 2)


class Client:
    """A client of workers that have these versions of percolab, or none."""

    def __init__(self, *versions):
        self.versions = versions

    def ncores(self):
        return dict.fromkeys(map(str, range(len(self.versions))), 1)

    def run(self, function, *arguments, on_error):
        assert (function, arguments, on_error) == (version, ("percolab",), "return")
        return dict(zip(self.ncores(), self.versions))


OWN = version("percolab")


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ((), "x: the scheduler has no workers"),
        ((OWN, "0.0.1"), f"x: 1 has percolab 0.0.1, not {OWN} as here"),
        ((ImportError("percolab"), OWN), f"x: 0 has no percolab, not {OWN} as here"),
    ],
    ids=["none", "another version", "no percolab"],
)
def test_workers_that_cannot_help_are_refused(versions, message):
    with pytest.raises(InputError) as error:
        executors._check_dask_workers(Client(*versions), "x")
    assert str(error.value) == message


def test_workers_of_the_same_version_are_taken():
    executors._check_dask_workers(Client(OWN, OWN), "x")


def test_dask_that_is_not_installed_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(executors.importlib.util, "find_spec", lambda name: None)
    message = refusal(*STUDY, "--executor", "dask:tcp://127.0.0.1:1", "--quiet")
    assert message == (
        "--executor dask:tcp://127.0.0.1:1: distributed is not installed "
        "(pip install 'percolab[dask]')"
    )


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere at all"])
def test_a_scheduler_that_is_not_there_is_refused_in_one_line(address, monkeypatch):
    monkeypatch.setattr(executors, "_PATIENCE", 1)
    message = refusal(*STUDY, "--executor", f"dask:{address}", "--quiet")
    assert message == f"--executor dask:{address}: no scheduler answers there"


def test_a_plan_is_not_measured_by_dask():
    message = refusal(*STUDY, "--executor", "dask:tcp://127.0.0.1:1", "--plan")
    assert message == "--plan measures on this machine: leave out --executor"


def test_jobs_that_an_executor_gives_up_end_the_study_with_what_is_finished():
    class GivesUp(ThreadPoolExecutor):
        gives_up = (ZeroDivisionError,)

        def submit(self, function, call, /):
            return super().submit(divmod, 1, 0) if 3 in call.numbers else super().submit(
                function, call
            )  # fmt: skip

    with GivesUp(1) as executor, pytest.raises(Interrupted, match="workers were lost") as error:
        sweep("square", executor=executor, out="r.h5", **GRID | {"L": [8]})
    assert (error.value.stored, error.value.exit_code) == (True, 137)
    assert blocks_in("r.h5") >= 3
