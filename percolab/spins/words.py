"""Spins as bit planes, the bonds they satisfy, and the random numbers that new ones come from.

Plane b of a configuration holds bit b of every site's spin, 32 sites a word; the planes of one
configuration follow one another.  The bit of a vacant site is 0.
"""

from typing import Any, NamedTuple

from numba import njit, uint32, uint64

from percolab.bonds.keys import mix64, seed_at, stream_keys
from percolab.bonds.philox import philox_digits
from percolab.bonds.words import XORWOW
from percolab.kernels.neighbours import has_bit, other_bits

#: How often a chosen site that is vacant is chosen again.
_ATTEMPTS = 64


class Chain(NamedTuple):
    """What the random numbers of a chain are keyed by, and its threshold of p; uint64 each.

    On CUDA arrays, with one for each chain.

    bonds, spins, sites: seeds of the words of bonds, of new spins, and of chosen sites
    number:              of the chain
    threshold:           :func:`percolab.bonds.words.threshold_of` p
    """

    bonds: Any
    spins: Any
    sites: Any
    number: Any
    threshold: Any


def num_planes_of(states: int) -> int:
    """Return how many bit planes spins with so many states take.

    >>> [num_planes_of(q) for q in (2, 3, 4, 5, 256)]
    [1, 2, 2, 3, 8]
    """
    return (states - 1).bit_length()


@njit
def satisfied_word(planes, start, num_planes, adjacency, k, word, wanted):
    """Return which of the wanted bonds of word (k, word) join equal spins.

    The planes of the configuration begin at ``planes[start]``.  Bonds across a periodic seam must
    not be wanted.
    """
    num_words = uint32(adjacency.num_words)
    same = uint32(wanted)
    for plane in range(num_planes):
        if same != uint32(0):
            first = uint32(uint32(start) + uint32(uint32(plane) * num_words))
            own = planes[uint32(first + uint32(word))]
            others = other_bits(planes, first, num_words, adjacency.ends, k, word, same)
            same = uint32(same & ~uint32(own ^ others))
    return same


@njit
def spin_at(planes, start, num_planes, num_words, site):
    """Return the spin of a site, uint32."""
    spin, place = uint32(0), uint32(uint32(start) + uint32(uint32(site) >> uint32(5)))
    for plane in range(num_planes):
        if has_bit(planes[place], uint32(uint32(site) & uint32(31))):
            spin = uint32(spin | uint32(uint32(1) << uint32(plane)))
        place = uint32(place + uint32(num_words))
    return spin


@njit
def keyed_number(generator, seed, chain, place):
    """Return 64 random bits of a chain, keyed by a number below 2^32 such as a site's, as uint64.

    Of XORWOW's keys they are one output of the SplitMix64 sequence that its states come from; the
    seeds are other ones than those of bonds.
    """
    if generator == XORWOW:
        start, step = stream_keys(seed, chain)
        return mix64(uint64(start + uint64(uint64(place) * step)))
    x0, x1, _, _ = philox_digits(seed, chain, uint64(place), 0)
    return uint64(uint64(uint64(x0) << uint64(32)) | uint64(x1))


@njit
def below(number, count):
    """Return ``number`` * ``count`` / 2^64: from 64 random bits an integer below count, uint32.

    count: at most 2^32.  An integer's probability is off 1 / count by less than 2^-64.
    """
    half, mask = uint64(32), uint64(0xFFFFFFFF)
    high, low = uint64(uint64(number) >> half), uint64(uint64(number) & mask)
    carried = uint64(uint64(low * uint64(count)) >> half)
    return uint32(uint64(uint64(high * uint64(count)) + carried) >> half)


@njit
def change_of(generator, seed, chain, root, is_chosen, rule):
    """Return what a sweep does to the spin of a cluster, for :func:`changed`; uint32.

    seed: of new spins at this sweep.  root: the cluster's smallest site.  is_chosen: whether a
    chosen site is in it, which decides nothing where every cluster gets a new spin.
    """
    if rule.seeds == uint32(0):
        return below(keyed_number(generator, seed, chain, root), rule.states)
    if not is_chosen:
        return uint32(0)
    number = keyed_number(generator, seed, chain, root)
    step = uint32(below(number, uint32(rule.states - uint32(1))) + uint32(1))
    # Another number than the one that the spin comes from.
    decided = uint64(mix64(uint64(~number)) >> uint64(1))
    return step if decided < rule.flip else uint32(0)


@njit
def changed(old, change, rule):
    """Return the spin that was ``old`` after a change: that one, or so many states further."""
    if rule.seeds == uint32(0):
        return uint32(change)
    spin = uint32(uint32(old) + uint32(change))
    return uint32(spin - rule.states) if spin >= rule.states else spin


@njit
def chosen_site(generator, seed, chain, n, num_points, occupied):
    """Return the n-th chosen site of a sweep; all occupied sites are equally likely."""
    site = uint32(0)
    for attempt in range(_ATTEMPTS):
        place = uint64(uint64(uint64(n) * uint64(_ATTEMPTS)) + uint64(attempt))
        site = below(keyed_number(generator, seed, chain, place), num_points)
        if has_bit(occupied[uint32(site >> uint32(5))], uint32(site & uint32(31))):
            break
    return site


@njit
def first_spin(generator, seed, chain, site, states):
    """Return the spin of a site where a chain starts at random, uint32; seed: of new spins."""
    return below(keyed_number(generator, seed_at(seed, 0), chain, site), states)
