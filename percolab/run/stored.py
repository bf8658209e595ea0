"""Results of measured blocks: collected as they come, saved from time to time and at any end.

The results that a run begins with stay as they are; it returns new ones.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any

from percolab.run import measured
from percolab.run.measured import BlockJob, Work, WorkerPool, WorkersLost
from percolab.run.request import Observer
from percolab.store.interrupts import choose_exit_code
from percolab.store.results import ResultsWriter, StoredResults
from percolab.tasks.blocks import AnyBlock
from percolab.tasks.part import WHOLE, JobPart

# Seconds between saves, and how many times longer than the last save the pause must be.
_SAVE_EVERY = 5.0
_SAVE_SHARE = 20.0
# The exit code of a shell for a process that was killed.
_LOST = 137


class Interrupted(Exception):
    """Ctrl-C, SIGTERM, or workers that were lost ended a run; finished blocks are in the results.

    stored: whether it was saved as well.  exit_code: that of a shell for this event, which
    ``reason`` describes in words.
    """

    def __init__(self, *, stored: bool, exit_code: int, reason: str = "interrupted") -> None:
        super().__init__(f"{reason}, finished blocks {'' if stored else 'not '}saved")
        self.stored, self.exit_code, self.reason = stored, exit_code, reason


class Saver:
    """Saves results: every few seconds, less often if saving takes long, and at the end of a run.

    writer: of the file; None saves nothing.  every_run: whether the end of each run is saved; of
    many short ones it is not.  saved: is called with results that were saved.
    """

    def __init__(
        self,
        writer: ResultsWriter | None,
        *,
        every_run: bool = True,
        saved: Callable[[StoredResults], None] | None = None,
    ) -> None:
        self._writer, self._every_run, self._saved = writer, every_run, saved
        self._unsaved: StoredResults | None = None
        self._next = time.monotonic() + _SAVE_EVERY

    def save(self, results: StoredResults) -> None:
        if self._writer is not None:
            self._writer.save(results)
            if self._saved is not None:
                self._saved(results)
        self._unsaved = None

    def take(self, results: StoredResults) -> None:
        """Take results that have grown, and save them if it is time to."""
        self._unsaved = results
        start = time.monotonic()
        if start < self._next:
            return
        self.save(results)
        end = time.monotonic()
        self._next = end + max(_SAVE_EVERY, _SAVE_SHARE * (end - start))

    def end_run(self, results: StoredResults, *, complete: bool) -> None:
        """Save what a run made; if it is complete and one of many, only when it is time to.

        A KeyboardInterrupt during the save repeats the save; a second one gives it up.
        """
        if complete and not self._every_run:
            return
        self._unsaved = results
        try:
            self.save(results)
        except KeyboardInterrupt:
            self.save(results)
            raise

    def end(self) -> None:
        """Save what was left unsaved at the ends of short runs."""
        if self._unsaved is not None and not self._every_run:
            self.save(self._unsaved)

    @property
    def all_saved(self) -> bool:
        """Whether all that was taken is saved; without a file nothing is."""
        return self._unsaved is None and self._writer is not None


def saving_seconds(sampling: float, one: float) -> float:
    between = max(_SAVE_EVERY, _SAVE_SHARE * one / 2)
    return one + one / 2 * sampling / between


class _Run:
    """Results that grow by what one run makes, with its record among those of all runs."""

    def __init__(self, results: StoredResults, record: dict[str, Any], observer: Observer) -> None:
        self._record, self._observer = record, observer
        self._begin = time.perf_counter()
        of = results.tasks
        tasks = {key: replace(of[key], blocks=dict(of[key].blocks)) for key in of}
        self.results = StoredResults(results.study, tasks, [*results.runs, record])

    def keep(self, job: BlockJob, blocks: list[AnyBlock]) -> None:
        result, made = self.results.tasks[job.task_id], self._record["blocks"]
        result.add(blocks)
        made[job.task_id] = made.get(job.task_id, 0) + len(job.numbers)
        self._record["seconds"] = round(time.perf_counter() - self._begin, 3)
        self._observer.advanced(self.results, result, blocks)


def with_blocks(
    results: StoredResults,
    blocks: Mapping[str, int],
    record: dict[str, Any],
    pool: WorkerPool,
    saver: Saver,
    observer: Observer,
    part: JobPart = WHOLE,
    until: float = inf,
) -> StoredResults:
    """Return results with the first ``blocks`` of tasks, and the record of the run that made them.

    If the results have the blocks, they are returned as they are.  part: the blocks that are made
    here.  until: the time, by ``time.monotonic``, from which no further blocks are begun.
    Interrupted on KeyboardInterrupt, and if workers are lost, after the finished blocks were saved;
    any other error is raised after that, too.
    """
    total, left = measured.sites_to_label(results, blocks, part)
    if not left:
        return results
    run = _Run(results, record, observer)
    observer.started(total, total - left)
    try:
        at_once = pool.at_once
        jobs = measured.missing_jobs(results, blocks, pool.samplers, part, at_once=at_once)
        _keep_all(run, Work(jobs, pool, until), saver)
    finally:
        observer.finished()
    return run.results


def _keep_all(run: _Run, work: Work, saver: Saver) -> None:
    complete = False
    try:
        try:
            for job, blocks in work.finished():
                run.keep(job, blocks)
                saver.take(run.results)
            complete = True
        finally:
            try:
                for job, blocks in work.stopped():
                    # A second error must not keep the run from being saved.
                    with suppress(Exception):
                        run.keep(job, blocks)
            finally:
                saver.end_run(run.results, complete=complete)
    except KeyboardInterrupt as error:
        raise Interrupted(stored=saver.all_saved, exit_code=choose_exit_code(error)) from None
    except WorkersLost as error:
        reason = f"workers were lost, the last one: {error}"
        raise Interrupted(stored=saver.all_saved, exit_code=_LOST, reason=reason) from error
