"""The schemes of papers: the judge's labels, in CUDA's simulator, and what they do not serve."""

import importlib.util
from importlib import import_module

import pytest
from helpers import BASELINES, lattice, run_simulated
from test_cuda_compile import load_report

from percolab.bonds.model import BOND
from percolab.labelers import LABELERS, fitting_labeler, serving_labeler
from percolab.lattices.bethe import bethe_structure
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import load_lattice

needs_cuda = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)
TILES = BASELINES[1:]


@needs_cuda
@pytest.mark.parametrize(
    "case", ["square", "triangular", "honeycomb", "kagome", "cubic", "edges", "rows"]
)
def test_simulated_kernels_equal_the_reference(case):
    done = run_simulated("simulated_baselines.py", case)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip(), "no case was run"
