"""Kernels that a GPU lacks are compiled by several processes before a study, and only then."""

import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from percolab.kernels.device import Device
from percolab.kernels.launches import Launches
from percolab.run import compiling
from percolab.run.compiling import compile_first

GPU = Device("cuda")


class Kernel:
    """What the launches and the compiling of a kernel need of it; its types are Python's."""

    def __init__(self, name, log):
        self.py_func = SimpleNamespace(__module__=__name__, __qualname__=name)
        self.compiled, self.log, self._can_compile = set(), log, True
        setattr(sys.modules[__name__], name, self)

    def typeof_pyval(self, value):
        return type(value)

    def compile(self, types):
        if types not in self.compiled:
            if not self._can_compile:
                raise RuntimeError("Compilation disabled")
            self.compiled.add(types)
            self.log.append(("compiled", self.py_func.__qualname__, types))

    def __getitem__(self, configuration):
        def launch(*arguments):
            self.compile(tuple(map(type, arguments)))
            self.log.append(("launched", self.py_func.__qualname__))

        return launch


class Pool:
    """A pool of this process."""

    def __init__(self, processes, threads, hooks):
        assert processes >= 2

    def __enter__(self):
        return self

    def __exit__(self, *error): ...

    def start(self): ...

    def submit(self, function, *arguments):
        future = Future()
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr(compiling, "Processes", Pool)
    monkeypatch.setattr(compiling, "usable_cores", lambda: 4)
    log = []
    yield log
    for name in ("one", "two"):
        if hasattr(sys.modules[__name__], name):
            delattr(sys.modules[__name__], name)


def start(log):
    """Return two kernels, and the work of launching one, twice, and the other for two types."""
    kernels = Kernel("one", log), Kernel("two", log)

    def work():
        launches = Launches.__new__(Launches)
        launches.stream = None
        log.append("begin")
        for kernel, argument in ((0, 1), (1, 1), (0, 2), (1, 1.5)):
            launches.blocks(kernels[kernel], 1, 1, argument)
        log.append("end")

    return kernels, work


LAUNCHES = [("launched", name) for name in ("one", "two", "one", "two")]


def test_missing_kernels_are_compiled_before_anything_is_launched(log):
    _, work = start(log)
    compile_first(work, GPU, lambda: log.append("report"))
    names = ("one", int), ("two", int), ("two", float)
    compiled = [("compiled", name, (kind,)) for name, kind in names]
    assert log == ["begin", "report", "begin", *compiled, "end", "begin", *LAUNCHES, "end"]


def test_what_is_compiled_is_launched_at_once(log):
    kernels, work = start(log)
    kernels[0].compiled, kernels[1].compiled = {(int,)}, {(int,), (float,)}
    compile_first(work, GPU, lambda: log.append("report"))
    assert log == ["begin", *LAUNCHES, "end"]


def test_what_stops_a_rehearsal_or_a_process_stops_nothing_else(log, monkeypatch):
    _, work = start(log)
    monkeypatch.setattr(compiling, "_MOST_LAUNCHES", 1)
    monkeypatch.setattr(compiling, "_compile", lambda *names: 1 / 0)
    compile_first(work, GPU, lambda: log.append("report"))
    assert [each for each in log if each[0] == "launched"] == LAUNCHES
    assert log[-1] == "end"


def test_an_error_of_the_work_is_raised(log):
    def work():
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        compile_first(work, GPU, list)


def test_a_kernel_that_its_module_does_not_have_is_compiled_where_it_is_launched(log):
    _, work = start(log)
    delattr(sys.modules[__name__], "one")
    compile_first(work, GPU, list)
    assert log.index(("compiled", "one", (int,))) > log.index(("compiled", "two", (int,)))
    assert [each for each in log if each[0] == "launched"] == LAUNCHES


@pytest.mark.parametrize(("device", "cores"), [(Device("cpu"), 4), (GPU, 1)])
def test_a_cpu_or_one_core_compiles_as_it_goes(log, monkeypatch, device, cores):
    monkeypatch.setattr(compiling, "usable_cores", lambda: cores)
    _, work = start(log)
    compile_first(work, device, lambda: log.append("report"))
    assert "report" not in log
    assert log.count("begin") == 1
