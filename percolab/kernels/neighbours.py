"""The other end of a bond and whether it is open, for lattices and explicit neighbour lists.

``ends`` gives the other ends of the bonds of a topology.  For a lattice, it is one index difference
per class, as a tuple (CUDA, where it unrolls into constants) or a 1-D array (CPU).  For a graph it
is a 2-D array (class, site), Komura's NN list.  The type selects, so there is no cost at run time.

*Periodic bonds*, those that cross a periodic boundary, have other ends than ``ends`` says, and are
joined from a separate list.
"""

from typing import Any, NamedTuple

from numba import int32, int64, types, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import inner, inner_overload


class Adjacency(NamedTuple):
    """The other ends of the bonds of a topology, in the form for kernels of one device.

    ends:           other ends by class: index differences (a tuple of int32 on CUDA, int64
                    (classes,) on the CPU), or int32 (classes, points), the list of a graph
    periodic_words: uint32 (classes * num_words,), the words of the bonds across periodic
                    boundaries; on CUDA the empty tuple, on the CPU an empty array where there are
                    none
    periodic_bonds: int64 (n,), their numbers 32 * word + bit, ascending
    periodic_ends:  int32 (n,), their other ends
    periodic_codes: (n,), codes of the periods that they cross: int64 on the CPU, int32 with fewer
                    bits per axis on CUDA
    num_points:     grid points, uint32
    num_words:      bond words of one class, uint32
    chain:          the class whose bonds join i to i - 1, or -1, int32
    """

    ends: Any
    periodic_words: Any
    periodic_bonds: Any
    periodic_ends: Any
    periodic_codes: Any
    num_points: Any
    num_words: Any
    chain: Any


def other_end(ends, k, i):
    """Return the site at the other end of bond (k, i), as uint32; i is uint32."""
    end = ends[k]
    return uint32(end[i] if hasattr(end, "__len__") else int(i) + int(end))


@inner_overload(other_end, target="generic")
def _other_end(ends, k, i):
    if isinstance(ends, types.Array) and ends.ndim == 2:
        return lambda ends, k, i: uint32(ends[uint32(k), i])
    return lambda ends, k, i: uint32(i + ends[k])


def is_chain(ends, k):
    """Return whether bonds of class k lead to the previous site, so that rows are chains."""
    return not hasattr(ends[k], "__len__") and ends[k] == -1


@inner_overload(is_chain, target="generic")
def _is_chain(ends, k):
    if isinstance(ends, types.Array) and ends.ndim == 2:
        return lambda ends, k: False
    return lambda ends, k: ends[k] == -1


def inner_word(opened, periodic, base, index):
    """Return word ``index`` of a sample's open bonds, without those that cross a periodic boundary.

    The sample's words start at ``opened[base]``.
    """
    return opened[base + index] & ~periodic[index] if len(periodic) else opened[base + index]


@inner_overload(inner_word, target="generic")
def _inner_word(opened, periodic, base, index):
    if isinstance(periodic, types.BaseTuple):
        return lambda opened, periodic, base, index: uint32(opened[uint32(base + index)])

    def without_periodic(opened, periodic, base, index):
        word = uint32(opened[uint32(base + index)])
        if periodic.size:
            word = uint32(word & ~periodic[index])
        return word

    return without_periodic


def periodic_word(periodic, index):
    """Return which bonds of word ``index`` cross a periodic boundary."""
    return periodic[index] if len(periodic) else 0


@inner_overload(periodic_word, target="generic")
def _periodic_word(periodic, index):
    if isinstance(periodic, types.BaseTuple):
        return lambda periodic, index: uint32(0)
    return lambda periodic, index: uint32(periodic[index]) if periodic.size else uint32(0)


def has_periodic(periodic):
    """Return whether bonds cross periodic boundaries, a compile-time constant on CUDA."""
    return len(periodic) != 0


@inner_overload(has_periodic, target="generic")
def _has_periodic(periodic):
    is_array = not isinstance(periodic, types.BaseTuple)
    return lambda periodic: is_array


@inner
def has_bit(word, bit):
    """Return whether a bit of a uint32 word is one."""
    return uint32(uint32(uint32(word) >> uint32(bit)) & uint32(1)) != uint32(0)


@inner
def _bits_from(words, start, count, place, shift):
    """Return 32 bits from bit ``shift`` of word ``place`` on, zeros outside 0 ... count - 1."""
    bits = uint32(0)
    if place >= 0 and place < int32(count):
        bits = uint32(words[uint32(start + uint32(place))] >> uint32(shift))
    if shift != uint32(0) and place >= -1 and place + 1 < int32(count):
        following = uint32(words[uint32(start + uint32(place + 1))])
        bits = uint32(bits | uint32(following << uint32(uint32(32) - shift)))
    return bits


@inner
def _looked_up_bits(words, start, ends, k, word, requested):
    bits, left = uint32(0), uint32(requested)
    while left != uint32(0):
        bit = uint32(trailing_zeros(left))
        left = uint32(left & uint32(left - uint32(1)))
        j = uint32(ends[k, uint32(uint32(word << uint32(5)) + bit)])
        one = uint32(uint32(words[uint32(start + uint32(j >> uint32(5)))] >> (j & uint32(31))) & 1)
        bits = uint32(bits | uint32(one << bit))
    return bits


def other_bits(words, start, count, ends, k, word, requested):
    """Return, for the requested bonds of word (k, word), the bits of the sites at their other ends.

    words: one bit per site, ``count`` words of a sample from ``words[start]`` on.  Bonds across a
    periodic boundary must not be requested; bits of bonds not requested have no meaning.
    """
    if hasattr(ends[k], "__len__"):
        return _looked_up_bits(words, start, ends, k, word, requested)
    delta = int(ends[k])
    return _bits_from(words, start, count, int(word) + (delta >> 5), uint32(delta & 31))


@inner_overload(other_bits, target="generic")
def _other_bits(words, start, count, ends, k, word, requested):
    if isinstance(ends, types.Array) and ends.ndim == 2:
        return lambda words, start, count, ends, k, word, requested: _looked_up_bits(
            words, start, ends, k, word, requested
        )

    def shifted(words, start, count, ends, k, word, requested):
        delta = int32(ends[k])
        place = int32(int32(word) + int32(delta >> int32(5)))
        return _bits_from(words, start, count, place, uint32(delta & int32(31)))

    return shifted


@inner
def find_periodic_number(bond, periodic_bonds):
    """Return the index, int64, of a bond among the periodic bonds; -1 if it is not one."""
    low, high = int64(0), int64(periodic_bonds.size)
    while low < high:
        middle = (low + high) >> int64(1)
        if periodic_bonds[middle] < bond:
            low = middle + int64(1)
        else:
            high = middle
    if low < periodic_bonds.size and periodic_bonds[low] == bond:
        return low
    return int64(-1)


@inner
def bond_period_code(bond, adjacency):
    """Return the code, int64, of the periods that a bond crosses; 0 if it crosses no boundary."""
    n = find_periodic_number(int64(bond), adjacency.periodic_bonds)
    return int64(adjacency.periodic_codes[n]) if n >= 0 else int64(0)


@inner
def find_bond_end(bond, adjacency):
    """Return (owner, other end) of bond number 32 * word + bit, as int64."""
    bond, stride = int64(bond), int64(int64(adjacency.num_words) << int64(5))
    k, i = bond // stride, bond % stride
    if adjacency.periodic_bonds.size:
        n = find_periodic_number(bond, adjacency.periodic_bonds)
        if n >= 0:
            return i, int64(adjacency.periodic_ends[n])
    return i, int64(other_end(adjacency.ends, k, uint32(i)))


@inner
def periodic_bond(n, opened, base, adjacency):
    """Return (whether it is open, its owner, its other end) of the n-th periodic bond.

    The sample's words start at ``opened[base]``; the ends are uint32.
    """
    bond = uint64(adjacency.periodic_bonds[n])
    is_open = has_bit(opened[uint32(base + uint32(bond >> uint64(5)))], bond & uint64(31))
    owner = uint32(bond % uint64(uint64(32) * uint64(adjacency.num_words)))
    return is_open, owner, uint32(adjacency.periodic_ends[n])
