"""CUDA kernels around a labeler: open bonds before it, the integer row after it.

A batch holds several *items*, each one sample at one p; the second grid axis counts items.  Item n
has its words at ``n * words_per_item`` and its labels and sizes at ``n * num_points``; all indices
fit 32 bits.
"""

from numba import config, int64, types, uint32

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.kernels.neighbours import inner_word
from percolab.kernels.union_find import find
from percolab.measure.rows import (
    CLUSTERS,
    ISOLATED,
    LARGEST,
    ROW_WIDTH,
    SECOND_LARGEST,
    SPANNING,
    SUM_SQUARES,
)

cuda = load_cuda()

#: Words whose sites one block counts together.
COUNTED_WORDS = THREADS // 2
# Labels a block adds up in shared memory, a power of two, and places a label may take there.  A
# large cluster without a place costs one atomic on a busy counter for each of its rows.
SLOTS = 8 * THREADS
_PROBES = 8
_FREE = 0xFFFFFFFF
#: What a partial sum has: clusters, sum of squares, largest, second largest, isolated.
PARTIAL_SUMS = 5
#: Threads that an item's partial sums are merged by in the second of two steps; and the blocks that
#: make them in the first, at most, where there are items enough to fill the GPU.
PARTIALS = 4 if config.ENABLE_CUDASIM else 128
#: Blocks of 256 threads that a GPU of 132 multiprocessors holds at a time, six each, and not more.
FULL = 6 * PARTIALS


@cuda.jit(cache=True)
def clear_kernel(sizes, num_points, spanning):
    """Set all sizes and spanning bits of the batch to zero."""
    item = uint32(cuda.blockIdx.y)
    base = uint32(item * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            sizes[uint32(base + uint32(i))] = uint32(0)
    if element(0) == uint32(0):
        spanning[item] = uint32(0)


@cuda.jit(device=True)
def clear_slots(keys, counts, threads):
    """Empty a block's table of sizes."""
    for slot in range(cuda.threadIdx.x, SLOTS, threads):
        keys[slot] = uint32(_FREE)
        counts[slot] = uint32(0)


@cuda.jit(device=True)
def flush_slots(keys, counts, sizes, base, threads):
    """Add a block's table of sizes to the sizes in global memory."""
    for slot in range(cuda.threadIdx.x, SLOTS, threads):
        if counts[slot] != uint32(0):
            cuda.atomic.add(sizes, uint32(base + keys[slot]), counts[slot])


@cuda.jit(device=True)
def add_size(keys, counts, sizes, base, label, count):
    """Add to a label's size: in shared memory if the label has, or gets, a slot there."""
    slot = uint32(uint32(label * uint32(0x9E3779B1)) >> uint32(16))
    for _ in range(_PROBES):
        slot = uint32(slot & uint32(SLOTS - 1))
        key = cuda.atomic.cas(keys, slot, uint32(_FREE), label)
        if key == uint32(_FREE) or key == label:
            cuda.atomic.add(counts, slot, count)
            return
        slot = uint32(slot + uint32(1))
    cuda.atomic.add(sizes, uint32(base + label), count)


@cuda.jit(cache=True)
def count_sizes_kernel(labels, opened, adjacency, occupied, sizes):
    """Add every site to the size of its root: one thread a word, row by row of chain bonds.

    A block adds up its labels in shared memory before it goes to global memory, where all blocks
    queue for the large clusters' counters.
    """
    keys = cuda.shared.array(SLOTS, types.uint32)
    counts = cuda.shared.array(SLOTS, types.uint32)
    item = uint32(cuda.blockIdx.y)
    num_words, chain = adjacency.num_words, adjacency.chain
    base = uint32(item * adjacency.num_points)
    clear_slots(keys, counts, COUNTED_WORDS)
    cuda.syncthreads()
    word = uint32(cuda.blockIdx.x * COUNTED_WORDS + cuda.threadIdx.x)
    if word < num_words:
        starts = uint32(0xFFFFFFFF)
        if chain >= 0:
            index = uint32(uint32(chain) * num_words + word)
            begin = uint32(item * uint32(uint32(len(adjacency.ends)) * num_words))
            joined = inner_word(opened, adjacency.seam, begin, index)
            starts = uint32(~joined | uint32(1))
        first = uint32(base + uint32(word << uint32(5)))
        left = uint32(starts & occupied[word])
        while left != uint32(0):
            place = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            # Shifting by place + 1 in one step would be undefined for place 31.
            after = uint32(uint32(uint32(starts >> place) >> uint32(1)) << uint32(1))
            row = min(uint32(trailing_zeros(after)), uint32(uint32(32) - place))
            add_size(keys, counts, sizes, base, labels[uint32(first + place)], row)
    cuda.syncthreads()
    flush_slots(keys, counts, sizes, base, COUNTED_WORDS)


@cuda.jit(cache=True)
def mark_layer_kernel(labels, num_points, sites, bit, closing, sizes, spanning):
    """Set ``bit`` of the size of every root that touches an end layer.

    With ``closing`` the layer is the last one: where the first layer has set the bit already, the
    cluster spans, and the axis' bit (31 - bit) of the item's spanning bits is set instead.
    """
    n = cuda.grid(1)
    item = uint32(cuda.blockIdx.y)
    if n < sites.size:
        base = uint32(item * num_points)
        root = uint32(base + find(labels, base, uint32(sites[n])))
        mark = uint32(uint32(1) << uint32(bit))
        if closing:
            if sizes[root] & mark:
                cuda.atomic.or_(spanning, item, uint32(uint32(1) << uint32(31 - bit)))
        elif not sizes[root] & mark:
            cuda.atomic.or_(sizes, root, mark)


@cuda.jit(device=True)
def with_cluster(sums, size):
    """Return the sums over one more cluster; size: int64, at least 1.

    sums: clusters, sum of squares, largest, second largest, isolated; int64 each.
    """
    count, total, top, low, single = sums
    single += int64(size == int64(1))
    return count + int64(1), total + size * size, max(top, size), max(low, min(top, size)), single


@cuda.jit(device=True)
def put_sums(columns, thread, sums):
    """Write a thread's sums into the columns that its block will reduce."""
    columns[0][thread], columns[1][thread], columns[2][thread] = sums[0], sums[1], sums[2]
    columns[3][thread], columns[4][thread] = sums[3], sums[4]


@cuda.jit(device=True)
def _merge(columns, thread, other):
    clusters, squares, largest, second, isolated = columns
    clusters[thread] += clusters[other]
    squares[thread] += squares[other]
    isolated[thread] += isolated[other]
    top = max(largest[thread], largest[other])
    low = min(largest[thread], largest[other])
    second[thread] = max(low, max(second[thread], second[other]))
    largest[thread] = top


@cuda.jit(device=True)
def reduce_block(columns, thread, width):
    """Merge the sums of all threads, a column each in shared memory, into those of thread 0."""
    cuda.syncthreads()
    width //= 2
    while width > 0:
        if thread < width:
            _merge(columns, thread, thread + width)
        cuda.syncthreads()
        width //= 2


@cuda.jit(device=True)
def write_partial(columns, partials, item, block):
    """Write what a block has reduced, the first of each column."""
    clusters, squares, largest, second, isolated = columns
    partials[item, block, 0], partials[item, block, 1] = clusters[0], squares[0]
    partials[item, block, 2], partials[item, block, 3] = largest[0], second[0]
    partials[item, block, 4] = isolated[0]


@cuda.jit(cache=True)
def partial_rows_kernel(sizes, num_points, size_mask, partials):
    """Reduce an item's sizes to the sums of one thread a block."""
    clusters = cuda.shared.array(THREADS, types.int64)
    squares = cuda.shared.array(THREADS, types.int64)
    largest = cuda.shared.array(THREADS, types.int64)
    second = cuda.shared.array(THREADS, types.int64)
    isolated = cuda.shared.array(THREADS, types.int64)
    columns = (clusters, squares, largest, second, isolated)
    thread, block = cuda.threadIdx.x, cuda.blockIdx.x
    base = uint32(uint32(cuda.blockIdx.y) * uint32(num_points))
    sums = int64(0), int64(0), int64(0), int64(0), int64(0)
    for i in range(block * THREADS + thread, num_points, cuda.gridDim.x * THREADS):
        size = int64(sizes[uint32(base + uint32(i))] & size_mask)
        if size > 0:
            sums = with_cluster(sums, size)
    put_sums(columns, thread, sums)
    reduce_block(columns, thread, THREADS)
    if thread == 0:
        write_partial(columns, partials, cuda.blockIdx.y, block)


@cuda.jit(device=True)
def _with_partial(sums, part):
    """Return sums as those of :func:`with_cluster`, with those of a block."""
    count, total, top, low, single = sums
    low = max(max(low, part[3]), min(top, part[2]))
    return count + part[0], total + part[1], max(top, part[2]), low, single + part[4]


@cuda.jit(cache=True)
def finish_rows_kernel(partials, spanning, rows, first, step):
    """Merge an item's partial sums into row ``first + item * step``; PARTIALS threads an item."""
    clusters = cuda.shared.array(PARTIALS, types.int64)
    squares = cuda.shared.array(PARTIALS, types.int64)
    largest = cuda.shared.array(PARTIALS, types.int64)
    second = cuda.shared.array(PARTIALS, types.int64)
    isolated = cuda.shared.array(PARTIALS, types.int64)
    columns = (clusters, squares, largest, second, isolated)
    thread, item = cuda.threadIdx.x, cuda.blockIdx.x
    sums = int64(0), int64(0), int64(0), int64(0), int64(0)
    for n in range(thread, partials.shape[1], PARTIALS):
        sums = _with_partial(sums, partials[item, n])
    put_sums(columns, thread, sums)
    reduce_block(columns, thread, PARTIALS)
    if thread == 0:
        place = (first + item * step) * ROW_WIDTH
        rows[place + CLUSTERS] = clusters[0]
        rows[place + LARGEST] = largest[0]
        rows[place + SECOND_LARGEST] = second[0]
        rows[place + SUM_SQUARES] = squares[0]
        rows[place + ISOLATED] = isolated[0]
        rows[place + SPANNING] = int64(spanning[item])
