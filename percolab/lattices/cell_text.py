"""A unit cell that Python gives, as the TOML text that a lattice is read from and stored as."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from percolab.errors import InputError


def cell_text(
    vectors: ArrayLike,
    sites: ArrayLike,
    bonds: Sequence[tuple[int, int, Sequence[int]]],
    *,
    name: str,
    keys: Mapping[str, Any],
    thresholds: Sequence[Mapping[str, Any]],
) -> str:
    """Return the lattice as docs/lattice-format.md has it: a unit cell whose sites have positions.

    keys: further ones of the top level, left out where None.  The rest as for
    :meth:`percolab.lattices.lattice.Lattice.from_cell`.
    InputError: arrays whose shapes do not fit together, or values that TOML has not.
    """
    where = f"lattice {name}"
    steps = _numbers(vectors, f"{where}: vectors")
    dimension = len(steps)
    if steps.shape != (dimension, dimension) or not dimension:
        raise InputError(f"{where}: vectors have the shape {steps.shape}, but d vectors are (d, d)")
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
        if not isinstance(bond, Sequence | np.ndarray) or len(bond) != 3:
            raise InputError(
                f"{where}: bond {number} is {bond!r}, but a bond is (from, to, cell): two sites, "
                "and the steps to the other's cell"
            )
        one, other, cell = (_toml(value, where) for value in bond)
        lines.append(f"    {{ from = {one}, to = {other}, cell = {cell} }},")
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
        raise InputError(f"{where} are no table of numbers") from error
    if not np.isfinite(numbers).all():
        raise InputError(f"{where} hold a value that is no finite number")
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
