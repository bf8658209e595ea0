"""Files that percolab writes: complete or not at all, and never over a file of another kind."""

from __future__ import annotations

import mmap
import os
import re
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from percolab.errors import InputError

#: Bytes of a file that say what it is.
_START = 4096


@dataclass(frozen=True)
class Kind:
    """A kind of file: what it is called, and whether a file that begins so is one.

    mark: bytes that such a file has somewhere, where many kinds begin alike.
    """

    name: str
    is_begun_by: Callable[[bytes], bool]
    mark: bytes = b""


def _beginning(pattern: bytes) -> Callable[[bytes], bool]:
    return lambda start: re.match(pattern, start, re.IGNORECASE | re.DOTALL) is not None


CSV = Kind("a table of percolab's", _beginning(rb"lattice,"))
PARQUET = Kind("a Parquet file", _beginning(rb"PAR1"))
NETCDF = Kind("a netCDF file", _beginning(rb"\x89HDF\r\n"), b"_NCProperties")
NPZ_TABLE = Kind("a table of percolab's", _beginning(rb"PK\x03\x04.{26}lattice\.npy"))
NPY_LABELS = Kind("a file of labels", _beginning(rb"\x93NUMPY.{0,20}'descr': '[<>]i4'"))
TIMES = Kind("a record of times", _beginning(rb'\{\s*"command"'))
#: Kinds by suffix, for what is written by name alone.
KINDS = {
    ".csv": CSV,
    ".parquet": PARQUET,
    ".png": Kind("a PNG image", _beginning(rb"\x89PNG\r\n")),
    ".pdf": Kind("a PDF file", _beginning(rb"%PDF-")),
    ".svg": Kind("an SVG image", _beginning(rb"(<\?xml .*)?<svg ")),
    ".html": Kind("a page of percolab's", _beginning(rb"<!doctype html>.*default-src 'none'")),
}
KINDS[".htm"] = KINDS[".html"]


def check_suffix(path: str | Path, suffixes: Collection[str], what: str) -> None:
    """Raise InputError unless a file's suffix is one of these, with their dots, in any case.

    what: "a figure", "a page" ...
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in suffixes and not path.is_dir():
        raise InputError(
            f"{path}: cannot write {what} as {suffix or 'no suffix'!r}; use {', '.join(suffixes)}"
        )


def check_output(path: str | Path, kind: Kind | None = None) -> None:
    """Raise InputError unless a file can be written here, replacing nothing but one of its kind.

    kind: by default that of the suffix; an unknown one may replace any file.
    """
    path = Path(path)
    check_place(path)
    kind = kind or KINDS.get(path.suffix.lower())
    if kind is None or not path.exists():
        return
    try:
        with open(path, "rb") as file:
            start = file.read(_START)
            is_marked = not kind.mark or not start or _has(file, kind.mark)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if start and not (is_marked and kind.is_begun_by(start)):
        raise InputError(f"{path}: holds something else than {kind.name}; give another name")


def _has(file: BinaryIO, mark: bytes) -> bool:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(mark) >= 0


def check_place(path: Path) -> None:
    """Raise InputError unless there is, or could be, a regular file that may be written."""
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give the name of a file")
    if not folder.is_dir():
        raise InputError(f"{path}: the directory {folder} does not exist")
    if not _is_writable(folder):
        raise InputError(f"{path}: the directory {folder} is not writable")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a regular file")
    if path.exists() and not _is_writable(path):
        raise InputError(f"{path}: is not writable")


def _is_writable(path: Path) -> bool:
    # Root may write everywhere, and means it no more than others do.
    return os.access(path, os.W_OK) and bool(path.stat().st_mode & 0o222)


def write_output(path: str | Path, content: bytes, kind: Kind | None = None) -> None:
    """Write a complete file, or none; InputError as :func:`check_output`, or if it fails."""
    check_output(path, kind)
    replace_file(Path(os.path.realpath(path)), content, name=Path(path))


def replace_file(path: Path, content: bytes, *, name: Path | None = None) -> None:
    """Put a complete file in place of an old one; InputError, and the old one stays, if that fails.

    The new one has the mode and the owner of the old one.  ``name`` is what the error calls the
    file.  Only one process at a time may replace a file.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        # One that was killed may have left its own; and a link put there must not be followed.
        temporary.unlink(missing_ok=True)
        with open(temporary, "xb") as file:
            _keep_mode(file.fileno(), path)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{name or path}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def final_name(name: str) -> str:
    """Return what a file is called once it is complete, of which a kill has left the beginning."""
    return name.removeprefix(".").removesuffix(".tmp")


def _keep_mode(descriptor: int, path: Path) -> None:
    """Give an open new file the owner and mode of the one it will replace, as far as allowed."""
    with suppress(OSError, AttributeError):
        old = path.stat()
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
