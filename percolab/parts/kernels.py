"""Kernels of slabs on the CPU: their open bonds, their interfaces, and the joining of these.

Bonds are drawn from the keys of the whole lattice, where words are numbered with 64 bits.  A slab
may begin at any bit of a word: its words are put together by shifts of the lattice's words.

Clusters of an interface are the nodes of a union-find.  An entry of a face is one open bond that
crosses it: the number of the cluster that it reaches, and on tori a *code*, the periods from that
cluster's reference to the bond's lower end (:func:`percolab.lattices.topology.period_codes`).  Each
entry has a code, since one cluster may reach a face from several sides of the torus.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.bonds.hooks import class_limit
from percolab.bonds.sites import close_bonds, is_vacant, limits_at
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.inner import inner, inner_with_arrays
from percolab.kernels.neighbours import find_periodic_number, has_bit, periodic_word
from percolab.kernels.union_find import union_halving
from percolab.labelers.raster_runs import find_run, spanning_from_runs
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.rows import ROW_WIDTH, row_from_sizes, spanning_bits
from percolab.measure.sums import NUMBERS, SUMS64
from percolab.measure.tallies import EXACT, find_wide_bin, product, tally_sizes
from percolab.measure.wrapping import join_over_periods, note_loop, wrapping_bits

# Words made at a time if they must be shifted; one of these is made twice.
_CHUNK = 1024
#: A cluster that touches no face.
INSIDE = 0xFFFFFFFF

_empty, _with_cluster = SUMS64.empty, SUMS64.with_cluster
_merged, _take = SUMS64.merged, SUMS64.take


class SlabKeys(NamedTuple):
    """The keys from which a sample of the whole lattice is drawn."""

    generator: Any  # one of :data:`percolab.bonds.words.GENERATORS`' values
    seed: Any  # uint64, like the next two as :func:`percolab.bonds.words.open_word` takes them
    sample: Any
    threshold: Any
    rule: Any  # the model's :class:`percolab.bonds.models.base.Rule`
    limits: Any  # thresholds of classes, as :func:`percolab.bonds.hooks.class_limit` takes them
    num_words: Any  # words of one class of the whole lattice, uint64
    num_classes: Any  # bond classes; the words of sites follow theirs, uint64


@inner_with_arrays
def fill_from(keys, limit, klass, first, exists, opened):
    """Write the open words of a class for the owners from ``first`` on, in words from bit 0 on.

    limit: the threshold.  klass: num_classes for sites.  first: uint64.  exists, opened: uint32.
    """
    word = uint64(uint64(uint64(klass) * keys.num_words) + uint64(first >> uint64(5)))
    shift = uint32(first & uint64(31))
    stream = keys.generator, keys.seed, keys.sample
    if shift == uint32(0):
        fill_open_bonds(*stream, limit, word, exists, opened)
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
            opened[base + n] = uint32(both & exists[base + n])


@njit(nogil=True, cache=True)
def fill_slab(keys, first, exists, sites, adjacency, opened, occupied):
    """Write the open bonds inside a slab, and with ``occupied`` its occupied sites.

    first:    the number of its first site, uint64
    exists:   uint32 (num_classes, words), its bonds; sites: uint32 (words,), its sites
    opened:   uint32 (num_classes, words); occupied: uint32 (words,), or empty if not drawn
    """
    site_limit, bond_limit = limits_at(keys.rule, keys.threshold)
    for k in range(exists.shape[0]):
        limit = class_limit(keys.limits, k, bond_limit)
        fill_from(keys, limit, k, first, exists[k], opened[k])
    if occupied.size:
        fill_from(keys, site_limit, keys.num_classes, first, sites, occupied)
        close_bonds(opened.ravel(), occupied, adjacency)


@inner
def find_cut_bond(adjacency, place, bit):
    """Return the index, int64, in a cut's list of periodic bonds of a bit of word ``place``."""
    return find_periodic_number(int64(32) * int64(place) + int64(bit), adjacency.periodic_bonds)


@njit(nogil=True, cache=True)
def fill_cut(keys, draws_sites, above, below, cut, opened):
    """Write the open bonds of a cut; return their number.

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
        for n in range(cut.classes.size):
            for word in range(words):
                kept = close_cut_word(cut.adjacency, n, word, upper, lower, opened)
                opened[n * words + word] = kept
    count = int64(0)
    for place in range(opened.size):
        count += int64(popcount(opened[place]))
    return count


@inner
def close_cut_word(adjacency, n, word, upper, lower, opened):
    """Return the open bonds between occupied sites in a word of a cut's n-th class, uint32."""
    place = uint32(uint32(uint32(n) * uint32(adjacency.num_words)) + uint32(word))
    down, aside = int64(adjacency.ends[n]), periodic_word(adjacency.periodic_words, place)
    left = uint32(opened[place] & upper[word])
    kept = left
    while left != uint32(0):
        bit = uint32(trailing_zeros(left))
        left = uint32(left & uint32(left - uint32(1)))
        other = int64(int64(uint32(uint32(uint32(word) << uint32(5)) + bit)) + down)
        if has_bit(aside, bit):
            other = int64(adjacency.periodic_ends[find_cut_bond(adjacency, place, bit)])
        if is_vacant(lower, uint32(0), uint32(other)):
            kept = uint32(kept & ~uint32(uint32(1) << bit))
    return kept


@njit(nogil=True, cache=True)
def read_face(opened, cut, is_upper, shift, crossing, runs, periods, roots, codes):
    """Write the root and the code of every open bond of a cut, in the order of its bonds.

    is_upper: whether the slab has the owners, at sites from ``shift`` on, or the other ends
    crossing: the periods along the last axis that the bonds cross, if it has the owners
    periods:  those from the roots to the runs, or empty
    roots:    uint32; codes: int64, or empty if no axis is periodic
    """
    entry, words = 0, int64(cut.adjacency.num_words)
    for n in range(cut.classes.size):
        down = int64(0) if is_upper else int64(cut.adjacency.ends[n])
        for word in range(words):
            place = n * words + word
            left, aside = opened[place], periodic_word(cut.adjacency.periodic_words, place)
            while left != uint32(0):
                bit = uint32(trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                site, code = int64(32) * word + int64(bit) + down, int64(crossing)
                if has_bit(aside, bit):
                    at = find_cut_bond(cut.adjacency, place, bit)
                    code += int64(cut.adjacency.periodic_codes[at])
                    if not is_upper:
                        site = int64(cut.adjacency.periodic_ends[at])
                run = find_run(site + int64(shift), runs.starts, runs.first)
                roots[entry] = runs.parents[run]
                if codes.size:
                    codes[entry] = code if is_upper else int64(0)
                    if periods.size:
                        codes[entry] += periods[run]
                entry += 1


@inner
def _mark_roots(roots, sizes):
    """Make the sizes of roots negative; return how many were not negative before."""
    count = int64(0)
    for entry in range(roots.size):
        root = roots[entry]
        if sizes[root] > 0:
            sizes[root] = -sizes[root]
            count += 1
    return count


@inner
def _number_roots(entries, number, runs, sizes, flags):
    """Replace roots by numbers from ``number`` on, copy sizes and flags; return the next number."""
    for entry in range(entries.size):
        root = entries[entry]
        if runs.sizes[root] < 0:
            sizes[number] = uint64(-int64(runs.sizes[root]))
            flags[number] = runs.reach[root]
            runs.sizes[root] = 0
            runs.reach[root] = uint32(number)
            number += 1
        entries[entry] = runs.reach[root]
    return number


@njit(nogil=True, cache=True)
def measure_slab(count, low, high, ends, runs, row):
    """Remove the clusters of two faces from a slab, and write the row of the others.

    count:     runs of the slab, whose clusters were found
    low, high: uint32, roots of the entries, replaced by numbers from 0 on in their order
    ends:      (sites, flags) of the slab in end layers
    row:       int64, with a tally if it is longer than ROW_WIDTH; its flags are not written
    Return (sizes uint64 and flags uint32 of the numbered clusters; the spanning bits of all).
    """
    runs.reach[:count] = uint32(0)
    end_sites, end_flags = ends
    spanning = spanning_from_runs(
        end_sites, end_flags, runs.starts, runs.first, runs.parents, runs.reach
    )
    number = _mark_roots(low, runs.sizes) + _mark_roots(high, runs.sizes)
    sizes, flags = np.empty(number, np.uint64), np.empty(number, np.uint32)
    following = _number_roots(low, int64(0), runs, sizes, flags)
    _number_roots(high, following, runs, sizes, flags)
    row_from_sizes(runs.sizes, count, row)
    if row.size > ROW_WIDTH:
        tally_sizes(runs.sizes, count, runs.reach, row)
    return sizes, flags, spanning


@njit(nogil=True, cache=True)
def join_entries(upper, upper_codes, lower, lower_codes, shift, parents, periods, loop, axes):
    """Join the clusters at the two ends of every bond of a face; return the wrapping bits.

    upper, lower: uint32, entries of the same bonds; those of ``upper`` are numbered from ``shift``
    on.  periods: empty if no axis is periodic.  loop: as for :func:`note_loop`.
    """
    bits = int64(0)
    for entry in range(upper.size):
        i, j = int64(upper[entry]) + int64(shift), int64(lower[entry])
        if periods.size:
            code = upper_codes[entry] - lower_codes[entry]
            _, _, wound = join_over_periods(parents, periods, i, j, code)
            bits |= note_loop(wound, loop, axes)
        else:
            union_halving(parents, i, j)
    return bits


@njit(nogil=True, cache=True)
def gather_clusters(parents, periods, sizes, flags):
    """Point every cluster to its root, and add up sizes, uint64, and flags, uint32, there."""
    for n in range(parents.size):
        parent = parents[n]
        if parent == n:
            continue
        root = parents[parent]
        if periods.size and parent != root:
            periods[n] += periods[parent]
        parents[n] = root
        sizes[root] = uint64(sizes[root] + sizes[n])
        flags[root] = uint32(flags[root] | flags[n])


@njit(nogil=True, cache=True)
def number_entries(entries, codes, shift, number, parents, periods, numbers):
    """Renumber the entries of a remaining face in place; return the next free number.

    numbers: uint32, the new numbers of roots, INSIDE if there is none yet
    """
    for entry in range(entries.size):
        cluster = int64(entries[entry]) + int64(shift)
        root = parents[cluster]
        if numbers[root] == uint32(INSIDE):
            numbers[root] = uint32(number)
            number += 1
        entries[entry] = numbers[root]
        if codes.size:
            codes[entry] += periods[cluster]
    return number


@njit(nogil=True, cache=True)
def loop_bits(one, other, axes):
    """Return the wrapping bits of a loop, given another one of the sample; codes, int64."""
    return int64(wrapping_bits(one, other, axes, PERIOD_BITS))


@inner
def _times(number, factor):
    """Multiply a number, uint64 (4,) from the lowest digit on, by a uint64."""
    carry = uint64(0)
    for n in range(number.size):
        low, high = product(number[n], factor)
        total = uint64(low + carry)
        carry = uint64(high + (uint64(1) if total < low else uint64(0)))
        number[n] = total


@inner
def _add(total, number):
    """Add a number to another, uint64 (4,) each."""
    carry = uint64(0)
    for n in range(total.size):
        added = uint64(number[n] + carry)
        # If all bits of the digit are ones, adding a carry gives 0 and a new carry.
        carry = uint64(1) if added < carry else uint64(0)
        total[n] = uint64(total[n] + added)
        if total[n] < added:
            carry = uint64(1)


@njit(nogil=True, cache=True)
def finish_clusters(parents, sizes, flags, numbers, powers, bins):
    """Add up the clusters that touch no face, and copy the others' sizes and flags.

    powers: uint64 (3, 4), the sums of s^2 and, if sizes are tallied, of s^3 and s^4 over clusters
            of EXACT sites or more, each of 256 bits, lowest digit first
    bins:   int64, the clusters in each bin of sizes; empty if they are not tallied
    Return (sizes uint64 and flags uint32 of the clusters with a number; the sums over the others,
    uint64; the spanning bits of all).
    """
    left = int64(0)
    for n in range(parents.size):
        left += int64(parents[n] == n and numbers[n] != uint32(INSIDE))
    open_sizes, open_flags = np.empty(left, np.uint64), np.empty(left, np.uint32)
    number, sums, spanning = np.empty(4, np.uint64), _empty(), int64(0)
    for n in range(parents.size):
        if parents[n] != n:
            continue
        spanning |= spanning_bits(flags[n])
        if numbers[n] != uint32(INSIDE):
            open_sizes[numbers[n]] = sizes[n]
            open_flags[numbers[n]] = flags[n]
            continue
        size = sizes[n]
        sums = _with_cluster(sums, size)
        number[:] = uint64(0)
        number[0] = size
        _times(number, size)
        _add(powers[0], number)
        if bins.size:
            bins[find_wide_bin(size)] += 1
            if size >= uint64(EXACT):
                for power in range(1, 3):
                    _times(number, size)
                    _add(powers[power], number)
    return open_sizes, open_flags, sums, spanning


@njit(nogil=True, cache=True)
def merge_sums(numbers):
    """Return the merger of several records of sums, uint64, NUMBERS numbers each."""
    sums = _empty()
    for first in range(0, numbers.size, NUMBERS):
        sums = _merged(sums, _take(numbers, first, 1))
    return sums
