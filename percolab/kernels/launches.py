"""How CUDA threads are laid over the words or sites of a batch."""

from numba import config, uint32

from percolab.kernels.device import load_cuda

cuda = load_cuda()


# The simulator runs a Python thread per thread: small blocks there, which also meet more edges.
THREADS = 8 if config.ENABLE_CUDASIM else 256


#: Words or sites one thread works on: with one each, starting the blocks took longer than the work.
PER_THREAD = 4


@cuda.jit(device=True)
def element(step):
    """Return the number of this thread's ``step``-th word or site, as uint32."""
    return uint32((cuda.blockIdx.x * PER_THREAD + step) * THREADS + cuda.threadIdx.x)
