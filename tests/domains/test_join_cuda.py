"""CUDA joins fronts as the CPU does, in CUDA's simulator."""

import importlib.util

import pytest
from helpers import run_simulated

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


@pytest.mark.parametrize(
    "case",
    [
        "made",
        "cubic",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("square", "kagome")),
    ],
)
def test_simulated_joins_equal_those_of_the_cpu(case):
    done = run_simulated("simulated_fronts.py", case)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip(), "no case was run"
