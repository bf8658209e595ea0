"""All sets of open bonds of a tiny graph: counts of percolation, and means of the Potts model.

**Percolation.**  Counts c[n] by the number n of open bonds represent the polynomial sum of c[n] p^n
(1 - p)^(E - n).

**Potts model.**  Spins s = 1 ... q have the weight (1 - p)^(-satisfied), satisfied being the number
of bonds between equal spins.  Sets of open bonds have the weight p^open (1 - p)^(bonds - open)
q^clusters.  Both are marginals of one joint distribution: given the spins, satisfied bonds are open
with probability p; given the open bonds, every cluster has one of q spins.  Each quantity is summed
over its own marginal.

Names of the quantities, each followed by "_squared" for its square:

    satisfied             bonds between equal spins
    open_bonds            open bonds
    magnetization_square  M^2 = (q sum N_a^2 - sites^2) / (q - 1), N_a sites having the spin a
    largest_state         the largest N_a
    clusters              clusters, single sites included
    sum_squares           S_2, the sum of the squared sizes of all clusters
    sum_fourths           S_4, of their fourth powers
    largest_cluster       sites of the largest cluster

Sources: C. M. Fortuin and P. W. Kasteleyn, Physica 57, 536 (1972); R. G. Edwards and A. D. Sokal,
Phys. Rev. D 38, 2009 (1988).
"""

from collections.abc import Collection, Sequence
from math import comb, perm

import numpy as np
from numpy.typing import NDArray

Bonds = Sequence[tuple[int, int]]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Values of quantities in every state, float64 (states,), by name.
Values = dict[str, Floats]

#: Counts by number of open bonds.
Counts = tuple[int, ...]

#: The largest numbers of bonds whose sets are enumerated, and of states of spins.
_MOST_BONDS, _MOST_STATES = 20, 2**20


def count_configurations(
    num_sites: int, bonds: Bonds, ends: Sequence[tuple[Collection[int], Collection[int]]] = ()
) -> list[Counts]:
    """Return sums over the configurations with n open bonds, n = 0 ... E, of several quantities.

    They are the number of clusters, the squared cluster sizes, and for each source and target of
    ``ends`` whether they are connected.

    >>> count_configurations(2, [(0, 1)], [([0], [1])])
    [(2, 1), (2, 4), (0, 1)]
    """
    labels, num_open = _all_labels(num_sites, bonds)
    values = [_num_clusters(labels), (_sizes(labels) ** 2).sum(axis=1)]
    for source, target in ends:
        first, last = labels[:, list(source)], labels[:, list(target)]
        values.append((first[:, :, None] == last[:, None]).any(axis=(1, 2)))
    sums = (np.bincount(num_open, each, len(bonds) + 1) for each in values)
    return [tuple(each.astype(int).tolist()) for each in sums]


def evaluate_counts(counts: Counts, p: float) -> float:
    """Return the polynomial of counts at p: a probability, or a mean where quantities are summed.

    >>> evaluate_counts((0, 2, 1), 0.5)
    0.75
    """
    bonds = len(counts) - 1
    return sum(count * p**n * (1 - p) ** (bonds - n) for n, count in enumerate(counts))


def mean_threshold(counts: Counts) -> float:
    """Return the mean p at which samples become connected, 1 minus the integral of counts.

    >>> round(mean_threshold((0, 2, 1)), 12)
    0.333333333333
    """
    bonds = len(counts) - 1
    return 1 - sum(count / (comb(bonds, n) * (bonds + 1)) for n, count in enumerate(counts))


def bond_means(num_sites: int, bonds: Bonds, *, q: int, p: float) -> dict[str, float]:
    """Return the means of all quantities and their squares, from all spins and sets of open bonds.

    bonds: pairs of sites 0 ... num_sites - 1; repeated bonds count repeatedly, and a bond from a
    site to itself is always satisfied.  ValueError: a site does not exist, q is below 2, p is not
    in [0, 1), there are more than 20 bonds, or more than 2^20 states up to relabeling of spins.

    >>> means = bond_means(2, [(0, 1)], q=10, p=0.5)
    >>> round(means["open_bonds"], 12), round(means["clusters"], 12)
    (0.090909090909, 1.909090909091)
    """
    means = spin_means(num_sites, bonds, q=q, p=p)
    labels, num_open = _all_labels(num_sites, bonds)
    values = _with_squares(
        {"open_bonds": num_open.astype(np.float64), **_describe_clusters(labels)}
    )
    weights = _bond_weights(labels, num_open, len(bonds), q, p)
    return means | {name: float(weights @ column) for name, column in values.items()}


def spin_means(num_sites: int, bonds: Bonds, *, q: int, p: float) -> dict[str, float]:
    """Return the means of functions of spins alone and their squares; arguments as bond_means.

    They are satisfied, magnetization_square, and largest_state.

    >>> means = spin_means(2, [(0, 1)], q=2, p=0.5)
    >>> round(means["satisfied"], 12), round(means["magnetization_square"], 12)
    (0.666666666667, 2.666666666667)
    """
    _check(num_sites, bonds, q, p)
    spins = _all_spins(num_sites, q)
    satisfied = _satisfied(spins, bonds).sum(axis=1).astype(np.float64)
    weights = (1 - p) ** (len(bonds) - satisfied) * _count_namings(spins, q)
    counts = np.stack([(spins == spin).sum(axis=1) for spin in range(q)]).astype(np.float64)
    values = {
        "satisfied": satisfied,
        "magnetization_square": (q * (counts**2).sum(axis=0) - num_sites**2) / (q - 1),
        "largest_state": counts.max(axis=0),
    }
    total = weights.sum()
    return {name: float(weights @ each / total) for name, each in _with_squares(values).items()}


def _all_spins(num_sites: int, q: int) -> Integers:
    """Return all spins up to relabeling, int64 (states, num_sites): first uses of labels ascend.

    ValueError for more than 2^20 states.
    """
    spins = np.zeros((1, 1), np.int64)
    for site in range(1, num_sites):
        seen = spins.max(axis=1) + 1
        parts = [spins[seen >= spin] for spin in range(min(site + 1, q))]
        if sum(map(len, parts)) > _MOST_STATES:
            raise ValueError(f"{num_sites} sites: more than {_MOST_STATES} states of their spins")
        spins = np.concatenate([np.insert(part, site, n, axis=1) for n, part in enumerate(parts)])
    return spins


def _count_namings(spins: Integers, q: int) -> Floats:
    """Return the number of ways to assign q labels to the spins of every state."""
    namings = np.array([perm(q, seen) for seen in range(q + 1)], np.float64)
    return np.asarray(namings[spins.max(axis=1) + 1])


def _check(num_sites: int, bonds: Bonds, q: int, p: float) -> None:
    if num_sites < 1:
        raise ValueError(f"{num_sites} sites: must be at least 1")
    for bond in bonds:
        if not all(0 <= site < num_sites for site in bond):
            raise ValueError(f"bond {bond}: its sites must be from 0 to {num_sites - 1}")
    if q < 2:
        raise ValueError(f"q = {q}: must be at least 2")
    if not 0 <= p < 1:
        raise ValueError(f"p = {p}: must be at least 0 and less than 1")


def _satisfied(sites: Integers, bonds: Bonds) -> NDArray[np.bool_]:
    """Return whether both ends of a bond have the same spin, or label, bool (states, bonds)."""
    ends = np.array(bonds, np.int64).reshape(-1, 2)
    return np.asarray(sites[:, ends[:, 0]] == sites[:, ends[:, 1]])


def _with_squares(values: Values) -> Values:
    return values | {f"{name}_squared": column**2 for name, column in values.items()}


def _all_labels(num_sites: int, bonds: Bonds) -> tuple[Integers, Integers]:
    """Return the smallest site of the cluster of every site, and the number of open bonds.

    int64 (2^bonds, num_sites) and (2^bonds,); bit e of the index says whether bond e is open.
    """
    if len(bonds) > _MOST_BONDS:
        raise ValueError(f"{len(bonds)} bonds: at most {_MOST_BONDS} are enumerated")
    labels, num_open = np.arange(num_sites)[None], np.zeros(1, np.int64)
    for i, j in bonds:
        low = np.minimum(labels[:, i], labels[:, j])[:, None]
        high = np.maximum(labels[:, i], labels[:, j])[:, None]
        labels = np.concatenate([labels, np.where(labels == high, low, labels)])
        num_open = np.concatenate([num_open, num_open + 1])
    return labels, num_open


def _bond_weights(labels: Integers, num_open: Integers, num_bonds: int, q: int, p: float) -> Floats:
    """Return the probability of every set of open bonds, float64 (2^bonds,)."""
    weights = p**num_open * (1 - p) ** (num_bonds - num_open) * float(q) ** _num_clusters(labels)
    return np.asarray(weights / weights.sum(), np.float64)


def _num_clusters(labels: Integers) -> Integers:
    return np.asarray((labels == np.arange(labels.shape[1])).sum(axis=1), np.int64)


def _sizes(labels: Integers) -> Integers:
    """Return the sizes of clusters at their smallest sites, 0 elsewhere, int64 (states, sites)."""
    sites = range(labels.shape[1])
    return np.stack([(labels == site).sum(axis=1) for site in sites], axis=1)


def _describe_clusters(labels: Integers) -> Values:
    sizes = _sizes(labels).astype(np.float64)
    return {
        "clusters": _num_clusters(labels).astype(np.float64),
        "sum_squares": (sizes**2).sum(axis=1),
        "sum_fourths": (sizes**4).sum(axis=1),
        "largest_cluster": sizes.max(axis=1),
    }
