"""CUDA kernels that carry a labeled sample on to a larger p: join what opens, move the sizes.

After them labels are no longer finished (a site's label may be a root that was joined to another),
but sizes stand at roots alone, which is all a row needs.

labels, sizes: uint32 (items * num_points,); opened, later: uint32 (items * classes * num_words,).
"""

from numba import uint32

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.kernels.neighbours import inner_word, other_end
from percolab.kernels.union_find import find, union

cuda = load_cuda()


@cuda.jit(cache=True)
def grow_kernel(labels, opened, later, adjacency):
    """Join the ends of the bonds that open between two p: one thread a word of sites.

    opened, later: the bonds at both p; those at the larger one become those that are open.  Bonds
    across a periodic boundary are joined by
    :func:`percolab.labelers.periodic_cuda.periodic_kernel`.
    """
    item, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    num_words, ends = adjacency.num_words, adjacency.ends
    if word >= num_words:
        return
    start = uint32(item * adjacency.num_points)
    base = uint32(item * uint32(uint32(len(ends)) * num_words))
    for k in range(len(ends)):
        index = uint32(uint32(k) * num_words + word)
        place = uint32(base + index)
        new = uint32(later[place] & ~opened[place])
        opened[place] = later[place]
        left = uint32(new & inner_word(opened, adjacency.periodic_words, base, index))
        while left != uint32(0):
            i = uint32(uint32(word << uint32(5)) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            union(labels, start, i, other_end(ends, k, i))


@cuda.jit(cache=True)
def absorb_kernel(labels, num_points, size_mask, sizes):
    """Move the size of every root that was joined to another to its new root."""
    start = uint32(uint32(cuda.blockIdx.y) * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            size = uint32(sizes[uint32(start + i)] & size_mask)
            if size != uint32(0) and labels[uint32(start + i)] != i:
                sizes[uint32(start + i)] = uint32(0)
                root = find(labels, start, i)
                cuda.atomic.add(sizes, uint32(start + root), size)
