"""CUDA: breadth-first searches for flows, in which a block of threads has one sample at a time.

A block reaches the sites of its sample level by level, and stores them in this order with the ends
of the levels, so that words can be summed level by level on the way back.  Which bond reaches a
site first may differ from run to run; no result depends on it, unless two words are equal by
chance, with probability 2^-64.

When a block is done with a sample it takes another one; memory has one row for each block.
Sites are rows of lists of bonds; a *node* is a site, or one of the two terminals, whose sites are
short-circuited.

opened: uint32, bond words of the samples, a sample's from ``base`` on; bonds: uint64, as in
:class:`DeviceNet`; sites, nodes, queue: uint32; queued: uint32 (1,), the length of the queue.
"""

from typing import Any, NamedTuple

from numba import uint32, uint64

from percolab.flows.cycle_words import bond_word
from percolab.kernels.bits import lowest_one
from percolab.kernels.cuda import cuda
from percolab.kernels.neighbours import has_bit

#: Values in place of the bond by which a node was reached: if it was not reached, and for a root.
UNSEEN, ROOT = 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFE


class DeviceNet(NamedTuple):
    """The bonds of every site, without loops and bonds within a terminal.

    starts: uint32 (points + 1,), where the bonds of each site begin
    bonds:  uint64, place << 32 | node at the other end; the place is 32 * word + bit
    nodes:  uint32 (points,), the node of a site: the site itself, or points and points + 1 for the
            sites of the first and second terminal if these are joined
    source: uint32, the sites of the first terminal
    target: uint32, the sites of the second terminal
    """

    starts: Any
    bonds: Any
    nodes: Any
    source: Any
    target: Any


class Tree(NamedTuple):
    """The memory of a search, a row for each block: (blocks, points + 2).

    via:    uint64, for every node the bond by which it was reached, as place << 32 | other node
    words:  uint64, the words of these bonds
    queue:  uint32, the sites in the order in which they were reached
    levels: uint32, where every level ends in the queue
    """

    via: Any
    words: Any
    queue: Any
    levels: Any


@cuda.jit(device=True)
def is_open(opened, base, bond):
    """Return whether a bond of the net is open in the sample whose words begin at ``base``."""
    place = uint32(bond >> uint64(32))
    return has_bit(opened[uint32(base + uint32(place >> uint32(5)))], place & uint32(31))


@cuda.jit(device=True)
def close_bond(opened, base, place):
    """Close a bond of the sample whose words begin at ``base``."""
    bit = uint32(uint32(1) << uint32(place & uint32(31)))
    cuda.atomic.and_(opened, uint32(base + uint32(place >> uint32(5))), uint32(~bit))


@cuda.jit(device=True)
def open_bonds(net, opened, base, first, last):
    """Return which of 32 bonds of the net, from ``first`` on and before ``last``, are open: bits.

    Their words are loaded together, which hides the latency of the loads.
    """
    bits = uint32(0)
    for n in range(min(uint32(last - first), uint32(32))):
        if is_open(opened, base, net.bonds[uint32(first + uint32(n))]):
            bits = uint32(bits | uint32(uint32(1) << uint32(n)))
    return bits


@cuda.jit(device=True)
def low_half(bond):
    """Return the node in the lower half of a bond: of a listed bond, or of an entry of ``via``."""
    return uint32(bond & uint64(0xFFFFFFFF))


@cuda.jit(device=True)
def push(queue, queued, site):
    """Append a site to the queue."""
    queue[cuda.atomic.add(queued, 0, uint32(1))] = site


@cuda.jit(device=True)
def push_node(net, queue, queued, node):
    """Append the sites of a node, which is not the first terminal, to the queue."""
    if node < uint32(net.nodes.size):
        push(queue, queued, node)
    else:
        for n in range(net.target.size):
            push(queue, queued, net.target[n])


@cuda.jit(device=True)
def acts(net, site, node):
    """Return whether this site is the one that represents its node in work done once per node."""
    return node == site or site == net.target[0]


@cuda.jit(device=True)
def read_level(queued):
    """Return the current end of the queue; all threads call this before any pushes another site."""
    cuda.syncthreads()
    last = uint32(queued[0])
    cuda.syncthreads()
    return last


@cuda.jit(device=True)
def _expand(net, opened, base, key, tree, queued, site):
    """Reach the neighbours of a site; XOR words of bonds that reach no new node into its node's."""
    node, word = net.nodes[site], uint64(0)
    own = uint64(tree.via[node] >> uint64(32))
    first, last = net.starts[site], net.starts[uint32(site + uint32(1))]
    while first < last:
        bits = open_bonds(net, opened, base, first, last)
        while bits != uint32(0):
            bond = net.bonds[uint32(first + uint32(lowest_one(bits)))]
            bits = uint32(bits & uint32(bits - uint32(1)))
            place, other = uint64(bond >> uint64(32)), low_half(bond)
            if tree.via[other] == uint64(UNSEEN):
                mine = uint64(uint64(place << uint64(32)) | uint64(node))
                seen = cuda.atomic.cas(tree.via, other, uint64(UNSEEN), mine)
                if seen == uint64(UNSEEN):
                    tree.words[other] = uint64(0)
                    push_node(net, tree.queue, queued, other)
                    continue
            if place != own:
                word = uint64(word ^ bond_word(key, place))
        first = uint32(first + uint32(32))
    if word != uint64(0):
        cuda.atomic.xor(tree.words, node, word)


@cuda.jit(device=True)
def search(net, opened, base, key, tree, queued):
    """Reach all nodes connected with the sites in the queue; return the number of levels.

    The word of each node becomes the XOR of the words of its bonds outside of the forest.
    """
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    first, levels = uint32(0), uint32(0)
    while True:
        last = read_level(queued)
        if first == last:
            return levels
        if thread == uint32(0):
            tree.levels[levels] = last
        n = uint32(first + thread)
        while n < last:
            _expand(net, opened, base, key, tree, queued, tree.queue[n])
            n = uint32(n + threads)
        first, levels = last, uint32(levels + uint32(1))


@cuda.jit(device=True)
def add_up(net, tree, sizes, levels, wanted):
    """Sum words up the tree; return the number of bonds with the wanted word that this thread saw.

    sizes: sizes of branches, which are added up too, or None.
    """
    count, level = uint64(0), levels
    while level > uint32(1):
        level = uint32(level - uint32(1))
        cuda.syncthreads()
        n, last = level_range(tree, level)
        while n < last:
            site = tree.queue[n]
            node = net.nodes[site]
            if acts(net, site, node):
                word, above = tree.words[node], low_half(tree.via[node])
                if word == wanted:
                    count = uint64(count + uint64(1))
                if word != uint64(0):
                    cuda.atomic.xor(tree.words, above, word)
                if sizes is not None:
                    cuda.atomic.add(sizes, above, sizes[node])
            n = uint32(n + uint32(cuda.blockDim.x))
    return count


@cuda.jit(device=True)
def clear(array, value):
    """Set all entries of an array of this block."""
    n = uint32(cuda.threadIdx.x)
    while n < uint32(array.size):
        array[n] = value
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def begin_at(sites, queue, queued):
    """Begin a search at the sites of a terminal: make them the whole queue."""
    n = uint32(cuda.threadIdx.x)
    while n < uint32(sites.size):
        queue[n] = sites[n]
        n = uint32(n + uint32(cuda.blockDim.x))
    if cuda.threadIdx.x == 0:
        queued[0] = uint32(sites.size)


@cuda.jit(device=True)
def level_range(tree, level):
    """Return this thread's first place in the queue for a level above 0, and the level's end."""
    first = uint32(tree.levels[uint32(level - uint32(1))] + uint32(cuda.threadIdx.x))
    return first, tree.levels[level]
