"""Checkpoints of samples in work: when they are saved, and which of them a study goes on from.

A block in slabs (:mod:`percolab.run.in_slabs`) has one, with its rows and a front.  Where ranks
measure a sample together (:mod:`percolab.run.split`), the block has one with its rows, and every
rank that has layers one with its own front.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path

from percolab.errors import InputError
from percolab.measure.rows import BINS, ROW_WIDTH
from percolab.measure.tallies import row_width_of
from percolab.parts.front import Front
from percolab.parts.parts import Whole
from percolab.parts.raster import Draw
from percolab.parts.slabs import is_of_first
from percolab.run.request import Watcher
from percolab.run.sampler import Sampler
from percolab.store.checkpoints import Checkpoint, Checkpoints, RankRow, read_checkpoint
from percolab.store.results import Results

# Seconds between checkpoints, and how many times longer than slabs waited for one.
_CHECKPOINT_EVERY, _CHECKPOINT_SHARE = 60.0, 20.0


class Saving:
    """Saves checkpoints about once a minute, the first a minute from now, beside the measuring.

    checkpoints: where; None saves nothing, since there is no file to be beside
    """

    def __init__(self, checkpoints: Checkpoints | None) -> None:
        self._checkpoints = checkpoints
        self._next = time.monotonic() + _CHECKPOINT_EVERY
        self._writing: Future[None] | None = None

    @property
    def is_due(self) -> bool:
        """Whether it is time to save one."""
        return self._checkpoints is not None and time.monotonic() > self._next

    def begin(self, made: Callable[[], Checkpoint]) -> None:
        """Begin to save a checkpoint.

        The measuring waits for its being ``made`` and for the one before, not for writing.
        """
        if self._checkpoints is None:
            return
        start = time.monotonic()
        self.finish()
        checkpoint = made()
        writer = ThreadPoolExecutor(1, "checkpoint")
        self._writing = writer.submit(self._checkpoints.save, checkpoint)
        writer.shutdown(wait=False)
        end = time.monotonic()
        self._next = end + max(_CHECKPOINT_EVERY, _CHECKPOINT_SHARE * (end - start))

    def finish(self) -> None:
        """Wait until the last checkpoint is written; InputError if it could not be."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()


class CheckpointedSampler(Sampler):
    """Measures blocks row by row, and goes on with one whose checkpoint there is.

    whole:       the lattice
    checkpoints: beside the results file; None if there is none
    """

    whole: Whole
    checkpoints: Checkpoints | None = None

    def items(self, number: int) -> list[tuple[int, int]]:
        """Return the sample and the threshold of every row of a block."""
        size = self.task.block_size
        samples = range(number * size, (number + 1) * size)
        return list(product(samples, self._thresholds.tolist()))

    def held(self, number: int) -> Checkpoint | None:
        """Return the checkpoint of a block, if there is one; InputError if it is damaged."""
        if self.checkpoints is None:
            return None
        held = self.checkpoints.load(self.task.id, number)
        if held is None or held.key != (self.task.id, number, None):
            return None
        self.check_fits(held)
        return held

    def check_fits(self, held: Checkpoint) -> None:
        """Raise InputError where a checkpoint of this task has rows or sums of other lengths."""
        bins = row_width_of(self.whole.num_points) - BINS if self._tallied else 0
        width = BINS + bins if bins else ROW_WIDTH
        front = held.front
        is_own = all(len(row.numbers) == width for row in held.rows) and (
            front is None
            or (len(front.sums.bins), front.num_layers) == (bins, self.whole.num_layers)
        )
        if not is_own or len(held.rows) > len(self.items(held.number)):
            assert self.checkpoints is not None
            raise InputError(
                f"{self.checkpoints.path_of(*held.key)}: is damaged, as its rows are none of its "
                "task; remove it to measure what it has anew"
            )

    @abstractmethod
    def goes_on_from(self, held: Checkpoint, rows: int) -> bool:
        """Return whether a block goes on from the front of a checkpoint, after so many rows."""


class RankKeeper:
    """Keeps the front of one rank's first slabs in a checkpoint, for the rows of one task.

    That is done beside a results file that this rank sees; where it has another disk than rank 0
    there is none.

    layers: of its slabs, from ``first_layer`` on
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        task_id: str,
        block_size: int,
        rank: int,
        layers: Sequence[int],
        first_layer: int,
    ) -> None:
        self._checkpoints, self._task_id, self._block_size = checkpoints, task_id, block_size
        self._rank, self._layers, self._first_layer = rank, tuple(layers), first_layer
        self._saving = Saving(checkpoints)
        self._number, self._row = 0, RankRow(rank, 0, 0)

    def begin(self, draw: Draw) -> Front | None:
        """Begin a row; return the front that is kept of it, on the host, or None.

        InputError: the checkpoint is damaged.
        """
        # First due in a minute; what was kept of the row before stays until that row is saved.
        self._saving = Saving(self._checkpoints)
        self._number = draw.sample // self._block_size
        self._row = RankRow(self._rank, draw.sample, draw.threshold)
        held = self._checkpoints.load(self._task_id, self._number, self._rank)
        if held is None or held.front is None:
            return None
        is_same = held.key[:2] == (self._task_id, self._number) and held.rank_row == self._row
        is_own = is_of_first(held.front, self._layers, self._first_layer)
        return held.front if is_same and is_own else None

    @property
    def is_due(self) -> bool:
        """Whether it is time to keep a front."""
        return self._saving.is_due

    def keep(self, copied: Callable[[], Front]) -> None:
        """Begin to keep the front that ``copied`` returns on the host."""
        if self._checkpoints.path.exists():
            self._saving.begin(
                lambda: Checkpoint(self._task_id, self._number, (), copied(), self._row)
            )

    def end(self) -> None:
        """Wait until what is kept is written; InputError if it could not be."""
        self._saving.finish()


def begin_checkpoints(
    samplers: Mapping[str, Sampler], path: Path, results: Results, watcher: Watcher
) -> Callable[[Results], None]:
    """Let samplers keep checkpoints beside a results file, and go on from those there are.

    It is said which are used and which are not.  InputError: one is damaged.  Returns what removes
    those of blocks that are stored; call it after every save.
    """
    own = {key: item for key, item in samplers.items() if isinstance(item, CheckpointedSampler)}
    if not own:
        return lambda results: None
    checkpoints = Checkpoints(path)

    def forget(stored: Results) -> None:
        for key in own:
            checkpoints.remove(key, stored.tasks[key].blocks.keys())

    forget(results)
    rows: dict[tuple[str, int], int] = defaultdict(int)
    layers: dict[tuple[str, int], list[int]] = defaultdict(list)
    others: dict[tuple[str, int], list[Path]] = defaultdict(list)
    for found, key in checkpoints.found():
        held, (task_id, number, rank), block = read_checkpoint(found), key, key[:2]
        if task_id not in own or held.key != key:
            watcher.noted(f"{found}: is a checkpoint of another task, and is left as it is")
            continue
        own[task_id].checkpoints = checkpoints
        own[task_id].check_fits(held)
        if held.rank_row is None:
            rows[block] = len(held.rows)
        elif held.rank_row[1:] in own[task_id].items(number)[: rows[block]]:
            # Its row is done.
            continue
        goes_on = own[task_id].goes_on_from(held, rows[block])
        if rank is None and goes_on:
            watcher.noted(_told(found, held, own[task_id]))
        elif rank is None:
            watcher.noted(f"{found}: is of other slabs; its sample in work is measured anew")
        elif goes_on and held.front is not None:
            layers[block].append(held.front.layers)
        else:
            others[block].append(found)
    for (task_id, number), counts in layers.items():
        task, whole = own[task_id].task, own[task_id].whole
        watcher.noted(
            f"L = {task.size}: block {number} goes on with {sum(counts)} of {whole.num_layers} "
            f"layers (from checkpoints of ranks: {len(counts)})"
        )
    for first, *more in others.values():
        names, verb, whose = f"{first}", "is", "its"
        if more:
            names, verb, whose = f"{first} and {len(more)} more", "are", "their"
        watcher.noted(
            f"{names}: {verb} of other ranks, slabs or rows; {whose} layers are measured anew"
        )
    for sampler in own.values():
        sampler.checkpoints = checkpoints
    return forget


def _told(path: Path, held: Checkpoint, sampler: CheckpointedSampler) -> str:
    """Return one line on where a block goes on."""
    rows = f" after {len(held.rows)} rows" if held.rows else ""
    if held.front is not None:
        rows += f" at layer {held.front.layers} of {sampler.whole.num_layers}"
    return f"L = {sampler.task.size}: block {held.number} goes on{rows} (from {path.name})"
