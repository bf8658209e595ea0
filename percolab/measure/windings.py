"""Which clusters of one configuration wrap around which periodic axes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.lattices.topology import Topology
from percolab.measure.wrapping import mark_wrapping


def wrapping_clusters(
    topology: Topology, opened: NDArray[np.uint32], numbers: NDArray[np.int32]
) -> dict[int, NDArray[np.int64]]:
    """Return by periodic axis the numbers of the clusters that wrap around it, int64, ascending.

    opened: uint32 (num_classes, num_words), the open bonds.  numbers: int32 (num_points,), of every
    site's cluster.
    """
    periodic = [axis for axis in range(topology.num_axes) if axis not in topology.open_axes]
    if not periodic or not topology.shape:
        return {}
    wraps = np.zeros((int(numbers.max(initial=0)) + 1, topology.num_axes), bool)
    scratch = np.empty(topology.num_points, np.int32), np.empty(topology.num_points, np.int64)
    mark_wrapping(opened.ravel(), make_adjacency(topology), *scratch, numbers, wraps)
    return {axis: np.flatnonzero(wraps[:, axis]) for axis in periodic}
