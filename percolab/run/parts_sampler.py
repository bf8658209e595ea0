"""Samples measured in parts: which these are, in which slabs, their sampler, and its checkpoints.

A sample in parts has the row of the whole lattice, bit for bit, so the results file is the same.
Whatever measures the parts is a rank: all ranks of a group together
(:mod:`percolab.run.rank_group`), or one rank alone, slab after slab.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import psutil

from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.kinds.workplace import Stopped
from percolab.lattices.lattice import Lattice
from percolab.measure.columns import LOW_BITS
from percolab.measure.measurements import MEASUREMENTS
from percolab.measure.rows import BINS, OPENINGS, ROW_WIDTH
from percolab.measure.tallies import EXACT, compute_row_width, sum_tallies
from percolab.parts.interface import Row
from percolab.parts.partitions import Division
from percolab.parts.parts import Whole
from percolab.parts.ranks import AnyJob, Leader
from percolab.parts.raster import SampleKey
from percolab.parts.slab_partition import (
    SlabDivision,
    check_fits,
    check_labelable,
    choose_layers,
    needed_memory,
)
from percolab.parts.transport import Local
from percolab.run.processes import report_progress
from percolab.run.request import Observer
from percolab.run.saving import Saving, with_checkpoints
from percolab.store.checkpoints import Checkpoint, Checkpoints, read_checkpoint
from percolab.store.results import StoredResults
from percolab.tasks.blocks import AnyBlock, Block, make_sample_blocks
from percolab.tasks.kind import BlockSampler, SamplerSpec
from percolab.tasks.study import Task

CPU = Device("cpu")
#: The labelers of slabs.
LABELERS = {"cpu": "raster", "cuda": "tiled"}
# Seconds between two checks whether a thread that waits for the GPU should stop.
_PATIENCE = 0.1
# Measurements that are not made in parts, and why.
_OF_WHOLE_SAMPLES = {
    **dict.fromkeys(MEASUREMENTS, "it needs whole samples"),
    "gyration": "radii of clusters need whole samples",
    OPENINGS: "they are counted only in whole samples",
}


def make_split_lattice(task: Task) -> Whole:
    """Return the lattice of a task, to be cut; InputError, in one line, if it cannot be."""
    lattice, reason = task.structure, task.refusal("parts")
    if not isinstance(lattice, Lattice):
        raise InputError(f"{lattice.name} has no layers, so it cannot be cut")
    measured = (word for word in _OF_WHOLE_SAMPLES if word in task.measure)
    if word := next(measured, ""):
        reason = reason or f"measure {word}: {_OF_WHOLE_SAMPLES[word]}; leave it out"
    if reason:
        raise InputError(reason)
    return Whole(lattice, task.shape, task.boundary, task.draw)


def most_open(task: Task) -> float:
    """Return a probability that no bond exceeds, nor a site at its end; 1 if p is not known."""
    return task.draw.most_open(max(task.p, default=1.0))


def choose_slabs(
    task: Task,
    slabs: int | str,
    samples: int,
    *,
    in_use: int = 0,
    device: Device = CPU,
    share: float = 0.9,
) -> tuple[int, ...]:
    """Return the layers of the slabs of a task's samples, from the first on.

    slabs: how many, or "auto".  samples: how many are measured at a time on this host, each on its
    own GPU.  in_use: bytes that other tasks take.  share: of the free memory of a GPU, assumed to
    be alike.  InputError: it cannot be cut, or not into so many; or slabs of all these do not fit.
    """
    try:
        whole = make_split_lattice(task)
        check_labelable(whole, device)
    except InputError as error:
        raise InputError(f"slabs: {error}") from error
    free = Memory(psutil.virtual_memory().available - in_use)
    if device.is_shared:
        free = Memory(free.host, int(share * device.free_memory()))
    needed = partial(needed_memory, whole, samples, device, most_open(task))
    try:
        layers = choose_layers(whole, slabs, 1, device.kind, needed, free)
    except InputError as error:
        raise InputError(f"L = {task.size} in {slabs} slabs: {error}") from error
    times = f" for {samples} samples at a time" if samples > 1 else ""
    where = f"L = {task.size} in {len(layers[0])} slabs"
    check_fits(where, needed(layers), free, device, times)
    return layers[0]


def check_labeler(labeler: str | None, device: Device) -> None:
    own = LABELERS[device.kind]
    if labeler not in (None, own):
        raise InputError(f"slabs: on {device} the labeler is {own}, not {labeler}; leave it out")


class Ranks(Protocol):
    """The ranks that measure the parts of samples: this process, and perhaps others."""

    division: Division
    device: Device

    def row(
        self, job: AnyJob, draw: SampleKey, left: Callable[[], bool], done: Callable[[int], None]
    ) -> Row | None:
        """Return the row of a sample; None if ``left`` returns True before it is finished.

        done: is called with the number of finished layers, or boxes, of the first rank.
        """


class SingleRank:
    """Every thread is the only rank of the samples that it measures.

    On the CPU each thread keeps the tables and the memory of its last job; on a GPU they belong to
    the one thread at a time that uses it.
    """

    _of_threads, _of_gpu = threading.local(), SimpleNamespace()

    def __init__(self, division: Division, device: Device = CPU) -> None:
        self.division, self.device = division, device

    def row(
        self, job: AnyJob, draw: SampleKey, left: Callable[[], bool], done: Callable[[int], None]
    ) -> Row | None:
        answer = self._leader().row(job, draw, left, done)
        return None if answer is None else answer[0]

    def _leader(self) -> Leader:
        holder: Any = self._of_gpu if self.device.is_shared else self._of_threads
        leader: Leader | None = getattr(holder, "leader", None)
        if leader is None or leader.is_busy:
            # One that has failed is not used again.
            holder.leader = leader = Leader(Local.ranks(1)[0])
        return leader


def alone(layers: Sequence[int], size: int, device: Device = CPU) -> SingleRank:
    """Return single ranks for samples of one size in slabs of these layers."""
    return SingleRank(SlabDivision({size: (tuple(layers),)}, (str(device),)), device)


class PartsSampler(BlockSampler):
    """Makes blocks of one task whose samples are measured in parts, row by row.

    A block continues from its checkpoint.  On a GPU one thread at a time makes blocks.

    report:      is called with the number of sites that were labeled
    checkpoints: next to the results file; None if there is none
    """

    _gpu = threading.Lock()

    def __init__(
        self, task: Task, ranks: Ranks, report: Callable[[int], None] | None = None
    ) -> None:
        self.task, self.ranks, self.device = task, ranks, ranks.device
        self.whole = make_split_lattice(task)
        self.checkpoints: Checkpoints | None = None
        self._report = report
        self._thresholds = [p_to_threshold(p) for p in task.p]

    def sample(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        stopped = stopped or (lambda: False)
        with self._in_turn(stopped):
            return [self._block(number, stopped) for number in numbers]

    @property
    def job(self) -> AnyJob:
        """The job of the ranks for every sample."""
        given: dict[str, Any] = {"tally": self.task.has_tally, "p": most_open(self.task)}
        return self.ranks.division.job(self.task.size, self.whole, **given)

    def spec(self) -> SamplerSpec:
        """Return what a worker process makes the same sampler from; TypeError for a rank group."""
        division = self.ranks.division
        if not isinstance(self.ranks, SingleRank) or not isinstance(division, SlabDivision):
            raise TypeError("samples over all ranks are measured by the process of the study")
        (layers,) = division.layers[self.task.size]
        given = {"layers": layers, "checkpoints": self.checkpoints}
        return SamplerSpec("run.parts_sampler:make_in_worker", self.task, given)

    @contextmanager
    def _in_turn(self, stopped: Callable[[], bool]) -> Iterator[None]:
        """Wait until no other thread measures parts on the GPU; Stopped: ``stopped`` is True."""
        if not self.device.is_shared:
            yield
            return
        while not self._gpu.acquire(timeout=_PATIENCE):
            if stopped():
                raise Stopped
        try:
            yield
        finally:
            self._gpu.release()

    def _block(self, number: int, stopped: Callable[[], bool]) -> Block:
        task, saving = self.task, Saving(self.checkpoints)
        rows = list(self.saved_rows(number))
        job, saved = with_checkpoints(self.job, self.checkpoints, task), len(rows)

        def save() -> None:
            nonlocal saved
            saving.begin(lambda: Checkpoint(task.id, number, tuple(rows)))
            saving.finish()
            saved = len(rows)

        def save_if_due() -> None:
            # Also within a row: an interface that a rank saves of this row is of no use without
            # the rows before.
            if saved < len(rows) and saving.is_due:
                save()

        for sample, threshold in self.items(number)[len(rows) :]:
            draw = SampleKey(GENERATORS[task.rng], task.stream_seed, sample, threshold)
            row = self.ranks.row(job, draw, stopped, self._progress(save_if_due))
            if row is None:
                if saved < len(rows):
                    save()
                raise Stopped
            rows.append(row)
            save_if_due()
        return make_block(task, number, rows)

    def _progress(self, each: Callable[[], None]) -> Callable[[int], None]:
        """Return a function for finished layers, or boxes, of rank 0, which calls ``each``."""
        all_parts, points = self.ranks.division.parts_of_first(self.task.size), self.task.num_points
        parts = reported = 0

        def done(more: int) -> None:
            nonlocal parts, reported
            parts += more
            now = points * parts // all_parts
            if self._report is not None:
                self._report(now - reported)
            reported = now
            each()

        return done

    def items(self, number: int) -> list[tuple[int, int]]:
        """Return the sample and the threshold of every row of a block."""
        size = self.task.block_size
        return list(product(range(number * size, (number + 1) * size), self._thresholds))

    def saved_rows(self, number: int) -> tuple[Row, ...]:
        """Return the rows of a block in its checkpoint; InputError if that is damaged."""
        if self.checkpoints is None:
            return ()
        checkpoint = self.checkpoints.load(self.task.id, number)
        if checkpoint is None or checkpoint.key != (self.task.id, number, None):
            return ()
        self.check_fits(checkpoint)
        return checkpoint.rows

    def check_fits(self, checkpoint: Checkpoint) -> None:
        """Raise InputError where a checkpoint of this task has rows or sums of other lengths."""
        bins = compute_row_width(self.whole.num_points) - BINS if self.task.has_tally else 0
        width, interface = BINS + bins if bins else ROW_WIDTH, checkpoint.interface
        is_own = all(len(row.numbers) == width for row in checkpoint.rows)
        if interface is not None:
            lengths = len(interface.sums.bins), interface.num_layers
            is_own = is_own and lengths == (bins, self.whole.num_layers)
        if not is_own or len(checkpoint.rows) > len(self.items(checkpoint.number)):
            assert self.checkpoints is not None
            raise InputError(
                f"{self.checkpoints.find_checkpoint(*checkpoint.key)}: is damaged: its rows do not "
                "fit its task; remove it to measure them again"
            )

    def uses_interface(self, checkpoint: Checkpoint, rows: int) -> bool:
        """Return whether a rank's checkpoint is of use for a block with this number of rows."""
        if checkpoint.rank_row is None or checkpoint.interface is None:
            return False
        rank, *row = checkpoint.rank_row
        if tuple(row) not in self.items(checkpoint.number)[rows : rows + 1]:
            return False
        return self.ranks.division.continues(self.task.size, rank, checkpoint.interface)


def make_in_worker(
    task: Task, *, device: Device, layers: Sequence[int], checkpoints: Checkpoints | None
) -> PartsSampler:
    """Return the sampler of a worker process, which reports the sites that it has labeled."""
    sampler = PartsSampler(task, alone(layers, task.size, device), report_progress)
    sampler.checkpoints = checkpoints
    return sampler


def make_block(task: Task, number: int, rows: Sequence[Row]) -> Block:
    """Return the block of samples with these rows, sample by sample and p by p."""
    shape = 1, task.block_size, len(task.p)
    numbers = np.array([row.numbers for row in rows], np.int64).reshape(*shape, -1)
    extras = {}
    if task.is_wide:
        squares = [divmod(row.sum_squares, 2**LOW_BITS)[::-1] for row in rows]
        extras["wide_squares"] = np.array(squares, np.int64).reshape(*shape, 2).sum(axis=1)
        if numbers.shape[-1] > BINS:
            extras["powers"] = _wide_powers(numbers, rows)
    return make_sample_blocks([number], numbers, task.observables, extras)[0]


def _wide_powers(numbers: np.ndarray, rows: Sequence[Row]) -> np.ndarray:
    """Return the dataset "powers" where sums of s^3 and s^4 may take more than 128 bits."""
    powers = sum_tallies(numbers)["powers"]
    shape = numbers.shape[:-1]
    counts = numbers[..., BINS : BINS + EXACT - 1].astype(object)
    small = np.arange(1, counts.shape[-1] + 1, dtype=object)
    for place, power in enumerate((3, 4)):
        large = np.array([(row.cubes, row.fourths)[place] for row in rows], object).reshape(shape)
        below = (counts * small**power).sum(axis=-1)
        totals = large.astype(float) + below.astype(float)
        powers[..., place] = [
            [sum(totals[block, :, point].tolist()) for point in range(shape[2])]
            for block in range(shape[0])
        ]
    return np.asarray(powers, np.float64)


def advice(task: Task) -> str:
    """Return advice where samples do not fit as a whole, "" where they cannot be cut."""
    try:
        make_split_lattice(task)
    except InputError:
        return ""
    return "; --slabs auto measures it in slabs"


def warm_up_parts(task: Task, division: Division) -> None:
    """Call the kernels of samples in parts once, for a small task."""
    draw = SampleKey(GENERATORS[task.rng], task.stream_seed, 0, p_to_threshold(0.5))
    division.warm_up(make_split_lattice(task), draw, tally=task.has_tally)


def begin_checkpoints(
    samplers: Mapping[str, BlockSampler], path: Path, results: StoredResults, observer: Observer
) -> Callable[[StoredResults], None]:
    """Have samplers save checkpoints next to a results file, and continue from existing ones.

    Notes say which are used and which are not.  InputError: one is damaged.  Returns a function
    that removes the checkpoints of stored blocks; call it after every save.
    """
    own = {key: each for key, each in samplers.items() if isinstance(each, PartsSampler)}
    if not own:
        return lambda results: None
    checkpoints = Checkpoints(path)

    def forget(stored: StoredResults) -> None:
        for key in own:
            checkpoints.remove(key, stored.tasks[key].has_block)

    forget(results)
    for sampler in own.values():
        sampler.checkpoints = checkpoints
    # By task and block: finished rows, layers of interfaces, and files that are of no use.
    rows: dict[tuple[str, int], int] = defaultdict(int)
    layers: dict[tuple[str, int], list[int]] = defaultdict(list)
    others: dict[tuple[str, int], list[Path]] = defaultdict(list)
    for file, key in checkpoints.list_files():
        checkpoint, block, (task_id, number) = read_checkpoint(file), key[:2], key[:2]
        if checkpoint is None:
            observer.noted(f"{file}: is of another version of percolab, and is measured anew")
            continue
        if task_id not in own or checkpoint.key != key:
            observer.noted(f"{file}: is a checkpoint of another task, and is left as it is")
            continue
        sampler = own[task_id]
        sampler.check_fits(checkpoint)
        if checkpoint.rank_row is None:
            rows[block] = len(checkpoint.rows)
            observer.noted(
                f"L = {sampler.task.size}: block {number} goes on after {rows[block]} rows "
                f"(from {file.name})"
            )
        elif checkpoint.rank_row[1:] in sampler.items(number)[: rows[block]]:
            # The row of this interface is finished.
            continue
        elif sampler.uses_interface(checkpoint, rows[block]) and checkpoint.interface is not None:
            layers[block].append(checkpoint.interface.layers)
        else:
            others[block].append(file)
    for (task_id, number), counts in layers.items():
        task, whole = own[task_id].task, own[task_id].whole
        observer.noted(
            f"L = {task.size}: block {number} goes on with {sum(counts)} of {whole.num_layers} "
            f"layers (from checkpoints of ranks: {len(counts)})"
        )
    for first, *more in others.values():
        names = f"{first} and {len(more)} more: are" if more else f"{first}: is"
        whose = "their" if more else "its"
        observer.noted(f"{names} of other ranks, slabs or rows; {whose} layers are measured anew")
    return forget
