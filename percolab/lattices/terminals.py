"""Terminals of a lattice: its sides or the site in its middle by name, or sites by number."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError, nearest
from percolab.lattices.lattice import AXIS_NAMES
from percolab.lattices.topology import Topology, unpack_bits

#: Names of sides in addition to x-, x+, ...; axis -1 is the last one.
_SIDES = {"left": (0, 0), "right": (0, 1), "bottom": (-1, 0), "top": (-1, 1)}
CENTRE = ("centre", "center")
#: All open sides together.
_ALL = "sides"


def name_sides(num_axes: int) -> dict[str, tuple[int, int]]:
    """Return (axis, end) of all sides by name: "x-", "x+", ..., left, right, bottom and top."""
    if not num_axes:
        return {}
    sides = {f"{AXIS_NAMES[n]}{end}": (n, "-+".index(end)) for n in range(num_axes) for end in "-+"}
    return sides | {name: (axis % num_axes, end) for name, (axis, end) in _SIDES.items()}


def parse_terminal(
    key: str, text: str, num_axes: int, open_axes: Sequence[int]
) -> list[tuple[int, int]] | list[int] | None:
    """Return sides (axis, end), site numbers, or None for the middle; else raise InputError."""
    if text in CENTRE:
        return None
    numbers = [number.strip() for number in text.split(",")]
    if all(number.isascii() and number.isdigit() for number in numbers):
        # Python converts at most 4300 digits to an integer.
        if long := next((number for number in numbers if len(number) > 18), ""):
            raise InputError(f"{key}: there is no site {long[:18]}...")
        return [int(number) for number in numbers]
    every = name_sides(num_axes)
    sides = {name: [side] for name, side in every.items() if side[0] in open_axes}
    if sides:
        sides[_ALL] = [(axis, end) for axis in open_axes for end in (0, 1)]
    if text not in sides:
        raise InputError(f"{key} {text!r}: is no open side; {nearest(text, [*sides, CENTRE[0]])}")
    return sides[text]


def find_terminals(topology: Topology, ends: Mapping[str, Any], axis: int | None = None) -> Any:
    """Return the sites of the two terminals, int32 each; two empty arrays where there are none.

    ends: source and target, as texts or as numbers of sites; None for a side of an axis, which is
    the last open one unless given.  InputError: no such side or site, or no open axis.
    """
    missing = [key for key, given in ends.items() if given is None]
    if axis is None and topology.open_axes:
        axis = topology.open_axes[-1]
    if missing and axis is None:
        if len(missing) == len(ends):
            return np.empty(0, np.int32), np.empty(0, np.int32)
        raise InputError(f"{missing[0]}: without an open axis there are no sides; give sites")
    layers: Any = (None, None) if axis is None else topology.end_layers[axis]
    return tuple(
        layer if given is None else _find_terminal(key, given, topology)
        for layer, (key, given) in zip(layers, ends.items(), strict=True)
    )


def _find_terminal(key: str, given: Any, topology: Topology) -> NDArray[np.int32]:
    """Return the sites of a terminal that is a text, or sites by their numbers."""
    if isinstance(given, str):
        axes = topology.num_axes if topology.shape else 0
        given = parse_terminal(key, given, axes, topology.open_axes)
        if given and isinstance(given[0], tuple):
            layers = [topology.end_layers[along][end] for along, end in given]
            return np.unique(np.concatenate(layers))
    is_site = unpack_bits(topology.occupied, topology.num_points)
    if given is None:
        # The first site from the middle on, as the middle point may be vacant.
        middle = np.ravel_multi_index([n // 2 for n in topology.shape[::-1]], topology.shape[::-1])
        return (middle + np.flatnonzero(is_site[middle:])[:1]).astype(np.int32)
    try:
        sites = np.atleast_1d(np.asarray(given))
    except ValueError:  # lists in lists
        sites = np.empty(0)
    if sites.dtype.kind not in "iu" or sites.ndim != 1 or not sites.size:
        raise InputError(
            f'{key} = {given!r}, but it must be a side, "y-" or "y+", or numbers of sites'
        )
    outside = sites[(sites < 0) | (sites >= topology.num_points)]
    wrong = outside if outside.size else sites[~is_site[sites]]
    if wrong.size:
        raise InputError(f"{key}: there is no site {wrong[0]}")
    return np.unique(sites).astype(np.int32)
