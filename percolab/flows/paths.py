"""The shortest path between the terminals, in bonds, and the bonds of all shortest paths.

The length is the chemical distance; the bonds on shortest paths are the elastic backbone (H. J.
Herrmann, D. C. Hong and H. E. Stanley, J. Phys. A 17, L261 (1984)).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint32

from percolab.flows.net import UNSEEN

_UNSEEN = UNSEEN
#: The highest bit of a distance, and all lower bits.
_COMES, _LOW = np.uint32(2**31), np.uint32(2**31 - 1)


class Distances(NamedTuple):
    """Memory for a breadth-first search: order and distances of nodes, uint32 (nodes,) each."""

    order: Any
    away: Any


@njit(nogil=True, cache=True)
def find_length(net, is_open, distances):
    """Return the number of bonds of the shortest path between the terminals, 0 if there is none.

    net: a :class:`percolab.flows.net.Net`.  is_open: uint8 (bonds,).
    ``distances`` gets the distances from the first terminal of all nodes nearer than the second.
    """
    order, away = distances
    away[:] = _UNSEEN
    order[0], away[net.root] = net.root, 0
    first, count = 0, 1
    while first < count:
        node = order[first]
        first += 1
        following = uint32(away[node] + uint32(1))
        for n in range(net.starts[node], net.starts[node + uint32(1)]):
            other = net.ends[n]
            if is_open[net.bonds[n]] != 0 and away[other] == _UNSEEN:
                away[other] = following
                if other == net.sink:
                    return int(following)
                order[count] = other
                count += 1
    return 0


@njit(nogil=True, cache=True)
def mark_shortest(net, is_open, distances, marks):
    """Mark the bonds of all shortest paths, after find_length; return their number.

    marks: uint8 (m,), set to 1.  The highest bit of a distance marks nodes on shortest paths.
    """
    order, away = distances
    order[0] = net.sink
    first, count, bonds = 0, 1, 0
    while first < count:
        node = order[first]
        first += 1
        nearer = uint32((away[node] & _LOW) - uint32(1))
        for n in range(net.starts[node], net.starts[node + uint32(1)]):
            bond, other = net.bonds[n], net.ends[n]
            if is_open[bond] == 0 or (away[other] & _LOW) != nearer:
                continue
            marks[bond] = 1
            bonds += 1
            if away[other] == nearer:
                away[other] |= _COMES
                order[count] = other
                count += 1
    return bonds
