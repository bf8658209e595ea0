"""The kernels behind the levels at which given values percolate: clusters with their directions.

The clusters of the open bonds inside the array are nodes; bonds that join nodes carry periods.  On
the CPU nodes are runs (:mod:`percolab.labelers.raster_runs`), without sites that are never open.  A
cluster has a *direction* for every open axis that it spans and for every independent winding of its
closed loops: a loop along a diagonal of a torus is one direction, not two.
"""

from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint32

from percolab.bonds.sites import close_bonds
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.inner import inner, inner_with_arrays
from percolab.kernels.neighbours import bond_period_code, find_bond_end, has_bit
from percolab.labelers.raster_runs import find_run
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.rows import spanning_bits
from percolab.measure.wrapping import find_winding, join_over_periods, periods_along
from percolab.trees.invasion_cpu import neighbours

#: Bits of what a cluster reaches: bit a for axis a, and from this bit on one direction, two ...
FIRST_DIRECTION = 8
#: The value of unknown periods to a site.
_UNKNOWN = np.iinfo(np.int64).min
_KERNEL = {"nogil": True, "cache": True}


class Growth(NamedTuple):
    """The clusters of the bonds opened so far, as a union-find of nodes."""

    parents: Any  # int32 (nodes,)
    reach: Any  # uint32 (nodes,), end flags of the clusters at their roots
    periods: Any  # int64 (nodes,), periods from its root to every node
    slots: Any  # int32 (nodes,), for every root the row of its windings, -1 if it has none
    # int32 (slots, axes, axes), independent windings, each 0 at the first axis of those before it
    windings: Any
    ranks: Any  # int8 (slots,), number of windings
    count: Any  # int64 (1,), number of slots in use


@njit(**_KERNEL)
def write_open_bonds(exists, occupied, adjacency, opened):
    """Write the bonds whose two sites are occupied, as uint32 words of all classes."""
    opened[:] = exists
    close_bonds(opened, occupied, adjacency)


@inner_with_arrays
def _add_winding(growth, slot, wound):
    """Add a winding, int64 (axes,), unless the slot's windings span it; it is overwritten."""
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
    """Return the bits of the axes that a cluster spans or wraps around, and of its directions."""
    bits = int64(spanning_bits(growth.reach[root]))
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
    """Join two nodes by a bond across ``code`` periods; return the bits that the cluster reaches.

    Return 0 if nothing has changed.  wound: int64 (axes,), scratch.
    """
    slots = growth.slots
    root, child, loop = join_over_periods(growth.parents, growth.periods, i, j, code)
    if root != child:
        growth.reach[root] |= growth.reach[child]
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
    """Write the number of ones before each word, int32; return the total, int64."""
    count = int64(0)
    for word in range(words.size):
        before[word] = count
        count += int64(popcount(words[word]))
    return count


@njit(**_KERNEL)
def list_ends(nodes, starts, first, end_sites, end_flags, ends, flags):
    """List the runs of open sites in end layers, int32, with their flags; return their number.

    nodes: uint32 (num_words,), the sites that are open, or will be.  end_sites, end_flags: as
    in ``Topology.end_flags``.
    """
    count = int64(0)
    for n in range(end_sites.size):
        if has_bit(nodes[end_sites[n] >> 5], end_sites[n] & 31):
            ends[count] = find_run(int64(end_sites[n]), starts, first)
            flags[count] = end_flags[n]
            count += 1
    return count


@njit(**_KERNEL)
def list_crossing(opened, adjacency, starts, first, pairs, codes):
    """List open bonds across periodic boundaries: two runs, int32 (2, n), and codes, int64 (n,).

    Returns the number of these bonds.
    """
    count, stride = int64(0), int64(32) * int64(adjacency.num_words)
    for n in range(adjacency.periodic_bonds.size):
        bond = adjacency.periodic_bonds[n]
        if has_bit(opened[bond >> 5], bond & 31):
            pairs[0, count] = find_run(bond % stride, starts, first)
            pairs[1, count] = find_run(int64(adjacency.periodic_ends[n]), starts, first)
            codes[count] = adjacency.periodic_codes[n]
            count += 1
    return count


@njit(**_KERNEL)
def join_ends(growth, count, ends, flags, pairs, codes, wound):
    """Join clusters across periodic boundaries; return the bits of what they reach together.

    growth: parents are those inside the array; the rest is overwritten.  count: number of nodes.
    ends, flags: int32 and uint32 (n,), nodes in end layers.  pairs, codes: int32 (2, m) and int64
    (m,), the nodes that open bonds across boundaries join.  wound: int64 (axes,), scratch.
    """
    growth.periods[:count] = 0
    growth.slots[:count] = -1
    growth.reach[:count] = 0
    growth.count[0] = 0
    for n in range(ends.size):
        root, _ = find_winding(growth.parents, growth.periods, ends[n])
        growth.reach[root] |= flags[n]
    bits = int64(0)
    for n in range(codes.size):
        bits |= _join(growth, pairs[0, n], pairs[1, n], codes[n], wound)
    for n in range(ends.size):
        root, _ = find_winding(growth.parents, growth.periods, ends[n])
        bits |= _cluster_bits(growth, root)
    return bits


@njit(**_KERNEL)
def list_new_bonds(before, after, adjacency, bonds, ends, codes):
    """List the bonds that are open in ``after`` but not in ``before``, by ascending number.

    bonds, codes: int64 (n,), numbers, and the periods that they cross.  ends: int32 (2, n).
    """
    count, periodic = int64(0), adjacency.periodic_words
    for word in range(after.size):
        left = uint32(after[word] & ~before[word])
        while left != uint32(0):
            bit = trailing_zeros(left)
            left = uint32(left & uint32(left - uint32(1)))
            bonds[count] = 32 * word + int64(bit)
            ends[0, count], ends[1, count] = find_bond_end(bonds[count], adjacency)
            codes[count] = 0
            if periodic.size and has_bit(periodic[word], bit):
                codes[count] = bond_period_code(bonds[count], adjacency)
            count += 1


@njit(**_KERNEL)
def find_runs(sites, starts, first, found):
    """Write the runs of sites, int32 (2, n) both."""
    for n in range(sites.shape[1]):
        found[0, n] = find_run(int64(sites[0, n]), starts, first)
        found[1, n] = find_run(int64(sites[1, n]), starts, first)


@njit(**_KERNEL)
def open_in_order(order, nodes, codes, growth, wound, bits, complete, opens):
    """Open bonds one by one, and write which bond first sets each bit; return all bits reached.

    order: int64, places in nodes and codes, int32 (2, n) and int64 (n,).  bits: reached before;
    complete: bits that can be reached.  opens: int64 (64,), is set to the place of the bond that
    sets each further bit.
    """
    for n in order:
        if bits == complete:
            break
        gained = _join(growth, nodes[0, n], nodes[1, n], codes[n], wound) & ~bits
        for bit in range(2 * FIRST_DIRECTION + 1):
            if (gained >> bit) & 1:
                opens[bit] = n
        bits |= gained
    return bits


# Paths with the fewest steps.  Which of several is found does not depend on the order in which
# sites are reached: a path goes back to the first neighbour that is one step nearer.


@inner
def _code_from(site, bond, class_size, adjacency):
    """Return the periods that a bond crosses, leading away from one of its sites, as a code."""
    if adjacency.periodic_words.size == 0:
        return int64(0)
    if not has_bit(adjacency.periodic_words[bond >> 5], bond & 31):
        return int64(0)
    code = bond_period_code(bond, adjacency)
    return code if bond % class_size == site else -code


@njit(**_KERNEL)
def search_target(where, opened, sources, targets, nodes, first, steps):
    """Find the target that is the fewest open bonds from a source; of several the lowest site.

    Returns it, or -1.

    where: a lattice's :class:`Ground` and its adjacency.  nodes, first: uint32 and int32
    (num_words,), sites, including all ends of open bonds, and their number before each word; other
    sources and targets are ignored.  steps: int32 (sites,), is set to the number of steps to each
    site, negative if it was not reached.
    """
    # Numba counts references whenever a field is read, so fields are read outside of the loops.
    ground, _ = where
    axes, numbers, offsets = ground.axes, ground.first, ground.steps
    queue = np.empty(steps.size, np.int32)
    ends, bonds = np.empty(ground.degree, np.int64), np.empty(ground.degree, np.int64)
    steps[:] = -1
    for site in targets:
        if has_bit(nodes[site >> 5], site & 31):
            steps[find_run(site, nodes, first)] = -2
    begin, last, found, nearest = int64(0), int64(0), int64(-1), int64(2) ** 62
    for site in sources:
        if has_bit(nodes[site >> 5], site & 31):
            steps[find_run(site, nodes, first)], queue[last] = 0, site
            last += 1
    while begin < last:
        site = int64(queue[begin])
        step = int64(steps[find_run(site, nodes, first)])
        begin += 1
        if step >= nearest:
            break
        for n in range(neighbours(axes, numbers, offsets, site, ends, bonds)):
            end, bond = ends[n], bonds[n]
            if not has_bit(opened[bond >> 5], bond & 31):
                continue
            there = find_run(end, nodes, first)
            if steps[there] == -2:
                found = end if found < 0 else min(found, end)
                nearest = step + 1
            elif steps[there] == -1:
                steps[there], queue[last] = step + 1, end
                last += 1
    if found >= 0:
        steps[find_run(found, nodes, first)] = nearest
    return found


@njit(**_KERNEL)
def search_loop(where, opened, source, axis, nodes, first, steps, lifts):
    """Find the shortest loop of open bonds through a site that winds around an axis.

    Returns (one site, other site, winding, as a code): shortest paths lead from both back to the
    source, and a bond between them closes the loop; -1 for sites if there is no loop.  Of all such
    bonds it is the one with the lowest number, and the first site is the farther, or the lower.

    lifts: int64 (sites,), is set to the periods crossed on the way to a site.  The others: as for
    :func:`search_target`.
    """
    ground, adjacency = where
    axes, numbers, offsets = ground.axes, ground.first, ground.steps
    class_size = int64(ground.class_size)
    queue = np.empty(steps.size, np.int32)
    ends, bonds = np.empty(ground.degree, np.int64), np.empty(ground.degree, np.int64)
    steps[:] = -1
    begin, last, shortest, closing = int64(0), int64(1), int64(2) ** 62, int64(2) ** 62
    found = int64(-1), int64(-1), int64(0)
    start = find_run(source, nodes, first)
    steps[start], lifts[start], queue[0] = 0, 0, source
    while begin < last:
        site = int64(queue[begin])
        here = find_run(site, nodes, first)
        step, lift = int64(steps[here]), int64(0)
        begin += 1
        if 2 * step > shortest:
            break
        count = neighbours(axes, numbers, offsets, site, ends, bonds)
        for n in range(count if step > 0 else 0):
            if not has_bit(opened[bonds[n] >> 5], bonds[n] & 31):
                continue
            there = find_run(ends[n], nodes, first)
            if steps[there] == step - 1:
                lift = lifts[there] - _code_from(site, bonds[n], class_size, adjacency)
                break
        lifts[here] = lift
        for n in range(count):
            end, bond = ends[n], bonds[n]
            if not has_bit(opened[bond >> 5], bond & 31):
                continue
            there = find_run(end, nodes, first)
            if steps[there] < 0:
                steps[there], lifts[there], queue[last] = step + 1, _UNKNOWN, end
                last += 1
                continue
            length = step + steps[there] + 1
            # A bond between equally distant sites is handled when the later one is processed.
            if steps[there] > step or lifts[there] == _UNKNOWN or length > shortest:
                continue
            if length == shortest and bond >= closing:
                continue
            loop = lift + _code_from(site, bond, class_size, adjacency) - lifts[there]
            if periods_along(loop, axis, PERIOD_BITS) != 0:
                shortest, closing, found = length, bond, (site, end, loop)
                if steps[there] == step and end < site:
                    found = end, site, -loop
    return found


@njit(**_KERNEL)
def way_back(where, opened, site, nodes, first, steps):
    """Return the sites from a site back to a source, and the periods from there, codes, int64 (n,).

    nodes, first, steps: as a search has left them.
    """
    ground, adjacency = where
    ends, bonds = np.empty(ground.degree, np.int64), np.empty(ground.degree, np.int64)
    step = int64(steps[find_run(site, nodes, first)])
    sites, codes = np.empty(step + 1, np.int64), np.zeros(step + 1, np.int64)
    sites[0] = site
    for n in range(step):
        here = sites[n]
        for k in range(neighbours(ground.axes, ground.first, ground.steps, here, ends, bonds)):
            if not has_bit(opened[bonds[k] >> 5], bonds[k] & 31):
                continue
            if steps[find_run(ends[k], nodes, first)] == step - n - 1:
                sites[n + 1] = ends[k]
                code = _code_from(here, bonds[k], ground.class_size, adjacency)
                codes[n + 1] = codes[n] + code
                break
    codes -= codes[step]
    return sites, codes


@njit(**_KERNEL)
def list_path_bonds(where, sites, codes, found):
    """Write all bonds that match each step of a path, int64 (n - 1, degree), -1 for none.

    where: as for :func:`search_target`.  sites, codes: int64 (n,), periods from the first site.
    """
    ground, adjacency = where
    ends, bonds = np.empty(ground.degree, np.int64), np.empty(ground.degree, np.int64)
    found[:] = -1
    for k in range(found.shape[0]):
        site, step = int64(sites[k]), codes[k + 1] - codes[k]
        for n in range(neighbours(ground.axes, ground.first, ground.steps, site, ends, bonds)):
            is_step = _code_from(site, bonds[n], ground.class_size, adjacency) == step
            if ends[n] == sites[k + 1] and is_step:
                found[k, n] = bonds[n]
