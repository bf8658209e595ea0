"""The row of integers that is measured of each sample.

A row is int64: the sums over clusters (:mod:`percolab.measure.sums`), and flags, which are the
spanning bits (bit a: one cluster touches both end layers of axis a) and the wrapping bits (bit
8 + a: one closes on itself around axis a; bit 16: loops wind in two directions).
"""

import numpy as np
from numba import int64, njit, uint32

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import inner
from percolab.measure.sums import ADDED, EXACT_SUMS, ROW, SUMS, find_second

CLUSTERS, LARGEST, SECOND_LARGEST, SUM_SQUARES, SPANNING = map(
    ROW.index, ("clusters", "largest", "second_largest", "sum_squares", "spanning")
)
ROW_WIDTH = len(ROW)
#: The row of a sample whose openings are counted.
OPENINGS = "openings"
COUNTED_ROW = (*ROW, OPENINGS)
#: Added to the rule of an observable that is a number of the row, instead of 1, if flags are set.
COUNTS = 4
#: The columns where the parts of a tally begin, in rows with one (:mod:`percolab.measure.tallies`).
CUBES, FOURTHS, BINS = ROW_WIDTH, ROW_WIDTH + 2, ROW_WIDTH + 4

_empty, _with_cluster, _put = SUMS.empty, SUMS.with_cluster, SUMS.put


@inner
def row_from_sizes(sizes, count, row):
    """Write the sums of a row from the first ``count`` sizes, integers, 0 for non-roots."""
    sums = _empty()
    for i in range(count):
        sums = _with_cluster(sums, int64(sizes[i]))
    # Found separately: the loop above then has only sums and a maximum, and is vectorized.
    second = find_second(sizes, count, sums.largest)
    _put(row, 0, 1, sums)
    row[SECOND_LARGEST] = second


@njit(nogil=True, cache=True)
def row_from_labels(labels, occupied, end_sites, end_flags, sizes, reach, row):
    """Write the row of finished labels.

    labels: int32 (N,); occupied: uint32 words; end_sites int32 and end_flags uint32, equally long:
    a site of an end layer and bit 2a (first layer of axis a) or 2a + 1 (last).
    sizes, reach: scratch of N, int32 and uint32.
    """
    sizes[:] = 0
    reach[:] = 0
    for word in range(occupied.size):
        left = occupied[word]
        while left != uint32(0):
            sizes[labels[32 * word + trailing_zeros(left)]] += 1
            left = uint32(left & uint32(left - uint32(1)))
    row_from_sizes(sizes, labels.size, row)
    bits = int64(0)
    for n in range(end_sites.size):
        root = labels[end_sites[n]]
        reach[root] |= end_flags[n]
        bits |= spanning_bits(reach[root])
    row[SPANNING] = bits


def without_vacant(rows: np.ndarray, vacant: np.ndarray) -> None:
    """Remove vacant sites, each counted as a cluster of one site, from rows in place.

    rows: int64 (..., ROW_WIDTH or more); vacant: int64 (...,), the vacant sites of each.  A vacant
    site must not touch both end layers of an axis by itself.

    >>> row = np.array([3, 1, 1, 3, 3, 0])
    >>> without_vacant(row, np.int64(2)), row.tolist()
    (None, [1, 1, 0, 1, 1, 0])
    """
    single = EXACT_SUMS.with_cluster(EXACT_SUMS.empty(), 1)
    for n in ADDED:
        rows[..., n] -= single[n] * vacant
    rows[..., LARGEST] *= rows[..., CLUSTERS] > 0
    rows[..., SECOND_LARGEST] *= rows[..., CLUSTERS] > 1
    if rows.shape[-1] > ROW_WIDTH:
        rows[..., BINS] -= vacant


@inner
def spanning_bits(reach):
    """Return the bits a of those axes a whose two end layers are both in ``reach``, uint32."""
    bits = int64(0)
    if uint32(reach & uint32(reach >> uint32(1)) & uint32(0x55555555)) == uint32(0):
        return bits
    for axis in range(16):
        both = uint32(uint32(3) << uint32(2 * axis))
        if uint32(reach & both) == both:
            bits |= int64(1) << int64(axis)
    return bits


@inner
def read_observable(number, flags, mask, rule, without):
    """Return an observable of a row; ``number`` is the row's number at the observable's place.

    If ``mask`` is 0 it is this number.  Otherwise it is whether the row's flags have any (rule 0),
    all (1), some but not all (2) or none (3) of the mask, and none of ``without``
    (:class:`percolab.measure.columns.FlagRule`).  With COUNTS added to the rule, it is ``number``
    if they have, else 0.
    """
    if mask == 0:
        return number
    bits = flags & mask
    chosen = rule & (COUNTS - 1)
    has = bits == mask if chosen == 1 else bits != 0
    if chosen == 2:
        has = has and bits != mask
    elif chosen == 3:
        has = not has
    has = has and flags & without == 0
    return number * int64(has) if rule >= COUNTS else int64(has)
