"""Results: the contents of a file, and how they are read and written: every save is a new file.

A file (:mod:`percolab.store.hdf5_format`) is built in memory, written next to its target, flushed
and renamed over it, so that at any moment there is a whole file.  A lock file keeps a second writer
out.  What is read is compared with its checksums, and with what its runs say that they made: a file
that lost something is refused, not continued.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from percolab.errors import InputError, one_line, unreadable
from percolab.lattices.shown import counted
from percolab.measure.columns import Column
from percolab.store.hdf5_format import FORMAT, check_shapes, decode_contents, encode_contents
from percolab.store.interrupts import delay_interrupts
from percolab.store.output_files import check_place, replace_file, write_rescued
from percolab.store.provenance import check_run
from percolab.store.reading import DAMAGE, read_file
from percolab.store.task_result import TaskResult, columns_in
from percolab.store.tree import Node, encode_tree
from percolab.tasks.study import Study, Task
from percolab.tasks.values import take_path

_LOGGER = logging.getLogger("percolab")


@dataclass(eq=False, repr=False)
class StoredResults:
    """The contents of a results file: the study, its tasks' blocks, and the runs that made them.

    >>> from percolab.lattices.lattice import load_lattice
    >>> StoredResults(Study(load_lattice("square"), (8, 16), ("open", "open"), p=(0.5,)))
    <Results of square, L = 8, 16: no samples>
    """

    study: Study
    tasks: dict[str, TaskResult] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        sizes, contents = ", ".join(map(str, self.sizes)), "no samples"
        if samples := sum(result.num_samples for result in self.tasks.values()):
            contents = f"{samples} samples in {counted(len(self.tasks), 'task')}"
        return f"<Results of {self.study.structure.name}, L = {sizes}: {contents}>"

    @property
    def sizes(self) -> list[int]:
        """All L, ascending: those of the study, and of merged studies."""
        return sorted({*self.study.sizes, *(each.task.size for each in self.tasks.values())})

    @property
    def seeds(self) -> list[int]:
        """All seeds, ascending, of the study and of merged studies."""
        return sorted({self.study.seed, *(each.task.seed for each in self.tasks.values())})

    def add_task(self, task: Task) -> TaskResult:
        """Return the result of a task; a new one leaves out the columns that others lack."""
        if task.id not in self.tasks:
            without = self.lacking()
            own = [c for c in task.columns if c.name not in without]
            self.tasks[task.id] = TaskResult(task, columns=tuple(own))
        return self.tasks[task.id]

    @property
    def own_tasks(self) -> list[Task]:
        """The study's own tasks, without those of merged files."""
        own = self.study.seed, self.study.rng, self.study.method, self.study.measure
        tasks = [each.task for each in self.tasks.values() if each.task.size in self.study.sizes]
        return [task for task in tasks if (task.seed, task.rng, task.method, task.measure) == own]

    def columns(self) -> tuple[Column, ...]:
        """Return the columns that any task of sums has, this version's own first."""
        return columns_in(self.tasks.values())

    def lacking(self) -> list[str]:
        """Return the names of columns that this version measures and a task here lacks."""
        return list(dict.fromkeys(n for result in self.tasks.values() for n in result.lacking()))

    @property
    def measured(self) -> list[TaskResult]:
        """The tasks that have blocks."""
        return [result for result in self.tasks.values() if result.blocks]

    def of_size(self, size: int) -> list[TaskResult]:
        return [result for result in self.tasks.values() if result.task.size == size]


class ResultsWriter:
    """The only writer of a results file, as a context manager.

    InputError: the path is a directory, is not writable, is being written by another process, or
    holds something else than percolab results.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_place(self.path)
        # A link stays a link, and a file has one lock whatever name it is reached by.
        self._target = Path(os.path.realpath(path))
        self._check_links()
        self._lock = FileLock(self._target.with_name(f".{self._target.name}.lock"))
        self._seen = _identity(self._target)
        self._rescued: tuple[Path | None, tuple[int, int, int] | None] = None, None

    def _check_links(self) -> None:
        if self._target.exists() and self._target.stat().st_nlink > 1:
            raise InputError(
                f"{self.path}: has a second name (a hard link), which would keep the old contents; "
                "copy the file, or remove the other name"
            )

    def __enter__(self) -> ResultsWriter:
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise InputError(
                f"{self.path}: another process is writing this file; wait for it to end"
            ) from error
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._seen = _identity(self._target)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._target.exists():
            # Nothing was stored, so nothing is left.
            Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()

    def load(self) -> StoredResults | None:
        return read_results(self.path) if self.path.exists() else None

    def save(self, results: StoredResults) -> None:
        """Replace the file by a complete new one; InputError, and the old one stays, if that fails.

        Ctrl-C and SIGTERM are handled after it, so that the file is known to be this writer's.
        A file that another program put there since, or that was made read-only or got a second
        name, is left as it is, and the results are written next to it, under a new name.
        ValueError: blocks that the runs made are missing, so that no reader would take the file.
        """
        with delay_interrupts():
            _check_complete(results)
            content = encode(results)
            reason = self._reason_to_leave()
            if reason:
                raise InputError(f"{reason}; the results are in {self._write_rescued(content)}")
            replace_file(self._target, content, name=self.path)
            _LOGGER.debug("saved %s: %d bytes", self.path, len(content))
            self._seen = _identity(self._target)

    def _write_rescued(self, content: bytes) -> Path:
        """Write results to a new name, and later ones of this run in their place."""
        path, seen = self._rescued
        if path is not None and _identity(path) == seen:
            replace_file(path, content)
        else:
            path = write_rescued(self._target, content)
        self._rescued = path, _identity(path)
        return path

    def _reason_to_leave(self) -> str:
        if _identity(self._target) not in (None, self._seen):
            return f"{self.path}: another program has written this file, which is not replaced"
        try:
            check_place(self.path)
            self._check_links()
            return ""
        except InputError as error:
            return str(error)


def _identity(path: Path) -> tuple[int, int, int] | None:
    # Not the time, which some networks' file systems change after a file was written.
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size


def encode(results: StoredResults) -> bytes:
    """Return the HDF5 file of results; equal results give equal bytes."""
    return encode_tree(encode_contents(results.study, results.tasks, results.runs))


def take_results(given: Any) -> StoredResults:
    """Return results, those in a file of this name, or the ``results`` of an object; InputError."""
    if isinstance(given, str | Path):
        return read_results(take_path("results", given))
    results = getattr(given, "results", given)
    if not isinstance(results, StoredResults):
        allowed = "what a sweep returns, or the name of a file (a table: percolab.open_table)"
        raise InputError(f"results: {type(given).__name__} given, but they are {allowed}")
    return results


def read_results(path: str | Path) -> StoredResults:
    """Return the results in a file; InputError if it cannot be read or is not such a file."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory, not a results file")
    try:
        return _decode(read_file(path, FORMAT, partial(check_shapes, path=path)), path)
    except InputError as error:
        if str(path) in str(error) and "\n" not in str(error):
            raise
        raise InputError(f"{path}: {one_line(error)}") from error
    except (FileNotFoundError, PermissionError) as error:
        raise unreadable(path, error) from error
    except (OSError, RuntimeError) as error:
        reason = "is not a readable HDF5 file (truncated, or another format)"
        if path.suffix.lower() not in (".h5", ".hdf5"):
            reason = "is no results file of percolab, which ends in .h5 or .hdf5; for tables "
            reason += "(.csv, .tsv, .txt, .dat) use percolab fit or plot, or percolab.open_table"
        raise InputError(f"{path}: {reason}") from error
    except DAMAGE as error:
        raise InputError(f"{path}: is damaged or not a percolab file: {one_line(error)}") from error


def _decode(root: Node, path: Path) -> StoredResults:
    results = StoredResults(*decode_contents(root, path))
    for run in results.runs:
        check_run(run)
    _check_complete(results)
    _check_own_tasks(results)
    return results


def _check_complete(results: StoredResults) -> None:
    """Raise ValueError if there are fewer blocks of a task than the runs have made."""
    made: Counter[str] = Counter()
    for run in results.runs:
        made.update(run["blocks"])
    for key, count in made.items():
        there = results.tasks[key].num_blocks if key in results.tasks else 0
        if there < count:
            raise ValueError(
                f"task {key}: its runs made {count} blocks, but the file has {there}; it is "
                "neither read nor overwritten"
            )


def _check_own_tasks(results: StoredResults) -> None:
    """Raise ValueError if a size of the study has no task, where there are any."""
    study = results.study
    for size in study.sizes if results.tasks else ():
        tasks = (result.task for result in results.of_size(size))
        known = {(task.seed, task.rng, task.model) for task in tasks}
        if (study.seed, study.rng, study.model) not in known:
            raise ValueError(
                f"it has no task for L = {size}, seed {study.seed}, {study.rng}, {study.model} of "
                "its study"
            )
