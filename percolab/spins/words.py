"""Spins as bit planes, the bonds they satisfy, and the random numbers for new spins.

Plane b of a configuration has bit b of every site's spin, 32 sites per word; the planes of one
configuration follow one another.  The bit of a vacant site is 0.

Planes, digits and words are uint32, and so are spins and sites.
"""

from typing import Any, NamedTuple

from numba import uint32, uint64

from percolab.bonds.keys import mix64, seed_at, stream_keys
from percolab.bonds.philox import philox_digits
from percolab.bonds.words import XORWOW
from percolab.bonds.xorwow import next_digits, xorwow_state
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import has_bit, other_bits

#: The number of attempts to choose a site that is not vacant.
_ATTEMPTS = 64


class Chain(NamedTuple):
    """The keys of the random numbers of a chain, and its threshold of p; uint64 each.

    On CUDA these are arrays with an entry for each chain.
    """

    bonds: Any  # seed of the words of bonds
    spins: Any  # seed of new spins
    sites: Any  # seed of chosen sites
    number: Any  # of the chain
    threshold: Any  # :func:`percolab.bonds.words.p_to_threshold` p


@inner
def satisfied_word(planes, start, num_planes, adjacency, k, word, requested):
    """Return which of the requested bonds of word (k, word) join equal spins.

    The planes of the configuration begin at ``planes[start]``.  Bonds across a periodic boundary
    must not be requested.
    """
    num_words = uint32(adjacency.num_words)
    same = uint32(requested)
    for plane in range(num_planes):
        if same != uint32(0):
            first = uint32(uint32(start) + uint32(uint32(plane) * num_words))
            own = planes[uint32(first + uint32(word))]
            others = other_bits(planes, first, num_words, adjacency.ends, k, word, same)
            same = uint32(same & ~uint32(own ^ others))
    return same


@inner
def spin_at(planes, start, num_planes, num_words, site):
    """Return the spin of a site, uint32."""
    spin, place = uint32(0), uint32(uint32(start) + uint32(uint32(site) >> uint32(5)))
    for plane in range(num_planes):
        if has_bit(planes[place], uint32(uint32(site) & uint32(31))):
            spin = uint32(spin | uint32(uint32(1) << uint32(plane)))
        place = uint32(place + uint32(num_words))
    return spin


@inner
def write_spin(planes, start, num_planes, num_words, site, spin):
    """Write the spin of a site, uint32."""
    bit, place = uint32(uint32(site) & uint32(31)), uint32(uint32(site) >> uint32(5))
    place = uint32(uint32(start) + place)
    for plane in range(num_planes):
        cleared = uint32(planes[place] & ~uint32(uint32(1) << bit))
        one = uint32(uint32(uint32(spin >> uint32(plane)) & uint32(1)) << bit)
        planes[place] = uint32(cleared | one)
        place = uint32(place + uint32(num_words))


@inner
def keyed_number(generator, seed, chain, place):
    """Return 64 random bits of a chain, uint64, keyed by a number below 2^32 (for example, a site).

    For XORWOW they are one output of the SplitMix64 sequence that makes its states; the seeds
    differ from those of bonds.
    """
    if generator == XORWOW:
        start, step = stream_keys(seed, chain)
        return mix64(uint64(start + uint64(uint64(place) * step)))
    x0, x1, _, _ = philox_digits(seed, chain, uint64(place), 0)
    return uint64(uint64(uint64(x0) << uint64(32)) | uint64(x1))


@inner
def below(number, count):
    """Return ``number`` * ``count`` / 2^64: an integer below count, uint32, from 64 random bits.

    count: at most 2^32.  The probability of an integer differs from 1 / count by less than 2^-64.
    """
    half, mask = uint64(32), uint64(0xFFFFFFFF)
    high, low = uint64(uint64(number) >> half), uint64(uint64(number) & mask)
    carried = uint64(uint64(low * uint64(count)) >> half)
    return uint32(uint64(uint64(high * uint64(count)) + carried) >> half)


@inner
def _begin_digits(generator, seed, chain, word):
    """Return the state of a word's stream before its first plane, six uint32."""
    if generator == XORWOW:
        return xorwow_state(seed, chain, word)
    none = uint32(0)
    return none, none, none, none, none, none


@inner
def _take_digits(generator, seed, chain, word, plane, state):
    """Return (digit plane number ``plane``, the state after it); planes must be taken in order."""
    if generator == XORWOW:
        v0, v1, v2, v3, v4, d = state
        drawn, v0, v1, v2, v3, v4, d = next_digits(plane, v0, v1, v2, v3, v4, d)
        return drawn, (v0, v1, v2, v3, v4, d)
    x0, x1, x2, x3 = philox_digits(seed, chain, word, plane // 4)
    part = plane % 4
    return x0 if part == 0 else x1 if part == 1 else x2 if part == 2 else x3, state


@inner
def write_digits(generator, seed, chain, word, num_planes, digits, where, right):
    """Write the random digits of 32 sites: bit b of plane k is bit k of the new spin of site b.

    They are the first digit planes of the word's stream, each shifted right by ``right`` bits.
    where: the first plane's index in ``digits``, and the distance from one plane to the next.
    """
    at, step = where
    state = _begin_digits(generator, seed, chain, word)
    for plane in range(num_planes):
        drawn, state = _take_digits(generator, seed, chain, word, plane, state)
        digits[at + plane * step] = uint32(drawn >> right)


@inner
def add_digits(generator, seed, chain, word, num_planes, digits, where, left):
    """Add the random digits of 32 sites, shifted left by ``left`` bits, to ``digits``."""
    at, step = where
    state = _begin_digits(generator, seed, chain, word)
    for plane in range(num_planes):
        drawn, state = _take_digits(generator, seed, chain, word, plane, state)
        place = at + plane * step
        digits[place] = uint32(digits[place] | uint32(drawn << left))


@inner
def _read_spin(generator, seed, chain, site, num_planes):
    """Return the new spin of one site, from the digits of its word; uint32."""
    word, bit = uint32(uint32(site) >> uint32(5)), uint32(uint32(site) & uint32(31))
    spin, state = uint32(0), _begin_digits(generator, seed, chain, word)
    for plane in range(num_planes):
        drawn, state = _take_digits(generator, seed, chain, word, plane, state)
        if has_bit(drawn, bit):
            spin = uint32(spin | uint32(uint32(1) << uint32(plane)))
    return spin


@inner
def spin_change(generator, seed, chain, root, is_chosen, rule):
    """Return the change of a cluster's spin in a sweep, for :func:`changed`; uint32.

    seed: of new spins at this sweep.  root: the cluster's smallest site.  is_chosen: whether a
    chosen site is in it, which does not matter if every cluster gets a new spin.
    """
    if rule.by_word != uint32(0):
        return _read_spin(generator, seed, chain, root, rule.planes)
    if rule.seeds == uint32(0):
        return below(keyed_number(generator, seed, chain, root), rule.states)
    if not is_chosen:
        return uint32(0)
    number = keyed_number(generator, seed, chain, root)
    step = uint32(below(number, uint32(rule.states - uint32(1))) + uint32(1))
    # This number must differ from the one that determines the spin.
    decided = uint64(mix64(uint64(~number)) >> uint64(1))
    return step if decided < rule.flip else uint32(0)


@inner
def changed(old, change, rule):
    """Return the spin after a change: the new spin, or ``old`` advanced by ``change`` states."""
    if rule.seeds == uint32(0):
        return uint32(change)
    spin = uint32(uint32(old) + uint32(change))
    return uint32(spin - rule.states) if spin >= rule.states else spin


@inner
def chosen_site(generator, seed, chain, n, num_points, occupied):
    """Return the n-th chosen site of a sweep; all occupied sites are equally likely."""
    site = uint32(0)
    for attempt in range(_ATTEMPTS):
        place = uint64(uint64(uint64(n) * uint64(_ATTEMPTS)) + uint64(attempt))
        site = below(keyed_number(generator, seed, chain, place), num_points)
        if has_bit(occupied[uint32(site >> uint32(5))], uint32(site & uint32(31))):
            break
    return site


@inner
def first_spin(generator, seed, chain, site, rule):
    """Return a site's spin in a chain that starts at random, uint32; seed: of new spins."""
    return below(keyed_number(generator, seed_at(seed, 0), chain, site), rule.states)
