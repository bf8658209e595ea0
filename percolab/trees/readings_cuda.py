"""CUDA kernels that read trees off their words: weights, and how many bonds sites have.

What they count is what :mod:`percolab.trees.readings` counts on the CPU.

tree: uint32, bond words of the items; degrees: uint32 (items * num_points,).
"""

from numba import types, uint32, uint64

from percolab.bonds.digits import fill_planes
from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.kernels.neighbours import has_bit, inner_word, periodic_bond
from percolab.trees.rounds_cuda import find_ends

cuda = load_cuda()

#: Digits of a weight that are summed up, with one more that rounds, and those of its bin.
WEIGHT_DIGITS, BIN_DIGITS = 32, 6
BINS = 1 << BIN_DIGITS
#: Sites with fewer bonds are counted in shared memory first.
SHARED_DEGREES = 64
_PLANES = WEIGHT_DIGITS + 1
_COLUMNS = THREADS * _PLANES
#: Columns of the sums of an item: bonds, and their weights in units of 2^-32.
BONDS, WEIGHT, SUMS = 0, 1, 2


@cuda.jit(device=True)
def _weight_bin(planes, base, bit):
    """Return the bin of a bond by the first digits of its number."""
    found = uint32(0)
    for k in range(BIN_DIGITS):
        digit = uint32(uint32(planes[uint32(base + uint32(k))] >> bit) & uint32(1))
        found = uint32(uint32(found << uint32(1)) | digit)
    return found


@cuda.jit(cache=True)
def weigh_kernel(generator, samples, tree, words_per_item, is_drawn, sums, bins):
    """Count the bonds of every tree, sum up their weights, and sort these into bins.

    A thread takes words of one item, and draws the 33 planes of each.  is_drawn: 0 leaves weights
    out, as for given keys.  sums: uint64 (items * SUMS,), bins: uint32 (items * BINS,), both
    cleared.
    """
    columns = cuda.shared.array(_COLUMNS, types.uint32)
    counts = cuda.shared.array(BINS, types.uint32)
    weights = cuda.shared.array(THREADS, types.uint64)
    numbers = cuda.shared.array(THREADS, types.uint32)
    thread, item = uint32(cuda.threadIdx.x), uint32(cuda.blockIdx.y)
    base = uint32(thread * uint32(_PLANES))
    k = thread
    while k < uint32(BINS):
        counts[k] = uint32(0)
        k = uint32(k + uint32(THREADS))
    cuda.syncthreads()
    total, number = uint64(0), uint32(0)
    sample = samples[uint32(item + uint32(1))]
    planes = columns[base : base + _PLANES]
    word = uint32(cuda.grid(1))
    while word < words_per_item:
        left = tree[uint32(uint32(item * words_per_item) + word)]
        number = uint32(number + uint32(popcount(left)))
        if left != uint32(0) and is_drawn != uint32(0):
            fill_planes(generator, samples[0], sample, word, planes)
            of_word, k = uint64(0), base
            while k < uint32(base + uint32(WEIGHT_DIGITS)):
                ones = popcount(uint32(columns[k] & left))
                of_word = uint64(uint64(of_word << uint64(1)) + uint64(ones))
                k = uint32(k + uint32(1))
            last = popcount(uint32(columns[k] & left))
            total = uint64(uint64(total + of_word) + uint64(last))
            while left != uint32(0):
                bit = uint32(lowest_one(left))
                left = uint32(left & uint32(left - uint32(1)))
                cuda.atomic.add(counts, _weight_bin(columns, base, bit), uint32(1))
        word = uint32(word + uint32(cuda.gridsize(1)))
    weights[thread], numbers[thread] = total, number
    width = THREADS // 2
    while width > 0:
        cuda.syncthreads()
        if thread < width:
            weights[thread] = uint64(weights[thread] + weights[thread + width])
            numbers[thread] = uint32(numbers[thread] + numbers[thread + width])
        width //= 2
    cuda.syncthreads()
    if thread == uint32(0):
        cuda.atomic.add(
            sums, uint32(uint32(item * uint32(SUMS)) + uint32(BONDS)), uint64(numbers[0])
        )
        cuda.atomic.add(sums, uint32(uint32(item * uint32(SUMS)) + uint32(WEIGHT)), weights[0])
    k = thread
    while k < uint32(BINS):
        if counts[k] != uint32(0):
            cuda.atomic.add(bins, uint32(uint32(item * uint32(BINS)) + k), counts[k])
        k = uint32(k + uint32(THREADS))


@cuda.jit(cache=True)
def degrees_kernel(tree, adjacency, words_per_item, degrees):
    """Count the bonds of the trees at every site of a graph: one thread a word."""
    word, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if word >= words_per_item:
        return
    base = uint32(item * adjacency.num_points)
    left = tree[uint32(uint32(item * words_per_item) + word)]
    while left != uint32(0):
        bond = uint32(uint32(word << uint32(5)) + uint32(lowest_one(left)))
        left = uint32(left & uint32(left - uint32(1)))
        i, j = find_ends(bond, adjacency)
        cuda.atomic.add(degrees, uint32(base + i), uint32(1))
        cuda.atomic.add(degrees, uint32(base + j), uint32(1))


@cuda.jit(cache=True)
def lattice_degrees_kernel(tree, adjacency, words_per_item, degrees):
    """Count the bonds of the trees at every site of a lattice, but for those that others own.

    These are counted if they are not across a periodic boundary, and so found by the index
    difference.
    """
    item, points = uint32(cuda.blockIdx.y), uint32(adjacency.num_points)
    base = uint32(item * words_per_item)
    for step in range(PER_THREAD):
        i = element(step)
        if i < points:
            degree = uint32(0)
            for k in range(len(adjacency.ends)):
                first = uint32(uint32(k) * uint32(adjacency.num_words))
                own = tree[uint32(uint32(base + first) + uint32(i >> uint32(5)))]
                if has_bit(own, i & uint32(31)):
                    degree = uint32(degree + uint32(1))
                # What would begin before the first site is beyond the last one.
                j = uint32(i - uint32(adjacency.ends[k]))
                if j < points:
                    word = uint32(first + uint32(j >> uint32(5)))
                    if has_bit(
                        inner_word(tree, adjacency.periodic_words, base, word), j & uint32(31)
                    ):
                        degree = uint32(degree + uint32(1))
            degrees[uint32(uint32(item * points) + i)] = degree


@cuda.jit(cache=True)
def periodic_degrees_kernel(tree, adjacency, words_per_item, degrees):
    """Count the periodic bonds at the sites that do not own them: one thread a bond."""
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < uint32(adjacency.periodic_bonds.size):
        is_open, _, j = periodic_bond(n, tree, uint32(item * words_per_item), adjacency)
        if is_open:
            place = uint32(uint32(item * uint32(adjacency.num_points)) + j)
            cuda.atomic.add(degrees, place, uint32(1))


@cuda.jit(cache=True)
def tally_degrees_kernel(degrees, occupied, points, width, tallies):
    """Count the sites by how many bonds they have; tallies: uint32 (items * width,), cleared."""
    counts = cuda.shared.array(SHARED_DEGREES, types.uint32)
    item, k = uint32(cuda.blockIdx.y), uint32(cuda.threadIdx.x)
    while k < uint32(SHARED_DEGREES):
        counts[k] = uint32(0)
        k = uint32(k + uint32(THREADS))
    cuda.syncthreads()
    begin = uint32(item * width)
    for step in range(PER_THREAD):
        i = element(step)
        if i < points and has_bit(occupied[uint32(i >> uint32(5))], i & uint32(31)):
            degree = degrees[uint32(uint32(item * points) + i)]
            if degree < uint32(SHARED_DEGREES):
                cuda.atomic.add(counts, degree, uint32(1))
            else:
                cuda.atomic.add(tallies, uint32(begin + degree), uint32(1))
    cuda.syncthreads()
    k = uint32(cuda.threadIdx.x)
    while k < uint32(SHARED_DEGREES):
        if counts[k] != uint32(0):
            cuda.atomic.add(tallies, uint32(begin + k), counts[k])
        k = uint32(k + uint32(THREADS))
