"""One study on several GPUs of one host: a process each, one file, the same numbers."""

import pytest
from cli_support import without_runs
from process_support import (
    WorkerKiller,
    endless_begin,
    impatient_worker,
    start_and_wait,
    worker_processes,
)

from percolab.api import sweep
from percolab.kernels.device import Device, cuda_problem, gpu_count
from percolab.lattices.graph import Graph
from percolab.run import calls
from percolab.run.processes import Hooks, Processes
from percolab.run.request import Observer

START = Processes.start
CHAINS = {"p": [0.5, 0.6], "model": "ising", "boundary": "periodic", "burn_in": 20, "sweeps": 60}
STUDIES = {
    "grid": {"L": [64, 256], "p": [0.45, 0.5], "samples": 20_000, "measure": ["sizes"]},
    "threshold": {"L": [64], "method": "threshold", "samples": 20_000},
    "chains": CHAINS | {"L": [32], "samples": 40 * 200},
    "one chain": CHAINS | {"L": [32, 48], "samples": 40 * 20, "chains": 1},
    "slabs": {"L": [300], "p": [0.45, 0.5], "samples": 8, "block_size": 1, "slabs": 5},
    "trees": {"L": [64], "method": "tree", "samples": 2000},
}


def several():
    """Return whether there are several GPUs."""
    return cuda_problem() is None and gpu_count("cuda") > 1


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch):
    if not several():
        pytest.skip("there are no two GPUs")
    # Small studies would be over before the second GPU takes part.
    monkeypatch.setattr(Processes, "start", start_and_wait)


pytestmark = pytest.mark.gpu


def device_of_worker(names):
    return str(calls._HERE.device(names))


def test_each_worker_drives_the_gpu_of_its_number():
    names = ("cuda:1", "cuda:0")
    with Processes(2, 3, Hooks(calls.be_worker, calls.stop, (names,))) as pool:
        # Each thread waits for answers of one of them.
        found = [pool.submit(device_of_worker, names) for _ in range(60)]
        assert {future.result() for future in found} == {"cuda:0", "cuda:1"}


@pytest.mark.parametrize("name", STUDIES)
def test_the_file_of_several_gpus_is_that_of_one_and_of_the_cpu(name):
    settings = STUDIES[name]
    several = sweep("square", device="cuda", **settings)
    assert without_runs(several) == without_runs(sweep("square", device="cuda:1", **settings))
    assert without_runs(several) == without_runs(sweep("square", device="cpu", **settings))


def test_the_record_of_a_run_lists_them():
    found = sweep("square", device="cuda:1,0", L=[16], p=[0.5], samples=200).runs[0]
    assert (found["device"], found["executor"]) == ("cuda:1,0", "processes")
    assert found["device_name"].count(",") == 1


def test_samples_in_slabs_are_measured_at_the_same_time_and_continue_after_a_kill(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("percolab.run.engine.be_worker", impatient_worker)
    # The first GPU has a process that can be killed, too.
    monkeypatch.setattr("percolab.run.engine.is_worker_too", lambda devices: False)
    requested = {"L": [1000], "p": [0.5], "samples": 8, "block_size": 2, "measure": ["sizes"]}
    killer = WorkerKiller(150)
    found = sweep(
        "square", device="cuda:0,1", slabs=50, out=tmp_path / "r.h5", observer=killer, **requested
    )
    assert killer.killed
    assert killer.seen <= 8 * 50 + 3
    (run,) = found.runs
    assert (run["device"], run["executor"], run["workers"]) == ("cuda:0,1", "processes", 2)
    assert without_runs(found) == without_runs(sweep("square", device="cpu", **requested))


def test_the_first_is_driven_by_the_process_of_the_study():
    counts = set()

    class Count(Observer):
        def advanced(self, results, item, blocks):
            counts.add(len(worker_processes()))

    requested = {"L": [256], "p": [0.45, 0.5], "samples": 200_000}
    several = sweep("square", device="cuda:0,1", observer=Count(), **requested)
    assert counts == {1}
    assert without_runs(several) == without_runs(sweep("square", device="cuda:0", **requested))


def test_a_study_that_ends_early_does_not_wait_for_other_workers(monkeypatch):
    monkeypatch.setattr("percolab.run.engine.be_worker", endless_begin)
    monkeypatch.setattr(Processes, "start", START)
    found = sweep("square", device="cuda:0,1", L=[64], p=[0.5], samples=2000)
    assert [item.num_samples for item in found.tasks.values()] == [2000]
    assert not worker_processes()


def test_every_gpu_gets_the_graph():
    bonds = [(n, (n + 1) % 5000) for n in range(5000)] + [(0, n) for n in range(2, 500)]
    settings = {"p": [0.5, 0.9], "samples": 5000}
    one, two = (
        sweep(graph=Graph.of_bonds(5000, bonds), device=device, **settings)
        for device in ("cpu", "cuda")
    )
    assert without_runs(one) == without_runs(two)


def test_one_that_is_named_is_driven_by_threads():
    found = sweep("square", device="cuda:1", L=[16], p=[0.5], samples=200).runs[0]
    assert (found["device"], found["executor"]) == ("cuda:1", "threads")
    assert Device.parse_all("cuda:1").resolve_all() == (Device("cuda", 1),)
