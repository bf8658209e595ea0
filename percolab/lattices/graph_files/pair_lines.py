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
    HUGE_INTEGER,
    MISSING_SITE,
    MISSING_WEIGHT,
    NAN_WEIGHT,
    NO_FINITE_WEIGHT,
    WeightRoom,
    parse_lines,
)
from percolab.lattices.graph_files.stream import CHUNK, LONGEST_LINE, Lines, shown
from percolab.lattices.graph_files.weights import NOT_FINITE, is_beyond_floats
from percolab.lattices.topology import MAX_POINTS


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
    """Pairs of sites, int32 (num_pairs, 2), self-loops left out, and the largest site or -1.

    weights: of the pairs, int64 where all are written as integers, else float64; None if not wanted
    """

    bonds: np.ndarray
    num_loops: int
    largest: int
    weights: np.ndarray | None


def read_pairs(
    path: Path,
    parts: Iterable[Lines],
    columns: Columns,
    *,
    most: int | None = None,
    weights: bool = False,
) -> Pairs:
    """Return the pairs of sites that the lines name, in their order, and their weights if wanted.

    InputError: a line that is not laid out so, more than ``most`` pairs, a weight that is missing,
    not finite or beyond int64, or an integer beyond 2^53 beside weights that are none.
    """
    room = np.empty(((CHUNK + LONGEST_LINE) // 4 + 1, 2), np.int32)
    weight_room = WeightRoom.of(len(room) if weights else 0)
    column = _WeightColumn(path)
    found, loops, largest, entries = [np.empty((0, 2), np.int32)], 0, -1, 0
    for part in parts:
        used, more_loops, top = _parse(path, part, columns, room, weight_room)
        found.append(room[:used].copy())
        if weights:
            column.add(part, WeightRoom(*(every[:used] for every in weight_room)))
        loops, largest, entries = loops + more_loops, max(largest, top), entries + used + more_loops
        if most is not None and entries > most:
            raise InputError(f"{path}: holds more than the {most} entries that its header promises")
    return Pairs(np.concatenate(found), loops, largest, column.joined() if weights else None)


class _WeightColumn:
    """The weights of a file, block by block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks: list[np.ndarray] = [np.empty(0, np.int64)]
        # The first integer that floats do not tell from the next: (line, as it is written).
        self.large: tuple[int, str] | None = None

    def add(self, part: Lines, found: WeightRoom) -> None:
        """Add the weights of a block of lines; InputError if one is too large for a float."""
        large = np.flatnonzero(is_beyond_floats(found.integers))
        if large.size and self.large is None:
            self.large = _place(part, found.places[large[0]])
        if found.is_integer.all():
            self.blocks.append(found.integers.copy())
            return
        # Fortran writes 1.5D+00.
        text = part.text.translate(bytes.maketrans(b"dD", b"ee"))
        is_float = ~found.is_integer
        places = found.places[is_float]
        values = found.integers.astype(np.float64)
        values[is_float] = [float(text[first:last]) for first, last in places.tolist()]
        wrong = np.flatnonzero(np.isinf(values[is_float]))
        if wrong.size:
            line, weight = _place(part, places[wrong[0]])
            raise InputError(f"{self.path}: line {line}: weight {weight}, {NOT_FINITE}")
        self.blocks.append(values)

    def joined(self) -> np.ndarray:
        """Return all weights; InputError for an integer beyond 2^53 where there are floats."""
        found = np.concatenate(self.blocks)
        if found.dtype == np.float64 and self.large is not None:
            line, weight = self.large
            raise InputError(
                f"{self.path}: line {line}: weight {weight}, but beside weights with a point or an "
                "exponent integers are at most 2^53, as floats do not tell larger ones apart"
            )
        return found


def _place(part: Lines, place: np.ndarray) -> tuple[int, str]:
    """Return the line that bytes of a block are in, and the bytes as an error may show them."""
    first, last = place.tolist()
    return part.line + part.text.count(b"\n", 0, first), shown(part.text[first:last])


def _parse(
    path: Path, part: Lines, columns: Columns, room: np.ndarray, weights: WeightRoom
) -> tuple[int, int, int]:
    """Return how many pairs were written to ``room``, how many self-loops not, the largest site."""
    used, loops, largest, lines, wrong, first, last = parse_lines(
        np.frombuffer(part.text, np.uint8),
        ord(columns.delimiter or "\0"),
        np.array([*columns.sites, columns.weight]),
        columns.width,
        columns.base,
        columns.top,
        room,
        weights,
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
        MISSING_WEIGHT: f"{text}, but there is no weight in column {columns.weight + 1}",
        NO_FINITE_WEIGHT: f"weight {text}, {NOT_FINITE}",
        HUGE_INTEGER: f"weight {text}, but integers are at least -2^63 and below 2^63",
    }[wrong]
