"""Sums of observables over the samples of blocks, from rows."""

import numpy as np
from numba import njit

from percolab.measure.rows import SPANNING, read_observable


@njit(nogil=True, cache=True)
def sum_blocks(rows, places, masks, rules, without):
    """Return sums and products of observables over the samples of blocks.

    rows: int64 (blocks, samples, m, row width).  Observable c is what
    :func:`percolab.measure.rows.read_observable` reads by ``places[c]``, ``masks[c]``, ...

    sums: int64 (blocks, m, C).  products: float64 (blocks, m, C (C + 1) / 2), added up sample after
    sample, in the same order everywhere.
    """
    blocks, samples, points, _ = rows.shape
    width = places.size
    sums = np.zeros((blocks, points, width), np.int64)
    products = np.zeros((blocks, points, width * (width + 1) // 2), np.float64)
    values = np.empty(width, np.float64)
    for block in range(blocks):
        for sample in range(samples):
            for point in range(points):
                row = rows[block, sample, point]
                for c in range(width):
                    value = read_observable(
                        row[places[c]], row[SPANNING], masks[c], rules[c], without[c]
                    )
                    sums[block, point, c] += value
                    values[c] = float(value)
                n = 0
                for first in range(width):
                    for second in range(first, width):
                        products[block, point, n] += values[first] * values[second]
                        n += 1
    return sums, products
