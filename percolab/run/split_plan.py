"""What samples that are split take: slabs, memory, time, and the bytes that ranks send.

A pilot opens the ranks of the study and lets them measure small lattices, by the transport of the
study.  One that is small enough is measured as it is.  Of a larger one two smaller lattices of the
same kind tell what a row takes beside measuring, in bytes and in seconds: that grows as the faces
of ranks do.  The time of measuring itself is that of a plan of samples in slabs
(:mod:`.slab_pilot`), or of one box, by as many threads as ranks of this host work at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.errors import InputError
from percolab.measure.columns import TALLY, is_gathered_from
from percolab.parts.front import Row
from percolab.parts.parts import Whole
from percolab.parts.ranks import AnyJob, Job, Leader
from percolab.parts.raster import Draw
from percolab.parts.slab_partition import SlabDivision
from percolab.parts.transport import RankLost
from percolab.run.engine import Engine, choose_engine, warm_up
from percolab.run.executors import usable_cores
from percolab.run.parts_sampler import CPU, check_p, most_open
from percolab.run.plan import Plan, SizePlan, plan_of, with_given_p
from percolab.run.plan_pilot import Pilot, SizePilot
from percolab.run.rank_group import RankExecutor, RankGroup, check_split_executor, split_whole
from percolab.run.request import SweepOptions, Watcher, open_study, own_tasks
from percolab.run.slab_pilot import blocks_of_rows, pilot_of_slabs, rows_like, some_of
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study, Task

# Sites of a lattice that ranks measure in a pilot at most, and how many times fewer the other has.
_PILOT_SITES, _SMALLER = 2**23, 16
# How many p are timed, and how often each, or fewer times once so many seconds are over, of all p
# together; but twice.
_POINTS, _REPEATS, _SECONDS = 5, 20, 1.0
# Grid points along an axis that is not cut, of the smaller and of the larger lattice, at least.
_SIDES = 8, 16
# Sites of the box that a pilot times at most; its memory comes from the system, as a larger one's.
_BOX_SITES = 2**23

_T = TypeVar("_T")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SplitSizePlan(SizePlan):
    """One row of a plan; what others have, too, is of all ranks of this host together.

    slabs: of all ranks, or boxes.  rank_bytes, device_bytes: memory of a rank.  message_bytes: the
    largest that is sent, at the p where it is; bound_bytes: at any p.  sample_bytes: all that is
    sent for one row of a sample, at that p.  row_seconds: of one row.
    """

    slabs: int
    rank_bytes: int
    device_bytes: int
    message_bytes: int
    bound_bytes: int
    sample_bytes: int
    row_seconds: float


@dataclass(frozen=True)
class SplitPlan(Plan):
    """What a sweep whose samples are split takes: what others do, ranks, and stages of joining.

    blocks, merge: of samples in boxes, as text; else empty
    """

    sizes: tuple[SplitSizePlan, ...]
    ranks: int
    stages: int
    blocks: str = ""
    merge: str = ""


@dataclass(frozen=True, eq=False)
class _Measured:
    """What a pilot has found of one size; the names are those of SplitSizePlan."""

    pilot: SizePilot
    slabs: int
    rank_bytes: int
    message_bytes: int
    bound_bytes: int
    sample_bytes: int


@dataclass(frozen=True, eq=False)
class _Rows:
    """What rows take, at each p that is timed.

    seconds: of a row, or of what is not measuring.  largest, sent: bytes of a message at most, and
    of all.  setup: seconds of getting ready.  row: one of them
    """

    seconds: Floats
    largest: Floats
    sent: Floats
    setup: float
    row: Row


def plan_split(study: Study, rule: StopRule, **options: Unpack[SweepOptions]) -> SplitPlan:
    """Return what :func:`percolab.run.runner.run_study` takes with the same arguments.

    InputError: as the sweep's own, or for a target error, since a pilot finds no p_c here.
    """
    check_split_executor(options.get("executor"))
    watcher = options.get("watcher") or Watcher()
    opened = open_study(study, rule, options)
    engine = choose_engine(opened.asked, options, watcher)
    check_p(opened.missing.values(), "--split lattice")
    team = engine.ranks
    assert team is not None
    is_slabs = isinstance(team.division, SlabDivision)
    begin = time.perf_counter()
    warm_up(opened.asked, engine, watcher, with_pilot=False)
    compiling, results = time.perf_counter() - begin, with_given_p(opened)
    own, measure = own_tasks(results), _of_layers if is_slabs else _of_boxes
    tasks = [_longest(own, size) for size in sorted(opened.asked.sizes)]
    begin = time.perf_counter()
    with _opened(team) as (ranks, leader):
        first = _pilots(tasks[0], ranks)[0], _draw_of(tasks[0], tasks[0].p[0])
        leader.row(*first)
        there = time.perf_counter()
        leader.row(*first)
        opening = max(2 * there - begin - time.perf_counter(), 0.0)
        found = {task.size: measure(task, engine, ranks, leader) for task in tasks}
    pilots = tuple(item.pilot for item in found.values())
    device_bytes = max(pilot.device_bytes for pilot in pilots)
    pilot = Pilot(pilots, compiling, (), device_bytes)
    plan = plan_of(results, opened.asked, opened.rule, engine, pilot)
    told = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    told |= {
        "sizes": tuple(_row(row, found[row.L]) for row in plan.sizes),
        "seconds": plan.seconds + opening if plan.seconds else 0.0,
        "notes": (*plan.notes, *_notes(engine, team, opening)),
    }
    told |= team.division.split_record()
    return SplitPlan(**told, ranks=team.size, stages=team.division.stages)


def _longest(tasks: Sequence[Task], size: int) -> Task:
    """Return the task of a size that has most p."""
    return max((task for task in tasks if task.size == size), key=lambda task: len(task.p))


@contextmanager
def _opened(team: RankGroup) -> Iterator[tuple[RankGroup, Leader]]:
    """Open the ranks of a study; of GPUs as many on the CPU, which send the same.

    InputError: one has ended.
    """
    if team.devices[0].is_shared:
        # Ranks of MPI are there.
        there = team.executor if isinstance(team.executor, RankExecutor) else "threads"
        assert isinstance(team.division, SlabDivision)
        team = RankGroup(there, (CPU,), SlabDivision(team.division.layers))
    try:
        with team.opened() as executor:
            assert isinstance(executor, RankExecutor)
            yield team, executor.leader
    except RankLost as error:
        raise InputError(f"--plan: {error}") from error


def _row(row: SizePlan, measured: _Measured) -> SplitSizePlan:
    rows = measured.pilot.rate * len(measured.pilot.task.p)
    more = {key: value for key, value in vars(measured).items() if key != "pilot"}
    more["device_bytes"] = measured.pilot.device_bytes
    return SplitSizePlan(**asdict(row), **more, row_seconds=1 / rows)


def _notes(engine: Engine, team: RankGroup, opening: float) -> list[str]:
    """Return what the numbers of a plan are of."""
    if not isinstance(team.division, SlabDivision) and team.size == 1:
        return ["all boxes are measured in one process, which sends nothing"]
    notes = [
        "message: the largest; bound: if every open bond at a face led to a cluster of its own"
    ]
    if team.local_ranks < team.size:
        notes.append(f"memory at most: of this host, which has {team.local_ranks} of the ranks")
    if engine.device.is_shared:
        return [*notes, "time: of measuring alone"]
    cores = _at_once(team)
    shared = f" by {cores} cores, which {team.size} ranks share" if team.size > cores else ""
    return [
        *notes,
        f"time: of measuring, joining and sending{shared}; {opening:.1f} s of it, once, until all "
        "ranks are there",
    ]


# --- layers --------------------------------------------------------------------------------------


def _of_layers(task: Task, engine: Engine, team: RankGroup, leader: Leader) -> _Measured:
    """Return what a pilot finds of samples whose ranks have layers."""
    assert isinstance(team.division, SlabDivision)
    whole, layers = split_whole(task), team.division.layers[task.size]
    is_gpu = engine.device.is_shared
    threads, at_once = 1 if is_gpu else _threads(team), _at_once(team)
    # As many threads at a time as work side by side measure slabs, or the first GPU does.
    longest = max(layers, key=lambda own: max(own))
    alone = replace(engine, ranks=None, slabs={task.size: longest}, workers=threads)
    pilot, ps = pilot_of_slabs(task, alone), some_of(task.p, _POINTS)
    rows = _rows_of(task, team, leader, ps)
    if is_gpu:
        pilot = replace(pilot, rate=pilot.rate * team.size)
    elif _is_small(whole):
        pilot = replace(pilot, rate=1 / _of_all_p(task, ps, rows.seconds), setup=rows.setup)
    else:
        measuring = threads / at_once / pilot.rate
        if all(len(own) == 1 for own in layers):
            # Slabs of a pilot are joined to each other, and these only by ranks.
            thick = max(min(longest[0], _PILOT_SITES // whole.layer_points), whole.reach, 1)
            one = Job(whole, ((thick,),), is_gathered_from(TALLY, task.columns))
            measuring = _of_all_p(task, ps, _time_parts(one, task, ps, team)[1])
        pilot = replace(pilot, rate=1 / (measuring + _of_all_p(task, ps, rows.seconds)))
    largest = round(rows.largest.max())
    rank_bytes = (pilot.host_bytes or 0) // threads + largest
    # Rank 0's with the rows of the block, and fronts of the others.
    checkpoints = pilot.checkpoint_bytes // threads + (team.size - 1) * largest
    return _Measured(
        replace(pilot, host_bytes=team.local_ranks * rank_bytes, checkpoint_bytes=checkpoints),
        slabs=sum(map(len, layers)),
        rank_bytes=rank_bytes,
        message_bytes=largest,
        bound_bytes=_job_of(task, team).most_sent,
        sample_bytes=round(rows.sent.max()),
    )


# --- boxes ---------------------------------------------------------------------------------------


def _of_boxes(task: Task, engine: Engine, team: RankGroup, leader: Leader) -> _Measured:
    """Return what a pilot finds of samples in boxes."""
    job: Any = _job_of(task, team)
    ps = some_of(task.p, _POINTS)
    rows = _rows_of(task, team, leader, ps)
    seconds, setup = rows.seconds, rows.setup
    if not _is_small(job.whole):
        small = job.smaller(_BOX_SITES * job.num_parts)
        own, measuring = _time_parts(small, task, ps, team)
        times = job.whole.num_points / small.whole.num_points
        seconds = seconds + times * measuring
        setup = own * times * team.size / _at_once(team)
    largest = round(rows.largest.max()) if team.size > 1 else 0
    rank_bytes = job.rank_bytes(largest)
    ratio = job.whole.num_points / _pilots(task, team)[-1].whole.num_points
    pilot = SizePilot(
        task=task,
        kept=blocks_of_rows(task, rows_like(rows.row, task, ratio)),
        measured=(),
        rate=1 / _of_all_p(task, ps, seconds),
        setup=setup,
        placing=0.0,
        host_bytes=team.local_ranks * rank_bytes,
    )
    return _Measured(
        pilot,
        slabs=job.num_parts,
        rank_bytes=rank_bytes,
        message_bytes=largest,
        bound_bytes=job.most_sent,
        sample_bytes=round(rows.sent.max()) if team.size > 1 else 0,
    )


# --- both ----------------------------------------------------------------------------------------


def _threads(team: RankGroup) -> int:
    """Return how many ranks of this host work at a time, on the cores of rank 0."""
    return min(team.local_ranks, usable_cores())


def _at_once(team: RankGroup) -> int:
    """Return how many of all ranks work at a time."""
    given = team.executor.at_once if isinstance(team.executor, RankExecutor) else 0
    return given or _threads(team)


def _is_small(whole: Whole) -> bool:
    """Return whether a lattice is measured as it is."""
    return whole.num_points <= _PILOT_SITES


def _draw_of(task: Task, p: float) -> Draw:
    return Draw(GENERATORS[task.rng], task.stream_seed, 0, threshold_of(p))


def _job_of(task: Task, team: RankGroup) -> AnyJob:
    tally = is_gathered_from(TALLY, task.columns)
    return team.division.job(task.size, split_whole(task), tally=tally, p=most_open(task))


def _pilots(task: Task, team: RankGroup) -> list[AnyJob]:
    """Return the lattices that ranks measure for a plan: of the task, or two smaller ones."""
    job = _job_of(task, team)
    if _is_small(job.whole):
        return [job]
    sites = _PILOT_SITES // _SMALLER, _PILOT_SITES
    return [job.smaller(*given) for given in zip(sites, _SIDES)]


def _rows_of(task: Task, team: RankGroup, leader: Leader, ps: Sequence[float]) -> _Rows:
    """Return what rows take, of a small lattice in all, else beside measuring."""
    jobs = _pilots(task, team)
    found = [_timed_rows(job, task, leader, ps) for job in jobs]
    if len(jobs) == 1:
        return found[0]
    measuring = [_time_parts(job, task, ps, team)[1] for job in jobs]
    beside = [replace(own, seconds=own.seconds - m) for own, m in zip(found, measuring)]
    sizes = [job.face_size for job in jobs]
    return _grown(beside, sizes, _job_of(task, team).face_size)


def _timed_rows(job: AnyJob, task: Task, leader: Leader, ps: Sequence[float]) -> _Rows:
    """Let ranks measure a lattice at several p."""
    begin = time.perf_counter()
    leader.row(job, _draw_of(task, ps[0]))
    first, seconds, sent = time.perf_counter() - begin, [], []
    for p in ps:
        draw = _draw_of(task, p)
        least, found = _least(partial(leader.row, job, draw), len(ps))
        assert found is not None
        row, steps = found
        seconds.append(least)
        sent.append([step.bytes for step in steps])
    largest, total = (np.array([f(own) for own in sent], float) for f in (max, sum))
    return _Rows(np.array(seconds), largest, total, max(first - seconds[0], 0.0), row)


def _time_parts(
    job: AnyJob, task: Task, ps: Sequence[float], team: RankGroup
) -> tuple[float, Floats]:
    """Return the seconds of one part's tables, and of measuring all parts at each p.

    A part is a slab, or a box.  As many at a time are measured as work side by side here, since
    they share the memory's bandwidth.
    """
    threads = _threads(team)
    draws = [_draw_of(task, p) for p in ps]
    with ThreadPoolExecutor(threads) as executor:
        every = list(executor.map(lambda n: _time_part(job, draws), range(threads)))
    setup, *seconds = np.mean(every, axis=0)
    return setup, np.array(seconds) * job.num_parts / _at_once(team)


def _time_part(job: AnyJob, draws: Sequence[Draw]) -> list[float]:
    """Return the seconds of making the tables of a part, and of measuring it for each draw."""
    begin = time.perf_counter()
    measure = job.part()
    measure(draws[0])
    first_seconds = time.perf_counter() - begin
    found = [_least(partial(measure, draw), len(draws))[0] for draw in draws]
    return [max(first_seconds - found[0], 0.0), *found]


def _least(work: Callable[[], _T], points: int) -> tuple[float, _T]:
    """Return the least seconds of several times that the same is done, and what it returns.

    points: p, of each of which this is done
    """
    found: list[float] = []
    end = time.perf_counter() + _SECONDS / points
    while len(found) < 2 or (len(found) < _REPEATS and time.perf_counter() < end):
        begin = time.perf_counter()
        result = work()
        found.append(time.perf_counter() - begin)
    return min(found), result


def _grown(found: Sequence[_Rows], sizes: Sequence[int], size: int) -> _Rows:
    """Return what rows of a larger lattice take: a line through what those of two smaller ones do.

    Where many ranks share a core, small parts may take longer beside measuring than larger ones, as
    ranks contend; then the time is that of the larger ones.

    sizes, size: what grows in proportion, of the smaller ones and of the larger one
    """
    small, large = found
    steps = (size - sizes[0]) / (sizes[1] - sizes[0]) if sizes[1] > sizes[0] else 1.0

    def at(one: Floats, other: Floats) -> Floats:
        return np.maximum(one + steps * (other - one), 0.0)

    return replace(
        large,
        seconds=np.maximum(at(small.seconds, large.seconds), large.seconds),
        largest=at(small.largest, large.largest),
        sent=at(small.sent, large.sent),
    )


def _of_all_p(task: Task, ps: Sequence[float], seconds: Floats) -> float:
    """Return the seconds of a sample at all its p, of which some were timed."""
    return float(np.interp(task.p, ps, seconds).sum())
