"""The hooks (:mod:`percolab.bonds.hooks`), on the CPU, of models whose bonds have weights w.

A bond is open at p if u < q(p), where q(p) is its probability, which rises with p.  So it opens at
the p at which q(p) = u.  This p is its *number*: u / w if q = p w, and 1 - (1 - u)^(1/w) if
q = 1 - (1 - p)^w.  For w = 1 both are u itself.  A bond of weight 0 never opens.
"""

from math import expm1, log1p
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64, njit, uint32, uint64

from percolab.bonds.digits import fill_planes, leading_digits
from percolab.bonds.hooks import Hooks, add_hooks, number_of_bond
from percolab.bonds.words import NEVER, TOP
from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import inner

_NEVER, _TOP, _TOP_FLOAT, _DIGITS = NEVER, TOP, float(TOP), 63


class BondWeights(NamedTuple):
    """The record of a model in which bonds have weights.

    weights: float64 (32 * words,), by bond number, 32 * word + bit
    is_rate: uint32, whether q = 1 - (1 - p)^w; else q = p w
    """

    weights: Any
    is_rate: Any


@inner
def _number_of(u, weight, is_rate):
    """Return the number of a bond from its uniform number, uint64; NEVER if it opens at no p."""
    if weight == 1.0:
        return uint64(u)
    if weight == 0.0:
        return uint64(_NEVER)
    share = float64(u) / _TOP_FLOAT
    if is_rate != uint32(0):
        if share == 1.0:
            return uint64(_TOP - 1)
        share = -expm1(log1p(-share) / weight)
        # At p = 1 every bond whose number is not NEVER is open.
        return min(uint64(share * _TOP_FLOAT), uint64(_TOP - 1))
    share /= weight
    return uint64(share * _TOP_FLOAT) if share < 1.0 else uint64(_NEVER)


@inner
def _number(generator, record, seed, sample, bond):
    u = number_of_bond(generator, seed, sample, bond)
    return _number_of(u, record.weights[int64(bond)], record.is_rate)


@inner
def _digits(generator, record, seed, sample, bond, planes, last):
    number = _number(generator, record, seed, sample, bond)
    return uint64(number >> uint64(_DIGITS - planes.size)), last


@njit(cache=True)
def _draw(generator, record, seed, samples, threshold, exists, opened):
    planes = np.empty(_DIGITS, np.uint32)
    for n in range(samples.size):
        for word in range(exists.size):
            left, bits = exists[word], uint32(0)
            if left != uint32(0):
                fill_planes(generator, seed, samples[n], uint32(word), planes)
            while left != uint32(0):
                bit = uint32(trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                u = leading_digits(planes, _DIGITS, bit)
                number = _number_of(u, record.weights[32 * word + int64(bit)], record.is_rate)
                if number < uint64(threshold):
                    bits = uint32(bits | uint32(uint32(1) << bit))
            opened[n, word] = bits


add_hooks(BondWeights, Hooks(_draw, _number, _digits))
