"""The tally of a sample: the number of clusters of every size, and sums of high powers of sizes.

A tally follows a row's columns, all int64 or uint64: two sums over the clusters of EXACT sites or
more, of s^3 and of s^4, each as (low, high) 64 bits, since s^4 may take 128; then the number of
clusters in every *bin* of sizes.  Below EXACT a bin is one size, so that the sums over smaller
clusters follow from the counts; above, every power of two is divided into four bins.
"""

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.kernels.bits import highest_one
from percolab.kernels.inner import inner
from percolab.measure.rows import BINS, CUBES, FOURTHS, LARGEST, ROW_WIDTH

#: The smallest size that shares its bin, and the bins of each power of two from there on.
EXACT, PER_OCTAVE = 64, 4

_OCTAVE = 6  # of EXACT
_SHIFT = 2  # of PER_OCTAVE


def num_bins(largest: int) -> int:
    """Return how many bins clusters of up to ``largest`` sites need, at least 1.

    This is plain Python, as modules call it when they are imported, before anything is compiled.

    >>> num_bins(63), num_bins(64), num_bins(128), num_bins(2**40)
    (63, 64, 68, 200)
    """
    largest = int(largest)
    if largest < EXACT:
        return largest
    octave = largest.bit_length() - 1
    part = (largest >> (octave - _SHIFT)) - PER_OCTAVE
    return EXACT + PER_OCTAVE * (octave - _OCTAVE) + part


def compute_row_width(largest: int) -> int:
    """Return the columns of a row with a tally of clusters of up to ``largest`` sites."""
    return BINS + num_bins(largest)


def bin_edges(largest: int) -> np.ndarray:
    """Return the smallest size of every bin and of the one after the last: int64 (bins + 1,).

    >>> bin_edges(130)[60:].tolist()
    [61, 62, 63, 64, 80, 96, 112, 128, 160]
    """
    octaves = range(_OCTAVE, int(largest).bit_length() + 1)
    wide = [(PER_OCTAVE + part) << (octave - _SHIFT) for octave in octaves for part in range(4)]
    return np.array([*range(1, EXACT), *wide], np.int64)[: num_bins(largest) + 1]


def quarter_edges(largest: int) -> np.ndarray:
    """Return the edges of the quarters of the bins of :func:`bin_edges`, int64 (4 bins + 1,).

    A bin of one number has it in its last quarter, and the other quarters are empty.

    >>> quarter_edges(64)[-9:].tolist()
    [63, 63, 63, 63, 64, 68, 72, 76, 80]
    """
    edges = bin_edges(largest)
    quarters = edges[:-1, None] + np.diff(edges)[:, None] * np.arange(4) // 4
    return np.append(quarters.ravel(), edges[-1])


#: Bins of currents, four per octave; the last one is for all currents below about 2^-32.
CURRENT_BINS = 129


def current_edges() -> np.ndarray:
    """Return the upper edges of the bins of currents, descending, float64 (CURRENT_BINS,).

    All are irrational, while currents are ratios of integers, so rounding does not change a bin.

    >>> current_edges()[:2].round(4).tolist()
    [1.0905, 0.917]
    """
    return np.asarray(2.0 ** (0.125 - np.arange(CURRENT_BINS) / 4))


@inner
def size_bin(size):
    """Return the bin, int64 from 0 on, of a cluster's size, at least 1 and below 2^32."""
    size = uint32(size)
    if size < uint32(EXACT):
        return int64(size) - int64(1)
    octave = int64(highest_one(size))
    part = int64(size >> uint32(octave - int64(_SHIFT))) - int64(PER_OCTAVE)
    return int64(EXACT - 1) + int64(PER_OCTAVE) * (octave - int64(_OCTAVE)) + part


@inner
def find_wide_bin(size):
    """Return the bin, int64, of a cluster's size, at least 1, uint64."""
    size, octaves = uint64(size), int64(0)
    while uint64(size >> uint64(32)) != uint64(0):
        # Above 2^22, a shift by sixteen bits keeps the quarter and lowers the octave by sixteen.
        size, octaves = uint64(size >> uint64(16)), int64(octaves + int64(16))
    return int64(size_bin(size) + int64(PER_OCTAVE) * octaves)


@inner
def product(x, y):
    """Return x * y, uint64 each, as (low, high) 64 bits."""
    mask, half = uint64(0xFFFFFFFF), uint64(32)
    x0, x1 = uint64(x & mask), uint64(x >> half)
    y0, y1 = uint64(y & mask), uint64(y >> half)
    low, middle = uint64(x0 * y0), uint64(x1 * y0)
    other = uint64(uint64(x0 * y1) + uint64(low >> half))
    middle = uint64(middle + uint64(other & mask))
    high = uint64(uint64(x1 * y1) + uint64(uint64(other >> half) + uint64(middle >> half)))
    return uint64(uint64(middle << half) | uint64(low & mask)), high


@inner
def add_wide(row, at, low, high):
    """Add 128 bits, two uint64, modulo 2^128, to the pair of columns at ``at``."""
    total = uint64(uint64(row[at]) + low)
    carry = uint64(1) if total < low else uint64(0)
    row[at] = int64(total)
    row[at + 1] = int64(uint64(uint64(row[at + 1]) + uint64(high + carry)))


@inner
def negative(low, high):
    """Return the negative of a 128-bit number, modulo 2^128, as (low, high)."""
    low, high = uint64(~low), uint64(~high)
    low = uint64(low + uint64(1))
    return low, uint64(high + (uint64(1) if low == uint64(0) else uint64(0)))


@inner
def tally_cluster(row, size, number):
    """Add ``number`` (1 or -1) clusters of a size to the tally of a row."""
    row[BINS + size_bin(size)] += number
    if size >= EXACT:
        square = uint64(uint64(size) * uint64(size))
        for at, other in ((CUBES, uint64(size)), (FOURTHS, square)):
            low, high = product(square, other)
            if number < 0:
                low, high = negative(low, high)
            add_wide(row, at, low, high)


@njit(nogil=True, cache=True)
def tally_sizes(sizes, count, listed, row):
    """Write the tally of a row from the first ``count`` sizes, 0 where there is no root.

    listed: scratch of ``count`` integers.
    """
    row[ROW_WIDTH:] = 0
    clusters = int64(0)
    for i in range(count):
        # There is no branch, as half of them would be mispredicted.
        listed[clusters] = sizes[i]
        clusters += int64(sizes[i] > 0)
    for i in range(clusters):
        tally_cluster(row, int64(listed[i]), int64(1))


def sum_tallies(rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the sums of the tallies of rows, int64 (blocks, samples, m, row width).

    "size_counts": int64 (blocks, m, bins); "powers": float64 (blocks, m, 4), the sums over samples,
    one after the other, of sum s^3, sum s^4, s_1^3, s_1^4.  {} if the rows have no tally.
    """
    if rows.shape[-1] == ROW_WIDTH:
        return {}
    counts, powers = _sum_tallies(rows)
    return {"size_counts": counts, "powers": powers}


@njit(nogil=True, cache=True)
def _sum_tallies(rows):
    blocks, samples, points, width = rows.shape
    counts = np.zeros((blocks, points, width - BINS), np.int64)
    powers = np.zeros((blocks, points, 4), np.float64)
    small = min(width - BINS, EXACT - 1)
    for block in range(blocks):
        for sample in range(samples):
            for point in range(points):
                row = rows[block, sample, point]
                for n in range(width - BINS):
                    counts[block, point, n] += row[BINS + n]
                cubes, fourths = int64(0), int64(0)
                for n in range(small):
                    size = int64(n + 1)
                    cube = size * size * size
                    cubes += row[BINS + n] * cube
                    fourths += row[BINS + n] * cube * size
                largest = float(row[LARGEST])
                powers[block, point, 0] += _wide(row, CUBES) + float(cubes)
                powers[block, point, 1] += _wide(row, FOURTHS) + float(fourths)
                powers[block, point, 2] += largest * largest * largest
                powers[block, point, 3] += (largest * largest) * (largest * largest)
    return counts, powers


@inner
def _wide(row, at):
    """Return the 128-bit number of a pair of columns, rounded to a float."""
    return float(uint64(row[at + 1])) * 18446744073709551616.0 + float(uint64(row[at]))
