"""CUDA kernels in CUDA's simulator: words, labels and rows equal the judge's without a GPU."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import LATTICES

DRIVER = Path(__file__).parents[1] / "simulated_cuda.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


# A unit cell folds into the same lattice as the block of honeycomb.
CASES = [(name,) for name in [*LATTICES, "graph"] if name != "honeycomb_unit_cell"]
CASES += [(name, "models") for name in ("kagome", "graph")]
CASES += [(name, "gyration") for name in ("honeycomb", "kagome", "cubic")]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_simulated_kernels_equal_the_reference(case):
    simulator = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, str(DRIVER), *case],
        env=os.environ | simulator,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip(), "no case was run"
