"""Pilot of what does not scale, graphs and Bethe lattices: place p over what clusters show.

Their thresholds are those of one size, so the p are placed about the maxima of three functions: the
second largest cluster <s_2>, the mean cluster size chi without the largest cluster, and the scatter
of the largest, (<s_1^2> - <s_1>^2)/<s_1>.  From nothing but p in (0, 1):

1. By bisection, the p at which the largest cluster has half of its size at p = 1, to within a
   factor of about 1.5.  What is sought lies below, or not far above: the first window is (0, 2 p).
2. On ROUND points of the window the mean of a few samples is taken.  The next window is where it is
   above half its maximum, out to the points on both sides where it no longer is.  This is repeated
   until a window is not narrowed to less than half any more, for each function by itself: in
   scale-free graphs the maxima lie apart, and one is much sharper.
3. POINTS p cover all windows, as dense as the narrowest asks for where they overlap.  Where there
   are ends that a sample can connect, the p between which that begins are covered, too: on a Bethe
   lattice, most of whose sites are at its surface, they lie far below the maxima.

A graph with a second component nearly as large as its first has the maximum of <s_2> at p = 1; the
window then reaches up to there.  The pilot's samples come from another seed than the study's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import threshold_of
from percolab.measure.rows import LARGEST, SECOND_LARGEST, SUM_SQUARES
from percolab.run.pilot import covering, pilot_of, transitions_of
from percolab.run.sampler import Device, Sampler
from percolab.tasks.study import Study

POINTS, ROUND = 25, 16
# Samples of a mean: many of a small graph; large ones differ little from each other.
_MOST_SAMPLES, _LEAST_SAMPLES, _SITES = 48, 8, 2**21
_MAX_ROUNDS, _MAX_STEPS = 20, 40
# The functions that are taken, in their order.
_LARGEST, *_PEAKED = range(4)

Floats = NDArray[np.float64]


def place_over_maxima(
    study: Study,
    *,
    labeler: str | None = None,
    device: Device,
    report: Callable[[int, tuple[float, ...]], None] | None = None,
) -> dict[int, tuple[float, ...]]:
    """Return the p values of every size of a study, small sizes first.

    InputError as :func:`percolab.run.pilot.place_probabilities`, if the study has ends to connect.
    """
    grids: dict[int, tuple[float, ...]] = {}
    spanning: dict[int, list[tuple[float, float]]] = {}
    if study.boundary:
        for size, begin, end in transitions_of(study, labeler=labeler, device=device):
            spanning[size] = list(zip(begin.clip(0.0, 1.0), end.clip(0.0, 1.0)))
    for size in study.sizes:
        sampler = Sampler(pilot_of(study.task(size)), labeler=labeler, device=device)
        first = 0.0, min(2 * _half_grown(sampler), 1.0)
        windows = [_narrowed(sampler, first, which) for which in _PEAKED]
        low, high = np.array(windows + spanning.get(size, [])).T
        grids[size] = covering(low, high, POINTS)
        if report is not None:
            report(size, grids[size])
    return grids


def _narrowed(sampler: Sampler, window: tuple[float, float], which: int) -> tuple[float, float]:
    """Return two p between which a function is above half its maximum, and a little more."""
    low, high = window
    for _ in range(_MAX_ROUNDS):
        p, wide = np.linspace(low, high, ROUND), high - low
        low, high = _above_half(p, _means(sampler, p)[which])
        if high - low > wide / 2:
            break
    return low, high


def _above_half(p: Floats, values: Floats) -> tuple[float, float]:
    """Return the next p on both sides of the maximum at which values fall below half of it."""
    top = int(values.argmax())
    below = np.flatnonzero(values < values[top] / 2)
    left, right = below[below < top], below[below > top]
    return float(p[left[-1] if left.size else 0]), float(p[right[0] if right.size else -1])


def _half_grown(sampler: Sampler) -> float:
    """Return about the p at which the largest cluster has half of its size at p = 1.

    1 where it has so from the beginning: in a graph without bonds, or of two sites.
    """
    least, most = _means(sampler, np.array([0.0, 1.0]))[_LARGEST]
    if least >= most / 2:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_MAX_STEPS):
        middle = (low + high) / 2
        if _means(sampler, np.array([middle]))[_LARGEST][0] < most / 2:
            low = middle
        else:
            high = middle
        if high < 1.5 * low:
            break
    return high


def _means(sampler: Sampler, p: Floats) -> tuple[Floats, ...]:
    """Return <s_1>, <s_2>, chi and the scatter of s_1 at every p, float64 (m,) each."""
    sites = sampler.task.num_points
    count = min(max(_SITES // sites, _LEAST_SAMPLES), _MOST_SAMPLES)
    thresholds = np.array([threshold_of(float(value)) for value in p], np.uint64)
    rows = sampler.grid_rows(np.arange(count, dtype=np.uint64), thresholds)
    largest, second = rows[..., LARGEST].astype(float), rows[..., SECOND_LARGEST]
    chi = (rows[..., SUM_SQUARES] - largest**2) / sites
    mean = largest.mean(axis=0)
    return mean, second.mean(axis=0), chi.mean(axis=0), largest.var(axis=0) / mean
