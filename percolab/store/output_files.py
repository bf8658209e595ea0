"""Files that percolab writes: complete or not at all, and never over the files of others.

There is one rule, :func:`check_output`: a file is never replaced if it is an input, nor unless its
content shows that percolab wrote it.  :func:`free_name` finds a name that is not taken.
"""

from __future__ import annotations

import io
import mmap
import os
import re
import stat
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from percolab.errors import InputError, unreadable

if TYPE_CHECKING:
    import numpy as np

#: Bytes of a file that show its kind.
_START = 4096
#: Reads the content of a file, and returns whether percolab wrote it.
Test = Callable[[Path], bool]


@dataclass(frozen=True)
class Kind:
    """A kind of file, and how one of percolab's is recognised; None where it cannot be."""

    name: str
    is_own: Test | None = None


def begins(pattern: bytes, mark: bytes = b"", *, at_end: bool = False) -> Test:
    """Return a test whether a file begins with a pattern and has a mark, anywhere or at its end."""

    def is_own(path: Path) -> bool:
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            if not re.match(pattern, content[:_START], re.IGNORECASE | re.DOTALL):
                return False
            return content[-len(mark) :] == mark if at_end else content.find(mark) >= 0

    return is_own


def is_hdf5(form: str) -> Test:
    """Return the test whether a file is one of HDF5 whose attribute ``format`` is this."""

    def is_own(path: Path) -> bool:
        from percolab.store.reading import read_format

        return read_format(path) == form

    return is_own


def is_labels(path: str | Path) -> bool:
    """Return whether percolab label wrote a file; InputError: an .npy file of others."""
    from percolab.store.reading import LABELS, read_format

    path = Path(path)
    if not path.is_file():
        return False
    if path.suffix.lower() != ".npy":
        return read_format(path) == LABELS
    is_own = begins(rb"\x93NUMPY", _file_signature("labels"), at_end=True)
    if not path.stat().st_size or not is_own(path):
        raise InputError(f"{path}: has no labels from percolab label")
    return True


def archive(name: str) -> Kind:
    """Return the kind of an .npz file that :func:`marked_archive` makes."""
    return Kind(name, begins(rb"PK\x03\x04", _file_signature(name), at_end=True))


def array(name: str) -> Kind:
    """Return the kind of an .npy file that :func:`encode_array` or :func:`large_array` makes."""
    return Kind(name, begins(rb"\x93NUMPY", _file_signature(name), at_end=True))


def marked_archive(content: bytes, kind: Kind) -> bytes:
    """Return an .npz file with the mark of its kind as the archive's comment."""
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as file:
        file.comment = _file_signature(kind.name)
    return buffer.getvalue()


def encode_archive(arrays: Mapping[str, np.ndarray], kind: Kind) -> bytes:
    """Return an .npz file of these arrays, by their names, with the mark of its kind."""
    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return marked_archive(buffer.getvalue(), kind)


def encode_array(values: np.ndarray, kind: Kind) -> bytes:
    """Return an .npy file with the mark of its kind behind the numbers, where none are read."""
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue() + _file_signature(kind.name)


def _file_signature(name: str) -> bytes:
    return f"percolab: {name}".encode()


CSV = Kind("a table of percolab's", begins(rb"lattice,(model,boundary,)?L,(sites,)?seed,"))
CLUSTERS_CSV = Kind("a table of clusters", begins(rb"label,sites[,\n]"))
SITES_CSV = Kind("a table of sites", begins(rb"site,label\n"))
#: The mark of a table, where a format has a place for it.
TABLE_MARK = "percolab table"
PARQUET = Kind("a table of percolab's", begins(rb"PAR1", TABLE_MARK.encode()))
NETCDF = Kind("a table of percolab's", begins(rb"\x89HDF\r\n", TABLE_MARK.encode()))
NPZ_TABLE = archive("a table of percolab's")
TIMES = Kind("a record of times", begins(rb'\{\s*"command":\s*\[\s*"percolab"'))
_PAGE = Kind(
    "a page of percolab's", begins(rb'<!doctype html>.*<meta name="generator" content="percolab">')
)
#: Kinds by suffix, for what is written by name alone; figures name percolab as their creator.
KINDS = {
    ".png": Kind("a figure of percolab's", begins(rb"\x89PNG\r\n.*tEXtSoftware\x00percolab")),
    ".pdf": Kind("a figure of percolab's", begins(rb"%PDF-", b"/Creator (percolab)")),
    ".svg": Kind("a figure of percolab's", begins(rb"(<\?xml .*)?<svg .*<dc:title>percolab<")),
    ".html": _PAGE,
    ".htm": _PAGE,
}


def check_suffix(path: str | Path, suffixes: Collection[str], what: str) -> None:
    """Raise InputError unless a file's suffix is one of these; what: "a figure", "a page" ..."""
    suffix = Path(path).suffix.lower()
    if suffix not in suffixes and not Path(path).is_dir():
        raise InputError(
            f"{path}: cannot write {what} as {suffix or 'no suffix'!r}; use {', '.join(suffixes)}"
        )


def check_output(
    path: str | Path, kind: Kind | None = None, inputs: Iterable[str | Path] = ()
) -> None:
    """Raise InputError unless a file can be written here: a new one, or in place of our own.

    kind: by default that of the suffix.  inputs: files that are read, of which none is replaced,
    by whatever name, link or hard link it is reached.
    """
    path = Path(path)
    check_place(path)
    if not path.exists():
        return
    if any(Path(name).exists() and path.samefile(name) for name in inputs):
        raise InputError(f"{path}: is the input itself; give another name")
    kind = kind or KINDS.get(path.suffix.lower())
    if kind is None or kind.is_own is None:
        raise InputError(f"{path}: exists already, and perhaps not by percolab; give another name")
    try:
        is_own = path.stat().st_size == 0 or kind.is_own(path)
    except OSError as error:
        raise unreadable(path, error) from error
    if not is_own:
        raise InputError(f"{path}: holds something else than {kind.name}; give another name")


def free_name(
    path: str | Path, kind: Kind | None = None, inputs: Collection[str | Path] = ()
) -> Path:
    """Return this name if it can be written, else the first of NAME-2, NAME-3 ... that can be."""
    path = Path(path)
    check_place(path.with_name(f"{path.stem}-2{path.suffix}"))
    names = (path.with_name(f"{path.stem}-{n}{path.suffix}") for n in count(2))
    name = path
    while True:
        with suppress(InputError):
            check_output(name, kind, inputs)
            return name
        name = next(names)


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
    # Root may write everywhere, but a file that is read-only shall stay so for root as well.
    return os.access(path, os.W_OK) and bool(path.stat().st_mode & 0o222)


def write_output(path: str | Path, content: bytes, kind: Kind | None = None) -> None:
    """Write a complete file, or none; InputError as :func:`check_output`, or if it fails."""
    check_output(path, kind)
    replace_file(Path(os.path.realpath(path)), content, name=Path(path))


def write_rescued(path: Path, content: bytes) -> Path:
    """Write a new file NAME-rescued, or NAME-rescued-2 ..., and return its name."""
    for end in ("-rescued", *(f"-rescued-{n}" for n in range(2, 1000))):
        rescued = path.with_name(f"{path.stem}{end}{path.suffix}")
        try:
            # Now the name is taken; below only this empty file is replaced.
            os.close(os.open(rescued, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(f"{rescued}: cannot be written: {error.strerror}") from error
        try:
            replace_file(rescued, content)
        except InputError:
            rescued.unlink(missing_ok=True)
            raise
        return rescued
    raise InputError(f"{rescued}: too many rescued files exist; remove some (nothing is written)")


def replace_file(path: Path, content: bytes, *, name: Path | None = None) -> None:
    """Put a complete file in place of an old one; InputError, and the old one stays, if that fails.

    The new one has the mode and the owner of the old one.  name: as the error calls the file.  Only
    one process at a time may replace a file.
    """
    with _put_in_place(path, name or path) as temporary, open(temporary, "xb") as file:
        _write_to_disk(file, path, content)


@contextmanager
def large_array(
    path: Path, shape: tuple[int, ...], dtype: np.dtype, kind: Kind
) -> Iterator[np.ndarray]:
    """Yield a memory map to fill: an .npy file with its mark, which appears only if complete."""
    import numpy as np

    place = Path(os.path.realpath(path))
    with _put_in_place(place, path) as temporary:
        values = np.lib.format.open_memmap(temporary, "w+", dtype, shape)
        yield values
        values.flush()
        with open(temporary, "ab") as file:
            _write_to_disk(file, place, _file_signature(kind.name))


@contextmanager
def _put_in_place(path: Path, name: Path) -> Iterator[Path]:
    """Yield the name of a new file, which replaces an old one once it is complete."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        # A killed process may have left this file; and a link of this name must not be followed.
        temporary.unlink(missing_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _write_to_disk(file: BinaryIO, path: Path, content: bytes) -> None:
    """Write the content, with the mode of the file at a path, and wait until it is on the disk."""
    _keep_mode(file.fileno(), path)
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def final_name(name: str) -> str:
    """Return the final name of an incomplete file that a kill has left."""
    return name.removeprefix(".").removesuffix(".tmp")


def _keep_mode(descriptor: int, path: Path) -> None:
    """Give an open new file the owner and mode of the one it will replace, as far as allowed."""
    with suppress(OSError, AttributeError):
        old = path.stat()
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
