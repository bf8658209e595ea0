"""Chains on small lattices: one block of threads does many sweeps of a chain in one launch.

Results of sweeps are copied to the host while the next sweeps are done.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import period_width
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import MOST_SHARED
from percolab.labelers.tiled.one_tile import LANES, TILE_WORDS
from percolab.lattices.topology import Topology
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.spins import SPIN_ROW_WIDTH
from percolab.spins import one_block_cuda as kernels
from percolab.spins.chains_cuda import CudaChains, Kept
from percolab.spins.update import UpdateRule

#: Largest numbers of bond classes (other than the chain's) and of axes that fit into bit fields.
_MOST_CLASSES, _MOST_AXES = 14, 3
#: Largest number of threads per word, and threads that an H100 or H200 runs at 64 registers each.
_MOST_PARTS, _MOST_THREADS = 4, 132 * 1024
#: Largest numbers of rows stored on the device at a time, and of sweeps in one launch.
_KEPT_ROWS, _MOST_SWEEPS = 2**16, 1024


def _choose_threads(topology: Topology) -> int:
    """Return the number of threads in one part of a block: a power of two, one per word."""
    return 1 << (max(topology.num_words, LANES) - 1).bit_length()


def _other_classes(topology: Topology) -> list[int]:
    return [k for k in range(topology.num_classes) if k != topology.chain]


def choose_thread_parts(topology: Topology, chains: int) -> int:
    """Return the number of threads per word that fills a device with many threads."""
    parts = 1
    while parts < _MOST_PARTS and 2 * parts * _choose_threads(topology) * chains <= _MOST_THREADS:
        parts *= 2
    return parts


def _most_nodes(topology: Topology) -> int:
    """Return a bound on the number of clusters at a periodic boundary or an end layer."""
    owners = topology.periodic_bonds % (32 * topology.num_words)
    sites, _ = topology.end_flags()
    return int(np.unique(np.concatenate([owners, topology.periodic_ends, sites])).size)


def _list_capacity(topology: Topology) -> int:
    """Return the room in bonds of a block's list; a list that is too short is refilled.

    It is what nodes leave, so that eight blocks of 4096 sites fit on a multiprocessor.
    """
    left = 3 * _most_nodes(topology) - 2 * len(_other_classes(topology)) * TILE_WORDS
    return max(left, 4 * _choose_threads(topology))


def shared_bytes(topology: Topology, planes: int) -> int:
    """Return the dynamic shared memory of a block, for spins with ``planes`` bit planes."""
    others, listed = len(_other_classes(topology)), _list_capacity(topology)
    scratch = kernels.scratch_words(others, listed, _most_nodes(topology))
    beyond = topology.num_bond_words if topology.num_periodic_bonds else 0
    return 4 * kernels.dynamic_words(topology.num_words, scratch, beyond, planes)


def is_one_block(labeler: Any, rule: UpdateRule) -> bool:
    """Return whether the chains of a labeler on CUDA can be swept by one block each.

    This needs the labeler ``tiled`` without a tally, and a sample that fits in shared memory.
    """
    top: Topology = labeler.batch.topology
    if labeler.name != "tiled" or int(labeler.read.tally_width) or top.num_words > TILE_WORDS:
        return False
    if len(_other_classes(top)) > _MOST_CLASSES or top.num_axes > _MOST_AXES:
        return False
    if any(top.compute_inside(k).any() for k in np.flatnonzero(top.deltas >= 0).tolist()):
        # The parent of a run must come before the run.
        return False
    return shared_bytes(top, int(rule.planes)) + kernels.STATIC_BYTES <= MOST_SHARED


class _Piece:
    """Memory for the results of some sweeps, on the device and on the host, and their number."""

    def __init__(self, rows: int) -> None:
        self.kept = Kept(rows, SPIN_ROW_WIDTH, np.uint32)
        self.count = cuda.device_array(1, np.int64)
        self.pinned = cuda.pinned_array(1, np.int64)


class OneBlockChains(CudaChains):
    """Up to ``capacity`` chains, each swept by one block of threads (:func:`is_one_block`)."""

    def __init__(self, labeler: Any, rule: UpdateRule) -> None:
        super().__init__(labeler, rule)
        top, batch = self.batch.topology, self.batch
        self._threads = _choose_threads(top)
        self._shared = shared_bytes(top, self._planes)
        others = _other_classes(top)
        listed, nodes = _list_capacity(top), _most_nodes(top)
        words, sites = np.divmod(top.periodic_bonds, 32 * top.num_words)
        pairs = sites | top.periodic_ends.astype(np.int64) << kernels.OTHER | words << kernels.CLASS
        end_sites, end_flags = labeler.end_flags
        self._block = kernels.ChainLattice(
            exists=batch.exists,
            occupied=batch.existing_sites,
            shifts=tuple(np.int32(top.deltas[k]) for k in others),
            rows=(np.int32(0),) * len(others),
            pairs=cuda.to_device(pairs.astype(np.uint32)),
            codes=batch.adjacency.periodic_codes,
            end_sites=end_sites,
            end_flags=end_flags,
            points=np.uint32(top.num_points),
            num_words=np.uint32(top.num_words),
            threads=np.uint32(self._threads),
            chain=np.int32(top.chain),
            listed=np.uint32(listed),
            nodes=np.uint32(nodes),
            scratch=np.uint32(kernels.scratch_words(len(others), listed, nodes)),
            axes=np.int32(top.num_axes),
            width=np.int32(period_width(top)),
        )

    def _make_kept(self) -> None:
        """Allocate two buffers for results of sweeps: one is copied while the other is written."""
        self._room = max(_KEPT_ROWS, self.capacity)
        self._pieces = [_Piece(self._room) for _ in range(2)]

    def advance(self, sweeps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows = np.empty((self._entries, sweeps, ROW_WIDTH), np.int64)
        numbers = np.zeros((self._entries, sweeps, SPIN_ROW_WIDTH), np.int64)
        for own, measured in self._launch_all(sweeps):
            rows[:, own] = measured[:, :, :ROW_WIDTH]
            numbers[:, own, ROW_WIDTH:] = measured[:, :, ROW_WIDTH:]
        return rows, numbers

    def skip(self, sweeps: int) -> None:
        for _ in self._launch_all(sweeps):
            pass

    def _launch_all(self, sweeps: int) -> Iterator[tuple[slice, NDArray[np.uint32]]]:
        """Do sweeps; yield for each launch the range of its sweeps and their results.

        Results are valid until the next ones are requested; meanwhile the device goes on.
        """
        most, coming = min(self.slots, _MOST_SWEEPS), None
        for n, first in enumerate(range(0, sweeps, most)):
            count = min(most, sweeps - first)
            following = (
                slice(first, first + count),
                self._launch(n % 2, count),
                self._launches.mark(),
            )
            if coming is not None:
                coming[2].synchronize()
                yield coming[:2]
            coming = following
        if coming is not None:
            coming[2].synchronize()
            yield coming[:2]
        self.sweep += sweeps

    def _launch(self, place: int, count: int) -> NDArray[np.uint32]:
        """Launch ``count`` sweeps; return the memory that will contain their results."""
        piece, launches, entries = self._pieces[place], self._launches, self._entries
        piece.pinned[0] = count
        threads = choose_thread_parts(self.batch.topology, entries) * self._threads

        kernel = kernels.sweep_chosen_kernel if self.rule.seeds else kernels.sweep_kernel
        key = self._generator, self._chains, self._clock, piece.count, self.rule
        words = self._block, self.batch.adjacency, self.planes, piece.kept.on_device

        def work() -> None:
            launches.upload(piece.count, piece.pinned)
            launches.blocks(kernel, entries, threads, *key, *words, shared=self._shared)

        launches.call(("one block", place, self._generator, entries), work)
        return piece.kept.download(launches, entries, count)
