"""How far the clusters of a batch reach, for any CUDA labeler: its bonds in a forest of sites."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.kernels.device import load_cuda
from percolab.kernels.launches import THREADS
from percolab.lattices.geometry import Geometry
from percolab.measure.radii import BESIDE, PER_BIN
from percolab.measure.radii_cuda import (
    add_spreads_kernel,
    flatten_kernel,
    mark_ends_kernel,
    mark_seam_kernel,
    sum_places_kernel,
)
from percolab.measure.tallies import num_bins
from percolab.measure.tallies_cuda import clear_tally_kernel

cuda = load_cuda()

# Device memory that forests and sums may take; one item's must fit all the same.
_BYTES = 2**31


class GyrationCuda:
    """The device memory for it, made when it is first asked for; ``labeler`` has the open bonds."""

    def __init__(self, labeler: Any, geometry: Geometry) -> None:
        self._labeler = labeler
        top = labeler.topology
        self._axes = geometry.places.shape[0]
        points = top.num_points
        self.items = min(labeler.capacity, max(_BYTES // (8 * (self._axes + 5) * points), 1))
        self._forest = cuda.device_array(self.items * points, np.uint64)
        self._reach = cuda.device_array(self.items * points, np.uint32)
        self._sums = cuda.device_array(self.items * (self._axes + BESIDE) * points, np.uint64)
        places, spans = cuda.to_device(geometry.places), cuda.to_device(geometry.spans)
        self._geometry = places, spans, np.int32(32 // self._axes)
        sites, flags = top.end_flags()
        self._end_flags = cuda.to_device(sites.astype(np.uint32)), cuda.to_device(flags)
        self._width = PER_BIN * num_bins(points)
        self._found = cuda.device_array(1, np.uint64)

    def rows(self, generator: int, seed: int, samples: np.ndarray, grid: np.ndarray) -> np.ndarray:
        """Return the numbers of up to ``items`` samples, int64 (n, m, PER_BIN * bins)."""
        items, steps = len(samples), grid.size
        size = items * steps * self._width
        if self._found.size < size:
            self._found = cuda.device_array(size, np.uint64)
        grid_of = self._labeler.grid
        clear_tally_kernel[grid_of(size, 1), THREADS](self._found, np.uint32(size))
        for step, threshold in enumerate(grid):
            limits = np.full(items, threshold, np.uint64)
            self._labeler.open_bonds(generator, seed, samples, limits)
            self._labeler.join_forest(self._forest, items)
            self._mark(items)
            self._add(items, step, steps)
        flat = self._found[:size].copy_to_host()
        return flat.view(np.int64).reshape(items, steps, self._width)

    def _mark(self, items: int) -> None:
        """Flatten the forest, and mark the clusters that wrap or touch end layers."""
        labeler, top = self._labeler, self._labeler.topology
        grid_of, points = labeler.grid, np.uint32(top.num_points)
        size = np.uint64((self._axes + BESIDE) * top.num_points)
        flatten_kernel[grid_of(top.num_points, items), THREADS](
            self._forest, points, self._reach, self._sums, size
        )
        if top.seam_codes.size:
            mark_seam_kernel[grid_of(top.seam_bonds.size, items, THREADS), THREADS](
                self._forest,
                points,
                labeler.opened,
                np.uint32(top.exists.size),
                np.uint32(top.num_words),
                *labeler.seam_list,
                self._reach,
            )
        sites, flags = self._end_flags
        if sites.size:
            mark_ends_kernel[grid_of(sites.size, items, THREADS), THREADS](
                self._forest, points, sites, flags, self._reach
            )

    def _add(self, items: int, step: int, steps: int) -> None:
        """Sum the places of all sites, and of the sums what each bin gets."""
        labeler, points = self._labeler, np.uint32(self._labeler.topology.num_points)
        grid = labeler.grid(int(points), items)
        sum_places_kernel[grid, THREADS](
            self._forest, points, *labeler.occupied_words, self._geometry, self._reach, self._sums
        )
        add_spreads_kernel[grid, THREADS](
            self._forest,
            points,
            np.int32(self._axes),
            self._sums,
            np.uint32(self._width),
            self._found,
            np.int64(step),
            np.int64(steps),
        )
