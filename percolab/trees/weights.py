"""Weights of bonds: a sample's uniform numbers, or given ones, as integers that are compared.

A bond is identified by its *number*, 32 * word + bit in the words of all classes, one class after
the other.  Its *key* is an integer, uint64, with the order of the weights: for a sample's bond, all
63 binary digits of its uniform number.  Bonds are ordered by (key, number), so the minimum spanning
tree is unique; without the bonds of weight p or more, it connects the sample's clusters at p.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, uint32
from numpy.typing import ArrayLike, NDArray

from percolab.bonds.words import uniform_number
from percolab.lattices.graph_files.weights import make_weights

#: Bond numbers are uint32.
MOST_BONDS = 2**32
_SIGN = np.uint64(1 << 63)
#: The key of an infinite float: a bond or site with it is solid and never used.
SOLID = np.uint64(0xFFF << 52)


class BondWeights(NamedTuple):
    """The data that determine the keys of one sample's bonds."""

    generator: int  # one of :data:`percolab.bonds.words.GENERATORS`' values
    seed: np.uint64  # of the words
    sample: np.uint64
    # uint64 (32 * words of all classes,), keys by bond number; or of length 0 if the keys are the
    # sample's own
    given: NDArray[np.uint64]


def make_sample_weights(generator: int, seed: int, sample: int) -> BondWeights:
    return BondWeights(generator, np.uint64(seed), np.uint64(sample), np.empty(0, np.uint64))


def given_weights(keys: NDArray[np.uint64]) -> BondWeights:
    """Return given weights from the keys of all bonds, uint64 (32 * words of all classes,)."""
    return BondWeights(0, np.uint64(0), np.uint64(0), keys)


@njit(cache=True)
def compute_key(weights, bond):
    """Return the key of a bond by its number, uint64."""
    if weights.given.size > 0:
        return weights.given[bond]
    word, bit = uint32(uint32(bond) >> uint32(5)), uint32(uint32(bond) & uint32(31))
    return uniform_number(weights.generator, weights.seed, weights.sample, word, bit)


@njit(nogil=True, cache=True)
def make_bond_keys(weights, bonds):
    """Return the keys of bonds by their numbers, uint32 to uint64."""
    keys = np.empty(bonds.size, np.uint64)
    for n in range(bonds.size):
        keys[n] = compute_key(weights, bonds[n])
    return keys


def values_to_keys(values: ArrayLike) -> NDArray[np.uint64]:
    """Return keys in the order of the values: floats, including inf, or integers, any shape.

    Equal values have equal keys, also -0.0 and 0.0.  InputError: NaN, minus infinity, or another
    kind of number.

    >>> keys = values_to_keys([-2.5, -0.0, 0.0, 1e-300])
    >>> bool(keys[0] < keys[1] == keys[2] < keys[3])
    True
    >>> bool(np.all(np.diff(values_to_keys([-3, 0, 2**62, 2**62 + 1]).astype(object)) > 0))
    True
    """
    array = np.asarray(values)
    if array.dtype.kind in "bu":
        return array.astype(np.uint64)
    array = make_weights(array)
    bits = array.view(np.uint64)
    if array.dtype.kind == "i":
        return bits ^ _SIGN
    keys: NDArray[np.uint64] = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return keys
