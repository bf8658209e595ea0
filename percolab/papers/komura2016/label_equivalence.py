"""Label equivalence, the iterated baseline: scan and analysis until no label changes.

K. A. Hawick, A. Leist, D. P. Playne, Parallel Comput. 36, 655 (2010), as simplified by O. Kalentev,
A. Rai, S. Kemnitz, R. Schneider, J. Parallel Distrib. Comput. 71, 615 (2011): equivalences are kept
in the labels themselves, so there is no reference list, and no third step that copies from it.
One function a step, each working on one site; the CPU runs them in a loop, CUDA one thread a site
(:mod:`percolab.papers.komura2016.label_equivalence_cuda`).

Against the papers: a site knows only the bonds that it owns, so that each bond is looked at from
one end, and the scan lowers the roots at both ends.

labels: uint32, a sample's from ``start`` on; opened: uint32, its bond words from ``base`` on.
"""

from typing import ClassVar

import numpy as np
from numba import njit, uint32
from numpy.typing import NDArray

from percolab.kernels.atomics import atomic_min
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import has_bit, other_end, periodic_bond
from percolab.labelers.four_step import analysis, bond_word
from percolab.labelers.one_sample import LabelingOneSample


@inner
def lower(labels, start, root, low):
    """Lower the label of a root to ``low`` if that is smaller; return whether it is.

    Another thread may lower the same root at the same time.  The smaller label stays, and the ends
    of the bond that lost still differ in the next scan.
    """
    if low < root:
        atomic_min(labels, uint32(start + root), low)
        return True
    return False


@inner
def scan(labels, start, opened, base, adjacency, i):
    """Lower the roots of site i and its open neighbours to their smallest label.

    Returns whether any of their labels differed.
    """
    own = labels[uint32(start + i)]
    low, ends = own, adjacency.ends
    for k in range(len(ends)):
        word = bond_word(opened, base, adjacency, k, uint32(i >> uint32(5)))
        if has_bit(word, i & uint32(31)):
            low = min(low, labels[uint32(start + other_end(ends, k, i))])
    changed = lower(labels, start, own, low)
    for k in range(len(ends)):
        word = bond_word(opened, base, adjacency, k, uint32(i >> uint32(5)))
        if has_bit(word, i & uint32(31)):
            root = labels[uint32(start + other_end(ends, k, i))]
            changed = lower(labels, start, root, low) or changed
    return changed


@inner
def scan_periodic_bonds(labels, start, opened, base, adjacency, n):
    """Do the same for the n-th bond across a periodic boundary and its two ends."""
    is_open, owner, end = periodic_bond(n, opened, base, adjacency)
    if not is_open:
        return False
    one, other = labels[uint32(start + owner)], labels[uint32(start + end)]
    return lower(labels, start, max(one, other), min(one, other))


@njit(nogil=True, cache=True)
def _label(labels, opened, adjacency):
    here = uint32(0)
    for i in range(labels.size):
        labels[i] = uint32(i)
    changed = True
    while changed:
        changed = False
        for i in range(labels.size):
            changed |= scan(labels, here, opened, here, adjacency, uint32(i))
        for n in range(adjacency.periodic_bonds.size):
            changed |= scan_periodic_bonds(labels, here, opened, here, adjacency, n)
        for i in range(labels.size):
            analysis(labels, here, uint32(i))


class LabelEquivalence(LabelingOneSample):
    """Scan and analysis, each a loop over the sites."""

    name: ClassVar[str] = "label_equivalence"

    def label(self) -> NDArray[np.int32]:
        """Return the labels of the open bonds, int32 (num_points,)."""
        labels = np.empty(self.batch.topology.num_points, np.uint32)
        _label(labels, self.batch.opened, self.batch.adjacency)
        return labels.view(np.int32)
