"""Bytes and lines of a file that a user names, unpacked when gzipped, within limits."""

import gzip
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path

from percolab.errors import InputError, one_line, unreadable

#: A packed file may unpack to FREE_BYTES, plus MOST_PACKED times its size.  Edge lists shrink 2 to
#: 20 times when packed; a file that shrinks 1000 times repeats one line over and over.
FREE_BYTES, MOST_PACKED = 1 << 27, 100

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"


def file_size(path: Path) -> int:
    """Return the bytes of a file; InputError if it is missing, no plain file or empty."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a plain file"
        raise InputError(f"{path}: cannot be read: it is {kind}")
    if status.st_size == 0:
        raise InputError(f"{path}: is empty")
    return status.st_size


def check_unpacked(path: Path, unpacked: int, packed: int) -> None:
    """Raise InputError if a packed file holds more than a graph's file plausibly does."""
    if unpacked > FREE_BYTES + MOST_PACKED * packed:
        raise InputError(
            f"{path}: its {packed} bytes unpack to more than {FREE_BYTES} bytes and "
            f"{MOST_PACKED} times its size; if that is meant, unpack it first"
        )


def read_bytes(path: Path, most: int = sys.maxsize, advice: str = "") -> bytes:
    """Return all bytes of a file, unpacked if it is gzipped.

    InputError: the file cannot be read, is empty, is cut short or damaged, or unpacks to too much;
    or it has more than ``most`` bytes, an error that ends with the advice.
    """
    size, data = file_size(path), BytesIO()
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(2) == _GZIP
            if path.suffix.lower() == ".gz" and not is_packed:
                raise InputError(f"{path}: is named .gz but is not gzipped")
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
            while chunk := stream.read(_CHUNK):
                data.write(chunk)
                if is_packed:
                    check_unpacked(path, data.tell(), size)
                if data.tell() > most:
                    raise InputError(f"{path}: holds more than {most} bytes; {advice}")
    except EOFError as error:
        raise InputError(f"{path}: ends early: its gzip data are cut short") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: its gzip data are damaged: {error}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if not data.tell():
        raise InputError(f"{path}: is empty")
    return data.getvalue()


def read_text(path: Path) -> bytes:
    """Return a text file without its byte order mark.

    InputError: as :func:`read_bytes`, a NUL byte, or a carriage return inside a line.
    """
    text = read_bytes(path).removeprefix(_BOM)
    if b"\0" in text or text.count(b"\r") != text.count(b"\r\n"):
        wrong = re.search(rb"\0|\r(?!\n)", text)
        assert wrong is not None
        what = "a carriage return; lines end with LF or CR LF"
        if wrong[0] == b"\0":
            what = "a NUL byte, so it is not a text file"
        line = 1 + text.count(b"\n", 0, wrong.start())
        raise InputError(f"{path}: line {line}: holds {what}")
    return text


def data_lines(text: bytes, skip: int = 0) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines that are neither blank nor comments, which # or % begin.

    Bytes that are not UTF-8 become U+FFFD.  Tabs at the ends stay: they may separate empty columns.
    skip: lines of the text that are left out
    """
    for number, raw in islice(enumerate(BytesIO(text), 1), skip, None):
        line = raw.decode("utf-8", "replace").strip(" \r\n")
        if line.strip() and line.lstrip()[0] not in "#%":
            yield number, line


def shown(text: str) -> str:
    """Return text of a file for an error message: short, quoted, on one line."""
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def refused(path: Path, what: str, error: Exception) -> Exception:
    """Return an InputError, in one line, for a file that another package could not read."""
    if isinstance(error, InputError | MemoryError):
        return error
    return InputError(f"{path}: is not {what}: {one_line(error)[:200]}")
