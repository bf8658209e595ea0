"""Estimates before a sweep is run: its time, memory, size of its file, and the error of p_c.

The samplers and workers of the sweep measure a few samples of every size, which are not stored.
Where one sample takes too long, a smaller lattice is measured: half of L, or in slabs or over ranks
fewer layers of the same cross-section.  The same samples give the information of one sample about
p_c, from which the samples for a target error follow.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields, replace
from math import ceil, log, prod
from typing import Any, Unpack

import numpy as np
import psutil

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.stored_data import read_curves
from percolab.analysis.stored_fits import choose_scaling
from percolab.analysis.threshold import Information, compute_information
from percolab.errors import AnalysisError, InputError
from percolab.kernels.device import device_names
from percolab.kernels.memory import Memory
from percolab.kinds.memory import estimate_memory
from percolab.parts.parts import Whole
from percolab.parts.ranks import RankJob
from percolab.parts.slab_partition import RankLayers, SlabDivision
from percolab.run import engine as engines
from percolab.run.compiling import report_compiling
from percolab.run.engine import Engine, choose_engine, memory_share
from percolab.run.executors import CountedWorkers, usable_cores
from percolab.run.measured import Work, WorkerPool, WorkersLost, missing_jobs
from percolab.run.placement import new_task, pilot_conditions, place, rounded_up, with_tasks
from percolab.run.request import Observer, Opened, SweepOptions, open_study
from percolab.run.stored import saving_seconds
from percolab.run.targets import first_targets, forecast_targets
from percolab.store.joined import joined, joined_tasks
from percolab.store.results import StoredResults, encode
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import AnyBlock, Block
from percolab.tasks.settings import EXECUTORS
from percolab.tasks.study import StopRule, Study, Task
from percolab.tasks.values import AUTO

#: The factor within which times are right if the load of the machine stays as it is.
FACTOR = 1.5
# Most labelings of sites in a sample, and in a block of a plan.
_SAMPLE_WORK, _BLOCK_WORK = {"cpu": 2**27, "cuda": 2**36}, {"cpu": 2**22, "cuda": 2**34}
# For a lattice in slabs or over ranks two lattices of fewer layers are measured: sites of the
# thicker one, its thickness over that of the thinner one, and number of p.
_LAYERS_SITES, _THINNER, _LAYERS_POINTS = {"cpu": 2**26, "cuda": 2**33}, 4, 3
# Seconds of measuring, of all sizes together; and of compiling that is done anew in every run.
_SECONDS, _COMPILING = 4.0, 5.0
# The smallest lattice that is measured for a larger one; blocks from which on a file grows evenly.
_LEAST_SIZE, _MOST_BLOCKS = 8, 256
# How many times longer a fit takes than one of its models; and how fast a file is written.
_MODELS, _BYTES_A_SECOND = 5, 1e7


@dataclass(frozen=True)
class SizePlan:
    """One row of a plan.

    points: number of p.  samples: at the end; stored: those in the file already.  rate: samples a
    second by all workers, None where none are missing.  seconds: for the missing ones.
    """

    L: int
    points: int
    samples: int
    stored: int
    rate: float | None
    seconds: float
    host_bytes: int
    device_bytes: int
    file_bytes: int


@dataclass(frozen=True)
class Plan:
    """An estimate of what a sweep will take and give.

    seconds: in all; to start, to find p and to fit are parts of it.  host_bytes: at most, by all
    processes of this host; ``base_bytes`` of it are Python and its libraries, of each process.
    threshold_error: sigma(p_c), None where there is none.  rounds: of a target error.
    """

    device: str
    labeler: str
    workers: int
    sizes: tuple[SizePlan, ...]
    seconds: float
    start_seconds: float
    placing_seconds: float
    analysis_seconds: float
    host_bytes: int
    base_bytes: int
    device_bytes: int
    file_bytes: int
    threshold_error: float | None
    rounds: int
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Pilot:
    """The measurement for a task.

    result: samples of this task, or of a smaller one.  rate: samples of the task a second by all
    workers.  setup: seconds until the first is begun.
    """

    result: TaskResult
    rate: float
    setup: float
    device_bytes: int = 0


def plan_study(study: Study, rule: StopRule, **options: Unpack[SweepOptions]) -> Plan:
    """Return what :func:`percolab.run.runner.run_study` would take with the same arguments.

    InputError: as in the sweep itself; or a target error is requested and the pilot finds no p_c.
    """
    observer, executor = options.get("observer") or Observer(), options.get("executor")
    counted = executor if isinstance(executor, CountedWorkers) else None
    opened = open_study(study, rule, options)
    if counted is not None:
        # Workers on this host are like processes; if it has none, one process stands for all.
        options = {**options, "executor": "processes", "workers": max(counted.here, 1)}
    elif options.get("split") is None and executor not in (None, *EXECUTORS):
        raise InputError("--plan measures on this machine: leave out --executor")
    engine = choose_engine(opened, options, observer)
    if counted is not None and engine.device.is_shared:
        raise InputError(
            "--plan: no GPUs with --executor mpi; leave out --executor on one of the hosts, or use "
            "--device cpu"
        )
    base = psutil.Process().memory_info().rss
    try:
        with engine.opened(opened.requested.structure) as workers:
            return _Planning(opened, engine, workers, observer, counted).plan(base)
    except WorkersLost as error:
        raise InputError(f"--plan: {error}") from error


class _Planning:
    """Measures what a plan needs; counted: workers of many hosts, represented by those here."""

    def __init__(
        self,
        opened: Opened,
        engine: Engine,
        executor: Executor,
        observer: Observer,
        counted: CountedWorkers | None,
    ) -> None:
        self._opened, self._engine, self._executor = opened, engine, executor
        self._workers, self._hosts, self._notes = engine.record()["workers"], 1.0, list[str]()
        if counted is not None:
            # As many workers run at a time as have cores.
            self._hosts = counted.at_once / min(engine.workers, usable_cores())
            self._workers, where = counted.total, f"{counted.here} of {counted.total} workers"
            if counted.here < counted.total:
                self._notes.append(f"the memory is that of this host, which has {where}")
        self._observer, self._kind = observer, engine.device.kind
        self._results, self._tasks = opened.results, list[Task]()
        # Hints for samplers, by size, such as the window in which T is looked for first.
        self._hints: dict[int, dict[str, Any]] = {}
        self._pilots: dict[str, _Pilot] = {}
        # Of every task, at the end: blocks, how many of them are missing, and the bytes of a group.
        self._blocks, self._missing = dict[str, int](), dict[str, int]()
        self._bytes: dict[str, float] = {}

    def plan(self, base: int) -> Plan:
        """Return the plan; base: bytes of this process before it."""
        engine, rule = self._engine, self._opened.rule
        start, placing = self._start(), self._place()
        results, tasks = self._results, self._tasks
        whole, targets, rounds = joined_tasks(tasks), first_targets(results.study, rule), 1
        self._measure_all(targets)
        requested = {(task.stream_seed, task.method) for task in whole}
        there = joined(results).measured
        others = [x for x in there if (x.task.stream_seed, x.task.method) not in requested]
        stored = {result.task.id: result.num_samples for result in others}
        begin = time.perf_counter()
        information, reason = self._information([*(result.task for result in others), *whole])
        fitting = time.perf_counter() - begin
        if rule.target_error is not None:
            if information is None:
                raise InputError(f"--plan: the pilot finds no p_c: {reason}")
            targets, rounds = forecast_targets(results, rule, whole, information, stored)
        for task in tasks:
            result, count = results.tasks[task.id], ceil(targets[task.size] / task.block_size)
            self._missing[task.id] = count - result.count_below(count)
            self._blocks[task.id] = result.num_blocks + self._missing[task.id]
            self._bytes[task.id] = self._bytes_of_group(task)
        rows = [self._row(size) for size in sorted({task.size for task in tasks})]
        error = np.inf
        if information is not None:
            samples = {row.L: row.samples for row in rows}
            error = information.error({task.id: samples[task.size] for task in whole} | stored)
        new = {task.id: self._groups(task) - len(results.tasks[task.id].blocks) for task in tasks}
        more = sum(max(count, 0) * self._bytes[key] for key, count in new.items())
        file_bytes = len(encode(results)) + round(more)
        seconds, at_once = [row.seconds for row in rows], self._engine.at_once
        # Workers are idle where there are fewer blocks; one worker makes all of a long chain.
        sampling = sum(seconds) * at_once / max(min(at_once, sum(self._missing.values())), 1)
        if results.study.is_serial:
            sampling = max(sum(seconds) / at_once, max(seconds))
        analysis = _MODELS * fitting * rounds
        saving = saving_seconds(sampling, file_bytes / _BYTES_A_SECOND)
        notes = [*rounded_up(tasks, results, rule), *self._notes]
        if reason:
            notes.append(f"no error of p_c: {reason}")
        return Plan(
            device=device_names(engine.devices),
            labeler=engine.labeler,
            workers=self._workers,
            sizes=tuple(rows),
            seconds=start + placing + sampling + saving + analysis if sampling else 0.0,
            start_seconds=start if sampling else 0.0,
            placing_seconds=placing if sampling else 0.0,
            analysis_seconds=analysis if sampling else 0.0,
            # A file is built in memory, from arrays that are stacked, while the blocks are kept.
            host_bytes=base * engine.pythons + sum(row.host_bytes for row in rows) + 4 * file_bytes,
            base_bytes=base,
            device_bytes=sum(row.device_bytes for row in rows),
            file_bytes=file_bytes,
            threshold_error=error if np.isfinite(error) else None,
            rounds=rounds,
            notes=tuple(notes),
        )

    def _start(self) -> float:
        """Return the seconds of loading kernels; compiling them happens once and is noted."""
        compiled: list[bool] = []
        begin, pilot = time.perf_counter(), self._opened.needs_pilot
        with report_compiling(lambda: compiled.append(True), self._engine.device):
            engines.warm_up(self._opened.requested, self._engine, self._observer, with_pilot=pilot)
        seconds = time.perf_counter() - begin
        if not compiled or seconds < _COMPILING:
            return seconds
        self._notes.append(f"kernels were compiled in {seconds:.0f} s, once and not counted")
        return 0.0

    def _place(self) -> float:
        """Choose p, burn-in and windows by the sweep's pilots; return the seconds they take.

        Where that takes long for a size, its values are extrapolated from smaller lattices.
        """
        opened, engine, late = self._opened, self._engine, list[int]()
        study = opened.requested
        most = study.kind.most_placed[self._kind]
        if (opened.needs_placing or opened.needs_pilot) and study.structure.is_scalable:
            late = [size for size in opened.missing if study.tasks[size].num_points > most]
        quick = [size for size in opened.missing if size not in late]
        small = study.tasks[min(opened.missing)] if late else None
        while len(quick) < 2 and small is not None and (small := _half(small)) is not None:
            quick += [small.size] if small.num_points <= most else []
        if late and quick:
            study = replace(study, sizes=tuple(quick))
            opened = Opened(StoredResults(study), study, StopRule(dict.fromkeys(quick, 100)))
        begin = time.perf_counter()
        placed = place(opened, engine, self._observer)
        self._look_for_hints(opened.requested, placed.tasks, placed.results)
        seconds = time.perf_counter() - begin
        if late and quick:
            self._continue({task.size: task for task in placed.tasks})
            sites = sum(task.num_points for task in placed.tasks)
            new = [task for task in self._tasks if task.size in self._opened.missing]
            seconds *= sum(task.num_points for task in new) / sites
            self._notes.append(
                f"p of L = {', '.join(map(str, late))} are extrapolated: the sweep's own pilot "
                "looks for them"
            )
        else:
            self._results, self._tasks = placed.results, list(placed.tasks)
        return seconds

    def _continue(self, known: Mapping[int, Task]) -> None:
        """Make the missing tasks; those of unknown sizes are extrapolated from known ones."""
        opened, study, new = self._opened, self._opened.results.study, []
        self._look_for_hints(study, opened.results.own_tasks, opened.results)
        for size, p in opened.missing.items():
            if p is None:
                p = continue_p({key: task.p for key, task in known.items()}, size)
            task = new_task(study, opened.results.own_tasks, opened.rule, size, p)
            if study.kind.unplaced(study) and task.burn_in == AUTO:
                burn_ins = {key: own.burn_in for key, own in known.items()}
                task = study.with_burn_in(task, round(_extrapolate(burn_ins, size, 0, 2.5)))
                task = study.kind.choose_blocks(study, task, opened.rule.requested(size))
            if size not in self._hints:
                names = set().union(*self._hints.values())
                own = {name: {at: x[name] for at, x in self._hints.items()} for name in names}
                self._hints[size] = {name: continue_p(own[name], size) for name in names}
            new.append(task)
        self._results = with_tasks(opened.results, new)
        here = self._results.own_tasks
        tasks = [task for task in here if task.size in opened.requested.sizes]
        self._tasks = sorted(tasks, key=lambda task: task.size)

    def _look_for_hints(self, study: Study, tasks: Sequence[Task], results: StoredResults) -> None:
        """Have the pilots of a sweep find the hints that make samplers faster."""
        stored = {task.id: results.tasks[task.id] for task in tasks}
        pilot = pilot_conditions(self._engine, self._observer)
        hints = study.kind.hints(study, stored, pilot)
        self._hints |= {task.size: dict(hints.get(task.id, {})) for task in tasks}

    def _measure_all(self, targets: Mapping[int, int]) -> None:
        """Measure the tasks with missing samples, or all tasks for a target error."""
        left, is_open = _SECONDS, self._opened.rule.target_error is not None
        stored = {task.id: self._results.tasks[task.id].num_samples for task in self._tasks}
        tasks = [task for task in self._tasks if is_open or stored[task.id] < targets[task.size]]
        for later, task in zip(range(len(tasks), 0, -1), tasks):
            if self._engine.ranks is not None or task.size in self._engine.slabs:
                self._pilots[task.id] = self._measure_layers(task)
                continue
            enough = targets[task.size] - (0 if is_open else stored[task.id])
            begin = time.perf_counter()
            self._pilots[task.id] = self._measure_whole(task, left / later, enough)
            # The time that a small size does not use goes to the larger ones.
            left = max(left - (time.perf_counter() - begin), 0.0)

    def _measure_whole(self, task: Task, seconds: float, enough: int) -> _Pilot:
        """Measure at most ``enough`` samples of a task, or of half its size if one takes long."""
        device, small = self._engine.device, task
        while _work(small) > _SAMPLE_WORK[self._kind] and (half := _half(small)) is not None:
            small = half
        sweeps = small.block_size * small.every + (0 if small.is_serial else max(small.burn_in, 0))
        parts = max(_work(small) * sweeps // _BLOCK_WORK[self._kind], 1)
        size = max(min(small.block_size // parts, enough), 1)
        burn_in = small.burn_in // parts
        small = replace(small, purpose="plan", block_size=size, burn_in=burn_in)
        free = device.free_memory() if device.is_shared else 0
        hints, share = self._hints.get(task.size, {}), memory_share(len(self._tasks))
        sampler = self._engine.sampler(small, share=share, **hints)
        pool = self._engine.make_pool({small.id: sampler}, self._executor)
        result = TaskResult(small)
        step = sampler.blocks_per_call * (1 if sampler.is_serial else self._engine.at_once)
        step = min(step, max(ceil(enough / size), 1))
        first, again = (self._time_blocks(result, pool, step) for _ in range(2))
        calls = min(seconds / again, enough / (step * size))
        if calls > 1:
            # On a GPU, the blocks of one call are summed up while the next is measured.
            calls = max(int(calls), 3 if device.is_shared else 1)
            again = self._time_blocks(result, pool, step * calls) / calls
        rate = self._hosts * step * size / again * small.num_points / task.num_points
        burnt = task.burn_in / task.every / rate if task.is_serial else 0.0
        taken = max(free - device.free_memory(), 0) if free else 0
        return _Pilot(result, rate, max(first - again, 0.0) + burnt, taken)

    def _measure_layers(self, task: Task) -> _Pilot:
        """Measure a task in slabs or over ranks: as it is, or two lattices of fewer layers.

        A line through the times of these two separates what grows with layers from the rest.
        """
        sampler: Any = self._engine.sampler(task)
        job, whole, times, sent = sampler.job, sampler.whole, list[float](), ""
        if isinstance(job, RankJob):
            layers = job.layers
        else:
            # Boxes: those along the last axis.
            count = job.record()["boxes"][-1]
            layers = ((whole.num_layers // count,),) * count
        sites = _LAYERS_SITES[self._kind]
        lots = [thin_layers(whole, layers, sites // n) for n in (_THINNER, 1)]
        counts = [sum(map(sum, lot)) for lot in lots]
        if counts[1] >= whole.num_layers:
            lots, counts = [layers], [whole.num_layers]
        ps = np.quantile(task.p, np.linspace(0, 1, _LAYERS_POINTS), method="nearest")
        own = {field.name: getattr(task, field.name) for field in fields(task)}
        own |= {"purpose": "plan", "block_size": 1, "p": tuple(np.unique(ps).tolist())}
        for lot, count in zip(lots, counts):
            thin, engine = _Layers(**own, layers=count), self._engine
            if engine.ranks is None:
                engine = replace(engine, slabs={task.size: lot[0]})
            elif isinstance(engine.ranks.division, SlabDivision):
                ranks = copy(engine.ranks)
                ranks.division = replace(engine.ranks.division, layers={task.size: lot})
                engine = replace(engine, ranks=ranks)
            record, result = engine.record(), TaskResult(thin)
            pool = engine.make_pool({thin.id: engine.sampler(thin)}, self._executor)
            first = self._time_blocks(result, pool, self._engine.at_once)
            times.append(self._time_blocks(result, pool, 2 * self._engine.at_once) / 2)
            if "split" in record:
                of_row = record["split"]["bytes"] / record["split"]["rows"]
                sent = f", for which ranks send {of_row / 1e3:.3g} kB"
        low, high = times[0], times[-1]
        steps = (whole.num_layers - counts[-1]) / max(counts[-1] - counts[0], 1)
        row = max(high + steps * (high - low), high) / len(thin.p)
        slabs, most = sum(map(len, layers)), max(map(max, layers))
        self._notes.append(
            f"L = {task.size}: {slabs} slabs of {most} layers; a row takes {row:.2g} s{sent}"
        )
        return _Pilot(result, self._engine.at_once / row / len(task.p), max(first - high, 0.0))

    def _time_blocks(self, result: TaskResult, pool: WorkerPool, blocks: int) -> float:
        begin, key = time.perf_counter(), result.task.id
        results = StoredResults(self._results.study, {key: result})
        count = result.num_blocks + blocks
        work = Work(missing_jobs(results, {key: count}, pool.samplers), pool)
        try:
            result.add([block for _, blocks in work.finished() for block in blocks])
        except BaseException:
            # Blocks in work are of no use, and ranks may take long to stop theirs.
            pool.stop()
            raise
        return time.perf_counter() - begin

    def _row(self, size: int) -> SizePlan:
        tasks = [task for task in self._tasks if task.size == size]
        new = [(task, self._pilots[task.id]) for task in tasks if self._missing[task.id]]
        needed = self._memory(max(tasks, key=lambda task: len(task.p)))
        return SizePlan(
            L=size,
            points=sum(len(task.p) for task in tasks),
            samples=min(self._blocks[task.id] * task.block_size for task in tasks),
            stored=min(self._results.tasks[task.id].num_samples for task in tasks),
            rate=min((pilot.rate for _, pilot in new), default=None),
            seconds=sum(
                self._missing[task.id] * task.block_size / pilot.rate + pilot.setup
                for task, pilot in new
            ),
            host_bytes=needed.host,
            device_bytes=max((pilot.device_bytes for _, pilot in new), default=0) or needed.device,
            file_bytes=round(sum(self._groups(task) * self._bytes[task.id] for task in tasks)),
        )

    def _memory(self, task: Task) -> Memory:
        engine = self._engine
        if engine.ranks is not None or task.size in engine.slabs:
            sampler: Any = engine.sampler(task)
            one = sampler.job.most_memory
            count = engine.at_once if engine.ranks is None else engine.ranks.local_ranks
            return Memory(count * one.host, one.device)
        one = estimate_memory(task, engine.labeler, self._kind, engine.threads)
        return Memory(engine.processes * one.host, one.device)

    def _groups(self, task: Task) -> int:
        blocks = self._blocks[task.id]
        return -(-blocks // task.largest_group(blocks))

    def _bytes_of_group(self, task: Task) -> float:
        """Return the bytes of a group in the file, found by encoding groups like those measured."""
        pilot, study, rng = self._pilots.get(task.id), self._results.study, np.random.default_rng(0)
        result = self._results.tasks[task.id] if pilot is None else pilot.result
        made, ratio = list(result.blocks.values()), task.block_size / result.task.block_size
        ratio *= task.largest_group(self._blocks[task.id])
        if not task.kind.codec.holds_columns:
            layout = task.kind.codec.layout(task, result.columns).values()
            return float(sum(np.dtype(each.dtype).itemsize * prod(each.shape) for each in layout))
        count = min(self._groups(task), _MOST_BLOCKS)
        likely = [_likely(n, made[n % len(made)], ratio, rng) for n in range(count)]

        def encoded(blocks: list[Block]) -> int:
            numbered: dict[int, AnyBlock] = {block.number: block for block in blocks}
            one = TaskResult(result.task, numbered, result.columns)
            return len(encode(StoredResults(study, {result.task.id: one})))

        # A series has a number for every sample.
        more = ratio if "series" in task.measure else 1.0
        return (encoded(likely) - encoded([])) / count * more * len(task.p) / len(result.task.p)

    def _information(self, tasks: Sequence[Task]) -> tuple[Information | None, str]:
        """Return the information of one sample of these tasks, or why there is none."""
        results, curves = self._results, list[SpanningCurve]()
        if not results.study.structure.is_scalable:
            return None, "each size has a separate threshold, whose error is not predicted"
        items = {key: pilot.result for key, pilot in self._pilots.items()}
        sizes = {task.size: items[task.id].task.size for task in self._tasks if task.id in items}
        items = {x.task.id: x for x in items.values() if not isinstance(x.task, _Layers)}
        try:
            scaling = choose_scaling(results.study)
            y_t = 1.0 if scaling.get("y_t") is None else scaling["y_t"].value
            stored = {curve.label: curve for curve in read_curves(results)}
            made = {curve.L: curve for curve in read_curves(StoredResults(results.study, items))}
            for task in tasks:
                curve = made.get(sizes.get(task.size, 0)) or stored.get(task.id)
                if curve is not None:
                    # The transition of a larger lattice is narrower.
                    middle = np.interp(0.5, curve.probability, curve.p)
                    p = middle + (curve.p - middle) * (curve.L / task.size) ** y_t
                    curves.append(replace(curve, L=task.size, p=p, label=task.id))
            return compute_information(curves, **scaling), ""
        except (AnalysisError, InputError) as error:
            return None, str(error)


@dataclass(frozen=True, repr=False)
class _Layers(Task):
    """A task of a lattice with fewer layers along its last axis."""

    layers: int = field(kw_only=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.structure.shape(self.size)[:-1], self.layers)


def _work(task: Task) -> int:
    return task.num_points * int(task.kind.count_labelings(task))


def _half(task: Task) -> Task | None:
    if not task.structure.is_scalable or task.size < 2 * _LEAST_SIZE:
        return None
    with suppress(InputError):
        task.structure.check_size(task.size // 2, task.boundary)
        return replace(task, size=task.size // 2)
    return None


def continue_p(spans: Mapping[int, Sequence[float]], size: int) -> tuple[float, ...]:
    """Return the p of a size; of an unknown one as many, in a range that becomes narrower with L.

    >>> continue_p({8: (0.4, 0.5, 0.6), 16: (0.45, 0.5, 0.55)}, 32)
    (0.475, 0.5, 0.525)
    """
    p = spans[size] if size in spans else spans[max(spans)]
    centre, widths = (p[0] + p[-1]) / 2, {key: own[-1] - own[0] for key, own in spans.items()}
    shrink = _extrapolate(widths, size, -3, 0) / (p[-1] - p[0]) if p[-1] > p[0] else 1.0
    return tuple(round(centre + shrink * (value - centre), 12) for value in p)


def _extrapolate(values: Mapping[int, float], size: int, least: float, most: float) -> float:
    """Return the value of a size by a power law through first and last values, within limits."""
    if size in values:
        return values[size]
    first, last, power = min(values), max(values), 0.0
    if first != last and values[first] > 0 and values[last] > 0:
        power = log(values[last] / values[first]) / log(last / first)
    return float(values[last] * (size / last) ** min(max(power, least), most))


def thin_layers(whole: Whole, layers: RankLayers, sites: int) -> RankLayers:
    """Return slabs like ``layers`` for the same ranks, but fewer, or one thinner one for each rank.

    >>> from percolab.lattices.lattice import load_lattice
    >>> square = Whole(load_lattice("square"), (100, 1000), ("open", "open"))
    >>> thin_layers(square, ((50,) * 10, (50,) * 10), 20_000)
    ((50, 50), (50, 50))
    """
    cell = whole.lattice.cell[-1]
    least = -(-max(whole.reach, 1) // cell) * cell
    own = sites // (len(layers) * whole.layer_points)
    thick = max(min(max(map(max, layers)), own) // cell * cell, least)
    return ((thick,) * max(own // thick, 1),) * len(layers)


def _likely(number: int, block: AnyBlock, ratio: float, rng: np.random.Generator) -> Block:
    """Return group ``number``: `ratio` times the samples of a block, with other low digits."""
    assert isinstance(block, Block)
    ratio /= block.count

    def scatter(array: np.ndarray) -> np.ndarray:
        noise = np.sqrt(ratio * np.abs(array.astype(float))) * rng.standard_normal(array.shape)
        numbers = np.clip(ratio * array + noise, -(2.0**62), 2.0**62)
        is_whole = np.array_equal(array, np.rint(array))
        return np.asarray(np.rint(numbers) if is_whole else numbers, array.dtype)

    extras = {key: own if key == "series" else scatter(own) for key, own in block.extras.items()}
    return Block(number, scatter(block.sums), scatter(block.squares), extras)
