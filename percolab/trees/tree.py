"""What every way of finding minimum spanning trees is: words of bonds from weights."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.trees.weights import BondWeights, given_weights, make_sample_weights


class Trees(Protocol):
    """The minimum spanning trees of up to ``capacity`` samples of one topology, on one device.

    Of a topology that is not connected it is a forest: one tree for each of its clusters with all
    bonds open.  All ways of finding it give the same bonds
    (:mod:`percolab.trees.weights` has the order), a vacant point is in none.

    topology: the sites and the bonds that may be chosen
    """

    topology: Topology
    capacity: int

    @staticmethod
    def memory(extent: Extent, items: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes; given: for given keys."""

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        """Find the trees of samples, uint64 (n,) with n <= capacity; return n."""

    def build_given(self, keys: NDArray[np.uint64]) -> int:
        """Find the tree of given keys, uint64 (32 * words of all classes,); return 1."""

    def words(self, items: int) -> NDArray[np.uint32]:
        """Return the bonds of the first trees, uint32 (items, words of all classes).

        One bit a bond, as everywhere; bits of bonds that do not exist are 0.
        """


class OneTree:
    """What finds one tree at a time on the CPU: a way has ``find`` and ``words``."""

    capacity = 1

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        """Find the tree of a sample, uint64 (1,); return 1."""
        (sample,) = samples
        self.find(make_sample_weights(generator, seed, int(sample)))
        return 1

    def build_given(self, keys: NDArray[np.uint64]) -> int:
        """Find the tree of given keys, uint64 (32 * words of all classes,); return 1."""
        self.find(given_weights(keys))
        return 1

    def find(self, weights: BondWeights) -> None:
        """Find the tree by weights."""
        raise NotImplementedError
