"""Results of a task along its p grid: how many samples span, how large the clusters are.

Between the p of a grid a number is interpolated by the polynomial through the nearest grid points:
points of one task share their samples, so their noise is smooth along p, and interpolation does not
amplify it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats, jackknife_error, wilson_interval
from percolab.lattices.shown import Shown, few

# Number of points that an interpolating polynomial passes through.
_NODES = 7


@dataclass(frozen=True, eq=False, repr=False)
class SpanningCurve(Shown):
    """Spanning counts of one task: one linear size, one p grid, one seed.

    Every sample is used at all p (a bond is open when u < p), so the counts of a block never fall
    along the grid.

    L: linear size, at least 1.  p: float64 (m,), strictly ascending in [0, 1].  samples: int64
    (n_blocks,), number of samples in each block, at least 1.  spanning: int64 (n_blocks, m),
    samples of the block that span at each p.  label: name of the task for messages.

    Raises ValueError when a field breaks one of these rules.
    """

    L: int
    p: NDArray[np.float64]
    samples: NDArray[np.int64]
    spanning: NDArray[np.int64]
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "L", int(self.L))
        for name, dtype in (("p", np.float64), ("samples", np.int64), ("spanning", np.int64)):
            array = np.array(getattr(self, name), dtype)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        problem = self._problem()
        if problem:
            name = f" {self.label!r}" if self.label else ""
            raise ValueError(f"spanning curve{name}, L = {self.L}: {problem}")

    def _facts(self) -> dict[str, Any]:
        return {"L": self.L, "p": few(self.p.tolist()), "samples": int(self.samples.sum())}

    def _problem(self) -> str:
        p, samples, spanning = self.p, self.samples, self.spanning
        if self.L < 1:
            return "L must be at least 1"
        if p.ndim != 1 or p.size == 0 or not np.all((p >= 0) & (p <= 1)):
            return "p must be a non-empty list of numbers in [0, 1]"
        if np.any(np.diff(p) <= 0):
            return "p must be strictly ascending"
        if samples.ndim != 1 or samples.size == 0 or np.any(samples < 1):
            return "samples must hold one positive count a block"
        if spanning.shape != (samples.size, p.size):
            return f"spanning has shape {spanning.shape}, expected {(samples.size, p.size)}"
        if np.any(spanning < 0) or np.any(spanning > samples[:, None]):
            return "spanning counts must lie between 0 and the block's samples"
        if np.any(np.diff(spanning, axis=1) < 0):
            return "spanning counts fall as p rises, so these are not coupled samples"
        return ""

    @property
    def total_samples(self) -> int:
        return int(self.samples.sum())

    @property
    def probability(self) -> NDArray[np.float64]:
        """Spanning probability R_L(p), float64 (m,)."""
        return np.asarray(self.spanning.sum(axis=0) / self.total_samples, np.float64)

    def interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Wilson interval (low, high) of the spanning probability at each p, float64 (m,) each."""
        return wilson_interval(self.spanning.sum(axis=0), self.total_samples)

    @property
    def threshold_counts(self) -> NDArray[np.int64]:
        """Samples in each interval of T, int64 (n_blocks, m + 1): T <= p_1, ..., p_m < T."""
        edges = (np.zeros_like(self.samples), *self.spanning.T, self.samples)
        return np.diff(np.stack(edges, axis=1), axis=1)

    def at(self, keep: NDArray[np.bool_]) -> SpanningCurve:
        """Return the curve at some of its p, bool (m,).

        Leaving a p out merges two intervals of T, so the rest is still exactly multinomial.
        """
        return SpanningCurve(self.L, self.p[keep], self.samples, self.spanning[:, keep], self.label)

    def to_dict(self) -> Any:
        """Return the curve summed over blocks, with its 68 % Wilson interval."""
        low, high = self.interval()
        record = {
            "L": self.L,
            "label": self.label,
            "samples": self.total_samples,
            "blocks": self.samples.size,
            "p": self.p,
            "spanning": self.spanning.sum(axis=0),
            "probability": self.probability,
            "low": low,
            "high": high,
        }
        return plain(record)


def linear_sizes(curves: Sequence[SpanningCurve]) -> tuple[int, ...]:
    """Return the distinct linear sizes of `curves`, ascending."""
    return tuple(sorted({curve.L for curve in curves}))


def select_curves(curves: Sequence[SpanningCurve], size: int) -> list[SpanningCurve]:
    return [curve for curve in curves if size == curve.L]


def probit_points(curves: Sequence[SpanningCurve]) -> tuple[Floats, Floats]:
    """Return p and probit R of all points; R is at least half a sample away from 0 and 1."""
    samples = np.concatenate([np.full(curve.p.size, curve.total_samples) for curve in curves])
    probability = np.concatenate([curve.probability for curve in curves])
    p = np.concatenate([curve.p for curve in curves])
    return p, ndtri(np.clip(probability, 0.5 / samples, 1.0 - 0.5 / samples))


@dataclass(frozen=True, eq=False, repr=False)
class ClusterCurve(Shown):
    """Sizes of clusters of one task: one size, one p grid, one seed.

    num_sites: N.  p: float64 (m,), ascending.  samples: int64 (n_blocks,).  Sums over each block's
    samples, float64 (n_blocks, m): largest and second_largest, of the sites of that cluster;
    sum_squares, of sum s^2; largest_squares, of s_1^2.  label: of the task and of its spanning
    curve.
    """

    L: int
    num_sites: int
    p: Floats
    samples: NDArray[np.int64]
    largest: Floats
    second_largest: Floats
    sum_squares: Floats
    largest_squares: Floats
    label: str = ""

    def _facts(self) -> dict[str, Any]:
        return {"L": self.L, "p": few(self.p.tolist()), "samples": int(self.samples.sum())}

    def moments(self, weights: Floats | None = None) -> tuple[Floats, Floats, Floats, Floats]:
        """Return <s_1>, <s_2>, <sum s^2>, <s_1^2>, (m,), or (r, m) with weights (r, n_blocks)."""
        times = np.ones(self.samples.size) if weights is None else weights
        count = (times @ self.samples)[..., None]
        sums = self.largest, self.second_largest, self.sum_squares, self.largest_squares
        first, second, squares, own = (times @ each / count for each in sums)
        return first, second, squares, own

    def means(self, weights: Floats | None = None) -> dict[str, Floats]:
        """Return every function of p that is drawn or maximised, in shapes as :meth:`moments`."""
        first, second, squares, own = self.moments(weights)
        return {
            "largest": first,
            "second": second,
            "chi": (squares - own) / self.num_sites,
            # No site may be left at p = 0.
            "ratio": np.divide(own - first**2, first, np.zeros_like(first), where=first > 0),
        }

    def errors(self) -> dict[str, Floats]:
        """Return the jackknife error of every mean over the blocks; NaN of one block."""
        with np.errstate(invalid="ignore"):
            left = self.means(1.0 - np.eye(self.samples.size))
        return {name: jackknife_error(values) for name, values in left.items()}


def nearest_nodes(p: Floats, centre: float) -> NDArray[np.int64]:
    """Return the indices, ascending, of the seven grid points nearest to `centre`."""
    return np.sort(np.argsort(np.abs(p - centre), kind="stable")[:_NODES])


def node_weights(nodes: Floats, targets: Floats) -> Floats:
    """Return Lagrange's weights of every node (n,) for every p of `targets` (r,), float64 (r, n).

    >>> nodes = np.array([0.0, 1.0, 2.0])
    >>> (node_weights(nodes, np.array([0.5])) @ nodes**2).tolist()
    [0.25]
    """
    weights = np.ones((targets.size, nodes.size))
    for j, node in enumerate(nodes):
        others = np.delete(nodes, j)
        weights[:, j] = np.prod((targets[:, None] - others) / (node - others), axis=1)
    return weights
