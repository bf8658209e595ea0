"""CUDA kernels where sites are drawn too: close what a vacant site closes, count the occupied."""

from numba import uint32, uint64

from percolab.bonds.sites import close_word, is_vacant
from percolab.bonds.words import open_word
from percolab.kernels.bits import popcount
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, element

cuda = load_cuda()


@cuda.jit(cache=True)
def close_bonds_kernel(opened, sites):
    """Close the bonds that have a vacant site; one thread a word of sites.

    Bonds across a periodic seam are closed by :func:`close_seam_kernel` where their other end is.
    """
    adjacency = sites.adjacency
    num_words = adjacency.num_words
    item, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if word < num_words:
        base, start = uint32(item * sites.first_word), uint32(item * num_words)
        for k in range(len(adjacency.ends)):
            close_word(opened, base, sites.occupied, start, adjacency, k, word)


@cuda.jit(cache=True)
def close_seam_kernel(opened, sites):
    """Close the bonds across a periodic seam whose other end is vacant."""
    adjacency = sites.adjacency
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < adjacency.seam_bonds.size:
        start = uint32(item * adjacency.num_words)
        if is_vacant(sites.occupied, start, adjacency.seam_ends[n]):
            bond = adjacency.seam_bonds[n]
            place = uint32(uint32(item * sites.first_word) + uint32(bond >> 5))
            bit = uint32(uint32(1) << uint32(bond & 31))
            cuda.atomic.and_(opened, place, uint32(~bit))


@cuda.jit(cache=True)
def count_sites_kernel(generator, keys, sites, counts):
    """Add up how many sites of every item are occupied; ``counts`` begin as zeros."""
    shared = cuda.shared.array(1, uint32)
    item = uint32(cuda.blockIdx.y)
    seed, sample = keys.samples[0], keys.samples[uint32(item + uint32(1))]
    threshold = keys.sites[item]
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    found = uint32(0)
    for step in range(PER_THREAD):
        word = element(step)
        if word < sites.exists.size:
            number = uint64(uint64(sites.first_word) + uint64(word))
            occupied = open_word(generator, seed, sample, number, threshold, sites.exists[word])
            found = uint32(found + uint32(popcount(occupied)))
    cuda.atomic.add(shared, 0, found)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(counts, item, shared[0])
