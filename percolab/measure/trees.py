"""The row of a minimum spanning tree: what is one integer for each sample.

Weights and thresholds are uniform numbers u; a row has them in units of 2^-32, each rounded, so
that sums over a tree and over a block are exact integers.  The rounding of one is unbiased to
2^-63, and far below what any number of samples tells.
"""

from percolab.lattices.lattice import AXIS_NAMES

#: The numbers of a row by name: bonds of the tree, the sum of their weights, and along each axis T
#: and the bonds of the way between its ends, if it is open.
TREE_ROW = (
    "tree_bonds",
    "tree_weight",
    *(f"tree_{what}_{n}" for n in range(len(AXIS_NAMES)) for what in ("threshold", "path")),
)
#: Weights and thresholds are in units of 2^-WEIGHT_BITS.
WEIGHT_BITS = 32
#: Bins of the weights, equally wide from 0 to 1; and of degrees, the last for all from there on.
WEIGHT_BINS, DEGREE_BINS = 64, 64
