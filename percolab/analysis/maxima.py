"""Thresholds from a single size, for example of a graph: where its clusters are most critical.

The p at the maxima of three functions of p, s_1 and s_2 being the sites of the largest and second
largest cluster, N all sites, <> means over samples:

second  <s_2>                           Radicchi, Phys. Rev. E 91, 010801 (2015)
chi     <sum s^2 - s_1^2> / N           Stauffer and Aharony, Introduction to Percolation Theory
                                        (1994), without the largest cluster
ratio   (<s_1^2> - <s_1>^2) / <s_1>     Colomer-de-Simon and Boguna, Phys. Rev. X 4, 041020 (2014)

and, with a source and a target, the median: the p at which one cluster connects them with
probability 1/2, interpolated linearly in the probit of R.  A maximum is that of a cubic fitted to
the points around the highest one that reach 90 % of it; where these are fewer than six, of a
quartic that includes the two next points on both sides as well.  Errors are those of a bootstrap
(Efron 1979) that repeats all of this, over blocks, but for the median over samples, as there may be
only ten blocks.  They leave out the error of polynomials between distant p.  They are root mean
square distances of replicas from the data: where the top is flat, a maximum jumps from one point to
another, and with a given order of removal most replicas may have it at the same point.

Numbers of a network that are not measured at a given p:

robustness  R = 1/N sum_{Q=1}^{N} s(Q), s(Q) being the share of all sites that is in the largest
            cluster once Q of the N sites are removed: C. M. Schneider, A. A. Moreira, J. S.
            Andrade, S. Havlin and H. J. Herrmann, Proc. Natl. Acad. Sci. USA 108, 3838 (2011).  Of
            bonds the sum is over their number: A. Zeng and W. Liu, arXiv:1203.2982.
mean_field  <k> / (<k^2> - <k>), the p_c of random graphs with these degrees and no correlations
            (Molloy and Reed's criterion).
bound       1 / lambda, lambda being the largest eigenvalue of the non-backtracking (Hashimoto)
            matrix: a lower bound of p_c for bonds and for sites, exact on infinite trees (Y. Lin,
            W. Chen and Z. Zhang, arXiv:1610.08217); that of ((A, 1 - D), (1, 0)), A being the
            adjacency matrix and D the degrees (Ihara and Bass).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from scipy.special import ndtri

from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.json_values import Record
from percolab.analysis.statistics import (
    MIN_BLOCKS,
    Floats,
    draw_blocks,
    with_data_first,
)
from percolab.analysis.study_kinds import block_mean_and_error
from percolab.analysis.value import Value, format_with_error
from percolab.lattices.graph import Graph
from percolab.lattices.removal import RANDOM
from percolab.lattices.shown import Shown
from percolab.measure.openings import bin_width
from percolab.store.task_result import TaskResult

#: The meanings of the numbers, in words.
ROBUSTNESS = "robustness: s_1/N, averaged over all removals"
MEAN_FIELD = "mean-field p_c of random removal: <k>/(<k^2> - <k>)"
BOUND = "lower bound of it, close where short loops are few: 1/lambda, non-backtracking"
#: Graphs with more bonds have no eigenvalue computed unless a user requests it.
MOST_BONDS = 10**6
#: Most rows of a matrix whose eigenvalues are all computed at once.
_DENSE = 200


@dataclass(frozen=True)
class NetworkBounds(Record):
    """Estimates of the p_c of random removal from the degrees and bonds of a graph.

    mean_degree: <k>.  mean_field: <k>/(<k^2> - <k>).  bound: 1/lambda; 1 for a forest.  Both are
    NaN where no site has two bonds.
    """

    mean_degree: float
    mean_field: float
    bound: float


def measure_robustness(result: TaskResult) -> Value:
    """Return the robustness R of a graph, and its error, from samples of method microcanonical.

    The error is the scatter of blocks: 0 for an order that leaves nothing to chance, NaN with one
    block.  Beyond 2^13 openings the largest cluster of the intact graph, which is left out of R, is
    taken from the bin of openings that contains it.
    """
    sums, count = result.stacked("largest"), result.task.num_openings
    width = bin_width(count)
    intact = sums[:, -1] / (count - width * (sums.shape[1] - 1) + 1)
    scale = result.samples * result.task.num_sites * max(count, 1)
    blocks = ((sums.sum(axis=1) - intact) / scale)[:, None]
    mean, error = block_mean_and_error(blocks, result.samples)
    return Value(float(mean[0]), float(error[0]))


def network_bounds(graph: Graph) -> NetworkBounds:
    """Return the mean-field value and the lower bound of p_c of a graph.

    InputError: a graph read from a results file, which does not contain its bonds.

    >>> found = network_bounds(Graph.of_bonds(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]))
    >>> round(found.mean_field, 12), round(found.bound, 12)
    (0.5, 0.5)
    """
    pairs = graph.bonds.pairs
    degrees = np.bincount(pairs.ravel(), minlength=graph.num_sites).astype(np.float64)
    first, second = float(degrees.mean()), float((degrees**2).mean())
    if degrees.max(initial=0.0) < 2:
        return NetworkBounds(first, nan, nan)
    bound = min(1.0, 1.0 / _largest_eigenvalue(pairs))
    return NetworkBounds(first, first / (second - first), bound)


def _largest_eigenvalue(pairs: np.ndarray) -> float:
    """Return the largest eigenvalue of the non-backtracking matrix, at least 1."""
    import scipy.sparse as sparse
    from scipy.sparse.linalg import eigs

    core = pairs[pairs[:, 0] != pairs[:, 1]]
    while core.size:
        degrees = np.bincount(core.ravel())
        inside = (degrees[core] > 1).all(axis=1)
        if inside.all():
            break
        core = core[inside]
    if not core.size or degrees.max() == 2:
        return 1.0
    _, numbered = np.unique(core, return_inverse=True)
    one, other = numbered.reshape(-1, 2).T
    count = int(numbered.max()) + 1
    adjacency = sparse.coo_array((np.ones(one.size), (one, other)), (count, count)).tocsr()
    adjacency = adjacency + adjacency.T
    unit = sparse.eye_array(count)
    rest = unit - sparse.diags_array(np.asarray(adjacency.sum(axis=1)).ravel())
    matrix = sparse.block_array([[adjacency, rest], [unit, None]], format="csr")
    if 2 * count <= _DENSE:
        return float(np.linalg.eigvals(matrix.toarray()).real.max())
    largest = eigs(matrix, k=1, which="LR", v0=np.ones(2 * count), return_eigenvectors=False)
    return float(largest[0].real)


# The least height of fitted points, in units of the highest, and their least number for a cubic.
_HIGH, _CUBIC = 0.9, 6
# With fewer of them and an error below this part of a step, the p grid is coarse at a maximum.
_FEW, _FINE = 4, 0.1
_SAME = 1e-12


@dataclass(frozen=True)
class Estimate:
    """One estimator of the threshold: p with its error, and the height of the maximum there.

    name: "second", "chi", "ratio" or "median"; meaning: in words.  at_edge: p is the end of the
    grid, and the maximum may lie beyond.  p is NaN where the grid does not contain it.
    """

    name: str
    meaning: str
    p: float
    error: float
    height: float
    at_edge: bool = False


@dataclass(frozen=True, repr=False)
class SizeEstimates(Record, Shown):
    """The thresholds of a single size, by several definitions (:class:`Estimate`).

    L, num_sites, samples: of this size.  notes: warnings, one line each.  order: the order in which
    sites or bonds are removed; p is the fraction that is left, for random order the probability.
    robustness, bounds: for a graph (:mod:`percolab.analysis.maxima`); None where unknown.
    robustness needs method microcanonical, and bounds need the graph's bonds.
    """

    L: int
    num_sites: int
    samples: int
    estimates: tuple[Estimate, ...]
    notes: tuple[str, ...]
    order: str = RANDOM
    robustness: Value | None = None
    bounds: NetworkBounds | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return every number that is known, as plain JSON values."""
        return {name: value for name, value in super().to_dict().items() if value is not None}

    def _facts(self) -> dict[str, Any]:
        return {
            **{"L": self.L, "sites": self.num_sites, "samples": self.samples},
            **{f"p by {own.name}": format_with_error(own.p, own.error) for own in self.estimates},
            **({"R": str(self.robustness)} if self.robustness is not None else {}),
            **{f"note {n}": note for n, note in enumerate(self.notes, 1)},
        }


#: The maximised functions, in words.
MAXIMA = {
    "second": "maximum of the second largest cluster <s_2>",
    "chi": "peak of chi = <sum s^2 - s_1^2>/N, without the largest cluster",
    "ratio": "peak of (<s_1^2> - <s_1>^2)/<s_1>",
}
_COARSE = (
    "p is sampled coarsely near a maximum, whose error leaves out that of the interpolation: "
    "give more p about it (-p)"
)
MEDIAN = "median of the p at which a sample spans: R = 1/2"


def estimate_size(
    clusters: Sequence[ClusterCurve],
    spanning: Sequence[SpanningCurve],
    *,
    num_sites: int,
    bootstrap: int = 200,
    seed: int = 0,
    steps: bool = False,
    is_exact: bool = False,
) -> SizeEstimates:
    """Return the estimators of one size from its cluster and spanning curves.

    clusters, spanning: several where seeds or grids differ; either may be empty, not both.
    bootstrap: replicas; 0, or fewer than MIN_BLOCKS blocks in a curve, gives no errors.  steps: the
    curves are those of a given order, at every single removal.  Then a maximum is at the highest
    point itself, the median is the first point with R >= 1/2, and "ratio" is left out, since
    nothing but chance makes s_1 vary.  is_exact: nothing is left to chance, and all errors are 0.
    """
    rng = np.random.default_rng(seed)
    curves: Sequence[ClusterCurve | SpanningCurve] = [*clusters, *spanning]
    estimates, notes, coarse = [], [], []
    few = min(curve.samples.size for curve in curves)
    if few < MIN_BLOCKS and not is_exact:
        blocks = "1 block is" if few == 1 else f"{few} blocks are"
        unless = ", unless the order has no ties, and the values are exact" if steps else ""
        notes.append(f"{blocks} too few for an error (at least {MIN_BLOCKS}): add samples{unless}")
        bootstrap = 0
    means = [
        own.means(with_data_first(draw_blocks(own.samples.size, rng, bootstrap)))
        for own in clusters
    ]
    for name, meaning in MAXIMA.items() if clusters else ():
        if not (steps and name == "ratio"):
            points = _joined(clusters, [mean[name] for mean in means])
            locate = locate_highest if steps else locate_maximum
            estimates.append(_estimate(name, meaning, *points, locate))
            coarse.append(not steps and _is_coarse(*points[:2], estimates[-1]))
    if spanning:
        points = _joined(spanning, [_draw_spanning(own, rng, bootstrap) for own in spanning])
        half_way = locate_half if steps else locate_median
        estimates.append(_estimate("median", MEDIAN, *points, half_way))
    at_edge = [own.name == "median" for own in estimates if own.at_edge]
    edge = "a maximum at an end of the p grid may lie beyond it: give other p values (-p)"
    half = "R(p) does not pass 1/2 on this p grid: give other p values (-p)"
    if steps:
        half = "source and target are not connected, even where nothing is removed"
    notes += [edge] * (False in at_edge) + [half] * (True in at_edge)
    notes += [_COARSE] * any(coarse)
    # Spanning and cluster sizes are of the same samples.
    samples = sum(int(curve.samples.sum()) for curve in spanning or clusters)
    return SizeEstimates(curves[0].L, num_sites, samples, tuple(estimates), tuple(notes))


Located = tuple[float, float, bool]


def locate_maximum(p: Floats, values: Floats, weights: Floats) -> Located:
    """Return (p of the maximum, its height, whether it lies at an end of the grid).

    p, values, weights: float64 (m,), p ascending; a point's weight is its number of samples.

    >>> p = np.linspace(0, 1, 11)
    >>> p_top, height, at_edge = locate_maximum(p, 4 - (p - 0.43) ** 2, np.ones(11))
    >>> round(p_top, 9), round(height, 9), at_edge
    (0.43, 4.0, False)
    """
    top = int(np.argmax(values))
    if top in (0, p.size - 1):
        return float(p[top]), float(values[top]), True
    low = np.flatnonzero(values < _HIGH * values[top])
    first = int(max(low[low < top], default=-1)) + 1
    end = int(min(low[low > top], default=p.size))
    degree = 3
    if end - first < _CUBIC:
        first, end = max(min(first, top - 2), 0), min(max(end, top + 3), p.size)
        degree = min(4, end - first - 1)
    near, width = slice(first, end), p[end - 1] - p[first]
    # In units of the fitted range the equations are well conditioned.
    x = (p[near] - p[top]) / width
    peak = np.polyfit(x, values[near], degree, w=np.sqrt(weights[near]))
    at = _find_maximum(peak, x[0], x[-1])
    if np.isnan(at):
        return float(p[top]), float(values[top]), False
    return float(p[top] + width * at), float(np.polyval(peak, at)), False


def _find_maximum(peak: Floats, low: float, high: float) -> float:
    """Return the highest maximum of a polynomial, highest power first, from low to high, or NaN."""
    slope = np.polyder(peak)
    roots = np.roots(slope)
    real = roots[np.isreal(roots)].real
    tops = real[(real >= low) & (real <= high) & (np.polyval(np.polyder(slope), real) < 0)]
    return float(max(tops, key=lambda at: np.polyval(peak, at), default=nan))


def locate_highest(p: Floats, values: Floats, weights: Floats) -> Located:
    """Return (p of the highest point, the smallest if several are equal, its height, False)."""
    top = int(np.argmax(values >= values.max() * (1 - _SAME)))
    return float(p[top]), float(values[top]), False


def locate_median(p: Floats, probability: Floats, weights: Floats) -> Located:
    """Return (p at which R = 1/2, 1/2, False); where R misses 1/2, p is NaN and at the edge."""
    # R need not rise everywhere where points of several seeds alternate.
    rising = np.maximum.accumulate(probability)
    if not rising[0] <= 0.5 <= rising[-1]:
        return nan, 0.5, True
    above = int(np.searchsorted(rising, 0.5))
    if above == 0:
        return float(p[0]), 0.5, False
    # The probit is nearly linear in p.  R = 0 and R = 1 are moved inwards by half a sample, or by a
    # quarter if there is only one.
    ends, rim = rising[above - 1 : above + 1], 0.5 / max(weights.max(), 2.0)
    low, high = ndtri(np.clip(ends, rim, 1 - rim))
    part = low / (low - high)
    return float(p[above - 1] + part * (p[above] - p[above - 1])), 0.5, False


def locate_half(p: Floats, probability: Floats, weights: Floats) -> Located:
    """Return (least p at which R is 1/2 or more, 1/2, False); without any, NaN at the edge."""
    reached = p[probability >= 0.5 * (1 - _SAME)]
    return (float(reached[0]), 0.5, False) if reached.size else (nan, 0.5, True)


def _draw_spanning(curve: SpanningCurve, rng: np.random.Generator, replicas: int) -> Floats:
    """Return R of the data, then of bootstrap replicas over samples, float64 (1 + replicas, m)."""
    counts = curve.threshold_counts.sum(axis=0)
    drawn = rng.multinomial(counts.sum(), counts / counts.sum(), size=replicas)
    rows = np.concatenate([counts[None], drawn])
    return np.asarray(rows[:, :-1].cumsum(axis=1) / counts.sum(), np.float64)


def _is_coarse(p: Floats, rows: Floats, found: Estimate) -> bool:
    """Return whether few points are high, and the error is a small part of their spacing."""
    top = int(np.argmax(rows[0]))
    if found.at_edge or np.count_nonzero(rows[0] >= _HIGH * rows[0, top]) >= _FEW:
        return False
    return found.error < _FINE * float(p[top + 1] - p[top - 1]) / 2


def _joined(
    curves: Sequence[ClusterCurve | SpanningCurve], values: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """Return the p of all curves, ascending, the values (r, m) there, and each p's samples."""
    p = np.concatenate([curve.p for curve in curves])
    samples = [float(curve.samples.sum()) for curve in curves]
    weights = np.repeat(samples, [curve.p.size for curve in curves])
    # Points of several seeds at the same p are merged.
    grid, where = np.unique(p, return_inverse=True)
    together = np.zeros((grid.size, p.size))
    together[where, np.arange(p.size)] = weights
    total = together.sum(axis=1)
    return grid, np.concatenate(values, axis=1) @ together.T / total, total


def _estimate(
    name: str,
    meaning: str,
    p: Floats,
    rows: Floats,
    weights: Floats,
    locate: Callable[[Floats, Floats, Floats], Located],
) -> Estimate:
    """Locate p in the first row, the data, and in the others, the replicas, for its error."""
    (here, height, at_edge), *others = (locate(p, row, weights) for row in rows)
    replicas = np.array([maximum[0] for maximum in others])
    away = replicas[np.isfinite(replicas)] - here
    has_error = not at_edge and 2 * away.size > replicas.size
    error = float(np.sqrt(np.mean(away**2))) if has_error else nan
    return Estimate(name, meaning, here, error, height, at_edge)
