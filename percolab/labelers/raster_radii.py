"""Radii of clusters from runs: the coordinates of all sites of a run are added at once."""

from numba import int32, int64, njit, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import periodic_bond
from percolab.kernels.uncounted import UNCOUNTED
from percolab.labelers.raster_runs import find_run
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.radii import OUT, SCALARS, add_spread, has_end
from percolab.measure.wrapping import periods_along


@inner
def _mark_loops(opened, adjacency, runs, periods):
    """Mark the roots of clusters that wrap; every run must point to its root."""
    for n in range(adjacency.periodic_bonds.size):
        is_open, owner, other = periodic_bond(n, opened, uint32(0), adjacency)
        if is_open:
            i = find_run(int64(owner), runs.starts, runs.first)
            j = find_run(int64(other), runs.starts, runs.first)
            if periods[i] + adjacency.periodic_codes[n] != periods[j]:
                runs.reach[runs.parents[i]] |= uint32(OUT)


@njit(nogil=True, cache=True, **UNCOUNTED)
def gyration_from_runs(opened, adjacency, count, layers, runs, periods, geometry, sums, bins):
    """Write the numbers of all bins, int64 (PER_BIN * bins,), of a sample joined to ``count`` runs.

    runs: a :class:`percolab.labelers.raster_runs.Runs`, whose sizes are lost.  layers: (end-layer
    sites, their flags).  periods: int64, of every run, or empty.  geometry: (prefixes uint64
    (points + 1, axes + 2), spans int64 (period, axes), scratch int64 (axes,)), see
    :class:`percolab.lattices.geometry.Geometry`.  sums: scratch, uint64, ``axes + SCALARS`` numbers
    for every second site and one more.
    """
    prefixes, spans, shift = geometry
    for run in range(count):
        runs.reach[run] = uint32(0)
    for n in range(layers[0].size):
        run = find_run(int64(layers[0][n]), runs.starts, runs.first)
        runs.reach[runs.parents[run]] |= layers[1][n]
    if periods.size:
        _mark_loops(opened, adjacency, runs, periods)
    for k in range(bins.size):
        bins[k] = 0
    width = shift.size + SCALARS
    clusters = _number_clusters(runs, count, width, sums, bins)
    _sum_runs(runs, int64(adjacency.num_points), periods, prefixes, spans, shift, sums)
    for cluster in range(1, clusters):
        at = cluster * width
        # Shifts may leave a negative high half, and a low half of more than 32 bits: carry.
        sums[at + 2] += uint64(sums[at + 1] >> uint64(32))
        sums[at + 1] &= uint64(0xFFFFFFFF)
        add_spread(sums, at, shift.size, bins)


@inner
def _number_clusters(runs, count, width, sums, bins):
    """Number the sums of all clusters, in place of the sizes of roots; return how many there are.

    A cluster gets its own sums if it neither wraps nor spans and has at least two sites.  Clusters
    of one site are counted in ``bins``.  All others share number 0, whose sums are never read.
    """
    clusters = int64(1)
    for run in range(count):
        if int64(runs.parents[run]) != run:
            continue
        size, number = runs.sizes[run], int64(0)
        if has_end(runs.reach[run]):
            if size > int32(1):
                number, at = clusters, clusters * width
                sums[at] = uint64(size)
                for k in range(at + 1, at + width):
                    sums[k] = uint64(0)
                clusters += int64(1)
            elif size == int32(1):
                bins[0] += 1
        runs.sizes[run] = number
    return clusters


@inner
def _sum_runs(runs, points, periods, prefixes, spans, shift, sums):
    """Add the coordinates of the sites of every run to the sums of its cluster.

    There is nearly no branch, as no processor can predict a run's cluster and length.
    All sites of a cluster that has its own sums are occupied.
    """
    axes = shift.size
    run, at, seen = int64(-1), int64(0), int64(0)
    for word in range(runs.starts.size):
        left, begin = runs.starts[word], int64(32) * word
        stop = min(begin + int64(32), points)
        while True:
            end = stop
            if left != uint32(0):
                end = int64(32) * word + int64(trailing_zeros(left))
            for n in range(axes + 2):
                part = prefixes[uint64(end), n] - prefixes[uint64(begin), n]
                sums[uint64(at + 1 + n)] += part
            if periods.size and at > 0 and periods[run] != int64(0):
                if periods[run] != seen:
                    seen = periods[run]
                    _write_shift(seen, spans, shift)
                _add_shift(sums, at, begin, end, shift, prefixes)
            if left == uint32(0):
                break
            left = uint32(left & uint32(left - uint32(1)))
            run, begin = run + 1, end
            at = int64(runs.sizes[uint64(runs.parents[run])]) * (axes + SCALARS)


@inner
def _write_shift(periods, spans, shift):
    """Write the shift from a site's coordinates to those seen from its root, int64 (axes,)."""
    for axis in range(shift.size):
        way = int64(0)
        for period in range(spans.shape[0]):
            way += periods_along(periods, period, PERIOD_BITS) * spans[period, axis]
        shift[axis] = way


@inner
def _add_shift(sums, at, begin, end, shift, prefixes):
    """Correct the sums for up to 32 sites in a row whose coordinates are moved by ``shift``."""
    low, high, count = uint64(0), uint64(0), end - begin
    for axis in range(shift.size):
        way = shift[axis]
        total = int64(prefixes[uint64(end), axis + 2] - prefixes[uint64(begin), axis + 2])
        # The sum of (x + way)^2 - x^2, 32 bits times 38 bits, exceeds 64 bits: two products.
        factor = 2 * total + count * way
        upper, lower = way * (factor >> int64(16)), way * (factor & int64(0xFFFF))
        low += uint64(lower & int64(0xFFFFFFFF)) + uint64((upper & int64(0xFFFF)) << int64(16))
        high += uint64(lower >> int64(32)) + uint64(upper >> int64(16))
        sums[uint64(at + SCALARS + axis)] += uint64(count * way)
    sums[at + 1] += low
    sums[at + 2] += high
