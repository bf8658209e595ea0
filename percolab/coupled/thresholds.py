"""The spanning threshold T of a sample: the smallest p at which it spans, for every open axis.

T is exact: the threshold (ceil(p * 2^63), see :mod:`percolab.bonds.words`) at which the bond
that closes the spanning cluster opens.  A sample spans at p if and only if T <= threshold_of(p), so
that R_L(p) is the distribution function of T, at every p at once.

A labeler *scans* a window of thresholds for T.  Where T lies outside, the window moves on, twice as
wide each time, until T is in it, so no sample is ever left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import NEVER, TOP
from percolab.measure.rows import SPANNING

Thresholds = NDArray[np.uint64]
_ONE = np.uint64(1)


def find_thresholds(
    labeler: Any, generator: int, seed: int, samples: Thresholds, window: tuple[int, int]
) -> Thresholds:
    """Return T of samples along every open axis, uint64 (n, open axes); NEVER where there is none.

    samples: uint64 (n,).  window: two thresholds, low < high, between which to look first; it
    decides how long this takes, and nothing else.
    """
    axes = len(labeler.topology.open_axes)
    item = np.repeat(np.arange(samples.size, dtype=np.uint64), axes)
    axis = np.tile(np.arange(axes), samples.size)
    found = np.full(item.size, NEVER, np.uint64)
    low, high = (np.full(item.size, limit, np.uint64) for limit in window)
    left = np.arange(item.size)
    while left.size:
        low, high = _narrowed(labeler, generator, seed, samples[item[left]], axis[left], low, high)
        first, where = _shared(item[left], low, high)
        here = samples[item[left][first]]
        scanned = labeler.scan_windows(generator, seed, here, low[first], high[first])
        found[left] = scanned[where, axis[left]]
        left, low, high = _moved_on(left, found[left], low, high)
    return found.reshape(samples.size, axes)


def _narrowed(
    labeler: Any,
    generator: int,
    seed: int,
    samples: Thresholds,
    axis: NDArray[np.int64],
    low: Thresholds,
    high: Thresholds,
) -> tuple[Thresholds, Thresholds]:
    """Halve windows until the labeler can scan them, by whether the samples span in the middle."""
    widest = np.uint64(max(labeler.widest_window, 1))
    while np.any(wide := high - low > widest):
        middle = low + (high - low) // np.uint64(2)
        spans = _spans(labeler, generator, seed, samples[wide], axis[wide], middle[wide])
        high[wide] = np.where(spans, middle[wide], high[wide])
        low[wide] = np.where(spans, low[wide], middle[wide])
    return low, high


def _spans(
    labeler: Any,
    generator: int,
    seed: int,
    samples: Thresholds,
    axis: NDArray[np.int64],
    thresholds: Thresholds,
) -> NDArray[np.bool_]:
    """Return whether samples span at thresholds, along open axes by number."""
    bits = np.array([1 << axis for axis in labeler.topology.open_axes], np.int64)
    first, where = _shared(samples, thresholds)
    rows = labeler.rows(generator, seed, samples[first], thresholds[first])
    return rows[where, SPANNING] & bits[axis] != 0


def _shared(*keys: Thresholds) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which items differ from the one before, and for each item its number among these.

    The axes of a sample follow one another; those that ask the same are asked once.
    """
    first = np.ones(keys[0].size, bool)
    first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return first, np.cumsum(first) - 1


def _moved_on(
    left: NDArray[np.int64], found: Thresholds, low: Thresholds, high: Thresholds
) -> tuple[NDArray[np.int64], Thresholds, Thresholds]:
    """Return those whose T is not in its window, and windows twice as wide next to these."""
    below = (found <= low) & (low > 0)
    above = (found == np.uint64(NEVER)) & (high < np.uint64(TOP))
    wider = np.minimum(high - low, np.uint64(TOP // 2)) * np.uint64(2)
    next_low = np.where(below, low - np.minimum(wider, low), high)
    next_high = np.where(below, low, high + np.minimum(wider, np.uint64(TOP) - high))
    again = below | above
    return left[again], next_low[again], next_high[again]


class Bisection:
    """Scans windows with nothing but rows, by bisection; what a labeler does unless it can more."""

    @property
    def widest_window(self) -> int:
        """The widest window of thresholds that can be scanned."""
        return TOP

    def scan_windows(
        self, generator: int, seed: int, samples: Thresholds, low: Thresholds, high: Thresholds
    ) -> Thresholds:
        """Return T of samples along every open axis in a window each, uint64 (n, open axes).

        Where T is not above ``low`` it is ``low``, and where the sample does not span at ``high``
        it is NEVER.  samples, low, high: uint64 (n,), low < high.
        """
        axes = len(self.topology.open_axes)  # type: ignore[attr-defined]
        numbers = np.repeat(samples, axes)
        axis = np.tile(np.arange(axes), samples.size)
        lower, upper = np.repeat(low, axes), np.repeat(high, axes)
        key = (self, generator, seed, numbers, axis)
        never, spanned = ~_spans(*key, upper), _spans(*key, lower)
        upper[spanned] = lower[spanned]
        while np.any(open_ := ~never & (upper - lower > _ONE)):
            middle = lower + (upper - lower) // np.uint64(2)
            spans = _spans(*key, middle)
            upper = np.where(open_ & spans, middle, upper)
            lower = np.where(open_ & ~spans, middle, lower)
        upper[never] = NEVER
        return upper.reshape(samples.size, axes)
