"""The row of a tree and the numbers beside it, as studies store them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.topology import Topology
from percolab.measure.trees import (
    DEGREE_BINS,
    TREE_BONDS,
    TREE_WEIGHT,
    WEIGHT_BITS,
    place_of_path,
    place_of_threshold,
    tree_row_width,
)
from percolab.trees.readings import read_tree
from percolab.trees.weights import weights_of_sample


def read_rows(
    topology: Topology, generator: int, seed: int, sample: int, tree: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Return the row of a sample's tree, and by the names of their datasets the sums of one sample.

    tree: its bond words, uint32 (words of all classes,).  InputError: a graph whose source and
    target are not connected, so that no p lets it span.
    """
    found = read_tree(topology, weights_of_sample(generator, seed, sample), tree)
    row = np.zeros(tree_row_width(topology.num_axes), np.int64)
    row[TREE_BONDS], row[TREE_WEIGHT] = found.bonds, found.weight
    for axis, path in found.paths.items():
        if path is None:
            raise InputError("source and target are not connected, so there is no way between them")
        row[place_of_threshold(axis)] = _rounded(path.threshold)
        row[place_of_path(axis)] = path.length
    degrees = np.zeros(DEGREE_BINS, np.int64)
    few = min(found.degrees.size, DEGREE_BINS)
    degrees[:few] = found.degrees[:few]
    degrees[-1] += found.degrees[few:].sum()
    return row, {"tree_degrees": degrees, "tree_weights": found.weights}


def _rounded(threshold: int) -> int:
    """Return T, in units of 2^-63, in those of a row."""
    shift = 63 - WEIGHT_BITS
    return (int(threshold) + (1 << (shift - 1))) >> shift
