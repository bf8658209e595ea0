"""Chains of spins in CUDA's simulator equal those of the CPU, bit for bit, without a GPU."""

import importlib.util

import pytest
from helpers import run_simulated

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("kagome", "cubic")]


@pytest.mark.parametrize("case", ["square", "graph", *SLOW])
def test_simulated_chains_equal_the_cpu(case):
    done = run_simulated("simulated_spins.py", case)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip() == "equal"
