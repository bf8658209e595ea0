"""Kernels: label a sample at the lowest p by runs, and join the bonds that open above it.

Near p_c a few percent of the bonds open between neighbouring p of a sweep, so that the rows of a
grid cost little more than one labeling.  The sums over clusters, the spanning bits and the tally
are updated at every union; only the second largest cluster may have to be searched again.  For the
exact spanning thresholds, bonds are joined one by one in the order of their uniform numbers: the
algorithm of Newman and Ziff (2001), on the few bonds that matter.

parents, sizes: int32, reach: uint32, of all runs; row: int64 (ROW_WIDTH,), longer with a tally.
"""

from typing import Any, NamedTuple

from numba import int64, njit, uint64

from percolab.bonds.hooks import bond_number, fill_opened
from percolab.bonds.sites import count_drawn, write_vacant
from percolab.bonds.words import NEVER
from percolab.coupled.bond_order import list_opening_bonds, order_by_number, write_bond_steps
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import bond_period_code, find_bond_end
from percolab.kernels.union_find import find_halving
from percolab.labelers.raster_radii import gyration_from_runs
from percolab.labelers.raster_runs import (
    find_clusters,
    find_run,
    join_clusters,
    join_open_bonds,
    measure_runs,
)
from percolab.measure.rows import ROW_WIDTH, SECOND_LARGEST, SPANNING, spanning_bits
from percolab.measure.sums import SUMS, find_second
from percolab.measure.tallies import tally_cluster
from percolab.measure.wrapping import join_over_periods, note_loop

_replaced, _put, _take = SUMS.replaced, SUMS.put, SUMS.take

#: The most thresholds of a sample that are measured together; a step's number is a uint8.
MAX_STEPS = 255


class GridLists(NamedTuple):
    """Memory for the bonds of a sample that open along a grid."""

    bonds: Any  # uint32, their numbers; its length is the room for them
    steps: Any  # uint8, the step of the grid at which each opens
    order: Any  # uint32, their positions by step
    ends: Any  # int64 (MAX_STEPS + 2,), where each step ends in the order
    planes: Any  # uint32 (63,), scratch for digits
    later: Any  # uint32, the bond words at the highest p


class Sample(NamedTuple):
    """The attributes of a labeler and its batch that a call needs, by the same names.

    The batch's ``record`` is not included, as its type depends on the kind of model: functions
    that label and measure are thus compiled once for all models.
    """

    exists: Any
    drawn: Any
    opened: Any
    adjacency: Any
    occupied: Any
    end_flags: Any
    runs: Any
    windings: Any


@inner
def sort_by_step(steps, count, num_steps, order, ends):
    """Write a list's positions by step, uint8, and each step's end, as in :class:`GridLists`."""
    ends[: num_steps + 1] = 0
    for n in range(count):
        ends[steps[n] + 1] += 1
    for step in range(num_steps):
        ends[step + 1] += ends[step]
    for n in range(count):
        step = steps[n]
        order[ends[step]] = n
        ends[step] += 1


@inner
def _join(parents, a, b):
    """Join two runs; return the new root and the former one, equal if both had the same root."""
    a, b = find_halving(parents, a), find_halving(parents, b)
    if b < a:
        a, b = b, a
    parents[b] = a
    return a, b


@inner
def _add_cluster(sums, sizes, reach, row, a, b):
    """Add root b to its new parent a; return (the sums, whether the second largest is unknown).

    The row's flags and tally are updated, but not its sums.
    """
    large, small = max(int64(sizes[a]), int64(sizes[b])), min(int64(sizes[a]), int64(sizes[b]))
    joined = large + small
    sizes[a], sizes[b] = joined, 0
    reach[a] |= reach[b]
    row[SPANNING] |= spanning_bits(reach[a])
    if row.size > ROW_WIDTH:
        tally_cluster(row, large, int64(-1))
        tally_cluster(row, small, int64(-1))
        tally_cluster(row, joined, int64(1))
    return _replaced(sums, large, small)


@inner
def _measure(opened, sample, row):
    """Write the row of open bonds; return the number of runs."""
    count, wrapping = find_clusters(
        opened, sample.adjacency, sample.occupied, sample.runs, sample.windings
    )
    measure_runs(count, wrapping, sample.end_flags, sample.runs, row)
    return count


@inner
def _measure_drawn(sample, rows, wraps_alone):
    """Write the rows of the samples that are drawn, or only the flags of these rows."""
    for n in range(len(rows)):
        if wraps_alone:
            words = sample.drawn[n], sample.adjacency
            _, rows[n, SPANNING] = join_clusters(*words, sample.runs, sample.windings)
        else:
            _measure(sample.drawn[n], sample, rows[n])


@inner
def _grid_rows(sample, lists, rows):
    """Write the rows of a sample at every p of a grid, along which the listed bonds open."""
    starts, first, parents, sizes, reach = sample.runs
    count = _measure(sample.opened, sample, rows[0])
    periods = sample.windings.periods
    for step in range(1, len(rows)):
        row = rows[step]
        # A loop, since the shape checks of NumPy's assignment take seconds to compile.
        for n in range(row.size):
            row[n] = rows[step - 1, n]
        sums, lost = _take(row, 0, 1), False
        for n in range(lists.ends[step - 1], lists.ends[step]):
            number = int64(lists.bonds[lists.order[n]])
            i, j = find_bond_end(number, sample.adjacency)
            a, b = find_run(i, starts, first), find_run(j, starts, first)
            if periods.size:
                code = bond_period_code(number, sample.adjacency)
                a, b, wound = join_over_periods(parents, periods, a, b, code)
                if a == b:
                    row[SPANNING] |= note_loop(wound, sample.windings.loop, sample.windings.axes)
            else:
                a, b = _join(parents, a, b)
            if a != b:
                sums, is_lost = _add_cluster(sums, sizes, reach, row, a, b)
                lost |= is_lost
        _put(row, 0, 1, sums)
        if lost:
            row[SECOND_LARGEST] = find_second(sizes, count, sums.largest)


@inner
def _grid_length(samples, thresholds, n):
    """Return how many entries from n on are the same sample at ascending thresholds."""
    end = n + 1
    while end < samples.size and samples[end] == samples[n]:
        if thresholds[end] <= thresholds[end - 1] or end - n == MAX_STEPS:
            break
        end += 1
    return end - n


@inner
def _count_alike(thresholds, n, most):
    """Return how many entries from n on, at most ``most``, have the same threshold."""
    end, most = n + 1, min(n + most, thresholds.size)
    while end < most and thresholds[end] == thresholds[n]:
        end += 1
    return end - n


@njit(nogil=True, cache=True)
def write_entry_rows(
    generator, seed, samples, thresholds, record, sample, lists, wraps_alone, rows, counts
):  # fmt: skip
    """Write the rows of all entries; neighbouring entries of one sample share its labeling.

    wraps_alone: write only the wrapping bits to the rows, which are 0.  counts: int64, gets every
    entry's number of open bonds or, if the model draws sites, of vacant sites; or empty.
    """
    exists, opened = sample.exists, sample.opened
    n = 0
    while n < samples.size:
        key = seed, samples[n]
        length = _grid_length(samples, thresholds, n)
        count = int64(-1)
        if length > 1:
            grid = thresholds[n : n + length]
            ends = grid[0], grid[-1]
            words = exists, opened, lists.later
            count = list_opening_bonds(generator, record, *key, *ends, *words, lists.bonds)
        if count >= 0:
            buffers = lists.bonds, count, lists.planes, lists.steps
            write_bond_steps(generator, record, *key, grid, *buffers)
            sort_by_step(lists.steps, count, length, lists.order, lists.ends)
            _grid_rows(sample, lists, rows[n : n + length])
            here = counts[n : n + length]
            if here.size and not write_vacant(generator, record, *key, grid, here):
                first = count_drawn(record, 0, opened)
                for step in range(length):
                    here[step] = first + lists.ends[step]
            n += length
        else:
            entries = _count_alike(thresholds, n, len(sample.drawn))
            drawn = sample.drawn[:entries]
            own = samples[n : n + entries]
            fill_opened(generator, record, seed, own, thresholds[n], exists, drawn)
            _measure_drawn(sample, rows[n : n + entries], wraps_alone)
            if counts.size:
                for k in range(entries):
                    counts[n + k] = count_drawn(record, k, drawn[k])
            n += entries


@njit(nogil=True, cache=True)
def write_radii_rows(generator, seed, samples, grid, record, sample, geometry, sums, rows):
    """Write all bins of radii of bond samples at every p of a grid, labeled independently.

    geometry, sums: as for :func:`percolab.labelers.raster_radii.gyration_from_runs`.  rows:
    int64 (samples, grid, PER_BIN * bins).
    """
    for point in range(grid.size):
        for first in range(0, samples.size, len(sample.drawn)):
            own = samples[first : first + len(sample.drawn)]
            drawn = sample.drawn[: own.size]
            fill_opened(generator, record, seed, own, grid[point], sample.exists, drawn)
            for n in range(own.size):
                _measure_radii(drawn[n], sample, geometry, sums, rows[first + n, point])


@inner
def _measure_radii(opened, sample, geometry, sums, bins):
    adjacency, runs, windings = sample.adjacency, sample.runs, sample.windings
    count, _ = find_clusters(opened, adjacency, sample.occupied, runs, windings)
    places = sample.end_flags, runs, windings.periods, geometry
    gyration_from_runs(opened, adjacency, count, *places, sums, bins)


class BondOrder(NamedTuple):
    """Memory for the bonds of a sample that open in a window, to be put in order."""

    later: Any  # uint32, the bond words at the upper end
    bonds: Any  # uint32, their numbers; its length is the room for them
    numbers: Any  # uint64, the first digits of their uniform numbers
    order: Any  # uint32, their positions in ascending order
    heads: Any  # uint32, scratch, one longer
    planes: Any  # uint32, scratch for the digits that are compared first


@njit(nogil=True, cache=True)
def write_sample_thresholds(generator, seed, windows, record, sample, axes, lists, thresholds):
    """Write T of every sample along every open axis, as ``scan_windows`` returns it.

    windows: (samples, low, high), a window each, uint64.  record: that of the batch.  sample: a
    :class:`Sample`.  axes: int64, the open ones.  thresholds: uint64 (n, open axes).  lists: a
    BondOrder.  Return whether the opening bonds of all samples fitted into it.
    """
    runs = sample.runs
    bonds, order = lists.bonds, lists.order
    samples, lows, highs = windows
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
        thresholds[n] = uint64(NEVER)
        _note(low, spanned, axes, thresholds[n])
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
                _note(opens_at, gained, axes, thresholds[n])
                spanned |= gained
    return True


@inner
def _note(threshold, spanned, axes, thresholds):
    """Write a threshold for those axes whose bit is set in ``spanned``."""
    for n in range(axes.size):
        if (spanned >> axes[n]) & 1:
            thresholds[n] = threshold


@inner
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


@inner
def _open_bond(bond, adjacency, runs):
    """Join the clusters at the ends of a bond; return the axes along which the new one spans."""
    starts, first, parents, _, reach = runs
    i, j = find_bond_end(bond, adjacency)
    a, b = _join(parents, find_run(i, starts, first), find_run(j, starts, first))
    if a == b:
        return int64(0)
    reach[a] |= reach[b]
    return spanning_bits(reach[a])
