"""Compiling is reported as such, and is over before a sweep's bar and clock start."""

import numba
import pytest

from percolab.api import sweep
from percolab.cli.progress import ProgressBar
from percolab.kernels.device import Device
from percolab.kinds.grid import GridSampler
from percolab.kinds.threshold import ThresholdSampler
from percolab.run.compiling import report_compiling
from percolab.run.request import Observer

CPU = Device("cpu")


def new_function():
    """Return a function that Numba has yet to compile, and finds on no disk."""
    return numba.njit(lambda x: x + 1)


def test_compiling_is_reported_once_and_calling_is_not():
    message = []
    first, second = new_function(), new_function()
    with report_compiling(lambda: message.append(1), CPU):
        first(1)
        second(1)
    assert message == [1]
    with report_compiling(lambda: message.append(2), CPU):
        first(1)
    second(1.5)
    assert message == [1]


def test_compiling_for_a_gpu_is_reported_too():
    """Numba's CUDA target has events of its own, of another name."""
    events = pytest.importorskip("numba.cuda.core.event")
    message = []
    listening = report_compiling(lambda: message.append(1), Device("cuda", 0))
    with listening, events.trigger_event("numba-cuda:compile", data={}):
        pass
    assert message == [1]


class Order(Observer):
    """Notes the order of reports."""

    def __init__(self):
        self.message = []

    def compiling(self):
        self.message.append("compiling")

    def started(self, sites, done):
        self.message.append("started")


@pytest.mark.parametrize("method", ["grid", "threshold"])
def test_what_is_compiled_is_compiled_before_the_bar_starts(monkeypatch, one_block_calls, method):
    """The first call is of one sample, on a lattice smaller than that of the study."""
    sampler = {"grid": GridSampler, "threshold": ThresholdSampler}[method]
    name = {"grid": "sample_groups", "threshold": "sample"}[method]
    order, real, fresh = Order(), getattr(sampler, name), new_function()

    def blocks(self, numbers, *others):
        fresh(1)
        order.message.append((self.task.size, self.task.block_size * len(numbers)))
        return real(self, numbers, *others)

    monkeypatch.setattr(sampler, name, blocks)
    p = [0.4, 0.5] if method == "grid" else None
    settings = {"L": [12], "p": p, "method": method, "samples": 20, "workers": 1, "observer": order}
    sweep("square", device="cpu", **settings)
    assert order.message == ["compiling", (4, 1), "started", *[(12, 2)] * 10]


def test_the_message_is_one_line_of_stderr(capsys):
    ProgressBar().compiling()
    assert capsys.readouterr().err == "compiling kernels (first run only) ...\n"
    ProgressBar(silent=True).compiling()
    assert capsys.readouterr().err == ""
