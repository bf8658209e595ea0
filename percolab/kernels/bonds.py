"""Where a bond leads and whether it is open, for lattices and explicit neighbour lists alike.

``ends`` says where the bonds of a topology lead.  A lattice computes: one index difference a class,
as a tuple (CUDA, where it unrolls into constants) or a 1-D array (CPU).  A graph looks up: a 2-D
array (class, site), Komura's NN list.  The choice is made by type, so it costs nothing at run time.

``seam`` is the empty tuple, or the words of the bonds that cross a periodic boundary: those lead
elsewhere than ``ends`` says and are joined from a list of their own.
"""

from numba import njit, types, uint32
from numba.extending import overload


def other_end(ends, k, i):
    """Return the site at the other end of bond (k, i), as uint32; i is uint32."""
    end = ends[k]
    return uint32(end[i] if hasattr(end, "__len__") else int(i) + int(end))


@overload(other_end, target="generic")
def _other_end(ends, k, i):
    if isinstance(ends, types.Array) and ends.ndim == 2:
        return lambda ends, k, i: uint32(ends[uint32(k), i])
    return lambda ends, k, i: uint32(i + ends[k])


def is_chain(ends, k):
    """Return whether bonds of class k lead to the site before, as a chain of sites along a row."""
    return not hasattr(ends[k], "__len__") and ends[k] == -1


@overload(is_chain, target="generic")
def _is_chain(ends, k):
    if isinstance(ends, types.Array) and ends.ndim == 2:
        return lambda ends, k: False
    return lambda ends, k: ends[k] == -1


def inner_word(opened, seam, base, index):
    """Return word ``index`` of a sample's open bonds, without those that cross a seam.

    The sample's words start at ``opened[base]``.
    """
    return opened[base + index] & ~seam[index] if len(seam) else opened[base + index]


@overload(inner_word, target="generic")
def _inner_word(opened, seam, base, index):
    if isinstance(seam, types.BaseTuple):
        return lambda opened, seam, base, index: uint32(opened[uint32(base + index)])
    return lambda opened, seam, base, index: uint32(opened[uint32(base + index)] & ~seam[index])


@njit
def has_bit(word, bit):
    """Return whether a bit of a uint32 word is one."""
    return uint32(uint32(uint32(word) >> uint32(bit)) & uint32(1)) != uint32(0)
