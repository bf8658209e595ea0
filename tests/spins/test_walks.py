"""Sweeps that are not measured walk the clusters of chosen sites: the same spins, at their cost."""

import numpy as np
import pytest
from helpers import lattice
from spin_support import PARITY, key_of, parity_case

from percolab.bonds.words import GENERATORS
from percolab.spins import chain_cpu
from percolab.spins.chains import new_chains
from percolab.spins.update import Update

#: Update, q and p: clusters of all sizes, many chosen sites in one cluster, several planes.
RULES = [
    ("wolff", 2, 0.6),
    ("wolff", 7, 0.75),
    ("few:5,flip=0.6", 3, 0.65),
    ("few:40,flip=0.9", 2, 0.3),
]


def chain(topology, update, q, p, generator=0, random=False):
    found = new_chains("raster", "cpu", topology, Update.parse(update).rule(q))
    found.begin(generator, [key_of(9, 17 + random, p)], [random])
    return found


@pytest.mark.parametrize("case", PARITY)
def test_walks_give_the_spins_of_labeling_all_clusters(case, monkeypatch):
    topology = parity_case(case)
    for number, (update, q, p) in enumerate(RULES):
        # Walks that are given up, and walks that never are.
        monkeypatch.setattr(chain_cpu, "_WALKED", (8, 1)[number % 2])
        given = update, q, p, list(GENERATORS.values())[number // 2], number % 2 == 0
        one, other = (chain(topology, *given) for _ in range(2))
        for sweeps in (1, 6, 30):
            one.advance(sweeps)
            other.skip(sweeps)
            where = f"{case}, {update}, q = {q}"
            np.testing.assert_array_equal(one.copy_planes(), other.copy_planes(), err_msg=where)
            # Measured sweeps go on from what walks have left, the counts of states among it.
            for expected, found in zip(one.advance(2), other.advance(2)):
                np.testing.assert_array_equal(expected, found, err_msg=where)


def test_a_walk_draws_the_bonds_of_its_cluster_alone():
    topology = lattice("square").topology((256, 256), ("periodic", "periodic"))
    one = chain(topology, "wolff", 2, 0.3, random=True)
    drawn = []
    for _ in range(20):
        before = one.copy_planes()
        one.skip(1)
        sites = int(np.bitwise_count(before ^ one.copy_planes()).sum())
        words = int((one._walk.drawn == one._walk.stamp[0]).sum())
        drawn.append(words)
        # Of each site the words of its own two bonds, and of those two that end at it.
        assert 2 <= words <= 4 * sites
    assert max(drawn) < topology.exists.size / 50


def test_stamps_that_come_again_are_not_taken_for_those_of_old_sweeps():
    topology = parity_case("square")
    one, other = (chain(topology, "wolff", 2, 0.6, random=True) for _ in range(2))
    one.advance(8)
    other.skip(4)
    other._walk.stamp[0] = 2**32 - 3
    other._walk.drawn[:] = 1
    other.skip(4)
    np.testing.assert_array_equal(one.copy_planes(), other.copy_planes())
