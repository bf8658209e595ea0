"""Measured blocks: which are missing, who makes them, and the finished ones as they come."""

import heapq
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from typing import Any
from uuid import uuid4

from percolab.run.calls import Call, measure_blocks
from percolab.store.interrupts import raise_lost_interrupt
from percolab.store.results import StoredResults
from percolab.tasks.blocks import AnyBlock, ChainEnd
from percolab.tasks.kind import BlockSampler
from percolab.tasks.part import WHOLE, JobPart

#: How often blocks are submitted if their workers are lost.
_TRIES = 3

#: Least number of jobs for every worker in a task, before a job consists of several calls.
_LEAST_ROUNDS = 32


@dataclass(frozen=True)
class BlockJob:
    """Consecutive missing blocks of one task.

    numbers: ascending.  follows: whether every block begins where the one before has ended.
    largest: most neighbouring blocks that may be added up to one.
    """

    task_id: str
    numbers: Sequence[int]
    follows: bool = False
    largest: int = 1


_JobsOfTask = Iterator[tuple[float, str, BlockJob]]


class Jobs(Iterator[BlockJob]):
    """Jobs that are made when they are taken, so that all tasks advance evenly."""

    def __init__(self, by_task: Iterable[_JobsOfTask]) -> None:
        self._heads: list[tuple[float, str, BlockJob]] = []
        self._left: dict[str, _JobsOfTask] = {}
        for jobs in by_task:
            self._put_next(jobs)

    def _put_next(self, jobs: _JobsOfTask) -> None:
        head = next(jobs, None)
        if head is not None:
            heapq.heappush(self._heads, head)
            self._left[head[1]] = jobs

    def __next__(self) -> BlockJob:
        if not self._heads:
            raise StopIteration
        _, task_id, job = heapq.heappop(self._heads)
        self._put_next(self._left.pop(task_id))
        return job

    def without(self, task_ids: Collection[str]) -> BlockJob | None:
        """Return the next job of other tasks than these, or None if there is none."""
        aside = []
        while self._heads and self._heads[0][1] in task_ids:
            aside.append(heapq.heappop(self._heads))
        job = next(self, None)
        for head in aside:
            heapq.heappush(self._heads, head)
        return job


def missing_jobs(
    results: StoredResults,
    blocks: Mapping[str, int],
    samplers: Mapping[str, BlockSampler],
    part: JobPart = WHOLE,
    *,
    at_once: int = 1,
) -> Jobs:
    """Return the jobs that bring each task to its number of ``blocks``.

    part: the blocks that are made here.  at_once: how many jobs are worked on at a time; a task has
    a multiple of this number of jobs, all of about the same size.
    """

    def iterate_jobs(key: str, count: int) -> _JobsOfTask:
        result, sampler, own = results.tasks[key], samplers[key], part.count(count)
        rounds = -(-own // (at_once * sampler.blocks_per_call))
        calls = min(max(rounds // _LEAST_ROUNDS, 1), sampler.calls_per_job)
        rounds = -(-rounds // calls)
        step = -(-own // max(at_once * rounds, 1))
        missing = _cut(result.missing_runs(part.runs(count)), max(step, 1))
        for made, numbers in zip(range(0, own, max(step, 1)), missing):
            # The largest groups that the blocks stored by then can form.
            largest = result.task.largest_group(made + len(numbers))
            yield numbers[-1] / count, key, BlockJob(key, numbers, sampler.is_serial, largest)

    return Jobs(iterate_jobs(key, count) for key, count in blocks.items())


def _cut(runs: Iterable[range], size: int) -> Iterator[Sequence[int]]:
    """Yield ``size`` numbers of runs at a time; neighbours as a range, which takes no memory."""
    taken: list[range] = []
    room = size
    for run in runs:
        left = run
        while left:
            taken.append(left[:room])
            left = left[room:]
            room -= len(taken[-1])
            if not room:
                yield _as_one(taken)
                taken, room = [], size
    if taken:
        yield _as_one(taken)


def _as_one(runs: Sequence[range]) -> Sequence[int]:
    return runs[0] if len(runs) == 1 else tuple(chain.from_iterable(runs))


def sites_to_label(
    results: StoredResults, blocks: Mapping[str, int], part: JobPart = WHOLE
) -> tuple[int, int]:
    """Return the site labelings that the first ``blocks`` of tasks take, and those left to do."""
    total = left = 0
    for key, count in blocks.items():
        result = results.tasks[key]
        made, sites = part.count(count), result.task.sites_per_block
        total += sites * made
        left += sites * (made - result.count_below(count, part))
    return total, left


class WorkersLost(Exception):
    """The workers that made the same blocks were lost again and again, or no worker is left."""


class WorkerPool:
    """Workers that are threads of this process and share samplers.

    at_once: how many jobs are worked on at a time: one on each GPU, or one by each worker
    """

    def __init__(
        self,
        samplers: Mapping[str, BlockSampler],
        executor: Executor,
        workers: int,
        at_once: int = 1,
    ) -> None:
        self.samplers, self.workers, self.at_once = samplers, workers, at_once
        self._executor = executor
        self._stop = threading.Event()

    def submit(self, job: BlockJob) -> Future[Any]:
        """Submit a job; BrokenExecutor if there is no worker."""
        sample = self.samplers[job.task_id].sample_groups
        return self._executor.submit(sample, job.numbers, self._stop.is_set, job.largest)

    def blocks(self, job: BlockJob, future: Future[Any]) -> list[AnyBlock] | None:
        """Return the blocks of a job that has ended, or None if it must be submitted again.

        BrokenExecutor: its worker was lost.  Any other error of the job is raised, too.
        """
        blocks: list[AnyBlock] | None = future.result()
        return blocks

    def stop(self) -> None:
        self._stop.set()


class Callers(WorkerPool):
    """Workers of any executor, with their own samplers, on devices of these names."""

    def __init__(
        self,
        samplers: Mapping[str, BlockSampler],
        executor: Executor,
        workers: int,
        at_once: int,
        devices: tuple[str, ...],
    ) -> None:
        super().__init__(samplers, executor, workers, at_once)
        self._gives_up: tuple[type[Exception], ...] = getattr(executor, "gives_up", ())
        run = uuid4().hex
        self._calls = {key: Call(run, sampler.spec(), devices) for key, sampler in samplers.items()}
        self._ends: dict[str, ChainEnd | None] = {
            key: call.spec.arguments.get("end") for key, call in self._calls.items()
        }
        # Jobs whose worker did not know the graph.
        self._with_bonds: set[BlockJob] = set()

    def submit(self, job: BlockJob) -> Future[Any]:
        call = self._calls[job.task_id]
        end = self._ends[job.task_id]
        call = replace(call, numbers=job.numbers, end=end, largest=job.largest)
        if job not in self._with_bonds:
            call = call.without_bonds
        return self._executor.submit(measure_blocks, call)

    def blocks(self, job: BlockJob, future: Future[Any]) -> list[AnyBlock] | None:
        """Return the blocks of a job; None if its worker did not know the graph."""
        try:
            blocks = super().blocks(job, future)
        except self._gives_up as error:
            raise WorkersLost(str(error).partition("\n")[0]) from error
        if blocks is None:
            self._with_bonds.add(job)
        elif job.follows:
            self._ends[job.task_id] = getattr(blocks[-1], "end", None)
        return blocks

    def stop(self) -> None:
        getattr(self._executor, "stop", lambda: None)()


class Work:
    """Jobs that are submitted to a pool, two for each worker at a time.

    In a task that is one long chain, a job begins when the one before has ended.  A job whose
    worker is lost is submitted again, three times in all.  until: the time, by ``time.monotonic``,
    from which no further job begins.
    """

    def __init__(self, jobs: Jobs, pool: WorkerPool, until: float = inf) -> None:
        self._waiting, self._pool, self._until = jobs, pool, until
        self._pending: dict[Future[Any], BlockJob] = {}
        self._tries: Counter[BlockJob] = Counter()

    def finished(self) -> Iterator[tuple[BlockJob, list[AnyBlock]]]:
        """Yield every job and its blocks when they are made; raise the error of a job that failed.

        WorkersLost: no worker can make a job.  A caller that does not take all of them must take
        those of :meth:`stopped`.
        """
        while True:
            raise_lost_interrupt()
            self._fill()
            if not self._pending:
                return
            for future in wait(self._pending, return_when=FIRST_COMPLETED).done:
                job = self._pending.pop(future)
                try:
                    blocks = self._pool.blocks(job, future)
                except BrokenExecutor as error:
                    self._tries[job] += 1
                    if self._tries[job] >= _TRIES:
                        raise WorkersLost(str(error)) from error
                    blocks = None
                if blocks is None:
                    self._submit(job)
                else:
                    yield job, blocks

    def stopped(self) -> Iterator[tuple[BlockJob, list[AnyBlock]]]:
        """Begin no further job, and yield the jobs that are still finished."""
        if not self._pending:
            return
        self._pool.stop()
        for future in self._pending:
            future.cancel()
        for future, job in list(self._pending.items()):
            # The error that stopped the work is raised already; a second one adds nothing.
            with suppress(Exception):
                if not future.cancelled():
                    blocks = self._pool.blocks(job, future)
                    del self._pending[future]
                    if blocks is not None:
                        yield job, blocks

    def _fill(self) -> None:
        while len(self._pending) < 2 * self._pool.workers and time.monotonic() < self._until:
            busy = {job.task_id for job in self._pending.values() if job.follows}
            job = self._waiting.without(busy)
            if job is None:
                return
            self._submit(job)

    def _submit(self, job: BlockJob) -> None:
        try:
            self._pending[self._pool.submit(job)] = job
        except BrokenExecutor as error:
            raise WorkersLost(str(error)) from error
