"""The hooks of a model in kernels: how it draws and culls bonds, and the order in which they open.

Kernels are given a *record* of the model, and call the hooks of the record's type, which is known
at compile time, so other models do not slow down bond percolation.  The empty tuple is the record
of models whose bonds all have the threshold of p; :class:`ClassLimits` is that of models with other
thresholds for some classes; :class:`percolab.bonds.sites.Sites` adds hooks for drawn sites.

A bond without the threshold of p is open or closed at all p, so the bonds that open between two p
do so in the order of their uniform numbers, whatever the limits of other classes are.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint32, uint64

from percolab.bonds.digits import word_digits
from percolab.bonds.words import uniform_number
from percolab.bonds.words_cpu import fill_open_bonds, fill_samples
from percolab.kernels.inner import (
    inner,
    inner_overload,
    inner_overload_with_arrays,
    inner_with_arrays,
)

#: The value, in place of a threshold, of a class that has the threshold of p.
VARIES = 2**64 - 1


class ClassLimits(NamedTuple):
    """The record of a model in which some classes of bonds have fixed thresholds.

    limits:    uint64 (num_classes,), VARIES where a class has the threshold of p
    num_words: words of one class, uint32
    """

    limits: Any
    num_words: Any


class Hooks(NamedTuple):
    """The functions of a model that kernels call, compiled by Numba, with arguments of these names.

    draw:   (generator, record, seed, samples, threshold, exists, opened): write the open bonds of
            samples on the CPU, uint64 (n,), without those that are culled; opened: (n, words)
    number: (generator, record, seed, sample, bond): return the number of a bond, uint64; the bond
            is open at larger thresholds
    digits: (generator, record, seed, sample, bond, planes, last): return the number's first
            ``planes.size`` digits, and the word that ``planes`` then belongs to
    """

    draw: Any
    number: Any
    digits: Any


#: The hooks by the type of a model's record.
_HOOKS: dict[type, Hooks] = {}


def add_hooks(record: type, hooks: Hooks) -> None:
    """Register the hooks that kernels call for a record of this type."""
    _HOOKS[record] = hooks


def _find_hooks(kind: Any) -> Hooks:
    """Return the hooks for the Numba type of a record."""
    return _HOOKS[getattr(kind, "instance_class", tuple)]


@njit(cache=True)
def _draw(generator, record, seed, samples, threshold, exists, opened):
    fill_samples(generator, seed, samples, threshold, uint64(0), exists, opened)


@inner
def number_of_bond(generator, seed, sample, bond):
    """Return the uniform number, uint64, of bond 32 * word + bit, uint32."""
    word, bit = uint32(bond >> uint32(5)), uint32(bond & uint32(31))
    return uniform_number(generator, seed, sample, word, bit)


@inner
def digits_of_bond(generator, seed, sample, bond, planes, last):
    """Return the first digits of a bond's uniform number, as in :class:`Hooks`."""
    word, bit = uint32(bond >> uint32(5)), uint32(bond & uint32(31))
    return word_digits(generator, seed, sample, word, bit, planes, last)


@inner
def _number(generator, record, seed, sample, bond):
    return number_of_bond(generator, seed, sample, bond)


@inner
def _digits(generator, record, seed, sample, bond, planes, last):
    return digits_of_bond(generator, seed, sample, bond, planes, last)


@inner
def choose_limit(limits, k, threshold):
    """Return the threshold of class k among ``limits``, uint64, at the threshold of p."""
    limit = uint64(limits[k])
    return uint64(threshold) if limit == uint64(VARIES) else limit


@njit(cache=True)
def _draw_classes(generator, record, seed, samples, threshold, exists, opened):
    size = int(record.num_words)
    for k in range(record.limits.size):
        span = slice(k * size, (k + 1) * size)
        limit, first = choose_limit(record.limits, k, threshold), uint64(k * size)
        for n in range(samples.size):
            words = opened[n, span]
            fill_open_bonds(generator, seed, samples[n], limit, first, exists[span], words)


add_hooks(tuple, Hooks(_draw, _number, _digits))
add_hooks(ClassLimits, Hooks(_draw_classes, _number, _digits))


def draw_samples(
    generator: Any, record: Any, seed: Any, samples: Any, threshold: Any, exists: Any, opened: Any
) -> None:
    """Write the open bonds of samples, uint64 (n,), at a threshold of p on the CPU.

    exists: uint32 words; opened: (n, words).  A record of sites must have room for n samples.
    """
    _HOOKS[type(record)].draw(generator, record, seed, samples, threshold, exists, opened)


@inner_overload_with_arrays(draw_samples)
def _draw_samples(generator, record, seed, samples, threshold, exists, opened):
    return _find_hooks(record).draw.py_func


@inner
def fill_opened(generator, record, seed, samples, threshold, exists, opened):
    """Write the open bonds of samples in a kernel; Numba compiles this once for all kernels."""
    draw_samples(generator, record, seed, samples, threshold, exists, opened)


@inner_with_arrays
def fill_sample(generator, record, seed, sample, threshold, exists, opened):
    """Write one sample's open bonds, uint32 words like ``exists``; threshold: uint64."""
    samples = np.full(1, uint64(sample))
    fill_opened(generator, record, seed, samples, threshold, exists, opened.reshape(1, -1))


def bond_number(generator, record, seed, sample, bond):
    """Return the number of bond 32 * word + bit as uint64: it is open at a threshold above it.

    This holds only for bonds that open at some p: a fixed probability closes some bonds at all p.
    """
    return _HOOKS[type(record)].number(generator, record, seed, sample, bond)


@inner_overload(bond_number, target="generic")
def _bond_number(generator, record, seed, sample, bond):
    return _find_hooks(record).number.py_func


def first_digits(generator, record, seed, sample, bond, planes, last):
    """Return (the first ``planes.size`` digits of a bond's number, the word in ``planes``)."""
    return _HOOKS[type(record)].digits(generator, record, seed, sample, bond, planes, last)


@inner_overload(first_digits)
def _first_digits(generator, record, seed, sample, bond, planes, last):
    return _find_hooks(record).digits.py_func


def class_limit(limits, k, threshold):
    """Return the threshold of class k, which is that of p if ``limits`` is ()."""
    return threshold if isinstance(limits, tuple) else choose_limit(limits, k, threshold)


@inner_overload(class_limit, target="generic")
def _class_limit(limits, k, threshold):
    if hasattr(limits, "dtype") and hasattr(limits, "ndim"):
        return lambda limits, k, threshold: choose_limit(limits, k, threshold)
    return lambda limits, k, threshold: threshold


def word_limit(record, word, threshold):
    """Return the threshold of a bond word's class, which is that of p without a record."""
    if isinstance(record, ClassLimits):
        return choose_limit(record.limits, word // record.num_words, threshold)
    return threshold


@inner_overload(word_limit, target="generic")
def _word_limit(record, word, threshold):
    if getattr(record, "instance_class", None) is ClassLimits:
        return lambda record, word, threshold: choose_limit(
            record.limits, uint32(uint32(word) // uint32(record.num_words)), threshold
        )
    return lambda record, word, threshold: threshold
