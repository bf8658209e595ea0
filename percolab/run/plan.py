"""What a sweep will take and give, before it is run: time, memory, file size, sigma(p_c).

A short pilot (:mod:`percolab.run.plan_pilot`) measures the seconds a sample takes and fits the
scaling function to a few samples, and to what the results file holds already.  The curves that
function expects at the p of every task are then fitted as the sweep's will be: the curvature of
that fit is the information of one sample, and any numbers of samples follow from it.  Nothing is
stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Unpack

import numpy as np
import psutil
from scipy.special import ndtri

from percolab.analysis import (
    AnalysisError,
    Information,
    ScalingFunction,
    fit_threshold,
    information_of,
)
from percolab.analysis.stored_data import curves_of
from percolab.analysis.stored_fits import scaling_of
from percolab.analysis.study_kinds import POINTS
from percolab.errors import InputError
from percolab.kernels.device import device_names
from percolab.kinds.memory import required_memory
from percolab.run.engine import Engine, check_slabs_executor, choose_engine
from percolab.run.executors import CountedWorkers, usable_cores
from percolab.run.parts_sampler import check_p
from percolab.run.placement import new_task, rounded_up, with_tasks
from percolab.run.plan_file import at_points, file_bytes
from percolab.run.plan_pilot import Pilot, SizePilot, run_pilot
from percolab.run.request import Opened, SweepOptions, Watcher, open_study, own_tasks
from percolab.run.slab_pilot import compile_slabs, pilot_of_slabs
from percolab.run.stored import saving_seconds
from percolab.run.wanted import (
    expected_curve,
    first_targets,
    grown,
    is_held,
    next_targets,
    wanted_blocks,
)
from percolab.store.joined import joined, joined_tasks
from percolab.store.results import Results
from percolab.tasks.settings import EXECUTORS
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study, Task

# The fit that a sweep ends with takes this many seconds, about; and a round with its fit.
_ANALYSIS_SECONDS, _ROUND_SECONDS = 0.1, 0.1
# The quantiles of T between which method "threshold" is analysed, and where they are looked for.
_TAIL, _FINE = 0.01, 20001


@dataclass(frozen=True)
class SizePlan:
    """One row of a plan.

    L, points: of p.  samples: at the end; held: of these, in the file already.  rate: samples a
    second.  seconds: for what is missing.  host_bytes: memory of what is sampled.  file_bytes: of
    the results file.
    """

    L: int
    points: int
    samples: int
    held: int
    rate: float
    seconds: float
    host_bytes: int
    file_bytes: int


@dataclass(frozen=True)
class Plan:
    """What a sweep will take and give.

    seconds: of finding the p, sampling, saving and analysing; ``placing_seconds`` and
    ``analysis_seconds`` are parts of it, ``compile_seconds`` is not: what the first call of this
    process took longer.
    host_bytes: peak of the process; ``base_bytes`` of it are Python and its libraries.
    checkpoint_bytes: beside the file, of all samples in parts that are in work at a time.
    threshold_error: sigma(p_c), None where there is none.  rounds: of a target error.
    """

    device: str
    labeler: str
    workers: int
    sizes: tuple[SizePlan, ...]
    seconds: float
    placing_seconds: float
    analysis_seconds: float
    compile_seconds: float
    host_bytes: int
    base_bytes: int
    device_bytes: int
    file_bytes: int
    checkpoint_bytes: int
    threshold_error: float | None
    rounds: int
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return every number as plain JSON values."""
        return asdict(self)


def plan_study(study: Study, rule: StopRule, **options: Unpack[SweepOptions]) -> Plan:
    """Return what :func:`run_study` would take and give with the same arguments.

    InputError: as the sweep's own; or a target error is asked for and the pilot finds no p_c.
    """
    watcher = options.get("watcher") or Watcher()
    if study.refusal("plan"):
        raise InputError(f"--plan: {study.refusal('plan')}")
    executor = options.get("executor")
    counted = executor if isinstance(executor, CountedWorkers) else None
    if counted is not None:
        check_slabs_executor(options.get("slabs"), executor)
        # Those of this host are like processes; where it has none, one measures for the others.
        options = {**options, "executor": "processes", "workers": max(counted.here, 1)}
    elif executor not in (None, *EXECUTORS):
        raise InputError("--plan measures on this machine: leave out --executor")
    opened = open_study(study, rule, options)
    results, asked, rule = with_given_p(opened), opened.asked, opened.rule
    engine = choose_engine(asked, options, watcher)
    if counted is not None and engine.device.is_shared:
        raise InputError(
            "--plan: GPUs of --executor mpi are not planned; leave out --executor on one of the "
            "hosts, or take --device cpu"
        )
    if engine.slabs:
        check_p(opened.missing.values())
    pilot = _pilot_with_slabs(results, asked, rule, engine, watcher)
    if len(engine.every_device) > 1:
        # The pilot measured on the first.
        rates = [replace(item, rate=item.rate * engine.processes) for item in pilot.sizes]
        pilot = replace(pilot, sizes=tuple(rates))
    if counted is not None:
        return _plan_of_counted(results, asked, rule, engine, pilot, counted)
    return plan_of(results, asked, rule, engine, pilot)


def _plan_of_counted(
    results: Results,
    asked: Study,
    rule: StopRule,
    engine: Engine,
    pilot: Pilot,
    counted: CountedWorkers,
) -> Plan:
    """Return the plan of a sweep by workers of many hosts; a pilot has measured on this one."""
    times = counted.at_once / min(engine.workers, usable_cores())
    rates = [replace(item, rate=item.rate * times) for item in pilot.sizes]
    plan = plan_of(results, asked, rule, engine, replace(pilot, sizes=tuple(rates)))
    notes = (
        [f"memory at most: of this host, which has {counted.here} of {counted.total} workers"]
        if counted.here < counted.total
        else []
    )
    return replace(plan, workers=counted.total, notes=(*plan.notes, *notes))


def plan_of(results: Results, asked: Study, rule: StopRule, engine: Engine, pilot: Pilot) -> Plan:
    """Return the plan of a sweep, of which a pilot has measured every size.

    results: what the file holds, with tasks at given p; asked: the sizes that are wanted.
    """
    base = psutil.Process().memory_info().rss
    end = _end_of(results, rule, pilot, _tasks_of(results, asked, pilot))
    return _plan_of(results, rule, engine, pilot, end, base)


def _pilot_with_slabs(
    results: Results, asked: Study, rule: StopRule, engine: Engine, watcher: Watcher
) -> Pilot:
    """Measure every size, those in slabs by a few slabs."""
    samples = _missing(results, rule)
    whole = tuple(size for size in asked.sizes if size not in engine.slabs)
    pilot = Pilot((), 0.0, (), 0)
    if whole:
        left = {size: samples[size] for size in whole}
        pilot = run_pilot(results, replace(asked, sizes=whole), rule, engine, left, watcher)
    own = own_tasks(results)
    tasks = [
        max((task for task in own if task.size == size), key=lambda task: len(task.p))
        for size in engine.slabs
    ]
    if not tasks:
        return pilot
    compiling = compile_slabs(tasks[0], engine.device)
    found = [pilot_of_slabs(task, engine) for task in tasks]
    return replace(
        pilot,
        sizes=tuple(sorted((*pilot.sizes, *found), key=lambda item: item.task.size)),
        compiling=pilot.compiling + compiling,
        # Slabs of one size at a time are on a GPU.
        device_bytes=pilot.device_bytes + max(item.device_bytes for item in found),
    )


@dataclass(frozen=True, eq=False)
class _End:
    """What a sweep will end with.

    tasks: those that are asked for.  blocks: how many each will have.  error: of p_c, None where
    there is none, and then the reason.  rounds: until then.
    """

    tasks: list[Task]
    blocks: dict[str, int]
    error: float | None
    reason: str
    rounds: int


def _end_of(results: Results, rule: StopRule, pilot: Pilot, tasks: list[Task]) -> _End:
    """Return what a sweep of these tasks will end with."""
    # Tasks of the same samples count once, at all their p.
    whole = joined_tasks(tasks)
    information, reason = _information(results, pilot, whole)
    others = {
        key: item.num_samples
        for key, item in joined(results).tasks.items()
        if item.blocks and key not in {task.id for task in [*tasks, *whole]}
    }
    targets, rounds = _targets(results, rule, whole, information, others, reason)
    blocks = {task.id: _blocks_at_end(results, task, targets[task.size]) for task in tasks}
    error = None
    if information is not None:
        samples = {task.id: _samples_at_end(blocks, tasks, task.size) for task in whole}
        found = information.error(samples | others)
        error = found if np.isfinite(found) else None
    return _End(tasks, blocks, error, reason, rounds)


def _plan_of(
    results: Results, rule: StopRule, engine: Engine, pilot: Pilot, end: _End, base: int
) -> Plan:
    """Return the plan of a sweep with this end; base: bytes of the process before it."""
    kept = {task.id: at_points(_pilot_of(pilot, task).kept, len(task.p)) for task in end.tasks}
    record = engine.record() | {"seconds": 1.234, "blocks": dict.fromkeys(end.blocks, 100)}
    records = [record] * end.rounds
    size, by_task, saving = file_bytes(results, end.tasks, end.blocks, kept, records)
    rows = tuple(_row(results, engine, item, end.blocks, by_task) for item in pilot.sizes)
    placing = sum(item.placing for item in pilot.sizes)
    sampling = sum(row.seconds for row in rows)
    analysis = 0.0
    if end.error is not None and sampling:
        analysis = _ANALYSIS_SECONDS + end.rounds * _ROUND_SECONDS
    seconds = placing + sampling + saving_seconds(sampling, saving) + analysis
    blocks_bytes = _raw_bytes(end.blocks, kept)
    return Plan(
        device=device_names(engine.every_device),
        labeler=engine.labeler,
        workers=record["workers"],
        sizes=rows,
        seconds=seconds if sampling else 0.0,
        placing_seconds=placing,
        analysis_seconds=analysis,
        compile_seconds=pilot.compiling,
        # A file is built in memory, from arrays that are stacked, beside the blocks themselves.
        host_bytes=base * engine.pythons
        + sum(row.host_bytes for row in rows)
        + 2 * blocks_bytes
        + size,
        base_bytes=base,
        device_bytes=pilot.device_bytes,
        file_bytes=size,
        checkpoint_bytes=max((item.checkpoint_bytes for item in pilot.sizes), default=0),
        threshold_error=end.error,
        rounds=end.rounds,
        notes=(
            *rounded_up(end.tasks, results, rule),
            *_notes(pilot, end.reason),
            *_slab_notes(engine, pilot),
        ),
    )


def _missing(results: Results, rule: StopRule) -> dict[int, int]:
    """Return the samples that every size still takes at least."""
    held: dict[int, int] = {}
    for task in own_tasks(results):
        count = results.tasks[task.id].num_samples
        held[task.size] = min(held.get(task.size, count), count)
    wanted = first_targets(results.study, rule)
    return {size: max(wanted[size] - held.get(size, 0), 0) for size in wanted}


def with_given_p(opened: Opened) -> Results:
    """Return results with the tasks that will be added at p that are known."""
    results = opened.results
    known = [
        new_task(results.study, opened.own, opened.rule, size, p)
        for size, p in opened.missing.items()
        if p is not None
    ]
    return with_tasks(results, known)


def _tasks_of(results: Results, asked: Study, pilot: Pilot) -> list[Task]:
    """Return the tasks that are asked for, ascending in L: those of the file, and those to come."""
    own = [task for task in own_tasks(results) if task.size in asked.sizes]
    found = {task.size for task in own}
    own += [item.task for item in pilot.sizes if item.task.size not in found]
    return sorted(own, key=lambda task: task.size)


def _samples_at_end(blocks: Mapping[str, int], tasks: Sequence[Task], size: int) -> int:
    """Return the samples that all tasks of a size will have."""
    return min(blocks[task.id] * task.block_size for task in tasks if task.size == size)


def _pilot_of(pilot: Pilot, task: Task) -> SizePilot:
    return next(item for item in pilot.sizes if item.task.size == task.size)


def _blocks_at_end(results: Results, task: Task, samples: int) -> int:
    """Return how many blocks a task has when a sweep has ended."""
    held = results.tasks[task.id].blocks if task.id in results.tasks else {}
    count = ceil(samples / task.block_size)
    return count + sum(number >= count for number in held)


def _row(
    results: Results,
    engine: Engine,
    item: SizePilot,
    blocks: Mapping[str, int],
    by_task: Mapping[str, int],
) -> SizePlan:
    own = [task for key in blocks for task in [_task_of(results, item, key)] if task is not None]
    held = {task.id: results.tasks[task.id].num_samples if task.id in results.tasks else 0
            for task in own}  # fmt: skip
    missing = sum(blocks[task.id] * task.block_size - held[task.id] for task in own)
    return SizePlan(
        L=item.task.size,
        points=sum(len(task.p) for task in own),
        samples=_samples_at_end(blocks, own, item.task.size),
        held=min(held.values()),
        rate=item.rate,
        seconds=missing / item.rate + item.setup if missing else 0.0,
        host_bytes=_host_bytes(engine, item),
        file_bytes=sum(by_task[task.id] for task in own),
    )


def _host_bytes(engine: Engine, item: SizePilot) -> int:
    """Return the host memory that measuring a size takes."""
    if item.host_bytes is not None:
        return item.host_bytes
    one = required_memory(item.task, engine.labeler, engine.device, engine.threads)
    return engine.processes * one


def _task_of(results: Results, item: SizePilot, key: str) -> Task | None:
    """Return the task with this id if it is of a pilot's size."""
    task = results.tasks[key].task if key in results.tasks else item.task
    return task if task.id == key and task.size == item.task.size else None


def _raw_bytes(blocks: Mapping[str, int], kept: Mapping[str, Any]) -> int:
    """Return the bytes of all blocks in memory."""
    total = 0
    for key, count in blocks.items():
        block = kept[key][0]
        arrays = [value for value in vars(block).values() if isinstance(value, np.ndarray)]
        arrays += list(getattr(block, "extras", {}).values())
        total += count * sum(array.nbytes for array in arrays)
    return total


def _information(
    results: Results, pilot: Pilot, tasks: Sequence[Task]
) -> tuple[Information | None, str]:
    """Return the information of one sample of every task, or why there is none."""
    if not results.study.structure.is_scalable:
        return None, "thresholds are of each size alone here, and their errors are not predicted"
    try:
        function = _curve(results, pilot)
        held = [item.task for item in joined(results).tasks.values() if item.blocks]
        asked = {(task.stream_seed, task.method) for task in tasks}
        others = [task for task in held if (task.stream_seed, task.method) not in asked]
        every = {task.id: task for task in [*others, *tasks]}
        curves = [
            expected_curve(function, task.size, _sampled_p(function, task), task.id)
            for task in every.values()
        ]
        return information_of(curves, **scaling_of(results)), ""
    except (AnalysisError, InputError) as error:
        return None, str(error)


def _curve(results: Results, pilot: Pilot) -> ScalingFunction:
    """Return the scaling function of a pilot's samples and of those in the file."""
    held = Results(results.study, dict(results.tasks))
    for item in pilot.sizes:
        held.tasks.update({found.task.id: found for found in item.measured})
    return fit_threshold(curves_of(held), **scaling_of(results)).scaling


def _sampled_p(function: ScalingFunction, task: Task) -> np.ndarray:
    """Return the p at which a task's samples are counted, float64 (m,)."""
    return np.array(task.p) if task.method == "grid" else _transition(function, task.size)


def _transition(function: ScalingFunction, size: int) -> np.ndarray:
    """Return the p at which exact thresholds of a size are counted, as far as can be foreseen."""
    reach = 6.0 / (max(function.coefficients[1], 1e-12) * size**function.y_t)
    p = np.linspace(
        max(function.threshold - reach, 0.0), min(function.threshold + reach, 1.0), _FINE
    )
    # In the tails the polynomial may turn back, so a straight line leads there from the middle.
    probit = function(p, size)
    middle = int(np.argmin(np.abs(probit)))
    slope = max(float(np.gradient(probit, p)[middle]), 2.0 / reach)
    half = float(ndtri(1 - _TAIL)) / slope
    return np.linspace(max(p[middle] - half, 0.0), min(p[middle] + half, 1.0), POINTS)


def _targets(
    results: Results,
    rule: StopRule,
    tasks: Sequence[Task],
    information: Information | None,
    others: Mapping[str, int],
    reason: str,
) -> tuple[dict[int, int], int]:
    """Return the samples of every size when the rule is met, and the rounds until then."""
    study = results.study
    targets, rounds = first_targets(study, rule), 1
    if rule.target_error is None:
        return targets, rounds
    if information is None:
        raise InputError(f"--plan: the pilot finds no p_c, so no target error of it: {reason}")
    own = own_tasks(results)
    placed = {task.size for task in own} >= set(study.sizes)
    while not all(n >= rule.limit(size) for size, n in targets.items()):
        if placed and is_held(results, wanted_blocks(own, targets)):
            # How the sweep judges what is there is known, and need not be foreseen.
            following = next_targets(results, rule, targets)
            if following is None:
                break
            targets, rounds = following, rounds + 1
            continue
        samples = {task.id: ceil(targets[task.size] / task.block_size) * task.block_size
                   for task in tasks}  # fmt: skip
        if information.error(samples | dict(others)) <= rule.target_error:
            break
        targets = grown(tasks, information, others, targets, rule)
        rounds += 1
        if max(targets.values()) >= 2**62:
            raise InputError(f"--plan: no number of samples reaches {rule.target_error}")
    return targets, rounds


def _slab_notes(engine: Engine, pilot: Pilot) -> Iterator[str]:
    """Yield one line a size that is measured in slabs."""
    samples = engine.in_slabs
    for item in pilot.sizes:
        layers = engine.slabs.get(item.task.size)
        if layers:
            sites = item.rate * item.task.num_points * max(len(item.task.p), 1) / samples
            yield (
                f"L = {item.task.size}: {len(layers)} slabs of {max(layers)} layers, "
                f"{1e9 / sites:.3g} ns a site; {samples} sample{'s' * (samples > 1)} at a time"
            )


def _notes(pilot: Pilot, reason: str) -> tuple[str, ...]:
    notes = [
        f"the first call of a process compiles or loads: {pilot.compiling:.1f} s here, not counted"
    ]
    if pilot.extrapolated:
        sizes = ", ".join(map(str, pilot.extrapolated))
        notes.append(f"p of L = {sizes} are extrapolated: the sweep's own pilot looks for them")
    if reason:
        notes.append(f"no error of p_c: {reason}")
    return tuple(notes)
