"""Chains of spins in CUDA's simulator equal those of the CPU, bit for bit, without a GPU."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import lattice, run_simulated, slow

from percolab.spins.update import Update

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)


OTHERS = ("open square", "graph", "kagome", "cubic", "hypercubic")
SLOW = [slow(name) for name in OTHERS]


@pytest.mark.parametrize("case", ["square", *SLOW])
def test_simulated_chains_equal_the_cpu(case):
    done = run_simulated("simulated_spins.py", case)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip() == "equal"


ONE_BLOCK = ("square", "narrow", "triangular", "honeycomb", "cubic", "fcc")
SLOW_BLOCKS = [slow((name,)) for name in ONE_BLOCK]


@pytest.mark.slow
@pytest.mark.parametrize("cases", [("mixed", "kagome"), *SLOW_BLOCKS], ids="+".join)
def test_simulated_sweeps_by_one_block_equal_the_cpu(cases):
    done = run_simulated("simulated_one_block.py", *cases)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert done.stdout.strip() == "equal"


@pytest.mark.parametrize(
    ("name", "shape", "boundary", "q", "fits"),
    [
        ("square", (64, 64), "periodic", 2, True),
        ("square", (64, 64), "open", 256, True),
        ("square", (65, 64), "periodic", 2, False),
        ("square", (1, 64), "periodic", 2, True),
        ("cubic", (16, 16, 16), "periodic", 2, True),
        ("cubic", (16, 16, 16), "open", 256, True),
        ("fcc", (16, 16, 16), "periodic", 64, True),
        ("fcc", (16, 16, 16), "periodic", 256, False),
        ("cubic", (2, 32, 64), "periodic", 2, False),
    ],
)
def test_one_block_sweeps_what_fits_in_its_shared_memory(name, shape, boundary, q, fits):
    from percolab.spins.one_block import is_one_block, shared_bytes

    topology = lattice(name).topology(shape, (boundary,) * len(shape))
    rule = Update().rule(q)
    batch, read = SimpleNamespace(topology=topology), SimpleNamespace(tally_width=np.uint32(0))
    labeler = SimpleNamespace(name="tiled", batch=batch, read=read)
    assert is_one_block(labeler, rule) == fits, shared_bytes(topology, int(rule.planes))
    labeler.read = SimpleNamespace(tally_width=np.uint32(40))
    assert not is_one_block(labeler, rule)
    labeler.read, labeler.name = read, "four_step"
    assert not is_one_block(labeler, rule)
