"""CUDA: wrapping, by a forest whose nodes have the periods from their parents.

A node is one uint64: its parent in the low half, the periods from the parent to it in the high one,
where every axis has an equal share of 32 bits.  Both change in one atomic, so a thread that follows
parents adds up the periods that belong to them.  Nodes are counted through all entries.
"""

from typing import Any, NamedTuple

from numba import int32, uint32, uint64

from percolab.bonds.batch_cuda import CudaBatch
from percolab.kernels.bits import trailing_zeros
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.kernels.neighbours import inner_word, other_end, periodic_bond
from percolab.measure.wrapping import periods_to, read_parent, winding_in

periods_along, _, wrapping_bits = winding_in(int32, uint32)


class Loops(NamedTuple):
    """The loops found so far, in every entry, that wind around the lattice.

    first: int32 (entries,), the winding numbers of one of them, 0 if there is none yet
    flags: uint32 (entries,), gets the wrapping bits, above the spanning bits
    axes:  axes of the lattice, int32
    width: bits of each axis in a code of periods, int32
    """

    first: Any
    flags: Any
    axes: Any
    width: Any


@cuda.jit(device=True)
def _make_node(parent, code):
    return uint64(uint64(uint64(uint32(code)) << uint64(32)) | uint64(parent))


@cuda.jit(device=True)
def shortened(forest, i):
    """Return the root of i, uint32, and make it the parent of i.

    Another thread that follows parents adds up the same periods, by the old parent or by the root.
    """
    node = forest[i]
    parent, total = read_parent(node), periods_to(node)
    above = forest[parent]
    if read_parent(above) == parent:
        return parent
    while read_parent(above) != parent:
        total = int32(total + periods_to(above))
        parent = read_parent(above)
        above = forest[parent]
    forest[i] = _make_node(parent, total)
    return parent


@cuda.jit(device=True)
def join_over_periods(forest, i, j, code):
    """Join i and j by a bond over ``code`` periods; return the winding of the loop it closes."""
    i, j = uint32(i), uint32(j)
    to_i, to_j = int32(0), int32(0)
    while True:
        node = forest[i]
        while read_parent(node) != i:
            to_i = int32(to_i + periods_to(node))
            i = read_parent(node)
            node = forest[i]
        node = forest[j]
        while read_parent(node) != j:
            to_j = int32(to_j + periods_to(node))
            j = read_parent(node)
            node = forest[j]
        wound = int32(int32(to_i + code) - to_j)
        if i == j:
            return wound
        if i < j:
            old = cuda.atomic.cas(forest, j, uint64(j), _make_node(i, wound))
            if old == uint64(j):
                return int32(0)
            to_j = int32(to_j + periods_to(old))
            j = read_parent(old)
        else:
            old = cuda.atomic.cas(forest, i, uint64(i), _make_node(j, -wound))
            if old == uint64(i):
                return int32(0)
            to_i = int32(to_i + periods_to(old))
            i = read_parent(old)


@cuda.jit(device=True)
def note_loop(wound, entry, loops):
    """Set the wrapping bits of an entry for a loop."""
    if wound != int32(0):
        before = cuda.atomic.cas(loops.first, entry, int32(0), wound)
        bits = wrapping_bits(wound, before, loops.axes, loops.width)
        if uint32(loops.flags[entry] & bits) != bits:
            cuda.atomic.or_(loops.flags, entry, bits)


@cuda.jit(cache=True)
def plant_kernel(forest, size, loops):
    """Make every node of every entry a root, and clear all loops."""
    entry = uint32(cuda.blockIdx.y)
    base = uint32(entry * size)
    for step in range(PER_THREAD):
        n = element(step)
        if n < size:
            forest[uint32(base + n)] = uint64(uint32(base + n))
    if element(0) == uint32(0):
        loops.first[entry] = int32(0)


@cuda.jit(cache=True)
def join_words_kernel(forest, opened, adjacency, loops):
    """Join the ends of all open bonds inside the lattice: one thread per word of sites."""
    entry, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    num_words, ends = adjacency.num_words, adjacency.ends
    if word >= num_words:
        return
    start = uint32(entry * adjacency.num_points)
    base = uint32(entry * uint32(uint32(len(ends)) * num_words))
    for k in range(len(ends)):
        index = uint32(uint32(uint32(k) * num_words) + word)
        left = inner_word(opened, adjacency.periodic_words, base, index)
        while left != uint32(0):
            i = uint32(uint32(word << uint32(5)) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            j = uint32(start + other_end(ends, k, i))
            note_loop(join_over_periods(forest, uint32(start + i), j, int32(0)), entry, loops)


@cuda.jit(cache=True)
def join_periodic_kernel(forest, opened, adjacency, loops):
    """Join the ends of all open bonds across periodic boundaries."""
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < adjacency.periodic_bonds.size:
        num_words = adjacency.num_words
        base = uint32(entry * uint32(uint32(len(adjacency.ends)) * num_words))
        is_open, owner, other = periodic_bond(n, opened, base, adjacency)
        if is_open:
            start, code = uint32(entry * adjacency.num_points), adjacency.periodic_codes[n]
            i, j = uint32(start + owner), uint32(start + other)
            note_loop(join_over_periods(forest, i, j, code), entry, loops)


def join_all(batch: CudaBatch, entries: int, forest: Any, loops: Loops) -> None:
    """Join all open bonds of the first entries in a forest of the sites, and note what wraps.

    forest: uint64 (at least entries * num_points,), anything before.
    """
    top, launch = batch.topology, batch.launches
    launch.each(plant_kernel, top.num_points, entries, forest, batch.adjacency.num_points, loops)
    join_more(batch, entries, forest, loops)


def join_more(batch: CudaBatch, entries: int, forest: Any, loops: Loops) -> None:
    """Join the open bonds of the first entries in a forest in which some are already joined."""
    top, launch = batch.topology, batch.launches
    bonds = forest, batch.opened, batch.adjacency, loops
    launch.one(join_words_kernel, top.num_words, entries, *bonds)
    launch.one(join_periodic_kernel, top.num_periodic_bonds, entries, *bonds)
