"""The decorator of functions that only jitted functions call.

Numba makes two wrappers of every function that it compiles, by which Python and C may call it: an
eighth of the time of compiling.  An inner function has none: a call of it from Python ends the
process by a segmentation fault, and ``tests/test_architecture.py`` looks for such calls.  CUDA has
no such wrappers, and compiles inner functions as it does others.
"""

from numba import njit

INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(**INNER)
