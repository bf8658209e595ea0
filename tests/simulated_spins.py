"""Runs chains of spins in CUDA's simulator and compares them with the CPU; a test starts it."""

import numpy as np
from helpers import lattice

from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.labelers import new_labeler
from percolab.lattices.graph import graph_topology
from percolab.spins.chains import new_chains
from percolab.spins.chains_cuda import CudaChains
from percolab.spins.update import Update
from percolab.spins.words import Chain

#: Lattice, shape and boundary.
CASES = {
    "square": ("square", (33, 3), "periodic"),
    "open square": ("square", (40, 2), "open"),
    "kagome": ("kagome", (18, 4), "periodic"),
    "cubic": ("cubic", (3, 4, 5), "periodic"),
    "hypercubic": ("hypercubic-4d", (31, 4, 2, 4), "periodic"),
}
#: Which of these a graph continues as well, from its spins after one sweep.
CONTINUED = 1
UPDATES = (("sw", 2), ("wolff", 3), ("few:3,flip=0.6", 2), ("sw", 7), ("sw", 4))


def topology_of(case):
    if case == "graph":
        bonds = [(i, (7 * i + 3) % 50) for i in range(50)] + [(4, 4), (1, 2), (2, 1)]
        return graph_topology(50, bonds)
    name, shape, boundary = CASES[case]
    return lattice(name).topology(shape, (boundary,) * len(shape))


def chains_of(count):
    seeds = (np.uint64(2**63 + 11), np.uint64(12), np.uint64(13))
    return [
        Chain(*seeds, np.uint64(5 + n), np.uint64(p_to_threshold(0.5 + 0.1 * n)))
        for n in range(count)
    ]


def main(name):
    topology = topology_of(name)
    few = UPDATES[:3] if name in ("kagome", "cubic", "hypercubic") else UPDATES
    for case, (update, states) in enumerate(few):
        rule = Update.parse(update).rule(states)
        generator = GENERATORS["philox" if case in (1, 4) else "xorwow"]
        expected = []
        keys = chains_of(2)
        for n, key in enumerate(keys):
            own = new_chains("four_step", "cpu", topology, rule, tally=case == 0)
            own.begin(generator, [key], [n == 1])
            first = own.advance(1), own.copy_planes()
            found = [np.concatenate(x, axis=1)[0] for x in zip(first[0], own.advance(1))]
            expected.append((*found, own.copy_planes()[0], first[1][0]))
        for number, labeler in enumerate(("four_step", "tiled")):
            # The square lattice, which make test tries, has them in turn.
            if (labeler, name) == ("tiled", "graph") or (name == "square" and case % 2 != number):
                continue
            # Lattices as small as these would be swept by one block each.
            joined = new_labeler(labeler, "cuda", topology, capacity=2, tally=case == 0)
            chains = CudaChains(joined, rule)
            chains.begin(generator, keys, [False, True])
            at = np.array([key.threshold for key in keys])
            before = chains.rows_at(at)
            rows, numbers = chains.advance(2)
            planes = chains.copy_planes()
            if name == "graph" and case == CONTINUED:
                # From another start, which a given state replaces.
                chains.begin(generator, keys, [True, True])
                chains.resume(np.array([state for *_, state in expected]), 1)
                for one, other in zip((rows, numbers), chains.advance(1)):
                    assert np.array_equal(one[:, 1:], other), (name, labeler, update)
                assert np.array_equal(planes, chains.copy_planes()), (name, labeler, update)
                # And with the first sweep not fetched.
                chains.begin(generator, keys, [False, True])
                chains.skip(1)
                for one, other in zip((rows, numbers), chains.advance(1)):
                    assert np.array_equal(one[:, 1:], other), (name, labeler, update)
            for n, (row, number, plane, _) in enumerate(expected):
                where = name, topology.shape, labeler, update, states, n
                assert np.array_equal(before[n], row[0]), where
                assert np.array_equal(rows[n], row), (where, rows[n], row)
                assert np.array_equal(numbers[n], number), (where, numbers[n], number)
                assert np.array_equal(planes[n], plane), where
    print("equal")
