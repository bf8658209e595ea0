"""Edge lists as text: two columns of site numbers or names, between blanks, commas, semicolons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import GraphData, check_num_sites, graph_data
from percolab.lattices.graph_files.named_edges import read_named_pairs, split_line
from percolab.lattices.graph_files.pair_lines import Columns, read_pairs
from percolab.lattices.graph_files.stream import Lines, next_data_line, read_lines, shown
from percolab.lattices.graph_files.weights import EdgeWeights
from percolab.lattices.topology import MAX_POINTS

#: Headers that say which columns name the sites.
_ENDS = (
    ("source", "target"),
    ("from", "to"),
    ("src", "dst"),
    ("node1", "node2"),
    ("node_1", "node_2"),
    ("site1", "site2"),
    ("id1", "id2"),
    ("fromnodeid", "tonodeid"),
    ("u", "v"),
)

NOTHING: tuple[str, ...] = ()

# The first column, in quotes or up to a separator, and what comes after it.
_SEPARATOR = re.compile(rb'[ \t]*+(?:"[^"]*"|[^,; \t"]*)[ \t]*+([,;]?)')


def read_edge_list(
    path: Path, num_sites: int | None, multi: bool, weights: bool = False
) -> GraphData:
    """Return the graph of an edge list; sites are 0 to the largest number unless given.

    Where the first bond's sites are no numbers, all sites have names.
    """
    if num_sites is not None and not 1 <= num_sites <= MAX_POINTS:
        raise InputError(f"{path}: {num_sites} sites, but a graph has 1 to {MAX_POINTS}")
    top = (num_sites or MAX_POINTS) - 1
    first, parts = next_data_line(_not_a_matrix(path))
    second: Lines | None = None
    columns, notes = Columns(top=top), NOTHING
    has_names = False
    if first is not None:
        second, parts = next_data_line(parts)
        following = second.text if second is not None else None
        columns, is_header = columns_of(first.text, following, top=top, alone=num_sites is not None)
        bond = following if is_header else first.text
        has_names = bond is not None and _has_names(bond, columns)
        if has_names and not columns.delimiter and b"\t" in first.text.strip():
            # Names may have blanks in them, where tabs stand between the columns.
            columns, is_header = columns_of(first.text, following, top=top, delimiter="\t")
        notes = _unused(first.text, columns, is_header)
        if has_names and not is_header:
            line = f"line {first.line}, {shown(first.text)}, is read as a bond"
            notes = (f"{line}: a header has the words source and target, or from and to",)
        if is_header and weights and columns.weight < 0:
            raise InputError(
                f"{path}: line {first.line}: {shown(first.text)}, but a header names a column "
                "'weight' where bonds have weights"
            )
        kept = [line for line in ((None if is_header else first), second) if line is not None]
        parts = chain([Lines(line.text + b"\n", line.line) for line in kept], parts)
    if has_names:
        return _with_names(path, parts, columns, num_sites, multi, weights, notes)
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
        notes=notes + _numbered_from_one(pairs.bonds),
        weights=None if pairs.weights is None else EdgeWeights(pairs.weights, path),
    )


def _with_names(
    path: Path,
    parts: Iterator[Lines],
    columns: Columns,
    num_sites: int | None,
    multi: bool,
    weights: bool,
    notes: tuple[str, ...],
) -> GraphData:
    """Return the graph of an edge list whose sites have names."""
    pairs = read_named_pairs(path, parts, columns, weights=weights)
    check_num_sites(path, len(pairs.names), len(pairs.bonds) + pairs.num_loops, num_sites)
    return graph_data(
        len(pairs.names),
        pairs.bonds,
        multi=multi,
        names=pairs.names,
        num_loops=pairs.num_loops,
        notes=notes,
        weights=None if pairs.weights is None else EdgeWeights(pairs.weights, path),
    )


def columns_of(
    line: bytes,
    following: bytes | None = None,
    *,
    top: int,
    delimiter: str = "",
    alone: bool = False,
) -> tuple[Columns, bool]:
    """Return how the lines of an edge list are laid out, and whether this first one is a header.

    following: the line after it.  A first line without numbers is a header if it has the words of
    one (source,target; from,to; ... or weight), or if the line after it has numbers.
    alone: whether a line with nothing below it is one, too.
    delimiter: between columns; "" is the first of comma and semicolon in the line, or blanks.

    >>> columns_of(b"weight;From;To", top=9)
    (Columns(delimiter=';', sites=(1, 2), weight=0, width=0, base=0, top=9), True)
    >>> columns_of(b"Arya Jon 5", b"Jon Sansa 3", top=9)[1]
    False
    """
    found = _SEPARATOR.match(line)
    own = delimiter or (found.group(1).decode() if found else "")
    cells = split_line(line.decode("utf-8", "replace"), own)
    names = [name.lower() for name in cells]
    if len(names) < 2 or any(_is_number(name) for name in names[:2]):
        return Columns(own, top=top), False
    ends = next((ends for ends in _ENDS if all(names.count(end) == 1 for end in ends)), None)
    is_header = ends is not None or "weight" in names or names[0] == ""
    is_header |= alone and following is None
    if not is_header and following is not None:
        after = split_line(following.decode("utf-8", "replace"), own)
        is_header = any(_is_number(cell) for cell in after[:2])
    if not is_header:
        return Columns(own, top=top), False
    # Tables are often written with an unnamed first column that numbers the rows.
    start = 1 if names[0] == "" and len(names) > 2 else 0
    sites = start, start + 1
    if ends is not None:
        sites = names.index(ends[0]), names.index(ends[1])
    weight = names.index("weight") if "weight" in names else -1
    return Columns(own, sites, weight, top=top), True


def _has_names(line: bytes, columns: Columns) -> bool:
    """Return whether the sites of a line are names: neither of them begins as a number does."""
    cells = split_line(line.decode("utf-8", "replace"), columns.delimiter)
    sites = [cells[at] for at in columns.sites if at < len(cells)]
    return len(sites) == 2 and not any(_is_number(site) for site in sites)


def _unused(line: bytes, columns: Columns, is_header: bool) -> tuple[str, ...]:
    """Return a line that names the columns of a header that are not used, or none."""
    if not is_header:
        return ()
    names = split_line(line.decode("utf-8", "replace"), columns.delimiter)
    used = {*columns.sites, columns.weight}
    rest = [name for at, name in enumerate(names) if at not in used and name]
    if not rest:
        return ()
    text = ", ".join(rest)
    return (f"not used: the columns {text[:80]}{'...' if len(text) > 80 else ''}",)


def _not_a_matrix(path: Path) -> Iterator[Lines]:
    """Yield a file's lines; a Matrix Market file would pass for an edge list, but is not one."""
    for part in read_lines(path):
        if part.line == 1 and part.text[:14].lower() == b"%%matrixmarket":
            raise InputError(f"{path}: is a Matrix Market file; name it .mtx")
        yield part


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
