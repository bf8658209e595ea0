"""Sums of observables over the samples of blocks, from rows."""

import numpy as np
from numba import int64, njit

from percolab.measure.rows import SPANNING


@njit(nogil=True, cache=True)
def sum_blocks(rows, places, masks, rules, without):
    """Return sums and products of observables over the samples of blocks.

    rows: int64 (blocks, samples, m, row width).  Observable c is the row's number at ``places[c]``,
    or where ``masks[c]`` is not 0 whether the row has any (rule 0), all (1), some but not all (2)
    or none (3) of these flags, and none of ``without[c]``
    (:class:`percolab.measure.columns.FlagRule`).

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
                    value = row[places[c]]
                    if masks[c] != 0:
                        found = row[SPANNING] & masks[c]
                        has = found == masks[c] if rules[c] == 1 else found != 0
                        if rules[c] == 2:
                            has = has and found != masks[c]
                        elif rules[c] == 3:
                            has = not has
                        value = int64(has and row[SPANNING] & without[c] == 0)
                    sums[block, point, c] += value
                    values[c] = float(value)
                n = 0
                for first in range(width):
                    for second in range(first, width):
                        products[block, point, n] += values[first] * values[second]
                        n += 1
    return sums, products
