"""CUDA: the ends of open bonds across periodic seams, joined in the labels."""

from numba import uint32

from percolab.kernels.device import load_cuda
from percolab.kernels.union_find import union_across_seam

cuda = load_cuda()


@cuda.jit(cache=True)
def seam_kernel(labels, num_points, opened, words_per_item, num_words, seam_bonds, seam_ends):
    """Join the ends of all open bonds across periodic seams."""
    n, item = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < seam_bonds.size:
        start, base = uint32(item * num_points), uint32(item * words_per_item)
        union_across_seam(labels, start, opened, base, num_words, seam_bonds, seam_ends, n)
