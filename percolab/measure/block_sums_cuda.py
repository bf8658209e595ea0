"""CUDA: sums of observables over the samples of blocks, from rows that stay on the device.

The numbers are those of :func:`percolab.measure.block_sums.sum_blocks`, with the same rounding:
each square and each sum is rounded, sample after sample in a chunk, and chunk after chunk.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64, types, uint32
from numpy.typing import NDArray

from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.launches import Launches
from percolab.measure.block_sums import CHUNK
from percolab.measure.rows import SPANNING, read_observable

#: Threads of a block, each of which reads the observables of one sample at a time.
SUM_THREADS = 32 if SIMULATED else 128
#: The most observables and squares together, one for each thread.
MOST_OBSERVABLES = 32
#: Blocks of a group that a thread adds up one after the other.
ADDED_BLOCKS = 64
# A group has fewer than 2^_HALVINGS blocks.
_HALVINGS = 32

if SIMULATED:

    def _add_square(total, value):
        return total + value * value
else:
    from numba.cuda import libdevice

    @cuda.jit(device=True)
    def _add_square(total, value):
        """Return total + value * value without a fused multiply-add."""
        return libdevice.dadd_rn(total, libdevice.dmul_rn(value, value))


class Observables(NamedTuple):
    """The observables that are summed.

    picks:   int64 (4, C): places, masks, rules and without of each
    squared: int64 (Q,), those whose squares are summed
    """

    picks: Any
    squared: Any


class ChunkSums(NamedTuple):
    """The sums over chunks of samples.

    sums: int64 (chunks, steps, C); squares: float64 (chunks, steps, Q)
    """

    sums: Any
    squares: Any


def shared_bytes(observables: int) -> int:
    """Return the shared memory of a block: a float64 for each observable of SUM_THREADS samples."""
    return 8 * SUM_THREADS * (observables | 1)


@cuda.jit(cache=True)
def sum_chunks_kernel(rows, row_width, samples, observables, chunk_sums):
    """Sum the rows of every chunk; grid (chunks, steps).

    Shared memory: :func:`shared_bytes`.

    rows:       int64, row_width numbers a row, in the order of (block, sample, step)
    samples:    samples of each block; all its chunks but the last are whole
    chunk_sums: :class:`ChunkSums`, of all chunks of a block one after the other
    """
    values = cuda.shared.array(0, types.float64)
    steps, step, thread = cuda.gridDim.y, cuda.blockIdx.y, uint32(cuda.threadIdx.x)
    picks, squared = observables.picks, observables.squared
    width, chunks = uint32(picks.shape[1]), (samples + CHUNK - 1) // CHUNK
    block = cuda.blockIdx.x // chunks
    begin = (cuda.blockIdx.x - block * chunks) * CHUNK
    end = min(begin + CHUNK, samples)
    # With an odd stride, threads write to different banks.
    apart = uint32(width | uint32(1))
    # Each thread has one sum: of an observable or, after these, of a square.
    number = uint32(thread)
    is_square = number >= width
    if is_square and number < width + squared.size:
        number = uint32(squared[number - width])
    total, square = int64(0), float64(0)
    for start in range(begin, end, SUM_THREADS):
        count = uint32(min(end - start, SUM_THREADS))
        if thread < count:
            row = int64((int64(block) * samples + start + thread) * steps + step) * row_width
            flags = rows[row + SPANNING]
            for c in range(width):
                value = read_observable(
                    rows[row + picks[0, c]], flags, picks[1, c], picks[2, c], picks[3, c]
                )
                values[uint32(uint32(thread * apart) + uint32(c))] = float64(value)
        cuda.syncthreads()
        if thread < width + squared.size:
            place = number
            for _ in range(count):
                value = values[place]
                if is_square:
                    square = _add_square(square, value)
                else:
                    total += int64(value)
                place = uint32(place + apart)
        cuda.syncthreads()
    if thread < width:
        chunk_sums.sums[cuda.blockIdx.x, step, thread] = total
    elif thread < width + squared.size:
        chunk_sums.squares[cuda.blockIdx.x, step, thread - width] = square


@cuda.jit(cache=True)
def add_chunks_kernel(chunk_sums, chunks, first, first_step, sums, squares):
    """Add up the chunks of every block, one after the other; grid (blocks, steps of the chunks).

    chunks: chunks of each block.  first: whether they are the first ones, so that sums begin at 0.
    first_step: the step, among those of the sums, of the chunks' first one.  sums: int64 (blocks,
    steps, C); squares: float64 (blocks, steps, Q)
    """
    block, chunk_step, thread = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
    step = chunk_step + first_step
    begin, width = block * chunks, sums.shape[2]
    if thread < width:
        total = int64(0) if first else sums[block, step, thread]
        for n in range(chunks):
            total += chunk_sums.sums[begin + n, chunk_step, thread]
        sums[block, step, thread] = total
    elif thread < width + squares.shape[2]:
        column = thread - width
        square = float64(0) if first else squares[block, step, column]
        for n in range(chunks):
            square += chunk_sums.squares[begin + n, chunk_step, column]
        squares[block, step, column] = square


@cuda.jit(cache=True)
def add_groups_kernel(begins, sums, squares, group_sums, group_squares, overflow):
    """Add up the blocks of groups as percolab.tasks.groups does; grid (groups, steps).

    begins:   int64 (groups + 1,), the first of the 2^k blocks of each group, and the end of all
    sums:     int64 (blocks, steps, C), and of groups, (groups, steps, C)
    squares:  float64 (blocks, steps, Q) alike, added in pairs, first half to second
    overflow: int32 (1,), becomes 1 where a sum does not fit in 64 bits
    """
    group, step, thread = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
    begin, end, width = begins[group], begins[group + 1], sums.shape[2]
    if thread < width:
        total = int64(0)
        for n in range(begin, end):
            value = sums[n, step, thread]
            after = total + value
            if (total ^ after) & (value ^ after) < 0:
                overflow[0] = 1
            total = after
        group_sums[group, step, thread] = total
    elif thread < width + squares.shape[2]:
        column = thread - width
        # For each level, the sum of a first half of blocks that waits for the second half.
        halves, square = cuda.local.array(_HALVINGS, types.float64), float64(0)
        for n in range(begin, end):
            square, level = squares[n, step, column], 0
            while (n - begin) >> level & 1:
                square = halves[level] + square
                level += 1
            halves[level] = square
        group_squares[group, step, column] = square


def add_groups(
    launches: Launches, begins: NDArray[np.int64], sums: Any, squares: Any
) -> tuple[Any, Any]:
    """Return the sums and squares of groups of blocks, on the device; raise OverflowError.

    begins: as :func:`percolab.tasks.groups.find_groups` returns it.  sums, squares: those of
    blocks, on the device, as :func:`add_groups_kernel` takes them.
    """
    overflow = cuda.to_device(np.zeros(1, np.int32))
    # Large groups are added in two steps, so that more threads work.
    places = np.append(0, np.cumsum(-(-np.diff(begins) // ADDED_BLOCKS)))
    each = np.arange(places[-1]) - np.repeat(places[:-1], np.diff(places))
    parts = np.append(np.repeat(begins[:-1], np.diff(places)) + ADDED_BLOCKS * each, begins[-1])
    for own in (parts, places):
        shape = len(own) - 1, sums.shape[1]
        added = [cuda.device_array((*shape, each.shape[2]), each.dtype) for each in (sums, squares)]
        given = cuda.to_device(own), sums, squares, *added, overflow
        launches.blocks(add_groups_kernel, shape, SUM_THREADS, *given)
        sums, squares = added
    launches.wait()
    if overflow.copy_to_host()[0]:
        raise OverflowError("the sum of a group does not fit in 64 bits")
    return sums, squares
