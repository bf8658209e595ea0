"""Edge lists whose sites have names: read line by line, a Python object a line.

Sites are numbered in the order in which their names first stand in the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.pair_lines import Columns
from percolab.lattices.graph_files.stream import Lines, shown
from percolab.lattices.graph_files.weights import weights_of_objects
from percolab.lattices.topology import MAX_POINTS

#: The longest name, in bytes: names are kept in results files, each with the room of the longest.
LONGEST_NAME = 255
#: A column between blanks, in quotes or without.
_WORD = re.compile(r'"([^"]*)"|(\S+)')
_INTEGER, _FORTRAN = re.compile(r"[+-]?\d{1,20}"), str.maketrans("dD", "ee")


class NamedPairs(NamedTuple):
    """Pairs of sites, int32 (num_pairs, 2), self-loops left out, and the names of all sites.

    weights: of the pairs, int64 or float64; None if not wanted
    """

    bonds: np.ndarray
    num_loops: int
    names: tuple[str, ...]
    weights: np.ndarray | None


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the columns of a line, without quotes and blanks around them.

    >>> split_line('"Snow, Jon" ; Arya;3', ";")
    ['Snow, Jon', 'Arya', '3']
    """
    if not delimiter:
        return [quoted or plain for quoted, plain in _WORD.findall(line)]
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except (csv.Error, StopIteration):  # a column of more than 131072 characters
        cells = line.split(delimiter)
    return [cell.strip() for cell in cells]


def read_named_pairs(
    path: Path, parts: Iterable[Lines], columns: Columns, *, weights: bool = False
) -> NamedPairs:
    """Return the pairs of sites that the lines name, in their order, and their weights if wanted.

    InputError: a line without two names, a name that is too long or cannot be printed, text that is
    not UTF-8, or a weight that is missing or not finite.
    """
    numbers: dict[str, int] = {}
    pairs: list[tuple[int, int]] = []
    found: list[int | float] = []
    loops = 0
    for part in parts:
        for place, line in enumerate(part.text.split(b"\n"), part.line):
            text = line.strip()
            if not text or text[:1] in b"#%":
                continue
            where = f"{path}: line {place}"
            cells = _cells(text, columns, where)
            one, other = (numbers.setdefault(cells[at], len(numbers)) for at in columns.sites)
            if weights:
                weight = _weight(cells, columns.weight, text, where)
            if one == other:
                loops += 1
                continue
            pairs.append((one, other))
            if weights:
                found.append(weight)
    if len(numbers) > MAX_POINTS:
        raise InputError(f"{path}: has {len(numbers)} sites, but a graph has 1 to {MAX_POINTS}")
    bonds = np.array(pairs, np.int32).reshape(-1, 2)
    try:
        values = weights_of_objects(found) if weights else None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    return NamedPairs(bonds, loops, tuple(numbers), values)


def _cells(line: bytes, columns: Columns, where: str) -> list[str]:
    """Return the columns of a line in which both sites have names."""
    try:
        cells = split_line(line.decode("utf-8"), columns.delimiter)
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: {shown(line)}, but names are text in UTF-8") from error
    for at in columns.sites:
        if at >= len(cells) or not cells[at]:
            raise InputError(f"{where}: {shown(line)}, but a line names two sites")
        if len(cells[at].encode()) > LONGEST_NAME or not cells[at].isprintable():
            raise InputError(
                f"{where}: site {shown(cells[at].encode())}, but a name has at most {LONGEST_NAME} "
                "bytes, all printable"
            )
    return cells


def _weight(cells: list[str], column: int, line: bytes, where: str) -> int | float:
    """Return the weight of a line as a number."""
    text = cells[column] if 0 <= column < len(cells) else ""
    if not text:
        raise InputError(f"{where}: {shown(line)}, but there is no weight in column {column + 1}")
    try:
        found: int | float = (
            int(text) if _INTEGER.fullmatch(text) else float(text.translate(_FORTRAN))
        )
        weights_of_objects([found])
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{where}: weight {shown(text.encode())}, but a weight is a finite number"
        ) from error
    return found
