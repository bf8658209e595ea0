"""CUDA kernels in CUDA's simulator: words, labels and rows equal the judge's without a GPU."""

import importlib.util

import pytest
from helpers import LATTICES, run_simulated

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


# A unit cell folds into the same lattice as the block of honeycomb.
CASES = [(name,) for name in [*LATTICES, "graph"] if name != "honeycomb_unit_cell"]
CASES += [(name, "models") for name in ("kagome", "graph")]
CASES += [("square", "batches")]
CASES += [(name, "gyration") for name in ("honeycomb", "kagome", "cubic")]


#: What repeats on another lattice, or with more items, what others tell.
SLOW = {
    ("square", "batches"),
    ("graph", "models"),
    ("honeycomb",),
    ("kagome", "gyration"),
    ("honeycomb", "gyration"),
    ("hypercubic_4d",),
    ("kagome",),
    ("cubic",),
    ("triangular",),
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] * (case in SLOW)) for case in CASES],
    ids="-".join,
)
def test_simulated_kernels_equal_the_reference(case):
    done = run_simulated("simulated_cuda.py", *case)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip(), "no case was run"
