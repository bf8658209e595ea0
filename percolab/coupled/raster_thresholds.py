"""The exact spanning thresholds of samples: label at a low p, then open bond after bond.

The bonds that open in a window of p are put in the order of their uniform numbers and joined one
by one, until the sample spans along every axis.  This is the algorithm of Newman and Ziff (2001),
on the few percent of the bonds that matter.
"""

from numba import int64, njit, uint64

from percolab.bonds.sites import bond_number
from percolab.bonds.words import NEVER
from percolab.coupled.bond_order import list_late_bonds, order_by_number
from percolab.kernels.neighbours import end_of_bond
from percolab.kernels.union_find import find_halving
from percolab.labelers.raster_runs import join_sample, run_of
from percolab.measure.rows import spanning_bits


@njit(nogil=True, cache=True)
def thresholds_of_samples(
    generator, sites, seed, items, exists, bonds, num_points, ends, scratch, lists, found
):
    """Write T of every sample along every open axis, as ``scan_windows`` returns it.

    items: (samples, low, high), a window each, uint64.  ends: (end sites, their flags, open axes).
    found: uint64 (n, open axes).  scratch: as in :mod:`percolab.labelers.raster_runs`.  lists:
    (open words, late words, late bonds, their numbers, order, heads, planes), scratch.  Returns
    whether the late bonds of all samples fitted into their list.
    """
    opened, later, late_bonds, numbers, order, heads, planes = lists
    samples, lows, highs = items
    complete = int64(0)
    for axis in ends[2]:
        complete |= int64(1) << axis
    for n in range(samples.size):
        sample, low, high = samples[n], lows[n], highs[n]
        count = list_late_bonds(
            generator, sites, seed, sample, low, high, exists, opened, later, late_bonds
        )
        if count < 0:
            return False
        runs = join_sample(opened, bonds, num_points, scratch)
        spanned = _flag_ends(ends, runs, scratch)
        found[n] = uint64(NEVER)
        _note(low, spanned, ends[2], found[n])
        if spanned != complete:
            order_by_number(
                generator,
                sites,
                seed,
                sample,
                low,
                high,
                late_bonds,
                count,
                planes,
                numbers,
                order,
                heads,
            )
        for k in range(count):
            if spanned == complete:
                break
            bond = late_bonds[order[k]]
            gained = _open_bond(int64(bond), bonds, scratch) & ~spanned
            if gained:
                opens_at = bond_number(generator, sites, seed, sample, bond) + uint64(1)
                _note(opens_at, gained, ends[2], found[n])
                spanned |= gained
    return True


@njit
def _note(threshold, spanned, axes, found):
    """Write a threshold for those of the axes that are among the bits of ``spanned``."""
    for n in range(axes.size):
        if (spanned >> axes[n]) & 1:
            found[n] = threshold


@njit
def _flag_ends(ends, runs, scratch):
    """Set the end flags of all roots; return the axes along which a cluster spans, as bits."""
    starts, first, parents, _, reach = scratch
    sites, flags, _ = ends
    reach[:runs] = 0
    bits = int64(0)
    for n in range(sites.size):
        root = find_halving(parents, run_of(int64(sites[n]), starts, first))
        reach[root] |= flags[n]
        bits |= spanning_bits(reach[root])
    return bits


@njit
def _open_bond(bond, bonds, scratch):
    """Join the clusters at the ends of a bond; return the axes along which the new one spans."""
    _, seam_bonds, seam_ends, ends, _ = bonds
    starts, first, parents, _, reach = scratch
    i, j = end_of_bond(bond, 32 * starts.size, ends, seam_bonds, seam_ends)
    a = find_halving(parents, run_of(i, starts, first))
    b = find_halving(parents, run_of(j, starts, first))
    if a == b:
        return int64(0)
    if b < a:
        a, b = b, a
    parents[b] = a
    reach[a] |= reach[b]
    return spanning_bits(reach[a])
