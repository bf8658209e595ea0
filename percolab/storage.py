"""Results in HDF5: one writer, every save a complete new file put in place of the old one.

The layout is documented in docs/hdf5-format.md.  A file is built in memory, written beside its
target, flushed to the disk and renamed over it, so that at any moment there is a whole file, old
or new.  A lock file keeps a second writer out.  Datasets depend on the study alone; who made them
when is kept in attributes.
"""

from __future__ import annotations

import io
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
from filelock import FileLock, Timeout

from percolab.hdf5_guard import check_links
from percolab.lattice import Lattice, lattice_from_text
from percolab.stored_tasks import TaskResult, decode_task, encode_task
from percolab.structure import Structure, record_of, structure_of
from percolab.study import Study, Task
from percolab.toml_input import InputError

FORMAT = "percolab results"
#: What is written, and what can be read: version 1 knew no method but the grid of p.
SCHEMA_VERSION, _READABLE = 2, (1, 2, 3, 4)
#: Written where something else than a lattice was sampled, which version 2 does not know, and where
#: more was measured than the observables, which version 3 does not know.
_STRUCTURE_VERSION, _EXTRAS_VERSION = 3, 4


@dataclass(eq=False)
class Results:
    """What a results file holds: the study, its tasks' blocks, and the runs that made them."""

    study: Study
    tasks: dict[str, TaskResult] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def add_task(self, task: Task) -> TaskResult:
        """Return the result of a task, an empty one if it is new."""
        return self.tasks.setdefault(task.id, TaskResult(task))

    def of_size(self, size: int) -> list[TaskResult]:
        """Return the results of one linear size."""
        return [item for item in self.tasks.values() if item.task.size == size]


class ResultsWriter:
    """The only writer of a results file, as a context manager.

    InputError: the path is a directory, is not writable, is being written by another process, or
    holds something else than percolab results.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        _check_target(self.path)
        # A link stays a link, and a file has one lock whatever name it is reached by.
        self._target = Path(os.path.realpath(path))
        self._lock = FileLock(self._target.with_name(f".{self._target.name}.lock"))

    def __enter__(self) -> ResultsWriter:
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise InputError(
                f"{self.path}: another process is writing this file; wait for it to end"
            ) from error
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror}") from error
        return self

    def __exit__(self, *_: object) -> None:
        if not self._target.exists():
            # Nothing was stored, so nothing is left.
            Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()

    def load(self) -> Results | None:
        """Return what the file holds, or None if there is no file yet."""
        return read_results(self.path) if self.path.exists() else None

    def save(self, results: Results) -> None:
        """Put a complete new file in place; InputError, and the old file stays, if that fails."""
        replace_file(self._target, encode(results), name=self.path)


def replace_file(path: Path, content: bytes, *, name: Path | None = None) -> None:
    """Put a complete file in place of an old one; InputError, and the old one stays, if that fails.

    ``name`` is what the error calls the file.  Only one process at a time may replace a file.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        # One that was killed may have left its own; and a link put there must not be followed.
        temporary.unlink(missing_ok=True)
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{name or path}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _check_target(path: Path) -> None:
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give the name of a file")
    if not folder.is_dir():
        raise InputError(f"{path}: the directory {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path}: the directory {folder} is not writable")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a regular file")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path}: is not writable")


def encode(results: Results) -> bytes:
    """Return the HDF5 file of results; equal results give equal bytes."""
    buffer = io.BytesIO()
    # Attributes above 64 KB, as many runs make, need the format of HDF5 1.8.
    with h5py.File(buffer, "w", libver=("v108", "v108")) as file:
        file.attrs["format"] = FORMAT
        lattice = results.study.lattice
        file.attrs["study"] = json.dumps(results.study.description())
        if isinstance(lattice, Lattice):
            file.attrs["schema_version"] = SCHEMA_VERSION
            file.attrs["lattice"] = lattice.source
        else:
            file.attrs["schema_version"] = _STRUCTURE_VERSION
            file.attrs["structure"] = json.dumps(record_of(lattice))
        if any(item.task.measure for item in results.tasks.values()) or results.study.measure:
            file.attrs["schema_version"] = _EXTRAS_VERSION
        file.attrs["runs"] = [json.dumps(run) for run in results.runs]
        for key in sorted(results.tasks):
            encode_task(file.create_group(f"tasks/{key}"), results.tasks[key])
    return buffer.getvalue()


def read_results(path: str | Path) -> Results:
    """Return the results in a file; InputError if it cannot be read or is not such a file."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory, not a results file")
    try:
        # A stored file never changes, it is replaced; and HDF5's own locks fail on some networks.
        with h5py.File(path, "r", locking=False) as file:
            return _decode(file, path)
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except PermissionError as error:
        raise InputError(f"{path}: cannot be read: permission denied") from error
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"{path}: is not a readable HDF5 file (truncated, or another format)"
        ) from error
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(
            f"{path}: is damaged or not a percolab file: {_one_line(error)}"
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _decode(file: h5py.File, path: Path) -> Results:
    if file.attrs.get("format") != FORMAT:
        raise InputError(f"{path}: is an HDF5 file, but not one of percolab's")
    version = file.attrs["schema_version"]
    if version not in _READABLE:
        raise InputError(
            f"{path}: has schema version {version}; this percolab reads versions "
            f"{', '.join(map(str, _READABLE))}"
        )
    lattice: Structure
    if "structure" in file.attrs:
        lattice = structure_of(json.loads(file.attrs["structure"]))
    else:
        lattice = lattice_from_text(file.attrs["lattice"], where=f"{path}: lattice")
    results = Results(_decode_study(json.loads(file.attrs["study"]), lattice))
    results.runs = [json.loads(run) for run in file.attrs["runs"]]
    if not all(isinstance(run, dict) and isinstance(run["blocks"], dict) for run in results.runs):
        raise ValueError("a run's record is no table of blocks")
    check_links(file)
    tasks = file.get("tasks", {})
    if tasks:
        check_links(tasks)
    for key, group in tasks.items():
        item = decode_task(group, lattice)
        if item.task.id != key:
            raise InputError(f"{path}: task {key} does not match its own description")
        results.tasks[key] = item
    return results


def _decode_study(record: dict[str, Any], lattice: Structure) -> Study:
    p = None if record["p"] in ("pilot", "all") else tuple(record["p"])
    keys = ("seed", "rng", "model", "block_size")
    return Study(
        lattice=lattice,
        sizes=tuple(record["L"]),
        boundary=tuple(record["boundary"]),
        p=p,
        method=record.get("method", "grid"),
        measure=tuple(record.get("measure", ())),
        sample_version=record.get("sample_version", 1),
        **{key: record[key] for key in keys},
    )
