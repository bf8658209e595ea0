"""Reading TOML that a user wrote, and writing the TOML of a unit cell given in Python.

Every error is one line: file, key, value, allowed values.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from percolab.errors import InputError, check_regular, nearest, unreadable

#: The least volume of a cell in units of that of a box with edges as long.
_INDEPENDENT = 1e-9


def shown(value: Any, most: int = 80) -> str:
    """Return a value as text for a message, a long one cut short.

    >>> shown([0.5]), shown("0.5," * 1000, 12)
    ('[0.5]', "'0.5,0.5,...")
    """
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def read_text(path: Path) -> str:
    """Return the text of a file; InputError if it cannot be read."""
    if not path.is_dir():
        check_regular(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a text file in UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the name
        raise unreadable(path, error) from error


def parse_toml(text: str, *, where: str) -> dict[str, Any]:
    """Return the table that TOML text holds; InputError if it is not valid TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: an integer of 4301 digits
        raise InputError(f"{where}: is not valid TOML: {error}") from error


def _is_number(value: Any) -> bool:
    # The value is not converted to float: an integer of a TOML file may be too large.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


class Table:
    """One table of a TOML file: typed access to its keys, and errors that name the place."""

    def __init__(self, data: Mapping[str, Any], known: Collection[str], where: str) -> None:
        if not isinstance(data, Mapping):
            raise InputError(f"{where}: must be a table, got {data!r}")
        for key in data:
            if key not in known:
                raise InputError(f"{where}: unknown key {key!r}; {nearest(key, known)}")
        self.data, self.where = data, where

    def error(self, key: str, allowed: str) -> InputError:
        if key not in self.data:
            return InputError(f"{self.where}: key {key!r} is missing; it must be {allowed}")
        return InputError(
            f"{self.where}: {key} = {shown(self.data[key])}, but it must be {allowed}"
        )

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; without a default the key must be there."""
        value = self.data.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, "a string")
        return value

    def integer(self, key: str, *, low: int, high: int, default: int | None = None) -> int:
        value = self.data.get(key, default)
        if type(value) is not int or not low <= value <= high:
            raise self.error(key, f"an integer from {low} to {high}")
        return value

    def number(self, key: str) -> float:
        """Return a finite float; integers are converted."""
        value: Any = self.data.get(key)
        if not _is_number(value):
            raise self.error(key, "a number")
        return float(value)

    def number_from(self, key: str, low: float, high: float, default: float | None = None) -> float:
        value = self.data.get(key, default)
        if not _is_number(value) or not low <= value <= high:
            raise self.error(key, f"a number from {low:g} to {high:g}")
        return float(value)

    def integers(self, key: str, count: int) -> tuple[int, ...]:
        """Return exactly ``count`` integers."""
        return tuple(
            self._listed(key, count, "integers", lambda x: type(x) is int and abs(x) < 2**31)
        )

    def numbers(self, key: str, count: int) -> tuple[float, ...]:
        """Return exactly ``count`` finite numbers."""
        return tuple(map(float, self._listed(key, count, "numbers", _is_number)))

    def _listed(self, key: str, count: int, what: str, fits: Callable[[Any], bool]) -> list[Any]:
        value = self.data.get(key)
        if not isinstance(value, list) or len(value) != count or not all(map(fits, value)):
            raise self.error(key, f"a list of {count} {what}")
        return value

    def sequence(self, key: str) -> list[Any]:
        """Return a list, empty if the key is absent."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, "a list")
        return value

    def read_list(self, key: str, *kinds: type) -> list[Any]:
        """Return a list of values of these types, empty if the key is absent."""
        value = self.sequence(key)
        # Types are compared exactly, as True is an int in Python.
        if not all(type(each) in kinds for each in value):
            raise self.error(key, f"a list of {' or '.join(kind.__name__ for kind in kinds)}")
        return value

    def rows(self, key: str, count: int) -> tuple[tuple[float, ...], ...]:
        """Return a list of lists of exactly ``count`` finite numbers."""
        rows = {f"{key}[{n}]": row for n, row in enumerate(self.sequence(key))}
        table = Table(rows, rows, self.where)
        return tuple(table.numbers(name, count) for name in rows)

    def table(self, key: str, known: Collection[str]) -> Table:
        """Return a table, empty if the key is absent, checked against its known keys."""
        return Table(self.data.get(key, {}), known, f"{self.where}: {key}")

    def tables(self, key: str, known: Collection[str]) -> list[Table]:
        """Return an array of tables, each checked against its known keys."""
        where = f"{self.where}: {key}"
        return [Table(each, known, f"{where}[{n}]") for n, each in enumerate(self.sequence(key))]


def spans_space(vectors: ArrayLike) -> bool:
    """Return whether d vectors (d, d), in any unit of length, are linearly independent."""
    steps = np.asarray(vectors, float)
    lengths = np.linalg.norm(steps, axis=1)
    return bool(lengths.all() and abs(np.linalg.det(steps / lengths[:, None])) > _INDEPENDENT)


def cell_text(
    vectors: ArrayLike,
    sites: ArrayLike,
    bonds: Sequence[Sequence[Any]],
    *,
    name: str,
    keys: Mapping[str, Any],
    thresholds: Sequence[Mapping[str, Any]],
) -> str:
    """Return the lattice in the format of docs/lattice-format.md: a unit cell with positions.

    keys: further keys of the top level, left out where None.  Other arguments are those of
    :meth:`percolab.lattices.lattice.Lattice.from_cell`.
    InputError: arrays whose shapes do not fit together, or values that TOML cannot express.
    """
    where = f"lattice {name}"
    steps = _numbers(vectors, f"{where}: vectors")
    dimension = len(steps)
    if steps.shape != (dimension, dimension) or not dimension:
        raise InputError(f"{where}: vectors have the shape {steps.shape}, but d vectors are (d, d)")
    if not spans_space(steps):
        raise InputError(
            f"{where}: vectors = {shown(steps.tolist())} are linearly dependent, but a cell needs "
            f"{dimension} independent ones"
        )
    places = _numbers(sites, f"{where}: sites")
    if places.ndim != 2 or places.shape[1] != dimension or not len(places):
        raise InputError(
            f"{where}: sites have the shape {places.shape}, but those of {dimension} axes are "
            f"(n, {dimension}), in parts of the vectors"
        )
    lines = [f"name = {_toml(name, where)}", f"dimension = {dimension}"]
    lines += [f"{key} = {_toml(value, where)}" for key, value in keys.items() if value is not None]
    lines += ["", "[unit_cell]", f"vectors = {_toml(steps, where)}"]
    lines += [f"sites = {_toml(places, where)}", "bonds = ["]
    if not isinstance(bonds, Iterable):
        raise InputError(f"{where}: bonds = {bonds!r}, but they are a list of (from, to, cell)")
    for number, bond in enumerate(bonds):
        if not isinstance(bond, Sequence | np.ndarray) or len(bond) not in (3, 4):
            raise InputError(
                f"{where}: bond {number} is {bond!r}, but a bond is (from, to, cell): two sites, "
                "and the steps to the other's cell"
            )
        texts = [_toml(value, where) for value in bond]
        pairs = (f"{key} = {text}" for key, text in zip(("from", "to", "cell", "name"), texts))
        lines.append(f"    {{ {', '.join(pairs)} }},")
    lines += ["]"]
    if not isinstance(thresholds, Sequence) or not all(
        isinstance(each, Mapping) for each in thresholds
    ):
        raise InputError(f"{where}: thresholds are a list of tables: [{{'value': ...}}]")
    for threshold in thresholds:
        lines += ["", "[[thresholds]]"]
        lines += [f"{json.dumps(key)} = {_toml(value, where)}" for key, value in threshold.items()]
    return "\n".join(lines) + "\n"


def _numbers(values: ArrayLike, where: str) -> np.ndarray:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} must be a table of numbers") from error
    if not np.isfinite(numbers).all():
        raise InputError(f"{where} must be finite numbers")
    return numbers


def _toml(value: Any, where: str) -> str:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        if value != value.encode("utf-8", "replace").decode():
            raise InputError(f"lattice: {value!a} is no text in UTF-8")
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(each, where) for each in value)}]"
    raise InputError(f"{where}: {value!r} is neither a number nor a text, nor a list of them")
