"""The shortest paths of the samples of a batch on a CUDA device, where they are read."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.flows.flow import Circuit
from percolab.flows.net import make_net
from percolab.flows.paths_cuda import (
    NEAR,
    SIDE,
    UNSEEN,
    PathNet,
    open_slots_kernel,
    path_kernel,
    prune_kernel,
)
from percolab.flows.search_cuda import SIMULATED
from percolab.kernels.device import free_memory, load_cuda
from percolab.lattices.topology import Topology

cuda = load_cuda()

#: Threads of a block, at least and at most, and the most samples at a time.
_LEAST_THREADS, _MOST_THREADS, _MOST_BLOCKS = 32, 1024, 2**12
#: The part of the free memory of a device that samples take, one over this; one's must fit.
_SHARE = 4


class PathBatch:
    """Reads the shortest paths of every sample of a labeler's batch, a block of threads each.

    numbers: the length alone, 1, or the bonds and sites of all shortest paths too, 3.
    """

    def __init__(self, labeler: Any, circuit: Circuit, numbers: int) -> None:
        self._batch = batch = labeler.batch
        points = batch.topology.num_points
        net = make_path_net(circuit, batch.topology)
        arrays = map(cuda.to_device, net[1:])
        self._net = PathNet(net.slot_bits, *arrays)
        # About as many threads as a level has ends.
        threads = min(max(isqrt(points), _LEAST_THREADS), _MOST_THREADS)
        self.threads = 8 if SIMULATED else 1 << (threads.bit_length() - 1)
        ends = 2 * max(points * net.deltas.size, net.bonds.size)
        fitting = free_memory(cuda) // (_SHARE * 4 * (2 * points + ends))
        self.blocks = max(min(batch.capacity, _MOST_BLOCKS, fitting), 1)
        self._states = cuda.device_array((self.blocks, 2 * points), np.uint32)
        self._far = cuda.device_array((self.blocks, ends), np.uint32)
        self._numbers = cuda.device_array((batch.capacity, numbers), np.uint64)

    def rows(self, entries: int) -> NDArray[np.int64]:
        """Return the numbers of the first entries of the batch, (entries, numbers)."""
        batch, launches, states = self._batch, self._batch.launches, self._states
        points, words = batch.topology.num_points, np.uint32(batch.topology.num_bond_words)
        shared = 2 * 4 * NEAR * self.threads
        for first in range(0, entries, self.blocks):
            blocks = min(entries - first, self.blocks)
            samples = self._net, batch.opened, words, np.uint32(first), states
            launches.each(open_slots_kernel, points, blocks, *samples)
            if self._net.deltas.size:
                launches.each(prune_kernel, points, blocks, self._net, states)
            more = *samples, self._far, self._numbers
            launches.blocks(path_kernel, blocks, self.threads, *more, shared=shared)
        launches.wait()
        rows: NDArray[np.int64] = self._numbers[:entries].copy_to_host().view(np.int64)
        return rows


def make_path_net(circuit: Circuit, topology: Topology) -> PathNet:
    """Return where the bonds of a topology lead, as slots of a grid or as the list of a graph."""
    points, slots = topology.num_points, 2 * topology.num_classes
    begins, none = np.full(points, UNSEEN, np.uint32), np.empty(0, np.uint32)
    begins[circuit.source], begins[circuit.target] = 0, SIDE
    ends = circuit.source.astype(np.uint32), circuit.target.astype(np.uint32), begins
    slot_bits = max(slots - 1, 0).bit_length()
    common = np.uint32(slot_bits), *ends
    # Ends have 30 bits.
    if topology.offsets and slots <= 30 and points << slot_bits < 2**30:
        shape = np.array(topology.shape, np.int64)
        offsets = np.repeat(topology.offsets, 2, axis=0)
        offsets[1::2] *= -1
        deltas = (offsets @ (np.cumprod(shape) // shape)).astype(np.uint32)
        grid = shape.astype(np.uint32), (offsets % shape).astype(np.uint32), deltas
        return PathNet(*common, *grid, none, none.astype(np.uint64))
    net = make_net(circuit.bonds, points)
    bonds = net.places[net.bonds].astype(np.uint64) << np.uint64(32) | net.ends
    starts = net.starts[: points + 1].astype(np.uint32)
    return PathNet(*common, none, none[:, None], none, starts, bonds)
