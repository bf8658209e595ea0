"""One study over threads, processes and other executors: one file, whoever is lost on the way."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import psutil
import pytest
from cli_support import (
    assert_equal_datasets,
    blocks_in,
    refusal,
    run,
    running,
    start,
    wait_for_blocks,
    without_runs,
)
from process_support import (
    begin_after_note,
    early_note,
    endless_begin,
    meet,
    start_and_wait,
    worker_processes,
)

from percolab import Graph, InputError, load_lattice, sweep
from percolab.kernels.device import Device
from percolab.kinds.grid import GridSampler
from percolab.kinds.workplace import Stopped
from percolab.run import calls
from percolab.run.calls import Call, measure_blocks
from percolab.run.engine import Engine, _switching_often
from percolab.run.executors import count_workers
from percolab.run.measured import Callers
from percolab.run.processes import Hooks, Processes, report_progress
from percolab.run.stored import Interrupted
from percolab.store.results import read_results
from percolab.tasks.study import Task

GRID = {"L": [8, 12], "p": [0.4, 0.5, 0.6], "samples": 1000, "device": "cpu"}
SPINS = {"model": "potts:q=3", "boundary": "periodic", "burn_in": 10, "sweeps": 25}
STUDY = ("sweep", "--lattice", "square", "-L", "8,12", "-p", "0.4:0.6:3", "--device", "cpu")
PROCESSES = ("--executor", "processes", "--workers", "2")
#: A ring with a chord, as no worker knows it from elsewhere.
RING = [(n, (n + 1) % 40) for n in range(40)] + [(0, 17)]

pytestmark = pytest.mark.usefixtures("one_block_calls")


def serial(**settings):
    return sweep("square", **{"executor": "threads", "workers": 1} | settings)


def has_ended(pid):
    """Return whether a process ends within a minute."""
    for _ in range(6000):
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.01)
                continue
        return True
    return False


def test_the_bonds_of_a_graph_are_listed_once(monkeypatch):
    settings = {"p": [0.9, 0.95], "samples": 1000, "device": "cpu"}
    expected = sweep(graph=Graph.of_bonds(40, RING), **settings)
    sent = []

    class Executor(ThreadPoolExecutor):
        def submit(self, function, call, /):
            sent.append(call.spec.task.structure.content is not None)
            return super().submit(function, call)

    with Executor(1) as executor:
        found = sweep(graph=Graph.of_bonds(40, RING), executor=executor, **settings)
    assert without_runs(found) == without_runs(expected)
    # Two jobs were under way before the first had reported.
    assert sum(sent) == 2
    assert len(sent) == len(found.tasks.popitem()[1].blocks) + 2


@pytest.mark.slow
def test_processes_make_the_same_file_and_one_that_is_killed_is_replaced(monkeypatch):
    """Each starts in seconds, so that one test tells of both."""
    real, killed = Callers.blocks, []

    def blocks(self, job, future):
        found = real(self, job, future)
        if not killed:
            process = worker_processes()[0]
            killed.append(process.pid)
            process.kill()
        return found

    monkeypatch.setattr(Callers, "blocks", blocks)
    found = sweep("square", executor="processes", workers=2, **GRID | {"samples": 4000})
    assert without_runs(found) == without_runs(serial(**GRID | {"samples": 4000}))
    assert killed
    assert (found.runs[0]["executor"], found.runs[0]["workers"]) == ("processes", 2)
    assert not worker_processes()


@pytest.mark.slow
def test_the_process_of_a_study_may_be_one_of_them(monkeypatch, interrupting):
    """As it is where there are several GPUs: it is stopped as they are, and goes on anew."""
    monkeypatch.setattr("percolab.run.engine.is_worker_too", lambda devices: True)
    own, started = [], []

    class This(calls.ThisWorker):
        def call(self, function, call):
            own.append(call.numbers)
            started.append(len(worker_processes()))
            return super().call(function, call)

    monkeypatch.setattr("percolab.run.engine.ThisWorker", This)
    settings = GRID | {"L": [8], "samples": 4000, "executor": "processes", "workers": 2}
    with pytest.raises(Interrupted):
        sweep("square", out="r.h5", observer=interrupting, **settings)
    assert own
    own.clear()
    monkeypatch.setattr(Processes, "start", start_and_wait)
    found = sweep("square", out="r.h5", **settings)
    assert without_runs(found) == without_runs(serial(**GRID | {"L": [8], "samples": 4000}))
    assert 0 < len(own) < sum(found.runs[-1]["blocks"].values())
    assert max(started) == 1
    assert not worker_processes()


def test_a_process_of_its_own_has_loaded_python_for_each_further_gpu():
    gpus = tuple(Device("cuda", number) for number in range(3))
    several = Engine(gpus, "tiled", 6, "processes")
    assert (several.processes, several.pythons) == (3, 3)
    one = Engine(gpus[:1], "tiled", 6, "processes")
    assert (one.processes, one.pythons) == (1, 2)


# Processes by themselves, of light functions.


HOOKS = Hooks(abs, os.getpid)


def processes(count, threads=1, hooks=HOOKS, **given):
    return Processes(count, threads, hooks, **given)


def test_processes_answer_and_raise_what_was_raised():
    with processes(1, threads=2) as pool:
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
        with pytest.raises(ZeroDivisionError) as error:
            pool.submit(divmod, 7, 0).result()
        assert "divmod" not in str(error.value)
        first, second = (pool.submit(os.getpid).result() for _ in range(2))
        assert first == second != os.getpid()
        # Both threads of the one process are at work.
        together = [pool.submit(meet, *names) for names in (("a", "b"), ("b", "a"))]
        assert all(future.result() for future in together)
    assert has_ended(first)


def test_processes_report_progress():
    heard = []
    with processes(1, threads=2, on_progress=heard.append) as pool:
        found = [pool.submit(report_progress, n) for n in range(4)]
        assert [future.result() for future in found] == [None] * 4
    assert sorted(heard) == [0, 1, 2, 3]
    report_progress("of no call, so that nobody hears it")


@pytest.mark.slow
def test_this_process_answers_while_another_starts():
    heard, hooks = [], Hooks(begin_after_note, os.getpid)
    with processes(2, hooks=hooks, on_progress=heard.append, this=calls.ThisWorker()) as pool:
        other = pool.submit(abs, -1)
        assert pool.submit(os.getpid).result() == os.getpid()
        pool.submit(report_progress, "here").result()
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 7, 0).result()
        assert heard == ["here"]
        assert not other.done()
        early_note(1)
        assert other.result() == 1


def test_nobody_waits_for_a_process_that_still_starts():
    begin = time.monotonic()
    with processes(2, 2, Hooks(endless_begin, os.getpid), this=calls.ThisWorker()) as pool:
        pool.start()
        found = [pool.submit(os.getpid) for _ in range(20)]
        assert {future.result() for future in found} == {os.getpid()}
    assert not worker_processes()
    assert time.monotonic() - begin < 50


@pytest.mark.slow
def test_early_calls_run_in_every_process_but_this():
    hooks = Hooks(begin_after_note, os.getpid, early=early_note)
    with processes(2, hooks=hooks, this=calls.ThisWorker()) as pool:
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
    assert [path.name for path in Path().glob("early-*")] == ["early-1"]


def test_the_answer_to_a_call_of_which_nobody_hears_is_not_taken_for_the_next():
    with processes(1, on_progress={"one": 1}.__getitem__) as pool:
        with pytest.raises(KeyError, match="two"):
            pool.submit(report_progress, "two").result()
        assert pool.submit(divmod, 7, 2).result() == (3, 1)


def test_a_lost_process_fails_only_its_own_jobs():
    with processes(2) as pool:
        kept, lost = pool.submit(time.sleep, 1), pool.submit(os._exit, 3)
        assert isinstance(lost.exception(), BrokenExecutor)
        assert re.fullmatch(r"process \d+ ended \(3\)", str(lost.exception()))
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
        assert kept.result() is None


def test_processes_end_with_the_one_that_started_them():
    program = (
        "import os, time\n"
        "from percolab.run.processes import Hooks, Processes\n"
        "pool = Processes(1, 1, Hooks(abs, os.getpid))\n"
        "print(pool.submit(os.getpid).result(), flush=True)\n"
        "pool.submit(time.sleep, 100)\n"  # The script is not made to be imported.
        "time.sleep(100)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        child = int(process.stdout.readline())
        assert psutil.pid_exists(child)
        process.kill()
    assert has_ended(child)


# What is lost for good.


class Broken(ThreadPoolExecutor):
    """Loses the workers of some calls."""

    def __init__(self, times, block):
        super().__init__(1)
        self.left, self.block = times, block

    def submit(self, function, call, /):
        def lose(call):
            if self.block in call.numbers and self.left:
                self.left -= 1
                raise BrokenExecutor("process 7 ended (-9)")
            return function(call)

        return super().submit(lose, call)


def test_blocks_are_tried_three_times():
    with Broken(2, block=3) as executor:
        found = sweep("square", executor=executor, **GRID | {"L": [8]})
    assert executor.left == 0
    assert without_runs(found) == without_runs(serial(**GRID | {"L": [8]}))


def test_blocks_that_lose_three_workers_end_the_study_with_what_is_finished():
    with (
        Broken(100, block=3) as executor,
        pytest.raises(Interrupted, match=r"process 7 ended \(-9\)") as error,
    ):
        sweep("square", executor=executor, out="r.h5", **GRID | {"L": [8]})
    assert (error.value.stored, error.value.exit_code) == (True, 137)
    assert executor.left == 97
    assert blocks_in("r.h5") >= 3
    found = sweep("square", out="r.h5", **GRID | {"L": [8]})
    assert without_runs(found) == without_runs(serial(**GRID | {"L": [8]}))


def test_the_command_line_says_how_to_continue(monkeypatch):
    def lose(*_, **__):
        raise Interrupted(stored=True, exit_code=137, reason="workers were lost")

    monkeypatch.setattr("percolab.cli.sweep.run_study", lose)
    result = run(*STUDY, "--out", "r.h5", "--quiet")
    assert result.exit_code == 137
    assert result.stderr == (
        "workers were lost; finished blocks are in r.h5. Run the same command again to go on.\n"
    )


@pytest.mark.slow
def test_a_broken_pool_of_python_ends_the_study_with_finished_blocks(monkeypatch):
    real, made = Callers.blocks, []

    def blocks(self, job, future):
        made.append(job)
        if len(made) == 3:
            multiprocessing.active_children()[0].kill()
        return real(self, job, future)

    monkeypatch.setattr(Callers, "blocks", blocks)
    endless = GRID | {"samples": 10**9}
    with (
        ProcessPoolExecutor(2, get_context("spawn")) as executor,
        pytest.raises(Interrupted, match="workers were lost") as error,
    ):
        sweep("square", executor=executor, out="r.h5", **endless)
    assert error.value.exit_code == 137
    assert blocks_in("r.h5") >= 2


# Stopping the parent.


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_to_all_processes_store_what_is_finished(tmp_path, number):
    """A terminal, and a batch system, send them to all."""
    path = tmp_path / "r.h5"
    endless = (*STUDY, *PROCESSES, "--samples", 10**9, "--out", path)
    with running(*endless, session=True) as process:
        wait_for_blocks(path, process)
        children = psutil.Process(process.pid).children()
        os.killpg(process.pid, number)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert errors.splitlines()[-1] == (
        f"interrupted; finished blocks are in {path}. Run the same command again to go on."
    )
    assert "Traceback" not in output + errors
    assert all(has_ended(child.pid) for child in children)
    existing = read_results(path).tasks
    most = max(max(item.blocks) for item in existing.values()) + 1
    for key, item in serial(**GRID | {"samples": 100 * most, "block_size": 100}).tasks.items():
        for block, found in existing[key].blocks.items():
            assert (found.sums == item.blocks[block].sums).all()


@pytest.mark.slow
@pytest.mark.parametrize("saves", [1, 7])
def test_a_killed_parent_ends_its_processes_and_the_rerun_ends_equal(tmp_path, saves):
    path, direct = tmp_path / "r.h5", tmp_path / "direct.h5"
    before = f"""
import psutil, signal
real, calls = os.replace, 0
def substitute(*arguments):
    global calls
    calls += 1
    real(*arguments)
    if calls == {saves}:
        print(*(child.pid for child in psutil.Process().children()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = substitute
"""
    study = (*STUDY, *PROCESSES, "--samples", 2000, "--out", path, "--quiet")
    process = start(*study, before=before)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, errors
    assert all(has_ended(int(pid)) for pid in output.split())
    assert blocks_in(path) < 40
    sweep("square", executor="processes", workers=2, out=path, **GRID | {"samples": 2000})
    serial(out=direct, **GRID | {"samples": 2000})
    assert_equal_datasets(path, direct)


# What is refused.


TASK = Task(load_lattice("square"), 8, ("open", "open"), (0.5,))


def call_of(*devices):
    return Call("run", GridSampler(TASK, device=Device("cpu")).spec(), devices, (0,))


def test_a_worker_without_a_device_of_its_own_is_refused(monkeypatch):
    monkeypatch.setattr(calls._HERE, "number", 2)
    call = call_of("cuda:0", "cuda:1")
    with pytest.raises(InputError, match=r"worker 3 on .* has no GPU left of cuda:0"):
        measure_blocks(call)


def test_one_study_that_is_stopped_here_stops_no_other():
    call = call_of("cpu")
    stopped, other = calls.ThisWorker(), calls.ThisWorker()
    stopped.stop()
    with pytest.raises(Stopped):
        stopped.call(measure_blocks, call)
    assert len(other.call(measure_blocks, call)) == 1


def test_executors_report_how_many_workers_they_have():
    with ThreadPoolExecutor(3) as executor:
        assert count_workers(executor) == 3
    assert count_workers(object()) == os.cpu_count()


@pytest.fixture
def three_gpus(monkeypatch):
    monkeypatch.setattr("percolab.kernels.device.cuda_problem", lambda *_: None)
    monkeypatch.setattr("percolab.kernels.device.gpu_count", lambda name: 3)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("auto", (0, 1, 2)), ("cuda", (0, 1, 2)), ("cuda:0,2", (0, 2)), ("cuda:2,1", (2, 1))],
)
def test_several_gpus_are_named(three_gpus, text, numbers):
    found = Device.parse_all(text).resolve_all()
    assert found == tuple(Device("cuda", number) for number in numbers)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuda:0,0", "--device cuda:0,0: a GPU is named twice"),
        ("cuda:0,3", "--device cuda:0,3: this machine has 3 CUDA device(s)"),
        ("cuda:0,x", "--device cuda:0,x: must be auto, cpu, cuda, cuda:n or cuda:n,m"),
        ("cuda:0,", "--device cuda:0,: must be auto, cpu, cuda, cuda:n or cuda:n,m"),
        ("cpu,cuda", "--device cpu,cuda: must be auto, cpu, cuda or cuda:n"),
        (
            "cuda:0,1 --executor threads",
            "--device cuda:0,1: threads can use only one GPU; leave",
        ),
    ],
)
def test_gpus_that_cannot_be_driven_are_refused_in_one_line(three_gpus, text, message):
    study = [item for item in STUDY if item not in ("--device", "cpu")]
    assert refusal(*study, "--device", *text.split()).startswith(message)


@pytest.mark.parametrize(("module", "name"), [("signal", "pthread_sigmask"), ("socket", "AF_UNIX")])
@pytest.mark.parametrize("more", [(), ("--split", "lattice")])
def test_processes_are_refused_in_one_line_where_the_system_has_none(
    monkeypatch, tmp_path, module, name, more
):
    monkeypatch.delattr(f"{module}.{name}")
    options = ("--lattice", "square", "-L", 8, "-p", 0.5, "--samples", 10, "--workers", 2, *more)
    line = refusal("sweep", *options, "--executor", "processes")
    assert "executor processes: only on Linux and macOS" in line
    assert not list(tmp_path.iterdir())
    if not more:
        assert run("sweep", *options, "--executor", "threads").exit_code == 0


def test_threads_switch_as_before_when_a_study_on_a_gpu_has_ended():
    """Also if it fails: the interval is that of the whole process."""
    before = sys.getswitchinterval()
    with suppress(ZeroDivisionError), _switching_often():
        assert sys.getswitchinterval() < before
        raise ZeroDivisionError
    assert sys.getswitchinterval() == before
