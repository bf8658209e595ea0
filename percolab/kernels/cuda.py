"""``numba.cuda`` as all kernels have it: who imports this module loads it."""

from percolab.kernels.device import load_cuda

cuda = load_cuda()
