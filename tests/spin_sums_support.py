"""Means of the Potts model on a tiny graph given its open bonds, and over one Swendsen-Wang update.

They check :func:`percolab.validation.enumeration.spin_means`, which sums over spins: these and open
bonds are marginals of one joint distribution.  A Swendsen-Wang update
(R. H. Swendsen and J.-S. Wang, Phys. Rev. Lett. 58, 86 (1987)) goes from spins to bonds and from
these to new spins, so that the mean product of one quantity before and after is the mean square of
its conditional mean.
"""

from __future__ import annotations

import numpy as np

from percolab.validation.enumeration import (
    Bonds,
    Floats,
    Integers,
    Values,
    _all_labels,
    _all_spins,
    _bond_weights,
    _check,
    _count_namings,
    _describe_clusters,
    _satisfied,
    _sizes,
)


def spin_means_given_bonds(num_sites: int, bonds: Bonds, *, q: int, p: float) -> dict[str, float]:
    """Return the means of ``spin_means`` from all sets of open bonds."""
    labels, num_open = _all_labels(num_sites, bonds)
    weights = _bond_weights(labels, num_open, len(bonds), q, p)
    given = _satisfied_given(labels, bonds, q) | _spins_given(labels, q)
    return {name: float(weights @ column) for name, column in given.items()}


def lag_one_products(num_sites: int, bonds: Bonds, *, q: int, p: float) -> dict[str, float]:
    """Return mean products of a quantity before and after one Swendsen-Wang update, stationary.

    Quantities of spins (satisfied, magnetization_square, largest_state) are those of the spins
    before and after; the others those of the open bonds of two successive updates.  Arguments and
    errors as for ``bond_means``.

    >>> products = lag_one_products(2, [(0, 1)], q=2, p=0.5)
    >>> round(products["satisfied"], 12), round(products["open_bonds"], 12)
    (0.5, 0.166666666667)
    """
    _check(num_sites, bonds, q, p)
    labels, num_open = _all_labels(num_sites, bonds)
    weights = _bond_weights(labels, num_open, len(bonds), q, p)
    of_spins = _satisfied_given(labels, bonds, q) | _spins_given(labels, q)
    products = {
        name: float(weights @ column**2)
        for name, column in of_spins.items()
        if not name.endswith("_squared")
    }
    of_bonds = {"open_bonds": num_open.astype(np.float64), **_describe_clusters(labels)}
    given = {name: _average_over_open(column, p) for name, column in of_bonds.items()}
    of_satisfied = _satisfied_weights(num_sites, bonds, q, p)
    products |= {name: float(of_satisfied @ column**2) for name, column in given.items()}
    return products


def _satisfied_weights(num_sites: int, bonds: Bonds, q: int, p: float) -> Floats:
    """Return the probability of every set of satisfied bonds, float64 (2^bonds,)."""
    weights, spins = np.zeros(2 ** len(bonds)), _all_spins(num_sites, q)
    satisfied = _satisfied(spins, bonds)
    index = (satisfied << np.arange(len(bonds))).sum(axis=1)
    of_spins = (1 - p) ** (len(bonds) - satisfied.sum(axis=1)) * _count_namings(spins, q)
    np.add.at(weights, index, of_spins)
    return np.asarray(weights / weights.sum(), np.float64)


def _average_over_open(values: Floats, p: float) -> Floats:
    """Return the mean over the open ones of a set of satisfied bonds, for every such set.

    values, and the result: float64 (2^bonds,), by the set of open, or satisfied, bonds.
    """
    means = values.copy()
    for bond in range(len(values).bit_length() - 1):
        pairs = means.reshape(-1, 2, 2**bond)
        pairs[:, 1] = p * pairs[:, 1] + (1 - p) * pairs[:, 0]
    return means


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
