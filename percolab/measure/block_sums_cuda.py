"""CUDA: sums of observables over the samples of blocks, from rows that stay on the device.

The same numbers, rounded alike, as :func:`percolab.measure.block_sums.sum_blocks` has them: a
product and then a sum are rounded each, sample after sample.
"""

from numba import config, float64, int64, types

from percolab.kernels.device import load_cuda
from percolab.measure.rows import ROW_WIDTH, SPANNING, read_observable

cuda = load_cuda()

SIMULATED = bool(config.ENABLE_CUDASIM)
#: Threads of a block, and samples whose observables it reads at a time.
SUM_THREADS = 8 if SIMULATED else 128
_SAMPLES = 4 if SIMULATED else 32
#: Observables for which there is room.
MOST_OBSERVABLES = 24
_VALUES = _SAMPLES * MOST_OBSERVABLES

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
    first = 0
    while place >= width - first:
        place -= width - first
        first += 1
    return first, first + place


@cuda.jit(cache=True)
def sum_rows_kernel(rows, samples, steps, picks, sums, products):
    """Add the rows of so many samples of every block to its sums; grid (blocks, steps).

    rows:     int64, ROW_WIDTH numbers a row, in the order of (block, sample, step)
    picks:    int64 (4, C): places, masks, rules and without of the observables
    sums:     int64 (blocks, steps, C); products: float64 (blocks, steps, C (C + 1) / 2)
    """
    values = cuda.shared.array(_VALUES, types.float64)
    block, step, thread = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
    width, pairs = picks.shape[1], products.shape[2]
    begin = int64(block) * samples
    for start in range(0, samples, _SAMPLES):
        count = min(samples - start, _SAMPLES)
        for n in range(thread, count * width, SUM_THREADS):
            row = (int64(begin + start + n // width) * steps + step) * ROW_WIDTH
            c = n % width
            number, flags = rows[row + picks[0, c]], rows[row + SPANNING]
            values[n] = float64(
                read_observable(number, flags, picks[1, c], picks[2, c], picks[3, c])
            )
        cuda.syncthreads()
        for n in range(thread, width, SUM_THREADS):
            total = sums[block, step, n]
            for k in range(count):
                total += int64(values[k * width + n])
            sums[block, step, n] = total
        for n in range(thread, pairs, SUM_THREADS):
            one, other = _find_pair(n, width)
            product = products[block, step, n]
            for k in range(count):
                product = _add_product(product, values[k * width + one], values[k * width + other])
            products[block, step, n] = product
        cuda.syncthreads()
