"""Open bonds of models that draw sites, too: both sites of an open bond must be occupied.

Sites have uniform numbers as bonds do, from the words that follow those of the bonds: word w of
the sites is word ``num_classes * num_words + w`` of the sample.  So bond (i, j) is open at p if
max(u_i, u_j) < p in site percolation, and if max(u_i, u_j, u_b) < p in site-bond percolation.  This
maximum is the bond's *number*; all methods that couple different p open bonds in the order of their
numbers, whatever the model.

A :class:`Sites` is the record of these models (:mod:`percolab.bonds.hooks`).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, types, uint32, uint64

from percolab.bonds.digits import word_digits
from percolab.bonds.hooks import Hooks, add_hooks, digits_of_bond, number_of_bond
from percolab.bonds.words import uniform_number
from percolab.bonds.words_cpu import fill_open_bonds, fill_samples
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.inner import inner, inner_overload, inner_overload_with_arrays
from percolab.kernels.neighbours import find_bond_end, has_bit, inner_word, other_bits


class Sites(NamedTuple):
    """The record of a model that draws sites, for kernels.

    rule:       the model's :class:`percolab.bonds.model.Rule`
    first_word: number of the sample's first word of sites, after those of its bonds, uint32
    adjacency:  the other ends of bonds
    exists:     uint32 (num_words,), the sites that exist, one bit each
    occupied:   uint32, the occupied sites of all samples that are drawn at once
    """

    rule: Any
    first_word: Any
    adjacency: Any
    exists: Any
    occupied: Any


@inner
def limits_at(rule, threshold):
    """Return the thresholds, uint64, (of sites, of bonds) at a threshold of p."""
    site = uint64(threshold) if rule.site_varies != uint32(0) else uint64(rule.site_limit)
    bond = uint64(threshold) if rule.bond_varies != uint32(0) else uint64(rule.bond_limit)
    return site, bond


@inner
def close_word(opened, base, occupied, start, adjacency, k, word):
    """Close the bonds of word (k, word) with a vacant site; periodic bonds, with a vacant owner.

    The sample's words are at ``opened[base]`` ..., those of its occupied sites at
    ``occupied[start]`` ...
    """
    num_words = adjacency.num_words
    index = uint32(uint32(uint32(k) * uint32(num_words)) + uint32(word))
    left = uint32(opened[uint32(base + index)] & occupied[uint32(start + uint32(word))])
    inner = uint32(left & inner_word(opened, adjacency.periodic_words, base, index))
    others = other_bits(occupied, start, num_words, adjacency.ends, k, uint32(word), inner)
    opened[uint32(base + index)] = uint32(uint32(left & ~inner) | uint32(inner & others))


@inner
def is_vacant(occupied, start, site):
    """Return whether a site, uint32, is vacant; its sample's words, uint32, begin at ``start``."""
    word = occupied[uint32(start + uint32(uint32(site) >> uint32(5)))]
    return not has_bit(word, uint32(uint32(site) & uint32(31)))


@inner
def _site_number(generator, sites, seed, sample, i):
    word = uint32(uint32(sites.first_word) + uint32(uint32(i) >> uint32(5)))
    return uniform_number(generator, seed, sample, word, uint32(uint32(i) & uint32(31)))


@inner
def _number_with_sites(generator, record, seed, sample, bond):
    number = uint64(0)
    if record.rule.bond_varies != uint32(0):
        number = number_of_bond(generator, seed, sample, bond)
    if record.rule.site_varies != uint32(0):
        for site in find_bond_end(bond, record.adjacency):
            number = max(number, _site_number(generator, record, seed, sample, site))
    return number


@inner
def _digits_with_sites(generator, record, seed, sample, bond, planes, last):
    largest = uint64(0)
    if record.rule.bond_varies != uint32(0):
        largest, last = digits_of_bond(generator, seed, sample, bond, planes, last)
    if record.rule.site_varies != uint32(0):
        for site in find_bond_end(bond, record.adjacency):
            word = uint32(uint32(record.first_word) + uint32(uint32(site) >> uint32(5)))
            bit = uint32(uint32(site) & uint32(31))
            digits, last = word_digits(generator, seed, sample, word, bit, planes, last)
            largest = max(largest, digits)
    return largest, last


def _close_class(opened, periodic, occupied, end):
    """Close the bonds of a class with a vacant site; of periodic bonds, those with a vacant owner.

    opened, periodic: uint32, the words of the class; periodic may be empty.  end: other ends
    of its bonds, as an index difference or an array with one site each.
    """
    # This runs if nothing is compiled; otherwise the overload chooses by type.
    close = _close_shifted if np.ndim(end) == 0 else _close_listed
    close(opened, periodic, occupied, end)


@inner_overload(_close_class)
def _choose_close(opened, periodic, occupied, end):
    if isinstance(end, types.Array):
        return _close_listed
    return _close_shifted


def _close_listed(opened, periodic, occupied, end):
    for word in range(opened.size):
        left = uint32(opened[word] & occupied[word])
        inside = left
        if periodic.size:
            inside = uint32(left & ~periodic[word])
        while inside != uint32(0):
            bit = uint32(trailing_zeros(inside))
            inside = uint32(inside & uint32(inside - uint32(1)))
            other = end[32 * word + bit]
            if not has_bit(occupied[other >> 5], other & 31):
                left = uint32(left & ~uint32(uint32(1) << bit))
        opened[word] = left


def _close_shifted(opened, periodic, occupied, end):
    place, shift = int64(end) >> 5, uint32(int64(end) & 31)
    for word in range(opened.size):
        here, others = word + place, uint32(0)
        if 0 <= here < occupied.size:
            others = uint32(occupied[here] >> shift)
        if shift != uint32(0) and 0 <= here + 1 < occupied.size:
            others |= uint32(occupied[here + 1] << uint32(uint32(32) - shift))
        if periodic.size:
            others |= periodic[word]
        opened[word] &= occupied[word] & others


@inner
def close_bonds(opened, occupied, adjacency):
    """Close the bonds of one sample that have a vacant site at either end, on the CPU.

    opened: uint32, the words of its bonds, class by class; occupied: uint32, those of its sites.
    """
    # Numba counts references wherever a field is read, so fields are read outside of the loops.
    ends, periodic, words = adjacency.ends, adjacency.periodic_words, int64(adjacency.num_words)
    bonds, others = adjacency.periodic_bonds, adjacency.periodic_ends
    for k in range(len(ends)):
        span = slice(k * words, (k + 1) * words)
        _close_class(opened[span], periodic[span], occupied, ends[k])
    for n in range(bonds.size):
        vacant = uint32(not has_bit(occupied[others[n] >> 5], others[n] & 31))
        opened[bonds[n] >> 5] &= uint32(~uint32(vacant << uint32(bonds[n] & 31)))


@njit(cache=True)
def _draw_with_sites(generator, record, seed, samples, threshold, exists, opened):
    site_limit, bond_limit = limits_at(record.rule, threshold)
    first, words = uint64(record.first_word), record.exists.size
    occupied = record.occupied[: samples.size * words].reshape(samples.size, words)
    fill_samples(generator, seed, samples, site_limit, first, record.exists, occupied)
    fill_samples(generator, seed, samples, bond_limit, uint64(0), exists, opened)
    for n in range(samples.size):
        close_bonds(opened[n], occupied[n], record.adjacency)


@inner
def _count_ones(words, among):
    """Return the number of bits that are ones in both of two arrays of words, int64."""
    ones = int64(0)
    for word in range(words.size):
        ones += int64(popcount(uint32(words[word] & among[word])))
    return ones


def _draws_sites(kind):
    """Return whether Numba's type of a record, or a record's own type, is that of sites."""
    return getattr(kind, "instance_class", kind) is Sites


def _count_open(record, n, opened):
    return _count_ones(opened, opened)


def _count_vacant(record, n, opened):
    there, size = record.exists, record.exists.size
    occupied = record.occupied[n * size : (n + 1) * size]
    return _count_ones(there, there) - _count_ones(there, occupied)


def count_drawn(record, n, opened):
    """Return the number of vacant sites in sample ``n`` of those drawn last.

    For a model that draws no sites, return the number of open bonds in ``opened``, uint32 words.
    """
    return _count_drawn(type(record), n, opened)(record, n, opened)


@inner_overload(count_drawn)
def _count_drawn(record, n, opened):
    return _count_vacant if _draws_sites(record) else _count_open


def _write_nothing(generator, record, seed, sample, thresholds, counts):
    return False


def _write_vacant(generator, record, seed, sample, thresholds, counts):
    first, there = uint64(record.first_word), record.exists
    occupied = record.occupied[: there.size]
    for m in range(thresholds.size):
        limit, _ = limits_at(record.rule, thresholds[m])
        fill_open_bonds(generator, seed, sample, limit, first, there, occupied)
        counts[m] = count_drawn(record, 0, occupied)
    return True


def write_vacant(generator, record, seed, sample, thresholds, counts):
    """Write the numbers of vacant sites at thresholds, int64; return whether sites can be vacant.

    The occupied sites are overwritten.
    """
    write = _choose_write(generator, type(record), seed, sample, thresholds, counts)
    return write(generator, record, seed, sample, thresholds, counts)


@inner_overload_with_arrays(write_vacant)
def _choose_write(generator, record, seed, sample, thresholds, counts):
    return _write_vacant if _draws_sites(record) else _write_nothing


add_hooks(Sites, Hooks(_draw_with_sites, _number_with_sites, _digits_with_sites))
