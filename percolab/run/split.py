"""``--split lattice``: every sample of a study over all ranks of an executor.

Rank 0 is in this process: it says what is measured, has the rows and writes the file, and measures
layers like the others (:mod:`percolab.parts.ranks`), or a box (:mod:`percolab.parts.quad`).
Rows are those of whole samples, bit for bit, so the task and the file are the same.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import gcd, prod
from pathlib import Path
from typing import Any

import psutil

from percolab.bonds.words import GENERATORS, threshold_of
from percolab.errors import InputError
from percolab.kernels.device import Device, device_names
from percolab.kernels.memory import Memory
from percolab.parts import box_ranks
from percolab.parts.box_ranks import BoxJob
from percolab.parts.boxes import Vector, blocks_from_text
from percolab.parts.parts import Whole
from percolab.parts.quad import BUBBLES, Boxes, Merge, stages_of
from percolab.parts.ranks import (
    AnyJob,
    Job,
    Keeper,
    Leader,
    Step,
    first_layer_of,
    follow,
    layers_of_ranks,
)
from percolab.parts.raster import Draw
from percolab.parts.slabs import is_of_first, refusal
from percolab.parts.transport import Local, RankLost, Sockets, Transport
from percolab.run.checkpointed import CheckpointedSampler, RankKeeper, Saving
from percolab.run.executors import check_workers, default_workers
from percolab.run.in_slabs import (
    CPU,
    LABELERS,
    block_of,
    check_fits,
    check_labeler,
    chosen_layers,
    fits,
    most_open,
    whole_of,
)
from percolab.run.measured import WorkersLost
from percolab.run.processes import Processes
from percolab.run.sampler import Stopped
from percolab.store.checkpoints import Checkpoint, Checkpoints
from percolab.tasks.blocks import AnyBlock, Block
from percolab.tasks.settings import EXECUTORS, SPLITS
from percolab.tasks.study import Task

# The part of a GPU's free memory that a rank may take.
_SHARE = 0.9
# Ranks of one host at most: each is a thread or a process.
_MOST_RANKS = 1024
# Seconds that a process has to say why it ended.
_PATIENCE = 10.0

RankLayers = tuple[tuple[int, ...], ...]


class RankExecutor(ThreadPoolExecutor):
    """The one thread of rank 0, among ranks that are there; what Python gives as an executor.

    at_once: how many of all ranks work at a time, for which their hosts have cores; 0 if all are on
    this host
    """

    def __init__(self, transport: Transport, name: str, at_once: int = 0) -> None:
        super().__init__(1, thread_name_prefix="percolab-rank")
        self.leader, self.name, self.at_once = Leader(transport), name, at_once


def split_whole(task: Task) -> Whole:
    """Return the lattice of a task, to be split; InputError, in one line, why it cannot be."""
    try:
        return whole_of(task)
    except InputError as error:
        raise InputError(f"--split lattice: {str(error).removeprefix('slabs: ')}") from error


def split_layers(
    task: Task,
    ranks: int,
    slabs: int | str | None,
    beside: int,
    *,
    device: Device = CPU,
) -> RankLayers:
    """Return the layers of the slabs of every rank.

    slabs: of all ranks, or None or "auto", which choose them.  beside: ranks of this host.  device:
    of a rank.  InputError: it cannot be split so, or does not fit in memory.
    """
    whole, kind = split_whole(task), device.kind
    problem = refusal(whole, kind)
    if problem:
        raise InputError(
            f"--split lattice: {whole.lattice.name} cannot be labeled in slabs on {device}: "
            f"{problem}; use --device cpu"
        )
    free = Memory(psutil.virtual_memory().available)
    if device.is_shared:
        free = Memory(free.host, int(_SHARE * device.free_memory()))

    def needed(layers: RankLayers) -> Memory:
        one = Job(whole, layers, devices=(str(device),), p=most_open(task)).most_memory
        return Memory(beside * one.host, one.device)

    try:
        if slabs in (None, "auto"):
            found = chosen_layers(
                whole,
                kind,
                lambda thick: layers_of_ranks(whole, ranks, thick=thick),
                lambda layers: fits(needed(layers), free),
            )
        else:
            found = layers_of_ranks(whole, ranks, int(slabs or 0))
    except InputError as error:
        raise InputError(f"--split lattice: L = {task.size} over {ranks} ranks: {error}") from error
    where = f"--split lattice: L = {task.size} over {ranks} ranks in {sum(map(len, found))} slabs"
    check_fits(where, needed(found), free, device, f" for {beside} of them")
    return found


@dataclass(frozen=True)
class BoxesWanted:
    """How samples are cut into boxes: along each axis so many, and how these are merged."""

    counts: Vector
    merge: Merge

    @property
    def num_boxes(self) -> int:
        """Boxes in all."""
        return prod(self.counts)

    def __str__(self) -> str:
        return "x".join(map(str, self.counts))


@dataclass(frozen=True)
class KeptJob(Job):
    """A job whose ranks keep checkpoints.

    kept: the path of the results file, the task's id, and the samples of a block
    """

    kept: tuple[str, str, int] = ("", "", 1)

    def keeper(self, rank: int) -> Keeper:
        """Return what keeps the fronts of a rank."""
        path, task_id, block_size = self.kept
        own = rank, self.layers[rank], first_layer_of(self.layers, rank)
        return RankKeeper(Checkpoints(Path(path)), task_id, block_size, *own)

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it, for the other ranks."""
        return super().record() | {"kept": self.kept}


def job_of_record(record: dict[str, Any]) -> AnyJob:
    """Return the job of a record: of boxes, or of layers with checkpoints or without."""
    job = box_ranks.job_of_record(record)
    if not isinstance(job, Job) or "kept" not in record:
        return job
    return KeptJob(**vars(job), kept=tuple(record["kept"]))


class Team:
    """The ranks that measure the samples of a study, of which rank 0 is in this process.

    executor: "threads", "processes", or a RankExecutor
    devices:  of ranks of one host, one each; the CPU is for all
    layers:   of the slabs of every rank, by the size of the lattice
    boxes:    in place of slabs, one for every rank, or all for one
    """

    def __init__(
        self,
        executor: str | Executor,
        ranks: int,
        devices: tuple[Device, ...],
        layers: Mapping[int, RankLayers],
        *,
        boxes: BoxesWanted | None = None,
    ) -> None:
        self.executor, self.size, self.layers = executor, ranks, layers
        self.devices, self.boxes = devices, boxes
        self._leader: Leader | None = None
        self._problem: Callable[[], Exception | None] = lambda: None
        self._error: Exception | None = None
        self._record: dict[str, Any] = {}
        self.stages = (ranks - 1).bit_length() if boxes is None else len(stages_of(boxes.counts))

    @property
    def beside(self) -> int:
        """How many of the ranks are on this host."""
        if isinstance(self.executor, RankExecutor):
            return self.executor.leader.transport.beside
        return self.size

    @property
    def pythons(self) -> int:
        """How many processes of this host the ranks are."""
        if isinstance(self.executor, RankExecutor):
            return 1 if self.executor.leader.transport.in_one_process else self.beside
        return self.size if self.executor == "processes" else 1

    def parts(self, task: Task) -> int:
        """Return how many layers, or boxes, rank 0 measures of a sample."""
        if self.boxes is None:
            return sum(self.layers[task.size][0])
        return 1 if self.size > 1 else self.boxes.num_boxes

    def job(self, task: Task, *, tally: bool, checkpoints: Checkpoints | None = None) -> AnyJob:
        """Return what the ranks measure samples of, of a task.

        checkpoints: in which ranks that have layers keep what they are at; None for none
        """
        whole = split_whole(task)
        if self.boxes is not None:
            return BoxJob(whole, self.boxes.counts, self.boxes.merge, self.size, tally)
        devices = tuple(map(str, self.devices))
        job = Job(whole, self.layers[task.size], tally, devices, most_open(task))
        if checkpoints is None:
            return job
        return KeptJob(**vars(job), kept=(str(checkpoints.path), task.id, task.block_size))

    def record(self) -> dict[str, Any]:
        """Return what a run's record says of its ranks; it grows as rows are measured."""
        stage = {"bytes": 0, "transport_seconds": 0.0, "waiting_seconds": 0.0, "join_seconds": 0.0}
        self._record = {
            "kind": SPLITS[0],
            "ranks": self.size,
            "rows": 0,
            "messages": 0,
            "bytes": 0,
            "transport_seconds": 0.0,
            "local_seconds": 0.0,
            "close_seconds": 0.0,
            "stages": [dict(stage) for _ in range(self.stages)],
        }
        name = getattr(self.executor, "name", self.executor)
        told = {"executor": name, "workers": self.size, "split": self._record}
        if self.boxes is None:
            slabs = {str(size): sum(map(len, layers)) for size, layers in self.layers.items()}
            return told | {"slabs": slabs}
        self._record |= {"blocks": str(self.boxes), "merge": str(self.boxes.merge)}
        if self.boxes.merge.bubbles:
            self._record["bubbles"] = dict(stage)
        return told

    @contextmanager
    def opened(self) -> Iterator[Executor]:
        """Open the ranks until the end of the context, and yield the thread of rank 0."""
        if isinstance(self.executor, RankExecutor):
            self._leader = self.executor.leader
            yield self.executor
            return
        is_here = self.executor == "threads" or self.size == 1
        with _threads(self) if is_here else _processes(self) as found:
            executor, self._problem = found
            self._leader = executor.leader
            with executor:
                yield executor

    def row(
        self,
        task: Task,
        draw: Draw,
        tally: bool,
        left: Callable[[], bool],
        done: Callable[[int], None],
        checkpoints: Checkpoints | None = None,
    ) -> Any:
        """Return the row of a sample, or None if it is to be left.

        checkpoints: as for :meth:`job`.  InputError: what a rank cannot do.  WorkersLost: one has
        ended.
        """
        assert self._leader is not None
        if self._error is not None:
            raise self._error
        if self.boxes is not None and left():
            return None
        job = self.job(task, tally=tally, checkpoints=checkpoints)
        try:
            found = self._leader.row(job, draw, left, done)
        except Exception as error:
            # So does every row that is asked for before it is seen.
            self._error = self._told(error)
            if self._error is error:
                raise
            raise self._error from error
        if found is None:
            return None
        row, steps = found
        self._keep(steps)
        return row

    def _told(self, error: Exception) -> Exception:
        """Return what is behind the error of a row."""
        if not isinstance(error, RankLost):
            return error
        problem = self._problem()
        if problem is None or isinstance(problem, BrokenExecutor):
            return WorkersLost(str(problem or error))
        return problem

    def _keep(self, steps: Sequence[Step]) -> None:
        """Add the times of a row to the record: of ranks side by side, the longest."""
        record, by_stage = self._record, defaultdict(list)
        if not record:
            return
        for step in steps:
            by_stage[step.stage].append(step)
        record["rows"] += 1
        record["local_seconds"] = _plus(record["local_seconds"], by_stage[-1])
        record["close_seconds"] = _plus(record["close_seconds"], by_stage[self.stages])
        stages = dict(enumerate(record["stages"]))
        if "bubbles" in record:
            stages[BUBBLES] = record["bubbles"]
        for stage, told in stages.items():
            own = by_stage[stage]
            told["bytes"] += sum(step.bytes for step in own)
            told["transport_seconds"] = _plus(told["transport_seconds"], own, "transport")
            told["waiting_seconds"] = _plus(told["waiting_seconds"], own, "waiting")
            told["join_seconds"] = _plus(told["join_seconds"], own)
            record["messages"] += len(own) if self.size > 1 else 0
            record["bytes"] += sum(step.bytes for step in own)
        seconds = sum(told["transport_seconds"] for told in stages.values())
        record["transport_seconds"] = round(seconds, 6)


def _plus(seconds: float, steps: Sequence[Step], name: str = "work") -> float:
    """Return seconds with those of the rank that had most."""
    by_rank: dict[int, float] = defaultdict(float)
    for step in steps:
        by_rank[step.rank] += getattr(step, name)
    return round(seconds + max(by_rank.values(), default=0.0), 6)


def check_split_executor(executor: str | Executor | None) -> None:
    """Raise InputError unless the workers of an executor can be ranks."""
    if executor not in (None, *EXECUTORS) and not isinstance(executor, RankExecutor):
        name = "Dask" if isinstance(executor, str) else "this executor"
        raise InputError(
            f"--split lattice: the workers of {name} do not send to each other, as ranks do; take "
            "threads, processes or mpi"
        )


def team_of(
    tasks: Sequence[Task],
    devices: tuple[Device, ...],
    *,
    executor: str | Executor | None = None,
    workers: int | None = None,
    slabs: int | str | None = None,
    labeler: str | None = None,
    blocks: str | None = None,
    merge: str | None = None,
) -> Team:
    """Return the ranks that measure the samples of tasks on devices, as a user asked for them.

    blocks, merge: as text, where samples are cut into boxes.  InputError, in one line: no ranks are
    there or they cannot send to each other, there are more than layers or GPUs, or not as many as
    boxes, or a task cannot be split so or does not fit in memory.
    """
    check_split_executor(executor)
    wholes = [split_whole(task) for task in tasks]
    device = devices[0]
    check_labeler(labeler, device)
    try:
        way = Merge.parse("tree" if merge is None else merge)
        if blocks is not None or way != Merge():
            counts = None if blocks is None else blocks_from_text(blocks)
            return _box_team(tasks, device, executor, workers, slabs, counts, way)
    except InputError as error:
        raise InputError(f"--split lattice: {error}") from error
    if executor is None:
        executor = "processes" if len(devices) > 1 else "threads"
    if isinstance(executor, RankExecutor):
        transport = executor.leader.transport
        ranks, beside = transport.size, transport.beside
    else:
        if workers is not None:
            check_workers(workers)
        most = min(whole.num_layers // max(whole.reach, 1) for whole in wholes)
        usual = len(devices) if device.is_shared else default_workers(device)
        ranks = beside = min(usual, max(most, 1)) if workers is None else workers
        if ranks <= most:
            _check_ranks(ranks, "--split lattice: ")
    if device.is_shared and beside > len(devices):
        raise InputError(
            f"--split lattice: {beside} ranks on one host, which has {device_names(devices)}; "
            "every rank needs a GPU of its own"
        )
    if device.is_shared and ranks > 1 and executor == "threads":
        raise InputError("--split lattice: threads drive one GPU; take --executor processes")
    layers: dict[int, RankLayers] = {}
    for task in tasks:
        layers[task.size] = split_layers(task, ranks, slabs, beside, device=device)
    return Team(executor, ranks, devices, layers)


def _check_ranks(ranks: int, begin: str = "") -> None:
    """Raise InputError, which begins so, if there are more ranks than one host is to have."""
    if ranks > _MOST_RANKS:
        raise InputError(
            f"{begin}{ranks} ranks on one host, but at most {_MOST_RANKS}; --workers 1 measures "
            "all in one"
        )


def _box_team(
    tasks: Sequence[Task],
    device: Device,
    executor: str | Executor | None,
    workers: int | None,
    slabs: int | str | None,
    counts: Vector | None,
    merge: Merge,
) -> Team:
    """Return ranks with a box each, or one with all; InputError as :func:`team_of`.

    counts: boxes along each axis; None for as many along the last axis as there are ranks.
    """
    asked = "blocks" if counts is not None else f"merge {merge}"
    if device.is_shared:
        raise InputError(f"{asked}: boxes are labeled on the CPU alone; use --device cpu")
    if slabs is not None:
        raise InputError(f"{asked}: a box is measured as a whole; leave out --slabs")
    if workers is not None and not isinstance(executor, RankExecutor):
        check_workers(workers)
    wholes = [split_whole(task) for task in tasks]
    beside = 0
    if isinstance(executor, RankExecutor):
        workers, beside = executor.leader.transport.size, executor.leader.transport.beside
    if counts is None:
        ranks = _slabs_for(wholes, merge, device) if workers is None else workers
        for whole in wholes:
            if ranks > whole.num_layers:
                raise InputError(f"{ranks} ranks, but there are {whole.num_layers} layers")
        counts = (*(1,) * (len(wholes[0].shape) - 1), ranks)
    boxes = BoxesWanted(counts, merge)
    ranks = boxes.num_boxes if workers is None else workers
    if ranks not in (1, boxes.num_boxes):
        raise InputError(
            f"{ranks} ranks, but blocks {boxes} are {boxes.num_boxes} boxes: each rank has one, or "
            "one has all"
        )
    if not isinstance(executor, RankExecutor):
        _check_ranks(ranks)
    beside = beside or ranks
    free = psutil.virtual_memory().available
    for task, whole in zip(tasks, wholes):
        needed = beside * _box_job(task, whole, boxes, ranks).most_memory.host
        if needed > free:
            raise InputError(
                f"L = {task.size} in blocks {boxes} needs {needed / 1e9:.1f} GB of memory for "
                f"{beside} of {ranks} ranks; {free / 1e9:.1f} GB are free"
            )
    return Team(executor or "threads", ranks, (device,), {}, boxes=boxes)


def _box_job(task: Task, whole: Whole, boxes: BoxesWanted, ranks: int) -> BoxJob:
    """Return what ranks measure of a task; InputError, with its size, if it cannot be cut so."""
    try:
        return BoxJob(whole, boxes.counts, boxes.merge, ranks)
    except InputError as error:
        raise InputError(f"L = {task.size}: {error}") from error


def _slabs_for(wholes: Sequence[Whole], merge: Merge, device: Device) -> int:
    """Return how many boxes along the last axis there are where nobody says it.

    As many as there are processors, or fewer, so that they can be merged and divide all lattices.
    """
    layers = gcd(*(whole.num_layers for whole in wholes))
    reach = max(whole.reach for whole in wholes)
    for ranks in range(default_workers(device), 1, -1):
        is_power = not ranks & (ranks - 1)
        thick = min(whole.num_layers for whole in wholes) // ranks
        if layers % ranks == 0 and thick >= reach and (is_power or merge.kind == "tree"):
            return ranks
    return 1


def warm_up_boxes(task: Task, boxes: BoxesWanted) -> None:
    """Call once what samples in boxes call, for a small task."""
    whole = split_whole(task)
    draw = Draw(GENERATORS[task.rng], task.stream_seed, 0, threshold_of(0.5))
    for counts in (tuple(min(count, 2) for count in boxes.counts), (1,) * len(boxes.counts)):
        with suppress(InputError):
            Boxes(whole, counts, boxes.merge).row(draw)
            return


Opened = tuple[RankExecutor, Callable[[], Exception | None]]


@contextmanager
def _threads(team: Team) -> Iterator[Opened]:
    """Open ranks that are threads of this process."""
    own, *others = Local.ranks(team.size)
    problems: list[Exception] = []

    def run(transport: Local) -> None:
        try:
            follow(transport, job_of_record)
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
def _processes(team: Team) -> Iterator[Opened]:
    """Open ranks that are processes of this host, but for the first."""
    # Names of sockets have 108 bytes.
    usual = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="percolab-", dir=usual if len(usual) < 70 else "/tmp"))
    arguments = str(folder), team.size
    futures: list[Future[None]] = []

    def notice(future: Future[None]) -> None:
        if not future.cancelled() and future.exception() is not None:
            own.lost = "a rank has ended"

    def problem() -> Exception | None:
        wait(futures, _PATIENCE, return_when="FIRST_EXCEPTION")
        found = [item.exception() for item in futures if item.done()]
        first = [
            error
            for error in found
            if isinstance(error, Exception) and not isinstance(error, RankLost)
        ]
        return first[0] if first else None

    try:
        own = Sockets(0, team.size, folder)
        pool = Processes(
            team.size - 1, begin=be_rank, arguments=arguments, halt=_nothing, leave=leave_folder
        )
        executor = RankExecutor(own, "processes")
        for _ in range(team.size - 1):
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


def _nothing() -> None:
    """Leave a rank at what it does: rank 0 tells it what to leave."""


_HERE: list[Sockets] = []


def be_rank(number: int, folder: str, size: int) -> None:
    """Make this process a rank, the one after ``number`` others."""
    _HERE.append(Sockets(number + 1, size, Path(folder)))


def leave_folder() -> None:
    """Remove what ranks met in: rank 0 does so too, if it was not killed."""
    for own in _HERE:
        own.remove_folder()


def follow_here() -> None:
    """Follow rank 0 to the end."""
    try:
        follow(_HERE[0], job_of_record)
    finally:
        _HERE[0].close()


class SplitSampler(CheckpointedSampler):
    """Measures blocks of one task by all ranks, sample after sample.

    report: is told of sites that were labeled, as rank 0 gets on with its own.
    """

    def __init__(self, task: Task, team: Team, report: Callable[[int], None] | None = None) -> None:
        device = team.devices[0]
        super().__init__(task, labeler=LABELERS[device.kind], device=device)
        self.whole = split_whole(task)
        self._team, self._report = team, report

    def goes_on_from(self, held: Checkpoint, rows: int) -> bool:
        """Return whether the front of a checkpoint is of one rank's first slabs, of the next row.

        That of a block has rows alone.
        """
        if held.rank_row is None or held.front is None:
            return held.rank_row is None and held.front is None
        rank, *row = held.rank_row
        left = self.items(held.number)[rows:]
        if self._team.boxes is not None or rank >= self._team.size or tuple(row) not in left[:1]:
            return False
        layers = self._team.layers[self.task.size]
        return is_of_first(held.front, layers[rank], first_layer_of(layers, rank))

    def _blocks(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        return [self._block(number, stopped or (lambda: False)) for number in numbers]

    def _block(self, number: int, stopped: Callable[[], bool]) -> Block:
        task, held, saving = self.task, self.held(number), Saving(self.checkpoints)
        rows = [] if held is None else list(held.rows)

        def save() -> None:
            saving.begin(lambda: Checkpoint(task.id, number, tuple(rows), None))
            saving.finish()

        for sample, threshold in self.items(number)[len(rows) :]:
            draw = Draw(GENERATORS[task.rng], task.stream_seed, sample, threshold)
            given = stopped, self._progress(), self.checkpoints
            row = self._team.row(task, draw, self._tallied, *given)
            if row is None:
                if rows:
                    save()
                raise Stopped
            rows.append(row)
            if saving.is_due:
                # Before ranks replace what they have kept of this row, a minute from now.
                save()
        return block_of(task, number, rows)

    def _progress(self) -> Callable[[int], None]:
        """Return what is told of the layers or boxes of rank 0 that are done, for one row."""
        mine, points, told = self._team.parts(self.task), self.task.num_points, 0
        parts = 0

        def done(more: int) -> None:
            nonlocal parts, told
            parts += more
            now = points * parts // mine
            if self._report is not None:
                self._report(now - told)
            told = now

        return done
