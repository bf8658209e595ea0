"""Chains end in the exact distribution of tiny graphs; what holds exactly at any size."""

import numpy as np
import pytest
from helpers import assert_z, lattice, slow
from spin_support import exact_means, key_of, run_chains, tiny_topology, z_of

from percolab.bonds.words import GENERATORS
from percolab.lattices.topology import unpack_bits
from percolab.measure.rows import SUM_SQUARES
from percolab.spins.chains import new_chains
from percolab.spins.update import Update

#: By q, where the spins of a few sites are neither ordered nor free.
P = {2: 0.4, 3: 0.45, 4: 0.5, 10: 0.6}


@pytest.mark.parametrize(("q", "update"), [(2, "wolff"), (3, "wolff"), (3, "few:2,flip=0.6")])
def test_the_number_of_changed_spins_follows_from_the_update(q, update):
    """Wolff: <S_2> / N sites; k clusters: 0.6 times the sites of clusters with a chosen one."""
    topology, sites, p = tiny_topology("square 3 x 3"), 9, P[q]
    rule = Update.parse(update)
    chains = new_chains(None, "cpu", topology, rule.rule(q))
    changed, expected = [], []
    for number in range(400):
        chains.begin(0, [key_of(31, number, p)], [number % 2 == 1])
        chains.advance(40)
        moved, reference = [], []
        for _ in range(6):
            before = chains.copy_planes()
            rows, _ = chains.advance(1)
            different = np.bitwise_or.reduce(before ^ chains.copy_planes(), axis=1)
            moved.append(int(np.bitwise_count(different).sum()))
            if rule.seeds == 1:
                reference.append(rows[0, 0, SUM_SQUARES] / sites)
        changed.append(np.mean(moved))
        expected.append(np.mean(reference) if reference else 0.0)
    changed, expected = np.array(changed), np.array(expected)
    if rule.seeds == 1:
        assert abs(z_of(changed - expected, 0.0)) <= 4
        return
    # Chosen independently, a cluster of s sites is hit with probability 1 - (1 - s / N)^2:
    # its sites are 2 s^2 / N - s^3 / N^2 on average.
    exact = exact_means("square 3 x 3", q, p)
    rows, _ = run_chains(topology, q=q, p=p, seed=32, tally=True, sweeps=40)
    cubes = (rows[..., 10:] @ np.arange(1, rows.shape[-1] - 9) ** 3).mean()
    share = 2 * exact["sum_squares"] / sites - cubes / sites**2
    assert abs(z_of(changed, 0.6 * share)) <= 4


@pytest.mark.parametrize("rng", ["xorwow", slow("philox")])
@pytest.mark.parametrize(
    ("update", "q"), [("sw", 5), ("sw", 4), slow("wolff", 5), slow("wolff", 4)]
)
def test_every_spin_is_as_likely_as_any_other(update, q, rng):
    """At p = 0 every site is a cluster: of sw any of the q spins, of wolff any but its own."""
    topology = lattice("square").topology((64, 64), ("periodic",) * 2)
    chains = new_chains(None, "cpu", topology, Update.parse(update).rule(q))
    chains.begin(GENERATORS[rng], [key_of(41, 3, 0.0)], [True])
    seen = np.zeros(q, int)
    for _ in range(3 if update == "sw" else 3000):
        before = spins_of(chains, topology)
        chains.advance(1)
        after = spins_of(chains, topology)
        steps = (after - before) % q
        seen += np.bincount(steps if update == "sw" else steps[steps > 0], minlength=q)
    allowed = seen if update == "sw" else seen[1:]
    assert seen.sum() == (3 * 64 * 64 if update == "sw" else 3000)
    # A chi^2 of 3 or 4 degrees of freedom is beyond 20 with probability 5e-4.
    mean = allowed.sum() / allowed.size
    assert ((allowed - mean) ** 2).sum() / mean < 20


@pytest.mark.parametrize("rng", GENERATORS)
@pytest.mark.parametrize("q", [3, 4, 7])
def test_a_random_start_has_all_spins_and_neighbours_that_do_not_know_each_other(q, rng):
    topology = lattice("square").topology((128, 128), ("periodic",) * 2)
    chains = new_chains(None, "cpu", topology, Update().rule(q))
    chains.begin(GENERATORS[rng], [key_of(42, 1, 0.3)], [True])
    spins = spins_of(chains, topology)
    sites = spins.size
    counts = np.bincount(spins, minlength=q)
    assert ((counts - sites / q) ** 2).sum() / (sites / q) < 25
    for apart in (1, 2, 31, 32, 33, 128):
        same = int((spins == np.roll(spins, apart)).sum())
        assert_z(same / sites, 1 / q, (1 / q * (1 - 1 / q) / sites) ** 0.5)


def spins_of(chains, topology):
    """Return the spin of every site, int64 (num_points,)."""
    planes = [unpack_bits(words, topology.num_points) for words in chains.copy_planes()[0]]
    return sum(plane.astype(np.int64) << n for n, plane in enumerate(planes))
