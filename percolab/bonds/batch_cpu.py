"""The open bonds of one sample in the memory of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.hooks import ClassLimits, fill_sample
from percolab.bonds.model import Model
from percolab.bonds.models.bond_weights import BondWeight
from percolab.bonds.sites import Sites, count_vacant_sites
from percolab.bonds.weights import BondWeights
from percolab.kernels.memory import Memory
from percolab.kernels.neighbours import Adjacency
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology, UInt64s, count_words


def make_adjacency(topology: Topology) -> Adjacency:
    """Return where the bonds of a topology lead, for kernels on the CPU."""
    periodic = topology.periodic_words
    return Adjacency(
        ends=topology.deltas if topology.neighbours is None else topology.neighbours,
        periodic_words=np.empty(0, np.uint32) if periodic is None else periodic.ravel(),
        periodic_bonds=topology.periodic_bonds,
        periodic_ends=topology.periodic_ends,
        periodic_codes=topology.periodic_codes,
        num_points=np.uint32(topology.num_points),
        num_words=np.uint32(topology.num_words),
        chain=np.int32(topology.chain),
    )


class CpuBatch:
    """The bonds of one item; the protocol is :class:`percolab.bonds.batch.Batch`.

    opened:    uint32 (num_classes * num_words,), class by class
    adjacency: where the bonds lead
    record:    what the model's hooks have to know (:mod:`percolab.bonds.hooks`)
    """

    def __init__(self, topology: Topology, model: Model, capacity: int = 1) -> None:
        self.topology, self.model, self.capacity = topology, model, 1
        self.exists = topology.exists.ravel()
        self.opened = np.zeros(self.exists.size, np.uint32)
        self.adjacency = make_adjacency(topology)
        self.occupied = topology.occupied
        self.record: Any = ()
        limits = model.class_limits(topology.class_names)
        if len(limits):
            self.record = ClassLimits(limits, np.uint32(topology.num_words))
        if isinstance(model, BondWeight):
            assert topology.bond_weights is not None
            self.record = BondWeights(topology.bond_weights, np.uint32(model.is_rate))
        if model.draws_sites:
            topology.check_end_layers()
            self.occupied = topology.occupied.copy()
            first = np.uint32(self.exists.size)
            there = topology.occupied
            self.record = Sites(model.rule, first, self.adjacency, there, self.occupied)

    @staticmethod
    def memory(extent: Extent, model: Model, items: int = 1) -> Memory:
        site_words = 4 * count_words(extent.num_points) * model.draws_sites
        weights = 256 * extent.num_words * model.needs_weights
        return Memory(host=4 * extent.num_words + extent.periodic_bytes + site_words + weights)

    def fill(self, generator: int, seed: int, samples: UInt64s, thresholds: UInt64s) -> int:
        (sample,), (threshold,) = samples, thresholds
        key = np.uint64(seed), np.uint64(sample), np.uint64(threshold)
        fill_sample(generator, self.record, *key, self.exists, self.opened)
        return 1

    def load(self, opened: NDArray[np.uint32]) -> int:
        (self.opened[:],) = opened
        return 1

    def copy_open_words(self, items: int) -> NDArray[np.uint32]:
        return self.opened[None].copy()

    def copy_occupied(self, items: int) -> NDArray[np.uint32]:
        return self.occupied[None].copy()

    def copy_vacant(self, items: int) -> NDArray[np.int64]:
        occupied = np.bitwise_count(self.occupied).sum(dtype=np.int64)
        return np.array([self.topology.num_sites - occupied])

    def count_vacant(
        self, generator: int, seed: int, samples: UInt64s, thresholds: UInt64s
    ) -> NDArray[np.int64]:
        """Return how many sites of each item the model leaves vacant, int64 like thresholds.

        samples: (n,); thresholds: (n,), or (n, m) for m items of each sample.  The occupied sites
        are overwritten.
        """
        counts = np.empty((len(samples), thresholds.size // max(len(samples), 1)), np.int64)
        grids = np.ascontiguousarray(thresholds, np.uint64).reshape(counts.shape)
        numbers = np.ascontiguousarray(samples, np.uint64)
        count_vacant_sites(generator, np.uint64(seed), numbers, grids, self.record, counts)
        return counts.reshape(thresholds.shape)
