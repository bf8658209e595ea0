"""Chains end in the exact distribution of tiny graphs; what holds exactly at any size."""

import numpy as np
import pytest
from helpers import assert_z, lattice, slow
from spin_support import (
    TINY,
    exact_means,
    graph_of,
    key_of,
    lag_one_products,
    quantities_of,
    run_chains,
    tiny_topology,
    z_of,
)

from percolab.analysis.theory.ising import CRITICAL_COUPLING, ising_torus
from percolab.api import sweep
from percolab.bonds.words import GENERATORS
from percolab.lattices.topology import unpack_bits
from percolab.measure.rows import SUM_SQUARES
from percolab.measure.spins import LAGS, SERIES
from percolab.spins.chains import new_chains
from percolab.spins.update import Update


def chains_of(lattice, *, chains=48, measured=100, burn_in=60, **settings):
    """Return the single task of chains of one size, one p, and so many sweeps."""
    results = sweep(
        lattice,
        boundary="periodic",
        samples=chains * measured,
        sweeps=burn_in + measured,
        burn_in=burn_in,
        device="cpu",
        workers=1,
        **settings,
    )
    (item,) = results.tasks.values()
    assert len(item.blocks) == chains
    return item


class Means:
    """Means over the sweeps of every chain, float64 (chains,)."""

    def __init__(self, item):
        self.item, self.task = item, item.task
        self.q, self.sites = item.task.draw.states, item.task.num_sites
        self.sweeps = item.task.block_size
        self.blocks = [item.blocks[n] for n in sorted(item.blocks)]

    def of(self, name):
        return self.item.column(name)[:, 0] / self.sweeps

    def square(self, name):
        return self.item.squares(name)[:, 0] / self.sweeps

    def lagged(self, series, lag):
        """Return mean products of a series, and means of the sums x_t + x_(t + lag)."""
        shape = len(self.blocks), len(SERIES), 2, LAGS + 1
        parts = np.array([block.extras["lagged"][0] for block in self.blocks]).reshape(shape)
        return parts[:, series, :, lag].T / (self.sweeps - lag)

    @property
    def magnetization_square(self):
        q, sites = self.q, self.sites
        return (q * self.of("state_squares") - sites**2) / (q - 1)

    @property
    def magnetization_fourth(self):
        q, sites = self.q, self.sites
        square, fourth = self.of("state_squares"), self.square("state_squares")
        return (q**2 * fourth - 2 * q * sites**2 * square + sites**4) / (q - 1) ** 2


CASES = [
    ("square", 32, "ising", 0.58, "sw", "xorwow"),
    ("triangular", 24, "potts:q=3", 0.47, "sw", "philox"),
    slow("kagome", 24, "potts:q=4", 0.72, "sw", "xorwow"),
    slow("cubic", 10, "ising", 0.36, "sw", "philox"),
    slow("honeycomb", 24, "potts:q=7", 0.8, "sw", "xorwow"),
    slow("square", 24, "potts:q=3", 0.63, "few:20,flip=0.8", "xorwow"),
    slow("cubic", 8, "ising", 0.36, "wolff", "xorwow"),
]


@pytest.mark.parametrize(("lattice", "size", "model", "p", "update", "rng"), CASES, ids=str)
def test_spins_and_clusters_agree(lattice, size, model, p, update, rng):
    item = chains_of(
        lattice, L=size, p=p, model=model, update=update, rng=rng, seed=3, measure="sizes",
        burn_in=60 if update == "sw" else 200,
    )  # fmt: skip
    means = Means(item)
    q = means.q
    assert abs(z_of(means.of("open_bonds") - p * means.of("satisfied"), 0.0)) <= 4
    assert abs(z_of(means.magnetization_square - means.of("sum_squares"), 0.0)) <= 4
    squared = means.square("sum_squares")
    (column,) = (column for column in item.columns if column.name == "sum_fourths")
    fourths = item.single_sum(column)[:, 0] / means.sweeps
    found = means.magnetization_fourth - (squared + 2 * (squared - fourths) / (q - 1))
    assert abs(z_of(found, 0.0)) <= 4
    # The identities are no tautologies: single chains are off.
    assert np.abs(found).min() > 0


@pytest.mark.parametrize(("lattice", "size", "model", "p", "update", "rng"), CASES[:5], ids=str)
def test_one_sweep_and_the_next_share_nothing_but_the_clusters(
    lattice, size, model, p, update, rng
):
    """Given the open bonds, M^2 before and after have the mean S_2 and are independent.

    Random numbers that are used twice, in bonds and spins or in two sweeps, correlate them.
    """
    item = chains_of(lattice, L=size, p=p, model=model, rng=rng, seed=4, measured=120)
    means = Means(item)
    q, sites = means.q, means.sites
    product, both = means.lagged(1, 1)
    lagged = (q**2 * product - q * sites**2 * both + sites**4) / (q - 1) ** 2
    assert abs(z_of(lagged - means.square("sum_squares"), 0.0)) <= 4


@pytest.mark.parametrize("rng", ["xorwow", "philox"])
@pytest.mark.parametrize("q", [2, 3, 4])
def test_at_the_transition_two_directions_are_q_times_as_likely_as_none(q, rng):
    """On the square torus at p / (1 - p) = sqrt(q), which is self-dual, of any size.

    A configuration and its dual, which winds in two directions if it winds in none, have as many
    clusters as the other has faces.  With Euler's relation on the torus their weights differ by q:
    J. L. Jacobsen and C. R. Scullard, J. Phys. A 46, 075001 (2013).
    """
    p = q**0.5 / (1 + q**0.5)
    item = chains_of("square", L=12, p=p, model=f"potts:q={q}", rng=rng, seed=6, chains=80)
    means = Means(item)
    two = means.of("wrapping_all") - means.of("wrapping_diagonal")
    none = 1 - means.of("wrapping_any")
    assert abs(z_of(two - q * none, 0.0)) <= 4
    assert abs(z_of(two - none, 0.0)) > 4


@pytest.mark.parametrize("rng", ["xorwow", "philox"])
@pytest.mark.parametrize("update", ["sw", slow("wolff"), slow("few:12,flip=0.7")])
@pytest.mark.parametrize(
    ("size", "scale"), [(16, 0.9), slow(16, 1.1), *(slow(32, scale) for scale in (0.95, 1.0))]
)
def test_energy_and_specific_heat_are_kaufmans(size, scale, update, rng):
    coupling = scale * CRITICAL_COUPLING
    burn_in = 60 if update == "sw" else 300
    item = chains_of(
        "square", L=size, K=coupling, model="ising", update=update, rng=rng, seed=7, chains=40,
        burn_in=burn_in, measured=200,
    )  # fmt: skip
    means, exact, sites = Means(item), ising_torus(size, size, coupling), size * size
    satisfied = sites * (1 - exact.energy / 2)
    assert abs(z_of(means.of("satisfied"), satisfied)) <= 4
    # About the exact mean, so that a chain's own mean takes nothing away.
    squared = means.square("satisfied")
    variance = squared - 2 * satisfied * means.of("satisfied") + satisfied**2
    assert abs(z_of(4 * coupling**2 * variance / sites, exact.specific_heat)) <= 4


UPDATES = ("sw", "wolff", "few:2,flip=0.6")
#: By q, where the spins of a few sites are neither ordered nor free.
P = {2: 0.4, 3: 0.45, 4: 0.5, 10: 0.6}


@pytest.mark.parametrize(
    ("name", "rng"),
    [
        slow("irregular", "philox"),
        ("square 3 x 3", "xorwow"),
        *(
            slow(name, rng)
            for name, rng in zip(TINY, ("philox", "xorwow") * 3)
            if name != "square 3 x 3"
        ),
    ],
)
@pytest.mark.parametrize("update", UPDATES)
def test_means_are_the_exact_ones(name, update, rng):
    topology = tiny_topology(name)
    sites, _ = graph_of(topology)
    for q, p in P.items():
        exact = exact_means(name, q, p)
        # A single cluster a sweep needs more of them to forget the start.
        burn_in = 15 if update == "sw" else 120
        rows, numbers = run_chains(
            topology, q=q, p=p, update=update, rng=rng, burn_in=burn_in, seed=q, tally=True
        )
        found = quantities_of(rows, numbers, sites, topology.num_points, q)
        assert len(found) == 8
        for quantity, values in found.items():
            if quantity not in exact:
                continue
            case = name, update, rng, q, quantity
            assert abs(z_of(values, exact[quantity])) <= 4, case
            if quantity in ("satisfied", "magnetization_square"):
                assert abs(z_of(values**2, exact[f"{quantity}_squared"])) <= 4, (*case, "squared")


@pytest.mark.parametrize("rng", GENERATORS)
@pytest.mark.parametrize("name", [slow("square 2 x 3"), slow("kagome 4 x 2"), slow("irregular")])
def test_consecutive_sweeps_are_correlated_as_they_should_be(name, rng):
    topology = tiny_topology(name)
    sites, bonds = graph_of(topology)
    for q in (2, 3):
        exact = lag_one_products(sites, bonds, q=q, p=P[q])
        rows, numbers = run_chains(topology, q=q, p=P[q], rng=rng, seed=20 + q, tally=True)
        for quantity, values in quantities_of(rows, numbers, sites, topology.num_points, q).items():
            products = values[:, 1:] * values[:, :-1]
            assert abs(z_of(products, exact[quantity])) <= 4, (name, q, quantity)


@pytest.mark.parametrize("labeler", [None, slow("four_step")])
@pytest.mark.parametrize(("q", "update"), [(2, "wolff"), (3, "wolff"), (3, "few:2,flip=0.6")])
def test_the_number_of_changed_spins_follows_from_the_update(q, update, labeler):
    """Wolff: <S_2> / N sites; k clusters: 0.6 times the sites of clusters with a chosen one."""
    topology, sites, p = tiny_topology("square 3 x 3"), 9, P[q]
    rule = Update.parse(update)
    chains = new_chains(labeler, "cpu", topology, rule.rule(q))
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
