"""CUDA kernels where sites are drawn too: close the bonds that a vacant site closes."""

from numba import uint32

from percolab.bonds.sites import close_word, is_vacant
from percolab.kernels.device import load_cuda

cuda = load_cuda()


@cuda.jit(cache=True)
def close_bonds_kernel(opened, sites):
    """Close the bonds that have a vacant site; one thread a word of sites.

    Bonds across a periodic boundary are closed by :func:`close_periodic_kernel` where their other
    end is.
    """
    adjacency = sites.adjacency
    num_words = adjacency.num_words
    item, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if word < num_words:
        base, start = uint32(item * sites.first_word), uint32(item * num_words)
        for k in range(len(adjacency.ends)):
            close_word(opened, base, sites.occupied, start, adjacency, k, word)


@cuda.jit(cache=True)
def close_periodic_kernel(opened, sites):
    """Close the bonds across a periodic boundary whose other end is vacant."""
    adjacency = sites.adjacency
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < adjacency.periodic_bonds.size:
        start = uint32(item * adjacency.num_words)
        if is_vacant(sites.occupied, start, adjacency.periodic_ends[n]):
            bond = adjacency.periodic_bonds[n]
            place = uint32(uint32(item * sites.first_word) + uint32(bond >> 5))
            bit = uint32(uint32(1) << uint32(bond & 31))
            cuda.atomic.and_(opened, place, uint32(~bit))
