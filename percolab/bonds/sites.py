"""What is open at p where sites are drawn too: a bond needs both its sites occupied.

Sites have uniform numbers as bonds have, from the words that follow those of the bonds: word w of
the sites is word ``num_classes * num_words + w`` of the sample.  So bond (i, j) is open at p if
max(u_i, u_j) < p in site percolation, or if that and u_b are in site-bond percolation: the largest
is the bond's *number*, and everything that is coupled in p takes the bonds by their numbers,
whatever the model.

A :class:`Sites` is the record of these models (:mod:`percolab.bonds.hooks`).
"""

from typing import Any, NamedTuple

from numba import njit, uint32, uint64

from percolab.bonds.digits import word_digits
from percolab.bonds.hooks import Hooks, add_hooks, digits_of_bond, number_of_bond
from percolab.bonds.words import uniform_number
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.kernels.neighbours import (
    find_bond_end,
    has_bit,
    inner_word,
    other_bits,
    seam_bond,
)


class Sites(NamedTuple):
    """The record of a model that draws sites: what kernels have to know.

    rule:       the model's :class:`percolab.bonds.model.Rule`
    first_word: number of the sample's first word of sites: how many words its bonds have, uint32
    adjacency:  where the bonds lead
    exists:     uint32 (num_words,), the sites that there are, a bit each
    occupied:   uint32, the sites that are occupied, of every sample of the batch
    """

    rule: Any
    first_word: Any
    adjacency: Any
    exists: Any
    occupied: Any


@njit
def limits_at(rule, threshold):
    """Return the thresholds (of sites, of bonds) that belong to a threshold of p."""
    site = uint64(threshold) if rule.site_varies != uint32(0) else uint64(rule.site_limit)
    bond = uint64(threshold) if rule.bond_varies != uint32(0) else uint64(rule.bond_limit)
    return site, bond


@njit
def close_word(opened, base, occupied, start, adjacency, k, word):
    """Close the bonds of word (k, word) that have a vacant site; across a seam, a vacant owner.

    The sample's words are at ``opened[base]`` ..., those of its occupied sites at
    ``occupied[start]`` ...
    """
    num_words = adjacency.num_words
    index = uint32(uint32(uint32(k) * uint32(num_words)) + uint32(word))
    left = uint32(opened[uint32(base + index)] & occupied[uint32(start + uint32(word))])
    inner = uint32(left & inner_word(opened, adjacency.seam, base, index))
    others = other_bits(occupied, start, num_words, adjacency.ends, k, uint32(word), inner)
    opened[uint32(base + index)] = uint32(uint32(left & ~inner) | uint32(inner & others))


@njit
def is_vacant(occupied, start, site):
    """Return whether a site is vacant."""
    word = occupied[uint32(start + uint32(uint32(site) >> uint32(5)))]
    return not has_bit(word, uint32(uint32(site) & uint32(31)))


@njit
def _site_number(generator, sites, seed, sample, i):
    word = uint32(uint32(sites.first_word) + uint32(uint32(i) >> uint32(5)))
    return uniform_number(generator, seed, sample, word, uint32(uint32(i) & uint32(31)))


@njit
def _number_with_sites(generator, sites, seed, sample, bond):
    number = uint64(0)
    if sites.rule.bond_varies != uint32(0):
        number = number_of_bond(generator, seed, sample, bond)
    if sites.rule.site_varies != uint32(0):
        for site in find_bond_end(bond, sites.adjacency):
            number = max(number, _site_number(generator, sites, seed, sample, site))
    return number


@njit
def _digits_with_sites(generator, sites, seed, sample, bond, planes, last):
    largest = uint64(0)
    if sites.rule.bond_varies != uint32(0):
        largest, last = digits_of_bond(generator, seed, sample, bond, planes, last)
    if sites.rule.site_varies != uint32(0):
        for site in find_bond_end(bond, sites.adjacency):
            word = uint32(uint32(sites.first_word) + uint32(uint32(site) >> uint32(5)))
            bit = uint32(uint32(site) & uint32(31))
            digits, last = word_digits(generator, seed, sample, word, bit, planes, last)
            largest = max(largest, digits)
    return largest, last


@njit
def close_bonds(opened, occupied, adjacency):
    """Close the bonds of one sample that have a vacant site at either end, on the CPU.

    opened: uint32, the words of its bonds, class by class; occupied: uint32, those of its sites.
    """
    here = uint32(0)
    for k in range(len(adjacency.ends)):
        for word in range(adjacency.num_words):
            close_word(opened, here, occupied, here, adjacency, k, word)
    for n in range(adjacency.seam_bonds.size):
        _, _, other = seam_bond(n, opened, here, adjacency)
        if is_vacant(occupied, here, other):
            bond = adjacency.seam_bonds[n]
            bit = uint32(uint32(1) << uint32(bond & 31))
            place = uint32(bond >> 5)
            opened[place] = uint32(opened[place] & ~bit)


@njit
def _fill_with_sites(generator, sites, seed, sample, threshold, exists, opened):
    site_limit, bond_limit = limits_at(sites.rule, threshold)
    first, occupied = uint64(sites.first_word), sites.occupied
    fill_open_bonds(generator, seed, sample, site_limit, first, sites.exists, occupied)
    fill_open_bonds(generator, seed, sample, bond_limit, uint64(0), exists, opened)
    close_bonds(opened, occupied, sites.adjacency)


add_hooks(Sites, Hooks(_fill_with_sites, _number_with_sites, _digits_with_sites))
