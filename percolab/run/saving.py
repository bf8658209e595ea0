"""Checkpoints of samples in parts: what they contain while samples are measured, and when.

A block has a checkpoint with its finished rows, and every rank of slabs, even a single one, has one
with the interface of its own slabs of the row in work.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from percolab.parts.interface import Interface
from percolab.parts.partitions import make_job
from percolab.parts.ranks import AnyJob, Checkpointer, RankJob, find_first_layer
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import is_first_slab
from percolab.store.checkpoints import Checkpoint, Checkpoints, RankRow
from percolab.tasks.study import Task

# Seconds between checkpoints, and their ratio at least to the time that slabs waited for the last.
_CHECKPOINT_EVERY, _CHECKPOINT_SHARE = 60.0, 20.0


class Saving:
    """Saves checkpoints about once a minute, during the measuring; None saves nothing."""

    def __init__(self, checkpoints: Checkpoints | None) -> None:
        self._checkpoints = checkpoints
        self._next = time.monotonic() + _CHECKPOINT_EVERY
        self._writing: Future[None] | None = None

    @property
    def is_due(self) -> bool:
        return self._checkpoints is not None and time.monotonic() > self._next

    def begin(self, made: Callable[[], Checkpoint]) -> None:
        """Begin to save; measuring waits until it is ``made``, and the one before is saved."""
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
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()


class RankCheckpointer(Checkpointer):
    """Saves the interface of one rank's first slabs in a checkpoint, for the rows of one task.

    They lie next to the results file; a rank with another disk than rank 0 does not see that file
    and saves none.

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

    def begin(self, draw: SampleKey) -> Interface | None:
        # First due in a minute; the interface of the row before stays until that row is saved.
        self._saving = Saving(self._checkpoints)
        self._number = draw.sample // self._block_size
        self._row = RankRow(self._rank, draw.sample, draw.threshold)
        checkpoint = self._checkpoints.load(self._task_id, self._number, self._rank)
        if checkpoint is None or checkpoint.interface is None:
            return None
        is_same = (
            checkpoint.key[:2] == (self._task_id, self._number) and checkpoint.rank_row == self._row
        )
        is_own = is_first_slab(checkpoint.interface, self._layers, self._first_layer)
        return checkpoint.interface if is_same and is_own else None

    @property
    def is_due(self) -> bool:
        return self._saving.is_due

    def keep(self, copied: Callable[[], Interface]) -> None:
        if self._checkpoints.path.exists():
            self._saving.begin(
                lambda: Checkpoint(self._task_id, self._number, (), copied(), self._row)
            )

    def end(self) -> None:
        self._saving.finish()


@dataclass(frozen=True)
class CheckpointedJob(RankJob):
    """A job whose ranks save checkpoints; kept: results file, task's id, samples of a block."""

    kept: tuple[str, str, int] = ("", "", 1)

    def checkpointer(self, rank: int) -> Checkpointer:
        path, task_id, block_size = self.kept
        own = rank, self.layers[rank], find_first_layer(self.layers, rank)
        return RankCheckpointer(Checkpoints(Path(path)), task_id, block_size, *own)

    def record(self) -> dict[str, Any]:
        return super().record() | {"kept": self.kept}


def with_checkpoints(job: AnyJob, checkpoints: Checkpoints | None, task: Task) -> AnyJob:
    """Return a job whose ranks save their interfaces, if there is a results file."""
    if checkpoints is None or not isinstance(job, RankJob):
        return job
    return CheckpointedJob(**vars(job), kept=(str(checkpoints.path), task.id, task.block_size))


def job_from_record(record: dict[str, Any]) -> AnyJob:
    """Return the job of a record, with checkpoints or without."""
    job = make_job(record)
    if not isinstance(job, RankJob) or "kept" not in record:
        return job
    return CheckpointedJob(**vars(job), kept=tuple(record["kept"]))
