"""Kernels of boxes: rows of bits gathered from the whole lattice, and faces of a labeled box.

The sites of a box are rows of the whole lattice: pieces of equally many consecutive sites.  Inside
the box the rows follow each other without a gap, so that its words are made of bits from many
places.
"""

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.bonds.hooks import class_limit
from percolab.bonds.sites import close_bonds, limits_at
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.inner import inner, inner_with_arrays
from percolab.kernels.union_find import union_halving
from percolab.labelers.raster_runs import find_run

# Words of a row made at a time.
_CHUNK = 256


@inner
def _put_bits(made, skip, count, begin, opened):
    """Put ``count`` bits of words, from bit ``skip`` on, to bit ``begin`` of others."""
    words = (skip + count + 31) >> 5
    beyond = (skip + count) & 31
    place, up = (begin - skip) >> 5, uint32((begin - skip) & 31)
    for n in range(words):
        bits = made[n]
        if n == 0:
            bits = uint32(bits & uint32(uint32(0xFFFFFFFF) << uint32(skip)))
        if n == words - 1 and beyond:
            bits = uint32(bits & uint32(uint32(uint32(1) << uint32(beyond)) - uint32(1)))
        if uint32(bits << up) != uint32(0):
            opened[place + n] |= uint32(bits << up)
        if up != uint32(0):
            over = uint32(bits >> uint32(uint32(32) - up))
            if over != uint32(0):
                opened[place + n + 1] |= over


@inner_with_arrays
def _fill_rows(keys, limit, klass, first, rows, width, exists, opened):
    """Write what is open of the owners in rows, one row after the other from bit 0 on.

    klass: uint64, one type in all calls, or it is compiled for each.  first: the number of an owner
    in the whole lattice, uint64.  rows: int64, the first owner of every row, counted from there.
    width: owners in a row.  exists, opened: uint32, one bit an owner.
    """
    stream = keys.generator, keys.seed, keys.sample
    most = min(int64(width), int64(32 * _CHUNK))
    every, made = np.empty((most + 62) >> 5, np.uint32), np.empty((most + 62) >> 5, np.uint32)
    every[:] = uint32(0xFFFFFFFF)
    opened[:] = uint32(0)
    base = uint64(uint64(klass) * keys.num_words)
    for n in range(rows.size):
        for start in range(0, width, 32 * _CHUNK):
            count = min(int64(width) - start, int64(32 * _CHUNK))
            owner = uint64(first + uint64(rows[n] + start))
            skip = int64(owner & uint64(31))
            words = (skip + count + 31) >> 5
            word = uint64(base + uint64(owner >> uint64(5)))
            fill_open_bonds(*stream, limit, word, every[:words], made[:words])
            _put_bits(made, skip, count, int64(n) * width + start, opened)
    for word in range(opened.size):
        opened[word] &= exists[word]


@njit(nogil=True, cache=True)
def fill_box(keys, first, rows, width, exists, sites, adjacency, opened, occupied):
    """Write the open bonds inside a box, and with ``occupied`` its occupied sites.

    first:    the number of its first site, uint64; rows, width: as :func:`_fill_rows` takes them
    exists:   uint32 (num_classes, words), its bonds; sites: uint32 (words,), its sites
    opened:   uint32 (num_classes, words); occupied: uint32 (words,), or empty where none are drawn
    """
    site_limit, bond_limit = limits_at(keys.rule, keys.threshold)
    for k in range(exists.shape[0]):
        limit = class_limit(keys.limits, k, bond_limit)
        _fill_rows(keys, limit, uint64(k), first, rows, width, exists[k], opened[k])
    if occupied.size:
        _fill_rows(keys, site_limit, keys.num_classes, first, rows, width, sites, occupied)
        close_bonds(opened.ravel(), occupied, adjacency)


@njit(nogil=True, cache=True)
def fill_crossing(keys, draws_sites, klass, owner, other, rows, width, exists, opened):
    """Write which bonds of one class across a face are open; return how many.

    owner, other: the numbers of the first owner and of the site at the other end of its bond,
    uint64; the other ends lie in the same rows, counted from there
    """
    site_limit, bond_limit = limits_at(keys.rule, keys.threshold)
    limit = class_limit(keys.limits, klass, bond_limit)
    _fill_rows(keys, limit, uint64(klass), owner, rows, width, exists, opened)
    if draws_sites:
        there = np.empty(opened.size, np.uint32)
        _fill_rows(keys, site_limit, keys.num_classes, owner, rows, width, opened, there)
        _fill_rows(keys, site_limit, keys.num_classes, other, rows, width, there, opened)
    count = int64(0)
    for place in range(opened.size):
        count += int64(popcount(opened[place]))
    return count


@njit(nogil=True, cache=True)
def read_crossing(opened, rows, first, width, code, runs, periods, roots, codes):
    """Write the root and the code of every open bond of :func:`fill_crossing`, in their order.

    rows, first: where the ends on this side lie in the box; width: sites in a row
    code:    the periods that the bonds lead over, for the side of the owners; 0 for the other
    periods: from the roots to the runs, or empty
    roots:   uint32; codes: int64, or empty where no axis is periodic
    """
    entry = 0
    for place in range(opened.size):
        left = opened[place]
        while left != uint32(0):
            number = int64(32) * int64(place) + int64(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            row = number // width
            site = int64(first) + rows[row] + (number - row * width)
            run = find_run(site, runs.starts, runs.first)
            roots[entry] = runs.parents[run]
            if codes.size:
                codes[entry] = int64(code)
                if periods.size:
                    codes[entry] += periods[run]
            entry += 1


@njit(nogil=True, cache=True)
def compress_runs(clusters, codes, counts):
    """Write runs of equal entries to the front of the arrays; return how many there are.

    clusters: uint32; codes: int64, or empty where no axis is periodic; counts: int64, the bonds of
    every entry, which are added up
    """
    last = int64(-1)
    for n in range(clusters.size):
        same = last >= 0 and clusters[n] == clusters[last]
        if same and codes.size:
            same = codes[n] == codes[last]
        if same:
            counts[last] += counts[n]
            continue
        last += 1
        clusters[last] = clusters[n]
        counts[last] = counts[n]
        if codes.size:
            codes[last] = codes[n]
    return last + 1


@njit(nogil=True, cache=True)
def match_runs(counts, other_counts, entries, other_entries):
    """Write which runs of the two sides of a face overlap, each pair once; return how many do.

    counts:  int64, the bonds of every run, as many in all on both sides
    entries: int64, numbers of runs; room for the runs of both sides together
    """
    pairs, n, m = int64(0), int64(0), int64(0)
    left = counts[0] if counts.size else int64(0)
    other_left = other_counts[0] if other_counts.size else int64(0)
    while n < counts.size and m < other_counts.size:
        entries[pairs], other_entries[pairs] = n, m
        pairs += 1
        taken = min(left, other_left)
        left -= taken
        other_left -= taken
        if left == 0:
            n += 1
            left = counts[n] if n < counts.size else int64(0)
        if other_left == 0:
            m += 1
            other_left = other_counts[m] if m < other_counts.size else int64(0)
    return pairs


@njit(nogil=True, cache=True)
def find_finished(own, other, own_may_end, other_may_end, own_ends, other_ends):
    """Write which clusters at the two sides of a face are in components that end there.

    own, other: uint32, entries of the same bonds, numbered from 0 on at each side
    own_may_end, other_may_end: uint8, whether a cluster crosses no other face
    own_ends, other_ends: uint8, the same of every cluster that the face joins to it
    """
    shift = int64(own_may_end.size)
    parents = np.arange(shift + other_may_end.size).astype(np.uint32)
    for n in range(own.size):
        union_halving(parents, int64(own[n]), int64(other[n]) + shift)
    may_end = np.ones(parents.size, np.uint8)
    for n in range(parents.size):
        # Parents are smaller, and come first.
        parents[n] = parents[parents[n]]
        ends = own_may_end[n] if n < shift else other_may_end[n - shift]
        may_end[parents[n]] &= ends
    for n in range(shift):
        own_ends[n] = may_end[parents[n]]
    for n in range(other_may_end.size):
        other_ends[n] = may_end[parents[n + shift]]
