"""The option that switches off reference counting in CPU kernels called for every small sample.

At every call with a named tuple, Numba counts references to all its arrays by atomic additions.
This takes a third of the time of a sample of 16 x 16 sites, and more with Numba 0.68 than with
0.61, which removes more of the counts.  A kernel without counting must make no arrays; its array
arguments belong to its caller.  Functions that it calls count none either, unless their options do.
"""

UNCOUNTED = {"_nrt": False}
