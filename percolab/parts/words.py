"""The open bonds of a slab, and those that cross its faces, from the keys of the whole lattice.

Words are numbered in the whole lattice with 64 bits.  A slab may begin at any bit of a word: its
own words are shifted together from those.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.bonds.hooks import class_limit
from percolab.bonds.sites import close_bonds, is_vacant, limits_at
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.neighbours import find_periodic_number, has_bit, periodic_word

# Words made at a time where they have to be shifted; one of so many is made twice.
_CHUNK = 1024


class SlabKeys(NamedTuple):
    """What a sample of the whole lattice is drawn from."""

    generator: Any  # one of :data:`percolab.bonds.words.GENERATORS`' values
    seed: Any  # uint64, like the next two as :func:`percolab.bonds.words.open_word` takes them
    sample: Any
    threshold: Any
    rule: Any  # the model's :class:`percolab.bonds.models.base.Rule`
    limits: Any  # thresholds of classes, as :func:`percolab.bonds.hooks.class_limit` takes them
    num_words: Any  # words of one class of the whole lattice, uint64
    num_classes: Any  # bond classes; the words of sites follow theirs, uint64


@njit
def fill_from(keys, limit, klass, first, exists, found):
    """Write what is open of the owners ``first`` ... of a class, in words from bit 0 on.

    limit: the threshold.  klass: num_classes for the sites.  first: uint64.  exists, found: uint32.
    """
    word = uint64(uint64(uint64(klass) * keys.num_words) + uint64(first >> uint64(5)))
    shift = uint32(first & uint64(31))
    stream = keys.generator, keys.seed, keys.sample
    if shift == uint32(0):
        fill_open_bonds(*stream, limit, word, exists, found)
        return
    made, every = np.empty(_CHUNK + 1, np.uint32), np.empty(_CHUNK + 1, np.uint32)
    every[:] = uint32(0xFFFFFFFF)
    up = uint32(uint32(32) - shift)
    for base in range(0, exists.size, _CHUNK):
        count = min(_CHUNK, exists.size - base)
        here = uint64(word + uint64(base))
        fill_open_bonds(*stream, limit, here, every[: count + 1], made[: count + 1])
        for n in range(count):
            both = uint32(uint32(made[n] >> shift) | uint32(made[n + 1] << up))
            found[base + n] = uint32(both & exists[base + n])


@njit(nogil=True, cache=True)
def fill_slab(keys, first, exists, sites, adjacency, opened, occupied):
    """Write the open bonds inside a slab, and with ``occupied`` its occupied sites.

    first:    the number of its first site, uint64
    exists:   uint32 (num_classes, words), its bonds; sites: uint32 (words,), its sites
    opened:   uint32 (num_classes, words); occupied: uint32 (words,), or empty where none are drawn
    """
    site_limit, bond_limit = limits_at(keys.rule, keys.threshold)
    for k in range(exists.shape[0]):
        limit = class_limit(keys.limits, k, bond_limit)
        fill_from(keys, limit, k, first, exists[k], opened[k])
    if occupied.size:
        fill_from(keys, site_limit, keys.num_classes, first, sites, occupied)
        close_bonds(opened.ravel(), occupied, adjacency)


@njit
def find_cut_bond(adjacency, place, bit):
    """Return which bond of a cut's list of periodic bonds is bit ``bit`` of word ``place``."""
    return find_periodic_number(int64(32) * int64(place) + int64(bit), adjacency.periodic_bonds)


@njit(nogil=True, cache=True)
def fill_cut(keys, draws_sites, above, below, cut, opened):
    """Write which bonds of a cut are open; return how many.

    above, below: the numbers of the first sites on its two sides, uint64
    opened:       uint32 (classes * words,)
    """
    site_limit, bond_limit = limits_at(keys.rule, keys.threshold)
    words = int64(cut.adjacency.num_words)
    for n in range(cut.classes.size):
        span = slice(n * words, (n + 1) * words)
        limit = class_limit(keys.limits, cut.classes[n], bond_limit)
        fill_from(keys, limit, cut.classes[n], above, cut.exists[span], opened[span])
    if draws_sites:
        every = np.empty(words, np.uint32)
        every[:] = uint32(0xFFFFFFFF)
        upper, lower = np.empty(words, np.uint32), np.empty(words, np.uint32)
        fill_from(keys, site_limit, keys.num_classes, above, every, upper)
        fill_from(keys, site_limit, keys.num_classes, below, every, lower)
        _close_cut(cut, upper, lower, opened)
    count = int64(0)
    for place in range(opened.size):
        count += int64(popcount(opened[place]))
    return count


@njit
def _close_cut(cut, upper, lower, opened):
    """Close the bonds that have a vacant site above or below."""
    words, periodic = int64(cut.adjacency.num_words), cut.adjacency.periodic_words
    for n in range(cut.classes.size):
        down = int64(cut.adjacency.ends[n])
        for word in range(words):
            place = n * words + word
            aside = periodic_word(periodic, place)
            left = uint32(opened[place] & upper[word])
            kept = left
            while left != uint32(0):
                bit = uint32(trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                other = int64(32) * word + int64(bit) + down
                if has_bit(aside, bit):
                    other = int64(
                        cut.adjacency.periodic_ends[find_cut_bond(cut.adjacency, place, bit)]
                    )
                if is_vacant(lower, uint32(0), uint32(other)):
                    kept = uint32(kept & ~uint32(uint32(1) << bit))
            opened[place] = kept
