"""Levels on CUDA equal those on the CPU, with saddles and paths: in the simulator and on a GPU."""

import importlib.util
import json

import numpy as np
import pytest
from helpers import run_simulated, slow
from level_support import CASES, call, given_values, record

import percolab
from percolab.errors import InputError

needs_cuda = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed"
)
QUICK = ("short", "signs", "tied bonds")


@needs_cuda
@pytest.mark.parametrize("name", [n if n in QUICK else slow(n) for n in CASES])
def test_simulated_levels_are_those_of_the_cpu(name):
    done = run_simulated("simulated_levels.py", name)
    assert done.returncode == 0, f"after {done.stdout}{done.stderr}"
    assert json.loads(done.stdout) == record(percolab.threshold(**call(name)))
