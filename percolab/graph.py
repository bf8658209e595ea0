"""Graph: a topology given bond by bond, owned by the larger of each bond's two sites."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from percolab.topology import MAX_POINTS, Topology, pack_bits


def graph_topology(
    num_sites: int,
    bonds: Iterable[tuple[int, int]],
    *,
    source: Sequence[int] = (),
    target: Sequence[int] = (),
) -> Topology:
    """Return the topology of a graph: bond (u, v) belongs to max(u, v), in the order given.

    Parallel bonds and self-loops are kept: both are open or closed like any other bond.
    ``source`` and ``target`` are the two site sets that a spanning cluster connects.
    ValueError: no sites, too many, or a bond or terminal that names a site outside 0..num_sites-1.

    >>> graph_topology(3, [(0, 1), (2, 1)]).bonds().tolist()
    [[0, 1, 0], [0, 2, 1]]
    """
    if not 1 <= num_sites <= MAX_POINTS:
        raise ValueError(f"a graph has 1 to {MAX_POINTS} sites, got {num_sites}")
    pairs, *ends = (_integers(sites) for sites in (list(bonds), source, target))
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise ValueError("every bond must name two sites")
    pairs, ends = pairs.reshape(-1, 2), [np.unique(sites) for sites in ends]
    for what, sites in (("bond", pairs), ("source", ends[0]), ("target", ends[1])):
        wrong = sites[(sites < 0) | (sites >= num_sites)]
        if wrong.size:
            raise ValueError(f"{what} names site {wrong[0]}; sites are 0 to {num_sites - 1}")
    first_layer, last_layer = (sites.astype(np.int32) for sites in ends)
    owner, other = pairs.max(axis=1), pairs.min(axis=1)
    order = np.argsort(owner, kind="stable")
    owner, other = owner[order], other[order]
    first = np.searchsorted(owner, owner, side="left")
    klass = np.arange(owner.size) - first
    num_classes = int(klass.max(initial=0)) + 1
    neighbours = np.full((num_classes, num_sites), -1, np.int32)
    neighbours[klass, owner] = other
    return Topology(
        num_points=num_sites,
        exists=pack_bits(neighbours >= 0),
        occupied=pack_bits(np.ones(num_sites, bool)),
        deltas=np.zeros(num_classes, np.int64),
        neighbours=neighbours,
        seam=None,
        seam_bonds=np.empty(0, np.int64),
        seam_ends=np.empty(0, np.int32),
        end_layers=((first_layer, last_layer),) if first_layer.size and last_layer.size else (),
        chain=-1,
    )


def _integers(sites: Sequence) -> np.ndarray:
    found = np.asarray(sites)
    if found.size and found.dtype.kind not in "iu":
        raise ValueError(f"sites must be integers, got {found.ravel()[0]!r}")
    return found.astype(np.int64)
