"""Once first calls compile for a GPU, other processes compile what the later ones need."""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numba
import numpy as np
import pytest
from kernel_report_support import load_report

from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.kernels.device import Device
from percolab.kernels.first_launches import launch
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import list_columns
from percolab.run import engine, executors
from percolab.run.compiling import make_first_calls
from percolab.tasks.blocks import pick_observables, pick_squared
from percolab.tasks.study import Study


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


@dataclass
class Kernel:
    """A kernel whose cache is a file; it notes who compiles and launches it.

    kind: "waits" for what another process compiles, and "killed" and "failed" end such a process.
    """

    folder: Path
    name: str
    kind: str

    def __post_init__(self):
        self.overloads = {}
        self.py_func = SimpleNamespace(__module__="kernels", __qualname__=self.name)
        self.typeof_pyval = type

    def compile(self, types):
        cached = self.folder / f"{self.name}.cached"
        if not cached.exists():
            self.note("compiled")
            is_study = self.who == "study"
            if self.kind == "waits" and is_study:
                end = time.monotonic() + 30
                while "other" not in self.log.read_text() and time.monotonic() < end:
                    time.sleep(0.01)
            if self.kind == "killed" and not is_study:
                os.kill(os.getpid(), signal.SIGKILL)
            if self.kind == "failed" and not is_study:
                raise RuntimeError("no memory")
            time.sleep(0.2)
            cached.touch()
        self.overloads[types] = cached

    def __getitem__(self, configuration):
        return self.call

    def call(self, *arguments):
        self.compile(tuple(map(type, arguments)))
        self.note("launched")

    @property
    def log(self):
        return self.folder / "log"

    @property
    def who(self):
        return "study" if os.environ.get(HERE) == str(os.getpid()) else "other"

    def note(self, what):
        with self.log.open("a") as file:
            file.write(f"{self.who} {what} {self.name}\n")


@dataclass(frozen=True)
class Spec:
    """A sampler, and what another process makes it from."""

    folder: Path
    kinds: tuple[str, ...]
    task: SimpleNamespace

    def make(self, task, device):
        return self

    def spec(self):
        return self

    def first_calls(self, *, with_pilot):
        return [self.call]

    def call(self):
        for kind in self.kinds:
            if kind == "compile":
                numba.njit(lambda x: x + 1)(1)
            else:
                launch(Kernel(self.folder, kind, kind.rstrip("0123456789")), (), (1,))


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Make first calls, and return the names of kernels by who did what to them."""
    monkeypatch.setenv(HERE, str(os.getpid()))
    monkeypatch.setattr(executors, "usable_cores", lambda: 3)

    def make(*calls, structure=None, device=None, points=2**22):
        """Each call is that of a sampler, of the largest sample that other processes have."""
        (tmp_path / "log").write_text("")
        structure = load_lattice("square") if structure is None else structure
        task = SimpleNamespace(structure=structure, num_points=points)
        specs = [Spec(tmp_path, tuple(call.split()), task) for call in calls]
        make_first_calls(specs, device or Shared(), with_pilot=True)
        found = {}
        for line in (tmp_path / "log").read_text().splitlines():
            who, what, name = line.split()
            found.setdefault(f"{who} {what}", []).append(name)
        return found

    return make


def test_other_processes_compile_what_the_study_launches(made):
    found = made("compile waits1", "plain1 plain2", "plain3 plain1")
    assert found["study launched"] == ["waits1", "plain1", "plain2", "plain3", "plain1"]
    assert "other launched" not in found
    # Each is compiled once, whoever does it.
    compiled = found["study compiled"] + found["other compiled"]
    assert sorted(compiled) == ["plain1", "plain2", "plain3", "waits1"]
    assert "waits1" in found["study compiled"]


@pytest.mark.parametrize("kind", ["killed", "failed"])
def test_what_happens_in_another_process_does_no_harm(made, kind):
    found = made("compile waits1", f"{kind}1", f"{kind}2")
    assert found["study launched"] == ["waits1", f"{kind}1", f"{kind}2"]
    assert found["study compiled"] == found["study launched"]
    assert found["other compiled"]


def test_no_process_is_started_where_none_helps(made, monkeypatch):
    """All is compiled; a CPU, a graph, little memory, one core, no place for locks."""
    monkeypatch.setattr("percolab.run.compiling.Processes", None)

    def check(*calls, **given):
        assert set(made(*calls, **given)) <= {"study compiled", "study launched"}

    check("plain1")
    check("compile", device=Device("cpu"))
    check("compile", structure=object())
    check("compile", device=Shared(free=2**31 - 1))
    check("compile", points=2**22 + 1)
    monkeypatch.setattr(executors, "usable_cores", lambda: 1)
    check("compile plain2")
    monkeypatch.setattr(executors, "usable_cores", lambda: 3)
    monkeypatch.setattr("percolab.run.compiling.TemporaryDirectory", Mock(side_effect=OSError))
    check("compile plain3")


def launched_kernels(boundary, samples, points):
    """Return the names of the kernels that sum one block of so many samples at so many p."""
    topology, launches = load_lattice("square").topology((8, 8), (boundary,) * 2), []
    own = [each for each in list_columns((boundary,) * 2) if each.is_observable]
    grid = np.array([p_to_threshold(0.5 + 1e-5 * n) for n in range(points)], np.uint64)
    blocks = SampleBlocks(np.zeros(1, np.uint64), samples)
    with load_report().on_host(launches, ""):
        coupling = new_coupling("tiled", "cuda", topology, capacity=2)
        picks = pick_observables(own), pick_squared(own)
        coupling.block_sums(XORWOW, 0, blocks, grid, *picks)
    return {each.name for each in launches}


@pytest.mark.parametrize("points", [1, 2, 9, 25])
@pytest.mark.parametrize("boundary", ["open", "periodic"])
def test_many_samples_need_no_other_kernels_than_first_calls(boundary, points):
    study = Study(structure=load_lattice("square"), sizes=(8,), boundary=(boundary,) * 2)
    study = study if points == 9 else replace(study, p=tuple(np.linspace(0.4, 0.6, points)))
    first = len(engine._task(study, 8).p)
    few, many = launched_kernels(boundary, 1, first), launched_kernels(boundary, 2**17, points)
    assert many == few
