"""Whether a lattice is planar: drawn with straight bonds, no two of them cross.

A drawing without crossings proves that a lattice is planar.  One with crossings proves nothing, so
the answer is cautious: a planar lattice that is drawn badly counts as not planar.
"""

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from percolab.lattices.lattice import Lattice

Floats = NDArray[np.float64]
#: Coordinates are a few units of length; points nearer than this are the same point.
_SAME = 1e-9


@cache
def is_drawn_planar(lattice: Lattice) -> bool:
    """Return whether no two bonds of the drawing of a two-dimensional lattice cross.

    Places are those of the lattice file, or the grid points themselves where it has none.

    >>> from percolab.lattices.lattice import load_lattice
    >>> [is_drawn_planar(load_lattice(name)) for name in ("kagome", "square-nnn", "cubic")]
    [True, False, False]
    """
    if lattice.dimension != 2:
        return False
    vectors = np.array(lattice.vectors or np.eye(2))
    starts = np.array([at for bond in lattice.bonds for at in bond.at])
    offsets = np.array([bond.offset for bond in lattice.bonds for _ in bond.at])
    ends = lattice.places(starts), lattice.places(starts + offsets)
    bonds = list(zip(*ends, strict=True))
    # Bonds of at most this length do not meet if they begin more than twice this length apart.
    step = np.abs(offsets).max(axis=0)
    reach = [2 * int(-(-most // cell)) + 1 for most, cell in zip(step, lattice.cell, strict=True)]
    for move in product(*(range(-cells, cells + 1) for cells in reach)):
        shift = (np.array(move) * lattice.cell) @ vectors
        for first, (a, b) in enumerate(bonds):
            for second, (c, d) in enumerate(bonds):
                is_itself = first == second and not any(move)
                if not is_itself and _cross(a, b, c + shift, d + shift):
                    return False
    return True


def _cross(a: Floats, b: Floats, c: Floats, d: Floats) -> bool:
    """Return whether segments ab and cd share a point that is not an end of both."""
    side_c, side_d = _side(a, b, c), _side(a, b, d)
    side_a, side_b = _side(c, d, a), _side(c, d, b)
    if side_c == side_d == 0:
        return _overlap(a, b, c, d)
    if side_c * side_d > 0 or side_a * side_b > 0:
        return False
    ends = ((a, c), (a, d), (b, c), (b, d))
    return not any(np.abs(one - other).max() < _SAME for one, other in ends)


def _side(a: Floats, b: Floats, point: Floats) -> int:
    """Return on which side of the line ab a point is: 1, -1, or 0 on the line."""
    along, to = b - a, point - a
    cross = along[0] * to[1] - along[1] * to[0]
    return 0 if abs(cross) < _SAME else int(np.sign(cross))


def _overlap(a: Floats, b: Floats, c: Floats, d: Floats) -> bool:
    """Return whether two segments of one line share more than a point."""
    along = (b - a) / np.linalg.norm(b - a)
    low, high = sorted((0.0, float((b - a) @ along)))
    first, last = sorted((float((c - a) @ along), float((d - a) @ along)))
    return min(high, last) - max(low, first) > _SAME
