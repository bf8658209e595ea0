"""Guo's Prim on a CUDA device: launch by launch as in the paper, and all rounds in one launch.

S. Guo, W. Wang and L. Wang, Application Research of Computers 28, 1682 (2011);
:mod:`percolab.papers.guo2011.prim` says what the arrays are, and what differs.

A round of the paper is a minimum with its index (one kernel or two), whose last kernel swaps the
least candidate to the front, and a kernel that lowers the others.  Rounds are captured and launched
some dozens at a time, since a launch by itself costs the host more than the kernels take.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.launches import THREADS, Launches
from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.papers.guo2011.min_reduction import MAX_BLOCKS, blocks_for
from percolab.papers.guo2011.prim import CompressedAdjacency, adjacency_bytes, compressed_adjacency
from percolab.papers.guo2011.prim_kernels import (
    FOLLOWED,
    FOLLOWS,
    AdjacencyArrays,
    Rounds,
    begin_rounds_kernel,
    clear_tree_kernel,
    decrease_kernel,
    grow_in_memory_kernel,
    grow_in_shared_kernel,
    least_kernel,
    mark_tree_kernel,
    plain_least_kernel,
    take_least_kernel,
    weigh_kernel,
)
from percolab.papers.guo2011.warps import WARP

#: Rounds that are one captured call.
_ROUNDS = 3 if SIMULATED else 64
#: Bytes of dynamic shared memory that a kernel has without a request for more, and those that
#: the persistent kernel takes in addition to its candidates, with what the driver takes.
_PLAIN_SHARED, _BESIDE = 42 * 1024, 6 * 1024
#: Bytes of a candidate of the persistent kernels.
_CANDIDATE = 12
_MAX_GRID_Y = 65535


class _CudaPrim:
    """What both ways have in common: the graph, the weights of all entries, and their trees.

    launches: the stream that everything is done on
    """

    def __init__(self, topology: Topology, capacity: int) -> None:
        self.topology, self.capacity = topology, max(min(capacity, _MAX_GRID_Y), 1)
        self.launches = Launches()
        self._host = compressed_adjacency(topology)
        self._graph = self._on_device(self._host)
        self._samples = cuda.device_array(self.capacity + 1, np.uint64)
        self._weights = cuda.device_array(self.capacity * max(self._host.halves, 1), np.uint64)
        self._words = cuda.device_array(self.capacity * topology.num_bond_words, np.uint32)
        # What an entry chose, as many ranks as are marked.
        self._chosen: Any = None
        self._length = 0

    def _on_device(self, graph: CompressedAdjacency) -> AdjacencyArrays:
        return AdjacencyArrays(*(cuda.to_device(part if part.size else _EMPTY) for part in graph))

    def build(self, generator: int, seed: int, samples: NDArray[np.uint64]) -> int:
        """Find the trees of samples, uint64 (n,) with n <= capacity; return n."""
        entries = len(samples)
        self.launches.wait()
        self._samples[: entries + 1].copy_to_device(np.array([seed, *samples], np.uint64))
        if self._host.halves:
            graph = self._graph.numbers, self._graph.ranks, self._weights
            arguments = generator, self._samples, *graph
            self.launches.one(weigh_kernel, self._host.halves, entries, *arguments)
        self.grow(entries)
        return entries

    def build_given(self, keys: NDArray[np.uint64]) -> int:
        """Find the tree of given keys, uint64 (32 * words of all classes,); return 1."""
        return self.build_each_given(np.asarray(keys)[None])

    def build_each_given(self, keys: Iterable[NDArray[np.uint64]]) -> int:
        """Find the trees of given keys, uint64 (32 * words of all classes,) each; return n."""
        entries = self.load(keys)
        self.grow(entries)
        return entries

    def load(self, keys: Iterable[NDArray[np.uint64]]) -> int:
        """Copy the given keys of entries to the device as W; return how many they are."""
        halves, entries = self._host.halves, 0
        self.launches.wait()
        for entry, own in enumerate(keys):
            entries = entry + 1
            if halves:
                weights = np.ascontiguousarray(own[self._host.numbers][self._host.ranks])
                self._weights[entry * halves : (entry + 1) * halves].copy_to_device(weights)
        return entries

    def grow(self, entries: int) -> None:
        """Launch the rounds of the first entries, whose weights are there."""
        raise NotImplementedError

    def words(self, entries: int) -> NDArray[np.uint32]:
        """Return the bonds of the first trees, uint32 (entries, words of all classes)."""
        num_words = self.topology.num_bond_words
        own = self._words[: entries * num_words]
        self.launches.one(clear_tree_kernel, own.size, 1, own)
        if self._length and self._host.halves:
            chosen = np.uint32(self._length), self._chosen, np.uint32(num_words), own
            self.launches.one(mark_tree_kernel, self._length, entries, self._graph.numbers, *chosen)
        self.launches.wait()
        words: NDArray[np.uint32] = own.copy_to_host()
        return words.reshape(entries, num_words)


_EMPTY = np.zeros(1, np.uint32)


class PrimCuda(_CudaPrim):
    """Guo's rounds, launch by launch; the protocol is :class:`percolab.trees.Trees`.

    primitive: whether the minimum is found by the primitive of the paper, or plainly by one block:
    every thread looks through its share, one of them through what the threads found.
    ValueError: 2^30 points or bonds, or more.
    """

    def __init__(self, topology: Topology, capacity: int = 1, *, primitive: bool = True) -> None:
        super().__init__(topology, 1)
        self._primitive = primitive
        self._length = max(self._host.sites.size - 1, 0)
        size = max(self._length, 1)
        self._chosen = cuda.device_array(size, np.uint32)
        self._rounds = Rounds(
            r1=self._chosen,
            r2=cuda.device_array(size, np.uint32),
            r3=cuda.device_array(size, np.uint64),
            state=cuda.device_array(2, np.uint32),
            keys=cuda.device_array(MAX_BLOCKS, np.uint64),
            tails=cuda.device_array(MAX_BLOCKS, np.uint64),
        )

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes; given keys are the caller's."""
        bonds = extent.num_classes * extent.num_points
        own = 16 * extent.num_points + 16 * bonds + 4 * extent.num_words + 16 * MAX_BLOCKS + 24
        host = 24 * bonds * given + 4 * extent.num_words
        return adjacency_bytes(extent).plus(Memory(host, own))

    def grow(self, entries: int) -> None:
        """Launch all rounds."""
        if not self._length or not self._host.halves:
            # One site, or no bonds: nothing is chosen.
            self._length = 0
            return
        self.launches.one(begin_rounds_kernel, self._length, 1, self._graph.sites, self._rounds)
        self._decrease(blocks_for(self._length))
        for done in range(0, self._length, _ROUNDS):
            # Few numbers of blocks, so that few calls are captured.
            needed = blocks_for(self._length - done)
            blocks = min(1 << (needed - 1).bit_length(), MAX_BLOCKS)
            self.launches.call(("rounds", blocks), partial(self._enqueue, blocks))

    def _enqueue(self, blocks: int) -> None:
        """Launch some rounds; those behind the last do nothing."""
        rounds = self._rounds
        for _ in range(_ROUNDS):
            if not self._primitive:
                self.launches.blocks(plain_least_kernel, 1, THREADS, rounds)
            else:
                self.launches.blocks(least_kernel, blocks, THREADS, rounds)
                if blocks > 1:
                    merged = np.uint32(blocks), rounds
                    self.launches.blocks(take_least_kernel, 1, THREADS, *merged)
            self._decrease(blocks)

    def _decrease(self, blocks: int) -> None:
        arguments = self._graph, self._weights, self._rounds
        self.launches.blocks(decrease_kernel, blocks, THREADS, *arguments)


class PersistentPrim(_CudaPrim):
    """Guo's rounds in one launch, a warp an entry; the protocol is Trees.

    most_shared: bytes of shared memory that candidates may take, 12 each; those that do not fit lie
    in the device's memory.  None: what a block of the device can have.
    ValueError: 2^30 points or bonds, or more.
    """

    def __init__(
        self, topology: Topology, capacity: int = 1, *, most_shared: int | None = None
    ) -> None:
        super().__init__(topology, capacity)
        self._length = self._host.sites.size
        self._chosen = cuda.device_array(self.capacity * max(self._length, 1), np.uint32)
        points = topology.num_points
        self._levels = _levels(points)
        needed = _CANDIDATE * points + 4 * -(-points // 2 ** int(self._levels[0]))
        if most_shared is None:
            most_shared = _PLAIN_SHARED if needed <= _PLAIN_SHARED else _most_shared() - _BESIDE
        self._shared = needed if needed <= most_shared else 0
        self._candidates: tuple[Any, ...] = ()
        if not self._shared:
            size = self.capacity * points
            self._candidates = (
                cuda.device_array(size, np.uint64),
                cuda.device_array(2 * size, np.uint32),
            )

    def _on_device(self, graph: CompressedAdjacency) -> AdjacencyArrays:
        ends, starts = graph.ends.copy(), graph.starts[1:-1]
        same = np.append(ends[1:] == ends[:-1], False) if ends.size else np.zeros(0, bool)
        # The last entry of a site has nothing in common with the first of the next.
        inner = starts[(starts > 0) & (starts < ends.size)]
        same[inner - 1] = False
        ends[same] |= np.uint32(FOLLOWED)
        ends[1:][same[:-1]] |= np.uint32(FOLLOWS)
        return super()._on_device(graph._replace(ends=ends))

    @staticmethod
    def memory(extent: Extent, entries: int = 1, *, given: bool = False) -> Memory:
        """Return the memory that it takes, as if nothing of it were in shared memory."""
        points, bonds = extent.num_points, extent.num_classes * extent.num_points
        of_entry = (8 + _CANDIDATE) * points + 16 * bonds + 4 * extent.num_words + 8
        host = 24 * bonds * given + 4 * entries * extent.num_words
        return adjacency_bytes(extent).plus(Memory(host, entries * of_entry + 8))

    def grow(self, entries: int) -> None:
        """Launch the one kernel."""
        if not self._length or not self._host.halves:
            self._length = 0
            return
        points = np.uint32(self.topology.num_points)
        kernel = grow_in_shared_kernel if self._shared else grow_in_memory_kernel
        launch = kernel[entries, WARP, self.launches.stream, self._shared]
        if self._shared > _PLAIN_SHARED:
            _allow_shared(launch)
        # Without candidates in the device's memory there are no arrays of them.
        launch(self._graph, points, self._weights, self._levels, *self._candidates, self._chosen)


def _levels(points: int) -> tuple[np.uint32, np.uint32]:
    """Return the exponents of two of candidates in a group and of groups of a lane."""
    lanes = WARP.bit_length() - 1
    of_lane = max((points - 1).bit_length() - lanes, 0)
    group = max(-(-of_lane // 2), lanes)
    return np.uint32(group), np.uint32(max(of_lane - group, 0))


def _most_shared() -> int:
    """Return the bytes of shared memory that a block of the device can have."""
    from cuda.bindings import driver

    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    error, most = driver.cuDeviceGetAttribute(attribute, cuda.get_current_device().id)
    if int(error) != 0:
        raise RuntimeError(f"CUDA driver: {error.name}")
    return int(most)


def _allow_shared(launch: Any) -> None:
    """Let a configured launch have its dynamic shared memory, beyond what is plainly allowed.

    numba-cuda has no option for it; it keeps what is to be done before a launch with the launch.
    """
    from cuda.bindings import driver

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

    def allow(kernel: Any, configured: Any) -> None:
        handle, device = kernel._codelibrary.get_cufunc().handle, cuda.get_current_device().id
        (error,) = driver.cuKernelSetAttribute(attribute, configured.sharedmem, handle, device)
        if int(error) != 0:
            raise RuntimeError(f"CUDA driver: {error.name}")

    if not launch.pre_launch_callbacks:
        launch.pre_launch_callbacks.append(allow)
