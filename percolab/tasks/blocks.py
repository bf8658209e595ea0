"""Blocks of samples, and the error bars of counted fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from percolab.measure.observables import Observable


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
    from percolab.measure.tallies import sums_of_tallies
    from percolab.tasks.block_sums import sum_blocks

    picks = (
        np.array([getattr(item, key) for item in observables], np.int64)
        for key in ("column", "mask", "rule", "without")
    )
    sums, products = sum_blocks(np.ascontiguousarray(rows), *picks)
    found = sums_of_tallies(rows) | (extras or {})
    others = ({name: array[n] for name, array in found.items()} for n in range(len(numbers)))
    return [Block(*block) for block in zip(numbers, sums, products, others, strict=True)]
