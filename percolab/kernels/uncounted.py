"""The option of CPU kernels that are called for every small sample: no counting of references.

Numba counts references to every array of a named tuple at every call that is given one, by atomic
additions: a third of the time of a sample of 16 x 16 sites.  A kernel without the count must make
no arrays; those that it is given belong to its caller.
"""

UNCOUNTED = {"_nrt": False}
