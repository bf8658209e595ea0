"""What a plan measures before a sweep is run: p values, seconds a sample, and a few samples.

The pilot's samples come from another seed than the study's.  What is compiled or loaded at the
first call is timed by itself: it is no part of a rate.  Where finding the p values of the larger
sizes would take too long, they are extrapolated from those of the smaller ones: a transition keeps
its place and narrows as a power of L.  So are seconds of samples that take long on the CPU, where a
site of a larger lattice takes as long as one of a large one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from percolab.bonds.words import threshold_of
from percolab.errors import InputError
from percolab.kinds.pilots.percolation import place_windows
from percolab.run.engine import Engine, share_of
from percolab.run.measured import Threads, Work, missing_jobs
from percolab.run.placement import grids_of, new_task, pilot_conditions, with_tasks
from percolab.run.request import Watcher, own_tasks
from percolab.store.results import Results
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import AnyBlock
from percolab.tasks.kind import BlockSampler
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study, Task

#: Seconds that a pilot may take for placing p, and for measuring, or these parts of the run; but
#: never more than these.
_PLACING, _MEASURING, _PART, _MOST = 2.0, 3.5, 0.025, 10.0
#: Looks that placing p takes for a size, about; and seconds for the first two sizes, of which
#: smaller lattices are taken if they take longer.
_PLACING_LOOKS, _FIRST = 700, 5.0
#: Seconds for the samples of one of these.
_BESIDE = 1.5
#: Sites of the largest sample that is measured on the CPU, by method: T takes many looks.
_MOST_SITES = {"grid": 2**24, "threshold": 2**21}
#: Samples of a size, kept one by one: for the curve and the file, and at least.
_MOST_KEPT, _LEAST_KEPT = 1000, 4
# Samples in whole blocks are for the rate, and for the curve: more would not sharpen either.
_MOST_WHOLE = 4000
_KEPT_SITES = 2**30
# A grid's labeling costs this many times one at a single p, about.
_GRID_COST = 1.5
# What one look at a sample is timed with: a launch of a GPU takes as long for one as for these.
_LOOKS = {"cpu": 1, "cuda": 48}
# A look is repeated so often, or until so many seconds are over: others may use the machine too.
_REPEATS, _LOOKING = 5, 0.1

# The smallest lattice that stands for a larger one.
_LEAST_SIZE = 8

Spans = dict[int, tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class SizePilot:
    """What was measured of one size.

    task: the study's own, with its p.  kept: single samples of another seed, blocks of one sample.
    measured: these and whole blocks of a third seed.  rate: samples a second with all workers.
    setup: seconds to build what is sampled.  placing: seconds that finding its p takes.
    Of samples in slabs: host_bytes and device_bytes, the memory of all that are in work at a time,
    and checkpoint_bytes, what is beside the results file while they are.
    """

    task: Task
    kept: list[AnyBlock]
    measured: tuple[TaskResult, ...]
    rate: float
    setup: float
    placing: float
    host_bytes: int | None = None
    device_bytes: int = 0
    checkpoint_bytes: int = 0


@dataclass(frozen=True, eq=False)
class Pilot:
    """What was measured of every size, ascending.

    compiling: seconds of the first call, which compiles or loads.  extrapolated: the sizes whose p
    were not looked for.  device_bytes: memory taken on a CUDA device.
    """

    sizes: tuple[SizePilot, ...]
    compiling: float
    extrapolated: tuple[int, ...]
    device_bytes: int


def run_pilot(
    results: Results,
    study: Study,
    rule: StopRule,
    engine: Engine,
    samples: Mapping[int, int],
    watcher: Watcher,
) -> Pilot:
    """Measure every size of a study that is asked for with a rule.

    results: what its file holds, with the tasks to be added at given p; they stay as they are.
    samples: those that every size still takes, as far as known; they bound what a pilot may take.
    InputError: the lattice does not span.
    """
    compiling = _compile(study.task(study.sizes[0]), engine)
    looks = {size: _look_seconds(study.task(size), engine) for size in study.sizes}
    run = sum(_GRID_COST * looks[size] * n / engine.workers for size, n in samples.items())
    tasks, windows, placing, extrapolated, beside = _placed(
        results, study, engine, looks, run, watcher
    )
    own = own_tasks(results)
    tasks = {
        size: task if task.id in results.tasks else new_task(results.study, own, rule, size, task.p)
        for size, task in tasks.items()
    }
    free, samplers, found = _free(engine), [], []
    with engine.executor() as executor:
        budget, small_ones = _allowed(_MEASURING, run), _stand_ins(tasks.values(), engine)
        for left, size in zip(range(len(study.sizes), 0, -1), study.sizes):
            begin = time.perf_counter()
            window = windows.get(size)
            task, small = tasks[size], small_ones[size]
            measuring = _Measuring(
                small, window, engine, executor, budget / left, share_of(len(study.sizes))
            )
            samplers.append(measuring)
            pilot, times = measuring.pilot(placing.get(size, 0.0)), _times(task, small)
            found.append(
                replace(pilot, task=task, rate=pilot.rate / times, setup=pilot.setup * times)
            )
            # What a small size does not use goes to the larger ones.
            budget = max(budget - (time.perf_counter() - begin), 0.0)
        for task in beside:
            # Of large samples there are too few for a curve.
            window = windows.get(task.size)
            more = _Measuring(task, window, engine, executor, _BESIDE, share_of(2)).pilot(0.0)
            found[0] = replace(found[0], measured=(*found[0].measured, *more.measured))
    return Pilot(tuple(found), compiling, extrapolated, max(free - _free(engine), 0))


def _allowed(least: float, run: float) -> float:
    """Return the seconds that a pilot may take: at least so many, more for a long run."""
    return min(max(least, _PART * run), _MOST)


def _smaller(task: Task, sites: float) -> Task:
    """Return a task of a smaller lattice with at most so many sites; the same if there is none."""
    found = task
    while found.num_points > sites and found.size >= 2 * _LEAST_SIZE:
        try:
            found = replace(found, size=found.size // 2)
            found.structure.check_size(found.size, found.boundary)
        except InputError:
            # Lattices whose size must be even, say, are asked for once more above.
            return task
    return found


def _stand_in(task: Task, engine: Engine) -> Task:
    """Return a task whose samples take no more than moments, to be measured for another.

    On the CPU it takes as long a site; a GPU is fast enough, and must be full.
    """
    if engine.device.is_shared or not task.structure.is_scalable or task.is_wide:
        return task
    return _smaller(task, _MOST_SITES[task.method])


def _stand_ins(tasks: Iterable[Task], engine: Engine) -> dict[int, Task]:
    """Return the stand-ins of tasks, by the tasks' sizes: of different sizes, for the curve."""
    found: dict[int, Task] = {}
    for task in sorted(tasks, key=lambda task: -task.size):
        small = _stand_in(task, engine)
        if small.size in {other.size for other in found.values()}:
            small = _smaller(small, small.num_points / 2)
        found[task.size] = small
    return found


def _times(task: Task, small: Task) -> float:
    """Return how many times longer a task's samples take than those of its stand-in."""
    return task.num_points / small.num_points


def _clock(engine: Engine) -> Callable[[], float]:
    """Return the clock for what one thread does: on the CPU, whatever else that is at work with."""
    return time.perf_counter if engine.device.is_shared else time.thread_time


def _compile(task: Task, engine: Engine) -> float:
    """Return the seconds that the first call of what a sweep calls takes."""
    task = _stand_in(task, engine)
    begin = time.perf_counter()
    _look_seconds(task, engine)
    sampler = engine.sampler(_single(task))
    sampler.sample([0])
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    sampler.sample([1])
    return max(first - 2 * (time.perf_counter() - begin), 0.0)


def _look_seconds(task: Task, engine: Engine) -> float:
    """Return the seconds that one sample at one p takes, in the way p values are looked for."""
    grid = replace(task, method="grid", measure=(), p=task.p or (0.5,))
    small = _stand_in(grid, engine)
    sampler: Any = engine.sampler(small)
    items = _LOOKS[engine.device.kind]
    samples = np.arange(items, dtype=np.uint64)
    thresholds = np.full(items, threshold_of(grid.p[0]), np.uint64)
    sampler.rows(samples[:1], thresholds[:1])
    found: list[float] = []
    clock = _clock(engine)
    while len(found) < _REPEATS and sum(found) < _LOOKING:
        begin = clock()
        sampler.rows(samples, thresholds)
        found.append(clock() - begin)
    return min(found) / items * _times(task, small)


def _single(task: Task) -> Task:
    """Return a task of samples drawn for the plan alone, in blocks of one."""
    return replace(task, purpose="plan", block_size=1)


def _free(engine: Engine) -> int:
    if not engine.device.is_shared:
        return 0
    from percolab.kernels.device import free_memory, open_device

    return free_memory(open_device(str(engine.device)))


def _placed(
    results: Results,
    study: Study,
    engine: Engine,
    looks: Mapping[int, float],
    run: float,
    watcher: Watcher,
) -> tuple[
    dict[int, Task], dict[int, tuple[float, float]], dict[int, float], tuple[int, ...], list[Task]
]:
    """Return every size's task, window and seconds of placing, and the sizes extrapolated.

    Where the first sizes take long, tasks of smaller lattices as well, which tell of the curve.
    """
    # Of several tasks of a size, the one that most is missing of.
    own = sorted(own_tasks(results), key=lambda task: -len(results.tasks[task.id].blocks))
    stored = {task.size: task for task in own if task.size in study.sizes}
    study = replace(study, p=None)
    allowed, few = _allowed(_PLACING, run), study.sizes
    looks = dict(looks)
    if study.structure.is_scalable:
        few = _first_placed(study, engine, looks)
        watcher = _Beside(watcher, study.sizes)
    smaller = [size for size in few if size not in study.sizes]
    if study.method == "grid" and len(stored) == len(study.sizes):
        try:
            spans = _timed_spans(results, study, few, engine, watcher)[0] if smaller else {}
        except InputError:
            # Nothing spans, and p was given.
            return stored, {}, {}, (), []
        return stored, {}, {}, (), [study.task(size, spans[size]) for size in smaller]
    spans, seconds = _timed_spans(results, study, few, engine, watcher)
    left = [size for size in study.sizes if size not in few]
    per_look = seconds / sum(looks[size] for size in few)
    near = list(few)
    while left and per_look * sum(looks[size] for size in [*near, left[0]]) <= allowed:
        near.append(left.pop(0))
    if len(near) > len(few):
        spans, seconds = _timed_spans(results, study, tuple(near), engine, watcher)
        per_look = seconds / sum(looks[size] for size in near)
    for size in left:
        spans[size] = extrapolated(spans, size)
    placing = {s: per_look * looks[s] for s in study.sizes if s not in stored}
    if study.method == "grid":
        tasks = {s: stored.get(s) or study.task(s, spans[s]) for s in study.sizes}
        beside = [study.task(size, spans[size]) for size in smaller]
        return tasks, {}, placing, tuple(size for size in left if size not in stored), beside
    windows = {size: (span[0], span[-1]) for size, span in spans.items()}
    tasks = {s: study.task(s) for s in study.sizes}
    return tasks, windows, placing, tuple(left), [study.task(size) for size in smaller]


class _Beside(Watcher):
    """Passes on the p of the sizes of a study alone."""

    def __init__(self, watcher: Watcher, sizes: tuple[int, ...]) -> None:
        self._watcher, self._sizes = watcher, sizes

    def noted(self, text: str) -> None:
        """Take what differs from what was asked for."""

    def placed(self, size: int, p: tuple[float, ...]) -> None:
        """Take the p values that the pilot placed for a size."""
        if size in self._sizes:
            self._watcher.placed(size, p)


def _first_placed(study: Study, engine: Engine, looks: dict[int, float]) -> tuple[int, ...]:
    """Return two sizes whose p are looked for in about _FIRST seconds at most.

    These are the first of the study, or smaller ones, whose looks are added to ``looks``.
    """
    few = study.sizes[:2]
    if _PLACING_LOOKS * sum(looks[size] for size in few) <= _FIRST:
        return few
    task = study.task(few[0])
    a_site = looks[few[0]] / task.num_points
    one = _smaller(task, _FIRST / 2 / _PLACING_LOOKS / a_site)
    other = _smaller(one, one.num_points / 2)
    found = tuple(sorted({one.size, other.size}))
    looks |= {size: _look_seconds(study.task(size), engine) for size in found}
    return found


def _timed_spans(
    results: Results, study: Study, sizes: tuple[int, ...], engine: Engine, watcher: Watcher
) -> tuple[Spans, float]:
    """Return the p of these sizes, or the ends of their windows, and the seconds that took."""
    study = replace(study, sizes=sizes)
    clock = _clock(engine)
    begin = clock()
    if study.method == "grid":
        return grids_of(study, engine, watcher), clock() - begin
    part = Results(study, {key: results.tasks[key] for key in results.tasks})
    conditions = pilot_conditions(engine, watcher)
    windows = place_windows(study, sizes, part.tasks.values(), conditions)
    return {**windows}, clock() - begin


def extrapolated(spans: Mapping[int, tuple[float, ...]], size: int) -> tuple[float, ...]:
    """Return p values of a larger size: about the same centre, narrower by a power of L.

    spans: ascending p of smaller sizes.  Of one size alone they are taken as they are.

    >>> extrapolated({8: (0.4, 0.5, 0.6), 16: (0.45, 0.5, 0.55)}, 32)
    (0.475, 0.5, 0.525)
    """
    first, last = min(spans), max(spans)
    widths = [spans[key][-1] - spans[key][0] for key in (first, last)]
    shrink = 1.0
    if first != last and widths[0] > widths[1] > 0:
        power = np.log(widths[0] / widths[1]) / np.log(last / first)
        shrink = float((last / size) ** power)
    centre = (spans[last][0] + spans[last][-1]) / 2
    return tuple(round(centre + shrink * (p - centre), 12) for p in spans[last])


class _Measuring:
    """Measures one size in about so many seconds; holds its device memory while it lives."""

    def __init__(
        self,
        task: Task,
        window: tuple[float, float] | None,
        engine: Engine,
        executor: Executor,
        budget: float,
        share: float,
    ) -> None:
        self._task, self._engine, self._executor = task, engine, executor
        self._budget = budget
        single = _single(task)
        whole = replace(task, purpose="plan blocks")
        hints = {} if window is None else {"window": window}
        self._samplers: dict[str, BlockSampler] = {
            key: engine.sampler(item, share=share / part, **hints)
            # On a GPU the single samples may take little, so that a batch is as large as a sweep's.
            for key, item, part in (("single", single, 16), ("whole", whole, 1))
        }

    def pilot(self, placing: float) -> SizePilot:
        """Return what was measured of the size."""
        single, whole = self._samplers["single"], self._samplers["whole"]
        begin = time.perf_counter()
        single.sample([0])
        setup = time.perf_counter() - begin
        begin = time.perf_counter()
        single.sample([0])
        one = time.perf_counter() - begin
        setup = max(setup - one, 0.0)
        wanted = self._budget * self._engine.workers / (2 * one)
        most = min(_MOST_KEPT, max(_KEPT_SITES // self._task.num_points, _LEAST_KEPT))
        if self._engine.device.is_shared:
            wanted = most
        count = int(min(max(wanted, _LEAST_KEPT), most))
        kept, rate = self._keep(single, count)
        measured = [TaskResult(single.task, dict(enumerate(kept)))]
        if self._engine.device.is_shared or wanted >= 2 * self._task.block_size:
            blocks, rate = self._whole_blocks(whole, min(wanted, _MOST_WHOLE))
            measured.append(blocks)
        return SizePilot(self._task, kept, tuple(measured), rate, setup, placing)

    def _keep(self, sampler: BlockSampler, count: int) -> tuple[list[AnyBlock], float]:
        """Return single samples, and how many came in a second."""
        parts = np.array_split(np.arange(count), min(4 * self._engine.workers, count))
        begin = time.perf_counter()
        found = list(self._executor.map(sampler.sample, [part.tolist() for part in parts]))
        rate = count / (time.perf_counter() - begin)
        return [block for blocks in found for block in blocks], rate

    def _whole_blocks(self, sampler: BlockSampler, samples: float) -> tuple[TaskResult, float]:
        """Return whole blocks, run as a sweep runs them, and the samples that came in a second."""
        task, workers = sampler.task, self._engine.workers
        blocks = max(round(samples / task.block_size), 2 * workers)
        if self._engine.device.is_shared:
            # The first call allocates; then two, one of which is summed up while the other runs.
            self._run(sampler, sampler.blocks_per_call)
            blocks = 3 * sampler.blocks_per_call
        begin = time.perf_counter()
        found = self._run(sampler, blocks)
        return found, blocks * task.block_size / (time.perf_counter() - begin)

    def _run(self, sampler: BlockSampler, blocks: int) -> TaskResult:
        """Return the first blocks of a task, made as a sweep makes them."""
        task = sampler.task
        study = Study(
            task.structure, (task.size,), task.boundary, seed=task.seed, method=task.method
        )
        empty, samplers = with_tasks(Results(study), [task]), {task.id: sampler}
        jobs = missing_jobs(empty, {task.id: blocks}, samplers)
        work = Work(jobs, Threads(samplers, self._executor, self._engine.workers))
        found = TaskResult(task)
        try:
            for _, made in work.finished():
                found.blocks.update({block.number: block for block in made})
        finally:
            list(work.stopped())
        return found
