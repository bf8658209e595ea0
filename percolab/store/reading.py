"""Reading HDF5 files so that it ends, whatever is in them.

Damage in data without checksums can make the HDF5 library loop for ever, and Ctrl-C does not stop
it.  Files as percolab writes them today have checksums everywhere and no text of variable length;
they are read directly.  Any other file is first read by a process of its own, which is ended if it
takes too long.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import h5py

from percolab.errors import InputError
from percolab.store.guard import check_dataset
from percolab.store.interrupts import default_signals
from percolab.store.tree import Check, Node, read_tree, touch

#: What h5py and NumPy raise of damage, wherever in a file it is.
DAMAGE = (
    KeyError, ValueError, TypeError, AttributeError, IndexError, ArithmeticError, OSError,
    RuntimeError, RecursionError,
)  # fmt: skip
#: The folder that ``percolab`` is imported from, which the process that reads first is given.
ROOT = Path(__file__).parents[2]
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: The file begins with this version where HDF5 keeps checksums of all but the data.
_CHECKED_VERSION = 3
#: Seconds of processor time: at least, and for each byte.
_LEAST_SECONDS, _SECONDS_A_BYTE = 5, 1 / 10e6
#: Bytes of memory: at least, and for each byte.
_LEAST_MEMORY, _MEMORY_A_BYTE = 4 * 2**30, 100
#: How the system ends a process that took more processor time than it was given.
_ENDED_BY_LIMIT = -getattr(signal, "SIGXCPU", 0)
#: On a busy machine a process may wait so many times longer than it computes.
_BUSY = 20
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from percolab.store.reading import try_to_read; try_to_read(*sys.argv[2:])"
)


def read_file(path: Path, check: Check | None = None) -> Node:
    """Return everything in an HDF5 file; errors as :func:`percolab.store.tree.read_tree`.

    check: of the shapes of large datasets, before they are read.
    InputError: reading it does not end, or takes the library down.  OSError: it cannot be opened.
    """
    check_reading_ends(path)
    # A stored file never changes, it is replaced; and HDF5's own locks fail on some networks.
    with default_signals(), h5py.File(path, "r", locking=False) as file:
        return read_tree(file, check)


def format_of(path: Path) -> str | None:
    """Return what an HDF5 file says that it is; None if it does not, or is damaged or no such."""
    try:
        check_reading_ends(path)
        with h5py.File(path, "r", locking=False) as file:
            told = file.attrs.get("format")
        told = told.decode() if isinstance(told, bytes) else told
        return told if isinstance(told, str) else None
    except DAMAGE:
        return None


def check_reading_ends(path: Path, dataset: str = "") -> None:
    """Raise InputError if reading a file does not end; or, if one is named, one dataset of it.

    Nothing else is said of the file, which may be none of HDF5 at all.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise InputError(f"{path}: is not a regular file")
    if _is_checked(path) or not sys.executable:
        return
    seconds = _LEAST_SECONDS + int(path.stat().st_size * _SECONDS_A_BYTE)
    command = [sys.executable, "-P", "-c", _PROGRAM, str(ROOT), str(path), str(seconds), dataset]
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_BUSY * seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise _endless(path, seconds) from error
    if ended.returncode == _ENDED_BY_LIMIT:
        raise _endless(path, seconds)
    if ended.returncode < 0:
        raise InputError(f"{path}: is damaged: the HDF5 library fails in reading it")
    if ended.returncode:
        raise InputError(f"{path}: cannot be read safely: {_reason(ended.stderr)}")


def _reason(told: bytes) -> str:
    """Return the last line that a process wrote to stderr."""
    lines = told.decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no process for it")


def _endless(path: Path, seconds: int) -> InputError:
    return InputError(f"{path}: is damaged: reading it did not end in {seconds} s")


def _is_checked(path: Path) -> bool:
    """Return whether a file has checksums of HDF5's own throughout, or is none of HDF5."""
    with open(path, "rb") as file:
        start = file.read(len(_SIGNATURE) + 1)
    if start[:-1] == _SIGNATURE:
        return start[-1] == _CHECKED_VERSION
    return not h5py.is_hdf5(path)


def try_to_read(path: str, seconds: str, dataset: str) -> None:
    """Read a file in a process of its own, within limits, and forget it.

    What is wrong with the file, other than that reading it does not end, its reader will say.
    """
    _lower_limit("RLIMIT_CPU", int(seconds))
    _lower_limit("RLIMIT_CORE", 0)
    _lower_limit("RLIMIT_AS", _LEAST_MEMORY + _MEMORY_A_BYTE * Path(path).stat().st_size)
    with suppress(Exception), h5py.File(path, "r", locking=False) as file:
        if dataset:
            check_dataset(file[dataset])
            touch(file[dataset])
        else:
            read_tree(file, keep=False)


def _lower_limit(name: str, most: int) -> None:
    """Set a limit of this process, where the system has it, unless there is a lower one."""
    try:
        import resource
    except ImportError:
        return
    which = getattr(resource, name)
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    # The hard limit stays: to raise it is not for everyone, not even to the same.
    resource.setrlimit(which, (most, hard))
