"""Threads that drive a CUDA device select it first: a thread that selected none has the first."""

import os
import subprocess
import sys
import threading

import pytest
from helpers import assert_same_blocks

from percolab.kernels import device
from percolab.kernels.device import Device, begin_context


def test_every_thread_that_drives_a_device_selects_it(monkeypatch):
    selected = []

    class Cuda:
        @staticmethod
        def select_device(number):
            selected.append((threading.get_ident(), number))

    monkeypatch.setattr(device, "load_cuda", Cuda)

    def drive():
        with Device("cuda", 3).driven():
            pass

    thread = threading.Thread(target=drive)
    thread.start()
    thread.join()
    assert [number for _, number in selected] == [3]
    assert selected[0][0] != threading.get_ident()


def test_the_cpu_is_driven_by_all_threads_at_once():
    cpu = Device("cpu", 0)
    with cpu.driven(), cpu.driven():
        pass


LOADED_TWICE = """
import weakref
from types import SimpleNamespace
from numba.cuda.cudadrv.driver import CudaPythonModule, driver
from percolab.kernels.device import load_cuda

load_cuda()
code = SimpleNamespace(handle=1)
kept = []
for number in range(2):
    # As numba-cuda loads a kernel; it hands out proxies of the module.
    module = CudaPythonModule(None, code, lambda: print("unloaded"))
    kept += [weakref.proxy(module), weakref.ref(module, print)]
    driver.devices[number] = SimpleNamespace(primary_context=SimpleNamespace(modules={1: module}))
driver.devices[2] = SimpleNamespace(primary_context=None)
print("done")
"""


def run_without(variables, program):
    """Run a program as its own process, without these variables of the environment."""
    pytest.importorskip("numba_cuda")
    environment = {k: v for k, v in os.environ.items() if k not in variables}
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.slow
def test_kernels_are_not_unloaded_at_exit():
    """numba-cuda unloads them once a GPU, and the second time crashes."""
    assert run_without(("NUMBA_ENABLE_CUDASIM",), LOADED_TWICE) == "done\n"


class Driver:
    """A CUDA driver of one GPU that notes what it is asked for."""

    def __init__(self, name):
        self.asked = [name]

    def cuInit(self, flags):
        self.asked.append("init")
        return 0

    def cuDeviceGet(self, device, number):
        self.asked.append(f"device {number}")
        device._obj.value = 40 + number
        return 101 if number else 0

    def cuDevicePrimaryCtxRetain(self, context, device):
        self.asked.append(f"context on {device.value}")
        return 0


@pytest.mark.parametrize(
    ("names", "number", "requests"),
    [
        (("cuda:0", "cuda:5"), 0, ["device 0", "context on 40"]),
        (("cuda:0", "cuda:5"), 1, ["device 5"]),
        ((), 0, []),
    ],
)
def test_a_context_is_begun_on_the_gpu_of_that_name_if_it_is_there(
    monkeypatch, names, number, requests
):
    made = []
    monkeypatch.setattr("ctypes.CDLL", lambda name: made.append(Driver(name)) or made[0])
    begin_context(names, number)
    assert made[0].asked == ["libcuda.so.1", "init", *requests]


def test_without_a_driver_no_context_is_begun(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", missing)
    begin_context(("cuda:0",), 0)


DRIVERS = ("NUMBA_ENABLE_CUDASIM", "NUMBA_CUDA_DRIVER")
NO_DRIVER = """
import ctypes, sys, numba

def missing(name):
    raise OSError(name)

ctypes.CDLL = missing
from percolab.kernels.device import cuda_problem
print(cuda_problem(), "numba.cuda" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where Linux has its driver")
def test_without_a_driver_numba_cuda_is_not_loaded():
    problem = "no usable CUDA device (the driver's library libcuda.so.1 is not found)"
    assert run_without(DRIVERS, NO_DRIVER) == f"{problem} False\n"


EARLY = """
import percolab.kernels.device as device

device._driver_is_missing = lambda: False
device.begin_context = lambda names, number: print(names, number)
device.cuda_problem(*{number})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where Linux has its driver")
@pytest.mark.parametrize(("number", "names"), [("[3]", ("cuda:3",)), ("[]", ())])
def test_a_context_is_begun_while_numba_cuda_is_imported(number, names):
    assert run_without(DRIVERS, EARLY.replace("{number}", number)) == f"{names} 0\n"


BEGUN = """
from percolab.kernels.device import begin_context
begin_context(("cuda:0",), 0)
from cuda.bindings import driver
driver.cuInit(0)
print(driver.cuDevicePrimaryCtxGetState(0)[2])
import percolab
percolab.sweep("square", L=[16], p=[0.5], samples=200, device="cuda:0")
"""


@pytest.mark.gpu
def test_a_context_that_was_begun_is_the_one_that_is_used():
    from numba import cuda

    if not cuda.is_available():
        pytest.skip("no CUDA device")
    ended = subprocess.run([sys.executable, "-c", BEGUN], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["1"], "")


TWO_GPUS = """
import percolab

for device in ("cuda:0", "cuda:1"):
    percolab.sweep("square", L=[16], p=[0.5], samples=200, device=device)
"""


@pytest.mark.gpu
def test_a_process_with_two_gpus_ends_without_an_error():
    from numba import cuda

    if not cuda.is_available() or len(cuda.gpus) < 2:
        pytest.skip("one CUDA device at most")
    ended = subprocess.run([sys.executable, "-c", TWO_GPUS], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.gpu
def test_the_second_gpu_gives_the_numbers_of_the_cpu():
    from numba import cuda

    import percolab

    if not cuda.is_available() or len(cuda.gpus) < 2:
        pytest.skip("one CUDA device at most")
    for model in ("bond", "ising"):
        given = {"model": model, "L": [16, 24], "boundary": "periodic", "p": [0.5, 0.6]}
        found = (
            percolab.sweep("square", **given, samples=4000, device=name)
            for name in ("cuda:1", "cpu")
        )
        assert_same_blocks(*found)
