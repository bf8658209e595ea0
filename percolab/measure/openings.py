"""After how many openings the rows of samples are summed: exactly, or in bins of equal width.

Bonds (or sites) of a sample open one by one, M in all.  Bin b has the rows after
b * width ... (b + 1) * width - 1 openings, the last one those up to M.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The sums of s_1^2 of the largest cluster, which are stored in addition to the observables.
LARGEST_SQUARES = "largest_squares"
#: Bins of a block, at most: up to so many rows of a sample are kept exactly.
MOST_BINS = 2**13 + 1
#: Openings and grid points of a sample, at most, and the width of bins that they have.
MOST_OPENINGS = 2**24
MOST_WIDTH = 2**11


def bin_width(openings: int) -> int:
    """Return how many numbers of openings a bin has: the least power of 2 that MOST_BINS allow.

    >>> [bin_width(openings) for openings in (0, 8192, 8193, 2**24)]
    [1, 1, 2, 2048]
    """
    width = 1
    while openings // width + 1 > MOST_BINS:
        width *= 2
    return width


def bin_counts(openings: int) -> NDArray[np.int64]:
    """Return how many numbers of openings each bin has, int64 (bins,).

    >>> bin_counts(3).tolist()
    [1, 1, 1, 1]
    """
    width = bin_width(openings)
    edges = np.arange(0, openings + width + 1, width)
    return np.diff(np.minimum(edges, openings + 1))
