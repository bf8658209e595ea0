"""CUDA kernels for drawn or given sites: bonds are only open between occupied sites.

opened: uint32, bond words of the entries; sites: :class:`percolab.bonds.sites.Sites`.
"""

from numba import int32, uint32, uint64

from percolab.bonds.sites import close_word, is_vacant
from percolab.kernels.bits import trailing_zeros
from percolab.kernels.cuda import cuda
from percolab.kernels.neighbours import find_bond_end, has_bit


@cuda.jit(cache=True)
def close_bonds_kernel(opened, sites):
    """Close the bonds that have a vacant site; one thread per word of sites.

    Of bonds across a periodic boundary, only the owner is checked here;
    :func:`close_periodic_kernel` checks the other end.
    """
    adjacency = sites.adjacency
    num_words = adjacency.num_words
    entry, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    if word < num_words:
        base, start = uint32(entry * sites.first_word), uint32(entry * num_words)
        for k in range(len(adjacency.ends)):
            close_word(opened, base, sites.occupied, start, adjacency, k, word)


@cuda.jit(cache=True)
def close_periodic_kernel(opened, sites):
    """Close the bonds across a periodic boundary whose other end is vacant."""
    adjacency = sites.adjacency
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < adjacency.periodic_bonds.size:
        start = uint32(entry * adjacency.num_words)
        if is_vacant(sites.occupied, start, adjacency.periodic_ends[n]):
            bond = adjacency.periodic_bonds[n]
            place = uint32(uint32(entry * sites.first_word) + uint32(bond >> 5))
            bit = uint32(uint32(1) << uint32(bond & 31))
            cuda.atomic.and_(opened, place, uint32(~bit))


@cuda.jit(cache=True)
def open_between_kernel(exists, adjacency, values, opened):
    """Open the bonds between neighbours of equal non-zero values; one thread per word of bonds.

    exists, opened: uint32 (num_classes * num_words,).  values: (num_points,), integers.
    """
    word = uint32(cuda.grid(1))
    if word < exists.size:
        left, bits = uint32(exists[word]), uint32(0)
        while left != uint32(0):
            bit = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            i, j = find_bond_end(uint64(uint64(word) << uint64(5)) + uint64(bit), adjacency)
            if values[i] != 0 and values[i] == values[j]:
                bits = uint32(bits | uint32(uint32(1) << bit))
        opened[word] = bits


@cuda.jit(cache=True)
def mark_empty_kernel(exists, values, labels, marked):
    """Write labels, and -1 where the value is 0 or there is no site; one thread per site.

    exists: uint32 (num_words,).  labels: uint32 (num_points,).  marked: int32 (num_points,).
    """
    site = uint32(cuda.grid(1))
    if site < marked.size:
        is_site = values[site] != 0 and has_bit(exists[site >> uint32(5)], site & uint32(31))
        marked[site] = int32(labels[site]) if is_site else int32(-1)
