"""What samples that are split take: slabs, memory, time, and the bytes that ranks send.

A pilot splits a small lattice of the same kind over as many ranks, here, and counts what they send.
A front grows as a layer does, so that from the pilot's bytes a site of a layer follow those of the
study.  The time is that of a slab of the study itself, as far as it is not too large to be tried.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Unpack

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.domains.parts import Parts, Whole
from percolab.domains.ranks import (
    Job,
    Leader,
    follow,
    layers_of_ranks,
    means_of,
    most_message,
    rank_memory,
)
from percolab.domains.raster import Draw
from percolab.domains.transport import Transport, run_local
from percolab.kernels.device import Device, device_names
from percolab.run.engine import choose_engine, warm_up
from percolab.run.in_slabs import check_p
from percolab.run.request import SweepOptions, Watcher, open_study
from percolab.run.split import Team, check_split_executor, split_whole
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study, Task

# Sites of the lattice that a pilot splits, and of a slab whose time it takes.
_PILOT_SITES, _TIMED_SITES = 2**19, 2**24
# Layers of a rank in a pilot at least, so that its two faces hardly know of each other.
_THICK = 16
# On a GPU slabs are timed as large as they are.
_ON_GPU = 2**31


@dataclass(frozen=True)
class SplitSizePlan:
    """One row of a plan.

    L, points: of p.  slabs: of all ranks.  host_bytes, device_bytes: memory of a rank at most.
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
    """What a sweep whose samples are split takes: ranks, their devices, and a row for each size."""

    ranks: int
    device: str
    stages: int
    sizes: tuple[SplitSizePlan, ...]
    notes: tuple[str, ...]

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
        rows.append(_size_plan(task, engine.team, blocks * task.block_size))
    notes = [
        "message: the largest; bound: if every bond at a face were open, each to a cluster of its "
        "own",
        "time: of measuring alone, from one slab, where every rank has a processor of its own",
    ]
    if opened.rule.target_error is not None:
        notes.append("a target error asks for samples that are not known here")
    devices = device_names(engine.team.devices)
    stages = (engine.team.size - 1).bit_length()
    return SplitPlan(engine.team.size, devices, stages, tuple(rows), tuple(notes))


def _size_plan(task: Task, team: Team, samples: int) -> SplitSizePlan:
    whole, layers = split_whole(task), team.layers[task.size]
    memory = max((rank_memory(whole, own) for own in set(layers)), key=lambda item: item.host)
    messages = [_messages(whole, team.size, task, p) for p in task.p]
    row = _seconds_of(whole, layers, team.devices[0], task)
    return SplitSizePlan(
        L=task.size,
        points=len(task.p),
        slabs=sum(map(len, layers)),
        host_bytes=memory.host,
        device_bytes=memory.device,
        message_bytes=round(max(max(sent, default=0) for sent in messages)),
        bound_bytes=most_message(whole) if team.size > 1 else 0,
        sample_bytes=round(max(sum(sent) for sent in messages)),
        row_seconds=row,
        seconds=row * samples * len(task.p),
    )


def _messages(whole: Whole, ranks: int, task: Task, p: float) -> list[float]:
    """Return the bytes of all messages for one row at p, as those of a smaller lattice tell."""
    small = _smaller(whole, ranks)
    job = Job(small, layers_of_ranks(small, ranks, ranks))
    draw = Draw(GENERATORS[task.rng], task.stream_seed, 0, threshold_of(p))

    def work(transport: Transport) -> list[int]:
        if transport.rank:
            follow(transport)
            return []
        leader = Leader(transport)
        found = leader.row(job, draw)
        leader.end()
        assert found is not None
        return [step.bytes for step in found[1] if 0 <= step.stage < (ranks - 1).bit_length()]

    scale = whole.layer_points / small.layer_points
    return [scale * sent for sent in run_local(ranks, work)[0]]


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


def _seconds_of(whole: Whole, layers: Sequence[Sequence[int]], device: Device, task: Task) -> float:
    """Return the seconds that the rank with most layers takes for them, from one slab of its."""
    most = _ON_GPU if device.is_shared else _TIMED_SITES
    own = max(layers, key=sum)
    thick = max(min(own[0], most // whole.layer_points), whole.reach, 1)
    means = means_of(device)
    draw = Draw(GENERATORS[task.rng], task.stream_seed, 0, threshold_of(max(task.p)))
    with device.driven():
        labeler, part = means.labeler(whole, thick), Parts(whole).part(0, thick)
        labeler.front_of(part, draw)
        start = time.perf_counter()
        # The sums of a front are on the host, so that it is there.
        labeler.front_of(part, draw)
    return (time.perf_counter() - start) * sum(own) / thick
