"""CUDA: the bonds that open between two p, joined to one labeling at the lower p.

A bond that is closed at the lowest p and open at the highest, and joins two clusters of a tile or
of neighbouring tiles, is an *opening* (:class:`percolab.labelers.tiled.records.Openings`).  These
clusters become nodes; the others do not change.  The rows of a grid follow from p to p by joining
nodes.

Exact spanning thresholds are found by bisection.  Every opening is moved to the roots of its nodes;
from then on unions change only these roots, and a trial at any p in between is undone by making
them roots again.  Each trial halves the bracket of every sample and axis; when few openings are
left in a bracket, one thread opens them in order.  Grid axis 1 counts the open axes.

labels: uint32 (entries * points,).  In steps, parents: uint32, parents of all nodes; forest:
uint64, of the same length.  In trials, forest, reach: uint32, parents of nodes and end layers that
roots touch, axis after axis, ``span`` nodes each.  numbers: uint64, numbers u of openings' bonds,
in the order of openings.  brackets: uint64 (2, axes, entries), thresholds: the entry spans at the
upper and not at the lower.  A bracket is finished if both are equal; NEVER above: no threshold.
"""

from collections.abc import Sequence
from math import ceil, log2
from typing import Any

import numpy as np
from numba import int32, uint32, uint64
from numpy.typing import NDArray

from percolab.bonds.hooks import bond_number
from percolab.bonds.words import NEVER
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.kernels.neighbours import has_bit
from percolab.kernels.union_find import find, union
from percolab.labelers.tiled.borders import NODES, TILES_PER_BLOCK, listed_bond
from percolab.labelers.tiled.labeler import Tiled
from percolab.labelers.tiled.one_tile import LANES
from percolab.labelers.tiled.records import Openings
from percolab.measure.rows import spanning_bits
from percolab.measure.wrapping_cuda import join_over_periods, note_loop

#: The most openings of a bracket that one thread sorts at the end, and how many it should have.
LISTED, WANTED = 128, 32
#: The point of its bracket at which an entry is tried.
AT_LOWER, AT_MIDDLE, AT_UPPER = range(3)


@cuda.jit(device=True)
def _tile_and_lane():
    """Return this warp's tile, counted through all entries, and the lane."""
    warp, lane = cuda.threadIdx.x // LANES, cuda.threadIdx.x % LANES
    return cuda.blockIdx.x * TILES_PER_BLOCK + warp, lane


@cuda.jit(cache=True)
def cross_openings_kernel(
    labels, points, opened, words_per_entry, node_room, crossing, listed, openings
):
    """Write the openings among the listed bonds between tiles; all are open at the highest p."""
    lists = openings.list
    entry = uint32(cuda.blockIdx.y)
    base, k = uint32(entry * points), uint32(cuda.grid(1))
    while k < listed.counts[entry]:
        n, bit, owner, other = listed_bond(k, entry, listed, crossing)
        word = crossing.words[n]
        if not has_bit(opened[uint32(uint32(entry * words_per_entry) + word)], bit):
            one, other = labels[uint32(base + owner)], labels[uint32(base + other)]
            block = uint32(one // node_room)
            slot = cuda.atomic.add(openings.counts, block, uint32(1))
            if slot < openings.room:
                lists[block, slot, 0], lists[block, slot, 1] = one, other
                lists[block, slot, 2] = uint32(uint32(word << uint32(5)) | bit)
                lists[block, slot, 3] = uint32(crossing.codes[n])
            else:
                # All threads that write it write the same value.
                openings.overflow[0] = uint32(1)
        k = uint32(k + uint32(cuda.gridsize(1)))


@cuda.jit(cache=True)
def order_openings_kernel(generator, sites, keys, grid, tiles, blocks, openings):
    """Replace the bond of every opening by the step of the grid at which it opens."""
    lists = openings.list
    block, lane = _tile_and_lane()
    if block < blocks:
        seed, sample = keys.samples[0], keys.samples[block // tiles + 1]
        for n in range(lane, min(openings.counts[block], openings.room), LANES):
            number = bond_number(generator, sites, seed, sample, lists[block, n, 2])
            step = 0
            while step < grid.size and uint64(grid[step]) <= number:
                step += 1
            lists[block, n, 2] = uint32(step)


@cuda.jit(cache=True)
def join_openings_kernel(parents, step, blocks, openings):
    """Join the nodes of all openings of a step."""
    lists = openings.list
    block, lane = _tile_and_lane()
    if block < blocks:
        for n in range(lane, min(openings.counts[block], openings.room), LANES):
            if lists[block, n, 2] == step:
                union(parents, uint32(0), lists[block, n, 0], lists[block, n, 1])


@cuda.jit(cache=True)
def join_openings_over_periods_kernel(forest, step, tiles, blocks, openings, loops):
    """Join the nodes of all openings of a step in a forest with periods; note what wraps."""
    lists = openings.list
    block, lane = _tile_and_lane()
    if block < blocks:
        for n in range(lane, min(openings.counts[block], openings.room), LANES):
            if lists[block, n, 2] == step:
                one, other = lists[block, n, 0], lists[block, n, 1]
                code = int32(lists[block, n, 3])
                wound = join_over_periods(forest, one, other, code)
                note_loop(wound, uint32(block // tiles), loops)


@cuda.jit(cache=True)
def spanning_ends_kernel(labels, points, nodes, sites, spanning):
    """Set the bits of the axes along which an entry spans; roots must have their end flags."""
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < sites.size:
        node = labels[uint32(uint32(entry * points) + uint32(sites[n]))]
        bits = spanning_bits(nodes.ends[find(nodes.parents, uint32(0), node)])
        if bits != 0:
            cuda.atomic.or_(spanning, entry, uint32(bits))


@cuda.jit(cache=True)
def contract_openings_kernel(generator, sites, keys, parents, tiles, blocks, openings, numbers):
    """Move all openings to the roots of their nodes, and write the numbers of their bonds.

    An opening whose nodes have the same root gets the number NEVER, which is below no threshold.
    """
    lists, counts, room = openings.list, openings.counts, openings.room
    block, lane = _tile_and_lane()
    if block < blocks:
        seed, sample = keys.samples[0], keys.samples[block // tiles + 1]
        for n in range(lane, min(counts[block], room), LANES):
            one = find(parents, uint32(0), lists[block, n, 0])
            other = find(parents, uint32(0), lists[block, n, 1])
            bond = lists[block, n, 2]
            lists[block, n, 0], lists[block, n, 1] = one, other
            if one == other:
                numbers[block, n] = uint64(NEVER)
            else:
                numbers[block, n] = bond_number(generator, sites, seed, sample, bond)


@cuda.jit(cache=True)
def begin_brackets_kernel(lows, highs, entries, axes, spanning, brackets, spans, listed):
    """Set the brackets of all entries to their windows; one thread per entry."""
    entry, row = cuda.grid(1), cuda.blockIdx.y
    if entry < entries:
        spanned = uint32(uint32(spanning[entry] >> axes[row]) & uint32(1)) != uint32(0)
        brackets[0, row, entry] = lows[entry]
        brackets[1, row, entry] = lows[entry] if spanned else highs[entry]
        spans[row, entry] = uint32(0)
        listed[row, entry] = uint32(0)


@cuda.jit(device=True)
def _tried(brackets, row, entry, where):
    """Return the threshold to try for an entry; 0, where nothing is open, once it is finished."""
    lower, upper = brackets[0, row, entry], brackets[1, row, entry]
    if upper == uint64(NEVER) or lower == upper:
        return uint64(0)
    if where == AT_MIDDLE:
        return uint64(lower + uint64(uint64(upper - lower) >> uint64(1)))
    return upper if where == AT_UPPER else lower


@cuda.jit(device=True)
def _narrow(brackets, row, entry, where, spanned):
    """Narrow a bracket by the outcome of the trial made at ``where``."""
    lower, upper = brackets[0, row, entry], brackets[1, row, entry]
    if upper == uint64(NEVER) or lower == upper:
        return
    if where == AT_UPPER and spanned == uint32(0):
        brackets[1, row, entry] = uint64(NEVER)
    elif where == AT_MIDDLE:
        middle = _tried(brackets, row, entry, AT_MIDDLE)
        brackets[1 if spanned != uint32(0) else 0, row, entry] = middle


@cuda.jit(cache=True)
def undo_trial_kernel(
    forest, reach, span, tiles, blocks, interior, node_room, brackets, spans, where
):
    """Narrow the brackets by the last trial, made at ``where``, and undo it.

    All nodes become roots, since writing all in sequence is faster than only those of openings.
    """
    block, lane = _tile_and_lane()
    row = uint32(cuda.blockIdx.y)
    if block < blocks:
        entry = block // tiles
        if lane == 0 and block == entry * tiles:
            _narrow(brackets, row, entry, where, spans[row, entry])
            spans[row, entry] = uint32(0)
        base, least = uint32(row * span), uint32(uint32(block) * node_room)
        for n in range(lane, interior[block, NODES], LANES):
            node = uint32(least + uint32(n))
            forest[uint32(base + node)] = node
            reach[uint32(base + node)] = uint32(0)


@cuda.jit(cache=True)
def join_trial_kernel(forest, span, tiles, blocks, openings, numbers, brackets, where):
    """Join the nodes of all openings that are open at the threshold tried."""
    lists, counts, room = openings.list, openings.counts, openings.room
    block, lane = _tile_and_lane()
    row = uint32(cuda.blockIdx.y)
    if block < blocks:
        base = uint32(row * span)
        tried = _tried(brackets, row, block // tiles, where)
        if tried != uint64(0):
            for n in range(lane, min(counts[block], room), LANES):
                if numbers[block, n] < tried:
                    union(forest, base, lists[block, n, 0], lists[block, n, 1])


@cuda.jit(cache=True)
def reach_trial_kernel(forest, ends, reach, span, tiles, blocks, openings, numbers, axes, spans):
    """Collect in the roots which end layers of the axis they touch; note entries that span."""
    lists, counts, room = openings.list, openings.counts, openings.room
    block, lane = _tile_and_lane()
    row = uint32(cuda.blockIdx.y)
    if block < blocks:
        base = uint32(row * span)
        both = uint32(uint32(3) << uint32(axes[row] << uint32(1)))
        for n in range(lane, min(counts[block], room), LANES):
            if numbers[block, n] != uint64(NEVER):
                for side in range(2):
                    node = lists[block, n, side]
                    flags = uint32(ends[node] & both)
                    if flags != uint32(0):
                        root = find(forest, base, node)
                        before = cuda.atomic.or_(reach, uint32(base + root), flags)
                        # The thread that sets the second bit sees both; all write the same.
                        if uint32(before | flags) == both:
                            spans[row, block // tiles] = uint32(1)


@cuda.jit(cache=True)
def list_brackets_kernel(tiles, blocks, openings, numbers, brackets, listed, places):
    """List the openings within every bracket: their number and their places."""
    counts, room = openings.counts, openings.room
    block, lane = _tile_and_lane()
    row = cuda.blockIdx.y
    if block < blocks:
        entry = block // tiles
        lower, upper = brackets[0, row, entry], brackets[1, row, entry]
        if upper != uint64(NEVER):
            for n in range(lane, min(counts[block], room), LANES):
                if lower <= numbers[block, n] < upper:
                    slot = cuda.atomic.add(listed, (row, entry), uint32(1))
                    if slot < uint32(LISTED):
                        places[row, entry, slot] = (uint64(block) << uint64(32)) | uint64(n)
                    else:
                        # All threads that write it write the same value.
                        openings.overflow[0] = uint32(1)


@cuda.jit(cache=True)
def finish_brackets_kernel(
    forest, reach, span, openings, numbers, brackets, listed, places, axes, entries, thresholds
):
    """Open the listed openings of every bracket in order, and write T; one thread per bracket.

    The last trial must have been at the lower ends of the brackets.
    """
    entry, row = cuda.grid(1), uint32(cuda.blockIdx.y)
    if entry < entries:
        upper = brackets[1, row, entry]
        thresholds[row, entry] = upper
        if upper != uint64(NEVER):
            base = uint32(row * span)
            count = min(listed[row, entry], uint32(LISTED))
            _sort_places(places, row, entry, count, numbers)
            both = uint32(uint32(3) << uint32(axes[row] << uint32(1)))
            for k in range(count):
                block, n = _place(places, row, entry, k)
                one = find(forest, base, openings.list[block, n, 0])
                other = find(forest, base, openings.list[block, n, 1])
                if one != other:
                    forest[uint32(base + max(one, other))] = min(one, other)
                    flags = uint32(reach[uint32(base + one)] | reach[uint32(base + other)])
                    reach[uint32(base + min(one, other))] = flags
                    if flags == both:
                        thresholds[row, entry] = uint64(numbers[block, n] + uint64(1))
                        break


@cuda.jit(device=True)
def _place(places, row, entry, k):
    """Return (block, number) of the k-th listed opening of a bracket."""
    place = places[row, entry, k]
    return uint32(place >> uint64(32)), uint32(place & uint64(0xFFFFFFFF))


@cuda.jit(device=True)
def _sort_places(places, row, entry, count, numbers):
    """Sort a bracket's list by the numbers of its openings (insertion sort)."""
    for k in range(1, count):
        place = places[row, entry, k]
        block, n = _place(places, row, entry, k)
        number, slot = numbers[block, n], k
        while slot > 0:
            before, m = _place(places, row, entry, slot - 1)
            if numbers[before, m] <= number:
                break
            places[row, entry, slot] = places[row, entry, slot - 1]
            slot -= 1
        places[row, entry, slot] = place


class BracketSearch:
    """Brackets of the samples of a batch along all open axes, narrowed in parallel."""

    def __init__(self, labeler: Tiled) -> None:
        self._labeler, self._launches = labeler, labeler.batch.launches
        open_axes = labeler.batch.topology.open_axes
        axes, capacity = len(open_axes), labeler.batch.capacity
        self._axes = cuda.to_device(np.array(open_axes, np.uint32))
        self._brackets = cuda.device_array((2, axes, capacity), np.uint64)
        self._spans = cuda.device_array((axes, capacity), np.uint32)
        self._listed = cuda.device_array((axes, capacity), np.uint32)
        self._places = cuda.device_array((axes, capacity, LISTED), np.uint64)
        self._thresholds = cuda.device_array((axes, capacity), np.uint64)
        self._numbers: Any = None
        self._forest: Any = None
        self._reach: Any = None

    def make_room(self, openings: Openings) -> None:
        """Ensure that there is memory for the nodes and the numbers of these openings."""
        shape = openings.list.shape[:2]
        if self._numbers is None or self._numbers.shape != shape:
            self._numbers = cuda.device_array(shape, np.uint64)
        size = self._labeler.nodes.parents.size * self._axes.size
        if self._forest is None or self._forest.size < size:
            self._forest = cuda.device_array(size, np.uint32)
            self._reach = cuda.device_array(size, np.uint32)

    def contract(self, entries: int, generator: int, openings: Openings) -> None:
        """Move the openings to the roots of their nodes and find the numbers of their bonds."""
        labeler, batch = self._labeler, self._labeler.batch
        blocks, tiles = labeler.count_blocks(entries)
        keys = generator, batch.sites, batch.keys.on_device
        nodes = labeler.nodes.parents, np.int32(labeler.tiling.num_tiles), tiles
        contracted = *keys, *nodes, openings, self._numbers
        self._launches.blocks(contract_openings_kernel, blocks, THREADS, *contracted)

    def search(
        self, openings: Openings, window: Sequence[NDArray[np.uint64]], expected: int
    ) -> NDArray[np.uint64]:
        """Return T of all entries along all open axes, uint64 (entries, axes).

        window: a lower and an upper threshold for every entry.  expected: the approximate number of
        openings of an entry.
        """
        entries, axes = len(window[0]), self._axes.size
        one_each = (-(-entries // THREADS), axes)
        limits = [cuda.to_device(np.ascontiguousarray(end)) for end in window]
        begun = self._labeler.read.spanning, self._brackets, self._spans, self._listed
        begun = *limits, np.int32(entries), self._axes, *begun
        self._launches.blocks(begin_brackets_kernel, one_each, THREADS, *begun)
        tiles = entries * self._labeler.tiling.num_tiles
        grid = -(-tiles // TILES_PER_BLOCK), axes
        rounds = max(ceil(log2(max(expected, 1) / WANTED)), 0)
        last = AT_LOWER
        for where in (AT_UPPER, *[AT_MIDDLE] * rounds, AT_LOWER):
            self._undo(grid, tiles, last)
            self._try(grid, tiles, openings, where)
            last = where
        lists = self._brackets, self._listed, self._places
        listed = *self._openings(tiles, openings), *lists
        self._launches.blocks(list_brackets_kernel, grid, THREADS, *listed)
        written = self._axes, np.int32(entries), self._thresholds
        finished = *self._forests, openings, self._numbers, *lists, *written
        self._launches.blocks(finish_brackets_kernel, one_each, THREADS, *finished)
        self._launches.wait()
        return self._thresholds.copy_to_host()[:, :entries].T

    @property
    def _forests(self) -> tuple[Any, Any, np.uint32]:
        return self._forest, self._reach, np.uint32(self._forest.size // self._axes.size)

    def _openings(self, tiles: int, openings: Openings) -> tuple[Any, ...]:
        of_entry = np.int32(self._labeler.tiling.num_tiles)
        return of_entry, np.int32(tiles), openings, self._numbers

    def _undo(self, grid: tuple[int, int], tiles: int, last: int) -> None:
        """Narrow the brackets by the trial made at ``last``, and undo it."""
        labeler = self._labeler
        nodes = np.int32(labeler.tiling.num_tiles), np.int32(tiles), labeler.interior
        undone = *nodes, labeler.nodes.room, self._brackets, self._spans, np.int32(last)
        self._launches.blocks(undo_trial_kernel, grid, THREADS, *self._forests, *undone)

    def _try(self, grid: tuple[int, int], tiles: int, openings: Openings, where: int) -> None:
        """Join the openings that are open at a point of the brackets, and find who spans."""
        forest, reach, span = self._forests
        batch = self._openings(tiles, openings)
        trial = forest, span, *batch, self._brackets, np.int32(where)
        self._launches.blocks(join_trial_kernel, grid, THREADS, *trial)
        ends = self._labeler.nodes.ends
        reached = forest, ends, reach, span, *batch, self._axes, self._spans
        self._launches.blocks(reach_trial_kernel, grid, THREADS, *reached)
