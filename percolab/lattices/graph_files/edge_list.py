"""Edge lists as text: two columns of site numbers, separated by blanks, commas or semicolons."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import GraphData, check_num_sites, graph_data
from percolab.lattices.graph_files.pair_lines import Columns, read_pairs
from percolab.lattices.graph_files.stream import Lines, next_data_line, read_lines, shown
from percolab.lattices.graph_files.weights import EdgeWeights
from percolab.lattices.topology import MAX_POINTS

#: Headers that say which columns name the sites.
_ENDS = (("source", "target"), ("from", "to"))

# The first column, in quotes or up to a separator, and what comes after it.
_SEPARATOR = re.compile(rb'[ \t]*+(?:"[^"]*"|[^,; \t"]*)[ \t]*+([,;]?)')


def read_edge_list(
    path: Path, num_sites: int | None, multi: bool, weights: bool = False
) -> GraphData:
    """Return the graph of an edge list; sites are 0 to the largest number unless given."""
    if num_sites is not None and not 1 <= num_sites <= MAX_POINTS:
        raise InputError(f"{path}: {num_sites} sites, but a graph has 1 to {MAX_POINTS}")
    top = (num_sites or MAX_POINTS) - 1
    first, parts = next_data_line(_not_a_matrix(path))
    columns = Columns(top=top)
    if first is not None:
        columns, is_header = columns_of(first.text, top=top)
        if not is_header:
            parts = chain([Lines(first.text + b"\n", first.line)], parts)
        elif weights and columns.weight < 0:
            raise InputError(
                f"{path}: line {first.line}: {shown(first.text)}, but a header names a column "
                "'weight' where bonds have weights"
            )
    pairs = read_pairs(path, parts, columns, weights=weights)
    num_edges = len(pairs.bonds) + pairs.num_loops
    if num_sites is None:
        if num_edges == 0:
            raise InputError(f"{path}: names no sites; give the number of sites if that is meant")
        num_sites = pairs.largest + 1
        check_num_sites(path, num_sites, num_edges, None)
    return graph_data(
        num_sites,
        pairs.bonds,
        multi=multi,
        num_loops=pairs.num_loops,
        notes=_numbered_from_one(pairs.bonds),
        weights=None if pairs.weights is None else EdgeWeights(pairs.weights, path),
    )


def columns_of(line: bytes, *, top: int) -> tuple[Columns, bool]:
    """Return how the lines of an edge list are laid out, and whether this first one is a header.

    >>> columns_of(b"weight;From;To", top=9)
    (Columns(delimiter=';', sites=(1, 2), weight=0, width=0, base=0, top=9), True)
    """
    found = _SEPARATOR.match(line)
    delimiter = found.group(1).decode() if found else ""
    names = [name.strip().lower() for name in _split(line.decode("utf-8", "replace"), delimiter)]
    if len(names) < 2 or any(_is_number(name) for name in names[:2]):
        return Columns(delimiter, top=top), False
    # Tables are often written with an unnamed first column that numbers the rows.
    start = 1 if names[0] == "" and len(names) > 2 else 0
    sites = start, start + 1
    for ends in _ENDS:
        if all(names.count(end) == 1 for end in ends):
            sites = names.index(ends[0]), names.index(ends[1])
            break
    weight = names.index("weight") if "weight" in names else -1
    return Columns(delimiter, sites, weight, top=top), True


def _not_a_matrix(path: Path) -> Iterator[Lines]:
    """Yield a file's lines; a Matrix Market file would pass for an edge list, but is not one."""
    for part in read_lines(path):
        if part.line == 1 and part.text[:14].lower() == b"%%matrixmarket":
            raise InputError(f"{path}: is a Matrix Market file; name it .mtx")
        yield part


def _split(line: str, delimiter: str) -> list[str]:
    if not delimiter:
        return [name.strip('"') for name in line.split()]
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:  # a column of more than 131072 characters
        return line.split(delimiter)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbered_from_one(bonds: np.ndarray) -> tuple[str, ...]:
    if bonds.size and bonds.min() == 1:
        return ("no bond names site 0: it is a site without bonds, as sites are numbered from 0",)
    return ()
