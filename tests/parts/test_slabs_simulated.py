"""Fronts of slabs by CUDA kernels, in CUDA's simulator, are those of the CPU."""

import importlib.util

import pytest
from helpers import run_simulated

from percolab.kernels.launches import Launches

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)

#: A lattice, and which of how many parts of its cases; or slabs far inside.  A torus is quick.
CASES = [("triangular", "7", "16")]
MORE = [("square", "far"), *((name, "0", "1") for name in ("square", "triangular", "cubic", "bcc"))]
MORE += [(name, "0", "1") for name in ("honeycomb", "kagome", "fcc")]


@pytest.mark.parametrize(
    "case",
    [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in MORE)],
    ids="-".join,
)
def test_simulated_fronts_equal_those_of_the_cpu(case):
    done = run_simulated("simulated_slabs.py", *case)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip(), "no case was run"


# Every seventh case has all lattices, boundaries and ways to be late.
@pytest.mark.parametrize("case", ["0 7", pytest.param("0 1", marks=pytest.mark.slow)])
def test_rows_in_slabs_stay_the_same_where_streams_are_late(case):
    done = run_simulated("simulated_streams.py", *case.split())
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert "late" in done.stdout


def test_streams_are_late_nowhere_else():
    """All files of tests are imported by pytest, which looks for examples there."""
    importlib.import_module("simulated_streams")
    assert {each.__module__ for each in (Launches.wait, Launches.each)} == {Launches.__module__}
