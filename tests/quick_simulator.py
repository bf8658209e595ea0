"""Makes CUDA's simulator faster, its shared memory safe, and its device memory full of garbage.

The simulator's threads wait for each other by turns of Python's interpreter lock, which are long
unless told otherwise.  With short turns two threads can allocate one shared array twice: here the
first allocation is kept.

Device memory that nobody wrote is full of one large number, which no index survives.
"""

import sys

import numpy as np
from numba import cuda
from numba.cuda.simulator import kernelapi
from numba.np import numpy_support


def _array(self, shape, dtype):
    kind = numpy_support.as_dtype(dtype)
    if shape == 0:
        return np.frombuffer(self._dynshared.data, kind, self._dynshared_size // kind.itemsize)
    frame = sys._getframe(1)
    place = frame.f_code.co_filename, frame.f_lineno
    return self._allocations.setdefault(place, np.empty(shape, kind))


def _full_of_garbage(shape, dtype):
    garbage = np.frombuffer(bytes([0xFE] * 8), dtype)[0]
    return cuda.to_device(np.full(shape, garbage, dtype))


def install():
    """Change the simulator of this process, before a kernel is launched."""
    cuda.device_array = _full_of_garbage
    sys.setswitchinterval(1e-6)
    kernelapi.FakeCUDAShared.array = _array
