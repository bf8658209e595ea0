"""Sweeps of the random-cluster model with any real q >= 1 on the CPU, by Chayes and Machta.

Every cluster of the open bonds is *active* with probability 1 / q.  Bonds between active sites are
drawn anew, open with probability p; all others stay as they are.  With an integer q this is a sweep
of Swendsen and Wang that redraws only the bonds of one of the q states.

The state of a chain is a bit plane of active sites, and a plane of open bonds for each class.  A
chain that starts ordered has all sites active; one that starts at random has no open bonds, and
each site is active with probability 1 / q.

Source: L. Chayes and J. Machta, Physica A 254, 477 (1998).
"""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import p_to_threshold
from percolab.errors import InputError
from percolab.labelers.forest import Reading
from percolab.measure.spins import OPEN_BONDS
from percolab.spins.chain_cpu import CpuChain
from percolab.spins.clusters_cpu import draw_active, open_active, sweep_clusters
from percolab.spins.kernels_cpu import count_bits
from percolab.spins.update import Update
from percolab.spins.words import Chain


class ClusterChain(CpuChain):
    """One chain of random clusters with a labeler of one sample; q: any number of at least 1."""

    def __init__(self, labeler: Any, q: float) -> None:
        # Two states: active or not.
        super().__init__(labeler, Update().rule(2))
        self._active = np.uint64(p_to_threshold(1 / q))
        self._kept = np.zeros_like(self.labeler.batch.opened)
        self._labels = np.empty(self.spins.marks.size, np.int32)

    def begin(self, generator: int, chains: list[Chain], random: list[bool]) -> None:
        (self._chain,), (is_random,) = chains, random
        self._generator, self.sweep = generator, 0
        self._kept[:] = 0
        self.spins.planes[:] = self.labeler.batch.topology.occupied
        if is_random:
            self._labels[:] = np.arange(self._labels.size)
            self._draw_active(0, self._labels)

    def resume(self, planes: NDArray[np.uint32], sweep: int) -> None:
        active, kept = np.split(planes.ravel(), [self.spins.planes.size])
        batch = self.labeler.batch
        if (active & ~batch.topology.occupied).any() or (kept & ~batch.exists.ravel()).any():
            raise InputError(
                "the stored state of a chain has sites or bonds that the lattice lacks"
            )
        self.spins.planes[:], self._kept[:] = active, kept
        self.sweep = sweep

    def copy_planes(self) -> NDArray[np.uint32]:
        planes = np.concatenate([self.spins.planes, self._kept])
        return planes.reshape(1, -1, self.spins.planes.size)

    def _sweep_runs(self, key: Any, arrays: Any, *measured: NDArray[np.int64]) -> None:
        own = self._kept, self._labels
        cast(Any, sweep_clusters)(*key, self._active, *arrays, *own, *measured)

    def _sweep_labels(self, sweep: int, row: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        assert self._chain is not None
        self._open(self._chain, sweep)
        self._kept[:] = self.labeler.batch.opened
        numbers[OPEN_BONDS] = cast(Any, count_bits)(self._kept)
        forest = self.labeler.join(1, Reading.LABELS)
        (row[:],), (labels,) = forest.rows(), forest.labels()
        self._draw_active(sweep, labels)

    def skip(self, sweeps: int) -> None:
        self.advance(sweeps)

    def _open(self, chain: Chain, sweep: int) -> None:
        batch = self.labeler.batch
        there = batch.exists, batch.adjacency, self.spins, self._kept, batch.opened
        cast(Any, open_active)(self._generator, chain, np.uint64(sweep), *there)

    def _draw_active(self, sweep: int, labels: NDArray[np.int32]) -> None:
        occupied, key = self.labeler.batch.topology.occupied, (self._generator, self._chain)
        arrays = occupied, labels, self.spins.marks, self.spins.planes
        cast(Any, draw_active)(*key, np.uint64(sweep), self._active, *arrays)
