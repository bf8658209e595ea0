r"""The cluster number n_s: clusters of s sites per lattice site, in bins of sizes.

    n_s = (clusters with a size in the bin) / (samples * N * number of integer sizes in the bin),

the mean of n_s over the integer sizes of the bin (D. Stauffer and A. Aharony, Introduction to
Percolation Theory, 1994).  It is drawn at the size s at which s^-2 takes its mean over the bin (G.
D. Lafferty and T. R. Wyatt, Nucl. Instrum. Methods A 355, 541 (1995)), within 0.1 % of that of
s^-tau with tau from 2 to 2.5.  Fits use the mean over the bin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.curves import nearest_nodes, node_weights
from percolab.analysis.statistics import Floats, standard_error
from percolab.measure.tallies import EXACT


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """Clusters in bins of sizes, of one task: one size, one p grid, one seed.

    num_sites: N.  p: float64 (m,), ascending.  samples: int64 (n_blocks,).  edges: int64 (bins +
    1,), the smallest size of every bin, and the first beyond.  counts: int64 (n_blocks, m, bins),
    clusters in each block's samples.  largest: float64 (n_blocks, m), sum of s_1.  label: the task.
    """

    L: int
    num_sites: int
    p: Floats
    samples: NDArray[np.int64]
    edges: NDArray[np.int64]
    counts: NDArray[np.int64]
    largest: Floats
    label: str = ""

    @property
    def sizes(self) -> Floats:
        """The s at which the n_s of a bin is drawn, float64 (bins,)."""
        return mean_power(self.edges, 2.0) ** -0.5

    def numbers(self, weights: Floats | None = None) -> Floats:
        """Return n_s, float64 (m, bins).

        weights: how often each block counts, float64 (r, n_blocks), for a result (r, m, bins).
        """
        times = np.ones((1, self.samples.size)) if weights is None else weights
        found = np.tensordot(times, self.counts, axes=1)
        per_site = (times @ self.samples)[:, None, None] * self.num_sites * np.diff(self.edges)
        return (found / per_site)[0] if weights is None else found / per_site

    def errors(self) -> Floats:
        """Return the jackknife error over blocks of n_s, float64 (m, bins); NaN of one block."""
        blocks = self.samples.size
        if blocks < 2:
            return np.full((self.p.size, self.edges.size - 1), nan)
        per_site = self.num_sites * np.diff(self.edges) * self.samples[:, None, None]
        return standard_error(self.counts / per_site, self.samples)

    def coarse(self) -> SizeCounts:
        """Return the same with four bins a power of two also at small sizes."""
        edges = coarse_edges(self.edges)
        counts = np.add.reduceat(self.counts, np.searchsorted(self.edges, edges[:-1]), axis=2)
        return replace(self, edges=edges, counts=counts)

    def nearest(self, p: float) -> int:
        """Return the index of the grid point nearest to p."""
        return int(np.argmin(np.abs(self.p - p)))

    def largest_at(self, p: float) -> float:
        """Return <s_1> at p, of the polynomial through the nearest grid points."""
        nodes = nearest_nodes(self.p, p)
        means = self.largest[:, nodes].sum(axis=0) / self.samples.sum()
        return float(node_weights(self.p[nodes], np.array([p]))[0] @ means)

    def numbers_at(self, p: Floats, weights: Floats | None = None, *, fewer: int = 0) -> Floats:
        """Return n_s at every p (r,), each of its own row of weights: float64 (r, bins).

        Of the polynomial through the grid points nearest to the first p.  weights: float64 (r,
        n_blocks), by default 1.  fewer: number of the farthest of these points to leave out, but
        the last.
        """
        nodes = nearest_nodes(self.p, float(p[0]))
        if fewer:
            order = np.argsort(np.abs(self.p[nodes] - p[0]), kind="stable")
            nodes = nodes[order[: max(nodes.size - fewer, 1)]]
        at_p = node_weights(self.p[nodes], p)
        if weights is None:
            return np.asarray(at_p @ self.numbers()[nodes], np.float64)
        few = replace(self, p=self.p[nodes], counts=self.counts[:, nodes])
        return np.asarray(np.einsum("rn,rnk->rk", at_p, few.numbers(weights)), np.float64)


def coarse_edges(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the edges of bins, four a power of two at small sizes too, that `edges` are parts of.

    >>> coarse_edges(np.arange(1, 22)).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 21]
    """
    octaves = [4 << n for n in range(4)]
    starts = [1, 2, 3, *(start + part * start // 4 for start in octaves for part in range(4))]
    found = np.array([*starts, *edges[edges >= EXACT]], np.int64)
    return np.append(found[found < edges[-1]], edges[-1])


def mean_power(edges: NDArray[np.int64], exponent: float) -> Floats:
    """Return the mean of s^-exponent over the integer sizes of every bin, float64 (bins,).

    edges: int64 (bins + 1,), the smallest size of every bin, and the first beyond.

    >>> mean_power(np.array([1, 2, 4]), 2.0).round(6).tolist()
    [1.0, 0.180556]
    """
    first, end = int(edges[0]), min(int(edges[-1]), EXACT)
    small = edges[:-1][edges[:-1] < EXACT]
    sums = np.add.reduceat(np.arange(first, end, dtype=float) ** -exponent, small - first)
    low, high = edges[small.size : -1].astype(float), edges[small.size + 1 :].astype(float)
    # From EXACT on the sum is the integral with the first terms of Euler and Maclaurin.
    span, power = np.log(high / low), 1.0 - exponent
    ratio = np.expm1(power * span) / power if power else span
    ends = (low**-exponent - high**-exponent) / 2
    slopes = exponent * (low ** -(exponent + 1) - high ** -(exponent + 1)) / 12
    return np.concatenate([sums, low**power * ratio + ends + slopes]) / np.diff(edges)
