"""Measured blocks: which are missing, who makes them, and what comes out as they are finished."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from percolab.run.sampler import Sampler
from percolab.store.results import Results
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import AnyBlock


@dataclass(frozen=True)
class Job:
    """Consecutive missing blocks of one task, made by one call of its sampler.

    follows: whether they begin where those before have ended, as in one long chain.
    """

    task_id: str
    numbers: tuple[int, ...]
    follows: bool = False


class Jobs(Iterator[Job]):
    """Jobs that are made as they are asked for, all tasks advancing evenly.

    by_task: for each task, (how far a job brings it, its id, job) in order.
    """

    def __init__(self, by_task: Iterable[Iterator[tuple[float, str, Job]]]) -> None:
        self._heads: list[tuple[float, str, Job]] = []
        self._left: dict[str, Iterator[tuple[float, str, Job]]] = {}
        for jobs in by_task:
            self._put_next(jobs)

    def _put_next(self, jobs: Iterator[tuple[float, str, Job]]) -> None:
        head = next(jobs, None)
        if head is not None:
            heapq.heappush(self._heads, head)
            self._left[head[1]] = jobs

    def __next__(self) -> Job:
        if not self._heads:
            raise StopIteration
        _, task_id, job = heapq.heappop(self._heads)
        self._put_next(self._left.pop(task_id))
        return job

    def without(self, task_ids: Collection[str]) -> Job | None:
        """Return the next job of other tasks than these, or None if there is none."""
        aside = []
        while self._heads and self._heads[0][1] in task_ids:
            aside.append(heapq.heappop(self._heads))
        job = next(self, None)
        for head in aside:
            heapq.heappush(self._heads, head)
        return job


def missing_jobs(
    results: Results, wanted: Mapping[str, int], samplers: Mapping[str, Sampler]
) -> Jobs:
    """Return the jobs that bring each task to ``wanted`` blocks, all tasks advancing evenly.

    They are made as they are asked for, so that any number can be wanted.
    """
    return Jobs(
        _jobs_of(results.tasks[task_id], task_id, count, samplers[task_id].blocks_per_call)
        for task_id, count in wanted.items()
    )


def _jobs_of(
    item: TaskResult, task_id: str, count: int, step: int
) -> Iterator[tuple[float, str, Job]]:
    """Yield (how far it brings the task, its id, job) for a task's missing blocks in order."""
    missing = (number for number in range(count) if number not in item.blocks)
    while numbers := tuple(islice(missing, step)):
        yield numbers[-1] / count, task_id, Job(task_id, numbers, bool(item.task.chains))


def work_of(item: TaskResult, blocks: int) -> int:
    """Return the site labelings that so many blocks of a task take."""
    task = item.task
    return blocks * task.block_size * max(len(task.p), 1) * task.num_points


def sites_to_label(results: Results, wanted: Mapping[str, int]) -> tuple[int, int]:
    """Return the site labelings that tasks' first ``wanted`` blocks take, and those left to do."""
    total = left = 0
    for key, count in wanted.items():
        item = results.tasks[key]
        total += work_of(item, count)
        left += work_of(item, count - sum(number < count for number in item.blocks))
    return total, left


class Work:
    """Jobs in the hands of an executor, two for each worker at a time.

    Of a task that is one long chain a job begins when the one before has ended.
    """

    def __init__(
        self,
        jobs: Jobs,
        samplers: Mapping[str, Sampler],
        executor: Executor,
        workers: int,
    ) -> None:
        self._waiting, self._samplers = jobs, samplers
        self._executor, self._limit = executor, 2 * workers
        self._pending: dict[Future[list[AnyBlock]], Job] = {}
        self._stop = threading.Event()

    def finished(self) -> Iterator[tuple[Job, list[AnyBlock]]]:
        """Yield every job and its blocks when they are made; raise what kept one from being made.

        Whoever does not take all of them must take those of :meth:`stopped`.
        """
        while True:
            self._submit()
            if not self._pending:
                return
            for future in wait(self._pending, return_when=FIRST_COMPLETED).done:
                yield self._pending.pop(future), future.result()

    def stopped(self) -> Iterator[tuple[Job, list[AnyBlock]]]:
        """Begin no further job, and yield those that still came to their end."""
        self._stop.set()
        for future in self._pending:
            future.cancel()
        for future, job in list(self._pending.items()):
            # What stopped the work is on its way already; a second error adds nothing to it.
            with suppress(Exception):
                if not future.cancelled():
                    blocks = future.result()
                    del self._pending[future]
                    yield job, blocks

    def _submit(self) -> None:
        while len(self._pending) < self._limit:
            busy = {job.task_id for job in self._pending.values() if job.follows}
            job = self._waiting.without(busy)
            if job is None:
                return
            sample = self._samplers[job.task_id].sample
            self._pending[self._executor.submit(sample, job.numbers, self._stop.is_set)] = job
