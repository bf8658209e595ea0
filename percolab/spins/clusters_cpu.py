"""Compiled sweeps of random clusters on the CPU: active sites, open bonds, measurements."""

from numba import njit, uint32, uint64

from percolab.bonds.keys import seed_at
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.kernels.bits import trailing_zeros
from percolab.labelers.raster_runs import find_clusters, measure_runs, write_labels
from percolab.measure.spins import OPEN_BONDS
from percolab.spins.kernels_cpu import count_bits, find_satisfied
from percolab.spins.words import keyed_number


@njit(nogil=True, cache=True)
def draw_active(generator, chain, sweep, threshold, occupied, labels, marks, active):
    """Write the active sites, uint32 words; a cluster is active with the threshold's probability.

    labels: int32 (N,), the smallest site of each cluster.  marks: uint32 (N,), scratch.
    """
    seed = seed_at(chain.spins, sweep)
    for word in range(occupied.size):
        left, bits = occupied[word], uint32(0)
        while left != uint32(0):
            bit = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            site = 32 * word + bit
            root = labels[site]
            if root == site:
                number = keyed_number(generator, seed, chain.number, uint32(site))
                marks[site] = uint32(uint64(number >> uint64(1)) < threshold)
            bits = uint32(bits | uint32(marks[root] << bit))
        active[word] = bits


@njit(nogil=True, cache=True)
def open_active(generator, chain, sweep, exists, adjacency, spins, kept, opened):
    """Write the open bonds of a sweep: new ones between active sites, elsewhere those of ``kept``.

    The active sites are the only plane of ``spins``.
    """
    active, alive = spins.planes, spins.alive
    find_satisfied(1, exists, adjacency, spins, opened)
    for index in range(alive.size):
        alive[index] = uint32(alive[index] & active[index % active.size])
    seed = seed_at(chain.bonds, sweep)
    fill_open_bonds(generator, seed, chain.number, chain.threshold, uint64(0), alive, opened)
    for index in range(opened.size):
        # The ends of an open bond are both active or both inactive.
        others = uint32(kept[index] & ~active[index % active.size])
        opened[index] = uint32(opened[index] | others)


@njit(nogil=True, cache=True)
def sweep_clusters(
    generator, chain, first, threshold, exists, adjacency, occupied, end_flags, opened, runs,
    windings, spins, kept, labels, rows, numbers,
):  # fmt: skip
    """Do one sweep for every row, the first with number ``first``; labels: int32 (N,), scratch."""
    for n in range(len(rows)):
        sweep = uint64(first + n)
        open_active(generator, chain, sweep, exists, adjacency, spins, kept, opened)
        kept[:] = opened
        numbers[n, OPEN_BONDS] = count_bits(opened)
        clusters, wrapping = find_clusters(opened, adjacency, occupied, runs, windings)
        measure_runs(clusters, wrapping, end_flags, runs, rows[n])
        write_labels(runs.starts, runs.parents, runs.sizes, labels)
        draw_active(generator, chain, sweep, threshold, occupied, labels, spins.marks, spins.planes)
