"""``--split lattice``: every sample of a study over all ranks of an executor.

Rank 0 is in this process: it decides what is measured, writes the file, and measures its part like
the others (:mod:`percolab.parts.ranks`).  Rows are those of whole samples, bit for bit.
"""

import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from percolab.errors import InputError
from percolab.kernels.device import Device, device_names
from percolab.parts.interface import Row
from percolab.parts.partitions import Available, Division, StudyLattices, choose_partition
from percolab.parts.ranks import AnyJob, Leader, RankStep, follow
from percolab.parts.raster import SampleKey
from percolab.parts.transport import Local, RankLost, Sockets
from percolab.run.executors import RankExecutor, check_processes, check_workers, default_workers
from percolab.run.measured import WorkersLost
from percolab.run.parts_sampler import check_labeler, make_split_lattice, most_open
from percolab.run.processes import Hooks, Processes
from percolab.run.saving import job_from_record
from percolab.tasks.settings import SPLITS
from percolab.tasks.study import Task

# Seconds that a process has to report why it ended.
_PATIENCE = 10.0


class RankGroup:
    """The ranks that measure the samples of a study together, of which rank 0 is in this process.

    executor: "threads", "processes", or a RankExecutor.  devices: one for each rank of one host;
    all ranks share the CPU.  division: how every lattice is cut for them.
    """

    def __init__(
        self, executor: str | Executor, devices: tuple[Device, ...], division: Division
    ) -> None:
        self.executor, self.devices, self.division = executor, devices, division
        self.size, self.device = division.ranks, devices[0]
        self._leader: Leader | None = None
        self._problem: Callable[[], Exception | None] = lambda: None
        self._error: Exception | None = None
        self._record: dict[str, Any] = {}

    @property
    def local_ranks(self) -> int:
        """How many of the ranks are on this host."""
        if isinstance(self.executor, RankExecutor):
            return self.executor.leader.transport.on_host
        return self.size

    @property
    def processes(self) -> int:
        """How many processes of this host the ranks are."""
        if isinstance(self.executor, RankExecutor):
            return 1 if self.executor.leader.transport.in_one_process else self.local_ranks
        return self.size if self.executor == "processes" else 1

    def record(self) -> dict[str, Any]:
        """Return the part of a run's record on its ranks; it grows as rows are measured."""
        stage = {"bytes": 0, "transport_seconds": 0.0, "waiting_seconds": 0.0, "join_seconds": 0.0}
        self._record = {
            "kind": SPLITS[0],
            "ranks": self.size,
            **dict.fromkeys(("rows", "messages", "bytes"), 0),
            **dict.fromkeys(("transport_seconds", "local_seconds", "close_seconds"), 0.0),
            "stages": [dict(stage) for _ in range(self.division.stages)],
            **self.division.split_record(),
            **{name: dict(stage) for name in self.division.extra_stages.values()},
        }
        name = getattr(self.executor, "name", self.executor)
        record = {"executor": name, "workers": self.size, "split": self._record}
        return record | self.division.run_record()

    @contextmanager
    def opened(self) -> Iterator[Executor]:
        """Open the ranks until the end of the context, and yield the thread of rank 0."""
        if isinstance(self.executor, RankExecutor):
            self._leader = self.executor.leader
            yield self.executor
            return
        is_here = self.executor == "threads" or self.size == 1
        with _threads(self) if is_here else _processes(self) as started:
            executor, self._problem = started
            self._leader = executor.leader
            with executor:
                yield executor

    def row(
        self, job: AnyJob, draw: SampleKey, left: Callable[[], bool], done: Callable[[int], None]
    ) -> Row | None:
        """Return a row; None once it is to be ``left``.  WorkersLost: a rank has ended."""
        assert self._leader is not None
        if self._error is not None:
            raise self._error
        try:
            answer = self._leader.row(job, draw, left, done)
        except Exception as error:
            # Rows that are requested before this is noticed fail in the same way.
            self._error = self._cause(error)
            if self._error is error:
                raise
            raise self._error from error
        if answer is None:
            return None
        row, steps = answer
        if self._record:
            self._keep(steps)
        return row

    def _cause(self, error: Exception) -> Exception:
        """Return the cause of the error of a row."""
        if not isinstance(error, RankLost):
            return error
        problem = self._problem()
        if problem is None or isinstance(problem, BrokenExecutor):
            return WorkersLost(str(problem or error))
        return problem

    def _keep(self, steps: Sequence[RankStep]) -> None:
        """Add the times of a row to the record: of ranks that work in parallel, the longest."""
        record, by_stage = self._record, defaultdict(list)
        for step in steps:
            by_stage[step.stage].append(step)
        record["rows"] += 1
        _add_longest(record, "local_seconds", by_stage[-1], "work")
        _add_longest(record, "close_seconds", by_stage[self.division.stages], "work")
        stages = dict(enumerate(record["stages"]))
        stages |= {n: record[name] for n, name in self.division.extra_stages.items()}
        for stage, sums in stages.items():
            own = by_stage[stage]
            sums["bytes"] += sum(step.bytes for step in own)
            for key, name in (("transport", "transport"), ("waiting", "waiting"), ("join", "work")):
                _add_longest(sums, f"{key}_seconds", own, name)
            record["messages"] += len(own) if self.size > 1 else 0
            record["bytes"] += sum(step.bytes for step in own)
        seconds = sum(sums["transport_seconds"] for sums in stages.values())
        record["transport_seconds"] = round(seconds, 6)


def _add_longest(sums: dict[str, Any], key: str, steps: Sequence[RankStep], name: str) -> None:
    by_rank: dict[int, float] = defaultdict(float)
    for step in steps:
        by_rank[step.rank] += getattr(step, name)
    sums[key] = round(sums[key] + max(by_rank.values(), default=0.0), 6)


def make_rank_group(
    tasks: Sequence[Task],
    devices: tuple[Device, ...],
    *,
    executor: str | Executor | None = None,
    workers: int | None = None,
    labeler: str | None = None,
    **options: Any,
) -> RankGroup:
    """Return the ranks that measure the samples of tasks on devices.

    options: those of partitions: slabs, and blocks and merge as text.  InputError: there are no
    ranks, too many or too few, or a task cannot be split in this way.
    """
    device, local = devices[0], None
    check_labeler(labeler, device)
    if isinstance(executor, RankExecutor):
        workers, local = executor.leader.transport.size, executor.leader.transport.on_host
    elif workers is not None:
        check_workers(workers)
    usual = len(devices) if device.is_shared else default_workers(device)
    available = Available(workers, usual, local, devices)
    try:
        lattices = StudyLattices(
            {task.size: make_split_lattice(task) for task in tasks},
            {task.size: most_open(task) for task in tasks},
        )
        partition = choose_partition(options)
        ranks = partition.count_ranks(lattices, options, available)
        executor = executor or ("processes" if len(devices) > 1 else "threads")
        check_processes(executor)
        _check_gpus(ranks, available, executor)
        return RankGroup(executor, devices, partition.divide(lattices, options, ranks, available))
    except InputError as error:
        raise InputError(f"--split lattice: {error}") from error


def _check_gpus(ranks: int, available: Available, executor: str | Executor) -> None:
    local = available.count_local(ranks) if available.device.is_shared else 0
    if local > len(available.devices):
        raise InputError(
            f"{local} ranks on one host, which has {device_names(available.devices)}; "
            "every rank needs a separate GPU"
        )
    if local and ranks > 1 and executor == "threads":
        raise InputError("threads can use only one GPU; give --executor processes")


Opened = tuple[RankExecutor, Callable[[], Exception | None]]


@contextmanager
def _threads(group: RankGroup) -> Iterator[Opened]:
    own, *others = Local.ranks(group.size)
    problems: list[Exception] = []

    def run(transport: Local) -> None:
        try:
            follow(transport, job_from_record)
        except RankLost:
            pass
        except Exception as error:
            problems.append(error)
            transport.abort(f"rank {transport.rank} has failed", 1)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in others]
    for thread in threads:
        thread.start()
    executor = RankExecutor(own, "threads")
    try:
        yield executor, lambda: problems[0] if problems else None
    finally:
        if executor.leader.is_busy:
            own.abort("rank 0 has ended", 1)
        else:
            executor.leader.end()
        for thread in threads:
            thread.join()


@contextmanager
def _processes(group: RankGroup) -> Iterator[Opened]:
    """Open ranks that are processes of this host, but for the first."""
    # Names of sockets have at most 108 bytes.
    usual = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="percolab-", dir=usual if len(usual) < 70 else "/tmp"))
    arguments = str(folder), group.size
    futures: list[Future[None]] = []

    def notice(future: Future[None]) -> None:
        if not future.cancelled() and future.exception() is not None:
            own.lost = "a rank has ended"

    def problem() -> Exception | None:
        wait(futures, _PATIENCE, return_when="FIRST_EXCEPTION")
        for error in (each.exception() for each in futures if each.done()):
            if isinstance(error, Exception) and not isinstance(error, RankLost):
                return error
        return None

    try:
        own = Sockets(0, group.size, folder)
        pool = Processes(group.size - 1, 1, Hooks(be_rank, arguments=arguments, leave=leave_folder))
        executor = RankExecutor(own, "processes")
        for _ in range(group.size - 1):
            future = pool.submit(follow_here)
            future.add_done_callback(notice)
            futures.append(future)
        try:
            yield executor, problem
        finally:
            is_clean = not executor.leader.is_busy and not own.lost
            with suppress(RankLost):
                if is_clean:
                    executor.leader.end()
            own.close()
            pool.shutdown(wait=is_clean)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_HERE: list[Sockets] = []


def be_rank(number: int, folder: str, size: int) -> None:
    """Make this process rank ``number`` + 1; rank 0 is the process of the study."""
    _HERE.append(Sockets(number + 1, size, Path(folder)))


def leave_folder() -> None:
    """Remove the folder of the ranks' sockets; rank 0 does so too, unless it was killed."""
    for own in _HERE:
        own.remove_folder()


def follow_here() -> None:
    try:
        follow(_HERE[0], job_from_record)
    finally:
        _HERE[0].close()
