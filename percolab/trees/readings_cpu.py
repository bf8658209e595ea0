"""Numbers read off a tree on the CPU: weights, degrees, and the path between two sides."""

import numpy as np
from numba import int32, int64, njit, uint32, uint64

from percolab.bonds.digits import fill_planes, leading_digits
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.neighbours import find_bond_end
from percolab.kernels.union_find import find_halving
from percolab.trees.ordered_joins import LOW

#: Number of digits of a weight that are summed up, and of its bin in the histogram.
WEIGHT_DIGITS, BIN_DIGITS = 32, 6


@njit(nogil=True, cache=True)
def weigh_bonds(generator, seed, sample, tree, bins):
    """Return the sum of the tree's weights in units of 2^-32, each rounded to the nearest, int64.

    A half is rounded up.  bins: int64, the histogram of the weights is added.
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
        # The digit after the last one decides the direction of rounding.
        total += int64(popcount(uint32(planes[WEIGHT_DIGITS] & left)))
        while left != uint32(0):
            bit = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            bins[leading_digits(planes, BIN_DIGITS, bit)] += int64(1)
    return total


@njit(nogil=True, cache=True)
def list_tree(tree, adjacency, bonds, ends, degrees):
    """List the bonds of a tree with their ends, and find degrees; return the number of bonds.

    tree: uint32 words.  bonds: uint32, ascending, and ends: int32 (bonds, 2); if both are of length
    0, nothing is listed.  degrees: int32 (points,), must be 0.
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
    """Mark the tree's bonds on the path between two nodes; return the largest of them, or -1.

    pairs:   uint64 (bonds,), positions in their low halves, in ascending order of the bonds
    ends:    int32 (bonds, 2)
    nodes:   int32 (points,), the node of every site
    on_path: bool (bonds,), must be False

    Bonds are joined until the two nodes are connected.  Then leaves are removed one by one until
    only the path remains.  A node stores the XOR of its bonds, which for a leaf is its last bond.
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
