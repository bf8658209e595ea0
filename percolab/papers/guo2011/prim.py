"""Prim's algorithm as Guo et al. have it, on one core: V - 1 rounds that look at every candidate.

S. Guo, W. Wang and L. Wang, Application Research of Computers 28, 1682 (2011).  The graph is a
*compressed adjacency list* of plain arrays V, E and W: where the bonds of a site begin, where each
leads, and its weight.  Every site outside the tree is a *candidate*, in three arrays R1, R2, R3:
its least bond to the tree, the site itself, and the bond's key.  A round swaps the least candidate
to the front, where it is of the tree, and lowers the candidates that its bonds lead to
(*decrease*).  When all are done R1 is the tree, in the order of its growth.

Differences from the paper: R1 has the bond and not its other end, so that equal weights are told
apart by the bonds' numbers.  And a graph may have several pieces: a site that no bond leads to is a
candidate behind all others, in the order of sites, with which the next tree begins.

The work is V^2 / 2 comparisons.  A binary heap does better on sparse graphs
(:mod:`percolab.papers.guo2011.plain`).
"""

from typing import NamedTuple

import numpy as np
from numba import njit, uint32, uint64
from numpy.typing import NDArray

from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology, unpack_bits
from percolab.trees.weights import BondWeights, compute_key, given_weights, make_sample_weights

#: Added to a site it stands for a bond in R1: no bond leads to the site.
NO_BOND = 2**31
#: The key of such a candidate.
NO_KEY = 2**64 - 1
_IN_TREE = 2**32 - 1


class CompressedAdjacency(NamedTuple):
    """The graph of a topology in the paper's arrays; self-loops are left out.

    sites:   uint32 (num_sites,), ascending
    numbers: uint32 (bonds,), the bonds' numbers, ascending; a bond is known by its rank in here
    starts:  V, uint32 (num_points + 1,), where the bonds of each site begin in the next two
    ends:    E, uint32 (2 * bonds,), where they lead, ascending for each site
    ranks:   uint32 (2 * bonds,), which bonds they are
    """

    sites: NDArray[np.uint32]
    numbers: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    ranks: NDArray[np.uint32]

    @property
    def halves(self) -> int:
        """The length of E and W."""
        return self.ends.size


def compressed_adjacency(topology: Topology) -> CompressedAdjacency:
    """Return the graph of a topology in plain arrays; ValueError where 2^30 bonds are too many."""
    k, owner, other = topology.bonds().T
    is_bond = owner != other
    k, owner, other = k[is_bond], owner[is_bond], other[is_bond]
    if max(owner.size, topology.num_points) >= 2**30:
        raise ValueError(f"{owner.size} bonds are too many for Guo's arrays")
    # Ranks are 31 bits, so that one more tells a candidate without a bond.
    here, there = np.concatenate([owner, other]), np.concatenate([other, owner])
    order = np.lexsort((there, here))
    starts = np.zeros(topology.num_points + 1, np.uint32)
    starts[1:] = np.cumsum(np.bincount(here, minlength=topology.num_points))
    return CompressedAdjacency(
        sites=np.flatnonzero(unpack_bits(topology.occupied, topology.num_points)).astype(np.uint32),
        numbers=(k * 32 * topology.num_words + owner).astype(np.uint32),
        starts=starts,
        ends=there[order].astype(np.uint32),
        ranks=(order % max(owner.size, 1)).astype(np.uint32),
    )


def adjacency_bytes(extent: Extent) -> Memory:
    """Return the memory of the arrays of a graph, and on the host what is taken to make them."""
    points, bonds = extent.num_points, extent.num_classes * extent.num_points
    arrays = 4 * (2 * points + 1) + 20 * bonds
    return Memory(host=arrays + 120 * bonds, device=arrays)


def words_from_ranks(
    topology: Topology, graph: CompressedAdjacency, chosen: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Return chosen bonds, uint32 (entries, n) of ranks and starts of trees, as words of bonds."""
    words = np.zeros((len(chosen), topology.num_bond_words), np.uint32)
    entry, place = np.nonzero(chosen < NO_BOND)
    number = graph.numbers[chosen[entry, place]]
    one = np.uint32(1) << (number & np.uint32(31))
    np.bitwise_or.at(words, (entry, number >> np.uint32(5)), one)
    return words


@njit(nogil=True, cache=True)
def _fill_keys(weights, numbers, keys):
    """Write the keys of bonds by their numbers."""
    for rank in range(numbers.size):
        keys[rank] = compute_key(weights, numbers[rank])


@njit(nogil=True, cache=True)
def _grow(graph, weights, where, r1, r2, r3):
    """Find the tree; r1, r2, r3: the candidates, all sites but the first; where: their places."""
    count = r1.size
    for n in range(count):
        site = graph.sites[n + 1]
        r1[n], r2[n], r3[n] = uint32(uint32(NO_BOND) | site), site, uint64(NO_KEY)
        where[site] = uint32(n)
    current = graph.sites[0]
    where[current] = uint32(_IN_TREE)
    for first in range(count):
        for half in range(graph.starts[current], graph.starts[current + uint32(1)]):
            n = where[graph.ends[half]]
            if n != uint32(_IN_TREE):
                key, bond = weights[half], graph.ranks[half]
                if key < r3[n] or (key == r3[n] and bond < r1[n]):
                    r3[n], r1[n] = key, bond
        least = first
        key = r3[first]
        for n in range(first + 1, count):
            if r3[n] <= key and (r3[n] < key or r1[n] < r1[least]):
                least, key = n, r3[n]
        r1[first], r1[least] = r1[least], r1[first]
        r2[first], r2[least] = r2[least], r2[first]
        r3[first], r3[least] = r3[least], r3[first]
        where[r2[least]] = uint32(least)
        current = r2[first]
        where[current] = uint32(_IN_TREE)


class Prim:
    """Guo's rounds on one core; the protocol is :class:`percolab.trees.Trees`.

    ValueError: 2^30 points or bonds, or more.
    """

    def __init__(self, topology: Topology, capacity: int = 1) -> None:
        self.topology, self.capacity = topology, 1
        self._graph = compressed_adjacency(topology)
        count = max(self._graph.sites.size - 1, 0)
        self._keys = np.empty(self._graph.numbers.size, np.uint64)
        self._where = np.empty(topology.num_points, np.uint32)
        self._r1, self._r2 = np.empty(count, np.uint32), np.empty(count, np.uint32)
        self._r3 = np.empty(count, np.uint64)

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes; given keys are the caller's."""
        bonds = extent.num_classes * extent.num_points
        own = 20 * extent.num_points + 24 * bonds + 4 * extent.num_words
        return Memory(host=adjacency_bytes(extent).host + own)

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        """Find the tree of a sample, its number in an array of one."""
        (sample,) = samples
        return self._build(make_sample_weights(generator, seed, int(sample)))

    def build_given(self, keys: NDArray[np.uint64]) -> int:
        """Find the tree of given keys, uint64 (32 * words of all classes,)."""
        return self._build(given_weights(keys))

    def _build(self, weights: BondWeights) -> int:
        graph = self._graph
        _fill_keys(weights, graph.numbers, self._keys)
        if graph.sites.size:
            _grow(graph, self._keys[graph.ranks], self._where, self._r1, self._r2, self._r3)
        return 1

    def words(self, entries: int) -> NDArray[np.uint32]:
        """Return the bonds of the tree, uint32 (1, words of all classes)."""
        return words_from_ranks(self.topology, self._graph, self._r1[None])
