"""CUDA labelers on host arrays, by scripts/kernel_report.py, and the bytes of arrays in use."""

import importlib.util
import weakref

import pytest
from helpers import script


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
    pytest.importorskip("numba_cuda")
    return script("kernel_report")


def load_linking_report():
    """Return the same where what it compiles can be linked."""
    for package in ("cuda", "cuda.core"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    return load_report()
