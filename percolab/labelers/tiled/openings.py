"""CUDA: the bonds within a tile that open between two p, as *openings* between its clusters.

Arrays are those of :func:`percolab.labelers.tiled.one_tile.join_tile`, uint32.
"""

from numba import uint32

from percolab.kernels.bits import lowest_one
from percolab.kernels.cuda import cuda
from percolab.kernels.runs import bits_at
from percolab.labelers.tiled.one_tile import (
    before_first,
    count_starts,
    entry_field,
    list_root,
    other_starts,
    table_root,
)


@cuda.jit(device=True)
def _opening_bits(tiles, opened, base, upper, index, site, count):
    """Return the bonds of a word within the tile, of the class from ``index`` on, that open."""
    if count == uint32(0):
        return uint32(0)
    start = uint32(base + index)
    bits = bits_at(upper, start, site, count) & ~bits_at(opened, start, site, count)
    return uint32(bits & bits_at(tiles.inner, index, site, count))


@cuda.jit(device=True)
def mark_openings(table, starts, first, tiles, opened, base, place, openings, counter, queue, room):
    """List the roots of all clusters that the bonds of this thread's word join when they open."""
    word, chain, classes = cuda.threadIdx.x, tiles.chain, tiles.classes
    for c in range(-1, len(classes)):
        k = chain if c < 0 else classes[c]
        if k >= 0:
            index = uint32(uint32(k) * tiles.num_words)
            left = _opening_bits(tiles, opened, base, openings.upper, index, place[0], place[1])
            while left != uint32(0):
                bit = uint32(lowest_one(left))
                left = uint32(left & uint32(left - uint32(1)))
                n, other = find_bond_runs(starts, first, tiles.shifts, tiles.rows, word, c, bit)
                i, j = table_root(table, n), table_root(table, other)
                if i != j:
                    list_root(table, i, counter, queue, room)
                    list_root(table, j, counter, queue, room)


@cuda.jit(device=True)
def write_openings(
    table, starts, first, tiles, opened, base, place, openings, counter, block, room
):
    """Write the openings of this thread's word, once roots have the numbers of their nodes."""
    word, chain, classes = cuda.threadIdx.x, tiles.chain, tiles.classes
    least, lists = uint32(block * room), openings.list
    for c in range(-1, len(classes)):
        k = chain if c < 0 else classes[c]
        if k >= 0:
            index = uint32(uint32(k) * tiles.num_words)
            left = _opening_bits(tiles, opened, base, openings.upper, index, place[0], place[1])
            while left != uint32(0):
                bit = uint32(lowest_one(left))
                left = uint32(left & uint32(left - uint32(1)))
                n, other = find_bond_runs(starts, first, tiles.shifts, tiles.rows, word, c, bit)
                i, j = table_root(table, n), table_root(table, other)
                if i != j:
                    slot = cuda.atomic.add(counter, 1, uint32(1))
                    # If nodes ran out of room, numbers are wrong, and the batch is done again.
                    if slot < openings.room and counter[0] <= room:
                        lists[block, slot, 0] = uint32(least + entry_field(table[i]))
                        lists[block, slot, 1] = uint32(least + entry_field(table[j]))
                        lists[block, slot, 2] = uint32(
                            uint32(uint32(index << uint32(5)) + place[0]) + bit
                        )
                        lists[block, slot, 3] = uint32(0)
                    else:
                        # All threads that write it write the same value.
                        openings.overflow[0] = uint32(1)


@cuda.jit(device=True)
def find_bond_runs(starts, first, shifts, rows, word, c, bit):
    """Return the runs at the ends of the bond at a bit, of class c or, if c is -1, the chain."""
    n = uint32(uint32(first[word] + count_starts(starts[word], bit)) - uint32(1))
    if c < 0:
        # A closed chain bond lies between a run and the run before it.
        return n, uint32(n - uint32(1))
    others = other_starts(starts, word, shifts[c], rows[c])
    before = before_first(starts, first, word, shifts[c], rows[c], others)
    return n, uint32(uint32(before + count_starts(others, bit)) - uint32(1))
