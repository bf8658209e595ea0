"""CUDA: the identity of clusters and those of the dual on very many small tori, all on the device.

Both are labeled there, each by the kernel of small lattices; nothing but a count comes back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, uint64

from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.flows.dual_bridges_cuda import copy_sources, dual_words_kernel
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import Launches
from percolab.lattices.dual import make_dual_topology
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import Topology
from percolab.measure.rows import CLUSTERS, ROW_WIDTH, SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS

#: Samples whose dual is made by one launch, and samples of all others.
_DUALS, _SAMPLES = 2**15, 2**22
_SITES = 2**30


@cuda.jit(device=True)
def _directions(flags):
    """Return in how many directions clusters wind, less one."""
    if (flags >> TWO_DIRECTIONS) & 1:
        return int64(1)
    return int64(0) if (flags >> FIRST_WRAPPING) & 3 else int64(-1)


@cuda.jit
def count_violations_kernel(rows, dual_rows, entries, sites, wrong):
    """Count the samples without the identity, or whose dual does not wind in the other directions.

    rows: int64, ROW_WIDTH + 1 of every entry, the last being its open bonds; dual_rows: ROW_WIDTH.
    """
    n = int64(cuda.grid(1))
    if n < entries:
        row, dual = n * (ROW_WIDTH + 1), n * ROW_WIDTH
        difference = rows[row + CLUSTERS] - dual_rows[dual + CLUSTERS] - sites
        winding = _directions(rows[row + SPANNING])
        is_good = difference + rows[row + ROW_WIDTH] == winding
        if not is_good or _directions(dual_rows[dual + SPANNING]) != -winding:
            cuda.atomic.add(wrong, 0, uint64(1))


class SmallDuals:
    """Samples of a small torus and their duals on a CUDA device.

    InputError: the lattice is not planar, or its dual is no lattice.
    """

    def __init__(self, lattice: Lattice, topology: Topology) -> None:
        dual = make_dual_topology(lattice, topology)
        self._topology, self._dual_words = topology, dual.topology.num_bond_words
        self._own: Any = new_coupling("tiled", "cuda", topology, openings=True)
        self._other: Any = new_coupling("tiled", "cuda", dual.topology)
        self._sources, self._launches = copy_sources(dual), Launches()

    @property
    def most_samples(self) -> int:
        """How many samples are counted at a time."""
        return min(_SITES // self._topology.num_points, _SAMPLES)

    def count_violations(self, seed: int, start: int, samples: int, p: float) -> int:
        """Return in how many of so many samples from a number on the identity does not hold."""
        opened, rows = self._own.measure_block(XORWOW, seed, start, samples, p_to_threshold(p))
        self._own.labeler.batch.launches.wait()
        opened_duals, exists = self._other.make_words(samples), self._other.labeler.batch.exists
        words, size = self._topology.num_bond_words, self._dual_words
        for first in range(0, samples, _DUALS):
            count = min(_DUALS, samples - first)
            own = opened[first * words :], np.uint32(words), np.uint32(0), self._sources
            to = exists, opened_duals[first * size :]
            self._launches.each(dual_words_kernel, size, count, *own, *to)
        self._launches.wait()
        dual_rows = self._other.measure_words(samples)
        self._other.labeler.batch.launches.wait()
        wrong = cuda.to_device(np.zeros(1, np.uint64))
        numbers = np.int64(samples), np.int64(self._topology.num_sites), wrong
        self._launches.one(count_violations_kernel, samples, 1, rows, dual_rows, *numbers)
        self._launches.wait()
        return int(wrong.copy_to_host()[0])
