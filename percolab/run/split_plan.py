"""What samples that are split take: slabs, memory, time, and the bytes that ranks send.

A pilot splits small lattices of the same kind over as many ranks, does the work of all of them one
after the other, counts what they would send and times their joining.  What crosses the faces of a
rank grows as these do, and so do bytes and seconds: two sizes tell what does not grow.  The time of
slabs is that of a plan of samples in slabs (:mod:`.slab_pilot`); that of boxes is that of one box.
Where there are more ranks than cores they share them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.domains.boxes import BOND_BYTES, Blocks, BoxRaster, row_of_whole
from percolab.domains.front import Row, join
from percolab.domains.parts import Whole
from percolab.domains.quad import Boxes, sent_bytes, simulate
from percolab.domains.ranks import arrays_of, layers_of_ranks, most_message
from percolab.domains.raster import Draw
from percolab.domains.slabs import Slabs
from percolab.measure.columns import TALLY, is_gathered_from
from percolab.run.engine import Engine, choose_engine, warm_up
from percolab.run.executors import usable_cores
from percolab.run.in_slabs import check_p, most_open
from percolab.run.plan import Plan, SizePlan, plan_of, with_given_p
from percolab.run.plan_pilot import Pilot, SizePilot
from percolab.run.request import SweepOptions, Watcher, open_study, own_tasks
from percolab.run.slab_pilot import blocks_of_rows, pilot_of_slabs, rows_like, some_of
from percolab.run.split import BoxesWanted, Team, check_split_executor, split_whole
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study, Task

# Sites of the larger lattice that a pilot splits, about, and how many times fewer the other has.
_PILOT_SITES, _SMALLER = 2**20, 16
# Values of p whose messages are counted, and how often what is timed is done.
_POINTS, _REPEATS = 5, 2
# Layers of a rank in a pilot at least, so that its two faces hardly know of each other.
_THICK = 16
# Sites of the box that a pilot times at most; its memory comes from the system, as a larger one's.
_BOX_SITES = 2**23
# Grid points of a box along an axis in a pilot at least.
_LEAST_SIDE = 4

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


@dataclass(frozen=True)
class _Joined:
    """What ranks do to join a row.

    largest, sent: bytes of a message at most, and of all.  seconds: that joining takes.
    """

    largest: float
    sent: float
    seconds: float
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
    team = engine.team
    assert team is not None
    begin = time.perf_counter()
    warm_up(opened.asked, engine, watcher, with_pilot=False)
    compiling, results = time.perf_counter() - begin, with_given_p(opened)
    measure = _of_layers if team.boxes is None else _of_boxes
    found = {
        size: measure(_longest([t for t in own_tasks(results) if t.size == size]), engine, team)
        for size in sorted(opened.asked.sizes)
    }
    pilots = tuple(item.pilot for item in found.values())
    device_bytes = max(pilot.device_bytes for pilot in pilots)
    pilot = Pilot(pilots, compiling, (), device_bytes)
    plan = plan_of(results, opened.asked, opened.rule, engine, pilot)
    told = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
    told |= {
        "sizes": tuple(_row(row, found[row.L]) for row in plan.sizes),
        "notes": (*plan.notes, *_notes(engine, team)),
    }
    if team.boxes is not None:
        told |= {"blocks": str(team.boxes), "merge": str(team.boxes.merge)}
    return SplitPlan(**told, ranks=team.size, stages=team.stages)


def _longest(tasks: Sequence[Task]) -> Task:
    return max(tasks, key=lambda task: len(task.p))


def _row(row: SizePlan, measured: _Measured) -> SplitSizePlan:
    rows = measured.pilot.rate * len(measured.pilot.task.p)
    more = {key: value for key, value in vars(measured).items() if key != "pilot"}
    more["device_bytes"] = measured.pilot.device_bytes
    return SplitSizePlan(**asdict(row), **more, row_seconds=1 / rows)


def _notes(engine: Engine, team: Team) -> list[str]:
    """Return what the numbers of a plan are of."""
    cores = usable_cores()
    shared = f" by {cores} cores, which {team.size} ranks share" if team.size > cores else ""
    if team.boxes is not None and team.size == 1:
        return ["all boxes are measured in one process, which sends nothing"]
    joining = "alone" if engine.device.is_shared else f"and joining{shared}, not of sending"
    return [
        "message: the largest; bound: if every open bond at a face led to a cluster of its own",
        f"time: of measuring {joining}",
    ]


# --- layers --------------------------------------------------------------------------------------


def _of_layers(task: Task, engine: Engine, team: Team) -> _Measured:
    """Return what a pilot finds of samples whose ranks have layers."""
    whole, layers = split_whole(task), team.layers[task.size]
    is_gpu, cores = engine.device.is_shared, usable_cores()
    threads = 1 if is_gpu else min(team.size, cores)
    # As many threads at a time as work side by side measure slabs, or the first GPU does.
    longest = max(layers, key=lambda own: max(own))
    alone = replace(engine, team=None, slabs={task.size: longest}, workers=threads)
    pilot = pilot_of_slabs(task, alone)
    smaller = [_layers_of(whole, team.size, sites) for sites in _two_sizes()]
    ps = some_of(task.p, _POINTS)
    found = [
        _grown(
            [_join_layers(small, team.size, task, p, cores) for small in smaller],
            [small.layer_points for small in smaller],
            whole.layer_points,
        )
        for p in ps
    ]
    rate = pilot.rate * (team.size if is_gpu else 1)
    joining = 0.0 if is_gpu or team.size == 1 else _of_all_p(task, ps, found)
    largest = round(max(item.largest for item in found))
    rank_bytes = (pilot.host_bytes or 0) // threads + largest
    beside = team.size if engine.pythons > 1 or not is_gpu else 1
    rate = 1 / (1 / rate + joining)
    own = replace(pilot, rate=rate, host_bytes=beside * rank_bytes, checkpoint_bytes=0)
    return _Measured(
        own,
        slabs=sum(map(len, layers)),
        rank_bytes=rank_bytes,
        message_bytes=largest,
        bound_bytes=most_message(whole, most_open(task)) if team.size > 1 else 0,
        sample_bytes=round(max(item.sent for item in found)),
    )


def _layers_of(whole: Whole, ranks: int, sites: int) -> Whole:
    """Return a lattice of the same kind of about so many sites, with layers for all ranks."""
    cell, axes = whole.lattice.cell, len(whole.shape)
    thick = ranks * max(_THICK, whole.reach)
    shape = []
    for axis, height in enumerate(cell):
        side = round((sites / thick) ** (1 / (axes - 1))) if axis < axes - 1 else thick
        side = max(side, 8)
        shape.append(min(whole.shape[axis], -(-side // height) * height))
    return replace(whole, shape=tuple(shape))


def _join_layers(small: Whole, ranks: int, task: Task, p: float, cores: int) -> _Joined:
    """Join the fronts of all ranks by a tree, as these do."""
    layers = [own for part in layers_of_ranks(small, ranks, ranks) for own in part]
    tally = is_gathered_from(TALLY, task.columns)
    slabs = Slabs(small, layers, tally=tally)
    draw = _draw_of(task, p)
    every = [slabs.front(n, draw) for n in range(ranks)]

    def joined() -> _Joined:
        fronts, sent, seconds, bit = list(every), [0], 0.0, 1
        while bit < ranks:
            stage = []
            for low in range(0, ranks - bit, 2 * bit):
                sent.append(sum(array.nbytes for array in arrays_of(fronts[low + bit])))
                begin = time.thread_time()
                fronts[low] = join(fronts[low], fronts[low + bit])
                stage.append(time.thread_time() - begin)
            seconds, bit = seconds + _side_by_side(stage, cores), 2 * bit
        begin = time.thread_time()
        row = slabs.row_of_all(fronts[0])
        return _Joined(max(sent), sum(sent), seconds + time.thread_time() - begin, row)

    return _quickest(joined)


# --- boxes ---------------------------------------------------------------------------------------


def _of_boxes(task: Task, engine: Engine, team: Team) -> _Measured:
    """Return what a pilot finds of samples in boxes."""
    boxes, is_rank, cores = team.boxes, team.size > 1, usable_cores()
    assert boxes is not None
    blocks = Blocks(split_whole(task), boxes.counts)
    crossing = blocks.most_crossing(boxes.counts)
    smaller = [_boxes_of(blocks, sites // boxes.num_boxes) for sites in _two_sizes()]
    threads, timed = min(team.size, cores), some_of(task.p)
    small = _boxes_of(blocks, _BOX_SITES)
    with ThreadPoolExecutor(threads) as executor:
        # As many at a time as work side by side, since they share the memory's bandwidth.
        every = list(executor.map(lambda n: _time_box(small, task, timed), range(threads)))
    ps = some_of(task.p, _POINTS)
    found = [
        _grown(
            [_join_boxes(small, boxes, task, p, cores if is_rank else 0) for small in smaller],
            [small.most_crossing(boxes.counts) for small in smaller],
            crossing,
        )
        for p in ps
    ]
    setup, *seconds = np.mean(every, axis=0) * prod(blocks.box) / prod(small.box)
    measuring = float(np.interp(task.p, timed, seconds).sum()) * boxes.num_boxes / threads
    largest = round(max(item.largest for item in found)) if is_rank else 0
    if is_rank:
        # Its own boundary and another one are joined to a third.
        rank_bytes = BoxRaster.memory(blocks).host + 3 * largest
    else:
        rank_bytes = Boxes.memory(blocks, is_rank=False).host
    last = found[-1].row
    ratio = blocks.whole.num_points / smaller[-1].whole.num_points
    pilot = SizePilot(
        task=task,
        kept=blocks_of_rows(task, rows_like(last, task, ratio)),
        measured=(),
        rate=1 / (measuring + _of_all_p(task, ps, found)),
        setup=setup * max(team.size / threads, 1.0),
        placing=0.0,
        host_bytes=team.size * rank_bytes,
    )
    return _Measured(
        pilot,
        slabs=boxes.num_boxes,
        rank_bytes=rank_bytes,
        message_bytes=largest,
        bound_bytes=BOND_BYTES * crossing if is_rank else 0,
        sample_bytes=round(max(item.sent for item in found)) if is_rank else 0,
    )


def _join_boxes(small: Blocks, boxes: BoxesWanted, task: Task, p: float, cores: int) -> _Joined:
    """Merge all boxes as ranks do; cores: of these, or 0 where one process has all boxes."""
    raster = BoxRaster(small, tally=is_gathered_from(TALLY, task.columns))
    draw = _draw_of(task, p)
    every = [raster.boundary(box, draw) for box in small.coordinates()]

    def joined() -> _Joined:
        begin = time.thread_time()
        found = simulate(every, boxes.merge, length=sent_bytes)
        seconds = time.thread_time() - begin
        stages = found.stages.values()
        if cores:
            seconds = sum(_side_by_side(stage.seconds, cores) for stage in stages)
        first = found.boundaries[0]
        assert first is not None
        begin = time.thread_time()
        row = row_of_whole(first)
        seconds += time.thread_time() - begin
        largest = max(stage.most_bytes for stage in stages)
        return _Joined(largest, sum(stage.num_bytes for stage in stages), seconds, row)

    return _quickest(joined)


def _time_box(small: Blocks, task: Task, ps: Sequence[float]) -> list[float]:
    """Return the seconds of making the tables of a box, and of measuring it at each p."""
    begin = time.thread_time()
    raster = BoxRaster(small, tally=is_gathered_from(TALLY, task.columns))
    box, found = (0,) * len(small.counts), []
    raster.boundary(box, _draw_of(task, ps[0]))
    first = time.thread_time() - begin
    for p in ps:
        best = np.inf
        for _ in range(_REPEATS):
            begin = time.thread_time()
            raster.boundary(box, _draw_of(task, p))
            best = min(best, time.thread_time() - begin)
        found.append(best)
    return [max(first - found[0], 0.0), *found]


def _boxes_of(blocks: Blocks, sites: int) -> Blocks:
    """Return a lattice in as many boxes, of about so many sites each, or as it is if it has less.

    All axes shrink alike, to whole cells and at least as bonds reach.
    """
    whole = blocks.whole
    factor = min((sites / prod(blocks.box)) ** (1 / len(blocks.box)), 1.0)
    box = []
    for n, cell, reach in zip(blocks.box, whole.lattice.cell, blocks.reaches):
        side = max(round(n * factor), reach, _LEAST_SIDE)
        box.append(min(-(-side // cell) * cell, n))
    shape = tuple(n * count for n, count in zip(box, blocks.counts))
    return Blocks(replace(whole, shape=shape), blocks.counts)


# --- both ----------------------------------------------------------------------------------------


def _two_sizes() -> tuple[int, int]:
    """Return the sites of the lattices that a pilot splits."""
    return _PILOT_SITES // _SMALLER, _PILOT_SITES


def _draw_of(task: Task, p: float) -> Draw:
    return Draw(GENERATORS[task.rng], task.stream_seed, 0, threshold_of(p))


def _quickest(work: Callable[[], _Joined]) -> _Joined:
    """Return the quickest of several times that the same is done."""
    return min((work() for _ in range(_REPEATS)), key=lambda found: found.seconds)


def _side_by_side(seconds: Sequence[float], cores: int) -> float:
    """Return how long ranks take that work so long each, on so many cores."""
    return max(max(seconds, default=0.0), sum(seconds) / cores)


def _grown(found: Sequence[_Joined], sizes: Sequence[int], size: int) -> _Joined:
    """Return what is joined of a larger lattice: a line through what two smaller ones have.

    sizes, size: what grows in proportion, of the smaller ones and of the larger one
    """
    small, large = found
    steps = (size - sizes[0]) / (sizes[1] - sizes[0]) if sizes[1] > sizes[0] else 1.0

    def at(one: float, other: float) -> float:
        return max(one + steps * (other - one), 0.0)

    return replace(
        large,
        largest=at(small.largest, large.largest),
        sent=at(small.sent, large.sent),
        seconds=at(small.seconds, large.seconds),
    )


def _of_all_p(task: Task, ps: Sequence[float], found: Sequence[_Joined]) -> float:
    """Return the seconds of joining a sample at all its p, of which some were timed."""
    return float(np.interp(task.p, ps, [item.seconds for item in found]).sum())
