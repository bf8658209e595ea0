"""The bisection for the spanning thresholds of a batch; its steps are the kernels' names."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.coupled.brackets_cuda import (
    AT_LOWER,
    AT_MIDDLE,
    AT_UPPER,
    LISTED,
    WANTED,
    begin_brackets_kernel,
    contract_openings_kernel,
    finish_brackets_kernel,
    join_trial_kernel,
    list_brackets_kernel,
    reach_trial_kernel,
    undo_trial_kernel,
)
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import THREADS
from percolab.labelers.tiled.borders import TILES_PER_BLOCK
from percolab.labelers.tiled.labeler import Tiled
from percolab.labelers.tiled.records import Openings

cuda = load_cuda()


class BracketSearch:
    """Brackets of the items of a batch along all open axes, narrowed side by side."""

    def __init__(self, labeler: Tiled) -> None:
        self._labeler, self._launches = labeler, labeler.batch.launches
        open_axes = labeler.batch.topology.open_axes
        axes, capacity = len(open_axes), labeler.batch.capacity
        self._axes = cuda.to_device(np.array(open_axes, np.uint32))
        self._brackets = cuda.device_array((2, axes, capacity), np.uint64)
        self._spans = cuda.device_array((axes, capacity), np.uint32)
        self._listed = cuda.device_array((axes, capacity), np.uint32)
        self._places = cuda.device_array((axes, capacity, LISTED), np.uint64)
        self._found = cuda.device_array((axes, capacity), np.uint64)
        self._numbers: Any = None
        self._forest: Any = None
        self._reach: Any = None

    def make_room(self, openings: Openings) -> None:
        """See to it that there is memory for the nodes and the numbers of these openings."""
        shape = openings.list.shape[:2]
        if self._numbers is None or self._numbers.shape != shape:
            self._numbers = cuda.device_array(shape, np.uint64)
        size = self._labeler.nodes.parents.size * self._axes.size
        if self._forest is None or self._forest.size < size:
            self._forest = cuda.device_array(size, np.uint32)
            self._reach = cuda.device_array(size, np.uint32)

    def contract(self, items: int, generator: int, openings: Openings) -> None:
        """Move the openings to the roots of their nodes and find the numbers of their bonds."""
        labeler, batch = self._labeler, self._labeler.batch
        blocks, tiles = labeler.count_blocks(items)
        keys = generator, batch.sites, batch.keys.on_device
        nodes = labeler.nodes.parents, np.int32(labeler.tiling.num_tiles), tiles
        self._launches.blocks(
            contract_openings_kernel, blocks, THREADS, *keys, *nodes, openings, self._numbers
        )

    def search(
        self, openings: Openings, window: Sequence[NDArray[np.uint64]], expected: int
    ) -> NDArray[np.uint64]:
        """Return T of all items along all open axes, uint64 (items, axes).

        window: a lower and an upper threshold for every item.  expected: openings of an item,
        about.
        """
        items, axes = len(window[0]), self._axes.size
        one_each = (-(-items // THREADS), axes)
        limits = [cuda.to_device(np.ascontiguousarray(end)) for end in window]
        self._launches.blocks(
            begin_brackets_kernel,
            one_each,
            THREADS,
            *limits,
            np.int32(items),
            self._axes,
            self._labeler.read.spanning,
            self._brackets,
            self._spans,
            self._listed,
        )
        tiles = items * self._labeler.tiling.num_tiles
        grid = -(-tiles // TILES_PER_BLOCK), axes
        rounds = max(ceil(log2(max(expected, 1) / WANTED)), 0)
        last = AT_LOWER
        for where in (AT_UPPER, *[AT_MIDDLE] * rounds, AT_LOWER):
            self._undo(grid, tiles, last)
            self._try(grid, tiles, openings, where)
            last = where
        lists = self._brackets, self._listed, self._places
        self._launches.blocks(
            list_brackets_kernel, grid, THREADS, *self._openings(tiles, openings), *lists
        )
        self._launches.blocks(
            finish_brackets_kernel,
            one_each,
            THREADS,
            *self._forests,
            openings,
            self._numbers,
            *lists,
            self._axes,
            np.int32(items),
            self._found,
        )
        self._launches.wait()
        found: NDArray[np.uint64] = self._found.copy_to_host()[:, :items].T
        return found

    @property
    def _forests(self) -> tuple[Any, Any, np.uint32]:
        return self._forest, self._reach, np.uint32(self._forest.size // self._axes.size)

    def _openings(self, tiles: int, openings: Openings) -> tuple[Any, ...]:
        of_item = np.int32(self._labeler.tiling.num_tiles)
        return of_item, np.int32(tiles), openings, self._numbers

    def _undo(self, grid: tuple[int, int], tiles: int, last: int) -> None:
        """Narrow the brackets by the trial made at ``last``, and undo it."""
        labeler = self._labeler
        sizes = np.int32(labeler.tiling.num_tiles), np.int32(tiles)
        nodes = labeler.interior, labeler.nodes.room
        brackets = self._brackets, self._spans, np.int32(last)
        self._launches.blocks(
            undo_trial_kernel, grid, THREADS, *self._forests, *sizes, *nodes, *brackets
        )

    def _try(self, grid: tuple[int, int], tiles: int, openings: Openings, where: int) -> None:
        """Open what is open at a place of the brackets, and see who spans."""
        forest, reach, span = self._forests
        batch = self._openings(tiles, openings)
        trial = forest, span, *batch, self._brackets, np.int32(where)
        self._launches.blocks(join_trial_kernel, grid, THREADS, *trial)
        ends = self._labeler.nodes.ends
        reached = forest, ends, reach, span, *batch, self._axes, self._spans
        self._launches.blocks(reach_trial_kernel, grid, THREADS, *reached)
