"""From sites to bonds: what is at the other end of every bond, and which bonds join sites."""

from __future__ import annotations

import numpy as np

from percolab.lattices.topology import Topology, pack_bits, unpack_bits


def at_other_end(topology: Topology, klass: int, values: np.ndarray) -> np.ndarray:
    """Return for every owner the value of its class's other end.

    values: one a grid point, of any dtype; the result is like it, and holds 0 (False) where the
    other end would lie outside.  It means something only where the bond exists.
    """
    if topology.neighbours is not None:
        there: np.ndarray = values[topology.neighbours[klass]]
        return there
    found = np.zeros_like(values)
    delta = int(topology.deltas[klass])
    if delta < 0:
        found[-delta:] = values[:delta]
    else:
        found[: max(values.size - delta, 0)] = values[delta:]
    owners, ends, _ = topology.list_periodic_bonds(klass)
    found[owners] = values[ends]
    return found


def bonds_between(topology: Topology, sites: np.ndarray) -> np.ndarray:
    """Return the bonds with an occupied site at both ends: uint32 (num_classes, num_words).

    sites: (num_points,), bool, the occupied ones; or integers, and both ends must have the same, 0
    where there is no site.

    >>> from percolab.lattices.lattice import load_lattice
    >>> chain = load_lattice("square").topology((4, 1))
    >>> unpack_bits(bonds_between(chain, np.array([True, True, False, True])), 4)[0].tolist()
    [False, True, False, False]
    """
    found = np.empty_like(topology.exists)
    for klass, exists in enumerate(topology.exists):
        are_equal = sites == at_other_end(topology, klass, sites)
        found[klass] = exists & pack_bits(are_equal & (sites != 0))
    return found


def is_open(topology: Topology, opened: np.ndarray, klass: int) -> np.ndarray:
    """Return which owners' bonds of a class are open, bool (num_points,)."""
    return unpack_bits(opened[klass], topology.num_points)
