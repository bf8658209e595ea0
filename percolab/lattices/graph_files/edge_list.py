"""Edge lists as text: two columns of site numbers or names, separated by blanks, commas, ..."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import DIRECTED, Edges, check_num_sites
from percolab.lattices.graph_files.pair_lines import Columns, NoNumber, read_pairs, split_line
from percolab.lattices.graph_files.text import data_lines, read_text, shown
from percolab.lattices.shown import is_number
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

#: Texts that tables have in place of a missing value.
MISSING = ("", "na", "n/a", "null", "none", "-", "?")

# How many lines are examined to decide whether they may be lists of neighbours.
_FIRST_LINES = 1000

# The first column, in quotes or up to a separator, and that separator.
_SEPARATOR = re.compile(r'[ \t]*+(?:"[^"]*"|[^,; \t"]*)[ \t]*+([,;]?)')


def read_edge_list(
    path: Path, num_sites: int | None, weights: bool, requested: Sequence[str]
) -> Edges:
    """Return the edges of an edge list; sites are 0 to the largest number unless given.

    All sites have names if one of the first bond's two sites is no number, or, below a header, if
    any site is none.  requested: names, in the header, of the sites' columns and the weight's
    """
    if num_sites is not None and not 1 <= num_sites <= MAX_POINTS:
        raise InputError(f"{path}: {num_sites} sites, but a graph has 1 to {MAX_POINTS}")
    text = read_text(path)
    if text[:14].lower() == b"%%matrixmarket":
        raise InputError(f"{path}: is a Matrix Market file; name it .mtx")
    first, second = (*islice(data_lines(text), 2), None, None)[:2]
    if first is None and requested:
        raise InputError(f"{path}: has no header that names the columns {', '.join(requested)}")
    place, line = first or (1, "")
    if line.lower().startswith(("*vertices", "*network")):
        arguments = f"networkx.read_pajek({path.name!r}), {path.stem + '.graphml'!r}"
        raise InputError(
            f"{path}: is a Pajek file, which is not read; convert it with "
            f"networkx.write_graphml({arguments})"
        )
    try:
        following = second[1] if second else ("" if num_sites else None)
        layout = detect_layout(line, following, requested) if first else Layout(Columns())
        if layout.is_header and weights and layout.columns.weight < 0:
            raise InputError(
                f"{shown(line)}, but weights need a column 'weight' in the header, or a third name "
                "in --columns"
            )
    except InputError as error:
        raise InputError(f"{path}: line {place}: {error}") from error
    columns = replace(layout.columns, top=(num_sites or MAX_POINTS) - 1)
    skip = place if layout.is_header else place - 1
    notes = _header_notes(layout, place, has_unused=bool(requested[2:]) and not weights)
    if following and _says_directed(layout, following):
        notes = (DIRECTED, *notes)
    try:
        edges = read_pairs(path, text, skip, columns, weights)
    except NoNumber as error:
        if not layout.is_plain:
            raise
        columns = replace(columns, has_names=True)
        edges = read_pairs(path, text, skip, columns, weights)
        notes += (f"sites are read as names: {str(error).removeprefix(f'{path}: ')}",)
    if columns.has_names:
        if not layout.is_header and not any(map(is_number, layout.words)):
            edges, notes = _decide_on_header(edges, layout, place, line)
    else:
        if edges.ends.size and edges.ends.min() == 1:
            notes += ("no bond names site 0: it is a site without bonds, as sites are numbered "
                      "from 0",)  # fmt: skip
        edges = edges._replace(num_sites=num_sites or edges.num_sites)
    if not (weights or layout.is_header):
        notes += _note_lists(text, columns, edges)
    if not edges.num_sites:
        raise InputError(f"{path}: names no sites; give the number of sites if that is meant")
    check_num_sites(path, edges.num_sites, len(edges.ends), num_sites)
    return edges._replace(notes=notes)


class Layout(NamedTuple):
    """How the lines of an edge list are laid out, and what its first line is.

    words: the cells of the first line.  is_header: whether it is a header.  is_plain: whether it is
    one with the usual words, or the user named its columns.
    """

    columns: Columns
    words: Sequence[str] = ()
    is_header: bool = False
    is_plain: bool = False


def detect_layout(
    line: str, following: str | None, requested: Sequence[str] = (), delimiter: str = ""
) -> Layout:
    """Return how the lines of an edge list are laid out, and whether this first one is a header.

    following: the line after it; None if there is none, "" if the line must be a header.  A first
    line without numbers is a header if it has the usual words (source,target; from,to; ... or
    weight), if the line after it has numbers below its words, or if that line is "".
    requested: names of columns that a header must have.
    delimiter: between columns; "" finds it: the first comma or semicolon of the line, else blanks,
    or tabs where sites have names and the line has a tab.

    >>> detect_layout("weight;From;To", "3;5;4").columns
    Columns(delimiter=';', sites=(1, 2), weight=0, width=0, base=0, top=2147483583, has_names=False)
    >>> detect_layout("Arya Jon 5", "Jon Sansa 3").is_header
    False
    >>> detect_layout("one,other,flow", "Jon,Sansa,3").is_header
    True
    """
    separator = _SEPARATOR.match(line)
    own = delimiter or (separator[1] if separator else "")
    if not own and line.startswith("\t") and not is_number(line.split()[0]):
        own = "\t"  # the header of a table whose first column has no name
    marks = [mark for mark in "\t,;" if mark in line and _has_blanks(line.partition(mark)[0])]
    if not own and marks and "{" not in line:  # networkx writes an edge's attributes as {...}
        own = marks[0]
    cells, after = split_line(line, own), split_line(following or "", own)
    sites, weight = choose_columns(cells, requested)
    if len(cells) < 2 and not requested:
        raise InputError(f"{shown(line)}, but a line names two sites, the ends of a bond")
    may_be_header = not any(map(is_number, cells[:2]))
    has_words = sites is not None or weight >= 0 or cells[0] == ""
    is_plain = bool(requested) or (may_be_header and has_words)
    is_header = is_plain or (
        may_be_header and (following == "" or _has_numbers_below(cells, after))
    )
    # Tables are often written with an unnamed first column that numbers the rows.
    start = 1 if is_header and cells[0] == "" and len(cells) > 2 else 0
    if not is_header or sites is None:
        sites = start, start + 1
    columns = Columns(own, sites, weight if is_header else 2)
    bond = after if is_header else cells
    ends = [bond[at] for at in columns.sites if at < len(bond)]
    numbered = sum(map(is_number, ends))
    # A line with one name and one number may be a header with a number in it, or a mistake.
    is_mixed = numbered == 1 and not all(is_number(after[at]) for at in columns.sites if after[at:])
    has_names = len(ends) == 2 and (bool(delimiter) or not numbered or is_mixed)
    if has_names and not own and "\t" in line:
        # Where tabs separate the columns, names may contain blanks.
        return detect_layout(line, following, requested, "\t")
    return Layout(replace(columns, has_names=has_names), cells, is_header, is_plain)


def _has_blanks(cell: str) -> bool:
    """Return whether a column is a name of several words, rather than several numbers."""
    words = cell.split()[:2]
    return len(words) > 1 and not all(map(is_number, words))


def take_columns(given: Any) -> tuple[Any, ...]:
    """Return the two or three different names of columns given, or (); else raise InputError."""
    if given is None:
        return ()
    listed = given.split(",") if isinstance(given, str) else given
    names = listed if isinstance(listed, Sequence) else ()
    names = tuple(name.strip() if isinstance(name, str) else name for name in names)
    if len(names) not in (2, 3) or "" in names or len(set(map(str, names))) < len(names):
        raise InputError(
            f"columns = {given!r}, but they are source,target or source,target,weight, by their "
            "names"
        )
    return names


def choose_columns(
    labels: Sequence[Any], requested: Sequence[Any]
) -> tuple[tuple[int, int] | None, int]:
    """Return the columns of the sites, None if no names identify them, and of the weight or -1.

    InputError: no column, or more than one, has a requested name.
    """
    names = [str(label).lower() for label in labels]
    for name in requested:
        if labels.count(name) != 1:
            why = "two columns have this name" if name in labels else "there is no such column"
            known = ", ".join(map(str, labels))[:200]
            raise InputError(f"columns: {shown(str(name))}: {why}; the columns are {known}")
    if requested:
        one, other, *weight = map(labels.index, requested)
        return (one, other), weight[0] if weight else -1
    ends = [pair for pair in _ENDS if all(names.count(name) == 1 for name in pair)]
    sites = (names.index(ends[0][0]), names.index(ends[0][1])) if ends else None
    return sites, names.index("weight") if "weight" in names else -1


def _has_numbers_below(cells: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether a number is below a word that does not stand for a missing value."""
    only_words = not any(map(is_number, cells))
    return any(
        is_number(below) and not is_number(cell) and cell.lower() not in MISSING
        for cell, below in list(zip(cells, after))[: None if only_words else 2]
    )


def _decide_on_header(
    edges: Edges, layout: Layout, place: int, line: str
) -> tuple[Edges, tuple[str, ...]]:
    """Return the edges, less that of the first line if it proves to be a header, and notes.

    It is a header if its two names occur nowhere else, while some site below is in several bonds.
    """
    below = edges.ends[1:]
    has_loops = (edges.ends[:, 0] == edges.ends[:, 1]).any()
    if not below.size or has_loops or not (below > 1).all():
        return edges, ()
    if np.unique(below).size == below.size:
        text = f"line {place}, {shown(line)}, is read as a bond; if it is a header, "
        return edges, (f"{text}name the columns of the sites in it (--columns)",)
    weights = None if edges.weights is None else edges.weights[1:]
    names = (edges.names or ())[2:]
    edges = Edges(len(names), below - np.int32(2), weights, names)
    columns = replace(layout.columns, weight=-1)
    return edges, _header_notes(layout._replace(columns=columns, is_header=True), place)


def _note_lists(text: bytes, columns: Columns, edges: Edges) -> tuple[str, ...]:
    """Return a note if lines may be lists of neighbours rather than edges.

    That is so if no two lines begin with the same site, and all further columns are sites, too.
    """
    lines = islice(data_lines(text), _FIRST_LINES)
    rows = [split_line(line, columns.delimiter) for _, line in lines]
    longer = [row for row in rows if row[2:]]
    if not longer or len({row[0] for row in rows}) < max(2, len(rows)):
        return ()
    cells = {cell for row in longer for cell in row[2:]}
    if edges.names:
        are_sites = cells <= set(edges.names)
    else:
        are_sites = all(x.isdecimal() and int(x[:12]) < edges.num_sites for x in cells)
    if not are_sites:
        return ()
    line = shown(" ".join(longer[0]))
    return (
        f"each line is one bond, {line} that of its first two sites; if lines list all neighbours "
        "of a site, use networkx.read_adjlist",
    )


def _says_directed(layout: Layout, following: str) -> bool:
    """Return whether the first edge has "Directed" in the column Type of a table from Gephi."""
    cells = dict(zip(map(str.lower, layout.words), split_line(following, layout.columns.delimiter)))
    return layout.is_header and cells.get("type", "").lower() == "directed"


def _header_notes(layout: Layout, place: int, *, has_unused: bool = False) -> tuple[str, ...]:
    """Return a note on a header without the usual words, and on columns that are not used.

    has_unused: whether there is a column of weights that nothing reads.
    """
    if not layout.is_header:
        return ()
    words, (one, other) = layout.words, layout.columns.sites
    used = one, other, one if has_unused else layout.columns.weight
    rest = ", ".join(word for at, word in enumerate(words) if at not in used and word)
    unused = f"columns not used: {rest[:80]}{'...' if len(rest) > 80 else ''}"
    sites = f"sites are in the columns {words[one]} and {words[other]}"
    text = f"line {place} is read as a header: {sites}"
    parts = [*([] if layout.is_plain else [text]), *([unused] if rest else [])]
    return ("; ".join(parts),) if parts else ()
