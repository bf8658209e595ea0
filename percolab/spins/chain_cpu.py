"""One chain in the memory of the host.

With the labeler ``raster`` many sweeps are one call of compiled code.  With any other labeler each
sweep is labeled, and the spins follow from the labels.
"""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import CpuBatch
from percolab.kernels.memory import Memory
from percolab.labelers.forest import Reading
from percolab.labelers.raster import Raster
from percolab.lattices.extent import Extent
from percolab.lattices.topology import count_words
from percolab.measure.spins import SPIN_ROW_WIDTH
from percolab.spins import kernels_cpu as kernels
from percolab.spins.update import UpdateRule, count_planes
from percolab.spins.walk_cpu import Walk, new_walk, walk_sweeps
from percolab.spins.words import Chain

#: A walk is given up when it has visited 1 / _WALKED of the lattice.  When several in a row are
#: given up, up to _MOST_LABELED sweeps label all clusters before the next attempt.
_WALKED, _MOST_LABELED = 6, 8


class CpuChain:
    """One chain on the CPU: its spins, and sweeps of them with a labeler of one sample.

    sweep: number of sweeps since the start.
    """

    #: Number of chains that are swept together.
    capacity = 1

    def __init__(self, labeler: Any, rule: UpdateRule) -> None:
        self.labeler, self.rule = labeler, rule
        batch: CpuBatch = labeler.batch
        top = batch.topology
        self._planes = int(rule.planes)
        self.spins = kernels.Spins(
            planes=np.zeros(self._planes * top.num_words, np.uint32),
            counts=np.zeros(int(rule.states), np.int64),
            alive=np.zeros(batch.opened.size, np.uint32),
            chosen=np.zeros(int(rule.seeds), np.int64),
            marks=np.zeros(top.num_points, np.uint32),
        )
        self.sweep = 0
        self._generator = 0
        self._chain: Chain | None = None
        self._walk: Walk | None = None
        self._labeled = 1

    @staticmethod
    def memory(extent: Extent, states: int, entries: int = 1) -> Memory:
        """Return the memory in addition to that of the batch and the labeler."""
        words = (count_planes(states) + 2) * count_words(extent.num_points) + 2 * extent.num_words
        return Memory(host=4 * (words + extent.num_points))

    def begin(self, generator: int, chains: list[Chain], random: list[bool]) -> None:
        (chain,), (is_random,) = chains, random
        self._generator, self._chain, self.sweep = generator, chain, 0
        occupied = self.labeler.batch.topology.occupied
        kernels.begin_spins(generator, chain, self.rule, is_random, occupied, self.spins)

    def resume(self, planes: NDArray[np.uint32], sweep: int) -> None:
        self.spins.planes[:] = planes.ravel()
        occupied = self.labeler.batch.topology.occupied
        kernels.count_states(self.spins.planes, self._planes, occupied, self.spins.counts)
        self.sweep = sweep

    def copy_planes(self) -> NDArray[np.uint32]:
        return np.asarray(self.spins.planes.reshape(1, self._planes, -1).copy())

    def advance(self, sweeps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = np.zeros((sweeps, self.labeler.row_width), np.int64)
        numbers = np.zeros((sweeps, SPIN_ROW_WIDTH), np.int64)
        if isinstance(self.labeler, Raster):
            labeler, batch = self.labeler, self.labeler.batch
            key = self._generator, self._chain, self.sweep + 1
            there = batch.exists, batch.adjacency, batch.topology.occupied
            forest = labeler.end_flags, batch.opened, labeler.runs, labeler.windings
            self._sweep_runs(key, (*there, *forest, self.spins), rows, numbers)
        else:
            for n in range(sweeps):
                self._sweep_labels(self.sweep + 1 + n, rows[n], numbers[n])
        self.sweep += sweeps
        return rows[None], numbers[None]

    def _sweep_runs(self, key: Any, arrays: Any, *measured: NDArray[np.int64]) -> None:
        """Do a sweep for every row of ``measured``, rows and numbers, in compiled code."""
        cast(Any, kernels.sweep_runs)(*key, self.rule, self._planes, *arrays, *measured)

    def skip(self, sweeps: int) -> None:
        """Do sweeps without measuring; updates of chosen clusters cost only these clusters."""
        batch = self.labeler.batch
        if self.rule.seeds == 0 or batch.topology.neighbours is not None:
            self.advance(sweeps)
            return
        if self._walk is None:
            self._walk = new_walk(batch.topology, int(self.rule.seeds))
        there = batch.exists, batch.adjacency, batch.topology.occupied
        most, compiled = max(batch.topology.num_points // _WALKED, 2), cast(Any, walk_sweeps)
        while sweeps:
            key = self._generator, self._chain, self.sweep + 1, sweeps, most
            arrays = batch.opened, self.spins, self._walk
            done = compiled(*key, self.rule, self._planes, *there, *arrays)
            self.sweep += done
            sweeps -= done
            if sweeps:
                # Large clusters are likely to follow large ones.
                self._labeled = 1 if done else min(2 * self._labeled, _MOST_LABELED)
                others = min(sweeps, self._labeled)
                self.advance(others)
                sweeps -= others

    def rows_at(self, thresholds: NDArray[np.uint64]) -> NDArray[np.int64]:
        assert self._chain is not None
        chain = self._chain._replace(threshold=np.uint64(thresholds[0]))
        self._open(chain, self.sweep + 1)
        return np.asarray(self.labeler.join(1).rows())

    def _open(self, chain: Chain, sweep: int) -> Any:
        """Write the open bonds of a sweep; return the numbers of satisfied and of open bonds."""
        batch = self.labeler.batch
        there = self._planes, batch.exists, batch.adjacency, self.spins, batch.opened
        return kernels.open_satisfied(self._generator, chain, np.uint64(sweep), *there)

    def advance_at(self, thresholds: NDArray[np.uint64]) -> None:
        assert self._chain is not None
        own = self._chain
        self._chain = own._replace(threshold=np.uint64(thresholds[0]))
        self.advance(1)
        self._chain = own

    def _sweep_labels(self, sweep: int, row: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        assert self._chain is not None
        topology = self.labeler.batch.topology
        occupied, points = topology.occupied, np.uint32(topology.num_points)
        key = self._generator, self._chain, np.uint64(sweep)
        satisfied, count = self._open(self._chain, sweep)
        kernels.write_spin_numbers(satisfied, count, self.spins.counts, numbers)
        forest = self.labeler.join(1, Reading.LABELS)
        (row[:],) = forest.rows()
        kernels.choose_sites(*key, occupied, points, self.spins.chosen)
        (labels,) = forest.labels()
        kernels.paint_labels(*key, self.rule, self._planes, occupied, labels, self.spins)
