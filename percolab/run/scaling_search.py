"""A threshold in three dimensions and more: which sizes are sampled next, where, and how much.

p_c comes from the wrapping probabilities of all sizes in one fit
(:mod:`percolab.analysis.wrapping_fit`).  Nearly all samples of a size are made at one p next to
p_c, and a few at two p on its sides: 0.6 of the work of three equal p for the same error.  After
each round the Fisher information of the fit says how many samples of which sizes reach the target
with the least work; larger sizes are added where they make it less, or where the systematic part of
the error is above the target.  That samples decide the p of later ones introduces no bias.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, takewhile
from math import ceil, log2
from typing import Any

import numpy as np

from percolab.analysis.statistics import Floats
from percolab.analysis.theory.potts import potts_exponents
from percolab.analysis.threshold import Information
from percolab.analysis.wrapping_fit import (
    SIDE,
    SIDE_SHARE,
    Division,
    WrappingEstimate,
    divide_for_error,
    divide_work,
)
from percolab.bonds.words import p_to_threshold
from percolab.errors import AnalysisError, InputError
from percolab.kinds.memory import check_memory
from percolab.lattices.lattice import Lattice
from percolab.run.engine import Engine, memory_share
from percolab.run.request import Observer
from percolab.run.search_steps import (
    Goal,
    Round,
    Search,
    axis_length,
    refuse_end,
    rounded,
    whole_size,
)
from percolab.store.results import StoredResults
from percolab.tasks.study import Study, Task

#: Grid points along an axis of the smallest size, and ratios of neighbouring sizes.
_SHORTEST, _RATIOS = {3: 8}, (1.5, 4 / 3)
_SHORTEST_ELSEWHERE, _LONGEST = 4, 1024
#: Where values at p_c are known no size is shorter, since smaller ones would shift p_c.
_SHORTEST_KNOWN = 16
#: Points of the largest lattice with which a search begins, and least number of sizes.
_FIRST_POINTS, _FIRST_SIZES = 2**14, 3
#: Most sizes that are added at a time.
_MORE = 4
#: Least samples of a size, least blocks of its centre, and least blocks of its sides.
_LEAST, _LEAST_BLOCKS, _LEAST_SIDE_BLOCKS = 1024, 256, 64
#: Blocks of a size when the target is met; samples of a block, and sites of all its samples.
_BLOCKS, _LEAST_BLOCK, _MOST_BLOCK, _MOST_SITES = 1024, 4, 2**18, 2**29
#: Fractions of the whole work after each round; after the last of them it grows by this factor.
_ROUNDS, _GROWTH = (0.1, 0.4, 1.0), 1.3
#: A centre is used while P(any axis) is within this distance of its value at p_c.
_NEAR = 0.12
#: Least and most change of P(any axis), by its slope, from the centre to a side that is used.
_LEAST_SIDE, _MOST_SIDE = 0.05, 0.2
#: Fits with a lower p-value are not rejected by chance; most samples of a size without any fit.
_HOPELESS, _HOPELESS_SAMPLES = 1e-6, 2**16
#: The cost that a plan may add, since sizes get their least samples, over the work in the time.
_OVER = 1.2
#: A further size, which takes time to begin with, must reduce the work by this factor.
_ABOVE = 1.1
#: Plans of less work are tried: factor of each step, and number of steps.
_LESS, _LESS_STEPS = 0.9, 12
#: Fraction of the target that is aimed at, since forecasts are rough.
_AIM = 0.95
#: The error of p_c times the root of the work in sites, roughly, before there are samples.
_ROUGH = 3.0
#: Sites a second on a CPU and on a GPU, roughly; the cost of the row of a sample there, in sites.
_RATES, _ROW_SITES = {False: 1e8, True: 3e10}, {False: 0, True: 2**14}
#: Samples and p of each step of a pilot; it ends where P(any axis) is between these.
_PILOT, _PILOT_POINTS, _PILOT_RANGE = (32, 64, 128, 256, 512), 6, (0.35, 0.65)


def search_sizes(lattice: Lattice) -> Iterator[int]:
    """Yield the sizes of a search, ascending, in whole cells: 8, 12, 16, 24, ... points an axis."""
    points = float(_SHORTEST.get(lattice.dimension, _SHORTEST_ELSEWHERE))
    before = 1
    for ratio in cycle(_RATIOS):
        size = whole_size(lattice, round(points))
        if size > before:
            yield size
            before = size
        points *= ratio
        if points > _LONGEST:
            return


def first_sizes(lattice: Lattice, *, universal: bool = False) -> tuple[int, ...]:
    """Return the sizes that a search begins with; universal: whether values at p_c are known."""
    sizes: list[int] = []
    for size in search_sizes(lattice):
        if universal and round(axis_length(lattice, size)) < _SHORTEST_KNOWN:
            continue
        if len(sizes) >= _FIRST_SIZES and np.prod(lattice.shape(size)) > _FIRST_POINTS:
            break
        sizes.append(size)
    return tuple(sizes)


# Work without limit, and the largest part of a target that the error of given sizes may then be.
_UNLIMITED, _REACHABLE = 1e20, 0.95


class ScalingSearch(Search):
    """Decides what is sampled next; work is that of all sizes together."""

    def __init__(self, study: Study, goal: Goal) -> None:
        super().__init__(study, goal, _RATES[False])
        lattice: Any = study.structure
        self._lattice = lattice
        self._grows = study.sizes == first_sizes(lattice, universal=goal.universal)
        known = potts_exponents(lattice.dimension, study.states).get("1/nu")
        # Above five dimensions 1/nu is that of mean-field theory.
        self._y_t = 2.0 if known is None else known.value
        self._steepness, self._is_gpu = 0.0, False
        self._engine: Engine | None = None

    def known_p(self, results: StoredResults) -> float | None:
        estimate = self._estimate(results)
        if estimate is not None:
            return estimate.threshold.value
        own = [results.tasks[task.id] for task in results.own_tasks]
        best = max(own, key=lambda result: result.num_samples, default=None)
        return None if best is None or not best.blocks else best.task.p[0]

    def find_p(self, engine: Engine) -> float:
        """Extrapolate two sizes: the p where P(any axis) is 1/2 is off p_c by about L^(-1/nu)."""
        sizes = sorted(self._study.sizes)
        pair = sizes[0], next((size for size in sizes if size >= 2 * sizes[0]), sizes[-1])
        halves, bracket = [], (0.0, 1.0)
        for size in pair:
            half, slope, bracket = _find_half(self._study, size, engine, bracket)
            halves.append(half)
            self._steepness = slope / self._length(size) ** self._y_t
        factor = (self._length(pair[1]) / self._length(pair[0])) ** self._y_t
        away = (halves[1] - halves[0]) / (factor - 1) if factor > 1 else 0.0
        return float(np.clip(halves[1] + away, 0.01 * halves[1], 1 - 1e-6))

    def begin(self, results: StoredResults, engine: Engine, observer: Observer) -> None:
        self._engine, self._is_gpu = engine, engine.device.is_shared
        self._rate = _RATES[self._is_gpu]
        super().begin(results, engine, observer)

    def forecast(self, results: StoredResults) -> float:
        if self._goal.error is None:
            return 0.0
        estimate = self._estimate(results)
        work = (_ROUGH / self._goal.error) ** 2
        if estimate is not None:
            plan = self._plan(estimate, results)
            work = work if plan is None else plan.cost - self._done(results)
        return max(work, 0.0) / self._rate

    def next_round(self, results: StoredResults, p: float) -> Round | None:
        estimate = self._estimate(results)
        if estimate is None:
            if self._fewest(results) > _HOPELESS_SAMPLES:
                return None
            least = 0.0 if self._done(results) == 0 else 2.0 * self._fewest(results)
            samples = {size: max(float(_LEAST * 2), least) for size in results.study.sizes}
            return self._round(results, samples, p, None)
        value, error = estimate.threshold, self._goal.error
        is_reached = error is not None and value.error <= error and not value.rejected
        if is_reached or value.quality.p_value < _HOPELESS:
            return None
        plan = self._plan(estimate, results)
        if plan is None:
            return None
        if error is None:
            following = self._round(results, plan.samples, value.value, estimate)
            return replace(following, until=self._end)
        done = self._done(results)
        for part in _ROUNDS:
            samples = {size: max(part * n, _LEAST) for size, n in plan.samples.items()}
            if sum(self._cost(size) * n for size, n in samples.items()) > 1.2 * done:
                return self._round(results, samples, value.value, estimate)
        samples = {size: _GROWTH * n for size, n in self._samples(results).items()}
        return self._round(results, dict(plan.samples) | samples, value.value, estimate)

    def _estimate(self, results: StoredResults) -> WrappingEstimate | None:
        """Return p_c of the samples so far, None if there are too few."""
        try:
            estimate = WrappingEstimate.of(results, "known" if self._goal.universal else "free")
            estimate.information(results.study.sizes[:1])
        except AnalysisError:
            return None
        return estimate

    def _plan(self, estimate: WrappingEstimate, results: StoredResults) -> Division | None:
        """Return the samples of all sizes when the goal is reached.

        None where the time is over, or given sizes leave p_c less precise than that for any work.
        """
        timed = self._goal.error is None
        work = self._work_in_time(self._done(results)) if timed else None
        if timed and work is None:
            return None
        plans, candidates = [], self._candidates(estimate, results)
        # With larger sizes any error can be reached.
        is_open = len(candidates[-1]) > len(results.study.sizes)
        for sizes in candidates:
            information = estimate.information(sizes)
            costs = {size: self._cost(size) for size in sizes}
            if work is not None:
                plans.append(self._in_time(information, costs, work, results))
            else:
                aim = self._aim(estimate, results, information)
                plans.append(divide_for_error(information, costs, aim, _LEAST))
                limit = divide_work(information, costs, _UNLIMITED, _LEAST).error
                is_open = is_open or limit < _REACHABLE * aim
        if work is None:
            return _fewest_sizes(plans, lambda plan: plan.cost) if is_open else None
        # The least samples of large sizes alone may take longer than there is time.
        left = _OVER * (work - self._done(results))
        fitting = [plan for plan in plans if self._added(plan, results) <= left] or plans[:1]
        return _fewest_sizes(fitting, lambda plan: plan.error**2)

    def _in_time(
        self,
        information: Information,
        costs: Mapping[int, float],
        work: float,
        results: StoredResults,
    ) -> Division:
        """Return a division of work, or of less, where sizes have more samples than their share."""
        left, plan = work - self._done(results), divide_work(information, costs, work, _LEAST)
        for _ in range(_LESS_STEPS):
            if self._added(plan, results) <= left:
                break
            work *= _LESS
            plan = divide_work(information, costs, work, _LEAST)
        return plan

    def _added(self, plan: Division, results: StoredResults) -> float:
        """Return the cost of the samples of a plan that are still missing."""
        own = self._samples(results)
        return sum(
            self._cost(size) * max(n - own.get(size, 0), 0.0) for size, n in plan.samples.items()
        )

    def _aim(
        self, estimate: WrappingEstimate, results: StoredResults, information: Information
    ) -> float:
        """Return the forecast to aim at: less than the target where forecasts are too small."""
        samples = {str(size): n for size, n in self._samples(results).items()}
        forecast = float(information.error(samples)) / estimate.threshold.error
        return _AIM * (self._goal.error or 0.0) * min(max(forecast, 0.5), 1.0)

    def _candidates(
        self, estimate: WrappingEstimate, results: StoredResults
    ) -> list[tuple[int, ...]]:
        own = tuple(sorted(results.study.sizes))
        if not self._grows:
            return [own]
        larger = [size for size in search_sizes(self._lattice) if size > own[-1]][:_MORE]
        larger = list(takewhile(self._fits, larger))
        error = self._goal.error
        is_short = error is not None and estimate.threshold.systematic_error > error
        least = 1 if is_short and larger else 0
        return [own + tuple(larger[:n]) for n in range(least, len(larger) + 1)]

    def _fits(self, size: int) -> bool:
        """Return whether the tasks of a size fit in memory, at its centre and on both sides."""
        engine, task = self._engine, self._study.task(size, (0.5,))
        if engine is None or engine.ranks is not None or engine.slabs:
            return True
        try:
            self._lattice.check_size(size, task.boundary)
            given = engine.labeler, engine.device, engine.threads
            check_memory(task, *given, copies=3, share=memory_share(3))
        except InputError:
            return False
        return True

    def _round(
        self,
        results: StoredResults,
        samples: Mapping[int, float],
        p: float,
        estimate: WrappingEstimate | None,
    ) -> Round:
        """Return the tasks and blocks that give all sizes these samples at their centres."""
        new: list[Task] = []
        blocks: dict[str, int] = {}
        for size, number in samples.items():
            slope = self._slope(size, results) if estimate is None else estimate.slope(size)
            is_sure = estimate is not None
            centre, *sides = self._tasks(results, size, p, slope, number, is_sure=is_sure)
            new += [task for task in (centre, *sides) if task.id not in results.tasks]
            count = max(ceil(number / centre.block_size), _LEAST_BLOCKS)
            count = max(count, _num_blocks(results, centre))
            blocks[centre.id] = count
            for side in sides:
                share = min(max(ceil(SIDE_SHARE * count), _LEAST_SIDE_BLOCKS), count)
                blocks[side.id] = max(share, _num_blocks(results, side))
        return Round(tuple(new), blocks)

    def _tasks(
        self,
        results: StoredResults,
        size: int,
        p: float,
        slope: float,
        samples: float,
        *,
        is_sure: bool,
    ) -> list[Task]:
        """Return the tasks of a size, at p and on its sides: existing ones, or new ones."""
        own = [task for task in results.own_tasks if task.size == size and len(task.p) == 1]
        near = [task for task in own if not is_sure or abs(task.p[0] - p) * slope <= _NEAR]
        own.sort(key=lambda task: task.p)
        centre = max(near, key=lambda task: results.tasks[task.id].num_samples, default=None)
        if centre is None:
            centre = self._new_task(results.study, size, rounded(p, 0.02 / slope), samples)
        tasks = [centre]
        for sign in (-1, 1):
            sides = [
                task
                for task in own
                if task.block_size == centre.block_size
                and _LEAST_SIDE <= sign * (task.p[0] - centre.p[0]) * slope <= _MOST_SIDE
            ]
            at = centre.p[0] + sign * SIDE / slope
            aside = replace(centre, p=(rounded(min(max(at, 1e-9), 1.0), 0.02 / slope),))
            tasks.append(min(sides, key=lambda task: abs(task.p[0] - centre.p[0]), default=aside))
        return tasks

    def _new_task(self, study: Study, size: int, p: float, samples: float) -> Task:
        """Return a task at p, in blocks so large that a few hundred of them reach the target."""
        task = study.task(size, (p,))
        error, seconds = self._goal.error, self._goal.seconds or 0.0
        work = (_ROUGH / error) ** 2 if error else self._rate * seconds
        planned = max(samples, 0.05 * work / self._cost(size))
        most = max(min(_MOST_BLOCK, _MOST_SITES // task.num_points), _LEAST_BLOCK)
        chosen = 2 ** max(int(log2(planned / _BLOCKS)), 0)
        return replace(task, block_size=min(max(chosen, _LEAST_BLOCK), most))

    def _slope(self, size: int, results: StoredResults) -> float:
        if self._steepness > 0:
            return float(self._steepness * self._length(size) ** self._y_t)
        p = [task.p[0] for task in results.own_tasks if task.size == size]
        return 2 * SIDE / (max(p) - min(p)) if len(set(p)) > 1 else self._length(size)

    def _length(self, size: int) -> float:
        return axis_length(self._lattice, size)

    def _cost(self, size: int) -> float:
        """Return the cost of a sample at the centre, in sites, its part of the sides included."""
        points = int(self._study.task(size, (0.5,)).num_points) + _ROW_SITES[self._is_gpu]
        return (1 + 2 * SIDE_SHARE) * points

    def _samples(self, results: StoredResults) -> dict[int, int]:
        samples = dict.fromkeys(sorted(results.study.sizes), 0)
        for task in results.own_tasks:
            samples[task.size] = max(samples[task.size], results.tasks[task.id].num_samples)
        return samples

    def _fewest(self, results: StoredResults) -> int:
        return min(self._samples(results).values())

    def _done(self, results: StoredResults) -> float:
        return float(sum(self._cost(size) * n for size, n in self._samples(results).items()))


def _fewest_sizes(plans: Sequence[Division], loss: Callable[[Division], float]) -> Division:
    """Return the first of plans, ascending in sizes, whose loss is hardly above the least."""
    least = min(map(loss, plans))
    return next(plan for plan in plans if loss(plan) <= _ABOVE * least)


def _num_blocks(results: StoredResults, task: Task) -> int:
    return len(results.tasks[task.id].blocks) if task.id in results.tasks else 0


def _find_half(
    study: Study, size: int, engine: Engine, bracket: tuple[float, float]
) -> tuple[float, float, tuple[float, float]]:
    """Return the p at which P(any axis) is a half, its slope there, and p below and above."""
    task = replace(study.task(size, (0.5,)), purpose="pilot", block_size=1)
    sampler: Any = engine.sampler(task)
    column = next(each for each in task.observables if each.name == "wrapping_any")
    low, high = bracket
    p: Floats = np.empty(0)
    means: Floats = np.empty(0)
    begun = 0
    for samples in _PILOT:
        p = np.linspace(low, high, _PILOT_POINTS)
        numbers = np.arange(begun, begun + samples, dtype=np.uint64)
        begun += samples
        rows = sampler.grid_rows(numbers, np.array([p_to_threshold(x) for x in p], np.uint64))
        means = np.array([column.of_rows(rows[:, n]).mean() for n in range(p.size)])
        if (p[-1] == 1 and means[-1] < _PILOT_RANGE[0]) or (p[0] == 0 and means[0] > 0.5):
            refuse_end(study, size, float(means[-1] < 0.5))
        wide = high - low
        low = max(p[means < _PILOT_RANGE[0]], default=low)
        high = min(p[means > _PILOT_RANGE[1]], default=high)
        if low >= high:
            # By chance all p are on one side: look beyond it.
            low, high = (low, low + wide) if means[-1] < 0.5 else (high - wide, high)
            low, high = max(low, 0.0), min(high, 1.0)
    slope = max(np.polyfit(p, means, 1)[0], 1e-3)
    half = float(np.clip(p.mean() + (0.5 - means.mean()) / slope, p[0], p[-1]))
    wide = p[-1] - p[0]
    return half, float(slope), (max(low - wide, 0.0), min(high + wide, 1.0))
