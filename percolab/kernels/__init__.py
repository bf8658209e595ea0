"""Code that runs per site, per bond or per word, written once for the CPU and CUDA.

Every function here is a plain ``numba.njit`` function that a CUDA kernel may call too.
The rules of Numba's integer typing that all of them obey: uint32 with uint32 gives uint64, and
uint64 with int64 gives float64, so every constant and every result is cast.
"""
