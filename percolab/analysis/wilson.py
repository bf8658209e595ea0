"""The error bar of a counted fraction."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def wilson_interval(
    successes: ArrayLike, trials: ArrayLike, *, z: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the Wilson score interval (low, high) of a binomial probability.

    `successes` and `trials` are counts of any mutually broadcastable shapes; both results have the
    broadcast shape, dtype float64, and lie in [0, 1]. `z` is the half width in standard normal
    units: z = 1 covers 68.3 %. Unlike p +- sqrt(p(1-p)/n) the interval keeps a width at p = 0 and
    p = 1; no trials give (0, 1). Raises ValueError when a count is negative or successes > trials.

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
    half_width = z * np.sqrt(spread) / denominator
    # At k = 0 and k = n the bound is 0 or 1, which rounding may miss; so it is for n = 0.
    low = np.where(k > 0, np.clip(centre - half_width, 0.0, 1.0), 0.0)
    high = np.where(k < n, np.clip(centre + half_width, 0.0, 1.0), 1.0)
    return low, high
