"""What the tests of spins share: tiny graphs with exact means, chains, and means with errors."""

from functools import cache

import numpy as np
from helpers import lattice

from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.lattices.bethe import bethe_topology
from percolab.lattices.graph import graph_topology
from percolab.lattices.topology import Topology
from percolab.spins.chains import new_chains
from percolab.spins.update import Update
from percolab.spins.words import Chain
from percolab.validation.enumeration import (
    Bonds,
    Integers,
    Values,
    _all_labels,
    _bond_weights,
    _satisfied,
    _sizes,
    bond_means,
    spin_means,
)

#: Parallel bonds, a loop, a site without bonds, and one whose only bond is a loop.
IRREGULAR = (7, [(0, 3), (3, 0), (0, 3), (1, 3), (2, 2), (2, 4), (4, 1), (1, 4), (6, 6)])

#: Tiny lattices by name: lattice and shape, all of them tori.
TORI = {
    "square 3 x 3": ("square", (3, 3)),
    "square 2 x 3": ("square", (2, 3)),
    "triangular 2 x 2": ("triangular", (2, 2)),
    "kagome 4 x 2": ("kagome", (4, 2)),
    "cubic 2 x 2 x 2": ("cubic", (2, 2, 2)),
}
TINY = (*TORI, "irregular")

#: A sweep of many chains, without its model.
SPIN_SWEEP = {
    "L": [6, 9],
    "p": [0.5, 0.6],
    "boundary": "periodic",
    "burn_in": 10,
    "sweeps": 25,
    "samples": 15 * 8,
    "seed": 5,
    "device": "cpu",
    "workers": 1,
}


def tiny_topology(name: str) -> Topology:
    if name == "irregular":
        return graph_topology(*IRREGULAR)
    lattice_name, shape = TORI[name]
    return lattice(lattice_name).topology(shape, ("periodic",) * len(shape))


def graph_of(topology: Topology) -> tuple[int, list[tuple[int, int]]]:
    """Return the sites of a topology, numbered without vacant points, and its bonds."""
    ends = topology.bonds()[:, 1:]
    there = np.flatnonzero(
        np.unpackbits(topology.occupied.view(np.uint8), bitorder="little")[: topology.num_points]
    )
    number = {int(site): n for n, site in enumerate(there)}
    return len(there), [(number[int(i)], number[int(j)]) for i, j in ends]


@cache
def exact_means(name: str, q: int, p: float) -> dict[str, float]:
    """Return the exact stationary means of a tiny graph; of spins alone, and S_2, with 18 bonds.

    Of bonds that are all there twice, one with p' = 1 - (1 - p)^2 gives the same spins and
    clusters: 24 bonds of the 2 x 2 x 2 torus are more than can be enumerated.
    """
    sites, bonds = graph_of(tiny_topology(name))
    if len(bonds) < 18:
        return bond_means(sites, bonds, q=q, p=p)
    if len(bonds) == 18:
        means = spin_means(sites, bonds, q=q, p=p)
        satisfied, square = means["satisfied"], means["magnetization_square"]
        return means | {"open_bonds": p * satisfied, "sum_squares": square}
    single = sorted({tuple(sorted(bond)) for bond in bonds})
    assert sorted(single * 2) == sorted(tuple(sorted(bond)) for bond in bonds)
    means = bond_means(sites, single, q=q, p=1 - (1 - p) ** 2)
    means["satisfied"] *= 2
    means["satisfied_squared"] *= 4
    means["open_bonds"] = p * means["satisfied"]
    return means


def key_of(seed: int, number: int, p: float) -> Chain:
    """Return the keys of a chain, with seeds of its own for bonds, spins and sites."""
    seeds = (np.uint64(seed * 1000003 + n) for n in (1, 2, 3))
    return Chain(*seeds, np.uint64(number), np.uint64(p_to_threshold(p)))


def knotted_graph(sites: int) -> Topology:
    """Return a graph of about two bonds a site, with a loop and parallel bonds."""
    bonds = [(i, (7 * i + 3) % sites) for i in range(sites)] + [(4, 4), (1, 2), (2, 1), (2, 1)]
    return graph_topology(sites, bonds)


def assert_chains_equal(
    chains, keys, generator: int, pieces, *, skipped: int = 0, tally: bool = False,
    every: int = 1, where: object = "",
) -> None:  # fmt: skip
    """Assert that chains have the rows, numbers and planes of the CPU, bit for bit.

    Every other chain begins at random.  pieces: sweeps of which all is fetched, some at a time;
    before the last of them the next sweep is looked at, at p = 0.5 and at the chain's own p.
    skipped: sweeps before them; every: compare one chain of so many.
    """
    starts = [n % 2 == 1 for n in range(len(keys))]
    middle = np.full(len(keys), p_to_threshold(0.5), np.uint64)
    own = np.array([key.threshold for key in keys])

    def swept(chains, middle, own):
        if skipped:
            chains.skip(skipped)
        parts = [chains.advance(sweeps) for sweeps in pieces[:-1]]
        at_own, at_middle = chains.rows_at(own), chains.rows_at(middle)
        last = chains.advance(pieces[-1])
        np.testing.assert_array_equal(at_own, last[0][:, 0], err_msg=f"{where}, own p")
        fetched = [np.concatenate(part, axis=1) for part in zip(*parts, last)]
        return [at_middle, *fetched, chains.copy_planes()]

    chains.begin(generator, keys, starts)
    found = swept(chains, middle, own)
    batch = chains.labeler.batch
    for n in range(0, len(keys), every):
        one = new_chains(None, "cpu", batch.topology, chains.rule, tally=tally)
        one.begin(generator, [keys[n]], [starts[n]])
        for array, expected in zip(found, swept(one, middle[:1], own[n : n + 1]), strict=True):
            np.testing.assert_array_equal(array[n], expected[0], err_msg=f"{where}, chain {n}")


def assert_chains_resume(chains, keys, generator: int, *, skipped: int, sweeps: int) -> None:
    """Assert that chains continue from spins that are given as from their own."""
    chains.begin(generator, keys, [n % 2 == 1 for n in range(len(keys))])
    chains.skip(skipped)
    state = chains.copy_planes()
    expected = chains.advance(sweeps)
    # From another start, which the given state replaces; nothing measured before is left.
    chains.begin(generator, keys, [True] * len(keys))
    chains.advance(sweeps)
    chains.resume(state, skipped)
    for one, other in zip(chains.advance(sweeps), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def run_chains(
    topology: Topology,
    *,
    q: int,
    p: float,
    update: str = "sw",
    rng: str = "xorwow",
    labeler: str | None = None,
    chains: int = 300,
    burn_in: int = 20,
    sweeps: int = 60,
    seed: int = 1,
    tally: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and numbers of spins of many chains, int64 (chains, sweeps, width) each.

    Every other chain starts at random, the others ordered.
    """
    rule = Update.parse(update).rule(q)
    one = new_chains(labeler, "cpu", topology, rule, tally=tally)
    rows, numbers = [], []
    for number in range(chains):
        one.begin(GENERATORS[rng], [key_of(seed, number, p)], [number % 2 == 1])
        one.advance(burn_in)
        row, spins = one.advance(sweeps)
        rows.append(row[0])
        numbers.append(spins[0])
    return np.array(rows), np.array(numbers)


def z_of(values: np.ndarray, expected: float) -> float:
    """Return by how many errors the mean over chains (chains, ...) is off; errors of their scatter.

    What never varies must be exact.
    """
    means = values.reshape(len(values), -1).mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(len(means))
    if error <= 1e-12 * max(abs(expected), 1):
        return 0.0 if abs(means.mean() - expected) <= 1e-9 * max(abs(expected), 1) else np.inf
    return float((means.mean() - expected) / error)


def parity_case(name: str) -> Topology:
    """Return a topology of odd size on which labelers are compared."""
    if name == "graph":
        return knotted_graph(150)
    if name == "bethe":
        return bethe_topology(5)
    shape, boundary = {
        "square": ((33, 17), "periodic"),
        "square open": ((37, 11), "open"),
        "honeycomb": ((34, 6), "periodic"),
        "kagome": ((18, 14), "periodic"),
        "cubic": ((7, 5, 9), "periodic"),
    }[name]
    return lattice(name.partition(" ")[0]).topology(shape, (boundary,) * len(shape))


PARITY = ("square", "square open", "honeycomb", "kagome", "cubic", "graph", "bethe")


def spin_means_given_bonds(num_sites: int, bonds: Bonds, *, q: int, p: float) -> dict[str, float]:
    """Return the means of ``spin_means`` from all sets of open bonds."""
    labels, num_open = _all_labels(num_sites, bonds)
    weights = _bond_weights(labels, num_open, len(bonds), q, p)
    given = _satisfied_given(labels, bonds, q) | _spins_given(labels, q)
    return {name: float(weights @ column) for name, column in given.items()}


def _satisfied_given(labels: Integers, bonds: Bonds, q: int) -> Values:
    """Return the means, given the open bonds, of the satisfied bonds and of their squared number.

    Bonds inside a cluster are satisfied; those between two are so together, with probability 1/q,
    and independently of those between two others.
    """
    inside = _satisfied(labels, bonds)
    ends = np.array(bonds, np.int64).reshape(-1, 2)
    low = np.minimum(labels[:, ends[:, 0]], labels[:, ends[:, 1]])
    high = np.maximum(labels[:, ends[:, 0]], labels[:, ends[:, 1]])
    between = np.where(inside, -1, low * labels.shape[1] + high)
    together = np.zeros(len(labels))
    for pair in between.T:
        together += ((between == pair[:, None]) & (pair[:, None] >= 0)).sum(axis=1)
    mean = inside.sum(axis=1) + (~inside).sum(axis=1) / q
    return {"satisfied": mean, "satisfied_squared": mean**2 + together * (1 / q) * (1 - 1 / q)}


def _spins_given(labels: Integers, q: int) -> Values:
    """Return the means, given the open bonds, of functions of the numbers of sites N_a."""
    sizes = -np.sort(-_sizes(labels), axis=1)
    shapes, where = np.unique(sizes, axis=0, return_inverse=True)
    means = [_occupation_means(tuple(row[row > 0].tolist()), q) for row in shapes]
    return {name: np.array([mean[name] for mean in means])[where.ravel()] for name in means[0]}


def _occupation_means(sizes: tuple[int, ...], q: int) -> dict[str, float]:
    """Return means over all spins of clusters, which get theirs one after another."""
    occupations: dict[tuple[int, ...], float] = {(): 1.0}
    for size in sizes:
        following: dict[tuple[int, ...], float] = {}
        for numbers, probability in occupations.items():
            options = [
                (numbers[:n] + (number + size,) + numbers[n + 1 :], probability / q)
                for n, number in enumerate(numbers)
            ]
            options.append((numbers + (size,), probability * (q - len(numbers)) / q))
            for option, share in options:
                key = tuple(sorted(option))
                following[key] = following.get(key, 0.0) + share
        occupations = {key: share for key, share in following.items() if share > 0}
    means = dict.fromkeys(("magnetization_square", "largest_state"), 0.0)
    means |= dict.fromkeys((f"{name}_squared" for name in tuple(means)), 0.0)
    for numbers, probability in occupations.items():
        square = (q * sum(n**2 for n in numbers) - sum(sizes) ** 2) / (q - 1)
        for name, value in (("magnetization_square", square), ("largest_state", max(numbers))):
            means[name] += probability * value
            means[f"{name}_squared"] += probability * value**2
    return means
