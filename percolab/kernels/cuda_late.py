"""CUDA: a grid of p from one labeling.  What opens between its ends joins few clusters.

A *late* bond is closed at the lowest p of a grid and open at its highest.  The clusters of a tile
that late bonds join become nodes beside those at the border, and every such bond an *event*, two
nodes and a bond; the other clusters stay as they are over the whole grid.  Rows then follow from p
to p by joining nodes.

late: (the open bonds at the highest p, events, events of each tile, room for events of a tile, a
flag that is set when a room did not do).  Event n of block b has its nodes, its bond, later its
step, and over how many periods the bond leads in events[b, n, 0 ... 3], uint32.
"""

from numba import uint32, uint64

from percolab.device import load_cuda
from percolab.kernels.bits import lowest_one
from percolab.kernels.bonds import has_bit
from percolab.kernels.cuda_border import TILES_PER_BLOCK, listed_bond
from percolab.kernels.cuda_tile import (
    LANES,
    before_first,
    field_of,
    list_root,
    other_starts,
    rank_of,
    table_root,
)
from percolab.kernels.models import bond_number
from percolab.kernels.runs import bits_at
from percolab.kernels.union_find import union

cuda = load_cuda()


@cuda.jit(device=True)
def _late_bits(bonds, later, index, site, count):
    """Return the late bonds of a word within the tile, of the class that starts at ``index``."""
    if count == uint32(0):
        return uint32(0)
    opened, base, inner, _ = bonds
    start = uint32(base + index)
    found = bits_at(later, start, site, count) & ~bits_at(opened, start, site, count)
    return uint32(found & bits_at(inner, index, site, count))


@cuda.jit(device=True)
def mark_late(table, starts, first, bonds, num_words, lattice, place, late, counter, queue, room):
    """List the roots of all clusters that late bonds of this thread's word join to another."""
    classes, shifts, rows = lattice
    word, chain = cuda.threadIdx.x, bonds[3]
    for c in range(-1, len(classes)):
        k = chain if c < 0 else classes[c]
        if k >= 0:
            index = uint32(uint32(k) * num_words)
            left = _late_bits(bonds, late[0], index, place[0], place[1])
            while left != uint32(0):
                bit = uint32(lowest_one(left))
                left = uint32(left & uint32(left - uint32(1)))
                n, other = _ends_of(starts, first, shifts, rows, word, c, bit)
                i, j = table_root(table, n), table_root(table, other)
                if i != j:
                    list_root(table, i, counter, queue, room)
                    list_root(table, j, counter, queue, room)


@cuda.jit(device=True)
def emit_late(table, starts, first, bonds, num_words, lattice, place, late, counter, block, room):
    """Write the events of this thread's word, once roots hold the numbers of their nodes."""
    classes, shifts, rows = lattice
    word, chain = cuda.threadIdx.x, bonds[3]
    _, events, _, event_room, overflow = late
    least = uint32(block * room)
    for c in range(-1, len(classes)):
        k = chain if c < 0 else classes[c]
        if k >= 0:
            index = uint32(uint32(k) * num_words)
            left = _late_bits(bonds, late[0], index, place[0], place[1])
            while left != uint32(0):
                bit = uint32(lowest_one(left))
                left = uint32(left & uint32(left - uint32(1)))
                n, other = _ends_of(starts, first, shifts, rows, word, c, bit)
                i, j = table_root(table, n), table_root(table, other)
                if i != j:
                    slot = cuda.atomic.add(counter, 1, uint32(1))
                    # Where nodes ran out of room, numbers are wrong, and all is done again.
                    if slot < event_room and counter[0] <= room:
                        events[block, slot, 0] = uint32(least + field_of(table[i]))
                        events[block, slot, 1] = uint32(least + field_of(table[j]))
                        events[block, slot, 2] = uint32(
                            uint32(uint32(index << uint32(5)) + place[0]) + bit
                        )
                        events[block, slot, 3] = uint32(0)
                    else:
                        overflow[0] = uint32(1)


@cuda.jit(device=True)
def _ends_of(starts, first, shifts, rows, word, c, bit):
    """Return the runs at the two ends of the bond of a bit, of class c or of the chain, c = -1."""
    n = uint32(uint32(first[word] + rank_of(starts[word], bit)) - uint32(1))
    if c < 0:
        # A closed chain bond lies between a run and the one before.
        return n, uint32(n - uint32(1))
    others = other_starts(starts, word, shifts[c], rows[c])
    before = before_first(starts, first, word, shifts[c], rows[c], others)
    return n, uint32(uint32(before + rank_of(others, bit)) - uint32(1))


@cuda.jit(cache=True)
def cross_events_kernel(labels, points, opened, words_per_item, room, crossing, listed, late):
    """Write the events of the listed bonds that are late; all listed ones open in the end."""
    _, events, counts, event_room, overflow = late
    item = uint32(cuda.blockIdx.y)
    base, k = uint32(item * points), uint32(cuda.grid(1))
    while k < listed[1][item]:
        n, bit, owner, other = listed_bond(k, item, listed, crossing)
        word = crossing[0][n]
        if not has_bit(opened[uint32(uint32(item * words_per_item) + word)], bit):
            one, other = labels[uint32(base + owner)], labels[uint32(base + other)]
            block = uint32(one // room)
            slot = cuda.atomic.add(counts, block, uint32(1))
            if slot < event_room:
                events[block, slot, 0], events[block, slot, 1] = one, other
                events[block, slot, 2] = uint32(uint32(word << uint32(5)) | bit)
                events[block, slot, 3] = uint32(crossing[4][n])
            else:
                overflow[0] = uint32(1)
        k = uint32(k + uint32(cuda.gridsize(1)))


@cuda.jit(cache=True)
def order_events_kernel(generator, sites, seed, samples, grid, tiles, blocks, late):
    """Write at which p of the grid the bond of every event opens, in place of the bond."""
    _, events, counts, event_room, _ = late
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        sample = samples[block // tiles]
        for n in range(lane, min(counts[block], event_room), LANES):
            number = bond_number(generator, sites, seed, sample, events[block, n, 2])
            step = 0
            while step < grid.size and uint64(grid[step]) <= number:
                step += 1
            events[block, n, 2] = uint32(step)


@cuda.jit(cache=True)
def join_events_kernel(parents, step, blocks, late):
    """Join the nodes of all events of a step."""
    _, events, counts, event_room, _ = late
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, min(counts[block], event_room), LANES):
            if events[block, n, 2] == step:
                union(parents, uint32(0), events[block, n, 0], events[block, n, 1])
