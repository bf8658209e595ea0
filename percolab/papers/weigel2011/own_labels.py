"""What comes before a serial local labeling: every site labels itself, one thread a site."""

from numba import uint32

from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, element


@cuda.jit(cache=True)
def own_labels_kernel(labels, num_points):
    """Label every site of every entry by itself."""
    start = uint32(uint32(cuda.blockIdx.y) * num_points)
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            labels[uint32(start + i)] = i
