"""The exact spanning thresholds of samples: label at a low p, then open bond after bond.

The bonds that open in a window of p are put in the order of their uniform numbers and joined one
by one, until the sample spans along every axis.  This is the algorithm of Newman and Ziff (2001),
on the few percent of the bonds that matter.
"""

from typing import Any, NamedTuple

from numba import int64, njit, uint64

from percolab.bonds.hooks import bond_number
from percolab.bonds.words import NEVER
from percolab.coupled.bond_order import list_opening_bonds, order_by_number
from percolab.kernels.neighbours import find_bond_end
from percolab.kernels.union_find import find_halving
from percolab.labelers.raster_runs import find_run, join_open_bonds
from percolab.measure.rows import spanning_bits


class BondOrder(NamedTuple):
    """Memory for the bonds of a sample that open in a window, to be put in order."""

    later: Any  # uint32, the bond words at the upper end
    bonds: Any  # uint32, their numbers, as many as there is room for
    numbers: Any  # uint64, the first digits of their uniform numbers
    order: Any  # uint32, their positions in ascending order
    heads: Any  # uint32, scratch, one more
    planes: Any  # uint32, scratch for digits: how many are compared at first


@njit(nogil=True, cache=True)
def write_sample_thresholds(generator, seed, items, record, sample, axes, lists, found):
    """Write T of every sample along every open axis, as ``scan_windows`` returns it.

    items: (samples, low, high), a window each, uint64.  record: of the batch.  sample: a
    :class:`percolab.coupled.raster_grid.Sample`.  axes: int64, the open ones.  found: uint64 (n,
    open axes).  lists: a BondOrder.  Returns whether the opening bonds of all samples fitted into
    it.
    """
    runs = sample.runs
    bonds, order = lists.bonds, lists.order
    samples, lows, highs = items
    complete = int64(0)
    for axis in axes:
        complete |= int64(1) << axis
    for n in range(samples.size):
        key, low, high = (seed, samples[n]), lows[n], highs[n]
        words = sample.exists, sample.opened, lists.later
        count = list_opening_bonds(generator, record, *key, low, high, *words, bonds)
        if count < 0:
            return False
        num_runs = join_open_bonds(sample.opened, sample.adjacency, runs)
        spanned = _flag_ends(sample.end_flags, num_runs, runs)
        found[n] = uint64(NEVER)
        _note(low, spanned, axes, found[n])
        if spanned != complete:
            scratch = lists.planes, lists.numbers, order, lists.heads
            order_by_number(generator, record, *key, low, high, bonds, count, *scratch)
        for k in range(count):
            if spanned == complete:
                break
            bond = bonds[order[k]]
            gained = _open_bond(int64(bond), sample.adjacency, runs) & ~spanned
            if gained:
                opens_at = bond_number(generator, record, *key, bond) + uint64(1)
                _note(opens_at, gained, axes, found[n])
                spanned |= gained
    return True


@njit
def _note(threshold, spanned, axes, found):
    """Write a threshold for those of the axes that are among the bits of ``spanned``."""
    for n in range(axes.size):
        if (spanned >> axes[n]) & 1:
            found[n] = threshold


@njit
def _flag_ends(end_flags, count, runs):
    """Set the end flags of all roots; return the axes along which a cluster spans, as bits."""
    starts, first, parents, _, reach = runs
    sites, flags = end_flags
    reach[:count] = 0
    bits = int64(0)
    for n in range(sites.size):
        root = find_halving(parents, find_run(int64(sites[n]), starts, first))
        reach[root] |= flags[n]
        bits |= spanning_bits(reach[root])
    return bits


@njit
def _open_bond(bond, adjacency, runs):
    """Join the clusters at the ends of a bond; return the axes along which the new one spans."""
    starts, first, parents, _, reach = runs
    i, j = find_bond_end(bond, adjacency)
    a = find_halving(parents, find_run(i, starts, first))
    b = find_halving(parents, find_run(j, starts, first))
    if a == b:
        return int64(0)
    if b < a:
        a, b = b, a
    parents[b] = a
    reach[a] |= reach[b]
    return spanning_bits(reach[a])
