"""Bisection of rows for the threshold T of samples: what needs nothing but rows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import NEVER
from percolab.measure.rows import SPANNING

Thresholds = NDArray[np.uint64]
_ONE = np.uint64(1)


class GivesRows(Protocol):
    """Anything that gives rows of items (sample, threshold)."""

    labeler: Any

    def rows(
        self, generator: int, seed: int, samples: Thresholds, thresholds: Thresholds
    ) -> NDArray[np.int64]:
        """Return the rows (n, row width)."""
        ...


def spans_along(
    coupling: GivesRows,
    generator: int,
    seed: int,
    samples: Thresholds,
    axis: NDArray[np.int64],
    thresholds: Thresholds,
) -> NDArray[np.bool_]:
    """Return whether samples span at thresholds, along open axes by number."""
    bits = np.array([1 << axis for axis in coupling.labeler.batch.topology.open_axes], np.int64)
    first, where = mark_first_items(samples, thresholds)
    rows = coupling.rows(generator, seed, samples[first], thresholds[first])
    return np.asarray(rows[where, SPANNING] & bits[axis] != 0)


def mark_first_items(*keys: Thresholds) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which items differ from the one before, and for each item its number among these.

    The axes of a sample follow one another; those with the same question are looked at once.
    """
    first = np.ones(keys[0].size, bool)
    first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return first, np.cumsum(first) - 1


def bisect(
    coupling: GivesRows,
    generator: int,
    seed: int,
    samples: Thresholds,
    low: Thresholds,
    high: Thresholds,
) -> Thresholds:
    """Return T of samples along every open axis in a window each, uint64 (n, open axes).

    Where T is not above ``low`` it is ``low``, and where the sample does not span at ``high``
    it is NEVER.  samples, low, high: uint64 (n,), low < high.
    """
    axes = len(coupling.labeler.batch.topology.open_axes)
    numbers = np.repeat(samples, axes)
    axis = np.tile(np.arange(axes), samples.size)
    lower, upper = np.repeat(low, axes), np.repeat(high, axes)
    key = (coupling, generator, seed, numbers, axis)
    never, spanned = ~spans_along(*key, upper), spans_along(*key, lower)
    upper[spanned] = lower[spanned]
    while np.any(open_ := ~never & (upper - lower > _ONE)):
        middle = lower + (upper - lower) // np.uint64(2)
        spans = spans_along(*key, middle)
        upper = np.where(open_ & spans, middle, upper)
        lower = np.where(open_ & ~spans, middle, lower)
    upper[never] = NEVER
    return upper.reshape(samples.size, axes)
