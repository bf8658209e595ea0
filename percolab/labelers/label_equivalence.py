"""Label equivalence, the iterated baseline: scan and analysis until no label changes.

K. A. Hawick, A. Leist, D. P. Playne, Parallel Comput. 36, 655 (2010), as simplified by O. Kalentev,
A. Rai, S. Kemnitz, R. Schneider, J. Parallel Distrib. Comput. 71, 615 (2011): equivalences are kept
in the labels themselves, so there is no reference list, and no third step that copies from it.
One function a step, each working on one site; the CPU runs them in a loop, CUDA one thread a site
(:mod:`percolab.labelers.label_equivalence_cuda`).

Against the papers: a site knows only the bonds that it owns, so that each bond is looked at from
one end, and the scan lowers the roots at both ends.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint32, uint64

from percolab.kernels.atomics import atomic_min
from percolab.kernels.neighbours import has_bit, inner_word, other_end
from percolab.labelers.base import CpuLabeler
from percolab.labelers.four_step import analysis


@njit
def lower(labels, start, root, low):
    """Lower the label of a root to ``low`` if that is smaller; return whether it is.

    Another thread may lower the same root at the same time.  The smaller label stays, and the ends
    of the bond that lost still differ in the next scan.
    """
    if low < root:
        atomic_min(labels, uint32(start + root), low)
        return True
    return False


@njit
def scan(labels, start, opened, seam, base, num_words, ends, i):
    """Lower the roots of site i and its open neighbours to their smallest label.

    Returns whether any of their labels differed.
    """
    own = labels[uint32(start + i)]
    low = own
    for k in range(len(ends)):
        index = uint32(uint32(k) * num_words + uint32(i >> uint32(5)))
        if has_bit(inner_word(opened, seam, base, index), i & uint32(31)):
            low = min(low, labels[uint32(start + other_end(ends, k, i))])
    changed = lower(labels, start, own, low)
    for k in range(len(ends)):
        index = uint32(uint32(k) * num_words + uint32(i >> uint32(5)))
        if has_bit(inner_word(opened, seam, base, index), i & uint32(31)):
            root = labels[uint32(start + other_end(ends, k, i))]
            changed = lower(labels, start, root, low) or changed
    return changed


@njit
def scan_seam(labels, start, opened, base, num_words, seam_bonds, seam_ends, n):
    """Do the same for the n-th bond across a periodic seam and its two ends."""
    bond = uint64(seam_bonds[n])
    if not has_bit(opened[uint32(base + (bond >> uint64(5)))], bond & uint64(31)):
        return False
    i = uint32(bond % uint64(uint64(32) * uint64(num_words)))
    one, other = labels[uint32(start + i)], labels[uint32(start + uint32(seam_ends[n]))]
    return lower(labels, start, max(one, other), min(one, other))


@njit(nogil=True, cache=True)
def _label(labels, opened, seam, num_words, ends, seam_bonds, seam_ends):
    here = uint32(0)
    for i in range(labels.size):
        labels[i] = uint32(i)
    changed = True
    while changed:
        changed = False
        for i in range(labels.size):
            site = uint32(i)
            changed |= scan(labels, here, opened, seam, here, num_words, ends, site)
        for n in range(seam_bonds.size):
            changed |= scan_seam(labels, here, opened, here, num_words, seam_bonds, seam_ends, n)
        for i in range(labels.size):
            analysis(labels, here, uint32(i))


class LabelEquivalence(CpuLabeler):
    """Scan and analysis, each a loop over the sites."""

    def label(self) -> np.ndarray:
        """Return the labels of the open bonds, int32 (num_points,)."""
        top = self.topology
        labels = np.empty(top.num_points, np.uint32)
        _label(
            labels,
            self.opened,
            self.seam,
            np.uint32(top.num_words),
            self.ends,
            top.seam_bonds,
            top.seam_ends,
        )
        return labels.view(np.int32)
