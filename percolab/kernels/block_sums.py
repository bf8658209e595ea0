"""Sums of observables over the samples of blocks."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def sum_blocks(values):
    """Return sums and products of blocks of observables, ``values``: int64 (blocks, samples, m, C).

    sums: int64 (blocks, m, C).  products: float64 (blocks, m, C (C + 1) / 2), added up sample after
    sample, in the same order everywhere.
    """
    blocks, samples, points, columns = values.shape
    sums = np.zeros((blocks, points, columns), np.int64)
    products = np.zeros((blocks, points, columns * (columns + 1) // 2), np.float64)
    for block in range(blocks):
        for sample in range(samples):
            for point in range(points):
                n = 0
                for first in range(columns):
                    value = values[block, sample, point, first]
                    sums[block, point, first] += value
                    for second in range(first, columns):
                        other = float(values[block, sample, point, second])
                        products[block, point, n] += float(value) * other
                        n += 1
    return sums, products
