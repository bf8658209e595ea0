"""Samples in device memory: the open bonds and the occupied sites of a batch of items."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.bonds.model import Model
from percolab.bonds.sites_cuda import close_bonds_kernel, close_seam_kernel, count_sites_kernel
from percolab.bonds.words_cuda import open_words_kernel
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import PER_THREAD, THREADS
from percolab.lattices.topology import Topology

cuda = load_cuda()

_MAX_GRID_Y = 65535


def _on_device(values: Any) -> Any:
    if hasattr(values, "__cuda_array_interface__"):
        return values
    return cuda.to_device(np.asarray(values, np.uint64))


class CudaSamples:
    """The open bonds of up to ``capacity`` items, an item being one sample at one p.

    ``opened``: uint32, the bond words of all items, one item after the other.
    """

    def __init__(self, topology: Topology, model: Model, capacity: int) -> None:
        # The kernels index the whole batch with 32 bits.
        fitting = (2**32 - 1) // max(topology.num_points, topology.exists.size)
        self.topology, self.capacity = topology, min(capacity, fitting, _MAX_GRID_Y)
        self.model = model
        self.opened = cuda.device_array(self.capacity * topology.exists.size, np.uint32)
        self.seam = () if topology.seam is None else cuda.to_device(topology.seam.ravel())
        self._exists = cuda.to_device(topology.exists.ravel())
        self._seam_bonds = cuda.to_device(topology.seam_bonds)
        self._seam_ends = cuda.to_device(topology.seam_ends)
        if topology.neighbours is None:
            self.ends: Any = tuple(np.int32(delta) for delta in topology.deltas)
        else:
            self.ends = cuda.to_device(topology.neighbours)
        self._occupied = cuda.to_device(topology.occupied)
        self.sites: tuple[Any, ...] = ()
        if model.draws_sites:
            words, per_item, *_ = topology.site_lattice(self.ends)
            lattice = words, per_item, self.ends, self._seam_bonds, self._seam_ends
            self.sites = model.rule, lattice
            self._occupied_words = cuda.device_array(self.capacity * int(per_item), np.uint32)

    @staticmethod
    def grid(elements: int, items: int, per_block: int = PER_THREAD * THREADS) -> tuple[int, int]:
        """Return the grid with one row of blocks an item."""
        return -(-elements // per_block), items

    def open_bonds(self, generator: int, seed: int, samples: Any, thresholds: Any) -> int:
        """Generate the open bonds of items (sample, threshold); return their number.

        Both are uint64 arrays of equal length, on the host or on the device.
        """
        self._open_words(generator, seed, samples, thresholds, self.opened)
        return len(samples)

    def _open_words(
        self, generator: int, seed: int, samples: Any, thresholds: Any, words: Any
    ) -> None:
        """Write the open bonds of items into ``words``."""
        keys = generator, np.uint64(seed), _on_device(samples)
        if not self.sites:
            limits = _on_device(thresholds)
            self._fill_words(*keys, limits, np.uint32(0), self._exists, words)
            return
        items, (words_per_item, num_words, *_) = len(samples), self.sites[1]
        sites, bonds = self._limits_at(thresholds)
        self._fill_words(*keys, sites, words_per_item, self._occupied, self._occupied_words)
        self._fill_words(*keys, bonds, np.uint32(0), self._exists, words)
        close_bonds_kernel[self.grid(int(num_words), items, THREADS), THREADS](
            words, self.seam, self._occupied_words, self.sites[1]
        )
        if self._seam_bonds.size:
            close_seam_kernel[self.grid(self._seam_bonds.size, items, THREADS), THREADS](
                words, self._occupied_words, self.sites[1]
            )

    def _fill_words(
        self,
        generator: int,
        seed: np.uint64,
        samples: Any,
        thresholds: Any,
        first: np.uint32,
        exists: Any,
        words: Any,
    ) -> None:
        """Write what is open of the words from ``first`` on; all arrays are on the device."""
        open_words_kernel[self.grid(exists.size, len(samples)), THREADS](
            generator, seed, samples, thresholds, first, exists, words
        )

    def _limits_at(self, thresholds: Any) -> tuple[Any, Any]:
        """Return the thresholds (of sites, of bonds) of items, on the device."""
        site_varies, bond_varies, *limits = self.model.rule
        return tuple(
            _on_device(thresholds if varies else np.full(len(thresholds), limit))
            for varies, limit in zip((site_varies, bond_varies), limits, strict=True)
        )

    def _count_vacant(
        self, generator: int, seed: int, samples: np.ndarray, thresholds: np.ndarray
    ) -> np.ndarray:
        """Return how many sites of each item the model leaves vacant, int64 (n,)."""
        vacant = np.empty(len(samples), np.int64)
        for first in range(0, len(samples), _MAX_GRID_Y):
            batch = slice(first, first + _MAX_GRID_Y)
            keys = _on_device(samples[batch])
            counts = cuda.to_device(np.zeros(len(keys), np.uint32))
            sites, _ = self._limits_at(thresholds[batch])
            count_sites_kernel[self.grid(self._occupied.size, len(keys)), THREADS](
                generator, np.uint64(seed), keys, sites, self.sites[1][0], self._occupied, counts
            )
            vacant[batch] = self.topology.num_sites - counts.copy_to_host().astype(np.int64)
        return vacant

    def load_bonds(self, opened: np.ndarray) -> int:
        """Copy given open bonds, uint32 (items, num_classes * num_words), into the batch."""
        flat = np.ascontiguousarray(opened, np.uint32).ravel()
        self.opened[: flat.size].copy_to_device(flat)
        return len(opened)

    def occupied_of(self, items: int) -> np.ndarray:
        """Return the occupied sites of the first items, uint32 (items, num_words), a bit a site."""
        words = self.topology.num_words
        if not self.sites:
            return np.broadcast_to(self.topology.occupied, (items, words))
        return self._occupied_words[: items * words].copy_to_host().reshape(items, words)

    @property
    def occupied_words(self) -> tuple[Any, np.uint32]:
        """The occupied sites on the device, uint32 words, and how many of them each item has."""
        if self.sites:
            return self._occupied_words, np.uint32(self.topology.num_words)
        return self._occupied, np.uint32(0)
