"""The kernels behind the levels at which given values percolate: clusters with their directions.

Clusters are joined as runs (:mod:`percolab.labelers.raster_runs`), without sites that are never
open, and keep the periods to their roots.  A cluster has a *direction* for every open axis that it
spans and for every independent winding of its closed loops: a loop along a diagonal of a torus is
one direction, not two.
"""

from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32

from percolab.bonds.sites import close_bonds
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import bond_period_code, find_bond_end, has_bit
from percolab.labelers.raster_runs import find_run
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.rows import spanning_bits
from percolab.measure.wrapping import find_winding, join_over_periods, periods_along
from percolab.trees.invasion_cpu import neighbours

#: Of the bits of what a cluster reaches: bit a for axis a, and from here on one direction, two ...
FIRST_DIRECTION = 8
_KERNEL = {"nogil": True, "cache": True}


class Growth(NamedTuple):
    """The clusters of the bonds that are open so far."""

    runs: Any  # a :class:`percolab.labelers.raster_runs.Runs`; ``reach`` of the roots
    periods: Any  # int64 (runs,), periods from its root to every run
    slots: Any  # int32 (runs,), of every root the row of its windings, -1 if it has none
    # int32 (slots, axes, axes), independent windings, each 0 at the first axis of those before it
    windings: Any
    ranks: Any  # int8 (slots,), how many
    count: Any  # int64 (1,), slots in use


#: Of a site that a search reaches: the site before it, itself for a source; how many steps lead
#: there, below 0 where none do; and over which periods, as a code.  Together in memory.
REACHED = np.dtype([("before", np.int32), ("steps", np.int32), ("lifts", np.int64)])


@njit(**_KERNEL)
def write_open_bonds(exists, occupied, adjacency, opened):
    """Write the bonds whose two sites are occupied, as uint32 words of all classes."""
    opened[:] = exists
    close_bonds(opened, occupied, adjacency)


@inner
def _add_winding(growth, slot, wound):
    """Add a winding, int64 (axes,), which is overwritten, unless those of the slot span it."""
    rows, rank = growth.windings[slot], int64(growth.ranks[slot])
    for r in range(rank):
        axis = 0
        while rows[r, axis] == 0:
            axis += 1
        here = wound[axis]
        if here != 0:
            lead, common = int64(rows[r, axis]), int64(0)
            for a in range(wound.size):
                wound[a] = wound[a] * lead - rows[r, a] * here
                common = gcd(common, wound[a])
            if common == 0:
                return
            for a in range(wound.size):
                wound[a] //= common
    if wound.any():
        rows[rank] = wound
        growth.ranks[slot] = rank + 1


@inner
def _cluster_bits(growth, root):
    """Return what a cluster reaches: axes that it spans or wraps around, and its directions."""
    bits = int64(spanning_bits(growth.runs.reach[root]))
    directions, slot = int64(popcount(uint32(bits))), growth.slots[root]
    if slot >= 0:
        for r in range(growth.ranks[slot]):
            directions += 1
            for axis in range(growth.windings.shape[1]):
                if growth.windings[slot, r, axis] != 0:
                    bits |= int64(1) << axis
    return bits | (((int64(1) << directions) - 1) << FIRST_DIRECTION)


@inner
def _join(growth, i, j, code, wound):
    """Join two runs by a bond over ``code`` periods; return what the cluster reaches.

    0 if nothing has changed.  wound: int64 (axes,), scratch.
    """
    slots = growth.slots
    root, child, loop = join_over_periods(growth.runs.parents, growth.periods, i, j, code)
    if root != child:
        growth.runs.reach[root] |= growth.runs.reach[child]
        slot = slots[child]
        if slots[root] < 0:
            slots[root] = slot
        elif slot >= 0:
            for r in range(growth.ranks[slot]):
                for axis in range(wound.size):
                    wound[axis] = growth.windings[slot, r, axis]
                _add_winding(growth, slots[root], wound)
        return _cluster_bits(growth, root)
    if loop == int64(0):
        return int64(0)
    if slots[root] < 0:
        slots[root] = growth.count[0]
        growth.ranks[growth.count[0]] = 0
        growth.count[0] += 1
    for axis in range(wound.size):
        wound[axis] = periods_along(loop, axis, PERIOD_BITS)
    _add_winding(growth, slots[root], wound)
    return _cluster_bits(growth, root)


@njit(**_KERNEL)
def count_before(words, before):
    """Write how many ones there are before each word, int32; return how many in all, int64."""
    count = int64(0)
    for word in range(words.size):
        before[word] = count
        count += int64(popcount(words[word]))
    return count


@njit(**_KERNEL)
def join_ends(opened, adjacency, nodes, count, end_sites, end_flags, growth, wound):
    """Join runs across periodic boundaries; return what all clusters reach.

    opened: uint32, the open bonds; those inside are joined already.  nodes: uint32 (num_words,),
    the sites that have runs, ``count`` of these.  end_sites, end_flags: as ``Topology.end_flags``.
    wound: int64 (axes,), scratch.
    """
    runs = growth.runs
    growth.periods[:count] = 0
    growth.slots[:count] = -1
    runs.reach[:count] = 0
    growth.count[0] = 0
    for n in range(end_sites.size):
        if not has_bit(nodes[end_sites[n] >> 5], end_sites[n] & 31):
            continue
        run = find_run(int64(end_sites[n]), runs.starts, runs.first)
        root, _ = find_winding(runs.parents, growth.periods, run)
        runs.reach[root] |= end_flags[n]
    bits, stride = int64(0), int64(32) * int64(adjacency.num_words)
    for n in range(adjacency.periodic_bonds.size):
        bond = adjacency.periodic_bonds[n]
        if has_bit(opened[bond >> 5], bond & 31):
            i = find_run(bond % stride, runs.starts, runs.first)
            j = find_run(int64(adjacency.periodic_ends[n]), runs.starts, runs.first)
            bits |= _join(growth, i, j, adjacency.periodic_codes[n], wound)
    for n in range(end_sites.size):
        if not has_bit(nodes[end_sites[n] >> 5], end_sites[n] & 31):
            continue
        run = find_run(int64(end_sites[n]), runs.starts, runs.first)
        root, _ = find_winding(runs.parents, growth.periods, run)
        bits |= _cluster_bits(growth, root)
    return bits


@njit(**_KERNEL)
def list_new_bonds(before, after, adjacency, bonds, ends):
    """List the bonds open after and not before: numbers, int64 (n,), and ends, int32 (2, n)."""
    count = int64(0)
    for word in range(after.size):
        left = uint32(after[word] & ~before[word])
        while left != uint32(0):
            bonds[count] = 32 * word + int64(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            ends[0, count], ends[1, count] = find_bond_end(bonds[count], adjacency)
            count += 1


@njit(**_KERNEL)
def open_in_order(order, bonds, ends, adjacency, growth, wound, bits, complete, opens):
    """Open bonds one by one, and write which of them first reaches what; return what is reached.

    order: int64, places in bonds and ends.  bits: what is reached before; complete: what there is
    to reach.  opens: int64 (64,), gains the place of the bond that sets each further bit.
    """
    runs = growth.runs
    for n in order:
        if bits == complete:
            break
        i = find_run(int64(ends[0, n]), runs.starts, runs.first)
        j = find_run(int64(ends[1, n]), runs.starts, runs.first)
        code = bond_period_code(bonds[n], adjacency)
        gained = _join(growth, i, j, code, wound) & ~bits
        for bit in range(2 * FIRST_DIRECTION + 1):
            if (gained >> bit) & 1:
                opens[bit] = n
        bits |= gained
    return bits


# Paths of the fewest steps


@inner
def _code_from(site, bond, class_size, adjacency):
    """Return over how many periods a bond leads away from one of its sites, as a code."""
    code = bond_period_code(bond, adjacency)
    return code if bond % class_size == site else -code


@njit(**_KERNEL)
def search_path(where, opened, sources, targets, axis, nodes, first, reached):
    """Search the path of the fewest open bonds to a target, or without targets around an axis.

    Returns (one site, other site, winding, as a code): the search leads from the one back to a
    source, and from the other.  Both are the target; or a bond between them closes the loop, around
    the axis, that is the shortest through the one source.  It consists of two shortest paths and a
    bond, so the search looks at all bonds that close loops.

    where: a lattice's :class:`Ground` and its adjacency.  nodes, first: uint32 and int32
    (num_words,), sites with all ends of open bonds among them, and how many there are before each
    word; of sources and targets only these count.  reached:
    REACHED (sites,), overwritten.
    """
    # Numba counts references wherever a field is read, so fields are read outside of the loops.
    ground, adjacency = where
    axes, numbers, offsets = ground.axes, ground.first, ground.steps
    periodic, class_size = adjacency.periodic_words, int64(ground.class_size)
    queue = np.empty(reached.size, np.int32)
    ends, bonds = np.empty(ground.degree, np.int64), np.empty(ground.degree, np.int64)
    for node in range(reached.size):
        reached[node].steps = -1
    for site in targets:
        if has_bit(nodes[site >> 5], site & 31):
            reached[find_run(site, nodes, first)].steps = -2
    begin, last, best = int64(0), int64(0), int64(2) ** 62
    found = int64(-1), int64(-1), int64(0)
    for site in sources:
        if not has_bit(nodes[site >> 5], site & 31):
            continue
        item = reached[find_run(site, nodes, first)]
        item.before, item.lifts, item.steps, queue[last] = site, 0, 0, site
        last += 1
    while begin < last:
        site = int64(queue[begin])
        here = reached[find_run(site, nodes, first)]
        lift, step = here.lifts, int64(here.steps)
        begin += 1
        if best <= 2 * step + 1:
            break
        for n in range(neighbours(axes, numbers, offsets, site, ends, bonds)):
            end, bond = ends[n], bonds[n]
            if not has_bit(opened[bond >> 5], bond & 31):
                continue
            there, item = lift, reached[find_run(end, nodes, first)]
            if periodic.size and has_bit(periodic[bond >> 5], bond & 31):
                there += _code_from(site, bond, class_size, adjacency)
            if item.steps < 0:
                item.before, item.lifts = site, there
                if item.steps == -2:
                    return end, end, int64(0)
                item.steps, queue[last] = step + 1, end
                last += 1
            elif targets.size == 0 and step + item.steps + 1 < best:
                loop = there - item.lifts
                if periods_along(loop, axis, PERIOD_BITS) != 0:
                    best, found = int64(step + item.steps + 1), (site, end, loop)
    return found


@njit(**_KERNEL)
def way_back(site, nodes, first, reached):
    """Return the sites from one back to a source, and the periods there, int64 (n,) as codes.

    nodes, first, reached: as :func:`search_path` has left them.
    """
    count, here, back = 1, int64(site), int64(reached[find_run(site, nodes, first)].before)
    while back != here:
        here = back
        back = int64(reached[find_run(here, nodes, first)].before)
        count += 1
    sites, codes, here = np.empty(count, np.int64), np.empty(count, np.int64), int64(site)
    for n in range(count):
        item = reached[find_run(here, nodes, first)]
        sites[n], codes[n], here = here, item.lifts, int64(item.before)
    return sites, codes


@njit(**_KERNEL)
def list_path_bonds(where, opened, sites, codes, numbers):
    """Write the open bonds of a path, int64 (n - 1,), one of parallel ones; none to its own site.

    where: as for :func:`search_path`.  codes: int64 (n,), periods from the first site.
    """
    ground, adjacency = where
    ends, bonds = np.empty(ground.degree, np.int64), np.empty(ground.degree, np.int64)
    for k in range(numbers.size):
        site, step = int64(sites[k]), codes[k + 1] - codes[k]
        for n in range(neighbours(ground.axes, ground.first, ground.steps, site, ends, bonds)):
            bond = bonds[n]
            if ends[n] != sites[k + 1] or not has_bit(opened[bond >> 5], bond & 31):
                continue
            if _code_from(site, bond, ground.class_size, adjacency) == step:
                numbers[k] = bond
