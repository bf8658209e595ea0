"""Komura's generalized four-step labeling: initialization, analysis, label reduction, analysis.

Y. Komura, "A generalized GPU-based connected component labeling algorithm", arXiv:1603.08357,
section 3.  One function a step under the step's own name, each working on one site; the CPU runs
them in a loop, CUDA one thread a site (:mod:`percolab.labelers.four_step_cuda`).

Differences from the paper: the residual list (all lower neighbours except the lowest) is not stored
but read off the bond words again, which costs 0.25 instead of 4 bytes per bond; union needs one
atomic where Algorithm 1 needs two (see :func:`percolab.kernels.union_find.union`); bonds to a
*higher* site, which only periodic boundaries have, belong to the residual list, too.

labels: uint32, a sample's from ``start`` on; opened: uint32, its bond words from ``base`` on; i,
start, base, word: uint32.
"""

from typing import ClassVar

import numpy as np
from numba import int32, int64, njit, uint32
from numpy.typing import NDArray

from percolab.kernels.bits import highest_one, trailing_zeros
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import has_bit, inner_word, is_chain, other_end
from percolab.kernels.union_find import find, union, union_across_boundary
from percolab.labelers.one_sample import LabelingOneSample


@inner
def bond_word(opened, base, adjacency, k, word):
    """Return word number ``word`` of class k of the sample whose words start at ``base``."""
    index = uint32(uint32(k) * adjacency.num_words + word)
    return inner_word(opened, adjacency.periodic_words, base, index)


@inner
def lowest_neighbour(opened, base, adjacency, i):
    """Return (label, class): the first label of site i, and the class of the bond it comes from.

    That is the lowest open neighbour below i and its bond, or (i, -1).  If this neighbour is the
    site before i on a chain, the label is the start of the run of chain bonds in the bond word: the
    trees are the same, with shorter paths for the analysis.
    """
    label, lowest, bound = uint32(i), int32(-1), uint32(i)
    bit = uint32(i & uint32(31))
    ends = adjacency.ends
    for k in range(len(ends)):
        word = bond_word(opened, base, adjacency, k, uint32(i >> uint32(5)))
        if has_bit(word, bit):
            j = other_end(ends, k, i)
            if j < bound:
                label, lowest, bound = j, int32(k), j
                if is_chain(ends, k):
                    closed = uint32(~word & uint32(uint32(0xFFFFFFFF) >> uint32(uint32(31) - bit)))
                    label = uint32(int64(i) - int64(bit) + int64(highest_one(closed)))
    return label, lowest


@inner
def initialization(labels, start, opened, base, adjacency, i):
    """Step (i): a site's label is its lowest open neighbour, or itself."""
    labels[uint32(start + i)] = lowest_neighbour(opened, base, adjacency, i)[0]


@inner
def analysis(labels, start, i):
    """Steps (ii) and (iv): a site's label becomes the root of its tree."""
    labels[uint32(start + i)] = find(labels, start, i)


@inner
def label_reduction(labels, start, opened, base, adjacency, i):
    """Step (iii): join site i with every site of its residual list."""
    lowest = lowest_neighbour(opened, base, adjacency, i)[1]
    ends = adjacency.ends
    for k in range(len(ends)):
        word = bond_word(opened, base, adjacency, k, uint32(i >> uint32(5)))
        if k != lowest and has_bit(word, i & uint32(31)):
            union(labels, start, i, other_end(ends, k, i))


@inner
def word_reduction(labels, start, opened, base, adjacency, word):
    """Step (iii) for the 32 sites of a word of a lattice: residual lists by bitwise operations.

    On a lattice, bond k of a site is in its residual list if the site has another open bond that
    leads lower.
    """
    ends = adjacency.ends
    for k in range(len(ends)):
        lower = uint32(0)
        for m in range(len(ends)):
            if m != k and (ends[m] < ends[k] or (ends[m] == ends[k] and m < k)):
                lower = uint32(lower | bond_word(opened, base, adjacency, m, word))
        left = uint32(lower & bond_word(opened, base, adjacency, k, word))
        while left != uint32(0):
            i = uint32(uint32(word << uint32(5)) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            union(labels, start, i, other_end(ends, k, i))


@njit(nogil=True, cache=True)
def _label(labels, opened, adjacency):
    here = uint32(0)
    for i in range(labels.size):
        initialization(labels, here, opened, here, adjacency, uint32(i))
    for i in range(labels.size):
        analysis(labels, here, uint32(i))
    for i in range(labels.size):
        label_reduction(labels, here, opened, here, adjacency, uint32(i))
    for n in range(adjacency.periodic_bonds.size):
        union_across_boundary(labels, here, opened, here, adjacency, n)
    for i in range(labels.size):
        analysis(labels, here, uint32(i))


class FourStep(LabelingOneSample):
    """The four steps, each a loop over the sites."""

    name: ClassVar[str] = "four_step"

    def label(self) -> NDArray[np.int32]:
        labels = np.empty(self.batch.topology.num_points, np.uint32)
        _label(labels, self.batch.opened, self.batch.adjacency)
        return labels.view(np.int32)
