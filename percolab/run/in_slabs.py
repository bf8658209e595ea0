"""Samples measured in slabs: which are, in which slabs, and the sampler that does it.

A sample in slabs has the row of the whole lattice, bit for bit (:mod:`percolab.domains.slabs`), so
slabs are no part of a task: the results file is the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from pathlib import Path

import numpy as np
import psutil

from percolab.bonds.words import GENERATORS
from percolab.domains.front import Front, Row, front_bytes
from percolab.domains.parts import Whole
from percolab.domains.raster import Draw
from percolab.domains.slabs import Slabs, thicknesses
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.lattices.lattice import Lattice
from percolab.measure.columns import LOW_BITS
from percolab.measure.rows import BINS
from percolab.measure.tallies import EXACT, sums_of_tallies
from percolab.run.request import Watcher
from percolab.run.sampler import Sampler, Stopped
from percolab.store.checkpoints import Checkpoint, Checkpoints, read_checkpoint
from percolab.store.results import Results
from percolab.tasks.blocks import AnyBlock, Block, blocks_of
from percolab.tasks.study import Task

#: The labeler of slabs.
LABELER = "raster"
# Sites of a slab where their number is chosen: about a second at most, and a GB of memory.
_SITES_PER_SLAB = 2**25
# Seconds between checkpoints of a block, and how many times longer than one the pause must be.
_CHECKPOINT_EVERY, _CHECKPOINT_SHARE = 60.0, 20.0


def whole_of(task: Task) -> Whole:
    """Return the lattice of a task, to be cut; InputError, in one line, why it cannot be."""
    reason = ""
    if not isinstance(task.structure, Lattice):
        reason = f"{task.structure.name} has no layers to be cut at"
    elif task.has_spins:
        reason = f"{task.model} has spins, of which a sweep needs all at once"
    elif task.has_trees:
        reason = "method tree chooses from the bonds of the whole lattice"
    elif task.method == "threshold":
        reason = "method threshold opens the bonds of a whole sample in order; give p"
    elif "gyration" in task.measure:
        reason = "measure gyration: the radii of clusters are not known at a face"
    if reason or not isinstance(task.structure, Lattice):
        raise InputError(f"slabs: {reason}")
    return Whole(task.structure, task.shape, task.boundary, task.draw)


def memory_of_slabs(whole: Whole, layers: Sequence[int]) -> int:
    """Return the bytes that a sample in slabs takes: one slab, its tables, and fronts.

    The fronts are those of a chain, and one that is read or written as a checkpoint, twice.
    """
    bonds, sites = whole.most_crossing, whole.reach * whole.layer_points
    front = front_bytes(2 * bonds, 2 * sites, has_periods=whole.has_periods)
    return Slabs.memory(whole, layers).host + 2 * front


def layers_of(task: Task, slabs: int | str, workers: int, *, held: int = 0) -> tuple[int, ...]:
    """Return the layers of the slabs of a task's samples, from the first on.

    slabs: how many, or "auto".  held: bytes that other tasks take.  InputError: it cannot be cut,
    or not into so many; or slabs of as many samples as there are workers do not fit in memory.
    """
    whole, available = whole_of(task), psutil.virtual_memory().available - held
    if slabs == "auto":
        number = -(-task.num_points // _SITES_PER_SLAB)
        most = whole.num_layers // max(whole.reach, 1)
        while True:
            number = min(number, most)
            one = memory_of_slabs(whole, thicknesses(whole, number))
            if workers * one <= available or number == most:
                break
            number *= 2
    else:
        number = int(slabs)
    try:
        layers = thicknesses(whole, number)
        for first, thick in zip(accumulate((0, *layers[:-1])), layers):
            whole.check_layers(first, thick)
    except InputError as error:
        raise InputError(f"L = {task.size} in {number} slabs: {error}") from error
    needed = workers * memory_of_slabs(whole, layers)
    if needed > available:
        beside = f" for {workers} samples at a time" if workers > 1 else ""
        raise InputError(
            f"L = {task.size} in {len(layers)} slabs needs {needed / 1e9:.1f} GB of memory{beside};"
            f" {available / 1e9:.1f} GB are free"
        )
    return layers


def device_of_slabs(device: Device) -> Device:
    """Return the CPU; InputError if CUDA was asked for."""
    if device.kind == "cuda":
        raise InputError(f"slabs: they are measured on the CPU, not on {device}; use --device cpu")
    return Device("cpu")


def check_labeler(labeler: str | None) -> None:
    """Raise InputError unless slabs are labeled by this labeler."""
    if labeler not in (None, LABELER):
        raise InputError(f"slabs: they are labeled by {LABELER}, not by {labeler}")


@dataclass(eq=False)
class _InWork:
    """The block in work: rows of its samples that are done, and the front of the next."""

    number: int
    rows: list[Row]
    front: Front | None
    next_save: float


class SlabSampler(Sampler):
    """Measures blocks of one task in slabs, on the CPU; every thread in memory of its own.

    layers: of the slabs, from the first on.  report: is told of sites that were labeled.  A thread
    keeps the tables and memory of the task it was last at.
    """

    _at = threading.local()

    def __init__(
        self, task: Task, layers: Sequence[int], report: Callable[[int], None] | None = None
    ) -> None:
        super().__init__(task, labeler=LABELER, device=Device("cpu"))
        self.whole, self.layers = whole_of(task), tuple(layers)
        self.checkpoints: Checkpoints | None = None
        self._report = report

    def call_first(self, *, with_pilot: bool) -> None:
        """Call once what a sweep calls, so that it is compiled."""
        self._blocks([0])

    def _slabs(self) -> Slabs:
        """Return this thread's slabs."""
        held = getattr(self._at, "held", None)
        if held is None or held[0] is not self:
            self._at.held = None
            self._at.held = self, Slabs(self.whole, self.layers, tally=self._tallied)
        slabs: Slabs = self._at.held[1]
        return slabs

    def _blocks(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        return [self._block(number, stopped) for number in numbers]

    def _block(self, number: int, stopped: Callable[[], bool] | None) -> Block:
        task = self.task
        work, slabs = self._begun(number), self._slabs()
        samples = range(number * task.block_size, (number + 1) * task.block_size)
        items = list(product(samples, self._thresholds.tolist()))
        for sample, threshold in items[len(work.rows) :]:
            draw = Draw(GENERATORS[task.rng], task.stream_seed, sample, threshold)
            front = work.front
            for front in slabs.fronts(draw, work.front):
                before = 0 if work.front is None else work.front.layers
                work.front = front
                if self._report is not None:
                    self._report((front.layers - before) * self.whole.layer_points)
                if stopped is not None and stopped():
                    self._save(work)
                    raise Stopped
                if time.monotonic() > work.next_save:
                    self._save(work)
            assert front is not None
            work.rows.append(slabs.row_of_all(front))
            work.front = None
        return block_of(task, number, work.rows)

    def _begun(self, number: int) -> _InWork:
        """Return a block as its checkpoint has it, or before its first slab."""
        work = _InWork(number, [], None, time.monotonic() + _CHECKPOINT_EVERY)
        if self.checkpoints is None:
            return work
        held = self.checkpoints.load(self.task.id, number)
        if held is not None and self._takes(held, number):
            work.rows = list(held.rows)
            work.front = held.front if self.goes_on_from(held) else None
        return work

    def _takes(self, held: Checkpoint, number: int) -> bool:
        """Return whether a checkpoint is of a block."""
        return (held.task_id, held.number) == (self.task.id, number)

    def goes_on_from(self, held: Checkpoint) -> bool:
        """Return whether the front of a checkpoint ends where one of the slabs does."""
        return held.front is None or held.front.layers in accumulate(self.layers)

    def _save(self, work: _InWork) -> None:
        """Save a checkpoint, if there is a file to be beside."""
        if self.checkpoints is None:
            return
        start = time.monotonic()
        done = tuple(work.rows)
        self.checkpoints.save(Checkpoint(self.task.id, work.number, done, work.front))
        end = time.monotonic()
        work.next_save = end + max(_CHECKPOINT_EVERY, _CHECKPOINT_SHARE * (end - start))


def block_of(task: Task, number: int, rows: Sequence[Row]) -> Block:
    """Return the block of samples with these rows, p by p and sample by sample."""
    shape = 1, task.block_size, len(task.p)
    numbers = np.array([row.numbers for row in rows], np.int64).reshape(*shape, -1)
    extras = {}
    if task.is_wide:
        squares = [divmod(row.sum_squares, 2**LOW_BITS)[::-1] for row in rows]
        extras["wide_squares"] = np.array(squares, np.int64).reshape(*shape, 2).sum(axis=1)
        if numbers.shape[-1] > BINS:
            extras["powers"] = _powers_of(numbers, rows)
    return blocks_of([number], numbers, task.observables, extras)[0]


def _powers_of(numbers: np.ndarray, rows: Sequence[Row]) -> np.ndarray:
    """Return the dataset "powers" where sums of s^3 and s^4 may take more than 128 bits."""
    powers = sums_of_tallies(numbers)["powers"]
    shape = numbers.shape[:-1]
    counts = numbers[..., BINS : BINS + EXACT - 1].astype(object)
    small = np.arange(1, counts.shape[-1] + 1, dtype=object)
    for place, power in enumerate((3, 4)):
        large = np.array([(row.cubes, row.fourths)[place] for row in rows], object).reshape(shape)
        below = (counts * small**power).sum(axis=-1)
        found = large.astype(float) + below.astype(float)
        powers[..., place] = [
            [sum(found[block, :, point].tolist()) for point in range(shape[2])]
            for block in range(shape[0])
        ]
    return np.asarray(powers, np.float64)


def begin_checkpoints(
    samplers: Mapping[str, Sampler], path: Path, results: Results, watcher: Watcher
) -> Callable[[Results], None]:
    """Let samplers in slabs keep checkpoints beside a results file, and go on from those there are.

    One line is said of each that is not used.  InputError: one is damaged.  Returns what removes
    those of blocks that are stored; call it after every save.
    """
    own = {key: item for key, item in samplers.items() if isinstance(item, SlabSampler)}
    if not own:
        return lambda results: None
    checkpoints = Checkpoints(path)

    def forget(stored: Results) -> None:
        for key in own:
            checkpoints.remove(key, stored.tasks[key].blocks.keys())

    forget(results)
    for found, task_id, number in checkpoints.found():
        held = read_checkpoint(found)
        if held.task_id not in own or (held.task_id, held.number) != (task_id, number):
            watcher.noted(f"{found}: is a checkpoint of another task, and is left as it is")
        elif own[task_id].goes_on_from(held):
            watcher.noted(_told(found, held, own[task_id]))
        else:
            watcher.noted(f"{found}: is of other slabs; its sample in work is measured anew")
    for sampler in own.values():
        sampler.checkpoints = checkpoints
    return forget


def _told(path: Path, held: Checkpoint, sampler: SlabSampler) -> str:
    """Return one line on where a block goes on."""
    done = 0 if held.front is None else held.front.layers
    rows = f" after {len(held.rows)} rows" if held.rows else ""
    return (
        f"L = {sampler.task.size}: block {held.number} goes on{rows} at layer {done} of "
        f"{sampler.whole.num_layers} (from {path.name})"
    )


def advice(task: Task) -> str:
    """Return what to say where samples do not fit as a whole: "" where they cannot be cut."""
    try:
        whole_of(task)
    except InputError:
        return ""
    return "; --slabs auto measures it in slabs, on the CPU"


def warm_up_slabs(task: Task) -> None:
    """Call once what samples in slabs call, for a small task."""
    try:
        layers = layers_of(task, 2, 1)
    except InputError:
        layers = layers_of(task, 1, 1)
    SlabSampler(task, layers).call_first(with_pilot=False)


def check_p(missing: Collection[tuple[float, ...] | None], asked: str = "slabs") -> None:
    """Raise InputError if p is left to a pilot, which measures samples as a whole.

    asked: what a user asked for.
    """
    if None in missing:
        raise InputError(
            f"{asked}: give p (-p); the pilot that finds it measures samples as a whole"
        )


def told_slabs(tasks: Iterable[Task], slabs: Mapping[int, Sequence[int]], workers: int) -> str:
    """Return the slabs of these tasks and their memory, in a few words."""
    return "; ".join(
        f"L = {task.size} takes {len(slabs[task.size])} slabs and for {workers} samples at a time "
        f"{workers * memory_of_slabs(whole_of(task), slabs[task.size]) / 1e6:.3g} MB"
        for task in tasks
        if task.size in slabs
    )
