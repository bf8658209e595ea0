"""Kruskal's algorithm (1956) on the CPU: bonds in ascending order, joined by union-find.

The bonds of a sample of a lattice are first joined in tiles, where all data are in the fastest
cache; then the bonds left over between fragments are joined.  Graphs and given keys are joined
band by band: a band is a range of keys, and only those of its bonds are sorted whose ends are not
joined by smaller bonds (filter-Kruskal: Osipov, Sanders and Singler 2009).
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import make_adjacency
from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.trees import OneTree, kruskal_tiles, ordered_joins
from percolab.trees.ordered_joins import BOND_LIST_BYTES, fill_prefixes, new_bond_list
from percolab.trees.weights import BondWeights

# The number of keys whose quantiles are the limits of bands.
_KEYS_TRIED = 4096
_LAST_KEY = 2**64 - 1


class Kruskal(OneTree):
    """The minimum spanning tree of one sample (:class:`percolab.trees.Trees`).

    tile_bits: binary logarithm of the number of sites in a lattice's tile

    prefixes: uint32, of the last sample's bonds by number; allocated when first needed
    rest:     number of bonds left over by the last sample's tiles, and bonds between tiles
    chosen:   number of these bonds in the tree
    """

    def __init__(
        self, topology: Topology, capacity: int = 1, *, tile_bits: int = kruskal_tiles.TILE_BITS
    ) -> None:
        super().__init__(topology)
        self.exists = topology.exists.ravel()
        self.adjacency = make_adjacency(topology)
        self.prefixes = np.empty(0, np.uint32)
        self.rest, self.chosen = 0, 0
        # A forest has fewer bonds than a tree; their number is known after the first sample.
        self._most_bonds = topology.num_sites - 1
        self._in_tiles = bool(topology.shape)
        self._crossing = 0
        if self._in_tiles:
            self._tiles = kruskal_tiles.new_tiles(topology, tile_bits)
            self._scratch = kruskal_tiles.new_tile_scratch(self._tiles)
            self._crossing = self._tiles.ends.size // 2
        self._listed = new_bond_list(3 * self._crossing)
        self._parents = np.empty(2 * self._crossing, np.int32)

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        words, total = extent.num_words, 4 * extent.num_words + extent.periodic_bytes
        if extent.shape:
            crossing = kruskal_tiles.most_crossing(extent)
            total += kruskal_tiles.tile_bytes(extent) + (24 + 3 * BOND_LIST_BYTES + 8) * crossing
        if given or not extent.shape:
            # The memory for the limits of bands matters only for a small graph.
            total += BOND_LIST_BYTES * 32 * words + 4 * extent.num_points + 80 * _KEYS_TRIED
        return Memory(host=total + (0 if given else 4 * 32 * words))

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        (sample,) = samples
        if not self.prefixes.size:
            self.prefixes = np.empty(32 * self.exists.size, np.uint32)
        fill_prefixes(generator, np.uint64(seed), np.uint64(sample), self.prefixes)
        return super().build(generator, seed, samples)

    def find(self, weights: BondWeights) -> None:
        """Find the tree for these weights; ``prefixes`` must be those of the sample."""
        if self._in_tiles and not weights.given.size:
            self._join_tiles(weights)
        elif self.topology.num_bonds:
            self._join_bands(weights)

    def _join_tiles(self, weights: BondWeights) -> None:
        where = self.exists, 32 * self.topology.num_words, self._tiles, self._scratch
        listed = self._listed, self.tree
        count, fragments = kruskal_tiles.join_tiles(weights, self.prefixes, *where, *listed)
        self.rest = int(count)
        self._parents[:fragments] = np.arange(fragments, dtype=np.int32)
        self.chosen = self._join_listed(weights, self.rest, self._parents)

    def _join_bands(self, weights: BondWeights) -> None:
        if self._listed.bonds.size < self.topology.num_bonds:
            self._listed = new_bond_list(self.topology.num_bonds)
        parents = np.arange(self.topology.num_points, dtype=np.int32)
        joined = 0
        for low, high in self._bands(weights):
            if joined == self._most_bonds:
                break
            between = np.uint64(low), np.uint64(high), self.exists, self.adjacency
            count = ordered_joins.list_bonds_between(
                weights, self.prefixes, *between, parents, self._listed
            )
            joined += self._join_listed(weights, count, parents)
        self._most_bonds = joined

    def _join_listed(self, weights: BondWeights, count: int, parents: NDArray[np.int32]) -> int:
        bonds, ends, pairs = self._listed
        row = ordered_joins.sort_bonds(weights, self.prefixes, bonds, pairs, count)
        ordered = pairs[row, :count]
        return int(ordered_joins.join_in_order(ordered, bonds, ends, parents, self.tree))

    def _bands(self, weights: BondWeights) -> list[tuple[int, int]]:
        """Return ascending ranges of keys: with about as many bonds as sites, then doubling."""
        words = np.flatnonzero(self.exists)
        words = words[:: max(32 * words.size // _KEYS_TRIED, 1)]
        bonds = 32 * words[:, None] + np.arange(32)
        there = self.exists[words][:, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1) > 0
        keys = weights.given if weights.given.size else self.prefixes
        tried = np.sort(keys[bonds[there]])
        share = self.topology.num_sites / self.topology.num_bonds
        limits = []
        while share < 1:
            limits.append(int(tried[int(share * tried.size)]))
            share *= 2
        cuts = [-1, *sorted({limit for limit in limits if limit < _LAST_KEY}), _LAST_KEY]
        return [(before + 1, last) for before, last in pairwise(cuts)]
