"""Tables from other sources: a text file or a data frame -> series that can be fitted.

A header names the columns.  A row has a size, x, and counts k of n trials, or a mean and its error.
Columns are found by the usual words for them, or named by ``columns``.  A file of sinter (C.
Gidney's sampler of quantum codes) is read as it is: entries of json_metadata become columns.

Text in other columns, and metadata, split a table into series.  Metadata that are numbers and
follow from the size or from x alone, such as the rounds of a code, do not.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from percolab.analysis.table_fit import Series
from percolab.errors import InputError, check_regular, nearest, refuse_mask, unreadable
from percolab.lattices.graph_files.edge_list import MISSING
from percolab.lattices.graph_files.objects import is_frame
from percolab.lattices.graph_files.pair_lines import split_line
from percolab.lattices.shown import Shown, counted, few, is_number, printable
from percolab.tasks.values import take_path

#: Endings of files that are read as tables.
SUFFIXES = (".csv", ".tsv", ".txt", ".dat")

#: The words for every column; the first one present counts.  For single letters the case matters.
WORDS: Mapping[str, tuple[str, ...]] = {
    "size": ("L", "l", "d", "distance", "size", "linear_size", "length"),
    "x": (
        "p", "x", "T", "K", "beta", "temperature", "coupling", "density", "disorder", "noise",
        "physical_error_rate", "error_rate",
    ),
    "count": ("k", "errors", "count", "counts", "successes", "hits", "failures", "num_errors"),
    "total": ("n", "shots", "total", "trials", "samples", "runs", "num_shots"),
    "mean": ("mean", "y", "value", "average", "probability", "R"),
    "error": ("error", "err", "stderr", "std_err", "standard_error", "sem", "sigma", "dy", "yerr"),
}  # fmt: skip
ROLES = (*WORDS, "series")
#: Endings that turn the name of a mean into that of its error.
_ERROR_ENDS = ("_error", "_err")

_METADATA, _DISCARDS = "json_metadata", "discards"
#: Columns of sinter that describe how a row was made.
_BOOKKEEPING = ("strong_id", "seconds", "custom_counts", _METADATA)

#: A unit after a name: [K], (1/s).
_UNIT = re.compile(r"\s*(\[[^]]*\]|\([^)]*\))$")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")

Row = dict[str, str]


@dataclass(frozen=True, repr=False)
class GivenTable(Shown):
    """The series of a table by name, "" where there is one alone; notes: on how it was read."""

    source: str
    series: Mapping[str, Series]
    notes: tuple[str, ...]

    def choose(self, name: str | None = None) -> Series:
        """Return a series, which needs no name where it is alone; InputError: no such series."""
        names = list(self.series)
        if name is None and len(names) == 1:
            return self.series[names[0]]
        if name is None:
            raise InputError(f"{self.source}: give a --series, one of: {'; '.join(names)}")
        if not isinstance(name, str) or name not in self.series:
            there = nearest(name, names) if any(names) else "it has one unnamed series"
            raise InputError(f"--series {name!r} is not in {self.source}; {there}")
        return self.series[name]

    def _facts(self) -> dict[str, Any]:
        names = list(self.series)
        facts = self.series[names[0]]._facts() | ({"series": "; ".join(names)} if names[0] else {})
        return {"of": self.source, **facts}


def read_table(source: Any, columns: str | Mapping[str, str] | None = None) -> GivenTable:
    """Return the series of a file, a data frame, or a mapping of columns to sequences.

    columns: the columns of some roles, as "size=d,x=p" or a mapping; for "series" those that split
    the table, joined by +, or "none".  InputError (one line): what is wrong.
    """
    requested = take_roles(columns)
    if isinstance(source, str | Path):
        name, rows = str(source), dict(_read_rows(take_path("table", source)))
    elif is_frame(source) or isinstance(source, Mapping):
        name, rows = "the table", _rows_of_columns(source)
    else:
        raise InputError(
            f"a table is a file, a data frame or a mapping, no {type(source).__name__}"
        )
    if not rows:
        raise InputError(f"{name}: has no rows below its header")
    metadata = _add_metadata(name, rows)
    columns_there = list(next(iter(rows.values())))
    roles = _find_roles(name, columns_there, requested)
    values, notes = _read_values(name, rows, roles)
    names = _splitting(name, list(rows.values()), roles, requested, metadata)
    groups: dict[str, list[tuple[float, ...]]] = {}
    for number, numbers in values.items():
        label = ", ".join(f"{key}={rows[number].get(key, '')}" for key in names)
        groups.setdefault(label, []).append(numbers)
    if not groups:
        raise InputError(f"{name}: no row is left: {'; '.join(notes)}")
    used = {*roles.values(), *names, *_BOOKKEEPING, _DISCARDS}
    varied = [key for key in columns_there if len({row[key] for row in rows.values()}) > 1]
    unused = [key for key in varied if key and key not in used]
    if unused:
        notes.append(f"columns not used: {few(unused)}")
    series = {}
    for label, own in sorted(groups.items()):
        series[label], repeats = _make_series(label, own, roles)
        if repeats:
            notes.append(
                f"{counted(repeats, 'row')} of {label or 'the table'}: {roles['size']} and "
                f"{roles['x']} are those of another row, taken as more samples of the same"
            )
    return GivenTable(name, series, tuple(notes))


def take_roles(given: str | Mapping[str, str] | None) -> dict[str, str]:
    """Return columns by their role; InputError: an unknown role, or no column.

    >>> take_roles("size=d, x=p")
    {'size': 'd', 'x': 'p'}
    """
    if isinstance(given, Mapping):
        pairs = [(str(role), str(column)) for role, column in given.items()]
    elif not isinstance(given, str | None):
        raise InputError(f"columns = {given!r}, but they are a text size=d,x=p or a mapping")
    else:
        parts = [part.strip().partition("=") for part in (given or "").split(",") if part]
        pairs = [(role, column) for role, _, column in parts]
    for role, column in pairs:
        if not column:
            raise InputError(f"--columns {given}: give them as size=d,x=p,count=errors,total=shots")
        if role not in ROLES:
            raise InputError(f"--columns {given}: unknown {role!r}; {nearest(role, ROLES)}")
    columns = [column for role, column in pairs if role != "series"]
    for names in (columns, [role for role, _ in pairs]):
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(f"--columns {given}: {twice[0]!r} is named twice")
    return dict(pairs)


def _read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield number and cells of every line below the header."""
    check_regular(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read as text: {error}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    header: list[str] = []
    marks: set[str] = set()
    delimiter, comment = "", ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text[0] in "#%":
            comment = text.lstrip("#% ") if not header and text else comment
            continue
        delimiter = delimiter if header else _delimiter(text)
        cells = list(map(printable, split_line(text, delimiter)))
        if delimiter != ",":
            marks |= set(map(_decimal_mark, cells)) - {""}
            if len(marks) > 1:
                both = "some numbers have a decimal comma, others a decimal point"
                raise InputError(f"{path}: line {number}: {both}")
            if "," in marks:
                cells = [each.replace(",", ".") if _decimal_mark(each) else each for each in cells]
        if not header:
            header = cells
            # Below a header in a comment the first line is a row.
            named = list(map(printable, split_line(comment, _delimiter(comment))))
            is_row = all(map(is_number, cells)) and len(named) == len(cells)
            header = named if is_row else cells
            _check_header(path, number, header)
            if not is_row:
                continue
        if len(cells) != len(header):
            there = f"{counted(len(cells), 'column')}, but the header has {len(header)}"
            raise InputError(f"{path}: line {number}: {there}")
        yield number, dict(zip(header, cells))
    if not header:
        raise InputError(f"{path}: is empty; a table has a header and rows")


def _decimal_mark(cell: str) -> str:
    """Return the comma or the point that a number has, "" if none.

    >>> _decimal_mark("0,5"), _decimal_mark("0.5"), _decimal_mark("5"), _decimal_mark("a,b")
    (',', '.', '', '')
    """
    if _DECIMAL_COMMA.fullmatch(cell):
        return ","
    return "." if "." in cell and is_number(cell) else ""


def _check_header(path: Path, number: int, header: Sequence[str]) -> None:
    if all(map(is_number, header)):
        raise InputError(
            f"{path}: line {number} has numbers alone, but a table begins with the names of its "
            "columns, as in L,p,k,n"
        )
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise InputError(f"{path}: line {number}: two columns are called {twice[0]!r}")


def _delimiter(line: str) -> str:
    return next((mark for mark in ",;\t" if mark in line), "")


def _rows_of_columns(table: Any) -> dict[int, Row]:
    """Return the cells of every row of a data frame or a mapping by its number, from 1."""
    names = list(table.columns) if is_frame(table) else list(table)
    for column in names:
        refuse_mask(f"column {column}", table[column])
        if np.ndim(table[column]) == 0:
            raise InputError(f"column {column}: {table[column]!r}, but a column is a sequence")
    columns = [
        [printable(str(cell)) for cell in np.asarray(table[name]).tolist()] for name in names
    ]
    if len({len(column) for column in columns}) > 1:
        raise InputError("the columns of a table must be of one length")
    rows = (dict(zip(map(str, names), cells)) for cells in zip(*columns))
    return dict(enumerate(rows, 1))


def _add_metadata(name: str, rows: dict[int, Row]) -> tuple[str, ...]:
    """Add the entries of json_metadata to the rows as columns, and return their names."""
    added: dict[int, Row] = {}
    for number, row in rows.items():
        if _METADATA not in row:
            return ()
        try:
            metadata = json.loads(row[_METADATA])
        except (ValueError, RecursionError):
            metadata = None
        if not isinstance(metadata, dict):
            raise InputError(f"{name}: line {number}: {_METADATA} is no JSON object")
        added[number] = {
            printable(key): printable(value if isinstance(value, str) else json.dumps(value))
            for key, value in metadata.items()
            if key not in row
        }
    blank = dict.fromkeys((key for texts in added.values() for key in texts), "")
    rows |= {number: row | blank | added[number] for number, row in rows.items()}
    return tuple(blank)


def _find_roles(name: str, there: Sequence[str], requested: Mapping[str, str]) -> dict[str, str]:
    """Return the column of every role that the table has; InputError: it lacks a required one."""
    roles = {}
    lower = {column.lower(): column for column in reversed(there) if len(column) > 1}
    lower |= {column: column for column in there}
    # L (nm) is L, unless there is a column of that name, and num shots is num_shots.
    lower = {_bare(name).replace(" ", "_"): column for name, column in lower.items()} | lower
    listed = ", ".join(there)[:200]
    for role, words in WORDS.items():
        known = [lower[word] for word in words if word in lower]
        known = [column for column in known if column not in requested.values()]
        if role in requested:
            known = [requested[role]]
            if requested[role] not in there:
                raise InputError(f"--columns {role}={requested[role]}: {name} has only {listed}")
        if known:
            roles[role] = known[0]
    named = [
        (column, lower[name.lower() + end])
        for column in ([roles["mean"]] if "mean" in roles else there)
        for name in {column, _bare(column)}
        for end in _ERROR_ENDS
        if name.lower() + end in lower
    ]
    if len(named) == 1 and "error" not in requested:
        roles["mean"], roles["error"] = named[0]
    counts, means = ("count", "total"), ("mean", "error")
    wants_means = set(means) <= roles.keys() and set(means) & requested.keys()
    has_count = set(counts) <= roles.keys() or ("mean" not in roles and set(counts) & roles.keys())
    pair = counts if has_count and not wants_means else means
    lacking = [role for role in ("size", "x", *pair) if role not in roles]
    if lacking:
        if len(named) > 1 and "mean" in lacking:
            both = f"mean={named[0][0]},error={named[0][1]}"
            names = ", ".join(mean for mean, _ in named)
            raise InputError(f"{name}: {names} have errors; choose one, as in --columns {both}")
        raise InputError(
            f"{name}: no column for {', '.join(lacking)}; a table has a size, x, and count and "
            f"total, or mean and error; name them with --columns "
            f"{','.join(f'{role}=NAME' for role in lacking)}; the columns are {listed}"
        )
    return {role: roles[role] for role in ("size", "x", *pair)}


def _bare(column: str) -> str:
    """Return the name of a column without its unit.

    >>> _bare("L (nm)")
    'L'
    """
    return _UNIT.sub("", column)


def _unit(column: str) -> str:
    """Return the unit behind the name of a column, without brackets; "" for none and for 1."""
    unit = column.removeprefix(_bare(column)).strip()[1:-1]
    return "" if unit == "1" else unit


def _read_values(
    name: str, rows: Mapping[int, Row], roles: Mapping[str, str]
) -> tuple[dict[int, tuple[float, ...]], list[str]]:
    """Return size, x and the two other numbers of every row that has them, and notes."""
    values, missing, exact = {}, 0, 0
    for number, row in rows.items():
        cells = {role: row[column] for role, column in roles.items()}
        if any(cell.lower() in (*MISSING, "nan") for cell in cells.values()):
            missing += 1
            continue
        numbers = {}
        for role, cell in cells.items():
            value = _number(cell)
            if not math.isfinite(value):
                raise InputError(f"{name}: line {number}: {roles[role]} = {cell!r} is not a number")
            if value and not 1e-50 <= abs(value) <= 1e50:
                allowed = "but numbers are 0, or from 1e-50 to 1e50"
                raise InputError(f"{name}: line {number}: {roles[role]} = {cell}, {allowed}")
            numbers[role] = value
        if "total" in roles and _DISCARDS in row and is_number(row[_DISCARDS]):
            numbers["total"] -= float(row[_DISCARDS])
        if problem := _problem(numbers):
            raise InputError(f"{name}: line {number}: {roles[problem[0]]} {problem[1]}")
        if numbers.get("error") == 0 or numbers.get("total") == 0:
            exact += 1
            continue
        values[number] = tuple(numbers.values())
    notes = [f"{counted(missing, 'row')} with missing numbers left out"] * bool(missing)
    why = "no trials" if "total" in roles else "an error of 0"
    return values, notes + [f"{counted(exact, 'row')} with {why} left out"] * bool(exact)


def _number(cell: str) -> float:
    """Return the number in a text, 0.09 for 9%; NaN if the text is no number."""
    number = cell.removesuffix("%")
    value = float(number) if is_number(number) else math.nan
    return value if number == cell else value / 100


def _problem(numbers: Mapping[str, float]) -> tuple[str, str] | None:
    size = numbers["size"]
    if not (size.is_integer() and 1 <= size < 2**53):
        return "size", f"= {size:g}, but sizes are integers of at least 1"
    if numbers.get("error", 0.0) < 0:
        return "error", f"= {numbers['error']:g}, but errors are not negative"
    if "total" in numbers:
        count, total = numbers["count"], numbers["total"]
        if not (count.is_integer() and total.is_integer() and 0 <= count <= total):
            return "count", f"= {count:g} of {total:g}, but counts are integers from 0 to the total"
    return None


def _splitting(
    name: str,
    rows: Sequence[Row],
    roles: Mapping[str, str],
    requested: Mapping[str, str],
    metadata: Sequence[str],
) -> list[str]:
    """Return the columns whose values distinguish series."""
    if "series" in requested:
        chosen = [] if requested["series"] == "none" else requested["series"].split("+")
        for column in chosen:
            if column not in rows[0]:
                raise InputError(f"--columns series={column}: {name} has only {', '.join(rows[0])}")
        return chosen
    splitting: list[str] = []
    for column in rows[0]:
        values = {row[column] for row in rows}
        if column in (*roles.values(), *_BOOKKEEPING, _DISCARDS) or len(values) < 2:
            continue
        # For example, the unit follows from the observable.
        follows = any(_follows(rows, column, other) for other in splitting)
        is_text = any(value and not is_number(value.removesuffix("%")) for value in values)
        is_choice = is_text or (
            column in metadata
            and not any(_follows(rows, column, roles[role]) for role in ("size", "x"))
        )
        if is_choice and not follows:
            splitting.append(column)
    return splitting


def _follows(rows: Sequence[Row], column: str, other: str) -> bool:
    """Return whether the value of a column follows from that of another one."""
    return len({(row[other], row[column]) for row in rows}) == len({row[other] for row in rows})


def _make_series(
    label: str, values: Sequence[tuple[float, ...]], roles: Mapping[str, str]
) -> tuple[Series, int]:
    """Return a series, sorted by size and x, and how many of its rows repeat others."""
    repeats = len(values) - len({row[:2] for row in values})
    if "count" in roles:
        added: dict[tuple[float, ...], np.ndarray[Any, Any]] = {}
        for size, x, *counts in values:
            added[size, x] = added.get((size, x), np.zeros(2)) + counts
        L, x, k, n = np.array([(*at, *counts) for at, counts in sorted(added.items())]).T
        share = f"{_bare(roles['count'])}/{_bare(roles['total'])}"
        series = Series.of_counts((label, _bare(roles["x"]), share), L, x, k, n)
        return replace(series, units=(_unit(roles["x"]), "")), repeats
    L, x, mean, error = np.array(sorted(values)).T
    names = label, _bare(roles["x"]), _bare(roles["mean"])
    units = _unit(roles["x"]), _unit(roles["mean"])
    return Series(*names, L.astype(np.int64), x, mean, error, units=units), repeats
