"""CUDA joins fronts and measures studies in slabs as the CPU does, in CUDA's simulator."""

import importlib.util

import pytest
from helpers import run_simulated

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


slow = pytest.mark.slow
CASES = [
    ("simulated_fronts.py", "made"),
    pytest.param("simulated_fronts.py", "cubic", marks=slow),
    pytest.param("simulated_fronts.py", "square", marks=slow),
    pytest.param("simulated_fronts.py", "kagome", marks=slow),
    ("simulated_slab_study.py", "choices"),
    pytest.param("simulated_slab_study.py", "study", marks=slow),
    pytest.param("simulated_slab_study.py", "gpus", marks=slow),
]


@pytest.mark.parametrize(("program", "case"), CASES)
def test_simulated_joins_equal_those_of_the_cpu(program, case):
    done = run_simulated(program, case)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip(), "no case was run"
