"""Sums of observables over the samples of blocks, from rows."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from percolab.measure.rows import SPANNING, read_observable

#: Samples in a chunk, whose squares are summed before they are added to those of the block, so that
#: a GPU can sum chunks in parallel with the same rounding.
CHUNK = 1024
#: The most sums, one for each block and each p, that a call keeps in the memory of a GPU.
MOST_SUMS = 2**19


def sum_blocks(
    rows: NDArray[np.int64], squared: NDArray[np.bool_], *picks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return sums of observables, and of the squares of some, over the samples of blocks.

    rows: int64 (blocks, samples, m, row width).  Observable c is what
    :func:`percolab.measure.rows.read_observable` reads by ``places[c]``, ``masks[c]``, ..., the
    four arrays of picks.  squared: bool (C,), of which observables the squares are summed.

    sums: int64 (blocks, m, C).  squares: float64 (blocks, m, Q), added up sample after sample in
    chunks of CHUNK and chunk after chunk, in the same order everywhere.
    """
    blocks, _, points, _ = rows.shape
    sums = np.zeros((blocks, points, squared.size), np.int64)
    squares = np.zeros((blocks, points, np.count_nonzero(squared)), np.float64)
    _add_rows(rows, squared, picks, sums, squares, np.zeros(squares.shape[1:]))
    return sums, squares


@njit(nogil=True, cache=True)
def _add_rows(rows, squared, picks, sums, squares, chunk):
    """Add the sums of :func:`sum_blocks`; chunk: float64 (m, Q), zero before and after."""
    blocks, samples, points, _ = rows.shape
    width, num_squares = sums.shape[2], squares.shape[2]
    places, masks, rules, without = picks
    for block in range(blocks):
        for sample in range(samples):
            for point in range(points):
                row = rows[block, sample, point]
                n = 0
                for c in range(width):
                    value = read_observable(
                        row[places[c]], row[SPANNING], masks[c], rules[c], without[c]
                    )
                    sums[block, point, c] += value
                    if squared[c]:
                        chunk[point, n] += float(value) * float(value)
                        n += 1
            if sample % CHUNK == CHUNK - 1 or sample == samples - 1:
                # Element by element: for whole arrays, Numba compiles error messages for seconds.
                for point in range(points):
                    for n in range(num_squares):
                        squares[block, point, n] += chunk[point, n]
                        chunk[point, n] = 0.0
