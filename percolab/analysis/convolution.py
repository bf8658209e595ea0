"""Means at any p from sums by the number of open bonds or sites: by the binomial distribution.

Of M bonds n are open at p with probability B(n) = M! / n! (M - n)! p^n (1 - p)^(M - n), so the mean
of an observable at p is the sum of B(n) Q(n), where Q(n) is its mean after n openings (M. E. J.
Newman and R. M. Ziff, Phys. Rev. E 64, 016706 (2001)).  Where sums are over bins of n
(:mod:`percolab.measure.openings`), a bin has the B of its n, and its mean stands for their Q.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.statistics import Floats, mean_of_blocks, standard_error
from percolab.measure.openings import bin_counts, bin_width

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
    found = np.concatenate([below[::-1], [1.0], above])
    return first, found / found.sum()


def bin_weights(openings: int, p: float) -> Floats:
    """Return the weight of every bin's sum in the mean at p, float64 (bins,)."""
    counts, (first, weights) = bin_counts(openings), binomial(openings, p)
    places = np.arange(first, first + weights.size) // bin_width(openings)
    found = np.bincount(places, weights, minlength=counts.size)
    return np.asarray(found / counts, np.float64)


def convolve(sums: NDArray[np.int64], openings: int, p: Sequence[float] | Floats) -> Floats:
    """Return sums over samples at each p, float64 (n_blocks, m).

    sums: over the samples of blocks and the openings of bins, int64 (n_blocks, bins).
    """
    matrix = np.reshape([bin_weights(openings, float(value)) for value in p], (-1, sums.shape[1]))
    return np.asarray(sums @ matrix.T, np.float64)


def interpolate(
    sums: NDArray[np.int64],
    samples: NDArray[np.int64],
    openings: int,
    p: Sequence[float] | Floats,
) -> Floats:
    """Return block means where a share p of all is open, float64 (n_blocks, m), linear between.

    For a given order, in which the open ones are no binomial choice.  A bin of several numbers of
    openings has its mean at their middle.
    """
    counts = bin_counts(openings)
    middle = np.cumsum(counts) - 0.5 * (counts + 1)
    means = sums / (counts * samples[:, None])
    return np.array([np.interp(np.asarray(p) * openings, middle, own) for own in means])


def mean_and_error(
    sums: NDArray[np.int64],
    samples: NDArray[np.int64],
    openings: int,
    p: Sequence[float] | Floats,
) -> tuple[Floats, Floats]:
    """Return the mean of an observable at each p and its standard error.

    samples: of every block, int64 (n_blocks,).  The error is the scatter of blocks, NaN of a single
    one; float64 (m,) each.
    """
    blocks = convolve(sums, openings, p) / samples[:, None]
    return mean_of_blocks(blocks, samples), standard_error(blocks, samples)


def block_mean_and_error(blocks: Floats, samples: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the mean of blocks' means (n_blocks, m) and its standard error, 0 where all agree."""
    mean, error = mean_of_blocks(blocks, samples), standard_error(blocks, samples)
    same = np.ptp(blocks, axis=0) == 0
    return np.where(same, blocks[0], mean), np.where(same & (len(blocks) > 1), 0.0, error)
