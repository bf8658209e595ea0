"""``numba.cuda`` for all kernels; importing this module loads it."""

from numba import config

from percolab.kernels.device import load_cuda

cuda = load_cuda()
#: Whether kernels run in CUDA's simulator, which is slow, so that blocks are small there.
SIMULATED = bool(config.ENABLE_CUDASIM)
