"""Matrix Market files: coordinate matrices, each entry an edge, its value the weight.

The format is that of Boisvert, Pozo and Remington, NISTIR 5935 (1996).  Lines are read as those of
an edge list, so nothing is set aside for what a header merely promises.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import Edges, check_num_sites
from percolab.lattices.graph_files.pair_lines import Columns, read_pairs
from percolab.lattices.graph_files.stream import Lines, next_data_line, read_lines, shown

#: Columns of an entry's line by what the header says the values are.
_WIDTHS = {b"pattern": 2, b"integer": 3, b"real": 3}
_SYMMETRIES = (b"general", b"symmetric")
_SIZE = re.compile(rb"\s*(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})\s*")


def read_matrix_market(path: Path, num_sites: int | None, weights: bool) -> Edges:
    """Return the edges of the graph whose adjacency matrix a Matrix Market file holds."""
    parts = read_lines(path)
    banner = next(parts, None)
    if banner is None:
        raise InputError(f"{path}: is empty")
    end = banner.text.index(b"\n")
    width = _width(path, banner.text[:end])
    if weights and width < 3:
        raise InputError(f"{path}: line 1: is a pattern, whose bonds have no weights")
    rest = Lines(banner.text[end + 1 :], banner.line + 1)
    size, parts = next_data_line(chain([rest], parts))
    claimed, entries = _size(path, size)
    check_num_sites(path, claimed, entries, num_sites)
    columns = Columns(width=width, base=1, top=claimed)
    pairs = read_pairs(path, parts, columns, most=entries, weights=weights)
    num_edges = len(pairs.bonds) + pairs.num_loops
    if num_edges < entries:
        raise InputError(f"{path}: holds {num_edges} entries, but its header promises {entries}")
    return Edges(
        claimed, pairs.bonds, pairs.weights, num_loops=pairs.num_loops, is_matrix=True, base=1
    )


def _width(path: Path, banner: bytes) -> int:
    """Return the columns of an entry's line, by the first line of the file."""
    words = banner.lower().split()
    if len(words) != 5 or words[:2] != [b"%%matrixmarket", b"matrix"]:
        raise InputError(
            f"{path}: line 1: {shown(banner)}, but a Matrix Market file starts with "
            "'%%MatrixMarket matrix'"
        )
    layout, values, symmetry = words[2:]
    if layout != b"coordinate" or values not in _WIDTHS or symmetry not in _SYMMETRIES:
        raise InputError(
            f"{path}: line 1: {shown(b' '.join(words[2:]))}, but an adjacency matrix is "
            "coordinate, pattern or integer or real, and general or symmetric"
        )
    return _WIDTHS[values]


def _size(path: Path, line: Lines | None) -> tuple[int, int]:
    """Return rows and entries of a matrix as its header promises them."""
    if line is None:
        raise InputError(f"{path}: ends before the line with its rows, columns and entries")
    found = _SIZE.fullmatch(line.text)
    if not found:
        raise InputError(
            f"{path}: line {line.line}: {shown(line.text)}, but rows, columns and entries are "
            "three integers"
        )
    rows, columns, entries = map(int, found.groups())
    if rows != columns:
        raise InputError(
            f"{path}: line {line.line}: {rows} rows and {columns} columns, but an adjacency "
            "matrix is square"
        )
    return rows, entries
