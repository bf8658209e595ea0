"""Means of the Potts model on a tiny graph from all spins, and over one Swendsen-Wang update.

They check :func:`percolab.validation.enumeration.bond_means`, which sums over sets of open
bonds: spins and open bonds are marginals of one joint distribution.  A Swendsen-Wang update
(R. H. Swendsen and J.-S. Wang, Phys. Rev. Lett. 58, 86 (1987)) goes from spins to bonds and from
these to new spins, so that the mean product of one quantity before and after is the mean square of
its conditional mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from percolab.validation.enumeration import (
    Bonds,
    Floats,
    Integers,
    Values,
    _all_labels,
    _bond_weights,
    _check,
    _describe_clusters,
    _satisfied,
    _satisfied_given,
    _spins_given,
    _with_squares,
)

#: The most states to enumerate, and to enumerate at a time.
_MOST_STATES, _STATES_AT_ONCE = 1 << 22, 1 << 16


def spin_means(num_sites: int, bonds: Bonds, *, q: int, p: float) -> dict[str, float]:
    """Return means of functions of spins and of numbers of bonds, from all q^(sites - 1) spins.

    bonds: pairs of sites 0 ... num_sites - 1; repeated ones count as often, and a bond of a site
    with itself is always satisfied.  The spin of site 0 is fixed, as all q are alike.  Returns
    satisfied, open_bonds, magnetization_square, largest_state and their squares.  ValueError where
    a site does not exist, q is below 2, p not in [0, 1), or there are more than 2^22 states.

    >>> means = spin_means(2, [(0, 1)], q=2, p=0.5)
    >>> round(means["satisfied"], 12), round(means["magnetization_square"], 12)
    (0.666666666667, 2.666666666667)
    """
    _check(num_sites, bonds, q, p)
    total, sums = 0.0, dict[str, float]()
    for spins in _all_spins(num_sites, q):
        satisfied = _satisfied(spins, bonds).sum(axis=1).astype(np.float64)
        weights = (1 - p) ** (len(bonds) - satisfied)
        total += float(weights.sum())
        values = _with_squares({"satisfied": satisfied, **_spin_means(spins, q)})
        values |= _open_bonds(satisfied, values["satisfied_squared"], p)
        for name, column in values.items():
            sums[name] = sums.get(name, 0.0) + float(weights @ column)
    return {name: value / total for name, value in sums.items()}


def lag_one_products(num_sites: int, bonds: Bonds, *, q: int, p: float) -> dict[str, float]:
    """Return mean products of a quantity before and after one Swendsen-Wang update, stationary.

    Quantities of spins (satisfied, magnetization_square, largest_state) are those of the spins
    before and after; the others those of the open bonds of two successive updates.  Arguments and
    errors as for :func:`spin_means` and ``bond_means``.

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


def _all_spins(num_sites: int, q: int) -> Iterator[Integers]:
    """Yield all spins 0 ... q - 1 with site 0 having 0, int64 (states, num_sites), in parts."""
    states = q ** (num_sites - 1)
    if states > _MOST_STATES:
        raise ValueError(f"{q}^{num_sites - 1} states: at most {_MOST_STATES} are enumerated")
    place = q ** np.arange(num_sites - 1)
    for first in range(0, states, _STATES_AT_ONCE):
        numbers = np.arange(first, min(first + _STATES_AT_ONCE, states))
        spins = np.zeros((len(numbers), num_sites), np.int64)
        spins[:, 1:] = numbers[:, None] // place % q
        yield spins


def _spin_means(spins: Integers, q: int) -> Values:
    counts = np.stack([(spins == state).sum(axis=1) for state in range(q)]).astype(np.float64)
    square = (q * (counts**2).sum(axis=0) - spins.shape[1] ** 2) / (q - 1)
    return {"magnetization_square": square, "largest_state": counts.max(axis=0)}


def _open_bonds(satisfied: Floats, squared: Floats, p: float) -> Values:
    """Return the means, given the spins, of the open bonds: a binomial number."""
    mean, mean_square = p * satisfied, p * (1 - p) * satisfied + p**2 * squared
    return {"open_bonds": mean, "open_bonds_squared": mean_square}


def _satisfied_weights(num_sites: int, bonds: Bonds, q: int, p: float) -> Floats:
    """Return the probability of every set of satisfied bonds, float64 (2^bonds,)."""
    weights = np.zeros(2 ** len(bonds))
    for spins in _all_spins(num_sites, q):
        satisfied = _satisfied(spins, bonds)
        index = (satisfied << np.arange(len(bonds))).sum(axis=1)
        np.add.at(weights, index, (1 - p) ** (len(bonds) - satisfied.sum(axis=1)))
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
