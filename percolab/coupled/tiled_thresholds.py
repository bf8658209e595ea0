"""The bisection for the spanning thresholds of a batch; its steps are the kernels' names."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from typing import Any

import numpy as np

from percolab.coupled.brackets_cuda import (
    AT_LOWER,
    AT_MIDDLE,
    AT_UPPER,
    LISTED,
    WANTED,
    begin_brackets_kernel,
    contract_events_kernel,
    finish_brackets_kernel,
    join_trial_kernel,
    list_brackets_kernel,
    reach_trial_kernel,
    undo_trial_kernel,
)
from percolab.kernels.device import load_cuda
from percolab.kernels.launches import THREADS
from percolab.labelers.tiled.borders import TILES_PER_BLOCK

cuda = load_cuda()


class BracketSearch:
    """Brackets of the items of a batch along all open axes, narrowed side by side.

    The arguments are those of the kernels: parents and end flags of the nodes, and the events.
    """

    def __init__(self, capacity: int, open_axes: tuple[int, ...]) -> None:
        axes = len(open_axes)
        self._axes = cuda.to_device(np.array(open_axes, np.uint32))
        self._brackets = cuda.device_array((2, axes, capacity), np.uint64)
        self._spans = cuda.device_array((axes, capacity), np.uint32)
        self._listed = cuda.device_array((axes, capacity), np.uint32)
        self._places = cuda.device_array((axes, capacity, LISTED), np.uint64)
        self._found = cuda.device_array((axes, capacity), np.uint64)
        self._numbers: Any = None
        self._forest: Any = None
        self._reach: Any = None

    def _make_room(self, nodes: int, events: tuple[int, int]) -> None:
        """See to it that there is memory for so many nodes and the numbers of events."""
        if self._numbers is None or self._numbers.shape != events:
            self._numbers = cuda.device_array(events, np.uint64)
        wanted = nodes * self._axes.size
        if self._forest is None or self._forest.size < wanted:
            self._forest = cuda.device_array(wanted, np.uint32)
            self._reach = cuda.device_array(wanted, np.uint32)

    def contract(
        self,
        parents: Any,
        late: Any,
        tiles: int,
        generator: int,
        sites: tuple[Any, ...],
        seed: int,
        keys: Any,
    ) -> None:
        """Move the events to the roots of their nodes and find the numbers of their bonds."""
        self._make_room(parents.size, late[1].shape[:2])
        blocks = len(keys) * tiles
        contract_events_kernel[-(-blocks // TILES_PER_BLOCK), THREADS](
            generator,
            sites,
            np.uint64(seed),
            keys,
            parents,
            np.int32(tiles),
            np.int32(blocks),
            late,
            self._numbers,
        )

    def search(
        self,
        ends: Any,
        late: Any,
        tiles: int,
        nodes: tuple[Any, np.uint32],
        spanning: Any,
        window: Sequence[np.ndarray],
        events: int,
    ) -> np.ndarray:
        """Return T of all items along all open axes, uint64 (items, axes).

        nodes: (interior of the tiles, which counts their nodes; room for nodes of a tile).  window:
        a lower and an upper threshold for every item.  events: of an item, about.
        """
        items, axes = len(window[0]), self._axes.size
        begin_brackets_kernel[(-(-items // THREADS), axes), THREADS](
            *map(cuda.to_device, window),
            self._axes,
            spanning,
            self._brackets,
            self._spans,
            self._listed,
        )
        grid = (-(-items * tiles // TILES_PER_BLOCK), axes), THREADS
        batch = (np.int32(tiles), np.int32(items * tiles), late, self._numbers)
        rounds = max(ceil(log2(max(events, 1) / WANTED)), 0)
        last = AT_LOWER
        for where in (AT_UPPER, *[AT_MIDDLE] * rounds, AT_LOWER):
            self._undo(grid, batch[:2], nodes, last)
            self._try(grid, batch, ends, where)
            last = where
        list_brackets_kernel[grid](*batch, self._brackets, self._listed, self._places)
        finish_brackets_kernel[(-(-items // THREADS), axes), THREADS](
            *self._forests,
            late,
            self._numbers,
            self._brackets,
            self._listed,
            self._places,
            self._axes,
            np.int32(items),
            self._found,
        )
        return self._found.copy_to_host()[:, :items].T

    @property
    def _forests(self) -> tuple[Any, Any, np.uint32]:
        return self._forest, self._reach, np.uint32(self._forest.size // self._axes.size)

    def _undo(self, grid: Any, sizes: Any, nodes: Any, last: int) -> None:
        """Narrow the brackets by the trial made at ``last``, and undo it."""
        undo_trial_kernel[grid](
            *self._forests, *sizes, *nodes, self._brackets, self._spans, np.int32(last)
        )

    def _try(self, grid: Any, batch: Any, ends: Any, where: int) -> None:
        """Open what is open at a place of the brackets, and see who spans."""
        forest, reach, span = self._forests
        join_trial_kernel[grid](forest, span, *batch, self._brackets, np.int32(where))
        reach_trial_kernel[grid](forest, ends, reach, span, *batch, self._axes, self._spans)
