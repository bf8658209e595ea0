"""Which edges repeat another one: a counting sort by the smaller site, then one pass."""

from __future__ import annotations

import numpy as np
from numba import njit

#: An edge is the first between its sites; or parallel to earlier ones; or, in a matrix, the entry
#: (j, i) of an edge whose entry (i, j) was there before.
FIRST, PARALLEL, MIRROR = range(3)


@njit(nogil=True, cache=True)
def mark_repeats(edges, num_sites, is_matrix):
    """Return uint8 (num_edges,): FIRST, PARALLEL or MIRROR for each edge, in the file's order.

    edges:     int32 (num_edges, 2), without self-loops
    is_matrix: an edge may stand at (i, j), at (j, i) or at both.  Where m entries stand at (i, j)
               and n at (j, i), there are max(m, n) edges: an entry that does not raise that number
               is a MIRROR.

    Takes 9 bytes an edge and 20 bytes a site.
    """
    order, ends = _sorted_by_smaller(edges, num_sites)
    marks = np.empty(len(edges), np.uint8)
    smaller = np.full(num_sites, -1, np.int32)
    seen = np.zeros((num_sites, 2), np.int32)
    begin = 0
    for low in range(num_sites):
        for at in range(begin, ends[low]):
            edge = order[at]
            high = max(edges[edge, 0], edges[edge, 1])
            side = 1 if is_matrix and edges[edge, 0] > edges[edge, 1] else 0
            if smaller[high] != low:
                smaller[high] = low
                seen[high, 0] = seen[high, 1] = 0
            seen[high, side] += 1
            if seen[high, side] <= seen[high, 1 - side]:
                marks[edge] = MIRROR
            else:
                marks[edge] = FIRST if seen[high, 0] + seen[high, 1] == 1 else PARALLEL
        begin = ends[low]
    return marks


@njit(nogil=True, cache=True)
def repeated_edges(edges, num_sites, marks, is_matrix):
    """Return for each edge the one that it repeats, int64 (num_edges,); itself for a FIRST.

    marks: what :func:`mark_repeats` returned, with the same arguments.  A PARALLEL edge repeats the
    FIRST between its sites; the k-th entry of a matrix at (j, i), if a MIRROR, the k-th at (i, j).
    """
    order, ends = _sorted_by_smaller(edges, num_sites)
    same = np.arange(len(edges))
    # Of the current smaller site, by the larger: the first edge, and the first and the last of the
    # entries without a MIRROR so far.
    first = np.zeros(num_sites, np.int64)
    waiting = np.full((num_sites, 2), -1, np.int64)
    following = np.full(len(edges), -1, np.int64)
    begin = 0
    for low in range(num_sites):
        for at in range(begin, ends[low]):
            edge = order[at]
            high = max(edges[edge, 0], edges[edge, 1])
            if marks[edge] == MIRROR:
                same[edge] = waiting[high, 0]
                waiting[high, 0] = following[waiting[high, 0]]
                continue
            if marks[edge] == FIRST:
                first[high] = edge
                waiting[high, 0] = -1
            else:
                same[edge] = first[high]
            if not is_matrix:
                continue
            if waiting[high, 0] < 0:
                waiting[high, 0] = edge
            else:
                following[waiting[high, 1]] = edge
            waiting[high, 1] = edge
        begin = ends[low]
    return same


@njit(nogil=True)
def _sorted_by_smaller(edges, num_sites):
    """Return the edges' numbers sorted by the smaller site, stably, and each site's end in them."""
    ends = np.zeros(num_sites + 1, np.int64)
    for edge in range(len(edges)):
        ends[min(edges[edge, 0], edges[edge, 1]) + 1] += 1
    for site in range(num_sites):
        ends[site + 1] += ends[site]
    order = np.empty(len(edges), np.int64)
    for edge in range(len(edges)):
        low = min(edges[edge, 0], edges[edge, 1])
        order[ends[low]] = edge
        ends[low] += 1
    return order, ends
