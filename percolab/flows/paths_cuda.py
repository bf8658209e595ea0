"""CUDA: shortest paths (:mod:`percolab.flows.paths`), a block of threads a sample."""

from typing import Any, NamedTuple

from numba import types, uint32, uint64

from percolab.flows.search_cuda import (
    begin_at,
    clear,
    is_open,
    low_half,
    open_bonds,
    push,
    read_level,
    unseen_bonds,
)
from percolab.kernels.bits import lowest_one
from percolab.kernels.device import load_cuda

cuda = load_cuda()

#: The distance of a node that was not reached; the bit of one on shortest paths, and all others.
_UNSEEN, _COMES, _LOW = 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF


class PathMemory(NamedTuple):
    """Distances of nodes and the order of sites, uint32 (blocks, points + 2) each."""

    away: Any
    queue: Any


@cuda.jit(cache=True)
def path_kernel(items, net, opened, words, memory, found):
    """Find the shortest paths of every sample.

    words: of an item.  found: uint64 (items, 3), the length, and the bonds and sites of all
    shortest paths; 0 where there is none.
    """
    # How many sites are queued, and whether the second terminal was reached.
    queued = cuda.shared.array(2, types.uint32)
    sums = cuda.shared.array(2, types.uint64)
    away, queue = memory.away[cuda.blockIdx.x], memory.queue[cuda.blockIdx.x]
    thread, item = uint32(cuda.threadIdx.x), uint32(cuda.blockIdx.x)
    while item < items:
        base = uint32(item * words)
        clear(away, uint32(_UNSEEN))
        cuda.syncthreads()
        begin_at(net.source, queue, queued)
        if thread == uint32(0):
            away[net.nodes.size] = uint32(0)
            queued[1] = uint32(0)
            sums[0], sums[1] = uint64(0), uint64(0)
        length = _find_length(net, opened, base, away, queue, queued)
        if length != uint32(0):
            bonds, sites = _go_back(net, opened, base, away, queue, queued, length)
            cuda.atomic.add(sums, 0, bonds)
            cuda.atomic.add(sums, 1, sites)
        cuda.syncthreads()
        if thread == uint32(0):
            found[item, 0] = uint64(length)
            found[item, 1], found[item, 2] = sums[0], sums[1]
        cuda.syncthreads()
        item = uint32(item + uint32(cuda.gridDim.x))


@cuda.jit(device=True)
def _find_length(net, opened, base, away, queue, queued):
    """Return the length of the shortest path, 0 if there is none, and write distances."""
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    first, length, sink = uint32(0), uint32(0), uint32(net.nodes.size + 1)
    while True:
        cuda.syncthreads()
        last, is_reached = queued[0], queued[1] != uint32(0)
        cuda.syncthreads()
        if is_reached:
            return length
        if first == last:
            return uint32(0)
        length = uint32(length + uint32(1))
        n = uint32(first + thread)
        while n < last:
            site = queue[n]
            k, end = net.starts[site], net.starts[uint32(site + uint32(1))]
            while k < end:
                bits = open_bonds(net, opened, base, k, end)
                bits = uint32(bits & unseen_bonds(net, away, uint32(_UNSEEN), k, end))
                while bits != uint32(0):
                    bond = net.bonds[uint32(k + uint32(lowest_one(bits)))]
                    bits = uint32(bits & uint32(bits - uint32(1)))
                    other = low_half(bond)
                    if other == sink:
                        queued[1] = uint32(1)
                    elif cuda.atomic.cas(away, other, uint32(_UNSEEN), length) == uint32(_UNSEEN):
                        push(queue, queued, other)
                k = uint32(k + uint32(32))
            n = uint32(n + threads)
        first = last


@cuda.jit(device=True)
def _go_back(net, opened, base, away, queue, queued, length):
    """Return how many bonds and sites of all shortest paths this thread came by."""
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    bonds, sites = uint64(0), uint64(0)
    begin_at(net.target, queue, queued)
    first, nearer = uint32(0), length
    while nearer != uint32(0):
        last = read_level(queued)
        nearer = uint32(nearer - uint32(1))
        n = uint32(first + thread)
        while n < last:
            site, before = queue[n], bonds
            for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
                bond = net.bonds[k]
                other = low_half(bond)
                seen = away[other]
                if uint32(seen & uint32(_LOW)) != nearer or not is_open(opened, base, bond):
                    continue
                bonds = uint64(bonds + uint64(1))
                if nearer != uint32(0) and seen == nearer:
                    seen = cuda.atomic.or_(away, other, uint32(_COMES))
                    if seen == nearer:
                        push(queue, queued, other)
            if bonds != before:
                sites = uint64(sites + uint64(1))
            n = uint32(n + threads)
        first = last
    cuda.syncthreads()
    n = thread
    while n < uint32(net.source.size):
        if _is_begun(net, opened, base, away, net.source[n], length):
            sites = uint64(sites + uint64(1))
        n = uint32(n + threads)
    return bonds, sites


@cuda.jit(device=True)
def _is_begun(net, opened, base, away, site, length):
    """Return whether a shortest path begins at a site of the first terminal."""
    sink = uint32(net.nodes.size + 1)
    for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
        bond = net.bonds[k]
        other = low_half(bond)
        comes = away[other] == uint32(_COMES | 1) or (other == sink and length == uint32(1))
        if comes and is_open(opened, base, bond):
            return True
    return False
