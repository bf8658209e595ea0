"""Removal one by one: each step removes a site or bond with the largest score in what is left.

degree       for a bond, the product of the degrees of its two sites, counted in the bonds left;
             O(M) per removal
betweenness  for a site or bond, by U. Brandes, J. Math. Sociol. 25, 163 (2001), a search from every
             site; O(N M) per removal.  Values of at least 1 - 1e-9 times the largest count as equal
             to it, so that symmetric sites are equal
influence    for a site, its collective influence: its degree less 1, times the sum of the degrees
             less 1 of all sites two steps away (F. Morone and H. A. Makse, Nature 524, 65 (2015),
             with balls of radius 2); about N <k>^2 steps per removal

Equal scores are equally likely: removal t chooses by the uniform number u of bond or site t.
Degrees of sites need no scores
(:func:`percolab.coupled.one_by_one.order_by_degree`).
"""

import numpy as np
from numba import float64, int64, njit, uint32

from percolab.bonds.words import TOP, uniform_number
from percolab.kernels.inner import inner_with_arrays

_TOP_FLOAT = float(TOP)
_EQUAL = 1 - 1e-9


@njit(nogil=True, cache=True)
def order_by_score(generator, seed, sample, openings, num_sites, order):
    """Write the order of openings that are removed one by one, always one with the largest score.

    openings: a :class:`percolab.coupled.one_by_one.Openings`, whose rank is -2 for betweenness and
    -3 for influence.
    order: uint32 (M,), overwritten; the last removed first
    """
    places, count = openings.places, openings.places.size
    removes_sites, kind = openings.sites.size > 0, openings.ranks[0]
    starts, others, bonds = _list_neighbours(openings, num_sites)
    has_site, has_bond = np.ones(num_sites, np.bool_), np.ones(bonds.size, np.bool_)
    scores = np.empty(count, np.float64)
    is_left = has_site if removes_sites else has_bond[:count]
    for step in range(count):
        if kind == -2:
            scores[:] = 0.0
            _add_betweenness(starts, others, bonds, has_site, has_bond, removes_sites, scores)
        elif kind == -3:
            _find_influence(starts, others, has_site, scores)
        else:
            _multiply_degrees(openings.pairs, has_bond, num_sites, scores)
        most = -1.0
        for n in range(count):
            if is_left[n] and scores[n] > most:
                most = scores[n]
        equal = 0
        for n in range(count):
            equal += is_left[n] and scores[n] >= _EQUAL * most
        place = places[step]
        number = uniform_number(generator, seed, sample, uint32(place >> 5), uint32(place & 31))
        chosen = int64(float64(number) / _TOP_FLOAT * equal)
        for n in range(count):
            if is_left[n] and scores[n] >= _EQUAL * most:
                if chosen == 0:
                    is_left[n] = False
                    order[count - 1 - step] = uint32(n)
                    break
                chosen -= 1


@inner_with_arrays
def _list_neighbours(openings, num_sites):
    """Return each site's first index in the list of neighbours, that list, and their bonds."""
    pairs, size = openings.pairs, openings.pairs.shape[0]
    if openings.sites.size:
        # The pairs are listed for both of their sites, and bonds are not removed.
        return openings.starts, pairs[:, 1].copy(), np.zeros(size, np.int64)
    starts = np.zeros(num_sites + 1, np.int64)
    for n in range(size):
        starts[pairs[n, 0] + 1] += 1
        starts[pairs[n, 1] + 1] += 1
    starts = np.cumsum(starts)
    free, others = starts.copy(), np.empty(2 * size, np.int32)
    bonds = np.empty(2 * size, np.int64)
    for n in range(size):
        for end in range(2):
            at = free[pairs[n, end]]
            others[at], bonds[at] = pairs[n, 1 - end], n
            free[pairs[n, end]] += 1
    return starts, others, bonds


@inner_with_arrays
def _multiply_degrees(pairs, has_bond, num_sites, scores):
    degrees = np.zeros(num_sites, np.int64)
    for n in range(scores.size):
        if has_bond[n]:
            degrees[pairs[n, 0]] += 1
            degrees[pairs[n, 1]] += 1
    for n in range(scores.size):
        scores[n] = float64(degrees[pairs[n, 0]] * degrees[pairs[n, 1]])


@inner_with_arrays
def _find_influence(starts, others, has_site, scores):
    """Write the collective influence of every remaining site."""
    num_sites = has_site.size
    excess, seen_from = np.full(num_sites, -1, np.int64), np.full(num_sites, -1, np.int64)
    for i in range(num_sites):
        for n in range(starts[i], starts[i + 1]):
            excess[i] += has_site[others[n]]
    for i in range(num_sites):
        seen_from[i] = i
        for n in range(starts[i], starts[i + 1]):
            seen_from[others[n]] = i
        total = 0
        for n in range(starts[i], starts[i + 1]):
            j = others[n]
            if not has_site[j]:
                continue
            for m in range(starts[j], starts[j + 1]):
                k = others[m]
                if has_site[k] and seen_from[k] != i:
                    seen_from[k] = i
                    total += excess[k]
        scores[i] = float64(excess[i] * total)


@inner_with_arrays
def _add_betweenness(starts, others, bonds, has_site, has_bond, of_sites, scores):
    """Add twice its betweenness to the score of every remaining site or bond."""
    num_sites = has_site.size
    found, steps = np.empty(num_sites, np.int64), np.empty(num_sites, np.int64)
    paths, shares = np.empty(num_sites, np.float64), np.empty(num_sites, np.float64)
    for source in range(num_sites):
        if not has_site[source]:
            continue
        steps[:], paths[:], shares[:] = -1, 0.0, 0.0
        steps[source], paths[source], found[0] = 0, 1.0, source
        count, head = 1, 0
        while head < count:
            i = found[head]
            head += 1
            for n in range(starts[i], starts[i + 1]):
                j = others[n]
                if not (has_site[j] and has_bond[bonds[n]]):
                    continue
                if steps[j] < 0:
                    steps[j] = steps[i] + 1
                    found[count] = j
                    count += 1
                if steps[j] == steps[i] + 1:
                    paths[j] += paths[i]
        for at in range(count - 1, 0, -1):
            i = found[at]
            for n in range(starts[i], starts[i + 1]):
                j = others[n]
                if has_site[j] and has_bond[bonds[n]] and steps[j] == steps[i] - 1:
                    share = paths[j] / paths[i] * (1.0 + shares[i])
                    shares[j] += share
                    if not of_sites:
                        scores[bonds[n]] += share
            if of_sites:
                scores[i] += shares[i]
