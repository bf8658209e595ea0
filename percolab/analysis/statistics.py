"""Resampled blocks, error bars and covariances.

Bootstrap and jackknife over blocks: B. Efron, Ann. Stat. 7, 1 (1979) and SIAM (1982).
"""

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

#: With fewer blocks than this their scatter is too uncertain to resample them.
MIN_BLOCKS = 10

#: Central fraction that a one-sigma error bar covers.
ONE_SIGMA = 0.682689492137086


def draw_blocks(blocks: int, rng: np.random.Generator, replicas: int) -> Floats:
    """Draw how often each block counts in a bootstrap replica, float64 (replicas, blocks)."""
    drawn = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), size=replicas)
    return drawn.astype(float)


def with_data_first(weights: Floats) -> Floats:
    """Return weights of blocks (r, blocks) below a row of ones: the data, then r replicas."""
    return np.concatenate([np.ones((1, weights.shape[1])), weights])


def half_width(values: Floats) -> float:
    """Return half the width of the central 68.3 % of bootstrap `values`; NaN when most are absent.

    A crossing of nearly parallel curves has replicas far out, which would dominate a standard
    deviation.
    """
    finite = values[np.isfinite(values)]
    if finite.size < max(2, values.size // 2):
        return nan
    low, high = np.quantile(finite, [0.5 - 0.5 * ONE_SIGMA, 0.5 + 0.5 * ONE_SIGMA])
    return float(0.5 * (high - low))


def mean_of_blocks(values: Floats, samples: NDArray[np.int64]) -> Floats:
    """Return the mean of blocks' means (n_blocks, ...), weighted by samples, int64 (n_blocks,)."""
    return np.asarray(np.average(values, axis=0, weights=samples), np.float64)


def standard_error(values: Floats, samples: NDArray[np.int64] | None = None) -> Floats:
    """Return the standard error of a mean over the first axis, weighed by samples, or NaN."""
    if len(values) < 2:
        return np.full(np.shape(values)[1:], nan)
    return np.asarray(np.sqrt((weighted_deviations(values, samples) ** 2).sum(axis=0)), np.float64)


def weighted_deviations(values: Floats, samples: NDArray[np.int64] | None = None) -> Floats:
    """Return the contributions of n blocks to the error of their mean, (n, ...).

    Their squares add up to the variance of the mean, their products to its covariance.  values: of
    n >= 2 blocks.  samples: of each block, by which the mean weights it.
    """
    count = len(values)
    weights = np.full(count, 1 / count) if samples is None else samples / samples.sum()
    shape = (count, *(1,) * (np.ndim(values) - 1))
    # Blocks that agree have an error of exactly 0, without rounding.
    away = values - values[:1]
    away -= np.average(away, axis=0, weights=weights)
    return np.asarray(np.sqrt(count / (count - 1)) * weights.reshape(shape) * away, np.float64)


def jackknife_error(without: Floats) -> Floats:
    """Return the jackknife error from numbers without one block each (n_blocks, ...), or NaN."""
    if len(without) < 2:
        return np.full(without.shape[1:], nan)
    return np.asarray(np.sqrt((len(without) - 1) * without.var(axis=0)), np.float64)


def jackknife_value(plain: Floats, without: Floats) -> Floats:
    """Return numbers without their bias of order 1 / n_blocks; unchanged with one block.

    plain: of all blocks.  without: (n_blocks, ...), those without one block each.
    """
    n = len(without)
    return plain if n < 2 else np.asarray(n * plain - (n - 1) * without.mean(axis=0), np.float64)


def wilson_interval(
    successes: ArrayLike, trials: ArrayLike, *, z: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the Wilson score interval (low, high) of a binomial probability.

    successes, trials: counts of any mutually broadcastable shapes, which both results have, float64
    in [0, 1].  z: half width in standard normal units; 1 covers 68.3 %.  Unlike p +- sqrt(p(1-p)/n)
    the interval has a width at p = 0 and p = 1; no trials give (0, 1).  Raises ValueError when a
    count is negative or successes > trials.

    Source: E. B. Wilson, J. Am. Stat. Assoc. 22, 209 (1927).

    >>> low, high = wilson_interval(0, 100)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0099)
    """
    k, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    if np.any(k < 0) or np.any(k > n):
        raise ValueError("wilson_interval needs 0 <= successes <= trials")
    safe_n = np.where(n > 0, n, 1.0)
    fraction = k / safe_n
    denominator = 1.0 + z * z / safe_n
    centre = (fraction + z * z / (2.0 * safe_n)) / denominator
    spread = fraction * (1.0 - fraction) / safe_n + (z / (2.0 * safe_n)) ** 2
    half = z * np.sqrt(spread) / denominator
    # At k = 0 and k = n the bound is 0 or 1, which rounding may miss; so it is for n = 0.
    low = np.where(k > 0, np.clip(centre - half, 0.0, 1.0), 0.0)
    high = np.where(k < n, np.clip(centre + half, 0.0, 1.0), 1.0)
    return low, high


def unit_diagonal(matrix: Floats) -> tuple[Floats, Floats]:
    """Return a symmetric matrix (k, k) scaled to a diagonal of ones, and the scale (k,)."""
    scale = 1.0 / np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
    return matrix * (scale[:, None] * scale), scale


def whitening(covariance: Floats) -> Floats:
    """Return W (n, n), W @ x being of unit covariance; LinAlgError: `covariance` is singular."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)), np.float64)


def geometric_mean(sizes: Sequence[float] | Floats) -> float:
    """Return the geometric mean of sizes, about which powers of L are nearly orthogonal.

    >>> round(geometric_mean([4, 9]), 12)
    6.0
    """
    return float(np.exp(np.mean(np.log(sizes))))
