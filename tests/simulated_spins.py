"""Runs chains of spins in CUDA's simulator and compares them with the CPU's."""

from unittest.mock import patch

import numpy as np
from helpers import lattice
from spin_support import assert_chains_equal, assert_chains_resume, key_of, knotted_graph

from percolab.bonds.words import GENERATORS
from percolab.labelers import new_labeler
from percolab.spins import one_block
from percolab.spins.chains import new_chains
from percolab.spins.chains_cuda import CudaChains
from percolab.spins.one_block import OneBlockChains
from percolab.spins.update import Update

UPDATES = (("sw", 2), ("wolff", 3), ("few:3,flip=0.6", 2), ("sw", 7), ("sw", 4))
KEYS = [key_of(2**40, 5 + n, 0.5 + 0.1 * n) for n in range(2)]
#: Lattice, shape and boundary.
CASES = {
    "square": ("square", (33, 3), "periodic"),
    "open": ("square", (40, 2), "open"),
    "kagome": ("kagome", (18, 4), "periodic"),
    "cubic": ("cubic", (3, 4, 5), "periodic"),
    "hypercubic": ("hypercubic-4d", (31, 4, 2, 4), "periodic"),
}
#: The same; at most 8 words, which is what the simulator's blocks have.
ONE_BLOCK = {
    "square": ("square", (16, 16), ("periodic", "periodic")),
    "mixed": ("square", (33, 7), ("periodic", "open")),
    "narrow": ("square", (3, 21), ("periodic", "periodic")),
    "kagome": ("kagome", (18, 6), ("periodic", "periodic")),
    "fcc": ("fcc", (4, 4, 4), ("periodic",) * 3),
}


def generator_of(case):
    return GENERATORS["philox" if case in (1, 4) else "xorwow"]


def topology_of(name):
    if name == "graph":
        return knotted_graph(50)
    lattice_name, shape, boundary = CASES[name]
    return lattice(lattice_name).topology(shape, (boundary,) * len(shape))


def compare(name):
    """Compare chains of a lattice, or of a graph, whose sweeps are launched step by step."""
    topology = topology_of(name)
    few = UPDATES[:3] if name in ("kagome", "cubic", "hypercubic") else UPDATES
    for case, (update, states) in enumerate(few):
        for number, labeler in enumerate(("four_step", "tiled")):
            # The square lattice, which make test tries, has them in turn.
            if (labeler, name) == ("tiled", "graph") or (name == "square" and case % 2 != number):
                continue
            # Lattices as small as these would be swept by one block each.
            joined = new_labeler(labeler, "cuda", topology, capacity=2, tally=case == 0)
            chains = CudaChains(joined, Update.parse(update).rule(states))
            given, where = (chains, KEYS, generator_of(case)), (name, labeler, update, states)
            assert_chains_equal(*given, (1, 1), tally=case == 0, where=where)
            if (name, case) == ("graph", 1):
                assert_chains_equal(*given, (1,), skipped=1, tally=case == 0, where=where)
                assert_chains_resume(*given, skipped=1, sweeps=1)


def compare_block(topology, update, states, generator, where, keys=KEYS):
    """Compare two chains swept by one block each."""
    rule = Update.parse(update).rule(states)
    chains = new_chains("tiled", "cuda", topology, rule, capacity=2)
    assert isinstance(chains, OneBlockChains), where
    assert_chains_equal(chains, keys, generator, (3,), skipped=3, where=where)


def compare_one_block(*names):
    """Compare chains that one block sweeps each; some updates of each where there are several."""
    # Without open bonds no thread has two of the equally large clusters.
    closed = [key._replace(threshold=np.uint64(0)) for key in KEYS]
    topology = lattice("square").topology((2, 2), ("periodic", "open"))
    compare_block(topology, "sw", 2, GENERATORS["xorwow"], "closed", closed)
    for name in names:
        compare_updates(name, few=len(names) > 1)


def compare_updates(name, few):
    lattice_name, shape, boundary = ONE_BLOCK[name]
    topology = lattice(lattice_name).topology(shape, boundary)
    for case, (update, states) in enumerate(UPDATES):
        if few and case not in (range(3) if name == "mixed" else range(3, 5)):
            continue
        given = topology, update, states, generator_of(case)
        # Lists that are too short, and more launches than there is room for at a time.
        parts = 2 if case % 2 else 4
        if not few or case % 3:
            with (
                patch.object(one_block, "_list_capacity", lambda topology: 2),
                patch.object(one_block, "_MOST_SWEEPS", 1),
                patch.object(one_block, "_MOST_PARTS", parts),
            ):
                compare_block(*given, (name, update, states, parts))
        if not few or not case % 3:
            with patch.object(one_block, "_MOST_PARTS", 1):
                compare_block(*given, (name, update, states, 1))
        if not few:
            compare_block(*given, (name, update, states))
