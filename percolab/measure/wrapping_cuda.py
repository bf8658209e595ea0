"""CUDA: wrapping, by a forest whose nodes carry the periods to their parents.

A node is one uint64: its parent below, the periods from the parent to it above, 32 bits in which
every axis has an equal share.  Both change in one atomic, so whoever follows parents adds up the
periods that belong to them.  Nodes are counted through all items.  ``loops`` keeps the winding
numbers of one loop of each item, 0 at first.
"""

from numba import int32, int64, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.kernels.neighbours import has_bit, inner_word, other_end
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS, parent_of, periods_to

cuda = load_cuda()


@cuda.jit(device=True)
def close_or_hang(forest, i, j, code):
    """Join i and j by a bond over ``code`` periods; return the winding of the loop it closes."""
    i, j = uint32(i), uint32(j)
    to_i, to_j = int32(0), int32(0)
    while True:
        node = forest[i]
        while parent_of(node) != i:
            to_i = int32(to_i + periods_to(node))
            i = parent_of(node)
            node = forest[i]
        node = forest[j]
        while parent_of(node) != j:
            to_j = int32(to_j + periods_to(node))
            j = parent_of(node)
            node = forest[j]
        wound = int32(int32(to_i + code) - to_j)
        if i == j:
            return wound
        if i < j:
            packed = (uint64(uint32(wound)) << uint64(32)) | uint64(i)
            old = cuda.atomic.cas(forest, j, uint64(j), packed)
            if old == uint64(j):
                return int32(0)
            to_j = int32(to_j + periods_to(old))
            j = parent_of(old)
        else:
            packed = (uint64(uint32(-wound)) << uint64(32)) | uint64(j)
            old = cuda.atomic.cas(forest, i, uint64(i), packed)
            if old == uint64(i):
                return int32(0)
            to_i = int32(to_i + periods_to(old))
            i = parent_of(old)


@cuda.jit(device=True)
def field_of_code(code, axis, width):
    """Return the periods along one axis of a code, as int32.

    Half a field's range is added to every field, so that none of them borrows from the next.
    """
    half = uint32(uint32(1) << uint32(width - 1))
    halves = half
    for _ in range(axis):
        halves = uint32(uint32(halves << uint32(width)) | half)
    shifted = uint32(uint32(uint32(code) + halves) >> uint32(axis * width))
    return int32(int32(shifted & uint32(uint32(half << uint32(1)) - uint32(1))) - int32(half))


@cuda.jit(device=True)
def _are_parallel(one, other, axes, width):
    """Return whether two codes wind in the same direction, or in opposite ones."""
    for a in range(axes):
        for b in range(a):
            cross = int32(field_of_code(one, a, width) * field_of_code(other, b, width))
            if cross != int32(field_of_code(one, b, width) * field_of_code(other, a, width)):
                return False
    return True


@cuda.jit(device=True)
def note_loop(wound, item, loops, flags, axes, width):
    """Set the wrapping bits of an item for a loop.

    As :func:`percolab.measure.wrapping.wrapping_bits`, in 32 bits: in 64 it took the kernels half
    of the threads that a multiprocessor can hold.
    """
    if wound != int32(0):
        before = cuda.atomic.cas(loops, item, int32(0), wound)
        bits = uint32(0)
        for axis in range(axes):
            if field_of_code(wound, axis, width) != int32(0):
                bits = uint32(bits | uint32(uint32(1) << uint32(FIRST_WRAPPING + axis)))
        if before != int32(0) and not _are_parallel(wound, before, axes, width):
            bits = uint32(bits | uint32(uint32(1) << uint32(TWO_DIRECTIONS)))
        if uint32(flags[item] & bits) != bits:
            cuda.atomic.or_(flags, item, bits)


@cuda.jit(cache=True)
def plant_kernel(forest, size, loops):
    """Make every node of every item a root, and forget all loops."""
    item = uint32(cuda.blockIdx.y)
    base = uint32(item * size)
    for step in range(PER_THREAD):
        n = element(step)
        if n < size:
            forest[uint32(base + n)] = uint64(uint32(base + n))
    if element(0) == uint32(0):
        loops[item] = int32(0)


@cuda.jit(cache=True)
def wind_words_kernel(forest, num_points, opened, seam, num_words, ends, wrapping):
    """Join the ends of all open bonds that cross no seam: one thread a word of sites."""
    loops, flags, axes, width = wrapping
    item, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if word >= num_words:
        return
    start = uint32(item * num_points)
    base = uint32(item * uint32(uint32(len(ends)) * num_words))
    for k in range(len(ends)):
        left = inner_word(opened, seam, base, uint32(uint32(uint32(k) * num_words) + word))
        while left != uint32(0):
            i = uint32(uint32(word << uint32(5)) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            j = uint32(start + other_end(ends, k, i))
            wound = close_or_hang(forest, uint32(start + i), j, int32(0))
            note_loop(wound, item, loops, flags, axes, width)


@cuda.jit(cache=True)
def wind_seam_kernel(
    forest, num_points, opened, words_per_item, num_words, seam_bonds, seam_ends, codes, wrapping
):
    """Join the ends of all open bonds across seams."""
    loops, flags, axes, width = wrapping
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < seam_bonds.size:
        bond = seam_bonds[n]
        word = opened[uint32(uint32(item * words_per_item) + uint32(bond >> 5))]
        if has_bit(word, uint32(bond & 31)):
            i = uint32(bond % int64(int64(num_words) << int64(5)))
            start = uint32(item * num_points)
            j = uint32(start + uint32(seam_ends[n]))
            wound = close_or_hang(forest, uint32(start + i), j, codes[n])
            note_loop(wound, item, loops, flags, axes, width)
