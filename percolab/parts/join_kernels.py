"""CUDA kernels that join interfaces: the counterparts of those in :mod:`percolab.parts.kernels`.

The clusters of both interfaces are the nodes of one forest, those of the upper one from ``shift``
on.  A node is one uint64, changed in one atomic: its parent in the lowest ``split`` bits, the
periods from the parent to it as a code (:func:`percolab.lattices.topology.period_codes`) in the
others.  These are all bits that cluster numbers do not need: 36 bits for three axes up to 2^28
clusters; beyond that, the last axis has fewer.  A code that does not fit, or that has more than
MOST_PERIODS along an axis, is noted in the totals.  Where several threads write a number without
an atomic, all write the same value.

The totals are uint64: the numbers listed below, then the number of clusters in each bin of sizes,
then the sums over finished clusters (:mod:`percolab.measure.sums`) of each block of
:func:`finish_kernel`.
"""

from numba import config, int64, types, uint32, uint64

from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.rows import spanning_bits
from percolab.measure.rows_cuda import (
    COLUMNS,
    SLOTS,
    add_size,
    clear_slots,
    flush_slots,
    reduce_block64,
)
from percolab.measure.sums import NUMBERS, SUMS64
from percolab.measure.tallies import EXACT, find_wide_bin, num_bins, product
from percolab.measure.wrapping import wrapping_bits
from percolab.parts.kernels import INSIDE

_empty, _with_cluster, _put = SUMS64.empty, SUMS64.with_cluster, SUMS64.put

#: The most periods along one axis of a code here, so that the sum of two codes does not overflow.
MOST_PERIODS = 2 ** (PERIOD_BITS - 2) - 1
#: Places in the totals: the clusters that stay open, the flags, the first loop, whether a code did
#: not fit, and the exact sums of s^2, s^3 and s^4 of finished clusters.
OPEN, FLAGS, LOOP, TOO_FAR = range(4)
SQUARES, CUBES, FOURTHS, TOTALS = 4, 8, 12, 16
#: The number of 64-bit digits of each of these sums.
DIGITS = 4
#: The number of bins for sizes of up to 63 bits.
ALL_BINS = num_bins(2**63 - 1)
#: The most blocks that add up clusters: about as many as a GPU runs at a time.
BLOCKS = 4 if config.ENABLE_CUDASIM else 1024
#: Numbers of the totals, all of them.
ALL_TOTALS = TOTALS + ALL_BINS + NUMBERS * BLOCKS
#: Clusters per thread of gathering: a block adds these up before it writes to global memory.
GATHERED = 2 if config.ENABLE_CUDASIM else 16
# Marks a cluster that a remaining face names.
_NAMED = 0


@cuda.jit(device=True)
def _element(step, steps):
    """Return the number of this thread's ``step``-th of ``steps`` elements, as uint64."""
    block = int64(cuda.blockIdx.x) * int64(steps) + int64(step)
    return uint64(block * int64(THREADS) + int64(cuda.threadIdx.x))


@cuda.jit(device=True)
def _make_node(parent, code, split):
    return uint64(uint64(uint64(code) << split) | uint64(parent))


@cuda.jit(device=True)
def _read_parent(node, split):
    mask = uint64(uint64(uint64(1) << split) - uint64(1))
    return uint32(node & mask)


@cuda.jit(device=True)
def _period_code(node, split):
    return int64(int64(node) >> int64(split))


@cuda.jit(device=True)
def _fits(code, split, halves):
    """Return whether a code has at most MOST_PERIODS along each axis, and fits into a node.

    halves: half the range of every axis' field.  After it is added, the two highest bits of a field
    differ if its periods are few enough.
    """
    raised = uint64(uint64(code) + halves)
    near = uint64(uint64(raised ^ uint64(raised << uint64(1))) & halves)
    held = int64(int64(uint64(uint64(code) << split)) >> int64(split))
    return near == halves and held == int64(code)


@cuda.jit(device=True)
def _climbed(forest, i, split, halves):
    """Return (root of i, periods from the root to i, whether all codes on the path fit).

    The path is shortened meanwhile: a node may get its grandparent as its parent at any time, with
    the periods from there; other threads may follow either.
    """
    total, fit = int64(0), True
    node = forest[i]
    parent = _read_parent(node, split)
    while parent != i:
        above = forest[parent]
        grandparent = _read_parent(above, split)
        code = _period_code(node, split)
        if grandparent != parent:
            code = int64(code + _period_code(above, split))
            fit = fit and _fits(code, split, halves)
            forest[i] = _make_node(grandparent, code, split)
        total = int64(total + code)
        fit = fit and _fits(total, split, halves)
        i = grandparent
        node = forest[i]
        parent = _read_parent(node, split)
    return i, total, fit


@cuda.jit(device=True)
def _find_root(forest, i, split, halves):
    """Return the result of :func:`_climbed` without writing.

    When nodes get their roots as parents, another thread must not overwrite such a parent by a
    shortened path that it computed from an earlier value.
    """
    total, fit = int64(0), True
    node = forest[i]
    parent = _read_parent(node, split)
    while parent != i:
        total = int64(total + _period_code(node, split))
        fit = fit and _fits(total, split, halves)
        i = parent
        node = forest[i]
        parent = _read_parent(node, split)
    return i, total, fit


@cuda.jit(device=True)
def _join(forest, i, j, code, split, halves):
    """Join i and j by a bond from i to j over ``code`` periods.

    Return (winding numbers of the loop that the bond closes, or 0; whether all codes fit).
    """
    to_i, to_j, fit = int64(code), int64(0), True
    while True:
        i, more, first = _climbed(forest, i, split, halves)
        to_i = int64(to_i + more)
        j, to_second, second = _climbed(forest, j, split, halves)
        to_j = int64(to_j + to_second)
        wound = int64(to_i - to_j)
        fit = fit and first and second and _fits(to_i, split, halves)
        fit = fit and _fits(to_j, split, halves) and _fits(wound, split, halves)
        if i == j:
            return wound, fit
        if i < j:
            old = cuda.atomic.cas(forest, j, uint64(j), _make_node(i, wound, split))
            if old == uint64(j):
                return int64(0), fit
            to_j = int64(to_j + _period_code(old, split))
            j = _read_parent(old, split)
        else:
            old = cuda.atomic.cas(forest, i, uint64(i), _make_node(j, int64(-wound), split))
            if old == uint64(i):
                return int64(0), fit
            to_i = int64(to_i + _period_code(old, split))
            i = _read_parent(old, split)


@cuda.jit(device=True)
def _note_loop(wound, axes, totals):
    """Set the wrapping bits of a loop, and keep the first one."""
    before = int64(totals[LOOP])
    if before == int64(0):
        before = int64(cuda.atomic.cas(totals, LOOP, uint64(0), uint64(wound)))
    bits = uint64(wrapping_bits(wound, before, axes, PERIOD_BITS))
    if uint64(totals[FLAGS] & bits) != bits:
        cuda.atomic.or_(totals, FLAGS, bits)


@cuda.jit(cache=True)
def plant_kernel(
    low_sizes, low_flags, high_sizes, high_flags, shift, count, forest, sizes, flags, numbers,
    totals,
):  # fmt: skip
    """Make every cluster of both interfaces a root, and clear the totals.

    shift: number of clusters of the lower interface; count: that of both
    """
    for step in range(PER_THREAD):
        n = _element(step, PER_THREAD)
        if n < count:
            forest[n] = n
            numbers[n] = uint32(INSIDE)
            if n < shift:
                sizes[n] = low_sizes[n]
                flags[n] = low_flags[n]
            else:
                sizes[n] = high_sizes[uint64(n - shift)]
                flags[n] = high_flags[uint64(n - shift)]
        if n < uint64(totals.size):
            totals[n] = uint64(0)


@cuda.jit(cache=True)
def join_kernel(
    upper, upper_codes, lower, lower_codes, count, shift, forest, split, halves, axes, totals
):
    """Join the clusters at the two ends of every bond of a face.

    upper, lower: entries of the same bonds; those of ``upper`` are numbered from ``shift`` on
    halves:       as for :func:`_fits`; 0 where no axis is periodic and there are no codes
    """
    fit = True
    for step in range(PER_THREAD):
        n = _element(step, PER_THREAD)
        if n < count:
            i, j, code = uint32(upper[n]), uint32(lower[n]), int64(0)
            if halves != uint64(0):
                code = int64(upper_codes[n] - lower_codes[n])
            is_new = True
            if n > uint64(0):
                # Neighbouring bonds often join the same two clusters.
                before = uint64(n - uint64(1))
                is_new = upper[before] != i or lower[before] != j
                if not is_new and halves != uint64(0):
                    is_new = int64(upper_codes[before] - lower_codes[before]) != code
            if is_new:
                wound, good = _join(forest, uint32(i + shift), j, code, split, halves)
                fit = fit and good
                if wound != int64(0):
                    _note_loop(wound, axes, totals)
    if not fit:
        totals[TOO_FAR] = uint64(1)


@cuda.jit(cache=True)
def gather_clusters_kernel(forest, count, split, halves, sizes, flags, totals):
    """Point every cluster to its root, and add up sizes and flags there.

    A block adds up in shared memory first, as all blocks would contend for the sizes of large
    clusters in global memory.
    """
    keys = cuda.shared.array(SLOTS, types.uint32)
    counts = cuda.shared.array(SLOTS, types.uint64)
    clear_slots(keys, counts, THREADS)
    cuda.syncthreads()
    fit = True
    for step in range(GATHERED):
        n = _element(step, GATHERED)
        if n < count:
            # Only its own thread writes a node here; other threads read its parent or its root.
            root, code, good = _find_root(forest, uint32(n), split, halves)
            fit = fit and good
            if uint64(root) != n:
                forest[n] = _make_node(root, code, split)
                add_size(keys, counts, sizes, uint32(0), root, sizes[n])
                flag = flags[n]
                if uint32(flags[root] & flag) != flag:
                    cuda.atomic.or_(flags, root, flag)
    if not fit:
        totals[TOO_FAR] = uint64(1)
    cuda.syncthreads()
    flush_slots(keys, counts, sizes, uint32(0), THREADS)


@cuda.jit(cache=True)
def name_roots_kernel(
    entries, codes, count, shift, forest, split, halves, numbers, roots, root_codes, totals
):
    """Write the roots of a remaining face, and the codes from there; mark these roots."""
    fit = True
    for step in range(PER_THREAD):
        n = _element(step, PER_THREAD)
        if n < count:
            cluster = uint32(entries[n] + shift)
            node = forest[cluster]
            root = _read_parent(node, split)
            roots[n] = root
            if halves != uint64(0):
                code = int64(codes[n] + _period_code(node, split))
                fit = fit and _fits(code, split, halves)
                root_codes[n] = code
            if numbers[root] != uint32(_NAMED):
                numbers[root] = uint32(_NAMED)
    if not fit:
        totals[TOO_FAR] = uint64(1)


@cuda.jit(cache=True)
def renumber_kernel(roots, count, numbers):
    for step in range(PER_THREAD):
        n = _element(step, PER_THREAD)
        if n < count:
            roots[n] = numbers[roots[n]]


@cuda.jit(device=True)
def _times(low, middle, high, factor):
    """Return a number of three 64-bit digits, the lowest first, times a digit: four digits."""
    first, carry = product(low, factor)
    second, more = product(middle, factor)
    second = uint64(second + carry)
    more = uint64(more + uint64(second < carry))
    third, most = product(high, factor)
    third = uint64(third + more)
    most = uint64(most + uint64(third < more))
    return first, second, third, most


@cuda.jit(device=True)
def _add_digit(totals, at, digit, carry):
    """Add a digit and a carry at a place of the totals; return the carry to the next place."""
    added = uint64(digit + carry)
    carried = uint64(added < carry)
    if added != uint64(0):
        old = cuda.atomic.add(totals, at, added)
        if uint64(old + added) < added:
            carried = uint64(1)
    return carried


@cuda.jit(device=True)
def _add_number(totals, at, number):
    carry = _add_digit(totals, at, number[0], uint64(0))
    carry = _add_digit(totals, at + 1, number[1], carry)
    carry = _add_digit(totals, at + 2, number[2], carry)
    _add_digit(totals, at + 3, number[3], carry)


@cuda.jit(device=True)
def _tally(size, square, powers, bins):
    """Add a finished cluster to the bins, and to the sums of s^3 and s^4 if it is not small."""
    cuda.atomic.add(bins, uint64(find_wide_bin(size)), uint32(1))
    if size >= uint64(EXACT):
        cube = _times(square[0], square[1], uint64(0), size)
        _add_number(powers, CUBES, cube)
        _add_number(powers, FOURTHS, _times(cube[0], cube[1], cube[2], size))


@cuda.jit(cache=True)
def finish_kernel(forest, count, split, sizes, flags, numbers, bins_used, left, totals):
    """Add up the clusters that no remaining face names; number and copy the others.

    bins_used: bins of a tally, 0 if there is none
    left:      gets (sizes, flags) of the open clusters, by their numbers
    A block processes THREADS clusters at a time; those that stay open get consecutive numbers, so
    that clusters near each other in a face stay so.
    """
    powers = cuda.shared.array(TOTALS, types.uint64)
    bins = cuda.shared.array(ALL_BINS, types.uint32)
    columns = cuda.shared.array(COLUMNS, types.uint64)
    opened = cuda.shared.array(2, types.uint32)
    thread = cuda.threadIdx.x
    # Clear the shared memory of the block.
    for n in range(thread, TOTALS, THREADS):
        powers[n] = uint64(0)
    for n in range(thread, ALL_BINS, THREADS):
        bins[n] = uint32(0)
    sums, high, spans = _empty(), uint64(0), uint64(0)
    step = uint64(int64(cuda.gridDim.x) * int64(THREADS))
    start = uint64(int64(cuda.blockIdx.x) * int64(THREADS))
    while start < count:
        if thread == 0:
            opened[0] = uint32(0)
        cuda.syncthreads()
        # A root that a face names stays open; any other root is finished and is added to the sums.
        n = uint64(start + uint64(thread))
        is_open, slot = False, uint32(0)
        if n < count and uint64(_read_parent(forest[n], split)) == n:
            spans = uint64(spans | uint64(spanning_bits(flags[n])))
            size = sizes[n]
            if numbers[n] != uint32(INSIDE):
                is_open = True
                slot = cuda.atomic.add(opened, 0, uint32(1))
            else:
                sums = _with_cluster(sums, size)
                square = product(size, size)
                # ``sums`` has the sum of squares modulo 2^64; carry its overflow.
                high = uint64(uint64(high + square[1]) + uint64(sums.sum_squares < square[0]))
                if bins_used != 0:
                    _tally(size, square, powers, bins)
        cuda.syncthreads()
        # Reserve consecutive numbers for the open clusters of this round.
        if thread == 0:
            opened[1] = uint32(cuda.atomic.add(totals, OPEN, uint64(opened[0])))
        cuda.syncthreads()
        if is_open:
            number = uint32(opened[1] + slot)
            numbers[n] = number
            left[0][number] = sizes[n]
            left[1][number] = flags[n]
        start = uint64(start + step)
    # Add up the sums of threads, then of blocks.
    if sums.largest != uint64(0):
        _add_number(powers, SQUARES, (sums.sum_squares, high, uint64(0), uint64(0)))
    if spans != uint64(0):
        cuda.atomic.or_(powers, FLAGS, spans)
    sums = reduce_block64(columns, THREADS, thread, THREADS, sums)
    for n in range(thread, bins_used, THREADS):
        if bins[n] != uint32(0):
            cuda.atomic.add(totals, uint64(TOTALS + n), uint64(bins[n]))
    if thread == 0:
        _put(totals, TOTALS + bins_used + NUMBERS * cuda.blockIdx.x, 1, sums)
        cuda.atomic.or_(totals, FLAGS, powers[FLAGS])
        for at in range(SQUARES, TOTALS, DIGITS):
            _add_number(totals, at, (powers[at], powers[at + 1], powers[at + 2], powers[at + 3]))
