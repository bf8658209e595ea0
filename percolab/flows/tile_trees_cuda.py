"""CUDA: bridges, red bonds, trails and the backbone of one large sample.

Distances make a forest: every node has a bond to one that is nearer to its root.  What is summed up
the forest is summed within each tile; then up the *heads*, the nodes whose bond leads out of their
tile, from each to the highest node that leads there; and once more within the tiles, with what
comes from others.  Children are counted, and who brings the last goes on with the parent.

The word of a bond (:mod:`percolab.flows.cycle_words`) is the sum over its branch of the words of
all open bonds of every node: those within cancel.  A site of a terminal has its link in place of a
bond, and its terminal's number.  For the rule of fences (:mod:`.blocks_cuda`) numbers come from the
root down: a branch takes as many as it has nodes from the node above it, in any order, and how far
each node is beyond the root is found by doubling.  The lowest and highest numbers that bonds lead
to go up as words and sizes do.

Blocks have a tile, and threads a node; arguments as in :mod:`.tile_paths_cuda`.
"""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.flows.cycle_words import bond_word, virtual_word, word_streams
from percolab.flows.search_cuda import UNSEEN as NO_BOND
from percolab.flows.search_cuda import low_half
from percolab.flows.tile_net import TILE, TILE_BITS
from percolab.flows.tile_paths_cuda import UNSEEN, is_link, is_open_bond
from percolab.kernels.device import load_cuda
from percolab.kernels.union_find import find, union

cuda = load_cuda()

#: What a node of a tile has above it where its bond leads out of the tile or there is none.
_OUT = 0xFFFFFFFF
#: Whether trails come to a node, whether the bond above it is no fence, whether it is in the block.
_INSIDE, _NO_FENCE, _BLOCK = 1, 2, 4
#: Of a way up the forest, length << 32 | bridge << 31 | end: the length, the bridge and the end.
_LENGTH, _BRIDGE, _END = 0xFFFFFFFF00000000, 0x80000000, 0x7FFFFFFF


class TileForest(NamedTuple):
    """A forest of shortest ways and what is summed up it, a number for every node.

    via:       uint64, place << 32 | node of the bond over which each was reached, NO_BOND for none
    words:     uint64, of the bonds of each node, with what comes from other tiles; then of its
               bond; then the lowest number that its bonds lead to
    sums:      uint64, of heads, the words of their branches; then ways of all nodes; then lowest
               numbers
    sizes:     uint32, of nodes, like words; then of branches; then highest numbers
    size_sums: uint32, of heads, the sizes of their branches; then highest numbers
    tops:      uint32, the highest node that each leads to in its tile; then blocks
    children:  uint32, how many heads lead to each of these
    arrived:   uint32, how many of them have brought their sums
    begins:    uint32, the number of every node, the first of its branch; this and what follows of
               the backbone alone
    ends:      uint32, one more than the last; before, how many numbers below a node are taken
    marks:     uint8
    """

    via: Any
    words: Any
    sums: Any
    sizes: Any
    size_sums: Any
    tops: Any
    children: Any
    arrived: Any
    begins: Any
    ends: Any
    marks: Any


@cuda.jit(device=True)
def _this_node():
    """Return the node of this thread, in a block that has its tile."""
    return uint32(uint32(cuda.blockIdx.x << TILE_BITS) + uint32(cuda.threadIdx.x))


@cuda.jit(device=True)
def _parent_in_tile(via):
    """Return the node above in the block's tile, _OUT where there is none."""
    node = low_half(via)
    if via == uint64(NO_BOND) or uint32(node >> uint32(TILE_BITS)) != uint32(cuda.blockIdx.x):
        return uint32(_OUT)
    return uint32(node & uint32(TILE - 1))


@cuda.jit(device=True)
def _is_head(forest, node):
    """Return whether the bond above a node leads to another tile."""
    via = forest.via[node]
    return via != uint64(NO_BOND) and uint32(uint32(low_half(via) ^ node) >> uint32(TILE_BITS)) != 0


@cuda.jit(cache=True)
def terminals_kernel(entry, samples, forest):
    """Write what is known of the tile of the terminals: one block."""
    node = uint32(uint32(forest.tops.size - TILE) + uint32(cuda.threadIdx.x))
    key = word_streams(samples[0], samples[uint32(entry[0] + uint32(1))])
    word = virtual_word(key) if cuda.threadIdx.x == 1 else uint64(0)
    forest.via[node], forest.words[node], forest.sums[node] = uint64(NO_BOND), word, word
    forest.tops[node], forest.children[node], forest.arrived[node] = node, uint32(0), uint32(0)
    forest.sizes[node] = forest.size_sums[node] = uint32(1)


@cuda.jit(cache=True)
def branches_kernel(net, opened, words, entry, samples, away, forest):
    """Make the forest from distances, and sum up it within every tile but that of terminals."""
    near = cuda.shared.array(TILE, types.uint32)
    above = cuda.shared.array(TILE, types.uint32)
    left = cuda.shared.array(TILE, types.uint32)
    size = cuda.shared.array(TILE, types.uint32)
    via = cuda.shared.array(TILE, types.uint64)
    word = cuda.shared.array(TILE, types.uint64)
    base, tile, n = uint32(entry[0] * words), uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    key = word_streams(samples[0], samples[uint32(entry[0] + uint32(1))])
    own, node = away[0], _this_node()
    near[n], via[n], word[n], size[n] = own[node], uint64(NO_BOND), uint64(0), uint32(1)
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + n), net.starts[tile + 1], TILE):
        bond, at = net.bonds[k], net.at[k]
        if is_open_bond(opened, base, bond):
            cuda.atomic.xor(word, at, bond_word(key, uint64(bond >> uint64(32))))
            if uint32(own[low_half(bond)] + uint32(1)) == near[at]:
                cuda.atomic.min(via, at, bond)
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + n), net.starts[tile + 1], TILE):
        bond, at = net.bonds[k], net.at[k]
        if is_link(bond):
            # What a site was reached over is above its terminal, and that above the site.
            if via[at] != uint64(NO_BOND):
                forest.via[low_half(bond)] = via[at]
            via[at] = bond
    cuda.syncthreads()
    forest.via[node], forest.words[node], forest.sizes[node] = via[n], word[n], uint32(1)
    forest.children[node] = forest.arrived[node] = uint32(0)
    above[n] = _parent_in_tile(via[n])
    _climb(above, left, word, size, uint32(0))
    if above[n] == uint32(_OUT):
        forest.sums[node], forest.size_sums[node] = word[n], size[n]
    top = n
    while above[top] != uint32(_OUT):
        top = above[top]
    forest.tops[node] = uint32(uint32(node - n) + top)


@cuda.jit(device=True)
def _climb(above, left, word, size, of_numbers):
    """Sum words, uint64, and sizes, uint32, of a tile's nodes up the forest, or find their ranges.

    above: uint32, of every node the one above, or _OUT.  left: uint32, memory.  of_numbers: whether
    ``word`` and ``size`` are lowest and highest numbers, uint32.
    """
    node = uint32(cuda.threadIdx.x)
    left[node] = uint32(0)
    cuda.syncthreads()
    if above[node] != uint32(_OUT):
        cuda.atomic.add(left, above[node], uint32(1))
    cuda.syncthreads()
    is_complete = left[node] == uint32(0)
    cuda.syncthreads()
    while is_complete and above[node] != uint32(_OUT):
        parent = above[node]
        _give(word, size, node, word, size, parent, of_numbers)
        cuda.threadfence_block()
        is_complete = cuda.atomic.sub(left, parent, uint32(1)) == uint32(1)
        cuda.threadfence_block()
        node = parent
    cuda.syncthreads()


@cuda.jit(device=True)
def _give(words, sizes, node, to_words, to_sizes, parent, of_numbers):
    """Add the word and the size of a node to those of another, or widen the range of that.

    What others wrote is read by atomics, which no cache holds.
    """
    word, size = cuda.atomic.or_(words, node, uint64(0)), cuda.atomic.or_(sizes, node, uint32(0))
    if of_numbers == uint32(0):
        cuda.atomic.xor(to_words, parent, word)
        cuda.atomic.add(to_sizes, parent, size)
    else:
        cuda.atomic.min(to_words, parent, word)
        cuda.atomic.max(to_sizes, parent, size)


@cuda.jit(cache=True)
def count_children_kernel(forest):
    """Count the heads that lead to each highest node of a tile."""
    node = _this_node()
    if _is_head(forest, node):
        cuda.atomic.add(forest.children, forest.tops[low_half(forest.via[node])], uint32(1))


@cuda.jit(cache=True)
def climb_heads_kernel(forest, of_numbers):
    """Sum words and sizes from head to head, or find ranges."""
    node, sums, sizes = _this_node(), forest.sums, forest.size_sums
    is_complete = forest.children[node] == uint32(0)
    while is_complete and _is_head(forest, node):
        parent = forest.tops[low_half(forest.via[node])]
        _give(sums, sizes, node, sums, sizes, parent, of_numbers)
        cuda.threadfence()
        # Counted on from one sum to the next.
        before = cuda.atomic.add(forest.arrived, parent, uint32(1))
        is_complete = uint32(uint32(before + uint32(1)) % forest.children[parent]) == uint32(0)
        node = parent


@cuda.jit(cache=True)
def bring_in_kernel(forest, of_numbers):
    """Give what comes from other tiles to the nodes where it comes in."""
    node, sums, sizes = _this_node(), forest.sums, forest.size_sums
    if _is_head(forest, node):
        parent = low_half(forest.via[node])
        _give(sums, sizes, node, forest.words, forest.sizes, parent, of_numbers)


@cuda.jit(cache=True)
def words_kernel(opened, words, entry, samples, forest, is_red, closing, sums):
    """Find the words of all bonds of the forest, and add bridges, or red bonds, to ``sums[0]``.

    closing: whether they are closed as well, uint32.  Where there is no bond the word is by chance
    no other's, as where two are equal.
    """
    above = cuda.shared.array(TILE, types.uint32)
    left = cuda.shared.array(TILE, types.uint32)
    word = cuda.shared.array(TILE, types.uint64)
    size = cuda.shared.array(TILE, types.uint32)
    node, n = _this_node(), uint32(cuda.threadIdx.x)
    key, via = word_streams(samples[0], samples[uint32(entry[0] + uint32(1))]), forest.via[node]
    word[n], size[n], above[n] = forest.words[node], forest.sizes[node], _parent_in_tile(via)
    _climb(above, left, word, size, uint32(0))
    place = uint64(via >> uint64(32))
    own = uint64(word[n] ^ bond_word(key, place))
    forest.words[node], forest.sizes[node] = own, size[n]
    is_wanted = own == (virtual_word(key) if is_red != uint32(0) else uint64(0))
    if is_wanted and closing != uint32(0):
        bit = uint32(uint32(1) << uint32(place & uint64(31)))
        at = uint32(uint32(entry[0] * words) + uint32(place >> uint64(5)))
        cuda.atomic.and_(opened, at, uint32(~bit))
    _add_up(left, uint32(1) if is_wanted else uint32(0), sums, 0)


@cuda.jit(device=True)
def _add_up(memory, number, sums, k):
    """Add the numbers, uint32, of all threads of a block to ``sums[k]``, uint64."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        memory[0] = uint32(0)
    cuda.syncthreads()
    if number != uint32(0):
        cuda.atomic.add(memory, 0, number)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and memory[0] != uint32(0):
        cuda.atomic.add(sums, k, uint64(memory[0]))


@cuda.jit(cache=True)
def number_kernel(forest):
    """Write the way of every node to the one above; ``ends`` are 0."""
    node = _this_node()
    via, way = forest.via[node], uint64(node)
    if via != uint64(NO_BOND):
        taken = cuda.atomic.add(forest.ends, low_half(via), forest.sizes[node])
        way = uint64(uint64(uint64(taken + uint32(1)) << uint64(32)) | uint64(low_half(via)))
        if forest.words[node] == uint64(0):
            way = uint64(way | uint64(_BRIDGE))
    forest.sums[node] = way


@cuda.jit(cache=True)
def jump_kernel(forest):
    """Follow the ways of all nodes to the root, by those that others have found so far."""
    node = _this_node()
    way = forest.sums[node]
    while forest.via[uint32(way & uint64(_END))] != uint64(NO_BOND):
        further = forest.sums[uint32(way & uint64(_END))]
        longer = uint64(uint64(way & uint64(_LENGTH)) + further)
        way = uint64(longer | uint64(way & uint64(_BRIDGE)))
        forest.sums[node] = way


@cuda.jit(device=True)
def _owner(forest, node):
    """Return the terminal that a site is joined to, or the node itself."""
    return low_half(forest.via[node]) if is_link(forest.via[node]) else node


@cuda.jit(cache=True)
def begin_blocks_kernel(away, forest):
    """Write all numbers, and to which nodes trails come."""
    node = _this_node()
    owner = _owner(forest, node)
    way = forest.sums[owner]
    is_inside = away[0, node] < uint32(UNSEEN) and uint64(way & uint64(_BRIDGE)) == uint64(0)
    forest.marks[node] = uint32(_INSIDE) if is_inside else uint32(0)
    forest.begins[node] = uint32(way >> uint64(32))
    forest.ends[node] = uint32(uint32(way >> uint64(32)) + forest.sizes[owner])


@cuda.jit(cache=True)
def ranges_kernel(net, opened, words, entry, forest):
    """Note which numbers the bonds of every node lead to, and those of its branch in the tile."""
    low = cuda.shared.array(TILE, types.uint64)
    high = cuda.shared.array(TILE, types.uint32)
    above = cuda.shared.array(TILE, types.uint32)
    left = cuda.shared.array(TILE, types.uint32)
    base, tile, n = uint32(entry[0] * words), uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    node = _this_node()
    # The virtual bond of the second terminal leads to the root.
    is_sink = node == uint32(uint32(forest.tops.size - TILE) + uint32(1))
    low[n] = uint64(0) if is_sink else uint64(forest.begins[node])
    high[n], above[n] = forest.begins[node], _parent_in_tile(forest.via[node])
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + n), net.starts[tile + 1], TILE):
        if is_open_bond(opened, base, net.bonds[k]):
            number = forest.begins[low_half(net.bonds[k])]
            cuda.atomic.min(low, net.at[k], uint64(number))
            cuda.atomic.max(high, net.at[k], number)
    cuda.syncthreads()
    forest.words[node], forest.sizes[node] = low[n], high[n]
    _climb(above, left, low, high, uint32(1))
    forest.sums[node], forest.size_sums[node] = low[n], high[n]


@cuda.jit(cache=True)
def fences_kernel(forest):
    """Mark nodes whose bond is no fence, and make every node a block of its own."""
    low = cuda.shared.array(TILE, types.uint64)
    high = cuda.shared.array(TILE, types.uint32)
    above = cuda.shared.array(TILE, types.uint32)
    left = cuda.shared.array(TILE, types.uint32)
    node, n = _this_node(), uint32(cuda.threadIdx.x)
    low[n], high[n], via = forest.words[node], forest.sizes[node], forest.via[node]
    above[n] = _parent_in_tile(via)
    _climb(above, left, low, high, uint32(1))
    forest.tops[node] = node
    if via != uint64(NO_BOND):
        parent = low_half(via)
        if low[n] < uint64(forest.begins[parent]) or high[n] >= forest.ends[parent]:
            forest.marks[node] = uint32(forest.marks[node] | uint32(_NO_FENCE))


@cuda.jit(cache=True)
def join_kernel(net, opened, words, entry, away, forest):
    """Join the blocks of all that is connected with the terminals."""
    base, tile, n = uint32(entry[0] * words), uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    first = uint32(_this_node() - n)
    for k in range(uint32(net.starts[tile] + n), net.starts[tile + 1], TILE):
        node, other = uint32(first + net.at[k]), low_half(net.bonds[k])
        # Each is listed at both ends.
        is_once = node < other and away[0, node] < uint32(UNSEEN)
        if is_once and is_open_bond(opened, base, net.bonds[k]):
            _join(forest, _owner(forest, node), _owner(forest, other))


@cuda.jit(device=True)
def _join(forest, one, other):
    """Join the blocks of two nodes if a bond between them shows that they are one."""
    root = uint32(forest.tops.size - TILE)
    if one == root or other == root:
        return
    below = one if _owner(forest, low_half(forest.via[one])) == other else other
    is_above = _owner(forest, low_half(forest.via[below])) == uint32(uint32(one ^ other) ^ below)
    if not is_above or uint32(forest.marks[below] & uint32(_NO_FENCE)) != uint32(0):
        union(forest.tops, uint32(0), one, other)


@cuda.jit(cache=True)
def mark_block_kernel(forest):
    """Mark the nodes of the backbone."""
    node, root = _this_node(), uint32(forest.tops.size - TILE)
    if forest.marks[node] != uint32(0):
        owner, block = _owner(forest, node), find(forest.tops, uint32(0), uint32(root + uint32(1)))
        if owner == root or find(forest.tops, uint32(0), owner) == block:
            forest.marks[node] = uint32(forest.marks[node] | uint32(_BLOCK))


@cuda.jit(cache=True)
def count_marks_kernel(net, opened, words, entry, forest, sums):
    """Add the bonds of trails, and the bonds and sites of the backbone, to ``sums[1:]``."""
    touched = cuda.shared.array(TILE, types.uint32)
    memory = cuda.shared.array(1, types.uint32)
    base, tile, n = uint32(entry[0] * words), uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    first, trails, bonds = uint32(_this_node() - n), uint32(0), uint32(0)
    # Nothing flows where the second terminal was not reached.
    if forest.via[uint32(uint32(forest.tops.size - TILE) + uint32(1))] == uint64(NO_BOND):
        return
    touched[n] = uint32(0)
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + n), net.starts[tile + 1], TILE):
        node, other = uint32(first + net.at[k]), low_half(net.bonds[k])
        both = uint32(uint32(forest.marks[node]) & uint32(forest.marks[other]))
        if both != uint32(0) and is_open_bond(opened, base, net.bonds[k]):
            # Each is listed at both ends.
            once = uint32(1) if node < other else uint32(0)
            trails = uint32(trails + uint32(both & once))
            if uint32(both & uint32(_BLOCK)) != uint32(0):
                bonds = uint32(bonds + once)
                cuda.atomic.or_(touched, net.at[k], uint32(1))
    _add_up(memory, trails, sums, 1)
    _add_up(memory, bonds, sums, 2)
    _add_up(memory, touched[n], sums, 3)
