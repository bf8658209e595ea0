"""Measures studies with a number of the row that a test has added to a copy of percolab."""

import sys
from unittest import mock

import numpy as np
from helpers import assert_same_blocks

from percolab.api import sweep
from percolab.measure.sums import ROW

SHORT = {"L": [8], "p": [0.3, 0.45], "samples": 2, "block_size": 2, "measure": ["sizes"]}
ON_CPU = {
    "one p": {"p": [0.3]},
    "grid": {"p": [0.2, 0.3, 0.35, 0.5], "boundary": "periodic"},
    "four_step": {"labeler": "four_step"},
    "reference": {"labeler": "reference", "boundary": "periodic"},
    "slabs": {"slabs": 3},
    "ranks": {"split": "lattice", "executor": "threads", "workers": 2, "slabs": 4},
    "three ranks": {"split": "lattice", "executor": "threads", "workers": 3},
    "sites": {"model": "site", "p": [0.4, 0.6]},
}
SPINS = {"model": "ising", "samples": 6, "block_size": 3, "burn_in": 2, "p": [0.3]}
ON_CUDA = {
    "small lattices": {"measure": []},
    "tiled": {"labeler": "tiled"},
    "four_step": {"labeler": "four_step", "p": [0.3]},
    "slabs": {"slabs": 2, "p": [0.3]},
    "one block of spins": SPINS | {"measure": []},
}


def check_tally(name, results):
    """Compare the clusters of two sites with those that the bin of two sites has."""
    for item in results.tasks.values():
        pairs = item.column("pairs")
        assert pairs.any(), name
        np.testing.assert_array_equal(pairs, item.extra("size_counts")[..., 1], name)


def main(device):
    """Measure all studies on a device."""
    assert "pairs" in ROW
    if device == "cpu":
        for name, options in (ON_CPU | {"spins": SPINS}).items():
            check_tally(name, sweep("square", **SHORT | options, device="cpu"))
            print(name, flush=True)
        return
    with mock.patch("percolab.kernels.device.free_memory", return_value=10**12):
        for name, options in ON_CUDA.items():
            given = SHORT | options
            found = sweep("square", **given, device="cuda")
            plain = {key: given[key] for key in given.keys() - {"labeler", "slabs"}}
            expected = sweep("square", **plain, device="cpu")
            assert_same_blocks(found, expected)
            assert all(item.column("pairs").any() for item in expected.tasks.values()), name
            print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
