"""CUDA labelers on host arrays, by scripts/kernel_report.py, and the bytes of arrays in use."""

import importlib.util
import sys
import weakref
from pathlib import Path

import pytest


class Peak:
    """Adds up the bytes of arrays that are in use; ``most`` is their peak."""

    def __init__(self):
        self.now = self.most = 0

    def add(self, array):
        self.now += array.nbytes
        self.most = max(self.most, self.now)
        weakref.finalize(array, self.drop, array.nbytes)

    def drop(self, size):
        self.now -= size


def load_report():
    """Return scripts/kernel_report.py, which runs CUDA labelers on host arrays."""
    if importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    path = Path(__file__).parents[1] / "scripts" / "kernel_report.py"
    spec = importlib.util.spec_from_file_location("kernel_report", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel_report"] = module
    spec.loader.exec_module(module)
    return module
