"""CUDA kernels around a labeler: open bonds before it, the integer row after it.

A batch holds several *items*, each one sample at one p; the second grid axis counts items.  Item n
has its words at ``n * words_per_item`` and its labels and sizes at ``n * num_points``.
"""

from numba import config, int64, types, uint32, uint64

from percolab.device import load_cuda
from percolab.kernels.bonds import has_bit
from percolab.kernels.clusters import CLUSTERS, LARGEST, SECOND_LARGEST, SPANNING, SUM_SQUARES
from percolab.kernels.open_bonds import open_word

cuda = load_cuda()

# The simulator runs a Python thread per thread: small blocks there, which also meet more edges.
THREADS = 8 if config.ENABLE_CUDASIM else 256
#: Words or sites one thread works on: with one each, starting the blocks took longer than the work.
PER_THREAD = 4
#: Sites whose labels one block counts together, and sites one thread scans at most.
CHUNK = 16 * THREADS
_SCAN = 32
#: Labels a block adds up in shared memory, a power of two.
_SLOTS = 4 * THREADS
_FREE = 0xFFFFFFFF
#: Blocks an item's sizes are reduced by in the first of two steps.
PARTIALS = 2 if config.ENABLE_CUDASIM else 128


@cuda.jit(device=True)
def element(step):
    """Return the number of this thread's ``step``-th word or site, as uint32."""
    return uint32((cuda.blockIdx.x * PER_THREAD + step) * THREADS + cuda.threadIdx.x)


@cuda.jit(cache=True)
def open_bonds_kernel(generator, seed, samples, thresholds, exists, opened):
    """Write the open bonds of every item."""
    item = uint32(cuda.blockIdx.y)
    base = uint64(uint64(item) * uint64(exists.size))
    sample, threshold = samples[item], thresholds[item]
    for step in range(PER_THREAD):
        word = element(step)
        if word < exists.size:
            opened[base + uint64(word)] = open_word(
                generator, seed, sample, word, threshold, exists[word]
            )


@cuda.jit(cache=True)
def clear_kernel(sizes, num_points, spanning):
    """Set all sizes and spanning bits of the batch to zero."""
    item = uint32(cuda.blockIdx.y)
    base = uint64(uint64(item) * uint64(num_points))
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            sizes[base + uint64(i)] = uint32(0)
    if element(0) == uint32(0):
        spanning[item] = uint32(0)


@cuda.jit(device=True)
def _add_size(keys, counts, sizes, base, label, count):
    """Add to a label's size: in shared memory if the label has, or gets, its slot there."""
    slot = uint32(uint32(label * uint32(0x9E3779B1)) >> uint32(16)) & uint32(_SLOTS - 1)
    key = cuda.atomic.cas(keys, slot, uint32(_FREE), label)
    if key == uint32(_FREE) or key == label:
        cuda.atomic.add(counts, slot, count)
    else:
        cuda.atomic.add(sizes, base + uint64(label), count)


@cuda.jit(cache=True)
def count_sizes_kernel(labels, num_points, occupied, sizes):
    """Add every site to the size of its root.

    One thread counts a row of equal labels.  A block adds up its labels in shared memory before it
    goes to global memory, where all blocks queue for the counters of the large clusters.
    """
    chunk = cuda.shared.array(CHUNK, types.uint32)
    keys = cuda.shared.array(_SLOTS, types.uint32)
    counts = cuda.shared.array(_SLOTS, types.uint32)
    thread = uint32(cuda.threadIdx.x)
    base = uint64(uint64(cuda.blockIdx.y) * uint64(num_points))
    first = uint32(cuda.blockIdx.x * CHUNK)
    for slot in range(thread, _SLOTS, THREADS):
        keys[slot] = uint32(_FREE)
        counts[slot] = uint32(0)
    for place in range(thread, CHUNK, THREADS):
        if first + place < num_points:
            chunk[place] = labels[base + uint64(first + place)]
    cuda.syncthreads()
    for step in range(CHUNK // THREADS):
        place = uint32(thread + step * THREADS)
        site = uint32(first + place)
        if site < num_points and has_bit(occupied[site >> uint32(5)], site & uint32(31)):
            label = chunk[place]
            if place % _SCAN == 0 or chunk[place - uint32(1)] != label:
                end = uint32(place + uint32(1))
                while end % _SCAN != 0 and first + end < num_points and chunk[end] == label:
                    end = uint32(end + uint32(1))
                _add_size(keys, counts, sizes, base, label, uint32(end - place))
    cuda.syncthreads()
    for slot in range(thread, _SLOTS, THREADS):
        if counts[slot] != uint32(0):
            cuda.atomic.add(sizes, base + uint64(keys[slot]), counts[slot])


@cuda.jit(cache=True)
def mark_layer_kernel(labels, num_points, sites, bit, closing, sizes, spanning):
    """Set ``bit`` of the size of every root that touches an end layer.

    With ``closing`` the layer is the last one: where the first layer has set the bit already, the
    cluster spans, and the axis' bit (31 - bit) of the item's spanning bits is set instead.
    """
    n = cuda.grid(1)
    item = uint32(cuda.blockIdx.y)
    if n < sites.size:
        base = uint64(uint64(item) * uint64(num_points))
        root = base + uint64(labels[base + uint64(sites[n])])
        mark = uint32(uint32(1) << uint32(bit))
        if closing:
            if sizes[root] & mark:
                cuda.atomic.or_(spanning, item, uint32(uint32(1) << uint32(31 - bit)))
        elif not sizes[root] & mark:
            cuda.atomic.or_(sizes, root, mark)


@cuda.jit(device=True)
def _merge(clusters, squares, largest, second, thread, other):
    clusters[thread] += clusters[other]
    squares[thread] += squares[other]
    top = max(largest[thread], largest[other])
    low = min(largest[thread], largest[other])
    second[thread] = max(low, max(second[thread], second[other]))
    largest[thread] = top


@cuda.jit(device=True)
def _reduce_block(clusters, squares, largest, second, thread, width):
    """Merge the four columns of all threads into those of thread 0."""
    cuda.syncthreads()
    width //= 2
    while width > 0:
        if thread < width:
            _merge(clusters, squares, largest, second, thread, thread + width)
        cuda.syncthreads()
        width //= 2


@cuda.jit(cache=True)
def partial_rows_kernel(sizes, num_points, size_mask, partials):
    """Reduce an item's sizes to ``PARTIALS`` tuples (clusters, squares, largest, second)."""
    clusters = cuda.shared.array(THREADS, types.int64)
    squares = cuda.shared.array(THREADS, types.int64)
    largest = cuda.shared.array(THREADS, types.int64)
    second = cuda.shared.array(THREADS, types.int64)
    thread, block = cuda.threadIdx.x, cuda.blockIdx.x
    base = uint64(uint64(cuda.blockIdx.y) * uint64(num_points))
    count, total, top, low = int64(0), int64(0), int64(0), int64(0)
    for i in range(block * THREADS + thread, num_points, PARTIALS * THREADS):
        size = int64(sizes[base + uint64(i)] & size_mask)
        if size > 0:
            count += int64(1)
            total += size * size
            low = max(low, min(top, size))
            top = max(top, size)
    clusters[thread], squares[thread] = count, total
    largest[thread], second[thread] = top, low
    _reduce_block(clusters, squares, largest, second, thread, THREADS)
    if thread == 0:
        partials[cuda.blockIdx.y, block, 0] = clusters[0]
        partials[cuda.blockIdx.y, block, 1] = squares[0]
        partials[cuda.blockIdx.y, block, 2] = largest[0]
        partials[cuda.blockIdx.y, block, 3] = second[0]


@cuda.jit(cache=True)
def finish_rows_kernel(partials, spanning, rows):
    """Merge an item's partial tuples into its row: one block of ``PARTIALS`` threads an item."""
    clusters = cuda.shared.array(PARTIALS, types.int64)
    squares = cuda.shared.array(PARTIALS, types.int64)
    largest = cuda.shared.array(PARTIALS, types.int64)
    second = cuda.shared.array(PARTIALS, types.int64)
    thread, item = cuda.threadIdx.x, cuda.blockIdx.x
    clusters[thread] = partials[item, thread, 0]
    squares[thread] = partials[item, thread, 1]
    largest[thread] = partials[item, thread, 2]
    second[thread] = partials[item, thread, 3]
    _reduce_block(clusters, squares, largest, second, thread, PARTIALS)
    if thread == 0:
        rows[item, CLUSTERS] = clusters[0]
        rows[item, LARGEST] = largest[0]
        rows[item, SECOND_LARGEST] = second[0]
        rows[item, SUM_SQUARES] = squares[0]
        rows[item, SPANNING] = int64(spanning[item])
