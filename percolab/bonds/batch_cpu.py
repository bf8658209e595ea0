"""The open bonds of one sample in the memory of the host."""

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.hooks import draw_samples
from percolab.bonds.model import Model
from percolab.bonds.sites import Sites
from percolab.kernels.memory import Memory
from percolab.kernels.neighbours import Adjacency
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology, UInt64s, count_words

#: Bond words of small samples that are drawn at once.
_WORDS_TOGETHER = 512


def make_adjacency(topology: Topology) -> Adjacency:
    """Return the adjacency of a topology for kernels on the CPU."""
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
    """The bonds of one entry; the protocol is :class:`percolab.bonds.batch.Batch`.

    opened:    uint32 (num_classes * num_words,), class by class
    drawn:     uint32 (n, num_classes * num_words), for the n small samples that are drawn at once;
               the first is ``opened``
    adjacency: the other ends of bonds
    record:    the parameters of the model's hooks (:mod:`percolab.bonds.hooks`)
    """

    def __init__(self, topology: Topology, model: Model, capacity: int = 1) -> None:
        self.topology, self.model, self.capacity = topology, model, 1
        self.exists = topology.exists.ravel()
        together = max(_WORDS_TOGETHER // max(self.exists.size, 1), 1)
        self.drawn = np.zeros((together, self.exists.size), np.uint32)
        self.opened: NDArray[np.uint32] = self.drawn[0]
        self.adjacency = make_adjacency(topology)
        self.occupied = topology.occupied
        self.record = model.make_record(topology)
        if model.draws_sites:
            topology.check_end_layers()
            first, there = np.uint32(self.exists.size), topology.occupied
            drawn = np.tile(there, together)
            self.occupied = drawn[: there.size]
            self.record = Sites(model.rule, first, self.adjacency, there, drawn)

    @staticmethod
    def memory(extent: Extent, model: Model, entries: int = 1) -> Memory:
        site_words = 4 * count_words(extent.num_points) * model.draws_sites
        weights = 256 * extent.num_words * model.needs_weights
        return Memory(host=4 * extent.num_words + extent.periodic_bytes + site_words + weights)

    def fill(self, generator: int, seed: int, samples: UInt64s, thresholds: UInt64s) -> int:
        (threshold,) = thresholds
        key = np.uint64(seed), np.ascontiguousarray(samples, np.uint64), np.uint64(threshold)
        draw_samples(generator, self.record, *key, self.exists, self.drawn[:1])
        return 1

    def load(self, opened: NDArray[np.uint32]) -> int:
        (self.opened[:],) = opened
        return 1

    def copy_open_words(self, entries: int) -> NDArray[np.uint32]:
        return self.opened[None].copy()

    def copy_occupied(self, entries: int) -> NDArray[np.uint32]:
        return self.occupied[None].copy()

    def copy_vacant(self, entries: int) -> NDArray[np.int64]:
        occupied = np.bitwise_count(self.occupied).sum(dtype=np.int64)
        return np.array([self.topology.num_sites - occupied])
