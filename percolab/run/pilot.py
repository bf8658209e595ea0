"""Pilot: find where a lattice starts to span, from nothing but p in (0, 1), and place p there.

Every sample has a spanning threshold T along each open axis, the smallest p at which it spans.  A
few samples' T are found by bisection; their mean and spread say where R_L(p) rises along each axis.
An anisotropic lattice, like the honeycomb's brick wall, spans along one axis at smaller p than
along another, and the p values serve all of them.  On a torus nothing spans, and T is the smallest
p at which a sample wraps around.  The pilot's samples are drawn for that purpose: they are not the
study's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from percolab.bonds.words import threshold_of
from percolab.errors import InputError
from percolab.measure.observables import open_axes
from percolab.measure.rows import SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING
from percolab.run.sampler import Device, Sampler
from percolab.tasks.study import Study, Task

SAMPLES = 48
POINTS = 9
# An axis' p values reach this many standard deviations of T to both sides: R_L from 4 to 96 %.
_REACH = 1.75
_BRACKET = 5.0
# Samples outside are looked for again, which takes twice as long; a wider window takes longer too.
_WINDOW = 4.0
_RESOLUTION = 0.2
_MAX_STEPS = 40


def place_probabilities(
    study: Study,
    *,
    labeler: str | None = None,
    device: Device,
    report: Callable[[int, tuple[float, ...]], None] | None = None,
) -> dict[int, tuple[float, ...]]:
    """Return the p values of every size of a study, small sizes first.

    InputError if the lattice does not span even with all bonds open, or spans at every p.
    """
    grids: dict[int, tuple[float, ...]] = {}
    for size, low, high in transitions_of(study, labeler=labeler, device=device):
        grids[size] = covering(low, high, POINTS)
        if report is not None:
            report(size, grids[size])
    return grids


def transitions_of(
    study: Study, *, labeler: str | None, device: Device
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield every size, small ones first, and the p between which it begins to span.

    These are float64 (axes,) each; InputError as :func:`place_probabilities`.
    """
    window = (0.0, 1.0)
    for size in sorted(study.sizes):
        thresholds = _sample_thresholds(pilot_of(study.task(size)), window, labeler, device)
        # So near to 0 is where bisection ends for a single layer, which is spanned without a bond.
        if thresholds.max() < 2.0**-_MAX_STEPS:
            raise InputError(
                f"L = {size}: {study.lattice.name} spans at every p, so there is no transition to "
                "look for: give the p values (-p)"
            )
        window = _bracket(thresholds)
        centres, spreads = thresholds.mean(axis=0), np.maximum(thresholds.std(axis=0), 1e-9)
        yield size, centres - _REACH * spreads, centres + _REACH * spreads


def place_window(
    task: Task, window: tuple[float, float] | None, labeler: str | None, device: Device
) -> tuple[float, float]:
    """Return two p between which nearly all samples of a task begin to span, along every axis.

    window: where they do at another size, or None.  InputError as :func:`place_probabilities`.
    """
    thresholds = _sample_thresholds(pilot_of(task), window or (0.0, 1.0), labeler, device)
    return reach_of(thresholds)


def reach_of(thresholds: np.ndarray) -> tuple[float, float]:
    """Return p below and above nearly all thresholds, given as floats (n, axes)."""
    centres, spreads = thresholds.mean(axis=0), thresholds.std(axis=0)
    low, high = centres - _WINDOW * spreads, centres + _WINDOW * spreads
    return max(float(low.min()), 0.0), min(float(high.max()), 1.0)


def pilot_of(task: Task) -> Task:
    """Return the task with samples of its own, and one p where it has none."""
    return replace(task, purpose="pilot", method="grid", p=task.p or (0.5,))


def _bracket(thresholds: np.ndarray) -> tuple[float, float]:
    """Return where the thresholds of a larger size are expected."""
    centre, spread = float(thresholds.mean()), float(thresholds.std())
    return max(centre - _BRACKET * spread, 0.0), min(centre + _BRACKET * spread, 1.0)


def _sample_thresholds(
    task: Task, window: tuple[float, float], labeler: str | None, device: Device
) -> np.ndarray:
    """Return T of every sample along the axes looked at, float64 (SAMPLES, axes), by bisection.

    These are the open ones; on a torus, where nothing spans, all of them, and T is where the sample
    begins to wrap around.
    """
    sampler = Sampler(task, labeler=labeler, device=device)
    flags = [1 << axis for axis in open_axes(task.boundary)]
    if not flags:
        flags = [1 << (FIRST_WRAPPING + axis) for axis in range(len(task.boundary))]
    samples = np.repeat(np.arange(SAMPLES, dtype=np.uint64), len(flags))
    bits = np.tile(flags, SAMPLES)

    def spans(p: np.ndarray) -> np.ndarray:
        rows = sampler.rows(samples, np.array([threshold_of(x) for x in p], np.uint64))
        return np.asarray(rows[:, SPANNING] & bits != 0)

    low, high = np.full(samples.size, window[0]), np.full(samples.size, window[1])
    if window != (0.0, 1.0):
        low[spans(low)] = 0.0
        high[~spans(high)] = 1.0
    elif not spans(high).all():
        raise InputError(f"{task.lattice.name} does not span at p = 1: give the p values (-p)")
    for _ in range(_MAX_STEPS):
        middle = (low + high) / 2
        below = spans(middle)
        high = np.where(below, middle, high)
        low = np.where(below, low, middle)
        if np.max(high - low) < _RESOLUTION * np.std((low + high) / 2):
            break
    return np.reshape((low + high) / 2, (SAMPLES, len(flags)))


def covering(low: np.ndarray, high: np.ndarray, points: int) -> tuple[float, ...]:
    """Return p over all transitions, float64 (n,) from low to high, rounded to a tenth of a step.

    Everywhere they are as dense as the sharpest transition there asks for, and where there is none
    there are no p.  Transitions that agree get equal spacing.  p outside (0, 1) are left out.
    """
    edges = np.unique(np.concatenate([low, high]))
    covers = (low <= edges[:-1, None]) & (edges[1:, None] <= high)
    asked = np.cumsum(np.diff(edges) * np.max(covers / (high - low), axis=1))
    values = np.interp(np.linspace(0.0, asked[-1], points), np.append(0.0, asked), edges)
    digits = max(math.ceil(-math.log10(np.diff(values).min())) + 1, 2)
    found = {round(float(value), digits) for value in values}
    return tuple(sorted(p for p in found if 0.0 < p < 1.0))
