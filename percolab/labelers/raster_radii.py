"""How far clusters reach, from runs: one look-up of root and periods for all sites of a run."""

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.neighbours import has_bit
from percolab.labelers.raster_runs import find_clusters, join_inside, run_of, wind_seam
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.radii import BESIDE, OUT, add_spreads
from percolab.measure.wrapping import periods_along


@njit
def _mark_loops(opened, bonds, scratch, winding):
    """Mark the roots of clusters that wrap; every run points at its root."""
    _, seam_bonds, seam_ends, _, _ = bonds
    starts, first, parents, _, reach = scratch
    codes, periods, _, _ = winding
    for n in range(seam_bonds.size):
        bond = seam_bonds[n]
        if has_bit(opened[bond >> 5], bond & 31):
            i = run_of(bond % (32 * starts.size), starts, first)
            j = run_of(int64(seam_ends[n]), starts, first)
            if periods[i] + codes[n] != periods[j]:
                reach[parents[i]] |= uint32(OUT)


@njit(nogil=True, cache=True)
def gyration_of_runs(
    opened, bonds, occupied, num_points, layers, scratch, winding, geometry, sums, found
):
    """Write the numbers of all bins, int64 (PER_BIN * bins,), from a sample's open bonds.

    As :func:`percolab.measure.radii.gyration_of_bonds`, with what a labeler of runs has:
    bonds, scratch, winding (:mod:`percolab.labelers.raster_runs`); layers: (end-layer sites, their
    flags).  sums: scratch, uint64, ``axes + BESIDE`` numbers a site.
    """
    starts, first, parents, origins, reach = scratch
    codes, periods, _, _ = winding
    if codes.size:
        runs = join_inside(opened, bonds, num_points, scratch)
        wind_seam(opened, bonds, runs, scratch, winding)
    else:
        runs = find_clusters(opened, bonds, occupied, num_points, scratch)
    reach[:runs] = 0
    for n in range(layers[0].size):
        reach[parents[run_of(int64(layers[0][n]), starts, first)]] |= layers[1][n]
    if codes.size:
        _mark_loops(opened, bonds, scratch, winding)
    axes = geometry[0].shape[0]
    sums[: runs * (axes + BESIDE)] = 0
    _sum_runs(starts, parents, origins, occupied, periods, geometry, sums)
    add_spreads(parents, reach, runs, sums, axes, found)


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
