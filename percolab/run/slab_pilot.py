"""What a plan measures of samples in slabs: seconds a site, memory, and bytes of a checkpoint.

A sample may take hours, so a few slabs stand for it: three of the sample's own width, joined as a
sample's are, with layers enough for the time of a layer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.measure.columns import TALLY, is_gathered_from
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.measure.tallies import row_width_of
from percolab.parts.front import Front, Row, joining_bytes
from percolab.parts.parts import Parts, Whole
from percolab.parts.raster import Draw, SlabRaster
from percolab.parts.slabs import Slabs
from percolab.run.engine import Engine
from percolab.run.parts_sampler import block_of, warm_up_slabs, whole_of
from percolab.run.plan_file import ENOUGH
from percolab.run.plan_pilot import SizePilot
from percolab.store.checkpoints import Checkpoint, bytes_of
from percolab.tasks.blocks import AnyBlock
from percolab.tasks.study import Task

#: Slabs of a pilot, and the most sites of each.
_SLABS, _SITES = 3, {"cpu": 2**23, "cuda": 2**31}
#: Values of p that are timed; between them times are interpolated.
_POINTS = 3
#: How often each is timed, of which the shortest counts.
_REPEATS = {"cpu": 2, "cuda": 3}


@dataclass(frozen=True, eq=False)
class _Timed:
    """What one thread has measured: seconds of the first sample, and of one at each p.

    front: the largest that was handed on, on the host.  row: of the last sample.
    device_bytes: that were taken on a GPU.
    """

    first: float
    seconds: tuple[float, ...]
    front: Front
    row: Row
    device_bytes: int


def compile_slabs(task: Task, device: Device) -> float:
    """Return the seconds that the first call of what measures slabs takes."""
    begin = time.perf_counter()
    for size in range(4, task.size + 1):
        small = replace(task, size=size, p=(0.5,), block_size=1)
        try:
            whole_of(small)
        except InputError:
            continue
        warm_up_slabs(small, device)
        break
    return time.perf_counter() - begin


def pilot_of_slabs(task: Task, engine: Engine) -> SizePilot:
    """Return what was measured of a task whose samples are measured in slabs."""
    whole, layers = whole_of(task), engine.slabs[task.size]
    part = _part_of(whole, max(layers), engine.device.kind)
    thick = part.num_layers // _SLABS
    ps = some_of(task.p)
    threads = 1 if engine.device.is_shared else engine.workers
    with engine.executor() as executor:
        # As many at a time as the sweep will measure, since they share the memory's bandwidth.
        found = list(
            executor.map(lambda n: _timed(task, part, thick, ps, engine.device, n), range(threads))
        )
    seconds = np.mean([item.seconds for item in found], axis=0) / part.num_points
    of_sample = float(np.interp(task.p, ps, seconds).sum()) * whole.num_points
    one = max(found, key=lambda item: item.front.num_bytes)
    starts = accumulate((0, *layers[:-1]))
    kinds = {(whole.phase(first), own) for first, own in zip(starts, layers)}
    setup = max(one.first - max(one.seconds), 0.0) / thick * sum(own for _, own in kinds)
    numbers = rows_like(one.row, task, whole.num_points / part.num_points)
    done = tuple(numbers[:1] * min(task.block_size * len(task.p) - 1, 1000))
    return SizePilot(
        task=task,
        kept=blocks_of_rows(task, numbers),
        measured=(),
        rate=threads / of_sample,
        setup=setup,
        placing=0.0,
        host_bytes=engine.in_slabs * _host_bytes(whole, layers, one.front, engine.device.kind),
        device_bytes=one.device_bytes,
        checkpoint_bytes=engine.in_slabs * bytes_of(Checkpoint(task.id, 0, done, one.front)),
    )


def _part_of(whole: Whole, most_layers: int, kind: str) -> Whole:
    """Return a lattice of a few slabs as wide, of whole cells, and not thicker."""
    cell, reach = whole.lattice.cell[-1], whole.reach
    thick = max(min(most_layers, _SITES[kind] // whole.layer_points), reach, 1)
    thick = max(thick - thick % cell, -(-reach // cell) * cell)
    return replace(whole, shape=(*whole.shape[:-1], _SLABS * thick))


def _timed(
    task: Task, part: Whole, thick: int, ps: Sequence[float], device: Device, sample: int
) -> _Timed:
    """Measure samples of a few slabs at several p, the first twice."""
    tally = is_gathered_from(TALLY, task.columns)
    seconds: list[float] = []
    fronts: list[Front] = []
    with device.driven():
        device.open()
        free = device.free_memory() if device.is_shared else 0
        slabs = Slabs(part, (thick,) * _SLABS, tally=tally, kind=device.kind)
        for p in (ps[-1], *ps):
            draw = Draw(GENERATORS[task.rng], task.stream_seed, sample, threshold_of(p))
            best = np.inf
            for repeat in range(_REPEATS[device.kind] if seconds else 1):
                begin, passed, is_copied = time.perf_counter(), 0.0, False
                for front in slabs.fronts(draw):
                    passed += time.perf_counter() - begin
                    if front.layers == 2 * thick and repeat == 0 and seconds:
                        fronts.append(slabs.copied(front))
                        is_copied = device.is_shared
                    begin = time.perf_counter()
                row = slabs.row_of_all(front)
                # While a front is copied a GPU labels the next slab, which then takes no time.
                if not is_copied:
                    best = min(best, passed + time.perf_counter() - begin)
            seconds.append(best)
        taken = free - device.free_memory() if device.is_shared else 0
    largest = max(fronts, key=lambda front: front.num_bytes)
    return _Timed(seconds[0], tuple(seconds[1:]), largest, row, max(taken, 0))


def _host_bytes(whole: Whole, layers: Sequence[int], front: Front, kind: str) -> int:
    """Return the memory of one sample in slabs on the host, with fronts like this one."""
    starts = accumulate((0, *layers[:-1]))
    tables = Parts.memory(whole, zip(starts, layers), kind).host
    if kind == "cuda":
        from percolab.parts.tiled_cuda import SlabTiled

        # Fronts are on the host when a checkpoint is written, and their bytes with them.
        return tables + SlabTiled.memory(whole, layers).host + 2 * front.num_bytes
    slab = SlabRaster.memory(whole, max(layers)).host
    joining = joining_bytes(2 * front.num_clusters, has_periods=whole.has_periods)
    return tables + slab + 3 * front.num_bytes + joining


def some_of(ps: Sequence[float], count: int = _POINTS) -> list[float]:
    """Return so many of ascending p, the first and the last among them; all if they are fewer."""
    found: list[float] = np.unique(
        np.quantile(ps, np.linspace(0, 1, count), method="nearest")
    ).tolist()
    return found


def blocks_of_rows(task: Task, rows: Sequence[Row]) -> list[AnyBlock]:
    """Return blocks of one sample each with the same row at every p, as a pilot keeps them."""
    single = replace(task, purpose="plan", block_size=1)
    return [block_of(single, 0, [row] * len(task.p)) for row in rows]


def rows_like(row: Row, task: Task, ratio: float) -> list[Row]:
    """Return rows as those of whole samples may be, for the size of the file."""
    rng = np.random.default_rng(0)
    tally = is_gathered_from(TALLY, task.columns)
    width = row_width_of(task.num_points) if tally else ROW_WIDTH
    found = []
    for factor in ratio * (1 + 1e-3 * rng.standard_normal(ENOUGH)):
        numbers = np.zeros(width, np.int64)
        some = min(width, row.numbers.size)
        numbers[:some] = np.minimum(np.abs(row.numbers[:some]) * factor, 2.0**62)
        numbers[SPANNING] = row.numbers[SPANNING]
        sums = (int(number * factor) for number in row[1:])
        found.append(Row(numbers, *sums))
    return found
