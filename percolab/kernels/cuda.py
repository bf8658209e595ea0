"""``numba.cuda`` as all kernels have it: who imports this module loads it."""

from numba import config

from percolab.kernels.device import load_cuda

cuda = load_cuda()
#: Whether kernels run in CUDA's simulator, where blocks are small so that it can be waited for.
SIMULATED = bool(config.ENABLE_CUDASIM)
