"""Blocks of samples, and the error bars of counted fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from percolab.observables import Observable


@dataclass(frozen=True, eq=False)
class Block:
    """Sums over a fixed, numbered range of samples of one task; m values of p, C observables.

    number:   samples number * block_size ... (number + 1) * block_size - 1
    sums:     int64 (m, C), exact
    products: float64 (m, C (C + 1) / 2), sums of products of every two observables, first with
              first, first with second, ...; each product and each partial sum is rounded
    extras:   by name, what is measured beside the observables (:class:`Extra`), (m, columns)
    """

    number: int
    sums: NDArray[np.int64]
    products: NDArray[np.float64]
    extras: dict[str, NDArray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ThresholdBlock:
    """The spanning thresholds of a fixed, numbered range of samples of one task.

    number:     samples number * block_size ... (number + 1) * block_size - 1
    thresholds: uint64 (block_size, open axes), T in units of 2^-63: a sample spans along an axis
                when the bonds with u < T are open, and not when fewer are; 2^64 - 1 is never
    """

    number: int
    thresholds: NDArray[np.uint64]


AnyBlock = Block | ThresholdBlock


def blocks_of(
    numbers: Sequence[int],
    rows: NDArray[np.int64],
    observables: Sequence[Observable],
    extras: dict[str, NDArray] | None = None,
) -> list[Block]:
    """Return the blocks of samples with these rows, int64 (blocks, samples, m, row width).

    extras: further sums of the blocks, (blocks, m, columns) by name, beside those of tallies.
    """
    from percolab.kernels.block_sums import sum_blocks
    from percolab.kernels.tally import sums_of_tallies

    picks = (
        np.array([getattr(item, key) for item in observables], np.int64)
        for key in ("column", "mask", "rule", "without")
    )
    sums, products = sum_blocks(np.ascontiguousarray(rows), *picks)
    found = sums_of_tallies(rows) | (extras or {})
    others = ({name: array[n] for name, array in found.items()} for n in range(len(numbers)))
    return [Block(*block) for block in zip(numbers, sums, products, others, strict=True)]


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
