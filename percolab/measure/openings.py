"""After how many openings the rows of samples are summed: exactly, or in bins of equal width.

Bonds (or sites) of a sample open one by one, M in all.  Bin b has the rows after
b * width ... (b + 1) * width - 1 openings, the last one those up to M.

Of these sums the mean at p is the sum of B(n) Q(n), with Q(n) the mean after n openings and the
binomial B(n) = M! / n! (M - n)! p^n (1 - p)^(M - n): M. E. J. Newman and R. M. Ziff, Phys. Rev. E
64, 016706 (2001).  A bin has the B of its n.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

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


def bin_middles(openings: int) -> Floats:
    """Return the middle of the numbers of openings of each bin, float64 (bins,)."""
    counts = bin_counts(openings)
    return np.asarray(np.cumsum(counts) - 0.5 * (counts + 1), np.float64)


#: n farther from the mean than so many standard deviations, and so many more, have B < 1e-30.
_SIGMAS, _MORE = 14.0, 100


def binomial(count: int, p: float) -> tuple[int, Floats]:
    """Return (first, B): the binomial probabilities of first, first + 1, ... out of ``count``.

    By the ratios of neighbours, from the most probable n on, so that nothing overflows.  What is
    left out adds up to less than 1e-25.

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
    """Return sums at each p, float64 (n_blocks, m), of those of openings, (n_blocks, bins)."""
    matrix = np.reshape([bin_weights(openings, float(value)) for value in p], (-1, sums.shape[1]))
    return np.asarray(sums @ matrix.T, np.float64)


def interpolate(
    sums: NDArray[np.int64], samples: NDArray[np.int64], openings: int, p: Sequence[float] | Floats
) -> Floats:
    """Return block means where a share p of all is open, float64 (n_blocks, m), linear between.

    For a given order, in which the open ones are no binomial choice.  A bin of several numbers of
    openings has its mean at their middle.
    """
    means = sums / (bin_counts(openings) * samples[:, None])
    places, middles = np.asarray(p) * openings, bin_middles(openings)
    return np.array([np.interp(places, middles, own) for own in means])
