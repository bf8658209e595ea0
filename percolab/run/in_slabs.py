"""Samples measured in slabs: which are, in which slabs, and the sampler that does it.

A sample in slabs has the row of the whole lattice, bit for bit (:mod:`percolab.parts.slabs`), so
slabs are no part of a task: the results file is the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from math import lcm
from typing import TypeVar

import numpy as np
import psutil

from percolab.bonds.words import GENERATORS
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import MAX_POINTS
from percolab.measure.columns import LOW_BITS
from percolab.measure.rows import BINS
from percolab.measure.tallies import EXACT, sums_of_tallies
from percolab.parts.front import Front, Row, front_bytes
from percolab.parts.parts import Whole
from percolab.parts.raster import Draw
from percolab.parts.slabs import Slabs, equal_slabs, is_of_first, refusal, thicknesses
from percolab.run.checkpointed import CheckpointedSampler, Saving
from percolab.run.sampler import Stopped
from percolab.store.checkpoints import Checkpoint
from percolab.tasks.blocks import AnyBlock, Block, blocks_of
from percolab.tasks.study import Task

_T = TypeVar("_T")
CPU = Device("cpu")
#: The labelers of slabs.
LABELERS = {"cpu": "raster", "cuda": "tiled"}
# Sites of a slab where their number is chosen: on the CPU about a second at most, and a GB of
# memory; on CUDA some 10 ms, beside which what is done at its faces is little.
_SITES_PER_SLAB, _SITES_ON_CUDA = 2**25, 2**30
# On CUDA slabs are as large as can be where they would have fewer layers than this, and where the
# lattice has so many sites that seconds for larger tables do not matter.
_FEW_ON_CUDA, _LARGE = 32, 2**39
# Seconds after which a thread that waits for the GPU looks whether it should stop.
_PATIENCE = 0.1
# The most layers of a tile that slabs are fitted to.
_DEEPEST = 64


def whole_of(task: Task) -> Whole:
    """Return the lattice of a task, to be cut; InputError, in one line, why it cannot be."""
    reason = ""
    if not isinstance(task.structure, Lattice):
        reason = f"{task.structure.name} has no layers to be cut at"
    elif task.refusal("parts"):
        reason = task.refusal("parts")
    elif "gyration" in task.measure:
        reason = "measure gyration: the radii of clusters are not known at a face"
    if reason or not isinstance(task.structure, Lattice):
        raise InputError(f"slabs: {reason}")
    return Whole(task.structure, task.shape, task.boundary, task.draw)


def memory_of_slabs(
    whole: Whole, layers: Sequence[int], kind: str = "cpu", p: float = 1.0
) -> Memory:
    """Return the memory that a sample in slabs takes: one slab, its tables, and fronts.

    The fronts are those of a chain, and one that is read or written as a checkpoint, twice.
    p: the largest, of bonds or of sites, of whichever is smaller.
    """
    bonds, sites = whole.open_at_face(p)
    front = front_bytes(2 * bonds, 2 * sites, has_periods=whole.has_periods)
    return Slabs.memory(whole, layers, kind, p).plus(Memory(host=2 * front))


def most_open(task: Task) -> float:
    """Return the largest p of a task, of which no more bonds are open; 1 if it is not known."""
    # What varies is a bond itself, or a site at its end.
    return max(task.p, default=1.0)


def layers_of(
    task: Task,
    slabs: int | str,
    samples: int,
    *,
    held: int = 0,
    device: Device = CPU,
    share: float = 0.9,
) -> tuple[int, ...]:
    """Return the layers of the slabs of a task's samples, from the first on.

    slabs: how many, or "auto".  samples: that are measured at a time on this host, a GPU each.
    held: bytes that other tasks take.  share: of the free memory of a GPU, which others are like.
    InputError: it cannot be cut, or not into so many; or slabs of all these samples do not fit.
    """
    whole = whole_of(task)
    problem = refusal(whole, device.kind)
    if problem:
        raise InputError(
            f"slabs: {whole.lattice.name} cannot be labeled in slabs on {device}: {problem}; "
            "use --device cpu"
        )
    available = Memory(psutil.virtual_memory().available - held)
    if device.is_shared:
        available = Memory(available.host, int(share * device.free_memory()))

    def needed(layers: Sequence[int]) -> Memory:
        one = memory_of_slabs(whole, layers, device.kind, most_open(task))
        return Memory(samples * one.host, one.device)

    try:
        if slabs == "auto":
            layers = chosen_layers(
                whole,
                device.kind,
                lambda thick: equal_slabs(whole, thick),
                lambda layers: fits(needed(layers), available),
            )
        else:
            layers = thicknesses(whole, int(slabs))
        for first, thick in zip(accumulate((0, *layers[:-1])), layers):
            whole.check_layers(first, thick)
    except InputError as error:
        raise InputError(f"L = {task.size} in {slabs} slabs: {error}") from error
    beside = f" for {samples} samples at a time" if samples > 1 else ""
    where = f"L = {task.size} in {len(layers)} slabs"
    check_fits(where, needed(layers), available, device, beside)
    return layers


def fits(needed: Memory, free: Memory) -> bool:
    """Return whether memory is free on the host and on the device."""
    return needed.host <= free.host and needed.device <= free.device


def check_fits(where: str, needed: Memory, free: Memory, device: Device, beside: str = "") -> None:
    """Raise InputError unless memory is free; where: what needs it; beside: for how many."""
    if needed.host > free.host:
        raise InputError(
            f"{where} needs {needed.host / 1e9:.1f} GB of memory{beside}; "
            f"{free.host / 1e9:.1f} GB are free"
        )
    if needed.device > free.device:
        raise InputError(
            f"{where} needs {needed.device / 1e9:.1f} GB on {device}; "
            f"{free.device / 1e9:.1f} GB are its share of what is free"
        )


def chosen_layers(
    whole: Whole, kind: str, cut: Callable[[int], _T], fits: Callable[[_T], bool]
) -> _T:
    """Return a lattice cut into slabs of the usual thickness, or thinner ones until they fit.

    cut: returns slabs of so many layers.  fits: whether there is memory for them.
    """
    least = max(whole.reach, 1)
    thick = layers_wanted(whole, kind)
    while True:
        found = cut(thick)
        if thick <= least or fits(found):
            return found
        thick = layers_wanted(whole, kind, most=max(thick // 2, least))


def layers_wanted(whole: Whole, kind: str, most: int | None = None) -> int:
    """Return how thick slabs are where memory does not ask for thinner ones, of ``most`` layers."""
    each, largest = whole.layer_points, MAX_POINTS // whole.layer_points
    if kind == "cpu":
        usual = _SITES_PER_SLAB // each
    else:
        usual = _SITES_ON_CUDA // each
        if usual < _FEW_ON_CUDA or whole.num_points > _LARGE:
            usual = largest
    most = max(min(most or usual, whole.num_layers), whole.reach, 1)
    unit = whole.lattice.cell[-1]
    # Slabs of whole cells are alike.
    of_cells = most - most % unit
    fitting = [of_cells if of_cells >= max(whole.reach, 1) else most]
    if kind == "cuda":
        from percolab.parts.tiled_cuda import seconds_a_layer

        depths = (_DEEPEST >> n for n in range(_DEEPEST.bit_length()))
        whole_tiles = (most - most % lcm(depth, unit) for depth in depths)
        fitting += [thick for thick in whole_tiles if 2 * thick > most and thick >= whole.reach]
        return min(fitting, key=lambda thick: seconds_a_layer(whole, thick))
    return fitting[0]


def check_labeler(labeler: str | None, device: Device) -> None:
    """Raise InputError unless slabs are labeled by this labeler."""
    own = LABELERS[device.kind]
    if labeler not in (None, own):
        raise InputError(f"slabs: on {device} they are labeled by {own}, not by {labeler}")


@dataclass(eq=False)
class _InWork:
    """The block in work: rows of its samples that are done, and the front of the next.

    saving: of its checkpoints, while the next slabs are measured
    """

    number: int
    rows: list[Row]
    front: Front | None
    saving: Saving


class _Held:
    """The slabs that were made last: one sampler's."""

    owner: SlabSampler | None = None
    slabs: Slabs | None = None


class _HeldByThread(threading.local, _Held):
    """The same, one for each thread."""


class SlabSampler(CheckpointedSampler):
    """Measures blocks of one task in slabs.

    On the CPU every thread has memory of its own, on a GPU one thread at a time measures a block.
    layers: of the slabs, from the first on.  report: is told of sites that were labeled.  Tables
    and memory are kept of the task that was last at work.
    """

    _at, _on_gpu, _gpu = _HeldByThread(), _Held(), threading.Lock()

    def __init__(
        self,
        task: Task,
        layers: Sequence[int],
        report: Callable[[int], None] | None = None,
        *,
        device: Device = CPU,
    ) -> None:
        super().__init__(task, labeler=LABELERS[device.kind], device=device)
        self.whole, self.layers = whole_of(task), tuple(layers)
        self._report = report

    def call_first(self, *, with_pilot: bool) -> None:
        """Call once what a sweep calls, so that it is compiled."""
        self._blocks([0])

    def _slabs(self) -> Slabs:
        """Return this thread's slabs, or those of the GPU for the thread that drives it."""
        at = self._on_gpu if self.device.is_shared else self._at
        if at.owner is not self or at.slabs is None:
            # What is there goes first, so that both need not fit.
            at.slabs = None
            self.device.open()
            kind = self.device.kind
            at.slabs = Slabs(self.whole, self.layers, tally=self._tallied, kind=kind)
            at.owner = self
        return at.slabs

    def _blocks(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        with self._alone(stopped):
            return [self._block(number, stopped) for number in numbers]

    @contextmanager
    def _alone(self, stopped: Callable[[], bool] | None) -> Iterator[None]:
        """Wait until no other thread measures slabs on the GPU; Stopped if asked to stop."""
        if not self.device.is_shared:
            yield
            return
        while not self._gpu.acquire(timeout=_PATIENCE):
            if stopped is not None and stopped():
                raise Stopped
        try:
            yield
        finally:
            self._gpu.release()

    def _block(self, number: int, stopped: Callable[[], bool] | None) -> Block:
        work = self._begun(number)
        try:
            self._measure(work, stopped)
        finally:
            # A checkpoint must not appear where one was removed.
            work.saving.finish()
        return block_of(self.task, number, work.rows)

    def _measure(self, work: _InWork, stopped: Callable[[], bool] | None) -> None:
        """Measure what is left of a block; Stopped if asked to stop, and then it is saved."""
        task = self.task
        with self.device.driven():
            slabs = self._slabs()
        for sample, threshold in self.items(work.number)[len(work.rows) :]:
            draw = Draw(GENERATORS[task.rng], task.stream_seed, sample, threshold)
            fronts = slabs.fronts(draw, work.front)
            while True:
                with self.device.driven():
                    front = next(fronts, None)
                if front is None:
                    break
                before = 0 if work.front is None else work.front.layers
                work.front = front
                if self._report is not None:
                    self._report((front.layers - before) * self.whole.layer_points)
                if stopped is not None and stopped():
                    self._save(work, slabs)
                    raise Stopped
                if work.saving.is_due:
                    self._save(work, slabs)
            assert work.front is not None
            with self.device.driven():
                work.rows.append(slabs.row_of_all(work.front))
            work.front = None

    def _begun(self, number: int) -> _InWork:
        """Return a block as its checkpoint has it, or before its first slab."""
        work, held = _InWork(number, [], None, Saving(self.checkpoints)), self.held(number)
        if held is not None:
            work.rows = list(held.rows)
            work.front = held.front if self.goes_on_from(held, len(held.rows)) else None
        return work

    def goes_on_from(self, held: Checkpoint, rows: int) -> bool:
        """Return whether the front of a checkpoint ends where one of the slabs does."""
        if held.rank_row is not None:
            return False
        return held.front is None or is_of_first(held.front, self.layers)

    def _save(self, work: _InWork, slabs: Slabs) -> None:
        """Begin to save a checkpoint, with its front on the host."""

        def made() -> Checkpoint:
            done, front = tuple(work.rows), work.front
            if front is not None:
                with self.device.driven():
                    front = slabs.copied(front)
            return Checkpoint(self.task.id, work.number, done, front)

        work.saving.begin(made)


def block_of(task: Task, number: int, rows: Sequence[Row]) -> Block:
    """Return the block of samples with these rows, sample by sample and p by p."""
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


def advice(task: Task) -> str:
    """Return what to say where samples do not fit as a whole: "" where they cannot be cut."""
    try:
        whole_of(task)
    except InputError:
        return ""
    return "; --slabs auto measures it in slabs"


def warm_up_slabs(task: Task, device: Device) -> None:
    """Call once what samples in slabs call, for a small task."""
    try:
        layers = layers_of(task, 2, 1, device=device)
    except InputError:
        layers = layers_of(task, 1, 1, device=device)
    SlabSampler(task, layers, device=device).call_first(with_pilot=False)


def check_p(missing: Collection[tuple[float, ...] | None], asked: str = "slabs") -> None:
    """Raise InputError if p is left to a pilot, which measures samples as a whole.

    asked: what a user asked for.
    """
    if None in missing:
        raise InputError(
            f"{asked}: give p (-p); the pilot that finds it measures samples as a whole"
        )
