"""CUDA kernels that compute rows from the labels of a batch.

A batch has several *entries*, each one sample at one p; the second grid axis counts
entries.  Entry n has its words at ``n * words_per_entry`` and its labels and sizes at ``n *
num_points``; all indices fit 32 bits.

labels, sizes: uint32 (entries * num_points,); spanning: uint32 (entries,); partials: int64
(entries, blocks, NUMBERS); rows: int64 (n * ROW_WIDTH,); keys, counts: uint32 (SLOTS,), in shared
memory.
"""

from numba import config, int64, types, uint32

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.kernels.neighbours import inner_word
from percolab.kernels.union_find import find
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.measure.sums import ADDED, FIELDS, NUMBERS, SUMS, SUMS32, SUMS64

#: Words whose sites are counted by one block.
COUNTED_WORDS = THREADS // 2
# The number of labels that a block adds up in shared memory, a power of two.  A large cluster
# without a slot costs one atomic on a contended counter for each of its rows.
SLOTS = 8 * THREADS
_PROBES = 8
_FREE = 0xFFFFFFFF
#: Threads that merge an entry's partial sums in the second of two steps; also the most blocks that
#: make them in the first step, if there are enough entries to fill the GPU.
PARTIALS = 4 if config.ENABLE_CUDASIM else 128
_LARGEST, _SECOND = FIELDS.index("largest"), FIELDS.index("second_largest")
_empty, _with_cluster, _merged = SUMS.empty, SUMS.with_cluster, SUMS.merged
_put, _take = SUMS.put, SUMS.take
#: Blocks of 256 threads that fill a GPU of 132 multiprocessors, about six each.
FULL = 6 * PARTIALS
#: Numbers that the threads of a block reduce in shared memory.
COLUMNS, _PARTIAL_COLUMNS = NUMBERS * THREADS, NUMBERS * PARTIALS


@cuda.jit(cache=True)
def clear_kernel(sizes, num_points, spanning):
    """Set all sizes and spanning bits of the batch to zero."""
    entry = uint32(cuda.blockIdx.y)
    base = uint32(entry * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            sizes[uint32(base + uint32(i))] = uint32(0)
    if element(0) == uint32(0):
        spanning[entry] = uint32(0)


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
    """Add every site to the size of its root: one thread per word, run by run of chain bonds.

    A block adds up its labels in shared memory first, as all blocks contend for the large clusters'
    counters in global memory.
    """
    keys = cuda.shared.array(SLOTS, types.uint32)
    counts = cuda.shared.array(SLOTS, types.uint32)
    entry = uint32(cuda.blockIdx.y)
    num_words, chain = adjacency.num_words, adjacency.chain
    base = uint32(entry * adjacency.num_points)
    clear_slots(keys, counts, COUNTED_WORDS)
    cuda.syncthreads()
    word = uint32(cuda.blockIdx.x * COUNTED_WORDS + cuda.threadIdx.x)
    if word < num_words:
        starts = uint32(0xFFFFFFFF)
        if chain >= 0:
            index = uint32(uint32(chain) * num_words + word)
            begin = uint32(entry * uint32(uint32(len(adjacency.ends)) * num_words))
            joined = inner_word(opened, adjacency.periodic_words, begin, index)
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

    With ``closing`` the layer is the last one: if the first layer has set the bit already, the
    cluster spans, and the axis' bit (31 - bit) of the entry's spanning bits is set instead.
    """
    n = cuda.grid(1)
    entry = uint32(cuda.blockIdx.y)
    if n < sites.size:
        base = uint32(entry * num_points)
        root = uint32(base + find(labels, base, uint32(sites[n])))
        mark = uint32(uint32(1) << uint32(bit))
        if closing:
            if sizes[root] & mark:
                cuda.atomic.or_(spanning, entry, uint32(uint32(1) << uint32(31 - bit)))
        elif not sizes[root] & mark:
            cuda.atomic.or_(sizes, root, mark)


def reduction_in(arithmetic):
    """Return reduce_block for sums of this :class:`percolab.measure.sums.Arithmetic`."""
    merged, put, take = arithmetic.merged, arithmetic.put, arithmetic.take

    @cuda.jit(device=True)
    def reduce_block(columns, step, thread, width, sums):
        """Return to thread 0 the merged sums of all threads, a power of two of them.

        columns: shared memory for NUMBERS * step numbers; each thread has every step-th of them;
        step: at least width.
        """
        put(columns, thread, step, sums)
        cuda.syncthreads()
        other = width // 2
        while other > 0:
            if thread < other:
                sums = merged(sums, take(columns, thread + other, step))
                put(columns, thread, step, sums)
            cuda.syncthreads()
            other //= 2
        return sums

    return reduce_block


reduce_block, reduce_block32, reduce_block64 = map(reduction_in, (SUMS, SUMS32, SUMS64))


@cuda.jit(device=True)
def add_atomically(totals, sums):
    """Add a thread's sums, except for the second largest, to those of its block.

    totals: NUMBERS + 1 numbers in shared memory, initially 0; the last one counts how many threads
    have a cluster as large as the largest (:func:`add_second`).
    """
    for n in ADDED:
        cuda.atomic.add(totals, n, sums[n])
    cuda.atomic.max(totals, _LARGEST, sums.largest)


@cuda.jit(device=True)
def add_second(totals, sums):
    """Find the second largest cluster, once the largest is known to all threads."""
    largest = sums.largest
    if largest == totals[_LARGEST]:
        # One of these threads has the largest.
        cuda.atomic.add(totals, NUMBERS, uint32(1))
        largest = sums.second_largest
    cuda.atomic.max(totals, _SECOND, largest)


@cuda.jit(device=True)
def settle_second(totals):
    """Write the second largest where two clusters are equally large; one thread, at the end."""
    if totals[NUMBERS] > uint32(1):
        totals[_SECOND] = totals[_LARGEST]


@cuda.jit(cache=True)
def partial_rows_kernel(sizes, num_points, size_mask, partials):
    """Reduce an entry's sizes to one set of sums for each block."""
    columns = cuda.shared.array(COLUMNS, types.int64)
    thread, block = cuda.threadIdx.x, cuda.blockIdx.x
    base = uint32(uint32(cuda.blockIdx.y) * uint32(num_points))
    sums = _empty()
    for i in range(block * THREADS + thread, num_points, cuda.gridDim.x * THREADS):
        size = int64(sizes[uint32(base + uint32(i))] & size_mask)
        if size > 0:
            sums = _with_cluster(sums, size)
    sums = reduce_block(columns, THREADS, thread, THREADS, sums)
    if thread == 0:
        _put(partials[cuda.blockIdx.y, block], 0, 1, sums)


@cuda.jit(cache=True)
def finish_rows_kernel(partials, spanning, rows, first, step):
    """Merge an entry's partial sums into row ``first + entry * step``, with PARTIALS threads."""
    columns = cuda.shared.array(_PARTIAL_COLUMNS, types.int64)
    thread, entry = cuda.threadIdx.x, cuda.blockIdx.x
    sums = _empty()
    for n in range(thread, partials.shape[1], PARTIALS):
        sums = _merged(sums, _take(partials[entry, n], 0, 1))
    sums = reduce_block(columns, PARTIALS, thread, PARTIALS, sums)
    if thread == 0:
        place = (first + entry * step) * ROW_WIDTH
        _put(rows, place, 1, sums)
        rows[place + SPANNING] = int64(spanning[entry])
