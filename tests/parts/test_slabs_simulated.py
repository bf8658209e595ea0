"""Parts on CUDA, in CUDA's simulator: interfaces, joins, studies and ranks are those of the CPU."""

import importlib.util

import pytest
from helpers import run_simulated, slow

from percolab.kernels.launches import Launches

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)

#: Programs, with what they are given: a lattice, and which of how many parts of its cases; or slabs
#: far inside.  A torus is quick.
CASES = [
    ("slabs", "triangular", "7", "16"),
]
SLOW = [
    # Every seventeenth case has all lattices and ways to be late.
    ("streams", "0", "17"),
    ("interfaces", "made"),
    ("slab_study", "choices"),
    ("slabs", "square", "far"),
    *(("slabs", name, "0", "1") for name in ("square", "triangular", "cubic", "bcc")),
    *(("slabs", name, "0", "1") for name in ("honeycomb", "kagome", "fcc", "hypercubic-4d")),
    ("streams", "0", "1"),
    *(("interfaces", name) for name in ("cubic", "square", "kagome")),
    *(("slab_study", case) for case in ("study", "gpus")),
    *(("split", case) for case in ("square", "cubic", "study", "checkpoints")),
]


@pytest.mark.parametrize("case", [*CASES, *(slow(case) for case in SLOW)], ids="-".join)
def test_simulated_parts_equal_those_of_the_cpu(case):
    program, *given = case
    done = run_simulated(f"simulated_{program}.py", *given)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip(), "no case was run"
    assert program != "streams" or "late" in done.stdout
    assert program != "split" or done.stdout.strip() == given[0]


def test_streams_are_late_nowhere_else():
    """All files of tests are imported by pytest, which looks for examples there."""
    importlib.import_module("simulated_streams")
    assert {each.__module__ for each in (Launches.wait, Launches.each)} == {Launches.__module__}
