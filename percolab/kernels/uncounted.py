"""The option of CPU kernels that are called for every small sample: no counting of references.

Numba counts references to every array of a named tuple at every call that is given one, by atomic
additions: a third of the time of a sample of 16 x 16 sites, and more with Numba 0.68 than with
0.61, which removes more of them.  A kernel without the count must make no arrays; those that it is
given belong to its caller.  What it calls counts none either, unless its own options say so.
"""

UNCOUNTED = {"_nrt": False}
