"""CUDA: red bonds, trails and the backbone, with a block of threads for each sample.

Red bonds and trails follow from words, as in :mod:`percolab.flows.cycle_words`.  The backbone is
the block that contains the virtual bond between the terminals, found by the rule of *fences*:
number the nodes of the tree so that those of every branch are consecutive.  A tree bond from u to
its child v is a fence if no bond leads from the branch of v out of the branch of u.  Tree bonds
that are no fences, and bonds outside the tree, connect all nodes of a block except its highest one,
here the first terminal.  Bonds to an ancestor do not connect, but in a breadth-first tree only the
virtual bond and bonds parallel to tree bonds, which add nothing, are of this kind.

Source: X. Dong, L. Wang, Y. Gu and Y. Sun, PPoPP 2023 (FAST-BCC).
"""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.flows.cycle_words import virtual_word, word_streams
from percolab.flows.search_cuda import (
    ROOT,
    UNSEEN,
    Tree,
    acts,
    add_up,
    begin_at,
    clear,
    is_open,
    level_range,
    low_half,
    push_node,
    read_level,
    search,
)
from percolab.kernels.cuda import cuda

#: Flags that replace words no longer needed: whether trails reach a node, whether the bond by
#: which it was reached is no fence, and whether it is in the backbone.
_INSIDE, _NO_FENCE, _BLOCK = 1, 2, 4
#: Indices of a sample's sums.
_RED, _TRAILS, _BONDS, _SITES, _SUMS = 0, 1, 2, 3, 4


class Branches(NamedTuple):
    """The branches of a tree, uint32 (blocks, points + 2) each.

    begin: the number of every node, the first of its branch
    end:   one more than the last of its branch; before that, where its next child begins
    low:   the lowest number that a bond leads to from the branch; before that, the branch's size
    high:  the highest number that a bond leads to from the branch
    """

    begin: Any
    end: Any
    low: Any
    high: Any


@cuda.jit(cache=True)
def backbone_kernel(entries, net, opened, words, samples, memory, branches, numbers):
    """Find the red bonds, trails and the backbone of every sample.

    words: per entry.  samples: the seed, then the entries' samples.  numbers: uint64 (entries, 4),
    the numbers of red bonds, of bonds on trails, and of bonds and sites of the backbone; 0 where
    the terminals are not connected.
    """
    queued = cuda.shared.array(1, types.uint32)
    sums = cuda.shared.array(_SUMS, types.uint64)
    n, thread, entry = cuda.blockIdx.x, uint32(cuda.threadIdx.x), uint32(cuda.blockIdx.x)
    tree = Tree(memory.via[n], memory.words[n], memory.queue[n], memory.levels[n])
    parts = Branches(branches.begin[n], branches.end[n], branches.low[n], branches.high[n])
    root, sink = uint32(net.nodes.size), uint32(net.nodes.size + 1)
    while entry < entries:
        key = word_streams(samples[0], samples[uint32(entry + uint32(1))])
        base = uint32(entry * words)
        clear(tree.via, uint64(UNSEEN))
        clear(parts.low, uint32(1))
        cuda.syncthreads()
        begin_at(net.source, tree.queue, queued)
        if thread == uint32(0):
            tree.via[root], tree.words[root] = uint64(ROOT), uint64(0)
            for k in range(_SUMS):
                sums[k] = uint64(0)
        levels = search(net, opened, base, key, tree, queued)
        if tree.via[sink] != uint64(UNSEEN):
            reached = tree.levels[uint32(levels - uint32(1))]
            if thread == uint32(0):
                tree.words[sink] = uint64(tree.words[sink] ^ virtual_word(key))
            red = add_up(net, tree, parts.low, levels, virtual_word(key))
            _number(net, tree, parts, levels)
            _look_around(net, opened, base, tree, parts, reached)
            _find_fences(net, tree, parts, levels)
            # parts.begin is no longer needed, so it becomes the queue.
            _join_block(net, opened, base, tree, parts.begin, queued)
            _count_marks(net, opened, base, tree, reached, sums)
            cuda.atomic.add(sums, _RED, red)
        cuda.syncthreads()
        if thread == uint32(0):
            numbers[entry, _RED], numbers[entry, _SITES] = sums[_RED], sums[_SITES]
            # Each of these bonds was counted at both ends.
            numbers[entry, _TRAILS] = uint64(sums[_TRAILS] >> uint64(1))
            numbers[entry, _BONDS] = uint64(sums[_BONDS] >> uint64(1))
        cuda.syncthreads()
        entry = uint32(entry + uint32(cuda.gridDim.x))


@cuda.jit(device=True)
def _number(net, tree, parts, levels):
    """Number the nodes, and mark those that trails reach."""
    root = uint32(net.nodes.size)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        parts.begin[root], parts.end[root] = uint32(0), uint32(1)
        tree.words[root] = uint64(_INSIDE)
    level = uint32(1)
    while level < levels:
        cuda.syncthreads()
        n, last = level_range(tree, level)
        while n < last:
            site = tree.queue[n]
            node = net.nodes[site]
            if acts(net, site, node):
                above = low_half(tree.via[node])
                begin = cuda.atomic.add(parts.end, above, parts.low[node])
                parts.begin[node], parts.end[node] = begin, uint32(begin + uint32(1))
                parts.low[node] = parts.high[node] = begin
                is_bridge = tree.words[node] == uint64(0)
                tree.words[node] = uint64(0) if is_bridge else tree.words[above]
            n = uint32(n + uint32(cuda.blockDim.x))
        level = uint32(level + uint32(1))
    cuda.syncthreads()


@cuda.jit(device=True)
def _look_around(net, opened, base, tree, parts, reached):
    """Find the lowest and highest numbers that bonds lead to, for every node on trails."""
    sink, n = uint32(net.nodes.size + 1), uint32(cuda.threadIdx.x)
    while n < reached:
        site = tree.queue[n]
        node = net.nodes[site]
        # The part that a bridge cuts off has no bonds to the rest.
        if tree.words[node] != uint64(0):
            low = high = parts.begin[node]
            for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
                if is_open(opened, base, net.bonds[k]):
                    number = parts.begin[low_half(net.bonds[k])]
                    low, high = min(low, number), max(high, number)
            # The virtual bond leads to the root.
            cuda.atomic.min(parts.low, node, uint32(0) if node == sink else low)
            cuda.atomic.max(parts.high, node, high)
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _find_fences(net, tree, parts, levels):
    """Mark the tree bonds on trails that are no fences."""
    level = levels
    while level > uint32(1):
        level = uint32(level - uint32(1))
        cuda.syncthreads()
        n, last = level_range(tree, level)
        while n < last:
            site = tree.queue[n]
            node = net.nodes[site]
            if tree.words[node] != uint64(0) and acts(net, site, node):
                above, low, high = low_half(tree.via[node]), parts.low[node], parts.high[node]
                if low < parts.begin[above] or high >= parts.end[above]:
                    tree.words[node] = uint64(tree.words[node] | uint64(_NO_FENCE))
                cuda.atomic.min(parts.low, above, low)
                cuda.atomic.max(parts.high, above, high)
            n = uint32(n + uint32(cuda.blockDim.x))
    cuda.syncthreads()


@cuda.jit(device=True)
def _joins(tree, node, other):
    """Return whether a bond shows that its two nodes, neither of them the root, share a block."""
    if low_half(tree.via[node]) == other:
        return uint64(tree.words[node] & uint64(_NO_FENCE)) != uint64(0)
    if low_half(tree.via[other]) == node:
        return uint64(tree.words[other] & uint64(_NO_FENCE)) != uint64(0)
    return True


@cuda.jit(device=True)
def _join_block(net, opened, base, tree, queue, queued):
    """Mark the nodes of the backbone by a search from the second terminal."""
    root, sink = uint32(net.nodes.size), uint32(net.nodes.size + 1)
    begin_at(net.target, queue, queued)
    if cuda.threadIdx.x == 0:
        tree.words[root] = uint64(tree.words[root] | uint64(_BLOCK))
        tree.words[sink] = uint64(tree.words[sink] | uint64(_BLOCK))
    first, last = uint32(0), read_level(queued)
    while first != last:
        n = uint32(first + uint32(cuda.threadIdx.x))
        while n < last:
            site = queue[n]
            node = net.nodes[site]
            for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
                other = low_half(net.bonds[k])
                is_marked = uint64(tree.words[other] & uint64(_BLOCK)) != uint64(0)
                if is_marked or not is_open(opened, base, net.bonds[k]):
                    continue
                if _joins(tree, node, other):
                    old = cuda.atomic.or_(tree.words, other, uint64(_BLOCK))
                    if uint64(old & uint64(_BLOCK)) == uint64(0):
                        push_node(net, queue, queued, other)
            n = uint32(n + uint32(cuda.blockDim.x))
        first, last = last, read_level(queued)


@cuda.jit(device=True)
def _count_marks(net, opened, base, tree, reached, sums):
    """Count marked sites, and bonds between marked nodes, each bond once at either end."""
    trails, bonds, sites, n = uint64(0), uint64(0), uint64(0), uint32(cuda.threadIdx.x)
    while n < reached:
        site, before = tree.queue[n], bonds
        mark = tree.words[net.nodes[site]]
        if mark != uint64(0):
            for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
                if is_open(opened, base, net.bonds[k]):
                    both = uint64(mark & tree.words[low_half(net.bonds[k])])
                    trails = uint64(trails + uint64(both & uint64(_INSIDE)))
                    bonds = uint64(bonds + uint64(uint64(both & uint64(_BLOCK)) >> uint64(2)))
        if bonds != before:
            sites = uint64(sites + uint64(1))
        n = uint32(n + uint32(cuda.blockDim.x))
    cuda.atomic.add(sums, _TRAILS, trails)
    cuda.atomic.add(sums, _BONDS, bonds)
    cuda.atomic.add(sums, _SITES, sites)
