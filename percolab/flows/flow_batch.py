"""The flow through the samples of a batch on a CUDA device, measured there."""

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.flows import large_flow, large_paths
from percolab.flows.blocks_cuda import Branches, backbone_kernel
from percolab.flows.cycle_words_cuda import bridges_kernel
from percolab.flows.flow import Circuit
from percolab.flows.net import BondList, make_net
from percolab.flows.paths_cuda import PathMemory, path_kernel
from percolab.flows.search_cuda import DeviceNet, Tree
from percolab.flows.tile_net import LEAST_LARGE, MOST_LARGE, make_tiles
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.device import free_memory
from percolab.labelers.forest import Reading
from percolab.measure.rows import LARGEST

_TREE = (np.uint64, np.uint64, np.uint32, np.uint32)
#: The arrays of points + 2 numbers that a search needs, for each measurement.
KINDS: dict[str, tuple[Any, ...]] = {
    "bridges": _TREE,
    "bridge_free": _TREE,
    "backbone": (*_TREE, *[np.uint32] * len(Branches._fields)),
    "connected": (np.uint32, np.uint32),
    "path": (np.uint32, np.uint32),
    "path_lengths": (np.uint32, np.uint32),
}
#: Smallest and largest number of threads per block; largest numbers of blocks, threads per launch.
_LEAST_THREADS, _BLOCK_THREADS, _MOST_BLOCKS, _MOST_THREADS = 32, 512, 2**12, 2**18
#: Searches take at most 1 / _SHARE of a device's free memory; one sample must fit.
_SHARE = 4
#: In batches of up to this number of entries all blocks work on one sample at a time.  On an H100,
#: one block per sample took as long for this many samples as for one: 12 to 96 times as long as all
#: blocks took for one (square L = 256 to 4096, cubic 64 to 256; results/flow).
_MOST_ENTRIES = 12


def make_reading(labeler: Any, circuit: Circuit, word: str, numbers: int) -> Any:
    """Return an object that measures the flow through the samples of a labeler's batch.

    A block of threads has one sample at a time, or all blocks share one if it is large enough.
    """
    topology = labeler.batch.topology
    if is_large(topology.num_points, labeler.batch.capacity):
        if word in large_flow.KINDS:
            tiles = make_tiles(circuit, topology.shape)
            return large_flow.LargeFlow(labeler, tiles, word, numbers)
        if large_paths.fits(topology):
            return large_paths.LargePaths(labeler.batch, circuit, numbers)
    return FlowBatch(labeler, copy_net(circuit, word), word, numbers)


def is_large(points: int, entries: int) -> bool:
    """Return whether sharing each sample among all blocks is faster than one block per sample."""
    return LEAST_LARGE <= points < MOST_LARGE and entries <= _MOST_ENTRIES


class FlowBatch:
    """A measurement of the flow through every sample of a labeler's batch.

    word: a key of :data:`KINDS`.  numbers: how many numbers a sample has.
    """

    def __init__(self, labeler: Any, net: DeviceNet, word: str, numbers: int) -> None:
        self._labeler, self._net, self._word = labeler, net, word
        batch = labeler.batch
        nodes = batch.topology.num_points + 2
        self.threads, blocks = choose_threads(batch.topology.num_points)
        each = nodes * sum(np.dtype(kind).itemsize for kind in KINDS[word])
        fitting = free_memory(cuda) // (_SHARE * each)
        self.blocks = max(min(batch.capacity, blocks, fitting), 1)
        self._memory = [cuda.device_array((self.blocks, nodes), kind) for kind in KINDS[word]]
        self._numbers = cuda.device_array((batch.capacity, numbers), np.uint64)

    def rows(self, entries: int) -> NDArray[np.int64]:
        """Return the numbers of the first entries of the batch, (entries, numbers)."""
        labeler, batch, memory = self._labeler, self._labeler.batch, self._memory
        bonds = self._net, batch.opened, np.uint32(batch.topology.num_bond_words)
        key = batch.keys.on_device.samples
        more: tuple[Any, ...]
        if self._word in ("bridges", "bridge_free"):
            labeler.join(entries, Reading.LABELS).make_labels()
            closing = np.uint32(self._word == "bridge_free")
            kernel, more = bridges_kernel, (key, labeler.labels, Tree(*memory), closing)
        elif self._word == "backbone":
            kernel, more = backbone_kernel, (key, Tree(*memory[:4]), Branches(*memory[4:]))
        else:
            kernel, more = path_kernel, (PathMemory(*memory),)
        of_all = np.uint32(entries), *bonds, *more, self._numbers
        batch.launches.blocks(kernel, min(entries, self.blocks), self.threads, *of_all)
        batch.launches.wait()
        if self._word == "bridge_free":
            return np.asarray(labeler.join(entries).rows()[:, LARGEST, None])
        rows: NDArray[np.int64] = self._numbers[:entries].copy_to_host().view(np.int64)
        return rows


def choose_threads(points: int) -> tuple[int, int]:
    """Return the threads per block and the largest number of blocks for samples of this size.

    A block gets about one thread per site of a level of the search, which was fastest on an H200
    for square and cubic lattices (results/flow).
    """
    if SIMULATED:
        return 8, 2
    threads = min(max(isqrt(points) // 2, _LEAST_THREADS), _BLOCK_THREADS)
    threads = 1 << (threads.bit_length() - 1)
    return threads, min(_MOST_THREADS // threads, _MOST_BLOCKS)


def copy_net(circuit: Circuit, word: str) -> DeviceNet:
    """Copy the net of a circuit to the device; for the backbone its terminals are joined."""
    points = circuit.num_points
    nodes = np.arange(points, dtype=np.uint32)
    if word == "backbone":
        nodes[circuit.source], nodes[circuit.target] = points, points + 1
    first, second = nodes[circuit.bonds.sites].T
    kept = first != second
    net = make_net(BondList(circuit.bonds.places[kept], circuit.bonds.sites[kept]), points)
    places = net.places[net.bonds].astype(np.uint64)
    lists = net.starts[: points + 1].astype(np.uint32), places << np.uint64(32) | nodes[net.ends]
    sites = circuit.source.astype(np.uint32), circuit.target.astype(np.uint32)
    return DeviceNet(*map(cuda.to_device, (*lists, nodes, *sites)))
