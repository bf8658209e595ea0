"""CUDA: a spanning forest of one large sample, made by all blocks together.

Within each tile open bonds join nodes to *pieces*, and bonds between tiles join pieces to clusters;
a bond that joins two trees belongs to the forest.  Then the forest is oriented.  A piece with only
one bond of the forest has this bond to its parent; when it is removed, another piece may have only
one bond, and so on until the roots remain.  The first terminal is a root, and a second one that is
connected to it is below it.  Pieces store the sums of the nodes at the far and near ends of their
bonds, so the last bond is known without a list.  Nodes are oriented likewise within tiles, where
the root of every piece is its way out.

Within tiles the sites of a terminal are not joined; their bonds lead to the terminal's piece.  The
forest may differ from run to run; no result depends on it.

Each block has a tile, and each thread a node, except when pieces are oriented.
net: :class:`~percolab.flows.open_bonds_cuda.OpenNet`.  opened: uint32, bond words, ``words`` per
entry; entry: uint32 (1,), the current entry.
"""

from typing import Any, NamedTuple

from numba import int32, types, uint32, uint64

from percolab.flows.cycle_words import bond_word, virtual_word, word_streams
from percolab.flows.search_cuda import UNSEEN as NO_BOND
from percolab.flows.search_cuda import low_half
from percolab.flows.tile_net import TILE, TILE_BITS
from percolab.kernels.cuda import cuda
from percolab.kernels.union_find import find

#: The parent of a node in its tile if its bond leads out of the tile, or if it has none.
OUT = 0xFFFFFFFF
#: The place in ``via`` of the link from a site to its terminal.
_LINK = 0xFFFFFFFF
#: Increments that count bonds of a piece, and of a node in its tile, above the sum of their ends.
_PIECE_BOND, _NODE_BOND = 1 << 40, 1 << 20


class TileForest(NamedTuple):
    """A forest and sums over its branches, with one number for every node.

    While the forest is made, ``sums`` has for pieces: bonds << 40 | sum of their far ends,
    ``size_sums`` the sum of their near ends, ``sizes`` for nodes: bonds in the tile << 20 | sum of
    their other ends, ``tops`` the piece of every node; ``arrived`` lists pieces with one bond.

    labels:    uint32, union-find trees of pieces: a node nearer to the root; a root has itself
    via:       uint64, place << 32 | node of the bond to the parent, NO_BOND if there is none
    words:     uint64, of all bonds of each node, with words from other tiles; then of the bond to
               its parent; then the lowest number that its bonds lead to
    sums:      uint64, for heads the words of their branches; then paths of all nodes towards the
               root; then lowest numbers
    sizes:     uint32, of nodes, like words; then of branches; then highest numbers
    size_sums: uint32, for heads the sizes of their branches; then highest numbers
    tops:      uint32, the highest node in the tile above each node; then blocks
    children:  uint32, how many heads lead to each of these
    arrived:   uint32, how many of these heads have delivered their sums
    begins:    uint32, the number of every node, the first of its branch; this and the next two are
               for backbones only
    ends:      uint32, one more than the branch's last; before that, numbers assigned below the node
    marks:     uint8
    """

    labels: Any
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
def this_node():
    """Return the node of this thread; its block has the tile."""
    return uint32(uint32(cuda.blockIdx.x << TILE_BITS) + uint32(cuda.threadIdx.x))


@cuda.jit(device=True)
def first_terminal(forest):
    """Return the node of the first terminal; the next node is the second terminal."""
    return uint32(forest.tops.size - TILE)


@cuda.jit(device=True)
def end_in_tile(tile, node):
    """Return a node's number within its tile, and whether that tile is ``tile``."""
    return uint32(node & uint32(TILE - 1)), uint32(node >> uint32(TILE_BITS)) == tile


@cuda.jit(device=True)
def _find_in_tile(labels, n):
    """Return the root of a node in its tile, and shorten the path; labels: uint32, by atomics."""
    label = cuda.atomic.or_(labels, n, uint32(0))
    while label != n:
        further = cuda.atomic.or_(labels, label, uint32(0))
        if further != label:
            cuda.atomic.min(labels, n, further)
        n, label = label, further
    return n


@cuda.jit(cache=True)
def pieces_kernel(net, forest):
    """Join the nodes of every tile to pieces, and sum up the bonds that join them."""
    labels = cuda.shared.array(TILE, types.uint32)
    trees = cuda.shared.array(TILE, types.uint32)
    apart = cuda.shared.array(TILE, types.uint8)
    tile, n, node = uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x), this_node()
    owner = net.owners[node]
    labels[n], trees[n], apart[n] = n, uint32(0), owner != node
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + n), net.stops[tile], TILE):
        bond, one = net.bonds[k], uint32(net.at[k])
        other, is_within = end_in_tile(tile, low_half(bond))
        if is_within and apart[one] == 0 and apart[other] == 0:
            high, low = _find_in_tile(labels, one), _find_in_tile(labels, other)
            is_tree = False
            while high != low and not is_tree:
                if high < low:
                    high, low = low, high
                old = cuda.atomic.cas(labels, high, high, low)
                is_tree = old == high
                high = _find_in_tile(labels, old)
            if is_tree:
                cuda.atomic.add(trees, one, uint32(uint32(_NODE_BOND) + other))
                cuda.atomic.add(trees, other, uint32(uint32(_NODE_BOND) + one))
    cuda.syncthreads()
    if owner == node:
        owner = uint32(uint32(node - n) + _find_in_tile(labels, n))
    forest.labels[node] = forest.tops[node] = owner
    forest.via[node], forest.sums[node] = uint64(NO_BOND), uint64(0)
    forest.sizes[node], forest.size_sums[node] = trees[n], uint32(0)


@cuda.jit(cache=True)
def join_pieces_kernel(net, forest):
    """Join pieces to clusters, and sum up the bonds that join them."""
    tile, n = uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    first = uint32(tile << uint32(TILE_BITS))
    for k in range(uint32(net.starts[tile] + n), net.stops[tile], TILE):
        bond, near = net.bonds[k], uint32(first + uint32(net.at[k]))
        far = low_half(bond)
        # Bonds between tiles are listed at both ends.
        if near < far:
            one, other = net.owners[near], net.owners[far]
            is_within = uint32(far >> uint32(TILE_BITS)) == tile and one == near and other == far
            if not is_within and _unite(forest, one, other):
                _add_bond(forest, one, near, far)
                _add_bond(forest, other, far, near)


@cuda.jit(device=True)
def _unite(forest, one, other):
    """Join the trees of two nodes; return whether they were apart.  The first terminal is a root.

    A label that was read may be outdated, further from the root; atomics return current ones.
    """
    labels, terminal = forest.labels, first_terminal(forest)
    high, low = find(labels, uint32(0), one), find(labels, uint32(0), other)
    while high != low:
        # Numbers are counted from the first terminal, so that it is the lowest.
        if uint32(high - terminal) < uint32(low - terminal):
            high, low = low, high
        old = cuda.atomic.cas(labels, high, high, low)
        if old == high:
            return True
        high = find(labels, uint32(0), old)
    return False


@cuda.jit(device=True)
def _add_bond(forest, node, near, far):
    """Add a bond of the forest to the piece that a node is in."""
    piece = forest.tops[node]
    cuda.atomic.add(forest.sums, piece, uint64(uint64(_PIECE_BOND) + uint64(far)))
    cuda.atomic.add(forest.size_sums, piece, near)


@cuda.jit(device=True)
def _is_lowest(forest, piece, bonds):
    """Return whether a piece has one bond left and is not a root."""
    is_root = forest.labels[piece] == piece
    return uint64(bonds >> uint64(40)) == uint64(1) and not is_root


@cuda.jit(cache=True)
def list_lowest_kernel(forest, count):
    """List the pieces that have one bond, and add their number to ``count``, uint32 (1,)."""
    listed = cuda.shared.array(2, types.uint32)
    node, place = this_node(), uint32(0)
    is_listed = forest.tops[node] == node and _is_lowest(forest, node, forest.sums[node])
    if cuda.threadIdx.x == 0:
        listed[0] = uint32(0)
    cuda.syncthreads()
    if is_listed:
        place = cuda.atomic.add(listed, 0, uint32(1))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        listed[1] = cuda.atomic.add(count, 0, listed[0])
    cuda.syncthreads()
    if is_listed:
        forest.arrived[uint32(listed[1] + place)] = node


@cuda.jit(cache=True)
def orient_kernel(forest, count):
    """Leave every piece, except roots, only the bond to its parent, starting at the lowest."""
    n = uint32(cuda.grid(1))
    while n < count[0]:
        piece = forest.arrived[n]
        bonds, near, is_lowest = forest.sums[piece], forest.size_sums[piece], True
        while is_lowest:
            far = low_half(bonds)
            above, own = forest.tops[far], uint64(uint64(_PIECE_BOND) + uint64(near))
            cuda.atomic.sub(forest.size_sums, above, far)
            cuda.threadfence()
            bonds = uint64(cuda.atomic.add(forest.sums, above, uint64(uint64(0) - own)) - own)
            cuda.threadfence()
            is_lowest = _is_lowest(forest, above, bonds)
            piece = above
            near = cuda.atomic.add(forest.size_sums, piece, uint32(0))
        n = uint32(n + uint32(cuda.gridsize(1)))


@cuda.jit(cache=True)
def branches_kernel(net, entry, samples, forest):
    """Find the bond above every node, and sum up the forest within tiles of sites."""
    above = cuda.shared.array(TILE, types.uint32)
    left = cuda.shared.array(TILE, types.uint32)
    target = cuda.shared.array(TILE, types.uint32)
    size = cuda.shared.array(TILE, types.uint32)
    via = cuda.shared.array(TILE, types.uint64)
    word = cuda.shared.array((2, TILE), types.uint32)
    tile, n = uint32(cuda.blockIdx.x), uint32(cuda.threadIdx.x)
    key = word_streams(samples[0], samples[uint32(entry[0] + uint32(1))])
    node = this_node()
    owner, piece, first = net.owners[node], forest.tops[node], uint32(node - n)
    # The bond out of the piece to its parent: its near end and its far end.
    near, far = piece, uint32(OUT)
    if forest.labels[piece] != piece:
        near, far = forest.size_sums[piece], low_half(forest.sums[piece])
    is_out = node == near or owner != node
    via[n], word[0, n], word[1, n], size[n] = uint64(NO_BOND), uint32(0), uint32(0), uint32(1)
    above[n], left[n] = uint32(OUT), forest.sizes[node]
    cuda.syncthreads()
    _orient_in_tile(above, left, is_out)
    cuda.syncthreads()
    target[n] = far if node == near else uint32(OUT)
    # The bond out of a piece may lead to a terminal's site in the same tile.
    there, leads_in = end_in_tile(tile, far)
    leads_in = leads_in and owner == node
    if leads_in and node == near:
        above[n] = there
    if above[n] != uint32(OUT):
        target[n] = uint32(first + above[n])
    cuda.syncthreads()
    for k in range(uint32(net.starts[tile] + n), net.stops[tile], TILE):
        bond, at = net.bonds[k], uint32(net.at[k])
        own = bond_word(key, uint64(bond >> uint64(32)))
        _add_word(word, at, low_half(own), high_half(own))
        if low_half(bond) == target[at]:
            cuda.atomic.min(via, at, bond)
        other, is_within = end_in_tile(tile, low_half(bond))
        if is_within:
            _add_word(word, other, low_half(own), high_half(own))
            if target[other] == uint32(first + at):
                back = uint64(bond & uint64(0xFFFFFFFF00000000))
                cuda.atomic.min(via, other, uint64(back | uint64(target[other])))
    cuda.syncthreads()
    if owner != node:
        # The node by which a site was reached is its terminal's parent; the terminal is the site's.
        if via[n] != uint64(NO_BOND):
            forest.via[owner] = via[n]
        via[n] = uint64(uint64(uint64(_LINK) << uint64(32)) | uint64(owner))
    forest.via[node], forest.words[node], forest.sizes[node] = via[n], whole(word, n), uint32(1)
    forest.children[node] = forest.arrived[node] = uint32(0)
    is_top = above[n] == uint32(OUT)
    climb(above, word, size, uint32(0))
    if is_top:
        forest.sums[node], forest.size_sums[node] = whole(word, n), size[n]
    forest.tops[node] = far if leads_in else (near if owner == node else node)


@cuda.jit(device=True)
def _orient_in_tile(above, bonds, is_out):
    """Write the parent of every node to ``above``, uint32, except for the pieces' ways out.

    bonds: uint32, for every node bonds << 20 | sum of their other ends; bonds to its children are
    subtracted.
    """
    node = uint32(cuda.threadIdx.x)
    own = bonds[node]
    cuda.syncthreads()
    if is_out:
        # A way out never has one bond left.
        cuda.atomic.add(bonds, node, uint32(2 * _NODE_BOND))
    cuda.syncthreads()
    is_lowest = not is_out and uint32(own >> uint32(20)) == uint32(1)
    while is_lowest:
        parent = uint32(own & uint32(_NODE_BOND - 1))
        above[node] = parent
        less = uint32(uint32(_NODE_BOND) + node)
        own = uint32(cuda.atomic.sub(bonds, parent, less) - less)
        is_lowest = uint32(own >> uint32(20)) == uint32(1)
        node = parent


@cuda.jit(cache=True)
def terminals_kernel(entry, samples, forest):
    """Initialize the tile of the terminals; launch one block."""
    node = uint32(first_terminal(forest) + uint32(cuda.threadIdx.x))
    key = word_streams(samples[0], samples[uint32(entry[0] + uint32(1))])
    word = virtual_word(key) if cuda.threadIdx.x == 1 else uint64(0)
    forest.words[node] = forest.sums[node] = word
    forest.tops[node], forest.children[node], forest.arrived[node] = node, uint32(0), uint32(0)
    forest.sizes[node] = forest.size_sums[node] = uint32(1)


@cuda.jit(device=True)
def high_half(word):
    """Return the upper 32 bits of a word."""
    return uint32(word >> uint64(32))


@cuda.jit(device=True)
def whole(word, n):
    """Return a word of a tile from its two halves."""
    return uint64(uint64(uint64(word[1, n]) << uint64(32)) | uint64(word[0, n]))


@cuda.jit(device=True)
def _add_word(word, n, low, high):
    """XOR the halves of a word into those of a node in the tile."""
    cuda.atomic.xor(word, (uint32(0), n), low)
    cuda.atomic.xor(word, (uint32(1), n), high)


@cuda.jit(device=True)
def climb(above, word, size, of_numbers):
    """Sum words and sizes, uint32, of a tile's nodes up the forest, or find their ranges.

    above: uint32, the parent of every node, or OUT; in the end all are OUT.  word: uint32
    (2, TILE), lower and upper halves, since the only 64-bit atomic in shared memory is
    compare-and-swap.  of_numbers: uint32, whether ``word[0]`` and ``size`` are ranges of numbers.

    After k rounds a node has the sum over all nodes less than 2^k levels below it, and adds it to
    the node 2^k levels above it.
    """
    node = uint32(cuda.threadIdx.x)
    for _ in range(TILE_BITS):
        cuda.syncthreads()
        parent, further = above[node], uint32(OUT)
        if parent != uint32(OUT):
            further = above[parent]
        low, high, own_size = word[0, node], word[1, node], size[node]
        if cuda.syncthreads_or(int32(parent != uint32(OUT))) == 0:
            break
        above[node] = further
        if parent != uint32(OUT):
            if of_numbers == uint32(0):
                _add_word(word, parent, low, high)
                cuda.atomic.add(size, parent, own_size)
            else:
                cuda.atomic.min(word, (uint32(0), parent), low)
                cuda.atomic.max(size, parent, own_size)
    cuda.syncthreads()


@cuda.jit(device=True)
def give(word, size, to_words, to_sizes, parent, of_numbers):
    """Add a word and a size to those of a node, or widen the range of the node."""
    if of_numbers == uint32(0):
        cuda.atomic.xor(to_words, parent, word)
        cuda.atomic.add(to_sizes, parent, size)
    else:
        cuda.atomic.min(to_words, parent, word)
        cuda.atomic.max(to_sizes, parent, size)


@cuda.jit(device=True)
def add_up(memory, number, sums, k):
    """Add the numbers, uint32, of all threads in a block to ``sums[k]``, uint64."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        memory[0] = uint32(0)
    cuda.syncthreads()
    if number != uint32(0):
        cuda.atomic.add(memory, 0, number)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and memory[0] != uint32(0):
        cuda.atomic.add(sums, k, uint64(memory[0]))
