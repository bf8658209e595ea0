"""Which blocks are missing, who gets them, when they are saved, and what happens on Ctrl-C."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from percolab.run.sampler import Sampler
from percolab.store.interrupts import exit_code_of
from percolab.store.results import Results
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import AnyBlock

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
) -> Iterator[Job]:
    """Yield the jobs that bring each task to ``wanted`` blocks, all tasks advancing evenly.

    They are made as they are asked for, so that any number can be wanted.
    """
    by_task = [
        _jobs_of(results.tasks[task_id], task_id, count, samplers[task_id].blocks_per_call)
        for task_id, count in wanted.items()
    ]
    for _, _, job in heapq.merge(*by_task, key=lambda placed: placed[:2]):
        yield job


def _jobs_of(
    item: TaskResult, task_id: str, count: int, step: int
) -> Iterator[tuple[float, str, Job]]:
    """Yield (how far it brings the task, its id, job) for a task's missing blocks in order."""
    missing = (number for number in range(count) if number not in item.blocks)
    while numbers := tuple(islice(missing, step)):
        yield numbers[-1] / count, task_id, Job(task_id, numbers)


class Interrupted(Exception):
    """Ctrl-C was pressed, or SIGTERM received; what was finished is in the results.

    stored: whether it was saved as well.  exit_code: the shell's for what happened.
    """

    def __init__(self, *, stored: bool, exit_code: int) -> None:
        super().__init__(f"interrupted, finished blocks {'' if stored else 'not '}saved")
        self.stored, self.exit_code = stored, exit_code


def run_jobs(
    jobs: Iterable[Job],
    *,
    results: Results,
    samplers: Mapping[str, Sampler],
    executor: Executor,
    workers: int,
    save: Callable[[], None],
    report: Callable[[TaskResult, list[AnyBlock]], None],
    pace: Pace | None = None,
) -> None:
    """Run all jobs, putting their blocks into ``results``; save now and then and at the end.

    pace: of several calls, which save at the end only when it is time to; the caller saves what is
    left ``pending`` at last.

    Interrupted on KeyboardInterrupt, after the finished blocks were saved.  One that comes during
    this last save has it made again; the next one leaves it.
    """
    stored = False
    stop = threading.Event()
    pending: dict[Future, Job] = {}
    waiting = iter(jobs)
    hurried, pace = pace is not None, pace or Pace()
    finished = False

    def collect(done: set[Future]) -> None:
        for future in done:
            job = pending.pop(future)
            item = results.tasks[job.task_id]
            blocks = future.result()
            item.add(blocks)
            report(item, blocks)

    def save_at_last() -> None:
        nonlocal stored
        try:
            save()
        except KeyboardInterrupt:
            save()
            stored = True
            raise
        stored = True
        pace.pending = False

    try:
        try:
            while True:
                _submit(waiting, pending, samplers, executor, 2 * workers, stop)
                if not pending:
                    break
                collect(wait(pending, return_when=FIRST_COMPLETED).done)
                pace.pending = True
                pace.tick(save)
            finished = True
        finally:
            stop.set()
            try:
                _drain(pending, collect)
            finally:
                if not (finished and hurried):
                    save_at_last()
    except KeyboardInterrupt as error:
        raise Interrupted(stored=stored, exit_code=exit_code_of(error)) from None


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


class Pace:
    """Says when to save: every few seconds, and less often if saving takes long.

    pending: whether there are blocks that no save has stored yet.
    """

    def __init__(self) -> None:
        self.pending = False
        self._next = time.monotonic() + _SAVE_EVERY

    def tick(self, save: Callable[[], None]) -> None:
        """Save if it is time to."""
        start = time.monotonic()
        if start < self._next:
            return
        save()
        self.pending = False
        end = time.monotonic()
        self._next = end + max(_SAVE_EVERY, _SAVE_SHARE * (end - start))


def saving_seconds(sampling: float, one: float) -> float:
    """Return the seconds that saving takes beside so many of sampling, if the last takes ``one``.

    The file grows, so that those before take half as long on average.
    """
    between = max(_SAVE_EVERY, _SAVE_SHARE * one / 2)
    return one + one / 2 * sampling / between
