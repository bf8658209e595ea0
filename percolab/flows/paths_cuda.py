"""CUDA: shortest paths (:mod:`percolab.flows.paths`), with a block of threads for each sample.

The sites of a terminal are not joined: all sites of the first are at distance 0, and a path ends
at the nearest site of the second.
"""

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
)
from percolab.kernels.bits import lowest_one
from percolab.kernels.cuda import cuda

#: The distance of a site that was not reached, in the second terminal, and anywhere else.
_TARGET, _UNSEEN = 0xFFFFFFFE, 0xFFFFFFFF
#: The bit of a distance that marks sites on shortest paths, and all other bits.
_COMES, _LOW = 0x80000000, 0x7FFFFFFF


class PathMemory(NamedTuple):
    """Distances and order of sites, uint32 (blocks, points + 2) each."""

    away: Any
    queue: Any


@cuda.jit(cache=True)
def path_kernel(entries, net, opened, words, memory, numbers):
    """Find the shortest paths of every sample.

    words: per entry.  numbers: uint64 (entries, 1 or 3), the length, and the numbers of bonds and
    sites on all shortest paths; 0 if there is no path.
    """
    # The number of queued sites, and whether the second terminal was reached.
    queued = cuda.shared.array(2, types.uint32)
    bonds = cuda.shared.array(1, types.uint64)
    away, queue = memory.away[cuda.blockIdx.x], memory.queue[cuda.blockIdx.x]
    thread, entry = uint32(cuda.threadIdx.x), uint32(cuda.blockIdx.x)
    while entry < entries:
        base = uint32(entry * words)
        clear(away, uint32(_UNSEEN))
        cuda.syncthreads()
        _write_at(net.source, away, uint32(0))
        _write_at(net.target, away, uint32(_TARGET))
        begin_at(net.source, queue, queued)
        if thread == uint32(0):
            queued[1], bonds[0] = uint32(0), uint64(0)
        length = _find_length(net, opened, base, away, queue, queued)
        if length != uint32(0) and numbers.shape[1] > 1:
            cuda.atomic.add(bonds, 0, _go_back(net, opened, base, away, queue, queued, length))
        cuda.syncthreads()
        if thread == uint32(0):
            numbers[entry, 0] = uint64(length)
            if numbers.shape[1] > 1:
                numbers[entry, 1] = bonds[0]
                numbers[entry, 2] = uint64(queued[0]) if length != uint32(0) else uint64(0)
        cuda.syncthreads()
        entry = uint32(entry + uint32(cuda.gridDim.x))


@cuda.jit(device=True)
def _write_at(sites, away, distance):
    """Set the distance of some sites."""
    n = uint32(cuda.threadIdx.x)
    while n < uint32(sites.size):
        away[sites[n]] = distance
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _find_length(net, opened, base, away, queue, queued):
    """Return the length of the shortest path, 0 if there is none, and write distances."""
    first, length = uint32(0), uint32(0)
    while True:
        cuda.syncthreads()
        last, is_reached = queued[0], queued[1] != uint32(0)
        cuda.syncthreads()
        if is_reached:
            return length
        if first == last:
            return uint32(0)
        length = uint32(length + uint32(1))
        n = uint32(first + uint32(cuda.threadIdx.x))
        while n < last:
            site = queue[n]
            k, end = net.starts[site], net.starts[uint32(site + uint32(1))]
            while k < end:
                bits = open_bonds(net, opened, base, k, end)
                while bits != uint32(0):
                    other = low_half(net.bonds[uint32(k + uint32(lowest_one(bits)))])
                    bits = uint32(bits & uint32(bits - uint32(1)))
                    old = away[other]
                    if old >= uint32(_TARGET):
                        if old == uint32(_TARGET):
                            queued[1] = uint32(1)
                        if cuda.atomic.cas(away, other, old, length) == old:
                            push(queue, queued, other)
                k = uint32(k + uint32(32))
            n = uint32(n + uint32(cuda.blockDim.x))
        first = last


@cuda.jit(device=True)
def _go_back(net, opened, base, away, queue, queued, length):
    """Queue the sites on all shortest paths; return the number of bonds that this thread saw."""
    bonds, first, nearer = uint64(0), uint32(0), length
    if cuda.threadIdx.x == 0:
        queued[0] = uint32(0)
    cuda.syncthreads()
    n = uint32(cuda.threadIdx.x)
    while n < uint32(net.target.size):
        if away[net.target[n]] == length:
            push(queue, queued, net.target[n])
        n = uint32(n + uint32(cuda.blockDim.x))
    while nearer != uint32(0):
        last = read_level(queued)
        nearer = uint32(nearer - uint32(1))
        n = uint32(first + uint32(cuda.threadIdx.x))
        while n < last:
            site = queue[n]
            for k in range(net.starts[site], net.starts[uint32(site + uint32(1))]):
                bond = net.bonds[k]
                other = low_half(bond)
                seen = away[other]
                if uint32(seen & uint32(_LOW)) == nearer and is_open(opened, base, bond):
                    bonds = uint64(bonds + uint64(1))
                    if seen == nearer:
                        seen = cuda.atomic.or_(away, other, uint32(_COMES))
                        if seen == nearer:
                            push(queue, queued, other)
            n = uint32(n + uint32(cuda.blockDim.x))
        first = last
    return bonds
