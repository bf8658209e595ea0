"""Radii: s^2 R_s^2 of every cluster that neither wraps nor spans, R_s being its radius of gyration.

s^2 R_s^2 = s sum |r|^2 - |sum r|^2, summed over the cluster's sites, whose coordinates r are
unwrapped from the torus: those on the grid plus the periods from the root in the forest
(`percolab.measure.wrapping`).  They are integers (:class:`percolab.lattices.geometry.Geometry`) and
sums have 128 bits, so results are exact and the same in any order.  A cluster that wraps cannot be
unwrapped, and one that spans is cut off: both are left out, like the infinite cluster.
Stauffer and Aharony, Introduction to Percolation Theory (1994), sections 3.1 and 3.2.

For each bin of sizes (:mod:`percolab.measure.tallies`) there are three numbers, PER_BIN: the sum of
s^2, and that of s^2 R_s^2 as (low, high) 64 bits.
"""

import numpy as np
from numba import int64, njit, uint32, uint64

from percolab.kernels.bits import trailing_zeros
from percolab.kernels.inner import inner
from percolab.kernels.neighbours import periodic_bond
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.rows import spanning_bits
from percolab.measure.tallies import add_wide, negative, num_bins, product, size_bin
from percolab.measure.wrapping import find_winding, periods_along, wrapping_from_bonds

#: Numbers for each bin of sizes.
PER_BIN = 3
#: The number of scalar sums of a cluster: sites, two halves of |r|^2.
SCALARS = 3
#: The bit that marks the root of a cluster that wraps, next to its end flags.
OUT = 1 << 31


def radii_row_width(points: int) -> int:
    """Return how many numbers the bins of a sample have, on a lattice of ``points`` grid points."""
    return PER_BIN * num_bins(points)


@inner
def add_site(sums, root, place, axes):
    """Add a site at ``place``, int64 (axes,), to the sums of its root (serial use).

    sums: uint64, ``axes + SCALARS`` numbers for each root: sites, low and high 32 bits of |r|^2,
    then the place along every axis.
    """
    at = int64(root) * (axes + SCALARS)
    square = uint64(0)
    for axis in range(axes):
        step = int64(place[axis])
        square = uint64(square + uint64(step * step))
        sums[at + SCALARS + axis] += uint64(step)
    sums[at] += uint64(1)
    sums[at + 1] += uint64(square & uint64(0xFFFFFFFF))
    sums[at + 2] += uint64(square >> uint64(32))


@inner
def read_spread(sums, at, axes):
    """Return (s, low, high) of the cluster whose sums are at ``at``, uint64.

    s: its sites; (low, high): the 128 bits of s^2 R_s^2.
    """
    size = uint64(sums[at])
    low, high = product(size, uint64(sums[uint64(at + uint64(1))]))
    upper, top = product(size, uint64(sums[uint64(at + uint64(2))]))
    low, high = add_pair(
        low,
        high,
        uint64(upper << uint64(32)),
        uint64(uint64(top << uint64(32)) | uint64(upper >> uint64(32))),
    )
    for axis in range(axes):
        step = uint64(sums[uint64(at + uint64(SCALARS + axis))])
        low, high = less_square(low, high, step)
    return size, low, high


@inner
def less_square(low, high, step):
    """Return (low, high) minus the square of a signed number, uint64, modulo 2^128."""
    if step >> uint64(63) != uint64(0):
        step = uint64(~step + uint64(1))
    less, most = product(step, step)
    less, most = negative(less, most)
    return add_pair(low, high, less, most)


@inner
def add_pair(low, high, less, most):
    """Return the sum of two 128-bit numbers, modulo 2^128, as (low, high), uint64 each."""
    total = uint64(low + less)
    carry = uint64(1) if total < less else uint64(0)
    return total, uint64(uint64(high + most) + carry)


@njit(nogil=True, cache=True)
def gyration_from_bonds(opened, adjacency, occupied, layers, geometry, scratch, bins):
    """Write the numbers of all bins, int64 (PER_BIN * bins,), from a sample's open bonds.

    occupied: uint32, one bit per site.  layers: (end-layer sites, their flags).  geometry: (places
    int32 (axes, points), periods int64 (period, axes)).  scratch: parents int32, periods int64 and
    reach uint32, one for each site, and sums.
    """
    places, spans = geometry
    parents, periods, reach, sums = scratch
    axes, points = places.shape
    wrapping_from_bonds(opened, adjacency, parents, periods, spans.shape[0])
    for i in range(points):
        root, total = find_winding(parents, periods, i)
        parents[i], periods[i] = root, total
    reach[:] = 0
    for n in range(layers[0].size):
        reach[parents[layers[0][n]]] |= layers[1][n]
    # Bonds inside the lattice were joined before: the loops that they close do not wind.
    for n in range(adjacency.periodic_bonds.size):
        is_open, i, j = periodic_bond(n, opened, uint32(0), adjacency)
        if is_open and periods[i] + adjacency.periodic_codes[n] != periods[j]:
            reach[parents[i]] |= uint32(OUT)
    sums[:] = 0
    place = np.empty(axes, np.int64)
    for word in range(occupied.size):
        left = occupied[word]
        while left != uint32(0):
            i = 32 * word + trailing_zeros(left)
            left = uint32(left & uint32(left - uint32(1)))
            root = parents[i]
            for axis in range(axes):
                place[axis] = int64(places[axis, i]) - int64(places[axis, root])
                for period in range(spans.shape[0]):
                    turns = periods_along(periods[i], period, PERIOD_BITS)
                    place[axis] += turns * spans[period, axis]
            add_site(sums, root, place, axes)
    add_spreads(parents, reach, points, sums, axes, bins)


@inner
def has_end(reach):
    """Return whether a cluster neither wraps nor spans, from its end flags and OUT, uint32."""
    return reach < uint32(OUT) and spanning_bits(reach) == int64(0)


@inner
def add_spreads(parents, reach, nodes, sums, axes, bins):
    """Write the numbers of all bins from the sums of the roots that neither wrap nor span.

    sums: uint64 (nodes * (axes + SCALARS),); the rest as for :func:`gyration_from_bonds`.
    """
    bins[:] = 0
    for i in range(nodes):
        at_root = int64(i) * (axes + SCALARS)
        if parents[i] != i or sums[at_root] == uint64(0):
            continue
        if has_end(reach[i]):
            add_spread(sums, at_root, axes, bins)


@inner
def add_spread(sums, at, axes, bins):
    """Add the cluster whose sums are at ``at`` to its bin (serial use)."""
    size, low, high = read_spread(sums, uint64(at), axes)
    to = PER_BIN * size_bin(size)
    bins[to] += int64(uint64(size * size))
    add_wide(bins, to + 1, low, high)


@njit(nogil=True, cache=True)
def sum_gyration(numbers, unit):
    """Return (sum s^2, sum s^2 R_s^2) for each bin, summed over the samples of blocks.

    numbers: int64 (blocks, samples, m, PER_BIN * bins); unit: the square of a step of coordinates.
    The result is float64 (blocks, m, 2 * bins), pair after pair, added sample after sample.
    """
    blocks, samples, points, width = numbers.shape
    sums = np.zeros((blocks, points, 2 * (width // PER_BIN)), np.float64)
    for block in range(blocks):
        for sample in range(samples):
            for point in range(points):
                row = numbers[block, sample, point]
                for n in range(width // PER_BIN):
                    low, high = uint64(row[PER_BIN * n + 1]), uint64(row[PER_BIN * n + 2])
                    spread = float(high) * 18446744073709551616.0 + float(low)
                    sums[block, point, 2 * n] += float(row[PER_BIN * n])
                    sums[block, point, 2 * n + 1] += spread * unit
    return sums
