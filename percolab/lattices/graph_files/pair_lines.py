"""Lines of an edge list or of a matrix -> pairs of sites and their weights.

NumPy reads blocks of lines that are plain numbers.  Any other block is read line by line, with the
csv module, and so are sites with names; that is slower by a factor of ten, and reports the line
that is wrong.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.stream import Lines, shown
from percolab.lattices.graph_files.weights import (
    MOST_OF_FLOATS,
    is_beyond_floats,
    weight_of_text,
)
from percolab.lattices.topology import LONGEST_NAME, MAX_POINTS

# A column between blanks, in quotes or without.
_WORD = re.compile(r'"([^"]*)"|(\S+)')
_COMMENT = re.compile(rb"^[ \t]*[#%].*$", re.MULTILINE)
_DATA = re.compile(rb"^[ \t]*[^ \t\r\n#%]", re.MULTILINE)
_NAN = re.compile(rb"nan", re.IGNORECASE)
# NumPy takes a plus for part of an integer.
_PLUS = re.compile(rb'(?:^|[\s,;"])\+', re.MULTILINE)
_WITH_FLOAT = np.dtype([("sites", np.int64, 2), ("weight", np.float64)])


@dataclass(frozen=True)
class Columns:
    """How the lines of a file are laid out.

    delimiter: character between columns; "" for any number of blanks
    sites:     numbers of the two columns that name sites, from 0
    weight:    number of the column of weights, that may not be NaN, or -1
    width:     columns that each line must have, the third a number; 0 for any
    base:      number of the first site
    top:       largest site number
    """

    delimiter: str = ""
    sites: tuple[int, int] = (0, 1)
    weight: int = 2
    width: int = 0
    base: int = 0
    top: int = MAX_POINTS - 1


class Pairs(NamedTuple):
    """Pairs of sites, int32 (num_pairs, 2), self-loops left out.

    largest: site, of those in self-loops as well, or -1.  weights: of the pairs, int64 where all
    are written as integers, else float64; None if not requested.  names: of all sites, where they
    have some, by their numbers.
    """

    bonds: np.ndarray
    num_loops: int
    largest: int
    weights: np.ndarray | None
    names: tuple[str, ...] = ()


class _Block(NamedTuple):
    """Sites, int64 (num_pairs, 2), of a block of lines, and weights, None if not requested.

    large: line and digits of the first integer among the weights that no float is.
    """

    sites: np.ndarray
    weights: np.ndarray | None
    large: tuple[int, int] | None = None


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the columns of a line, without quotes and blanks around them.

    >>> split_line('"Snow, Jon" ; Arya;3', ";")
    ['Snow, Jon', 'Arya', '3']
    """
    if '"' not in line:
        cells = line.split(delimiter or None)
    elif not delimiter:
        return [quoted or plain for quoted, plain in _WORD.findall(line)]
    else:
        try:
            cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
        except (csv.Error, StopIteration):  # a column of more than 131072 characters
            cells = line.split(delimiter)
    return [cell.strip() for cell in cells]


def read_pairs(
    path: Path,
    parts: Iterable[Lines],
    columns: Columns,
    *,
    most: int | None = None,
    weights: bool = False,
    has_names: bool = False,
) -> Pairs:
    """Return the pairs of sites that the lines name, in their order, and weights if requested.

    Sites with names are numbered in the order in which these first stand in the file.

    InputError: a line that is not laid out so, more than ``most`` pairs, a name that is too long or
    cannot be printed, a weight that is missing, NaN, -inf or beyond int64, or an integer beyond
    2^53 next to weights that are none.
    """
    numbers: dict[str, int] | None = {} if has_names else None
    bonds, values = [np.empty((0, 2), np.int32)], [np.empty(0, np.int64)]
    large: tuple[int, int] | None = None
    entries, largest = 0, -1
    for part in parts:
        block = None if has_names else _plain_block(part, columns, weights)
        block = block or _read_block(path, part, columns, weights, numbers)
        joins = block.sites[:, 0] != block.sites[:, 1]
        bonds.append(block.sites[joins].astype(np.int32))
        if block.weights is not None:
            values.append(block.weights[joins])
            large = large or block.large
        entries, largest = entries + len(joins), max(largest, block.sites.max(initial=-1))
        if most is not None and entries > most:
            raise InputError(f"{path}: holds more than the {most} entries that its header promises")
    if len(numbers or ()) > MAX_POINTS:
        raise InputError(f"{path}: has {largest + 1} sites, but a graph has 1 to {MAX_POINTS}")
    pairs, joined = np.concatenate(bonds), np.concatenate(values)
    if joined.dtype == np.float64 and large is not None:
        raise InputError(
            f"{path}: line {large[0]}: weight '{large[1]}', but next to weights with a point or an "
            "exponent integers are at most 2^53, as floats do not distinguish larger ones"
        )
    names, loops = tuple(numbers or ()), entries - len(pairs)
    return Pairs(pairs, loops, int(largest), joined if weights else None, names)


def _plain_block(part: Lines, columns: Columns, weights: bool) -> _Block | None:
    """Return a block as NumPy reads it; None where a line may be wrong, or is no plain numbers."""
    text, has_value = part.text, weights or columns.width == 3
    if b"#" in text or b"%" in text:
        text = _COMMENT.sub(b"", text)
    if (b"+" in text and _PLUS.search(text)) or (not has_value and _NAN.search(text)):
        return None
    # A quote that is open at the end of a line would go on in the next one.
    if b'"' in text and any(line.count(b'"') % 2 for line in text.split(b"\n")):
        return None
    try:
        rows: Any = np.empty((0, 2 + has_value), np.int64)
        if text.strip():
            rows = _load(text, columns, np.int64, has_value)
        if rows.shape[1] != 2 + has_value:
            return None
        sites, values = rows[:, :2], rows[:, 2:].ravel()
    except ValueError:
        try:
            rows = _load(text, columns, _WITH_FLOAT, has_value).ravel()
        except ValueError:
            return None
        if not (np.abs(rows["weight"]) < MOST_OF_FLOATS).all():
            return None
        sites, values = rows["sites"], rows["weight"]
    if sites.size and not columns.base <= sites.min() <= sites.max() <= columns.top:
        return None
    sites -= columns.base
    return _Block(sites, values, _large_in(part, values)) if weights else _Block(sites, None)


def _load(text: bytes, columns: Columns, dtype: Any, has_value: bool) -> Any:
    """Return what NumPy makes of the columns of lines; ValueError if they are not of the type."""
    used = (*columns.sites, columns.weight)[: 2 + has_value]
    if min(used) < 0 or (dtype is _WITH_FLOAT and not has_value):
        raise ValueError("there is no column of weights")
    with warnings.catch_warnings():
        # Older versions make 1.0 an integer, and warn.
        warnings.simplefilter("error")
        try:
            return np.loadtxt(
                io.BytesIO(text),
                dtype,
                comments=None,
                delimiter=columns.delimiter or None,
                # Without it every line must have as many columns as there are in the type.
                usecols=None if columns.width else used,
                quotechar='"',
                ndmin=2,
                encoding="latin1",
            )
        except Warning as error:
            raise ValueError(str(error)) from error


def _large_in(part: Lines, values: np.ndarray) -> tuple[int, int] | None:
    """Return line and digits of the first weight that is an integer beyond floats."""
    if values.dtype != np.int64:
        return None
    large = np.flatnonzero(is_beyond_floats(values))
    if not large.size:
        return None
    for number, match in enumerate(_DATA.finditer(part.text)):
        if number == large[0]:
            line = part.line + part.text.count(b"\n", 0, match.start())
            return line, int(values[large[0]])
    return None


def _read_block(
    path: Path, part: Lines, columns: Columns, weights: bool, numbers: dict[str, int] | None
) -> _Block:
    """Return a block, read line by line; InputError names the line that is wrong.

    numbers: of the sites with names, to which new names are added; None if sites are numbers
    """
    pairs: list[tuple[int, int]] = []
    values: list[int | float] = []
    large: tuple[int, int] | None = None
    text = part.text.decode("utf-8", "replace") if numbers is None else _decode_names(path, part)
    for place, line in enumerate(map(str.strip, text.split("\n")), part.line):
        if not line or line[0] in "#%":
            continue
        where, cells = f"{path}: line {place}", split_line(line, columns.delimiter)
        value = cells[columns.weight] if 0 <= columns.weight < len(cells) else ""
        if numbers is None:
            one, other = (_site(cells, at, line, columns, where) for at in columns.sites)
            if value.lower().lstrip("+-") == "nan":
                given = shown(value.encode())
                raise InputError(f"{where}: weight {given}, but a weight is a number")
        else:
            one, other = (_named_site(cells, at, line, numbers, where) for at in columns.sites)
        if columns.width and len(cells) != columns.width:
            given = shown(line.encode())
            raise InputError(f"{where}: {given}, but a line has {columns.width} columns")
        pairs.append((one, other))
        if weights or columns.width == 3:
            values.append(weight := _weight(value, columns.weight, line, where))
            if large is None and isinstance(weight, int) and abs(weight) > MOST_OF_FLOATS:
                large = place, weight
    sites = np.array(pairs, np.int64).reshape(-1, 2)
    if not weights:
        return _Block(sites, None)
    is_integer = all(isinstance(weight, int) for weight in values)
    return _Block(sites, np.array(values, np.int64 if is_integer else np.float64), large)


def _site(cells: list[str], at: int, line: str, columns: Columns, where: str) -> int:
    """Return the site of a column of digits, counted from 0."""
    if at >= len(cells):
        raise InputError(f"{where}: {shown(line.encode())}, but a line names two sites")
    text = cells[at]
    if not (text.isascii() and text.isdigit() and columns.base <= int(text[:4000]) <= columns.top):
        raise InputError(
            f"{where}: site {shown(text.encode())}, but sites are integers {columns.base} to "
            f"{columns.top}"
        )
    return int(text) - columns.base


def _weight(text: str, column: int, line: str, where: str) -> int | float:
    if not text:
        raise InputError(
            f"{where}: {shown(line.encode())}, but there is no weight in column {column + 1}"
        )
    try:
        return weight_of_text(text)
    except ValueError as error:
        raise InputError(f"{where}: weight {shown(text.encode())}, {error}") from error


def _decode_names(path: Path, part: Lines) -> str:
    """Return a block of lines as text; InputError names the one that is not UTF-8."""
    try:
        return part.text.decode()
    except UnicodeDecodeError as error:
        line = part.line + part.text.count(b"\n", 0, error.start)
        wrong = part.text.split(b"\n")[line - part.line]
        raise InputError(
            f"{path}: line {line}: {shown(wrong)}, but names are text in UTF-8"
        ) from error


def _named_site(cells: list[str], at: int, line: str, numbers: dict[str, int], where: str) -> int:
    """Return the number of a column's site; a new name gets the next number."""
    name = cells[at] if at < len(cells) else ""
    if name not in numbers:
        if not name:
            raise InputError(f"{where}: {shown(line.encode())}, but a line names two sites")
        if len(name.encode()) > LONGEST_NAME or not name.isprintable():
            raise InputError(
                f"{where}: site {shown(name.encode())}, but a name has at most {LONGEST_NAME} "
                "bytes, all printable"
            )
        numbers[name] = len(numbers)
    return numbers[name]
