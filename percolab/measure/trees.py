"""The row of a minimum spanning tree: what is one integer for each sample.

Weights and thresholds are uniform numbers u; a row has them in units of 2^-32, each rounded, so
that sums over a tree and over a block are exact integers.  The rounding of one is unbiased to
2^-63, and far below what any number of samples tells.
"""

from __future__ import annotations

#: Places in a row: bonds of the tree, and the sum of their weights.
TREE_BONDS, TREE_WEIGHT = 0, 1
_FIRST_AXIS = 2
#: Weights and thresholds are in units of 2^-WEIGHT_BITS.
WEIGHT_BITS = 32
#: Bins of the weights, equally wide from 0 to 1; and of degrees, the last for all from there on.
WEIGHT_BINS, DEGREE_BINS = 64, 64


def tree_row_width(axes: int) -> int:
    """Return how many integers a row has, of a lattice with so many axes."""
    return _FIRST_AXIS + 2 * axes


def place_of_threshold(axis: int) -> int:
    """Return where a row has T along an open axis."""
    return _FIRST_AXIS + 2 * axis


def place_of_path(axis: int) -> int:
    """Return where a row has the bonds of the trunk along an open axis."""
    return _FIRST_AXIS + 2 * axis + 1
