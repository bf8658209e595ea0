"""CUDA: number of bridges (:mod:`percolab.flows.cycle_words`), a block of threads per sample."""

from numba import types, uint32, uint64

from percolab.flows.cycle_words import word_streams
from percolab.flows.search_cuda import ROOT, UNSEEN, Tree, add_up, close_bond, push, search
from percolab.kernels.cuda import cuda


@cuda.jit(cache=True)
def bridges_kernel(entries, net, opened, words, samples, labels, memory, closing, numbers):
    """Count the bridges of every sample, from its labels, uint32 (entries * points,).

    closing: uint32, whether to close bridges, too.  net: without terminals.  words: per entry.
    samples: the seed, then the entries' samples.  numbers: uint64 (entries, 1).
    """
    queued = cuda.shared.array(1, types.uint32)
    bridges = cuda.shared.array(1, types.uint64)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    n, entry, points = cuda.blockIdx.x, uint32(cuda.blockIdx.x), uint32(net.nodes.size)
    tree = Tree(memory.via[n], memory.words[n], memory.queue[n], memory.levels[n])
    while entry < entries:
        key = word_streams(samples[0], samples[uint32(entry + uint32(1))])
        if thread == uint32(0):
            queued[0], bridges[0] = uint32(0), uint64(0)
        cuda.syncthreads()
        site = thread
        while site < points:
            is_root = labels[uint32(uint32(entry * points) + site)] == site
            tree.via[site] = uint64(ROOT) if is_root else uint64(UNSEEN)
            if is_root:
                tree.words[site] = uint64(0)
                push(tree.queue, queued, site)
            site = uint32(site + threads)
        base = uint32(entry * words)
        levels = search(net, opened, base, key, tree, queued)
        cuda.atomic.add(bridges, 0, add_up(net, tree, None, levels, uint64(0)))
        if closing:
            _close_bridges(tree, opened, base, points)
        cuda.syncthreads()
        if thread == uint32(0):
            numbers[entry, 0] = bridges[0]
        entry = uint32(entry + uint32(cuda.gridDim.x))


@cuda.jit(device=True)
def _close_bridges(tree, opened, base, points):
    """Close the bonds with the word 0."""
    cuda.syncthreads()
    n = uint32(cuda.threadIdx.x)
    while n < points:
        if tree.via[n] != uint64(ROOT) and tree.words[n] == uint64(0):
            close_bond(opened, base, uint32(tree.via[n] >> uint64(32)))
        n = uint32(n + uint32(cuda.blockDim.x))
