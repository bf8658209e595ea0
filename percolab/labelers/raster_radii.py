"""How far clusters reach, from runs: one look-up of root and periods for all sites of a run."""

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.neighbours import has_bit, periodic_bond
from percolab.labelers.raster_runs import find_run
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.radii import BESIDE, OUT, add_spreads
from percolab.measure.wrapping import periods_along


@njit
def _mark_loops(opened, adjacency, runs, periods):
    """Mark the roots of clusters that wrap; every run points at its root."""
    for n in range(adjacency.periodic_bonds.size):
        is_open, owner, other = periodic_bond(n, opened, uint32(0), adjacency)
        if is_open:
            i = find_run(int64(owner), runs.starts, runs.first)
            j = find_run(int64(other), runs.starts, runs.first)
            if periods[i] + adjacency.periodic_codes[n] != periods[j]:
                runs.reach[runs.parents[i]] |= uint32(OUT)


@njit(nogil=True, cache=True)
def gyration_from_runs(
    opened, adjacency, count, occupied, layers, runs, windings, geometry, sums, bins
):
    """Write the numbers of all bins, int64 (PER_BIN * bins,), of a sample joined to ``count`` runs.

    As :func:`percolab.measure.radii.gyration_from_bonds`, with what a labeler of runs has
    (:mod:`percolab.labelers.raster_runs`).  occupied: uint32, one bit a site.  layers: (end-layer
    sites, their flags).  sums: scratch, uint64, ``axes + BESIDE`` numbers a site.
    """
    starts, first, parents, origins, reach = runs
    periods = windings.periods
    reach[:count] = 0
    for n in range(layers[0].size):
        reach[parents[find_run(int64(layers[0][n]), starts, first)]] |= layers[1][n]
    if periods.size:
        _mark_loops(opened, adjacency, runs, periods)
    axes = geometry[0].shape[0]
    sums[: count * (axes + BESIDE)] = 0
    _sum_runs(starts, parents, origins, occupied, periods, geometry, sums)
    add_spreads(parents, reach, count, sums, axes, bins)


@njit(nogil=True, cache=True)
def _sum_runs(starts, parents, origins, occupied, periods, geometry, sums):
    """Add every occupied site, seen from its root's first site, to the sums of its root.

    origins: scratch, gets the first site of every run; that of a root comes before the others'.
    """
    places, spans = geometry
    axes = places.shape[0]
    # From a site's place on the grid to where it is seen from the root.
    shift = np.zeros(axes, np.int64)
    run, at = int64(-1), int64(0)
    for word in range(starts.size):
        left = uint32(starts[word] | occupied[word])
        while left != uint32(0):
            bit = trailing_zeros(left)
            left = uint32(left & uint32(left - uint32(1)))
            site = 32 * word + bit
            if has_bit(starts[word], bit):
                run += 1
                origins[run] = site
                root = int64(parents[run])
                at = root * (axes + BESIDE)
                for axis in range(axes):
                    shift[axis] = -int64(places[axis, origins[root]])
                if periods.size and periods[run] != int64(0):
                    for period in range(spans.shape[0]):
                        turns = periods_along(periods[run], period, PERIOD_BITS)
                        for axis in range(axes):
                            shift[axis] += turns * spans[period, axis]
            if has_bit(occupied[word], bit):
                square = uint64(0)
                for axis in range(axes):
                    step = int64(places[axis, site]) + shift[axis]
                    square = uint64(square + uint64(step * step))
                    sums[at + BESIDE + axis] += uint64(step)
                sums[at] += uint64(1)
                sums[at + 1] += uint64(square & uint64(0xFFFFFFFF))
                sums[at + 2] += uint64(square >> uint64(32))
