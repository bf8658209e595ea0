"""Sweeps of the random-cluster model with any real q >= 1, on the CPU: Chayes and Machta's.

Every cluster of the open bonds is *active* with probability 1 / q.  Bonds between active sites are
drawn anew, open with probability p; all others stay as they are.  With an integer q this is a sweep
of Swendsen and Wang that redraws the bonds of one of the q states alone.

The state of a chain is the active sites, a bit plane, and the open bonds, a plane of each class.
A chain that starts ordered has all sites active; one that starts at random has no open bonds, and
each site is active with probability 1 / q.

Source: L. Chayes and J. Machta, Physica A 254, 477 (1998).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import p_to_threshold
from percolab.errors import InputError
from percolab.labelers.forest import Reading
from percolab.labelers.raster import Raster
from percolab.measure.spins import OPEN_BONDS, SPIN_ROW_WIDTH
from percolab.spins.chain_cpu import CpuChain
from percolab.spins.clusters_cpu import draw_active, open_active, sweep_clusters
from percolab.spins.kernels_cpu import count_bits
from percolab.spins.update import Update
from percolab.spins.words import Chain


class ClusterChain(CpuChain):
    """One chain of random clusters with a labeler of one sample; q: any number from 1 on."""

    def __init__(self, labeler: Any, q: float) -> None:
        # Of two states: active or not.
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
            raise InputError("the stored state of a chain has sites or bonds that are not there")
        self.spins.planes[:], self._kept[:] = active, kept
        self.sweep = sweep

    def copy_planes(self) -> NDArray[np.uint32]:
        planes = np.concatenate([self.spins.planes, self._kept])
        return planes.reshape(1, -1, self.spins.planes.size)

    def advance(self, sweeps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = np.zeros((sweeps, self.labeler.row_width), np.int64)
        numbers = np.zeros((sweeps, SPIN_ROW_WIDTH), np.int64)
        if isinstance(self.labeler, Raster):
            labeler, batch = self.labeler, self.labeler.batch
            key = self._generator, self._chain, self.sweep + 1, self._active
            there = batch.exists, batch.adjacency, batch.topology.occupied
            forest = labeler.end_flags, batch.opened, labeler.runs, labeler.windings
            compiled = cast(Any, sweep_clusters)
            compiled(*key, *there, *forest, self.spins, self._kept, self._labels, rows, numbers)
            self.sweep += sweeps
            return rows[None], numbers[None]
        for n in range(sweeps):
            assert self._chain is not None
            self._open(self._chain)
            self._kept[:] = self.labeler.batch.opened
            numbers[n, OPEN_BONDS] = cast(Any, count_bits)(self._kept)
            forest = self.labeler.join(1, Reading.LABELS)
            (rows[n],), (labels,) = forest.rows(), forest.labels()
            self.sweep += 1
            self._draw_active(self.sweep, labels)
        return rows[None], numbers[None]

    def skip(self, sweeps: int) -> None:
        self.advance(sweeps)

    def rows_at(self, thresholds: NDArray[np.uint64]) -> NDArray[np.int64]:
        assert self._chain is not None
        self._open(self._chain._replace(threshold=np.uint64(thresholds[0])))
        return np.asarray(self.labeler.join(1).rows())

    def _open(self, chain: Chain) -> None:
        """Write the open bonds of the sweep that comes next."""
        batch, sweep = self.labeler.batch, np.uint64(self.sweep + 1)
        there = batch.exists, batch.adjacency, self.spins, self._kept, batch.opened
        cast(Any, open_active)(self._generator, chain, sweep, *there)

    def _draw_active(self, sweep: int, labels: NDArray[np.int32]) -> None:
        occupied, key = self.labeler.batch.topology.occupied, (self._generator, self._chain)
        arrays = occupied, labels, self.spins.marks, self.spins.planes
        cast(Any, draw_active)(*key, np.uint64(sweep), self._active, *arrays)
