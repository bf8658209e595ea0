"""What samples that are split take: slabs, memory, time, and the bytes that ranks send.

A pilot splits a small lattice of the same kind over as many ranks, here, and counts what they send.
A front grows as a layer does, so that from the pilot's bytes a site of a layer follow those of the
study.  Time and memory are those that a plan of samples in slabs has (:mod:`.slab_pilot`).  Of
boxes all axes of the pilot are smaller, bytes grow as the bonds between boxes do, and time is that
of one box.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from math import ceil, prod
from typing import Any, Unpack

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.domains.box_ranks import BoxJob, job_of_record
from percolab.domains.boxes import BOND_BYTES, Blocks, BoxRaster
from percolab.domains.parts import Whole
from percolab.domains.quad import BUBBLES, Boxes
from percolab.domains.ranks import (
    AnyJob,
    Job,
    Leader,
    Step,
    follow,
    layers_of_ranks,
    most_message,
)
from percolab.domains.raster import Draw
from percolab.domains.transport import Transport, run_local
from percolab.kernels.device import device_names
from percolab.run.engine import Engine, choose_engine, warm_up
from percolab.run.in_slabs import check_p, most_open
from percolab.run.request import SweepOptions, Watcher, open_study
from percolab.run.slab_pilot import pilot_of_slabs
from percolab.run.split import check_split_executor, split_whole
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study, Task

# Sites of the lattice that a pilot splits.
_PILOT_SITES = 2**19
# Layers of a rank in a pilot at least, so that its two faces hardly know of each other.
_THICK = 16
# Sites of the box that a pilot times at most, and how often.
_BOX_SITES, _REPEATS = 2**22, 2
# Grid points of a box along an axis in a pilot at least.
_LEAST_SIDE = 4


@dataclass(frozen=True)
class SplitSizePlan:
    """One row of a plan.

    L, points: of p.  slabs: of all ranks, or boxes.  host_bytes, device_bytes: memory of a rank.
    message_bytes: the largest that is sent, at the p where it is; bound_bytes: at any p.
    sample_bytes: all that is sent for one row of a sample, at that p.  row_seconds: of one row, on
    so many ranks of which none waits for a processor.  seconds: of all samples that are missing.
    """

    L: int
    points: int
    slabs: int
    host_bytes: int
    device_bytes: int
    message_bytes: int
    bound_bytes: int
    sample_bytes: int
    row_seconds: float
    seconds: float


@dataclass(frozen=True)
class SplitPlan:
    """What a sweep whose samples are split takes: ranks, their devices, and a row for each size.

    blocks, merge: of samples in boxes, as text; else empty
    """

    ranks: int
    device: str
    stages: int
    sizes: tuple[SplitSizePlan, ...]
    notes: tuple[str, ...]
    blocks: str = ""
    merge: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return every number as plain JSON values."""
        return asdict(self)


def plan_split(study: Study, rule: StopRule, **options: Unpack[SweepOptions]) -> SplitPlan:
    """Return what :func:`percolab.run.runner.run_study` takes with the same arguments.

    InputError: as the sweep's own.
    """
    check_split_executor(options.get("executor"))
    watcher = options.get("watcher") or Watcher()
    opened = open_study(study, rule, options)
    engine = choose_engine(opened.asked, options, watcher)
    check_p(opened.missing.values(), "--split lattice")
    assert engine.team is not None
    warm_up(opened.asked, engine, watcher, with_pilot=False)
    samples = opened.rule.samples or {}
    # A study may have samples by size, or a target error, whose samples are not known.
    rows = []
    for size in sorted(opened.asked.sizes):
        task = opened.asked.task(size, opened.asked.p or opened.results.study.p)
        known = opened.results.tasks.get(task.id)
        held = 0 if known is None else len(known.blocks)
        blocks = max(ceil(samples.get(size, 0) / task.block_size) - held, 0)
        plan = _size_plan if engine.team.boxes is None else _box_size_plan
        rows.append(plan(task, engine, blocks * task.block_size))
    notes = [
        "message: the largest; bound: if every open bond at a face led to a cluster of its own",
        "time: of measuring alone, where every rank has a processor of its own",
    ]
    boxes = engine.team.boxes
    if boxes is not None and engine.team.size == 1:
        notes = ["all boxes are measured in one process, which sends nothing"]
    if opened.rule.target_error is not None:
        notes.append("a target error asks for samples that are not known here")
    devices = device_names(engine.team.devices)
    cut = {} if boxes is None else {"blocks": str(boxes), "merge": str(boxes.merge)}
    stages = engine.team.stages
    return SplitPlan(engine.team.size, devices, stages, tuple(rows), tuple(notes), **cut)


def _size_plan(task: Task, engine: Engine, samples: int) -> SplitSizePlan:
    team = engine.team
    assert team is not None
    whole, layers = split_whole(task), team.layers[task.size]
    # As many threads at a time as there are ranks measure slabs, or the first GPU does.
    longest = max(layers, key=lambda own: max(own))
    alone = replace(engine, team=None, slabs={task.size: longest}, workers=team.size)
    pilot = pilot_of_slabs(task, alone)
    threads = 1 if engine.device.is_shared else team.size
    seconds = threads / (pilot.rate * team.size)
    small = _smaller(whole, team.size)
    job, scale = Job(small, layers_of_ranks(small, team.size, team.size)), whole.layer_points
    messages = [_messages(job, task, p, scale / small.layer_points) for p in task.p]
    largest = round(max(max(sent, default=0) for sent in messages))
    host = (pilot.host_bytes or 0) // threads
    return SplitSizePlan(
        L=task.size,
        points=len(task.p),
        slabs=sum(map(len, layers)),
        host_bytes=host + largest,
        device_bytes=pilot.device_bytes,
        message_bytes=largest,
        bound_bytes=most_message(whole, most_open(task)) if team.size > 1 else 0,
        sample_bytes=round(max(sum(sent) for sent in messages)),
        row_seconds=seconds / len(task.p),
        seconds=seconds * samples,
    )


def _box_size_plan(task: Task, engine: Engine, samples: int) -> SplitSizePlan:
    """Return the row of a plan of samples in boxes."""
    team = engine.team
    assert team is not None
    assert team.boxes is not None
    boxes, is_rank = team.boxes, team.size > 1
    blocks = Blocks(split_whole(task), boxes.counts)
    everywhere = blocks.most_crossing(boxes.counts)
    host, largest, total, bound = Boxes.memory(blocks, is_rank=False).host, 0, 0, 0
    if is_rank:
        small = _smaller_blocks(blocks, _PILOT_SITES // boxes.num_boxes)
        job = BoxJob(small.whole, boxes.counts, boxes.merge, team.size)
        scale = everywhere / max(small.most_crossing(boxes.counts), 1)
        messages = [_messages(job, task, p, scale) for p in task.p]
        largest = round(max(max(sent, default=0) for sent in messages))
        total = round(max(sum(sent) for sent in messages))
        bound = BOND_BYTES * everywhere
        # Its own boundary and another one are joined to a third.
        host = BoxRaster.memory(blocks).host + 3 * largest
    seconds = sum(_box_seconds(blocks, task, p) for p in task.p)
    seconds *= team.parts(task)
    return SplitSizePlan(
        L=task.size,
        points=len(task.p),
        slabs=boxes.num_boxes,
        host_bytes=host,
        device_bytes=0,
        message_bytes=largest,
        bound_bytes=bound,
        sample_bytes=total,
        row_seconds=seconds / len(task.p),
        seconds=seconds * samples,
    )


def _box_seconds(blocks: Blocks, task: Task, p: float) -> float:
    """Return the seconds that a box takes at p, as one that is not too large tells."""
    small = _smaller_blocks(blocks, _BOX_SITES)
    raster, best = BoxRaster(small), float("inf")
    draw = Draw(GENERATORS[task.rng], task.stream_seed, 0, threshold_of(p))
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        raster.boundary((0,) * len(small.counts), draw)
        best = min(best, time.perf_counter() - begin)
    return best * prod(blocks.box) / prod(small.box)


def _smaller_blocks(blocks: Blocks, sites: int) -> Blocks:
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


def _messages(job: AnyJob, task: Task, p: float, scale: float) -> list[float]:
    """Return the bytes of all messages for one row at p, as those of a smaller lattice tell.

    job: of that; scale: how many times more bonds cross the faces of the task's
    """
    draw = Draw(GENERATORS[task.rng], task.stream_seed, 0, threshold_of(p))

    def work(transport: Transport) -> list[Step]:
        if transport.rank:
            follow(transport, job_of_record)
            return []
        leader = Leader(transport)
        found = leader.row(job, draw)
        leader.end()
        assert found is not None
        return found[1]

    steps = run_local(job.ranks, work)[0]
    # The last stage is that of closing.
    last = max(step.stage for step in steps)
    return [scale * step.bytes for step in steps if step.stage == BUBBLES or 0 <= step.stage < last]


def _smaller(whole: Whole, ranks: int) -> Whole:
    """Return a lattice of the same kind with layers for all ranks that is quickly measured."""
    cell, axes = whole.lattice.cell, len(whole.shape)
    thick = ranks * max(_THICK, whole.reach)
    shape = []
    for axis, height in enumerate(cell):
        side = round((_PILOT_SITES / thick) ** (1 / (axes - 1))) if axis < axes - 1 else thick
        side = max(side, 8)
        shape.append(min(whole.shape[axis], -(-side // height) * height))
    return replace(whole, shape=tuple(shape))
