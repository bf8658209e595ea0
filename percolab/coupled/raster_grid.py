"""Rows of one sample at a whole grid of p: label at the lowest p, then add what opens.

Near p_c a few percent of the bonds open between neighbouring p of a sweep, so that a grid costs
little more than one labeling.  The row is kept up to date at every union: clusters, sum of squares,
the two largest, the spanning bits, the tally.  The second largest alone must be looked
for again, when it was joined to the largest.
"""

from numba import int64, njit

from percolab.kernels.union_find import find_halving
from percolab.measure.rows import (
    CLUSTERS,
    ISOLATED,
    LARGEST,
    ROW_WIDTH,
    SECOND_LARGEST,
    SPANNING,
    SUM_SQUARES,
    spanning_bits,
)
from percolab.measure.tallies import tally_cluster
from percolab.measure.wrapping import join_over_periods, note_loop


@njit(nogil=True, cache=True)
def sort_by_step(steps, count, num_steps, order, ends):
    """Write the list's positions ordered by step, and where each step ends (counting sort)."""
    ends[: num_steps + 1] = 0
    for n in range(count):
        ends[steps[n] + 1] += 1
    for step in range(num_steps):
        ends[step + 1] += ends[step]
    for n in range(count):
        step = steps[n]
        order[ends[step]] = n
        ends[step] += 1


@njit
def merge_clusters(parents, sizes, reach, row, a, b):
    """Join the clusters of runs a and b and update the row; return whether its second is lost."""
    a, b = find_halving(parents, a), find_halving(parents, b)
    if a == b:
        return False
    if b < a:
        a, b = b, a
    parents[b] = a
    return add_cluster(sizes, reach, row, a, b)


@njit
def merge_over_periods(parents, sizes, reach, row, a, b, code, windings):
    """Do as :func:`merge_clusters` over ``code`` periods, and note loops that wrap."""
    a, b, wound = join_over_periods(parents, windings.periods, a, b, code)
    if a == b:
        row[SPANNING] |= note_loop(wound, windings.loop, windings.axes)
        return False
    return add_cluster(sizes, reach, row, a, b)


@njit
def add_cluster(sizes, reach, row, a, b):
    """Add root b to root a, which became its parent; return whether the row's second is lost."""
    large, small = max(int64(sizes[a]), int64(sizes[b])), min(int64(sizes[a]), int64(sizes[b]))
    joined = large + small
    sizes[a], sizes[b] = joined, 0
    reach[a] |= reach[b]
    row[SPANNING] |= spanning_bits(reach[a])
    row[CLUSTERS] -= 1
    row[SUM_SQUARES] += 2 * large * small
    row[ISOLATED] -= int64(large == 1) + int64(small == 1)
    if row.size > ROW_WIDTH:
        tally_cluster(row, large, int64(-1))
        tally_cluster(row, small, int64(-1))
        tally_cluster(row, joined, int64(1))
    largest, second = row[LARGEST], row[SECOND_LARGEST]
    if joined > largest:
        row[LARGEST] = joined
        if large == largest:
            return small == second
        row[SECOND_LARGEST] = largest
    elif joined > second:
        row[SECOND_LARGEST] = joined
    return False


@njit
def second_largest(sizes, runs, largest):
    """Return the second largest of the sizes, one ``largest`` left out; 0 if there is none."""
    second, seen = int64(0), False
    for run in range(runs):
        size = int64(sizes[run])
        if size > second:
            if size == largest and not seen:
                seen = True
            else:
                second = size
    return second
