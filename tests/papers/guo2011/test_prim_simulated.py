"""Guo's Prim and its primitive in CUDA's simulator, without a GPU, beside a plain judge."""

import importlib.util

import pytest
from helpers import run_simulated

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


@pytest.mark.parametrize(
    "part", ["minima", pytest.param("rounds", marks=pytest.mark.slow), "persistent"]
)
def test_simulated_kernels_equal_the_judge(part):
    done = run_simulated("papers/guo2011/simulated_prim.py", part)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip() == "equal"
