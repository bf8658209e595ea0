"""The Fisher exponent tau from the cluster numbers n_s at p_c.

    n_s = (clusters with a size in the bin) / (samples * N * number of integer sizes in the bin)
        = a s^-tau (1 + b s^-Omega + c s^-2 Omega + d s^-3 Omega)
                   (1 + e x + f x^2 + g / L + h x s^-Omega),

x = s^(1/d_f) / L, is fitted by least squares to the means over bins of sizes, of all L at once (D.
Stauffer and A. Aharony, Introduction to Percolation Theory, 1994; J. Hoshen, D. Stauffer, G. H.
Bishop, R. J. Harrison and G. D. Quinn, J. Phys. A 12, 1285 (1979)).  Omega is given.  A cluster
meets an open side with a probability proportional to its extent over L, two sides with the square
of it: e and f, with 1/d_f = (tau - 1) / d.  The extent is s^(1/d_f) plus a constant, hence g, and
has a first correction with its own amplitude, h.  On a torus the n_s of clusters that do not wrap
are those of the infinite lattice.

Priors (:mod:`percolab.analysis.power_law`): b is 0 +- 3, c 0 +- 9 and d 0 +- 27, e and g are 0 +- 3
and f and h 0 +- 9 for every pair of sides.  Fits are averaged over windows: smallest sizes s_min,
and largest ones as parts of <s_1>.

Errors are those of the bootstrap over blocks that gives p_c; where p is given, of a jackknife.
Weights and chi^2 use only the variances of bins, at fixed p, in proportion to the fitted n_s:
correlations estimated from few blocks would make errors too small, and weights that contain the
error of p_c would make tau follow the noise of the slope of n_s in p (results/calibration).

n_s is plotted at the size s at which s^-2 takes its mean over the bin (G. D. Lafferty and T. R.
Wyatt, Nucl. Instrum. Methods A 355, 541 (1995)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.curves import nearest_nodes, node_weights
from percolab.analysis.json_values import Part, Record
from percolab.analysis.power_law import PRIORS, Average, Member, average, fit_member
from percolab.analysis.statistics import (
    MIN_BLOCKS,
    Floats,
    standard_error,
    weighted_deviations,
    with_data_first,
)
from percolab.analysis.theory.known_exponents import Known, find_size_correction, known_exponents
from percolab.analysis.value import Value
from percolab.errors import AnalysisError
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
        """The s at which the n_s of a bin is plotted, float64 (bins,)."""
        return mean_power(self.edges, 2.0) ** -0.5

    def numbers(self, weights: Floats | None = None) -> Floats:
        """Return n_s (m, bins); with weights of blocks, float64 (r, n_blocks), (r, m, bins)."""
        times = np.ones((1, self.samples.size)) if weights is None else weights
        numbers = np.tensordot(times, self.counts, axes=1)
        per_site = (times @ self.samples)[:, None, None] * self.num_sites * np.diff(self.edges)
        return (numbers / per_site)[0] if weights is None else numbers / per_site

    def errors(self) -> Floats:
        """Return the jackknife error over blocks of n_s, float64 (m, bins); NaN of one block."""
        per_site = self.num_sites * np.diff(self.edges) * self.samples[:, None, None]
        return standard_error(self.counts / per_site, self.samples)

    def coarse(self) -> SizeCounts:
        """Return the same counts with four bins per power of two at small sizes too."""
        edges = coarse_edges(self.edges)
        counts = np.add.reduceat(self.counts, np.searchsorted(self.edges, edges[:-1]), axis=2)
        return replace(self, edges=edges, counts=counts)

    def nearest(self, p: float) -> int:
        """Return the index of the grid point nearest to p."""
        return int(np.argmin(np.abs(self.p - p)))

    def largest_at(self, p: float) -> float:
        """Return <s_1> at p, by the polynomial through the nearest grid points."""
        nodes = nearest_nodes(self.p, p)
        means = self.largest[:, nodes].sum(axis=0) / self.samples.sum()
        return float(node_weights(self.p[nodes], np.array([p]))[0] @ means)

    def numbers_at(self, p: Floats, weights: Floats | None = None, *, fewer: int = 0) -> Floats:
        """Return n_s at every p (r,), each with its own row of weights: float64 (r, bins).

        The polynomial passes through the grid points nearest to the first p.  weights: float64 (r,
        n_blocks), by default 1.  fewer: number of the farthest of these points to leave out; one
        point at least remains.
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
    """Return edges of bins made of whole ones of `edges`, four a power of two at small sizes too.

    >>> coarse_edges(np.arange(1, 22)).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 21]
    """
    octaves = [4 << n for n in range(4)]
    starts = [1, 2, 3, *(start + part * start // 4 for start in octaves for part in range(4))]
    coarse = np.array([*starts, *edges[edges >= EXACT]], np.int64)
    return np.append(coarse[coarse < edges[-1]], edges[-1])


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
    # From EXACT on the sum is the integral plus the first terms of Euler and Maclaurin.
    span, power = np.log(high / low), 1.0 - exponent
    ratio = np.expm1(power * span) / power if power else span
    ends = (low**-exponent - high**-exponent) / 2
    slopes = exponent * (low ** -(exponent + 1) - high ** -(exponent + 1)) / 12
    return np.concatenate([sums, low**power * ratio + ends + slopes]) / np.diff(edges)


#: Smallest sizes that are averaged over, and the largest ones as parts of <s_1>.
S_MIN, CUTOFFS = (8, 16, 32, 64, 128), (0.1, 0.05, 0.02)

#: Least bins of a fit, and least clusters in a bin, so that its scatter gives its error.
LEAST_BINS, LEAST_COUNT = 8, 100

#: Bins on either side that contribute to the variance of one.
_NEIGHBOURS = 4

#: Two interpolations to p_c may differ by this many errors of n_s.
_AGREE = 1.0

#: Gauss-Newton: most steps, the change of tau at which they end, and the range allowed for tau.
_STEPS, _ENOUGH, _RANGE = 100, 1e-8, (1.2, 4.0)


@dataclass(frozen=True)
class TauFit(Record):
    """tau with its error, and the n_s that gave it.

    threshold, threshold_error: the p of n_s, and its error, 0 where it was given.  omega: the given
    Omega.  s_min, cutoff: of the largest window.  sizes, s_max: every L, and the largest s of its
    bins.  coefficients: a times 1, b, c and d, and with open axes e, f, g and h.
    """

    result_keys: ClassVar = ("tau",)

    result: Value
    error_method: str
    threshold: float
    threshold_error: float
    dimension: int
    omega: float
    omega_source: str
    s_min: int
    cutoff: float
    sizes: tuple[int, ...]
    s_max: tuple[int, ...]
    coefficients: tuple[float, ...]
    known: Known | None
    notes: tuple[str, ...] = ()

    tau, error = Part[float]("result.value"), Part[float]("result.error")

    @property
    def source(self) -> str:
        """The window of n_s, in a few words."""
        return f"n_s at p_c, s from {self.s_min} to {self.cutoff:g} <s_1>"

    @property
    def fractal_dimension(self) -> float:
        """d_f = d / (tau - 1), by hyperscaling."""
        return self.dimension / (self.tau - 1)

    @property
    def is_open(self) -> bool:
        return len(self.coefficients) > 4

    def numbers(self, s: Floats, L: float = np.inf) -> Floats:
        """Return the fitted n_s at sizes s, float64 (n,), for size L or the limit."""
        bulk = sum(k * s ** (-n * self.omega) for n, k in enumerate(self.coefficients[:4]))
        x = s ** (1 / self.fractal_dimension) / L
        terms = (x, x**2, np.full_like(x, 1 / L), x * s**-self.omega)
        sides = sum(k * own for k, own in zip(self.coefficients[4:], terms))
        return np.asarray(s**-self.tau * bulk * (1 + sides / self.coefficients[0]), np.float64)


def fit_tau(
    tasks: Sequence[SizeCounts],
    *,
    threshold: float,
    threshold_error: float = 0.0,
    dimension: int,
    is_open: bool,
    replicas: TauReplicas | None = None,
) -> TauFit:
    """Fit tau to n_s at a threshold.

    tasks: of any sizes; those with fewer than MIN_BLOCKS blocks, or without the threshold between
    their p, are left out.  threshold_error: 0 where it was given.  is_open: whether any axis is.
    replicas: of p_c and the blocks of those tasks, for the error; None for a jackknife at fixed p.
    Raises AnalysisError where no window has enough bins.
    """
    points, left_out = [], []
    for task in tasks:
        drawn = replicas is None or task.label in replicas.weights
        if drawn and task.samples.size >= MIN_BLOCKS and task.p[0] <= threshold <= task.p[-1]:
            # Four bins a power of two: with single sizes, chi^2 hardly sees slow changes with s.
            points.append(TaskNumbers.of(task.coarse(), threshold, replicas))
        else:
            left_out.append(task.L)
    omega = find_size_correction(dimension)
    data = ClusterNumbers(points, ClusterNumberModel(dimension, is_open, omega.value))
    best = data.fit()
    return TauFit(
        result=best.value(1),
        error_method="jackknife" if replicas is None else "bootstrap",
        threshold=threshold,
        threshold_error=threshold_error,
        dimension=dimension,
        omega=omega.value,
        omega_source=omega.reference,
        s_min=S_MIN[0],
        cutoff=CUTOFFS[0],
        sizes=tuple(task.L for task in data.tasks),
        s_max=data.s_max,
        coefficients=tuple((np.exp(best.theta[0]) * np.array([1, *best.theta[2:]])).tolist()),
        known=known_exponents(dimension).get("tau"),
        notes=tuple(
            f"L = {L} left out of n_s: fewer than {MIN_BLOCKS} blocks, or p_c outside its p grid"
            for L in left_out
        ),
    )


@dataclass(frozen=True, eq=False)
class TauReplicas:
    """Thresholds of a bootstrap (r,), and by label how often a task's blocks were drawn (r, n)."""

    thresholds: Floats
    weights: Mapping[str, Floats]

    def numbers(self, task: SizeCounts, threshold: float) -> Floats:
        """Return the n_s of every replica at its own threshold, float64 (r, bins)."""
        drawn = self.weights[task.label]
        # The data come first: their threshold selects the interpolated grid points.
        at = np.concatenate([[threshold], self.thresholds])
        return task.numbers_at(at, with_data_first(drawn))[1:]


@dataclass(frozen=True)
class ClusterNumberModel:
    """The n_s of this module, with the terms of sides only for open axes.  omega: Omega."""

    dimension: int
    is_open: bool
    omega: float

    @property
    def widths(self) -> tuple[float, ...]:
        """Widths of the priors of ln a, tau, b, c and d (and e, f, g and h)."""
        of_sides = (self.dimension * PRIORS[0], self.dimension * PRIORS[1])
        return (np.inf, np.inf, *PRIORS, *(2 * of_sides if self.is_open else ()))

    def at(self, tasks: Sequence[SizeCounts], theta: Floats) -> tuple[list[Floats], list[Floats]]:
        """Return n_s (bins,) of every task, and its derivatives (bins, parameters).

        theta: ln a, tau, b, c and d (and e, f, g and h).
        """
        tau, share = float(theta[1]), 1.0 / self.dimension
        bulk, sides = np.append(1.0, theta[2:5]), np.append(1.0, theta[5:])
        # Of every term of sides: its powers of s^(tau - 1) and of 1 / L, and a fixed power of s.
        powers = [(0, 0, 0), (share, 1, 0), (2 * share, 2, 0), (0, 1, 0), (share, 1, -self.omega)]
        grow, meets, fixed = np.array(powers[: sides.size]).T
        orders = self.omega * np.arange(4)[:, None]
        exponents = tau + orders - grow * (tau - 1) - fixed
        numbers, derivatives = [], []
        for task in tasks:
            means = np.array([[mean_power(task.edges, k) for k in row] for row in exponents])
            terms = means * (np.exp(theta[0]) / float(task.L) ** meets)[:, None]
            by_side = np.einsum("i,ijk->jk", bulk, terms)
            by_order = np.einsum("j,ijk->ik", sides, terms)
            numbers.append(sides @ by_side)
            # d/dk of the mean of s^-k is -ln s times the mean, up to the width of a bin.
            by_tau = -np.log(task.sizes) * ((sides * (1 - grow)) @ by_side)
            derivatives.append(np.stack([numbers[-1], by_tau, *by_order[1:], *by_side[1:]], axis=1))
        return numbers, derivatives


@dataclass(frozen=True, eq=False)
class TaskNumbers:
    """n_s of one task at a threshold, float64 (bins,) unless noted otherwise.

    values: at this p.  spread: the variance of n_s over its mean.  usable: bins with enough
    clusters, in which p can be interpolated.  reach: <s_1>.  blocks: n_s of each block alone
    (n_blocks, bins). drawn: n_s of each replica, at its own threshold (r, bins), or None.
    """

    task: SizeCounts
    values: Floats
    spread: Floats
    usable: NDArray[np.bool_]
    reach: float
    blocks: Floats
    drawn: Floats | None

    @classmethod
    def of(cls, task: SizeCounts, threshold: float, replicas: TauReplicas | None) -> TaskNumbers:
        blocks = task.samples.size
        every = task.numbers_at(np.full(blocks, threshold), np.eye(blocks))
        values = task.numbers_at(np.array([threshold]))[0]
        own = standard_error(every, task.samples)
        total = task.counts[:, task.nearest(threshold)].sum(axis=0)
        # Where another polynomial differs, the grid is too coarse for clusters of this size.
        other = task.numbers_at(np.array([threshold]), fewer=1)[0]
        differs = np.abs(values - other) > _AGREE * own
        fine = ~np.logical_or.accumulate(differs & (total >= LEAST_COUNT))
        return cls(
            task=task,
            values=values,
            spread=_smooth_spread(values, own**2, np.diff(task.edges)),
            usable=fine & (own > 0) & (total >= LEAST_COUNT),
            reach=task.largest_at(threshold),
            blocks=every,
            drawn=None if replicas is None else replicas.numbers(task, threshold),
        )


def _smooth_spread(values: Floats, variances: Floats, widths: NDArray[np.int64]) -> Floats:
    """Return variance over mean of every bin from its own and its neighbours' blocks.

    Counts are nearly Poissonian: times the number of sizes in a bin, this is a smooth function of
    s.  A variance from few blocks is noisy, and as a weight would bias the fit to small n_s.
    """
    known = values > 0
    ratio = np.divide(variances * widths, values, out=np.zeros_like(values), where=known)
    window = np.ones(2 * _NEIGHBOURS + 1)
    sums, counts = (np.convolve(x, window, "same") for x in (ratio * known, known.astype(float)))
    return sums / np.maximum(counts, 1.0) / widths


class ClusterNumbers:
    """The n usable bins of all tasks in the largest window, task after task, and their fit."""

    def __init__(self, points: Sequence[TaskNumbers], model: ClusterNumberModel) -> None:
        self.points, self.model = points, model
        self.tasks = [point.task for point in points]
        self.masks = [
            point.usable
            & (point.task.edges[:-1] >= S_MIN[0])
            & (point.task.edges[1:] <= CUTOFFS[0] * point.reach)
            for point in points
        ]

    @property
    def s_max(self) -> tuple[int, ...]:
        """The largest size of every task, 0 where it has no bin here."""
        return tuple(
            int(task.edges[1:][mask].max()) - 1 if mask.any() else 0
            for task, mask in zip(self.tasks, self.masks)
        )

    def joined(self, arrays: Sequence[Floats]) -> Floats:
        """Return arrays of every task (bins, ...), cut and concatenated: (n, ...)."""
        parts = [array[mask] for array, mask in zip(arrays, self.masks)]
        return np.concatenate(parts) if parts else np.array([])

    def covariance(self) -> Floats:
        """Return the covariance of n_s, float64 (n, n): of the bootstrap, or of the blocks."""
        from scipy.linalg import block_diag

        drawn = [point.drawn.T for point in self.points if point.drawn is not None]
        if drawn:
            # The variance of B blocks drawn with replacement is too small by (B - 1) / B.
            blocks = min(len(point.blocks) for point in self.points)
            return np.asarray(np.cov(self.joined(drawn)) * blocks / (blocks - 1))
        away = [weighted_deviations(point.blocks, point.task.samples) for point in self.points]
        cut = [parts[:, mask] for parts, mask in zip(away, self.masks, strict=True)]
        return np.asarray(block_diag(*(parts.T @ parts for parts in cut)))

    def fit(self) -> Average:
        """Return the average over windows; AnalysisError if none has enough bins."""
        low = self.joined([task.edges[:-1].astype(float) for task in self.tasks])
        # Where there are no clusters no bin is used.
        high = self.joined([x.task.edges[1:] / (x.reach or 1e-9) for x in self.points])
        windows = [(low >= s_min) & (high <= cutoff) for cutoff in CUTOFFS for s_min in S_MIN]
        fits = [self._member(kept) for kept in windows if kept.sum() >= LEAST_BINS]
        members = [fit for fit in fits if fit is not None]
        if not members:
            raise AnalysisError(
                f"tau from n_s: fewer than {LEAST_BINS} bins of sizes from s = {S_MIN[0]} to "
                f"{CUTOFFS[0]:g} <s_1> have {LEAST_COUNT} clusters in {MIN_BLOCKS} blocks"
            )
        return average(members, self.covariance())

    def _member(self, kept: NDArray[np.bool_]) -> Member | None:
        """Return the fit of the bins kept (n,) by Gauss-Newton steps; None if they fail."""
        values = self.joined([point.values for point in self.points])
        spread = self.joined([point.spread for point in self.points])
        sizes = self.joined([task.sizes for task in self.tasks])
        widths = self.model.widths
        theta = np.zeros(len(widths))
        slope, theta[0] = np.polyfit(np.log(sizes[kept]), np.log(values[kept]), 1)
        theta[1] = -slope
        last = 0.0
        for _ in range(_STEPS):
            numbers, derivatives = map(self.joined, self.model.at(self.tasks, theta))
            # A step may lead to n_s that are not positive and have no variance: use a tenth.
            variances = spread * np.maximum(numbers, 0.1 * values)
            shifted = values - numbers + derivatives @ theta
            member = fit_member(derivatives, shifted, variances, widths, kept)
            change = float(member.theta[1] - theta[1])
            if abs(change) < _ENOUGH:
                return member
            # A step back over most of the last one is halved, or steps could oscillate for long.
            part = 0.5 if change * last < -0.5 * last**2 else 1.0
            theta, last = theta + part * (member.theta - theta), part * change
            if not _RANGE[0] < theta[1] < _RANGE[1]:
                break
        return None
