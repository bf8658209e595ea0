"""Crossings of the moment ratio Q_1 = <s_1>^2 / <s_1^2> of neighbouring sizes.

Q_1 (:mod:`percolab.analysis.quantities`) is dimensionless as R_L is: at p_c it approaches a
constant, which depends on shape and boundary alone, and the larger size rises more steeply through
it. It needs no open axis. Sources: K. Binder,
Z. Phys. B 43, 119 (1981); for percolation, J. Wang et al., Phys. Rev. E 87, 052107 (2013).

Each moment is the polynomial through the grid points nearest to where the crossing is looked for.
Errors, and the drift to L = infinity, come of a bootstrap over blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.crossings import Crossing, Drift, extrapolate, with_errors
from percolab.analysis.interpolation import nearest_nodes, node_weights
from percolab.analysis.likelihood import draw_blocks
from percolab.analysis.maxima import ClusterCurve
from percolab.analysis.quantities import Q_1
from percolab.analysis.record import plain
from percolab.errors import AnalysisError

Floats = NDArray[np.float64]
NAN = float("nan")

# Between so many p a crossing is interpolated linearly.
_STEPS = 400


@dataclass(frozen=True)
class RatioCrossings:
    """Crossings of Q_1, whose value is `Crossing.probability`; their drift, if there are two."""

    crossings: tuple[Crossing, ...]
    drift: Drift | None

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        found = [crossing.to_dict() for crossing in self.crossings]
        return {
            "crossings": [item | {"ratio": item.pop("probability")} for item in found],
            "drift": plain(self.drift),
        }


def ratio_crossings(
    clusters: Sequence[ClusterCurve],
    *,
    near: float,
    exponent: float,
    bootstrap: int = 200,
    seed: int = 0,
) -> RatioCrossings:
    """Cross each size with the next larger one.

    near: the p about which crossings are looked for. exponent: of the drift, omega + 1/nu.
    bootstrap: replicas, 0 for no errors and no drift. Raises AnalysisError with fewer than two
    sizes.
    """
    sizes = sorted({curve.L for curve in clusters})
    if len(sizes) < 2:
        raise AnalysisError("need at least two sizes with cluster sizes to cross their ratios")
    rng = np.random.default_rng(seed)
    weights = [
        np.concatenate(
            [
                np.ones((1, curve.samples.size)),
                draw_blocks(curve.samples.size, rng, bootstrap),
            ]
        )
        for curve in clusters
    ]
    found, rows = [], []
    for L1, L2 in pairwise(sizes):
        own = [(c, w) for c, w in zip(clusters, weights) if c.L in (L1, L2)]
        nodes = [c.p[nearest_nodes(c.p, near)] for c, _ in own]
        low, high = max(p[0] for p in nodes), min(p[-1] for p in nodes)
        p = np.linspace(low, high, _STEPS) if high > low else np.array([near])
        small, large = (_ratio([pair for pair in own if pair[0].L == L], p, near) for L in (L1, L2))
        (here, value), *again = [_cross(p, a, b, near) for a, b in zip(small, large, strict=True)]
        found.append(Crossing(L1, L2, here, value))
        rows.append(again)
    if not bootstrap:
        return RatioCrossings(tuple(found), None)
    replicas = np.array(rows).swapaxes(0, 1)
    crossings = with_errors(found, replicas)
    return RatioCrossings(crossings, extrapolate(crossings, replicas[:, :, 0], exponent=exponent))


def _ratio(own: Sequence[tuple[ClusterCurve, Floats]], p: Floats, near: float) -> Floats:
    """Return Q_1 at p of one size for every row of block weights, float64 (r, p); seeds add."""
    first: Any = 0.0
    second: Any = 0.0
    for curve, weights in own:
        nodes = nearest_nodes(curve.p, near)
        at_p = node_weights(curve.p[nodes], p).T
        s_1, _, _, squares = curve.moments(weights)
        samples = float(curve.samples.sum())
        first = first + samples * s_1[:, nodes] @ at_p
        second = second + samples * squares[:, nodes] @ at_p
    total = sum(float(curve.samples.sum()) for curve, _ in own)
    return Q_1.value({"largest": first / total, "largest*largest": second / total})


def _cross(p: Floats, small: Floats, large: Floats, near: float) -> tuple[float, float]:
    """Return (p, Q_1) where the larger size rises through the smaller, nearest to near; or NaN."""
    difference = large - small
    rises = np.flatnonzero((difference[:-1] < 0) & (difference[1:] >= 0))
    if not rises.size:
        return NAN, NAN
    at = rises[np.argmin(np.abs(p[rises] - near))]
    part = difference[at] / (difference[at] - difference[at + 1])
    return (
        float(p[at] + part * (p[at + 1] - p[at])),
        float(large[at] + part * (large[at + 1] - large[at])),
    )
