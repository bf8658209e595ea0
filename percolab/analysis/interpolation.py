"""The polynomial through the grid points nearest to a p, as weights of those points.

Points of one task share their samples, so their noise is smooth along p: interpolating them does
not amplify it, as it would with independent points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Points that a polynomial is put through.
POINTS = 7


def nearest_nodes(p: Floats, centre: float) -> NDArray[np.int64]:
    """Return the indices, ascending, of the POINTS grid points nearest to `centre`."""
    return np.sort(np.argsort(np.abs(p - centre), kind="stable")[:POINTS])


def node_weights(nodes: Floats, wanted: Floats) -> Floats:
    """Return Lagrange's weights of every node (n,) for every wanted p (r,), float64 (r, n).

    >>> nodes = np.array([0.0, 1.0, 2.0])
    >>> (node_weights(nodes, np.array([0.5])) @ nodes**2).tolist()
    [0.25]
    """
    weights = np.ones((wanted.size, nodes.size))
    for j, node in enumerate(nodes):
        others = np.delete(nodes, j)
        weights[:, j] = np.prod((wanted[:, None] - others) / (node - others), axis=1)
    return weights
