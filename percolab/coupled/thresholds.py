"""The spanning threshold T of a sample: the smallest p at which it spans, for every open axis.

T is exact: the threshold (ceil(p * 2^63), see :mod:`percolab.bonds.words`) at which the bond
that closes the spanning cluster opens.  A sample spans at p if and only if
T <= p_to_threshold(p), so that R_L(p) is the distribution function of T, at every p at once.

A coupling *scans* a window of thresholds for T.  Where T lies outside, the window moves on, twice
as wide each time, until T is in it, so no sample is ever left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import NEVER, TOP
from percolab.coupled import Coupling
from percolab.coupled.bisection import mark_first_items, spans_along

Thresholds = NDArray[np.uint64]


def find_thresholds(
    coupling: Coupling, generator: int, seed: int, samples: Thresholds, window: tuple[int, int]
) -> Thresholds:
    """Return T of samples along every open axis, uint64 (n, open axes); NEVER where there is none.

    samples: uint64 (n,).  window: two thresholds, low < high, between which to look first; it
    decides how long this takes, and nothing else.
    """
    axes = len(coupling.labeler.batch.topology.open_axes)
    item = np.repeat(np.arange(samples.size, dtype=np.uint64), axes)
    axis = np.tile(np.arange(axes), samples.size)
    found = np.full(item.size, NEVER, np.uint64)
    low, high = (np.full(item.size, limit, np.uint64) for limit in window)
    left = np.arange(item.size)
    while left.size:
        low, high = _narrowed(coupling, generator, seed, samples[item[left]], axis[left], low, high)
        first, where = mark_first_items(item[left], low, high)
        here = samples[item[left][first]]
        scanned = coupling.scan_windows(generator, seed, here, low[first], high[first])
        found[left] = scanned[where, axis[left]]
        left, low, high = _moved_on(left, found[left], low, high)
    return found.reshape(samples.size, axes)


def _narrowed(
    coupling: Coupling,
    generator: int,
    seed: int,
    samples: Thresholds,
    axis: NDArray[np.int64],
    low: Thresholds,
    high: Thresholds,
) -> tuple[Thresholds, Thresholds]:
    """Halve windows until the coupling can scan them, by whether the samples span in the middle."""
    widest = np.uint64(max(coupling.widest_window, 1))
    while np.any(wide := high - low > widest):
        middle = low + (high - low) // np.uint64(2)
        spans = spans_along(coupling, generator, seed, samples[wide], axis[wide], middle[wide])
        high[wide] = np.where(spans, middle[wide], high[wide])
        low[wide] = np.where(spans, low[wide], middle[wide])
    return low, high


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
