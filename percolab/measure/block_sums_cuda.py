"""CUDA: sums of observables over the samples of blocks, from rows that stay on the device.

The same numbers, rounded alike, as :func:`percolab.measure.block_sums.sum_blocks` has them: a
product and then a sum are rounded each, sample after sample.
"""

from numba import config, float64, int64, types, uint32

from percolab.kernels.device import load_cuda
from percolab.measure.rows import ROW_WIDTH, SPANNING, read_observable

cuda = load_cuda()

SIMULATED = bool(config.ENABLE_CUDASIM)
#: Threads of a block, of which each reads the observables of a sample at a time.
SUM_THREADS = 8 if SIMULATED else 128
#: Observables for which there is room.
MOST_OBSERVABLES = 24
_VALUES, _NUMBERS = SUM_THREADS * MOST_OBSERVABLES, SUM_THREADS * ROW_WIDTH

if SIMULATED:

    def _add_product(total, one, other):
        return total + one * other
else:
    from numba.cuda import libdevice

    @cuda.jit(device=True)
    def _add_product(total, one, other):
        """Return total + one * other without a fused multiply-add."""
        return libdevice.dadd_rn(total, libdevice.dmul_rn(one, other))


@cuda.jit(device=True)
def _find_pair(place, width):
    """Return the two observables whose product is at a place."""
    first, place = uint32(0), uint32(place)
    while place >= uint32(width - first):
        place = uint32(place - uint32(width - first))
        first = uint32(first + uint32(1))
    return first, uint32(first + place)


@cuda.jit(cache=True)
def sum_rows_kernel(rows, first, samples, steps, picks, sums, products):
    """Add the rows of so many samples of every block to its sums; grid (blocks, steps).

    rows:     int64, ROW_WIDTH numbers a row, in the order of (block, sample, step)
    first:    the number of the first of these samples in the block; sums begin at 0
    picks:    int64 (4, C): places, masks, rules and without of the observables
    sums:     int64 (blocks, steps, C); products: float64 (blocks, steps, C (C + 1) / 2)
    """
    values = cuda.shared.array(_VALUES, types.float64)
    numbers = cuda.shared.array(_NUMBERS, types.int64)
    block, step, thread = cuda.blockIdx.x, cuda.blockIdx.y, uint32(cuda.threadIdx.x)
    width, pairs = uint32(picks.shape[1]), uint32(products.shape[2])
    begin = int64(block) * samples
    for start in range(0, samples, SUM_THREADS):
        count = uint32(min(samples - start, SUM_THREADS))
        for part in range(ROW_WIDTH):
            n = uint32(uint32(part * SUM_THREADS) + thread)
            sample = uint32(n // uint32(ROW_WIDTH))
            if sample < count:
                row = int64(int64(begin + start + sample) * steps + step) * ROW_WIDTH
                numbers[n] = rows[row + uint32(n - uint32(sample * uint32(ROW_WIDTH)))]
        cuda.syncthreads()
        if thread < count:
            row = uint32(thread * uint32(ROW_WIDTH))
            flags = numbers[uint32(row + uint32(SPANNING))]
            for c in range(width):
                number = numbers[uint32(row + uint32(picks[0, c]))]
                value = read_observable(number, flags, picks[1, c], picks[2, c], picks[3, c])
                values[uint32(uint32(thread * width) + uint32(c))] = float64(value)
        cuda.syncthreads()
        is_first = first + start == 0
        for n in range(thread, width, SUM_THREADS):
            total = int64(0) if is_first else sums[block, step, n]
            for k in range(count):
                total += int64(values[uint32(uint32(uint32(k) * width) + uint32(n))])
            sums[block, step, n] = total
        for n in range(thread, pairs, SUM_THREADS):
            one, other = _find_pair(n, width)
            product = float64(0) if is_first else products[block, step, n]
            row = uint32(0)
            for _ in range(count):
                pair = values[uint32(row + one)], values[uint32(row + other)]
                product = _add_product(product, pair[0], pair[1])
                row = uint32(row + width)
            products[block, step, n] = product
        cuda.syncthreads()
