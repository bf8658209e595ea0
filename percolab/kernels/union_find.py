"""Find and union on a forest of labels in which every label points to a smaller or equal index.

A root's label is itself.  Larger roots get smaller ones as parents, so the root of a finished tree
is the smallest index in it, whatever the order of the unions.  ``find`` and ``union`` work on a
slice, starting at ``base``, of a longer array that has a batch of samples.  Sites, labels and bases
are uint32: unsigned indices avoid Numba's code for negative ones, and 32 bits halve the index
arithmetic.
"""

from numba import uint32

from percolab.kernels.atomics import atomic_min
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import periodic_bond


@inner
def find(labels, base, i):
    """Return the root of i: follow labels until one points to itself."""
    label = labels[uint32(base + i)]
    while label != i:
        i = label
        label = labels[uint32(base + i)]
    return i


@inner
def union(labels, base, i, j):
    """Join the trees of i and j (Komura 2016, Algorithm 1, label reduction).

    The larger root is lowered to the smaller one by an atomic minimum.  If the old value is the
    root expected, the trees are joined and one atomic was enough; otherwise another thread was
    first, and what it had written is joined with the smaller root in turn.
    """
    i, j = labels[uint32(base + i)], labels[uint32(base + j)]
    if i == j:
        return
    i = find(labels, base, i)
    j = find(labels, base, j)
    while i != j:
        if i < j:
            i, j = j, i
        old = atomic_min(labels, uint32(base + i), j)
        if old == i:
            return
        i = old


@inner
def union_across_boundary(labels, start, opened, base, adjacency, n):
    """Join the ends of the n-th bond across a periodic boundary, if it is open."""
    is_open, owner, other = periodic_bond(n, opened, base, adjacency)
    if is_open:
        union(labels, start, owner, other)


@inner
def find_halving(parents, i):
    """Return the root of i; every second node on the path skips its parent (serial use)."""
    i = uint32(i)
    parent = uint32(parents[i])
    while parent != i:
        grandparent = uint32(parents[parent])
        parents[i] = grandparent
        i = grandparent
        parent = uint32(parents[i])
    return i


@inner
def union_halving(parents, i, j):
    """Join the trees of i and j, the larger root under the smaller (serial use)."""
    # The first step, and which root is larger, without branches: both are hard to predict.
    i = find_halving(parents, parents[uint32(i)])
    j = find_halving(parents, parents[uint32(j)])
    parents[max(i, j)] = min(i, j)
