"""Pilots: find where to place p, knowing only that p is in (0, 1), from separate samples.

**Of a lattice.**  Every sample has a spanning threshold T along each open axis, the smallest p at
which it spans, or on a torus wraps.  A few samples' T are found by bisection; their mean and spread
show where R_L(p) rises along each axis, and the p values serve all of them.

**Of structures that do not scale**, graphs and Bethe lattices, p are placed about the maxima of
three functions: the second largest cluster <s_2>, the mean cluster size chi without the largest,
and the scatter of the largest, (<s_1^2> - <s_1>^2)/<s_1>:

1. By bisection, the p at which the largest cluster has half of its size at p = 1, to within a
   factor of about 1.5.  The first window is (0, 2 p).
2. On ROUND points of the window the mean of a few samples is taken.  The next window is where the
   function is above half its maximum, until a step does not halve the window any more.  Each
   function has its own windows: in scale-free graphs the maxima lie apart, one much sharper.
3. CLUSTER_POINTS p cover all windows, as dense as the narrowest requires where they overlap; with a
   source and a target they also cover the p between which these begin to be connected.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import TOP, p_to_threshold
from percolab.errors import InputError
from percolab.kinds.ensembles import fix_graph
from percolab.kinds.grid import Grid, GridSampler
from percolab.measure.columns import open_axes
from percolab.measure.rows import LARGEST, SECOND_LARGEST, SPANNING, SUM_SQUARES
from percolab.measure.wrapping import FIRST_WRAPPING
from percolab.store.task_result import TaskResult
from percolab.tasks.kind import PilotConditions
from percolab.tasks.settings import SETTINGS
from percolab.tasks.study import Study, Task

SAMPLES = 48
POINTS = 9
# An axis' p values reach this many standard deviations of T to both sides: R_L from 4 to 96 %.
_REACH = 1.75
_BRACKET = 5.0
# Samples outside are looked for again, which takes twice as long; a wider window also takes longer.
_WINDOW = 4.0
_RESOLUTION = 0.2
_MAX_STEPS = 40

CLUSTER_POINTS, ROUND = 25, 16
# Samples of a mean: many of a small graph; large ones differ little from each other.
_MOST_SAMPLES, _LEAST_SAMPLES, _SITES = 48, 8, 2**21
_MAX_ROUNDS = 20
# Indices of the functions in what _means returns.
_LARGEST, *_PEAKED = range(4)

Floats = NDArray[np.float64]


def place_p(study: Study, pilot: PilotConditions) -> dict[int, tuple[float, ...]]:
    place = place_probabilities if study.structure.is_scalable else place_over_maxima
    return place(study, pilot)


def place_probabilities(study: Study, pilot: PilotConditions) -> dict[int, tuple[float, ...]]:
    """Return the p values of every size of a study, small sizes first.

    InputError if the lattice does not span even with all bonds open, or spans at every p.
    """
    grids: dict[int, tuple[float, ...]] = {}
    for size, low, high in find_transitions(study, pilot):
        grids[size] = covering(low, high, POINTS)
        pilot.on_p(size, grids[size])
    return grids


def find_transitions(
    study: Study, pilot: PilotConditions
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield every size, small ones first, and the p between which it begins to span.

    These are float64 (axes,) each; InputError as :func:`place_probabilities`.
    """
    window = (0.0, 1.0)
    for size in sorted(study.sizes):
        thresholds = _sample_thresholds(make_pilot_task(study.tasks[size]), window, pilot)
        # Bisection ends this near to 0 for a single layer, which is spanned without a bond.
        if thresholds.max() < 2.0**-_MAX_STEPS:
            raise InputError(
                f"L = {size}: {study.structure.name} spans at every p, so there is no transition "
                "to look for: give the p values (-p)"
            )
        # Where the thresholds of a larger size are expected.
        middle, reach = float(thresholds.mean()), _BRACKET * float(thresholds.std())
        window = max(middle - reach, 0.0), min(middle + reach, 1.0)
        centres, spreads = thresholds.mean(axis=0), np.maximum(thresholds.std(axis=0), 1e-9)
        yield size, centres - _REACH * spreads, centres + _REACH * spreads


def place_windows(
    study: Study, sizes: Iterable[int], stored: Collection[TaskResult], pilot: PilotConditions
) -> dict[int, tuple[float, float]]:
    """Return two p for each of these sizes, between which thresholds are looked for first.

    stored: tasks of the study, whose thresholds are used where there are some.  InputError as
    :func:`place_probabilities`.
    """
    windows: dict[int, tuple[float, float]] = {}
    for size in sizes:
        thresholds = _stored_thresholds(result for result in stored if result.task.size == size)
        if len(thresholds) > 1:
            windows[size] = find_threshold_range(thresholds)
            continue
        before = windows[max(windows)] if windows else (0.0, 1.0)
        task, remedy = make_pilot_task(study.tasks[size]), "use --method grid with p values (-p)"
        thresholds = _sample_thresholds(task, before, pilot, remedy)
        low, high = windows[size] = find_threshold_range(thresholds)
        pilot.on_note(f"pilot: L = {size}: samples begin to span from {low:.4g} to {high:.4g}")
    return windows


def _stored_thresholds(items: Iterable[TaskResult]) -> Floats:
    """Return T of the stored samples that span at some p, float64 (n, open axes)."""
    parts = [each.reshape(-1, each.shape[-1]) for each in (i.all_thresholds() for i in items)]
    thresholds = np.concatenate(parts) if parts else np.empty((0, 1), np.uint64)
    spans: Floats = thresholds[(thresholds <= np.uint64(TOP)).all(axis=1)] / TOP
    return spans


def find_threshold_range(thresholds: np.ndarray) -> tuple[float, float]:
    """Return p below and above nearly all thresholds, given as floats (n, axes)."""
    centres, spreads = thresholds.mean(axis=0), thresholds.std(axis=0)
    low, high = centres - _WINDOW * spreads, centres + _WINDOW * spreads
    return max(float(low.min()), 0.0), min(float(high.max()), 1.0)


def make_pilot_task(task: Task) -> Task:
    """Return a task on a grid, without the settings that a grid does not have."""
    usual = {name: SETTINGS[name].default for name in task.kind.settings - Grid.settings}
    return replace(task, purpose="pilot", method="grid", p=task.p or (0.5,), **usual)


def _sample_thresholds(
    task: Task,
    window: tuple[float, float],
    pilot: PilotConditions,
    remedy: str = "give the p values (-p)",
) -> np.ndarray:
    """Return T of every sample along the axes looked at, float64 (SAMPLES, axes), by bisection.

    These are the open ones; on a torus, where nothing spans, all of them, and T is where the sample
    begins to wrap around.
    """
    sampler = GridSampler(task, labeler=pilot.labeler, device=pilot.device)
    flags = [1 << axis for axis in open_axes(task.boundary)]
    if not flags:
        flags = [1 << (FIRST_WRAPPING + axis) for axis in range(len(task.boundary))]
    samples = np.repeat(np.arange(SAMPLES, dtype=np.uint64), len(flags))
    bits = np.tile(flags, SAMPLES)

    def spans(p: np.ndarray) -> np.ndarray:
        rows = sampler.rows(samples, np.array([p_to_threshold(x) for x in p], np.uint64))
        return np.asarray(rows[:, SPANNING] & bits != 0)

    low, high = np.full(samples.size, window[0]), np.full(samples.size, window[1])
    if window != (0.0, 1.0):
        low[spans(low)] = 0.0
        high[~spans(high)] = 1.0
    elif (share := spans(high).reshape(SAMPLES, -1).mean(axis=0).min()) < 0.5:
        # Where some bonds have a fixed probability, a few samples may not span: T is 1 then.
        found = "in less than half of the samples" if share else "in no sample"
        raise InputError(f"{task.structure.name} spans at p = 1 {found}: {remedy}")
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

    Everywhere they are as dense as the sharpest transition there requires; where there is none
    there are no p.  Transitions that agree get equal spacing.  p outside (0, 1) are left out.
    """
    edges = np.unique(np.concatenate([low, high]))
    covers = (low <= edges[:-1, None]) & (edges[1:, None] <= high)
    share = np.cumsum(np.diff(edges) * np.max(covers / (high - low), axis=1))
    values = np.interp(np.linspace(0.0, share[-1], points), np.append(0.0, share), edges)
    digits = max(math.ceil(-math.log10(np.diff(values).min())) + 1, 2)
    rounded = {round(float(value), digits) for value in values}
    return tuple(sorted(p for p in rounded if 0.0 < p < 1.0))


def place_over_maxima(study: Study, pilot: PilotConditions) -> dict[int, tuple[float, ...]]:
    """Return the p of every size of a study, small sizes first."""
    grids: dict[int, tuple[float, ...]] = {}
    spanning: dict[int, list[tuple[float, float]]] = {}
    if study.boundary:
        for size, begin, end in find_transitions(study, pilot):
            spanning[size] = list(zip(begin.clip(0.0, 1.0), end.clip(0.0, 1.0)))
    for size in study.sizes:
        task = make_pilot_task(study.tasks[size])
        # For an ensemble the first of the pilot's graphs shows where clusters are most critical.
        task = fix_graph(task, 0)
        sampler = GridSampler(task, labeler=pilot.labeler, device=pilot.device)
        first = 0.0, min(2 * _half_grown(sampler), 1.0)
        windows = [_narrowed(sampler, first, which) for which in _PEAKED]
        low, high = np.array(windows + spanning.get(size, [])).T
        grids[size] = covering(low, high, CLUSTER_POINTS)
        pilot.on_p(size, grids[size])
    return grids


def _narrowed(sampler: GridSampler, window: tuple[float, float], which: int) -> tuple[float, float]:
    """Return two p between which a function is above half its maximum, and a little more."""
    low, high = window
    for _ in range(_MAX_ROUNDS):
        p, wide = np.linspace(low, high, ROUND), high - low
        low, high = _above_half(p, _means(sampler, p)[which])
        if high - low > wide / 2:
            break
    return low, high


def _above_half(p: Floats, values: Floats) -> tuple[float, float]:
    """Return the nearest p on both sides of the maximum at which values are below half of it."""
    top = int(values.argmax())
    below = np.flatnonzero(values < values[top] / 2)
    left, right = below[below < top], below[below > top]
    return float(p[left[-1] if left.size else 0]), float(p[right[0] if right.size else -1])


def _half_grown(sampler: GridSampler) -> float:
    """Return about where the largest cluster has half of its size at p = 1; 1 if everywhere."""
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


def _means(sampler: GridSampler, p: Floats) -> tuple[Floats, ...]:
    """Return <s_1>, <s_2>, chi and the scatter of s_1 at every p, float64 (m,) each."""
    sites = sampler.task.num_points
    count = min(max(_SITES // sites, _LEAST_SAMPLES), _MOST_SAMPLES)
    thresholds = np.array([p_to_threshold(float(value)) for value in p], np.uint64)
    rows = sampler.grid_rows(np.arange(count, dtype=np.uint64), thresholds)
    largest, second = rows[..., LARGEST].astype(float), rows[..., SECOND_LARGEST]
    chi = (rows[..., SUM_SQUARES] - largest**2) / sites
    mean = largest.mean(axis=0)
    # Without an occupied site nothing scatters.
    scatter = np.divide(largest.var(axis=0), mean, out=np.zeros_like(mean), where=mean > 0)
    return mean, second.mean(axis=0), chi.mean(axis=0), scatter
