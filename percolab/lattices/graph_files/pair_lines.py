"""Lines of an edge list or of a matrix -> pairs of sites and their weights.

NumPy reads lines of plain numbers.  Anything else, including names of sites, is read line by line
with the csv module, which is slower, but an error can name the wrong line.
"""

import csv
import re
import warnings
from array import array
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import Edges
from percolab.lattices.graph_files.text import data_lines, shown
from percolab.lattices.graph_files.weights import MOST_OF_FLOATS, make_weights
from percolab.lattices.topology import LONGEST_NAME, MAX_POINTS

# A column between blanks, in quotes or without.
_WORD = re.compile(r'"([^"]*)"|(\S+)')
# Text that NumPy would accept, or that only occurs in lines with more than plain numbers.
_NOT_PLAIN = re.compile(rb"[#%+]|nan", re.IGNORECASE)


@dataclass(frozen=True)
class Columns:
    """How the lines of a file are laid out.

    delimiter: character between columns; "" for any number of blanks
    sites:     numbers of the two columns that name sites, from 0
    weight:    number of the column of weights, which may not be NaN; -1 if there is none
    width:     columns that each line must have, the third of them a number; 0 for any
    base:      number of the first site
    top:       largest site number
    has_names: sites are any texts, numbered in the order in which they first occur in the file
    """

    delimiter: str = ""
    sites: tuple[int, int] = (0, 1)
    weight: int = 2
    width: int = 0
    base: int = 0
    top: int = MAX_POINTS - 1
    has_names: bool = False


class NoNumber(InputError):
    """A site is not a number, where sites are numbers."""


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


def read_pairs(path: Path, text: bytes, skip: int, columns: Columns, weights: bool) -> Edges:
    """Return the edges that lines name, in their order; the sites are 0 to the largest one.

    skip: lines that are not read.
    InputError: a line with another layout, a name that is too long or cannot be printed, a
    weight that is missing, NaN, -inf or beyond int64, or an integer beyond 2^53 next to floats.
    NoNumber: a site that is not a number.
    """
    has_value = weights or columns.width == 3
    edges = _read_plain(text, skip, columns, has_value)
    edges = edges or _read_lines(path, text, skip, columns, has_value)
    return edges if weights else edges._replace(weights=None)


def _read_plain(text: bytes, skip: int, columns: Columns, has_value: bool) -> Edges | None:
    """Return edges as NumPy reads them; None if a line may be wrong or has not only numbers."""
    start = 0
    for _ in range(skip):
        start = text.find(b"\n", start) + 1
    if columns.has_names or (has_value and columns.weight < 0) or _NOT_PLAIN.search(text, start):
        return None
    # A quoted text that is not closed at the end of a line would continue on the next one.
    if b'"' in text and any(line.count(b'"') % 2 for line in BytesIO(text)):
        return None
    rows = None
    for kind in (np.int64, np.float64) if has_value else (None,):
        with suppress(ValueError, Warning):  # NumPy warns if there are no lines
            rows = _load(text, skip, columns, kind)
            break
    if rows is None:
        return None
    sites, weights = rows["sites"], rows["weight"] if has_value else None
    # A larger float may differ from the integer that the file has.
    is_exact = kind is not np.float64 or (np.abs(rows["weight"]) < MOST_OF_FLOATS).all()
    if not is_exact or not columns.base <= sites.min() <= sites.max() <= columns.top:
        return None
    ends = sites - np.int32(columns.base)
    return Edges(int(ends.max()) + 1, ends, weights)


def _load(text: bytes, skip: int, columns: Columns, kind: Any) -> np.ndarray:
    """Return sites, and weights of a kind if any; ValueError or Warning if NumPy reads none."""
    used = columns.sites if kind is None else (*columns.sites, columns.weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.loadtxt(
            BytesIO(text),
            np.dtype([("sites", np.int32, 2), *([] if kind is None else [("weight", kind)])]),
            comments=None,
            skiprows=skip,
            delimiter=columns.delimiter or None,
            # Without usecols, every line must have as many columns as the dtype.
            usecols=None if columns.width else used,
            quotechar='"',
            ndmin=1,
            encoding="latin1",
        )


def _read_lines(path: Path, text: bytes, skip: int, columns: Columns, has_value: bool) -> Edges:
    """Return the edges, read line by line; InputError names the line that is wrong."""
    places, ends, place = array("q"), array("i"), 0
    values: list[str] = []
    numbers: dict[str, int] = {}
    try:
        for place, line in data_lines(text, skip):
            cells = split_line(line, columns.delimiter)
            sites = [cells[at] for at in columns.sites if at < len(cells)]
            if len(sites) < 2 or (columns.has_names and "" in sites):
                raise ValueError(f"{shown(line)}, but a line names two sites")
            for site in sites:
                ends.append(_number(site, numbers) if columns.has_names else _site(site, columns))
            value = cells[columns.weight] if 0 <= columns.weight < len(cells) else ""
            _check_value(value, line, len(cells), columns, has_value)
            if has_value:
                values.append(value)
                places.append(place)
    except ValueError as error:
        kind = NoNumber if isinstance(error, NoNumber) else InputError
        raise kind(f"{path}: line {place}: {error}") from error
    weights = make_weights(values, lambda n: f"{path}: line {places[n]}: ") if has_value else None
    pairs = np.array(ends, np.int32).reshape(-1, 2)
    names = tuple(numbers) if columns.has_names else None
    return Edges(int(pairs.max(initial=-1)) + 1, pairs, weights, names)


def _check_value(value: str, line: str, width: int, columns: Columns, has_value: bool) -> None:
    """Raise ValueError for a wrong number of columns, or a weight that is missing or NaN."""
    if not columns.has_names and value.lower().lstrip("+-") == "nan":
        raise ValueError(f"weight {shown(value)}, but a weight is a number")
    if columns.width and width != columns.width:
        raise ValueError(f"{shown(line)}, but a line has {columns.width} columns")
    if has_value and not value:
        raise ValueError(f"{shown(line)}, but there is no weight in column {columns.weight + 1}")


def _site(text: str, columns: Columns) -> int:
    """Return the number of a site, counted from 0, given as digits."""
    base, top = columns.base, columns.top
    if not (text.isascii() and text.isdigit() and base <= int(text[:4000]) <= top):
        raise NoNumber(f"site {shown(text)}, but sites are integers {base} to {top}")
    return int(text) - base


def _number(name: str, numbers: dict[str, int]) -> int:
    """Return the number of a site given by name; a new name gets the next number."""
    if name not in numbers:
        is_text = name.isprintable() and "\ufffd" not in name
        if not is_text or len(name.encode()) > LONGEST_NAME:
            raise ValueError(
                f"site {shown(name)}, but a name is printable UTF-8 text of at most "
                f"{LONGEST_NAME} bytes"
            )
        numbers[name] = len(numbers)
    return numbers[name]
