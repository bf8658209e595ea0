"""What holds exactly at any size: spins against clusters, one sweep against the next, Kaufman."""

import numpy as np
import pytest
from helpers import slow
from spin_support import z_of

from percolab.analysis.theory.ising import CRITICAL_COUPLING, ising_torus
from percolab.api import sweep
from percolab.measure.spins import LAGS, SERIES


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
