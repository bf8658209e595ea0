"""Sweeps chains by one block each in CUDA's simulator, compared with the CPU; a test starts it."""

from unittest.mock import patch

import numpy as np
from helpers import lattice
from simulated_spins import UPDATES, chains_of

from percolab.bonds.words import GENERATORS
from percolab.spins import one_block
from percolab.spins.chains import new_chains
from percolab.spins.one_block import OneBlockChains
from percolab.spins.update import Update

#: Name: lattice, shape and boundary; at most 8 words, which is what the simulator's blocks have.
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
SWEEPS = 3


def compare(topology, update, states, generator, where, keys=None):
    """Assert that two chains swept by one block each equal those of the CPU."""
    rule, keys = Update.parse(update).rule(states), keys or chains_of(2)
    chains = new_chains("tiled", "cuda", topology, rule, capacity=2)
    assert isinstance(chains, OneBlockChains), where
    chains.begin(generator, keys, [False, True])
    chains.skip(3)
    before = chains.rows_at(np.array([key.threshold for key in keys]))
    rows, numbers = chains.advance(SWEEPS)
    planes = chains.copy_planes()
    for n, key in enumerate(keys):
        own = new_chains("raster", "cpu", topology, rule)
        own.begin(generator, [key], [n == 1])
        own.skip(3)
        row, number = (found[0] for found in own.advance(SWEEPS))
        assert np.array_equal(before[n], row[0]), (where, n)
        assert np.array_equal(rows[n], row), (where, n, rows[n], row)
        assert np.array_equal(numbers[n], number), (where, n, numbers[n], number)
        assert np.array_equal(planes[n], own.copy_planes()[0]), (where, n)


def compare_case(name, few):
    lattice_name, shape, boundary = CASES[name]
    topology = lattice(lattice_name).topology(shape, boundary)
    for case, (update, states) in enumerate(UPDATES):
        if few and case not in (range(3) if name == "mixed" else range(3, 5)):
            continue
        generator = GENERATORS["philox" if case in (1, 4) else "xorwow"]
        # Lists that are too short, and more launches than there is room for at a time.
        parts = 2 if case % 2 else 4
        if not few or case % 3:
            with (
                patch.object(one_block, "_list_capacity", lambda topology: 2),
                patch.object(one_block, "_MOST_SWEEPS", 1),
                patch.object(one_block, "_MOST_PARTS", parts),
            ):
                compare(topology, update, states, generator, (name, update, states, parts))
        if not few or not case % 3:
            with patch.object(one_block, "_MOST_PARTS", 1):
                compare(topology, update, states, generator, (name, update, states, 1))
        if not few:
            compare(topology, update, states, generator, (name, update, states))


def compare_closed():
    """Compare chains without open bonds, where no thread has two of the equally large clusters."""
    keys = [key._replace(threshold=np.uint64(0)) for key in chains_of(2)]
    topology = lattice("square").topology((2, 2), ("periodic", "open"))
    compare(topology, "sw", 2, GENERATORS["xorwow"], "closed", keys)


def main(*names):
    """Compare cases; some updates of each where there are several."""
    compare_closed()
    for name in names:
        compare_case(name, few=len(names) > 1)
    print("equal")
