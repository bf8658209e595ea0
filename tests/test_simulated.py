"""CUDA kernels in CUDA's simulator give, without a GPU, what the CPU or a plain reference gives."""

import importlib

import pytest
from flow_support import CUDA_CASES
from helpers import LATTICES, assert_simulated

from percolab.kernels.launches import Launches

#: What make test runs: a program's name, with its function if it has several, and what each case
#: is given.
QUICK = {
    "cuda:compare_bonds": ["square", "graph"],
    "small": ["triangular bond 3 few"],
    "slabs:compare_lattice": ["triangular 7 16"],
    "spins:compare": ["square"],
    "trees": ["square"],
    "flows": ["square small", "square paths", "square planar", "triangular planar"],
    "device_arrays": [""],
    "papers/baselines:compare_labels": ["square"],
    "papers/guo2011/prim:compare_minima": [""],
}
#: Every seventeenth case of late streams has all lattices and ways to be late.  Whole lattices of
#: slabs are the part 0 of 1.
SLOW = {
    # A unit cell folds into the same lattice as the block of honeycomb.
    "cuda:compare_bonds": [name for name in LATTICES if name != "honeycomb_unit_cell"],
    "cuda:compare_two_models": ["kagome"],
    "cuda:compare_models": ["kagome", "graph"],
    "cuda:compare_batches": ["square"],
    "cuda:compare_gyration": ["honeycomb", "kagome", "cubic", "hypercubic-4d"],
    "cuda:compare_openings": ["square", "graph"],
    "small": [
        "triangular bond 3",
        "square site 3",
        "kagome site-bond 4",
        "cubic bond 2",
        "triangular bond:x=0.3 3",
        "hypercubic-4d bond 3",
        "hypercubic-4d site 2",
    ],
    "bond_classes:compare_labelers": [""],
    "bond_classes:compare_slabs": [""],
    "slabs:compare_far": ["square"],
    "slabs:compare_lattice": [
        f"{name} 0 1" for name in ("square", "kagome", "cubic", "fcc", "hypercubic-4d")
    ],
    "streams:compare": ["0 17", "0 1"],
    "interfaces:compare_made": [""],
    "interfaces:compare_lattice": ["cubic", "square", "kagome"],
    "slab_study": ["choices study checkpoints", "gpus"],
    "split": ["square", "cubic", "study", "checkpoints"],
    "spins:compare": ["open", "graph", "kagome", "cubic", "hypercubic"],
    "spins:compare_one_block": ["mixed kagome", "square", "narrow", "fcc"],
    "trees": ["graph", "open", "cubic", "triangular", "honeycomb", "kagome", "hypercubic_4d"],
    "flows": [
        *(f"{name} small" for name in CUDA_CASES),
        # Paths are read with all else where samples are large.
        *(f"{name} large" for name in ("square", "cubic", "graph")),
        *(f"{name} paths" for name in ("triangular", "honeycomb", "kagome")),
        *(f"{name} planar" for name in ("kagome", "maple-leaf", "snub-square", "four-six-twelve")),
    ],
    "duals": [""],
    "papers/baselines:compare_labels": ["honeycomb", "kagome", "triangular", "cubic"],
    "papers/baselines:compare_edges": [""],
    "papers/baselines:compare_rows": [""],
    "papers/guo2011/prim:compare_rounds": [""],
    "papers/guo2011/prim:compare_persistent": [""],
}


def cases():
    """Yield the cases of every program, the quick ones first."""
    quick = [(program, given) for program, cases in QUICK.items() for given in cases]
    yield from quick
    for program, cases in SLOW.items():
        marks = [pytest.mark.slow, pytest.mark.timeout(1800 if program == "flows" else 300)]
        for given in cases:
            if (program, given) not in quick:
                yield pytest.param(program, given, marks=marks)


@pytest.mark.parametrize(("program", "given"), list(cases()))
def test_simulated_kernels_equal_the_reference(program, given):
    name, _, function = program.partition(":")
    folder, _, name = name.rpartition("/")
    path = f"{folder}/simulated_{name}.py" if folder else f"simulated_{name}.py"
    assert_simulated(f"{path}:{function}", *given.split())


def test_streams_are_late_nowhere_else():
    """All files of tests are imported by pytest, which looks for examples there."""
    importlib.import_module("simulated_streams")
    assert {each.__module__ for each in (Launches.wait, Launches.each)} == {Launches.__module__}
