"""Numbers that studies store of a minimum spanning tree: exact integers, equal on every device.

The *path* between two sides is that of strong disorder (Cieplak, Maritan and Banavar 1994): among
all paths from side to side its largest weight is the least, and the same holds for every part of
it.  If all sites of a side are joined to one node, it is the path in the minimum spanning tree,
whose bonds are also bonds of the tree without joined sites.  The largest weight on it is the
sample's spanning threshold T (:mod:`percolab.coupled.thresholds`): the key of its bond plus 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.errors import InputError
from percolab.lattices.lattice import AXIS_NAMES
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.trees import DEGREE_BINS, TREE_ROW, WEIGHT_BITS
from percolab.trees.ordered_joins import fill_prefixes, sort_bonds
from percolab.trees.readings_cpu import BIN_DIGITS, list_tree, mark_path, weigh_bonds
from percolab.trees.weights import BondWeights, compute_key, make_sample_weights

if TYPE_CHECKING:
    from percolab.trees.readings_cuda import TreeSums

Words = NDArray[np.uint32]
#: The row of a sample's tree, and the sums of the sample by name of their datasets.
TreeRow = tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]


class TreePath(NamedTuple):
    """The path between the two end layers of an axis."""

    # T in units of 2^-63, the largest key on the path plus 1; 0 if the path has no bond
    threshold: int
    length: int  # number of bonds
    largest: int  # the number of the bond with the largest key, -1 if there is none


class TreeReading(NamedTuple):
    """The numbers read off the tree of a sample."""

    bonds: int  # number of bonds
    # The sum of their weights in units of 2^-32, each rounded to a multiple, with halves rounded
    # up; 0 if keys are given
    weight: int
    # int64, number of sites by degree, up to the largest degree
    degrees: NDArray[np.int64]
    # int64 (64,), the histogram of the weights; zeros if keys are given
    weights: NDArray[np.int64]
    paths: dict[int, TreePath | None]  # by open axis, None if the two sides are not connected


class _SortedTree(NamedTuple):
    """The bonds of a tree by number, uint32, their ends, int32 (bonds, 2), and their order."""

    bonds: Words
    ends: NDArray[np.int32]
    pairs: NDArray[np.uint64]


def read_tree(topology: Topology, weights: BondWeights, words: Words) -> TreeReading:
    """Read the numbers off the tree of a sample, or of given keys.

    words: uint32 (words of all classes,), the bonds of a minimum spanning tree or forest
    """
    total, bins = 0, np.zeros(1 << BIN_DIGITS, np.int64)
    if not weights.given.size:
        generator, seed, sample, _ = weights
        total = int(weigh_bonds(generator, seed, sample, words, bins))
    axes = topology.open_axes
    tree, degrees = _listed(topology, words, with_ends=bool(axes))
    there = degrees[unpack_bits(topology.occupied, topology.num_points)]
    paths: dict[int, TreePath | None] = {}
    if axes:
        tree = _sorted(topology, weights, tree)
    for axis in axes:
        path = _path(topology, tree, axis)
        if path is None:
            paths[axis] = None
            continue
        on_path, largest = path
        closing = int(tree.bonds[largest]) if largest >= 0 else -1
        threshold = int(compute_key(weights, np.uint32(closing))) + 1 if closing >= 0 else 0
        paths[axis] = TreePath(threshold, int(np.count_nonzero(on_path)), closing)
    count = int(np.bitwise_count(words).sum(dtype=np.int64))
    return TreeReading(count, total, np.bincount(there).astype(np.int64), bins, paths)


def find_trunk(topology: Topology, weights: BondWeights, words: Words, axis: int) -> Words:
    """Return the numbers of the bonds on the path between the two sides of an axis, ascending.

    uint32 (bonds of the path,); empty if a site is in both sides or if they are not connected.
    words: as for :func:`read_tree`; axis: one of the topology's ``open_axes``.
    """
    tree = _sorted(topology, weights, _listed(topology, words, with_ends=True)[0])
    path = _path(topology, tree, axis)
    return tree.bonds[path[0]] if path else np.empty(0, np.uint32)


def _listed(
    topology: Topology, words: Words, *, with_ends: bool
) -> tuple[_SortedTree, NDArray[np.int32]]:
    """Return the bonds of a tree, not yet sorted, and the degree of every site."""
    room = int(np.bitwise_count(words).sum(dtype=np.int64)) if with_ends else 0
    bonds, ends = np.empty(room, np.uint32), np.empty((room, 2), np.int32)
    degrees = np.zeros(topology.num_points, np.int32)
    list_tree(words, make_adjacency(topology), bonds, ends, degrees)
    return _SortedTree(bonds, ends, np.empty(0, np.uint64)), degrees


def _sorted(topology: Topology, weights: BondWeights, tree: _SortedTree) -> _SortedTree:
    prefixes = np.empty(0 if weights.given.size else 32 * topology.num_bond_words, np.uint32)
    if prefixes.size:
        fill_prefixes(weights.generator, weights.seed, weights.sample, prefixes)
    pairs = np.empty((2, tree.bonds.size), np.uint64)
    row = sort_bonds(weights, prefixes, tree.bonds, pairs, tree.bonds.size)
    return tree._replace(pairs=pairs[row])


def _path(topology: Topology, tree: _SortedTree, axis: int) -> tuple[NDArray[np.bool_], int] | None:
    """Return (which of the tree's bonds are on the path, the position of the largest or -1)."""
    first, last = topology.end_layers[axis]
    on_path = np.zeros(tree.bonds.size, bool)
    if np.intersect1d(first, last).size:
        return on_path, -1
    nodes = np.arange(topology.num_points, dtype=np.int32)
    nodes[first], nodes[last] = first[0], last[0]
    source, target = np.int32(first[0]), np.int32(last[0])
    largest = int(mark_path(tree.pairs, tree.ends, nodes, source, target, on_path))
    return (on_path, largest) if largest >= 0 else None


def read_rows(topology: Topology, generator: int, seed: int, sample: int, tree: Words) -> TreeRow:
    """Return the row that studies store for a sample's tree, uint32 (words of all classes,).

    InputError: source and target, or two sides, are not connected, so that it spans at no p.
    """
    reading = read_tree(topology, make_sample_weights(generator, seed, sample), tree)
    row, sums = _make_row(topology, *reading[:4])
    for axis, path in reading.paths.items():
        if path is None:
            ends = (
                f"the two sides along {AXIS_NAMES[axis]}" if topology.shape else "source and target"
            )
            raise InputError(f"{ends} are not connected, so there is no path between them")
        # T has 63 binary digits, a row fewer.
        shift = 63 - WEIGHT_BITS
        row[TREE_ROW.index(f"tree_threshold_{axis}")] = (path.threshold + (1 << shift - 1)) >> shift
        row[TREE_ROW.index(f"tree_path_{axis}")] = path.length
    return row, sums


def rows_from_sums(topology: Topology, sums: TreeSums) -> list[TreeRow]:
    """Return the rows of trees that were read on a device, without paths."""
    return [_make_row(topology, *sample) for sample in zip(*sums, strict=True)]


def _make_row(
    topology: Topology,
    bonds: int,
    weight: int,
    degrees: NDArray[np.int64],
    weights: NDArray[np.int64],
) -> TreeRow:
    row = np.zeros(2 + 2 * topology.num_axes, np.int64)
    row[TREE_ROW.index("tree_bonds")], row[TREE_ROW.index("tree_weight")] = bonds, weight
    # The last bin counts all larger degrees, too.
    bins = np.bincount(np.arange(degrees.size).clip(max=DEGREE_BINS - 1), degrees, DEGREE_BINS)
    return row, {"tree_degrees": bins.astype(np.int64), "tree_weights": weights}
