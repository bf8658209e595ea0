"""What is open at p where sites are drawn too: a bond needs both its sites occupied.

Sites have uniform numbers as bonds have, from the words that follow those of the bonds: word w of
the sites is word ``num_classes * num_words + w`` of the sample.  So bond (i, j) is open at p if
max(u_i, u_j) < p in site percolation, or if that and u_b are in site-bond percolation: the largest
is the bond's *number*, and everything that is coupled in p takes the bonds by their numbers,
whatever the model.

sites: the empty tuple in bond percolation.  Else (rule, lattice) and on the CPU (rule, lattice,
words), with

rule:     (site varies, bond varies, threshold of sites, threshold of bonds):
          :mod:`percolab.bonds.model`
lattice:  (words of the bonds, words of the sites, ends, seam_bonds, seam_ends)
words:    (the sites that exist, scratch for those that are occupied, seam), uint32
"""

from numba import int64, njit, types, uint32, uint64
from numba.extending import overload

from percolab.bonds.words import uniform_of
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.kernels.neighbours import end_of_bond, has_bit, inner_word, other_bits


@njit
def limits_at(rule, threshold):
    """Return the thresholds (of sites, of bonds) that belong to a threshold of p."""
    site_varies, bond_varies, site_limit, bond_limit = rule
    site = uint64(threshold) if site_varies != uint32(0) else uint64(site_limit)
    bond = uint64(threshold) if bond_varies != uint32(0) else uint64(bond_limit)
    return site, bond


@njit
def close_word(opened, base, seam, occupied, start, lattice, k, word):
    """Close the bonds of word (k, word) that have a vacant site; across a seam, a vacant owner.

    The sample's words are at ``opened[base]`` ..., those of its occupied sites at
    ``occupied[start]`` ...
    """
    _, num_words, ends, _, _ = lattice
    index = uint32(uint32(uint32(k) * uint32(num_words)) + uint32(word))
    left = uint32(opened[uint32(base + index)] & occupied[uint32(start + uint32(word))])
    inner = uint32(left & inner_word(opened, seam, base, index))
    others = other_bits(occupied, start, num_words, ends, k, uint32(word), inner)
    opened[uint32(base + index)] = uint32(uint32(left & ~inner) | uint32(inner & others))


@njit
def is_vacant(occupied, start, site):
    """Return whether a site is vacant."""
    word = occupied[uint32(start + uint32(uint32(site) >> uint32(5)))]
    return not has_bit(word, uint32(uint32(site) & uint32(31)))


@njit
def _site_number(generator, lattice, seed, sample, i):
    word = uint32(uint32(lattice[0]) + uint32(uint32(i) >> uint32(5)))
    return uniform_of(generator, seed, sample, word, uint32(uint32(i) & uint32(31)))


@njit
def _bond_number(generator, seed, sample, bond):
    word, bit = uint32(bond >> uint32(5)), uint32(bond & uint32(31))
    return uniform_of(generator, seed, sample, word, bit)


@njit
def ends_of(lattice, bond):
    """Return the two sites of bond 32 * word + bit."""
    _, num_words, ends, seam_bonds, seam_ends = lattice
    return end_of_bond(bond, int64(num_words) << int64(5), ends, seam_bonds, seam_ends)


@njit
def _number_with_sites(generator, sites, seed, sample, bond):
    site_varies, bond_varies, _, _ = sites[0]
    lattice = sites[1]
    number = uint64(0)
    if bond_varies != uint32(0):
        number = _bond_number(generator, seed, sample, bond)
    if site_varies != uint32(0):
        for site in ends_of(lattice, bond):
            number = max(number, _site_number(generator, lattice, seed, sample, site))
    return number


def bond_number(generator, sites, seed, sample, bond):
    """Return the number of bond 32 * word + bit as uint64: it is open at a threshold above it.

    Only for bonds that open at some p: where one probability is fixed, what it closes stays so.
    """
    if len(sites):
        return _number_with_sites(generator, sites, seed, sample, bond)
    return _bond_number(generator, seed, sample, bond)


@overload(bond_number, target="generic")
def _bond_number_overload(generator, sites, seed, sample, bond):
    if isinstance(sites, types.BaseTuple) and len(sites):
        return lambda generator, sites, seed, sample, bond: _number_with_sites(
            generator, sites, seed, sample, bond
        )
    return lambda generator, sites, seed, sample, bond: _bond_number(generator, seed, sample, bond)


@njit
def _fill_with_sites(generator, sites, seed, sample, threshold, exists, opened):
    rule, lattice, words = sites
    site_limit, bond_limit = limits_at(rule, threshold)
    there, occupied, seam = words
    first = uint32(lattice[0])
    fill_open_bonds(generator, seed, sample, site_limit, first, there, occupied)
    fill_open_bonds(generator, seed, sample, bond_limit, uint32(0), exists, opened)
    _, num_words, ends, seam_bonds, seam_ends = lattice
    for k in range(len(ends)):
        for word in range(num_words):
            close_word(opened, uint32(0), seam, occupied, uint32(0), lattice, k, word)
    for n in range(seam_bonds.size):
        if is_vacant(occupied, uint32(0), seam_ends[n]):
            place = uint32(seam_bonds[n] >> 5)
            bit = uint32(uint32(1) << uint32(seam_bonds[n] & 31))
            opened[place] = uint32(opened[place] & ~bit)


def fill_sample(generator, sites, seed, sample, threshold, exists, opened):
    """Write a sample's open bonds at a threshold of p on the CPU: uint32 words like ``exists``."""
    if len(sites):
        _fill_with_sites(generator, sites, seed, sample, threshold, exists, opened)
    else:
        fill_open_bonds(generator, seed, sample, threshold, uint32(0), exists, opened)


@overload(fill_sample)
def _fill_sample(generator, sites, seed, sample, threshold, exists, opened):
    if isinstance(sites, types.BaseTuple) and len(sites):
        return lambda generator, sites, seed, sample, threshold, exists, opened: _fill_with_sites(
            generator, sites, seed, sample, threshold, exists, opened
        )
    return lambda generator, sites, seed, sample, threshold, exists, opened: fill_open_bonds(
        generator, seed, sample, threshold, uint32(0), exists, opened
    )
