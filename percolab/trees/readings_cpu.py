"""What is read off a tree on the CPU: weights, degrees, and the path between two sides."""

import numpy as np
from numba import int32, int64, njit, uint32, uint64

from percolab.bonds.digits import fill_planes, leading_digits
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.neighbours import find_bond_end
from percolab.kernels.union_find import find_halving
from percolab.trees.ordered_joins import LOW

#: Digits of a weight that are summed up, and of its bin in the histogram.
WEIGHT_DIGITS, BIN_DIGITS = 32, 6


@njit(nogil=True, cache=True)
def weigh_bonds(generator, seed, sample, tree, bins):
    """Return the sum of the tree's weights in units of 2^-32, each rounded to the nearest, int64.

    A half is rounded up.  bins: int64, gains the histogram of the weights.
    """
    planes, total = np.empty(WEIGHT_DIGITS + 1, np.uint32), int64(0)
    for word in range(tree.size):
        left = uint32(tree[word])
        if left == uint32(0):
            continue
        fill_planes(generator, seed, sample, uint32(word), planes)
        for k in range(WEIGHT_DIGITS):
            ones = int64(popcount(uint32(planes[k] & left)))
            total += ones << int64(WEIGHT_DIGITS - 1 - k)
        # The digit after the last decides which way it is rounded.
        total += int64(popcount(uint32(planes[WEIGHT_DIGITS] & left)))
        while left != uint32(0):
            bit = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            bins[leading_digits(planes, BIN_DIGITS, bit)] += int64(1)
    return total


@njit(nogil=True, cache=True)
def list_tree(tree, adjacency, bonds, ends, degrees):
    """List the bonds of a tree with their ends, and count them at every site; return how many.

    tree: uint32 words.  bonds: uint32, ascending, and ends: int32 (bonds, 2); both may be of length
    0, and then nothing is listed.  degrees: int32 (points,), cleared.
    """
    count = int64(0)
    for word in range(tree.size):
        left = uint32(tree[word])
        while left != uint32(0):
            bond = uint32(uint32(word << 5) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            i, j = find_bond_end(bond, adjacency)
            degrees[i] += int32(1)
            degrees[j] += int32(1)
            if bonds.size:
                bonds[count], ends[count, 0], ends[count, 1] = bond, i, j
            count += int64(1)
    return count


@njit(nogil=True, cache=True)
def mark_path(pairs, ends, nodes, source, target, on_path):
    """Mark the tree's bonds on the path between two nodes; return the last of them in order, or -1.

    pairs:   uint64 (bonds,), positions in their low halves, in ascending order of the bonds
    ends:    int32 (bonds, 2)
    nodes:   int32 (points,), the node of every site
    on_path: bool (bonds,), cleared

    Bonds are joined until the two nodes are.  Then loose ends are taken off, one by one, and what
    remains is the path.  A loose end knows its last bond as the exclusive or of its bonds.
    """
    parents = np.arange(nodes.size).astype(np.int32)
    degrees, crossed = np.zeros(nodes.size, np.int32), np.zeros(nodes.size, np.uint32)
    closing = int64(-1)
    for n in range(pairs.size):
        bond = uint32(pairs[n] & uint64(LOW))
        i, j = nodes[ends[bond, 0]], nodes[ends[bond, 1]]
        a, b = find_halving(parents, uint32(i)), find_halving(parents, uint32(j))
        if a == b:
            continue
        parents[max(a, b)] = min(a, b)
        on_path[bond] = True
        for node in (i, j):
            degrees[node] += int32(1)
            crossed[node] = uint32(crossed[node] ^ bond)
        if find_halving(parents, uint32(source)) == find_halving(parents, uint32(target)):
            closing = int64(bond)
            break
    for start in range(nodes.size):
        node = start
        while degrees[node] == int32(1) and node != source and node != target:
            bond = crossed[node]
            other = nodes[ends[bond, 0]] + nodes[ends[bond, 1]] - node
            on_path[bond] = False
            degrees[node] = int32(0)
            degrees[other] -= int32(1)
            crossed[other] = uint32(crossed[other] ^ bond)
            node = other
    return closing
