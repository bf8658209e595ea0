"""The row of a minimum spanning tree: integers of each sample.

Weights and thresholds are uniform numbers u; a row has them rounded to units of 2^-32, so that sums
over a tree and over a block are exact integers.  The rounding is unbiased to 2^-63, and far below
the statistical error of any number of samples.
"""

from percolab.lattices.lattice import AXIS_NAMES

#: The names of the numbers of a row: bonds of the tree, the sum of their weights and, for each open
#: axis, T and the bonds of the path between its ends.
TREE_ROW = (
    "tree_bonds",
    "tree_weight",
    *(f"tree_{what}_{n}" for n in range(len(AXIS_NAMES)) for what in ("threshold", "path")),
)
#: Weights and thresholds are in units of 2^-WEIGHT_BITS.
WEIGHT_BITS = 32
#: Bins of weights, equally wide from 0 to 1; and of degrees, the last for all larger ones, too.
WEIGHT_BINS, DEGREE_BINS = 64, 64
