"""Exact probabilities to span open squares at p_c, and how they fall with L: q from 1 to 3.

    python results/spins/open_sides.py > results/spins/open_sides.txt

A transfer matrix over the connections of a row, of which every cluster knows whether it touches
the first row.  The exponent x is that of R(L) = R + a L^-x + b L^-(x + 1) + c L^-(x + 2) through
five neighbouring sizes; beside it is 2 / m, sqrt(q) = 2 cos(pi / (m + 1)).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

QS = np.array([1.0, 1.5, 2.0, 2.5, 3.0])
SIZES = range(2, 11)


class Row(NamedTuple):
    """The states of a row: where each leads when a bond upwards is closed, or one along it opens.

    above, along: int (states, sites).  is_cut: whether that leaves a cluster behind.  clusters:
    int (states,), is_spanning: bool (states,).
    """

    above: Any
    is_cut: Any
    along: Any
    clusters: Any
    is_spanning: Any


def rename(state: Any) -> tuple[Any, ...]:
    """Return a state, of every site (cluster, whether that touches), with clusters by order."""
    names: dict[int, int] = {}
    return tuple((names.setdefault(cluster, len(names)), touches) for cluster, touches in state)


def make_row(size: int) -> Row:
    """Return all states of a row of so many sites."""
    states = {tuple((n, True) for n in range(size)): 0}
    order = list(states)
    above, along = [], []
    for state in order:
        # The list grows while it is read.
        own_above, own_along = [], []
        for n in range(size):
            cluster = state[n][0]
            alone = sum(other == cluster for other, _ in state) == 1
            changed = rename((*state[:n], (size, False), *state[n + 1 :]))
            if changed not in states:
                states[changed] = len(order)
                order.append(changed)
            own_above.append((states[changed], alone))
        for (one, first), (other, second) in itertools.pairwise(state):
            joined = (one, first or second)
            changed = rename(joined if each in (one, other) else (each, own) for each, own in state)
            if changed not in states:
                states[changed] = len(order)
                order.append(changed)
            own_along.append(states[changed])
        above.append(own_above)
        along.append(own_along)
    places = np.array(above)
    clusters = np.array([len({cluster for cluster, _ in state}) for state in order])
    is_spanning = np.array([any(touches for _, touches in state) for state in order])
    return Row(places[..., 0], places[..., 1].astype(bool), np.array(along), clusters, is_spanning)


def span_probabilities(size: int) -> Any:
    """Return the probabilities to span a square from the first row to the last, for all QS."""
    row, p = make_row(size), np.sqrt(QS) / (1 + np.sqrt(QS))
    weights = np.zeros((row.clusters.size, QS.size))
    weights[0] = 1.0

    def moved(to: Any, values: Any) -> Any:
        found = [np.bincount(to, own, minlength=len(values)) for own in values.T]
        return np.stack(found, axis=1)

    for y in range(size):
        for n in range(size if y else 0):
            cut = np.where(row.is_cut[:, n, None], QS, 1.0) * weights
            weights = p * weights + (1 - p) * moved(row.above[:, n], cut)
        for n in range(size - 1):
            weights = (1 - p) * weights + p * moved(row.along[:, n], weights)
        weights /= weights.sum(axis=0)
    weights *= QS ** row.clusters[:, None]
    return weights[row.is_spanning].sum(axis=0) / weights.sum(axis=0)


def find_exponents(sizes: Any, values: Any) -> list[float]:
    """Return the exponents x with which five values are as the formula says."""
    tried = np.linspace(0.05, 1.5, 2901)
    misses = []
    for x in tried:
        powers = [np.ones(5), *(sizes ** -(x + n) for n in range(3))]
        matrix = np.stack(powers, axis=1)
        fitted = np.linalg.solve(matrix[:4], values[:4])
        misses.append(matrix[4] @ fitted - values[4])
    changes = np.flatnonzero(np.diff(np.sign(misses)))
    return [float(tried[change]) for change in changes]


def main() -> None:
    """Print probabilities and exponents."""
    table = np.array([span_probabilities(size) for size in SIZES])
    print("L   " + "".join(f"q = {q:<12g}" for q in QS))
    for size, row in zip(SIZES, table, strict=True):
        print(f"{size:<4d}" + "".join(f"{value:<16.10f}" for value in row))
    m = np.pi / np.arccos(np.sqrt(QS) / 2) - 1
    print("2/m " + "".join(f"{value:<16.4f}" for value in 2 / m))
    sizes = np.array(SIZES, float)
    for last in range(8, 11):
        part = slice(last - 6, last - 1)
        found = [find_exponents(sizes[part], table[part, k]) for k in range(QS.size)]
        shown = [", ".join(f"{x:.3f}" for x in each) or "none" for each in found]
        print(f"x, L = {last - 4} to {last}: " + "; ".join(shown))


if __name__ == "__main__":
    main()
