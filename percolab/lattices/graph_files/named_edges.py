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
from percolab.lattices.topology import LONGEST_NAME, MAX_POINTS

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
        for place, line in enumerate(_texts_of(path, part), part.line):
            text = line.strip()
            if not text or text[0] in "#%":
                continue
            # Most lines have no quotes, and their columns are found at once.
            if '"' in text or not columns.delimiter:
                cells = text.split() if '"' not in text else split_line(text, columns.delimiter)
            else:
                cells = text.split(columns.delimiter)
            ends = []
            for at in columns.sites:
                name = cells[at].strip() if at < len(cells) else ""
                number = numbers.get(name)
                if number is None:
                    _check_name(name, text, f"{path}: line {place}")
                    number = numbers[name] = len(numbers)
                ends.append(number)
            if weights:
                weight = _weight(cells, columns.weight, text, f"{path}: line {place}")
            if ends[0] == ends[1]:
                loops += 1
                continue
            pairs.append((ends[0], ends[1]))
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


def _texts_of(path: Path, part: Lines) -> list[str]:
    """Return the lines of a block; InputError names the one that is not UTF-8."""
    try:
        return part.text.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = part.line + part.text.count(b"\n", 0, error.start)
        wrong = part.text.split(b"\n")[line - part.line]
        raise InputError(
            f"{path}: line {line}: {shown(wrong)}, but names are text in UTF-8"
        ) from error


def _check_name(name: str, line: str, where: str) -> None:
    """Raise InputError unless a site can have this name."""
    if not name:
        raise InputError(f"{where}: {shown(line.encode())}, but a line names two sites")
    if len(name.encode()) > LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"{where}: site {shown(name.encode())}, but a name has at most {LONGEST_NAME} bytes, "
            "all printable"
        )


def _weight(cells: list[str], column: int, line: str, where: str) -> int | float:
    """Return the weight of a line as a number."""
    text = cells[column].strip() if 0 <= column < len(cells) else ""
    if not text:
        told = shown(line.encode())
        raise InputError(f"{where}: {told}, but there is no weight in column {column + 1}")
    try:
        is_integer = _INTEGER.fullmatch(text) is not None
        found: int | float = int(text) if is_integer else float(text.translate(_FORTRAN))
        weights_of_objects([found])
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{where}: weight {shown(text.encode())}, but a weight is a finite number"
        ) from error
    return found
