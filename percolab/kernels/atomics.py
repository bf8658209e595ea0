"""Each atomic under one name: a plain body on the CPU, the hardware's atomic on CUDA.

The CPU labels one sample per thread, so its bodies need no lock.  Each returns the old value.
"""

from percolab.kernels.inner import inner_overload


def atomic_min(array, index, value):
    """Lower ``array[index]`` to ``value`` if that is smaller; return the old value."""
    return _simulated("min", array, index, value)


def atomic_add(array, index, value):
    """Add ``value`` to ``array[index]``; return the old value."""
    return _simulated("add", array, index, value)


def atomic_or(array, index, value):
    """Set the bits of ``value`` in ``array[index]``; return the old value."""
    return _simulated("or_", array, index, value)


def _simulated(name, array, index, value):
    """Run an atomic of the CUDA simulator, whose threads are Python threads and need its locks."""
    from numba.cuda.simulator.kernelapi import FakeCUDAAtomic

    return getattr(FakeCUDAAtomic(), name)(array, index, value)


@inner_overload(atomic_min, target="cpu")
def _atomic_min_cpu(array, index, value):
    def body(array, index, value):
        old = array[index]
        if value < old:
            array[index] = value
        return old

    return body


@inner_overload(atomic_add, target="cpu")
def _atomic_add_cpu(array, index, value):
    def body(array, index, value):
        old = array[index]
        array[index] = old + value
        return old

    return body


@inner_overload(atomic_or, target="cpu")
def _atomic_or_cpu(array, index, value):
    def body(array, index, value):
        old = array[index]
        array[index] = old | value
        return old

    return body


def register_cuda() -> None:
    """Give the three names their CUDA bodies; :mod:`percolab.kernels.device` calls it once."""
    from numba import cuda
    from numba.cuda.extending import overload as cuda_overload

    @cuda_overload(atomic_min, target="cuda")
    def _atomic_min_cuda(array, index, value):
        return lambda array, index, value: cuda.atomic.min(array, index, value)

    @cuda_overload(atomic_add, target="cuda")
    def _atomic_add_cuda(array, index, value):
        return lambda array, index, value: cuda.atomic.add(array, index, value)

    @cuda_overload(atomic_or, target="cuda")
    def _atomic_or_cuda(array, index, value):
        return lambda array, index, value: cuda.atomic.or_(array, index, value)
