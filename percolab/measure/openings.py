"""Sums of rows by the number of openings: for every number, or in bins of equal width.

Bonds (or sites) of a sample open one by one, M in all.  Bin b has the rows after
b * width ... (b + 1) * width - 1 openings, the last one those up to M.

The mean at p is the sum of B(n) Q(n), with Q(n) the mean after n openings and the binomial
probability B(n) = M! / n! (M - n)! p^n (1 - p)^(M - n): M. E. J. Newman and R. M. Ziff, Phys. Rev.
E 64, 016706 (2001).  The weight of the sum of a bin is the mean of B over its n.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The sums of s_1^2 of the largest cluster, which are stored in addition to the observables.
LARGEST_SQUARES = "largest_squares"
#: The most bins of a block; up to this many rows of a sample, each has a separate bin.
MOST_BINS = 2**13 + 1
#: The most openings, and the most grid points, of a sample.
MOST_OPENINGS = 2**24
MOST_WIDTH = 2**11


def bin_width(openings: int) -> int:
    """Return the width of a bin, in numbers of openings: the least power of 2 within MOST_BINS.

    >>> [bin_width(openings) for openings in (0, 8192, 8193, 2**24)]
    [1, 1, 2, 2048]
    """
    width = 1
    while openings // width + 1 > MOST_BINS:
        width *= 2
    return width


def bin_counts(openings: int) -> NDArray[np.int64]:
    """Return the number of different n in each bin, int64 (bins,).

    >>> bin_counts(3).tolist()
    [1, 1, 1, 1]
    """
    width = bin_width(openings)
    edges = np.arange(0, openings + width + 1, width)
    return np.diff(np.minimum(edges, openings + 1))


def bin_middles(openings: int) -> Floats:
    """Return the middle of the numbers of openings of each bin, float64 (bins,)."""
    counts = bin_counts(openings)
    return np.asarray(np.cumsum(counts) - 0.5 * (counts + 1), np.float64)


#: B < 1e-30 if n is farther from the mean than _SIGMAS standard deviations plus _MORE.
_SIGMAS, _MORE = 14.0, 100


def binomial(count: int, p: float) -> tuple[int, Floats]:
    """Return (first, B): the binomial probabilities of first, first + 1, ... out of ``count``.

    They are computed by ratios of neighbours, starting at the most probable n, so that nothing
    overflows.  The omitted ones add up to less than 1e-25.

    >>> binomial(2, 0.5)
    (0, array([0.25, 0.5 , 0.25]))
    """
    if p <= 0 or p >= 1 or not count:
        return (count if p >= 1 else 0), np.ones(1)
    mode = min(int((count + 1) * p), count)
    reach = int(_SIGMAS * (count * p * (1 - p)) ** 0.5) + _MORE
    first, last = max(mode - reach, 0), min(mode + reach, count)
    up, down = np.arange(mode, last), np.arange(mode, first, -1)
    above = np.cumprod((count - up) / (up + 1) * (p / (1 - p)))
    below = np.cumprod(down / (count - down + 1) * ((1 - p) / p))
    terms = np.concatenate([below[::-1], [1.0], above])
    return first, terms / terms.sum()


def bin_weights(openings: int, p: float) -> Floats:
    """Return the weight of every bin's sum in the mean at p, float64 (bins,)."""
    counts, (first, weights) = bin_counts(openings), binomial(openings, p)
    places = np.arange(first, first + weights.size) // bin_width(openings)
    in_bins = np.bincount(places, weights, minlength=counts.size)
    return np.asarray(in_bins / counts, np.float64)


def convolve(sums: NDArray[np.int64], openings: int, p: Sequence[float] | Floats) -> Floats:
    """Return sums at each p, float64 (n_blocks, m), from those by openings, (n_blocks, bins)."""
    matrix = np.reshape([bin_weights(openings, float(value)) for value in p], (-1, sums.shape[1]))
    return np.asarray(sums @ matrix.T, np.float64)


def interpolate(
    sums: NDArray[np.int64], samples: NDArray[np.int64], openings: int, p: Sequence[float] | Floats
) -> Floats:
    """Return block means at which a fraction p is open, by linear interpolation, (n_blocks, m).

    This is for a given order of opening, where no binomial average applies; float64.  The mean of a
    bin with several n is assigned to their middle.
    """
    means = sums / (bin_counts(openings) * samples[:, None])
    places, middles = np.asarray(p) * openings, bin_middles(openings)
    return np.array([np.interp(places, middles, own) for own in means])
