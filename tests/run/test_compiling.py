"""Once first calls compile for a GPU, other processes make the later ones; none otherwise."""

import os
import signal
from dataclasses import dataclass
from types import SimpleNamespace

import numba
import pytest

from percolab.kernels.device import Device
from percolab.lattices.lattice import load_lattice
from percolab.run import executors
from percolab.run.compiling import make_first_calls


class Shared:
    """A CPU that is taken for a GPU: all calls of a process share it."""

    kind, is_shared = "cpu", True

    def __init__(self, free=2**40):
        self.free = free

    def free_memory(self):
        return self.free

    def __str__(self):
        return "cpu"


HERE = "test_compiling"


@dataclass(frozen=True)
class Spec:
    """A sampler, and what another process makes it from: its call notes who made it."""

    log: str
    number: int
    kind: str
    task: SimpleNamespace

    def make(self, task, device):
        return self

    def spec(self):
        return self

    def first_calls(self, *, with_pilot):
        return [self.call]

    def call(self):
        if self.kind == "compile":
            numba.njit(lambda x: x + 1)(1)
        is_study = os.environ.get(HERE) == str(os.getpid())
        with open(self.log, "a") as file:
            file.write(f"{self.number} {'study' if is_study else 'other'}\n")
        if self.kind == "killed" and not is_study:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "failed" and not is_study:
            raise RuntimeError("no memory")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make first calls, and return their numbers by who made them."""
    monkeypatch.setenv(HERE, str(os.getpid()))
    monkeypatch.setattr(executors, "usable_cores", lambda: 3)
    log = tmp_path / "log"

    def make(*calls, structure=None, device=None, points=2**22):
        """Each call is that of a sampler, of the largest sample that another process makes."""
        structure = load_lattice("square") if structure is None else structure
        task = SimpleNamespace(structure=structure, num_points=points)
        specs = [Spec(str(log), number, kind, task) for number, kind in enumerate(calls)]
        make_first_calls(specs, device or Shared(), with_pilot=True)
        lines = [line.split() for line in log.read_text().splitlines()]
        log.unlink()
        # What another process makes the study makes after it.
        assert all(
            lines.index([n, "study"]) > lines.index([n, by]) for n, by in lines if by != "study"
        )
        return {who: [int(n) for n, by in lines if by == who] for who in ("study", "other")}

    return make


def test_other_processes_make_the_later_calls_and_the_study_makes_all(made):
    both = made("compile", "plain", "plain")
    assert both["study"] == [0, 1, 2]
    # A call that none of them has begun is left to the study.
    assert set(both["other"]) <= {1, 2}
    assert 2 in both["other"]


@pytest.mark.parametrize("kind", ["killed", "failed"])
def test_what_happens_in_another_process_does_no_harm(made, kind):
    both = made("compile", kind, kind)
    assert both["study"] == [0, 1, 2]
    assert both["other"]


def test_no_process_is_started_where_none_helps(made, monkeypatch):
    """Where all is compiled, on a CPU, for two sizes or a graph, in little memory, on one core."""
    monkeypatch.setattr("percolab.run.compiling.Processes", None)
    all_here = {"study": [0, 1, 2], "other": []}
    assert made("plain", "plain", "plain") == all_here
    assert made("compile", "plain", "plain", device=Device("cpu")) == all_here
    assert made("compile", "plain") == {"study": [0, 1], "other": []}
    assert made("compile", "plain", "plain", structure=object()) == all_here
    assert made("compile", "plain", "plain", device=Shared(free=2**31 - 1)) == all_here
    assert made("compile", "plain", "plain", points=2**22 + 1) == all_here
    monkeypatch.setattr(executors, "usable_cores", lambda: 1)
    assert made("compile", "plain", "plain") == all_here
