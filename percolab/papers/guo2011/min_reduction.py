"""CUDA: the minimum of an array with its index, the primitive of Guo's Prim.

S. Guo, W. Wang and L. Wang, Application Research of Computers 28, 1682 (2011), section 2.2: an
array of any length, at most two kernels, and an index that is carried along.  The first kernel
leaves one element a block in temporary arrays, the second finds the least of these.

Elements are ordered by (key, number), and where both are equal by their index, so that the result
is one and the same whatever the number of threads.  Inside a kernel an element is (key, tail), with
number and index in the 64 bits of the tail.

Differences from the paper: it compares in shared memory down to the last 32 threads, which need no
barrier there; here they are compared by warp shuffles, before the warps are.  And it calls the
second kernel only for very long arrays; here it follows wherever the first had several blocks.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, uint32, uint64

from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.launches import THREADS, Launches

#: Threads that compare by shuffles.  The simulator has none: there every thread is a warp.
LANES = 1 if SIMULATED else 32
#: Blocks of the first kernel at most.
MAX_BLOCKS = 3 if SIMULATED else 128
_WARPS = THREADS // LANES
#: A key and a tail that no element precedes.
NO_KEY = NO_TAIL = 2**64 - 1


class Least(NamedTuple):
    """The least element of an array: its key, its number, and its index."""

    key: int
    number: int
    index: int


@cuda.jit(device=True)
def precedes(key, tail, other_key, other_tail):
    """Return whether an element comes before another one."""
    return key < other_key or (key == other_key and tail < other_tail)


@cuda.jit(device=True)
def pack_tail(number, index):
    """Return number and index, 32 bits each, as one integer that is ordered as they are."""
    return uint64(uint64(uint64(number) << uint64(32)) | uint64(index))


@cuda.jit(device=True)
def min_of_warp(key, tail):
    """Return the least element that threads of this warp have, to all of them."""
    step = 1
    while step < LANES:
        other_key = uint64(cuda.shfl_xor_sync(0xFFFFFFFF, int64(key), step))
        other_tail = uint64(cuda.shfl_xor_sync(0xFFFFFFFF, int64(tail), step))
        if precedes(other_key, other_tail, key, tail):
            key, tail = other_key, other_tail
        step *= 2
    return key, tail


@cuda.jit(device=True)
def min_of_parts(keys, tails, count):
    """Return the least of ``count`` elements in shared memory; every warp finds it for itself."""
    key, tail = uint64(NO_KEY), uint64(NO_TAIL)
    n = uint32(uint32(cuda.threadIdx.x) & uint32(LANES - 1))
    while n < uint32(count):
        if precedes(keys[n], tails[n], key, tail):
            key, tail = keys[n], tails[n]
        n = uint32(n + uint32(LANES))
    return min_of_warp(key, tail)


@cuda.jit(device=True)
def min_of_block(key, tail):
    """Return the least element that threads of a block of THREADS have, to all of them."""
    keys = cuda.shared.array(_WARPS, uint64)
    tails = cuda.shared.array(_WARPS, uint64)
    key, tail = min_of_warp(key, tail)
    thread = uint32(cuda.threadIdx.x)
    if uint32(thread & uint32(LANES - 1)) == uint32(0):
        keys[thread // uint32(LANES)] = key
        tails[thread // uint32(LANES)] = tail
    cuda.syncthreads()
    return min_of_parts(keys, tails, uint32(_WARPS))


@cuda.jit(device=True)
def min_of_range(keys, numbers, first, count):
    """Return the least of the elements from ``first`` to below ``count`` that this block looks at.

    Blocks of THREADS threads take turns; neighbouring threads look at neighbouring elements.
    """
    key, tail = uint64(NO_KEY), uint64(NO_TAIL)
    n = uint32(uint32(first) + uint32(cuda.grid(1)))
    while n < uint32(count):
        own, other = keys[n], pack_tail(numbers[n], n)
        if precedes(own, other, key, tail):
            key, tail = own, other
        n = uint32(n + uint32(cuda.gridsize(1)))
    return min_of_block(key, tail)


@cuda.jit(device=True)
def min_of_blocks(keys, tails, blocks):
    """Return the least of what the blocks of the first kernel left."""
    key, tail = uint64(NO_KEY), uint64(NO_TAIL)
    n = uint32(cuda.threadIdx.x)
    while n < uint32(blocks):
        if precedes(keys[n], tails[n], key, tail):
            key, tail = keys[n], tails[n]
        n = uint32(n + uint32(THREADS))
    return min_of_block(key, tail)


@cuda.jit(cache=True)
def first_min_kernel(keys, numbers, found_keys, found_tails):
    """Leave the least element of every block in the temporary arrays."""
    key, tail = min_of_range(keys, numbers, uint32(0), uint32(keys.size))
    if cuda.threadIdx.x == 0:
        found_keys[cuda.blockIdx.x], found_tails[cuda.blockIdx.x] = key, tail


@cuda.jit(cache=True)
def second_min_kernel(blocks, found_keys, found_tails):
    """Put the least of the temporary elements in place of the first; one block."""
    key, tail = min_of_blocks(found_keys, found_tails, blocks)
    if cuda.threadIdx.x == 0:
        found_keys[0], found_tails[0] = key, tail


def blocks_for(length: int) -> int:
    """Return how many blocks the first kernel has for so many elements."""
    return max(min(-(-length // THREADS), MAX_BLOCKS), 1)


class MinReduction:
    """Finds minima, with a stream and temporary arrays of its own."""

    def __init__(self) -> None:
        self.launches = Launches()
        self.keys = cuda.device_array(MAX_BLOCKS, np.uint64)
        self.tails = cuda.device_array(MAX_BLOCKS, np.uint64)

    def enqueue(self, keys, numbers) -> None:
        """Launch one kernel or two; the least element will be the first of the temporary arrays."""
        blocks = blocks_for(keys.size)
        temporary = self.keys, self.tails
        self.launches.blocks(first_min_kernel, blocks, THREADS, keys, numbers, *temporary)
        if blocks > 1:
            self.launches.blocks(second_min_kernel, 1, THREADS, np.uint32(blocks), *temporary)

    def of(self, keys, numbers) -> Least:
        """Return the least element of device arrays, uint64 (n,) and uint32 (n,), 0 < n < 2^32.

        ValueError: no elements, too many, or not as many numbers as keys.
        """
        if not 0 < keys.size < 2**32 or numbers.size != keys.size:
            raise ValueError(f"no minimum of {keys.size} keys with {numbers.size} numbers")
        self.enqueue(keys, numbers)
        self.launches.wait()
        key, tail = int(self.keys.copy_to_host()[0]), int(self.tails.copy_to_host()[0])
        return Least(key, tail >> 32, tail & 0xFFFFFFFF)


def min_reduction(keys, numbers) -> Least:
    """Return the least element of host arrays, found on the device; :meth:`MinReduction.of`."""
    on_device = cuda.to_device(np.asarray(keys, np.uint64)), np.asarray(numbers, np.uint32)
    return MinReduction().of(on_device[0], cuda.to_device(on_device[1]))


def time_min_reduction(length: int) -> list[float]:
    """Return seconds that a minimum of ``length`` random elements takes on the device, 7 times.

    Each is the mean of 50 minima that are one captured call.
    """
    repeats, calls = 7, 50
    random = np.random.default_rng(length)
    keys = cuda.to_device(random.integers(0, 2**63, length, np.uint64))
    numbers = cuda.to_device(np.arange(length, dtype=np.uint32))
    reduction = MinReduction()
    launches = reduction.launches

    def work() -> None:
        for _ in range(calls):
            reduction.enqueue(keys, numbers)

    def timed() -> float:
        begin, end = cuda.event(), cuda.event()
        begin.record(launches.stream)
        launches.call("minima", work)
        end.record(launches.stream)
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / calls

    for _ in range(3):  # directly, which compiles; captured; launched
        timed()
    return [timed() for _ in range(repeats)]
