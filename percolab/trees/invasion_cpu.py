"""The kernels of invasion percolation on the CPU.

Time and memory grow with the touched region only.  Words of 32 sites, and the random words of their
bonds or of the sites, get an entry in a hash table when they are first touched.  The frontier is a
*near* heap of the smallest keys, which stays in a cache, and 2^16 buckets, by the first binary
digits of the key, for the others, most of which are never taken.  Keys are compared by 32 digits;
if these agree, by all 63 digits and then by the number of the bond or site.

With trapping, an invasion is first run without it.  Then the invaded sites are given back to the
defender in reverse order, by union-find: a site that is connected with the target at its own step
was not trapped.  Trapping does not change the order of these sites.  Source of this two-step
method: Y. Masson, Comput. Geosci. 90, 41 (2016).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import int32, int64, njit, uint32, uint64

from percolab.bonds.digits import fill_planes
from percolab.bonds.words import uniform_number
from percolab.kernels.inner import INNER

#: Options of the functions that an invasion calls for every bond.  Calls that are not inlined count
#: references to arrays, which would take half of the time; so do several returns of a function.
_INLINED = {"forceinline": True, "error_model": "numpy"}
_KERNEL = {"nogil": True, "cache": True, "error_model": "numpy"}

#: An empty place of the hash table.
NONE = 2**64 - 1
#: Number of digits by which keys are compared first; a drawn word has one uint32 for each.
PLANES = 32
#: Number of buckets, and the size of the near heap at which it is cut down.
BUCKETS, NEAR = 2**16, 2048
_SHIFT = 48
#: Values of a candidate's ``following``: the end of a bucket, and a candidate that was taken.
END, TAKEN = -1, -2
#: Columns of an entry: bits of invaded sites; bits of sites invaded or on the frontier; then, for
#: each class, the row in ``digits`` of its random word, from 1 on, or 0 if it is not drawn.
INVADED, TOUCHED, DRAWN = 0, 1, 2
#: Counters of a run: entries, drawn words, candidates, size of the near heap, its last bucket, the
#: size at which it is cut down, steps, sources whose bonds are on the frontier, size of the front,
#: and the step that reached a target.
ENTRIES, WORDS, CANDIDATES, SIZE, LIMIT, MOST, STEPS, EXPANDED, FRONT, REACHED = range(10)
#: An element of the frontier: by bond ``bond``, to site ``to``, since step ``since``.
CANDIDATE = np.dtype(
    [("bond", "i8"), ("to", "i4"), ("since", "i4"), ("prefix", "u4"), ("following", "i4")]
)


class Ground(NamedTuple):
    """Where bonds lead: on a lattice by offsets, in a graph by lists."""

    # int64 (axes, 5): grid points, points of a cell, whether the axis is periodic, the index
    # difference of neighbours along it, and the longest offset of a bond; (0, 5) for a graph
    axes: Any
    # int64, the first row in ``steps`` of every cell point, or every site of a graph, and the end
    first: Any
    # int64 (n, 3 + axes): index difference, first bond number of the class, whether the site owns
    # the bond, offset; for a graph (n, 2): other end, bond number
    steps: Any
    degree: Any  # the largest number of bonds of a site
    class_size: Any  # number of bond numbers per class


class FrontierDraw(NamedTuple):
    """The data that determine the keys of bonds, or of sites."""

    generator: Any  # this and the next two: of the random words
    seed: Any
    sample: Any
    by_site: Any  # whether sites have keys, not bonds
    first_word: Any  # the first word of sites, which follows those of the bonds
    ranks: Any  # uint32, given keys by number; empty if the keys are the sample's own


class Target(NamedTuple):
    """Sites to be reached: layers at the ends of axes, and listed sites."""

    layers: Any  # int64 (axes, 2), number of layers at each end, 0 for none
    sites: Any  # int64, ascending


@njit(**INNER, **_INLINED)
def neighbours(axes, first, steps, site, ends, bonds):
    """Write the other ends and the numbers, int64, of a site's bonds; return the number of bonds.

    Bonds of a site to itself are left out.  The arguments are those of :class:`Ground`.
    """
    count, point, is_inner = 0, int64(site), True
    if len(axes) > 0:
        # 32-bit divisions take a fraction of the time of 64-bit ones.
        rest, points = uint32(site), uint32(1)
        point = int64(0)
        for axis in range(len(axes)):
            length, cell, reach = uint32(axes[axis, 0]), axes[axis, 1], uint32(axes[axis, 4])
            x = uint32(rest % length)
            rest = uint32(rest // length)
            is_inner &= x >= reach and uint32(x + reach) < length
            if cell > 1:
                point += int64(points) * int64(x % uint32(cell))
                points = uint32(points * uint32(cell))
    for n in range(first[point], first[point + 1]):
        end, bond, inside = steps[n, 0], steps[n, 1], True
        if len(axes) > 0:
            end += site
            for axis in range(0 if is_inner else len(axes)):
                step = steps[n, 3 + axis]
                if step == 0:
                    continue
                length, stride = axes[axis, 0], axes[axis, 3]
                x = int64(uint32(site) // uint32(stride) % uint32(length)) + step
                if x < 0 or x >= length:
                    inside = inside and axes[axis, 2] != 0
                    end += (x % length - x) * stride
            bond += site if steps[n, 2] != 0 else end
        if inside and end != site:
            ends[count] = end
            bonds[count] = bond
            count += 1
    return count


@njit(**INNER, **_INLINED)
def _is_target(axes, layers, sites, site):
    is_target, rest = False, uint32(site)
    for axis in range(len(axes)):
        x = int64(rest % uint32(axes[axis, 0]))
        rest = uint32(rest // uint32(axes[axis, 0]))
        is_target = is_target or x < layers[axis, 0] or x >= axes[axis, 0] - layers[axis, 1]
    low, high = 0, sites.size
    while low < high:
        middle = (low + high) >> 1
        if sites[middle] < site:
            low = middle + 1
        else:
            high = middle
    return is_target or (low < sites.size and sites[low] == site)


@njit(**INNER, **_INLINED)
def full_key(draw, number):
    """Return all digits of the key of a bond or site, uint64; for given keys their rank."""
    if draw.ranks.size:
        return uint64(draw.ranks[number])
    word = uint32(uint32(draw.first_word) + uint32(number >> 5))
    return uniform_number(draw.generator, draw.seed, draw.sample, word, uint32(number & 31))


@njit(**_KERNEL)
def fill_keys(draw, numbers, keys):
    """Write the keys of bonds or sites, uint64, by number; skip negative numbers."""
    for n in range(numbers.size):
        if numbers[n] >= 0:
            keys[n] = full_key(draw, numbers[n])


# Words of sites, and the random words that belong to them


@njit(**INNER, **_INLINED)
def _find_slot(word, size):
    mixed = uint64(uint64(word) * uint64(0x9E3779B97F4A7C15))
    return int64(uint64(mixed >> uint64(32)) & uint64(size - 1))


@njit(**INNER, **_INLINED)
def find_entry(table, entries, count, word):
    """Return the entry of a word of sites; make a new entry if it has none.

    table: uint64, at most half full; the word is in the upper half and the entry in the lower.
    Without a table every word has its own entry.
    """
    if table.size == 0:
        return int64(word)
    slot = _find_slot(word, table.size)
    stored = uint64(table[slot])
    while stored != uint64(NONE) and int64(stored >> uint64(32)) != word:
        slot = (slot + 1) & (table.size - 1)
        stored = uint64(table[slot])
    entry = int64(stored & uint64(0xFFFFFFFF))
    if stored == uint64(NONE):
        entry = int64(count[ENTRIES])
        count[ENTRIES] += 1
        table[slot] = uint64(uint64(uint64(word) << uint64(32)) | uint64(entry))
        for column in range(entries.shape[1]):
            entries[entry, column] = uint32(0)
    return entry


@njit(**_KERNEL)
def fill_table(table, old):
    """Insert the contents of an old hash table, uint64, into an empty one."""
    for stored in old:
        if stored != uint64(NONE):
            slot = _find_slot(int64(stored >> uint64(32)), table.size)
            while table[slot] != uint64(NONE):
                slot = (slot + 1) & (table.size - 1)
            table[slot] = stored


@njit(**INNER, **_INLINED)
def _transpose(rows):
    """Exchange rows and columns of 32 x 32 bits, uint32 (32,), by halves, quarters and so on.

    The highest bit is the first column.  Source: H. S. Warren, Hacker's Delight, section 7-3.
    """
    width, mask = uint32(16), uint32(0x0000FFFF)
    while width != uint32(0):
        row = uint32(0)
        while row < uint32(32):
            below = uint32(row + width)
            moved = uint32(uint32(rows[row] ^ uint32(rows[below] >> width)) & mask)
            rows[row] = uint32(rows[row] ^ moved)
            rows[below] = uint32(rows[below] ^ uint32(moved << width))
            row = uint32(uint32(below + uint32(1)) & uint32(~width))
        width = uint32(width >> uint32(1))
        mask = uint32(mask ^ uint32(mask << width))


@njit(**INNER, **_INLINED)
def _key_prefix(draw, entries, digits, count, entry, klass, number):
    """Return the first 32 digits of a key; its word is drawn when it is first touched."""
    prefix = uint32(0)
    if draw.ranks.size:
        prefix = uint32(draw.ranks[number])
    else:
        place = uint32(entries[entry, DRAWN + klass])
        if place == uint32(0):
            count[WORDS] += 1
            place = uint32(count[WORDS])
            entries[entry, DRAWN + klass] = place
            word = uint32(uint32(draw.first_word) + uint32(number >> 5))
            fill_planes(draw.generator, draw.seed, draw.sample, word, digits[place])
            _transpose(digits[place])
        # The last row belongs to bit 0.
        prefix = uint32(digits[place, uint32(uint32(31) - uint32(number & 31))])
    return prefix


# The frontier.  In the heap a candidate is a uint64: its prefix above its number.


@njit(**INNER, **_INLINED)
def _rise(near, size, candidate):
    """Insert a candidate into a heap of this size."""
    place = uint64(size)
    while place > uint64(0):
        parent = uint64(uint64(place - uint64(1)) >> uint64(1))
        if near[parent] < candidate:
            break
        near[place] = near[parent]
        place = parent
    near[place] = candidate


@njit(**INNER, **_INLINED)
def _sink(near, size, candidate):
    """Replace the first candidate of a heap of this size by another one."""
    place, child, last = uint64(0), uint64(1), uint64(size)
    near[last] = uint64(NONE)  # after the last child, which may have no sibling
    while child < last:
        # Either child is equally likely to be smaller, so avoid a branch.
        child = uint64(child + uint64(near[uint64(child + uint64(1))] < near[child]))
        if candidate < near[child]:
            break
        near[place] = near[child]
        place, child = child, uint64(uint64(child << uint64(1)) + uint64(1))
    near[place] = candidate


@njit(**INNER, **_INLINED)
def _put_away(candidates, heads, candidate):
    bucket, n = int64(candidate >> uint64(_SHIFT)), int64(candidate & uint64(0xFFFFFFFF))
    candidates[n].following = heads[bucket]
    heads[bucket] = int32(n)


@njit(**INNER, **_INLINED)
def _cut_down(candidates, near, heads, count):
    """Move candidates from the heap to their buckets, except those in the lower buckets."""
    size, kept = count[SIZE], int64(0)
    least = int64(near[0] >> uint64(_SHIFT))
    limit = (least + count[LIMIT]) >> 1
    for place in range(size):
        candidate = near[place]
        if int64(candidate >> uint64(_SHIFT)) <= limit:
            _rise(near, kept, candidate)
            kept += 1
        else:
            _put_away(candidates, heads, candidate)
    count[SIZE], count[LIMIT] = kept, limit
    count[MOST] = max(int64(NEAR), 2 * kept)


@njit(**INNER, **_INLINED)
def _is_filled(candidates, near, heads, count):
    """Return whether the frontier is not empty; fill the heap with its smallest candidates."""
    if count[SIZE] == 0:
        bucket = count[LIMIT] + 1
        while bucket < heads.size and heads[bucket] == END:
            bucket += 1
        if bucket < heads.size:
            n, size = int64(heads[bucket]), int64(0)
            heads[bucket] = END
            while n != END:
                candidate = uint64(uint64(uint64(candidates[n].prefix) << uint64(32)) | uint64(n))
                _rise(near, size, candidate)
                size += 1
                n = int64(candidates[n].following)
            count[LIMIT], count[SIZE], count[MOST] = bucket, size, max(count[MOST], 2 * size)
    return count[SIZE] > 0


@njit(**INNER, **_INLINED)
def _raise_first_equal(draw, candidates, near, size):
    """Move the candidate that is first by all digits, then by number, to the top of the heap."""
    top = near[0]
    first, least, number = int64(0), uint64(NONE), int64(0)
    for place in range(size):
        if uint64(near[place] >> uint64(32)) == uint64(top >> uint64(32)):
            n = int64(near[place] & uint64(0xFFFFFFFF))
            this = int64(candidates[n].to) if draw.by_site else int64(candidates[n].bond)
            key = full_key(draw, this)
            if key < least or (key == least and this < number):
                first, least, number = place, key, this
    near[0], near[first] = near[first], top


@njit(**INNER, **_INLINED)
def _push(candidates, near, heads, count, prefix, bond, to, since):
    """Add a bond, or a site, to the frontier; there must be room for a candidate."""
    n = count[CANDIDATES]
    count[CANDIDATES] += 1
    candidates[n].bond = bond
    candidates[n].to = to
    candidates[n].since = since
    candidates[n].prefix = prefix
    candidates[n].following = END
    candidate = uint64(uint64(uint64(prefix) << uint64(32)) | uint64(n))
    if int64(candidate >> uint64(_SHIFT)) > count[LIMIT]:
        _put_away(candidates, heads, candidate)
    else:
        _rise(near, count[SIZE], candidate)
        count[SIZE] += 1
        if count[SIZE] >= count[MOST]:
            _cut_down(candidates, near, heads, count)


@njit(**INNER, **_INLINED)
def _pop(draw, candidates, near, heads, count):
    """Remove the candidate with the smallest key from the frontier; return it, or -1 if empty."""
    least = int64(-1)
    if _is_filled(candidates, near, heads, count):
        size, prefix = count[SIZE], uint64(near[0] >> uint64(32))
        for child in range(1, min(size, 3)):
            if uint64(near[child] >> uint64(32)) == prefix:
                _raise_first_equal(draw, candidates, near, size)
        least = int64(near[0] & uint64(0xFFFFFFFF))
        count[SIZE] = size - 1
        _sink(near, size - 1, near[size - 1])
        candidates[least].following = TAKEN
    return least


# The invasion


@njit(**INNER, **_INLINED)
def _has(mask, site):
    return uint32(uint32(mask >> uint32(site & 31)) & uint32(1)) != uint32(0)


@njit(**INNER, **_INLINED)
def _mark(entries, entry, column, site):
    entries[entry, column] = uint32(entries[entry, column] | uint32(uint32(1) << uint32(site & 31)))


@njit(**_KERNEL)
def mark_sources(sources, table, entries, count):
    """Mark the sources, int64, as invaded; there must be room for their words."""
    for site in sources:
        entry = find_entry(table, entries, count, site >> 5)
        _mark(entries, entry, TOUCHED, site)
        _mark(entries, entry, INVADED, site)


@njit(**_KERNEL)
def advance_invasion(
    ground, draw, sources, is_free, target, ends, bonds, table, entries, digits, candidates, near,
    heads, count, sites, taken, fronts, until_target, most,
):  # fmt: skip
    """Invade site after site; return True at the end, or False if more room is needed.

    It ends when nothing is left, ``most`` sites are invaded or, if ``until_target``, a target is.

    sources: int64.  is_free: they are already marked and in ``sites``, and their bonds come first;
    otherwise they are the first frontier.  ends, bonds: int64 (degree,), scratch.  The other arrays
    are those of :class:`percolab.trees.invasion.State`; per step, sites: int32, taken: int64, the
    candidate by which it was invaded, and fronts: int64.
    """
    axes, first, steps = ground.axes, ground.first, ground.steps
    by_site, class_size = draw.by_site, ground.class_size
    room = int64(ground.degree + 1)
    while True:
        # Return for more room before a step that might need it.
        step, most_entries = count[STEPS], min(table.size >> 1, len(entries))
        if (
            (table.size > 0 and count[ENTRIES] + room > most_entries)
            or count[WORDS] + room > len(digits)
            or count[CANDIDATES] + room > candidates.size
            or step >= sites.size
        ):
            return False
        site, candidate, entry, degree = int64(-1), int64(-1), int64(0), 1
        # Take the next source whose bonds are not on the frontier yet, or else the least candidate.
        is_source = count[EXPANDED] < sources.size
        if is_source:
            ends[0], bonds[0] = sources[count[EXPANDED]], -1
            step = int64(-1)
            if is_free:
                step, site = count[EXPANDED], ends[0]
            count[EXPANDED] += 1
        else:
            if step >= most:
                return True
            candidate = _pop(draw, candidates, near, heads, count)
            if candidate < 0:
                return True
            site = int64(candidates[candidate].to)
        # Invade the site, unless it was reached by another bond before.
        if site >= 0:
            entry = find_entry(table, entries, count, site >> 5)
            if not is_source:
                if _has(entries[entry, INVADED], site):
                    continue
                _mark(entries, entry, INVADED, site)
                sites[step], taken[step] = site, candidate
                count[STEPS] += 1
                count[FRONT] -= int64(by_site)
            degree = neighbours(axes, first, steps, site, ends, bonds)
        # Add the site's bonds, or neighbours, to the frontier.
        for n in range(degree):
            end, bond, there = ends[n], bonds[n], entry
            if end >> 5 != site >> 5:
                there = find_entry(table, entries, count, end >> 5)
            if _has(entries[there, INVADED], end):
                count[FRONT] -= int64(not by_site and not is_source)
                continue
            number, klass, owner = end, int64(0), there
            if by_site:
                if _has(entries[there, TOUCHED], end):
                    continue
                _mark(entries, there, TOUCHED, end)
            else:
                # Floor division of signed integers would take another branch.
                number, klass = bond, int64(uint64(bond) // uint64(class_size))
                owner = there if bond - klass * class_size == end else entry
            prefix = _key_prefix(draw, entries, digits, count, owner, klass, number)
            _push(candidates, near, heads, count, prefix, bond, end, step)
            count[FRONT] += 1
        # Note the size of the frontier, and the first step that reaches the target.
        if not is_source:
            fronts[step] = count[FRONT]
            if count[REACHED] < 0 and _is_target(axes, target.layers, target.sites, site):
                count[REACHED] = step
                if until_target:
                    return True
        elif is_free:
            fronts[step] = count[FRONT]


# Trapping


@njit(**INNER, **_INLINED)
def _root(parents, site):
    while parents[site] != site:
        parents[site] = parents[parents[site]]
        site = int64(parents[site])
    return int64(site)


@njit(**INNER, **_INLINED)
def _join(parents, members, border, cut, one, other, outlet, step):
    """Join two clusters of the defender; sites that join the outlet were cut off at ``step``."""
    one, other = _root(parents, one), _root(parents, other)
    if one != other:
        out = _root(parents, outlet)
        if one == out:
            one, other = other, one
        # The cluster of ``one`` is merged into that of ``other``.
        if other == out:
            site = one
            while True:
                cut[site] = step
                site = int64(members[site])
                if site == one:
                    break
        border[other] += border[one]
        parents[one] = int32(other)
        members[one], members[other] = members[other], members[one]


@njit(**_KERNEL)
def give_back(
    ground, by_site, sites, num_sources, entrance, exits, steps, parents, members, contacts, border,
    cut, ends, bonds, fronts, is_kept,
):  # fmt: skip
    """Find the steps of an invasion that remain with trapping, and the front after each of them.

    entrance: int64, sites that the invader enters from outside, so that they are on the frontier.
    exits: bool (num_points,), the target.  steps: int32 (num_points,), when each site was invaded,
    or -1.  parents, members: int32 (num_points + 1,), border: int64 (num_points + 1,), contacts:
    int32 (num_points,), scratch.  cut: int32 (num_points,), is set to the step after which a site
    was cut off from the target: -1 for from the start, the largest int32 for never.
    """
    axes, first, moves = ground.axes, ground.first, ground.steps
    outlet, never = steps.size, int32(2**31 - 1)
    for site in range(outlet + 1):
        parents[site], members[site], border[site] = int32(site), int32(site), int64(0)
    contacts[:] = int32(0)
    cut[:] = int32(-1)
    for n in range(entrance.size):
        contacts[entrance[n]] += int32(1)
    for site in range(outlet):
        if steps[site] < 0:
            for n in range(neighbours(axes, first, moves, site, ends, bonds)):
                if steps[ends[n]] >= 0:
                    contacts[site] += int32(1)
            border[site] = min(contacts[site], 1) if by_site else contacts[site]
    for site in range(outlet):
        if steps[site] < 0:
            for n in range(neighbours(axes, first, moves, site, ends, bonds)):
                if steps[ends[n]] < 0:
                    _join(parents, members, border, cut, site, ends[n], outlet, never)
            if exits[site]:
                _join(parents, members, border, cut, site, outlet, outlet, never)
    for step in range(sites.size - 1, num_sources - 1, -1):
        site = int64(sites[step])
        fronts[step] = border[_root(parents, outlet)]
        for n in range(neighbours(axes, first, moves, site, ends, bonds)):
            end = ends[n]
            if steps[end] >= 0 and steps[end] < step:
                contacts[site] += int32(1)
            elif steps[end] < 0:
                contacts[end] -= int32(1)
                if not by_site or contacts[end] == 0:
                    border[_root(parents, end)] -= 1
        border[site] = min(contacts[site], 1) if by_site else contacts[site]
        steps[site] = int32(-1)
        for n in range(neighbours(axes, first, moves, site, ends, bonds)):
            if steps[ends[n]] < 0:
                _join(parents, members, border, cut, site, ends[n], outlet, int32(step))
        if exits[site]:
            _join(parents, members, border, cut, site, outlet, outlet, int32(step))
        is_kept[step] = _root(parents, site) == _root(parents, outlet)
        if is_kept[step]:
            cut[site] = never
    fronts[:num_sources] = border[_root(parents, outlet)]
