"""The shortest paths of few large samples on a CUDA device, measured there."""

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.flows import large_paths_cuda as kernels
from percolab.flows.flow import Circuit
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.device import free_memory
from percolab.lattices.topology import Topology

#: The largest number of threads per block.
_MOST_THREADS = 1024
#: Samples take at most 1 / _SHARE of a device's free memory; one sample must fit.
_SHARE = 4


class LargePaths:
    """A measurement of the shortest paths of a batch's samples, with a thread block for each.

    numbers: 1 for the length only, 3 for the bonds and sites of all shortest paths, too.
    """

    def __init__(self, batch: Any, circuit: Circuit, numbers: int) -> None:
        self._batch, points = batch, batch.topology.num_points
        self._net = make_path_net(circuit, batch.topology)
        # About one thread per end of a level.
        self.threads = 8 if SIMULATED else min(1 << (isqrt(points).bit_length() - 1), _MOST_THREADS)
        # Memory for two levels, each with at most all ends.
        ends = 2 * points * self._net.deltas.size
        fitting = free_memory(cuda) // (_SHARE * 4 * (2 * points + ends))
        self._blocks = max(min(batch.capacity, fitting), 1)
        self._states = cuda.device_array((self._blocks, 2 * points), np.uint32)
        self._far = cuda.device_array((self._blocks, ends), np.uint32)
        self._numbers = cuda.device_array((batch.capacity, numbers), np.uint64)

    def rows(self, entries: int) -> NDArray[np.int64]:
        """Return the numbers of the first entries of the batch, (entries, numbers)."""
        batch, launches, states = self._batch, self._batch.launches, self._states
        points, words = batch.topology.num_points, np.uint32(batch.topology.num_bond_words)
        shared = 2 * 4 * kernels.NEAR * self.threads
        for start in range(0, entries, self._blocks):
            blocks, first = min(entries - start, self._blocks), np.uint32(start)
            bonds = self._net, batch.opened, words, first, states
            launches.each(kernels.open_slots_kernel, points, blocks, *bonds)
            launches.each(kernels.prune_kernel, points, blocks, self._net, states)
            more = self._net, first, states, self._far, self._numbers
            kernel = kernels.large_path_kernel
            launches.blocks(kernel, blocks, self.threads, *more, shared=shared)
        launches.wait()
        rows: NDArray[np.int64] = self._numbers[:entries].copy_to_host().view(np.int64)
        return rows


def fits(topology: Topology) -> bool:
    """Return whether a site and a slot of a topology fit into the 30 bits of an end."""
    slots = 2 * topology.num_classes
    return bool(topology.offsets) and slots <= 30 and topology.num_points * 2 * slots <= 2**30


def make_path_net(circuit: Circuit, topology: Topology) -> kernels.PathNet:
    """Return the ends of a grid's bonds, and the terminals, on the device."""
    begins = np.full(topology.num_points, kernels.UNSEEN, np.uint32)
    begins[circuit.source], begins[circuit.target] = 0, kernels.SIDE
    shape = np.array(topology.shape, np.int64)
    offsets = np.repeat(topology.offsets, 2, axis=0)
    offsets[1::2] *= -1
    deltas = offsets @ (np.cumprod(shape) // shape)
    arrays = circuit.source, circuit.target, begins, shape, offsets % shape, deltas
    on_device = (cuda.to_device(array.astype(np.uint32)) for array in arrays)
    return kernels.PathNet(np.uint32((len(offsets) - 1).bit_length()), *on_device)
