"""CUDA: a grid of p from one labeling.  What opens between its ends joins few clusters.

A *late* bond is closed at the lowest p of a grid and open at its highest.  The clusters of a tile
that late bonds join become nodes beside those at the border, and every such bond an *event*, two
nodes and a bond; the other clusters stay as they are over the whole grid.  Rows then follow from p
to p by joining nodes.

late: (the open bonds at the highest p, events, events of each tile, room for events of a tile, a
flag that is set when a room did not do).  Event n of block b has its nodes, its bond, later its
step, and over how many periods the bond leads in events[b, n, 0 ... 3], uint32.
"""

from numba import int32, uint32, uint64

from percolab.bonds.sites import bond_number
from percolab.kernels.device import load_cuda
from percolab.kernels.neighbours import has_bit
from percolab.kernels.union_find import union
from percolab.labelers.tiled.borders import TILES_PER_BLOCK, listed_bond
from percolab.labelers.tiled.one_tile import LANES
from percolab.measure.wrapping_cuda import close_or_hang, note_loop

cuda = load_cuda()


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


@cuda.jit(cache=True)
def wind_events_kernel(forest, step, tiles, blocks, late, wrapping):
    """Join the nodes of all events of a step."""
    loops, flags, axes, width = wrapping
    _, events, counts, event_room, _ = late
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, min(counts[block], event_room), LANES):
            if events[block, n, 2] == step:
                one, other = events[block, n, 0], events[block, n, 1]
                code = int32(events[block, n, 3])
                wound = close_or_hang(forest, one, other, code)
                note_loop(wound, uint32(block // tiles), loops, flags, axes, width)
