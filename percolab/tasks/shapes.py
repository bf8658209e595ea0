"""Sizes with sides of their own, as -L 64x128: a lattice whose axes are as these sides."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure
from percolab.lattices.toml_table import shown as toml_shown
from percolab.tasks.values import Size, take_sizes


def take_shapes(structure: Structure, L: Any) -> tuple[Structure, tuple[int, ...]]:
    """Return a structure and its sizes; of shapes the lattice with this ratio of sides.

    L: an integer, a shape "64x128" or (64, 128), or a list of such, for each axis in the unit in
    which the lattice counts.  The sizes of shapes are what their sides have in common: 64x128 is
    L = 64 of the lattice with axes as 1 to 2.

    InputError: sizes that are none, another number of sides than axes, or shapes of different
    ratios, which one study cannot have.

    >>> from percolab.lattices.lattice import load_lattice
    >>> take_shapes(load_lattice("square"), "32x64,64x128")
    (<Lattice square 1x2; axes 2; cell 1 x 1; bonds at a site 4; published p_c bond 0.5, ...>, \
(32, 64))
    """
    sizes = take_sizes("L", L)
    if all(isinstance(size, int) for size in sizes):
        return structure, sizes  # type: ignore[return-value]
    ratios = [_ratio(structure, size) for size in sizes]
    for size, ratio in zip(sizes, ratios):
        if ratio != ratios[0]:
            raise InputError(
                f"L = {shown(size)}: the sides of all shapes of a study are in one ratio, as those "
                f"of {shown(sizes[0])}; sample other ratios into files of their own"
            )
    assert isinstance(structure, Lattice)
    return structure.with_sides(ratios[0]), tuple(
        size if isinstance(size, int) else size[0] // ratios[0][0] for size in sizes
    )


def take_shape(structure: Structure, L: Any) -> tuple[Structure, int]:
    """Return a structure and one size, as :func:`take_shapes` does several; InputError for more."""
    if isinstance(L, list) or (np.ndim(L) == 1 and not isinstance(L, tuple)):
        raise InputError(f"L = {toml_shown(L)}, but it must be one integer, or sides as (64, 128)")
    taken, sizes = take_shapes(structure, [L] if isinstance(L, tuple) else L)
    if len(sizes) != 1:
        raise InputError(f"L = {L}, but it must be one size")
    return taken, sizes[0]


def shown(size: Size) -> str:
    """Return a size as it is written: 64 or 64x128."""
    return str(size) if isinstance(size, int) else "x".join(map(str, size))


def _ratio(structure: Structure, size: Size) -> Sequence[int]:
    if not isinstance(structure, Lattice):
        raise InputError(f"L = {shown(size)}: {structure.name} has no sides; give one number")
    sides = (size,) * structure.dimension if isinstance(size, int) else size
    if len(sides) != structure.dimension:
        raise InputError(
            f"L = {shown(size)} has {len(sides)} sides, but {structure.name} has "
            f"{structure.dimension} axes"
        )
    return tuple(n // gcd(*sides) for n in sides)
