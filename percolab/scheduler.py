"""Which blocks are missing, who gets them, when they are saved, and what happens on Ctrl-C."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass

from percolab.sampler import Sampler
from percolab.statistics import Block
from percolab.storage import Results, TaskResult

# Seconds between saves, and how many times longer than the last save the pause must be.
_SAVE_EVERY = 5.0
_SAVE_SHARE = 20.0


@dataclass(frozen=True)
class Job:
    """Consecutive missing blocks of one task, made by one call of its sampler."""

    task_id: str
    numbers: tuple[int, ...]


def missing_jobs(
    results: Results, wanted: Mapping[str, int], samplers: Mapping[str, Sampler]
) -> list[Job]:
    """Return the jobs that bring each task to ``wanted`` blocks, all tasks advancing evenly."""
    placed: list[tuple[float, str, Job]] = []
    for task_id, count in wanted.items():
        missing = [n for n in range(count) if n not in results.tasks[task_id].blocks]
        step = samplers[task_id].blocks_per_call
        for first in range(0, len(missing), step):
            numbers = tuple(missing[first : first + step])
            placed.append((numbers[-1] / count, task_id, Job(task_id, numbers)))
    return [job for _, _, job in sorted(placed, key=lambda item: item[:2])]


class Interrupted(Exception):
    """Ctrl-C was pressed; what was finished is in the results."""


def run_jobs(
    jobs: list[Job],
    *,
    results: Results,
    samplers: Mapping[str, Sampler],
    executor: Executor,
    workers: int,
    save: Callable[[], None],
    report: Callable[[TaskResult, list[Block]], None],
) -> None:
    """Run all jobs, putting their blocks into ``results``; save now and then and at the end.

    Interrupted on KeyboardInterrupt, after the finished blocks were saved.
    """
    stop = threading.Event()
    pending: dict[Future, Job] = {}
    waiting = iter(jobs)
    saver = _Saver(save)

    def collect(done: set[Future]) -> None:
        for future in done:
            job = pending.pop(future)
            item = results.tasks[job.task_id]
            blocks = future.result()
            item.blocks.update({block.number: block for block in blocks})
            report(item, blocks)

    try:
        try:
            while True:
                _submit(waiting, pending, samplers, executor, 2 * workers, stop)
                if not pending:
                    break
                collect(wait(pending, return_when=FIRST_COMPLETED).done)
                saver.tick()
        finally:
            stop.set()
            try:
                _drain(pending, collect)
            finally:
                save()
    except KeyboardInterrupt:
        raise Interrupted from None


def _submit(
    waiting: Iterator[Job],
    pending: dict[Future, Job],
    samplers: Mapping[str, Sampler],
    executor: Executor,
    limit: int,
    stop: threading.Event,
) -> None:
    while len(pending) < limit:
        job = next(waiting, None)
        if job is None:
            return
        pending[executor.submit(samplers[job.task_id].sample, job.numbers, stop.is_set)] = job


def _drain(pending: dict[Future, Job], collect: Callable[[set[Future]], None]) -> None:
    """Keep the blocks that still came to their end after a stop or an error."""
    for future in list(pending):
        future.cancel()
    for future in list(pending):
        # What stopped the run is on its way already; a second error must not keep it from saving.
        with suppress(Exception):
            if not future.cancelled():
                collect({future})


class _Saver:
    """Saves every few seconds, and less often if saving takes long."""

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._next = time.monotonic() + _SAVE_EVERY

    def tick(self) -> None:
        start = time.monotonic()
        if start < self._next:
            return
        self._save()
        end = time.monotonic()
        self._next = end + max(_SAVE_EVERY, _SAVE_SHARE * (end - start))
