"""The row of a tree and the numbers that go with it, as studies store them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.topology import Topology
from percolab.measure.trees import DEGREE_BINS, TREE_ROW, WEIGHT_BITS, tree_row_width
from percolab.trees.readings import read_tree
from percolab.trees.weights import make_sample_weights

if TYPE_CHECKING:
    from percolab.trees.readings_batch import TreeSums


def read_rows(
    topology: Topology, generator: int, seed: int, sample: int, tree: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Return the row of a sample's tree, and by the names of their datasets the sums of one sample.

    tree: its bond words, uint32 (words of all classes,).  InputError: a graph whose source and
    target are not connected, so that no p lets it span.
    """
    found = read_tree(topology, make_sample_weights(generator, seed, sample), tree)
    row = _begun(topology, found.bonds, found.weight)
    for axis, path in found.paths.items():
        if path is None:
            raise InputError("source and target are not connected, so there is no way between them")
        row[TREE_ROW.index(f"tree_threshold_{axis}")] = _rounded(path.threshold)
        row[TREE_ROW.index(f"tree_path_{axis}")] = path.length
    return row, _sums(found.degrees, found.weights)


def rows_from_sums(
    topology: Topology, sums: TreeSums
) -> list[tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]]:
    """Return the same of trees that were read on a device, without paths."""
    found = []
    for n, (bonds, weight) in enumerate(zip(sums.bonds, sums.weight, strict=True)):
        row = _begun(topology, bonds, weight)
        found.append((row, _sums(sums.degrees[n], sums.weights[n])))
    return found


def _begun(topology: Topology, bonds: int, weight: int) -> NDArray[np.int64]:
    row = np.zeros(tree_row_width(topology.num_axes), np.int64)
    row[TREE_ROW.index("tree_bonds")], row[TREE_ROW.index("tree_weight")] = bonds, weight
    return row


def _sums(degrees: NDArray[np.int64], weights: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    own = np.zeros(DEGREE_BINS, np.int64)
    few = min(degrees.size, DEGREE_BINS)
    own[:few] = degrees[:few]
    own[-1] += degrees[few:].sum()
    return {"tree_degrees": own, "tree_weights": weights}


def _rounded(threshold: int) -> int:
    """Return T, in units of 2^-63, in those of a row."""
    shift = 63 - WEIGHT_BITS
    return (int(threshold) + (1 << (shift - 1))) >> shift
