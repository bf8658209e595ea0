"""CUDA: distances in one large sample, and shortest paths (:mod:`percolab.flows.paths`).

In every round a block of threads lowers the distances of a tile in shared memory until each is at
most one more than that of a neighbour, and lists for the next round the tiles that it has brought
nearer.  When none is listed distances are right, in whatever order that came about.  Nobody but the
block writes the distances of its tile, which become only smaller: who reads one that is lowered in
the same round lists a tile once too often at worst.

opened: uint32, bond words, ``words`` of every entry; entry: uint32 (1,), the one that is read.
"""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.flows.search_cuda import SIMULATED, is_open, low_half
from percolab.flows.tile_net import LINK, NO_SITE, TILE, TILE_BITS
from percolab.kernels.device import load_cuda

cuda = load_cuda()

#: The distance of what was not reached: twice that and one more fit in 32 bits.
UNSEEN = 1 << 30
#: Rounds in a call, an even number; threads of a block in a round, and those of a warp.
ROUNDS, THREADS, _LANES = (4, 8, 4) if SIMULATED else (32, 512, 32)
#: The room of two queues of nodes.
_QUEUES = 2 * TILE
#: No bond, and the bit of a node that is queued.
_NONE, _QUEUED = 0xFFFF, 0x10000


class Front(NamedTuple):
    """The tiles of each round, uint32; those of even and odd rounds by turns.

    lists:  (2, items), numbers: search * tiles + tile
    flags:  (2, items), whether each is in the list; 0 before and after a search
    counts: (ROUNDS + 1,), how many there are in every round of a call and the next
    """

    lists: Any
    flags: Any
    counts: Any


@cuda.jit(device=True)
def _put(front, item, step):
    """List a tile for the round after ``step``."""
    step = uint32(step + uint32(1))
    turn = uint32(step & uint32(1))
    if cuda.atomic.exch(front.flags[turn], item, uint32(1)) == uint32(0):
        front.lists[turn, cuda.atomic.add(front.counts, step, uint32(1))] = item


@cuda.jit(device=True)
def is_link(bond):
    """Return whether this is a link, of a net or in place of the bond above a node."""
    return uint32(bond >> uint64(32)) == uint32(LINK) and low_half(bond) != uint32(0xFFFFFFFF)


@cuda.jit(device=True)
def is_open_bond(opened, base, bond):
    """Return whether a bond is open, and no link."""
    return not is_link(bond) and is_open(opened, base, bond)


@cuda.jit(cache=True)
def begin_kernel(net, labels, points, entry, away, front):
    """Begin searches at both terminals, or the first; a thread a node.

    labels: uint32, from the first sites of all clusters, if there are ``points`` of every entry.
    """
    n, nodes = uint32(cuda.grid(1)), uint32(net.sites.size)
    if n < nodes:
        for search in range(away.shape[0]):
            is_root = n == uint32(uint32(nodes - uint32(TILE)) + uint32(search))
            if points != uint32(0):
                at = uint32(uint32(entry[0] * points) + net.sites[n])
                is_root = net.sites[n] != uint32(NO_SITE) and labels[at] == net.sites[n]
            away[search, n] = uint32(0) if is_root else uint32(UNSEEN)
            if is_root:
                tiles = uint32(nodes >> uint32(TILE_BITS))
                item = uint32(uint32(tiles * uint32(search)) + uint32(n >> uint32(TILE_BITS)))
                _put(front, item, uint32(ROUNDS - 1))


@cuda.jit(cache=True)
def next_call_kernel(front):
    """Go on with what the last round of a call has listed; one thread."""
    front.counts[0] = front.counts[ROUNDS]
    for step in range(1, ROUNDS + 1):
        front.counts[step] = uint32(0)


@cuda.jit(cache=True)
def round_kernel(net, opened, words, entry, away, front, step):
    """Lower the distances of the tiles of a round.

    Dynamic shared memory: uint32, as many as a tile has bonds, at most.
    """
    near = cuda.shared.array(TILE, types.uint32)
    head = cuda.shared.array(TILE, types.uint32)
    queue = cuda.shared.array(_QUEUES, types.uint16)
    queued = cuda.shared.array(2, types.uint32)
    links = cuda.shared.array(0, types.uint32)
    base, thread, turn = uint32(entry[0] * words), uint32(cuda.threadIdx.x), uint32(cuda.blockIdx.x)
    tiles, parity = uint32(net.starts.size - 1), uint32(step & uint32(1))
    while turn < front.counts[step]:
        item = front.lists[parity, turn]
        search = uint32(item // tiles)
        tile, own = uint32(item - uint32(search * tiles)), away[search]
        first = uint32(tile << uint32(TILE_BITS))
        for n in range(thread, TILE, THREADS):
            near[n], head[n] = own[uint32(first + uint32(n))], uint32(_NONE)
        if thread == uint32(0):
            queued[0] = queued[1] = front.flags[parity, item] = uint32(0)
        cuda.syncthreads()
        _look_around(net, opened, base, tile, own, near, head, links)
        cuda.syncthreads()
        for n in range(thread, TILE, THREADS):
            if near[n] == uint32(0) or near[n] < own[uint32(first + uint32(n))]:
                _push(head, queue, queued, uint32(0), uint32(n))
        cuda.syncthreads()
        if thread < uint32(_LANES):
            _spread(near, head, links, queue, queued)
        cuda.syncthreads()
        for n in range(thread, TILE, THREADS):
            own[uint32(first + uint32(n))] = near[n]
        k = uint32(net.starts[tile] + thread)
        while k < net.starts[tile + 1]:
            bond = net.bonds[k]
            that = uint32(low_half(bond) >> uint32(TILE_BITS))
            distance = uint32(near[net.at[k]] + _length(bond))
            if that != tile and distance < own[low_half(bond)] and _is_passed(opened, base, bond):
                _put(front, uint32(uint32(search * tiles) + that), step)
            k = uint32(k + uint32(THREADS))
        cuda.syncthreads()
        turn = uint32(turn + uint32(cuda.gridDim.x))


@cuda.jit(device=True)
def _is_passed(opened, base, bond):
    """Return whether a bond is open, or a link."""
    return is_link(bond) or is_open(opened, base, bond)


@cuda.jit(device=True)
def _length(bond):
    """Return the length of a bond."""
    return uint32(0) if is_link(bond) else uint32(1)


@cuda.jit(device=True)
def _look_around(net, opened, base, tile, own, near, head, links):
    """Lower a tile's distances to what those of other tiles allow, and chain its bonds by nodes.

    links: of every bond within the tile the next one of its node << 16 | its other node.
    """
    start = net.starts[tile]
    k = uint32(start + uint32(cuda.threadIdx.x))
    while k < net.starts[tile + 1]:
        bond, at = net.bonds[k], net.at[k]
        if _is_passed(opened, base, bond):
            other = low_half(bond)
            if uint32(other >> uint32(TILE_BITS)) == tile:
                following = cuda.atomic.exch(head, at, uint32(k - start))
                end = uint32(other & uint32(TILE - 1))
                links[uint32(k - start)] = uint32(uint32(following << uint32(16)) | end)
            else:
                cuda.atomic.min(near, at, uint32(own[other] + _length(bond)))
        k = uint32(k + uint32(THREADS))


@cuda.jit(device=True)
def _push(head, queue, queued, turn, node):
    """Put a node of the tile into a queue if it is in none."""
    if uint32(cuda.atomic.or_(head, node, uint32(_QUEUED)) & uint32(_QUEUED)) == uint32(0):
        place = cuda.atomic.add(queued, turn, uint32(1))
        queue[uint32(uint32(turn * uint32(TILE)) + place)] = node


@cuda.jit(device=True)
def _spread(near, head, links, queue, queued):
    """Lower the distances of a tile from the queued nodes on: one warp."""
    turn, lane, size = uint32(0), uint32(cuda.threadIdx.x), queued[0]
    while size != uint32(0):
        for n in range(lane, size, _LANES):
            node = uint32(queue[uint32(uint32(turn * uint32(TILE)) + uint32(n))])
            # It may be lowered, and queued, again from here on.
            link = uint32(cuda.atomic.and_(head, node, uint32(_NONE)) & uint32(_NONE))
            distance = uint32(cuda.atomic.add(near, node, uint32(0)) + uint32(1))
            while link != uint32(_NONE):
                other = uint32(links[link] & uint32(0xFFFF))
                if cuda.atomic.min(near, other, distance) > distance:
                    _push(head, queue, queued, uint32(turn ^ uint32(1)), other)
                link = uint32(links[link] >> uint32(16))
        cuda.syncwarp()
        if lane == uint32(0):
            queued[turn] = uint32(0)
        turn = uint32(turn ^ uint32(1))
        size = queued[turn]
        cuda.syncwarp()


@cuda.jit(cache=True)
def shortest_kernel(net, opened, words, entry, away, sums):
    """Write the length of the shortest path to ``sums``, uint64, and add bonds and sites of all.

    A block a tile.  ``sums`` are 0, and remain so where there is no path.
    """
    touched = cuda.shared.array(TILE, types.uint32)
    base, thread, tile = uint32(entry[0] * words), uint32(cuda.threadIdx.x), uint32(cuda.blockIdx.x)
    near, far, first = away[0], away[1], uint32(tile << uint32(TILE_BITS))
    length, bonds = near[uint32(uint32(near.size - TILE) + 1)], uint32(0)
    if length == uint32(UNSEEN):
        return
    touched[thread] = uint32(0)
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + thread), net.starts[tile + 1], TILE):
        node, other = uint32(first + net.at[k]), low_half(net.bonds[k])
        # Listed at both ends, and counted where it leads on.
        leads_on = uint32(uint32(near[node] + far[other]) + uint32(1)) == length
        leads_back = uint32(uint32(near[other] + far[node]) + uint32(1)) == length
        if (leads_on or leads_back) and is_open_bond(opened, base, net.bonds[k]):
            bonds = uint32(bonds + (uint32(1) if leads_on else uint32(0)))
            cuda.atomic.or_(touched, net.at[k], uint32(1))
    cuda.syncthreads()
    if bonds != uint32(0):
        cuda.atomic.add(sums, 1, uint64(bonds))
    if touched[thread] != uint32(0):
        cuda.atomic.add(sums, 2, uint64(1))
    if tile == uint32(0) and thread == uint32(0):
        sums[0] = uint64(length)


@cuda.jit(cache=True)
def keep_kernel(sums, entry, numbers):
    """Write an entry's numbers, and go on to the next; one thread."""
    for k in range(numbers.shape[1]):
        numbers[entry[0], k] = sums[k]
        sums[k] = uint64(0)
    entry[0] = uint32(entry[0] + uint32(1))
