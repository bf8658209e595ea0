"""CUDA kernels of a slab: its open bonds and those of a cut, and its interface.

Bonds are drawn as in :mod:`percolab.parts.kernels` on the CPU.  Grid axis 1 counts classes of
bonds; ``classes`` has their numbers; sites have the number after the last class of bonds.

The sites at the ends of open bonds that cross a face are border sites of their tiles, so that
``labels`` has their nodes (:mod:`percolab.labelers.tiled.borders`).  An entry is first the root of
its node.  Roots of entries are marked, numbered in any order, and removed from the sums; then the
entries are replaced by these numbers.  Marks and numbers are stored instead of the origins of
nodes, which only labels need.

opened: uint32, the words of a cut; counts: uint32, one for FACE_WORDS of them; border: uint32,
words of sites; labels: uint32 (points,); entries, numbers: uint32.
"""

from typing import Any, NamedTuple

from numba import int64, types, uint32, uint64

from percolab.bonds.hooks import class_limit
from percolab.bonds.words import open_word
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.kernels.neighbours import has_bit, periodic_word
from percolab.labelers.tiled.borders import NODES, TILES_PER_BLOCK, mark_from
from percolab.labelers.tiled.one_tile import LANES
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.rows import spanning_bits
from percolab.measure.wrapping import periods_to
from percolab.measure.wrapping_cuda import periods_along
from percolab.parts.kernels import close_cut_word, find_cut_bond

#: Words that a block makes where words are shifted; the last one is only made for its bits.
SPAN = PER_THREAD * THREADS
#: Words of a cut that one block reads, at most THREADS; few, so that a face has many blocks.
FACE_WORDS = THREADS // 2
#: Marks a root of an entry until it has a number; no origin is as large.
NAMED = 0xFFFFFFFF


class Stretch(NamedTuple):
    """The place of a slab's or cut's words in the whole lattice."""

    whole: Any  # words of one class of the whole lattice, uint64
    first: Any  # the first one, counted in its class, uint64
    shift: Any  # the bit of it that is the first site, uint32
    classes: Any  # int64, the classes
    words: Any  # words of each class, uint32
    limits: Any  # thresholds of classes, as :func:`percolab.bonds.hooks.class_limit` takes them


@cuda.jit(device=True)
def _find_first_word(stretch, n):
    """Return the number of the first word of the n-th class in the whole lattice."""
    return uint64(uint64(uint64(stretch.classes[n]) * stretch.whole) + stretch.first)


@cuda.jit(cache=True)
def aligned_words_kernel(generator, samples, thresholds, stretch, exists, opened):
    """Write the open words of bonds or sites that begin at the first bit of a word.

    samples: the seed and the sample; thresholds: (1,); exists, opened: uint32 (classes * words,)
    """
    n = uint32(cuda.blockIdx.y)
    base, number = uint32(n * stretch.words), _find_first_word(stretch, n)
    seed, sample = samples[0], samples[1]
    threshold = class_limit(stretch.limits, stretch.classes[n], thresholds[0])
    for step in range(PER_THREAD):
        word = element(step)
        if word < stretch.words:
            place = uint32(base + word)
            opened[place] = open_word(
                generator, seed, sample, uint64(number + uint64(word)), threshold, exists[place]
            )


@cuda.jit(cache=True)
def shifted_words_kernel(generator, samples, thresholds, stretch, exists, opened):
    """Write the open words of bonds or sites that begin at any other bit of a word.

    Arguments as for :func:`aligned_words_kernel`.  A block writes SPAN - 1 words.
    """
    made = cuda.shared.array(SPAN, types.uint32)
    n, thread = uint32(cuda.blockIdx.y), uint32(cuda.threadIdx.x)
    base, number = uint32(n * stretch.words), _find_first_word(stretch, n)
    seed, sample = samples[0], samples[1]
    threshold = class_limit(stretch.limits, stretch.classes[n], thresholds[0])
    begin = uint32(uint32(cuda.blockIdx.x) * uint32(SPAN - 1))
    for step in range(PER_THREAD):
        k = uint32(uint32(step * THREADS) + thread)
        word = uint32(begin + k)
        if word <= stretch.words:
            at, every = uint64(number + uint64(word)), uint32(0xFFFFFFFF)
            made[k] = open_word(generator, seed, sample, at, threshold, every)
    cuda.syncthreads()
    up = uint32(uint32(32) - stretch.shift)
    for step in range(PER_THREAD):
        k = uint32(uint32(step * THREADS) + thread)
        word = uint32(begin + k)
        if k < uint32(SPAN - 1) and word < stretch.words:
            both = uint32(made[k] >> stretch.shift)
            both = uint32(both | uint32(made[uint32(k + uint32(1))] << up))
            place = uint32(base + word)
            opened[place] = uint32(both & exists[place])


@cuda.jit(cache=True)
def close_cut_kernel(cut, upper, lower, opened):
    """Close the bonds of a cut that have a vacant site above or below: one thread per word."""
    place = uint32(cuda.grid(1))
    if place < opened.size:
        words = uint32(cut.adjacency.num_words)
        n = uint32(place // words)
        word = uint32(place - uint32(n * words))
        opened[place] = close_cut_word(cut.adjacency, n, word, upper, lower, opened)


@cuda.jit(device=True)
def _sum_before(sums, thread, count):
    """Return the sums of ``count`` over the threads before this one, and over the block, uint32.

    sums: scratch in shared memory, THREADS numbers, free again after the next barrier.
    """
    total = uint32(count)
    sums[thread] = total
    step = 1
    while step < THREADS:
        cuda.syncthreads()
        more = sums[thread - step] if thread >= step else uint32(0)
        cuda.syncthreads()
        total = uint32(total + more)
        sums[thread] = total
        step *= 2
    cuda.syncthreads()
    return uint32(total - uint32(count)), sums[THREADS - 1]


@cuda.jit(cache=True)
def count_bonds_kernel(opened, counts):
    """Count the open bonds of every FACE_WORDS words of a cut, by one block each."""
    shared = cuda.shared.array(1, types.uint32)
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    place = uint32(uint32(cuda.blockIdx.x * FACE_WORDS) + cuda.threadIdx.x)
    if place < opened.size:
        cuda.atomic.add(shared, 0, uint32(popcount(opened[place])))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        counts[cuda.blockIdx.x] = shared[0]


@cuda.jit(cache=True)
def scan_counts_kernel(counts, total):
    """Replace each count by the sum of those before it, and write the sum of all: one block."""
    sums = cuda.shared.array(THREADS, types.uint32)
    thread = cuda.threadIdx.x
    begin, base = 0, uint32(0)
    while begin < counts.size:
        least = begin + PER_THREAD * thread
        end = min(least + PER_THREAD, counts.size)
        own = uint32(0)
        for n in range(least, end):
            own = uint32(own + counts[n])
        before, whole = _sum_before(sums, thread, own)
        before = uint32(base + before)
        for n in range(least, end):
            count = counts[n]
            counts[n] = before
            before = uint32(before + count)
        base = uint32(base + whole)
        begin += PER_THREAD * THREADS
        cuda.syncthreads()
    if thread == 0:
        total[0] = base


@cuda.jit(cache=True)
def mark_layers_kernel(border, sites, first, after):
    """Add the sites from ``first`` to ``after - 1`` to the border: one thread per word of sites."""
    word = uint32(uint32(first >> uint32(5)) + uint32(cuda.grid(1)))
    site = uint32(word << uint32(5))
    if site < after:
        bits = uint32(sites[word])
        if site < first:
            bits = uint32(bits & uint32(uint32(0xFFFFFFFF) << uint32(first - site)))
        if uint32(after - site) < uint32(32):
            bits = uint32(bits & ~uint32(uint32(0xFFFFFFFF) << uint32(after - site)))
        border[word] = uint32(border[word] | bits)


@cuda.jit(cache=True)
def mark_cut_kernel(opened, cut, is_upper, shift, border):
    """Add the ends of a cut's open bonds to the border: one thread per word.

    is_upper: whether the slab has the owners, at sites from ``shift`` on, or the other ends
    """
    place, none = uint32(cuda.grid(1)), uint32(0)
    if place < opened.size and opened[place] != none:
        bits = opened[place]
        words = uint32(cut.adjacency.num_words)
        n = uint32(place // words)
        first = int64(int64(uint32(uint32(place - uint32(n * words)) << uint32(5))) + int64(shift))
        if is_upper != none:
            mark_from(border, none, first, bits)
        else:
            aside = uint32(bits & periodic_word(cut.adjacency.periodic_words, place))
            down = int64(first + int64(cut.adjacency.ends[n]))
            mark_from(border, none, down, uint32(bits & ~aside))
            while aside != none:
                bit = uint32(trailing_zeros(aside))
                aside = uint32(aside & uint32(aside - uint32(1)))
                end = cut.adjacency.periodic_ends[find_cut_bond(cut.adjacency, place, bit)]
                mark_from(border, none, int64(int64(end) + int64(shift)), uint32(1))


@cuda.jit(cache=True)
def flag_layers_kernel(labels, nodes, sites, first, after, flag):
    """Set a flag at the roots of the sites from ``first`` to ``after - 1``; one thread each."""
    site = uint32(first + uint32(cuda.grid(1)))
    if site < after and has_bit(sites[uint32(site >> uint32(5))], uint32(site & uint32(31))):
        root = nodes.parents[labels[site]]
        if uint32(nodes.ends[root] & flag) != flag:
            cuda.atomic.or_(nodes.ends, root, flag)


@cuda.jit(device=True)
def _wide_periods(narrow, axes, width):
    """Convert a code of periods from ``width`` to PERIOD_BITS bits per axis."""
    code = int64(0)
    for axis in range(axes):
        along = int64(periods_along(narrow, axis, width))
        code = int64(code + int64(along << int64(PERIOD_BITS * axis)))
    return code


@cuda.jit(cache=True)
def read_face_kernel(
    opened, before, cut, is_upper, shift, crossing, labels, nodes, forest, loops, roots, codes,
    has_codes,
):  # fmt: skip
    """Write the root and the code of every open bond of a cut, and mark the roots.

    The order is that of the bonds.  A block of THREADS reads FACE_WORDS words; each warp reads one
    word at a time, each lane one bond.

    before:   open bonds before the words of each block, uint32
    is_upper: whether the slab has the owners, at sites from ``shift`` on, or the other ends
    crossing: the periods along the last axis that the bonds cross, if it has the owners
    forest, loops: those of the nodes, if an axis other than the last one is periodic
    roots:    uint32; codes: int64, written if has_codes, that is, if an axis is periodic
    """
    sums = cuda.shared.array(THREADS, types.uint32)
    words = cuda.shared.array(FACE_WORDS, types.uint32)
    entries = cuda.shared.array(FACE_WORDS, types.uint32)
    thread, per_class = cuda.threadIdx.x, uint32(cut.adjacency.num_words)
    first, word = uint32(cuda.blockIdx.x * FACE_WORDS), uint32(0)
    # Load the words of the block, and count the open bonds before each.
    if thread < FACE_WORDS and uint32(first + thread) < opened.size:
        word = opened[uint32(first + thread)]
    earlier, _ = _sum_before(sums, thread, uint32(popcount(word)))
    if thread < FACE_WORDS:
        words[thread], entries[thread] = word, uint32(before[cuda.blockIdx.x] + earlier)
    cuda.syncthreads()
    # Write the entry of every open bond: the root that it reaches, and its periods.
    for n in range(thread, 32 * FACE_WORDS, THREADS):
        row, bit = n >> 5, uint32(n & 31)
        if has_bit(words[row], bit):
            below = uint32(words[row] & uint32(uint32(uint32(1) << bit) - uint32(1)))
            entry = uint32(entries[row] + uint32(popcount(below)))
            place = uint32(first + uint32(row))
            k = uint32(place // per_class)
            owner = uint32(uint32(uint32(place - uint32(k * per_class)) << uint32(5)) + bit)
            site, code = int64(owner), int64(0)
            aside = int64(-1)
            if has_bit(periodic_word(cut.adjacency.periodic_words, place), bit):
                aside = find_cut_bond(cut.adjacency, place, bit)
            if is_upper != uint32(0):
                code = int64(crossing)
                if aside >= int64(0):
                    code = int64(code + int64(cut.adjacency.periodic_codes[aside]))
            elif aside >= int64(0):
                site = int64(cut.adjacency.periodic_ends[aside])
            else:
                site = int64(site + int64(cut.adjacency.ends[k]))
            node = labels[uint32(site + int64(shift))]
            root = nodes.parents[node]
            roots[entry] = root
            # All threads that write it write the same value.
            if nodes.origins[root] != uint32(NAMED):
                nodes.origins[root] = uint32(NAMED)
            if has_codes != uint32(0):
                if forest.size > 1:
                    # In the forest, its parent is its root, as sizes have been gathered.
                    narrow = periods_to(forest[node])
                    code = int64(code + _wide_periods(narrow, loops.axes, loops.width))
                codes[entry] = code


@cuda.jit(cache=True)
def number_roots_kernel(nodes, interior, blocks, spanning, count, sizes, flags):
    """Number the marked roots, copy their sizes and flags, and remove them from the sums.

    The spanning bits of these clusters are set here.  count: uint32, their number, initially 0.
    sizes: uint64; flags: uint32.
    """
    sums = cuda.shared.array(THREADS, types.uint32)
    start = cuda.shared.array(1, types.uint32)
    thread, ends, origins = cuda.threadIdx.x, nodes.ends, nodes.origins
    block = cuda.blockIdx.x * TILES_PER_BLOCK + thread // LANES
    least, end = uint32(0), uint32(0)
    if block < blocks:
        least, end = uint32(uint32(block) * nodes.room), uint32(interior[block, NODES])
    marked = uint32(0)
    for n in range(thread % LANES, end, LANES):
        if origins[uint32(least + uint32(n))] == uint32(NAMED):
            marked = uint32(marked + uint32(1))
    earlier, whole = _sum_before(sums, thread, marked)
    if thread == 0 and whole != uint32(0):
        start[0] = cuda.atomic.add(count, 0, whole)
    cuda.syncthreads()
    if marked != uint32(0):
        number, spans = uint32(start[0] + earlier), int64(0)
        for n in range(thread % LANES, end, LANES):
            node = uint32(least + uint32(n))
            if origins[node] == uint32(NAMED):
                flag = ends[node]
                sizes[number], flags[number] = uint64(nodes.sizes[node]), flag
                nodes.sizes[node], origins[node] = uint32(0), number
                number = uint32(number + uint32(1))
                if flag != uint32(0):
                    spans |= spanning_bits(flag)
        if spans != int64(0):
            cuda.atomic.or_(spanning, 0, uint32(spans))


@cuda.jit(cache=True)
def number_entries_kernel(entries, count, numbers):
    """Replace the first ``count`` entries of a face, roots, by their clusters' numbers."""
    for step in range(PER_THREAD):
        n = element(step)
        if n < count:
            entries[n] = numbers[entries[n]]
