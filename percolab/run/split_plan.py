"""What samples that are split take: slabs, memory, time, and the bytes that ranks send.

A pilot splits a small lattice of the same kind over as many ranks, here, and counts what they send.
A front grows as a layer does, so that from the pilot's bytes a site of a layer follow those of the
study.  Time and memory are those that a plan of samples in slabs has (:mod:`.slab_pilot`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Unpack

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.domains.parts import Whole
from percolab.domains.ranks import (
    Job,
    Leader,
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


@dataclass(frozen=True)
class SplitSizePlan:
    """One row of a plan.

    L, points: of p.  slabs: of all ranks.  host_bytes, device_bytes: memory of a rank.
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
        rows.append(_size_plan(task, engine, blocks * task.block_size))
    notes = [
        "message: the largest; bound: if every open bond at a face led to a cluster of its own",
        "time: of measuring alone, where every rank has a processor of its own",
    ]
    if opened.rule.target_error is not None:
        notes.append("a target error asks for samples that are not known here")
    devices = device_names(engine.team.devices)
    stages = (engine.team.size - 1).bit_length()
    return SplitPlan(engine.team.size, devices, stages, tuple(rows), tuple(notes))


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
    messages = [_messages(whole, team.size, task, p) for p in task.p]
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
