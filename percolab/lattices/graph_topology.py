"""Graph: a topology given bond by bond, owned by the larger of each bond's two sites."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from percolab.lattices.topology import MAX_POINTS, Topology, num_words_of, pack_bits

#: What the axis of a graph is, where that of a lattice is "open" or "periodic": two site sets, the
#: source and the target, that a spanning cluster connects.
TERMINALS = "terminals"
#: Entries of the largest neighbour list, 16 GiB of int32.
MOST_NEIGHBOURS = 2**32


def graph_topology(
    num_sites: int,
    bonds: np.ndarray | Iterable[tuple[int, int]],
    *,
    source: np.ndarray | Sequence[int] = (),
    target: np.ndarray | Sequence[int] = (),
) -> Topology:
    """Return the topology of a graph: bond (u, v) belongs to max(u, v), in the order given.

    Parallel bonds and self-loops are kept: both are open or closed like any other bond.
    ``source`` and ``target`` are the two site sets that a spanning cluster connects.

    bonds: pairs of sites, or an integer array (num_bonds, 2), of which no Python objects are made
    ValueError: no sites, too many, a bond or terminal that names a site outside 0..num_sites-1, or
    a site with so many smaller neighbours that the list of ``num_sites`` by that many is too large

    >>> graph_topology(3, [(0, 1), (2, 1)]).bonds().tolist()
    [[0, 1, 0], [0, 2, 1]]
    """
    if not 1 <= num_sites <= MAX_POINTS:
        raise ValueError(f"a graph has 1 to {MAX_POINTS} sites, got {num_sites}")
    pairs = _sites("bond", bonds if isinstance(bonds, np.ndarray) else list(bonds), num_sites)
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise ValueError("every bond must name two sites")
    first_layer = distinct(_sites("source", source, num_sites))
    last_layer = distinct(_sites("target", target, num_sites))
    neighbours = _neighbour_list(pairs.reshape(-1, 2), num_sites)
    num_classes = len(neighbours)
    exists = np.empty((num_classes, num_words_of(num_sites)), np.uint32)
    for klass, others in enumerate(neighbours):
        exists[klass] = pack_bits(others >= 0)
    return Topology(
        num_points=num_sites,
        exists=exists,
        occupied=pack_bits(np.ones(num_sites, bool)),
        deltas=np.zeros(num_classes, np.int64),
        neighbours=neighbours,
        seam=None,
        seam_bonds=np.empty(0, np.int64),
        seam_ends=np.empty(0, np.int32),
        seam_codes=np.empty(0, np.int64),
        end_layers=((first_layer, last_layer),) if first_layer.size and last_layer.size else (),
        chain=-1,
    )


def distinct(sites: np.ndarray) -> np.ndarray:
    """Return the distinct sites in ascending order: np.unique, which is slower for integers."""
    found = np.sort(sites)
    return found[np.append(np.ones(min(found.size, 1), bool), found[1:] != found[:-1])]


def _neighbour_list(pairs: np.ndarray, num_sites: int) -> np.ndarray:
    """Return int32 (num_classes, num_sites): each site's smaller neighbours in order, then -1."""
    owner = np.maximum(pairs[:, 0], pairs[:, 1])
    counts = np.bincount(owner, minlength=num_sites)
    num_classes = max(int(counts.max()), 1)
    if num_classes * num_sites > MOST_NEIGHBOURS:
        raise ValueError(
            f"site {counts.argmax()} has {num_classes} smaller neighbours, and a list of so many "
            f"for each of {num_sites} sites is larger than {MOST_NEIGHBOURS}; "
            "number the sites with the most bonds first"
        )
    order = np.argsort(owner, kind="stable")
    klass = np.arange(owner.size)
    klass -= np.repeat(np.cumsum(counts) - counts, counts)
    neighbours = np.full((num_classes, num_sites), -1, np.int32)
    neighbours[klass, owner[order]] = np.minimum(pairs[:, 0], pairs[:, 1])[order]
    return neighbours


def _sites(what: str, given: np.ndarray | Sequence, num_sites: int) -> np.ndarray:
    """Return site numbers as int32; ValueError unless they are integers from 0 to num_sites - 1."""
    found = np.asarray(given)
    if found.size and found.dtype.kind not in "iu":
        raise ValueError(f"sites must be integers, got {found.ravel()[0]!r}")
    if found.size and (found.min() < 0 or found.max() >= num_sites):
        wrong = found[(found < 0) | (found >= num_sites)][0]
        raise ValueError(f"{what} names site {wrong}; sites are 0 to {num_sites - 1}")
    return found.astype(np.int32, copy=False)
