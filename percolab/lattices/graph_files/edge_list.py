"""Edge lists as text: two columns of site numbers or names, between blanks, commas, semicolons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import Edges, check_num_sites
from percolab.lattices.graph_files.pair_lines import Columns, Pairs, read_pairs, split_line
from percolab.lattices.graph_files.stream import Lines, next_data_line, read_lines, shown
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

#: What tables have in place of a value that is not known.
MISSING = ("", "na", "n/a", "null", "none", "-", "?")

# The first column, in quotes or up to a separator, and that separator.
_SEPARATOR = re.compile(rb'[ \t]*+(?:"[^"]*"|[^,; \t"]*)[ \t]*+([,;]?)')


def read_edge_list(
    path: Path, num_sites: int | None, weights: bool, requested: Sequence[str]
) -> Edges:
    """Return the edges of an edge list; sites are 0 to the largest number unless given.

    Where the first bond's sites are no numbers, all sites have names.
    requested: the columns of the two sites, and of the weight, by the names that the header gives
    """
    if num_sites is not None and not 1 <= num_sites <= MAX_POINTS:
        raise InputError(f"{path}: {num_sites} sites, but a graph has 1 to {MAX_POINTS}")
    top = (num_sites or MAX_POINTS) - 1
    first, parts = next_data_line(_not_a_matrix(path))
    second: Lines | None = None
    layout, has_names = Layout(Columns(top=top)), False
    if first is not None:
        second, parts = next_data_line(parts)
        following = second.text if second is not None else None
        options: dict[str, Any] = {
            "top": top,
            "alone": num_sites is not None,
            "requested": requested,
        }
        try:
            layout = detect_layout(first.text, following, **options)
            bond = following if layout.is_header else first.text
            has_names = bond is not None and _has_names(bond, layout.columns)
            if has_names and not layout.columns.delimiter and b"\t" in first.text.strip():
                # Names may have blanks in them, where tabs stand between the columns.
                layout = detect_layout(first.text, following, **options, delimiter="\t")
        except InputError as error:
            raise InputError(f"{path}: line {first.line}: {error}") from error
        if layout.is_header and weights and layout.columns.weight < 0:
            raise InputError(
                f"{path}: line {first.line}: {shown(first.text)}, but a header names a column "
                "'weight' where bonds have weights, or --columns names it third"
            )
        kept = [line for line in (None if layout.is_header else first, second) if line is not None]
        parts = chain([Lines(line.text + b"\n", line.line) for line in kept], parts)
    elif requested:
        raise InputError(f"{path}: has no header that names the columns {', '.join(requested)}")
    pairs = read_pairs(path, parts, layout.columns, weights=weights, has_names=has_names)
    notes, names = _header_notes(layout, first), None
    if has_names:
        assert first is not None
        if layout.may_be_header:
            pairs, notes = _decide_on_header(pairs, layout, first)
        names, count = pairs.names, len(pairs.names)
    else:
        if pairs.bonds.size and pairs.bonds.min() == 1:
            notes += ("no bond names site 0: it is a site without bonds, as sites are numbered "
                      "from 0",)  # fmt: skip
        count = pairs.largest + 1 if num_sites is None else num_sites
        if count == 0:
            raise InputError(f"{path}: names no sites; give the number of sites if that is meant")
    check_num_sites(path, count, len(pairs.bonds) + pairs.num_loops, num_sites)
    return Edges(count, pairs.bonds, pairs.weights, names, pairs.num_loops, notes)


class Layout(NamedTuple):
    """How the lines of an edge list are laid out, and what its first line is.

    words: the cells of the first line.  is_header: whether it is a header.  is_plain: whether it is
    one with the words that headers have, or as a user says.
    """

    columns: Columns
    words: tuple[str, ...] = ()
    is_header: bool = False
    is_plain: bool = False

    @property
    def may_be_header(self) -> bool:
        """Whether the first line may be a header, which only the lines below can decide."""
        return not self.is_header and not any(map(is_number, self.words))


def detect_layout(
    line: bytes,
    following: bytes | None = None,
    *,
    top: int,
    delimiter: str = "",
    alone: bool = False,
    requested: Sequence[str] = (),
) -> Layout:
    """Return how the lines of an edge list are laid out, and whether this first one is a header.

    following: the line after it.  A first line without numbers is a header if it has the words of
    one (source,target; from,to; ... or weight), or if the line after it has numbers below its
    words.  alone: whether a line with nothing below it is one, too.
    delimiter: between columns; "" is the first of comma and semicolon in the line, or blanks.
    requested: names of columns that a header must have.

    >>> detect_layout(b"weight;From;To", top=9).columns
    Columns(delimiter=';', sites=(1, 2), weight=0, width=0, base=0, top=9)
    >>> detect_layout(b"Arya Jon 5", b"Jon Sansa 3", top=9).is_header
    False
    >>> detect_layout(b"one,other,flow", b"Jon,Sansa,3", top=9).is_header
    True
    """
    separator = _SEPARATOR.match(line)
    own = delimiter or (separator.group(1).decode() if separator else "")
    cells = split_line(line.decode("utf-8", "replace"), own)
    names = [name.lower() for name in cells]
    if requested:
        columns = Columns(own, *columns_named(requested, cells), top=top)
        return Layout(columns, tuple(cells), True, True)
    bond = Layout(Columns(own, top=top), tuple(cells))
    if len(names) < 2:
        raise InputError(f"{shown(line)}, but a line names two sites, the ends of a bond")
    if any(map(is_number, names[:2])):
        return bond
    sites = known_ends(names)
    is_plain = sites is not None or "weight" in names or names[0] == ""
    after = () if following is None else split_line(following.decode("utf-8", "replace"), own)
    if not (is_plain or (alone and following is None) or _has_numbers_below(cells, after)):
        return bond
    # Tables are often written with an unnamed first column that numbers the rows.
    start = 1 if names[0] == "" and len(names) > 2 else 0
    weight = names.index("weight") if "weight" in names else -1
    columns = Columns(own, sites or (start, start + 1), weight, top=top)
    return Layout(columns, tuple(cells), True, is_plain)


def known_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the columns of the sites if names of columns, in small letters, say which they are."""
    for one, other in _ENDS:
        if names.count(one) == names.count(other) == 1:
            return names.index(one), names.index(other)
    return None


def take_columns(given: Any) -> tuple[Any, ...]:
    """Return two or three different names of columns, or (); else InputError."""
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


def columns_named(requested: Sequence[Any], names: Sequence[Any]) -> tuple[tuple[int, int], int]:
    """Return the columns of the sites, and of the weight or -1; InputError: not just one each."""
    places = []
    for name in requested:
        if names.count(name) != 1:
            why = "two columns have this name" if name in names else "there is no such column"
            known = ", ".join(map(str, names))[:200]
            raise InputError(f"columns: {shown(str(name).encode())}: {why}; there are {known}")
        places.append(names.index(name))
    return (places[0], places[1]), places[2] if len(places) > 2 else -1


def _has_numbers_below(cells: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether numbers are below words, other than those for missing values."""
    only_words = not any(map(is_number, cells))
    return any(
        is_number(below) and not is_number(cell) and cell.lower() not in MISSING
        for cell, below in list(zip(cells, after))[: None if only_words else 2]
    )


def _decide_on_header(pairs: Pairs, layout: Layout, first: Lines) -> tuple[Pairs, tuple[str, ...]]:
    """Return pairs without those of a first line that may be a header, if it is one, and notes.

    It is one if its two names stand nowhere else, while some site below stands in several bonds.
    """
    below = pairs.bonds[1:]
    if not below.size or pairs.num_loops or not (below > 1).all():
        return pairs, ()
    if np.unique(below).size == below.size:
        text = f"line {first.line}, {shown(first.text)}, is read as a bond; if it is a header, "
        return pairs, (f"{text}name the columns of the sites in it (--columns)",)
    weights = None if pairs.weights is None else pairs.weights[1:]
    pairs = pairs._replace(bonds=below - np.int32(2), weights=weights, names=pairs.names[2:])
    columns = replace(layout.columns, weight=-1)
    return pairs, _header_notes(layout._replace(columns=columns, is_header=True), first)


def _has_names(line: bytes, columns: Columns) -> bool:
    """Return whether the sites of a line are names: neither of them begins as a number does."""
    cells = split_line(line.decode("utf-8", "replace"), columns.delimiter)
    sites = [cells[at] for at in columns.sites if at < len(cells)]
    return len(sites) == 2 and not any(is_number(site) for site in sites)


def _header_notes(layout: Layout, first: Lines | None) -> tuple[str, ...]:
    """Return a note on a header that is not a usual one, and on columns that are not used."""
    if not layout.is_header or first is None:
        return ()
    words, (one, other), weight = layout.words, layout.columns.sites, layout.columns.weight
    rest = [word for at, word in enumerate(words) if at not in (one, other, weight) and word]
    names = ", ".join(rest)
    unused = f"not used: the columns {names[:80]}{'...' if len(names) > 80 else ''}"
    if layout.is_plain:
        return (unused,) if rest else ()
    text = (
        f"line {first.line} is read as a header: sites are in the columns {words[one]} and "
        f"{words[other]}"
    )
    return (f"{text}; {unused}" if rest else text,)


def _not_a_matrix(path: Path) -> Iterator[Lines]:
    """Yield a file's lines; a Matrix Market file would pass for an edge list, but is not one."""
    for part in read_lines(path):
        if part.line == 1 and part.text[:14].lower() == b"%%matrixmarket":
            raise InputError(f"{path}: is a Matrix Market file; name it .mtx")
        yield part
