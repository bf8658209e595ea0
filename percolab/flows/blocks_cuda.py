"""CUDA: red bonds, trails and the backbone, a block of threads a sample.

Red bonds and trails follow from words, as in :mod:`percolab.flows.cycle_words`.  The backbone is
the block that has the virtual bond between the terminals, by the rule of *fences*: number the nodes
of the tree so that those of every branch are consecutive.  A bond of the tree from u to v below it
is a fence if no bond leads out of the branch of u from that of v.  The bonds that are no fences,
and those outside of the tree, connect the nodes of each block but its highest; here this is the
first terminal.  Bonds to an ancestor do not, but in a tree of shortest ways there are none but
those that are parallel to a bond of the tree, and the virtual bond.

Source: X. Dong, L. Wang, Y. Gu and Y. Sun, PPoPP 2023 (FAST-BCC).
"""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.flows.cycle_words import virtual_word, word_streams
from percolab.flows.search_cuda import (
    ROOT,
    UNSEEN,
    acts,
    begin_at,
    clear,
    is_open,
    level_range,
    low_half,
    own_rows,
    push_node,
    read_level,
    search,
)
from percolab.kernels.device import load_cuda

cuda = load_cuda()

#: What the words become when they are done with: whether trails come to a node, whether the bond
#: over which it was reached is no fence, and whether it is in the backbone.
_INSIDE, _NO_FENCE, _BLOCK = 1, 2, 4
#: What is found of a sample.
_RED, _TRAILS, _BONDS, _SITES, _SUMS = 0, 1, 2, 3, 4


class Branches(NamedTuple):
    """The branches of a tree, uint32 (blocks, points + 2) each.

    begin: the number of every node, the first of its branch
    end:   one more than the last of its branch; before, where the next node below it begins
    low:   the lowest number that a bond leads to from the branch; before, the size of the branch
    high:  the highest
    """

    begin: Any
    end: Any
    low: Any
    high: Any


@cuda.jit(cache=True)
def backbone_kernel(items, net, opened, words, samples, memory, branches, found):
    """Find the red bonds, trails and the backbone of every sample.

    words: of an item.  samples: the seed, then the items' samples.  found: uint64 (items, 4), the
    red bonds, the bonds of trails, the bonds and the sites of the backbone; 0 where the terminals
    are not connected.
    """
    queued = cuda.shared.array(1, types.uint32)
    sums = cuda.shared.array(_SUMS, types.uint64)
    block, thread = cuda.blockIdx.x, uint32(cuda.threadIdx.x)
    tree, item = own_rows(memory), uint32(cuda.blockIdx.x)
    parts = Branches(
        branches.begin[block], branches.end[block], branches.low[block], branches.high[block]
    )
    root, sink = uint32(net.nodes.size), uint32(net.nodes.size + 1)
    while item < items:
        key = word_streams(samples[0], samples[uint32(item + uint32(1))])
        base = uint32(item * words)
        clear(tree.via, uint64(UNSEEN))
        clear(parts.low, uint32(1))
        cuda.syncthreads()
        begin_at(net.source, tree.queue, queued)
        if thread == uint32(0):
            tree.via[root], tree.words[root] = uint64(ROOT), uint64(0)
            for n in range(_SUMS):
                sums[n] = uint64(0)
        levels = search(net, opened, base, key, tree, queued)
        if tree.via[sink] != uint64(UNSEEN):
            reached = tree.levels[uint32(levels - uint32(1))]
            if thread == uint32(0):
                tree.words[sink] = uint64(tree.words[sink] ^ virtual_word(key))
            red = _add_up(net, tree, parts, levels, virtual_word(key))
            _number(net, tree, parts, levels)
            trails = _look_around(net, opened, base, tree, parts, reached)
            _find_fences(net, tree, parts, levels)
            size = _join_block(net, opened, base, tree, queued)
            bonds, sites = _count_block(net, opened, base, tree, size)
            cuda.atomic.add(sums, _RED, red)
            cuda.atomic.add(sums, _TRAILS, trails)
            cuda.atomic.add(sums, _BONDS, bonds)
            cuda.atomic.add(sums, _SITES, sites)
        cuda.syncthreads()
        if thread == uint32(0):
            found[item, _RED], found[item, _SITES] = sums[_RED], sums[_SITES]
            # Each of these bonds was counted at both ends.
            found[item, _TRAILS] = uint64(sums[_TRAILS] >> uint64(1))
            found[item, _BONDS] = uint64(sums[_BONDS] >> uint64(1))
        cuda.syncthreads()
        item = uint32(item + uint32(cuda.gridDim.x))


@cuda.jit(device=True)
def _add_up(net, tree, parts, levels, virtual):
    """Sum words and sizes up the tree; return how many red bonds this thread came by."""
    red, level = uint64(0), levels
    while level > uint32(1):
        level = uint32(level - uint32(1))
        cuda.syncthreads()
        n, last = level_range(tree, level)
        while n < last:
            site = tree.queue[n]
            node = net.nodes[site]
            if acts(net, site, node):
                word, above = tree.words[node], low_half(tree.via[node])
                if word == virtual:
                    red = uint64(red + uint64(1))
                cuda.atomic.xor(tree.words, above, word)
                cuda.atomic.add(parts.low, above, parts.low[node])
            n = uint32(n + uint32(cuda.blockDim.x))
    return red


@cuda.jit(device=True)
def _number(net, tree, parts, levels):
    """Number the nodes, and say to which trails come."""
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
    """Note which numbers bonds of trails lead to; return how many ends of these there were."""
    trails, sink = uint64(0), uint32(net.nodes.size + 1)
    n = uint32(cuda.threadIdx.x)
    while n < reached:
        site = tree.queue[n]
        node = net.nodes[site]
        # No bond leads back from what a bridge cuts off.
        if tree.words[node] != uint64(0):
            low = high = parts.begin[node]
            for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
                bond = net.bonds[k]
                if is_open(opened, base, bond):
                    other = low_half(bond)
                    trails = uint64(trails + tree.words[other])
                    low, high = min(low, parts.begin[other]), max(high, parts.begin[other])
            if node == sink:
                # The virtual bond leads to the root.
                low = uint32(0)
            cuda.atomic.min(parts.low, node, low)
            cuda.atomic.max(parts.high, node, high)
        n = uint32(n + uint32(cuda.blockDim.x))
    return trails


@cuda.jit(device=True)
def _find_fences(net, tree, parts, levels):
    """Find the bonds of the tree that are no fences, among those of trails."""
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
def _joins(tree, node, other, place):
    """Return whether an open bond between two nodes, none of them the root, is within a block."""
    own, others = tree.via[node], tree.via[other]
    if uint64(own >> uint64(32)) == place:
        return uint64(tree.words[node] & uint64(_NO_FENCE)) != uint64(0)
    if uint64(others >> uint64(32)) == place:
        return uint64(tree.words[other] & uint64(_NO_FENCE)) != uint64(0)
    return low_half(own) != other and low_half(others) != node


@cuda.jit(device=True)
def _join_block(net, opened, base, tree, queued):
    """Mark the nodes of the backbone; return how many sites are queued, those of the root not."""
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    root, sink = uint32(net.nodes.size), uint32(net.nodes.size + 1)
    begin_at(net.target, tree.queue, queued)
    if thread == uint32(0):
        tree.words[root] = uint64(tree.words[root] | uint64(_BLOCK))
        tree.words[sink] = uint64(tree.words[sink] | uint64(_BLOCK))
    first = uint32(0)
    while True:
        last = read_level(queued)
        if first == last:
            return last
        n = uint32(first + thread)
        while n < last:
            site = tree.queue[n]
            node = net.nodes[site]
            for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
                bond = net.bonds[k]
                other = low_half(bond)
                is_marked = uint64(tree.words[other] & uint64(_BLOCK)) != uint64(0)
                if is_marked or not is_open(opened, base, bond):
                    continue
                if _joins(tree, node, other, uint64(bond >> uint64(32))):
                    old = cuda.atomic.or_(tree.words, other, uint64(_BLOCK))
                    if uint64(old & uint64(_BLOCK)) == uint64(0):
                        push_node(net, tree.queue, queued, other)
            n = uint32(n + threads)
        first = last


@cuda.jit(device=True)
def _count_block(net, opened, base, tree, size):
    """Return how many ends of bonds and how many sites of the backbone this thread came by."""
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    bonds, sites = uint64(0), uint64(0)
    n = thread
    while n < uint32(size + uint32(net.source.size)):
        site = tree.queue[n] if n < size else net.source[uint32(n - size)]
        before = bonds
        for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
            bond = net.bonds[k]
            if is_open(opened, base, bond):
                marks = tree.words[low_half(bond)]
                bonds = uint64(bonds + uint64((marks & uint64(_BLOCK)) >> uint64(2)))
        if bonds != before:
            sites = uint64(sites + uint64(1))
        n = uint32(n + threads)
    return bonds, sites
