"""CUDA: bridges, red bonds, trails and the backbone of one large sample, from its spanning forest.

Sums over branches are computed in three steps: within each tile; then over *heads*, the nodes whose
bond to the parent leads out of their tile, each of which adds its sum to the highest node above it
in the parent's tile; and again within tiles, with the sums from other tiles.  Arrived children are
counted, and the thread of the last one goes on with the parent.

The word of a bond (:mod:`percolab.flows.cycle_words`) is the XOR over its branch of the words of
all open bonds of every node: words of inner bonds cancel.  A site of a terminal has its link in
place of a bond, and its terminal's number.  For the rule of fences (:mod:`.blocks_cuda`) nodes are
numbered from the root down: a branch gets, in any order, as many of its parent's numbers as it has
nodes, and the difference between a node's number and its root's is found by pointer doubling.  The
lowest and highest numbers that bonds lead to are combined as words and sizes are.

Each block has a tile, and each thread a node; arguments as in :mod:`.tile_forest_cuda`.
"""

from numba import types, uint32, uint64

from percolab.flows.cycle_words import bond_word, virtual_word, word_streams
from percolab.flows.search_cuda import UNSEEN as NO_BOND
from percolab.flows.search_cuda import close_bond, low_half
from percolab.flows.tile_forest_cuda import (
    OUT,
    add_up,
    climb,
    end_in_tile,
    first_terminal,
    give,
    high_half,
    this_node,
    whole,
)
from percolab.flows.tile_net import TILE, TILE_BITS
from percolab.kernels.cuda import cuda
from percolab.kernels.union_find import find, union

#: Whether trails reach a node, whether the bond to its parent is no fence, whether it is in the
#: block, whether it is connected with the first terminal.
_INSIDE, _NO_FENCE, _BLOCK, _REACHED = 1, 2, 4, 8
#: Parts of a path towards the root, length << 32 | bridge << 31 | end: length, bridge and end.
_LENGTH, _BRIDGE, _END = 0xFFFFFFFF00000000, 0x80000000, 0x7FFFFFFF


@cuda.jit(device=True)
def _parent_in_tile(via):
    """Return the parent's number in the block's tile, or OUT if it is not there."""
    node = low_half(via)
    if via == uint64(NO_BOND) or uint32(node >> uint32(TILE_BITS)) != uint32(cuda.blockIdx.x):
        return uint32(OUT)
    return uint32(node & uint32(TILE - 1))


@cuda.jit(device=True)
def _is_head(forest, node):
    """Return whether the bond to a node's parent leads to another tile."""
    via = forest.via[node]
    return via != uint64(NO_BOND) and uint32(uint32(low_half(via) ^ node) >> uint32(TILE_BITS)) != 0


@cuda.jit(cache=True)
def count_children_kernel(forest):
    """Count the heads that add their sums to each highest node of a tile."""
    node = this_node()
    if _is_head(forest, node):
        cuda.atomic.add(forest.children, forest.tops[low_half(forest.via[node])], uint32(1))


@cuda.jit(device=True)
def _give_head(sums, sizes, head, to_words, to_sizes, parent, of_numbers):
    """Add the sums of a head to another node.

    Values that other blocks wrote are read by atomics, which bypass the cache.
    """
    word, size = cuda.atomic.or_(sums, head, uint64(0)), cuda.atomic.or_(sizes, head, uint32(0))
    give(word, size, to_words, to_sizes, parent, of_numbers)


@cuda.jit(cache=True)
def climb_heads_kernel(forest, of_numbers):
    """Sum words and sizes from head to head, or find ranges."""
    node, sums, sizes = this_node(), forest.sums, forest.size_sums
    is_complete = forest.children[node] == uint32(0)
    while is_complete and _is_head(forest, node):
        parent = forest.tops[low_half(forest.via[node])]
        _give_head(sums, sizes, node, sums, sizes, parent, of_numbers)
        cuda.threadfence()
        # The count is not reset between launches, hence the modulo.
        before = cuda.atomic.add(forest.arrived, parent, uint32(1))
        is_complete = uint32(uint32(before + uint32(1)) % forest.children[parent]) == uint32(0)
        node = parent


@cuda.jit(cache=True)
def bring_in_kernel(forest, of_numbers):
    """Add the sums of heads from other tiles to their parents."""
    node, sums, sizes = this_node(), forest.sums, forest.size_sums
    if _is_head(forest, node):
        parent = low_half(forest.via[node])
        _give_head(sums, sizes, node, forest.words, forest.sizes, parent, of_numbers)


@cuda.jit(cache=True)
def words_kernel(opened, words, entry, samples, forest, is_red, closing, sums):
    """Find the words of all bonds of the forest, and add bridges, or red bonds, to ``sums[0]``.

    closing: uint32, whether these bonds are closed, too.  Without a bond a node's word matches only
    by chance, as unlikely as two equal words.
    """
    above = cuda.shared.array(TILE, types.uint32)
    left = cuda.shared.array(TILE, types.uint32)
    word = cuda.shared.array((2, TILE), types.uint32)
    size = cuda.shared.array(TILE, types.uint32)
    node, n = this_node(), uint32(cuda.threadIdx.x)
    key, via = word_streams(samples[0], samples[uint32(entry[0] + uint32(1))]), forest.via[node]
    own = forest.words[node]
    word[0, n], word[1, n] = low_half(own), high_half(own)
    size[n], above[n] = forest.sizes[node], _parent_in_tile(via)
    climb(above, word, size, uint32(0))
    place = uint64(via >> uint64(32))
    own = uint64(whole(word, n) ^ bond_word(key, place))
    forest.words[node], forest.sizes[node] = own, size[n]
    is_wanted = own == (virtual_word(key) if is_red != uint32(0) else uint64(0))
    if is_wanted and closing != uint32(0):
        close_bond(opened, uint32(entry[0] * words), uint32(place))
    add_up(left, uint32(1) if is_wanted else uint32(0), sums, 0)


@cuda.jit(cache=True)
def number_kernel(forest):
    """Write the path of every node to its parent; ``ends`` must be 0."""
    node = this_node()
    via, way = forest.via[node], uint64(node)
    if via != uint64(NO_BOND):
        taken = cuda.atomic.add(forest.ends, low_half(via), forest.sizes[node])
        way = uint64(uint64(uint64(taken + uint32(1)) << uint64(32)) | uint64(low_half(via)))
        if forest.words[node] == uint64(0):
            way = uint64(way | uint64(_BRIDGE))
    forest.sums[node] = way


@cuda.jit(cache=True)
def jump_kernel(forest, most):
    """Extend the paths of all nodes towards the root by up to ``most`` of the paths found so far.

    most: uint32.  The path of a root leads to itself.
    """
    node, step = this_node(), uint32(0)
    way = forest.sums[node]
    end = uint32(way & uint64(_END))
    further = forest.sums[end]
    while step < most and uint32(further & uint64(_END)) != end:
        longer = uint64(uint64(way & uint64(_LENGTH)) + further)
        way = uint64(longer | uint64(way & uint64(_BRIDGE)))
        forest.sums[node] = way
        end = uint32(way & uint64(_END))
        further, step = forest.sums[end], uint32(step + uint32(1))


@cuda.jit(cache=True)
def begin_blocks_kernel(net, forest):
    """Write the numbers of all nodes, and mark those that the first terminal, and trails, reach."""
    node = this_node()
    owner = net.owners[node]
    way, marks = forest.sums[owner], uint32(0)
    if find(forest.labels, uint32(0), node) == first_terminal(forest):
        marks = uint32(_REACHED)
        if uint64(way & uint64(_BRIDGE)) == uint64(0):
            marks = uint32(_REACHED | _INSIDE)
    forest.marks[node] = marks
    forest.begins[node] = uint32(way >> uint64(32))
    forest.ends[node] = uint32(uint32(way >> uint64(32)) + forest.sizes[owner])


@cuda.jit(cache=True)
def ranges_kernel(net, forest):
    """Find the range of numbers that every node's bonds, and its branch in the tile, lead to."""
    low = cuda.shared.array((2, TILE), types.uint32)
    high = cuda.shared.array(TILE, types.uint32)
    above = cuda.shared.array(TILE, types.uint32)
    tile, n = uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    node = this_node()
    # The virtual bond of the second terminal leads to the root.
    is_sink = node == uint32(first_terminal(forest) + uint32(1))
    low[0, n] = uint32(0) if is_sink else forest.begins[node]
    high[n], above[n] = forest.begins[node], _parent_in_tile(forest.via[node])
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + n), net.stops[tile], TILE):
        at, number = uint32(net.at[k]), forest.begins[low_half(net.bonds[k])]
        cuda.atomic.min(low, (uint32(0), at), number)
        cuda.atomic.max(high, at, number)
        other, is_within = end_in_tile(tile, low_half(net.bonds[k]))
        if is_within:
            number = forest.begins[uint32(uint32(node - n) + at)]
            cuda.atomic.min(low, (uint32(0), other), number)
            cuda.atomic.max(high, other, number)
    cuda.syncthreads()
    forest.words[node], forest.sizes[node] = uint64(low[0, n]), high[n]
    climb(above, low, high, uint32(1))
    forest.sums[node], forest.size_sums[node] = uint64(low[0, n]), high[n]


@cuda.jit(cache=True)
def fences_kernel(forest):
    """Mark nodes whose bond to the parent is no fence, and make every node a separate block."""
    low = cuda.shared.array((2, TILE), types.uint32)
    high = cuda.shared.array(TILE, types.uint32)
    above = cuda.shared.array(TILE, types.uint32)
    node, n = this_node(), uint32(cuda.threadIdx.x)
    low[0, n], high[n] = low_half(forest.words[node]), forest.sizes[node]
    via = forest.via[node]
    above[n] = _parent_in_tile(via)
    climb(above, low, high, uint32(1))
    forest.tops[node] = node
    if via != uint64(NO_BOND):
        parent = low_half(via)
        if low[0, n] < forest.begins[parent] or high[n] >= forest.ends[parent]:
            forest.marks[node] = uint32(forest.marks[node] | uint32(_NO_FENCE))


@cuda.jit(cache=True)
def join_kernel(net, forest):
    """Join the blocks of all nodes that are connected with the terminals."""
    tile, n = uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    first = uint32(this_node() - n)
    for k in range(uint32(net.starts[tile] + n), net.stops[tile], TILE):
        node, other = uint32(first + uint32(net.at[k])), low_half(net.bonds[k])
        # Bonds between tiles are listed at both ends.
        if node < other and forest.marks[node] != 0:
            _join(net.owners, forest, net.owners[node], net.owners[other])


@cuda.jit(device=True)
def _join(owners, forest, above, below):
    """Join the blocks of two nodes if a bond between them shows that they are in one block.

    A bond from a node to its ancestor does not show this, unless the ancestor is its parent and the
    bond is no fence.
    """
    if forest.begins[above] > forest.begins[below]:
        above, below = below, above
    if above == first_terminal(forest):
        return
    if forest.begins[below] < forest.ends[above]:
        is_next = owners[low_half(forest.via[below])] == above
        if not is_next or uint32(forest.marks[below] & uint32(_NO_FENCE)) == uint32(0):
            return
    union(forest.tops, uint32(0), above, below)


@cuda.jit(cache=True)
def mark_block_kernel(net, forest):
    """Mark the nodes of the backbone."""
    node, root = this_node(), first_terminal(forest)
    if uint32(forest.marks[node] & uint32(_INSIDE)) != uint32(0):
        owner, block = net.owners[node], find(forest.tops, uint32(0), uint32(root + uint32(1)))
        if owner == root or find(forest.tops, uint32(0), owner) == block:
            forest.marks[node] = uint32(forest.marks[node] | uint32(_BLOCK))


@cuda.jit(cache=True)
def count_marks_kernel(net, forest, sums):
    """Add the bonds of trails, and the bonds and sites of the backbone, to ``sums[1:]``."""
    touched = cuda.shared.array(TILE, types.uint32)
    memory = cuda.shared.array(1, types.uint32)
    tile, n = uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    first, trails, bonds = uint32(this_node() - n), uint32(0), uint32(0)
    # Nothing flows if the second terminal was not reached.
    if forest.via[uint32(first_terminal(forest) + uint32(1))] == uint64(NO_BOND):
        return
    touched[n] = uint32(0)
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + n), net.stops[tile], TILE):
        node, other = uint32(first + uint32(net.at[k])), low_half(net.bonds[k])
        both = uint32(uint32(forest.marks[node]) & uint32(forest.marks[other]))
        if uint32(both & uint32(_INSIDE)) != uint32(0):
            # Bonds between tiles are listed at both ends.
            once = uint32(1) if node < other else uint32(0)
            trails = uint32(trails + uint32(both & once))
            if uint32(both & uint32(_BLOCK)) != uint32(0):
                bonds = uint32(bonds + once)
                cuda.atomic.or_(touched, uint32(net.at[k]), uint32(1))
                end, is_within = end_in_tile(tile, other)
                if is_within:
                    cuda.atomic.or_(touched, end, uint32(1))
    add_up(memory, trails, sums, 1)
    add_up(memory, bonds, sums, 2)
    add_up(memory, touched[n], sums, 3)


@cuda.jit(cache=True)
def keep_kernel(sums, entry, numbers):
    """Write an entry's numbers, and go on to the next entry; launch one thread."""
    for k in range(numbers.shape[1]):
        numbers[entry[0], k] = sums[k]
        sums[k] = uint64(0)
    entry[0] = uint32(entry[0] + uint32(1))
