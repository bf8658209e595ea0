"""Whether a lattice, as it is drawn, looks alike in all directions from afar.

In the limit a critical lattice has, up to scale, a metric: a symmetric 2 x 2 matrix.  A turn by 90
or 120 degrees that maps the lattice onto itself leaves only multiples of the identity, in the
coordinates of the drawing.  Then, and only then, the drawn shape is that of conformal invariance.
Source: R. P. Langlands, P. Pouliot and Y. Saint-Aubin, Bull. Am. Math. Soc. 30, 1 (1994).
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import pi

import numpy as np
from numpy.typing import NDArray

from percolab.lattices.lattice import Lattice

Floats = NDArray[np.float64]

#: Cells of more bonds than this are not searched.
_MOST_BONDS = 400
#: Cells along each axis whose turned bonds are compared: a lattice with a cell that is not the
#: smallest may be mapped onto itself only over several cells.
_CELLS = 4


@cache
def is_isotropic(lattice: Lattice) -> bool:
    """Return whether a turn by 90 or 120 degrees maps a lattice in two dimensions onto itself.

    False where it is not drawn, or has more than _MOST_BONDS bonds a cell.

    >>> from percolab.lattices.lattice import load_lattice
    >>> is_isotropic(load_lattice("honeycomb")), is_isotropic(load_lattice("trellis"))
    (True, False)
    """
    if lattice.dimension != 2 or not lattice.vectors:
        return False
    starts, steps = _directed_bonds(lattice)
    if len(starts) > 2 * _MOST_BONDS:
        return False
    periods = np.array(lattice.vectors) * np.array(lattice.cell)[:, None]
    return any(_is_symmetry(starts, steps, periods, angle) for angle in (pi / 2, 2 * pi / 3))


def _directed_bonds(lattice: Lattice) -> tuple[Floats, Floats]:
    """Return the bonds of one cell from either end: where they start, and their vectors."""
    shifts, vectors = dict(lattice.shifts), np.array(lattice.vectors)

    def place(point: tuple[int, ...]) -> Floats:
        own = tuple(x % n for x, n in zip(point, lattice.cell))
        at = np.array(point) @ vectors + shifts.get(own, (0.0, 0.0))
        return np.asarray(at, np.float64)

    ends = [
        (place(point), place(tuple(x + step for x, step in zip(point, bond.offset))))
        for bond in lattice.bonds
        for point in sorted(bond.at)
    ]
    starts = [start for pair in ends for start in pair]
    steps = [step for start, end in ends for step in (end - start, start - end)]
    return np.array(starts), np.array(steps)


def _is_symmetry(starts: Floats, steps: Floats, periods: Floats, angle: float) -> bool:
    """Return whether a turn, followed by some shift, maps every bond onto a bond."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    tolerance = 1e-6 * float(np.linalg.norm(steps, axis=1).min())
    cells = np.array(list(product(range(_CELLS), repeat=2))) @ periods
    turned = ((starts[None] + cells[:, None]) @ turn).reshape(-1, 2)
    turned_steps = np.tile(steps @ turn, (len(cells), 1))
    parallel = np.linalg.norm(turned_steps[:, None] - steps[None], axis=2) < tolerance
    inverse = np.linalg.inv(periods)

    def maps(shift: Floats) -> bool:
        apart = (turned + shift)[:, None] - starts[None]
        cells_apart = apart @ inverse
        rest = (cells_apart - np.round(cells_apart)) @ periods
        same = np.linalg.norm(rest, axis=2) < tolerance
        return bool((same & parallel).any(axis=1).all())

    # The first start is mapped onto one of the cell's sites, if the turn is a symmetry at all.
    return any(maps(start - turned[0]) for start in starts)
