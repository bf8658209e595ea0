"""CUDA: the ends of open bonds across periodic boundaries, joined in the labels.

labels: uint32 (entries * num_points,), those of entry n from n * num_points on; opened: uint32
(entries * classes * num_words,), words of open bonds.
"""

from numba import uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.union_find import union_across_boundary


@cuda.jit(cache=True)
def periodic_kernel(labels, opened, adjacency):
    """Join the ends of all open bonds across periodic boundaries."""
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < adjacency.periodic_bonds.size:
        start = uint32(entry * adjacency.num_points)
        base = uint32(entry * uint32(uint32(len(adjacency.ends)) * adjacency.num_words))
        union_across_boundary(labels, start, opened, base, adjacency, n)
