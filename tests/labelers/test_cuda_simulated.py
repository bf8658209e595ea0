"""CUDA kernels in CUDA's simulator: words, labels and rows equal the reference's without a GPU."""

import pytest
from helpers import LATTICES, assert_simulated, slow_but

# A unit cell folds into the same lattice as the block of honeycomb.
CASES = [(name,) for name in [*LATTICES, "graph"] if name != "honeycomb_unit_cell"]
CASES += [("kagome", "two models"), *((name, "models") for name in ("kagome", "graph"))]
CASES += [
    ("square", "batches"),
    *((name, "gyration") for name in ("honeycomb", "kagome", "cubic", "hypercubic-4d")),
]
#: The others repeat them on another lattice, or with more samples.
FAST = {("square",), ("graph",)}


@pytest.mark.parametrize("case", slow_but(CASES, *FAST), ids="-".join)
def test_simulated_kernels_equal_the_reference(case):
    assert_simulated("simulated_cuda.py", *case)
