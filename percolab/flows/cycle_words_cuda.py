"""CUDA: the number of bridges (:mod:`percolab.flows.cycle_words`), a block of threads a sample."""

from numba import types, uint32, uint64

from percolab.flows.cycle_words import word_streams
from percolab.flows.search_cuda import ROOT, UNSEEN, Tree, add_up, push, search
from percolab.kernels.device import load_cuda

cuda = load_cuda()


@cuda.jit(cache=True)
def bridges_kernel(items, net, opened, words, samples, labels, memory, closing, found):
    """Count the bridges of every sample, from its labels, uint32 (items * points,).

    closing: whether they are closed as well, uint32.  net: without terminals.  words: of an item.
    samples: the seed, then the items' samples.
    found: uint64 (items, 1).
    """
    queued = cuda.shared.array(1, types.uint32)
    bridges = cuda.shared.array(1, types.uint64)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    n, item, points = cuda.blockIdx.x, uint32(cuda.blockIdx.x), uint32(net.nodes.size)
    tree = Tree(memory.via[n], memory.words[n], memory.queue[n], memory.levels[n])
    while item < items:
        key = word_streams(samples[0], samples[uint32(item + uint32(1))])
        if thread == uint32(0):
            queued[0], bridges[0] = uint32(0), uint64(0)
        cuda.syncthreads()
        site = thread
        while site < points:
            is_root = labels[uint32(uint32(item * points) + site)] == site
            tree.via[site] = uint64(ROOT) if is_root else uint64(UNSEEN)
            if is_root:
                tree.words[site] = uint64(0)
                push(tree.queue, queued, site)
            site = uint32(site + threads)
        base = uint32(item * words)
        levels = search(net, opened, base, key, tree, queued)
        cuda.atomic.add(bridges, 0, add_up(net, tree, None, levels, uint64(0)))
        if closing:
            _close_bridges(tree, opened, base, points)
        cuda.syncthreads()
        if thread == uint32(0):
            found[item, 0] = bridges[0]
        item = uint32(item + uint32(cuda.gridDim.x))


@cuda.jit(device=True)
def _close_bridges(tree, opened, base, points):
    """Close the bonds with the word 0."""
    cuda.syncthreads()
    n = uint32(cuda.threadIdx.x)
    while n < points:
        if tree.via[n] != uint64(ROOT) and tree.words[n] == uint64(0):
            place = uint32(tree.via[n] >> uint64(32))
            bit = uint32(uint32(1) << uint32(place & uint32(31)))
            cuda.atomic.and_(opened, uint32(base + uint32(place >> uint32(5))), uint32(~bit))
        n = uint32(n + uint32(cuda.blockDim.x))
