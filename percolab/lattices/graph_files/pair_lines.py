"""Blocks of lines -> pairs of sites, or the one line that says which line is wrong and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.line_parser import (
    BAD_SITE,
    BAD_WEIGHT,
    BAD_WIDTH,
    FINE,
    MISSING_SITE,
    NAN_WEIGHT,
    parse_lines,
)
from percolab.lattices.graph_files.stream import CHUNK, LONGEST_LINE, Lines, shown
from percolab.lattices.topology import MAX_POINTS


@dataclass(frozen=True)
class Columns:
    """How the lines of a file are laid out.

    delimiter: character between columns; "" for any number of blanks
    sites:     numbers of the two columns that name sites, from 0
    weight:    number of the column that may not be NaN, or -1
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
    """Pairs of sites, int32 (num_pairs, 2), self-loops left out, and the largest site or -1."""

    bonds: np.ndarray
    num_loops: int
    largest: int


def read_pairs(
    path: Path, parts: Iterable[Lines], columns: Columns, *, most: int | None = None
) -> Pairs:
    """Return the pairs of sites that the lines name, in their order.

    InputError: a line that is not laid out so, or more than ``most`` pairs.
    """
    room = np.empty(((CHUNK + LONGEST_LINE) // 4 + 1, 2), np.int32)
    found, loops, largest, entries = [np.empty((0, 2), np.int32)], 0, -1, 0
    for part in parts:
        used, more_loops, top = _parse(path, part, columns, room)
        found.append(room[:used].copy())
        loops, largest, entries = loops + more_loops, max(largest, top), entries + used + more_loops
        if most is not None and entries > most:
            raise InputError(f"{path}: holds more than the {most} entries that its header promises")
    return Pairs(np.concatenate(found), loops, largest)


def _parse(path: Path, part: Lines, columns: Columns, room: np.ndarray) -> tuple[int, int, int]:
    """Return how many pairs were written to ``room``, how many self-loops not, the largest site."""
    used, loops, largest, lines, wrong, first, last = parse_lines(
        np.frombuffer(part.text, np.uint8),
        ord(columns.delimiter or "\0"),
        np.array([*columns.sites, columns.weight]),
        columns.width,
        columns.base,
        columns.top,
        room,
    )
    if wrong != FINE:
        what = _in_words(wrong, shown(part.text[first:last]), columns)
        raise InputError(f"{path}: line {part.line + lines}: {what}")
    return used, loops, largest


def _in_words(wrong: int, text: str, columns: Columns) -> str:
    base, top = columns.base, columns.top
    return {
        MISSING_SITE: f"{text}, but a line names two sites",
        BAD_SITE: f"site {text}, but sites are integers {base} to {top}",
        NAN_WEIGHT: f"weight {text}, but a weight is a number",
        BAD_WEIGHT: f"weight {text}, but a weight is a number",
        BAD_WIDTH: f"{text}, but a line has {columns.width} columns",
    }[wrong]
