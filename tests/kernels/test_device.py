"""Threads that drive a CUDA device select it first: a thread that selected none has the first."""

import os
import subprocess
import sys
import threading

import pytest

from percolab.kernels import device
from percolab.kernels.device import Device


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


def test_kernels_are_not_unloaded_at_exit():
    """numba-cuda unloads them once a GPU, and the second time crashes."""
    pytest.importorskip("numba_cuda")
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_ENABLE_CUDASIM"}
    ended = subprocess.run(
        [sys.executable, "-c", LOADED_TWICE], env=environment, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


TWO_GPUS = """
import percolab

for device in ("cuda:0", "cuda:1"):
    percolab.sweep("square", L=[16], p=[0.5], samples=200, device=device)
"""


@pytest.mark.gpu
def test_a_process_that_drove_two_gpus_ends_well():
    from numba import cuda

    if not cuda.is_available() or len(cuda.gpus) < 2:
        pytest.skip("one CUDA device at most")
    ended = subprocess.run([sys.executable, "-c", TWO_GPUS], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.gpu
def test_the_second_gpu_gives_the_numbers_of_the_cpu(tmp_path):
    from numba import cuda

    import percolab

    if not cuda.is_available() or len(cuda.gpus) < 2:
        pytest.skip("one CUDA device at most")
    for model in ("bond", "ising"):
        given = {"model": model, "L": [16, 24], "boundary": "periodic", "p": [0.5, 0.6]}
        found = [
            percolab.sweep(
                "square", **given, samples=4000, device=name, out=tmp_path / f"{model}-{number}.h5"
            )
            for number, name in enumerate(("cuda:1", "cpu"))
        ]
        for ours, theirs in zip(*(one.tasks.values() for one in found), strict=True):
            for mine, other in ((ours.blocks[n], theirs.blocks[n]) for n in ours.blocks):
                assert (mine.sums == other.sums).all()
