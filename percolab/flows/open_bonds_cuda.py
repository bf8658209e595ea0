"""CUDA: lists of the open bonds of one large sample, by tiles, without leaves.

A *leaf* is a site with one open bond.  This bond is a bridge that carries no current; after its
removal another site may become a leaf, to which the thread goes on within its tile.  At p_c six in
ten open bonds of the square lattice remain, and a third of those of the cubic lattice.

Each block has a tile, and each thread a node; arguments as in :mod:`.tile_forest_cuda`.
"""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.flows.search_cuda import close_bond, is_open, low_half
from percolab.flows.tile_forest_cuda import add_up, end_in_tile, this_node
from percolab.flows.tile_net import TILE
from percolab.kernels.cuda import cuda
from percolab.kernels.neighbours import has_bit

#: The end of a bond that leads to another tile.  Ends within the tile are stored plus one, so that
#: 0 means no bond.
_OTHER_TILE = 2 * TILE
#: Number of bonds that a thread loads together.
_TOGETHER = 4


class OpenNet(NamedTuple):
    """The open bonds of every tile, in the order in which threads found them.

    starts, bonds, at, owners: as of a :class:`~percolab.flows.tile_net.TileNet`
    stops: uint32 (tiles,), where the bonds of each tile end
    """

    starts: Any
    stops: Any
    bonds: Any
    at: Any
    owners: Any


@cuda.jit(cache=True)
def open_bonds_kernel(net, opened, words, entry, closing, found, sums):
    """List the open bonds without those of leaves, and count the bonds of leaves in ``sums[0]``.

    closing: uint32, whether to close the bonds of leaves.  found: OpenNet.
    """
    degrees = cuda.shared.array(TILE, types.uint32)
    ends = cuda.shared.array(TILE, types.uint32)
    is_leaf = cuda.shared.array(TILE, types.uint8)
    memory = cuda.shared.array(1, types.uint32)
    base, tile, n = uint32(entry[0] * words), uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    node, stop = this_node(), net.starts[uint32(tile + uint32(1))]
    # The degree of a terminal's site starts at 2, so the site never becomes a leaf.
    degrees[n] = uint32(0) if net.owners[node] == node else uint32(2)
    ends[n], is_leaf[n] = uint32(0), False
    cuda.syncthreads()
    for first in range(uint32(net.starts[tile] + n), stop, _TOGETHER * TILE):
        bits = _open_bits(net, opened, base, first, stop)
        for i in range(_TOGETHER):
            if has_bit(bits, uint32(i)):
                k = uint32(first + uint32(i * TILE))
                at = uint32(net.at[k])
                other, is_within = end_in_tile(tile, low_half(net.bonds[k]))
                if is_within:
                    _add_end(degrees, ends, other, uint32(at + uint32(1)))
                    _add_end(degrees, ends, at, uint32(other + uint32(1)))
                else:
                    _add_end(degrees, ends, at, uint32(_OTHER_TILE))
    cuda.syncthreads()
    add_up(memory, _cut_leaves(degrees, ends, is_leaf), sums, 0)
    cuda.syncthreads()
    if n == uint32(0):
        memory[0] = net.starts[tile]
    cuda.syncthreads()
    for first in range(uint32(net.starts[tile] + n), stop, _TOGETHER * TILE):
        bits = _open_bits(net, opened, base, first, stop)
        for i in range(_TOGETHER):
            if has_bit(bits, uint32(i)):
                k = uint32(first + uint32(i * TILE))
                bond, at = net.bonds[k], net.at[k]
                other, is_within = end_in_tile(tile, low_half(bond))
                if is_leaf[at] or (is_within and is_leaf[other]):
                    if closing != uint32(0):
                        close_bond(opened, base, uint32(bond >> uint64(32)))
                else:
                    place = cuda.atomic.add(memory, 0, uint32(1))
                    found.bonds[place], found.at[place] = bond, at
    cuda.syncthreads()
    if n == uint32(0):
        found.stops[tile] = memory[0]


@cuda.jit(device=True)
def _open_bits(net, opened, base, first, stop):
    """Return which of a thread's next bonds before ``stop`` are open, as bits, uint32.

    All loads are issued together to hide their latency.
    """
    bits = uint32(0)
    for i in range(_TOGETHER):
        k = uint32(first + uint32(i * TILE))
        is_bond = is_open(opened, base, net.bonds[min(k, uint32(stop - uint32(1)))]) and k < stop
        bits = uint32(bits | uint32(uint32(is_bond) << uint32(i)))
    return bits


@cuda.jit(device=True)
def _add_end(degrees, ends, node, end):
    """Add a bond to a node: count it in its degree, and XOR its other end into ``ends``."""
    cuda.atomic.add(degrees, node, uint32(1))
    cuda.atomic.xor(ends, node, end)


@cuda.jit(device=True)
def _cut_leaves(degrees, ends, is_leaf):
    """Mark the leaves that this thread finds, and return the number of their bonds, uint32."""
    node, cut = uint32(cuda.threadIdx.x), uint32(0)
    is_next = degrees[node] == uint32(1)
    cuda.syncthreads()
    while is_next:
        # The bond is gone if the other end's thread is cutting it but has not counted it yet.
        is_next, end = False, uint32(cuda.atomic.or_(ends, node, uint32(0)) - uint32(1))
        if end < uint32(TILE) and _take(degrees, node):
            is_leaf[node], cut = True, uint32(cut + uint32(1))
            cuda.atomic.xor(ends, end, uint32(node + uint32(1)))
            cuda.threadfence_block()
            degree = cuda.atomic.sub(degrees, end, uint32(1))
            # A bond between two leaves is cut by both threads, and counted once.
            if degree == uint32(0) and node < end:
                cut = uint32(cut - uint32(1))
            is_next, node = degree == uint32(2), end
    return cut


@cuda.jit(device=True)
def _take(degrees, leaf):
    """Take the last bond of a leaf; return whether this thread was the first to do so."""
    return cuda.atomic.cas(degrees, leaf, uint32(1), uint32(0)) == uint32(1)
