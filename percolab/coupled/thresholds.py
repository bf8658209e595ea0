"""The spanning threshold T of a sample: the smallest p at which it spans, for every open axis.

T is exact: the threshold (ceil(p * 2^63), see :mod:`percolab.bonds.words`) at which the bond
that closes the spanning cluster opens.  A sample spans at p if and only if
T <= p_to_threshold(p), so that R_L(p) is the distribution function of T, at every p at once.

A coupling *scans* a window of thresholds for T.  If T lies outside, the window moves on and doubles
its width each time, until T is in it, so no sample is ever left out.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import NEVER, TOP
from percolab.coupled import Coupling, Samples
from percolab.measure.rows import SPANNING

Integers = NDArray[np.int64]


def find_thresholds(
    coupling: Coupling,
    generator: int,
    seed: int,
    samples: Samples,
    window: tuple[int, int],
    driven: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Samples:
    """Return T of samples along every open axis, uint64 (n, open axes); NEVER where there is none.

    samples: uint64 (n,).  window: two thresholds, low < high, of the first window; it affects
    nothing but the time.  driven: a context manager in which the coupling works; outside of it,
    another thread may use its device.
    """
    axes = len(coupling.labeler.batch.topology.open_axes)
    widest = np.uint64(max(coupling.widest_window, 1))
    thresholds = np.full(samples.size * axes, NEVER, np.uint64)
    left = np.arange(thresholds.size)
    low, high = (np.full(samples.size, limit, np.uint64) for limit in window)
    if window[1] - window[0] <= widest:
        # All samples begin with the same window, after which few are left.
        with driven():
            thresholds = coupling.scan_windows(generator, seed, samples, low, high).ravel()
        left = np.flatnonzero(np.logical_or(*_miss(thresholds, *np.array(window, np.uint64))))
        place = left // axes
        left, low, high = _moved_on(left, thresholds[left], low[place], high[place])
    else:
        low, high = np.repeat(low, axes), np.repeat(high, axes)
    while left.size:
        numbers, axis = samples[left // axes], left % axes
        # Halve windows until the coupling can scan them.
        while np.any(wide := high - low > widest):
            middle = low[wide] + (high[wide] - low[wide]) // np.uint64(2)
            with driven():
                spans = _spans(coupling, generator, seed, numbers[wide], axis[wide], middle)
            high[wide] = np.where(spans, middle, high[wide])
            low[wide] = np.where(spans, low[wide], middle)
        first, where = _mark_first(numbers, low, high)
        here = numbers[first]
        with driven():
            scanned = coupling.scan_windows(generator, seed, here, low[first], high[first])
        thresholds[left] = scanned[where, axis]
        left, low, high = _moved_on(left, thresholds[left], low, high)
    return thresholds.reshape(samples.size, axes)


def _miss(
    thresholds: Samples, low: Samples, high: Samples
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return booleans: which T are below their windows, and which are above."""
    below = (thresholds <= low) & (low > 0)
    return below, (thresholds == np.uint64(NEVER)) & (high < np.uint64(TOP))


def _moved_on(
    left: Integers, thresholds: Samples, low: Samples, high: Samples
) -> tuple[Integers, Samples, Samples]:
    """Return the samples whose T is not in its window, with adjacent windows twice as wide."""
    below, above = _miss(thresholds, low, high)
    wider = np.minimum(high - low, np.uint64(TOP // 2)) * np.uint64(2)
    next_low = np.where(below, low - np.minimum(wider, low), high)
    next_high = np.where(below, low, high + np.minimum(wider, np.uint64(TOP) - high))
    again = below | above
    return left[again], next_low[again], next_high[again]


def bisect(
    coupling: Coupling, generator: int, seed: int, samples: Samples, low: Samples, high: Samples
) -> Samples:
    """Return the result of :meth:`Coupling.scan_windows`, computed from rows alone."""
    numbers, axis, axes = _per_axis(coupling, samples)
    lower, upper = np.repeat(low, axes), np.repeat(high, axes)
    key = coupling, generator, seed, numbers, axis
    never, spanned = ~_spans(*key, upper), _spans(*key, lower)
    upper[spanned] = lower[spanned]
    while np.any(open_ := ~never & (upper - lower > np.uint64(1))):
        middle = lower + (upper - lower) // np.uint64(2)
        spans = _spans(*key, middle)
        upper = np.where(open_ & spans, middle, upper)
        lower = np.where(open_ & ~spans, middle, lower)
    upper[never] = NEVER
    return upper.reshape(samples.size, axes)


def _per_axis(coupling: Coupling, samples: Samples) -> tuple[Samples, Integers, int]:
    """Return each sample once per open axis, the axes' numbers, and the number of open axes."""
    axes = len(coupling.labeler.batch.topology.open_axes)
    return np.repeat(samples, axes), np.tile(np.arange(axes), samples.size), axes


def _spans(
    coupling: Coupling,
    generator: int,
    seed: int,
    samples: Samples,
    axis: Integers,
    thresholds: Samples,
) -> NDArray[np.bool_]:
    """Return whether samples span at thresholds, along open axes by number."""
    bits = np.array([1 << axis for axis in coupling.labeler.batch.topology.open_axes], np.int64)
    first, where = _mark_first(samples, thresholds)
    rows = coupling.rows(generator, seed, samples[first], thresholds[first])
    return np.asarray(rows[where, SPANNING] & bits[axis] != 0)


def _mark_first(*keys: NDArray[np.integer]) -> tuple[NDArray[np.bool_], Integers]:
    """Return which entries differ from the previous one in a key, and their cumulative number.

    The axes of a sample follow one another; equal samples and thresholds are measured once.
    """
    first = np.ones(keys[0].size, bool)
    first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return first, np.cumsum(first) - 1
