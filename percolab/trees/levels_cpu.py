"""The kernels behind the levels at which given values percolate: clusters with their directions.

Clusters are joined as runs (:mod:`percolab.labelers.raster_runs`) and keep the periods to their
roots.  A cluster has a *direction* for every open axis that it spans and for every independent
winding of its closed loops: a loop along a diagonal of a torus is one direction, not two.
"""

from math import gcd
from typing import Any, NamedTuple

from numba import int64, njit, uint32

from percolab.bonds.sites import close_bonds
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.neighbours import bond_period_code, find_bond_end, has_bit
from percolab.labelers.raster_runs import find_run, join_inside
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
    periods: Any  # int64 (num_points,), periods from its root to every run
    slots: Any  # int32 (num_points,), of every root the row of its windings, -1 if it has none
    # int32 (slots, axes, axes), independent windings, each 0 at the first axis of those before it
    windings: Any
    ranks: Any  # int8 (slots,), how many
    count: Any  # int64 (1,), slots in use


@njit(**_KERNEL)
def write_open_bonds(exists, occupied, adjacency, opened):
    """Write the bonds whose two sites are occupied, as uint32 words of all classes."""
    opened[:] = exists
    close_bonds(opened, occupied, adjacency)


@njit
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


@njit
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


@njit
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
def label_open_bonds(opened, adjacency, end_sites, end_flags, growth, wound):
    """Join all open bonds of a configuration; return what its clusters reach.

    end_sites, end_flags: as ``Topology.end_flags``.  wound: int64 (axes,), scratch.
    """
    runs = growth.runs
    count = join_inside(opened, adjacency, runs)
    growth.periods[:count] = 0
    growth.slots[:count] = -1
    runs.reach[:count] = 0
    growth.count[0] = 0
    for n in range(end_sites.size):
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


@njit
def _code_from(site, bond, class_size, adjacency):
    """Return over how many periods a bond leads away from one of its sites, as a code."""
    code = bond_period_code(bond, adjacency)
    return code if bond % class_size == site else -code


@njit(**_KERNEL)
def search_path(
    ground, adjacency, opened, sources, targets, axis, before, lifts, steps, queue, ends, bonds
):
    """Search the path of the fewest open bonds to a target, or without targets around an axis.

    Returns (one site, other site, winding, as a code): ``before`` leads from the one back to a
    source, and from the other.  Both are the target; or a bond between them closes the loop, around
    the axis, that is the shortest through the one source.  It consists of two shortest paths and a
    bond, so the search looks at all bonds that close loops.

    before: int32 (num_points,), gains the site before every one that is reached, itself for a
    source.  lifts: int64 like it, gains the periods, as a code, that the way there leads over.
    steps, queue: int32 like it, scratch.  ends, bonds: int64 (degree,), scratch.
    """
    steps[:] = -1
    steps[targets] = -2
    first, last, best = int64(0), int64(0), int64(2) ** 62
    found = int64(-1), int64(-1), int64(0)
    for site in sources:
        before[site], lifts[site], steps[site], queue[last] = site, 0, 0, site
        last += 1
    while first < last:
        site = int64(queue[first])
        first += 1
        if best <= 2 * steps[site] + 1:
            break
        for n in range(neighbours(ground.axes, ground.first, ground.steps, site, ends, bonds)):
            end, bond = ends[n], bonds[n]
            if not has_bit(opened[bond >> 5], bond & 31):
                continue
            there = lifts[site] + _code_from(site, bond, ground.class_size, adjacency)
            if steps[end] < 0:
                before[end], lifts[end] = site, there
                if steps[end] == -2:
                    return end, end, int64(0)
                steps[end], queue[last] = steps[site] + 1, end
                last += 1
            elif targets.size == 0 and steps[site] + steps[end] + 1 < best:
                loop = there - lifts[end]
                if periods_along(loop, axis, PERIOD_BITS) != 0:
                    best, found = int64(steps[site] + steps[end] + 1), (site, end, loop)
    return found


@njit(**_KERNEL)
def list_path_bonds(ground, adjacency, opened, sites, codes, ends, bonds, numbers):
    """Write the open bonds of a path, int64 (n - 1,), one of parallel ones; none to its own site.

    codes: int64 (n,), periods from the first site.  ends, bonds: as for :func:`search_path`.
    """
    for k in range(numbers.size):
        site, step = int64(sites[k]), codes[k + 1] - codes[k]
        for n in range(neighbours(ground.axes, ground.first, ground.steps, site, ends, bonds)):
            bond = bonds[n]
            if ends[n] != sites[k + 1] or not has_bit(opened[bond >> 5], bond & 31):
                continue
            if _code_from(site, bond, ground.class_size, adjacency) == step:
                numbers[k] = bond
