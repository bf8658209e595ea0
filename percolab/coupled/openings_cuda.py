"""CUDA: a grid of p from one labeling.  What opens between its ends joins few clusters.

A bond that is closed at the lowest p of a grid and open at its highest, and joins two clusters of a
tile or of neighbouring tiles, is an *opening* (:class:`percolab.labelers.tiled.records.Openings`).
The clusters it joins become nodes, like those at the border; the others stay as they are over the
whole grid.  Rows then follow from p to p by joining nodes.

labels: uint32 (items * points,); parents: uint32, of all nodes; forest: uint64, as long.
"""

from numba import int32, uint32, uint64

from percolab.bonds.hooks import bond_number
from percolab.kernels.device import load_cuda
from percolab.kernels.neighbours import has_bit
from percolab.kernels.union_find import union
from percolab.labelers.tiled.borders import TILES_PER_BLOCK, listed_bond
from percolab.labelers.tiled.one_tile import LANES
from percolab.measure.wrapping_cuda import join_over_periods, note_loop

cuda = load_cuda()


@cuda.jit(cache=True)
def cross_openings_kernel(
    labels, points, opened, words_per_item, node_room, crossing, listed, openings
):
    """Write the openings among the listed bonds between tiles, which all are open in the end."""
    found = openings.list
    item = uint32(cuda.blockIdx.y)
    base, k = uint32(item * points), uint32(cuda.grid(1))
    while k < listed.counts[item]:
        n, bit, owner, other = listed_bond(k, item, listed, crossing)
        word = crossing.words[n]
        if not has_bit(opened[uint32(uint32(item * words_per_item) + word)], bit):
            one, other = labels[uint32(base + owner)], labels[uint32(base + other)]
            block = uint32(one // node_room)
            slot = cuda.atomic.add(openings.counts, block, uint32(1))
            if slot < openings.room:
                found[block, slot, 0], found[block, slot, 1] = one, other
                found[block, slot, 2] = uint32(uint32(word << uint32(5)) | bit)
                found[block, slot, 3] = uint32(crossing.codes[n])
            else:
                # Whoever writes it writes the same.
                openings.overflow[0] = uint32(1)
        k = uint32(k + uint32(cuda.gridsize(1)))


@cuda.jit(cache=True)
def order_openings_kernel(generator, sites, keys, grid, tiles, blocks, openings):
    """Write at which p of the grid the bond of every opening opens, in place of the bond."""
    found = openings.list
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        seed, sample = keys.samples[0], keys.samples[block // tiles + 1]
        for n in range(lane, min(openings.counts[block], openings.room), LANES):
            number = bond_number(generator, sites, seed, sample, found[block, n, 2])
            step = 0
            while step < grid.size and uint64(grid[step]) <= number:
                step += 1
            found[block, n, 2] = uint32(step)


@cuda.jit(cache=True)
def join_openings_kernel(parents, step, blocks, openings):
    """Join the nodes of all openings of a step."""
    found = openings.list
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, min(openings.counts[block], openings.room), LANES):
            if found[block, n, 2] == step:
                union(parents, uint32(0), found[block, n, 0], found[block, n, 1])


@cuda.jit(cache=True)
def join_openings_over_periods_kernel(forest, step, tiles, blocks, openings, loops):
    """Join the nodes of all openings of a step in a forest with periods, and note what wraps."""
    found = openings.list
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    block = cuda.blockIdx.x * TILES_PER_BLOCK + warp
    if block < blocks:
        for n in range(lane, min(openings.counts[block], openings.room), LANES):
            if found[block, n, 2] == step:
                one, other = found[block, n, 0], found[block, n, 1]
                code = int32(found[block, n, 3])
                wound = join_over_periods(forest, one, other, code)
                note_loop(wound, uint32(block // tiles), loops)
