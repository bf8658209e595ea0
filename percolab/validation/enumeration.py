"""All configurations of a tiny graph by deletion and contraction, without cluster labels.

Of the configurations of a graph G, those without bond e are the configurations of G - e, and those
with it are those of G / e, in which its two ends are one site.  Counts by number of open bonds:
c[n] stands for the polynomial sum of c[n] p^n (1 - p)^(E - n).

Source: C. M. Fortuin and P. W. Kasteleyn, Physica 57, 536 (1972).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from math import comb

import numpy as np

Bonds = tuple[tuple[int, int], ...]
Counts = tuple[int, ...]


def cluster_counts(num_sites: int, bonds: Sequence[tuple[int, int]]) -> Counts:
    """Return the clusters, summed over the configurations with n open bonds; n = 0 ... E.

    >>> cluster_counts(2, [(0, 1)])
    (2, 1)
    """
    return tuple(_clusters(num_sites, tuple(bonds)))


@cache
def _clusters(num_sites: int, bonds: Bonds) -> Counts:
    if not bonds:
        return (num_sites,)
    (kept, merged), rest = bonds[0], bonds[1:]
    closed = _clusters(num_sites, rest)
    opened = _clusters(num_sites - (kept != merged), _contracted(rest, merged, kept))
    return _joined(closed, opened)


def connected_counts(
    bonds: Sequence[tuple[int, int]], source: Collection[int], target: Collection[int]
) -> Counts:
    """Return how many configurations with n open bonds connect source and target; n = 0 ... E.

    >>> connected_counts([(0, 1), (0, 1)], [0], [1])
    (0, 2, 1)
    """
    if set(source) & set(target):
        return _every_configuration(len(bonds))
    # Two additional sites represent the two sets.
    ends = dict.fromkeys(source, -1) | dict.fromkeys(target, -2)
    named = tuple((ends.get(i, i), ends.get(j, j)) for i, j in bonds)
    return _connected(named, -1, -2)


@cache
def _connected(bonds: Bonds, source: int, target: int) -> Counts:
    if source == target:
        return _every_configuration(len(bonds))
    at = next((n for n, ends in enumerate(bonds) if source in ends), None)
    if at is None:
        return (0,) * (len(bonds) + 1)
    i, j = bonds[at]
    other, rest = (j if i == source else i), bonds[:at] + bonds[at + 1 :]
    closed = _connected(rest, source, target)
    end = source if other == target else target
    opened = _connected(_contracted(rest, other, source), source, end)
    return _joined(closed, opened)


def squared_size_counts(num_sites: int, bonds: Sequence[tuple[int, int]]) -> Counts:
    """Return the sum of squared cluster sizes over the configurations with n open bonds.

    It is the number of ordered pairs of connected sites.

    >>> squared_size_counts(2, [(0, 1)])
    (2, 4)
    """
    total = num_sites * np.array(_every_configuration(len(bonds)))
    for i in range(num_sites):
        for j in range(i):
            total += 2 * np.array(connected_counts(bonds, [i], [j]))
    return tuple(total.tolist())


def evaluate_counts(counts: Sequence[int], p: float) -> float:
    """Return the polynomial of counts at p: a probability, or a mean where quantities are summed.

    >>> evaluate_counts((0, 2, 1), 0.5)
    0.75
    """
    bonds = len(counts) - 1
    return sum(count * p**n * (1 - p) ** (bonds - n) for n, count in enumerate(counts))


def mean_threshold(counts: Sequence[int]) -> float:
    """Return the mean p at which samples become connected, 1 less the integral of counts.

    >>> round(mean_threshold((0, 2, 1)), 12)
    0.333333333333
    """
    bonds = len(counts) - 1
    terms = (count / (comb(bonds, n) * (bonds + 1)) for n, count in enumerate(counts))
    return 1 - sum(terms)


def _every_configuration(num_bonds: int) -> Counts:
    return tuple(comb(num_bonds, n) for n in range(num_bonds + 1))


def _contracted(bonds: Bonds, merged: int, kept: int) -> Bonds:
    return tuple((kept if i == merged else i, kept if j == merged else j) for i, j in bonds)


def _joined(closed: Counts, opened: Counts) -> Counts:
    """Return the counts with a bond, from those without it: closed, or open."""
    return tuple(a + b for a, b in zip((*closed, 0), (0, *opened), strict=True))
