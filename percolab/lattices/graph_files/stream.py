"""Bytes of a file that a user names: unpacked when gzipped, within limits, some lines at a time."""

from __future__ import annotations

import gzip
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from percolab.errors import InputError, unreadable

#: A packed file may unpack to this many bytes, and this many times its size more.  Edge lists
#: pack 2 to 20 to 1; a file that packs 1000 to 1 holds one line over and over.
FREE_BYTES, MOST_PACKED = 1 << 27, 100

#: Bytes read at a time, and the longest line.
CHUNK, LONGEST_LINE = 1 << 22, 1 << 20

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_DATA_LINE = re.compile(rb"^[ \t]*+[^ \t\r\n#%].*$", re.MULTILINE)


class Lines(NamedTuple):
    """Lines of a text, the last byte a newline, and the number of the first of them."""

    text: bytes
    line: int


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


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked if it is gzipped, at most CHUNK at a time.

    InputError: the file cannot be read, is empty, is cut short or damaged, or unpacks to too much.
    """
    size, total = file_size(path), 0
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            if path.suffix.lower() == ".gz" and not packed:
                raise InputError(f"{path}: is named .gz but is not gzipped")
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            while chunk := stream.read(CHUNK):
                total += len(chunk)
                if packed:
                    check_unpacked(path, total, size)
                yield chunk
    except EOFError as error:
        raise InputError(f"{path}: ends early: its gzip data are cut short") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: its gzip data are damaged: {error}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if total == 0:
        raise InputError(f"{path}: is empty")


def read_bytes(path: Path, *, most: int, advice: str) -> bytes:
    """Return all bytes of a file, unpacked; InputError with the advice above ``most`` bytes."""
    chunks, total = [], 0
    for chunk in read_chunks(path):
        total += len(chunk)
        if total > most:
            raise InputError(f"{path}: holds more than {most} bytes; {advice}")
        chunks.append(chunk)
    return b"".join(chunks)


def read_lines(path: Path) -> Iterator[Lines]:
    """Yield the whole lines of a text file, some at a time, without a byte order mark.

    InputError: as read_chunks, a NUL byte, a carriage return inside a line, or a line longer than
    LONGEST_LINE.
    """
    line, rest = 1, b""
    for number, chunk in enumerate(read_chunks(path)):
        text = rest + chunk
        if number == 0:
            text = text.removeprefix(_BOM)
        _check_text(path, Lines(text, line))
        end = text.rfind(b"\n") + 1
        if end:
            yield Lines(text[:end], line)
            line += text.count(b"\n")
        rest = text[end:]
        if len(rest) > LONGEST_LINE:
            raise InputError(f"{path}: line {line}: is longer than {LONGEST_LINE} bytes")
    if rest:
        yield Lines(rest + b"\n", line)


def next_data_line(parts: Iterable[Lines]) -> tuple[Lines | None, Iterator[Lines]]:
    """Return the first line that is data, alone, and the lines after it; None, and no lines."""
    parts = iter(parts)
    for part in parts:
        match = _DATA_LINE.search(part.text)
        if match:
            line = part.line + part.text.count(b"\n", 0, match.start())
            rest = part.text[match.end() + 1 :]
            return Lines(match.group(), line), chain([Lines(rest, line + 1)], parts)
    return None, iter(())


def shown(text: bytes) -> str:
    """Return text of a file as an error may show it: short, quoted, one line."""
    short = text if len(text) <= 40 else text[:40] + b"..."
    return repr(short.decode("utf-8", "replace"))


def refused(path: Path, what: str, error: Exception) -> Exception:
    """Return the error of what another package could not read, in one line of our own."""
    if isinstance(error, InputError | MemoryError):
        return error
    text = " ".join((str(error) or type(error).__name__).split())
    return InputError(f"{path}: is not {what}: {text[:200]}")


def _check_text(path: Path, part: Lines) -> None:
    text = part.text
    at = text.find(b"\0")
    if at >= 0:
        line = part.line + text.count(b"\n", 0, at)
        raise InputError(f"{path}: line {line}: holds a NUL byte, so it is not a text file")
    returns = text.count(b"\r")
    if returns and returns != text.count(b"\r\n"):
        at = next(m.start() for m in re.finditer(rb"\r(?!\n)", text))
        if at == len(text) - 1 and not text.endswith(b"\n"):
            return  # a line cut by the end of a chunk
        line = part.line + text.count(b"\n", 0, at)
        raise InputError(
            f"{path}: line {line}: holds a carriage return; lines end with LF or CR LF"
        )
