"""Sweeps chains by one block each in CUDA's simulator, compared with the CPU; a test starts it.

NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python simulator.py simulated_one_block.py square
"""

import sys
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from helpers import lattice
from simulated_spins import chains_of

from percolab.bonds.words import GENERATORS
from percolab.labelers import new_labeler
from percolab.spins import one_block
from percolab.spins.chains import new_chains
from percolab.spins.one_block import OneBlockChains
from percolab.spins.update import Update

#: Name: lattice, shape and boundary; at most 8 words, which is a tile of the simulator.
CASES = {
    "square": ("square", (16, 16), ("periodic", "periodic")),
    "mixed": ("square", (33, 7), ("periodic", "open")),
    "narrow": ("square", (3, 21), ("periodic", "periodic")),
    "triangular": ("triangular", (13, 9), ("open", "periodic")),
    "honeycomb": ("honeycomb", (12, 10), ("periodic", "periodic")),
    "kagome": ("kagome", (18, 6), ("periodic", "periodic")),
    "cubic": ("cubic", (5, 4, 6), ("periodic", "open", "periodic")),
    "fcc": ("fcc", (4, 4, 4), ("periodic",) * 3),
}
UPDATES = (("sw", 2), ("wolff", 3), ("few:3,flip=0.6", 2), ("sw", 7), ("sw", 4))
SWEEPS = 3


def assert_equal(topology, update, states, generator, *, count=2, where):
    """Assert that chains swept by one block each equal those of the CPU."""
    rule = Update.parse(update).rule(states)
    keys = chains_of(count)
    chains = new_chains("tiled", "cuda", topology, rule, capacity=count)
    assert isinstance(chains, OneBlockChains), where
    random = [n % 2 == 1 for n in range(count)]
    chains.begin(generator, keys, random)
    at = np.array([key.threshold for key in keys])
    before = chains.rows_at(at)
    rows, numbers = chains.advance(SWEEPS)
    planes = chains.planes_of()
    for n, key in enumerate(keys):
        own = new_chains("raster", "cpu", topology, rule)
        own.begin(generator, [key], [random[n]])
        wanted, wanted_numbers = own.advance(SWEEPS)
        assert np.array_equal(before[n], wanted[0, 0]), (where, n)
        assert np.array_equal(rows[n], wanted[0]), (where, n, rows[n], wanted[0])
        assert np.array_equal(numbers[n], wanted_numbers[0]), (where, n, numbers[n], wanted_numbers)
        assert np.array_equal(planes[n], own.planes_of()[0]), (where, n)


def main(name):
    lattice_name, shape, boundary = CASES[name]
    topology = lattice(lattice_name).topology(shape, boundary)
    for case, (update, states) in enumerate(UPDATES):
        generator = GENERATORS["philox" if case in (1, 4) else "xorwow"]
        assert_equal(topology, update, states, generator, where=(name, update, states))
    print("equal")


if __name__ == "__main__":
    main(sys.argv[1])
