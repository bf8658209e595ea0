"""What flows through the samples of a batch on a CUDA device, where it is read."""

from __future__ import annotations

from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.flows.blocks_cuda import Branches, backbone_kernel
from percolab.flows.cycle_words_cuda import bridges_kernel
from percolab.flows.flow import Circuit
from percolab.flows.net import BondList, make_net
from percolab.flows.paths_cuda import PathMemory, path_kernel
from percolab.flows.search_cuda import SIMULATED, DeviceNet, Tree
from percolab.kernels.device import free_memory, load_cuda
from percolab.labelers.forest import Reading

cuda = load_cuda()

#: Threads of a block, at least and at most; and blocks, and threads of all, in a launch.
_LEAST_THREADS, _BLOCK_THREADS, _MOST_BLOCKS, _MOST_THREADS = 32, 512, 2**12, 2**18
#: The part of the free memory of a device that searches take, one over this; one sample's must fit.
_SHARE = 4
_TREE = (np.uint64, np.uint64, np.uint32, np.uint32)


class FlowBatch:
    """Reads some numbers of what flows through every sample of a labeler's batch.

    A subclass says what it reads.  numbers: how many of a sample.  kinds: of the arrays that a
    search needs, of points + 2 numbers each.
    """

    numbers: ClassVar[int]
    kinds: ClassVar[tuple[Any, ...]]

    def __init__(self, labeler: Any, net: DeviceNet) -> None:
        self.labeler, self.batch = labeler, labeler.batch
        top, launches = self.batch.topology, self.batch.launches
        self.net = net
        self.words = np.uint32(top.num_bond_words)
        nodes = top.num_points + 2
        self._threads, blocks = choose_threads(top.num_points)
        fitting = free_memory(cuda) // (_SHARE * nodes * self.search_bytes())
        self._blocks = max(min(self.batch.capacity, blocks, fitting), 1)
        self.memory = [cuda.device_array((self._blocks, nodes), kind) for kind in self.kinds]
        self._found = cuda.device_array((self.batch.capacity, self.numbers), np.uint64)
        self._launches = launches

    @classmethod
    def search_bytes(cls) -> int:
        """Return the memory of a search, in bytes a site."""
        return sum(np.dtype(kind).itemsize for kind in cls.kinds)

    def rows(self, items: int) -> NDArray[np.int64]:
        """Return the numbers of the first items of the batch, (items, numbers)."""
        self.read(items)
        self._launches.wait()
        found: NDArray[np.int64] = self._found[:items].copy_to_host().view(np.int64)
        return found

    def read(self, items: int) -> None:
        """Launch what reads the first items."""
        raise NotImplementedError

    def launch(self, kernel: Any, items: int, *memory: Any) -> None:
        """Launch a kernel with the net and open words, more arguments, and what it writes."""
        blocks, threads = min(items, self._blocks), self._threads
        bonds = np.uint32(items), self.net, self.batch.opened, self.words
        self._launches.blocks(kernel, blocks, threads, *bonds, *memory, self._found)


class BridgesBatch(FlowBatch):
    """Counts bridges."""

    numbers = 1
    kinds = _TREE

    def read(self, items: int) -> None:
        """Launch what labels the first items, and counts their bridges."""
        self.labeler.join(items, Reading.LABELS).make_labels()
        read = self.batch.keys.on_device.samples, self.labeler.labels, Tree(*self.memory)
        self.launch(bridges_kernel, items, *read)


class BackboneBatch(FlowBatch):
    """Counts red bonds, bonds of trails, and bonds and sites of the backbone."""

    numbers = 4
    kinds = (*_TREE, *(np.uint32,) * 4)

    def read(self, items: int) -> None:
        """Launch what reads the first items."""
        tree, branches = Tree(*self.memory[:4]), Branches(*self.memory[4:])
        self.launch(backbone_kernel, items, self.batch.keys.on_device.samples, tree, branches)


class PathBatch(FlowBatch):
    """Finds the length of shortest paths, and how many bonds and sites they have together."""

    numbers = 3
    kinds = (np.uint32, np.uint32)

    def read(self, items: int) -> None:
        """Launch what reads the first items."""
        self.launch(path_kernel, items, PathMemory(*self.memory))


def choose_threads(points: int) -> tuple[int, int]:
    """Return the threads of a block and the most blocks for samples of so many points.

    About as many threads as a level of a search has sites: what was fastest on an H200 for square
    and cubic lattices (results/flow).
    """
    if SIMULATED:
        return 8, 2
    threads = min(max(isqrt(points) // 2, _LEAST_THREADS), _BLOCK_THREADS)
    threads = 1 << (threads.bit_length() - 1)
    return threads, min(_MOST_THREADS // threads, _MOST_BLOCKS)


def net_fits(words: int) -> bool:
    """Return whether places of bonds in so many words, and the ends of bonds, fit 32 bits."""
    return 64 * words < 2**32


def copy_net(circuit: Circuit) -> DeviceNet:
    """Return the net of a circuit on the device."""
    points = circuit.num_points
    nodes = np.arange(points, dtype=np.uint32)
    nodes[circuit.source], nodes[circuit.target] = points, points + 1
    first, second = nodes[circuit.bonds.sites].T
    kept = first != second
    net = make_net(BondList(circuit.bonds.places[kept], circuit.bonds.sites[kept]), points)
    places = net.places[net.bonds].astype(np.uint64)
    lists = net.starts[: points + 1].astype(np.uint32), places << np.uint64(32) | nodes[net.ends]
    sites = circuit.source.astype(np.uint32), circuit.target.astype(np.uint32)
    return DeviceNet(*map(cuda.to_device, (*lists, nodes, *sites)))
